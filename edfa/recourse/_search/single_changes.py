"""Every single change that may be proposed to people who know the same features, read off the
sweep.

The sweep has asked the model about candidate values of every free feature. A *change* is one column
of the arrays here: of an ordered feature, a cell of values that the model cannot tell apart and
that holds a permitted one; of a category, a permitted level. ``ChangeLayout`` lists the changes; it
is the same for everybody with the same known features and is made once. ``SingleChanges`` adds what
each change means for each case: the value that is proposed, and whether it is recourse by itself.
``interval`` says how far around its value a plan of one change still works, ``enough_now`` which
part of each change turns the decision today.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edfa.explanation.necessity import CandidateGrid, CandidateValues
from edfa.recourse.action_set import ActionSet
from edfa.recourse.searcher import Candidates, SearchProblem, rank_in_case
from edfa.typing import NAN, AnyArray, BoolArray, Float32Array, Float64Array, Int32Array, IntArray

Ends = tuple[Float32Array, Float32Array]
"""The least and the largest value that does, (candidates,) each; NaN: open, or not known."""


@dataclass(frozen=True, eq=False)
class ChangeLayout:
    """Which single changes there are for people with the same known features; one feature's changes
    stand together.

    Parameters
    ----------
    grid, actions
        The candidate values of the sweep, and what may be proposed.
    swept
        The position of each change's feature among the swept ones, (changes,).
    candidate
        Which candidate value of the sweep each change was tried with, (changes,); a change stands
        for all permitted values that this one represents.
    low, high
        The least and the largest permitted value among these, (changes,).
    """

    grid: CandidateGrid
    actions: ActionSet
    swept: IntArray
    candidate: IntArray
    low: Float32Array
    high: Float32Array

    @classmethod
    def of(cls, problem: SearchProblem) -> "ChangeLayout":
        """The layout of the problem's single changes; cached, since it is the same for all who know
        the same.
        """
        grid, actions = problem.group.grid, problem.actions

        def make() -> ChangeLayout:
            none = np.zeros(0, dtype=np.intp), *np.zeros((2, 0), dtype=np.float32)
            parts = [none, *(_changes_of(problem, k) for k in range(len(grid.features)))]
            candidate, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
            return cls(grid, actions, grid.owner[candidate], candidate, low, high)

        name = "layout", actions, grid.features
        return actions.support.cache.get(problem.predictor, problem.mask, name, make)

    @cached_property
    def starts(self) -> IntArray:
        """Where the changes of each swept feature start, then the end, (swept features + 1,)."""
        return np.searchsorted(self.swept, np.arange(len(self.grid.features) + 1))

    @cached_property
    def column(self) -> IntArray:
        """The column among the known features that each change is of, (changes,)."""
        return self.grid.columns[self.swept]

    @cached_property
    def feature(self) -> IntArray:
        """The index of each change's feature, (changes,)."""
        return np.array(self.grid.features, dtype=np.intp)[self.swept]

    @cached_property
    def ordered(self) -> BoolArray:
        """Whether each change is of an ordered feature, (changes,)."""
        return self.actions.ordered[self.feature]

    def proposed(self, problem: SearchProblem) -> Float32Array:
        """The value that each change proposes to each case: of a cell, the permitted value nearest
        to the case's own; NaN if the change is not for this case, (cases, changes).
        """
        grid, own = self.grid, problem.facts[:, self.column]
        lower, upper, value = (
            part[self.candidate] for part in (grid.lower, grid.upper, grid.value)
        )
        below_cell = own < lower
        inside = ~below_cell & ((own < upper) | (own == value))
        # The lowest value of a cell is proposed to those below it, the highest to those above.
        proposed = np.where(below_cell, self.low, self.high)
        permitted = ~inside & problem.actions.permits_value(self.feature, own, proposed)
        return np.where(permitted, proposed, NAN)

    def changes_to(self, rows: Float32Array) -> Int32Array:
        """The change that leads to each value of some rows.

        Parameters
        ----------
        rows
            Facts of training people, (rows, known features).

        Returns
        -------
        numpy.ndarray
            Indices of changes, (rows, swept features); -1 where no change leads to the value.
        """
        changes = np.full((len(rows), len(self.starts) - 1), -1, dtype=np.int32)
        grid = self.grid
        for k, feature in enumerate(grid.features):
            start, end = self.starts[k : k + 2]
            if end == start:
                continue
            sought: AnyArray = rows[:, grid.columns[k]]
            known: AnyArray = self.low[start:end]
            if self.actions.ordered[feature]:
                sought = _nearest_candidate(grid.candidate_values[k], sought)
                known = self.candidate[start:end] - grid.starts[k]
            position = np.minimum(np.searchsorted(known, sought), end - start - 1)
            changes[:, k] = np.where(known[position] == sought, start + position, -1)
        return changes


