"""EDFA-default: what similar training people have, put in place of one's own values, as little of it as will do.

First every single change (the sweep); then two and three changes at once, with values of the nearest training people
whom the current view puts where one wants to be. Whoever has no plan by then is offered all that more distant people
have, or all that helps by itself, without what is not needed.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.recourse._search.donors import Donors, Side
from edfa.recourse._search.postprocess import confirm, distinct, minimise, undominated
from edfa.recourse._search.single_changes import SingleChanges
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, Int32Array, IntArray

__all__ = ["Nearest", "combine"]

WIDTH = 8  # of a donor's differences, those that help most by themselves are combined
GRAFTS = 5  # of a case without a plan, so many of the nearest donors that would do are followed up


def combine(
    options: SingleChanges, case: IntArray, option: IntArray, usable: BoolArray, most: int, *, every: bool = False
) -> tuple[Candidates, IntArray]:
    """Sets of two up to ``most`` (three) of a donor's values, none of which holds a smaller one that is recourse.

    With the place of the donor that each comes from among those of its case. With ``every``, those that hold a smaller
    one as well. All are asked about in one call: sets that hold a smaller one are so few that they cost less than a
    second call.
    """
    problem = options.problem
    if not every:
        usable = usable & ~options.turns[case[:, None, None], option]
    if option.shape[2] > WIDTH:
        option, usable = _most_helpful(options, case, option, usable)
    sets, pairs = _sets_of(option.shape[2], most)
    one, two, three = (usable.take(place, axis=2) for place in sets.T)
    owner, donor, set_ = np.nonzero(one & two & three)
    if not len(owner):
        return Candidates.none(problem), owner
    chosen = option[owner[:, None], donor[:, None], sets[set_]]
    key = (pairs[set_, 0] >= 0) * len(case) + owner  # pairs first
    for column in chosen.T:
        key = key * len(options) + column
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    who, picked = case[owner[first]], chosen[first]
    to = np.full((len(first), len(problem.features)), np.nan, dtype=np.float32)
    to[np.arange(len(first))[:, None], options.column[picked]] = options.to[who[:, None], picked]
    probabilities = problem.predict(problem.apply(who, to))
    fine = problem.is_recourse(who, probabilities) & problem.actions.seen_together(problem.mask, problem.facts[who], to)
    good = np.flatnonzero(fine)
    if not every:
        works = np.zeros((*usable.shape[:2], len(sets) + 1), dtype=bool)  # the last one: a pair's own pairs
        works[owner, donor, set_] = fine[back]
        at = first[good]
        good = good[~works[owner[at][:, None], donor[at][:, None], pairs[set_[at]]].any(axis=1)]
    return Candidates.of(who[good], to[good], probabilities[good]), donor[first[good]]


@cache
def _sets_of(size: int, most: int) -> tuple[IntArray, IntArray]:
    """Every set of two and of three places, two with the last one twice; and the places of the pairs in each, or -1."""
    two = list(combinations(range(size), 2))
    three = list(combinations(range(size), 3)) if most > 2 else []
    pairs = [[-1] * 3 for _ in two] + [[two.index(pair) for pair in combinations(three_, 2)] for three_ in three]
    sets = [(*pair, pair[1]) for pair in two] + three
    return np.array(sets, dtype=np.intp).reshape(-1, 3), np.array(pairs, dtype=np.intp).reshape(-1, 3)


def _most_helpful(
    options: SingleChanges, case: IntArray, option: IntArray, usable: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Of each donor's differences those that bring a case nearest to recourse by themselves, in their old order."""
    score = np.where(usable, options.score(case)[np.arange(len(case))[:, None, None], option], -1.0)
    best = np.sort(np.argsort(-score, axis=2, kind="stable")[:, :, :WIDTH], axis=2)
    return np.take_along_axis(option, best, axis=2), np.take_along_axis(usable, best, axis=2)


