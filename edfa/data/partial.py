"""Encoding of many partially known people: an empty cell is not known, and a wrong one is an error
of its row alone.

The rules are those of ``Encoder.encode_person``, applied to a whole file one column at a time.
"""

import re
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder, Flag, Levels, Measure
from edfa.data.schema import Schema
from edfa.data.values import (
    LARGEST_EXACT_INTEGER,
    PLAIN,
    ROW_ERROR,
    as_word,
    check_names,
    find_gaps,
    find_missing,
    parse_number,
    read_numbers,
    read_words,
    to_pandas,
    unwrap,
)
from edfa.errors import ColumnError, FactError, hint
from edfa.reading import shorten
from edfa.typing import NAN, BoolArray, Float32Array


class Partial(NamedTuple):
    """People of whom not everything is known, encoded.

    Parameters
    ----------
    X
        Their facts, (rows, features), NaN where not known; a row with an error is NaN throughout.
    errors
        For each row that cannot be understood, by row number, the message.
    flags
        For each other row with values that are replaced or left out, by row number, their flags.
    """

    X: Float32Array
    errors: dict[int, str]
    flags: dict[int, tuple[Flag, ...]]


def encode_partial(
    frame: pd.DataFrame, encoder: Encoder, schema: Schema, relevant: BoolArray | None = None
) -> Partial:
    """Encode people of whom not everything is known.

    A row with a value that cannot be understood has an error, the one that
    ``Encoder.encode_person`` would raise. A number slightly outside what was seen is taken at the
    edge and flagged. A string that the card lists as ``missing`` is a known fact, "not recorded",
    if training rows had gaps.

    Parameters
    ----------
    frame
        One row a person. Features without a column are not known; columns that are no feature are
        ignored, unless their name looks like that of one.
    encoder
        The encoding of the features.
    schema
        The features, and which texts mean "not recorded".
    relevant
        Whether each feature matters to the decision, (features,); None: all do. A value of one that
        does not is flagged and left out where it cannot be understood.

    Returns
    -------
    Partial
        The codes, and the errors and flags by row number.

    Raises
    ------
    ColumnError
        If there is no column of any feature, or a name is there twice or looks like a feature's.

    Examples
    --------
    >>> from edfa import Feature
    >>> schema = Schema((Feature("age", "continuous"), Feature("home", "categorical")), "y", "good")
    >>> encoder = Encoder.fit(pd.DataFrame({"age": [20, 40, 60], "home": ["rent", "own", "rent"]}),
    ...     schema)
    >>> people = encode_partial(pd.DataFrame({"age": [40, None, 200], "home": [None, "own",
    ...     "own"]}), encoder, schema)
    >>> people.X.tolist(), people.errors
    ([[0.0, nan], [nan, 0.0], [nan, nan]], {2: 'age: 200 is outside 20 to 60, the values learnt from'})
    """  # noqa: E501
    rows = to_pandas(frame).reset_index(drop=True)
    check_names(rows.columns, schema.names)
    present = [name for name in schema.names if name in rows.columns]
    if not present:
        raise ColumnError(
            f"the rows have none of the columns {', '.join(schema.names[:5])}, "
            f"…{hint('', rows.columns)}"
        )
    matrix = np.full((len(rows), len(schema)), NAN)
    errors: dict[int, str] = {}
    if ROW_ERROR in rows.columns:
        errors = cast("dict[int, str]", rows[ROW_ERROR].dropna().to_dict())
    flags: dict[int, tuple[Flag, ...]] = {}
    for name in present:
        position = schema.index(name)
        matrix[:, position], noted = _encode_column(rows[name], encoder[name], schema)
        matters = relevant is None or bool(relevant[position])
        for row, told, found in noted:
            if not matters:
                if isinstance(found, Flag):
                    continue
                found = Flag(name, "left_out", _hashable(told))
            if isinstance(found, str):
                errors.setdefault(row, found)
            else:
                flags[row] = (*flags.get(row, ()), found)
    matrix[list(errors)] = np.nan
    return Partial(matrix, errors, {row: f for row, f in flags.items() if row not in errors})


def _encode_column(
    values: pd.Series, column: Measure | Levels, schema: Schema
) -> tuple[Float32Array, list[tuple[int, Any, Flag | str]]]:
    """Encode one column: a level as it is written, or a number inside the range, all together;
    every other distinct value by ``encode_fact``.

    Returns the codes, (rows,), NaN where not known or wrong; and for each row whose value was
    replaced or refused its number, the value, and a flag or an error message.
    """
    words = column.words
    missing = find_missing(values, schema.missing, words)
    known = ~find_gaps(values) | missing
    codes = np.full(len(values), NAN)
    if words:
        usual = read_words(values).isin(column.levels).to_numpy(bool)  # type: ignore[union-attr]
    else:
        numbers = read_numbers(values)
        usual = numbers.notna().to_numpy(bool) & ~column.outside(numbers)
    usual = usual & known & ~missing
    codes[usual] = column.encode(values[usual])
    encoded: dict[Any, tuple[float, Flag | str | None]] = {}
    noted: list[tuple[int, Any, Flag | str]] = []
    for row in np.flatnonzero(known & ~usual).tolist():
        told = None if missing[row] else _as_told(values.iloc[row], words)
        key = (type(told), _hashable(told))  # 1 and True are two
        if key not in encoded:
            try:
                encoded[key] = column.encode_fact(told), column.find_flag(told)
            except FactError as error:
                encoded[key] = np.nan, str(error)
        codes[row], found = encoded[key]
        if found is not None:
            noted.append((row, told, found))
    return codes, noted


def _as_told(cell: Any, words: bool) -> Any:
    """A cell as a message shows it: the same whether a file's reader took it for a number or left
    it as text.
    """
    value = unwrap(cell)
    if words:
        return as_word(value, "") if isinstance(value, float) else value
    if isinstance(value, str) and re.match(PLAIN, value.strip()):
        value = parse_number(value)
    return (
        int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_EXACT_INTEGER
        else value
    )


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else shorten(value)
