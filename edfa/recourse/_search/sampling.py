"""Values drawn from training people, within the rules: the same draws for everybody who knows the same features."""

from dataclasses import dataclass

import numpy as np

from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.typing import Float32Array, Float64Array, IntArray

__all__ = ["Draws", "drawn"]


@dataclass(frozen=True, eq=False)
class Draws:
    """For each draw an order of the free features and a chance for each: (draws, free features)."""

    task: SearchProblem
    order: IntArray
    chance: Float64Array

    @classmethod
    def of(cls, task: SearchProblem, count: int) -> "Draws":
        """From the task's own stream; a feature has a stream of its own in it."""
        shape = (count, len(task.free))
        return cls(task, np.argsort(task.random.random(shape), axis=1), task.random.random(shape))

    def changes(self, case: IntArray, size: int) -> Candidates:
        """For every case and draw, new values of the first ``size`` features of the order."""
        task, count = self.task, len(self.order)
        to = np.full((len(case), count, len(task.features)), np.nan, dtype=np.float32)
        for k, column in enumerate(task.free):
            rows = np.flatnonzero((self.order[:, :size] == k).any(axis=1))
            to[:, rows, column] = drawn(task, int(column), case, self.chance[rows, k])
        return Candidates.of(np.repeat(case, count), to.reshape(-1, to.shape[2]))


def drawn(task: SearchProblem, column: int, case: IntArray, chance: Float64Array) -> Float32Array:
    """A permitted value for each case and chance, as frequent as among training people; NaN where there is none."""
    feature, own = int(task.features[column]), task.facts[case, column]
    values, way = task.rules.values[feature], task.rules.way[feature]
    if not len(values):
        return np.full((len(case), len(chance)), np.nan, dtype=np.float32)
    support = task.rules.support
    share = np.cumsum(support.shares[feature][np.searchsorted(support.values[feature], values)])
    steps = np.r_[0.0, share]
    low = steps[np.searchsorted(values, own, side="right")] if way > 0 else np.zeros(len(case))
    high = steps[np.searchsorted(values, own, side="left")] if way < 0 else np.full(len(case), share[-1])
    place = np.searchsorted(share, low[:, None] + chance * (high - low)[:, None], side="right")
    found = values[np.minimum(place, len(values) - 1)]
    return np.where(task.rules.permits(feature, own[:, None], found), found, np.float32(np.nan))
