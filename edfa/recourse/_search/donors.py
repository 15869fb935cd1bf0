"""Training people as donors of values: what the current view decides about them, and which are nearest."""

from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from edfa.explanation.support import Support
from edfa.predictors.cache import ModelCache
from edfa.predictors.conditional import smallest
from edfa.recourse.searcher import SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["LIMIT", "Donors"]

Metric = Literal["euclidean", "cityblock"]
LIMIT = 10_000  # donors
KEPT = 24  # acquired sets, and sides of them, whose donors' places are held in memory
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

    donors: IntArray  # held here, since they are known by their identity
    axes: _Axes
    places: Float64Array
    norms: Float64Array


class Donors:
    """Donors for people who know any set of features; at most ``limit`` training people, drawn once.

    The distance is HEOM: numbers in units of their training range, a different category counts one; as a root of
    squares (``"euclidean"``) or a sum (``"cityblock"``, NICE's). Equal distances go by the order of the donors.
    """

    def __init__(
        self, rows: Float32Array, ordered: BoolArray, metric: Metric = "euclidean", limit: int = LIMIT
    ) -> None:
        self.number = np.sort(np.random.default_rng(0).permutation(len(rows))[:limit])
        self.rows = np.ascontiguousarray(rows[self.number])
        self.ordered, self.metric = ordered, metric
        self.support = Support.of(rows)
        self.scale = [float(np.ptp(values)) or 1.0 for values in self.support.values]
        self._views = ModelCache(4 * KEPT)
        self._spaces = ModelCache(KEPT)

    def decided(self, task: SearchProblem) -> IntArray:
        """What the task's view decides about every donor."""

        def decide() -> IntArray:
            return task.predictor.decide(task.ask(np.ascontiguousarray(self.rows[:, task.features])))

        found: IntArray = self._views.get(task.predictor, task.mask, "decisions", decide)
        return found

    def side(self, task: SearchProblem, now: int, truth: Int64Array | None = None) -> IntArray:
        """The donors who are where those who are decided ``now`` want to be: the same array for the same question.

        With the ``truth`` about the donors, only those of whom it is true.
        """

        def choose() -> tuple[IntArray, Any]:
            decided = self.decided(task)
            there = decided != now if task.wanted is None else decided == task.wanted
            if truth is not None:
                there &= np.asarray(task.predictor.classes_)[decided] == truth
            return np.flatnonzero(there), truth

        found: IntArray = self._views.get(task.predictor, task.mask, ("side", now, task.wanted, id(truth)), choose)[0]
        return found

    def nearest(self, task: SearchProblem, case: IntArray, donors: IntArray, k: int) -> IntArray:
        """The k nearest of these donors to each of these cases, nearest first; fewer where there are fewer.

        Where donors lie is kept for as long as the same array of them is asked about.
        """
        k = min(k, len(donors))
        found = np.empty((len(case), k), dtype=np.intp)
        if not k or not len(case):
            return found
        space = self._space(task, donors)
        step = max(1, BLOCK // len(donors))
        for first in range(0, len(case), step):
            part = slice(first, first + step)
            ours = self._place(space.axes, task.facts[case[part]])
            # What is the same for all donors of one case is left out: it does not change their order.
            if self.metric == "cityblock":
                found[part] = _smallest(cdist(ours, space.places, "cityblock"), k)
            else:
                found[part] = _smallest(space.norms - 2 * ours @ space.places.T, k)
        return donors[found]

    def gap(self, task: SearchProblem, rows: Float32Array) -> Float64Array:
        """How far rows are from the nearest donor of all (a root of squares)."""
        space, found = self._space(task, self._everyone), np.empty(len(rows))
        step = max(1, BLOCK // len(self.rows))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            ours = self._place(space.axes, rows[part])
            found[part] = (space.norms - 2 * ours @ space.places.T).min(axis=1) + np.einsum("ij,ij->i", ours, ours)
        return np.sqrt(np.maximum(np.round(found, 6), 0))

    @cached_property
    def _everyone(self) -> IntArray:
        return np.arange(len(self.rows))

    def _space(self, task: SearchProblem, donors: IntArray) -> _Space:
        def make() -> _Space:
            axes = self._axes(task.features)
            places = self._place(axes, self.rows[donors][:, task.features])
            # The last axis parts donors at the same distance by their order, whatever the batch.
            order = 1e-9 * np.arange(len(donors))
            places[:, -1] = np.sqrt(order) if self.metric == "euclidean" else order
            return _Space(donors, axes, places, np.einsum("ij,ij->i", places, places))

        return self._spaces.get(task.predictor, task.mask, ("space", id(donors)), make)

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
