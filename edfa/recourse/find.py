"""find_recourse: plans for whole batches of partly known people, one model call for all who know
the same.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from edfa.data.rules import NO_RULES, Rules
from edfa.errors import DataError, SettingError
from edfa.explanation.necessity import Sweep, sweep
from edfa.parallel import count_jobs, map_parallel
from edfa.people import HasPeople, People
from edfa.recourse._search.postprocess import (
    affordable,
    confirm,
    minimise,
    undominated,
    within_max_changes,
)
from edfa.recourse._search.ranking import different, lengths, menu, ways
from edfa.recourse._search.single_changes import interval
from edfa.recourse._search.trial_ends import trial_ends
from edfa.recourse.plans import Plans
from edfa.recourse.reasons import NoPlanReasons
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.recourse.sense import farthest
from edfa.recourse.survival import Survival
from edfa.typing import BoolArray, Float64Array, IntArray

__all__ = ["find_recourse"]

Keys = tuple[Float64Array | IntArray, ...]
"""What ranks plans, by the last key first, as ``np.lexsort`` does; each (plans,)."""
# of completions in which a plan must hold to be handed out, where a user model decides
MOSTLY = 0.5
ALTERNATIVES = 6  # other sets of features a person that are asked whether they survive
LASTS = 0.5  # the survival that is asked of another plan than the best
FEW = 16  # people who are swept at once, without asking first who has the desired decision already


def find_recourse(
    people: HasPeople,
    searcher: Searcher,
    *,
    rules: Rules | None = None,
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
    rules
        What must not change, beyond what the card says.
    desired_class
        The name or code of the class to lead to; people who have it already get no plan. None: any
        other decision counts (the paper's reading).
    k
        The largest number of plans a person: the best, then other ways, over other features as far
        as there are; None: all.
    seed
        For searchers that draw; the same people get the same plans, alone or in a batch.
    n_jobs
        The number of threads, as scikit-learn counts them (-1: one a processor). Plans do not
        depend on it.
    progress
        Called with the number of distinct states of people that are done, and with the number of
        all.
    enough_survival
        A searcher that ranks by survival looks for nothing better once a plan survives in that
        share of completions.

    Returns
    -------
    Plans
        The plans of each person together, best first; people without one have a reason in
        ``Plans.reasons``.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import Nearest
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:40].copy()
    >>> known[:, 10:] = np.nan
    >>> plans = find_recourse(People(known, Background.of(table.train, model)),
    ...     Nearest(table.train))
    >>> sorted(set(plans.frame()["feature"]) - set(table.schema.names[:10]))
    []
    """
    batch = people.people()
    _check(batch, searcher, k)
    goal = batch.background.class_code(desired_class)
    if batch.overlay.limits_plans:
        rules = (rules or NO_RULES).tighten(batch.overlay)
    actions = searcher.action_set(rules, batch, goal)
    rows, swept, decision = _sweep(batch, searcher, goal, actions.free & bool(searcher.uses_sweep))
    sense = searcher.sense(actions)
    problems = [
        SearchProblem(group, actions, batch.background, goal, seed, enough_survival, sense)
        for group in swept.groups
    ]
    done = list(accumulate(len(problem) for problem in problems))
    parts: list[dict[str, Any]] = []
    for part in map_parallel(
        lambda problem: _columns(searcher, problem, rows, k), problems, count_jobs(n_jobs)
    ):
        parts.append(part)
        if progress:
            progress(done[len(parts) - 1], done[-1])
    columns = _join(parts, [problem.features for problem in problems], len(batch.schema))
    return Plans(
        people=batch,
        decision=decision.astype(np.int64),
        reasons=NoPlanReasons(
            batch, actions, goal, rows, columns["of"], searcher, partial(_again, goal, seed)
        ),
        consequences=None if actions.consequences.nothing else actions.consequences,
        provenance=replace(batch.provenance, searcher=searcher, rules=rules, desired_class=goal),
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
        raise DataError(
            "the searcher's training people and these are encoded differently; use one "
            "table's encoder"
        )


def _sweep(
    people: People, searcher: Searcher, goal: int | None, features: BoolArray
) -> tuple[IntArray, Sweep, IntArray]:
    """The rows of people without the desired decision, the sweep of their ``features``, everybody's
    decision.
    """
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


def _columns(
    searcher: Searcher, problem: SearchProblem, rows: IntArray, k: int | None
) -> dict[str, Any]:
    """The plans of one problem in order, as columns of ``Plans``, for each person of its cases.

    ``rows`` are the rows, in the batch, of the people who are swept.
    """
    candidates = _search(searcher, problem)
    size = lengths(problem.actions, problem.mask, problem.facts[candidates.case], candidates.to)
    keys = (size.l2, size.l0, np.round(size.effort, 9))
    survival = searcher.survival(problem, candidates, keys)
    if survival is None:
        order = np.lexsort((*keys, candidates.case))
    elif k is None or problem.enough_survival < 1:
        order = menu(candidates.case, np.minimum(survival.probability, searcher.enough), keys)
    else:
        order, survival = _with_alternatives(searcher, problem, candidates, survival, keys)
    if k is not None and len(order) > 1:
        ranked = candidates.take(order)
        way = ways(problem.actions, problem.mask, problem.facts[ranked.case], ranked.to)
        order = order[different(ranked.case, way, k)]
    candidates = candidates.take(order)
    columns = _facts(searcher, problem, candidates) | {
        name: part[order] for name, part in size._asdict().items()
    }
    again = _look_again(
        searcher, problem, candidates, k, None if survival is None else survival.take(order)
    )
    if again is not None:
        columns |= {"survival": again.probability, "survival_error": again.error}
        if k is not None and (shares := searcher.decided_shares(problem)) is not None:
            columns |= {
                "probability_before": shares[candidates.case],
                "probability_after": again.probability,
            }
            likely = np.flatnonzero(_mostly_hold(candidates.case, again.probability))
            candidates, columns = (
                candidates.take(likely),
                {name: part[likely] for name, part in columns.items()},
            )
    return _for_each_person(problem, candidates.case, rows, columns)


def _mostly_hold(case: IntArray, survival: Float64Array) -> BoolArray:
    """Which plans, in order of their cases, hold in most completions; none of a case whose first
    plan does not.

    Where a user model decides, it would mostly refuse the others. Who has no first
    plan to act on gets none: what may be acted on is the plan that was certified, the first.
    """
    holds = survival >= MOSTLY
    first = np.searchsorted(case, case)
    return np.asarray(holds & holds[first])


def _look_again(
    searcher: Searcher,
    problem: SearchProblem,
    candidates: Candidates,
    k: int | None,
    survival: Survival | None,
) -> Survival | None:
    """The survival (plans,) of plans in order, estimated again where the searcher does so; None:
    nobody asks.

    That is for every plan that is handed out, ``k`` a case; of a menu of all plans, for the first
    of each case.
    """
    if survival is None:
        return None if k is None else searcher.look_again(problem, candidates)
    case = candidates.case
    chosen = (
        np.arange(len(case))
        if k is not None
        else np.flatnonzero(np.r_[True, case[1:] != case[:-1]][: len(case)])
    )
    again = searcher.look_again(problem, candidates.take(chosen)) if len(chosen) else None
    if again is not None:
        survival.probability[chosen], survival.error[chosen] = again
    return survival


def _with_alternatives(
    searcher: Searcher,
    problem: SearchProblem,
    candidates: Candidates,
    survival: Survival,
    keys: Keys,
) -> tuple[IntArray, Survival]:
    """The best surviving plan of each case, then others over other features that survive too; with
    their survival.

    Of each set of features, the plan that brings the model farthest past the border stands for all;
    those of least effort are asked whether they survive.
    """
    case = candidates.case
    best = menu(case, np.minimum(survival.probability, searcher.enough), keys)
    best = best[np.r_[True, case[best][1:] != case[best][:-1]]] if len(best) else best
    changed = ~np.isnan(candidates.to)
    past = (
        np.round(problem.score(case, np.asarray(candidates.probabilities)), 6)
        if len(case)
        else np.zeros(0)
    )
    group = np.unique(np.c_[case, np.packbits(changed, axis=1)], axis=0, return_inverse=True)[
        1
    ].ravel()
    order = np.lexsort((*keys, -past, group))
    others = order[np.r_[True, group[order][1:] != group[order][:-1]]] if len(order) else order
    others = others[~np.isin(group[others], group[best])]
    others = others[np.lexsort((*(key[others] for key in keys), case[others]))]
    rank = np.arange(len(others)) - np.searchsorted(case[others], case[others])
    others = np.sort(others[rank < ALTERNATIVES])
    if (estimate := searcher.survival(problem, candidates.take(others), None)) is not None:
        survival.probability[others], survival.error[others] = estimate.probability, estimate.error
    least = np.full(len(problem), np.inf)
    least[case[best]] = np.minimum(LASTS, survival.probability[best])
    others = others[survival.probability[others] >= least[case[others]]]
    rows = np.concatenate([best, others])
    second = np.r_[np.zeros(len(best)), np.ones(len(others))]
    worth = -np.round(np.minimum(survival.probability[rows], searcher.enough), 9)
    return rows[np.lexsort((*(key[rows] for key in keys), worth, second, case[rows]))], survival


def _again(goal: int | None, seed: int, people: People, searcher: Searcher, rules: Rules) -> Plans:
    """The plans of people under other rules, whether or not they survive."""
    return find_recourse(
        people,
        searcher,
        rules=rules,
        desired_class=goal,
        seed=seed,
        enough_survival=0.0,
    )


def _facts(searcher: Searcher, problem: SearchProblem, candidates: Candidates) -> dict[str, Any]:
    """What each plan changes and reaches, as columns of ``Plans``; ``to`` of the known features
    alone.
    """
    case, probabilities = candidates.case, candidates.probabilities
    if probabilities is None:  # from a searcher that says it is finished and has not asked
        probabilities = problem.predict(problem.apply(case, candidates.to))
    decided = problem.predictor.decide(probabilities) if len(candidates) else case
    columns: dict[str, Any] = {"to": candidates.to, "donor": candidates.donor, "reached": decided}
    columns |= _where_they_lead(problem, candidates)
    columns["valid"] = problem.is_recourse(case, probabilities) if len(candidates) else case > 0
    columns["probability_after"] = probabilities[np.arange(len(candidates)), decided]
    columns["probability_before"] = problem.group.probabilities[case, decided]
    invalidation = searcher.invalidation(problem, candidates)
    if invalidation is None:
        columns["low"], columns["high"] = interval(problem, candidates)
        if not problem.predictor.refits:  # a user model need not tell its cells
            tried = trial_ends(problem, candidates)
            ends = zip(("low", "high"), tried, strict=True)
            columns |= {
                name: np.where(np.isnan(columns[name]), end, columns[name]) for name, end in ends
            }
    # an interval says nothing about how robust its values are, so that a robust plan has none
    else:
        columns["low"], columns["high"] = np.full((2, len(candidates)), np.nan, dtype=np.float32)
        columns["invalidation"] = invalidation
    return columns


def _where_they_lead(problem: SearchProblem, candidates: Candidates) -> dict[str, Any]:
    """How long each plan takes and how many training people are where it leads, as columns of
    ``Plans``.
    """
    case, to = candidates.case, candidates.to
    months = problem.actions.consequences.months(problem.features, problem.facts[case], to)
    if problem.sense is None:
        return {"months": months}
    people, favourable = problem.sense.support(problem, to, farthest(problem, case, to).far)
    share = np.divide(favourable, people, out=np.full(len(case), np.nan), where=people > 0)
    return {"months": months, "support": people, "support_share": share}


def _for_each_person(
    problem: SearchProblem, case: IntArray, rows: IntArray, columns: dict[str, Any]
) -> dict[str, Any]:
    """Columns of plans for cases, repeated for each person who is the case.

    ``case`` (plans,) is the case of each plan, ascending; ``rows`` are the batch rows of the people
    who are swept.
    """
    group = problem.group
    if len(group.people) == len(problem):  # everybody is a case of their own
        return columns | {"of": rows[group.people][case]}
    count = np.bincount(case, minlength=len(problem))
    first = np.cumsum(count) - count
    times = count[group.case]
    inner = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    pick = np.repeat(first[group.case], times) + inner
    return {name: part[pick] for name, part in columns.items()} | {
        "of": np.repeat(rows[group.people], times)
    }


def _join(parts: list[dict[str, Any]], features: list[IntArray], width: int) -> dict[str, Any]:
    """The columns of all problems together, in the order of the people.

    ``features`` are the known features of each problem, which its ``to`` is about; joined, it is
    (plans, ``width``).
    """
    if not parts:
        return _empty_columns(width)
    of = np.concatenate([part["of"] for part in parts])
    order = np.argsort(of, kind="stable")
    names = [name for name in parts[0] if name != "to"]
    joined = {name: np.concatenate([part[name] for part in parts])[order] for name in names}
    place = np.empty(len(of), dtype=np.intp)
    place[order] = np.arange(len(of))
    joined["to"] = to = np.full((len(of), width), np.nan, dtype=np.float32)
    start = 0
    for part, known in zip(
        parts, features, strict=True
    ):  # one after the other: a wide table's are many bytes
        changes = part.pop("to")
        to[np.ix_(place[start : start + len(changes)], known)] = changes
        start += len(changes)
    return joined


def _empty_columns(width: int) -> dict[str, Any]:
    """The columns of ``Plans`` without a plan; ``width`` is the number of features."""
    whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
    columns: dict[str, Any] = dict.fromkeys(("of", "reached", "l0", "donor"), whole)
    columns |= dict.fromkeys(
        ("low", "high", "probability_before", "probability_after", "l2", "heom", "effort"), real
    )
    columns |= {"months": real}
    return columns | {
        "to": np.zeros((0, width), dtype=np.float32),
        "valid": np.zeros(0, dtype=bool),
    }
