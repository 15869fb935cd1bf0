"""Advice for a file of people, a chunk at a time: it may be larger than memory, and is resumed where it was cut off.

Each chunk's advice is a file of its own in a folder beside the result; when all are there they become the result, which
is whole or not there. A run that is killed leaves finished chunks, and the next one with the same files (of people, and
of their rules), advisor and settings begins after them.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from edfa.advice.assessment import FittedAdvisor
from edfa.advice.batch import COLUMNS, advise
from edfa.advice.person_rules import read_person_rules
from edfa.artifacts import atomic_file, write_text
from edfa.data.read import existing
from edfa.errors import ColumnError, DataError, EmptyTableError, SettingError, UnreadableError, hint
from edfa.parallel import count_jobs

__all__ = ["CHUNK", "FORMATS", "advise_file", "chunks"]

CHUNK = 10_000
FORMATS = (".csv", ".parquet", ".jsonl")
JOURNAL = "journal.json"
Progress = Callable[[int, int], None]


def advise_file(
    fitted: FittedAdvisor,
    rows: str | Path,
    out: str | Path,
    *,
    k: int = 3,
    chunk: int = CHUNK,
    n_jobs: int | None = -1,
    progress: Progress | None = None,
    rules_column: str | None = None,
    person_rules: str | Path | None = None,
) -> dict[str, int]:
    """Advise everybody in ``rows`` and write the result to ``out``; both are CSV, Parquet or JSON lines by their name.

    Returns how many people there are, how many could not be understood, how many were flagged, and how many chunks were
    there already. ``n_jobs`` threads share the people of a chunk. ``progress`` is called with the numbers of people and
    of chunks that are done. People's own limits are in the column ``rules_column``, or in a file ``person_rules`` (see
    ``read_person_rules``).
    """
    source, result = existing(rows), Path(out)
    _format(source), _format(result)
    n_jobs = count_jobs(n_jobs)
    if chunk < 1 or k < 1:
        raise DataError(f"a chunk and the number of plans are at least 1, not {chunk} and {k}")
    own = _OwnRules.of(fitted, rules_column, person_rules)
    folder = result.with_name(f".{result.name}.parts")
    _claim(folder, _identity(fitted, source, result, k, chunk, rules_column, person_rules))
    counts = {"people": 0, "errors": 0, "flagged": 0, "resumed": 0}
    parts = []
    for number, frame in enumerate(chunks(source, chunk)):
        part = folder / f"{number:08d}.parquet"
        if part.is_file():
            counts["resumed"] += 1
        else:
            cells = own.cells(frame, counts["people"])
            _write_part(advise(fitted, frame, k, first=counts["people"], n_jobs=n_jobs, rules=cells), part)
        counts["people"] += len(frame)
        counts["errors"] += _count(part, "error")
        counts["flagged"] += _count(part, "flags")
        parts.append(part)
        if progress:
            progress(counts["people"], number + 1)
    if not counts["people"]:
        raise EmptyTableError(f"{source.name} has no rows")
    own.check_rows(counts["people"])
    _join(parts, result)
    shutil.rmtree(folder, ignore_errors=True)
    return counts


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
        """The cells of the people in a chunk, (people,); None if nobody has any."""
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


def chunks(path: Path, size: int) -> Iterator[pd.DataFrame]:
    """The rows of a file, ``size`` at a time."""
    try:
        yield from _READERS[_format(path)](path, size)
    except pd.errors.EmptyDataError:
        raise EmptyTableError(f"{path.name} is empty") from None
    except (pd.errors.ParserError, pa.ArrowException, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise UnreadableError(f"{path.name} cannot be read: {str(error).splitlines()[0]}") from None


def _csv(path: Path, size: int) -> Iterator[pd.DataFrame]:
    yield from pd.read_csv(path, chunksize=size, encoding="utf-8-sig", keep_default_na=False, na_values=[""])


def _json(path: Path, size: int) -> Iterator[pd.DataFrame]:
    yield from pd.read_json(path, lines=True, chunksize=size, dtype=False)


def _parquet(path: Path, size: int) -> Iterator[pd.DataFrame]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=size):
            yield batch.to_pandas()


_READERS: dict[str, Callable[[Path, int], Iterator[pd.DataFrame]]] = {
    ".csv": _csv,
    ".jsonl": _json,
    ".parquet": _parquet,
}


def _format(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UnreadableError(f"{path.name}: a file of people is a {', '.join(FORMATS)} file")
    return suffix


def _identity(
    fitted: FittedAdvisor,
    source: Path,
    result: Path,
    k: int,
    chunk: int,
    rules_column: str | None,
    person_rules: str | Path | None,
) -> str:
    """The key under which finished chunks may be reused: the files, the advisor and the settings."""
    key: dict[str, Any] = {"rows": _stamp(source), "out": result.name, "k": k, "chunk": chunk}
    key |= {"rules_column": rules_column, "person_rules": None if person_rules is None else _stamp(Path(person_rules))}
    certificate = fitted.certificate.to_json() if fitted.certificate else ""
    return json.dumps(key | {"advisor": fitted.fingerprint, "certificate": certificate})


def _stamp(path: Path) -> list[Any]:
    """Name, size and time of a file: any of them changes with its content."""
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]


def _claim(folder: Path, identity: str) -> None:
    """Keep the folder of finished chunks of an interrupted run with the same key; empty it otherwise."""
    journal = folder / JOURNAL
    if not (journal.is_file() and journal.read_text(encoding="utf-8") == identity):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_text(journal, identity)


def _schema() -> Any:
    kinds = {"double": pa.float64(), "bool": pa.bool_(), "int64": pa.int64(), "string": pa.string()}
    return pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])


def _write_part(frame: pd.DataFrame, part: Path) -> None:
    with atomic_file(part) as partial:
        pq.write_table(pa.Table.from_pandas(frame, schema=_schema(), preserve_index=False), partial)


def _count(part: Path, name: str) -> int:
    """How many people of a chunk have an entry in a column."""
    column = pq.read_table(part, columns=[name]).column(name)
    return int(len(column) - column.null_count)


def _join(parts: list[Path], result: Path) -> None:
    """Join all chunks into one file, which is whole or not there."""
    with atomic_file(result) as partial:
        _WRITERS[_format(result)](parts, partial)


def _write_csv(parts: list[Path], path: Path) -> None:
    with pc.CSVWriter(path, _schema()) as writer:
        for part in parts:
            writer.write_table(pq.read_table(part))


def _write_parquet(parts: list[Path], path: Path) -> None:
    with pq.ParquetWriter(path, _schema()) as writer:
        for part in parts:
            writer.write_table(pq.read_table(part))


def _write_json(parts: list[Path], path: Path) -> None:
    """One JSON object a line; plans are lists here, not texts."""
    with path.open("w", encoding="utf-8") as file:
        for part in parts:
            for row in pq.read_table(part).to_pylist():
                record = row | {"plans": None if row["plans"] is None else json.loads(row["plans"])}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


_WRITERS: dict[str, Callable[[list[Path], Path], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json,
    ".parquet": _write_parquet,
}
