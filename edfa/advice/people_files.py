"""Files of people and of advice: CSV, Parquet and JSON lines, a block of rows at a time."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from edfa.advice.batch import COLUMNS
from edfa.data.read_people import chunks
from edfa.errors import UnreadableError
from edfa.reading import existing
from edfa.writing import atomic_file

__all__ = ["FORMATS", "check_format", "chunks", "read_part", "source_files", "write_advice", "write_part"]

FORMATS = (".csv", ".parquet", ".jsonl")


def source_files(rows: str | Path) -> list[Path]:
    """The files of people: one, or those of a folder of Parquet files, sorted by name."""
    path = Path(rows)
    if not path.is_dir():
        check_format(existing(path))
        return [path]
    if files := sorted(path.glob("*.parquet")):
        return files
    raise UnreadableError(f"the folder {path} has no .parquet file")


def check_format(path: Path) -> str:
    """The ending of a file's name, if it is one of ``FORMATS``."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UnreadableError(f"{path.name}: a file of people is a {', '.join(FORMATS)} file")
    return suffix


def _schema() -> Any:
    kinds = {"double": pa.float64(), "bool": pa.bool_(), "int64": pa.int64(), "string": pa.string()}
    return pa.schema([(name, kinds[kind]) for name, kind in COLUMNS.items()])


def write_part(frame: pd.DataFrame, part: Path) -> None:
    """Write the advice of some people to a Parquet file, which is whole or not there."""
    with atomic_file(part) as partial:
        pq.write_table(pa.Table.from_pandas(frame, schema=_schema(), preserve_index=False), partial)


def read_part(part: Path, columns: list[str] | None = None) -> Any:
    """The Arrow table that ``write_part`` wrote, or some columns of it."""
    return pq.read_table(part, columns=columns)


def write_advice(blocks: Iterable[list[Path]], result: Path) -> None:
    """Join the parts of each block, by row, into one file, which is whole or not there."""
    tables = (pa.concat_tables([read_part(part) for part in parts]).sort_by("row") for parts in blocks)
    with atomic_file(result) as partial:
        _WRITERS[check_format(result)](tables, partial)


def _write_csv(tables: Iterable[Any], path: Path) -> None:
    with pc.CSVWriter(path, _schema()) as writer:
        for table in tables:
            writer.write_table(table)


def _write_parquet(tables: Iterable[Any], path: Path) -> None:
    with pq.ParquetWriter(path, _schema()) as writer:
        for table in tables:
            writer.write_table(table)


def _write_json(tables: Iterable[Any], path: Path) -> None:
    """One JSON object a line; plans are lists here, not texts."""
    with path.open("w", encoding="utf-8") as file:
        for table in tables:
            for row in table.to_pylist():
                record = row | {"plans": None if row["plans"] is None else json.loads(row["plans"])}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")


_WRITERS: dict[str, Callable[[Iterable[Any], Path], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json,
    ".parquet": _write_parquet,
}
