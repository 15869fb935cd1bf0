"""find_recourse: plans for whole batches of partly known people, one model call for all who know
the same.

The searcher proposes and confirms change sets; here they are ranked, best surviving first
(``menu``), thinned out to clearly different ways (``different``), the easiest of these right after
the first, and put into one ``Plans``.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from edfa.data.rules import NO_OVERLAY, NO_RULES, Rules
from edfa.errors import DataError, SettingError
from edfa.explanation.necessity import Sweep, sweep
from edfa.parallel import count_jobs, map_parallel
from edfa.people import HasPeople, People
from edfa.recourse._search.single_changes import enough_now, interval
from edfa.recourse.plans import Plans, read_columns
from edfa.recourse.reasons import NoPlanReasons
from edfa.recourse.searcher import Candidates, Keys, Searcher, SearchProblem, rank_in_case
from edfa.recourse.survival import Survival
from edfa.typing import NAN, BoolArray, Float64Array, IntArray

# of completions in which a plan must hold to be handed out, where a user model decides
MOSTLY = 0.5
Clash = Callable[[BoolArray, BoolArray, BoolArray], Any]
CLASHES: tuple[Clash, ...] = (  # of what is changed, what an earlier plan changes, and the same way
    lambda changed, earlier, same: (changed & earlier).any(axis=1),  # a feature in common
    lambda changed, earlier, same: (changed | ~earlier).all(axis=1),  # all features of the earlier
    lambda changed, earlier, same: (~earlier | (changed & same)).all(axis=1),  # in the same way
)
ALTERNATIVES = 6  # other sets of features a person that are asked whether they survive
LASTS = 0.5  # the survival that is asked of another plan than the best
# people who are swept at once, without asking first who has the desired decision already
FEW_PEOPLE = 16


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
        as there are, the easiest first; None: all.
    seed
        For searchers that draw; the same people get the same plans, alone or in a batch.
    n_jobs
        The number of threads, as scikit-learn counts them (-1: one a processor). Plans do not
        depend on it.
    progress
        Called with the number of distinct states of people that are done, and with the number of
        all.

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
    if batch.overlay != NO_OVERLAY:
        rules = (rules or NO_RULES).tighten(batch.overlay)
    actions = searcher.action_set(rules, batch, goal)
    rows, swept, decision = _sweep(batch, searcher, goal, actions.free & bool(searcher.uses_sweep))
    wanted = searcher.plan_filter(actions)
    problems = [
        SearchProblem(group, actions, batch.background, goal, seed, wanted)
        for group in swept.groups
    ]
    find = partial(_columns, searcher, rows, k)
    jobs = 1 if n_jobs is None else count_jobs(n_jobs)
    found = map(find, problems) if jobs == 1 else map_parallel(find, problems, jobs)
    parts: list[dict[str, Any]] = []
    done, total = 0, sum(map(len, problems))
    for problem, part in zip(problems, found, strict=True):
        parts.append(part)
        done += len(problem)
        if progress:
            progress(done, total)
    known = [problem.features for problem in problems]
    columns = _join(parts, known, batch.X.shape[1]) if parts else read_columns([], batch)
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
    if goal is None or len(people) <= FEW_PEOPLE:
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
        candidates = searcher.confirm(problem, candidates)
        if searcher.minimal:
            candidates = problem.undominated(searcher.minimise(problem, candidates))
    return problem.affordable(problem.within_max_changes(candidates))


def _columns(
    searcher: Searcher, rows: IntArray, k: int | None, problem: SearchProblem
) -> dict[str, Any]:
    """The plans of one problem in order, as columns of ``Plans``, for each person of its cases.

    ``rows`` are the rows, in the batch, of the people who are swept.
    """
    candidates = _search(searcher, problem)
    size = problem.lengths(candidates.case, candidates.to)
    survival = searcher.survival(problem, candidates, size.keys)
    if survival is None:
        order = np.lexsort((*size.keys, candidates.case))
    elif k is None or searcher.enough_survival < 1 or not len(candidates):
        order = menu(candidates.case, survival.worth(searcher.enough), size.keys)
    else:
        order = _with_alternatives(searcher, problem, candidates, survival, size.keys)
    if k is not None and len(order) > 1:
        ranked = candidates.take(order)
        order = order[different(ranked.case, _ways(problem, ranked), k)]
    candidates = candidates.take(order)
    columns = _facts(searcher, problem, candidates, shown=k is not None) | {
        name: part[order] for name, part in size._asdict().items()
    }
    survival = None if survival is None else survival.take(order)
    again = _look_again(searcher, problem, candidates, k, survival)
    if again is not None:
        columns |= {"survival": again.probability, "survival_error": again.error}
        columns |= {"help": again.help}
        if k is not None and (shares := searcher.decided_shares(problem)) is not None:
            columns["probability_before"] = shares[candidates.case]
            columns["probability_after"] = again.probability
            # Where a user model decides, it would mostly refuse the others. People whose first plan
            # does not hold get none: only the first plan is certified, so only it may be acted on.
            holds = again.probability >= MOSTLY
            likely = holds & holds[np.searchsorted(candidates.case, candidates.case)]
            candidates = candidates.take(likely)
            columns = {name: part[likely] for name, part in columns.items()}
    if k is not None and survival is not None:
        columns["enough_now"] = np.full_like(candidates.to, NAN)
        # Before everything is known, a user model is asked about completions, and not here.
        if not problem.predictor.decides_by_completions(problem.mask):
            columns["enough_now"] = enough_now(problem, candidates)
    return _for_each_person(problem, candidates.case, rows, columns)


def _look_again(
    searcher: Searcher,
    problem: SearchProblem,
    candidates: Candidates,
    k: int | None,
    survival: Survival | None,
) -> Survival | None:
    """The survival (plans,) of plans in order, estimated again where the searcher does so; None
    if it does not estimate survival.

    That is for every plan that is handed out, ``k`` a case; of a menu of all plans, for the first
    of each case.
    """
    if survival is None:
        return None if k is None else searcher.look_again(problem, candidates)
    chosen = np.flatnonzero((rank_in_case(candidates.case) == 0) | (k is not None))
    again = searcher.look_again(problem, candidates.take(chosen)) if len(chosen) else None
    if again is not None:
        survival.put(chosen, again)
    return survival


def _with_alternatives(
    searcher: Searcher,
    problem: SearchProblem,
    candidates: Candidates,
    survival: Survival,
    keys: Keys,
) -> IntArray:
    """The best surviving plan of each case, then others over other features that survive too, those
    of least effort first, as rows of the candidates; the survival of these others is put into
    ``survival``.

    Of each set of features two plans are asked whether they survive, that of least effort and the
    one that brings the model farthest past the border; the easiest that does stands for all.
    """
    case = candidates.case
    best = menu(case, survival.worth(searcher.enough), keys)
    best = best[rank_in_case(case[best]) == 0]
    past = np.round(problem.score(case, np.asarray(candidates.probabilities)), 6)
    features = candidates.features
    easiest = np.flatnonzero(rank_in_case(features, *keys) == 0)
    easiest = easiest[~np.isin(features[easiest], features[best])]
    rank = rank_in_case(case[easiest], *(key[easiest] for key in keys))
    easiest = easiest[rank < ALTERNATIVES]
    farthest = np.flatnonzero(rank_in_case(features, *keys, -past) == 0)
    farthest = farthest[np.isin(features[farthest], features[easiest])]
    others = np.union1d(easiest, farthest)
    if (estimate := searcher.survival(problem, candidates.take(others), None)) is not None:
        survival.put(others, estimate)
    least = np.full(len(problem), np.inf)
    least[case[best]] = np.minimum(LASTS, survival.probability[best])
    others = others[survival.probability[others] >= least[case[others]]]
    others = others[rank_in_case(features[others], *(key[others] for key in keys)) == 0]
    rows = np.concatenate([best, others])
    second = np.arange(len(rows)) >= len(best)
    return rows[np.lexsort((*(key[rows] for key in keys), second, case[rows]))]


def _again(goal: int | None, seed: int, people: People, searcher: Searcher, rules: Rules) -> Plans:
    """The plans of people under other rules, whether or not they survive."""
    content = searcher.content_with(0.0)
    return find_recourse(people, content, rules=rules, desired_class=goal, seed=seed)


def _facts(
    searcher: Searcher, problem: SearchProblem, candidates: Candidates, *, shown: bool
) -> dict[str, Any]:
    """What each plan changes and reaches, as columns of ``Plans``; if it is to be ``shown``, also
    who has done it.

    ``to`` has the known features of the problem alone; ``_join`` puts it among all features.
    """
    case, to, probabilities = candidates.case, candidates.to, candidates.probabilities
    if probabilities is None:  # from a searcher that says it is finished and has not asked
        probabilities = problem.predict_changes(case, to)
    decided = problem.predictor.decide(probabilities)
    columns: dict[str, Any] = {"to": to, "reached": decided}
    columns["months"] = problem.actions.consequences.months(
        problem.features, problem.facts[case], to
    )
    if shown and problem.plan_filter is not None:
        people, favourable = problem.plan_filter.support(problem, case, to)
        share = np.full(len(case), np.nan)
        columns["support_share"] = np.divide(favourable, people, out=share, where=people > 0)
        columns["support"] = people
    columns["valid"] = problem.is_recourse(case, probabilities)
    columns["probability_after"] = probabilities[np.arange(len(candidates)), decided]
    columns["probability_before"] = problem.group.probabilities[case, decided]
    columns["low"], columns["high"] = np.full((2, len(candidates)), NAN)
    # an interval says nothing about how robust its values are, so that a robust plan has none
    if (invalidation := searcher.invalidation(problem, candidates)) is not None:
        columns["invalidation"] = invalidation
    else:
        columns["low"], columns["high"] = interval(problem, candidates)
    return columns


def _for_each_person(
    problem: SearchProblem, case: IntArray, rows: IntArray, columns: dict[str, Any]
) -> dict[str, Any]:
    """Columns of plans for cases, repeated for each person who is the case.

    ``case`` (plans,) is the case of each plan, ascending; ``rows`` are the batch rows of the people
    who are swept.
    """
    group = problem.group
    times = np.bincount(case, minlength=len(problem))[group.case]
    of = np.repeat(np.arange(len(times)), times)
    before = np.cumsum(times) - times  # plans of the people before
    pick = np.arange(len(of)) + (np.searchsorted(case, group.case) - before)[of]
    return {name: part[pick] for name, part in columns.items()} | {"of": rows[group.people[of]]}


def _join(parts: list[dict[str, Any]], features: list[IntArray], width: int) -> dict[str, Any]:
    """The columns of all problems together, in the order of the people.

    Parameters
    ----------
    parts
        The columns of each problem, at least one; ``to`` and ``enough_now`` are taken out of them.
    features
        The known features of each problem, which these two are about.
    width
        The number of all features: joined, the two are (plans, width).
    """
    of = np.concatenate([part["of"] for part in parts])
    order = np.argsort(of, kind="stable")
    wide = [name for name in ("to", "enough_now") if name in parts[0]]
    names = [name for name in parts[0] if name not in wide]
    joined = {name: np.concatenate([part[name] for part in parts])[order] for name in names}
    place = np.empty(len(of), dtype=np.intp)
    place[order] = np.arange(len(of))
    for name in wide:
        joined[name] = np.full((len(of), width), NAN)
        start = 0
        for part, known in zip(parts, features, strict=True):  # a wide table's are many bytes
            changes = part.pop(name)
            joined[name][np.ix_(place[start : start + len(changes)], known)] = changes
            start += len(changes)
    return joined


def menu(of: IntArray, survival: Float64Array, keys: Keys) -> IntArray:
    """The rows worth offering to each person, the best surviving first; among equals the nearest.

    After the first row of a person, only those follow that take less effort than all before them.

    Parameters
    ----------
    of
        The person of each row, (rows,).
    survival
        The survival of each row, (rows,). Rows with NaN are left out: they survive no better than
        one that takes no more.
    keys
        What ranks equals, each (rows,), the last key first; the last key is the effort.

    Returns
    -------
    numpy.ndarray
        The chosen rows; those of a person stand together.

    Examples
    --------
    >>> menu(np.array([0, 0, 0]), np.array([0.5, 0.9, 0.4]), (np.array([1.0, 2.0, 3.0]),))
    array([1, 0])
    """
    order = np.lexsort((*keys, -np.round(survival, 9), of))
    person = of[order].astype(np.int64)
    effort = np.unique(keys[-1], return_inverse=True)[1].reshape(-1)[order]
    # The least so far of each person is a plain running minimum once every person lies below the
    # one before.
    below = effort - person * (int(effort.max(initial=0)) + 1)
    least = np.minimum.accumulate(below)
    kept = np.r_[True, below[1:] < least[:-1]] if len(order) else np.zeros(0, dtype=bool)
    return order[kept & ~np.isnan(survival[order])]


def different(of: IntArray, way: Float64Array, k: int) -> IntArray:
    """At most k rows of each person that are clearly different ways, the first one always among
    them.

    First those that share no feature with one taken already, then those that do not hold all
    features of one, then those that change the same features in another direction or to another
    level. The same way only a little farther is not another way.

    Parameters
    ----------
    of
        The person of each row, (rows,); a person's rows stand together, best first.
    way
        0 where nothing changes, and otherwise the direction or the level, (rows, features).
    k
        The largest number of rows of a person.

    Returns
    -------
    numpy.ndarray
        The chosen rows, ascending.

    Examples
    --------
    >>> way = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 0]])
    >>> different(np.zeros(5, dtype=int), way, 3)
    array([0, 3, 4])
    """
    starts = np.flatnonzero(rank_in_case(of) == 0)
    block = np.searchsorted(of[starts], of)
    taken, changed = np.zeros(len(of), dtype=bool), way != 0
    taken[starts] = True
    chosen = [starts]  # each a row of every person

    def part_from(earlier: IntArray, clash: Clash) -> BoolArray:
        """Which rows are another way than the ``earlier`` row of their person, (persons,)."""
        before = earlier[block]
        return np.asarray(~clash(changed, changed[before], way == way[before]))

    for clash in CLASHES:
        open_ = ~taken
        for earlier in chosen:
            open_ &= part_from(earlier, clash)
        while True:
            open_ &= (np.bincount(block[taken]) < k)[block]
            rows = np.flatnonzero(open_)
            first = rows[rank_in_case(block[rows]) == 0]
            if not len(first):
                break
            taken[first], open_[first] = True, False
            latest = starts.copy()
            latest[block[first]] = first
            chosen.append(latest)
            open_ &= part_from(latest, clash)
    return np.flatnonzero(taken)


def _ways(problem: SearchProblem, candidates: Candidates) -> Float64Array:
    """The way of every change for ``different``, (plans, known features): 1 up, -1 down, 2 or more
    a level, 0 none.

    All that is reached by waiting is one way.
    """
    to, own = candidates.to, problem.facts[candidates.case]
    ordered = problem.actions.ordered[problem.features]
    way = np.nan_to_num(np.where(ordered, np.sign(to - own), to + 2))
    grows = problem.actions.consequences.per_month[problem.features]
    waits = way * np.sign(grows) > 0
    if waits.any():
        way[waits] = 0
        way[waits.any(axis=1), int(np.flatnonzero(grows)[0])] = 1
    return way
