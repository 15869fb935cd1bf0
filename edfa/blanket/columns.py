"""A column as independence tests see it: integer codes to be counted, and numeric terms to be
correlated.

All that must be known about a column beforehand (its levels, or a grid of its quantiles) is small,
so it can be computed in memory, by a database or on a cluster; coding and embedding then work chunk
by chunk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtri

from edfa.data.schema import Feature
from edfa.data.values import to_words
from edfa.typing import AnyArray, Float64Array, Int64Array

__all__ = [
    "ROWS_PER_STRATUM",
    "TEST_BINS",
    "CategoricalColumn",
    "Column",
    "ContinuousColumn",
    "as_tested",
    "finest_bins",
    "grid_ranks",
    "is_categorical",
    "tail_ranks",
]

GRID_STEPS = (
    120  # steps of the quantile grid: contains the edges of all bin counts below, and the quartiles
)
TEST_BINS = 5  # bins of a continuous column under test when it is counted
CONDITION_BINS = (
    8,
    10,
    12,
    15,
    20,
    24,
    30,
    40,
    60,
    120,
)  # bins of a continuous column that is conditioned on
ROWS_PER_STRATUM = 25
MAX_HALVINGS = 4
QUARTILE_STEPS = (
    GRID_STEPS // 4,
    GRID_STEPS // 2,
    3 * GRID_STEPS // 4,
)  # spline knots of a continuous column
TAIL_STEPS = (
    3,
    GRID_STEPS // 10,
    GRID_STEPS - GRID_STEPS // 10,
    GRID_STEPS - 3,
)  # more knots when conditioned on
MODE_SHARE = 0.3  # a value this frequent gets an indicator of its own (capital gain: 0)
CLIP = 4.0  # standard deviations
HEAVY_TAIL = (
    8.0  # distance of the outer hundredths from the median, in distances of the nearer quartile
)
MAX_CATEGORICAL_LEVELS = (
    5  # an ordinal feature of at most this many levels is categorical, a longer one continuous
)


def grid_ranks(n: int) -> Int64Array:
    """Ranks, counted from 1, of the n sorted values at the grid's points: the inverted distribution
    function.

    Shape ``(GRID_STEPS + 1,)``.
    """
    return np.maximum(-(-np.arange(GRID_STEPS + 1, dtype=np.int64) * n // GRID_STEPS), 1)


def tail_ranks(n: int) -> Int64Array:
    """Further ranks beyond the grid's outermost steps, each half as far out, as long as 25 rows are
    left; both ends.

    At most four at each end: three conditions of a table of many millions of rows would have too
    many strata.
    """
    halvings = int(np.clip(np.log2(max(n, 1) / GRID_STEPS / ROWS_PER_STRATUM), 0, MAX_HALVINGS))
    low = n // (GRID_STEPS << np.arange(1, halvings + 1, dtype=np.int64))
    return np.concatenate([low, n - low])


def finest_bins(limit: float) -> int:
    """The largest number of bins of a condition that does not exceed ``limit``; 0 if even 8 bins
    are too many.
    """
    return max((bins for bins in CONDITION_BINS if bins <= limit), default=0)


def is_categorical(feature: Feature, distinct: int) -> bool:
    """Whether tests treat a feature of ``distinct`` values as categorical: it is, or it is ordinal
    with few levels.
    """
    return feature.kind == "categorical" or (
        feature.kind == "ordinal" and distinct <= MAX_CATEGORICAL_LEVELS
    )


def as_tested(values: pd.Series, feature: Feature) -> tuple[pd.Series, bool]:
    """The validated values of a feature, (rows,), as tests treat them: words of a categorical
    column, else numbers, in which a level counts as its position; and whether they are words.
    """
    if is_categorical(feature, int(values.nunique())):
        return to_words(values), True
    if feature.words:
        return values.map({level: float(i) for i, level in enumerate(feature.levels)}), False
    return values, False


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of levels, most frequent first, so that the first can be left out as the reference
    level.

    ``has_missing``: whether values are missing in some rows; they get an indicator of their own.
    """

    name: str
    levels: tuple[str, ...]
    has_missing: bool = False

    @classmethod
    def fit(cls, name: str, counts: Mapping[str, int], has_missing: bool) -> "CategoricalColumn":
        """The column whose levels occur as often as ``counts`` says."""
        return cls(
            name, tuple(sorted(counts, key=lambda level: (-counts[level], level))), has_missing
        )

    @property
    def n_terms(self) -> int:
        """Number of indicators: one for each level but the first, and one for missing values."""
        return len(self.levels) - 1 + self.has_missing

    @property
    def n_tested_terms(self) -> int:
        """Number of terms that represent the column when it is tested: all of them."""
        return self.n_terms

    def n_codes(self, bins: int) -> int:
        """Number of different codes, whatever the number of bins."""
        return len(self.levels)

    @property
    def is_constant(self) -> bool:
        """Whether it has fewer than two levels."""
        return len(self.levels) < 2

    def read(self, values: pd.Series) -> Int64Array:
        """The code of each level, shape ``(rows,)``; -1 if the value is missing."""
        return pd.Index(self.levels).get_indexer(pd.Index(values)).astype(np.int64)

    def code(self, codes: AnyArray, bins: int) -> AnyArray:
        """The codes themselves: what ``read`` returns needs no bins."""
        return codes

    def indicator(self, codes: AnyArray) -> AnyArray:
        """Index of the indicator that is 1 in each row, shape ``(rows,)``; -1 for the reference
        level.

        A missing value counts as a level.
        """
        return np.where(codes < 0, self.n_terms - 1 if self.has_missing else -1, codes - 1)


