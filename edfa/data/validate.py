"""Validation of a data frame against a schema.

A validated frame has the schema's columns: numbers are finite or null, words are strings or null, and the outcome is
one of the classes in every row. Null means "not recorded"; "not acquired" does not exist at this stage.
"""

from typing import Any

import numpy as np
import pandas as pd

from edfa.data.feature import Feature
from edfa.data.numbers import LARGEST, read_numbers
from edfa.data.schema import Schema
from edfa.errors import ColumnError, DataError, EmptyTableError, TargetError, hint

__all__ = [
    "as_words",
    "check_columns",
    "find_classes",
    "to_pandas",
    "to_words",
    "validate_features",
    "validate_frame",
]


def to_pandas(frame: Any) -> pd.DataFrame:
    """A pandas, polars or pyarrow frame as a pandas frame (a pandas frame is not copied)."""
    if isinstance(frame, pd.DataFrame):
        return frame
    import narwhals as nw

    try:
        native: pd.DataFrame = nw.from_native(frame, eager_only=True).to_pandas()
        return native
    except TypeError:
        raise DataError(f"a data frame is needed (pandas, polars or pyarrow), not {type(frame).__name__}") from None


def validate_frame(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """A copy of the schema's columns, in its order, converted to the type of each kind; the outcome comes last.

    Raises
    ------
    DataError
        If a column is missing, doubled or holds something its kind does not allow, or there are no rows.
    """
    check_columns(frame, [*schema.names, schema.target])
    outcome = _validate_target(_mask_missing(frame[schema.target], schema), schema)
    return validate_features(frame, schema).assign(**{schema.target: outcome.to_numpy()})


def validate_features(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Like ``validate_frame``, for a frame without the outcome's column."""
    check_columns(frame, list(schema.names))
    columns = {f.name: _validate_feature(_mask_missing(frame[f.name], schema), f) for f in schema.features}
    return pd.DataFrame(columns).reset_index(drop=True)


def check_columns(frame: pd.DataFrame, required: list[str]) -> None:
    """Raise DataError unless column names are unique, the required ones are present, and there is a row."""
    names = [str(c) for c in frame.columns]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ColumnError(f"column {twice[0]!r} appears {names.count(twice[0])} times")
    if absent := [n for n in required if n not in set(names)]:
        raise ColumnError(f"the table has no column {absent[0]!r}{hint(absent[0], names)}")
    if len(frame) == 0:
        raise EmptyTableError("the table has columns but no rows")


def find_classes(outcome: pd.Series, schema: Schema) -> tuple[str, ...]:
    """The classes in the order of their codes: as the card lists them, else the two that occur, sorted.

    TargetError if ``outcome``, (rows,), has a class the card does not know, lacks the favourable one, has more than two
    that the card does not list, or fewer than three rows of one: each part of a split needs one.
    """
    classes = sorted(outcome.unique())
    if schema.classes:
        if stray := [c for c in classes if c not in schema.classes]:
            raise TargetError(
                f"target {schema.target!r}: the card knows no class {stray[0]!r}{hint(stray[0], schema.classes)}"
            )
        classes = list(schema.classes)
    elif len(classes) > 2:
        shown = ", ".join(classes[:5]) + (", …" if len(classes) > 5 else "")
        raise TargetError(
            f"target {schema.target!r} has {len(classes)} classes ({shown}) where two are needed; "
            "merge them in the card, or list them as classes to allow more"
        )
    counts = outcome.value_counts()
    if len(counts) < 2:
        raise TargetError(f"target {schema.target!r} is constant: every row is {counts.index[0]!r}")
    if schema.favourable not in classes:
        near = hint(schema.favourable, classes)
        raise TargetError(f"target {schema.target!r} never is {schema.favourable!r}, the favourable class{near}")
    if few := [c for c in classes if counts.get(c, 0) < 3]:
        rows = int(counts.get(few[0], 0))
        raise TargetError(
            f"class {few[0]!r} of {schema.target!r}: three rows are needed, one for each part, not {rows}"
        )
    return tuple(classes)


def to_words(values: pd.Series) -> pd.Series:
    """A column's values as strings, (rows,): 1.0 and 1 are both ``"1"``; nulls stay null."""
    if isinstance(values.dtype, pd.StringDtype):
        return values.astype("str")
    codes, distinct = pd.factorize(values)  # convert each distinct value once
    words = pd.array(as_words(distinct), dtype="str").take(codes, allow_fill=True)
    return pd.Series(words, index=values.index, name=values.name)


def as_words(values: Any) -> list[str]:
    """An array of values without nulls as strings; floats that are all whole are written without a point."""
    if values.dtype.kind == "f" and (values == np.floor(values)).all() and (np.abs(values) < 2**53).all():
        values = values.astype(np.int64)
    return [str(value) for value in values.tolist()]


def _mask_missing(values: pd.Series, schema: Schema) -> pd.Series:
    """A column with the strings that the card lists as missing replaced by nulls."""
    if not schema.missing or pd.api.types.is_numeric_dtype(values.dtype):
        return values
    return values.mask(values.isin(schema.missing))


def _validate_target(values: pd.Series, schema: Schema) -> pd.Series:
    """The outcome as strings, merged as the card says; TargetError for gaps and labels the card does not merge."""
    if gaps := int(values.isna().sum()):
        raise TargetError(
            f"target {schema.target!r} is missing in {gaps} of {len(values)} rows; drop them or find their outcome"
        )
    words = to_words(values)
    if schema.merge:
        merged = words.map(dict(schema.merge))
        if merged.isna().any():
            raw = words[merged.isna()].iloc[0]
            raise TargetError(f"target {schema.target!r}: the card merges no label {raw!r}{hint(raw, schema.merge)}")
        words = merged.astype("str")
    return words


def _validate_feature(values: pd.Series, feature: Feature) -> pd.Series:
    """A feature's column as strings or numbers, its levels checked."""
    _check_scalars(values, feature.name)
    if values.isna().all():
        raise ColumnError(f"column {feature.name!r} has no value in any row; leave it out of the card")
    converted = to_words(values) if feature.words else _to_numbers(values, feature)
    if feature.levels:
        _check_levels(converted, feature)
    return converted


def _check_scalars(values: pd.Series, name: str) -> None:
    """Raise ColumnError for dates, and for cells that hold a list or another collection."""
    if isinstance(values.dtype, pd.DatetimeTZDtype) or values.dtype.kind in "mM":
        raise ColumnError(f"column {name!r} holds dates; turn them into a number, such as days until today")
    if values.dtype == object:
        odd = ~values.map(pd.api.types.is_scalar)
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            raise ColumnError(
                f"column {name!r} holds a {type(values.iloc[row]).__name__} in row {row}; one value a cell is needed"
            )


def _to_numbers(values: pd.Series, feature: Feature) -> pd.Series:
    """A column as int64 or float64, ``€1,430`` as 1430; ColumnError for a cell that is no number, or infinite."""
    numbers = values if values.dtype.kind in "iuf" else read_numbers(values)
    if numbers is not values:
        bad = np.flatnonzero(numbers.isna() & values.notna())
        if len(bad):
            raise ColumnError(
                f"column {feature.name!r} is {feature.kind}, but row {bad[0]} says {values.iloc[bad[0]]!r}; "
                "list it under `missing` in the card if it means not recorded"
            )
    far = np.flatnonzero(np.abs(numbers.to_numpy(float)) > LARGEST)
    if len(far):
        what = "infinite" if np.isinf(numbers.iloc[far[0]]) else f"beyond {LARGEST:g}, no measurement,"
        raise ColumnError(f"column {feature.name!r} is {what} in row {far[0]}")
    return numbers.astype("int64") if numbers.dtype.kind in "iu" else numbers.astype("float64")


def _check_levels(values: pd.Series, feature: Feature) -> None:
    """Raise ColumnError for a value that is not among the card's levels or codes."""
    known = [str(v) for v in feature.levels] if feature.words else [*feature.levels, *map(float, feature.codes)]
    stray = ~values.isin(known) & values.notna()
    if stray.any():
        row = int(np.flatnonzero(stray)[0])
        level = values.iloc[row]
        raise ColumnError(f"column {feature.name!r}: the card knows no level {level!r} (row {row}){hint(level, known)}")
