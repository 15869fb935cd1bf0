"""What is handed to ``discover`` becomes a source: a Table, any data frame, or a source already."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import FEW_LEVELS, Numbers, Words
from edfa.blanket.counts import Column, Rows, Source
from edfa.data.feature import Feature
from edfa.data.table import Table
from edfa.data.validate import as_words, check_columns, to_pandas
from edfa.errors import DataError, EmptyTableError, TargetError, UnknownNameError
from edfa.typing import AnyArray

__all__ = ["is_counted", "open_source"]

MIN_ROWS = 30
FEW_NUMBERS = 20  # whole numbers of at most this many values in a bare frame are read as codes


def open_source(
    table: Any, target: str | None, bins: int | None, keep_order: bool
) -> tuple[Source, str, tuple[str, ...]]:
    """The source, the target's name, and the columns left out because they never vary.

    Columns are sorted by name, so that the result does not depend on their order; ``keep_order`` keeps it.
    """
    if isinstance(table, Source):
        return _given(table, target)
    features: dict[str, Feature] = {}
    if isinstance(table, Table):
        frame = table.frame
        features = {f.name: f for f in table.schema}
        target = target or table.schema.target
    else:
        frame = to_pandas(table)
        if target is None:
            raise TargetError("a bare data frame needs to be told its target: discover(frame, target='name')")
    check_columns(frame, [])
    if target not in frame.columns:
        raise UnknownNameError("column", target, frame.columns)
    _check_rows(len(frame))
    names = [str(n) for n in frame.columns] if keep_order else sorted(str(n) for n in frame.columns)
    opened = {n: _read(frame[n], n, features.get(n)) for n in names}
    opened[target] = _target(*opened[target], target, bins)
    flat = tuple(n for n, (column, _) in opened.items() if column.flat)
    if target in flat:
        raise TargetError(f"target {target!r} is constant: it depends on nothing")
    kept = [pair for n, pair in opened.items() if n not in flat]
    return Rows([column for column, _ in kept], [values for _, values in kept]), target, flat


def _check_rows(n: int) -> None:
    if n < MIN_ROWS:
        raise EmptyTableError(f"{n} rows are too few to tell who depends on whom; {MIN_ROWS} are needed")


def is_counted(feature: Feature, distinct: int) -> bool:
    """Whether a feature is seen as words: categorical, or ordinal with few levels."""
    return feature.kind == "categorical" or (feature.kind == "ordinal" and distinct <= FEW_LEVELS)


def _read(values: pd.Series, name: str, feature: Feature | None) -> tuple[Column, AnyArray]:
    """A column and its values: codes of levels to be counted, or floats to be cut and correlated."""
    if feature is None:
        if values.dtype.kind in "mMc" or (values.dtype == object and not values.map(pd.api.types.is_scalar).all()):
            raise DataError(f"column {name!r} holds neither numbers nor words")
        if values.dtype.kind == "f" or (values.dtype.kind in "iu" and values.nunique() > FEW_NUMBERS):
            return _read_numbers(values, name)
        return _read_words(values, name)
    if is_counted(feature, int(values.nunique())):
        return _read_words(values, name)
    if feature.words:
        return _read_numbers(values.map({level: i for i, level in enumerate(feature.levels)}), name)
    return _read_numbers(values, name, [float(code) for code in feature.codes])


def _read_numbers(values: pd.Series, name: str, codes: Sequence[float] = ()) -> tuple[Numbers, AnyArray]:
    numbers = values.to_numpy(float)
    return Numbers.fit(name, numbers, codes), numbers


def _read_words(values: pd.Series, name: str) -> tuple[Words, AnyArray]:
    codes, found = pd.factorize(values)
    words = as_words(found)
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    totals: Counter[str] = Counter()  # 1 and "1" in one column are the same word
    for word, count in zip(words, counts.tolist(), strict=True):
        totals[word] += count
    column = Words.fit(name, totals, bool((codes < 0).any()))
    places = np.array([*(column.levels.index(word) for word in words), -1], dtype=np.int64)
    return column, places[codes]


def _target(column: Column, values: AnyArray, name: str, bins: int | None) -> tuple[Column, AnyArray]:
    """The target as words; a continuous one only in as many quantile bins as were asked for."""
    if isinstance(column, Words):
        return column, values
    if bins is None:
        raise TargetError(f"target {name!r} is continuous; say into how many bins it is to be cut, bins=5")
    if bins < 2:
        raise TargetError(f"a target needs two bins at least, not {bins}")
    known = ~np.isnan(values)
    edges = np.unique(np.quantile(values[known], np.arange(1, bins) / bins))
    codes = pd.Series(np.searchsorted(edges, values, side="right").astype(float)).where(known)
    return _read_words(codes, name)


def _given(source: Source, target: str | None) -> tuple[Source, str, tuple[str, ...]]:
    names = [c.name for c in source.columns]
    target = target or getattr(source, "target", None)
    if target is None:
        raise TargetError("a source needs to be told its target: discover(source, target='name')")
    left_out: tuple[str, ...] = getattr(source, "left_out", ())
    if target in left_out:
        raise TargetError(f"target {target!r} is constant: it depends on nothing")
    if target not in names:
        raise UnknownNameError("column", target, names)
    _check_rows(source.n)
    if isinstance(source.columns[names.index(target)], Numbers):
        raise TargetError(f"target {target!r} is continuous; a source can only have a categorical one")
    return source, target, left_out
