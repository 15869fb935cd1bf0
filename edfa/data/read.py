"""Read files: a whole table (``read_frame``), or a file of people some rows at a time (``chunks``).

Cells of a CSV file are read as texts; what a text means is decided in one place,
``edfa.data.values``. The grammar of CSV is that of spreadsheets (RFC 4180): fields may be quoted, a
quote inside is doubled. Blocks without quotes, as most are, are split by Arrow; from the first
quote on Python's own reader splits the rest.

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
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from edfa.data.schema import Schema
from edfa.data.values import ROW_ERROR, check_unique, read_numbers, to_pandas
from edfa.errors import ColumnError, EmptyTableError, UnreadableError, hint
from edfa.reading import MEGABYTE, existing, parse_json

__all__ = [
    "chunks",
    "open_parquet",
    "read_csv",
    "read_frame",
    "read_parquet",
]

MAX_CELLS = 500_000_000
MAX_BYTES = 16 << 30
MAX_COLUMNS = 100_000
MAX_JSON_KEYS = 10_000  # different ones in a file of JSON lines
MAX_LINE_BYTES = 16 * MEGABYTE
BLOCK_BYTES = 8 * MEGABYTE
BLOCK_ROWS = 20_000  # in a block that Python splits
FIRST_CELLS = 1_000  # that are looked at before the others when a column is guessed
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
    for table in _read_csv_blocks(path, encoding, separator):
        if error := _first_error(table):
            raise UnreadableError(error)
        tables.append(table.drop_columns(ROW_ERROR))
        cells, size = cells + tables[-1].num_rows * tables[-1].num_columns, size + table.nbytes
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
    """Whether every text matches; the first few say no at once for most columns that do not."""
    parts = (column[:FIRST_CELLS], column[FIRST_CELLS:])
    return all(
        pc.all(pc.match_substring_regex(part, pattern)).as_py() is not False for part in parts
    )


def _check_size(name: str, cells: int, size: int) -> None:
    """Raise UnreadableError for a table that is too large to be read."""
    for count, what, most in ((cells, "cells", MAX_CELLS), (size, "bytes", MAX_BYTES)):
        if count > most:
            raise UnreadableError(f"{name} has {count:,} {what} or more; at most {most:,} are read")


def read_parquet(path: str | Path) -> pd.DataFrame:
    """Read a Parquet file as a data frame of plain data types."""
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
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableError(f"{path.name} is not a whole Parquet file: {text}") from None


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
    left: Any = None
    for table in _read_csv_blocks(path):
        left = table if left is None else pa.concat_tables([left, table])
        whole = len(left) - len(left) % size
        for first in range(0, whole, size):
            yield _without_empty_errors(left.slice(first, size).to_pandas())
        left = left.slice(whole)
    if len(left):
        yield _without_empty_errors(left.to_pandas())


def _without_empty_errors(frame: pd.DataFrame) -> pd.DataFrame:
    return frame if frame[ROW_ERROR].notna().any() else frame.drop(columns=ROW_ERROR)


def _parquet_chunks(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    with open_parquet(path) as file:
        _check_not_reserved(file.schema_arrow.names, path.name)
        for batch in file.iter_batches(batch_size=size, use_threads=False):
            yield _arrow_to_pandas(pa.Table.from_batches([batch]))


def _check_not_reserved(names: Iterable[str], where: str) -> None:
    if ROW_ERROR in names:
        raise ColumnError(f"{where}: a column cannot be named {ROW_ERROR!r}")


def _json_chunks(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    names: dict[str, None] = dict.fromkeys(schema.names if schema is not None else ())
    features, seen, readable, first_error = frozenset(names), False, False, ""
    records = _json_records(path)
    while rows := list(islice(records, size)):
        known = [row for row in rows if isinstance(row, dict)]
        for row in known:
            names.update(dict.fromkeys(row))
            seen = seen or not features.isdisjoint(row)
        if len(names) > MAX_JSON_KEYS + len(features):
            raise UnreadableError(f"{path.name} has more than {MAX_JSON_KEYS:,} different keys")
        errors = [row if isinstance(row, str) else None for row in rows]
        readable = readable or bool(known)
        first_error = first_error or next(filter(None, errors), "")
        cells = [row if isinstance(row, dict) else {} for row in rows]
        columns = {
            name: pd.Series([row.get(name) for row in cells], dtype=object) for name in names
        }
        columns[ROW_ERROR] = pd.Series(errors, dtype=object)
        yield _without_empty_errors(pd.DataFrame(columns, index=range(len(rows))))
    if first_error and not readable:
        raise UnreadableError(f"{first_error}; no line can be read")
    if features and readable and not seen:
        others = [name for name in names if name not in features]
        shown = ", ".join([*names][:5])
        raise ColumnError(f"{path.name}: no line has one of {shown}, …{hint('', others)}")


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


def _read_csv_blocks(
    path: str | Path, encoding: str = "utf-8-sig", separator: str = ","
) -> Iterator[Any]:
    """The rows of a CSV file as Arrow tables of texts, null where a cell is empty; at least one.

    The last column, ``ROW_ERROR``, says why a row does not fit the header; its other cells are
    null. Lines that are empty are left out, but in a file of one column: there they are empty
    cells. EmptyTableError if there is not even a header, UnreadableError if the file cannot be
    decoded, a line is too long, a quote is never closed, or no row fits the header.
    """
    path = existing(path)
    if len(separator) != 1 or separator in '"\r\n\0':
        raise UnreadableError(f"a separator is one character, such as ';', not {separator!r}")
    try:
        with closing(_unpack(path)) as file:
            yield from _CsvReader(path.name, file, encoding, separator).tables()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UnreadableError(
            f"{path.name} is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8 or pass "
            "encoding='latin-1'"
        ) from None
    except CSV_ERRORS as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableError(f"{path.name} cannot be read as CSV: {text}") from None


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


def _first_error(table: Any) -> str:
    """What is wrong with the first row that does not fit the header; empty if all do."""
    errors = table.column(ROW_ERROR).drop_null()
    return errors[0].as_py() if len(errors) else ""


@dataclass(eq=False)
class _CsvReader:
    """A CSV file that is being read; ``line`` lines are done, ``names`` are those of its header."""

    name: str
    file: IO[bytes]
    encoding: str
    separator: str
    line: int = 0
    names: list[str] = field(default_factory=list)

    def tables(self) -> Iterator[Any]:
        fitting, first_error = 0, ""
        for table in self._all_tables():
            fitting += table.column(ROW_ERROR).null_count
            first_error = first_error or _first_error(table)
            yield table
        if not fitting and first_error:
            raise UnreadableError(f"{first_error}; no row fits the header")
        if not fitting:
            yield self._table([[]] * (len(self.names) + 1))

    def _all_tables(self) -> Iterator[Any]:
        if self.encoding not in ("utf-8", "utf-8-sig") or not self.separator.isascii():
            with io.TextIOWrapper(self.file, encoding=self.encoding, newline="") as text:
                yield from self._split_by_python([text])
            return
        blocks = self._blocks()
        first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf")
        head, rest = self._cut_header(first)
        if head and b'"' not in head:
            self._read_header(head.decode("utf-8").split(self.separator))
            blocks, first = chain([rest], blocks), b""
            for block in blocks:
                if b'"' in block:
                    first = block
                    break
                yield from self._split(block)
        yield from self._split_by_python(map(_as_text, chain([first], blocks)))

    def _blocks(self) -> Iterator[bytes]:
        """The file in blocks of whole lines."""
        while block := self.file.read(BLOCK_BYTES):
            rest = self.file.readline(MAX_LINE_BYTES)
            if len(rest) >= MAX_LINE_BYTES:
                raise self._too_long()
            yield block + rest

    def _cut_header(self, block: bytes) -> tuple[bytes, bytes]:
        """The first line that is not empty, and what follows it."""
        at = 0
        while at < len(block):
            ends = [i for i in (block.find(b"\n", at), block.find(b"\r", at)) if i >= 0]
            end = min(ends, default=len(block))
            after = end + (2 if block[end : end + 2] == b"\r\n" else 1)
            self.line += 1
            if end > at:
                return block[at:end], block[after:]
            at = after
        return b"", b""

    def _read_header(self, names: list[str]) -> None:
        """Take the header's names; all are there, and each once."""
        where = f"{self.name} line {self.line}: "
        if len(names) == 1 and ";" in names[0]:
            raise UnreadableError(
                f"{self.name} has one column with semicolons in it; pass separator=';'"
            )
        if len(names) > MAX_COLUMNS:
            raise UnreadableError(
                f"{where}the header has {len(names):,} names; at most {MAX_COLUMNS:,} are read"
            )
        if "" in (stripped := [name.strip() for name in names]):
            raise ColumnError(
                f"{where}column {stripped.index('') + 1} of the header has no name; "
                "name or remove it"
            )
        check_unique(names, where)
        _check_not_reserved(names, self.name)
        self.names = names

    def _split(self, block: bytes) -> Iterator[Any]:
        """The rows of a block without quotes: by Arrow, or by Python if one does not fit."""
        odd: list[Any] = []

        def skip(row: Any) -> str:
            odd.append(row)
            return "skip"

        if not block:
            return
        places = [str(i) for i in range(len(self.names))]
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(block),
                arrow_csv.ReadOptions(
                    use_threads=False, block_size=len(block) + 1, column_names=places
                ),
                arrow_csv.ParseOptions(
                    delimiter=self.separator,
                    quote_char=False,
                    ignore_empty_lines=len(self.names) > 1,
                    invalid_row_handler=skip,
                ),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(places, pa.large_string()),
                    strings_can_be_null=True,
                    null_values=[""],
                ),
            )
        except pa.ArrowInvalid:
            block.decode("utf-8")  # names the byte that is wrong, if that is it
            raise
        if odd:
            yield from self._rows(self._csv([_as_text(block)]), self.line)
        else:
            errors = pa.nulls(table.num_rows, pa.large_string())
            yield table.rename_columns(self.names).append_column(ROW_ERROR, errors)
        self.line += block.count(b"\n")
        if b"\r" in block:
            self.line += block.count(b"\r") - block.count(b"\r\n")

    def _split_by_python(self, texts: Iterable[io.TextIOBase]) -> Iterator[Any]:
        """The rest of the file, which ``texts`` hold."""
        base, reader = self.line if self.names else 0, self._csv(texts)
        if not self.names:
            try:
                header = next((row for row in reader if row), None)
            except csv.Error as error:
                raise UnreadableError(
                    f"{self.name} line 1 cannot be read as CSV: {error}"
                ) from None
            if header is None:
                raise EmptyTableError(f"{self.name} is empty")
            self.line = reader.line_num
            self._read_header(header)
        yield from self._rows(reader, base)

    def _csv(self, texts: Iterable[io.TextIOBase]) -> Any:
        """Python's reader of the rows in ``texts``, one after the other."""

        def lines() -> Iterator[str]:
            for text in texts:
                while line := text.readline(MAX_LINE_BYTES):
                    if len(line) >= MAX_LINE_BYTES:
                        raise self._too_long()
                    yield line

        return csv.reader(lines(), delimiter=self.separator, strict=True)

    def _rows(self, reader: Any, base: int) -> Iterator[Any]:
        """Tables of the rows that a reader splits; ``base`` lines of the file come before its
        own.
        """
        while rows := list(islice(self._each(reader, base), BLOCK_ROWS)):
            blank = [""] * len(self.names)
            cells = [[*blank, row] if isinstance(row, str) else [*row, ""] for row in rows]
            yield self._table(zip(*cells, strict=True))

    def _table(self, columns: Iterable[Iterable[str]]) -> Any:
        """Columns of texts, and one of errors, as an Arrow table; what is empty is null."""
        arrays = [pa.array([cell or None for cell in c], pa.large_string()) for c in columns]
        return pa.table(arrays, names=[*self.names, ROW_ERROR])

    def _each(self, reader: Any, base: int) -> Iterator[list[str] | str]:
        """Each row as its cells, or as what is wrong with it."""
        width = len(self.names)
        while True:
            begin = base + reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                message = f"{self.name} line {begin} cannot be read as CSV: {error}"
                swallowed = base + reader.line_num != begin or "end of data" in str(error)
                if swallowed:  # lines that may be whole rows
                    raise UnreadableError(message) from None
                yield message
                continue
            if not row and width > 1:
                continue
            row = row or [""]
            fields = "field" if len(row) == 1 else "fields"
            yield (
                row
                if len(row) == width
                else f"{self.name} line {begin}: {len(row)} {fields}, the header has {width}"
            )

    def _too_long(self) -> UnreadableError:
        return UnreadableError(f"{self.name}: a line has more than {MAX_LINE_BYTES:,} bytes")


def _as_text(block: bytes) -> io.StringIO:
    return io.StringIO(block.decode("utf-8"), newline="")
