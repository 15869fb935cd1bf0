"""Lasting: among the plans that work today, those likeliest to still work when everything is known.

The paper's nearest plans sit just past the border of what the model can see today, and most fall back when it sees
more. Here a plan may go farther, or change one thing more, when it survives better for it.
"""

from copy import copy
from dataclasses import replace

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.recourse._search.postprocess import affordable, distinct
from edfa.recourse._search.ranking import lengths
from edfa.recourse._search.single_changes import SingleChanges
from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.recourse.searchers.nearest import Nearest, combine
from edfa.recourse.survival import Completions, Decided, Survival
from edfa.typing import Float64Array, IntArray

__all__ = ["SurvivalSearch"]


class SurvivalSearch(Nearest):
    """Plans of up to three changes, the best surviving first, then the nearest.

    What is handed out is a menu: each next plan survives less often and takes less effort. A plan need not be minimal;
    but where a smaller one survives as well, that is the one offered.

    Parameters
    ----------
    train
        The training people: donors of values, and of what is not known.
    completions
        How many training people complete each person.
    plans
        So many plans a person are tried on the completions: half of them the nearest, the others those that bring the
        model, as far as it sees, the farthest past the border.
    neighbours, farther, changes
        As for ``Nearest``.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:20].copy()
    >>> known[:, 12:] = np.nan
    >>> people = edfa.People(known, table.schema, table.encoder, model)
    >>> near, lasting = (edfa.find_recourse(people, s(table.train)) for s in (edfa.Nearest, Lasting))
    >>> from edfa.recourse import survive
    >>> usual = survive(near, table.train).survival[near.first[near.legal]].mean()
    >>> bool(lasting.survival[lasting.first[lasting.legal]].mean() > usual)
    True
    """

    minimal = False

    def __init__(
        self,
        train: Table,
        *,
        completions: int = 32,
        plans: int = 32,
        neighbours: int = 10,
        farther: int = 50,
        changes: int = 3,
    ) -> None:
        super().__init__(train, neighbours=neighbours, farther=farther, changes=changes)
        if plans < 2:
            raise SettingError(f"plans: at least 2 are compared, not {plans}")
        self.plans, self.completions, self._enough = plans, Completions.of(train, completions), 1.0

    def until(self, enough: float) -> "SurvivalSearch":
        """One that looks for nothing better once a plan survives so often: enough to see whether there is one."""
        found = copy(self)
        found._enough = enough
        return found

    def search(self, task: SearchProblem) -> Candidates:
        """Every single change that works, and all sets of a donor's values that do; the most promising of them."""
        options = SingleChanges.of(task)
        found, most = [options.alone(*np.nonzero(options.turns))], min(self.changes, task.rules.most)
        for case, donors in self.sides(task) if min(most, len(task.free)) > 1 else ():
            near = self.pool.nearest(task, case, donors, self.neighbours)
            if not near.size:
                continue
            plans, place = combine(options, case, *self.offers(options, case, near), most, every=True)
            row = np.searchsorted(case, plans.case)
            found.append(replace(plans, donor=self.pool.number[near[row, place]]))
        joined = self._promising(task, affordable(task, distinct(Candidates.join(*found))))
        left = np.flatnonzero(np.bincount(joined.case, minlength=len(task)) == 0)
        return Candidates.join(joined, self._farther(options, left)) if len(left) and len(options) else joined

    def survival(self, task: SearchProblem, found: Candidates, keys: tuple[Float64Array | IntArray, ...]) -> Survival:
        """Of each plan that may survive better than all easier ones; NaN of the others."""
        width = len(task.mask)
        rows = np.full((len(task), width), np.nan, dtype=np.float32)
        rows[:, task.features] = task.facts
        to = np.full((len(found), width), np.nan, dtype=np.float32)
        to[:, task.features] = found.to
        place = _place(found.case, *keys)
        people = Decided(rows, task.group.decision, task.predictor, task.wanted)
        return self.completions.race(people, found.case, to, place, self._enough)

    def _promising(self, task: SearchProblem, found: Candidates) -> Candidates:
        """Half of them the nearest, the others those that go farthest past the border; all where they are few."""
        if len(found) <= self.plans or np.bincount(found.case).max() <= self.plans:
            return found
        size = lengths(task.rules, task.mask, task.facts[found.case], found.to)
        near = _place(found.case, size.l2, size.l0, np.round(size.effort, 9)) < self.plans // 2
        past = np.round(task.score(found.case, np.asarray(found.chances)), 6)
        far = _place(found.case, size.l2, -past, near) < self.plans - self.plans // 2
        return found.take(near | (far & ~near))


def _place(case: IntArray, *keys: np.ndarray) -> IntArray:
    """The place of each row among those of its case, in the order of the last key, then the one before it."""
    order = np.lexsort((*keys, case))
    place = np.empty(len(case), dtype=np.intp)
    place[order] = np.arange(len(case)) - np.searchsorted(case[order], case[order])
    return place
