"""find_recourse: plans for whole batches of partly known people, one model call for all who know the same.

Whoever has no plan gets a reason; it takes a sweep of everything they know, so it is worked out when it is read.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from edfa.data.constraints import Constraints
from edfa.errors import DataError, SettingError
from edfa.explanation.necessity import Sweep, sweep
from edfa.explanation.partition import members
from edfa.parallel import count_jobs, map_parallel
from edfa.people import HasPeople, People
from edfa.recourse._search.postprocess import affordable, confirm, minimise, undominated, within_max_changes
from edfa.recourse._search.ranking import apart, diverse, lengths, menu
from edfa.recourse._search.single_changes import interval
from edfa.recourse.action_set import ActionSet
from edfa.recourse.plan import NoPlan, Reason
from edfa.recourse.plans import Plans
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, IntArray

__all__ = ["NoPlanReasons", "find_recourse"]

FEW = 16  # people who are swept at once, without asking first who has the desired decision already


def find_recourse(
    people: HasPeople,
    searcher: Searcher,
    *,
    constraints: Constraints | None = None,
    desired_class: int | str | None = None,
    k: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    enough_survival: float = 1.0,
) -> Plans:
    """Find what everybody could change to get another decision.

    Parameters
    ----------
    people
        Partly known people, or what has them: a trajectory, with everybody at every step.
    searcher
        A fitted searcher: ``Nearest().fit(train)`` and others.
    constraints
        What must not change, beyond what the card says.
    desired_class
        The name or code of the class to lead to; people who have it already get no plan. None: any other decision
        counts (the paper's reading).
    k
        The largest number of plans a person: the best, then those farthest from it and from each other; None: all.
    seed
        For searchers that draw; the same people get the same plans, alone or in a batch.
    n_jobs
        The number of threads, as scikit-learn counts them (-1: one a processor). Plans do not depend on it.
    progress
        Called with the number of distinct states of people that are done, and with the number of all.
    enough_survival
        A searcher that ranks by survival looks for nothing better once a plan survives in that share of completions.

    Returns
    -------
    Plans
        The plans of each person together, best first; people without one have a reason in ``Plans.reasons``.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import Nearest
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:40].copy()
    >>> known[:, 10:] = np.nan
    >>> plans = find_recourse(People(known, Background.of(table.train, model)), Nearest(table.train))
    >>> sorted(set(plans.frame()["feature"]) - set(table.schema.names[:10]))
    []
    """
    batch = people.people()
    _check(batch, searcher, k)
    goal = batch.background.class_code(desired_class)
    actions = searcher.action_set(constraints, batch)
    rows, swept, decision = _sweep(batch, searcher, goal, actions.free & bool(searcher.uses_sweep))
    problems = [SearchProblem(group, actions, batch.background, goal, seed, enough_survival) for group in swept.groups]
    done = list(accumulate(len(problem) for problem in problems))
    parts: list[dict[str, Any]] = []
    for part in map_parallel(lambda problem: _columns(searcher, problem, rows, k), problems, count_jobs(n_jobs)):
        parts.append(part)
        if progress:
            progress(done[len(parts) - 1], done[-1])
    columns = _join(parts or [_empty_columns(len(batch.schema))])
    return Plans(
        people=batch,
        decision=decision.astype(np.int64),
        reasons=NoPlanReasons(batch, actions, goal, rows, columns["of"]),
        provenance=replace(batch.provenance, searcher=searcher, constraints=constraints, desired_class=goal),
        **columns,
    )


def _check(people: People, searcher: Searcher, k: int | None) -> None:
    """Raise an error before any work if people and searcher do not go together."""
    if not isinstance(searcher, Searcher):
        raise DataError(f"a searcher is an object such as Nearest().fit(train), not {searcher!r}")
    searcher._check_fitted()
    if people.background.model is None:
        raise DataError("these people have no predictor; plans are for decisions that one makes")
    if k is not None and k < 1:
        raise SettingError(f"k: at least one plan, not {k}")
    if people.schema.names != searcher.train_.schema.names:
        raise DataError("the searcher's training people and these have different features")
    if people.encoder != searcher.train_.encoder:
        raise DataError("the searcher's training people and these are encoded differently; use one table's encoder")


def _sweep(
    people: People, searcher: Searcher, goal: int | None, features: BoolArray
) -> tuple[IntArray, Sweep, IntArray]:
    """The rows of people without the desired decision, the sweep of their ``features``, everybody's decision."""
    everybody, predictor = np.arange(len(people)), people.predictor
    if people.swept is not None and people.background.support is searcher.support_:
        rows = everybody if goal is None else np.flatnonzero(people.decision != goal)
        return rows, people.swept.take(rows, features), people.decision
    if goal is None or len(people) <= FEW:
        swept = sweep(people.X, predictor, searcher.support_, features)
        if goal is None or (swept.decision != goal).all():
            return everybody, swept, swept.decision
    rows = np.flatnonzero(people.decision != goal)
    return rows, sweep(people.X[rows], predictor, searcher.support_, features), people.decision


