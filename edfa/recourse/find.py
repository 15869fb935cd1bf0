"""find_recourse: plans for whole batches of partially known people, one model call for all who know the same."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from edfa.errors import DataError, UnknownNameError
from edfa.explanation.necessity import Sweep, sweep
from edfa.parallel import count_jobs, map_parallel
from edfa.people import Explained, People, States
from edfa.predictors.base import Predictor
from edfa.recourse._search.postprocess import affordable, confirm, minimise, undominated
from edfa.recourse._search.ranking import apart, diverse, lengths, menu
from edfa.recourse._search.single_changes import interval
from edfa.recourse.constraints import Constraints
from edfa.recourse.no_plan import Why
from edfa.recourse.plans import Plans
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, IntArray

__all__ = ["find_recourse"]

FEW = 16  # people who are swept at once, without asking first who is where they want to be


def find_recourse(
    states: People | States,
    searcher: Searcher,
    *,
    constraints: Constraints | None = None,
    wanted: int | None = None,
    k: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Plans:
    """What everybody could change to get another decision.

    Parameters
    ----------
    states
        Partially known people, or what has them: a trajectory, or people who were swept before (``Explained``).
    searcher
        How plans are looked for: ``Nearest(train)`` and others.
    constraints
        What must not change, beyond what the card says.
    wanted
        The code of the class to lead to; people who are there get no plan. Without one, any other decision counts
        (the paper's reading).
    k
        At most so many plans each: the best, then those farthest from it and from each other.
    seed
        For searchers that draw; the same people get the same plans, alone or in a batch.
    n_jobs
        How many threads share the work, as scikit-learn counts them (-1: one a processor). Plans do not depend on it.
    progress
        Told how many of how many different people and states are done.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import People
    >>> from edfa.recourse import Nearest
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:40].copy()
    >>> known[:, 10:] = np.nan
    >>> plans = find_recourse(People(known, table.schema, table.encoder, model), Nearest(table.train))
    >>> sorted(set(plans.frame()["feature"]) - set(table.schema.names[:10]))
    []
    """
    people = states.people()
    if not isinstance(searcher, Searcher):
        raise DataError(f"a searcher is an object such as Nearest(train), not {searcher!r}")
    if people.predictor is None:
        raise DataError("these people have no predictor; plans are for decisions that one makes")
    if k is not None and k < 1:
        raise DataError(f"k: at least one plan, not {k}")
    if people.schema.names != searcher.train.schema.names:
        raise DataError("the searcher's training people and these have different features")
    if people.encoder != searcher.train.encoder:
        raise DataError("the searcher's training people and these are encoded differently; use one table's encoder")
    goal = None if wanted is None else _position(people.predictor, wanted)
    rules = searcher.rules(constraints, people)
    if isinstance(states, Explained):
        decision = states.swept.decision
        rows = np.arange(len(people)) if goal is None else np.flatnonzero(decision != goal)
        swept = states.swept.take(rows, rules.free if searcher.sweeps else rules.free & False)
    else:
        rows, swept, decision = _sweep(people, people.predictor, goal, searcher, rules.free)
    tasks = [SearchProblem(group, rules, people.predictor, goal, seed) for group in swept.groups]
    done = list(accumulate(len(task) for task in tasks))
    parts: list[dict[str, Any]] = []
    for part in map_parallel(lambda task: _columns(searcher, task, rows, k), tasks, count_jobs(n_jobs)):
        parts.append(part)
        if progress:
            progress(done[len(parts) - 1], done[-1])
    columns = _join(parts or [_nothing(len(people.schema))])
    return Plans(
        people=people,
        decision=np.asarray(people.predictor.classes_)[decision],
        valid=np.ones(len(columns["of"]), dtype=bool),
        reasons=Why(people, rules, goal, rows, columns["of"]),
        made={**people.made, "searcher": searcher, "constraints": constraints, "wanted": wanted},
        **columns,
    )


def _position(predictor: Predictor, wanted: int) -> int:
    found = np.flatnonzero(np.asarray(predictor.classes_) == wanted)
    if not len(found):
        raise UnknownNameError("class", wanted, predictor.classes_)
    return int(found[0])


def _sweep(
    people: People, predictor: Predictor, goal: int | None, searcher: Searcher, free: BoolArray
) -> tuple[IntArray, Sweep, IntArray]:
    """The rows of people who are not where they want to be, what single changes would do, everybody's decision."""
    swept = free if searcher.sweeps else free & False
    if goal is None:
        found = sweep(people.X, predictor, searcher.support, swept)
        return np.arange(len(people)), found, found.decision
    if len(people) <= FEW:
        found = sweep(people.X, predictor, searcher.support, swept)
        if (found.decision != goal).all():
            return np.arange(len(people)), found, found.decision
    decision = predictor.decide(predictor.predict_proba(people.X))
    rows = np.flatnonzero(decision != goal)
    return rows, sweep(people.X[rows], predictor, searcher.support, swept), decision


