"""A batch of partially known people becomes numbers: an empty cell is not known, and a bad one is its row's own error.

One person's facts are checked strictly (``Encoder.encode_person``); here the same border holds for whole files, a
column at a time, and one bad row does not stop the others.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from edfa.data.codes import Levels, Measure
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.data.validate import to_pandas
from edfa.errors import ColumnError, FactError, hint
from edfa.typing import Float32Array

__all__ = ["Partial", "encode_partial"]


class Partial(NamedTuple):
    """``X`` with NaN where a fact is not known, and what is wrong with some rows, by their place."""

    X: Float32Array
    errors: dict[int, str]


def encode_partial(frame: pd.DataFrame, encoder: Encoder, schema: Schema) -> Partial:
    """Encode whatever columns of the schema ``frame`` has; others are ignored, what is not there is not known.

    A row with a value that cannot be understood is all NaN and has an error, the one ``encode_person`` would raise.
    The card's words for "not recorded" are facts, where training people had gaps.

    Examples
    --------
    >>> from edfa import Feature
    >>> schema = Schema((Feature("age", "continuous"), Feature("home", "categorical")), "y", "good")
    >>> encoder = Encoder.fit(pd.DataFrame({"age": [20, 40, 60], "home": ["rent", "own", "rent"]}), schema)
    >>> told = encode_partial(pd.DataFrame({"age": [40, None, 200], "home": [None, "own", "own"]}), encoder, schema)
    >>> told.X.tolist(), told.errors
    ([[0.0, nan], [nan, 0.0], [nan, nan]], {2: 'age: 200 is outside 20 to 60, the values learnt from'})
    """
    rows = to_pandas(frame).reset_index(drop=True)
    there = [name for name in schema.names if name in rows.columns]
    if not there:
        raise ColumnError(f"the rows have none of the columns {', '.join(schema.names[:5])}, …{hint('', rows.columns)}")
    matrix = np.full((len(rows), len(schema)), np.nan, dtype=np.float32)
    errors: dict[int, str] = {}
    for name in there:
        matrix[:, schema.index(name)] = _column(rows[name], encoder[name], schema, errors)
    matrix[list(errors)] = np.nan
    return Partial(matrix, errors)


def _column(values: pd.Series, column: Measure | Levels, schema: Schema, errors: dict[int, str]) -> Float32Array:
    """One column; what is told of it goes through the strict border, each different value once."""
    missing = values.isin(schema.missing) if schema.missing else pd.Series(False, index=values.index)
    told = (values.notna() & (values != "")).to_numpy() | missing.to_numpy()
    codes = np.full(len(values), np.nan, dtype=np.float32)
    if isinstance(column, Measure) and values.dtype.kind in "iuf":
        numbers = values.to_numpy(float)
        fine = told & (((numbers >= column.low) & (numbers <= column.high)) | np.isin(numbers, _codes(column)))
        codes[fine] = column.encode(values[fine])
        told &= ~fine  # what is left is wrong, and the strict border says why
    place, found = pd.factorize(values.where(~missing, None)[told], use_na_sentinel=False)
    encoded = np.full(len(found), np.nan, dtype=np.float32)
    wrong: dict[int, str] = {}
    for i, value in enumerate(found.tolist()):
        try:
            encoded[i] = column.encode_one(value)
        except FactError as error:
            wrong[i] = str(error)
    rows = np.flatnonzero(told)
    codes[rows] = encoded[place]
    for row, kind in zip(rows.tolist(), place.tolist(), strict=True) if wrong else ():
        if kind in wrong:
            errors.setdefault(row, wrong[kind])
    return codes


def _codes(column: Measure) -> list[float]:
    return [state for state in column.states if state is not None]
