"""From proposals to plans: what the model confirms and the rules allow, without what is not needed, each once."""

import numpy as np

from edfa.recourse._search.ranking import effort
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["EXACT", "affordable", "confirm", "distinct", "minimise", "proper_subsets", "undominated", "without_one"]

EXACT = 6  # changes up to which every subset is looked at; above, those without one of them


def proper_subsets(to: Float32Array) -> tuple[IntArray, Float32Array]:
    """Every non-empty proper subset of each row's changes, with the row it is of.

    >>> row, smaller = proper_subsets(np.array([[1, np.nan, 2], [3, np.nan, np.nan]], dtype=np.float32))
    >>> row, smaller
    (array([0, 0]), array([[ 1., nan, nan],
           [nan, nan,  2.]], dtype=float32))
    """
    rows, parts = [], []
    size = (~np.isnan(to)).sum(axis=1)
    for count in np.unique(size[size > 1]):
        some = np.flatnonzero(size == count)
        places = np.nonzero(~np.isnan(to[some]))[1].reshape(len(some), count)
        table = ~np.eye(count, dtype=bool)
        if count <= EXACT:
            table = (np.arange(1, 2**count - 1)[:, None] >> np.arange(count) & 1).astype(bool)
        keep = np.zeros((len(some), len(table), to.shape[1]), dtype=bool)
        np.put_along_axis(keep, np.broadcast_to(places[:, None], (len(some), *table.shape)), table[None], axis=2)
        rows.append(np.repeat(some, len(table)))
        parts.append(np.where(keep, to[some][:, None], np.float32(np.nan)).reshape(-1, to.shape[1]))
    if not rows:
        return np.zeros(0, dtype=np.intp), to[:0]
    return np.concatenate(rows), np.concatenate(parts)


def without_one(to: Float32Array) -> tuple[IntArray, Float32Array]:
    """Each row of two changes or more without one of them, with the row it is of."""
    changed = ~np.isnan(to)
    row, column = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
    smaller = to[row]
    smaller[np.arange(len(row)), column] = np.nan
    return row, smaller


def confirm(searcher: Searcher, problem: SearchProblem, found: Candidates) -> Candidates:
    """Those that break no rule and are recourse; a value of one's own is no change."""
    to = np.where(found.to == problem.facts[found.case], np.float32(np.nan), found.to)
    found = Candidates(found.case, to, found.donor)
    found = distinct(found.take(problem.actions.allows(problem.mask, problem.facts[found.case], to)))
    probabilities = problem.predict(problem.apply(found.case, found.to))
    kept = searcher.keeps(problem, found.case, found.to, probabilities)
    return Candidates(found.case, found.to, found.donor, probabilities).take(kept)


def distinct(found: Candidates) -> Candidates:
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


def affordable(problem: SearchProblem, found: Candidates) -> Candidates:
    """Those within the effort that the person can make."""
    most = problem.actions.constraints.max_effort
    if most is None:
        return found
    return found.take(effort(problem.actions, problem.mask, problem.facts[found.case], found.to) <= most + 1e-9)


def minimise(searcher: Searcher, problem: SearchProblem, found: Candidates) -> Candidates:
    """No proper subset of a plan's changes is good enough (checked in full up to six changes)."""
    found = distinct(_undo_one_by_one(searcher, problem, found))
    plan, smaller = proper_subsets(found.to)
    told, fine = _try(searcher, problem, found.case[plan], smaller)
    plan, smaller, told = plan[fine], smaller[fine], told[fine]
    cost = effort(problem.actions, problem.mask, problem.facts[found.case[plan]], smaller)
    order = np.lexsort((cost, (~np.isnan(smaller)).sum(axis=1), plan))
    best = order[np.r_[True, plan[order][1:] != plan[order][:-1]]] if len(order) else order
    to, probabilities = found.to.copy(), np.array(found.probabilities)
    to[plan[best]], probabilities[plan[best]] = smaller[best], told[best]
    return distinct(Candidates(found.case, to, found.donor, probabilities))


def _undo_one_by_one(searcher: Searcher, problem: SearchProblem, found: Candidates) -> Candidates:
    """As long as a change can be undone, undo the one that costs the least of the score."""
    to, probabilities, open_ = found.to.copy(), np.array(found.probabilities), np.arange(len(found))
    while len(open_):
        plan, column = np.nonzero(~np.isnan(to[open_]))
        tried = to[open_[plan]]
        tried[np.arange(len(plan)), column] = np.nan
        told, fine = _try(searcher, problem, found.case[open_[plan]], tried)
        score = np.where(fine, problem.score(found.case[open_[plan]], told), -1.0)
        order = np.lexsort((-score, plan))
        best = order[np.r_[True, plan[order][1:] != plan[order][:-1]]]
        best = best[score[best] >= 0]
        open_ = open_[plan[best]]
        to[open_], probabilities[open_] = tried[best], told[best]
    return Candidates(found.case, to, found.donor, probabilities)


def _try(
    searcher: Searcher, problem: SearchProblem, case: IntArray, to: Float32Array
) -> tuple[Float64Array, BoolArray]:
    """What the model says, and which are good enough and break no rule: undoing can part what belongs together."""
    probabilities = problem.predict(problem.apply(case, to))
    fine = (~np.isnan(to)).any(axis=1) & problem.actions.seen_together(problem.mask, problem.facts[case], to)
    return probabilities, fine & searcher.keeps(problem, case, to, probabilities)


def undominated(problem: SearchProblem, found: Candidates) -> Candidates:
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
    step = np.where(changed, found.to - problem.facts[found.case], 0)[order]
    ordered = problem.actions.ordered[problem.features]
    beaten = np.zeros(len(order), dtype=bool)
    for apart in range(1, int(np.bincount(run).max())):
        first = np.flatnonzero(run[apart:] == run[:-apart])
        a, b = step[first], step[first + apart]
        same = a == b
        beaten[first + apart] |= (same | (ordered & (a * b > 0) & (np.abs(a) <= np.abs(b)))).all(axis=1)
        beaten[first] |= (same | (ordered & (a * b > 0) & (np.abs(b) <= np.abs(a)))).all(axis=1)
    return found.take(np.sort(order[~beaten]))