def _changes_of(problem: SearchProblem, k: int) -> tuple[IntArray, Float32Array, Float32Array]:
    """The changes of the k-th swept feature: candidate value of the sweep, least and largest
    permitted value, (changes,) each.

    An ordered feature has one for each candidate value that represents a permitted one, a category
    one for each permitted level.
    """
    grid, feature = problem.group.grid, problem.group.features[k]
    values = problem.actions.values[feature]
    candidate = grid.candidate_values[k].index_of(values)
    values, candidate = values[candidate >= 0], candidate[candidate >= 0] + grid.starts[k]
    if not problem.actions.ordered[feature] or not len(values):
        return candidate, values, values
    distinct, first = np.unique(candidate, return_index=True)
    return distinct, values[first], values[np.r_[first[1:], len(values)] - 1]


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

    ``SingleChanges.of`` makes it; its length is the number of changes.

    Parameters
    ----------
    problem, layout
        The problem, and its changes.
    to
        The value that a change proposes to a case, (cases, changes): of a cell, the permitted value
        nearest to the case's own; NaN if the change is not for this case.
    is_recourse
        Which changes are recourse by themselves, (cases, changes).
    """

    problem: SearchProblem
    layout: ChangeLayout
    to: Float32Array
    is_recourse: BoolArray

    @classmethod
    def of(cls, problem: SearchProblem) -> "SingleChanges":
        """The single changes of all free features."""
        layout = ChangeLayout.of(problem)
        to = layout.proposed(problem)
        permitted = ~np.isnan(to)
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
            tried = permitted if problem.plan_filter is None else is_recourse | (permitted & inputs)
            case, change = np.nonzero(tried & self.moves_others)
            probabilities = problem.predict_changes(case, self._rows(case, change))
            is_recourse[case, change] = problem.is_recourse(case, probabilities)
        if (
            problem.actions.joint_values
            or problem.plan_filter is not None
            or self.moves_others.any()
        ):
            case, change = np.nonzero(is_recourse)
            is_recourse[case, change] = problem.is_sensible(case, self._rows(case, change))

    @cached_property
    def moves_others(self) -> BoolArray:
        """Which changes move other features along, so that the sweep does not say what they lead
        to, (changes,).
        """
        moves = self.problem.actions.consequences.moves_others(self.problem.features)
        return moves[self.layout.column]

    def _rows(self, case: IntArray, change: IntArray) -> Float32Array:
        """Change sets of one change each, (n, known features); ``case`` and ``change`` are (n,)."""
        return self.problem.change(self.layout.column[change], self.to[case, change])

    def _predict(self, case: IntArray, change: IntArray) -> Float64Array:
        """The model's probabilities after each change, (n, classes); ``case``, ``change``: (n,)."""
        probabilities = self.problem.group.predict_candidates(case, self.layout.candidate[change])
        moved = np.flatnonzero(self.moves_others[change])
        if len(moved):
            to = self._rows(case[moved], change[moved])
            probabilities[moved] = self.problem.predict_changes(case[moved], to)
        return probabilities

    def __len__(self) -> int:
        return len(self.layout.column)

    def candidates(self, case: IntArray, change: IntArray) -> Candidates:
        """Change sets of one change each: ``change`` made by ``case``, both (candidates,)."""
        return Candidates(case, self._rows(case, change), self._predict(case, change))

    def score(self, case: IntArray) -> Float64Array:
        """How near each change brings these cases to recourse.

        Parameters
        ----------
        case
            The cases, (cases,).

        Returns
        -------
        numpy.ndarray
            ``SearchProblem.score`` after each change, (cases, changes); -1 if it is not for the
            case.
        """
        score = np.full((len(case), len(self)), -1.0)
        row, change = np.nonzero(~np.isnan(self.to[case]))
        score[row, change] = self.problem.score(case[row], self._predict(case[row], change))
        return score

    def nearest_recourse(self) -> tuple[IntArray, IntArray]:
        """Cases and changes that are recourse by themselves: every level, the nearest number in
        each direction.

        Returns
        -------
        tuple
            The cases, ascending, and the change of each, (n,) both.
        """
        layout, facts = self.layout, self.problem.facts
        case, change = np.nonzero(self.is_recourse)
        column = layout.column[change]
        way = np.sign(self.to[case, change] - facts[case, column])
        feature_and_way = (case * facts.shape[1] + column) * 3 + way
        nearest = rank_in_case(feature_and_way, change * way) == 0
        chosen = nearest | ~layout.ordered[change]
        return case[chosen], change[chosen]


