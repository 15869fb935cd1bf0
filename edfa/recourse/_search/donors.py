"""Training people as donors of values: what the model decides about them from what is known, and
who is nearest.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from edfa.explanation.necessity import Support
from edfa.predictors.conditional import smallest
from edfa.recourse.searcher import SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["LIMIT", "Donors", "Side"]

Metric = Literal["euclidean", "cityblock"]
LIMIT = 10_000  # donors
BLOCK = 200_000  # distances at a time: few enough to stay in a processor's cache


@dataclass(frozen=True, eq=False)
class Side:
    """Donors on one side of a decision, as indices into ``Donors.rows``; what is cached for it goes
    by its identity.
    """

    donors: IntArray

    def __len__(self) -> int:
        return len(self.donors)


class Donors:
    """Donors for people who know any set of features; at most ``limit`` training people, drawn
    once.

    The distance is HEOM: numbers in units of their training range, a different category counts one;
    as a root of squares (``"euclidean"``) or a sum (``"cityblock"``, NICE's). Equal distances go by
    the order of the donors.

    Parameters
    ----------
    rows
        Encoded training rows, (training people, features).
    ordered
        Which features are no categories, (features,).
    support
        The values of these rows; what is worked out for a model goes into its cache.
    metric, limit
        How features' distances add up; the largest number of donors.

    Attributes
    ----------
    row_number
        The training row that each donor is, (donors,).
    rows
        The donors' facts, (donors, features).
    value_range
        The distance between the extremes of each feature, (features,).
    """

    def __init__(
        self,
        rows: Float32Array,
        ordered: BoolArray,
        support: Support,
        metric: Metric = "euclidean",
        limit: int = LIMIT,
    ) -> None:
        self.row_number = np.sort(np.random.default_rng(0).permutation(len(rows))[:limit])
        self.rows = np.ascontiguousarray(rows[self.row_number])
        self.ordered, self.support, self.metric, self.cache = (
            ordered,
            support,
            metric,
            support.cache,
        )
        self.value_range = np.array([float(np.ptp(values)) or 1.0 for values in support.values])

    def decisions(self, problem: SearchProblem) -> IntArray:
        """What the model decides about each donor from the features that the problem's people know,
        (donors,).
        """

        def decide() -> IntArray:
            return problem.predictor.decide(
                problem.predict(np.ascontiguousarray(self.rows[:, problem.features]))
            )

        return self.cache.get(problem.predictor, problem.mask, ("donor decisions", self), decide)

    def side(
        self, problem: SearchProblem, decision: int, true_classes: Int64Array | None = None
    ) -> Side:
        """The donors whose decision would be recourse for people with this ``decision``.

        ``true_classes`` are the donors' own classes (donors,): if given, only donors who are
        decided as they truly are.
        """

        def choose() -> Side:
            decisions = self.decisions(problem)
            chosen = (
                decisions != decision
                if problem.desired_class is None
                else decisions == problem.desired_class
            )
            if true_classes is not None:
                chosen &= decisions == true_classes
            return Side(np.flatnonzero(chosen))

        name = "side", self, decision, problem.desired_class, true_classes is not None
        return self.cache.get(problem.predictor, problem.mask, name, choose)

    def nearest(self, problem: SearchProblem, case: IntArray, side: Side, k: int) -> IntArray:
        """The k nearest donors of ``side`` to each of these cases, nearest first: indices (cases,
        k); fewer if few.
        """
        k = min(k, len(side))
        nearest = np.empty((len(case), k), dtype=np.intp)
        if not k or not len(case):
            return nearest
        space = self._space(problem, side)
        step = max(1, BLOCK // len(side))
        for first in range(0, len(case), step):
            part = slice(first, first + step)
            ours = self._coordinates(space.axes, problem.facts[case[part]])
            # What is the same for all donors of one case is left out: it does not change their
            # order.
            if self.metric == "cityblock":
                nearest[part] = _smallest(cdist(ours, space.coordinates, "cityblock"), k)
            else:
                nearest[part] = _smallest(space.norms - 2 * ours @ space.coordinates.T, k)
        return side.donors[nearest]

    def distance(self, problem: SearchProblem, rows: Float32Array) -> Float64Array:
        """The distance of rows (rows, known features) from the nearest donor of all, as a root of
        squares, (rows,).
        """
        space, squares = self._space(problem, self._everyone), np.empty(len(rows))
        step = max(1, BLOCK // len(self.rows))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            ours = self._coordinates(space.axes, rows[part])
            least = (space.norms - 2 * ours @ space.coordinates.T).min(axis=1)
            squares[part] = least + np.einsum("ij,ij->i", ours, ours)
        return np.sqrt(np.maximum(np.round(squares, 6), 0))

    @cached_property
    def _everyone(self) -> Side:
        return Side(np.arange(len(self.rows)))

    def _space(self, problem: SearchProblem, side: Side) -> "_Space":
        """Where the donors of a side lie by what the problem's people know; cached."""

        def make() -> _Space:
            axes = self._axes(problem.features)
            coordinates = self._coordinates(axes, self.rows[side.donors][:, problem.features])
            # The last axis parts donors at the same distance by their order, whatever the batch.
            order = 1e-9 * np.arange(len(side))
            coordinates[:, -1] = np.sqrt(order) if self.metric == "euclidean" else order
            return _Space(axes, coordinates, np.einsum("ij,ij->i", coordinates, coordinates))

        return self.cache.get(
            problem.predictor, problem.mask, ("space", self, side), make, large=True
        )

    def _axes(self, features: IntArray) -> "_Axes":
        one = np.zeros(1, dtype=np.float32)
        levels = [one if self.ordered[f] else self.support.values[f] for f in features]
        column = np.repeat(
            np.arange(len(levels)), np.array([len(part) for part in levels], dtype=np.intp)
        )
        value_range = self.value_range.astype(np.float32)[features[column]]
        return _Axes(
            column, value_range, ~self.ordered[features[column]], np.concatenate([one[:0], *levels])
        )

    def _coordinates(self, axes: "_Axes", rows: Float32Array) -> Float64Array:
        """Where rows (rows, known features) lie, (rows, axes + 1); the last axis, the donors'
        order, is zero.
        """
        half = np.sqrt(0.5) if self.metric == "euclidean" else 0.5
        values = rows[:, axes.column]
        coordinates = np.zeros((len(rows), len(axes.column) + 1))
        coordinates[:, :-1] = np.where(
            axes.is_level, (values == axes.level) * half, values / axes.value_range
        )
        return coordinates


class _Axes(NamedTuple):
    """The axes of a space of distances: one for each number, one for each level of a category;
    (axes,) each.

    ``column`` is the known feature that an axis belongs to, ``value_range`` its training range,
    ``is_level`` whether it is a category, and ``level`` the level that the axis stands for.
    """

    column: IntArray
    value_range: Float32Array
    is_level: BoolArray
    level: Float32Array


class _Space(NamedTuple):
    """Where donors lie along the axes, (donors, axes + 1), and their squared distance from the
    origin, (donors,).
    """

    axes: _Axes
    coordinates: Float64Array
    norms: Float64Array


def _smallest(distance: Float64Array, k: int) -> IntArray:
    """The indices of the k smallest of each row, in order, (rows, k)."""
    near, row = smallest(distance, k), np.arange(len(distance))[:, None]
    return near[row, distance[row, near].argsort(axis=1)]
