"""The values that each feature takes among training people, and which of them are worth asking a
model about.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from edfa.errors import DataError
from edfa.predictors.base import Predictor
from edfa.predictors.cache import ModelCache
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["CandidateGrid", "CandidateValues", "Support"]

GRID = 64


@dataclass(frozen=True, eq=False)
class CandidateValues:
    """Candidate values of one feature in ascending order, each with the interval of values that it
    represents.

    All arrays are (candidate values,), in encoded units.

    Parameters
    ----------
    value
        The value that the model is asked about.
    weight
        The share of training people whose value is in the interval.
    low, high
        The least and the largest training value in the interval; NaN if there is none.
    lower, upper
        The interval, ``upper`` excluded: a cell whose values the model cannot tell apart. If the
        model's cells are not known, a candidate represents itself alone, and both are ``value``.
    """

    value: Float32Array
    weight: Float64Array
    low: Float32Array
    high: Float32Array
    lower: Float32Array
    upper: Float32Array

    def __len__(self) -> int:
        return len(self.value)

    def index_of(self, values: Float32Array) -> IntArray:
        """The index of the candidate that represents each of ``values``, in the same shape; -1 if
        none does.
        """
        if np.isneginf(self.lower[0]):
            return np.searchsorted(self.upper, values, side="right")
        index = np.minimum(np.searchsorted(self.value, values), len(self) - 1)
        return np.where(self.value[index] == values, index, -1)

    def negated(self) -> "CandidateValues":
        """The candidates of the feature times -1, in ascending order again."""
        value, low, high, lower, upper = (
            -part[::-1] for part in (self.value, self.low, self.high, self.lower, self.upper)
        )
        return CandidateValues(value, self.weight[::-1], high, low, upper, lower)


@dataclass(frozen=True, eq=False)
class CandidateGrid:
    """The candidate values of several features of people who know the same, one feature after the
    other.

    Parameters
    ----------
    features
        The indices of these features, ascending.
    columns
        The position of each among the known features, (features,).
    candidate_values
        The candidates of each.
    subsets
        Cache of ``take``.
    """

    features: tuple[int, ...]
    columns: IntArray
    candidate_values: tuple[CandidateValues, ...]
    subsets: "dict[bytes, tuple[CandidateGrid, IntArray]]" = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> IntArray:
        """The index of each feature's first candidate, then the number of candidates, (features +
        1,).
        """
        return np.cumsum([0, *(len(values) for values in self.candidate_values)], dtype=np.intp)

    @cached_property
    def owner(self) -> IntArray:
        """The position in ``features`` of the feature of each candidate, (candidate values,)."""
        return np.repeat(np.arange(len(self.candidate_values)), np.diff(self.starts))

    @cached_property
    def value(self) -> Float32Array:
        """The value of each candidate, (candidate values,)."""
        return self._join("value")

    @cached_property
    def lower(self) -> Float32Array:
        """The least value that each candidate represents, (candidate values,)."""
        return self._join("lower")

    @cached_property
    def upper(self) -> Float32Array:
        """The value up to which each candidate represents all, (candidate values,)."""
        return self._join("upper")

    def take(self, features: BoolArray) -> "tuple[CandidateGrid, IntArray]":
        """The grid of some features, and the indices of their candidates in this one; cached.

        ``features`` marks them among all features, (all features,).
        """
        key = features.tobytes()
        if key not in self.subsets:
            chosen = features[list(self.features)]
            positions = np.flatnonzero(chosen).tolist()
            subset = CandidateGrid(
                tuple(self.features[k] for k in positions),
                self.columns[chosen],
                tuple(self.candidate_values[k] for k in positions),
            )
            self.subsets[key] = subset, np.flatnonzero(chosen[self.owner])
        return self.subsets[key]

    def _join(self, name: str) -> Float32Array:
        """One array of every feature's candidates after the other."""
        return np.concatenate(
            [np.zeros(0, dtype=np.float32), *(getattr(v, name) for v in self.candidate_values)]
        )

    @cached_property
    def has_cells(self) -> tuple[bool, ...]:
        """Whether each feature's candidates are the cells of the model, so that intervals between
        them are known.
        """
        return tuple(bool((values.lower < values.upper).all()) for values in self.candidate_values)


