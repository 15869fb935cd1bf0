"""Validation of a data frame against a schema.

A validated frame has the schema's columns: numbers are finite or null, words are strings or null,
and the outcome is one of the classes in every row. Null means "not recorded"; "not acquired" does
not exist at this stage.
"""

from typing import Any

import numpy as np
import pandas as pd

from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.data.values import (
    LARGEST,
    as_words,
    check_names,
    check_unique,
    find_gaps,
    find_missing,
    match_level,
    read_numbers,
    shorten,
    to_pandas,
    to_words,
)
from edfa.errors import ColumnError, EmptyTableError, TargetError, hint

__all__ = [
    "as_words",
    "check_columns",
    "find_classes",
    "to_pandas",
    "to_words",
    "validate_features",
    "validate_frame",
]


def validate_frame(frame: Any, schema: Schema) -> pd.DataFrame:
    """A copy of the schema's columns, in its order, converted to the type of each kind; the outcome
    comes last.

    Columns of ``frame`` that the schema does not name are left out, unless they look like one that
    it names.

    Raises
    ------
    DataError
        If a column is missing, doubled or holds something its kind does not allow, or there are no
        rows.
    """
    frame = to_pandas(frame)
    required = [*schema.names, schema.target]
    check_columns(frame, required)
    check_names(frame.columns, required)
    rows = _validate_features(frame, schema)
    rows[schema.target] = _validate_target(frame[schema.target], schema).to_numpy()
    return rows


def validate_features(frame: Any, schema: Schema) -> pd.DataFrame:
    """Like ``validate_frame``, for a frame without the outcome's column."""
    frame = to_pandas(frame)
    check_columns(frame, list(schema.names))
    check_names(frame.columns, schema.names)
    return _validate_features(frame, schema)


def _validate_features(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    columns = {
        feature.name: _validate_feature(frame[feature.name], feature, schema)
        for feature in schema.features
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def check_columns(frame: pd.DataFrame, required: list[str]) -> None:
    """Raise DataError unless column names are unique, the required ones are present, and there is a
    row.
    """
    names = [str(c) for c in frame.columns]
    check_unique(names)
    if absent := [n for n in required if n not in set(names)]:
        raise ColumnError(f"the table has no column {absent[0]!r}{hint(absent[0], names)}")
    if len(frame) == 0:
        raise EmptyTableError("the table has columns but no rows")


def find_classes(outcome: pd.Series, schema: Schema) -> tuple[str, ...]:
    """The classes in the order of their codes: as the card lists them, else the two that occur,
    sorted.

    TargetError if ``outcome``, (rows,), has a class the card does not know, lacks the favourable
    one, has more than two that the card does not list, or fewer than three rows of one: each part
    of a split needs one.
    """
    classes = sorted(outcome.unique())
    if schema.classes:
        if stray := [c for c in classes if c not in schema.classes]:
            raise TargetError(
                f"target {schema.target!r}: the card knows no class "
                f"{stray[0]!r}{hint(stray[0], schema.classes)}"
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
        raise TargetError(
            f"target {schema.target!r} never is {schema.favourable!r}, the favourable class{near}"
        )
    if few := [c for c in classes if counts.get(c, 0) < 3]:
        rows = int(counts.get(few[0], 0))
        raise TargetError(
            f"class {few[0]!r} of {schema.target!r}: three rows are needed, one for each "
            f"part, not {rows}"
        )
    return tuple(classes)


def _validate_target(values: pd.Series, schema: Schema) -> pd.Series:
    """The outcome as words, merged as the card says; TargetError for gaps and labels the card does
    not merge.
    """
    _check_scalars(values, schema.target)
    values = values.mask(find_missing(values, schema.missing, words=True) | find_gaps(values))
    if gaps := int(values.isna().sum()):
        raise TargetError(
            f"target {schema.target!r} is missing in {gaps} of {len(values)} rows; drop "
            "them or find their outcome"
        )
    words = to_words(values)
    if schema.merge:
        merged = words.map(
            {name: name for name in schema.merge.values()} | dict(schema.merge)
        )  # merged once: it stays
        if merged.isna().any():
            raw = words[merged.isna()].iloc[0]
            raise TargetError(
                f"target {schema.target!r}: the card merges no label "
                f"{raw!r}{hint(raw, schema.merge)}"
            )
        words = merged.astype("str")
    return words


def _validate_feature(values: pd.Series, feature: Feature, schema: Schema) -> pd.Series:
    """A feature's column as words or numbers, its levels checked."""
    _check_scalars(values, feature.name)
    gaps = find_missing(values, schema.missing, feature.words) | find_gaps(values)
    if gaps.all():
        raise ColumnError(
            f"column {feature.name!r} has no value in any row; leave it out of the card"
        )
    values = values.mask(gaps) if gaps.any() else values
    converted = to_words(values) if feature.words else _to_numbers(values, feature)
    return _known_levels(converted, feature) if feature.levels else converted


def _check_scalars(values: pd.Series, name: str) -> None:
    """Raise ColumnError for dates, and for cells that hold a list or another collection."""
    if isinstance(values.dtype, pd.DatetimeTZDtype) or values.dtype.kind in "mM":
        raise ColumnError(
            f"column {name!r} holds dates; turn them into a number, such as days until today"
        )
    if values.dtype == object:
        odd = ~values.map(
            lambda value: pd.api.types.is_scalar(value) or getattr(value, "ndim", 1) == 0
        )
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            raise ColumnError(
                f"column {name!r} holds a {type(values.iloc[row]).__name__} in row {row}; "
                "one value a cell is needed"
            )


def _to_numbers(values: pd.Series, feature: Feature) -> pd.Series:
    """A column as int64 or float64, ``€1,430`` as 1430; ColumnError for a cell that is no number,
    or infinite.
    """
    numbers = read_numbers(values)
    bad = np.flatnonzero(numbers.isna() & values.notna())
    if len(bad):
        raise ColumnError(
            f"column {feature.name!r} is {feature.kind}, but row {bad[0]} says "
            f"{shorten(values.iloc[bad[0]])}; "
            "list it under `missing` in the card if it means not recorded"
        )
    far = np.flatnonzero(np.abs(numbers.to_numpy(float)) > LARGEST)
    if len(far):
        number = float(numbers.iloc[far[0]])
        what = (
            "infinite"
            if np.isinf(number)
            else f"{number:g}, beyond {LARGEST:g} and no measurement,"
        )
        raise ColumnError(f"column {feature.name!r} is {what} in row {far[0]}")
    return numbers.astype("int64") if numbers.dtype.kind in "iu" else numbers.astype("float64")


def _known_levels(values: pd.Series, feature: Feature) -> pd.Series:
    """The column with every word as the card writes its level; ColumnError for a value that is no
    level or code.
    """
    known = (
        [str(v) for v in feature.levels]
        if feature.words
        else [*feature.levels, *map(float, feature.codes)]
    )
    stray = ~values.isin(known) & values.notna()
    if not stray.any():
        return values
    if feature.words:
        names = [str(level) for level in known]
        meant = {word: match_level(word, names) for word in values[stray].unique().tolist()}
        values = values.replace({word: level for word, level in meant.items() if level is not None})
        stray = ~values.isin(known) & values.notna()
    if stray.any():
        row = int(np.flatnonzero(stray)[0])
        level = values.iloc[row]
        near = hint(level, known)
        raise ColumnError(
            f"column {feature.name!r}: the card knows no level {shorten(level)} (row {row}){near}"
        )
    return values
