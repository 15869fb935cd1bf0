"""Tests on one correlation matrix: likelihood ratios of multivariate regressions, at a cost constant in n."""

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs
from scipy.special import fdtrc, ndtr

from edfa.blanket.recent import Recent
from edfa.blanket.tables import CIResult
from edfa.typing import Float64Array, IntArray

__all__ = ["Blocks"]

Residual = tuple[IntArray, Float64Array, Float64Array]
MEMORY = 128 << 20  # bytes of factors that are kept, roughly
RESIDUAL = 1e-6  # a column whose variance falls below this given the conditions is a function of them


class Blocks:
    """Log determinants of blocks of one correlation matrix, each factored once.

    A block is all terms of a variable, as it stands among the conditions; of these, the first ``tested`` stand for it
    when it is tested.
    """

    def __init__(self, matrix: Float64Array, blocks: list[IntArray], n: int, tested: list[int] | None = None) -> None:
        self.matrix = matrix
        self.blocks = blocks
        self.tested = [b[:k] for b, k in zip(blocks, tested or map(len, blocks), strict=True)]
        self.n = n
        size = 8 * (sum(len(b) for b in blocks) / len(blocks)) ** 2  # bytes of a typical block
        limit = max(256, int(MEMORY / (8 * size)))
        self._factors: Recent[tuple[int, ...], tuple[IntArray, Float64Array]] = Recent(limit)
        self._residuals: Recent[tuple[int, tuple[int, ...]], Residual | None] = Recent(limit)

    def test(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        """Wilks' lambda of the terms of x and y, both freed of the conditions."""
        left, right = self._tested(x, given), self._tested(y, given)
        if left is None or right is None:
            return CIResult(1.0, 0.0, 0.0, 0.0, test="deterministic")
        (a, root_a, solved_a), (b, root_b, solved_b) = left, right
        cross = self.matrix[np.ix_(a, b)] - solved_a.T @ solved_b
        whitened = _solve(root_a, _solve(root_b, cross.T).T)
        square = whitened @ whitened.T if len(a) <= len(b) else whitened.T @ whitened
        q = float(-np.log1p(-np.clip(np.linalg.eigvalsh(square), 0.0, 1 - 1e-12)).sum())
        dof = len(a) * len(b)
        bartlett = max(self.n - 1 - len(solved_a) - (len(a) + len(b) + 1) / 2, 1.0)
        effect = max(0.0, self.n * q - dof) / (2 * self.n)
        return CIResult(_tail(q, bartlett, len(a), len(b)), bartlett * q, float(dof), effect, test="lrt")

    def fisher_z(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        """The partial correlation of one score each."""
        wilks = self.test(x, y, given)
        room = self.n - len(given) - 3
        if wilks.dof == 0 or room < 1:
            return CIResult(1.0, 0.0, 0.0, 0.0, room >= 1, "fisher_z")
        bartlett = max(self.n - 1 - len(given) - 1.5, 1.0)
        r = math.sqrt(-math.expm1(-wilks.statistic / bartlett))
        z = math.sqrt(room) * math.atanh(min(r, 1 - 1e-15))
        return CIResult(float(2 * ndtr(-z)), z, 1.0, wilks.effect, True, "fisher_z")

    def _factor(self, given: tuple[int, ...]) -> tuple[IntArray, Float64Array]:
        """Columns of the conditions that are no function of earlier ones, and their Cholesky factor."""
        if not given:
            return np.zeros(0, dtype=np.intp), np.zeros((0, 0))
        if (known := self._factors.get(given)) is not None:
            return known
        before, block = self._factor(given[:-1]), self._residual(self.blocks[given[-1]], given[:-1])
        self._factors[given] = found = before if block is None else _grow(before, block)
        return found

    def _tested(self, i: int, given: tuple[int, ...]) -> Residual | None:
        if (i, given) not in self._residuals:
            self._residuals[i, given] = self._residual(self.tested[i], given)
        return self._residuals[i, given]

    def _residual(self, own: IntArray, given: tuple[int, ...]) -> Residual | None:
        """Some terms freed of the conditions: which vary still, their Cholesky factor, their projection."""
        columns, factor = self._factor(given)
        solved = _solve(factor, self.matrix[np.ix_(columns, own)])
        kept, root = _pivots(self.matrix[np.ix_(own, own)] - solved.T @ solved)
        return (own[kept], root, solved[:, kept]) if len(kept) else None


def _tail(q: float, bartlett: float, a: int, b: int) -> float:
    """Rao's F for -log Wilks' lambda: exact for one or two terms; chi-square is too loose for two wide blocks."""
    squares = a * a + b * b
    t = math.sqrt((a * a * b * b - 4) / (squares - 5)) if squares > 5 else 1.0
    room = max(bartlett * t - a * b / 2 + 1, 1.0)
    return float(fdtrc(a * b, room, math.expm1(q / t) * room / (a * b)))


def _solve(lower: Float64Array, right: Float64Array) -> Float64Array:
    """Forward substitution; LAPACK directly, because these systems are small and many."""
    return np.asarray(dtrtrs(lower, right, lower=1)[0]) if len(lower) and right.shape[1] else right


def _grow(
    before: tuple[IntArray, Float64Array], block: tuple[IntArray, Float64Array, Float64Array]
) -> tuple[IntArray, Float64Array]:
    """The factor of the conditions and one more variable."""
    (columns, factor), (own, root, solved) = before, block
    size, more = len(columns), len(own)
    grown = np.zeros((size + more, size + more))
    grown[:size, :size], grown[size:, :size], grown[size:, size:] = factor, solved.T, root
    return np.concatenate([columns, own]), grown


def _pivots(matrix: Float64Array) -> tuple[IntArray, Float64Array]:
    """The terms that are no function of earlier ones, and the Cholesky factor of their block."""
    if matrix.diagonal().min(initial=1.0) > RESIDUAL:
        root, failed = dpotrf(matrix, lower=1, clean=1)
        if not failed and root.diagonal().min(initial=1.0) ** 2 > RESIDUAL:
            return np.arange(len(matrix)), root
    kept: list[int] = []
    root = np.zeros((0, 0))
    for i in range(len(matrix)):
        row = _solve(root, matrix[kept, i][:, None])[:, 0]
        left = matrix[i, i] - row @ row
        if left > RESIDUAL:
            root = np.block([[root, np.zeros((len(kept), 1))], [row[None], np.full((1, 1), math.sqrt(left))]])
            kept.append(i)
    return np.array(kept, dtype=np.intp), root