def _search(searcher: Searcher, problem: SearchProblem) -> Candidates:
    """The searcher's candidates, confirmed and within the action set."""
    if not len(problem.free):
        return Candidates.none(problem)
    candidates = searcher.search(problem)
    if not searcher.finished:
        candidates = confirm(searcher, problem, candidates)
        if searcher.minimal:
            candidates = undominated(problem, minimise(searcher, problem, candidates))
    if problem.actions.max_changes < len(problem.free):
        candidates = within_max_changes(problem, candidates)
    return affordable(problem, candidates)


def _columns(searcher: Searcher, problem: SearchProblem, rows: IntArray, k: int | None) -> dict[str, Any]:
    """The plans of one problem in order, as columns of ``Plans``, for each person of its cases.

    ``rows`` are the rows, in the batch, of the people who are swept.
    """
    candidates = _search(searcher, problem)
    actions, mask = problem.actions, problem.mask
    size = lengths(actions, mask, problem.facts[candidates.case], candidates.to)
    keys = (size.l2, size.l0, np.round(size.effort, 9))
    survival = searcher.survival(problem, candidates, keys)
    order = (
        np.lexsort((*keys, candidates.case)) if survival is None else menu(candidates.case, survival.probability, keys)
    )
    if k is not None and len(order) > k and np.bincount(candidates.case[order]).max() > k:
        ranked = candidates.take(order)
        order = order[diverse(ranked.case, apart(actions, mask, problem.facts[ranked.case], ranked.to), k)]
    candidates = candidates.take(order)
    columns = _facts(searcher, problem, candidates) | {name: part[order] for name, part in size._asdict().items()}
    if survival is not None:
        columns |= {"survival": survival.probability[order], "survival_error": survival.error[order]}
    return _for_each_person(problem, candidates.case, rows, columns)


def _facts(searcher: Searcher, problem: SearchProblem, candidates: Candidates) -> dict[str, Any]:
    """What each plan changes and reaches, as columns of ``Plans``."""
    case, probabilities = candidates.case, candidates.probabilities
    if probabilities is None:  # from a searcher that says it is finished and has not asked
        probabilities = problem.predict(problem.apply(case, candidates.to))
    decided = problem.predictor.decide(probabilities) if len(candidates) else case
    to = np.full((len(candidates), len(problem.mask)), np.nan, dtype=np.float32)
    to[:, problem.features] = candidates.to
    columns: dict[str, Any] = {"to": to, "donor": candidates.donor, "reached": decided}
    columns["valid"] = problem.is_recourse(case, probabilities) if len(candidates) else case > 0
    columns["probability_after"] = probabilities[np.arange(len(candidates)), decided]
    columns["probability_before"] = problem.group.probabilities[case, decided]
    invalidation = searcher.invalidation(problem, candidates)
    if invalidation is None:
        columns["low"], columns["high"] = interval(problem, candidates)
    else:  # an interval says nothing about how robust its values are, so that a robust plan has none
        columns["low"], columns["high"] = np.full((2, len(candidates)), np.nan, dtype=np.float32)
        columns["invalidation"] = invalidation
    return columns


def _for_each_person(problem: SearchProblem, case: IntArray, rows: IntArray, columns: dict[str, Any]) -> dict[str, Any]:
    """Columns of plans for cases, repeated for each person who is the case.

    ``case`` (plans,) is the case of each plan, ascending; ``rows`` are the batch rows of the people who are swept.
    """
    group = problem.group
    if len(group.people) == len(problem):  # everybody is a case of their own
        return columns | {"of": rows[group.people][case]}
    count = np.bincount(case, minlength=len(problem))
    first = np.cumsum(count) - count
    times = count[group.case]
    inner = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    pick = np.repeat(first[group.case], times) + inner
    return {name: part[pick] for name, part in columns.items()} | {"of": np.repeat(rows[group.people], times)}


