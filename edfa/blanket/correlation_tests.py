"""Tests on correlations alone: likelihood ratios of multivariate regressions.

Given the correlations of all terms, which ``sources/correlation.py`` adds up in one pass, the cost
of a test does not depend on the number of rows. ``CorrelationTests`` is the entry.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.special import fdtrc, ndtr

from edfa.blanket.contingency import CIResult, bias_corrected_effect, test_work
from edfa.typing import Float64Array, IntArray

# A term whose variance given the conditions falls below this is a function of them.
MIN_RESIDUAL = 1e-6


class _Factor(NamedTuple):
    """The terms of some conditions that are no function of earlier ones, ``(k,)``, and their
    Cholesky factor.
    """

    terms: IntArray
    cholesky: Float64Array


class _Residual(NamedTuple):
    """The terms of a variable after regression on the conditions.

    ``terms``: those that still vary, ``(m,)``; ``cholesky``: factor of their residual covariance,
    ``(m, m)``; ``projection``: their coordinates on the k whitened terms of the conditions, ``(k,
    m)``.
    """

    terms: IntArray
    cholesky: Float64Array
    projection: Float64Array


class CorrelationTests:
    """Tests of conditional independence of variables, each of which is a block of terms.

    Cholesky factors of conditions, and residuals given them, are shared between tests.

    Parameters
    ----------
    between
        Gives the correlations of some terms, ``(a,)``, with others, ``(b,)``, as ``(a, b)``.
    n
        The number of rows behind them.
    blocks
        For each variable the indices of its terms, which represent it as a condition.
    tested
        How many of each variable's first terms represent it when it is tested.
    """

    def __init__(
        self,
        between: Callable[[IntArray, IntArray], Float64Array],
        n: int,
        blocks: Sequence[IntArray],
        tested: Sequence[int],
    ) -> None:
        self.between, self.n, self.blocks = between, n, blocks
        self.tested = [block[:count] for block, count in zip(blocks, tested, strict=True)]
        block_bytes = 8 * (sum(len(b) for b in blocks) / len(blocks)) ** 2  # of a typical block
        # factors by conditions, residuals by variable and conditions
        self._shared = test_work(8 * block_bytes)

    def likelihood_ratio(self, x: int, y: int, conditions: tuple[int, ...]) -> CIResult:
        """Wilks' lambda of the terms of x and y, both regressed on the terms of the conditions.

        Parameters
        ----------
        x, y, conditions
            Indices of variables.

        Returns
        -------
        CIResult
            Bartlett's statistic, with a p-value of Rao's F; independent, and named
            ``"deterministic"``, if the conditions determine x or y.
        """
        left, right = self._tested_residual(x, conditions), self._tested_residual(y, conditions)
        if left is None or right is None:
            return CIResult(1.0, 0.0, 0.0, 0.0, test="deterministic")
        cross = self.between(left.terms, right.terms) - left.projection.T @ right.projection
        whitened = _forward_substitute(
            left.cholesky, _forward_substitute(right.cholesky, cross.T).T
        )
        a, b = len(left.terms), len(right.terms)
        square = whitened @ whitened.T if a <= b else whitened.T @ whitened
        q = float(-np.log1p(-np.clip(np.linalg.eigvalsh(square), 0.0, 1 - 1e-12)).sum())
        dof = a * b
        bartlett = max(self.n - 1 - len(left.projection) - (a + b + 1) / 2, 1.0)
        effect = bias_corrected_effect(self.n * q, dof, self.n)
        return CIResult(
            _rao_p_value(q, bartlett, a, b), bartlett * q, float(dof), effect, test="lrt"
        )

    def fisher_z(self, x: int, y: int, conditions: tuple[int, ...]) -> CIResult:
        """Fisher's z of the partial correlation; meant for variables of one term each.

        ``x``, ``y`` and ``conditions`` are indices of variables. The result is unreliable if the
        rows do not outnumber the conditions by four.
        """
        wilks = self.likelihood_ratio(x, y, conditions)
        freedom = self.n - len(conditions) - 3
        if wilks.dof == 0 or freedom < 1:
            return CIResult(1.0, 0.0, 0.0, 0.0, freedom >= 1, "fisher_z")
        bartlett = max(self.n - 1 - len(conditions) - 1.5, 1.0)
        r = math.sqrt(-math.expm1(-wilks.statistic / bartlett))
        z = math.sqrt(freedom) * math.atanh(min(r, 1 - 1e-15))
        return CIResult(float(2 * ndtr(-z)), z, 1.0, wilks.effect, True, "fisher_z")

    def _factor(self, conditions: tuple[int, ...]) -> _Factor:
        """The Cholesky factor of the conditions, grown by one variable at a time."""
        if not conditions:
            return _Factor(np.zeros(0, dtype=np.intp), np.zeros((0, 0)))

        def grow() -> _Factor:
            factor = self._factor(conditions[:-1])
            last = self._residual(self.blocks[conditions[-1]], conditions[:-1])
            if last is None:
                return factor
            size = len(factor.terms)
            cholesky = np.pad(factor.cholesky, (0, len(last.terms)))
            cholesky[size:, :size], cholesky[size:, size:] = last.projection.T, last.cholesky
            return _Factor(np.concatenate([factor.terms, last.terms]), cholesky)

        factor: _Factor = self._shared.get(conditions, grow)
        return factor

    def _tested_residual(self, variable: int, conditions: tuple[int, ...]) -> _Residual | None:
        """Residual of the terms that represent a variable under test; None if the conditions
        determine it.
        """
        residual: _Residual | None = self._shared.get(
            (variable, conditions), lambda: self._residual(self.tested[variable], conditions)
        )
        return residual

    def _residual(self, terms: IntArray, conditions: tuple[int, ...]) -> _Residual | None:
        """Residual of some terms; None if they are all functions of the conditions."""
        factor = self._factor(conditions)
        projection = _forward_substitute(factor.cholesky, self.between(factor.terms, terms))
        free, cholesky = _independent_terms(self.between(terms, terms) - projection.T @ projection)
        return _Residual(terms[free], cholesky, projection[:, free]) if len(free) else None


def _rao_p_value(q: float, bartlett: float, a: int, b: int) -> float:
    """Rao's F for q = -log Wilks' lambda of a and b terms: exact if either is at most 2.

    The chi-square approximation rejects too often for two wide blocks.
    """
    squares = a * a + b * b
    t = math.sqrt((a * a * b * b - 4) / (squares - 5)) if squares > 5 else 1.0
    freedom = max(bartlett * t - a * b / 2 + 1, 1.0)
    return float(fdtrc(a * b, freedom, math.expm1(q / t) * freedom / (a * b)))


def _forward_substitute(lower: Float64Array, right: Float64Array) -> Float64Array:
    """Solve ``lower @ z = right``; LAPACK directly, because these systems are small and many."""
    return np.asarray(dtrtrs(lower, right, lower=1)[0]) if len(lower) and right.shape[1] else right


def _independent_terms(covariance: Float64Array) -> tuple[IntArray, Float64Array]:
    """Indices of the terms that are no function of earlier ones, and the Cholesky factor of their
    covariance.
    """
    if covariance.diagonal().min(initial=1.0) > MIN_RESIDUAL:
        cholesky, failed = dpotrf(covariance, lower=1, clean=1)
        if not failed and cholesky.diagonal().min(initial=1.0) ** 2 > MIN_RESIDUAL:
            return np.arange(len(covariance)), cholesky
    free: list[int] = []
    cholesky = np.zeros((0, 0))
    for i in range(len(covariance)):
        row = _forward_substitute(cholesky, covariance[free, i][:, None])[:, 0]
        variance = covariance[i, i] - row @ row
        if variance > MIN_RESIDUAL:
            cholesky = np.pad(cholesky, (0, 1))
            cholesky[-1] = [*row, math.sqrt(variance)]
            free.append(i)
    return np.array(free, dtype=np.intp), cholesky
