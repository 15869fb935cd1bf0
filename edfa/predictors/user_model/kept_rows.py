"""A few rows of a frame as JSON and back, with every data type as it was: numbers, words,
categories and their order.

JSON, because it is read without unpacking anything: rows that a model is tried on come from a
folder that may have been changed.
"""

import json
import math
from typing import Any

import numpy as np
import pandas as pd

from edfa.artifacts import readable
from edfa.errors import ColumnError, UnreadableError
from edfa.reading import MEGABYTE, parse_json

__all__ = ["rows_from_json", "rows_to_json"]

ROWS_LIMIT = 64 * MEGABYTE
MOST_ROWS = 10_000
NUMBERS = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)
NULLABLE = (
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float32",
    "Float64",
    "boolean",
)
KNOWN = frozenset((*NUMBERS, *NULLABLE, "bool", "str", "object", "string"))
SPECIAL: dict[str, Any] = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "NA": pd.NA}


def rows_to_json(frame: pd.DataFrame) -> bytes:
    """Rows as JSON; ColumnError for a column of a data type that cannot be kept.

    >>> rows = pd.DataFrame({"job": pd.Categorical(["b", "b"], categories=["c", "b"],
    ...     ordered=True)})
    >>> rows_from_json(rows_to_json(rows), "rows").dtypes["job"] == rows.dtypes["job"]
    True
    """
    columns = []
    for position, name in enumerate(frame.columns):
        name = name.item() if isinstance(name, np.generic) else name
        if not isinstance(name, str | int):
            raise ColumnError(f"a column's name is text or a number, not {name!r}")
        columns.append({"name": name} | _write(frame.iloc[:, position], name))
    return json.dumps({"rows": len(frame), "columns": columns}, allow_nan=False).encode()


def rows_from_json(content: bytes, name: str) -> pd.DataFrame:
    """The rows that ``rows_to_json`` wrote; UnreadableError that begins with ``name`` if they are
    damaged.
    """
    if len(content) > ROWS_LIMIT:
        raise UnreadableError(f"{name} has {len(content):,} bytes; at most {ROWS_LIMIT:,} are read")
    with readable(name):
        whole = parse_json(content.decode("utf-8"), name)
        count = whole["rows"]
        if type(count) is not int or not 0 <= count <= MOST_ROWS:
            raise UnreadableError(f"{name} is damaged: {count!r} is no number of rows")
        columns = [_read(column) for column in whole["columns"]]
        if any(len(column) != count for column in columns):
            raise UnreadableError(f"{name} is damaged: a column has not {count} values")
        frame = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(count))
        frame.columns = pd.Index([column["name"] for column in whole["columns"]])
        return frame


def _write(values: Any, name: Any) -> dict[str, Any]:
    """The data type and values of a column or of an index."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = values.cat.codes.tolist()
        return {
            "dtype": "category",
            "ordered": dtype.ordered,
            "of": _write(dtype.categories, name),
            "values": codes,
        }
    if dtype.kind in "Mm" and isinstance(dtype, np.dtype):
        return {"dtype": str(dtype), "values": values.astype("int64").tolist()}
    kind = "string" if isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA else str(dtype)
    if kind not in KNOWN:
        raise ColumnError(f"{name!r} has the data type {dtype}, whose values cannot be kept")
    return {"dtype": kind, "values": [_encode(value, name) for value in values.tolist()]}


def _encode(value: Any, name: Any) -> Any:
    """A value as JSON has it; those that it has not are lists of one word."""
    if value is pd.NA:
        return ["NA"]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return [str(value)]
    if value is not None and not isinstance(value, str | bool | int | float):
        raise ColumnError(f"{name!r} has the value {value!r:.60}, which cannot be kept")
    return value


def _read(column: dict[str, Any]) -> Any:
    """A column or an index as an array of its data type."""
    kind, values = column["dtype"], column["values"]
    if kind == "category":
        dtype = pd.CategoricalDtype(pd.Index(_read(column["of"])), column["ordered"])
        return pd.Categorical.from_codes(values, dtype=dtype)
    if kind.startswith(("datetime64[", "timedelta64[")):
        return pd.array(np.array(values, dtype=np.int64).view(kind))
    if kind not in KNOWN:
        raise ValueError(f"{kind[:40]!r} is no data type of a column")
    decoded = [SPECIAL[value[0]] if isinstance(value, list) else value for value in values]
    if kind in NUMBERS or kind == "bool":
        return np.array(decoded, dtype=kind)
    if kind == "object":
        array = np.empty(len(decoded), dtype=object)
        array[:] = decoded
        return array
    return pd.array(decoded, dtype=kind)
