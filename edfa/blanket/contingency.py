"""Contingency tables within strata, and the tests of independence that are read off them.

``g2`` is for well-filled tables, ``x2mm`` for sparse and wide ones, ``cmh`` sums the evidence of
thin strata. Each takes a ``ContingencyTable`` and gives a ``CIResult``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, gammaincc, xlogy

from edfa.cache import Cache
from edfa.typing import AnyArray, Float64Array

ROWS_PER_CELL = 5
MAX_PRODUCTS = 1 << 21  # products of margins that cmh holds at a time
CACHE_BYTES = 256 << 20  # of what tests share
FEWEST_SHARED = 64  # results of tests that are held, however large


def test_work(size: float) -> Cache[Any]:
    """A memory for what tests share: as many results of about ``size`` bytes as 256 MiB hold."""
    return Cache("test work", max(FEWEST_SHARED, int(CACHE_BYTES / size)))


@dataclass(frozen=True)
class ContingencyTable:
    """How often each combination of (stratum, x, y) occurs.

    Rows with a missing value in any of the columns are not counted.

    Parameters
    ----------
    counts
        The number of rows of each cell, flat: of every cell of ``shape``, or of those that occur.
    shape
        The numbers of strata, levels of x and levels of y.
    possible_cells
        The number of combinations there could be, strata that never occur included.
    positions
        The flat positions of the cells that occur, as long as ``counts``; None: all are counted.

    Examples
    --------
    >>> table = ContingencyTable(np.array([30, 10, 10, 50]), (1, 2, 2), possible_cells=4.0)
    >>> table.pooled()
    array([[30, 10],
           [10, 50]])
    >>> g2(table).p < 0.001
    True
    """

    counts: AnyArray
    shape: tuple[int, int, int]
    possible_cells: float
    positions: AnyArray | None = None

    @property
    def n(self) -> int:
        """Number of rows counted."""
        return int(self.counts.sum())

    def margins(self) -> tuple[AnyArray, AnyArray]:
        """Counts of (stratum, x) and of (stratum, y), shapes ``(strata, levels)``."""
        strata, rx, ry = self.shape
        if self.positions is None:
            full = self.counts.reshape(self.shape)
            return np.add.reduce(full, axis=2), np.add.reduce(full, axis=1)
        z, x, y, counts = self.nonzero()
        zx = np.bincount(z * rx + x, weights=counts, minlength=strata * rx)
        zy = np.bincount(z * ry + y, weights=counts, minlength=strata * ry)
        return zx.reshape(strata, rx), zy.reshape(strata, ry)

    def pooled(self) -> AnyArray:
        """Counts of (x, y) over all strata, shape ``(levels of x, levels of y)``."""
        _, rx, ry = self.shape
        if self.positions is None:
            return np.asarray(np.add.reduce(self.counts.reshape(self.shape), axis=0))
        both = np.bincount(self.positions % (rx * ry), weights=self.counts, minlength=rx * ry)
        return both.reshape(rx, ry)

    def nonzero(self) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
        """Stratum, x, y and count of each cell that occurs, each of shape ``(cells,)``."""
        positions, counts = self.positions, self.counts
        if positions is None:
            positions = np.flatnonzero(counts)
            counts = counts[positions]
        z, x, y = np.unravel_index(positions, self.shape)
        return z, x, y, counts


@dataclass(frozen=True)
class CIResult:
    """The result of one test of conditional independence.

    Parameters
    ----------
    p
        The p-value.
    statistic, dof
        The test statistic, and its degrees of freedom or its expectation under independence.
    effect
        Conditional mutual information in nats, corrected for its bias.
    reliable
        Whether there are enough rows to tell.
    test
        The name of the test that decided.
    """

    p: float
    statistic: float
    dof: float
    effect: float
    reliable: bool = True
    test: str = ""


def bias_corrected_effect(statistic: float, expected: float, n: int) -> float:
    """Conditional mutual information in nats from a statistic of ``n`` rows, less what is
    ``expected`` under independence; never negative.
    """
    return max(0.0, statistic - expected) / (2 * n) if n else 0.0


def g2(table: ContingencyTable) -> CIResult:
    """Likelihood ratio 2 Σ N ln(N n_z / n_zx n_zy).

    Degrees of freedom count the levels present in each stratum. Reliable from five rows for each
    cell that there could be.
    """
    zx, zy = table.margins()
    strata = np.add.reduce(zx, axis=1)
    n = int(np.add.reduce(strata))
    tables = (table.counts, zx, zy, strata)
    joint, left, right, whole = (float(xlogy(k, k).sum()) for k in tables)
    statistic = max(2 * (joint - left - right + whole), 0.0)
    # Σ (rows - 1)(columns - 1) over the strata that occur, multiplied out
    r, c = np.add.reduce(zx > 0, axis=1), np.add.reduce(zy > 0, axis=1)
    dof = float(r @ c - r.sum() - c.sum() + np.count_nonzero(strata))
    p = float(chdtrc(dof, statistic)) if dof else 1.0
    effect = bias_corrected_effect(statistic, dof, n)
    return CIResult(p, statistic, dof, effect, n >= ROWS_PER_CELL * table.possible_cells, "g2")


def x2mm(table: ContingencyTable) -> CIResult:
    """Pearson's statistic, compared with the gamma distribution of its exact mean and variance
    given all margins.

    Strata of fewer than four rows say nothing; without any other the p-value is 1.
    """
    zx, zy = (margin.astype(float) for margin in table.margins())
    total, n = int(zx.sum()), zx.sum(axis=1)
    r, c = np.count_nonzero(zx, axis=1), np.count_nonzero(zy, axis=1)
    usable = (n >= 4) & (r > 1) & (c > 1)
    if not usable.any():
        return CIResult(1.0, 0.0, 0.0, 0.0, test="x2mm")
    z, x, y, counts = table.nonzero()
    terms = counts.astype(float) ** 2 / (zx[z, x] * zy[z, y])
    pearson = n * np.bincount(z, weights=terms, minlength=len(n)) - n
    n, r, c, pearson = n[usable], r[usable], c[usable], pearson[usable]
    (v1, w1), (v2, w2) = _dawson_terms(zx[usable]), _dawson_terms(zy[usable])
    mean = float((n * (r - 1) * (c - 1) / (n - 1)).sum())
    variance = float((2 * n / (n - 3) * (v1 - w1) * (v2 - w2) + n**2 / (n - 1) * w1 * w2).sum())
    statistic = float(max(pearson.sum(), 0.0))
    effect = bias_corrected_effect(statistic, mean, total)
    p = 1.0
    if variance > 1e-12 * mean**2:
        p = float(gammaincc(mean**2 / variance, statistic * mean / variance))
    return CIResult(p, statistic, mean, effect, test="x2mm")


def _dawson_terms(margin: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Dawson's v and w of each stratum, ``(strata,)``, from a margin ``(strata, levels)``."""
    n, present = margin.sum(axis=1), np.count_nonzero(margin, axis=1)
    inverse = np.divide(1.0, margin, out=np.zeros_like(margin), where=margin > 0).sum(axis=1)
    return (present - 1) * (n - present) / (n - 1), (n * inverse - present**2) / (n - 2)