@dataclass(frozen=True, eq=False)
class Support:
    """Every value of every feature among training people, with its share of people.

    Parameters
    ----------
    values, shares
        For each feature its distinct values in ascending order, and the share of training people
        with each.
    unordered
        Features whose values are all candidates, whatever their number: they have no order to thin
        out by.
    cache
        Results that are worked out once for a model and a set of known features.
    most
        The number of candidate values of a feature that has more, if the model does not say where
        its cells are.

    Examples
    --------
    >>> support = Support.of(np.array([[1, 0], [1, 1], [3, 1], [5, 1]], dtype=np.float32))
    >>> support.values[0], support.shares[0]
    (array([1., 3., 5.], dtype=float32), array([0.5 , 0.25, 0.25]))
    """

    values: tuple[Float32Array, ...]
    shares: tuple[Float64Array, ...]
    unordered: tuple[int, ...] = ()
    cache: ModelCache = field(default_factory=ModelCache, repr=False)
    most: int = GRID

    @classmethod
    def of(
        cls, rows: Float32Array, unordered: Iterable[int] = (), *, cache: ModelCache | None = None
    ) -> "Support":
        """The support of encoded training rows, (training people, features); NaN is not a value.

        ``unordered`` are the indices of categorical features, ``cache`` a cache to share; a new one
        if None.
        """
        if not len(rows):
            raise DataError("the support of a feature is what training people have; there are none")
        counted = [
            np.unique(column[~np.isnan(column)], return_counts=True)
            for column in np.asarray(rows).T
        ]
        return cls(
            tuple(values for values, _ in counted),
            tuple(counts / counts.sum() for _, counts in counted),
            tuple(unordered),
            ModelCache() if cache is None else cache,
        )

    def candidate_values(
        self, predictor: Predictor, mask: BoolArray, feature: int
    ) -> CandidateValues:
        """The candidate values of a feature for a model that knows the features in ``mask``,
        (features,).

        One value of each cell, if the model says where its cells are: then nothing is sampled and
        nothing missed. Otherwise every training value, or, if there are many, the medians of groups
        of about the same weight.
        """
        values, shares = self.values[feature], self.shares[feature]
        if (cuts := predictor.cells(mask, feature)) is not None:
            return _one_per_cell(values, shares, cuts)
        if len(values) > self.most and feature not in self.unordered:
            values, shares = _group_medians(values, shares, self.most)
        return CandidateValues(values, shares, values, values, values, values)

    def grid(self, predictor: Predictor, mask: BoolArray, features: BoolArray) -> CandidateGrid:
        """The candidate values of the known features (``mask``) among ``features``, both
        (features,); cached.
        """

        def make() -> CandidateGrid:
            known = np.flatnonzero(mask)
            columns = np.flatnonzero(features[known])
            swept = tuple(int(j) for j in known[columns])
            return CandidateGrid(
                swept, columns, tuple(self.candidate_values(predictor, mask, j) for j in swept)
            )

        return self.cache.get(predictor, mask, ("grid", features.tobytes()), make)


def _one_per_cell(
    values: Float32Array, shares: Float64Array, cuts: Float32Array
) -> CandidateValues:
    """One candidate for each cell between the thresholds ``cuts``.

    A cell without a training person has one too, so that what is said of an interval is true all
    through it.
    """
    cells = len(cuts) + 1
    start = np.searchsorted(values, cuts, side="left")
    first, last = np.concatenate([[0], start]), np.concatenate([start, [len(values)]]) - 1
    occupied = first <= last
    low = np.where(occupied, values[np.minimum(first, len(values) - 1)], np.nan).astype(np.float32)
    high = np.where(occupied, values[np.maximum(last, 0)], np.nan).astype(np.float32)
    lower, upper = np.full(cells, -np.inf, np.float32), np.full(cells, np.inf, np.float32)
    lower[1:], upper[:-1] = cuts, cuts
    inside = np.where(np.isfinite(lower), lower, np.nextafter(upper, np.float32(-np.inf)))
    weight = _sum_by_group(np.searchsorted(cuts, values, side="right"), shares, cells)
    return CandidateValues(
        np.where(occupied, low, inside).astype(np.float32), weight, low, high, lower, upper
    )


def _group_medians(
    values: Float32Array, shares: Float64Array, groups: int
) -> tuple[Float32Array, Float64Array]:
    """The weighted median of each of some groups, with the group's weight."""
    middle = np.cumsum(shares) - shares / 2
    group = np.minimum((middle * groups).astype(int), groups - 1)
    weight = _sum_by_group(group, shares, groups)
    medians = np.searchsorted(middle, np.cumsum(weight) - weight / 2)
    filled = np.flatnonzero(weight > 0)
    chosen, group_of = np.unique(np.minimum(medians[filled], len(values) - 1), return_inverse=True)
    return values[chosen], _sum_by_group(group_of, weight[filled], len(chosen))


def _sum_by_group(group: IntArray, shares: Float64Array, count: int) -> Float64Array:
    """The sum of the shares in each of ``count`` groups."""
    return np.bincount(group, weights=shares, minlength=count).astype(float)
