"""A column as independence tests see it: integer codes to be counted, and numeric terms to be
correlated.

All that must be known about a column beforehand (its levels, or a grid of its quantiles) is small,
so it can be computed in memory, by a database or on a cluster; coding and embedding then work chunk
by chunk.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtri

from edfa.data.schema import Feature
from edfa.data.values import to_words
from edfa.typing import AnyArray, Float64Array, Int64Array

# Steps of the quantile grid: contains the edges of all bin counts below, and the quartiles.
GRID_STEPS = 120
TEST_BINS = 5  # bins of a continuous column under test when it is counted
# Bins of a continuous column that is conditioned on.
CONDITION_BINS = (8, 10, 12, 15, 20, 24, 30, 40, 60, 120)
ROWS_PER_STRATUM = 25
MAX_HALVINGS = 4
# Steps of the grid at which a continuous column has spline knots, and those that a condition has
# besides.
QUARTILE_STEPS = [30, 60, 90]
TAIL_STEPS = [3, 12, 108, 117]
MODE_SHARE = 0.3  # a value this frequent gets an indicator of its own (capital gain: 0)
MAX_STANDARD_DEVIATIONS = 4.0  # standard deviations
# Distance of the outer hundredths from the median, in distances of the nearer quartile.
HEAVY_TAIL = 8.0
MAX_CATEGORICAL_LEVELS = 5  # of an ordinal feature that is tested as a categorical one


def grid_ranks(n: int) -> Int64Array:
    """Ranks of the sorted values at the points of the quantile grid.

    Parameters
    ----------
    n
        The number of values.

    Returns
    -------
    numpy.ndarray
        ``(GRID_STEPS + 1,)`` ranks counted from 1, by the inverted distribution function; the first
        is 1 and the last is n.
    """
    return np.maximum(-(-np.arange(GRID_STEPS + 1, dtype=np.int64) * n // GRID_STEPS), 1)


def tail_ranks(n: int) -> Int64Array:
    """Ranks beyond the grid's outermost steps, each half as far out, as long as 25 rows are left.

    At most four at each end: three conditions of a table of many millions of rows would have too
    many strata.

    Parameters
    ----------
    n
        The number of values.

    Returns
    -------
    numpy.ndarray
        Ranks at the low end, then as many at the high end; empty for small tables.
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
    """The values of a feature as independence tests treat them.

    Parameters
    ----------
    values
        Validated values, ``(rows,)``; null where missing.
    feature
        The feature on the card.

    Returns
    -------
    tuple[pandas.Series, bool]
        Words of a categorical column, or numbers, in which an ordinal level counts as its position;
        and whether they are words.
    """
    if is_categorical(feature, int(values.nunique())):
        return to_words(values), True
    if feature.words:
        return values.map({level: float(i) for i, level in enumerate(feature.levels)}), False
    return values, False


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of levels, represented by an indicator for each level but the most frequent one.

    Parameters
    ----------
    name
        The name of the column.
    levels
        The levels, most frequent first; the first is the reference level.
    has_missing
        Whether values are missing in some rows; these get an indicator of their own.

    Examples
    --------
    >>> column = CategoricalColumn.fit("paid", {"no": 2, "yes": 5}, has_missing=False)
    >>> column.levels
    ('yes', 'no')
    >>> column.read(pd.Series(["no", "yes", None]))
    array([ 1,  0, -1])
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
        """Which indicator is 1 in each row.

        Parameters
        ----------
        codes
            ``(rows,)`` as ``read`` returns them.

        Returns
        -------
        numpy.ndarray
            ``(rows,)`` its index among the terms; -1 for the reference level. A missing value
            counts as a level.
        """
        return np.where(codes < 0, self.n_terms - 1 if self.has_missing else -1, codes - 1)

    def embed(self, codes: AnyArray) -> Float64Array:
        """All indicators of each row, ``(rows, n_terms)``, from codes ``(rows,)``."""
        return np.equal.outer(self.indicator(codes), np.arange(self.n_terms)).astype(float)


