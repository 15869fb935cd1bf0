"""The distribution of what is not known, given what is: values that similar training people have.

Every sampler is asked ``given(X)`` once for a batch, and then for one feature at a time.
``Neighbours`` can also complete people, with all unknown features taken from one neighbour. A
``BayesNet`` is a sampler too, with exact probabilities.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from edfa.cache import Cache
from edfa.errors import DataError
from edfa.predictors.base import by_mask, distinct_cases, smallest
from edfa.typing import Float32Array, Float64Array, IntArray

Draw = Callable[[int], tuple[Float32Array, Float64Array]]
"""From the position of a feature to values and their weights, both (people, draws)."""
MAX_TRAINING_PEOPLE = 10_000  # training people to look among
MIN_NEIGHBOURS, MAX_NEIGHBOURS = 50, 200  # neighbours
DISTANCES_AT_ONCE = 200_000  # distances at a time: few enough to stay in a processor's cache
MAX_SPACES = 16  # sets of known features whose space is cached


class Sampler(Protocol):
    """Values a feature may take for each person, given what is known of them, with weights that add
    up to one.
    """

    def given(self, X: Float32Array) -> Draw:  # noqa: N803
        """A function from a feature to values and weights, both (people, draws); ``X`` (people,
        features) is known.
        """


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest training people on what is known.

    Numbers are compared in standard units. A difference of category counts so that two people drawn
    at random are as far apart on it as on a number. Where nothing is known, the neighbours are k
    people drawn at random. The same known facts always have the same neighbours, whatever the
    rest of the batch.

    Parameters
    ----------
    rows
        (training people, features) those to look among, in random order.
    columns
        For each number its mean and standard deviation (2,), for each category its levels and their
        weights (2, levels).
    k
        Number of neighbours.
    skip
        How many that are nearer are passed over.

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
    skip: int = 0
    _spaces: Cache[tuple[Float64Array, Float64Array]] = field(
        default_factory=lambda: Cache("model work", MAX_SPACES), init=False, repr=False
    )

    def learnt_state(self) -> dict[str, Any]:
        """What decides its draws, for fingerprints."""
        return {"rows": self.rows, "columns": list(self.columns), "k": self.k, "skip": self.skip}

    def farther(self, k: int) -> "Neighbours":
        """Those who come next, k of them or as many as there are; none of them is among these.

        >>> near = Neighbours.of(np.arange(9, dtype=np.float32).reshape(9, 1), (), k=3)
        >>> here = np.array([[0.0]], dtype=np.float32)
        >>> nearest = np.sort(near.rows[near.nearest(here), 0])
        >>> nearest, np.sort(near.rows[near.farther(4).nearest(here), 0])
        (array([[0., 1., 2.]], dtype=float32), array([[3., 4., 5., 6.]], dtype=float32))
        """
        after = self.skip + self.k
        return replace(self, k=min(k, len(self.rows) - after), skip=after)

    @classmethod
    def of(
        cls, rows: Float32Array, categorical: Iterable[int], *, k: int | None = None, seed: int = 0
    ) -> "Neighbours":
        """Look among training rows, at most 10,000 of them, drawn by the seed.

        Parameters
        ----------
        rows
            Complete encoded training people, (rows, features).
        categorical
            The positions of categories.
        k
            The number of neighbours; None: the root of the number of rows, from 50 to 200.
        seed
            Decides which rows are looked among, and their order, which breaks ties.

        Raises
        ------
        DataError
            If there are no rows, or a value in them is not known.
        """
        if not len(rows) or np.isnan(rows).any():
            raise DataError(
                "neighbours are looked for among complete training rows; there must be "
                "some, without NaN"
            )
        order = np.random.default_rng(seed).permutation(len(rows))[:MAX_TRAINING_PEOPLE]
        drawn = np.ascontiguousarray(rows[order])
        return cls.among(
            drawn,
            categorical,
            k or int(np.clip(round(np.sqrt(len(rows))), MIN_NEIGHBOURS, MAX_NEIGHBOURS)),
        )

    @classmethod
    def among(cls, rows: Float32Array, categorical: Iterable[int], k: int) -> "Neighbours":
        """Look among just these rows, in this order.

        Parameters
        ----------
        rows
            Complete encoded people, (rows, features).
        categorical
            The positions of categories.
        k
            The number of neighbours, or that of the rows if there are fewer.
        """
        categories = set(categorical)
        columns = tuple(
            _levels(c) if j in categories else _standard(c) for j, c in enumerate(rows.T)
        )
        return cls(rows, columns, min(k, len(rows)))

    def nearest(self, X: Float32Array) -> IntArray:  # noqa: N803
        """The neighbours of each person.

        Parameters
        ----------
        X
            Encoded people, (people, features); NaN where a value is not known.

        Returns
        -------
        Positions in ``rows``, (people, k), in no order of distance.
        """
        neighbours = np.empty((len(X), self.k), dtype=np.intp)
        for mask, people in by_mask(X):
            known = np.flatnonzero(mask)
            facts, case = distinct_cases(X[np.ix_(people, known)])
            neighbours[people] = self._nearest(known, facts)[case]
        return neighbours

    def _nearest(self, known: IntArray, facts: Float32Array) -> IntArray:
        """Neighbours of people who know the same features.

        Distances come from a matrix product; ties are broken by the order of ``rows``, which is
        random.

        Parameters
        ----------
        known
            The positions of the known features, (known features,).
        facts
            Their values, (people, known features).

        Returns
        -------
        Positions in ``rows``, (people, k), ascending.
        """
        if not len(known):
            return np.tile(np.arange(self.skip, self.skip + self.k), (len(facts), 1))
        theirs, norms = self._space(known)
        ours = np.concatenate(
            [self._coordinates(j, facts[:, i]) for i, j in enumerate(known)], axis=1
        )
        neighbours = np.empty((len(facts), self.k), dtype=np.intp)
        ties = np.arange(len(theirs)) * 1e-12
        for part in np.array_split(
            np.arange(len(facts)), max(1, len(facts) * len(theirs) // DISTANCES_AT_ONCE)
        ):
            distance = -2 * ours[part] @ theirs.T
            distance += norms
            # Rounded, so that equal distances are equal whatever the batch; then the order of rows
            # decides.
            np.round(distance, 6, out=distance)
            distance += ties
            near = smallest(distance, self.skip + self.k)
            if self.skip:
                rank = np.argpartition(
                    np.take_along_axis(distance, near, axis=1), self.skip - 1, axis=1
                )
                near = np.take_along_axis(near, rank[:, self.skip :], axis=1)
            neighbours[part] = near
        return np.sort(neighbours, axis=1)

    def _space(self, known: IntArray) -> tuple[Float64Array, Float64Array]:
        """Coordinates (training people, axes) by these features, and their squared norms (training
        people,); cached.
        """

        def make() -> tuple[Float64Array, Float64Array]:
            theirs = np.concatenate([self._coordinates(j, self.rows[:, j]) for j in known], axis=1)
            return theirs, (theirs**2).sum(axis=1)

        return self._spaces.get(known.tobytes(), make)

    def _coordinates(self, j: int, values: Float32Array) -> Float64Array:
        """Coordinates by one column, in which distances are measured.

        Parameters
        ----------
        j
            The position of the column.
        values
            Values of it, (people,).

        Returns
        -------
        (people, axes): one axis for a number, one for each level of a category.
        """
        column = self.columns[j]
        if column.ndim == 1:
            mean, spread = column
            return np.asarray(((values.astype(float) - mean) / spread)[:, None])
        levels, scale = column
        return np.asarray((values[:, None] == levels) * scale)

    def given(self, X: Float32Array) -> Draw:  # noqa: N803
        """What unknown features may be: the values of the neighbours.

        Parameters
        ----------
        X
            Encoded people, (people, features); NaN where a value is not known.

        Returns
        -------
        A function from the position of a feature to the neighbours' values of it, with equal
        weights, both (people, k).
        """
        near = self.nearest(X)
        weights = np.full(near.shape, 1 / self.k)
        return lambda feature: (self.rows[:, feature][near], weights)

    def complete(self, X: Float32Array) -> Float32Array:  # noqa: N803
        """Complete each person with what one neighbour after the other has.

        Parameters
        ----------
        X
            Encoded people, (people, features); NaN where a value is not known.

        Returns
        -------
        Each person k times, (people, k, features); what is known stays as it is.
        """
        return np.where(np.isnan(X)[:, None, :], self.rows[self.nearest(X)], X[:, None, :])


def _standard(column: Float32Array) -> Float32Array:
    """Mean and standard deviation of a column (rows,)."""
    return np.array([column.mean(), column.std() or 1], dtype=np.float32)


def _levels(column: Float32Array) -> Float32Array:
    """The levels of a column (rows,) and the weight of each.

    With these weights the mean squared distance of two random people is 2, as it is in standard
    units.
    """
    levels, counts = np.unique(column, return_counts=True)
    differ = 1 - float(((counts / len(column)) ** 2).sum())
    return np.array([levels, np.full(len(levels), (differ or 1) ** -0.5)], dtype=np.float32)
