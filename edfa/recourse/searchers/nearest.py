"""EDFA-default: what similar training people have, put in place of one's own values, as little of
it as will do.

First every single change (the sweep); then two and three changes at once, with values of the
nearest training people whom the model, from what is known, puts where one wants to be
(``combine``). Whoever has no plan by then is offered all that more distant people have, or all that
helps by itself, without what is not needed.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Self

import numpy as np

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.recourse._search.donors import Donors, Side
from edfa.recourse._search.postprocess import (
    confirm,
    distinct,
    minimise,
    undominated,
    within_max_changes,
)
from edfa.recourse._search.single_changes import SingleChanges
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, Int32Array, IntArray

__all__ = ["Nearest", "combine"]

COMBINED = 8  # of a donor's values that differ, those that help most by themselves are combined
FOLLOWED = 5  # of the more distant donors whose values are recourse, the nearest are followed up


class Nearest(Searcher):
    """The paper's default searcher.

    Parameters
    ----------
    train
        The training people: donors of values.
    neighbours, farther
        How many of the nearest are combined with; and how many are looked at where that gives
        nothing.
    max_changes
        The largest number of changes combined, at most 3.
    keep_dominated
        Whether to keep plans that move the same features in the same directions as another, and
        none of them less, because a neighbour is there.
    holds_further, min_support
        As for every ``Searcher``.

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

    # DEVIATION: the paper fixes neither the number of neighbours nor how sets of changes grow; 10
    # and up to 3 give about as many plans of about the size that its quality table implies.
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
        holds_further: bool = True,
        min_support: int | None = None,
    ) -> None:
        if neighbours < 1 or farther < 1 or not 1 <= max_changes <= 3:
            raise SettingError("neighbours and farther are at least 1, and max_changes from 1 to 3")
        self.neighbours = neighbours
        self.farther = farther
        self.max_changes = max_changes
        self.keep_dominated = keep_dominated
        self._set_sense(holds_further, min_support)
        if train is not None:
            self.fit(train)

    def _learn(self, train: Table) -> None:
        ordered = np.array([feature.kind != "categorical" for feature in train.schema])
        self.donors_ = Donors(self.rows_, ordered, self.support_)

    @classmethod
    def part_of(cls, searcher: Searcher) -> Self:
        """A searcher with default settings for a step of another one, with its training people,
        support and cache.
        """
        nearest = cls()
        nearest.train_, nearest.rows_ = searcher.train_, searcher.rows_
        nearest.support_, nearest.cache_, nearest.crowd_ = (
            searcher.support_,
            searcher.cache_,
            searcher.crowd_,
        )
        nearest._learn(searcher.train_)
        return nearest

    def search(self, problem: SearchProblem) -> Candidates:
        """Single changes, then several; more distant people for cases that have no plan by then."""
        changes = SingleChanges.of(problem)
        if not len(changes):
            return Candidates.none(problem)
        parts = [changes.candidates(*changes.nearest_recourse())]
        if (
            self.keep_dominated
            or min(self.max_changes, problem.actions.max_changes, len(problem.free)) > 1
        ):
            parts += [
                part
                for case, side in self.sides(problem)
                for part in self._from_neighbours(changes, case, side)
            ]
        candidates = self._with_farther(changes, Candidates.join(*parts))
        return distinct(candidates) if self.keep_dominated else candidates

    def sides(self, problem: SearchProblem) -> list[tuple[IntArray, Side]]:
        """The cases of each decision, with the donors on the other side of it."""
        decision = problem.group.decision
        decisions = np.unique(decision) if len(decision) > 1 else decision
        return [
            (np.flatnonzero(decision == now), self.donors_.side(problem, int(now)))
            for now in decisions
        ]

    def donor_changes(
        self, changes: SingleChanges, case: IntArray, donors: IntArray
    ) -> tuple[IntArray, BoolArray]:
        """The change that leads to each value of each case's donors (cases, donors), and whether it
        is for the case.

        Both are (cases, donors, free features).
        """
        problem, layout = changes.problem, changes.layout

        def make() -> Int32Array:
            return layout.changes_to(problem, self.donors_.rows[:, problem.features])

        by_donor = self.cache_.get(
            problem.predictor, problem.mask, ("donor changes", layout), make, large=True
        )
        change = by_donor[donors].astype(np.intp)
        return change, (change >= 0) & ~np.isnan(changes.to[case[:, None, None], change])

    def _from_neighbours(
        self, changes: SingleChanges, case: IntArray, side: Side
    ) -> Iterator[Candidates]:
        """Two and three of a neighbour's values; and one, if dominated plans are kept."""
        problem = changes.problem
        near = self.donors_.nearest(problem, case, side, self.neighbours)
        if not near.size:
            return
        change, usable = self.donor_changes(changes, case, near)
        if self.keep_dominated:
            row, donor, feature = np.nonzero(
                usable & changes.is_recourse[case[:, None, None], change]
            )
            single = changes.candidates(case[row], change[row, donor, feature])
            yield replace(single, donor=self.donors_.row_number[near[row, donor]])
        if (max_changes := min(self.max_changes, problem.actions.max_changes)) > 1:
            plans, donor = combine(changes, case, change, usable, max_changes)
            plans = replace(
                plans, donor=self.donors_.row_number[near[np.searchsorted(case, plans.case), donor]]
            )
            yield plans if self.keep_dominated else undominated(problem, plans)

    def _with_farther(self, changes: SingleChanges, candidates: Candidates) -> Candidates:
        """The candidates, and what more distant donors have for cases without any."""
        left = np.flatnonzero(np.bincount(candidates.case, minlength=len(changes.problem)) == 0)
        return (
            Candidates.join(candidates, self._from_farther(changes, left))
            if len(left) and len(changes)
            else candidates
        )

    def _from_farther(self, changes: SingleChanges, left: IntArray) -> Candidates:
        """All that a more distant donor has, and all that helps by itself; then only what is needed
        of it.
        """
        problem = changes.problem
        parts = [confirm(self, problem, _growing_sets(changes, left))]
        for case, side in self.sides(problem):
            case = np.intersect1d(case, left)
            near = self.donors_.nearest(problem, case, side, self.farther)
            if not near.size:
                continue
            change, usable = self.donor_changes(changes, case, near)
            to = np.full((*near.shape, len(problem.features)), np.nan, dtype=np.float32)
            values = changes.to[case[:, None, None], change]
            to[:, :, problem.free] = np.where(usable, values, np.float32(np.nan))
            everything = Candidates(
                np.repeat(case, near.shape[1]),
                to.reshape(-1, to.shape[2]),
                self.donors_.row_number[near.ravel()],
            )
            parts.append(_first_of_each_case(confirm(self, problem, everything), FOLLOWED))
        minimal = within_max_changes(problem, minimise(self, problem, Candidates.join(*parts)))
        return minimal if self.keep_dominated else undominated(problem, minimal)


