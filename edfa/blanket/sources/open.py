"""``open_source``: what is passed to ``discover`` (a Table, any data frame, or a source) becomes a
source.

Columns of a Table have the kinds of its card; those of a bare frame are inferred.
"""

from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import CategoricalColumn, Column, ContinuousColumn, as_tested
from edfa.blanket.sources.base import TableSource
from edfa.blanket.sources.memory import MemoryRows
from edfa.data.schema import Feature
from edfa.data.table import Table
from edfa.data.values import check_columns, to_pandas, to_words
from edfa.errors import DataError, EmptyTableError, SettingError, TargetError, check_known
from edfa.typing import AnyArray

MIN_ROWS = 30
# Whole numbers with at most this many values in a bare frame are read as levels.
MAX_WHOLE_LEVELS = 20


def open_source(
    table: Any, target: str | None, bins: int | None, keep_order: bool
) -> tuple[TableSource, str, tuple[str, ...]]:
    """Open a table for tests of independence.

    Parameters
    ----------
    table
        A Table, any data frame, or a source.
    target
        The name of the column whose blanket is searched; None: that of the Table or source.
    bins
        The number of quantile bins into which a continuous target is cut.
    keep_order
        Whether columns stay in their order; else they are sorted by name, so that results do not
        depend on it.

    Returns
    -------
    tuple[TableSource, str, tuple[str, ...]]
        The source, the name of its target, and the names of the columns left out as constant.

    Raises
    ------
    TargetError, UnknownNameError
        If the target is not named, not there, constant, or continuous without ``bins``.
    DataError
        If there are fewer than 30 rows, or a column holds neither numbers nor words.
    """
    if isinstance(table, TableSource):
        return _check_source(table, target)
    features: dict[str, Feature] = {}
    if isinstance(table, Table):
        frame = table.frame
        features = {f.name: f for f in table.schema}
        target = target or table.schema.target
    else:
        frame = to_pandas(table)
        if target is None:
            raise TargetError(
                "a bare data frame needs to be told its target: discover(frame, target='name')"
            )
    check_columns(frame, [])
    check_known("column", target, frame.columns)
    _check_rows(len(frame))
    names = [str(name) for name in frame.columns]
    names = names if keep_order else sorted(names)
    columns = {n: _read(frame[n], n, features.get(n)) for n in names}
    columns[target] = _read_target(*columns[target], target, bins)
    constant = tuple(n for n, (column, _) in columns.items() if column.is_constant)
    if target in constant:
        raise TargetError(f"target {target!r} is constant: it depends on nothing")
    varying = [columns[name] for name in names if name not in constant]
    tested, values = zip(*varying, strict=True)
    return MemoryRows(tested, values), target, constant


def _check_rows(n: int) -> None:
    if n < MIN_ROWS:
        raise EmptyTableError(
            f"{n} rows are too few to tell who depends on whom; {MIN_ROWS} are needed"
        )


def _read(values: pd.Series, name: str, feature: Feature | None) -> tuple[Column, AnyArray]:
    """A column and its values, ``(rows,)``: codes of levels, or floats. Without a feature the kind
    is inferred.
    """
    if feature is None:
        kind = values.dtype.kind
        if kind in "mMc" or (
            values.dtype == object and not values.map(pd.api.types.is_scalar).all()
        ):
            raise DataError(f"column {name!r} holds neither numbers nor words")
        whole = kind in "iu" and values.nunique() <= MAX_WHOLE_LEVELS
        categorical = whole or kind not in "iuf"
    else:
        values, categorical = as_tested(values, feature)
    if categorical:
        return _read_categorical(values, name)
    numbers = values.to_numpy(float)
    return ContinuousColumn.fit(name, numbers, feature.codes if feature else ()), numbers


def _read_categorical(values: pd.Series, name: str) -> tuple[CategoricalColumn, AnyArray]:
    words = to_words(values + 0.0 if values.dtype.kind == "f" else values)  # -0.0 is 0.0
    counts = {str(word): count for word, count in words.value_counts().items()}
    column = CategoricalColumn.fit(name, counts, bool(words.isna().any()))
    return column, column.read(words)


def _read_target(
    column: Column, values: AnyArray, name: str, bins: int | None
) -> tuple[Column, AnyArray]:
    """The target as a categorical column; a continuous one is cut into ``bins`` quantile bins."""
    if isinstance(column, CategoricalColumn):
        return column, values
    if bins is None:
        raise TargetError(
            f"target {name!r} is continuous; say into how many bins it is to be cut, bins=5"
        )
    if bins < 2:
        raise SettingError(f"a target needs two bins at least, not {bins}")
    known = ~np.isnan(values)
    edges = np.unique(np.quantile(values[known], np.arange(1, bins) / bins))
    codes = pd.Series(np.searchsorted(edges, values, side="right").astype(float)).where(known)
    return _read_categorical(codes, name)


def _check_source(
    source: TableSource, target: str | None
) -> tuple[TableSource, str, tuple[str, ...]]:
    """A source with its target and the names of its constant columns, if a blanket of that target
    can be found.
    """
    names = [c.name for c in source.columns]
    target = target or source.target
    if target is None:
        raise TargetError("a source needs to be told its target: discover(source, target='name')")
    if target in source.left_out:
        raise TargetError(f"target {target!r} is constant: it depends on nothing")
    check_known("column", target, names)
    _check_rows(source.n)
    if isinstance(source.columns[names.index(target)], ContinuousColumn):
        raise TargetError(
            f"target {target!r} is continuous; a source can only have a categorical one"
        )
    return source, target, source.left_out
