"""From proposals to plans: what the model confirms and the rules allow, without what is not needed, each once."""

import numpy as np

from edfa.predictors.base import Chances, Floats
from edfa.recourse.base import Codes, Found, Searcher, Task
from edfa.recourse.measure import effort
from edfa.recourse.rules import Bools
from edfa.recourse.sets import proper_subsets

__all__ = ["affordable", "confirm", "distinct", "minimise", "undominated"]


def confirm(searcher: Searcher, task: Task, found: Found) -> Found:
    """Those that break no rule and are recourse; a value of one's own is no change."""
    to = np.where(found.to == task.facts[found.case], np.float32(np.nan), found.to)
    found = Found(found.case, to, found.donor)
    found = distinct(found.take(task.rules.clean(task.mask, task.facts[found.case], to)))
    chances = task.ask(task.changed(found.case, found.to))
    kept = searcher.keeps(task, found.case, found.to, chances)
    return Found(found.case, found.to, found.donor, chances).take(kept)


def distinct(found: Found) -> Found:
    """Each change set of a case once, where it first stands."""
    if len(found) < 2:
        return found
    changed = ~np.isnan(found.to)
    used = changed.any(axis=0)
    to = np.where(changed[:, used], found.to[:, used], np.float32(np.inf))
    order = np.lexsort((*to.T[::-1], found.case))
    to, case = to[order], found.case[order]
    new = np.r_[True, (to[1:] != to[:-1]).any(axis=1) | (case[1:] != case[:-1])]
    return found.take(np.sort(order[new]))


def affordable(task: Task, found: Found) -> Found:
    """Those within the effort that the person can make."""
    most = task.rules.constraints.max_effort
    if most is None:
        return found
    return found.take(effort(task.rules, task.mask, task.facts[found.case], found.to) <= most + 1e-9)


def minimise(searcher: Searcher, task: Task, found: Found) -> Found:
    """No proper subset of a plan's changes is good enough (checked in full up to six changes)."""
    found = distinct(_undo_one_by_one(searcher, task, found))
    plan, smaller = proper_subsets(found.to)
    told, fine = _try(searcher, task, found.case[plan], smaller)
    plan, smaller, told = plan[fine], smaller[fine], told[fine]
    cost = effort(task.rules, task.mask, task.facts[found.case[plan]], smaller)
    order = np.lexsort((cost, (~np.isnan(smaller)).sum(axis=1), plan))
    best = order[np.r_[True, plan[order][1:] != plan[order][:-1]]] if len(order) else order
    to, chances = found.to.copy(), np.array(found.chances)
    to[plan[best]], chances[plan[best]] = smaller[best], told[best]
    return distinct(Found(found.case, to, found.donor, chances))


def _undo_one_by_one(searcher: Searcher, task: Task, found: Found) -> Found:
    """As long as a change can be undone, undo the one that costs the least of the score."""
    to, chances, open_ = found.to.copy(), np.array(found.chances), np.arange(len(found))
    while len(open_):
        plan, column = np.nonzero(~np.isnan(to[open_]))
        tried = to[open_[plan]]
        tried[np.arange(len(plan)), column] = np.nan
        told, fine = _try(searcher, task, found.case[open_[plan]], tried)
        score = np.where(fine, task.score(found.case[open_[plan]], told), -1.0)
        order = np.lexsort((-score, plan))
        best = order[np.r_[True, plan[order][1:] != plan[order][:-1]]]
        best = best[score[best] >= 0]
        open_ = open_[plan[best]]
        to[open_], chances[open_] = tried[best], told[best]
    return Found(found.case, to, found.donor, chances)


def _try(searcher: Searcher, task: Task, case: Codes, to: Floats) -> tuple[Chances, Bools]:
    """What the model says, and which are good enough and break no rule: undoing can part what belongs together."""
    chances = task.ask(task.changed(case, to))
    fine = (~np.isnan(to)).any(axis=1) & task.rules.together(task.mask, task.facts[case], to)
    return chances, fine & searcher.keeps(task, case, to, chances)


def undominated(task: Task, found: Found) -> Found:
    """Without plans that change the same features in the same direction, and none of them less, than another does."""
    if len(found) < 2:
        return found
    changed = ~np.isnan(found.to)
    words = np.packbits(changed, axis=1)
    order = np.lexsort((*words.T, found.case))
    words, case = words[order], found.case[order]
    new = (words[1:] != words[:-1]).any(axis=1) | (case[1:] != case[:-1])
    run = np.zeros(len(order), dtype=np.intp)
    run[1:] = new.cumsum()
    if new.all():
        return found
    step = np.where(changed, found.to - task.facts[found.case], 0)[order]
    ordered = task.rules.ordered[task.features]
    beaten = np.zeros(len(order), dtype=bool)
    for apart in range(1, int(np.bincount(run).max())):
        first = np.flatnonzero(run[apart:] == run[:-apart])
        a, b = step[first], step[first + apart]
        same = a == b
        beaten[first + apart] |= (same | (ordered & (a * b > 0) & (np.abs(a) <= np.abs(b)))).all(axis=1)
        beaten[first] |= (same | (ordered & (a * b > 0) & (np.abs(b) <= np.abs(a)))).all(axis=1)
    return found.take(np.sort(order[~beaten]))
