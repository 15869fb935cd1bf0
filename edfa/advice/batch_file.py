"""Advice for a file of people: it may be larger than memory, and is resumed where it was cut off.

The file is read a block at a time. In a block, people of whom the same is known are worked on together, a part at a
time; the advice of each part is a file of its own in a folder beside the result. When all are there they become the
result, which is whole or not there. A run that is killed leaves finished parts, and the next one with the same files
(of people, and of their rules), advisor and settings goes on with the people who are in none.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edfa.advice.batch import advise
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.on_workers import open_crew
from edfa.advice.people_files import (
    FORMATS,
    check_format,
    chunks,
    read_part,
    source_files,
    write_advice,
    write_part,
)
from edfa.advice.person_rules import read_person_rules
from edfa.errors import ColumnError, DataError, EmptyTableError, SettingError, hint
from edfa.typing import IntArray
from edfa.writing import write_text

__all__ = ["CHUNK", "FORMATS", "SECONDS", "advise_file", "chunks"]

BLOCK = 10_000  # rows that are read, and put in order, at a time
CHUNK, SECONDS = 1_000, 5.0  # people in a part at most, and about how long one may take
FIRST = 200  # people in a part before it is known how long they take
JOURNAL = "journal.json"
Progress = Callable[[int, int], None]


def advise_file(
    fitted: FittedAdvisor,
    rows: str | Path,
    out: str | Path,
    *,
    k: int = 3,
    chunk: int | None = None,
    n_jobs: int | None = -1,
    progress: Progress | None = None,
    rules_column: str | None = None,
    person_rules: str | Path | None = None,
    scheduler: str | None = None,
    folder: str | Path | None = None,
) -> dict[str, int]:
    """Advise everybody in ``rows`` and write the result to ``out``; both are CSV, Parquet or JSON lines by their name.

    ``rows`` may also be a folder of Parquet files, which are read in the order of their names. Returns how many people
    there are, how many could not be understood, how many were flagged, and how many finished parts were there already.
    The result is the same, to the byte, for any ``chunk``, ``n_jobs`` and ``scheduler``.

    Parameters
    ----------
    fitted, rows, out
        The advisor, the people, and where their advice goes.
    k
        The largest number of plans a person.
    chunk
        The number of people in a part; a run that is killed loses at most the parts that it was working on. None: at
        most 1,000, or as many as take about five seconds.
    n_jobs
        The number of threads that share the parts.
    progress
        Called with the numbers of people and of parts that are done.
    rules_column, person_rules
        People's own limits: a column, or a file (see ``read_person_rules``).
    scheduler
        The address of a Dask scheduler, whose workers share the parts instead.
    folder
        The advisor's folder; workers that can read it load the advisor from there.
    """
    sources, result = source_files(rows), Path(out)
    check_format(result)
    inputs = [*sources, *([Path(person_rules)] if person_rules is not None else [])]
    if result.exists() and any(path.exists() and path.samefile(result) for path in inputs):
        raise DataError(f"{result} is read and cannot be written over; give the advice another name")
    if (chunk is not None and chunk < 1) or k < 1:
        raise DataError(f"a chunk and the number of plans are at least 1, not {chunk} and {k}")
    own = _OwnRules.of(fitted, rules_column, person_rules)
    parts = result.with_name(f".{result.name}.parts")
    _claim(parts, _identity(fitted, sources, result, k, rules_column, person_rules))
    run = _Run(fitted, sources, own, parts, chunk, progress)
    with open_crew(fitted, n_jobs, scheduler, folder) as crew:
        for part, (advice, seconds) in crew.results(_advise, run.parts(), lambda part: (part.frame, part.cells, k)):
            run.store(part, advice, seconds)
    if not run.counts["people"]:
        raise EmptyTableError(f"{Path(rows).name} has no rows")
    own.check_rows(run.counts["people"])
    write_advice((run.files(block) for block in range(run.blocks)), result)
    shutil.rmtree(parts, ignore_errors=True)
    return run.counts


def _advise(fitted: FittedAdvisor, frame: pd.DataFrame, cells: pd.Series | None, k: int) -> tuple[pd.DataFrame, float]:
    """The advice of some people, with the seconds that it took."""
    began = time.perf_counter()
    return advise(fitted, frame, k, n_jobs=1, rules=cells), time.perf_counter() - began


class _Part(NamedTuple):
    """People of one block: their rows in the file, (people,), what is known of them, and their own rules."""

    block: int
    rows: IntArray
    frame: pd.DataFrame
    cells: pd.Series | None


@dataclass(eq=False)
class _Run:
    """What is left to do of a file, and what is done: ``blocks`` counts those that were read."""

    fitted: FittedAdvisor
    sources: list[Path]
    own: "_OwnRules"
    folder: Path
    chunk: int | None
    progress: Progress | None
    blocks: int = 0

    def __post_init__(self) -> None:
        self.counts = {"people": 0, "errors": 0, "flagged": 0, "resumed": 0}
        self.size, self.done, self.written = self.chunk or FIRST, 0, 0

    def parts(self) -> Iterator[_Part]:
        """Everybody who is in no finished part, a part at a time; each is as large as is right by now."""
        for source in self.sources:
            for frame in chunks(source, BLOCK, self.fitted.schema):
                first, block, self.blocks = self.counts["people"], self.blocks, self.blocks + 1
                self.counts["people"] += len(frame)
                cells = self.own.cells(frame, first)
                left = self._ordered(frame, cells)
                left = left[~np.isin(first + left, self._finished(block))]
                while len(left):
                    rows, left = left[: self.size], left[self.size :]
                    some = None if cells is None else cells.iloc[rows].reset_index(drop=True)
                    yield _Part(block, first + rows, frame.iloc[rows].reset_index(drop=True), some)

    def _ordered(self, frame: pd.DataFrame, cells: pd.Series | None) -> IntArray:
        """The positions of a block's people: who has the same rules and knows the same comes together."""
        names = [name for name, counts in zip(self.fitted.schema.names, self.fitted.relevant, strict=True) if counts]
        known = frame.reindex(columns=names).notna().to_numpy()
        rules = np.zeros(len(frame), dtype=np.intp) if cells is None else pd.factorize(cells.astype(str))[0]
        return np.lexsort([*np.packbits(known, axis=1).T, rules])

    def _finished(self, block: int) -> IntArray:
        """The rows of a block that finished parts have; they are counted."""
        rows = [np.zeros(0, dtype=np.int64)]
        for path in self.files(block):
            part = read_part(path, ["row", "error", "flags"])
            rows.append(part.column("row").to_numpy())
            self.counts["resumed"] += 1
            errors, flagged = (part.column(name).null_count for name in ("error", "flags"))
            self._count(part.num_rows - errors, part.num_rows - flagged, part.num_rows)
        return np.concatenate(rows)

    def files(self, block: int) -> list[Path]:
        """The finished parts of a block."""
        return sorted(self.folder.glob(f"{block:08d}.*.parquet"))

    def store(self, part: _Part, advice: pd.DataFrame, seconds: float) -> None:
        """Write the advice of a part, under its first row; choose the size of those to come."""
        write_part(advice.assign(row=part.rows), self.folder / f"{part.block:08d}.{part.rows[0]:012d}.parquet")
        self._count(advice["error"].notna().sum(), advice["flags"].notna().sum(), len(advice))
        if self.chunk is None:
            self.size = int(np.clip(len(advice) / max(seconds, 1e-9) * SECONDS, 1, CHUNK))

    def _count(self, errors: int, flagged: int, people: int) -> None:
        self.counts["errors"] += int(errors)
        self.counts["flagged"] += int(flagged)
        self.done, self.written = self.done + people, self.written + 1
        if self.progress:
            self.progress(self.done, self.written)


