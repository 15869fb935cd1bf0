"""Reading of CSV and Parquet files; the error for a file that cannot be read says what to do.

At most ``MOST_CELLS`` cells and ``MOST_BYTES`` bytes of a table are read; a file that says that it
has more is refused before memory is taken, and a compressed one as soon as it turns out to have
more.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from edfa.data.border import to_pandas
from edfa.data.read_csv import read_blocks
from edfa.data.schema import Schema
from edfa.errors import ColumnError, UnreadableError
from edfa.reading import existing

__all__ = [
    "MOST_BYTES",
    "MOST_CELLS",
    "PARQUET_ERRORS",
    "arrow_to_pandas",
    "open_parquet",
    "parquet_error",
    "read_csv",
    "read_frame",
    "read_parquet",
]

MOST_CELLS = 500_000_000
MOST_BYTES = 16 << 30
PARQUET_ERRORS = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
)
FEW = 1_000  # cells that are looked at first
INTEGERS = r"^(-?[1-9][0-9]{0,14}|0)$"
ALIKE = r"\.[0-9]*0$|[eE]|^-0"
DECIMALS = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$"


def read_frame(path: str | Path, schema: Schema | str | Path | None = None) -> pd.DataFrame:
    """The rows of a CSV (also compressed) or Parquet file, which of them is decided by the file's
    name.

    With a ``schema``, or the path of its card, the card decides what is a number; without one
    ``read_csv`` guesses.
    """
    suffixes = [s.lower() for s in Path(path).suffixes]
    if ".csv" in suffixes:
        return read_csv(path, schema=schema)
    if suffixes and suffixes[-1] in (".parquet", ".pq"):
        return read_parquet(path)
    raise UnreadableError(f"{Path(path).name}: a table is a .csv or a .parquet file")


def read_csv(
    path: str | Path,
    encoding: str = "utf-8-sig",
    separator: str = ",",
    schema: Schema | str | Path | None = None,
) -> pd.DataFrame:
    """The rows of a CSV file.

    Only empty cells become null: ``NA`` or ``None`` may be a level, a card's ``missing`` lists what
    is not. Columns of words in the ``schema``, and its outcome, are texts as they stand: ``01`` is
    not ``1``. Where no card says what a column holds, it is taken for numbers only if every cell is
    written plainly and no two texts mean the same number; a column with ``01``, or with ``1.1`` and
    ``1.10``, stays text.

    Raises
    ------
    UnreadableError
        If the file cannot be read; for a row that does not fit the header, with the number of its
        line.
    ColumnError
        If a name in the header is empty or there twice.
    """
    card = schema if schema is None or isinstance(schema, Schema) else Schema.read(schema)
    numbers = [] if card is None else [feature.name for feature in card if not feature.words]
    tables, cells, size = [], 0, 0
    for block in read_blocks(path, encoding, separator, numbers):
        if block.wrong:
            raise UnreadableError(next(iter(block.wrong.values())))
        tables.append(block.table)
        cells, size = (
            cells + block.table.num_rows * block.table.num_columns,
            size + block.table.nbytes,
        )
        _check_size(Path(path).name, cells, size)
    described = set() if card is None else {*card.names, card.target}
    names = tables[0].column_names
    columns = {
        name: _join([table.column(name) for table in tables], name not in described)
        for name in names
    }
    frame: pd.DataFrame = pa.table(columns).to_pandas()
    return frame


def _join(chunks: list[Any], guess: bool) -> Any:
    """The chunks of one column in one, numbers and texts together as texts; ``guess`` whether they
    are all numbers.
    """
    types = {chunk.type for chunk in chunks} - {pa.null()}
    numbers = types <= {pa.int64(), pa.float64()}
    common = (
        next(iter(types))
        if len(types) == 1
        else pa.float64()
        if types and numbers
        else pa.large_string()
    )
    column = pa.chunked_array(
        [part for chunk in chunks for part in chunk.cast(common).chunks], common
    )
    return _guess(column) if guess and not numbers else column


def _guess(column: Any) -> Any:
    """A column of texts as numbers, if that is plainly what they are."""
    if column.null_count == len(column):
        return column
    if _all_match(column, INTEGERS):
        return pc.cast(column, pa.int64())
    if not _all_match(column, DECIMALS):
        return column
    numbers = pc.cast(column, pa.float64())
    alike = pc.any(
        pc.match_substring_regex(column, ALIKE)
    ).as_py()  # only these mean what another text means too
    return (
        column
        if alike and pc.count_distinct(numbers).as_py() < pc.count_distinct(column).as_py()
        else numbers
    )


def _all_match(column: Any, pattern: str) -> bool:
    """Whether every text matches; the first few say no at once for most columns that do not."""
    parts = (column[:FEW], column[FEW:])
    return all(
        pc.all(pc.match_substring_regex(part, pattern)).as_py() is not False for part in parts
    )


def _check_size(name: str, cells: int, size: int) -> None:
    """Raise UnreadableError for a table that is too large to be read."""
    if cells > MOST_CELLS:
        raise UnreadableError(
            f"{name} has {cells:,} cells or more; at most {MOST_CELLS:,} are read"
        )
    if size > MOST_BYTES:
        raise UnreadableError(f"{name} has {size:,} bytes or more; at most {MOST_BYTES:,} are read")


def read_parquet(path: str | Path) -> pd.DataFrame:
    """The rows of a Parquet file."""
    path = existing(path)
    try:
        with open_parquet(path) as file:
            metadata = file.metadata
            size = sum(
                metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)
            )
            _check_size(path.name, metadata.num_rows * metadata.num_columns, size)
            return arrow_to_pandas(file.read(use_threads=False))
    except PARQUET_ERRORS as error:
        raise parquet_error(path, error) from None


def open_parquet(path: Path) -> Any:
    """A Parquet file that is open, its names checked."""
    file = pq.ParquetFile(path)
    names = file.schema_arrow.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ColumnError(f"{path.name}: column {twice!r} appears {names.count(twice)} times")
    return file


def parquet_error(path: Path, error: Exception) -> Exception:
    """The typed error for what went wrong with a Parquet file."""
    if isinstance(error, UnreadableError | ColumnError):
        return error
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return UnreadableError(f"{path.name} is not a whole Parquet file: {text}")


def arrow_to_pandas(table: Any) -> pd.DataFrame:
    """An Arrow table as a pandas frame of plain data types; whole numbers with gaps stay exact."""
    table.validate(full=True)  # what a damaged file holds is not looked at before
    gaps = any(pa.types.is_integer(column.type) and column.null_count for column in table.columns)
    exact = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()} if gaps else {}
    return to_pandas(table.to_pandas(types_mapper=exact.get, ignore_metadata=True))
