"""What a cell gives, as strict JSON: named tables, each a list of rows."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edfa.errors import DataError
from edfa_studies.cells import Cell

__all__ = ["LABELS", "PARTS", "by_column", "check_tables", "encode", "measure_plainly", "plain"]

PARTS = ("data", "predictor", "blanket", "policy", "searcher")
LABELS = (
    *PARTS,
    "seed",
    "reading",
    "promise",
    "cell",
)  # the columns that the store puts before those of a table


Payload = Mapping[str, Sequence[Mapping[str, Any]]]


def measure_plainly(cell: Cell, cache: str) -> Payload:
    """Measure a cell, on a worker; what the store would refuse is refused here, as an error of the
    cell.
    """
    from edfa_studies.measures import measure

    return check_tables(plain(measure(cell, cache)))


def check_tables(payload: Payload) -> Payload:
    """The payload itself, unless a table has a column with the name of a label."""
    for table, rows in payload.items():
        if taken := sorted({name for row in rows for name in row} & set(LABELS)):
            raise DataError(
                f"table {table!r} of a result has a column {taken[0]!r}, which is the store's own"
            )
    return payload


def plain(value: Any) -> Any:
    """The same as strict JSON can hold it: NaN is None, infinities are the words inf and -inf,
    arrays are lists.

    >>> plain({"tau": -np.inf, "risk": np.float32("nan"), "known": (np.int64(2), np.array([0.5]))})
    {'tau': '-inf', 'risk': None, 'known': [2, [0.5]]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int):
        return value
    raise DataError(
        f"a result holds something of type {type(value).__name__}; it is made of numbers, "
        "texts, lists and mappings"
    )


def encode(value: Any) -> str:
    """Strict JSON, without spaces."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def by_column(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows by column: each name is written once, which is shorter and much quicker to read."""
    return {
        name: [row.get(name) for row in rows]
        for name in dict.fromkeys(name for row in rows for name in row)
    }
