"""Values drawn from training people, within the action set: the same draws for everybody who knows
the same.
"""

from dataclasses import dataclass

import numpy as np

from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.typing import Float32Array, Float64Array, IntArray

__all__ = ["Draws", "draw_values"]


@dataclass(frozen=True, eq=False)
class Draws:
    """Random change sets: each draw has an order of the free features and a number from 0 to 1 for
    each of them.

    ``order`` and ``uniform`` are (draws, free features).
    """

    problem: SearchProblem
    order: IntArray
    uniform: Float64Array

    @classmethod
    def of(cls, problem: SearchProblem, count: int) -> "Draws":
        """As many draws as ``count``, from the problem's own random stream."""
        shape = (count, len(problem.free))
        order = np.argsort(problem.random.random(shape), axis=1)
        return cls(problem, order, problem.random.random(shape))

    def candidates(self, case: IntArray, size: int) -> Candidates:
        """A change set for every one of these cases and draw: new values of the first ``size``
        features of its order.

        The change sets of a case stand together.
        """
        problem, count = self.problem, len(self.order)
        to = np.full((len(case), count, len(problem.features)), np.nan, dtype=np.float32)
        for k, column in enumerate(problem.free):
            draws = np.flatnonzero((self.order[:, :size] == k).any(axis=1))
            to[:, draws, column] = draw_values(problem, int(column), case, self.uniform[draws, k])
        return Candidates(np.repeat(case, count), to.reshape(-1, to.shape[2]))


def draw_values(
    problem: SearchProblem, column: int, case: IntArray, uniform: Float64Array
) -> Float32Array:
    """Permitted values of a known feature, as frequent as among training people, (cases, draws);
    NaN if there is none.

    ``uniform`` (draws,) are numbers from 0 to 1: which part of the distribution of permitted values
    each draw takes.
    """
    feature, own = int(problem.features[column]), problem.facts[case, column]
    values, direction = problem.actions.values[feature], problem.actions.direction[feature]
    if not len(values):
        return np.full((len(case), len(uniform)), np.nan, dtype=np.float32)
    support = problem.actions.support
    position = np.searchsorted(support.values[feature], values)
    cumulative = np.cumsum(support.shares[feature][position])
    below = np.r_[0.0, cumulative]
    low, high = np.zeros(len(case)), np.full(len(case), cumulative[-1])
    if direction > 0:
        low = below[np.searchsorted(values, own, side="right")]
    if direction < 0:
        high = below[np.searchsorted(values, own, side="left")]
    share = low[:, None] + uniform * (high - low)[:, None]
    position = np.searchsorted(cumulative, share, side="right")
    drawn = values[np.minimum(position, len(values) - 1)]
    permitted = problem.actions.permits(feature, own[:, None], drawn)
    return np.where(permitted, drawn, np.float32(np.nan))
