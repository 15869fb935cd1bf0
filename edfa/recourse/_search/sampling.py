"""Values drawn from training people, within the rules: the same draws for everybody who knows the same features."""

from dataclasses import dataclass

import numpy as np

from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.typing import Float32Array, Float64Array, IntArray

__all__ = ["Draws", "drawn"]


@dataclass(frozen=True, eq=False)
class Draws:
    """For each draw an order of the free features and a chance for each: (draws, free features)."""

    problem: SearchProblem
    order: IntArray
    chance: Float64Array

    @classmethod
    def of(cls, problem: SearchProblem, count: int) -> "Draws":
        """From the task's own stream; a feature has a stream of its own in it."""
        shape = (count, len(problem.free))
        return cls(problem, np.argsort(problem.random.random(shape), axis=1), problem.random.random(shape))

    def changes(self, case: IntArray, size: int) -> Candidates:
        """For every case and draw, new values of the first ``size`` features of the order."""
        problem, count = self.problem, len(self.order)
        to = np.full((len(case), count, len(problem.features)), np.nan, dtype=np.float32)
        for k, column in enumerate(problem.free):
            rows = np.flatnonzero((self.order[:, :size] == k).any(axis=1))
            to[:, rows, column] = drawn(problem, int(column), case, self.chance[rows, k])
        return Candidates.of(np.repeat(case, count), to.reshape(-1, to.shape[2]))


def drawn(problem: SearchProblem, column: int, case: IntArray, chance: Float64Array) -> Float32Array:
    """A permitted value for each case and chance, as frequent as among training people; NaN where there is none."""
    feature, own = int(problem.features[column]), problem.facts[case, column]
    values, way = problem.actions.values[feature], problem.actions.direction[feature]
    if not len(values):
        return np.full((len(case), len(chance)), np.nan, dtype=np.float32)
    support = problem.actions.support
    share = np.cumsum(support.shares[feature][np.searchsorted(support.values[feature], values)])
    steps = np.r_[0.0, share]
    low = steps[np.searchsorted(values, own, side="right")] if way > 0 else np.zeros(len(case))
    high = steps[np.searchsorted(values, own, side="left")] if way < 0 else np.full(len(case), share[-1])
    place = np.searchsorted(share, low[:, None] + chance * (high - low)[:, None], side="right")
    found = values[np.minimum(place, len(values) - 1)]
    return np.where(problem.actions.permits(feature, own[:, None], found), found, np.float32(np.nan))
