"""Encoding of many partially known people: an empty cell is not known, and a wrong one is an error of its row alone.

The rules are those of ``Encoder.encode_person``, applied to a whole file one column at a time.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edfa.data.edge import Flag, find_flag
from edfa.data.encode import Encoder, Levels, Measure
from edfa.data.schema import Schema
from edfa.data.validate import to_pandas
from edfa.errors import ColumnError, FactError, hint
from edfa.typing import BoolArray, Float32Array, IntArray

__all__ = ["Partial", "encode_partial"]


class Partial(NamedTuple):
    """Encoded facts ``X``, (rows, features), NaN where not known; error messages and flags by row number."""

    X: Float32Array
    errors: dict[int, str]
    flags: dict[int, tuple[Flag, ...]]


def encode_partial(frame: pd.DataFrame, encoder: Encoder, schema: Schema, relevant: BoolArray | None = None) -> Partial:
    """Encode the columns of ``frame`` that the schema has; other columns are ignored, absent ones are not known.

    A row with a value that cannot be understood is all NaN and has an error, the one ``encode_person`` would raise. A
    number slightly outside what was seen is taken at the edge and flagged. A string that the card lists as ``missing``
    is a known fact, "not recorded", if training rows had gaps. Of features that are not ``relevant`` (features,), a
    value that cannot be understood is flagged and left out; None: all are.

    Examples
    --------
    >>> from edfa import Feature
    >>> schema = Schema((Feature("age", "continuous"), Feature("home", "categorical")), "y", "good")
    >>> encoder = Encoder.fit(pd.DataFrame({"age": [20, 40, 60], "home": ["rent", "own", "rent"]}), schema)
    >>> people = encode_partial(pd.DataFrame({"age": [40, None, 200], "home": [None, "own", "own"]}), encoder, schema)
    >>> people.X.tolist(), people.errors
    ([[0.0, nan], [nan, 0.0], [nan, nan]], {2: 'age: 200 is outside 20 to 60, the values learnt from'})
    """
    rows = to_pandas(frame).reset_index(drop=True)
    present = [name for name in schema.names if name in rows.columns]
    if not present:
        raise ColumnError(f"the rows have none of the columns {', '.join(schema.names[:5])}, …{hint('', rows.columns)}")
    matrix = np.full((len(rows), len(schema)), np.nan, dtype=np.float32)
    errors: dict[int, str] = {}
    flags: dict[int, tuple[Flag, ...]] = {}
    for name in present:
        position = schema.index(name)
        try:
            cells = _column(rows[name], encoder[name], schema)
        except TypeError:  # a cell holds a list or a mapping, which cannot be counted among distinct values
            cells = _column(rows[name].map(_hashable), encoder[name], schema)
        matrix[:, position] = cells.codes
        counts = relevant is None or bool(relevant[position])
        for row, i in cells.noted():
            if not counts:
                left_out = Flag(name, "left_out", cells.told[i])
                flags[row] = (*flags.get(row, ()), *([left_out] if i in cells.wrong else []))
            elif i in cells.wrong:
                errors.setdefault(row, cells.wrong[i])
            else:
                flags[row] = (*flags.get(row, ()), cells.moved[i])
    matrix[list(errors)] = np.nan
    return Partial(matrix, errors, {row: found for row, found in flags.items() if found and row not in errors})


class _Cells(NamedTuple):
    """One column: its ``codes`` (rows,), NaN where not known or wrong, and what is not taken as told.

    ``told`` are the distinct values that were looked at one by one; ``which`` (looked at,) says which of them stands in
    each of ``rows`` (looked at,). ``wrong`` has messages and ``moved`` flags, by position in ``told``.
    """

    codes: Float32Array
    told: list[Any]
    rows: IntArray
    which: IntArray
    wrong: dict[int, str]
    moved: dict[int, Flag]

    def noted(self) -> list[tuple[int, int]]:
        """The rows whose value is wrong or moved, each with the position of that value in ``told``."""
        noted = np.isin(self.which, [*self.wrong, *self.moved])
        return list(zip(self.rows[noted].tolist(), self.which[noted].tolist(), strict=True))


def _column(values: pd.Series, column: Measure | Levels, schema: Schema) -> _Cells:
    """Encode one column; each distinct value goes once through ``encode_fact``, numbers inside the range together."""
    missing = values.isin(schema.missing) if schema.missing else pd.Series(False, index=values.index)
    known = (values.notna() & (values != "")).to_numpy() | missing.to_numpy()
    codes = np.full(len(values), np.nan, dtype=np.float32)
    if isinstance(column, Measure) and values.dtype.kind in "iuf":
        valid = known & ~column.outside(values)
        codes[valid] = column.encode(values[valid])
        known &= ~valid
    which, distinct = pd.factorize(values.where(~missing, None)[known], use_na_sentinel=False)
    encoded = np.full(len(distinct), np.nan, dtype=np.float32)
    wrong: dict[int, str] = {}
    moved: dict[int, Flag] = {}
    for i, value in enumerate(distinct.tolist()):
        try:
            encoded[i] = column.encode_fact(value)
            if (flag := find_flag(column, value)) is not None:
                moved[i] = flag
        except FactError as error:
            wrong[i] = str(error)
    rows = np.flatnonzero(known)
    codes[rows] = encoded[which]
    return _Cells(codes, distinct.tolist(), rows, which, wrong, moved)


def _hashable(value: Any) -> Any:
    return str(value) if isinstance(value, list | dict | np.ndarray) else value