@dataclass(frozen=True)
class ContinuousColumn:
    """A column of numbers, described by the quantiles of its measurements.

    Counted, it is cut into quantile bins (``code``); correlated, it is a linear spline of a score
    with a few indicators (``embed``).

    Parameters
    ----------
    name
        The name of the column.
    quantiles
        The values at ``grid_ranks``.
    special_values
        Numbers that are codes and no measurements.
    has_missing
        Whether values are missing in some rows.
    tail_quantiles
        The values at ``tail_ranks``.

    Examples
    --------
    >>> column = ContinuousColumn.fit("age", np.arange(1.0, 101.0))
    >>> column.edges(5)
    array([20., 40., 60., 80.])
    >>> column.code(np.array([1.0, 20.0, 20.5, np.nan]), bins=5)
    array([ 0,  0,  1, -1])
    """

    name: str
    quantiles: tuple[float, ...]
    special_values: tuple[float, ...] = ()
    has_missing: bool = False
    tail_quantiles: tuple[float, ...] = ()

    @classmethod
    def fit(cls, name: str, values: Float64Array, codes: Iterable[str] = ()) -> "ContinuousColumn":
        """Summarise a column.

        Parameters
        ----------
        name
            The name of the column.
        values
            ``(rows,)``; NaN if missing.
        codes
            Numbers, as a card writes them, that are no measurements; those that occur become
            ``special_values``.
        """
        missing = np.isnan(values)
        special = tuple(code for code in map(float, codes) if (values == code).any())
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
        """Upper edges of all bins but the last, in ascending order.

        Bins of conditions, which is any number but five, get narrower in the tails. Equal edges are
        merged, so there may be fewer than ``bins - 1``.
        """
        if bins not in self._edges:
            # DEVIATION: the note's conditioning bins hold equal shares. Half of what such bins
            # leave of a quadratic confounder is within the two outermost.
            grid, width = np.array(self.quantiles), GRID_STEPS // bins
            edges = [grid[::width][1:-1]]
            if bins != TEST_BINS:
                outer = np.array([width >> k for k in range(width.bit_length())])
                edges += [grid[outer], grid[GRID_STEPS - outer], np.array(self.tail_quantiles)]
            self._edges[bins] = np.unique(np.concatenate(edges))
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

        Scores are standard units clipped at 4, or normal scores if the tails are heavy: if an outer
        hundredth is far from the median, in quartile distances (a normal distribution: 3.5).
        """
        grid = np.array(self.quantiles)
        low, quarter, median, upper, high = grid[[1, *QUARTILE_STEPS, GRID_STEPS - 1]]
        tail = max(high - median, median - low)
        if tail >= HEAVY_TAIL * min(upper - median, median - quarter):
            scores = ndtri((np.arange(GRID_STEPS + 1) + 0.5) / (GRID_STEPS + 1))
            points, index, ties = np.unique(grid, return_inverse=True, return_counts=True)
            return points, np.bincount(index, weights=scores) / ties  # ties share their mean score
        mean, deviation = grid.mean(), grid.std()
        return np.array(
            [mean - MAX_STANDARD_DEVIATIONS * deviation, mean + MAX_STANDARD_DEVIATIONS * deviation]
        ), np.array([-MAX_STANDARD_DEVIATIONS, MAX_STANDARD_DEVIATIONS])

    @cached_property
    def mode(self) -> float | None:
        """The value of more than 30 % of the measurements, None if there is no such value."""
        points, counts = np.unique(self.quantiles, return_counts=True)
        frequent = len(points) > 1 and counts.max() > MODE_SHARE * (GRID_STEPS + 1)
        return float(points[counts.argmax()]) if frequent else None

    @cached_property
    def _knots(self) -> tuple[Float64Array, Float64Array]:
        """Spline knots, as scores, at the quartiles, and further ones in the tails; none at the
        ends of the scale.
        """
        points, scores = self._score_map
        grid = np.interp(self.quantiles, points, scores)
        inside = (grid > scores.min()) & (grid < scores.max())
        quartiles, tails = (
            np.unique(grid[steps][inside[steps]]) for steps in (QUARTILE_STEPS, TAIL_STEPS)
        )
        return quartiles, np.setdiff1d(tails, quartiles)

    @property
    def n_tested_terms(self) -> int:
        """Number of its terms, counted from the first, that represent the column when it is
        tested.
        """
        indicators = (self.mode is not None) + len(self.special_values) + self.has_missing
        return 1 + len(self._knots[0]) + indicators

    @property
    def n_terms(self) -> int:
        """Number of terms when it is conditioned on: a finer spline, because what it misses would
        be confounding.
        """
        return self.n_tested_terms + len(self._knots[1])

    def embed(self, numbers: Float64Array) -> Float64Array:
        """The terms of each value, as regressions use them.

        Parameters
        ----------
        numbers
            ``(rows,)``; NaN if missing.

        Returns
        -------
        numpy.ndarray
            ``(rows, n_terms)``, in this order: a score, its linear spline at the quartiles,
            indicators of the mode, of each special value and of missing values, and the spline at
            the knots in the tails. Values that are no measurements have a score of 0.
        """
        missing = np.isnan(numbers)
        unmeasured = missing | np.isin(numbers, self.special_values)
        points, scores = self._score_map
        score = np.interp(numbers, points, scores)
        score[unmeasured] = 0.0
        quartile_knots, tail_knots = self._knots
        terms = [score, *(np.maximum(score - knot, 0.0) for knot in quartile_knots)]
        terms += [(numbers == self.mode) & ~unmeasured] if self.mode is not None else []
        terms += [numbers == special for special in self.special_values]
        terms += [missing] if self.has_missing else []
        terms += [np.maximum(score - knot, 0.0) * ~unmeasured for knot in tail_knots]
        return np.stack(terms, axis=1).astype(float)


Column: TypeAlias = CategoricalColumn | ContinuousColumn
"""Either reads raw values, turns them into codes, and knows how many codes and terms it has."""
