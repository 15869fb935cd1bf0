"""Every single change that may be proposed to the cases of a task, and what it would do: read off the sweep."""

from dataclasses import dataclass

import numpy as np

from edfa.predictors.base import Floats
from edfa.recourse.base import Codes, Found, Task
from edfa.recourse.layout import Layout, layout_of
from edfa.recourse.rules import Bools, Reals

__all__ = ["Options", "interval"]


@dataclass(frozen=True, eq=False)
class Options:
    """Single changes, an option a column: ``to`` what it changes a fact, a row a case; NaN: not for this case.

    What is proposed of a cell of values is the nearest permitted one in it. ``turns`` says which are recourse.
    """

    task: Task
    layout: Layout
    to: Floats
    turns: Bools

    @classmethod
    def of(cls, task: Task) -> "Options":
        """The options of all free features."""
        layout = layout_of(task)
        own = task.facts[:, layout.column]
        above = own < layout.lower
        mine = ~above & ((own < layout.upper) | (own == layout.value))
        # The lowest value of an option to those below it, the highest to those above.
        offer = np.where(above, layout.low, layout.high)
        fine = ~mine & task.rules.proposes(layout.feature, own, offer)
        to = np.where(fine, offer, np.float32(np.nan))
        turns = task.turning[:, layout.try_] & fine
        if task.rules.seen:
            turns &= _together(task, layout.column, to, turns)
        return cls(task, layout, to, turns)

    @property
    def column(self) -> Codes:
        """The column of the facts that each option changes."""
        return self.layout.column

    @property
    def try_(self) -> Codes:
        """Where the sweep has tried each."""
        return self.layout.try_

    @property
    def first(self) -> Codes:
        """The first option of each free feature, then the end."""
        return self.layout.first

    def __len__(self) -> int:
        return len(self.column)

    def alone(self, case: Codes, option: Codes) -> Found:
        """These options of these cases, by themselves."""
        to = np.full((len(case), len(self.task.features)), np.nan, dtype=np.float32)
        to[np.arange(len(case)), self.column[option]] = self.to[case, option]
        return Found.of(case, to, self.task.group.said(case, self.try_[option]))

    def score(self, case: Codes) -> Reals:
        """How near each option brings these cases to recourse (cases, options); -1: it is none for them."""
        found, (row, option) = np.full((len(case), len(self)), -1.0), np.nonzero(~np.isnan(self.to[case]))
        found[row, option] = self.task.score(case[row], self.task.group.said(case[row], self.try_[option]))
        return found

    def nearest(self) -> tuple[Codes, Codes]:
        """Cases and options that are recourse by themselves: every level, the nearest number in each direction."""
        layout, own = self.layout, self.task.facts[:, self.column]
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


def interval(task: Task, found: Found) -> tuple[Floats, Floats]:
    """Of plans of one change: the least and largest permitted value around it such that all between them do as well.

    NaN for other plans, for a category, whose levels have nothing between them, for what was not swept, and for a
    number where the model does not tell its cells: nobody knows what it says between two values.
    """
    low, high = np.full((2, len(found)), np.nan, dtype=np.float32)
    grid, changed = task.group.grid, ~np.isnan(found.to)
    if not len(grid) or not len(found):
        return low, high
    layout, column = layout_of(task), changed.argmax(axis=1)
    rows = np.flatnonzero((changed.sum(axis=1) == 1) & layout.spans[column])
    column = column[rows]
    value, number = found.to[rows, column][:, None], np.arange(len(grid))
    mine = grid.owner == layout.place[column][:, None]
    place = (mine & (grid.lower <= value) & ((value < grid.upper) | (value == grid.value))).argmax(axis=1)[:, None]
    # What is of another feature is no good either, so that no interval leaves its own.
    bad = ~(mine & task.turning[found.case[rows]])
    before = np.where(bad & (number < place), number, -1).max(axis=1) + 1
    after = np.where(bad & (number > place), number, len(grid)).min(axis=1) - 1
    low[rows], high[rows] = layout.least[before], layout.last[after]
    return low, high


def _together(task: Task, column: Codes, to: Floats, turns: Bools) -> Bools:
    """Whether a single change leaves no pair of values that was never seen together."""
    fine = np.ones_like(turns)
    case, option = np.nonzero(turns)
    single = np.full((len(case), len(task.features)), np.nan, dtype=np.float32)
    single[np.arange(len(case)), column[option]] = to[case, option]
    fine[case, option] = task.rules.together(task.mask, task.facts[case], single)
    return fine
