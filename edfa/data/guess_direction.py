"""Which way of a feature the data say is good: a rank correlation that is clear, without a reversal
on the way.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from edfa.data.schema import Direction
from edfa.typing import BoolArray, Float64Array, Int64Array

CLEAR = 1e-3  # the largest p-value of a correlation that is proposed
N_BINS = 10
ERRORS = 2.0  # standard errors that the share of favourable outcomes may fall back by on its way up


class GuessedDirection(NamedTuple):
    """The way that is good, and the rank correlation with the favourable outcome."""

    direction: Direction
    correlation: float


def guess_direction(values: Float64Array, favourable: BoolArray) -> GuessedDirection | None:
    """The direction that the data support; None if they support none.

    Parameters
    ----------
    values
        Measurements, or positions of ordered levels, (rows,); NaN where nothing is recorded.
    favourable
        Whether each row had the favourable outcome, (rows,).

    Examples
    --------
    >>> income = np.arange(1000.0)
    >>> guess_direction(income, income % 100 < income / 10).direction
    'up'
    >>> guess_direction(np.abs(income - 500), income % 2 == 0) is None
    True
    """
    known = np.isfinite(values)
    numbers, good = values[known], favourable[known]
    if len(numbers) < 2 or numbers.min() == numbers.max() or good.all() or not good.any():
        return None
    correlation, p = spearmanr(numbers, good)
    if not p < CLEAR:
        return None
    codes = _bins(numbers if correlation > 0 else -numbers)
    counts = np.bincount(codes)
    shares = np.bincount(codes, weights=good) / counts
    if _reverses(shares, counts):
        return None
    return GuessedDirection("up" if correlation > 0 else "down", float(correlation))


def _bins(numbers: Float64Array) -> Int64Array:
    """The position of each number, (rows,), among tenths of the rows; every bin has a row, equal
    numbers share one.
    """
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, N_BINS + 1)[1:-1], method="lower"))
    return np.unique(np.searchsorted(edges, numbers, side="left"), return_inverse=True)[1].astype(
        np.int64
    )


def _reverses(shares: Float64Array, counts: Int64Array) -> bool:
    """Whether ``shares``, (bins,), which should rise, fall between any two bins by more than chance
    explains.
    """
    smoothed = (shares * counts + 1) / (
        counts + 2
    )  # a share of 0 or 1 is not known without error either
    variance = smoothed * (1 - smoothed) / counts
    fall = shares[:, None] - shares[None, :]
    allowed = ERRORS * np.sqrt(variance[:, None] + variance[None, :])
    return bool(np.triu(fall > allowed, 1).any())
