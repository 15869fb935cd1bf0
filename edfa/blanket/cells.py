"""Contingency tables within strata: how often each combination of (stratum, x, y) occurs, and its margins."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import xlogy

from edfa.typing import AnyArray, Float64Array

__all__ = ["Cells", "Margin", "Totals", "k_log_k"]

LOOK_UP = 1 << 21  # rows up to which k ln k is tabulated, 16 MiB


class Totals:
    """Rows of each stratum, as g2 asks for them: reckoned once, because every margin of the strata shares them."""

    __slots__ = ("log", "n", "occupied")

    def __init__(self, strata: AnyArray) -> None:
        self.n = int(np.add.reduce(strata))
        self.occupied = np.count_nonzero(strata)
        self.log = k_log_k(strata, self.n)


class Margin:
    """Counts of (stratum, x), as g2 asks for them: reckoned once, because it comes again with many a y."""

    __slots__ = ("count", "filled", "log", "present", "totals")

    def __init__(self, count: AnyArray, totals: Totals | None = None) -> None:
        self.count = count
        self.totals = totals or Totals(np.add.reduce(count, axis=1))
        self.present = np.add.reduce(count > 0, axis=1)  # levels in each stratum
        self.filled = np.count_nonzero(count)
        self.log = k_log_k(count, self.totals.n)


def k_log_k(count: AnyArray, n: int) -> float:
    """Σ k ln k of counts up to n, by look-up: the same few thousand numbers come again in every test."""
    values = xlogy(count, count) if n > LOOK_UP else _look_up(1 << n.bit_length()).take(count)
    return float(np.add.reduce(values, axis=None))


@cache
def _look_up(size: int) -> Float64Array:
    k = np.arange(size, dtype=float)
    return np.asarray(xlogy(k, k))


@cache
def _adding(rx: int, ry: int) -> Float64Array:
    """A matrix that turns flat cells into counts of x and of y."""
    return np.hstack([np.repeat(np.eye(rx), ry, axis=0), np.tile(np.eye(ry), (rx, 1))])


@dataclass(frozen=True)
class Cells:
    """How often each combination of (stratum, x, y) occurs; ``space`` is how many combinations there could be.

    ``count`` either fills the whole ``shape``, or holds the cells that occur, whose places are ``where``. A source that
    knows the margins already hands them over.
    """

    count: AnyArray
    shape: tuple[int, int, int]
    space: float
    where: AnyArray | None = None
    known: tuple[Margin, Margin] | None = None

    @property
    def n(self) -> int:
        """The rows counted (those with a gap in one of the columns are not)."""
        return int(self.count.sum())

    def margins(self) -> tuple[Margin, Margin]:
        """Counts of (stratum, x) and of (stratum, y)."""
        if self.known is not None:
            return self.known
        if self.where is None:
            full = self.count.reshape(self.shape)
            return Margin(np.add.reduce(full, axis=2)), Margin(np.add.reduce(full, axis=1))
        strata, rx, ry = self.shape
        z, x, y, count = self.occurring()
        zx = np.bincount(z * rx + x, weights=count, minlength=strata * rx).reshape(strata, rx)
        zy = np.bincount(z * ry + y, weights=count, minlength=strata * ry).reshape(strata, ry)
        return Margin(zx.astype(np.int64)), Margin(zy.astype(np.int64))

    def sums(self) -> tuple[Float64Array, Float64Array]:
        """Both margins as floats, by one product where the table is full: its strata are many and small."""
        strata, rx, ry = self.shape
        if self.where is not None or rx * ry > 1024:
            return self.margins()[0].count.astype(float), self.margins()[1].count.astype(float)
        both = self.count.reshape(strata, rx * ry).astype(float) @ _adding(rx, ry)
        return both[:, :rx], both[:, rx:]

    def pooled(self) -> AnyArray:
        """Counts of (x, y), all strata together."""
        _, rx, ry = self.shape
        if self.where is None:
            return np.asarray(np.add.reduce(self.count.reshape(self.shape), axis=0))
        both = np.bincount(self.where % (rx * ry), weights=self.count, minlength=rx * ry)
        return both.astype(np.int64).reshape(rx, ry)

    def occurring(self) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
        """Stratum, x, y and count of each cell that occurs."""
        _, rx, ry = self.shape
        where = np.flatnonzero(self.count) if self.where is None else self.where
        count = self.count[where] if self.where is None else self.count
        z, rest = np.divmod(where, rx * ry)
        return z, rest // ry, rest % ry, count
