"""A frame as people bring it becomes a frame as the schema describes it, or an error that says why not.

After this border a continuous column holds finite numbers or null, a column of words holds strings or null, and the
outcome holds one of the classes in every row. Null means "not recorded"; "not acquired" does not exist here yet.
"""

from typing import Any

import numpy as np
import pandas as pd

from edfa.data.schema import Feature, Schema
from edfa.errors import ColumnError, DataError, EmptyTableError, TargetError, hint

__all__ = ["as_words", "check_columns", "find_classes", "tidy", "tidy_features", "to_pandas", "to_words"]


def to_pandas(frame: Any) -> pd.DataFrame:
    """A pandas frame from a pandas, polars or pyarrow one."""
    if isinstance(frame, pd.DataFrame):
        return frame
    import narwhals as nw

    try:
        native: pd.DataFrame = nw.from_native(frame, eager_only=True).to_pandas()
        return native
    except TypeError:
        raise DataError(f"a data frame is needed (pandas, polars or pyarrow), not {type(frame).__name__}") from None


def tidy(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The schema's columns in the schema's order, each in the form its kind asks for, the outcome last."""
    check_columns(frame, [*schema.names, schema.target])
    outcome = _tidy_target(_blank(frame[schema.target], schema), schema)
    return tidy_features(frame, schema).assign(**{schema.target: outcome.to_numpy()})


def tidy_features(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The same without the outcome, for people of whom none is known."""
    check_columns(frame, list(schema.names))
    columns = {f.name: _tidy_feature(_blank(frame[f.name], schema), f) for f in schema.features}
    return pd.DataFrame(columns).reset_index(drop=True)


def check_columns(frame: pd.DataFrame, wanted: list[str]) -> None:
    """Columns are named once, the wanted ones are there, and there is at least one row."""
    names = [str(c) for c in frame.columns]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ColumnError(f"column {twice[0]!r} appears {names.count(twice[0])} times")
    if absent := [n for n in wanted if n not in set(names)]:
        raise ColumnError(f"the table has no column {absent[0]!r}{hint(absent[0], names)}")
    if len(frame) == 0:
        raise EmptyTableError("the table has columns but no rows")


def find_classes(outcome: pd.Series, schema: Schema) -> tuple[str, ...]:
    """The classes in the order of their codes: as the card lists them, else the two that occur, sorted."""
    found = sorted(outcome.unique())
    if schema.classes:
        if stray := [c for c in found if c not in schema.classes]:
            raise TargetError(
                f"target {schema.target!r}: the card knows no class {stray[0]!r}{hint(stray[0], schema.classes)}"
            )
        found = list(schema.classes)
    elif len(found) > 2:
        shown = ", ".join(found[:5]) + (", …" if len(found) > 5 else "")
        raise TargetError(
            f"target {schema.target!r} has {len(found)} classes ({shown}) where two are needed; "
            "merge them in the card, or list them as classes to allow more"
        )
    counts = outcome.value_counts()
    if len(counts) < 2:
        raise TargetError(f"target {schema.target!r} is constant: every row is {counts.index[0]!r}")
    if schema.favourable not in found:
        near = hint(schema.favourable, found)
        raise TargetError(f"target {schema.target!r} never is {schema.favourable!r}, the favourable class{near}")
    if few := [c for c in found if counts.get(c, 0) < 3]:
        rows = int(counts.get(few[0], 0))
        raise TargetError(
            f"class {few[0]!r} of {schema.target!r}: three rows are needed, one for each part, not {rows}"
        )
    return tuple(found)


def to_words(values: pd.Series) -> pd.Series:
    """Values as the words a person would use: 1.0 and 1 are both ``"1"``; nulls stay null."""
    if isinstance(values.dtype, pd.StringDtype):
        return values.astype("str")
    codes, found = pd.factorize(values)  # a few words for many rows
    words = pd.array(as_words(found), dtype="str").take(codes, allow_fill=True)
    return pd.Series(words, index=values.index, name=values.name)


def as_words(found: Any) -> list[str]:
    """Each of some different values in words."""
    if found.dtype.kind == "f" and (found == np.floor(found)).all() and (np.abs(found) < 2**53).all():
        found = found.astype(np.int64)
    return [str(value) for value in found.tolist()]


def _blank(values: pd.Series, schema: Schema) -> pd.Series:
    """The same column with the card's words for "not recorded" turned into nulls."""
    if not schema.missing or pd.api.types.is_numeric_dtype(values.dtype):
        return values
    return values.mask(values.isin(schema.missing))


def _tidy_target(values: pd.Series, schema: Schema) -> pd.Series:
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


def _tidy_feature(values: pd.Series, feature: Feature) -> pd.Series:
    _check_scalars(values, feature.name)
    if values.isna().all():
        raise ColumnError(f"column {feature.name!r} has no value in any row; leave it out of the card")
    tidied = to_words(values) if feature.words else _to_numbers(values, feature)
    if feature.levels:
        _check_levels(tidied, feature)
    return tidied


def _check_scalars(values: pd.Series, name: str) -> None:
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
    numbers = values if values.dtype.kind in "iuf" else pd.to_numeric(values, errors="coerce")
    if numbers is not values:
        bad = np.flatnonzero(numbers.isna() & values.notna())
        if len(bad):
            raise ColumnError(
                f"column {feature.name!r} is {feature.kind}, but row {bad[0]} says {values.iloc[bad[0]]!r}; "
                "list it under `missing` in the card if it means not recorded"
            )
    if numbers.dtype.kind == "f" and np.isinf(numbers).any():
        raise ColumnError(f"column {feature.name!r} is infinite in row {int(np.flatnonzero(np.isinf(numbers))[0])}")
    return numbers.astype("int64") if numbers.dtype.kind in "iu" else numbers.astype("float64")


def _check_levels(values: pd.Series, feature: Feature) -> None:
    known = [str(v) for v in feature.levels] if feature.words else [*feature.levels, *map(float, feature.codes)]
    stray = ~values.isin(known) & values.notna()
    if stray.any():
        row = int(np.flatnonzero(stray)[0])
        level = values.iloc[row]
        raise ColumnError(f"column {feature.name!r}: the card knows no level {level!r} (row {row}){hint(level, known)}")
