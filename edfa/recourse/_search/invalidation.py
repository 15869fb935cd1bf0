"""The invalidation rate: how often a plan fails when its numbers are met only roughly.

Noise is normal and falls on changed continuous features alone: nobody implements noise on what they leave as it is,
and a level is met or not. For one changed number, and a model that tells its cells, the rate is a sum over these cells;
otherwise it is a share of quasi-random draws, the same for everybody.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats.qmc import Sobol

from edfa.recourse.searcher import SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Noise"]


@dataclass(frozen=True)
class Noise:
    """Normal noise of ``sigma`` training ranges; ``draws`` are a power of two.

    Examples
    --------
    >>> Noise(0.1, draws=4).standard(2).shape
    (4, 2)
    """

    sigma: float = 0.05
    draws: int = 256
    seed: int = 0

    def standard(self, width: int) -> Float64Array:
        """Quasi-random standard normal draws, (draws, features)."""
        return np.asarray(ndtri(self._uniform(width)))

    def _uniform(self, width: int) -> Float64Array:
        points = Sobol(width, rng=np.random.default_rng(self.seed)).random(self.draws)
        return np.asarray(np.clip(points, 1e-9, 1 - 1e-9))

    def scale(self, problem: SearchProblem) -> Float64Array:
        """The standard deviation on each known feature; zero where there is no noise."""
        actions, features = problem.actions, problem.features
        return np.where(actions.continuous[features], self.sigma * actions.value_range[features], 0.0)

    def rate(self, problem: SearchProblem, case: IntArray, to: Float32Array) -> Float64Array:
        """The invalidation rate of change sets."""
        noisy = ~np.isnan(to) & (self.scale(problem) > 0)
        found = np.zeros(len(case))
        alone = (noisy.sum(axis=1) == 1) & ((~np.isnan(to)).sum(axis=1) == 1)
        for k, feature in enumerate(problem.group.features):
            column = int(np.searchsorted(problem.features, feature))
            rows = np.flatnonzero(alone & noisy[:, column])
            if len(rows) and self.exact(problem, k):
                found[rows] = self._sum(problem, k, case[rows], to[rows, column])
                noisy[rows] = False
        rows = np.flatnonzero(noisy.any(axis=1))
        found[rows] = self._share(problem, case[rows], to[rows], noisy[rows])
        return found

    def exact(self, problem: SearchProblem, k: int) -> bool:
        """Whether the sweep has tried every cell of its k-th feature."""
        tries = problem.group.candidate_values[k]
        return bool((tries.lower < tries.upper).all())

    def by_value(self, problem: SearchProblem, k: int, values: Float32Array) -> Float64Array:
        """The rate of every single change of the k-th swept feature to each value, (cases, values): one product."""
        return np.asarray(self.fails(problem, k) @ self._weights(problem, k, values).T)

    def _sum(self, problem: SearchProblem, k: int, case: IntArray, values: Float32Array) -> Float64Array:
        return np.asarray((self.fails(problem, k)[case] * self._weights(problem, k, values)).sum(axis=1))

    def fails(self, problem: SearchProblem, k: int) -> BoolArray:
        """Which cells of the k-th swept feature are no recourse, (cases, cells)."""
        return ~problem.single_recourse[:, slice(*problem.group.grid.starts[k : k + 2])]

    def _weights(self, problem: SearchProblem, k: int, values: Float32Array) -> Float64Array:
        """How likely noise around each value is to end in each cell, (values, cells)."""
        tries, feature = problem.group.candidate_values[k], problem.group.features[k]
        scale = self.sigma * problem.actions.value_range[feature]
        upper, lower = ((ends.astype(float) - values[:, None]) / scale for ends in (tries.upper, tries.lower))
        return np.asarray(ndtr(upper) - ndtr(lower))

    def _share(self, problem: SearchProblem, case: IntArray, to: Float32Array, noisy: BoolArray) -> Float64Array:
        """Of draws."""
        if not len(case):
            return np.zeros(0)
        # Drawn for all features, known or not, so that a feature's noise is the same in every state.
        noise = (self.standard(len(problem.mask))[:, problem.features] * self.scale(problem)).astype(np.float32)
        found = np.empty(len(case))
        for part in np.array_split(np.arange(len(case)), -(-len(case) // 1024)):
            rows = problem.apply(case[part], to[part])[:, None, :] + noise * noisy[part][:, None, :]
            probabilities = problem.predict(rows.reshape(-1, to.shape[1])).reshape(len(part), self.draws, -1)
            found[part] = 1 - problem.is_recourse(case[part], probabilities).mean(axis=1)
        return found
