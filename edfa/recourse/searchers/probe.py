"""PROBE: plans that still work when they are met only roughly, at a rate that one chooses.

Pawelczyk, Datta, van den Heuvel, Kasneci & Lakkaraju, "Probabilistically robust recourse" (2023).
"""

import numpy as np

from edfa.data.table import Table
from edfa.errors import SchemaError
from edfa.recourse._search.invalidation import Noise
from edfa.recourse._search.postprocess import confirm, minimise, undominated
from edfa.recourse._search.single_changes import belongs
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.recourse.searchers.nearest import Nearest
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["PROBE"]

FARTHER = (1.0, 1.25, 1.5, 2.0)  # times the way to go, for numbers that are too near to the border


class PROBE(Searcher):
    """Plans whose invalidation rate is at most ``rate``.

    A plan is kept, and nothing taken out of it, as long as it is recourse and its rate is low enough. Candidates are
    those of ``Nearest`` with numbers moved away from the border as far as need be; for one changed number and a model
    that tells its cells, the nearest value whose exact rate is low enough. For a neural model, numbers are also moved
    along its gradient, with the authors' closed form of the rate.

    Parameters
    ----------
    train
        The training people.
    rate
        The chance of failure that is accepted.
    sigma
        The standard deviation of the noise, in training ranges, on every continuous feature that is changed.
    draws, steps
        How many draws a sampled rate is from (a power of two); steps along the gradient.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], table.schema, table.encoder, model)
    >>> plans = find_recourse(people, PROBE(table.train, rate=0.1))
    >>> bool((plans.invalidation <= 0.1).all())
    True
    """

    sweeps = True
    finished = True

    def __init__(
        self, train: Table, *, rate: float = 0.2, sigma: float = 0.05, draws: int = 256, steps: int = 100
    ) -> None:
        super().__init__(train)
        if not 0 < rate < 1 or not sigma > 0:
            raise SchemaError("rate is between 0 and 1, and sigma above 0")
        if draws < 2 or draws & (draws - 1) or steps < 1:
            raise SchemaError("draws is a power of two, and steps at least 1")
        self.rate, self.steps, self.noise = rate, steps, Noise(sigma, draws)
        self.nearest = Nearest(train)

    def search(self, task: SearchProblem) -> Candidates:
        """Candidates that are robust enough, without what is not needed."""
        left = self.nearest.search(task)
        near, parts = left, [confirm(self, task, self._single(task))]
        for by in FARTHER:
            tried = self._farther(task, left, by)
            chances = task.ask(task.changed(tried.case, tried.to))
            fine = task.rules.clean(task.mask, task.facts[tried.case], tried.to)
            fine &= self.keeps(task, tried.case, tried.to, chances)
            parts.append(Candidates(tried.case, tried.to, tried.donor, chances).take(fine))
            left = left.take(~fine)
        if task.differentiable:
            from edfa.recourse._search.gradient import robust  # torch is asked for only where a model has it

            parts.append(confirm(self, task, robust(task, near, self.noise, self.rate, self.steps)))
        return undominated(task, minimise(self, task, Candidates.join(*parts)))

    def keeps(self, task: SearchProblem, case: IntArray, to: Float32Array, chances: Float64Array) -> BoolArray:
        """Recourse, and robust enough."""
        fine = task.reaches(case, chances)
        rows = np.flatnonzero(fine)
        fine[rows] = self.noise.rate(task, case[rows], to[rows]) <= self.rate
        return fine

    def invalidation(self, task: SearchProblem, found: Candidates) -> Float64Array:
        """The rate of each plan."""
        return self.noise.rate(task, found.case, found.to)

    def _single(self, task: SearchProblem) -> Candidates:
        """Of each continuous feature the nearest value, up and down, whose exact rate is low enough."""
        cases, tos = [], []
        for k, feature in enumerate(task.group.features):
            values = task.rules.values[feature]
            if not task.rules.measured[feature] or not self.noise.exact(task, k) or not len(values):
                continue
            own = task.group.own(feature)[:, None]
            fine = (self.noise.by_value(task, k, values) <= self.rate) & task.rules.permits(feature, own, values)
            fine &= ~self.noise.fails(task, k)[:, belongs(task.group.tries[k], values)]
            above, below = fine & (values > own), fine & (values < own)
            first = above & (np.cumsum(above, axis=1) == 1) | below & (np.cumsum(below[:, ::-1], axis=1)[:, ::-1] == 1)
            case, place = np.nonzero(first)
            to = np.full((len(case), len(task.features)), np.nan, dtype=np.float32)
            to[:, np.searchsorted(task.features, feature)] = values[place]
            cases.append(case)
            tos.append(to)
        return Candidates.of(np.concatenate(cases), np.concatenate(tos)) if cases else Candidates.none(task)

    def _farther(self, task: SearchProblem, found: Candidates, by: float) -> Candidates:
        """The same changes with every number so much farther, at the nearest value that may be proposed."""
        own, to = task.facts[found.case], found.to.copy()
        for column in task.free[task.rules.measured[task.features[task.free]]]:
            rows = np.flatnonzero(~np.isnan(to[:, column]))
            if len(rows):
                far = own[rows, column] + by * (to[rows, column] - own[rows, column])
                to[rows, column] = task.rules.snap(int(task.features[column]), far)
        return Candidates(found.case, to, found.donor)
