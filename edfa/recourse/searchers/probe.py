"""PROBE: plans that still work when they are met only roughly, at a rate that one chooses.

Pawelczyk, Datta, van den Heuvel, Kasneci & Lakkaraju, "Probabilistically robust recourse" (2023).
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.recourse._search.invalidation import Noise
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem, rank_in_case
from edfa.recourse.searchers.nearest import Nearest
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

FACTORS = (1.0, 1.25, 1.5, 2.0)  # times the way to go, for numbers that are too near to the border


@dataclass(eq=False, repr=False)
class PROBE(Searcher):
    """Plans whose invalidation rate is at most ``rate``.

    A plan is kept, and nothing taken out of it, as long as it is recourse and its rate is low
    enough. Candidates are those of ``Nearest`` with numbers moved away from the border as far as
    need be; for one changed number and a model that tells its cells, the nearest value whose exact
    rate is low enough. For a neural model, numbers are also moved along its gradient, with the
    authors' closed form of the rate.

    Parameters
    ----------
    train
        The training people.
    rate
        The probability of failure that is accepted.
    sigma
        The standard deviation of the noise, in training ranges, on every continuous feature that is
        changed.
    draws, steps
        How many draws a sampled rate is from (a power of two); steps along the gradient.
    holds_further, min_support
        As for every ``Searcher``.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], Background.of(table.train, model))
    >>> plans = find_recourse(people, PROBE(table.train, rate=0.1))
    >>> bool((plans.invalidation <= 0.1).all())
    True
    """

    _: KW_ONLY
    rate: float = 0.2
    sigma: float = 0.05
    draws: int = 256
    steps: int = 100

    uses_sweep = True
    finished = True

    def _check_settings(self) -> None:
        super()._check_settings()
        if not 0 < self.rate < 1 or not self.sigma > 0:
            raise SettingError("rate is between 0 and 1, and sigma above 0")
        if self.draws < 2 or self.draws & (self.draws - 1) or self.steps < 1:
            raise SettingError("draws is a power of two, and steps at least 1")

    def _learn(self, train: Table) -> None:
        self.noise_ = Noise(self.sigma, self.draws)
        self.nearest_ = Nearest.part_of(self)

    def search(self, problem: SearchProblem) -> Candidates:
        """Candidates that are robust enough, without what is not needed."""
        near = self.nearest_.search(problem)
        left, parts = near, [self.confirm(problem, self._single(problem))]
        for factor in FACTORS:
            farther = self._farther(problem, left, factor)
            case, to = farther.case, farther.to
            probabilities = problem.predict_changes(case, to)
            robust_enough = problem.actions.allows(problem.mask, problem.facts[case], to)
            robust_enough &= self.keeps(problem, case, to, probabilities)
            parts.append(Candidates(case, to, probabilities).take(robust_enough))
            left = left.take(~robust_enough)
        if problem.differentiable:  # torch is asked for only where a model has it
            from edfa.recourse._search.gradient import robust

            moved = robust(problem, near, self.sigma, self.rate, self.steps)
            parts.append(self.confirm(problem, moved))
        return problem.undominated(self.minimise(problem, Candidates.join(*parts)))

    def keeps(
        self, problem: SearchProblem, case: IntArray, to: Float32Array, probabilities: Float64Array
    ) -> BoolArray:
        """Which change sets are recourse, sensible, and robust enough, (candidates,)."""
        kept = super().keeps(problem, case, to, probabilities)
        rows = np.flatnonzero(kept)
        kept[rows] = self.noise_.rate(problem, case[rows], to[rows]) <= self.rate
        return kept

    def invalidation(self, problem: SearchProblem, candidates: Candidates) -> Float64Array:
        """The invalidation rate of each plan, (candidates,)."""
        return self.noise_.rate(problem, candidates.case, candidates.to)

    def _single(self, problem: SearchProblem) -> Candidates:
        """Of each continuous feature the nearest value, up and down, whose exact rate is low
        enough.
        """
        parts = [Candidates.none(problem)]
        for k, feature in enumerate(problem.group.features):
            values = problem.actions.values[feature]
            exact = problem.actions.continuous[feature] and problem.group.grid.has_cells[k]
            if not exact or not len(values):
                continue
            own = problem.group.own_values(feature)[:, None]
            fine = self.noise_.rate_by_value(problem, k, values) <= self.rate
            fine &= problem.actions.permits(feature, own, values)
            cell = problem.group.candidate_values[k].index_of(values)
            fine &= ~self.noise_.failing_cells(problem, k)[:, cell]
            case, index = np.nonzero(fine)
            way = np.sign(values[index] - own[case, 0])
            nearest = rank_in_case(3 * case + way, index * way) == 0
            case, index = case[nearest], index[nearest]
            column = np.searchsorted(problem.features, [feature])
            parts.append(Candidates(case, problem.change(column, values[index])))
        return Candidates.join(*parts)

    def _farther(self, problem: SearchProblem, candidates: Candidates, factor: float) -> Candidates:
        """The same changes with every number ``factor`` times as far from one's own, at the nearest
        permitted value.
        """
        own, to = problem.facts[candidates.case], candidates.to.copy()
        for column in problem.free[problem.actions.continuous[problem.features[problem.free]]]:
            rows = np.flatnonzero(~np.isnan(to[:, column]))
            if len(rows):
                far = own[rows, column] + factor * (to[rows, column] - own[rows, column])
                to[rows, column] = problem.actions.snap(int(problem.features[column]), far)
        return Candidates(candidates.case, to)
