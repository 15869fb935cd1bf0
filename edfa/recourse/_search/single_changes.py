"""Every single change that may be proposed to the cases of a task, and what it would do: read off the sweep."""

from dataclasses import dataclass

import numpy as np

from edfa.explanation.support import CandidateValues
from edfa.recourse.searcher import Candidates, SearchProblem
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int32Array, IntArray

__all__ = ["Layout", "SingleChanges", "belongs", "interval", "layout_of"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Options of a task: of an ordered feature, a cell of values that holds a permitted one; of a category, a level.

    Of each option: the feature, its ``column`` among the known ones and its place among the free ones (``owner``);
    where the sweep has tried it; the values that it stands for (from ``lower`` up to ``upper``, or ``value`` alone);
    the least and the largest of these that is permitted. Of each free feature: its first option, then the end. Of each
    try: the least and largest permitted value from there on. Of each known feature: its place among the free ones, or
    -1, and whether intervals of it can be told.
    """

    feature: IntArray
    column: IntArray
    owner: IntArray
    try_: IntArray
    lower: Float32Array
    upper: Float32Array
    value: Float32Array
    low: Float32Array
    high: Float32Array
    ordered: BoolArray
    first: IntArray
    least: Float32Array
    last: Float32Array
    place: IntArray
    spans: BoolArray

    def options(self, problem: SearchProblem, rows: Float32Array) -> Int32Array:
        """The option that each value is, or -1: (rows, free features). Rows have the known features."""
        found = np.full((len(rows), len(self.first) - 1), -1, dtype=np.int32)
        for k, feature in enumerate(problem.group.features):
            first, end = self.first[k], self.first[k + 1]
            values = rows[:, problem.group.grid.columns[k]]
            if end == first:
                continue
            ordered, grid = problem.actions.ordered[feature], problem.group.grid
            known: AnyArray = self.try_[first:end] - grid.starts[k] if ordered else self.low[first:end]
            sought = _nearest(grid.candidate_values[k], values) if ordered else values
            place = np.minimum(np.searchsorted(known, sought), end - first - 1)
            found[:, k] = np.where(known[place] == sought, first + place, -1)
        return found


def layout_of(problem: SearchProblem) -> Layout:
    """The layout of the problem's single changes; cached, since it is the same for all who know the same."""
    name = "layout", problem.actions, problem.group.features
    return problem.actions.cache.get(problem.predictor, problem.mask, name, lambda: _make(problem))


def _make(problem: SearchProblem) -> Layout:
    grid, actions = problem.group.grid, problem.actions
    parts = [_options(problem, k) for k in range(len(grid.features))]
    first = np.cumsum([0, *(len(place) for place, _, _ in parts)])
    owner = np.repeat(np.arange(len(parts)), np.diff(first))
    none = np.zeros(0, dtype=np.float32)
    low, high = (np.concatenate([none, *(part[i] for part in parts)]) for i in (1, 2))
    try_ = np.concatenate([owner[:0], *(part[0] + start for part, start in zip(parts, grid.starts, strict=False))])
    features = np.array(grid.features, dtype=np.intp)
    spans = [
        actions.ordered[f] and (told or not actions.continuous[f])
        for f, told in zip(features, grid.has_cells, strict=True)
    ]
    ends = [_ends(tries, actions.values[f]) for f, tries in zip(features, grid.candidate_values, strict=True)]
    place = np.full(len(problem.features), -1, dtype=np.intp)
    place[grid.columns] = np.arange(len(features))
    return Layout(
        feature=features[owner],
        column=grid.columns[owner],
        owner=owner,
        try_=try_,
        lower=grid.lower[try_],
        upper=grid.upper[try_],
        value=grid.value[try_],
        low=low,
        high=high,
        ordered=actions.ordered[features[owner]],
        first=first,
        least=np.concatenate([none, *(least for least, _ in ends)]),
        last=np.concatenate([none, *(last for _, last in ends)]),
        place=place,
        spans=np.array([False, *spans])[place + 1],
    )


def _options(problem: SearchProblem, k: int) -> tuple[IntArray, Float32Array, Float32Array]:
    """Of an ordered feature, one option a try that holds a permitted value; of a category, one a permitted level."""
    feature = problem.group.features[k]
    values = problem.actions.values[feature]
    place = belongs(problem.group.candidate_values[k], values)
    values, place = values[place >= 0], place[place >= 0]
    if not problem.actions.ordered[feature] or not len(values):
        return place, values, values
    found, first = np.unique(place, return_index=True)
    return found, values[first], values[np.r_[first[1:], len(values)] - 1]


def _ends(tries: CandidateValues, values: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Of each try, the least permitted value that is not below it and the largest that is not above; NaN: none."""
    padded = np.r_[np.float32(np.nan), values, np.float32(np.nan)]
    alone = tries.lower == tries.upper
    last = np.where(
        alone,
        np.searchsorted(values, tries.value, side="right"),
        np.searchsorted(values, tries.upper, side="left"),
    )
    return padded[np.searchsorted(values, tries.lower) + 1], padded[last]


def belongs(tries: CandidateValues, values: Float32Array) -> IntArray:
    """The try that stands for each value, or -1."""
    place = np.searchsorted(tries.lower, values, side="right") - 1
    fine = (place >= 0) & ((values < tries.upper[place]) | (values == tries.value[place]))
    return np.where(fine, place, -1)


def _nearest(tries: CandidateValues, values: Float32Array) -> IntArray:
    """The try that stands for each value; where tries stand for themselves alone, the nearest one."""
    if len(tries) < 2 or (tries.lower < tries.upper).any():
        return belongs(tries, values)
    right = np.clip(np.searchsorted(tries.value, values), 1, len(tries) - 1)
    return right - (values - tries.value[right - 1] <= tries.value[right] - values)


@dataclass(frozen=True, eq=False)
class SingleChanges:
    """Single changes, an option a column: ``to`` what it changes a fact, a row a case; NaN: not for this case.

    What is proposed of a cell of values is the nearest permitted one in it. ``turns`` says which are recourse.
    """

    problem: SearchProblem
    layout: Layout
    to: Float32Array
    turns: BoolArray

    @classmethod
    def of(cls, problem: SearchProblem) -> "SingleChanges":
        """The options of all free features."""
        layout = layout_of(problem)
        own = problem.facts[:, layout.column]
        above = own < layout.lower
        mine = ~above & ((own < layout.upper) | (own == layout.value))
        # The lowest value of an option to those below it, the highest to those above.
        offer = np.where(above, layout.low, layout.high)
        fine = ~mine & problem.actions.permits_value(layout.feature, own, offer)
        to = np.where(fine, offer, np.float32(np.nan))
        turns = problem.single_recourse[:, layout.try_] & fine
        if problem.actions.joint_values:
            turns &= _together(problem, layout.column, to, turns)
        return cls(problem, layout, to, turns)

    @property
    def column(self) -> IntArray:
        """The column of the facts that each option changes."""
        return self.layout.column

    @property
    def try_(self) -> IntArray:
        """Where the sweep has tried each."""
        return self.layout.try_

    @property
    def first(self) -> IntArray:
        """The first option of each free feature, then the end."""
        return self.layout.first

    def __len__(self) -> int:
        return len(self.column)

    def alone(self, case: IntArray, option: IntArray) -> Candidates:
        """These options of these cases, by themselves."""
        to = np.full((len(case), len(self.problem.features)), np.nan, dtype=np.float32)
        to[np.arange(len(case)), self.column[option]] = self.to[case, option]
        return Candidates.of(case, to, self.problem.group.predict_candidates(case, self.try_[option]))

    def score(self, case: IntArray) -> Float64Array:
        """How near each option brings these cases to recourse (cases, options); -1: it is none for them."""
        found, (row, option) = np.full((len(case), len(self)), -1.0), np.nonzero(~np.isnan(self.to[case]))
        found[row, option] = self.problem.score(
            case[row], self.problem.group.predict_candidates(case[row], self.try_[option])
        )
        return found

    def nearest(self) -> tuple[IntArray, IntArray]:
        """Cases and options that are recourse by themselves: every level, the nearest number in each direction."""
        layout, own = self.layout, self.problem.facts[:, self.column]
        above = self.turns & layout.ordered & (self.to > own)
        below = self.turns & layout.ordered & ~above
        # Counted along all options: the first of its feature has one more than there were before that feature.
        start, end = layout.first[layout.owner], layout.first[layout.owner + 1] - 1
        up, down = above.cumsum(axis=1), below.cumsum(axis=1)
        kept = self.turns & ~layout.ordered
        kept |= above & (up == up[:, start] - above[:, start] + 1)
        kept |= below & (down == down[:, end])
        case, option = np.nonzero(kept)
        return case, option


def interval(problem: SearchProblem, found: Candidates) -> tuple[Float32Array, Float32Array]:
    """Of plans of one change: the least and largest permitted value around it such that all between them do as well.

    NaN for other plans, for a category, whose levels have nothing between them, for what was not swept, and for a
    number where the model does not tell its cells: nobody knows what it says between two values.
    """
    low, high = np.full((2, len(found)), np.nan, dtype=np.float32)
    grid, changed = problem.group.grid, ~np.isnan(found.to)
    if not len(grid) or not len(found):
        return low, high
    layout, column = layout_of(problem), changed.argmax(axis=1)
    rows = np.flatnonzero((changed.sum(axis=1) == 1) & layout.spans[column])
    column = column[rows]
    value, number = found.to[rows, column][:, None], np.arange(len(grid))
    mine = grid.owner == layout.place[column][:, None]
    place = (mine & (grid.lower <= value) & ((value < grid.upper) | (value == grid.value))).argmax(axis=1)[:, None]
    # What is of another feature is no good either, so that no interval leaves its own.
    bad = ~(mine & problem.single_recourse[found.case[rows]])
    before = np.where(bad & (number < place), number, -1).max(axis=1) + 1
    after = np.where(bad & (number > place), number, len(grid)).min(axis=1) - 1
    low[rows], high[rows] = layout.least[before], layout.last[after]
    return low, high


def _together(problem: SearchProblem, column: IntArray, to: Float32Array, turns: BoolArray) -> BoolArray:
    """Whether a single change leaves no pair of values that was never seen together."""
    fine = np.ones_like(turns)
    case, option = np.nonzero(turns)
    single = np.full((len(case), len(problem.features)), np.nan, dtype=np.float32)
    single[np.arange(len(case)), column[option]] = to[case, option]
    fine[case, option] = problem.actions.seen_together(problem.mask, problem.facts[case], single)
    return fine