def _join(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The columns of all problems together, in the order of the people."""
    joined = parts[0]
    if len(parts) > 1:
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if (joined["of"][1:] < joined["of"][:-1]).any():
        order = np.argsort(joined["of"], kind="stable")
        joined = {name: part[order] for name, part in joined.items()}
    return joined


def _empty_columns(width: int) -> dict[str, Any]:
    """The columns of ``Plans`` without a plan; ``width`` is the number of features."""
    whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
    columns: dict[str, Any] = dict.fromkeys(("of", "reached", "l0", "donor"), whole)
    columns |= dict.fromkeys(("low", "high", "probability_before", "probability_after", "l2", "heom", "effort"), real)
    return columns | {"to": np.zeros((0, width), dtype=np.float32), "valid": np.zeros(0, dtype=bool)}


class NoPlanReasons(Mapping[int, NoPlan]):
    """A ``NoPlan`` for everybody without a plan, by row of the batch.

    Parameters
    ----------
    people
        The whole batch.
    actions
        What they may change.
    goal
        The code of the class that plans should lead to; None: any other decision.
    rows
        The rows of people who do not have the desired decision yet: plans were looked for.
    planned
        The rows of people who have a plan.
    """

    def __init__(self, people: People, actions: ActionSet, goal: int | None, rows: IntArray, planned: IntArray) -> None:
        self.people, self.actions, self.goal, self.rows, self.planned = people, actions, goal, rows, planned

    @cached_property
    def without(self) -> IntArray:
        """The rows of people without a plan, ascending."""
        return np.setdiff1d(np.arange(len(self.people)), self.planned)

    def __getitem__(self, row: int) -> NoPlan:
        return self._reasons[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self.without.tolist())

    def __len__(self) -> int:
        return len(self.without)

    @cached_property
    def _reasons(self) -> dict[int, NoPlan]:
        """The reason of everybody without a plan.

        In this order: the decision is the desired one already; a feature that may change turns it by itself, but not to
        a value that may be proposed; only a feature that must not change turns it; nothing does, but something is not
        known yet; nothing does and nothing is left to ask.
        """
        satisfied = np.setdiff1d(self.without, self.rows)
        reasons = {int(row): self._no_plan(int(row), "already_there") for row in satisfied}
        unsatisfied = np.setdiff1d(self.without, satisfied)
        free_flips, locked_flips = self._flips(unsatisfied)
        for row, by_free, by_locked in zip(unsatisfied.tolist(), free_flips, locked_flips, strict=True):
            unlock = () if by_free or by_locked else self._unlock(row)
            otherwise: Reason = "more_information_needed" if unlock else "nothing_flips"
            reason: Reason = "range_too_narrow" if by_free else "only_locked_features_flip" if by_locked else otherwise
            reasons[row] = self._no_plan(row, reason, unlock)
        return reasons

    def _flips(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Whether any value of a feature that may change, and of one that may not, turns the decision; (rows,) each."""
        free, locked = (np.zeros(len(rows), dtype=bool) for _ in range(2))
        inside = members(self.people.schema.names, self.people.blanket)
        if self.people.background.model is None or not len(rows):
            return free, locked
        swept = sweep(self.people.X[rows], self.people.predictor, self.actions.support, inside)
        for group in (g for g in swept.groups if g.features):
            for feature, _, flips in group.by_feature(group.flips(self.goal)):
                turned = np.asarray(flips.any(axis=1))[group.case]
                side = free if self.actions.free[feature] else locked
                side[group.people] |= turned
        return free, locked

    def _unlock(self, row: int) -> tuple[str, ...]:
        """The unknown features of the blanket; those with a known spouse first (Definition 9)."""
        names, blanket = self.people.schema.names, self.people.blanket
        is_known = ~np.isnan(self.people.X[row])
        known = {name for name, flag in zip(names, is_known, strict=True) if flag}
        hidden = {*known, *self.actions.constraints.never_ask}  # what is never asked is not to be asked for here either
        unknown = [n for n in names if n not in hidden and (blanket is None or n in blanket)]
        first = {pc for pc, spouses in blanket.units.items() if known.intersection(spouses)} if blanket else set()
        return tuple(sorted(unknown, key=lambda name: name not in first))

    def _no_plan(self, row: int, reason: Reason, unlock: tuple[str, ...] = ()) -> NoPlan:
        """The ``NoPlan`` of the person in a row."""
        person, seed, step = (int(numbers[row]) for numbers in (self.people.person, self.people.seed, self.people.step))
        return NoPlan(person, seed, step, reason, unlock)
