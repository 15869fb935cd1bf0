"""Advice for a file of people: it may be larger than memory, and is resumed where it was cut off.

``advise_file`` is the entry. The file is read a block at a time. In a block, people of whom the
same is known are worked on together, a part at a time; the advice of each part is a file of its own
in a folder beside the result (``edfa.advice.finished_parts``). When all are there they become the
result, which is whole or not there. A run that is killed leaves finished parts, and the next one
with the same people (and their overlays), advisor and settings goes on with those who are in none.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edfa.advice.batch import COLUMNS, advise
from edfa.advice.finished_parts import Block, FinishedParts, open_parts
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.on_workers import Cluster, results
from edfa.advice.overlays import read_overlays
from edfa.advice.people_files import check_format, source_files, write_advice
from edfa.advice.receipt import versions
from edfa.data.read import chunks
from edfa.errors import ColumnError, DataError, EmptyTableError, SettingError, UnreadableError, hint
from edfa.reading import existing, sha256_of
from edfa.typing import IntArray
from edfa.writing import check_writable

ROWS_PER_BLOCK = 10_000  # rows that are read, and put in order, at a time
CHUNK, SECONDS = 1_000, 5.0  # people in a part at most, and about how long one may take
FIRST = 200  # people in a part before it is known how long they take
Progress = Callable[[int, int], None]
OverlayCells = str | pd.Series | None
"""Where people's overlays come from: a column of the file of people; cells by row number; None."""


def advise_file(
    fitted: FittedAdvisor,
    rows: str | Path,
    out: str | Path,
    *,
    k: int = 3,
    chunk: int | None = None,
    workers: int | Cluster | None = -1,
    progress: Progress | None = None,
    overlays: str | Path | None = None,
) -> dict[str, int]:
    """Advise everybody in ``rows`` and write the result to ``out``; both are CSV, Parquet or JSON
    lines by their name.

    The result is the same, to the byte, for any ``chunk`` and ``workers``.

    Parameters
    ----------
    fitted
        The advisor.
    rows
        The file of people, or a folder of Parquet files, which are read in the order of their
        names.
    out
        Where the advice goes: the columns ``edfa.advice.batch.COLUMNS``, a row per person.
    k
        The largest number of plans a person.
    chunk
        The number of people in a part; a run that is killed loses at most the parts that it was
        working on. None: at most 1,000, or as many as take about five seconds.
    workers
        The number of threads that share the parts (-1: one a processor), or the Dask cluster whose
        workers do.
    progress
        Called with the numbers of people and of parts that are done.
    overlays
        People's overlays: the name of a column, or the path of a file (see ``read_overlays``).

    Returns
    -------
    dict
        How many ``people`` there are, how many of them could not be understood (``errors``) or
        were ``flagged``, and how many finished parts were there already (``resumed``).

    Raises
    ------
    DataError
        If a file cannot be read or written, has no rows or the wrong columns, or if ``out`` is one
        of the files that are read.
    BusyError
        If another run is writing to the same result.
    """
    sources, result = source_files(rows), Path(out)
    check_format(result)
    own_files = [overlays] if isinstance(overlays, Path) else []
    inputs = [*sources, *own_files]
    if result.exists() and any(path.exists() and path.samefile(result) for path in inputs):
        raise DataError(
            f"{result} is read and cannot be written over; give the advice another name"
        )
    if (chunk is not None and chunk < 1) or k < 1:
        raise DataError(f"a chunk and the number of plans are at least 1, not {chunk} and {k}")
    if overlays in fitted.schema.names:
        raise SettingError(
            f"{overlays!r} is a feature of the card; people's overlays need a column of their own"
        )
    result = check_writable(result)
    contents = {path: sha256_of(existing(path)) for path in inputs}
    own = read_overlays(overlays) if isinstance(overlays, Path) else overlays
    with open_parts(result, _identity(fitted, k, own)) as finished:
        run = _Run(fitted, finished, chunk, progress)
        for part, advised in results(fitted, _advise, run.parts(sources, own, k), workers):
            run.store(*part, *advised)
        people = run.counts["people"]
        if not people:
            raise EmptyTableError(f"{Path(rows).name} has no rows")
        if isinstance(own, pd.Series) and (last := max(own.index, default=-1)) >= people:
            name = Path(str(overlays)).name
            raise DataError(
                f"{name}: there is no row {last}; the rows are numbered from 0 to {people - 1}"
            )
        _check_unchanged(contents, [*source_files(rows), *own_files])
        write_advice(finished.tables(), result)
        finished.remove()
    return run.counts


def _identity(fitted: FittedAdvisor, k: int, overlays: OverlayCells) -> dict[str, Any]:
    """What advice depends on, beside the people: parts of a run of which any of it differs are not
    used.
    """
    return {
        "k": k,
        "overlay_column": overlays if isinstance(overlays, str) else None,
        "block": ROWS_PER_BLOCK,
        "columns": COLUMNS,
        "advisor": fitted.fingerprint,
        "certificate": fitted.promise.certificate_id,
        "made_with": versions(),
    }


