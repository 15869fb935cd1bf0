"""Reading of CSV files a block at a time: every cell is a text, and a row that does not fit its
header is named.

The grammar is that of spreadsheets (RFC 4180): fields may be quoted, a quote inside is doubled. A
block without quotes, as most are, is split by Arrow; from the first quote on Python's own reader
splits the rest.
"""

import bz2
import csv
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from edfa.errors import ColumnError, EmptyTableError, UnreadableError
from edfa.reading import MEGABYTE, existing

__all__ = ["CsvBlock", "read_blocks"]

BLOCK_BYTES = 8 * MEGABYTE
LONGEST_LINE = 16 * MEGABYTE
MOST_COLUMNS = 100_000
ROWS = 20_000  # in a block that Python splits
_UNPACKING_ERRORS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    RuntimeError,
    LookupError,
)
_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@dataclass(frozen=True, eq=False)
class CsvBlock:
    """Some rows of a file: an Arrow table with a column for each of the header's names, null where
    a cell is empty.

    ``wrong`` says by position which rows do not fit the header, and why; their cells are all null.
    """

    table: Any
    wrong: dict[int, str] = field(default_factory=dict)


def read_blocks(
    path: str | Path,
    encoding: str = "utf-8-sig",
    separator: str = ",",
    numbers: Collection[str] = (),
) -> Iterator[CsvBlock]:
    """The rows of a CSV file, which may be compressed, a block at a time.

    Columns named in ``numbers`` may come as Arrow's int64 or float64 where every cell of a block is
    written plainly; all others are texts. Lines that are empty are left out, but in a file of one
    column: there they are empty cells.

    Raises
    ------
    EmptyTableError
        If there is not even a header.
    UnreadableError
        If the file cannot be decoded, a line is too long, a quote is never closed, or no row fits
        the header.
    ColumnError
        If a name in the header is empty or there twice.
    """
    path = existing(path)
    try:
        with closing(_open(path)) as file:
            yield from _Reader(path.name, file, encoding, separator, frozenset(numbers)).blocks()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UnreadableError(
            f"{path.name} is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8 or pass "
            "encoding='latin-1'"
        ) from None
    except _UNPACKING_ERRORS as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableError(f"{path.name} cannot be read as CSV: {text}") from None


def _open(path: Path) -> IO[bytes]:
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
    if suffix not in (".csv", *_OPEN):
        raise UnreadableError(f"{path.name}: a compressed table ends in .gz, .bz2, .xz or .zip")
    opened: IO[bytes] = _OPEN.get(suffix, open)(path, "rb")
    return opened


