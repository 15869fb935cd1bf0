"""How many training people are where a plan leads, and how many of them had the favourable
outcome.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from edfa.typing import BoolArray, Float32Array, Int64Array, IntArray

__all__ = ["Crowd", "HeadCount"]

CELLS = 20_000_000  # comparisons at a time


class HeadCount(NamedTuple):
    """The number of training people where each plan leads, and of those with the favourable
    outcome, (plans,) each.
    """

    people: Int64Array
    favourable: Int64Array


@dataclass(frozen=True, eq=False)
class Crowd:
    """Training people, to be counted.

    Parameters
    ----------
    rows
        Their encoded facts, (training people, features).
    favourable
        Whether each had the favourable outcome, (training people,).

    Examples
    --------
    >>> rows = np.array([[1, 0], [2, 0], [3, 1]], dtype=np.float32)
    >>> crowd = Crowd(rows, np.array([True, False, True]))
    >>> crowd.count(np.array([[2, np.nan], [1, 0]]), np.array([[3, np.nan], [9, 0]]))
    HeadCount(people=array([2, 2]), favourable=array([1, 1]))
    """

    rows: Float32Array
    favourable: BoolArray
    _order: dict[int, tuple[Float32Array, Int64Array]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    def count(
        self, low: Float32Array, high: Float32Array, features: IntArray | None = None
    ) -> HeadCount:
        """People with every value from ``low`` to ``high``, both (plans, features); NaN: any value
        will do.

        ``features`` are the positions of the columns of both, if these are not all features.
        """
        columns = np.arange(low.shape[1]) if features is None else features
        limited = ~np.isnan(low)
        counts = HeadCount(*(np.zeros(len(low), dtype=np.int64) for _ in range(2)))
        single = limited.sum(axis=1) == 1
        for column in np.flatnonzero(limited[single].any(axis=0)).tolist():
            plans = np.flatnonzero(single & limited[:, column])
            self._count_one(
                int(columns[column]), low[plans, column], high[plans, column], plans, counts
            )
        several = np.flatnonzero(~single)
        if len(several):
            # Of a wide table's columns nobody limits most; the first is kept so that there is one.
            used = np.flatnonzero(limited[several].any(axis=0) | (columns == columns[0]))
            bounds = np.concatenate(
                [low[np.ix_(several, used)], high[np.ix_(several, used)]], axis=1
            )
            distinct, inverse = np.unique(
                np.nan_to_num(bounds, nan=np.inf), axis=0, return_inverse=True
            )
            size = max(1, CELLS // len(self))
            for first in range(0, len(distinct), size):
                lowest, highest = np.split(distinct[first : first + size], 2, axis=1)
                counted = self._count_all(lowest, highest, columns[used])
                here = (inverse.ravel() >= first) & (inverse.ravel() < first + size)
                for total, some in zip(counts, counted, strict=True):
                    total[several[here]] = some[inverse.ravel()[here] - first]
        return counts

    def _count_one(
        self,
        feature: int,
        low: Float32Array,
        high: Float32Array,
        plans: Int64Array,
        counts: HeadCount,
    ) -> None:
        """Count by one feature alone: positions among its sorted values."""
        if feature not in self._order:
            order = np.argsort(self.rows[:, feature], kind="stable")
            good = np.concatenate([[0], np.cumsum(self.favourable[order])])
            self._order[feature] = self.rows[order, feature], good
        values, good = self._order[feature]
        start, end = (
            np.searchsorted(values, low, side="left"),
            np.searchsorted(values, high, side="right"),
        )
        counts.people[plans], counts.favourable[plans] = end - start, good[end] - good[start]

    def _count_all(
        self, low: Float32Array, high: Float32Array, features: IntArray
    ) -> tuple[Int64Array, Int64Array]:
        """Count by several ``features`` (columns,) at once; an infinite ``low`` (plans, columns):
        any value will do.

        One bit a training person.
        """
        inside = np.broadcast_to(self._everybody, (len(low), len(self._everybody))).copy()
        for column in np.flatnonzero(np.isfinite(low).any(axis=0)).tolist():
            plans = np.flatnonzero(np.isfinite(low[:, column]))
            bounds, inverse = np.unique(
                np.stack([low[plans, column], high[plans, column]], axis=1),
                axis=0,
                return_inverse=True,
            )
            values = self.rows[:, features[column]]
            bits = np.packbits((values >= bounds[:, :1]) & (values <= bounds[:, 1:]), axis=1)
            inside[plans] &= bits[inverse.ravel()]
        people = np.bitwise_count(inside).sum(axis=1, dtype=np.int64)
        return people, np.bitwise_count(inside & self._favourable_bits).sum(axis=1, dtype=np.int64)

    @cached_property
    def _everybody(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return np.packbits(np.ones(len(self), dtype=bool))

    @cached_property
    def _favourable_bits(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return np.packbits(self.favourable)