def enough_now(problem: SearchProblem, plans: Candidates) -> Float32Array:
    """What part of each change turns today's decision, the other changes of its plan made: the
    least from which on all that is tried up to the plan's own value does. No time passes
    meanwhile. One model call answers for all plans.

    Parameters
    ----------
    problem
        The people, and what single changes propose to them.
    plans
        Plans that are recourse.

    Returns
    -------
    numpy.ndarray
        (plans, known features). The person's own value where the change is not needed today; NaN
        where no less than the plan's own value does, and for what is unchanged.
    """
    layout, (case, to) = ChangeLayout.of(problem), (plans.case, plans.to)
    value, facts = layout.proposed(problem)[case], problem.facts[case]
    own, goal = facts[:, layout.column], to[:, layout.column]
    way = np.sign(goal - own)
    plan, change = np.nonzero(
        layout.ordered & ((value - own) * way > 0) & ((goal - value) * way > 0)
    )
    several = (~np.isnan(to)).sum(axis=1) > 1
    undone, left_out = np.nonzero(~np.isnan(to) & several[:, None])
    tried = np.r_[value[plan, change], np.full(len(undone), NAN)]
    plan, column = np.r_[plan, undone], np.r_[layout.column[change], left_out]
    less = to[plan]
    less[np.arange(len(plan)), column] = tried
    apply = problem.actions.consequences.apply
    rows, _ = apply(problem.features, facts[plan], less, growth=False)  # as old as today
    works = problem.is_recourse(case[plan], problem.predict(rows))
    tried = np.where(np.isnan(tried), facts[plan, column], tried)
    distance, number = np.abs(tried - facts[plan, column]), plan * to.shape[1] + column
    fails = np.full(to.size, NAN)
    np.fmax.at(fails, number[~works], distance[~works])
    works &= ~(distance <= fails[number])
    nearest = works & (rank_in_case(number, distance, ~works) == 0)
    least = np.full_like(to, NAN)
    least[plan[nearest], column[nearest]] = tried[nearest]
    return least


def interval(problem: SearchProblem, candidates: Candidates) -> Ends:
    """The least and the largest permitted value around that of a plan of one change such that all
    between work too.

    The end that the change goes towards is NaN if everything there works: 36 months or fewer. Both
    are NaN for plans of several changes, for a category, whose levels have nothing between them,
    for what was not swept, and for a number if the model does not tell its cells: nobody knows what
    it says between two values, but a user model, which need not tell its cells, is asked (see
    ``_trial_ends``). A number that goes the good way of a model that obeys directions is open there
    in any case.

    Parameters
    ----------
    problem
        The people, and what single changes do.
    candidates
        Plans that are recourse.

    Returns
    -------
    tuple
        The low and the high end, (candidates,) each.
    """
    changed = ~np.isnan(candidates.to)
    single, column = changed.sum(axis=1) == 1, changed.argmax(axis=1) if len(changed) else []
    low, high = np.full((2, len(candidates)), NAN)
    for each in np.unique(np.asarray(column, dtype=np.intp)[single]):
        rows = np.flatnonzero(single & (column == each))
        low[rows], high[rows] = _ends(problem, candidates.take(rows), int(each))
    return low, high


def _ends(problem: SearchProblem, plans: Candidates, column: int) -> Ends:
    """The ends of plans (n,) that change one known feature alone, the one at ``column``.

    They are read off the sweep where the model tells its cells, found by bisection for a user
    model, and open where a model obeys directions.
    """
    actions, follows, feature = (
        problem.actions,
        problem.actions.consequences,
        problem.features[column],
    )
    value = plans.to[:, column]
    upwards = value > problem.facts[plans.case, column]
    low, high = np.full((2, len(plans)), NAN)
    signs = problem.obeyed_directions
    moves_others = follows.moves_others(problem.features)[column]
    # going on takes such a number no longer, or nothing grows meanwhile, and it moves no other
    quiet = follows.per_month[feature] == 0 and not follows.inputs[feature]
    quiet &= follows.per_unit[feature] == 0 or not moves_others
    if signs is not None and signs[feature] and quiet and actions.continuous[feature]:
        good = upwards == (signs[feature] > 0)
        low[good & upwards], high[good & ~upwards] = value[good & upwards], value[good & ~upwards]
    swept = np.flatnonzero(problem.group.grid.columns == column)
    if not len(swept) or moves_others:
        return low, high
    if problem.group.grid.has_cells[swept[0]] or not actions.continuous[feature]:
        return _cell_ends(problem, plans, column) if actions.ordered[feature] else (low, high)
    if problem.predictor.refits:
        return low, high
    ends = _trial_ends(problem, plans, int(swept[0]))
    return np.where(np.isnan(low), ends[0], low), np.where(np.isnan(high), ends[1], high)


