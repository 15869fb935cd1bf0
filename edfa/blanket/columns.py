"""A column as independence tests see it: level codes to count, and a few smooth terms to correlate.

What is needed of a column (its levels, or a grid of quantiles) is small, so it can be gathered in memory, by a database
or on a cluster; coding and embedding then work chunk by chunk.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtri

__all__ = ["GRID", "Numbers", "Words", "bins_for"]

GRID = np.arange(121) / 120  # holds the edges of 5, 8, 10, 12, 15 and 20 equal parts, and the quartiles
BINS = (8, 10, 12, 15, 20)
MODE_SHARE = 0.3  # a value this frequent gets an indicator of its own (capital gain: 0)
CLIP = 4.0
FEW_LEVELS = 5  # an ordinal feature of at most this many levels is counted, a longer one is a number

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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

    def size(self, bins: int) -> int:
        """How many codes there are."""
        return len(self.levels)

    def read(self, values: pd.Series) -> Codes:
        """The number of each level; -1 where the value is missing."""
        return pd.Index(self.levels).get_indexer(pd.Index(values)).astype(np.int64)

    def code(self, codes: Codes, bins: int) -> Codes:
        """They are codes already."""
        return codes

    def indicators(self, codes: Codes) -> Codes:
        """Which indicator is on in each row; -1 for the reference level. A gap is a level of its own here."""
        return np.where(codes < 0, self.width - 1 if self.gaps else -1, codes - 1)


@dataclass(frozen=True)
class Numbers:
    """A continuous column: quantiles of its measurements, and states (codes that are no measurements)."""

    name: str
    quantiles: tuple[float, ...]
    states: tuple[float, ...] = ()
    gaps: bool = False

    @classmethod
    def fit(cls, name: str, values: Floats, codes: Sequence[float] = ()) -> "Numbers":
        """From all values at once."""
        gaps = np.isnan(values)
        states = tuple(code for code in codes if (values == code).any())
        known = np.sort(values[~gaps & ~np.isin(values, states)])
        known = known if len(known) else np.zeros(1)
        # the inverted distribution function, as databases compute a discrete quantile
        places = np.maximum(np.ceil(GRID * len(known)).astype(int) - 1, 0)
        return cls(name, tuple(known[places].tolist()), states, bool(gaps.any()))

    @cached_property
    def _edges(self) -> dict[int, Floats]:
        grid = np.array(self.quantiles)
        return {b: np.unique(grid[:: 120 // b][1:-1]) for b in (5, *BINS)}

    def size(self, bins: int) -> int:
        """How many codes there are with so many bins."""
        return len(self._edges[bins]) + 1 + len(self.states)

    def read(self, values: pd.Series) -> Floats:
        """Floats; NaN where the value is missing."""
        return values.to_numpy(float)

    def code(self, numbers: Floats, bins: int) -> Codes:
        """The quantile bin of each value, states after the bins; -1 where it is missing."""
        codes = np.searchsorted(self._edges[bins], numbers, side="left")
        for i, state in enumerate(self.states):
            codes[numbers == state] = len(self._edges[bins]) + 1 + i
        codes[np.isnan(numbers)] = -1
        return codes

    @cached_property
    def _scale(self) -> tuple[Floats, Floats]:
        """Points of a piecewise linear map to normal scores; tied quantiles share their mean score."""
        grid, scores = np.array(self.quantiles), ndtri((np.arange(121) + 0.5) / 121)
        points, place = np.unique(grid, return_inverse=True)
        return points, np.bincount(place, weights=scores) / np.bincount(place)

    @cached_property
    def mode(self) -> float | None:
        """A value that holds more than 30 % of the measurements."""
        points, counts = np.unique(self.quantiles, return_counts=True)
        return float(points[counts.argmax()]) if len(points) > 1 and counts.max() > MODE_SHARE * 121 else None

    @property
    def _knots(self) -> Floats:
        points, scores = self._scale
        knots = np.unique(np.interp(np.array(self.quantiles)[[30, 60, 90]], points, scores))
        return np.asarray(knots[(knots > scores.min()) & (knots < scores.max())])

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return 1 + len(self._knots) + (self.mode is not None) + len(self.states) + self.gaps

    def embed(self, numbers: Floats) -> Floats:
        """Normal score, its linear spline at the quartiles, and indicators of mode, states and gaps."""
        gaps = np.isnan(numbers)
        absent = gaps | np.isin(numbers, self.states)
        points, scores = self._scale
        score = np.interp(numbers, points, scores) if len(points) > 1 else np.zeros(len(numbers))
        score[absent] = 0.0
        terms = [score, *(np.maximum(score - knot, 0.0) for knot in self._knots)]
        terms += [(numbers == self.mode) & ~absent] if self.mode is not None else []
        terms += [numbers == state for state in self.states]
        terms += [gaps] if self.gaps else []
        return np.stack(terms, axis=1).astype(float)
