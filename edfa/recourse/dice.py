"""DiCE: several different plans at once, by chance, by evolution, or along a gradient.

Mothilal, Sharma & Tan, "Explaining machine learning classifiers through diverse counterfactual explanations" (2020).
"""

from typing import Literal

import numpy as np

from edfa.data.table import Table
from edfa.errors import DataError, SchemaError, UnknownNameError
from edfa.recourse.base import Found, Searcher, Task
from edfa.recourse.draw import Draws
from edfa.recourse.evolution import evolve
from edfa.recourse.finish import confirm, minimise, undominated
from edfa.recourse.measure import apart, diverse, lengths
from edfa.recourse.nearest import Nearest

__all__ = ["DiCE"]

Method = Literal["random", "genetic", "gradient"]
METHODS: tuple[Method, ...] = ("random", "genetic", "gradient")


class DiCE(Searcher):
    """A few diverse plans each.

    Parameters
    ----------
    train
        The training people: what may be drawn.
    method
        ``"random"``: one, two and more features get values drawn from training people. ``"genetic"``: such draws and
        training people evolve. ``"gradient"``: numbers move along a neural model's gradient, away from each other.
    plans
        How many plans each.
    draws, generations, steps
        Draws a round; the longest evolution; steps along the gradient.

    Examples
    --------
    >>> import edfa
    >>> from edfa.recourse import People, find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(trees=20).fit(table.train.X, table.train.y)
    >>> people = People(table.test.X[:5], table.schema, table.encoder, model)
    >>> plans = find_recourse(people, DiCE(table.train, plans=3), seed=1)
    >>> int(plans.count.max())
    3
    """

    finished = True

    def __init__(
        self,
        train: Table,
        method: Method = "random",
        *,
        plans: int = 4,
        draws: int = 256,
        generations: int = 50,
        steps: int = 150,
    ) -> None:
        super().__init__(train)
        if method not in METHODS:
            raise UnknownNameError("method", method, METHODS)
        if min(plans, draws, generations, steps) < 1:
            raise SchemaError("plans, draws, generations and steps are at least 1")
        self.method, self.plans, self.draws, self.generations, self.steps = method, plans, draws, generations, steps
        self.sweeps = method == "gradient"
        self.nearest = Nearest(train)

    def search(self, task: Task) -> Found:
        """Draw, evolve or descend; then only what is needed, and the most different of it."""
        if self.method == "random":
            found = self._random(task)
        elif self.method == "genetic":
            found = evolve(task, self.nearest, self.plans, self.generations)
        else:
            found = self._gradient(task)
        found = undominated(task, minimise(self, task, confirm(self, task, found)))
        found = found.take((~np.isnan(found.to)).sum(axis=1) <= task.rules.most)
        return self._choose(task, found)

    def _random(self, task: Task) -> Found:
        """One more feature a round, for those who have too few plans."""
        drawn, open_ = Draws.of(task, self.draws), np.arange(len(task))
        parts, count = [Found.none(task)], np.zeros(len(task), dtype=np.intp)
        for size in range(1, min(len(task.free), task.rules.most) + 1):
            found = confirm(self, task, drawn.changes(open_, size))
            parts.append(found)
            count += np.bincount(found.case, minlength=len(task))
            if size >= 2:
                open_ = np.flatnonzero(count < self.plans)
            if not len(open_):
                break
        return Found.join(*parts)

    def _gradient(self, task: Task) -> Found:
        if not (task.mask & task.predictor.varies_).any():
            return Found.none(task)
        if not task.differentiable:
            name = type(task.predictor).__name__
            raise DataError(
                f"the gradient method needs a neural model, and {name} has no gradient; use random or genetic"
            )
        from edfa.recourse.gradient import different

        return different(task, self.nearest.search(task), self.plans, self.steps)

    def _choose(self, task: Task, found: Found) -> Found:
        """The best, then those farthest from it and from each other."""
        size = lengths(task.rules, task.mask, task.facts[found.case], found.to)
        found = found.take(np.lexsort((size.l2, size.l0, np.round(size.effort, 9), found.case)))
        places = apart(task.rules, task.mask, task.facts[found.case], found.to)
        return found.take(diverse(found.case, places, self.plans))
