"""The invalidation rate: how often a plan fails when its numbers are met only roughly.

``Noise.rate`` is the entry. Noise is normal and falls on changed continuous features alone: nobody
implements noise on what they leave as it is, and a level is met or not. For one changed number, and
a model that tells its cells, the rate is a sum over these cells; otherwise it is a share of
quasi-random draws, the same for everybody.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats.qmc import Sobol

from edfa.recourse.searcher import SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

PLANS_AT_ONCE = 1024  # plans at a time whose draws are asked about


@dataclass(frozen=True)
class Noise:
    """Normal noise on changed numbers.

    Parameters
    ----------
    sigma
        The standard deviation, in training ranges of each feature.
    draws
        The number of draws behind a sampled rate, a power of two.

    Examples
    --------
    >>> Noise(0.1, draws=4).standard(2).shape
    (4, 2)
    """

    sigma: float = 0.05
    draws: int = 256

    def standard(self, width: int) -> Float64Array:
        """Quasi-random standard normal draws, (draws, width)."""
        points = Sobol(width, rng=np.random.default_rng(0)).random(self.draws)
        return np.asarray(ndtri(np.clip(points, 1e-9, 1 - 1e-9)))

    def rate(self, problem: SearchProblem, case: IntArray, to: Float32Array) -> Float64Array:
        """The invalidation rate of change sets.

        Parameters
        ----------
        problem
            The people and the model.
        case
            The case that each change set is for, (plans,).
        to
            The change sets, (plans, known features); NaN: unchanged.

        Returns
        -------
        numpy.ndarray
            The probability that each plan is no recourse, (plans,); 0 for plans that change no
            continuous feature.
        """
        changed = ~np.isnan(to)
        noisy = changed & problem.actions.continuous[problem.features]
        rate = np.zeros(len(case))
        one_number = (noisy.sum(axis=1) == 1) & (changed.sum(axis=1) == 1)
        for k, feature in enumerate(problem.group.features):
            column = int(np.searchsorted(problem.features, feature))
            rows = np.flatnonzero(one_number & noisy[:, column])
            if len(rows) and problem.group.grid.has_cells[k]:
                weights = self._cell_probabilities(problem, k, to[rows, column])
                rate[rows] = (self.failing_cells(problem, k)[case[rows]] * weights).sum(axis=1)
                noisy[rows] = False
        rows = np.flatnonzero(noisy.any(axis=1))
        rate[rows] = self._sampled_rate(problem, case[rows], to[rows], noisy[rows])
        return rate

    def rate_by_value(self, problem: SearchProblem, k: int, values: Float32Array) -> Float64Array:
        """The rate of every single change of the k-th swept feature to each value.

        The sweep must have tried every cell of the feature. ``values`` is (values,), the result
        (cases, values).
        """
        return self.failing_cells(problem, k) @ self._cell_probabilities(problem, k, values).T

    def failing_cells(self, problem: SearchProblem, k: int) -> BoolArray:
        """Which cells of the k-th swept feature are no recourse, (cases, cells)."""
        return ~problem.single_recourse[:, slice(*problem.group.grid.starts[k : k + 2])]

    def _cell_probabilities(
        self, problem: SearchProblem, k: int, values: Float32Array
    ) -> Float64Array:
        """How likely noise around each value is to end in each cell of the k-th swept feature,
        (values, cells).
        """
        cells, feature = problem.group.candidate_values[k], problem.group.features[k]
        scale = self.sigma * problem.actions.value_range[feature]
        upper, lower = (
            ndtr((ends.astype(float) - values[:, None]) / scale)
            for ends in (cells.upper, cells.lower)
        )
        return np.asarray(upper - lower)

    def _sampled_rate(
        self, problem: SearchProblem, case: IntArray, to: Float32Array, noisy: BoolArray
    ) -> Float64Array:
        """The share of draws in which change sets are no recourse; ``noisy`` (plans, known
        features) get noise.
        """
        if not len(case):
            return np.zeros(0)
        # Drawn for all features, known or not, so that a feature's noise is the same whatever else
        # is known.
        standard = self.standard(len(problem.mask))[:, problem.features]
        scale = self.sigma * problem.actions.value_range[problem.features]
        noise = (standard * scale).astype(np.float32)
        rate = np.empty(len(case))
        for part in np.array_split(np.arange(len(case)), -(-len(case) // PLANS_AT_ONCE)):
            rows = problem.apply(case[part], to[part])[:, None, :] + noise * noisy[part][:, None, :]
            probabilities = problem.predict(rows.reshape(-1, to.shape[1]))
            works = problem.is_recourse(np.repeat(case[part], self.draws), probabilities)
            rate[part] = 1 - works.reshape(len(part), self.draws).mean(axis=1)
        return rate
