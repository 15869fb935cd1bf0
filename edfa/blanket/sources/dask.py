"""A Dask frame, on this machine or on a cluster: partitions send back counts and sums only.

discover(DaskRows(dask_frame, schema))
"""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import CategoricalColumn, Column, ContinuousColumn, is_categorical
from edfa.blanket.sources.base import RemoteSource, check_outcome, validate_distinct
from edfa.blanket.sources.correlation import Correlation, CrossProducts
from edfa.data.schema import Schema
from edfa.data.validate import as_words, to_words
from edfa.errors import ColumnError, EmptyTableError, MissingExtraError, SettingError, hint
from edfa.typing import AnyArray

__all__ = ["DaskRows"]

Translation = Mapping[Any, Any] | None
"""What the raw values of a column mean: words, or numbers; None: what they are."""


class DaskRows(RemoteSource):
    """A Dask frame, on this machine or on a cluster (``edfa[cluster]``); partitions send back
    counts and sums only.

    The distinct values of each column are gathered once, so that quantiles are exact.
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
        self.target = schema.target
        self._partitions = frame.to_delayed()
        names = sorted([*schema.names, schema.target])
        held = [str(name) for name in frame.columns]
        if absent := [n for n in names if n not in held]:
            raise ColumnError(f"the frame has no column {absent[0]!r}{hint(absent[0], held)}")
        if twice := [n for n in names if held.count(n) > 1]:
            raise ColumnError(f"column {twice[0]!r} appears {held.count(twice[0])} times")
        counts = self._sum_series(_value_counts, names)
        self.n = int(counts[names[0]].sum())
        if not self.n:
            raise EmptyTableError("the frame has columns but no rows")
        read = {n: _fit_column(n, counts[n], schema) for n in names}
        self._translations = {n: translation for n, (_, translation) in read.items()}
        self._set_columns([column for column, _ in read.values()])

    def _sum_series(self, function: Any, *arguments: Any) -> dict[str, pd.Series]:
        """Apply a function that returns named series to each partition, and add the series up by
        label.
        """
        results = self._map(function, *arguments)
        return {
            k: pd.concat([r[k] for r in results]).groupby(level=0, dropna=False).sum()
            for k in results[0]
        }

    def _map(self, function: Any, *arguments: Any) -> Any:
        """The results of ``function(partition, *arguments)``, one for each partition."""
        # bound beforehand: as arguments of their own, Dask would search schema and quantiles for
        # Dask objects each time
        work = self._dask.delayed(partial(_apply, function, arguments), pure=False, traverse=False)
        return self._dask.compute(*(work(partition) for partition in self._partitions))

    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        columns = [
            (self.columns[i], bins, self._translations[self.columns[i].name]) for i, bins in coded
        ]
        frames = self._map(_count_partition, columns)
        names = [f"c{k}" for k in range(len(coded))]
        groups = pd.concat(frames).groupby(names, as_index=False)["n"].sum()
        return [groups[name].to_numpy(np.int64) for name in names], groups["n"].to_numpy(np.int64)

    def correlation(self) -> Correlation:
        """Correlations of the terms of all columns, from the sums of each partition."""
        columns = [(c, self._translations[c.name]) for c in self.columns]
        products: CrossProducts
        products, *others = self._map(_partition_products, columns)
        for other in others:
            products.merge(other)
        return products.correlation()


def _apply(function: Any, arguments: tuple[Any, ...], partition: pd.DataFrame) -> Any:
    return function(partition, *arguments)


def _read_column(partition: pd.DataFrame, column: Column, translation: Translation) -> AnyArray:
    """One column of a partition as codes or floats, ``(rows,)``."""
    raw = partition[column.name]
    return column.read(raw if translation is None else raw.astype(object).map(dict(translation)))


def _value_counts(partition: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series]:
    """How often each value of each column occurs, missing ones included."""
    try:
        return {n: partition[n].value_counts(dropna=False) for n in names}
    except TypeError:
        raise ColumnError(
            "a column holds lists or other collections; one value a cell is needed"
        ) from None


def _count_partition(
    partition: pd.DataFrame, columns: Sequence[tuple[Column, int, Translation]]
) -> pd.DataFrame:
    """Number of rows ``n`` of each combination of the columns' codes ``c0``, ``c1``, …; without
    missing values.
    """
    codes = {
        f"c{k}": column.code(_read_column(partition, column, translation), bins)
        for k, (column, bins, translation) in enumerate(columns)
    }
    frame = pd.DataFrame(codes)
    known = frame[(frame >= 0).all(axis=1)]
    return known.groupby(list(codes), as_index=False).size().rename(columns={"size": "n"})


def _partition_products(
    partition: pd.DataFrame, columns: Sequence[tuple[Column, Translation]]
) -> CrossProducts:
    """Sums and products of the terms of one partition."""
    return CrossProducts([c for c, _ in columns]).add(
        [_read_column(partition, c, t) for c, t in columns]
    )


def _fit_column(name: str, counts: pd.Series, schema: Schema) -> tuple[Column, Translation]:
    """A column, and the translation of its raw values, from how often each of these occurs.

    What a value means is decided once for the whole column: partitions differ in what they happen
    to hold.
    """
    raw, rows = pd.Series(counts.index), counts.to_numpy()
    if name == schema.target:
        words = to_words(raw if raw.dtype.kind in "iuf" else raw.mask(raw.isin(schema.missing)))
        labels = _rows_of(words, rows)
        check_outcome(
            {None if pd.isna(label) else label: count for label, count in labels.items()}, schema
        )
        merged = words.map(dict(schema.merge)) if schema.merge else words
        return _fit_levels(name, raw, merged, rows)
    feature = schema[name]
    values = validate_distinct(raw, feature, schema)
    if is_categorical(feature, int(values.nunique())):
        known = values.notna()
        words = pd.Series(pd.array([None] * len(values), dtype="str"))
        words[known] = as_words(values[known].to_numpy())
        return _fit_levels(name, raw, words, rows)
    if feature.words:
        values = values.map({level: float(i) for i, level in enumerate(feature.levels)})
    numbers, codes = (
        values.to_numpy(float),
        [] if feature.words else [float(c) for c in feature.codes],
    )
    column = ContinuousColumn.fit(name, np.repeat(numbers, rows), codes)
    return column, None if raw.dtype.kind in "iuf" else dict(
        zip(raw.tolist(), numbers.tolist(), strict=True)
    )


def _fit_levels(
    name: str, raw: pd.Series, words: pd.Series, rows: AnyArray
) -> tuple[Column, Translation]:
    levels = {
        str(word): count for word, count in _rows_of(words, rows).items() if not pd.isna(word)
    }
    missing = bool((rows[words.isna().to_numpy()] > 0).any())
    return CategoricalColumn.fit(name, levels, missing), dict(
        zip(raw.tolist(), words.tolist(), strict=True)
    )


def _rows_of(words: pd.Series, rows: AnyArray) -> dict[Any, int]:
    """The number of rows of each word; nulls are counted as one."""
    counted = pd.Series(rows).groupby(words.to_numpy(object), dropna=False).sum()
    return {word: int(count) for word, count in counted.items() if count}