class Nearest(Searcher):
    """The paper's default searcher.

    Parameters
    ----------
    train
        The training people: donors of values.
    neighbours, farther
        How many of the nearest are combined with; and how many are asked where that gives nothing.
    max_changes
        The largest number of changes combined, at most 3.
    keep_dominated
        Whether to keep plans that move the same features in the same directions as another, and none of them less,
        because a neighbour is there.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> refused = table.test.X[model.predict(table.test.X) == 0][:5]
    >>> people = People(refused, Background.of(table.train, model))
    >>> plans = find_recourse(people, Nearest(table.train), desired_class=1)
    >>> bool((model.predict(plans.rows()) == 1).all()), bool(plans.legal.all())
    (True, True)
    """

    # DEVIATION: the paper fixes neither the number of neighbours nor how sets of changes grow; 10 and up to 3 give
    # about as many plans of about the size that its quality table implies.
    uses_sweep = True
    finished = True

    def __init__(
        self,
        train: Table | None = None,
        *,
        neighbours: int = 10,
        farther: int = 50,
        max_changes: int = 3,
        keep_dominated: bool = False,
    ) -> None:
        if neighbours < 1 or farther < 1 or not 1 <= max_changes <= 3:
            raise SettingError("neighbours and farther are at least 1, and max_changes from 1 to 3")
        self.neighbours = neighbours
        self.farther = farther
        self.max_changes = max_changes
        self.keep_dominated = keep_dominated
        if train is not None:
            self.fit(train)

    def _learn(self, train: Table) -> None:
        ordered = np.array([feature.kind != "categorical" for feature in train.schema])
        self.donors_ = Donors(self.rows_, ordered, self.cache_)

    def search(self, problem: SearchProblem) -> Candidates:
        """Single changes, then several; more distant people where there are none."""
        options = SingleChanges.of(problem)
        found = [options.alone(*options.nearest())]
        if self.keep_dominated or min(self.max_changes, problem.actions.max_changes, len(problem.free)) > 1:
            found += [part for side in self.sides(problem) for part in self._neighbours(options, *side)]
        joined = Candidates.join(*found)
        left = np.flatnonzero(np.bincount(joined.case, minlength=len(problem)) == 0)
        joined = Candidates.join(joined, self._farther(options, left)) if len(left) and len(options) else joined
        return distinct(joined) if self.keep_dominated else joined

    def sides(self, problem: SearchProblem) -> list[tuple[IntArray, Side]]:
        """Cases of the same decision, with the donors on the other side."""
        decision = problem.group.decision
        found = np.unique(decision) if len(decision) > 1 else decision
        return [(np.flatnonzero(decision == now), self.donors_.side(problem, int(now))) for now in found]

    def offers(self, options: SingleChanges, case: IntArray, donors: IntArray) -> tuple[IntArray, BoolArray]:
        """The option that each donor's value is, and whether it may be proposed: (cases, donors, free features)."""
        problem, layout = options.problem, options.layout

        def make() -> Int32Array:
            return layout.options(problem, self.donors_.rows[:, problem.features])

        offered = self.cache_.get(problem.predictor, problem.mask, ("offered", layout), make, large=True)
        option = offered[donors].astype(np.intp)
        return option, (option >= 0) & ~np.isnan(options.to[case[:, None, None], option])

    def _neighbours(self, options: SingleChanges, case: IntArray, side: Side) -> Iterator[Candidates]:
        """Two and three of a neighbour's values; and one, where it is farther than need be and that is wanted."""
        problem = options.problem
        near = self.donors_.nearest(problem, case, side, self.neighbours)
        if not near.size:
            return
        option, usable = self.offers(options, case, near)
        if self.keep_dominated:
            row, place, feature = np.nonzero(usable & options.turns[case[:, None, None], option])
            alone = options.alone(case[row], option[row, place, feature])
            yield replace(alone, donor=self.donors_.number[near[row, place]])
        if (most := min(self.max_changes, problem.actions.max_changes)) > 1:
            plans, place = combine(options, case, option, usable, most)
            plans = replace(plans, donor=self.donors_.number[near[np.searchsorted(case, plans.case), place]])
            yield plans if self.keep_dominated else undominated(problem, plans)

    def _farther(self, options: SingleChanges, left: IntArray) -> Candidates:
        """All that a more distant donor has; where none helps, all that helps by itself. Then only what is needed."""
        problem = options.problem
        parts = [confirm(self, problem, _all_that_helps(options, left))]
        for case, side in self.sides(problem):
            case = np.intersect1d(case, left)
            near = self.donors_.nearest(problem, case, side, self.farther)
            if not near.size:
                continue
            option, usable = self.offers(options, case, near)
            to = np.full((*near.shape, len(problem.features)), np.nan, dtype=np.float32)
            offered = options.to[case[:, None, None], option]
            to[:, :, problem.free] = np.where(usable, offered, np.float32(np.nan))
            flat = Candidates(
                np.repeat(case, near.shape[1]), to.reshape(-1, to.shape[2]), self.donors_.number[near.ravel()]
            )
            parts.append(_first(confirm(self, problem, flat), GRAFTS))
        found = minimise(self, problem, Candidates.join(*parts))
        found = found.take((~np.isnan(found.to)).sum(axis=1) <= problem.actions.max_changes)
        return found if self.keep_dominated else undominated(problem, found)


def _all_that_helps(options: SingleChanges, case: IntArray) -> Candidates:
    """Each case's best option of every feature, one more at a time, the most helpful first."""
    problem = options.problem
    score = options.score(case)
    filled = np.flatnonzero(np.diff(options.first))
    best = [options.first[k] + score[:, options.first[k] : options.first[k + 1]].argmax(axis=1) for k in filled]
    option = np.stack(best, axis=1)
    gain = np.take_along_axis(score, option, axis=1)
    option = np.take_along_axis(option, np.argsort(-gain, axis=1, kind="stable"), axis=1)
    count = option.shape[1]
    to = np.full((len(case), count, len(problem.features)), np.nan, dtype=np.float32)
    for k in range(count):
        who, value = np.arange(len(case)), options.to[case, option[:, k]]
        to[who[:, None], np.arange(k, count), options.column[option[:, k]][:, None]] = value[:, None]
    return Candidates.of(np.repeat(case, count), to.reshape(-1, to.shape[2]))


def _first(found: Candidates, count: int) -> Candidates:
    """The first so many of each case."""
    order = np.argsort(found.case, kind="stable")
    case = found.case[order]
    rank = np.arange(len(case)) - np.searchsorted(case, case)
    return found.take(np.sort(order[rank < count]))
