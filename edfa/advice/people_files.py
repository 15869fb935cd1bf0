"""Files of people and of advice: CSV, Parquet and JSON lines, a block of rows at a time.

``source_files`` finds files of people, ``write_advice`` writes the result;
``encode_part`` and ``decode_part`` hold the advice of some people in between, as Parquet.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from pyarrow import compute

from edfa.advice.batch import COLUMNS
from edfa.errors import UnreadableError
from edfa.reading import existing
from edfa.text.spreadsheet import UNSAFE, safe
from edfa.writing import atomic_file

FORMATS = (".csv", ".parquet", ".jsonl")
SCHEMA = pa.schema(COLUMNS)


def source_files(rows: str | Path) -> list[Path]:
    """The files of people: one, or those of a folder of Parquet files, sorted by name.

    Raises
    ------
    UnreadableError
        If there is no such file, its name has another ending than ``FORMATS``, or the folder has no
        Parquet file.
    """
    path = Path(rows)
    if not path.is_dir():
        check_format(existing(path))
        return [path]
    if files := sorted(path.glob("*.parquet")):
        return files
    raise UnreadableError(f"the folder {path} has no .parquet file")


def check_format(path: Path) -> str:
    """The ending of a file's name, in lower case; UnreadableError if it is none of ``FORMATS``."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise UnreadableError(f"{path.name}: a file of people is a {', '.join(FORMATS)} file")
    return suffix


def encode_part(frame: pd.DataFrame) -> bytes:
    """The advice of some people as a Parquet file's content.

    Parameters
    ----------
    frame
        A row per person, with the columns ``COLUMNS``.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pandas(frame, schema=SCHEMA, preserve_index=False), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def decode_part(content: bytes) -> Any:
    """The Arrow table that ``encode_part`` encoded."""
    return pq.read_table(pa.BufferReader(content), schema=SCHEMA)


def write_advice(tables: Iterable[Any], result: Path) -> None:
    """Write Arrow tables of advice, one after the other, to one file, which is whole or not
    there.

    In CSV, words that a spreadsheet would take for formulas are made harmless; in JSON lines, plans
    are lists, not texts.

    Parameters
    ----------
    tables
        Tables that ``decode_part`` gives, in the order of their rows.
    result
        The file; the ending of its name, one of ``FORMATS``, says the format.
    """
    suffix = check_format(result)
    with atomic_file(result) as partial:
        if suffix == ".jsonl":
            _write_json(tables, partial)
            return
        is_csv = suffix == ".csv"
        with (pc.CSVWriter if is_csv else pq.ParquetWriter)(partial, SCHEMA) as writer:
            for table in tables:
                writer.write_table(_safe(table) if is_csv else table)


def _safe(table: Any) -> Any:
    """A table whose words no spreadsheet takes for formulas; numbers stay as they are."""
    for at, field in enumerate(SCHEMA):
        column = table.column(at)
        if (
            pa.types.is_string(field.type)
            and compute.any(compute.match_substring_regex(column, UNSAFE)).as_py()
        ):
            words = [None if word is None else safe(word) for word in column.to_pylist()]
            table = table.set_column(at, field, pa.array(words, field.type))
    return table


def _write_json(tables: Iterable[Any], path: Path) -> None:
    """One JSON object a line; plans are lists here, not texts."""
    with path.open("w", encoding="utf-8") as file:
        for table in tables:
            for row in table.to_pylist():
                row["plans"] = row["plans"] and json.loads(row["plans"])
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