def cmh(table: ContingencyTable) -> CIResult:
    """Cochran, Mantel and Haenszel's statistic for tables of any size: the evidence of all strata
    taken together.

    Differences from expectation are summed over the strata before they are squared, so strata of a
    few rows suffice; a dependence that reverses from stratum to stratum is not seen. Their
    covariance given the margins is exact.
    """
    zx, zy = (margin.astype(float) for margin in table.margins())
    n = np.add.reduce(zx, axis=1)
    total = int(np.add.reduce(n))
    expected = (zx / np.maximum(n, 1)[:, None]).T @ zy
    difference = (table.pooled() - expected)[1:, 1:].ravel()
    several = n > 1
    covariance = _covariance(zx[several, 1:], zy[several, 1:], n[several])
    solution, _, rank, _ = np.linalg.lstsq(covariance, difference, rcond=1e-9)
    statistic = max(float(difference @ solution), 0.0)
    p = float(chdtrc(rank, statistic)) if rank else 1.0
    effect = bias_corrected_effect(statistic, rank, total)
    return CIResult(p, statistic, float(rank), effect, test="cmh")


def _covariance(zx: Float64Array, zy: Float64Array, n: Float64Array) -> Float64Array:
    """Covariance of the cell counts given the margins, summed over the strata.

    ``zx``, ``zy``: margins without the first level, ``(strata, r)`` and ``(strata, c)``; result
    ``(r * c, r * c)``.
    """
    r, c = zx.shape[1], zy.shape[1]
    covariance = np.zeros((r * r, c * c))
    step = max(1, MAX_PRODUCTS // max(r * r, c * c))
    for start in range(0, len(n), step):
        a, b, m = zx[start : start + step], zy[start : start + step], n[start : start + step, None]
        covariance += _margin_covariance(a, m).T @ (_margin_covariance(b, m) / (m**2 * (m - 1)))
    return covariance.reshape(r, r, c, c).swapaxes(1, 2).reshape(r * c, r * c)


def _margin_covariance(margin: Float64Array, n: Float64Array) -> Float64Array:
    """n diag(margin) less the margin's outer product, for each stratum; shape ``(strata,
    levels²)``.
    """
    levels = margin.shape[1]
    covariance = -(margin[:, :, None] * margin[:, None, :]).reshape(len(margin), levels * levels)
    covariance[:, :: levels + 1] += n * margin
    return covariance
