"""Which single changes there are for people who know the same: the same for all of them, so worked out once."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from edfa.explanation.support import Tries
from edfa.predictors.base import Floats
from edfa.recourse.base import Codes, Task
from edfa.recourse.rules import Bools

__all__ = ["Layout", "belongs", "layout_of"]


class Layout(NamedTuple):
    """Options of a task: of an ordered feature, a cell of values that holds a permitted one; of a category, a level.

    Of each option: the feature, its ``column`` among the known ones and its place among the free ones (``owner``);
    where the sweep has tried it; the values that it stands for (from ``lower`` up to ``upper``, or ``value`` alone);
    the least and the largest of these that is permitted. Of each free feature: its first option, then the end. Of each
    try: the least and largest permitted value from there on. Of each known feature: its place among the free ones, or
    -1, and whether intervals of it can be told.
    """

    feature: Codes
    column: Codes
    owner: Codes
    try_: Codes
    lower: Floats
    upper: Floats
    value: Floats
    low: Floats
    high: Floats
    ordered: Bools
    first: Codes
    least: Floats
    last: Floats
    place: Codes
    spans: Bools

    def options(self, task: Task, rows: Floats) -> npt.NDArray[np.int32]:
        """The option that each value is, or -1: (rows, free features). Rows have the known features."""
        found = np.full((len(rows), len(self.first) - 1), -1, dtype=np.int32)
        for k, feature in enumerate(task.group.features):
            first, end = self.first[k], self.first[k + 1]
            values = rows[:, task.group.grid.columns[k]]
            if end == first:
                continue
            ordered, grid = task.rules.ordered[feature], task.group.grid
            known: npt.NDArray[Any] = self.try_[first:end] - grid.starts[k] if ordered else self.low[first:end]
            sought = _nearest(grid.tries[k], values) if ordered else values
            place = np.minimum(np.searchsorted(known, sought), end - first - 1)
            found[:, k] = np.where(known[place] == sought, first + place, -1)
        return found


def layout_of(task: Task) -> Layout:
    """Kept with the rules, for the next people."""
    found: Layout = task.rules.kept.get(task.predictor, task.mask, lambda: _make(task), task.group.features)
    return found


def _make(task: Task) -> Layout:
    grid, rules = task.group.grid, task.rules
    parts = [_options(task, k) for k in range(len(grid.features))]
    first = np.cumsum([0, *(len(place) for place, _, _ in parts)])
    owner = np.repeat(np.arange(len(parts)), np.diff(first))
    none = np.zeros(0, dtype=np.float32)
    low, high = (np.concatenate([none, *(part[i] for part in parts)]) for i in (1, 2))
    try_ = np.concatenate([owner[:0], *(part[0] + start for part, start in zip(parts, grid.starts, strict=False))])
    features = np.array(grid.features, dtype=np.intp)
    spans = [rules.ordered[f] and (told or not rules.measured[f]) for f, told in zip(features, grid.told, strict=True)]
    ends = [_ends(tries, rules.values[f]) for f, tries in zip(features, grid.tries, strict=True)]
    place = np.full(len(task.features), -1, dtype=np.intp)
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
        ordered=rules.ordered[features[owner]],
        first=first,
        least=np.concatenate([none, *(least for least, _ in ends)]),
        last=np.concatenate([none, *(last for _, last in ends)]),
        place=place,
        spans=np.array([False, *spans])[place + 1],
    )


def _options(task: Task, k: int) -> tuple[Codes, Floats, Floats]:
    """Of an ordered feature, one option a try that holds a permitted value; of a category, one a permitted level."""
    feature = task.group.features[k]
    values = task.rules.values[feature]
    place = belongs(task.group.tries[k], values)
    values, place = values[place >= 0], place[place >= 0]
    if not task.rules.ordered[feature] or not len(values):
        return place, values, values
    found, first = np.unique(place, return_index=True)
    return found, values[first], values[np.r_[first[1:], len(values)] - 1]


def _ends(tries: Tries, values: Floats) -> tuple[Floats, Floats]:
    """Of each try, the least permitted value that is not below it and the largest that is not above; NaN: none."""
    padded = np.r_[np.float32(np.nan), values, np.float32(np.nan)]
    alone = tries.lower == tries.upper
    last = np.where(
        alone,
        np.searchsorted(values, tries.value, side="right"),
        np.searchsorted(values, tries.upper, side="left"),
    )
    return padded[np.searchsorted(values, tries.lower) + 1], padded[last]


def belongs(tries: Tries, values: Floats) -> Codes:
    """The try that stands for each value, or -1."""
    place = np.searchsorted(tries.lower, values, side="right") - 1
    fine = (place >= 0) & ((values < tries.upper[place]) | (values == tries.value[place]))
    return np.where(fine, place, -1)


def _nearest(tries: Tries, values: Floats) -> Codes:
    """The try that stands for each value; where tries stand for themselves alone, the nearest one."""
    if len(tries) < 2 or (tries.lower < tries.upper).any():
        return belongs(tries, values)
    right = np.clip(np.searchsorted(tries.value, values), 1, len(tries) - 1)
    return right - (values - tries.value[right - 1] <= tries.value[right] - values)
