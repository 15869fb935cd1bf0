"""Every single change that may be proposed to people who know the same features, read off the
sweep.

The sweep has asked the model about candidate values of every free feature. A *change* is one column
of the arrays here: of an ordered feature, a cell of values that the model cannot tell apart and
that holds a permitted one; of a category, a permitted level. ``ChangeLayout`` lists the changes; it
is the same for everybody with the same known features and is made once. ``SingleChanges`` adds what
each change means for each case: the value that is proposed, and whether it is recourse by itself.
``interval`` says how far around its value a plan of one change still works.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edfa.explanation.necessity import CandidateValues
from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int32Array, IntArray

__all__ = ["ChangeLayout", "SingleChanges", "interval", "layout_of"]


@dataclass(frozen=True, eq=False)
class ChangeLayout:
    """Which single changes there are for people with the same known features; one feature's changes
    stand together.

    Parameters
    ----------
    feature, column, swept
        The feature of each change (changes,): its index, its column among the known features, its
        position among the swept ones.
    candidate
        Which candidate value of the sweep each change was tried with, (changes,).
    lower, upper, value
        The values that each change represents, (changes,): from ``lower`` up to, not including,
        ``upper``; or ``value`` alone, where the two are equal.
    low, high
        The least and the largest permitted value among these, (changes,).
    ordered
        Whether each change is of an ordered feature, (changes,).
    starts
        Where the changes of each swept feature start, then the end, (swept features + 1,).
    least, largest
        For each candidate value of the sweep the least permitted value of its feature that is not
        below it, and the largest that is not above it, (candidate values,); NaN if there is none.
    swept_position
        The position of each known feature among the swept ones, or -1, (known features,).
    has_intervals
        Whether it is known what the model says between two candidate values of a feature, (known
        features,).
    """

    feature: IntArray
    column: IntArray
    swept: IntArray
    candidate: IntArray
    lower: Float32Array
    upper: Float32Array
    value: Float32Array
    low: Float32Array
    high: Float32Array
    ordered: BoolArray
    starts: IntArray
    least: Float32Array
    largest: Float32Array
    swept_position: IntArray
    has_intervals: BoolArray

    def changes_to(self, problem: SearchProblem, rows: Float32Array) -> Int32Array:
        """The change that leads to each value of ``rows`` (rows, known features), or -1: (rows,
        swept features).
        """
        changes = np.full((len(rows), len(self.starts) - 1), -1, dtype=np.int32)
        grid = problem.group.grid
        for k, feature in enumerate(grid.features):
            start, end = self.starts[k], self.starts[k + 1]
            if end == start:
                continue
            values, ordered = rows[:, grid.columns[k]], problem.actions.ordered[feature]
            known: AnyArray = (
                self.candidate[start:end] - grid.starts[k] if ordered else self.low[start:end]
            )
            sought = _nearest_candidate(grid.candidate_values[k], values) if ordered else values
            position = np.minimum(np.searchsorted(known, sought), end - start - 1)
            changes[:, k] = np.where(known[position] == sought, start + position, -1)
        return changes


def layout_of(problem: SearchProblem) -> ChangeLayout:
    """The layout of the problem's single changes; cached, since it is the same for all who know the
    same.
    """
    name = "layout", problem.actions, problem.group.features
    return problem.actions.support.cache.get(
        problem.predictor, problem.mask, name, lambda: _make_layout(problem)
    )


def _make_layout(problem: SearchProblem) -> ChangeLayout:
    grid, actions = problem.group.grid, problem.actions
    parts = [_changes_of(problem, k) for k in range(len(grid.features))]
    starts = np.cumsum([0, *(len(candidate) for candidate, _, _ in parts)])
    swept = np.repeat(np.arange(len(parts)), np.diff(starts))
    none = np.zeros(0, dtype=np.float32)
    low, high = (np.concatenate([none, *(part[i] for part in parts)]) for i in (1, 2))
    candidate = np.concatenate(
        [swept[:0], *(part[0] + start for part, start in zip(parts, grid.starts, strict=False))]
    )
    features = np.array(grid.features, dtype=np.intp)
    has_intervals = [
        actions.ordered[f] and (has_cells or not actions.continuous[f])
        for f, has_cells in zip(features, grid.has_cells, strict=True)
    ]
    ends = [
        _permitted_ends(c, actions.values[f])
        for f, c in zip(features, grid.candidate_values, strict=True)
    ]
    swept_position = np.full(len(problem.features), -1, dtype=np.intp)
    swept_position[grid.columns] = np.arange(len(features))
    return ChangeLayout(
        feature=features[swept],
        column=grid.columns[swept],
        swept=swept,
        candidate=candidate,
        lower=grid.lower[candidate],
        upper=grid.upper[candidate],
        value=grid.value[candidate],
        low=low,
        high=high,
        ordered=actions.ordered[features[swept]],
        starts=starts,
        least=np.concatenate([none, *(least for least, _ in ends)]),
        largest=np.concatenate([none, *(largest for _, largest in ends)]),
        swept_position=swept_position,
        has_intervals=np.array([False, *has_intervals])[swept_position + 1],
    )


def _changes_of(problem: SearchProblem, k: int) -> tuple[IntArray, Float32Array, Float32Array]:
    """The changes of the k-th swept feature: candidate value, least and largest permitted value,
    (changes,) each.

    An ordered feature has one for each candidate value that represents a permitted one, a category
    one for each permitted level.
    """
    feature = problem.group.features[k]
    values = problem.actions.values[feature]
    candidate = problem.group.candidate_values[k].index_of(values)
    values, candidate = values[candidate >= 0], candidate[candidate >= 0]
    if not problem.actions.ordered[feature] or not len(values):
        return candidate, values, values
    distinct, first = np.unique(candidate, return_index=True)
    return distinct, values[first], values[np.r_[first[1:], len(values)] - 1]


def _permitted_ends(
    candidates: CandidateValues, permitted: Float32Array
) -> tuple[Float32Array, Float32Array]:
    """The least permitted value not below each candidate value, and the largest not above; NaN if
    there is none.
    """
    padded = np.r_[np.float32(np.nan), permitted, np.float32(np.nan)]
    largest = np.where(
        candidates.lower == candidates.upper,
        np.searchsorted(permitted, candidates.value, side="right"),
        np.searchsorted(permitted, candidates.upper, side="left"),
    )
    return padded[np.searchsorted(permitted, candidates.lower) + 1], padded[largest]


def _nearest_candidate(candidates: CandidateValues, values: Float32Array) -> IntArray:
    """The candidate that represents each value or -1; the nearest one, if candidates represent
    themselves alone.
    """
    if len(candidates) < 2 or (candidates.lower < candidates.upper).any():
        return candidates.index_of(values)
    right = np.clip(np.searchsorted(candidates.value, values), 1, len(candidates) - 1)
    return right - (values - candidates.value[right - 1] <= candidates.value[right] - values)


@dataclass(frozen=True, eq=False)
class SingleChanges:
    """What each single change means for each case of a problem.

    ``to`` (cases, changes) is the value that a change proposes to a case: of a cell, the permitted
    value nearest to the case's own; NaN if the change is not for this case. ``is_recourse`` (cases,
    changes) says which changes are recourse by themselves.
    """

    problem: SearchProblem
    layout: ChangeLayout
    to: Float32Array
    is_recourse: BoolArray

    @classmethod
    def of(cls, problem: SearchProblem) -> "SingleChanges":
        """The single changes of all free features."""
        layout = layout_of(problem)
        own = problem.facts[:, layout.column]
        below_cell = own < layout.lower
        inside = ~below_cell & ((own < layout.upper) | (own == layout.value))
        # The lowest value of a cell is proposed to those below it, the highest to those above.
        proposed = np.where(below_cell, layout.low, layout.high)
        permitted = ~inside & problem.actions.permits_value(layout.feature, own, proposed)
        to = np.where(permitted, proposed, np.float32(np.nan))
        is_recourse = problem.single_recourse[:, layout.candidate] & permitted
        changes = cls(problem, layout, to, is_recourse)
        changes._confirm(permitted)
        return changes

    def _confirm(self, permitted: BoolArray) -> None:
        """Keep what is recourse with all that follows from it, breaks no rule and is sensible.

        ``permitted`` (cases, changes) are all that may be proposed.
        """
        problem, is_recourse = self.problem, self.is_recourse
        if self.moves_others.any():
            # A sensible plan works today too, so that of what only takes time the others need no
            # look.
            inputs = problem.actions.consequences.inputs[self.layout.feature]
            tried = permitted if problem.sense is None else is_recourse | (permitted & inputs)
            case, change = np.nonzero(tried & self.moves_others)
            rows = problem.apply(case, self._rows(case, change))
            is_recourse[case, change] = problem.is_recourse(case, problem.predict(rows))
        if problem.actions.joint_values or problem.sense is not None or self.moves_others.any():
            case, change = np.nonzero(is_recourse)
            to = self._rows(case, change)
            fine = problem.actions.fit_together(problem.mask, problem.facts[case], to)
            is_recourse[case, change] = fine & problem.is_sensible(case, to)

    @cached_property
    def moves_others(self) -> BoolArray:
        """Which changes move other features along, so that the sweep does not say what they lead
        to, (changes,).
        """
        moves = self.problem.actions.consequences.moves_others(self.problem.features)
        return np.asarray(moves[self.layout.column])

    def _rows(self, case: IntArray, change: IntArray) -> Float32Array:
        """Change sets of one change each, (n, known features); ``case`` and ``change`` are (n,)."""
        to = np.full((len(case), len(self.problem.features)), np.nan, dtype=np.float32)
        to[np.arange(len(case)), self.layout.column[change]] = self.to[case, change]
        return to

    def _predict(self, case: IntArray, change: IntArray) -> Float64Array:
        """What the model says after each change, (n, classes); ``case`` and ``change`` are (n,)."""
        probabilities = self.problem.group.predict_candidates(case, self.layout.candidate[change])
        moved = np.flatnonzero(self.moves_others[change])
        if len(moved):
            rows = self.problem.apply(case[moved], self._rows(case[moved], change[moved]))
            probabilities[moved] = self.problem.predict(rows)
        return probabilities

    def __len__(self) -> int:
        return len(self.layout.column)

    def candidates(self, case: IntArray, change: IntArray) -> Candidates:
        """Change sets of one change each: ``change`` made by ``case``, both (candidates,)."""
        return Candidates.of(case, self._rows(case, change), self._predict(case, change))

    def score(self, case: IntArray) -> Float64Array:
        """How near each change brings these cases to recourse, (cases, changes); -1 if it is not
        for the case.
        """
        score = np.full((len(case), len(self)), -1.0)
        row, change = np.nonzero(~np.isnan(self.to[case]))
        score[row, change] = self.problem.score(case[row], self._predict(case[row], change))
        return score

    def nearest_recourse(self) -> tuple[IntArray, IntArray]:
        """Cases and changes that are recourse by themselves: every level, the nearest number in
        each direction.
        """
        layout, own = self.layout, self.problem.facts[:, self.layout.column]
        above = self.is_recourse & layout.ordered & (self.to > own)
        below = self.is_recourse & layout.ordered & ~above
        # Counted along all changes: the first of its feature has one more than there were before
        # that feature.
        start, end = layout.starts[layout.swept], layout.starts[layout.swept + 1] - 1
        up, down = above.cumsum(axis=1), below.cumsum(axis=1)
        nearest = self.is_recourse & ~layout.ordered
        nearest |= above & (up == up[:, start] - above[:, start] + 1)
        nearest |= below & (down == down[:, end])
        case, change = np.nonzero(nearest)
        return case, change


def interval(problem: SearchProblem, candidates: Candidates) -> tuple[Float32Array, Float32Array]:
    """The least and the largest permitted value around that of a plan of one change such that all
    between work too.

    Both are (candidates,). The end that the change goes towards is NaN if everything there works:
    36 months or fewer. Both are NaN for plans of several changes, for a category, whose levels have
    nothing between them, for what was not swept, and for a number if the model does not tell its
    cells: nobody knows what it says between two values. A number that goes the good way of a model
    that obeys directions is open there in any case.
    """
    low, high = _obeyed_ends(problem, candidates)
    grid, changed = problem.group.grid, ~np.isnan(candidates.to)
    if not len(grid) or not len(candidates):
        return low, high
    layout, column = layout_of(problem), changed.argmax(axis=1)
    quiet = layout.has_intervals & ~problem.actions.consequences.moves_others(problem.features)
    rows = np.flatnonzero((changed.sum(axis=1) == 1) & quiet[column])
    column = column[rows]
    value, index = candidates.to[rows, column][:, None], np.arange(len(grid))
    same_feature = grid.owner == layout.swept_position[column][:, None]
    represents = (
        same_feature & (grid.lower <= value) & ((value < grid.upper) | (value == grid.value))
    )
    own = represents.argmax(axis=1)[:, None]
    # Other features count as failing, so that intervals stay within one feature.
    fails = ~(same_feature & problem.single_recourse[candidates.case[rows]])
    first = np.where(fails & (index < own), index, -1).max(axis=1) + 1
    last = np.where(fails & (index > own), index, len(grid)).min(axis=1) - 1
    low[rows], high[rows] = layout.least[first], layout.largest[last]
    upwards = candidates.to[rows, column] > problem.facts[candidates.case[rows], column]
    least, largest = problem.actions.ends[:, problem.features[column]]
    high[rows[upwards & (grid.upper[last] > largest)]] = np.nan
    low[rows[~upwards & (grid.lower[first] <= least)]] = np.nan
    return low, high


def _obeyed_ends(
    problem: SearchProblem, candidates: Candidates
) -> tuple[Float32Array, Float32Array]:
    """The end from which on plans of one number work, because the model obeys directions; NaN
    otherwise.

    The arguments and the result are those of ``interval``. Going on takes such a number no longer,
    and moves no other.
    """
    low, high = np.full((2, len(candidates)), np.nan, dtype=np.float32)
    signs, follows = problem.obeyed_directions, problem.actions.consequences
    if signs is None or not len(candidates):
        return low, high
    changed = ~np.isnan(candidates.to)
    column = changed.argmax(axis=1)
    feature, rows = problem.features[column], np.arange(len(candidates))
    quiet = (
        problem.actions.continuous[feature]
        & (follows.per_month[feature] == 0)
        & ~follows.inputs[feature]
    )
    to = candidates.to[rows, column]
    moved = to - problem.facts[candidates.case, column]
    good = quiet & (changed.sum(axis=1) == 1) & (moved * signs[feature] > 0)
    return np.where(good & (moved > 0), to, low), np.where(good & (moved < 0), to, high)