def _growing_sets(changes: SingleChanges, case: IntArray) -> Candidates:
    """Each case's best change of every feature, one more at a time, the most helpful first."""
    problem, starts = changes.problem, changes.layout.starts
    score = changes.score(case)
    filled = np.flatnonzero(np.diff(starts))
    change = np.stack(
        [starts[k] + score[:, starts[k] : starts[k + 1]].argmax(axis=1) for k in filled], axis=1
    )
    gain = np.take_along_axis(score, change, axis=1)
    change = np.take_along_axis(change, np.argsort(-gain, axis=1, kind="stable"), axis=1)
    count, row = change.shape[1], np.arange(len(case))[:, None]
    to = np.full((len(case), count, len(problem.features)), np.nan, dtype=np.float32)
    for k in range(count):
        value, column = changes.to[case, change[:, k]], changes.layout.column[change[:, k]]
        to[row, np.arange(k, count), column[:, None]] = value[:, None]
    return Candidates.of(np.repeat(case, count), to.reshape(-1, to.shape[2]))


def _first_of_each_case(candidates: Candidates, count: int) -> Candidates:
    """At most the first ``count`` candidates of each case."""
    order = np.argsort(candidates.case, kind="stable")
    case = candidates.case[order]
    rank = np.arange(len(case)) - np.searchsorted(case, case)
    return candidates.take(np.sort(order[rank < count]))