@dataclass(frozen=True)
class ContinuousColumn:
    """A column of numbers, described by the quantiles of its measurements.

    ``quantiles``: values at ``grid_ranks``; ``tail_quantiles``: values at ``tail_ranks``.
    ``special_values``: numbers that are codes and no measurements. ``has_missing``: whether values
    are missing in some rows.
    """

    name: str
    quantiles: tuple[float, ...]
    special_values: tuple[float, ...] = ()
    has_missing: bool = False
    tail_quantiles: tuple[float, ...] = ()

    @classmethod
    def fit(
        cls, name: str, values: Float64Array, codes: Sequence[float] = ()
    ) -> "ContinuousColumn":
        """The column of ``values``, shape ``(rows,)``, NaN if missing; ``codes`` are special
        wherever they occur.
        """
        missing = np.isnan(values)
        special = tuple(code for code in codes if (values == code).any())
        measured = np.sort(values[~missing & ~np.isin(values, special)])
        measured = measured if len(measured) else np.zeros(1)
        grid, tails = (
            measured[ranks(len(measured)) - 1].tolist() for ranks in (grid_ranks, tail_ranks)
        )
        return cls(name, tuple(grid), special, bool(missing.any()), tuple(tails))

    @cached_property
    def _edges(self) -> dict[int, Float64Array]:
        return {}

    def edges(self, bins: int) -> Float64Array:
        """Upper edges of all bins but the last, in ascending order; bins of conditions get narrower
        in the tails.

        Equal edges are merged, so there may be fewer than ``bins - 1``.
        """
        if bins not in self._edges:
            # DEVIATION: the note's conditioning bins hold equal shares. Half of what such bins
            # leave of a quadratic confounder is within the two outermost.
            grid, width = np.array(self.quantiles), GRID_STEPS // bins
            edges = np.unique(grid[::width][1:-1])
            if bins != TEST_BINS:
                outer = [width >> k for k in range(1, GRID_STEPS) if width >> k]
                edges = np.unique(
                    [
                        *edges,
                        *grid[outer],
                        *grid[[GRID_STEPS - i for i in outer]],
                        *self.tail_quantiles,
                    ]
                )
            self._edges[bins] = edges
        return self._edges[bins]

    def n_codes(self, bins: int) -> int:
        """Number of different codes: bins and special values."""
        return len(self.edges(bins)) + 1 + len(self.special_values)

    @property
    def is_constant(self) -> bool:
        """Whether it has fewer than two different values."""
        return len(set(self.quantiles)) + len(self.special_values) < 2

    def read(self, values: pd.Series) -> Float64Array:
        """The values as floats, shape ``(rows,)``; NaN if missing."""
        return values.to_numpy(float)

    def code(self, numbers: Float64Array, bins: int) -> AnyArray:
        """The quantile bin of each value, shape ``(rows,)``; special values after the bins; -1 if
        missing.
        """
        codes = np.searchsorted(self.edges(bins), numbers, side="left")
        for i, special in enumerate(self.special_values):
            codes[numbers == special] = len(self.edges(bins)) + 1 + i
        codes[np.isnan(numbers)] = -1
        return codes

    @cached_property
    def _score_map(self) -> tuple[Float64Array, Float64Array]:
        """Values and scores between which scores are interpolated linearly.

        Scores are standard units clipped at 4, or normal scores if the tails are heavy.
        """
        grid = np.array(self.quantiles)
        if self._has_heavy_tails:
            scores = ndtri((np.arange(GRID_STEPS + 1) + 0.5) / (GRID_STEPS + 1))
            points, index = np.unique(grid, return_inverse=True)
            return points, np.bincount(index, weights=scores) / np.bincount(
                index
            )  # ties share their mean score
        mean, deviation = grid.mean(), grid.std()
        return np.array([mean - CLIP * deviation, mean + CLIP * deviation]), np.array([-CLIP, CLIP])

    @property
    def _has_heavy_tails(self) -> bool:
        """Whether an outer hundredth is far from the median, in quartile distances (a normal
        distribution: 3.5).
        """
        grid = np.array(self.quantiles)
        low, quarter, median, upper, high = grid[[1, *QUARTILE_STEPS, GRID_STEPS - 1]]
        return bool(
            max(high - median, median - low) >= HEAVY_TAIL * min(upper - median, median - quarter)
        )

    @cached_property
    def mode(self) -> float | None:
        """The value of more than 30 % of the measurements, None if there is no such value."""
        points, counts = np.unique(self.quantiles, return_counts=True)
        frequent = len(points) > 1 and counts.max() > MODE_SHARE * (GRID_STEPS + 1)
        return float(points[counts.argmax()]) if frequent else None

    def _knots(self, steps: Sequence[int]) -> Float64Array:
        """Spline knots, as scores, at some steps of the quantile grid; none at the ends of the
        scale.
        """
        points, scores = self._score_map
        knots = np.unique(np.interp(np.array(self.quantiles)[list(steps)], points, scores))
        return np.asarray(knots[(knots > scores.min()) & (knots < scores.max())])

    @cached_property
    def _quartile_knots(self) -> Float64Array:
        return self._knots(QUARTILE_STEPS)

    @cached_property
    def _tail_knots(self) -> Float64Array:
        return np.setdiff1d(self._knots(TAIL_STEPS), self._quartile_knots)

    @property
    def n_tested_terms(self) -> int:
        """Number of its terms, counted from the first, that represent the column when it is
        tested.
        """
        return (
            1
            + len(self._quartile_knots)
            + (self.mode is not None)
            + len(self.special_values)
            + self.has_missing
        )

    @property
    def n_terms(self) -> int:
        """Number of terms when it is conditioned on: a finer spline, because what it misses would
        be confounding.
        """
        return self.n_tested_terms + len(self._tail_knots)

    def embed(self, numbers: Float64Array) -> Float64Array:
        """The terms of each value, shape ``(rows, n_terms)``.

        In this order: a score, its linear spline at the quartiles, indicators of the mode, of each
        special value and of missing values, and the spline at the knots in the tails.
        """
        missing = np.isnan(numbers)
        unmeasured = missing | np.isin(numbers, self.special_values)
        points, scores = self._score_map
        score = np.interp(numbers, points, scores)
        score[unmeasured] = 0.0
        terms = [score, *(np.maximum(score - knot, 0.0) for knot in self._quartile_knots)]
        terms += [(numbers == self.mode) & ~unmeasured] if self.mode is not None else []
        terms += [numbers == special for special in self.special_values]
        terms += [missing] if self.has_missing else []
        terms += [np.maximum(score - knot, 0.0) * ~unmeasured for knot in self._tail_knots]
        return np.stack(terms, axis=1).astype(float)


Column: TypeAlias = CategoricalColumn | ContinuousColumn
"""Either reads raw values, turns them into codes, and knows how many codes and terms it has."""
