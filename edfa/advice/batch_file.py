"""Advice for a file of people: it may be larger than memory, and is resumed where it was cut off.

The file is read a block at a time. In a block, people of whom the same is known are worked on
together, a part at a time; the advice of each part is a file of its own in a folder beside the
result. When all are there they become the result, which is whole or not there. A run that is killed
leaves finished parts, and the next one with the same people (and their overlays), advisor and
settings goes on with those who are in none.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edfa.advice.batch import COLUMNS, advise
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.kept_parts import Block, KeptParts, open_parts
from edfa.advice.on_workers import Cluster, open_pool
from edfa.advice.overlays import read_overlays
from edfa.advice.people_files import FORMATS, check_format, chunks, source_files, write_advice
from edfa.advice.receipt import versions
from edfa.errors import ColumnError, DataError, EmptyTableError, SettingError, UnreadableError, hint
from edfa.reading import existing, sha256_of
from edfa.typing import IntArray
from edfa.writing import check_writable

__all__ = ["CHUNK", "FORMATS", "SECONDS", "advise_file", "chunks"]

BLOCK = 10_000  # rows that are read, and put in order, at a time
CHUNK, SECONDS = 1_000, 5.0  # people in a part at most, and about how long one may take
FIRST = 200  # people in a part before it is known how long they take
Progress = Callable[[int, int], None]


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

    ``rows`` may also be a folder of Parquet files, which are read in the order of their names.
    Returns how many people there are, how many could not be understood, how many were flagged, and
    how many finished parts were there already. The result is the same, to the byte, for any
    ``chunk`` and ``workers``.

    Parameters
    ----------
    fitted, rows, out
        The advisor, the people, and where their advice goes.
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
    """
    sources, result = source_files(rows), Path(out)
    check_format(result)
    inputs = [*sources, *([overlays] if isinstance(overlays, Path) else [])]
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
    own = _OverlaySource(overlays)
    with open_parts(result, _identity(fitted, k, own.column)) as kept:
        run = _Run(fitted, sources, own, kept, chunk, progress)
        with open_pool(fitted, workers) as pool:
            tasks = ((part, (part.frame, part.cells, k)) for part in run.parts())
            for part, (advice, seconds) in pool.results(_advise, tasks):
                run.store(part, advice, seconds)
        if not run.counts["people"]:
            raise EmptyTableError(f"{Path(rows).name} has no rows")
        own.check_rows(run.counts["people"])
        _check_unchanged(contents, [*source_files(rows), *inputs[len(sources) :]])
        write_advice(kept.tables(), result)
        kept.remove()
    return run.counts


def _identity(fitted: FittedAdvisor, k: int, overlay_column: str | None) -> dict[str, Any]:
    """What advice depends on, beside the people: parts of a run of which any of it differs are not
    used.
    """
    settings = {"k": k, "overlay_column": overlay_column, "block": BLOCK, "columns": COLUMNS}
    return settings | {
        "advisor": fitted.fingerprint,
        "certificate": fitted.promise.certificate_id,
        "made_with": versions(),
    }