def _search(searcher: Searcher, task: SearchProblem) -> Candidates:
    """What the searcher proposes, made sure of."""
    if not len(task.free):
        return Candidates.none(task)
    found = searcher.search(task)
    if not searcher.finished:
        found = confirm(searcher, task, found)
        found = undominated(task, minimise(searcher, task, found)) if searcher.minimal else found
    if task.rules.most < len(task.free):
        found = found.take((~np.isnan(found.to)).sum(axis=1) <= task.rules.most)
    return affordable(task, found)


def _columns(searcher: Searcher, task: SearchProblem, rows: IntArray, k: int | None) -> dict[str, Any]:
    """A task's plans, in order, once for each person of its cases."""
    found = _search(searcher, task)
    size = lengths(task.rules, task.mask, task.facts[found.case], found.to)
    keys = (size.l2, size.l0, np.round(size.effort, 9))
    lasts = searcher.survival(task, found, keys)
    order = np.lexsort((*keys, found.case)) if lasts is None else menu(found.case, lasts.chance, keys)
    if k is not None and len(order) > k and np.bincount(found.case[order]).max() > k:
        sorted_ = found.take(order)
        order = order[diverse(sorted_.case, apart(task.rules, task.mask, task.facts[sorted_.case], sorted_.to), k)]
    found, chances = found.take(order), np.asarray(found.chances)[order]
    case, group = found.case, task.group
    decided = task.predictor.decide(chances) if len(found) else case
    to = np.full((len(found), len(task.mask)), np.nan, dtype=np.float32)
    to[:, task.features] = found.to
    fails = searcher.invalidation(task, found)
    # An interval says nothing about how robust its values are, so that a robust plan has none.
    low, high = interval(task, found) if fails is None else np.full((2, len(found)), np.nan, dtype=np.float32)
    plan = np.arange(len(found))
    columns: dict[str, Any] = {"to": to, "low": low, "high": high, "donor": found.donor}
    columns |= {"reached": np.asarray(task.predictor.classes_)[decided], "after": chances[plan, decided]}
    columns |= {"before": group.told[case, decided]}
    columns |= {name: part[order] for name, part in size._asdict().items()}
    if fails is not None:
        columns["invalidation"] = fails
    if lasts is not None:
        columns |= {"survival": lasts.chance[order], "survival_error": lasts.error[order]}
    if len(group.people) == len(task):  # everybody is a case
        return columns | {"of": rows[group.people][case]}
    count = np.bincount(case, minlength=len(task))
    first = np.cumsum(count) - count
    times = count[group.case]
    inner = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    pick = np.repeat(first[group.case], times) + inner
    return {name: part[pick] for name, part in columns.items()} | {"of": np.repeat(rows[group.people], times)}


def _join(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The plans of all tasks, each person's together."""
    joined = parts[0]
    if len(parts) > 1:
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if (joined["of"][1:] < joined["of"][:-1]).any():
        order = np.argsort(joined["of"], kind="stable")
        joined = {name: part[order] for name, part in joined.items()}
    return joined


def _nothing(width: int) -> dict[str, Any]:
    """Nobody, or everybody is there already."""
    whole, real = np.zeros(0, dtype=np.int64), np.zeros(0)
    numbers = dict.fromkeys(("of", "reached", "l0", "donor"), whole)
    reals = dict.fromkeys(("low", "high", "before", "after", "l2", "heom", "effort"), real)
    return numbers | reals | {"to": np.zeros((0, width), dtype=np.float32)}
