"""Every single change that may be proposed to the cases of a task, and what it would do: read off the sweep."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from edfa.explanation.support import Tries
from edfa.predictors.base import Floats
from edfa.recourse.base import Codes, Found, Task
from edfa.recourse.rules import Bools, Reals

__all__ = ["Options", "belongs", "interval", "nearest_try"]

KEPT = 512  # sets of known features whose options are held in memory


@dataclass(frozen=True, eq=False)
class Options:
    """Single changes, an option a column: what it changes (``column`` of the facts) and ``to`` what, a row a case.

    Of an ordered feature, an option is a cell of values that the model cannot tell apart; what is proposed is the
    nearest permitted value in it. Of a category, an option is a level. NaN in ``to``: not for this case. ``try_`` is
    where the sweep has tried it, ``least`` the least value it stands for, ``turns`` and ``score`` what came of it.
    """

    task: Task
    column: Codes
    try_: Codes
    least: Floats
    to: Floats
    turns: Bools
    first: Codes  # option of each free feature, then the end

    @classmethod
    def of(cls, task: Task) -> "Options":
        """The options of all free features."""
        group, layout = task.group, _layout(task)
        reached = task.reached(np.arange(len(task)), group.decisions, group.chances)
        own = task.facts[:, layout.column]
        places = [belongs(tries, group.own(f)) for f, tries in zip(group.features, group.tries, strict=True)]
        mine = np.stack(places, axis=1)[:, layout.owner] if places else own.astype(np.intp)
        # The lowest value of an option to those below it, the highest to those above.
        offer = np.where(layout.place > mine, layout.low, layout.high)
        fine = (layout.place != mine) & task.rules.proposes(task.features[layout.column], own, offer)
        to = np.where(fine, offer, np.float32(np.nan))
        turns = reached[:, layout.try_] & fine
        turns &= _together(task, layout.column, to, turns)
        return cls(task, layout.column, layout.try_, layout.low, to, turns, layout.first)

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def score(self) -> Reals:
        """How near each brings a case to recourse."""
        told = self.task.group.chances
        return self.task.score(np.arange(len(told)), told)[:, self.try_]

    def nearest(self) -> tuple[Codes, Codes]:
        """Cases and options that are recourse by themselves: every level, the nearest number in each direction."""
        kept = np.zeros_like(self.turns)
        for k, feature in enumerate(self.task.group.features):
            part = slice(self.first[k], self.first[k + 1])
            turns, own = self.turns[:, part], self.task.group.own(feature)
            if not self.task.rules.ordered[feature]:
                kept[:, part] = turns
                continue
            above = turns & (self.to[:, part] > own[:, None])
            below = turns & ~above
            kept[:, part] = above & (np.cumsum(above, axis=1) == 1)
            kept[:, part] |= below & (np.cumsum(below[:, ::-1], axis=1)[:, ::-1] == 1)
        case, option = np.nonzero(kept)
        return case, option


def interval(task: Task, found: Found) -> tuple[Floats, Floats]:
    """Of plans of one change: the least and largest permitted value around it such that all between them do as well.

    NaN for other plans, for a category, whose levels have nothing between them, for what was not swept, and for a
    number where the model does not tell its cells: nobody knows what it says between two values.
    """
    low, high = (np.full(len(found), np.nan, dtype=np.float32) for _ in range(2))
    group, rules, changed = task.group, task.rules, ~np.isnan(found.to)
    reached = task.reached(np.arange(len(task)), group.decisions, group.chances)
    starts, one = np.r_[0, group.ends], changed.sum(axis=1) == 1
    for k, feature in enumerate(group.features):
        tries, values = group.tries[k], rules.values[feature]
        column = int(np.searchsorted(task.features, feature))
        rows = np.flatnonzero(one & changed[:, column])
        known = not rules.measured[feature] or (tries.lower < tries.upper).all()
        if not rules.ordered[feature] or not len(rows) or not known:
            continue
        good = reached[found.case[rows], starts[k] : starts[k + 1]]
        place, number = belongs(tries, found.to[rows, column]), np.arange(len(tries))
        before = np.where(~good & (number < place[:, None]), number, -1).max(axis=1) + 1
        after = np.where(~good & (number > place[:, None]), number, len(tries)).min(axis=1) - 1
        low[rows] = values[np.searchsorted(values, tries.lower[before])]
        high[rows] = values[_last(values, tries, after)]
    return low, high


def _last(values: Floats, tries: Tries, place: Codes) -> Codes:
    """The last value that belongs to a try: below its upper end, or the try itself where it stands for no others."""
    alone = tries.upper[place] == tries.lower[place]
    return (
        np.where(
            alone,
            np.searchsorted(values, tries.value[place], side="right"),
            np.searchsorted(values, tries.upper[place], side="left"),
        )
        - 1
    )


def _together(task: Task, column: Codes, to: Floats, turns: Bools) -> Bools:
    """Whether a single change leaves no pair of values that was never seen together."""
    fine = np.ones_like(turns)
    if task.rules.seen:
        case, option = np.nonzero(turns)
        single = np.full((len(case), len(task.features)), np.nan, dtype=np.float32)
        single[np.arange(len(case)), column[option]] = to[case, option]
        fine[case, option] = task.rules.together(task.mask, task.facts[case], single)
    return fine


def belongs(tries: Tries, values: Floats) -> Codes:
    """The try that stands for each value, or -1."""
    place = np.searchsorted(tries.lower, values, side="right") - 1
    fine = (place >= 0) & ((values < tries.upper[place]) | (values == tries.value[place]))
    return np.where(fine, place, -1)


def nearest_try(tries: Tries, values: Floats) -> Codes:
    """The try that stands for each value; where tries stand for themselves alone, the nearest one."""
    if len(tries) < 2 or (tries.lower < tries.upper).any():
        return belongs(tries, values)
    right = np.clip(np.searchsorted(tries.value, values), 1, len(tries) - 1)
    return right - (values - tries.value[right - 1] <= tries.value[right] - values)


class _Layout(NamedTuple):
    """What is the same for all cases of a task.

    Of each option: the swept feature it is of (``owner``), its column, its place among that feature's tries and among
    all, its least and largest value. Of each feature: its first option, then the end.
    """

    owner: Codes
    column: Codes
    place: Codes
    try_: Codes
    low: Floats
    high: Floats
    first: Codes


def _layout(task: Task) -> _Layout:
    """Kept with the rules, for the next people who know the same."""
    key = (task.view.key, task.group.features)
    if key not in task.rules.kept:
        if len(task.rules.kept) >= KEPT:
            task.rules.kept.clear()
        group, none = task.group, np.zeros(0, dtype=np.intp)
        parts = [_part(task, k) for k in range(len(group.features))]
        sizes = [len(place) for place, _, _ in parts]
        owner = np.repeat(np.arange(len(parts)), sizes)
        column = np.searchsorted(task.features, np.array(group.features, dtype=np.intp))[owner]
        place, low, high = (
            np.concatenate([part[i] for part in parts]) if parts else none.astype(kind)
            for i, kind in enumerate((np.intp, np.float32, np.float32))
        )
        try_ = place + np.r_[0, group.ends][owner]
        layout = _Layout(owner, column, place, try_, low, high, np.cumsum([0, *sizes]))
        task.rules.kept[key] = layout, task.view
    found: _Layout = task.rules.kept[key][0]
    return found


def _part(task: Task, k: int) -> tuple[Codes, Floats, Floats]:
    """Of an ordered feature, one option a try that holds a permitted value; of a category, one a permitted level."""
    feature = task.group.features[k]
    values = task.rules.values[feature]
    place = belongs(task.group.tries[k], values)
    values, place = values[place >= 0], place[place >= 0]
    if not task.rules.ordered[feature] or not len(values):
        return place, values, values
    found, first = np.unique(place, return_index=True)
    return found, values[first], values[np.r_[first[1:], len(values)] - 1]