def _check_unchanged(before: dict[Path, str], paths: list[Path]) -> None:
    """Raise UnreadableError if files are not what they were: some people were read before, and some
    after.
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
    """The advice of some people, with the seconds that it took."""
    began = time.perf_counter()
    return advise(fitted, frame, k, n_jobs=1, overlays=cells), time.perf_counter() - began


class _Part(NamedTuple):
    """People of one block: their rows in the file, (people,), what is known of them, and their
    overlays.
    """

    block: Block
    rows: IntArray
    frame: pd.DataFrame
    cells: pd.Series | None


@dataclass(eq=False)
class _Run:
    """What is left to do of a file, and what is done."""

    fitted: FittedAdvisor
    sources: list[Path]
    own: "_OverlaySource"
    kept: KeptParts
    chunk: int | None
    progress: Progress | None

    def __post_init__(self) -> None:
        self.counts = {"people": 0, "errors": 0, "flagged": 0, "resumed": 0}
        self.size, self.done, self.written = self.chunk or FIRST, 0, 0

    def parts(self) -> Iterator[_Part]:
        """Everybody who is in no finished part, a part at a time; each is as large as is right by
        now.
        """
        for source in self.sources:
            for frame in chunks(source, BLOCK, self.fitted.schema):
                first = self.counts["people"]
                self.counts["people"] += len(frame)
                cells = self.own.cells(frame, first)
                block = Block.of(len(self.kept.blocks), first, frame, cells)
                left = self._ordered(frame, cells)
                left = left[~np.isin(first + left, self._finished(block))]
                while len(left):
                    rows, left = left[: self.size], left[self.size :]
                    some = None if cells is None else cells.iloc[rows].reset_index(drop=True)
                    yield _Part(block, first + rows, frame.iloc[rows].reset_index(drop=True), some)

    def _ordered(self, frame: pd.DataFrame, cells: pd.Series | None) -> IntArray:
        """The positions of a block's people: who has the same overlay and knows the same comes
        together.
        """
        names = [
            name
            for name, counts in zip(self.fitted.schema.names, self.fitted.relevant, strict=True)
            if counts
        ]
        known = frame.reindex(columns=names).notna().to_numpy()
        overlay = (
            np.zeros(len(frame), dtype=np.intp)
            if cells is None
            else pd.factorize(cells.astype(str))[0]
        )
        return np.lexsort([*np.packbits(known, axis=1).T, overlay])

    def _finished(self, block: Block) -> IntArray:
        """The rows of a block that finished parts have; they are counted."""
        rows = [np.zeros(0, dtype=np.int64)]
        for part in self.kept.take(block):
            rows.append(part.column("row").to_numpy())
            self.counts["resumed"] += 1
            errors, flagged = (part.column(name).null_count for name in ("error", "flags"))
            self._count(part.num_rows - errors, part.num_rows - flagged, part.num_rows)
        return np.concatenate(rows)

    def store(self, part: _Part, advice: pd.DataFrame, seconds: float) -> None:
        """Keep the advice of a part; choose the size of those to come."""
        self.kept.store(part.block, part.rows, advice)
        self._count(advice["error"].notna().sum(), advice["flags"].notna().sum(), len(advice))
        if self.chunk is None:
            self.size = int(np.clip(len(advice) / max(seconds, 1e-9) * SECONDS, 1, CHUNK))

    def _count(self, errors: int, flagged: int, people: int) -> None:
        self.counts["errors"] += int(errors)
        self.counts["flagged"] += int(flagged)
        self.done, self.written = self.done + people, self.written + 1
        if self.progress:
            self.progress(self.done, self.written)


class _OverlaySource:
    """Where people's overlays come from: a column, or cells by row number of a file, or nowhere."""

    def __init__(self, overlays: str | Path | None) -> None:
        self.name = overlays.name if isinstance(overlays, Path) else ""
        self.by_row = read_overlays(overlays) if isinstance(overlays, Path) else None
        self.column = None if isinstance(overlays, Path) else overlays

    def cells(self, frame: pd.DataFrame, first: int) -> pd.Series | None:
        """The cells of the people in a block, (people,); None if nobody has any."""
        if self.by_row is not None:
            return self.by_row.reindex(range(first, first + len(frame)))
        if self.column is None:
            return None
        if self.column not in frame.columns:
            raise ColumnError(
                f"the rows have no column {self.column!r} of "
                f"overlays{hint(self.column, frame.columns)}"
            )
        return frame[self.column]

    def check_rows(self, people: int) -> None:
        """Nobody's overlay may go unheard because of a wrong number."""
        last = -1 if self.by_row is None or not len(self.by_row) else int(self.by_row.index.max())
        if last >= people:
            raise DataError(
                f"{self.name}: there is no row {last}; the rows are numbered from 0 to {people - 1}"
            )