def _check_unchanged(before: dict[Path, str], paths: list[Path]) -> None:
    """Raise UnreadableError if files are not what they were: some people were read before, and some
    after.

    Parameters
    ----------
    before
        The hashes of the files that were read.
    paths
        The files that would be read now.
    """
    now = {path: sha256_of(path) for path in paths if path.exists()}
    for path in before | now:
        if before.get(path) != now.get(path):
            raise UnreadableError(
                f"{path.name} was changed while it was read; run the same command again"
            )


def _advise(
    fitted: FittedAdvisor, frame: pd.DataFrame, cells: pd.Series | None, k: int
) -> tuple[pd.DataFrame, float]:
    """The advice of some people, with the seconds that it took; it runs on a worker."""
    began = time.perf_counter()
    return advise(fitted, frame, k, overlays=cells), time.perf_counter() - began


def _cells(overlays: OverlayCells, frame: pd.DataFrame, first: int) -> pd.Series | None:
    """The overlay cells of the people of a block, (people,); None if nobody has any.

    ``first`` is the row number of the first person of ``frame`` in the file.
    """
    if overlays is None:
        return None
    if isinstance(overlays, pd.Series):
        return overlays.reindex(range(first, first + len(frame)))
    if overlays not in frame.columns:
        raise ColumnError(
            f"the rows have no column {overlays!r} of overlays{hint(overlays, frame.columns)}"
        )
    return frame[overlays]


class _Run:
    """The parts of a file that are still to do, and the counts of what is done.

    Parameters
    ----------
    fitted
        The advisor.
    finished
        The finished parts.
    chunk
        The number of people in a part; None: it follows from the time that parts take.
    progress
        Called with the numbers of people and of parts that are done.
    """

    def __init__(
        self,
        fitted: FittedAdvisor,
        finished: FinishedParts,
        chunk: int | None,
        progress: Progress | None,
    ) -> None:
        self.fitted, self.finished, self.chunk, self.progress = fitted, finished, chunk, progress
        self.counts = {"people": 0, "errors": 0, "flagged": 0, "resumed": 0}
        self.size, self.done, self.written = chunk or FIRST, 0, 0

    def parts(
        self, sources: list[Path], overlays: OverlayCells, k: int
    ) -> Iterator[tuple[tuple[Block, IntArray], tuple[Any, ...]]]:
        """Everybody who is in no finished part, a part at a time; each is as large as is right by
        now.

        Yields the block and the rows of its people in the file, (people,), and the arguments of
        ``_advise``: what is known of them, their overlays, and the number of plans.
        """
        for source in sources:
            for frame in chunks(source, ROWS_PER_BLOCK, self.fitted.schema):
                first = self.counts["people"]
                self.counts["people"] += len(frame)
                cells = _cells(overlays, frame, first)
                block = Block.of(len(self.finished.blocks), first, frame, cells)
                left = self._ordered(frame, cells)
                left = left[~np.isin(first + left, self._finished(block))]
                while len(left):
                    rows, left = left[: self.size], left[self.size :]
                    own = None if cells is None else cells.iloc[rows].reset_index(drop=True)
                    yield (block, first + rows), (frame.iloc[rows].reset_index(drop=True), own, k)

    def _ordered(self, frame: pd.DataFrame, cells: pd.Series | None) -> IntArray:
        """The positions of a block's people, (people,), those with the same overlay and the same
        known features one after the other.
        """
        relevant = np.array(self.fitted.schema.names)[self.fitted.relevant]
        known = frame.reindex(columns=relevant).notna().to_numpy()
        overlay = np.zeros(len(frame)) if cells is None else pd.factorize(cells.astype(str))[0]
        return np.lexsort([*np.packbits(known, axis=1).T, overlay])

    def _finished(self, block: Block) -> IntArray:
        """The rows of a block that finished parts have; they are counted."""
        rows = [np.zeros(0, dtype=np.int64)]
        for part in self.finished.take(block):
            rows.append(part.column("row").to_numpy())
            self.counts["resumed"] += 1
            self._count(part.select(["error", "flags"]).to_pandas())
        return np.concatenate(rows)

    def store(self, block: Block, rows: IntArray, advice: pd.DataFrame, seconds: float) -> None:
        """Write the advice of a part, whose people are these rows of the file, (people,); choose
        the size of those to come.
        """
        self.finished.store(block, rows, advice)
        self._count(advice)
        if self.chunk is None:
            self.size = int(np.clip(len(advice) / max(seconds, 1e-9) * SECONDS, 1, CHUNK))

    def _count(self, advice: pd.DataFrame) -> None:
        """Count the people of a part and tell ``progress``."""
        self.counts["errors"] += int(advice["error"].notna().sum())
        self.counts["flagged"] += int(advice["flags"].notna().sum())
        self.done, self.written = self.done + len(advice), self.written + 1
        if self.progress:
            self.progress(self.done, self.written)
