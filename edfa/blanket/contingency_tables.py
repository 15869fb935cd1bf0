"""Contingency tables within strata: how often each combination of (stratum, x, y) occurs, and their margins."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import xlogy

from edfa.typing import AnyArray, Float64Array

__all__ = ["ContingencyTable", "Margin", "StratumTotals", "sum_k_log_k"]

LOOKUP_ROWS = 1 << 21  # rows up to which k ln k is tabulated, 16 MiB
MAX_PRODUCT_CELLS = 1024  # cells of a stratum up to which both margins are computed by one matrix product


class StratumTotals:
    """Rows of each stratum, in the form g2 needs; computed once, because all margins of the same strata share them.

    ``n``: rows in all; ``occupied``: strata with any row; ``k_log_k``: Σ k ln k over the strata.
    """

    __slots__ = ("k_log_k", "n", "occupied")

    def __init__(self, counts: AnyArray) -> None:
        self.n = int(np.add.reduce(counts))
        self.occupied = np.count_nonzero(counts)
        self.k_log_k = sum_k_log_k(counts, self.n)


class Margin:
    """Counts of (stratum, x), in the form g2 needs; computed once, because the same margin recurs with many a y.

    ``counts``: shape ``(strata, levels)``; ``levels_present``: number of levels that occur in each stratum, shape
    ``(strata,)``; ``nonzero``: number of counts above 0; ``k_log_k``: Σ k ln k over the counts.
    """

    __slots__ = ("counts", "k_log_k", "levels_present", "nonzero", "totals")

    def __init__(self, counts: AnyArray, totals: StratumTotals | None = None) -> None:
        self.counts = counts
        self.totals = totals or StratumTotals(np.add.reduce(counts, axis=1))
        self.levels_present = np.add.reduce(counts > 0, axis=1)
        self.nonzero = np.count_nonzero(counts)
        self.k_log_k = sum_k_log_k(counts, self.totals.n)


def sum_k_log_k(counts: AnyArray, n: int) -> float:
    """Σ k ln k over counts k of at most n, by look-up: the same few thousand numbers recur in every test."""
    values = xlogy(counts, counts) if n > LOOKUP_ROWS else _k_log_k_below(1 << n.bit_length()).take(counts)
    return float(np.add.reduce(values, axis=None))


@cache
def _k_log_k_below(size: int) -> Float64Array:
    """The numbers k ln k for k = 0, …, size - 1, shape ``(size,)``."""
    k = np.arange(size, dtype=float)
    return np.asarray(xlogy(k, k))


@cache
def _margin_matrix(x_levels: int, y_levels: int) -> Float64Array:
    """Matrix that maps the flat cells of a stratum to its counts of x and of y.

    Shape ``(x_levels * y_levels, x_levels + y_levels)``.
    """
    of_x = np.repeat(np.eye(x_levels), y_levels, axis=0)
    return np.hstack([of_x, np.tile(np.eye(y_levels), (x_levels, 1))])


@dataclass(frozen=True)
class ContingencyTable:
    """How often each combination of (stratum, x, y) occurs.

    ``counts`` either holds every cell of ``shape`` (strata, levels of x, levels of y), flat, or only the cells that
    occur, with their flat ``positions`` in that shape. ``possible_cells`` is the number of combinations there could be,
    strata that never occur included. ``known_margins`` are passed by a source that has them already.
    """

    counts: AnyArray
    shape: tuple[int, int, int]
    possible_cells: float
    positions: AnyArray | None = None
    known_margins: tuple[Margin, Margin] | None = None

    @property
    def n(self) -> int:
        """Number of rows counted; rows with a missing value in any of the columns are not."""
        return int(self.counts.sum())

    def margins(self) -> tuple[Margin, Margin]:
        """Counts of (stratum, x) and of (stratum, y)."""
        if self.known_margins is not None:
            return self.known_margins
        if self.positions is None:
            full = self.counts.reshape(self.shape)
            return Margin(np.add.reduce(full, axis=2)), Margin(np.add.reduce(full, axis=1))
        strata, rx, ry = self.shape
        z, x, y, counts = self.nonzero()
        zx = np.bincount(z * rx + x, weights=counts, minlength=strata * rx).reshape(strata, rx)
        zy = np.bincount(z * ry + y, weights=counts, minlength=strata * ry).reshape(strata, ry)
        return Margin(zx.astype(np.int64)), Margin(zy.astype(np.int64))

    def margin_counts(self) -> tuple[Float64Array, Float64Array]:
        """Counts of (stratum, x) and of (stratum, y) as floats, shapes ``(strata, levels)``.

        By one matrix product if every cell is held: such strata are many and small.
        """
        strata, rx, ry = self.shape
        if self.positions is not None or rx * ry > MAX_PRODUCT_CELLS:
            return self.margins()[0].counts.astype(float), self.margins()[1].counts.astype(float)
        both = self.counts.reshape(strata, rx * ry).astype(float) @ _margin_matrix(rx, ry)
        return both[:, :rx], both[:, rx:]

    def pooled(self) -> AnyArray:
        """Counts of (x, y) over all strata, shape ``(levels of x, levels of y)``."""
        _, rx, ry = self.shape
        if self.positions is None:
            return np.asarray(np.add.reduce(self.counts.reshape(self.shape), axis=0))
        both = np.bincount(self.positions % (rx * ry), weights=self.counts, minlength=rx * ry)
        return both.astype(np.int64).reshape(rx, ry)

    def nonzero(self) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
        """Stratum, x, y and count of each cell that occurs, each of shape ``(cells,)``."""
        _, rx, ry = self.shape
        positions = np.flatnonzero(self.counts) if self.positions is None else self.positions
        counts = self.counts[positions] if self.positions is None else self.counts
        z, rest = np.divmod(positions, rx * ry)
        return z, rest // ry, rest % ry, counts
