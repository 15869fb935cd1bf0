"""What the unknown is likely to be: values of what is not known, drawn from similar training people.

Every sampler is asked ``given(X)`` once for a batch, and then for one feature at a time. ``Neighbours`` can also
complete people, several unknown features of one neighbour at once. ``Exact`` asks a Bayesian network.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from edfa.errors import DataError
from edfa.predictors.base import by_mask
from edfa.predictors.bn import BayesNet
from edfa.typing import Float32Array, Float64Array, IntArray

__all__ = ["Draw", "Exact", "Neighbours", "Sampler", "smallest"]

Draw = Callable[[int], tuple[Float32Array, Float64Array]]
LIMIT = 10_000  # training people to look among
FEWEST, MOST = 50, 200  # neighbours
BLOCK = 200_000  # distances at a time: few enough to stay in a processor's cache
GROUP = 16  # distances of which the least is looked at first
MANY = 50_000  # distances from which on that is worth while
KEPT = 16  # sets of known features whose space is held in memory


class Sampler(Protocol):
    """Values a feature may take for each person, given what is known of them, with weights that add up to one."""

    def given(self, X: Float32Array) -> Draw:  # noqa: N803
        """A function from a feature to values and weights, two arrays (people, draws)."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest training people on what is known; k is the root of their number, between 50 and 200.

    Numbers are compared in standard units. A difference of category counts so that two people drawn at random are
    as far apart on it as on a number. Where nothing is known, the neighbours are k people drawn at random. The same
    known facts always have the same neighbours, whoever else is asked about.

    Examples
    --------
    >>> rows = np.arange(400, dtype=np.float32).reshape(200, 2)
    >>> near = Neighbours.of(rows, categorical=())
    >>> values, weights = near.given(np.array([[101, np.nan]], dtype=np.float32))(1)
    >>> values.shape, float(values.min()), float(values.max())
    ((1, 50), 53.0, 151.0)
    """

    rows: Float32Array
    columns: tuple[Float32Array, ...]
    k: int
    _spaces: dict[bytes, tuple[Float64Array, Float64Array]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, rows: Float32Array, categorical: Iterable[int], *, k: int | None = None, seed: int = 0) -> "Neighbours":
        """Look among these training rows, at most 10,000 of them drawn by the seed."""
        if not len(rows) or np.isnan(rows).any():
            raise DataError("neighbours are looked for among complete training rows; there must be some, without NaN")
        order = np.random.default_rng(seed).permutation(len(rows))[:LIMIT]
        kept = np.ascontiguousarray(rows[order])
        size = k or int(np.clip(round(np.sqrt(len(rows))), FEWEST, MOST))
        words = set(categorical)
        columns = tuple(_levels(c) if j in words else _standard(c) for j, c in enumerate(kept.T))
        return cls(kept, columns, min(size, len(kept)))

    def nearest(self, X: Float32Array) -> IntArray:  # noqa: N803
        """The places in ``rows`` of the nearest, a row a person, in no order."""
        if len(X) == 1:
            known = np.flatnonzero(~np.isnan(X[0]))
            return self._nearest(known, X[:, known])
        found = np.empty((len(X), self.k), dtype=np.intp)
        for mask, people in by_mask(X):
            unique, place = np.unique(X[np.ix_(people, np.flatnonzero(mask))], axis=0, return_inverse=True)
            found[people] = self._nearest(np.flatnonzero(mask), unique)[place.ravel()]
        return found

    def _nearest(self, known: IntArray, facts: Float32Array) -> IntArray:
        """Distances by a matrix product; ties are broken by the order of ``rows``, which is random."""
        if not len(known):
            return np.tile(np.arange(self.k), (len(facts), 1))
        theirs, norms = self._space(known)
        ours = np.concatenate([self._place(j, facts[:, i]) for i, j in enumerate(known)], axis=1)
        found = np.empty((len(facts), self.k), dtype=np.intp)
        ties = np.arange(len(theirs)) * 1e-12
        for part in np.array_split(np.arange(len(facts)), max(1, len(facts) * len(theirs) // BLOCK)):
            distance = -2 * ours[part] @ theirs.T
            distance += norms
            # Rounded, so that equal distances are equal whatever the batch; then the order of rows decides.
            np.round(distance, 6, out=distance)
            distance += ties
            found[part] = smallest(distance, self.k)
        return np.sort(found, axis=1)

    def _space(self, known: IntArray) -> tuple[Float64Array, Float64Array]:
        """Where training people lie by these features, and how far from the origin, squared; kept for the next."""
        key = known.tobytes()
        if (found := self._spaces.get(key)) is None:
            theirs = np.concatenate([self._place(j, self.rows[:, j]) for j in known], axis=1)
            found = theirs, (theirs**2).sum(axis=1)
            if len(self._spaces) >= KEPT:
                self._spaces.clear()
            self._spaces[key] = found
        return found

    def _place(self, j: int, values: Float32Array) -> Float64Array:
        """Where values of a column lie in the space of distances."""
        column = self.columns[j]
        if column.ndim == 1:
            mean, spread = column
            return np.asarray(((values.astype(float) - mean) / spread)[:, None])
        levels, scale = column
        return np.asarray((values[:, None] == levels) * scale)

    def given(self, X: Float32Array) -> Draw:  # noqa: N803
        """What the neighbours have there; all count the same."""
        near = self.nearest(X)
        weights = np.full(near.shape, 1 / self.k)
        return lambda feature: (self.rows[:, feature][near], weights)

    def complete(self, X: Float32Array) -> Float32Array:  # noqa: N803
        """Each person k times (people, k, features), what is not known taken from one neighbour at a time."""
        return np.where(np.isnan(X)[:, None, :], self.rows[self.nearest(X)], X[:, None, :])


@dataclass(frozen=True, eq=False)
class Exact:
    """A Bayesian network's own conditional: every level with its exact chance."""

    network: BayesNet

    def given(self, X: Float32Array) -> Draw:  # noqa: N803
        """One draw a level; a level stands for its bin by one of its values."""

        def draw(feature: int) -> tuple[Float32Array, Float64Array]:
            values, chances = self.network.conditional(X, feature)
            return np.tile(values, (len(X), 1)), chances

        return draw


