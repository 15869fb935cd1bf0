"""Read files: a whole table (``read_frame``), or a file of people some rows at a time (``chunks``).

Cells of a CSV file are read as texts; what a text means is decided in one place,
``edfa.data.values``. The grammar of CSV is that of spreadsheets (RFC 4180): fields may be quoted, a
quote inside is doubled.

At most ``MAX_CELLS`` cells and ``MAX_BYTES`` bytes of a table are read: a file that says that it
has more is refused before memory is taken, a compressed one as soon as it turns out to have more.
In a file of people, a row that cannot be read stays in its place, empty, and its cell in the column
``ROW_ERROR`` says what is wrong; a file that cannot be read at all is an error.
"""

import bz2
import csv
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from edfa.data.schema import Schema
from edfa.data.values import ROW_ERROR, check_unique, read_numbers, to_pandas
from edfa.errors import ColumnError, EmptyTableError, UnreadableError, hint
from edfa.reading import MEGABYTE, existing, first_line, parse_json

MAX_CELLS = 500_000_000
MAX_BYTES = 16 << 30
MAX_COLUMNS = 100_000
MAX_JSON_KEYS = 10_000  # different ones in a file of JSON lines
MAX_LINE_BYTES = 16 * MEGABYTE
BLOCK_ROWS = 20_000  # of a CSV file that are made a table at a time
INTEGERS = r"^(-?[1-9][0-9]{0,14}|0)$"
DECIMALS = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?$"
ALIKE = r"\.[0-9]*0$|[eE]|^-0"  # of decimals, these alone mean what another text means too
UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
CSV_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,
    LookupError,
)
PARQUET_ERRORS = (
    pa.ArrowException,
    AttributeError,
    OSError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
)


