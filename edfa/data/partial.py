"""Encoding of many partially known people: an empty cell is not known, and a wrong one is an error of its row alone.

The rules are those of ``Encoder.encode_person``, applied to a whole file one column at a time.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder, Levels, Measure
from edfa.data.schema import Schema
from edfa.data.validate import to_pandas
from edfa.errors import ColumnError, FactError, hint
from edfa.typing import Float32Array

__all__ = ["Partial", "encode_partial"]


class Partial(NamedTuple):
    """Encoded facts ``X``, (rows, features), NaN where not known; and error messages by row number."""

    X: Float32Array
    errors: dict[int, str]


def encode_partial(frame: pd.DataFrame, encoder: Encoder, schema: Schema) -> Partial:
    """Encode the columns of ``frame`` that the schema has; other columns are ignored, absent ones are not known.

    A row with a value that cannot be understood is all NaN and has an error, the one ``encode_person`` would raise.
    A string that the card lists as ``missing`` is a known fact, "not recorded", if training rows had gaps.

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
    for name in present:
        matrix[:, schema.index(name)] = _column(rows[name], encoder[name], schema, errors)
    matrix[list(errors)] = np.nan
    return Partial(matrix, errors)


def _column(values: pd.Series, column: Measure | Levels, schema: Schema, errors: dict[int, str]) -> Float32Array:
    """The codes of one column, (rows,), NaN where not known or wrong; messages are added to ``errors`` by row number.

    Each distinct value goes once through the strict ``encode_one``.
    """
    missing = values.isin(schema.missing) if schema.missing else pd.Series(False, index=values.index)
    known = (values.notna() & (values != "")).to_numpy() | missing.to_numpy()
    codes = np.full(len(values), np.nan, dtype=np.float32)
    if isinstance(column, Measure) and values.dtype.kind in "iuf":
        numbers = values.to_numpy(float)
        valid = known & (((numbers >= column.low) & (numbers <= column.high)) | np.isin(numbers, _codes(column)))
        codes[valid] = column.encode(values[valid])
        known &= ~valid  # the rest is wrong, and encode_one says why
    index, distinct = pd.factorize(values.where(~missing, None)[known], use_na_sentinel=False)
    encoded = np.full(len(distinct), np.nan, dtype=np.float32)
    messages: dict[int, str] = {}
    for i, value in enumerate(distinct.tolist()):
        try:
            encoded[i] = column.encode_one(value)
        except FactError as error:
            messages[i] = str(error)
    rows = np.flatnonzero(known)
    codes[rows] = encoded[index]
    for row, i in zip(rows.tolist(), index.tolist(), strict=True) if messages else ():
        if i in messages:
            errors.setdefault(row, messages[i])
    return codes


def _codes(column: Measure) -> list[float]:
    """The numbers among a feature's states."""
    return [state for state in column.states if state is not None]
