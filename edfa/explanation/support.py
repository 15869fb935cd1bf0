"""The values a feature takes among training people, and which of them are worth trying on a model."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from edfa.errors import DataError
from edfa.predictors.base import Predictor
from edfa.predictors.cache import ModelCache
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Grid", "Support", "Tries"]

GRID = 64  # values tried of a feature that has more, where the model does not tell its cells


@dataclass(frozen=True, eq=False)
class Tries:
    """Values of one feature to try, in order.

    A try stands for all values from ``lower`` up to, not including, ``upper``: the model cannot tell them apart (or,
    where that is not known, for itself alone: both are its own value). ``low`` and ``high`` are the least and largest
    of these that training people have, NaN where none has one; ``weight`` is the share of training people who do.
    """

    value: Float32Array
    weight: Float64Array
    low: Float32Array
    high: Float32Array
    lower: Float32Array
    upper: Float32Array

    def __len__(self) -> int:
        return len(self.value)

    def place(self, values: Float32Array) -> IntArray:
        """Which try stands for each value; -1: none does."""
        if np.isneginf(self.lower[0]):
            return np.searchsorted(self.upper, values, side="right")
        found = np.minimum(np.searchsorted(self.value, values), len(self) - 1)
        return np.where(self.value[found] == values, found, -1)

    def mirrored(self) -> "Tries":
        """The same with every sign turned, in order again."""
        value, low, high, lower, upper = (
            -part[::-1] for part in (self.value, self.low, self.high, self.lower, self.upper)
        )
        return Tries(value, self.weight[::-1], high, low, upper, lower)


@dataclass(frozen=True, eq=False)
class Grid:
    """The tries of some features of people who know the same, one feature after the other.

    ``columns`` has the place of each of these features among the known ones.
    """

    features: tuple[int, ...]
    columns: IntArray
    tries: tuple[Tries, ...]
    parts: "dict[bytes, tuple[Grid, IntArray]]" = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> IntArray:
        """Where the tries of each feature start, then the end."""
        return np.cumsum([0, *(len(t) for t in self.tries)], dtype=np.intp)

    @cached_property
    def owner(self) -> IntArray:
        """Of each try, the place of its feature among those that are tried."""
        return np.repeat(np.arange(len(self.tries)), np.diff(self.starts))

    @cached_property
    def value(self) -> Float32Array:
        """Of each try, its value."""
        return self._join("value")

    @cached_property
    def lower(self) -> Float32Array:
        """Of each try, the least value that it stands for."""
        return self._join("lower")

    @cached_property
    def upper(self) -> Float32Array:
        """Of each try, the value up to which it stands for all."""
        return self._join("upper")

    def take(self, features: BoolArray) -> "tuple[Grid, IntArray]":
        """Some of the features, and which of all tries are theirs; kept, for the next people want the same."""
        key = features.tobytes()
        if key not in self.parts:
            kept = features[list(self.features)]
            places = np.flatnonzero(kept).tolist()
            some = Grid(
                tuple(self.features[k] for k in places), self.columns[kept], tuple(self.tries[k] for k in places)
            )
            self.parts[key] = some, np.flatnonzero(kept[self.owner])
        return self.parts[key]

    def _join(self, name: str) -> Float32Array:
        return np.concatenate([np.zeros(0, dtype=np.float32), *(getattr(t, name) for t in self.tries)])

    @cached_property
    def told(self) -> tuple[bool, ...]:
        """Of each feature, whether the model tells its cells."""
        return tuple(bool((t.lower < t.upper).all()) for t in self.tries)


@dataclass(frozen=True, eq=False)
class Support:
    """Every value of every column of the training rows, with its share; ``whole`` are those of which all are tried.

    Examples
    --------
    >>> support = Support.of(np.array([[1, 0], [1, 1], [3, 1], [5, 1]], dtype=np.float32))
    >>> support.values[0], support.shares[0]
    (array([1., 3., 5.], dtype=float32), array([0.5 , 0.25, 0.25]))
    """

    values: tuple[Float32Array, ...]
    shares: tuple[Float64Array, ...]
    whole: tuple[int, ...] = ()
    cache: ModelCache = field(default_factory=ModelCache, repr=False)

    @classmethod
    def of(cls, rows: Float32Array, whole: Iterable[int] = (), *, cache: ModelCache | None = None) -> "Support":
        """The support of encoded training rows; ``whole`` names columns whose values have no order to thin out by.

        What is worked out from it for a model goes into ``cache``, a new one unless given.
        """
        if not len(rows):
            raise DataError("the support of a feature is what training people have; there are none")
        found = [np.unique(column[~np.isnan(column)], return_counts=True) for column in np.asarray(rows).T]
        return cls(
            tuple(v for v, _ in found), tuple(c / c.sum() for _, c in found), tuple(whole), cache or ModelCache()
        )

    def tries(self, predictor: Predictor, mask: BoolArray, feature: int) -> Tries:
        """Where the model tells its cells, one value of each: nothing is sampled and nothing missed.

        Otherwise every value, or of many the medians of 64 groups of about the same weight.
        """
        values, shares = self.values[feature], self.shares[feature]
        if (cuts := predictor.cells(mask, feature)) is not None:
            return _one_a_cell(values, shares, cuts)
        if len(values) > GRID and feature not in self.whole:
            values, shares = _grid(values, shares)
        return Tries(values, shares, values, values, values, values)

    def grid(self, predictor: Predictor, mask: BoolArray, asked: BoolArray) -> Grid:
        """The tries of the features that are asked for and known; kept for the next people."""

        def make() -> Grid:
            known = np.flatnonzero(mask)
            columns = np.flatnonzero(asked[known])
            features = tuple(int(j) for j in known[columns])
            return Grid(features, columns, tuple(self.tries(predictor, mask, j) for j in features))

        return self.cache.get(predictor, mask, ("grid", asked.tobytes()), make)


def _one_a_cell(values: Float32Array, shares: Float64Array, cuts: Float32Array) -> Tries:
    """Cells without a training person are tried too, so that what is said of an interval holds all through it."""
    cells = len(cuts) + 1
    start = np.searchsorted(values, cuts, side="left")
    first, last = np.concatenate([[0], start]), np.concatenate([start, [len(values)]]) - 1
    held = first <= last
    low = np.where(held, values[np.minimum(first, len(values) - 1)], np.nan).astype(np.float32)
    high = np.where(held, values[np.maximum(last, 0)], np.nan).astype(np.float32)
    lower, upper = np.full(cells, -np.inf, np.float32), np.full(cells, np.inf, np.float32)
    lower[1:], upper[:-1] = cuts, cuts
    inside = np.where(np.isfinite(lower), lower, np.nextafter(upper, np.float32(-np.inf)))
    weight = _add(np.searchsorted(cuts, values, side="right"), shares, cells)
    return Tries(np.where(held, low, inside).astype(np.float32), weight, low, high, lower, upper)


def _grid(values: Float32Array, shares: Float64Array) -> tuple[Float32Array, Float64Array]:
    """The weighted median of each of 64 groups, with the group's weight."""
    middle = np.cumsum(shares) - shares / 2
    group = np.minimum((middle * GRID).astype(int), GRID - 1)
    weight = _add(group, shares, GRID)
    places = np.searchsorted(middle, np.cumsum(weight) - weight / 2)
    kept = np.flatnonzero(weight > 0)
    found, back = np.unique(np.minimum(places[kept], len(values) - 1), return_inverse=True)
    return values[found], _add(back, weight[kept], len(found))


def _add(places: IntArray, shares: Float64Array, count: int) -> Float64Array:
    return np.bincount(places, weights=shares, minlength=count).astype(float)