def read_frame(path: str | Path, schema: Schema | str | Path | None = None) -> pd.DataFrame:
    """Read a table from a CSV file (also compressed) or a Parquet file, by the file's name.

    Parameters
    ----------
    path
        The file: ``.csv``, ``.csv.gz``, ``.csv.bz2``, ``.csv.xz``, ``.csv.zip``, ``.parquet`` or
        ``.pq``.
    schema
        A schema, or the path of its card: it decides which columns of a CSV file are numbers.
        Without one ``read_csv`` guesses.

    Returns
    -------
    pandas.DataFrame
        One row a person, all columns of the file.
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
    """Read a CSV file.

    Only empty cells become null: ``NA`` or ``None`` may be a level, a card's ``missing`` lists what
    is not. Columns of words in the ``schema``, and its outcome, are texts as they stand: ``01`` is
    not ``1``. Where no card says what a column holds, it is taken for numbers only if every cell is
    written plainly and no two texts mean the same number; a column with ``01``, or with ``1.1`` and
    ``1.10``, stays text.

    Parameters
    ----------
    path
        The file, which may be compressed.
    encoding, separator
        How its text is encoded, and the character between two cells.
    schema
        A schema, or the path of its card.

    Returns
    -------
    pandas.DataFrame
        One row a line of the file below its header.

    Raises
    ------
    UnreadableError
        If the file cannot be read; for a row that does not fit the header, with the number of its
        line.
    ColumnError
        If a name in the header is empty or there twice.
    """
    card = schema if schema is None or isinstance(schema, Schema) else Schema.read(schema)
    tables, cells, size = [], 0, 0
    for table, errors in _csv_tables(path, encoding, separator):
        if any(errors):
            raise UnreadableError(next(filter(None, errors)))
        tables.append(table)
        cells, size = cells + table.num_rows * table.num_columns, size + table.nbytes
        _check_size(Path(path).name, cells, size)
    whole = pa.concat_tables(tables)
    described = () if card is None else {*card.names, card.target}
    columns = {
        name: whole.column(name) if name in described else _guess(whole.column(name))
        for name in whole.column_names
    }
    frame: pd.DataFrame = pa.table(columns).to_pandas()
    for feature in card or ():
        if not feature.words and feature.name in frame.columns:
            numbers = read_numbers(frame[feature.name])
            if numbers.notna().equals(frame[feature.name].notna()):
                frame[feature.name] = numbers
    return frame


def _guess(column: Any) -> Any:
    """An Arrow column of texts as numbers, if that is plainly what they are."""
    if column.null_count == len(column):
        return column
    if _all_match(column, INTEGERS):
        return pc.cast(column, pa.int64())
    if not _all_match(column, DECIMALS):
        return column
    numbers = pc.cast(column, pa.float64())
    if not pc.any(pc.match_substring_regex(column, ALIKE)).as_py():
        return numbers
    same = pc.count_distinct(numbers).as_py() == pc.count_distinct(column).as_py()
    return numbers if same else column


def _all_match(column: Any, pattern: str) -> bool:
    """Whether every text matches; null does."""
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False


def _check_size(name: str, cells: int, size: int) -> None:
    """Raise UnreadableError for a table that is too large to be read."""
    for count, what, most in ((cells, "cells", MAX_CELLS), (size, "bytes", MAX_BYTES)):
        if count > most:
            raise UnreadableError(f"{name} has {count:,} {what} or more; at most {most:,} are read")


def read_parquet(path: str | Path) -> pd.DataFrame:
    """Read a Parquet file.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    pandas.DataFrame
        Its rows, with plain data types (``to_pandas``); whole numbers beside gaps stay exact.

    Raises
    ------
    UnreadableError
        If there is no such file, it is damaged, or it says that it is too large.
    ColumnError
        If a name is there twice.
    """
    path = existing(path)
    with open_parquet(path) as file:
        metadata = file.metadata
        size = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        _check_size(path.name, metadata.num_rows * metadata.num_columns, size)
        return _arrow_to_pandas(file.read(use_threads=False))


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Yield an open ``pyarrow.parquet.ParquetFile``, its names checked.

    Whatever is wrong with the file, within the block too, is an UnreadableError or a ColumnError.
    """
    try:
        with pq.ParquetFile(path) as file:
            check_unique(file.schema_arrow.names, f"{path.name}: ")
            yield file
    except (UnreadableError, ColumnError):
        raise
    except PARQUET_ERRORS as error:
        reason = first_line(error)
        raise UnreadableError(f"{path.name} is not a whole Parquet file: {reason}") from None


def _arrow_to_pandas(table: Any) -> pd.DataFrame:
    """An Arrow table as a pandas frame of plain data types; whole numbers with gaps stay exact."""
    table.validate(full=True)  # what a damaged file holds is not looked at before
    gaps = any(pa.types.is_integer(column.type) and column.null_count for column in table.columns)
    exact = {pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()} if gaps else {}
    return to_pandas(table.to_pandas(types_mapper=exact.get, ignore_metadata=True))