@dataclass(frozen=True, eq=False)
class _OwnRules:
    """Where people's own limits come from: a column, or cells ``by_row`` of the file ``name``, or nowhere."""

    column: str | None = None
    name: str = ""
    by_row: pd.Series | None = None

    @classmethod
    def of(cls, fitted: FittedAdvisor, column: str | None, path: str | Path | None) -> "_OwnRules":
        """Read the file, if there is one."""
        if column is not None and path is not None:
            raise SettingError("people's rules come from a column or from a file; give one of the two")
        if column in fitted.schema.names:
            raise SettingError(f"{column!r} is a feature of the card; people's rules need a column of their own")
        return cls(column) if path is None else cls(None, Path(path).name, read_person_rules(path))

    def cells(self, frame: pd.DataFrame, first: int) -> pd.Series | None:
        """The cells of the people in a block, (people,); None if nobody has any."""
        if self.by_row is not None:
            return self.by_row.reindex(range(first, first + len(frame)))
        if self.column is None:
            return None
        if self.column not in frame.columns:
            raise ColumnError(f"the rows have no column {self.column!r} of rules{hint(self.column, frame.columns)}")
        return frame[self.column]

    def check_rows(self, people: int) -> None:
        """Nobody's rules may go unheard because of a wrong number."""
        last = -1 if self.by_row is None or not len(self.by_row) else int(self.by_row.index.max())
        if last >= people:
            raise DataError(f"{self.name}: there is no row {last}; the rows are numbered from 0 to {people - 1}")


def _identity(
    fitted: FittedAdvisor,
    sources: list[Path],
    result: Path,
    k: int,
    rules_column: str | None,
    person_rules: str | Path | None,
) -> str:
    """The key under which finished parts may be reused: the files, the advisor and the settings."""
    key: dict[str, Any] = {"rows": [_stamp(source) for source in sources], "out": result.name, "k": k, "block": BLOCK}
    key |= {"rules_column": rules_column, "person_rules": None if person_rules is None else _stamp(Path(person_rules))}
    return json.dumps(key | {"advisor": fitted.fingerprint, "certificate": fitted.promise_key})


def _stamp(path: Path) -> list[Any]:
    """Name, size and time of a file: any of them changes with its content."""
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def _claim(folder: Path, identity: str) -> None:
    """Keep the folder of finished parts of an interrupted run with the same key; empty it otherwise."""
    journal = folder / JOURNAL
    if not (journal.is_file() and journal.read_text(encoding="utf-8") == identity):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_text(journal, identity)
