"""Files of people, CSV, Parquet and JSON lines, some rows at a time.

A row that cannot be read (too many fields, a line that is no JSON) stays in its place, empty, and
``ROW_ERROR`` says what is wrong with it: the others are advised. A file that cannot be read is an
error.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.border import ROW_ERROR
from edfa.data.cells import WHOLE
from edfa.data.read import PARQUET_ERRORS, arrow_to_pandas, open_parquet, parquet_error
from edfa.data.read_csv import LONGEST_LINE, read_blocks
from edfa.data.schema import Schema
from edfa.errors import ColumnError, UnreadableError, hint
from edfa.reading import existing, parse_json

__all__ = ["chunks"]

MOST_KEYS = 10_000  # different ones in a file of JSON lines


def chunks(path: Path, size: int, schema: Schema | None = None) -> Iterator[pd.DataFrame]:
    """The rows of a file, ``size`` at a time; what they mean does not depend on ``size``.

    With a ``schema``, columns of numbers are read faster, and a JSON line without any of its
    features is a person of whom nothing is known. Words are texts as they stand.

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


def _csv(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    numbers = [] if schema is None else [feature.name for feature in schema if not feature.words]
    yield from _regroup(map(_frame, read_blocks(path, numbers=numbers)), size)


def _frame(block: Any) -> pd.DataFrame:
    frame: pd.DataFrame = block.table.to_pandas()
    if ROW_ERROR in frame.columns:
        raise ColumnError(f"a column cannot be named {ROW_ERROR!r}")
    return _with_errors(frame, block.wrong)


def _with_errors(frame: pd.DataFrame, wrong: dict[int, str]) -> pd.DataFrame:
    if wrong:
        frame[ROW_ERROR] = pd.Series([wrong.get(row) for row in range(len(frame))], dtype=object)
    return frame


def _regroup(frames: Iterable[pd.DataFrame], size: int) -> Iterator[pd.DataFrame]:
    """The same rows, ``size`` at a time."""
    waiting: list[pd.DataFrame] = []
    rows = 0
    for frame in frames:
        waiting.append(frame)
        rows += len(frame)
        if rows < size:
            continue
        joined = _concat(waiting)
        whole = rows - rows % size
        for first in range(0, whole, size):
            yield joined.iloc[first : first + size].reset_index(drop=True)
        waiting, rows = [joined.iloc[whole:]], rows - whole
    if rows:
        yield _concat(waiting).reset_index(drop=True)


def _concat(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """Frames below each other; a column of numbers here and of texts there has both."""
    frames = [frame for frame in frames if len(frame)] or frames[:1]
    if len(frames) == 1:
        return frames[0]
    names = list(dict.fromkeys(name for frame in frames for name in frame.columns))
    mixed = [
        name
        for name in names
        if len({frame[name].dtype for frame in frames if name in frame.columns}) > 1
    ]
    return pd.concat(
        [frame.astype({n: object for n in mixed if n in frame.columns}) for frame in frames],
        ignore_index=True,
    )


def _json(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    names: dict[str, None] = dict.fromkeys(schema.names if schema is not None else ())
    features, seen, fine, first_wrong = frozenset(names), False, False, ""
    for rows in _grouped(_records(path), size):
        for row in rows:
            if isinstance(row, dict):
                names.update(dict.fromkeys(row))
                seen = seen or not features.isdisjoint(row)
        if len(names) > MOST_KEYS + len(features):
            raise UnreadableError(f"{path.name} has more than {MOST_KEYS:,} different keys")
        wrong = {i: row for i, row in enumerate(rows) if isinstance(row, str)}
        fine, first_wrong = (
            fine or len(wrong) < len(rows),
            first_wrong or next(iter(wrong.values()), ""),
        )
        cells = [row if isinstance(row, dict) else {} for row in rows]
        frame = pd.DataFrame(
            {name: _series([row.get(name) for row in cells]) for name in names},
            index=range(len(rows)),
        )
        yield _with_errors(frame, wrong)
    if first_wrong and not fine:
        raise UnreadableError(f"{first_wrong}; no line can be read")
    if features and fine and not seen:
        others = [name for name in names if name not in features]
        shown = ", ".join([*names][:5])
        raise ColumnError(f"{path.name}: no line has one of {shown}, …{hint('', others)}")


def _grouped(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    group = []
    for row in rows:
        group.append(row)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _records(path: Path) -> Iterator[dict[str, Any] | str]:
    """Each line that is not empty: its object, or what is wrong with it."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            if len(line) >= LONGEST_LINE:
                raise UnreadableError(
                    f"{path.name} line {number} has more than {LONGEST_LINE:,} bytes"
                )
            if not line.strip():
                continue
            record = _record(line, f"{path.name} line {number}", first=number == 1)
            if isinstance(record, str) and not line.endswith(b"\n"):
                raise UnreadableError(f"{record}; the file is cut off there")
            yield record


def _record(line: bytes, name: str, first: bool) -> dict[str, Any] | str:
    try:
        record = parse_json(line.decode("utf-8-sig" if first else "utf-8"), name)
    except UnicodeDecodeError:
        return f"{name} is not UTF-8"
    except UnreadableError as error:
        return str(error)
    if not isinstance(record, dict):
        return f"{name} is no JSON object"
    return f"{name}: a key cannot be {ROW_ERROR!r}" if ROW_ERROR in record else record


def _series(cells: list[Any]) -> pd.Series:
    """Cells of JSON as a column: of one type where that changes nothing, else of objects."""
    kinds = set(map(type, cells)) - {type(None)}
    if kinds <= {int, float} and all(abs(cell) < WHOLE for cell in cells if type(cell) is int):
        return pd.Series(
            np.array([np.nan if cell is None else cell for cell in cells], dtype=float)
        )
    if kinds == {str}:
        try:
            return pd.Series(cells, dtype="str")
        except UnicodeEncodeError:  # half a character
            pass
    column = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        column[i] = cell
    return pd.Series(column, dtype=object)


def _parquet(path: Path, size: int, schema: Schema | None) -> Iterator[pd.DataFrame]:
    import pyarrow as pa

    try:
        with open_parquet(path) as file:
            for batch in file.iter_batches(batch_size=size, use_threads=False):
                frame = arrow_to_pandas(pa.Table.from_batches([batch]))
                if ROW_ERROR in frame.columns:
                    raise ColumnError(f"{path.name}: a column cannot be named {ROW_ERROR!r}")
                yield frame
    except PARQUET_ERRORS as error:
        raise parquet_error(path, error) from None


_READERS: dict[str, Callable[[Path, int, Schema | None], Iterator[pd.DataFrame]]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".jsonl": _json,
}