def _cell_ends(problem: SearchProblem, plans: Candidates, column: int) -> Ends:
    """The ends of plans (n,) of one change of a ``column`` whose every value was swept."""
    grid, value = problem.group.grid, plans.to[:, column]
    permitted = problem.actions.values[problem.features[column]]
    at = problem.candidate_of(np.full(len(plans), column), value)
    first, last = (run[plans.case, at] for run in problem.runs)
    lower, upper = grid.lower[last], grid.upper[last]
    padded = np.r_[NAN, permitted, NAN]
    low = padded[np.searchsorted(permitted, grid.lower[first]) + 1]
    alone = np.searchsorted(permitted, grid.value[last], side="right")  # it stands for itself
    high = padded[np.where(lower == upper, alone, np.searchsorted(permitted, upper))]
    upwards = value > problem.facts[plans.case, column]
    least, largest = problem.actions.ends[:, problem.features[column]]
    # nobody knows what is said around a value that no candidate stands for
    high[(at < 0) | (upwards & (upper > largest))] = np.nan
    low[(at < 0) | (~upwards & (grid.lower[first] <= least))] = np.nan
    return low, high


def _trial_ends(problem: SearchProblem, plans: Candidates, k: int) -> Ends:
    """The ends of plans (n,) that change the k-th swept feature alone, by bisection, for a model
    that does not tell its cells.

    The sweep has tried many values of the number. Between the last of them that works and the next
    that fails, the training values are halved until the end is there. What lies between two values
    that work was not tried.
    """
    grid = problem.group.grid
    swept, column = slice(*grid.starts[k : k + 2]), int(grid.columns[k])
    tried, works = grid.value[swept], problem.single_recourse[plans.case, swept]
    permitted = problem.actions.values[grid.features[k]]
    value, own = plans.to[:, column], problem.facts[plans.case, column]
    ends = []
    for way, nearest, farthest in ((-1, np.max, np.min), (1, np.min, np.max)):
        beyond = (tried - value[:, None]) * way > 0
        fails = nearest(np.where(beyond & ~works, tried, np.float32(np.inf * way)), axis=1)
        within = beyond & works & ((fails[:, None] - tried) * way > 0)
        good = farthest(np.where(within, tried, value[:, None]), axis=1)
        end = _bisect(problem, plans.case, column, permitted, good, fails)
        open_end = np.isinf(fails) & ((value - own) * way > 0)
        ends.append(np.where(open_end, NAN, end))
    return ends[0], ends[1]


def _bisect(
    problem: SearchProblem,
    case: IntArray,
    column: int,
    permitted: Float32Array,
    good: Float32Array,
    fails: Float32Array,
) -> Float32Array:
    """The farthest permitted value from ``good`` towards ``fails``.

    Parameters
    ----------
    problem, case, column
        The problem, the case of each plan, (n,), and the known feature that all of them change.
    permitted
        The values that may be proposed, ascending.
    good, fails
        For each plan a value that works, and one that fails or is infinite, (n,) each.
    """
    last = len(permitted) - 1
    best = np.minimum(np.searchsorted(permitted, good), last)
    best = np.where(permitted[best] == good, best, np.maximum(best - 1, 0))
    wrong = np.where(fails == -np.inf, -1, np.searchsorted(permitted, fails))
    while (left := np.flatnonzero(np.abs(wrong - best) > 1)).size:
        middle = (best[left] + wrong[left]) // 2
        to = problem.change(np.array(column), permitted[middle])
        turned = problem.is_recourse(case[left], problem.predict_changes(case[left], to))
        best[left] = np.where(turned, middle, best[left])
        wrong[left] = np.where(turned, wrong[left], middle)
    return permitted[best]
