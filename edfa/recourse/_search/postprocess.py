"""From proposals to plans: what the model confirms and the action set allows, without changes that
are not needed.

``find_recourse`` and the searchers take the same steps: ``confirm`` proposals, ``minimise`` what is
left, drop those that are not ``undominated`` or not ``affordable``, and name each change set once
(``distinct``). Change sets are rows of ``Candidates.to`` (change sets, known features); NaN:
unchanged.
"""

import numpy as np

from edfa.recourse._search.ranking import effort
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = [
    "EXACT",
    "affordable",
    "confirm",
    "distinct",
    "minimise",
    "proper_subsets",
    "undominated",
    "within_max_changes",
    "without_one",
]

EXACT = 6  # changes up to which every subset is looked at; above, those without one of them


def confirm(searcher: Searcher, problem: SearchProblem, candidates: Candidates) -> Candidates:
    """The candidates that the action set allows and that are good enough for the searcher, with
    their probabilities.

    A value of one's own is no change.
    """
    to = np.where(
        candidates.to == problem.facts[candidates.case], np.float32(np.nan), candidates.to
    )
    candidates = Candidates(candidates.case, to, candidates.donor)
    allowed = problem.actions.allows(problem.mask, problem.facts[candidates.case], to)
    candidates = distinct(candidates.take(allowed))
    case, to = candidates.case, candidates.to
    probabilities = problem.predict(problem.apply(case, to))
    kept = searcher.keeps(problem, case, to, probabilities)
    return Candidates(case, to, candidates.donor, probabilities).take(kept)


def distinct(candidates: Candidates) -> Candidates:
    """Each change set of a case once, in the position where it first stands."""
    if len(candidates) < 2:
        return candidates
    changed = ~np.isnan(candidates.to)
    used = changed.any(axis=0)
    to = np.where(changed[:, used], candidates.to[:, used], np.float32(np.inf))
    order = np.lexsort((*to.T[::-1], candidates.case))
    to, case = to[order], candidates.case[order]
    new = np.r_[True, (to[1:] != to[:-1]).any(axis=1) | (case[1:] != case[:-1])]
    return candidates.take(np.sort(order[new]))


def minimise(searcher: Searcher, problem: SearchProblem, candidates: Candidates) -> Candidates:
    """Confirmed candidates cut down until no proper subset is good enough (checked in full up to
    six changes).
    """
    candidates = distinct(_undo_one_by_one(searcher, problem, candidates))
    plan, smaller = proper_subsets(candidates.to)
    probabilities, fine = _check(searcher, problem, candidates.case[plan], smaller)
    plan, smaller, probabilities = plan[fine], smaller[fine], probabilities[fine]
    cost = effort(problem.actions, problem.mask, problem.facts[candidates.case[plan]], smaller)
    best = _first_of_each(plan, np.lexsort((cost, (~np.isnan(smaller)).sum(axis=1), plan)))
    to, after = candidates.to.copy(), np.array(candidates.probabilities)
    to[plan[best]], after[plan[best]] = smaller[best], probabilities[best]
    return distinct(Candidates(candidates.case, to, candidates.donor, after))


def _undo_one_by_one(
    searcher: Searcher, problem: SearchProblem, candidates: Candidates
) -> Candidates:
    """As long as a change of a plan can be undone, undo the one that costs the least of the
    score.
    """
    to, after, active = (
        candidates.to.copy(),
        np.array(candidates.probabilities),
        np.arange(len(candidates)),
    )
    while len(active):
        plan, column = np.nonzero(~np.isnan(to[active]))
        smaller, case = to[active[plan]], candidates.case[active[plan]]
        smaller[np.arange(len(plan)), column] = np.nan
        probabilities, fine = _check(searcher, problem, case, smaller)
        score = np.where(fine, problem.score(case, probabilities), -1.0)
        best = _first_of_each(plan, np.lexsort((-score, plan)))
        best = best[score[best] >= 0]
        active = active[plan[best]]
        to[active], after[active] = smaller[best], probabilities[best]
    return Candidates(candidates.case, to, candidates.donor, after)


def _check(
    searcher: Searcher, problem: SearchProblem, case: IntArray, to: Float32Array
) -> tuple[Float64Array, BoolArray]:
    """Probabilities of change sets, and which are good enough: undoing a change can part what
    belongs together.
    """
    probabilities = problem.predict(problem.apply(case, to))
    fine = (~np.isnan(to)).any(axis=1) & problem.actions.fit_together(
        problem.mask, problem.facts[case], to
    )
    return probabilities, fine & searcher.keeps(problem, case, to, probabilities)


