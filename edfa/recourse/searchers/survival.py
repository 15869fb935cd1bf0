"""Lasting: among the plans that work today, those likeliest to still work when everything is known.

The paper's nearest plans sit just past the border of what the model can see today, and most fall back when it sees
more. Here a plan may go farther, or change one thing more, when it survives better for it.
"""

from dataclasses import replace
from typing import Self

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.recourse._search.postprocess import affordable, distinct
from edfa.recourse._search.ranking import lengths
from edfa.recourse._search.single_changes import SingleChanges
from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.recourse.searchers.nearest import Nearest, combine
from edfa.recourse.survival import Completions, PlannedChanges, Survival
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
    n_completions
        The number of training people who complete each person.
    n_candidates
        The number of candidates a person that are tried on the completions: half of them the nearest, the others those that bring the
        model, as far as it sees, the farthest past the border.
    neighbours, farther, max_changes
        As for ``Nearest``.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:20].copy()
    >>> known[:, 12:] = np.nan
    >>> people = edfa.People(known, edfa.Background.of(table.train, model))
    >>> near, lasting = (edfa.find_recourse(people, s(table.train)) for s in (edfa.Nearest, SurvivalSearch))
    >>> from edfa.recourse import add_survival
    >>> usual = add_survival(near, table.train).survival[near.first[near.legal]].mean()
    >>> bool(lasting.survival[lasting.first[lasting.legal]].mean() > usual)
    True
    """

    minimal = False

    def __init__(
        self,
        train: Table | None = None,
        *,
        n_completions: int = 32,
        n_candidates: int = 32,
        neighbours: int = 10,
        farther: int = 50,
        max_changes: int = 3,
    ) -> None:
        if n_completions < 2 or n_candidates < 2:
            raise SettingError(
                f"n_completions and n_candidates: at least 2 each, not {n_completions} and {n_candidates}"
            )
        self.n_completions = n_completions
        self.n_candidates = n_candidates
        super().__init__(train, neighbours=neighbours, farther=farther, max_changes=max_changes)

    def _learn(self, train: Table) -> None:
        super()._learn(train)
        self.completions_ = Completions.of(train, self.n_completions, cache=self.cache_)

    def fit_without(self, train: Table, left_out: IntArray) -> Self:
        """Learn from training people, but complete nobody from the rows ``left_out``."""
        self.fit(train)
        self.completions_ = Completions.of(train, self.n_completions, without=left_out.tolist(), cache=self.cache_)
        return self

    def search(self, problem: SearchProblem) -> Candidates:
        """Every single change that works, and all sets of a donor's values that do; the most promising of them."""
        options = SingleChanges.of(problem)
        found, most = [options.alone(*np.nonzero(options.turns))], min(self.max_changes, problem.actions.max_changes)
        for case, side in self.sides(problem) if min(most, len(problem.free)) > 1 else ():
            near = self.donors_.nearest(problem, case, side, self.neighbours)
            if not near.size:
                continue
            plans, place = combine(options, case, *self.offers(options, case, near), most, every=True)
            row = np.searchsorted(case, plans.case)
            found.append(replace(plans, donor=self.donors_.number[near[row, place]]))
        joined = self._promising(problem, affordable(problem, distinct(Candidates.join(*found))))
        left = np.flatnonzero(np.bincount(joined.case, minlength=len(problem)) == 0)
        return Candidates.join(joined, self._farther(options, left)) if len(left) and len(options) else joined

    def survival(
        self, problem: SearchProblem, found: Candidates, keys: tuple[Float64Array | IntArray, ...]
    ) -> Survival:
        """Of each plan that may survive better than all easier ones; NaN of the others."""
        to = np.full((len(found), len(problem.mask)), np.nan, dtype=np.float32)
        to[:, problem.features] = found.to
        plans = PlannedChanges(problem.cases, found.case, to, problem.desired_class)
        return self.completions_.race(plans, _place(found.case, *keys), problem.enough_survival)

    def _promising(self, problem: SearchProblem, found: Candidates) -> Candidates:
        """Half of them the nearest, the others those that go farthest past the border; all where they are few."""
        if len(found) <= self.n_candidates or np.bincount(found.case).max() <= self.n_candidates:
            return found
        size = lengths(problem.actions, problem.mask, problem.facts[found.case], found.to)
        near = _place(found.case, size.l2, size.l0, np.round(size.effort, 9)) < self.n_candidates // 2
        past = np.round(problem.score(found.case, np.asarray(found.probabilities)), 6)
        far = _place(found.case, size.l2, -past, near) < self.n_candidates - self.n_candidates // 2
        return found.take(near | (far & ~near))


def _place(case: IntArray, *keys: np.ndarray) -> IntArray:
    """The place of each row among those of its case, in the order of the last key, then the one before it."""
    order = np.lexsort((*keys, case))
    place = np.empty(len(case), dtype=np.intp)
    place[order] = np.arange(len(case)) - np.searchsorted(case[order], case[order])
    return place