def combine(
    changes: SingleChanges,
    case: IntArray,
    change: IntArray,
    usable: BoolArray,
    max_changes: int,
    *,
    keep_supersets: bool = False,
) -> tuple[Candidates, IntArray]:
    """Sets of two up to ``max_changes`` (three) of a donor's values that are recourse.

    Parameters
    ----------
    changes
        The single changes of all cases.
    case
        The cases whose donors' values are combined, (cases,).
    change, usable
        The change that leads to each value of each of their donors, and whether it may be proposed,
        (cases, donors, free features).
    max_changes
        The largest number of changes in a set, 2 or 3.
    keep_supersets
        Whether to keep sets that hold a smaller one which is recourse.

    Returns
    -------
    Candidates, IntArray
        The sets, and which of its case's donors each comes from. All are asked about in one call:
        sets that hold a smaller one are so few that they cost less than a second call.
    """
    problem = changes.problem
    if not keep_supersets:
        usable = usable & ~changes.is_recourse[case[:, None, None], change]
    if change.shape[2] > COMBINED:
        change, usable = _most_helpful(changes, case, change, usable)
    sets, pairs = _index_sets(change.shape[2], max_changes)
    one, two, three = (usable.take(index, axis=2) for index in sets.T)
    row, donor, set_ = np.nonzero(one & two & three)
    if not len(row):
        return Candidates.none(problem), row
    chosen = change[row[:, None], donor[:, None], sets[set_]]
    key = (pairs[set_, 0] >= 0) * len(case) + row  # pairs first
    for column in chosen.T:
        key = key * len(changes) + column
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    set_case, picked = case[row[first]], chosen[first]
    to = np.full((len(first), len(problem.features)), np.nan, dtype=np.float32)
    to[np.arange(len(first))[:, None], changes.layout.column[picked]] = changes.to[
        set_case[:, None], picked
    ]
    probabilities = problem.predict(problem.apply(set_case, to))
    fine = problem.is_recourse(set_case, probabilities)
    fine &= problem.actions.fit_together(problem.mask, problem.facts[set_case], to)
    turned = np.flatnonzero(fine)
    fine[turned] = problem.is_sensible(set_case[turned], to[turned])
    good = np.flatnonzero(fine)
    if not keep_supersets:
        works = np.zeros(
            (*usable.shape[:2], len(sets) + 1), dtype=bool
        )  # the last one: a pair holds no pair
        works[row, donor, set_] = fine[inverse]
        at = first[good]
        good = good[~works[row[at][:, None], donor[at][:, None], pairs[set_[at]]].any(axis=1)]
    return Candidates.of(set_case[good], to[good], probabilities[good]), donor[first[good]]


def _index_sets(size: int, max_changes: int) -> tuple[IntArray, IntArray]:
    """Every pair and triple of indices below ``size``, (sets, 3), a pair with its last index twice.

    With the numbers of the pairs that each triple holds, (sets, 3); -1 for a pair.
    """
    two = np.array(list(combinations(range(size), 2)), dtype=np.intp).reshape(-1, 2)
    triples = combinations(range(size), 3) if max_changes > 2 else ()
    three = np.array(list(triples), dtype=np.intp).reshape(-1, 3)
    number = np.full((size, size), -1, dtype=np.intp)
    number[two[:, 0], two[:, 1]] = np.arange(len(two))
    of_triples = number[three[:, [0, 0, 1]], three[:, [1, 2, 2]]]
    sets = np.concatenate([two[:, [0, 1, 1]], three])
    return sets, np.concatenate([np.full((len(two), 3), -1, dtype=np.intp), of_triples])


def _most_helpful(
    changes: SingleChanges, case: IntArray, change: IntArray, usable: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Of each donor's changes those that bring a case nearest to recourse by themselves, in their
    old order.
    """
    score = np.where(usable, changes.score(case)[np.arange(len(case))[:, None, None], change], -1.0)
    best = np.sort(np.argsort(-score, axis=2, kind="stable")[:, :, :COMBINED], axis=2)
    return np.take_along_axis(change, best, axis=2), np.take_along_axis(usable, best, axis=2)
