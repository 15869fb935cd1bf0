"""Training people as donors of values: what the current view decides about them, and which are nearest."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from edfa.explanation.support import Support
from edfa.predictors.cache import ModelCache
from edfa.predictors.conditional import smallest
from edfa.recourse.searcher import SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["LIMIT", "Donors", "Side"]

Metric = Literal["euclidean", "cityblock"]
LIMIT = 10_000  # donors
BLOCK = 200_000  # distances at a time: few enough to stay in a processor's cache


class _Axes(NamedTuple):
    """Of people who know the same: a number has one axis, in units of its training range; a category one a level.

    Of each axis: the column among the known features, the range, whether it is of a level, and of which.
    """

    column: IntArray
    scale: Float32Array
    words: BoolArray
    level: Float32Array


class _Space(NamedTuple):
    """Where donors lie along these axes, and how far from the origin, squared."""

    axes: _Axes
    places: Float64Array
    norms: Float64Array


@dataclass(frozen=True, eq=False)
class Side:
    """Donors on one side of a decision, as indices into ``Donors.rows``."""

    donors: IntArray

    def __len__(self) -> int:
        return len(self.donors)


class Donors:
    """Donors for people who know any set of features; at most ``limit`` training people, drawn once.

    The distance is HEOM: numbers in units of their training range, a different category counts one; as a root of
    squares (``"euclidean"``) or a sum (``"cityblock"``, NICE's). Equal distances go by the order of the donors.
    """

    def __init__(
        self,
        rows: Float32Array,
        ordered: BoolArray,
        cache: ModelCache,
        metric: Metric = "euclidean",
        limit: int = LIMIT,
    ) -> None:
        self.number = np.sort(np.random.default_rng(0).permutation(len(rows))[:limit])
        self.rows = np.ascontiguousarray(rows[self.number])
        self.ordered, self.metric, self.cache = ordered, metric, cache
        self.support = Support.of(rows)
        self.scale = [float(np.ptp(values)) or 1.0 for values in self.support.values]

    def decided(self, problem: SearchProblem) -> IntArray:
        """What the task's view decides about every donor."""

        def decide() -> IntArray:
            return problem.predictor.decide(problem.predict(np.ascontiguousarray(self.rows[:, problem.features])))

        return self.cache.get(problem.predictor, problem.mask, ("decided", self), decide)

    def side(self, problem: SearchProblem, now: int, truth: Int64Array | None = None) -> Side:
        """The donors whose decision would be recourse for people who are decided ``now``.

        ``truth`` are the donors' own classes (donors,): then only those who are decided as they truly are.
        """

        def choose() -> Side:
            decided = self.decided(problem)
            there = decided != now if problem.desired_class is None else decided == problem.desired_class
            if truth is not None:
                there &= decided == truth
            return Side(np.flatnonzero(there))

        name = "side", self, now, problem.desired_class, truth is not None
        return self.cache.get(problem.predictor, problem.mask, name, choose)

    def nearest(self, problem: SearchProblem, case: IntArray, side: Side, k: int) -> IntArray:
        """The k nearest of these donors to each of these cases, nearest first; fewer where there are fewer.

        Where donors lie is kept for as long as the same array of them is asked about.
        """
        k = min(k, len(side))
        found = np.empty((len(case), k), dtype=np.intp)
        if not k or not len(case):
            return found
        space = self._space(problem, side)
        step = max(1, BLOCK // len(side))
        for first in range(0, len(case), step):
            part = slice(first, first + step)
            ours = self._place(space.axes, problem.facts[case[part]])
            # What is the same for all donors of one case is left out: it does not change their order.
            if self.metric == "cityblock":
                found[part] = _smallest(cdist(ours, space.places, "cityblock"), k)
            else:
                found[part] = _smallest(space.norms - 2 * ours @ space.places.T, k)
        return side.donors[found]

    def gap(self, problem: SearchProblem, rows: Float32Array) -> Float64Array:
        """How far rows are from the nearest donor of all (a root of squares)."""
        space, found = self._space(problem, self._everyone), np.empty(len(rows))
        step = max(1, BLOCK // len(self.rows))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            ours = self._place(space.axes, rows[part])
            found[part] = (space.norms - 2 * ours @ space.places.T).min(axis=1) + np.einsum("ij,ij->i", ours, ours)
        return np.sqrt(np.maximum(np.round(found, 6), 0))

    @cached_property
    def _everyone(self) -> Side:
        return Side(np.arange(len(self.rows)))

    def _space(self, problem: SearchProblem, side: Side) -> _Space:
        def make() -> _Space:
            axes = self._axes(problem.features)
            places = self._place(axes, self.rows[side.donors][:, problem.features])
            # The last axis parts donors at the same distance by their order, whatever the batch.
            order = 1e-9 * np.arange(len(side))
            places[:, -1] = np.sqrt(order) if self.metric == "euclidean" else order
            return _Space(axes, places, np.einsum("ij,ij->i", places, places))

        return self.cache.get(problem.predictor, problem.mask, ("space", self, side), make, large=True)

    def _axes(self, features: IntArray) -> _Axes:
        one = np.zeros(1, dtype=np.float32)
        levels = [one if self.ordered[f] else self.support.values[f] for f in features]
        column = np.repeat(np.arange(len(levels)), np.array([len(part) for part in levels], dtype=np.intp))
        scale = np.array(self.scale, dtype=np.float32)[features[column]]
        return _Axes(column, scale, ~self.ordered[features[column]], np.concatenate([one[:0], *levels]))

    def _place(self, axes: _Axes, known: Float32Array) -> Float64Array:
        """Where rows lie; they have no order among the donors."""
        half = np.sqrt(0.5) if self.metric == "euclidean" else 0.5
        told = known[:, axes.column]
        places = np.zeros((len(known), len(axes.column) + 1))
        places[:, :-1] = np.where(axes.words, (told == axes.level) * half, told / axes.scale)
        return places


def _smallest(distance: Float64Array, k: int) -> IntArray:
    """The places of the k smallest of each row, in order."""
    near, row = smallest(distance, k), np.arange(len(distance))[:, None]
    return near[row, distance[row, near].argsort(axis=1)]
