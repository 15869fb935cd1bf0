"""A Dask frame, on this machine or a cluster: partitions send back counts and sums only.

discover(DaskRows(dask_frame, schema))
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import Numbers, Words
from edfa.blanket.counts import Column, Correlation, Gram
from edfa.blanket.opening import is_counted
from edfa.blanket.remote import Remote
from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.data.validate import to_words
from edfa.errors import ColumnError, MissingExtraError, hint
from edfa.typing import AnyArray

__all__ = ["DaskRows"]


class DaskRows(Remote):
    """A Dask frame, on this machine or a cluster (``edfa[cluster]``); partitions send back counts and sums only."""

    def __init__(self, frame: Any, schema: Schema) -> None:
        try:
            self._dask: Any = import_module("dask")
        except ImportError:
            raise MissingExtraError("counting on a cluster", "cluster") from None
        self.target = schema.target
        self._parts = frame.to_delayed()
        names = sorted([*schema.names, schema.target])
        if absent := [n for n in names if n not in frame.columns]:
            raise ColumnError(f"the frame has no column {absent[0]!r}{hint(absent[0], frame.columns)}")
        self._features = {n: None if n == schema.target else schema[n] for n in names}
        self._schema = schema
        counts = self._sum(_value_counts, names)
        self.n = int(counts[names[0]].sum())
        fitted = [_from_counts(n, self._features[n], counts[n], schema) for n in names]
        self._keep(fitted)

    def _sum(self, function: Any, *arguments: Any) -> dict[str, pd.Series]:
        """Series of every partition, added up by label."""
        results = self._map(function, *arguments)
        return {k: pd.concat([r[k] for r in results]).groupby(level=0, dropna=False).sum() for k in results[0]}

    def _map(self, function: Any, *arguments: Any) -> Any:
        work = self._dask.delayed(function, pure=False)
        return self._dask.compute(*(work(part, *arguments) for part in self._parts))

    def _groups(self, which: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        columns = [(self.columns[i], bins, self._features[self.columns[i].name]) for i, bins in which]
        frames = self._map(_group_part, columns, self._schema)
        names = [f"c{k}" for k in range(len(which))]
        groups = pd.concat(frames).groupby(names, as_index=False)["n"].sum()
        return [groups[name].to_numpy(np.int64) for name in names], groups["n"].to_numpy(np.int64)

    def correlation(self) -> Correlation:
        """Each partition's sums, added up."""
        columns = [(c, self._features[c.name]) for c in self.columns]
        first, *rest = self._map(_gram_part, columns, self._schema)
        for other in rest:
            first.merge(other)
        found: Correlation = first.correlation()
        return found


def _values(part: pd.DataFrame, column: Column, feature: Feature | None, schema: Schema) -> Any:
    """One column of a partition as codes or floats."""
    raw = part[column.name]
    if schema.missing and raw.dtype.kind not in "iuf":
        raw = raw.mask(raw.isin(schema.missing))
    if isinstance(column, Words):
        words = to_words(raw)
        return column.read(words.map(dict(schema.merge)) if feature is None and schema.merge else words)
    if feature is not None and feature.words:
        raw = raw.map({level: float(i) for i, level in enumerate(feature.levels)})
    return column.read(raw)


def _value_counts(part: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series]:
    return {n: part[n].value_counts(dropna=False) for n in names}


def _group_part(
    part: pd.DataFrame, columns: Sequence[tuple[Column, int, Feature | None]], schema: Schema
) -> pd.DataFrame:
    codes = {f"c{k}": c.code(_values(part, c, f, schema), bins) for k, (c, bins, f) in enumerate(columns)}
    frame = pd.DataFrame(codes)
    known = frame[(frame >= 0).all(axis=1)]
    return known.groupby(list(codes), as_index=False).size().rename(columns={"size": "n"})


def _gram_part(part: pd.DataFrame, columns: Sequence[tuple[Column, Feature | None]], schema: Schema) -> Gram:
    return Gram([c for c, _ in columns]).add([_values(part, c, f, schema) for c, f in columns])


def _from_counts(name: str, feature: Feature | None, counts: pd.Series, schema: Schema) -> Column:
    """A column from how often each value occurs."""
    values = pd.Series(counts.index).mask(pd.Series(counts.index).isin(schema.missing))
    number = pd.Series(counts.to_numpy())
    if feature is None or is_counted(feature, int(values.nunique())):
        words = to_words(values)
        words = words.map(dict(schema.merge)) if feature is None and schema.merge else words
        known = number.groupby(words).sum()
        return Words.fit(name, {str(word): int(count) for word, count in known.items()}, bool(words.isna().any()))
    if feature.words:
        values = values.map({level: float(i) for i, level in enumerate(feature.levels)})
    return Numbers.fit(name, np.repeat(values.to_numpy(float), number), [float(c) for c in feature.codes])