def _first_of_each(plan: IntArray, order: IntArray) -> IntArray:
    """The first row of each plan in ``order``, which sorts rows by plan."""
    ordered = plan[order]
    return order[np.r_[True, ordered[1:] != ordered[:-1]]] if len(order) else order


def proper_subsets(to: Float32Array) -> tuple[IntArray, Float32Array]:
    """Every non-empty proper subset of each row's changes, with the row it comes from.

    >>> row, smaller = proper_subsets(np.array([[1, np.nan, 2], [3, np.nan, np.nan]],
    ...     dtype=np.float32))
    >>> row, smaller
    (array([0, 0]), array([[ 1., nan, nan],
           [nan, nan,  2.]], dtype=float32))
    """
    rows, parts = [], []
    size = (~np.isnan(to)).sum(axis=1)
    for count in np.unique(size[size > 1]):
        same_size = np.flatnonzero(size == count)
        columns = np.nonzero(~np.isnan(to[same_size]))[1].reshape(len(same_size), count)
        subsets = ~np.eye(count, dtype=bool)
        if count <= EXACT:
            subsets = (np.arange(1, 2**count - 1)[:, None] >> np.arange(count) & 1).astype(bool)
        keep = np.zeros((len(same_size), len(subsets), to.shape[1]), dtype=bool)
        index = np.broadcast_to(columns[:, None], (len(same_size), *subsets.shape))
        np.put_along_axis(keep, index, subsets[None], axis=2)
        rows.append(np.repeat(same_size, len(subsets)))
        parts.append(
            np.where(keep, to[same_size][:, None], np.float32(np.nan)).reshape(-1, to.shape[1])
        )
    if not rows:
        return np.zeros(0, dtype=np.intp), to[:0]
    return np.concatenate(rows), np.concatenate(parts)


def without_one(to: Float32Array) -> tuple[IntArray, Float32Array]:
    """Each row of two changes or more without one of them, for each of them, with the row it comes
    from.
    """
    changed = ~np.isnan(to)
    row, column = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
    smaller = to[row]
    smaller[np.arange(len(row)), column] = np.nan
    return row, smaller


def undominated(problem: SearchProblem, candidates: Candidates) -> Candidates:
    """Without plans that change the same features in the same direction, and none of them less,
    than another does.
    """
    if len(candidates) < 2:
        return candidates
    changed = ~np.isnan(candidates.to)
    features = np.packbits(changed, axis=1)
    order = np.lexsort((*features.T, candidates.case))
    features, case = features[order], candidates.case[order]
    new = (features[1:] != features[:-1]).any(axis=1) | (case[1:] != case[:-1])
    block = np.zeros(len(order), dtype=np.intp)  # plans of one case that change the same features
    block[1:] = new.cumsum()
    if new.all():
        return candidates
    moved = np.where(changed, candidates.to - problem.facts[candidates.case], 0)[order]
    ordered = problem.actions.ordered[problem.features]
    dominated = np.zeros(len(order), dtype=bool)
    for gap in range(1, int(np.bincount(block).max())):
        first = np.flatnonzero(block[gap:] == block[:-gap])
        a, b = moved[first], moved[first + gap]
        same = a == b
        dominated[first + gap] |= (same | (ordered & (a * b > 0) & (np.abs(a) <= np.abs(b)))).all(
            axis=1
        )
        dominated[first] |= (same | (ordered & (a * b > 0) & (np.abs(b) <= np.abs(a)))).all(axis=1)
    return candidates.take(np.sort(order[~dominated]))


def within_max_changes(problem: SearchProblem, candidates: Candidates) -> Candidates:
    """The candidates with no more changes than the rules allow."""
    return candidates.take((~np.isnan(candidates.to)).sum(axis=1) <= problem.actions.max_changes)


def affordable(problem: SearchProblem, candidates: Candidates) -> Candidates:
    """The candidates within the effort that the rules allow."""
    limit = problem.actions.rules.max_effort
    if limit is None:
        return candidates
    cost = effort(problem.actions, problem.mask, problem.facts[candidates.case], candidates.to)
    return candidates.take(cost <= limit + 1e-9)