def chunks(path: Path, size: int, schema: Schema | None = None) -> Iterator[pd.DataFrame]:
    """Read a file of people some rows at a time.

    Parameters
    ----------
    path
        A ``.csv``, ``.parquet`` or ``.jsonl`` file.
    size
        Rows at a time; what they mean does not depend on it.
    schema
        Its features are columns of JSON lines that lack them: a line with none of them is a person
        of whom nothing is known.

    Yields
    ------
    pandas.DataFrame
        The next ``size`` rows. Where one of them cannot be read, the column ``ROW_ERROR`` says why.

    Raises
    ------
    UnreadableError
        If the file cannot be read at all.
    ColumnError
        If a name in a header is empty or there twice, or JSON lines have none of the schema's
        features.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise UnreadableError(f"{path.name}: a file of people is a {', '.join(_READERS)} file")
    yield from reader(existing(path), size, schema)


def _csv_chunks(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    for table, errors in _csv_tables(path, rows=size):
        if len(table):
            yield _with_errors(table.to_pandas(), errors)


def _with_errors(frame: pd.DataFrame, errors: Sequence[str]) -> pd.DataFrame:
    """The frame, with a column of what is wrong with each row if anything is."""
    if any(errors):
        frame[ROW_ERROR] = [error or None for error in errors]
    return frame


def _parquet_chunks(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    with open_parquet(path) as file:
        _check_not_reserved(file.schema_arrow.names, path.name)
        for batch in file.iter_batches(batch_size=size, use_threads=False):
            yield _arrow_to_pandas(pa.Table.from_batches([batch]))


def _check_not_reserved(names: Iterable[str], where: str) -> None:
    if ROW_ERROR in names:
        raise ColumnError(f"{where}: a column cannot be named {ROW_ERROR!r}")


def _json_chunks(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    features = () if schema is None else schema.names
    keys: dict[str, None] = {}
    readable, first_error = False, ""
    records = _json_records(path)
    while rows := list(islice(records, size)):
        errors = [row if isinstance(row, str) else "" for row in rows]
        cells = [row if isinstance(row, dict) else {} for row in rows]
        for row in cells:
            keys.update(dict.fromkeys(row))
        names = dict.fromkeys((*features, *keys))
        if len(names) > MAX_JSON_KEYS + len(features):
            raise UnreadableError(f"{path.name} has more than {MAX_JSON_KEYS:,} different keys")
        readable = readable or "" in errors
        first_error = first_error or next(filter(None, errors), "")
        frame = pd.DataFrame(cells, range(len(rows)), [*names], dtype=object)
        yield _with_errors(frame, errors)
    if first_error and not readable:
        raise UnreadableError(f"{first_error}; no line can be read")
    if features and readable and keys.keys().isdisjoint(features):
        shown = ", ".join([*names][:5])
        raise ColumnError(f"{path.name}: no line has one of {shown}, …{hint('', keys)}")


def _json_records(path: Path) -> Iterator[dict[str, Any] | str]:
    """Each line that is not empty: its object, or what is wrong with it."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            name = f"{path.name} line {number}"
            if len(line) >= MAX_LINE_BYTES:
                raise UnreadableError(f"{name} has more than {MAX_LINE_BYTES:,} bytes")
            if not line.strip():
                continue
            record = _json_record(line, name, first=number == 1)
            if isinstance(record, str) and not line.endswith(b"\n"):
                raise UnreadableError(f"{record}; the file is cut off there")
            yield record


def _json_record(line: bytes, name: str, first: bool) -> dict[str, Any] | str:
    try:
        record = parse_json(line.decode("utf-8-sig" if first else "utf-8"), name)
    except UnicodeDecodeError:
        return f"{name} is not UTF-8"
    except UnreadableError as error:
        return str(error)
    if not isinstance(record, dict):
        return f"{name} is no JSON object"
    return f"{name}: a key cannot be {ROW_ERROR!r}" if ROW_ERROR in record else record


_READERS: dict[str, Callable[[Path, int, Schema | None], Iterator[pd.DataFrame]]] = {
    ".csv": _csv_chunks,
    ".parquet": _parquet_chunks,
    ".jsonl": _json_chunks,
}