def smallest(distance: Float64Array, k: int) -> IntArray:
    """The places of the k smallest of each row, in no order.

    Of many, each row is first cut down to what is no larger than the k-th smallest of the least of every group: a few
    more than k.

    >>> np.sort(smallest(np.array([[5.0, 1.0, 4.0, 2.0], [0.0, 9.0, 8.0, 7.0]]), 2))
    array([[1, 3],
           [0, 3]])
    """
    rows, groups = len(distance), distance.shape[1] // GROUP
    if groups < 2 * k or distance.size < MANY:
        return np.argpartition(distance, k - 1, axis=1)[:, :k]
    least = distance[:, : groups * GROUP].reshape(rows, GROUP, groups).min(axis=1)
    flat = np.flatnonzero(distance <= np.partition(least, k - 1, axis=1)[:, k - 1 : k])
    row, column = np.divmod(flat, distance.shape[1])
    count = np.bincount(row, minlength=rows)
    place = np.arange(len(row)) - (np.cumsum(count) - count)[row]
    few, which = np.full((rows, count.max()), np.inf), np.zeros((rows, count.max()), dtype=np.intp)
    few[row, place], which[row, place] = distance[row, column], column
    return np.take_along_axis(which, np.argpartition(few, k - 1, axis=1)[:, :k], axis=1)


def _standard(column: Float32Array) -> Float32Array:
    """Mean and spread."""
    return np.array([column.mean(), column.std() or 1], dtype=np.float32)


def _levels(column: Float32Array) -> Float32Array:
    """The levels, and how much one counts: two random people differ by 2 in squares, as in standard units."""
    levels, counts = np.unique(column, return_counts=True)
    differ = 1 - float(((counts / len(column)) ** 2).sum())
    return np.array([levels, np.full(len(levels), (differ or 1) ** -0.5)], dtype=np.float32)
