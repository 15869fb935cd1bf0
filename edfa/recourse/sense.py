"""What makes a plan sensible, besides that it turns the decision: it holds further along, and
people are there.

What it changes must be what does it: a plan that takes its time works then, when the person is
older, and would work today.

A number that works only between 39 and 42 is an accident of one fitted model. A plan *holds
further* if its numbers may go as far again, or up to the end of what training people have, and the
decision stays turned. Where it leads, from its values to the farthest that hold, there must be
enough training people (its *support*).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edfa.recourse.crowd import Crowd, HeadCount
from edfa.typing import BoolArray, Float32Array, IntArray

if TYPE_CHECKING:
    from edfa.recourse.searcher import SearchProblem

__all__ = ["MIN_SUPPORT", "Further", "Sense", "farthest"]

MIN_SUPPORT, SMALL_SHARE = (
    30,
    0.01,
)  # training people where a plan leads; in a small table, that share of them
TOGETHER = tuple(step / 8 for step in range(1, 9))  # of the way that all numbers go on together
ALONE = (0.25, 0.5, 0.75, 1.0)  # of the way that one of several numbers goes on alone
TO_THE_END = (0.25, 0.5, 0.75, 1.0)  # of what is left then
BLOCK = 10_000  # change sets in one model call


class Further(NamedTuple):
    """How far change sets hold.

    ``held`` (change sets,) says which hold as far again as they go, or up to the end. ``far``
    (change sets, known features) is the farthest value of each changed number up to which that is
    known, the end of what training people have or as far again; NaN for what is unchanged and for
    categories.
    """

    held: BoolArray
    far: Float32Array


@dataclass(frozen=True, eq=False)
class Sense:
    """What is asked of plans besides turning the decision.

    Parameters
    ----------
    crowd
        The training people.
    holds_further
        Whether plans must hold further along.
    min_support
        The least number of training people where a plan leads.
    """

    crowd: Crowd
    holds_further: bool = True
    min_support: int = 0

    @classmethod
    def of(cls, crowd: Crowd, holds_further: bool, min_support: int | None) -> "Sense":
        """With None, the least number is 30 people, or a hundredth of a small table."""
        least = (
            min(MIN_SUPPORT, int(np.ceil(SMALL_SHARE * len(crowd))))
            if min_support is None
            else min_support
        )
        return cls(crowd, holds_further, least)

    def accepts(self, problem: "SearchProblem", case: IntArray, to: Float32Array) -> BoolArray:
        """Which change sets are sensible, (change sets,); ``to`` is (change sets, known
        features).
        """
        fine = _act_by_themselves(problem, case, to)
        if not len(case):
            return fine
        further = farthest(problem, case, to)
        if self.holds_further:
            fine &= further.held
        if self.min_support:
            rows = np.flatnonzero(fine)
            fine[rows] = (
                self.support(problem, to[rows], further.far[rows]).people >= self.min_support
            )
        return fine

    def support(self, problem: "SearchProblem", to: Float32Array, far: Float32Array) -> HeadCount:
        """The training people where change sets lead, both (change sets, known features)."""
        end = np.where(np.isnan(far), to, far)
        return self.crowd.count(np.minimum(to, end), np.maximum(to, end), problem.features)


def farthest(problem: "SearchProblem", case: IntArray, to: Float32Array) -> Further:
    """How far change sets ``to`` (change sets, known features) of the cases ``case`` (change sets,)
    hold.

    A model that obeys directions holds to the end. One number alone is looked up in the sweep, if
    the model tells its cells: then nothing is missed. Otherwise the model is asked at eight points
    of the way.
    """
    actions, own = problem.actions, problem.facts[case]
    numbers = ~np.isnan(to) & actions.ordered[problem.features]
    upwards = to > own
    least, largest = actions.ends[:, problem.features]
    end = np.where(
        numbers,
        np.where(upwards, np.maximum(largest, to), np.minimum(least, to)),
        np.float32(np.nan),
    )
    again = np.where(upwards, np.minimum(2 * to - own, end), np.maximum(2 * to - own, end))
    held, ended = np.ones(len(case), dtype=bool), _obeyed(problem, to, own, numbers)
    left = np.flatnonzero(~ended)
    if len(left):
        exact = _is_exact(problem, to[left], numbers[left])
        for rows, ask in ((left[exact], _look_up), (left[~exact], _ask)):
            if len(rows):
                held[rows], ended[rows] = ask(problem, case[rows], to[rows], again[rows], end[rows])
    return Further(held, np.where(ended[:, None], end, again))


def _act_by_themselves(problem: "SearchProblem", case: IntArray, to: Float32Array) -> BoolArray:
    """Which change sets would be recourse today too, without what grows while they take their time,
    (change sets,).
    """
    follows, features, own = problem.actions.consequences, problem.features, problem.facts[case]
    fine = np.ones(len(case), dtype=bool)
    rows = (
        np.flatnonzero(follows.months(features, own, to) > 0) if not follows.nothing else case[:0]
    )
    if len(rows):
        today, _ = follows.apply(features, own[rows], to[rows], growth=False)
        fine[rows] = problem.is_recourse(case[rows], problem.predict(today))
    return fine


def _obeyed(
    problem: "SearchProblem", to: Float32Array, own: Float32Array, numbers: BoolArray
) -> BoolArray:
    """Which change sets hold because the model obeys directions and all numbers go the good way,
    (change sets,).
    """
    signs = problem.obeyed_directions
    if signs is None:
        return np.asarray(~numbers.any(axis=1))
    good = ~numbers | ((to - own) * signs[problem.features] > 0)
    quiet = ~(numbers & problem.actions.consequences.moves_others(problem.features)).any(axis=1)
    return np.asarray(good.all(axis=1) & (quiet | ~numbers.any(axis=1)))


def _is_exact(problem: "SearchProblem", to: Float32Array, numbers: BoolArray) -> BoolArray:
    """Which change sets are one number alone whose every value was swept, (change sets,)."""
    single = ((~np.isnan(to)).sum(axis=1) == 1) & (numbers.sum(axis=1) == 1)
    grid = problem.group.grid
    swept = np.zeros(len(problem.features), dtype=bool)
    swept[grid.columns[np.array(grid.has_cells, dtype=bool)]] = True
    swept &= ~problem.actions.consequences.moves_others(problem.features)
    return np.asarray(single & swept[numbers.argmax(axis=1)])


def _look_up(
    problem: "SearchProblem",
    case: IntArray,
    to: Float32Array,
    again: Float32Array,
    end: Float32Array,
) -> tuple[BoolArray, BoolArray]:
    """Whether single numbers hold as far again, and up to the end, (change sets,) each; from the
    sweep.
    """
    row, column = np.arange(len(case)), (~np.isnan(to)).argmax(axis=1)
    grid, (first_run, last_run) = problem.group.grid, problem.runs
    position = np.full(len(problem.features), -1, dtype=np.intp)
    position[grid.columns] = np.arange(len(grid.columns))
    feature = position[column]
    at, far, last = (_cell(problem, feature, values[row, column]) for values in (to, again, end))
    upwards = end[row, column] >= to[row, column]
    first, final = first_run[case, at], last_run[case, at]
    return np.where(upwards, final >= far, first <= far), np.where(
        upwards, final >= last, first <= last
    )


def _cell(problem: "SearchProblem", feature: IntArray, value: Float32Array) -> IntArray:
    """The candidate of the sweep that represents each value of the swept ``feature``, (n,)."""
    grid = problem.group.grid
    cell = np.empty(len(value), dtype=np.intp)
    for k in np.unique(feature).tolist():
        rows = feature == k
        cuts = grid.candidate_values[k].lower[1:]
        cell[rows] = grid.starts[k] + np.searchsorted(cuts, value[rows], side="right")
    return cell


def _ask(
    problem: "SearchProblem",
    case: IntArray,
    to: Float32Array,
    again: Float32Array,
    end: Float32Array,
) -> tuple[BoolArray, BoolArray]:
    """Whether change sets hold as far again, and up to the end, (change sets,) each; from the
    model.
    """
    held, ended = np.zeros((2, len(case)), dtype=bool)
    for first in range(0, len(case), BLOCK):
        part = slice(first, first + BLOCK)
        held[part], ended[part] = _ask_block(problem, case[part], to[part], again[part], end[part])
    return held, held & ended


def _ask_block(
    problem: "SearchProblem",
    case: IntArray,
    to: Float32Array,
    again: Float32Array,
    end: Float32Array,
) -> tuple[BoolArray, BoolArray]:
    """``_ask`` for as many change sets as one model call takes."""
    numbers, everybody = ~np.isnan(end), np.arange(len(case))
    way, rest = np.where(numbers, again - to, 0), np.where(numbers, end - again, 0)
    points = [(everybody, to + np.float32(part) * way) for part in TOGETHER]
    rank, count = numbers.cumsum(axis=1) - 1, numbers.sum(axis=1)
    for position in range(int(count.max())) if count.max() > 1 else ():
        rows = np.flatnonzero(count > max(1, position))
        alone = np.where(rank[rows] == position, way[rows], 0)
        points += [(rows, to[rows] + np.float32(part) * alone) for part in ALONE]
    beyond = sum(len(rows) for rows, _ in points)
    points += [(everybody, to + way + np.float32(part) * rest) for part in TO_THE_END]
    row, changes = (
        np.concatenate([rows for rows, _ in points]),
        np.concatenate([point for _, point in points]),
    )
    changes = problem.actions.whole(problem.features, changes)
    fails = ~problem.is_recourse(case[row], problem.predict(problem.apply(case[row], changes)))
    near, far = (
        np.bincount(row[p], weights=fails[p], minlength=len(case))
        for p in np.split(np.arange(len(row)), [beyond])
    )
    return near == 0, far == 0