def _csv_tables(
    path: str | Path,
    encoding: str = "utf-8-sig",
    separator: str = ",",
    rows: int = BLOCK_ROWS,
) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Read the rows of a CSV file some at a time.

    Lines that are empty are left out, but in a file of one column: there they are empty cells.

    Parameters
    ----------
    path
        The file, which may be compressed.
    encoding, separator
        How its text is encoded, and the character between two cells.
    rows
        The rows of a table, at most.

    Yields
    ------
    tuple[pyarrow.Table, tuple[str, ...]]
        Texts, (rows, columns), null where a cell is empty; and for each row why it does not fit
        the header, empty where it does. The cells of a row that does not are null. There is at
        least one table.

    Raises
    ------
    EmptyTableError
        If there is not even a header.
    UnreadableError
        If the file cannot be decoded, a line is too long, a quote is never closed, or no row fits
        the header.
    """
    path = existing(path)
    if len(separator) != 1 or separator in '"\r\n\0':
        raise UnreadableError(f"a separator is one character, such as ';', not {separator!r}")
    try:
        with closing(_unpack(path)) as file, io.TextIOWrapper(file, encoding, newline="") as text:
            reader = csv.reader(_lines(text, path.name), delimiter=separator, strict=True)
            names = _read_header(reader, path.name)
            fitting, first_error = False, ""
            each = _csv_rows(reader, path.name, len(names))
            while block := list(islice(each, rows)):
                *columns, errors = zip(*block, strict=True)
                fitting = fitting or "" in errors
                first_error = first_error or next(filter(None, errors), "")
                yield _texts(names, columns), errors
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UnreadableError(
            f"{path.name} is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8 or pass "
            "encoding='latin-1'"
        ) from None
    except CSV_ERRORS as error:
        reason = first_line(error)
        raise UnreadableError(f"{path.name} cannot be read as CSV: {reason}") from None
    if first_error and not fitting:
        raise UnreadableError(f"{first_error}; no row fits the header")
    if not fitting:
        yield _texts(names, [[]] * len(names)), ()


def _unpack(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked while they are read."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        archive = zipfile.ZipFile(path)
        members = [name for name in archive.namelist() if not name.endswith("/")]
        if len(members) != 1:
            raise UnreadableError(
                f"{path.name}: an archive of one file is needed, not of {len(members)}"
            )
        return archive.open(members[0])
    if suffix not in (".csv", *UNPACK):
        raise UnreadableError(f"{path.name}: a compressed table ends in .gz, .bz2, .xz or .zip")
    opened: IO[bytes] = UNPACK.get(suffix, open)(path, "rb")
    return opened


def _texts(names: list[str], columns: Iterable[Iterable[str]]) -> Any:
    """Columns of texts as an Arrow table; what is empty is null."""
    arrays = [pa.array([cell or None for cell in c], pa.large_string()) for c in columns]
    return pa.table(arrays, names=names)


def _lines(text: io.TextIOBase, name: str) -> Iterator[str]:
    """The lines of a file, none of which is too long."""
    while line := text.readline(MAX_LINE_BYTES):
        if len(line) >= MAX_LINE_BYTES:
            raise UnreadableError(f"{name}: a line has more than {MAX_LINE_BYTES:,} bytes")
        yield line


def _read_header(reader: Any, name: str) -> list[str]:
    """The names in the first line that is not empty; all are there, and each once."""
    try:
        names: list[str] | None = next((row for row in reader if row), None)
    except csv.Error as error:
        raise UnreadableError(f"{name} line 1 cannot be read as CSV: {error}") from None
    if names is None:
        raise EmptyTableError(f"{name} is empty")
    where = f"{name} line {reader.line_num}: "
    if len(names) == 1 and ";" in names[0]:
        raise UnreadableError(f"{name} has one column with semicolons in it; pass separator=';'")
    if len(names) > MAX_COLUMNS:
        raise UnreadableError(
            f"{where}the header has {len(names):,} names; at most {MAX_COLUMNS:,} are read"
        )
    if "" in (stripped := [name.strip() for name in names]):
        raise ColumnError(
            f"{where}column {stripped.index('') + 1} of the header has no name; name or remove it"
        )
    check_unique(names, where)
    _check_not_reserved(names, name)
    return names


def _csv_rows(reader: Any, name: str, width: int) -> Iterator[list[str]]:
    """The cells of each row and an empty text; of one that does not fit the header empty cells, and
    what is wrong with it.
    """
    while True:
        where = f"{name} line {reader.line_num + 1}"
        begin = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            message = f"{where} cannot be read as CSV: {error}"
            if reader.line_num != begin or "end of data" in str(error):
                raise UnreadableError(message) from None  # it swallowed lines, maybe whole rows
            yield [*[""] * width, message]
            continue
        if not row and width > 1:
            continue
        row = row or [""]
        if len(row) == width:
            yield [*row, ""]
        else:
            fields = "field" if len(row) == 1 else "fields"
            yield [*[""] * width, f"{where}: {len(row)} {fields}, the header has {width}"]
