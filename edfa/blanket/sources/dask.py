"""A Dask frame, on this machine or on a cluster: partitions send back counts and sums only.

discover(DaskRows(dask_frame, schema))
"""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import CategoricalColumn, Column, ContinuousColumn, is_categorical
from edfa.blanket.sources.base import RemoteSource
from edfa.blanket.sources.correlation import Correlation, CrossProducts
from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.data.validate import to_words
from edfa.errors import ColumnError, MissingExtraError, hint
from edfa.typing import AnyArray

__all__ = ["DaskRows"]


class DaskRows(RemoteSource):
    """A Dask frame, on this machine or on a cluster (``edfa[cluster]``); partitions send back counts and sums only.

    The distinct values of each column are gathered once, so that quantiles are exact.
    """

    def __init__(self, frame: Any, schema: Schema) -> None:
        try:
            self._dask: Any = import_module("dask")
        except ImportError:
            raise MissingExtraError("counting on a cluster", "cluster") from None
        self.target = schema.target
        self._partitions = frame.to_delayed()
        names = sorted([*schema.names, schema.target])
        if absent := [n for n in names if n not in frame.columns]:
            raise ColumnError(f"the frame has no column {absent[0]!r}{hint(absent[0], frame.columns)}")
        self._features = {n: None if n == schema.target else schema[n] for n in names}
        self._schema = schema
        counts = self._sum_series(_value_counts, names)
        self.n = int(counts[names[0]].sum())
        self._set_columns([_fit_column(n, self._features[n], counts[n], schema) for n in names])

    def _sum_series(self, function: Any, *arguments: Any) -> dict[str, pd.Series]:
        """Apply a function that returns named series to each partition, and add the series up by label."""
        results = self._map(function, *arguments)
        return {k: pd.concat([r[k] for r in results]).groupby(level=0, dropna=False).sum() for k in results[0]}

    def _map(self, function: Any, *arguments: Any) -> Any:
        """The results of ``function(partition, *arguments)``, one for each partition."""
        # bound beforehand: as arguments of their own, Dask would search schema and quantiles for Dask objects each time
        work = self._dask.delayed(partial(_apply, function, arguments), pure=False, traverse=False)
        return self._dask.compute(*(work(partition) for partition in self._partitions))

    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        columns = [(self.columns[i], bins, self._features[self.columns[i].name]) for i, bins in coded]
        frames = self._map(_count_partition, columns, self._schema)
        names = [f"c{k}" for k in range(len(coded))]
        groups = pd.concat(frames).groupby(names, as_index=False)["n"].sum()
        return [groups[name].to_numpy(np.int64) for name in names], groups["n"].to_numpy(np.int64)

    def correlation(self) -> Correlation:
        """Correlations of the terms of all columns, from the sums of each partition."""
        columns = [(c, self._features[c.name]) for c in self.columns]
        products: CrossProducts
        products, *others = self._map(_partition_products, columns, self._schema)
        for other in others:
            products.merge(other)
        return products.correlation()


def _apply(function: Any, arguments: tuple[Any, ...], partition: pd.DataFrame) -> Any:
    return function(partition, *arguments)


def _read_column(partition: pd.DataFrame, column: Column, feature: Feature | None, schema: Schema) -> AnyArray:
    """One column of a partition as codes or floats, ``(rows,)``; ``feature`` is None for the target."""
    raw = partition[column.name]
    if schema.missing and raw.dtype.kind not in "iuf":
        raw = raw.mask(raw.isin(schema.missing))
    if isinstance(column, CategoricalColumn):
        words = to_words(raw)
        return column.read(words.map(dict(schema.merge)) if feature is None and schema.merge else words)
    if feature is not None and feature.words:
        raw = raw.map({level: float(i) for i, level in enumerate(feature.levels)})
    return column.read(raw)


def _value_counts(partition: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series]:
    """How often each value of each column occurs, missing ones included."""
    return {n: partition[n].value_counts(dropna=False) for n in names}


def _count_partition(
    partition: pd.DataFrame, columns: Sequence[tuple[Column, int, Feature | None]], schema: Schema
) -> pd.DataFrame:
    """Number of rows ``n`` of each combination of the columns' codes ``c0``, ``c1``, …; without missing values."""
    codes = {
        f"c{k}": column.code(_read_column(partition, column, feature, schema), bins)
        for k, (column, bins, feature) in enumerate(columns)
    }
    frame = pd.DataFrame(codes)
    known = frame[(frame >= 0).all(axis=1)]
    return known.groupby(list(codes), as_index=False).size().rename(columns={"size": "n"})


def _partition_products(
    partition: pd.DataFrame, columns: Sequence[tuple[Column, Feature | None]], schema: Schema
) -> CrossProducts:
    """Sums and products of the terms of one partition."""
    return CrossProducts([c for c, _ in columns]).add([_read_column(partition, c, f, schema) for c, f in columns])


def _fit_column(name: str, feature: Feature | None, counts: pd.Series, schema: Schema) -> Column:
    """A column from how often each of its raw values occurs; ``feature`` is None for the target."""
    values = pd.Series(counts.index).mask(pd.Series(counts.index).isin(schema.missing))
    rows = pd.Series(counts.to_numpy())
    if feature is None or is_categorical(feature, int(values.nunique())):
        words = to_words(values)
        words = words.map(dict(schema.merge)) if feature is None and schema.merge else words
        levels = {str(word): int(count) for word, count in rows.groupby(words).sum().items()}
        return CategoricalColumn.fit(name, levels, bool(words.isna().any()))
    if feature.words:
        values = values.map({level: float(i) for i, level in enumerate(feature.levels)})
    return ContinuousColumn.fit(name, np.repeat(values.to_numpy(float), rows), [float(c) for c in feature.codes])
