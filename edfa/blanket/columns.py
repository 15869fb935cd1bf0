"""A column as independence tests see it: level codes to count, and a few smooth terms to correlate.

What is needed of a column (its levels, or a grid of quantiles) is small, so it can be gathered in memory, by a database
or on a cluster; coding and embedding then work chunk by chunk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtri

from edfa.typing import AnyArray, Float64Array

__all__ = ["ROWS_PER_STRATUM", "TEST_BINS", "Numbers", "Words", "bins_for", "ranks", "tail_ranks"]

GRID = 120  # steps of the quantile grid: holds the edges of all numbers of bins below, and the quartiles
TEST_BINS = 5  # of a tested number when it is counted
BINS = (8, 10, 12, 15, 20, 24, 30, 40, 60, 120)  # of a number that is a condition
ROWS_PER_STRATUM = 25
MOST_HALVINGS = 4
QUARTILES = (GRID // 4, GRID // 2, 3 * GRID // 4)  # knots of a number
TAILS = (3, GRID // 10, GRID - GRID // 10, GRID - 3)  # more knots of a number that is a condition
MODE_SHARE = 0.3  # a value this frequent gets an indicator of its own (capital gain: 0)
CLIP = 4.0
HEAVY = 8.0
FEW_LEVELS = 5  # an ordinal feature of at most this many levels is counted, a longer one is a number


def ranks(n: int) -> AnyArray:
    """Which of n sorted values, counted from 1, stand at the points of the grid: the inverted distribution function."""
    return np.maximum(-(-np.arange(GRID + 1, dtype=np.int64) * n // GRID), 1)


def tail_ranks(n: int) -> AnyArray:
    """More ranks beyond the outermost steps of the grid, each half as far out, down to 25 rows; from both ends.

    At most four from each: three conditions of a table of many millions of rows would have too many strata.
    """
    halvings = int(np.clip(np.log2(max(n, 1) / GRID / ROWS_PER_STRATUM), 0, MOST_HALVINGS))
    low = n // (GRID << np.arange(1, halvings + 1, dtype=np.int64))
    return np.concatenate([low, n - low])


def bins_for(wanted: float) -> int:
    """The largest number of bins at most ``wanted`` that the grid can cut; 0 when fewer than 8."""
    return max((b for b in BINS if b <= wanted), default=0)


@dataclass(frozen=True)
class Words:
    """A categorical column: its levels, most frequent first, so that the first can be left out as the reference."""

    name: str
    levels: tuple[str, ...]
    gaps: bool = False

    @classmethod
    def fit(cls, name: str, counts: Mapping[str, int], gaps: bool) -> "Words":
        """From how often each level occurs."""
        return cls(name, tuple(sorted(counts, key=lambda level: (-counts[level], level))), gaps)

    @property
    def width(self) -> int:
        """How many indicator columns it makes."""
        return len(self.levels) - 1 + self.gaps

    @property
    def tested(self) -> int:
        """All of them stand for it when it is tested."""
        return self.width

    def size(self, bins: int) -> int:
        """How many codes there are."""
        return len(self.levels)

    @property
    def flat(self) -> bool:
        """Whether it never varies."""
        return len(self.levels) < 2

    def read(self, values: pd.Series) -> AnyArray:
        """The number of each level; -1 where the value is missing."""
        return pd.Index(self.levels).get_indexer(pd.Index(values)).astype(np.int64)

    def code(self, codes: AnyArray, bins: int) -> AnyArray:
        """They are codes already."""
        return codes

    def indicators(self, codes: AnyArray) -> AnyArray:
        """Which indicator is on in each row; -1 for the reference level. A gap is a level of its own here."""
        return np.where(codes < 0, self.width - 1 if self.gaps else -1, codes - 1)


@dataclass(frozen=True)
class Numbers:
    """A continuous column: quantiles of its measurements, and states (codes that are no measurements)."""

    name: str
    quantiles: tuple[float, ...]
    states: tuple[float, ...] = ()
    gaps: bool = False
    tails: tuple[float, ...] = ()

    @classmethod
    def fit(cls, name: str, values: Float64Array, codes: Sequence[float] = ()) -> "Numbers":
        """From all values at once."""
        gaps = np.isnan(values)
        states = tuple(code for code in codes if (values == code).any())
        known = np.sort(values[~gaps & ~np.isin(values, states)])
        known = known if len(known) else np.zeros(1)
        grid, tails = (known[r(len(known)) - 1].tolist() for r in (ranks, tail_ranks))
        return cls(name, tuple(grid), states, bool(gaps.any()), tuple(tails))

    @cached_property
    def edges(self) -> dict[int, Float64Array]:
        """Where the bins end, for each number of bins; those of a condition get ever narrower in the tails."""
        # DEVIATION: the note's conditioning bins hold equal shares. Half of what such bins leave of a quadratic
        # confounder is within the two outermost.
        grid = np.array(self.quantiles)
        cut = {b: np.unique(grid[:: GRID // b][1:-1]) for b in (TEST_BINS, *BINS)}
        for b in BINS:
            out = [GRID // b >> k for k in range(1, GRID) if GRID // b >> k]
            cut[b] = np.unique([*cut[b], *grid[out], *grid[[GRID - i for i in out]], *self.tails])
        return cut

    def size(self, bins: int) -> int:
        """How many codes there are with so many bins."""
        return len(self.edges[bins]) + 1 + len(self.states)

    @property
    def flat(self) -> bool:
        """Whether it never varies."""
        return len(set(self.quantiles)) + len(self.states) < 2

    def read(self, values: pd.Series) -> Float64Array:
        """Floats; NaN where the value is missing."""
        return values.to_numpy(float)

    def code(self, numbers: Float64Array, bins: int) -> AnyArray:
        """The quantile bin of each value, states after the bins; -1 where it is missing."""
        codes = np.searchsorted(self.edges[bins], numbers, side="left")
        for i, state in enumerate(self.states):
            codes[numbers == state] = len(self.edges[bins]) + 1 + i
        codes[np.isnan(numbers)] = -1
        return codes

    @cached_property
    def _scale(self) -> tuple[Float64Array, Float64Array]:
        """Points of a piecewise linear map to scores: standard units clipped at 4, or normal scores for heavy tails."""
        grid = np.array(self.quantiles)
        if self._heavy:
            scores = ndtri((np.arange(GRID + 1) + 0.5) / (GRID + 1))
            points, place = np.unique(grid, return_inverse=True)
            return points, np.bincount(place, weights=scores) / np.bincount(place)  # ties share their mean score
        mean, spread = grid.mean(), grid.std()
        return np.array([mean - CLIP * spread, mean + CLIP * spread]), np.array([-CLIP, CLIP])

    @property
    def _heavy(self) -> bool:
        """Whether the outer hundredths lie far out, seen from the quartiles (a normal law: 3.5 times as far)."""
        grid = np.array(self.quantiles)
        low, quarter, median, upper, high = grid[[1, GRID // 4, GRID // 2, 3 * GRID // 4, GRID - 1]]
        return bool(max(high - median, median - low) >= HEAVY * min(upper - median, median - quarter))

    @cached_property
    def mode(self) -> float | None:
        """A value that holds more than 30 % of the measurements."""
        points, counts = np.unique(self.quantiles, return_counts=True)
        return float(points[counts.argmax()]) if len(points) > 1 and counts.max() > MODE_SHARE * (GRID + 1) else None

    def _knots(self, places: Sequence[int]) -> Float64Array:
        points, scores = self._scale
        knots = np.unique(np.interp(np.array(self.quantiles)[list(places)], points, scores))
        return np.asarray(knots[(knots > scores.min()) & (knots < scores.max())])

    @cached_property
    def _inner(self) -> Float64Array:
        return self._knots(QUARTILES)

    @cached_property
    def _outer(self) -> Float64Array:
        return np.setdiff1d(self._knots(TAILS), self._inner)

    @property
    def tested(self) -> int:
        """How many of its terms stand for it when it is tested."""
        return 1 + len(self._inner) + (self.mode is not None) + len(self.states) + self.gaps

    @property
    def width(self) -> int:
        """How many terms it has as a condition: a finer spline, because what it leaves over would be confounding."""
        return self.tested + len(self._outer)

    def embed(self, numbers: Float64Array) -> Float64Array:
        """A score, its linear spline at the quartiles, indicators of mode, states and gaps, knots in the tails."""
        gaps = np.isnan(numbers)
        absent = gaps | np.isin(numbers, self.states)
        points, scores = self._scale
        score = np.interp(numbers, points, scores)
        score[absent] = 0.0
        terms = [score, *(np.maximum(score - knot, 0.0) for knot in self._inner)]
        terms += [(numbers == self.mode) & ~absent] if self.mode is not None else []
        terms += [numbers == state for state in self.states]
        terms += [gaps] if self.gaps else []
        terms += [np.maximum(score - knot, 0.0) * ~absent for knot in self._outer]
        return np.stack(terms, axis=1).astype(float)