@dataclass(eq=False)
class _Reader:
    """Where reading has come to: ``line`` lines and ``rows`` whole rows are done.

    ``first_wrong`` says what is wrong with the first bad row, ``types`` are those of the last
    block's columns.
    """

    name: str
    file: IO[bytes]
    encoding: str
    separator: str
    numbers: frozenset[str]
    line: int = 0
    rows: int = 0
    first_wrong: str = ""
    names: list[str] = field(default_factory=list)
    types: dict[str, Any] = field(default_factory=dict)

    def blocks(self) -> Iterator[CsvBlock]:
        if len(self.separator) != 1 or self.separator in '"\r\n\0':
            raise UnreadableError(
                f"a separator is one character, such as ';', not {self.separator!r}"
            )
        yield from self._all()
        if self.rows == 0 and self.first_wrong:
            raise UnreadableError(f"{self.first_wrong}; no row fits the header")
        if self.rows == 0:
            yield CsvBlock(pa.table({name: pa.array([], pa.large_string()) for name in self.names}))

    def _all(self) -> Iterator[CsvBlock]:
        if self.encoding not in ("utf-8", "utf-8-sig") or not self.separator.isascii():
            yield from self._slow_blocks(iter(lambda: self.file.read(BLOCK_BYTES), b""))
            return
        raw = self._raw_blocks()
        block = next(raw, b"").removeprefix(b"\xef\xbb\xbf")
        head, rest = self._cut_header(block)
        if b'"' in head or not head:
            yield from self._slow_blocks(chain([block], raw))
        else:
            self._read_header(head.decode("utf-8").split(self.separator))
            yield from self._fast_blocks(chain([rest], raw))

    def _raw_blocks(self) -> Iterator[bytes]:
        """The file in blocks of whole lines."""
        while block := self.file.read(BLOCK_BYTES):
            rest = self.file.readline(LONGEST_LINE)
            if len(rest) >= LONGEST_LINE:
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
        where = f"{self.name} line {self.line}"
        if len(names) == 1 and ";" in names[0]:
            raise UnreadableError(
                f"{self.name} has one column with semicolons in it; pass separator=';'"
            )
        if len(names) > MOST_COLUMNS:
            raise UnreadableError(
                f"{where}: the header has {len(names):,} names; at most {MOST_COLUMNS:,} are read"
            )
        if "" in (stripped := [name.strip() for name in names]):
            raise ColumnError(
                f"{where}: column {stripped.index('') + 1} of the header has no name; "
                "name or remove it"
            )
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ColumnError(
                f"{self.name}: column {twice!r} appears {names.count(twice)} times (line "
                f"{self.line})"
            )
        self.names = names

    def _fast_blocks(self, blocks: Iterator[bytes]) -> Iterator[CsvBlock]:
        """The rows of blocks, split by Arrow up to the first quote."""
        for block in blocks:
            if b'"' in block:
                yield from self._slow_blocks(chain([block], blocks))
                return
            if not block:
                continue
            table = self._split(block)
            if table is None:
                lines = io.TextIOWrapper(io.BytesIO(block), encoding="utf-8", newline="")
                yield from self._rows(
                    csv.reader(lines, delimiter=self.separator, strict=True), self.line
                )
            else:
                self.rows += table.num_rows
                yield CsvBlock(table)
            self.line += block.count(b"\n")
            if b"\r" in block:
                self.line += block.count(b"\r") - block.count(b"\r\n")

    def _split(self, block: bytes) -> Any:
        """A block without quotes as an Arrow table; None if a row has too many fields or too few.

        Columns of numbers are taken to be as in the block before; else Arrow finds out; what it
        takes for anything but a number as ``edfa.data.cells`` reads it stays text.
        """
        places = [str(i) for i in range(len(self.names))]
        numbers = (
            [] if b"0x" in block or b"0X" in block else self.numbers
        )  # Arrow would read 0x10 as a number
        texts = {
            p: pa.large_string()
            for p, name in zip(places, self.names, strict=True)
            if name not in numbers
        }
        for types in ({**self.types, **texts}, texts):
            with suppress(pa.ArrowInvalid):
                table = self._convert(block, places, types)
                break
        else:
            block.decode("utf-8")  # names the byte that is wrong, if that is it
            table = self._convert(block, places, dict.fromkeys(places, pa.large_string()))
        if table is None:
            return None
        strange = [
            place for place in places if place not in texts and not _is_plain(table.column(place))
        ]
        if strange:
            table = self._convert(block, places, texts | dict.fromkeys(strange, pa.large_string()))
        self.types = {
            place: table.column(place).type
            for place in places
            if table.column(place).type != pa.null()
        }
        return table.rename_columns(self.names)

    def _convert(self, block: bytes, places: list[str], types: dict[str, Any]) -> Any:
        """A block as an Arrow table of columns of these types, found out where none is given; None
        if a row is odd.
        """
        odd: list[Any] = []

        def skip(row: Any) -> str:
            odd.append(row)
            return "skip"

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
                column_types=types, strings_can_be_null=True, null_values=[""]
            ),
        )
        return None if odd else table

    def _slow_blocks(self, blocks: Iterator[bytes]) -> Iterator[CsvBlock]:
        """The rest of the file, split by Python."""
        text = io.TextIOWrapper(
            io.BufferedReader(_Joined(blocks), MEGABYTE), encoding=self.encoding, newline=""
        )
        base = self.line if self.names else 0
        reader = csv.reader(self._lines(text), delimiter=self.separator, strict=True)
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

    def _lines(self, text: io.TextIOWrapper) -> Iterator[str]:
        while line := text.readline(LONGEST_LINE):
            if len(line) >= LONGEST_LINE:
                raise self._too_long()
            yield line

    def _rows(self, reader: Any, base: int) -> Iterator[CsvBlock]:
        """Blocks of the rows that a reader splits; ``base`` lines of the file come before its
        own.
        """
        while rows := list(islice(self._each(reader, base), ROWS)):
            wrong = {i: row for i, row in enumerate(rows) if isinstance(row, str)}
            blank = [""] * len(self.names)
            columns = zip(*(blank if isinstance(row, str) else row for row in rows), strict=True)
            arrays = [pa.array(column, pa.large_string()) for column in columns]
            arrays = [pc.if_else(pc.equal(array, ""), None, array) for array in arrays]
            self.rows += len(rows) - len(wrong)
            self.first_wrong = self.first_wrong or next(iter(wrong.values()), "")
            yield CsvBlock(pa.table(arrays, names=self.names), wrong)

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
                if base + reader.line_num != begin or "end of data" in str(
                    error
                ):  # lines were swallowed
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
        return UnreadableError(f"{self.name}: a line has more than {LONGEST_LINE:,} bytes")


class _Joined(io.RawIOBase):
    """Blocks of bytes as one stream."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            if (block := next(self._blocks, None)) is None:
                return 0
            self._left = memoryview(block)
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count


def _is_plain(column: Any) -> bool:
    """Whether Arrow read a column as numbers, and as no other than are meant: ``nan`` and ``inf``
    are words.
    """
    if pa.types.is_int64(column.type) or pa.types.is_null(column.type):
        return True
    return bool(
        pa.types.is_float64(column.type) and pc.all(pc.is_finite(column)).as_py() is not False
    )
