"""A Dask frame, on this machine or on a cluster: ``discover(DaskRows(dask_frame, schema))``.

The functions at the end of this module run where the partitions are; they send back counts and sums
only.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import Column, ContinuousColumn
from edfa.blanket.sources.base import (
    RemoteSource,
    Translation,
    fit_levels,
    read_column,
    read_distinct,
)
from edfa.blanket.sources.correlation import Correlation, CrossProducts
from edfa.data.schema import Schema
from edfa.data.values import check_unique
from edfa.errors import ColumnError, EmptyTableError, MissingExtraError, SettingError
from edfa.typing import AnyArray


class DaskRows(RemoteSource):
    """A Dask frame, on this machine or on a cluster (``edfa[cluster]``); partitions send back
    counts and sums only.

    The distinct values of each column are gathered once, so that quantiles are exact.

    Parameters
    ----------
    frame
        A Dask frame.
    schema
        The features and the outcome; other columns of the frame are not read.

    Raises
    ------
    MissingExtraError
        If Dask is not installed.
    ColumnError, TargetError, EmptyTableError
        If the frame lacks a column or has no rows, or its values do not fit the card.
    """

    def __init__(self, frame: Any, schema: Schema) -> None:
        try:
            self._dask: Any = import_module("dask")
        except ImportError:
            raise MissingExtraError("counting on a cluster", "cluster") from None
        if not hasattr(frame, "to_delayed"):
            raise SettingError(
                f"a Dask frame is needed, not a {type(frame).__name__}; discover takes "
                "others as they are"
            )
        self._partitions = frame.to_delayed()
        held = [str(name) for name in frame.columns]
        names = self._find_columns(schema, held, "the frame")
        check_unique(name for name in held if name in names)
        counts = self._value_counts(names)
        self.n = int(counts[names[0]].sum())
        if not self.n:
            raise EmptyTableError("the frame has columns but no rows")
        self._set_columns([self._fit(n, counts[n], schema) for n in names])

    def _fit(self, name: str, counts: pd.Series, schema: Schema) -> Column:
        """A column from how often each of its values occurs; its translation is remembered."""
        raw, rows = pd.Series(counts.index), counts.to_numpy()
        values, categorical = read_distinct(name, raw, rows, schema)
        as_they_are = not categorical and raw.dtype.kind in "iuf"
        self._translations[name] = (
            None if as_they_are else dict(zip(raw.tolist(), values.tolist(), strict=True))
        )
        if categorical:
            return fit_levels(name, values, rows)
        numbers = np.repeat(values.to_numpy(float), rows)
        return ContinuousColumn.fit(name, numbers, schema[name].codes)

    def _value_counts(self, names: list[str]) -> dict[str, pd.Series]:
        """How often each value of each column occurs."""
        parts = self._map(_count_values, names)
        return {
            n: pd.concat([part[n] for part in parts]).groupby(level=0, dropna=False).sum()
            for n in names
        }

    def _map(self, function: Callable[..., Any], columns: Sequence[Any]) -> Any:
        """The results of ``function(partition, columns)``, one for each partition."""
        # Arguments are bound: Dask would search schema and quantiles for Dask objects each time.
        bound = partial(function, columns=columns)
        work = self._dask.delayed(bound, pure=False, traverse=False)
        return self._dask.compute(*(work(partition) for partition in self._partitions))

    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        columns = [
            (self.columns[i], bins, self._translations[self.columns[i].name]) for i, bins in coded
        ]
        groups = pd.concat(self._map(_count_partition, columns))
        return [groups[k].to_numpy() for k in range(len(coded))], groups["n"].to_numpy()

    def correlation(self) -> Correlation:
        """Correlations of the terms of all columns, from the sums of each partition."""
        columns = [(c, self._translations[c.name]) for c in self.columns]
        products: CrossProducts
        products, *others = self._map(_partition_products, columns)
        for other in others:
            products.merge(other)
        return products.correlation()


def _count_values(partition: pd.DataFrame, columns: Sequence[str]) -> dict[str, pd.Series]:
    """How often each value of each column, by name, occurs, missing ones included."""
    try:
        return {name: partition[name].value_counts(dropna=False) for name in columns}
    except TypeError:
        raise ColumnError(
            "a column holds lists or other collections; one value a cell is needed"
        ) from None


def _count_partition(
    partition: pd.DataFrame, columns: Sequence[tuple[Column, int, Translation]]
) -> pd.DataFrame:
    """Number of rows ``n`` of each combination of the columns' codes, which are numbered."""
    codes = {
        k: column.code(read_column(partition[column.name], column, translation), bins)
        for k, (column, bins, translation) in enumerate(columns)
    }
    return pd.DataFrame(codes).groupby(list(codes)).size().rename("n").reset_index()


def _partition_products(
    partition: pd.DataFrame, columns: Sequence[tuple[Column, Translation]]
) -> CrossProducts:
    """Sums and products of the terms of one partition."""
    return CrossProducts([c for c, _ in columns]).add(
        [read_column(partition[c.name], c, t) for c, t in columns]
    )
