"""Tests on counts: ``g2`` for well-filled tables, ``x2mm`` for sparse and wide ones, ``cmh`` for thin strata."""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, gammaincc

from edfa.blanket.cells import Cells, k_log_k
from edfa.typing import Float64Array, IntArray

__all__ = ["ROWS_PER_CELL", "CIResult", "cmh", "g2", "x2mm"]

ROWS_PER_CELL = 5
CHUNK = 1 << 21  # products of margins that cmh holds at a time


@dataclass(frozen=True)
class CIResult:
    """What a test found. ``effect`` is the conditional mutual information in nats, corrected for its bias."""

    p: float
    statistic: float
    dof: float
    effect: float
    reliable: bool = True
    test: str = ""


def g2(cells: Cells) -> CIResult:
    """2 Σ N ln(N n_z / n_zx n_zy), degrees of freedom from the rows and columns present in each stratum."""
    left, right = cells.margins()
    totals, n = left.totals, left.totals.n
    statistic = max(2 * (k_log_k(cells.count, n) - left.log - right.log + totals.log), 0.0)
    # Σ (rows - 1)(columns - 1) over the strata that occur, multiplied out
    dof = float(left.present @ right.present - left.filled - right.filled + totals.occupied)
    p = float(chdtrc(dof, statistic)) if dof else 1.0
    effect = max(0.0, statistic - dof) / (2 * n) if n else 0.0
    return CIResult(p, statistic, dof, effect, n >= ROWS_PER_CELL * cells.space, "g2")


def x2mm(cells: Cells) -> CIResult:
    """Pearson's statistic against a gamma law with its exact mean and variance given the margins of each stratum."""
    zx, zy = cells.sums()
    total, n = int(zx.sum()), zx.sum(axis=1)
    r, c = np.count_nonzero(zx, axis=1), np.count_nonzero(zy, axis=1)
    usable = (n >= 4) & (r > 1) & (c > 1)
    if not usable.any():
        return CIResult(1.0, 0.0, 0.0, 0.0, test="x2mm")
    z, x, y, count = cells.occurring()
    share = count.astype(float) ** 2 / (zx[z, x] * zy[z, y])
    pearson = n * np.bincount(z, weights=share, minlength=len(n)) - n
    n, r, c, pearson = n[usable], r[usable], c[usable], pearson[usable]
    v1, w1 = _margin_terms(zx[usable], n, r)
    v2, w2 = _margin_terms(zy[usable], n, c)
    mean = float((n * (r - 1) * (c - 1) / (n - 1)).sum())
    variance = float((2 * n / (n - 3) * (v1 - w1) * (v2 - w2) + n**2 / (n - 1) * w1 * w2).sum())
    statistic = float(max(pearson.sum(), 0.0))
    effect = max(0.0, statistic - mean) / (2 * total)
    if variance <= 1e-12 * mean**2:
        return CIResult(1.0, statistic, mean, effect, test="x2mm")
    p = float(gammaincc(mean**2 / variance, statistic * mean / variance))
    return CIResult(p, statistic, mean, effect, test="x2mm")


def _margin_terms(margin: Float64Array, n: Float64Array, present: IntArray) -> tuple[Float64Array, Float64Array]:
    """Dawson's v and w of one margin, a stratum each."""
    inverse = np.divide(1.0, margin, out=np.zeros_like(margin), where=margin > 0).sum(axis=1)
    return (present - 1) * (n - present) / (n - 1), (n * inverse - present**2) / (n - 2)


def cmh(cells: Cells) -> CIResult:
    """Cochran, Mantel and Haenszel's statistic for tables of any size: what all strata say together.

    Differences from expectation are added up over the strata before they are squared, so strata of a few rows will do;
    a dependence that turns round from stratum to stratum is not seen. Their covariance given the margins is exact.
    """
    zx, zy = cells.sums()
    n = np.add.reduce(zx, axis=1)
    total = int(np.add.reduce(n))
    apart = cells.pooled() - (zx / np.maximum(n, 1)[:, None]).T @ zy
    several = n > 1
    covariance = _covariance(zx[several, 1:], zy[several, 1:], n[several])
    solved, _, rank, _ = np.linalg.lstsq(covariance, apart[1:, 1:].ravel(), rcond=1e-9)
    statistic = max(float(apart[1:, 1:].ravel() @ solved), 0.0)
    p = float(chdtrc(rank, statistic)) if rank else 1.0
    return CIResult(p, statistic, float(rank), max(0.0, statistic - rank) / (2 * total) if total else 0.0, test="cmh")


def _covariance(zx: Float64Array, zy: Float64Array, n: Float64Array) -> Float64Array:
    """Of the counts of all cells but the first row and column, given the margins, added up over the strata."""
    r, c = zx.shape[1], zy.shape[1]
    found = np.zeros((r * r, c * c))
    step = max(1, CHUNK // max(r * r, c * c))
    for start in range(0, len(n), step):
        a, b, m = zx[start : start + step], zy[start : start + step], n[start : start + step, None]
        found += _spread(a, m).T @ (_spread(b, m) / (m**2 * (m - 1)))
    return found.reshape(r, r, c, c).swapaxes(1, 2).reshape(r * c, r * c)


def _spread(margin: Float64Array, n: Float64Array) -> Float64Array:
    """n times the margin on the diagonal, less its outer product; a stratum each."""
    levels = margin.shape[1]
    found = -(margin[:, :, None] * margin[:, None, :]).reshape(len(margin), levels * levels)
    found[:, :: levels + 1] += n * margin
    return found
