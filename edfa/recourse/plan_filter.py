"""What makes a plan sensible, besides that it turns the decision: it holds further along, and
people are there.

``PlanFilter.accepts`` is the entry. What a plan changes must be what does it: a plan that takes its
time works then, when the person is older, and would work today.

A number that works only between 39 and 42 is an accident of one fitted model. A plan *holds
further* if its numbers may go as far again, or up to the end of what training people have, and the
decision stays turned. Where it leads, from its values to the farthest that hold, there must be
enough training people: the ``TrainingSupport`` counts them.

A person who is shown a plan is told of other people (its *support*): of those training people who
are most like the person with the plan made, how many went as far, and how they fared.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edfa.predictors.conditional import MAX_TRAINING_PEOPLE, Neighbours
from edfa.typing import NAN, BoolArray, Float32Array, Int64Array, IntArray

if TYPE_CHECKING:
    from edfa.recourse.searcher import SearchProblem

# training people where a plan leads; in a small table, that share of them
MIN_SUPPORT, SMALL_SHARE = 30, 0.01
# training people who count as like a person: that share, and at least so many
ALIKE_SHARE, MIN_ALIKE = 0.1, 100
# of the way that all numbers go on together
SHARES_OF_THE_WAY = tuple(step / 8 for step in range(1, 9))
ALONE = (0.25, 0.5, 0.75, 1.0)  # of the way that one of several numbers goes on alone
TO_THE_END = (0.25, 0.5, 0.75, 1.0)  # of what is left then
CHANGE_SETS_PER_CALL = 10_000  # change sets in one model call
COMPARISONS_AT_ONCE = 20_000_000  # comparisons of training people at a time


class HeadCount(NamedTuple):
    """A number of training people for each plan, and of those with the favourable outcome, (plans,)
    each.
    """

    people: Int64Array
    favourable: Int64Array


class TrainingSupport:
    """Training people, to be counted.

    Parameters
    ----------
    rows
        Their encoded facts, (training people, features).
    favourable
        Whether each had the favourable outcome, (training people,).
    categorical
        The positions of categories, where it matters how much alike people are.

    Examples
    --------
    >>> rows = np.array([[1, 0], [2, 0], [3, 1]], dtype=np.float32)
    >>> crowd = TrainingSupport(rows, np.array([True, False, True]))
    >>> low, high = np.array([[2, np.nan], [1, 0]]), np.array([[3, np.nan], [9, 0]])
    >>> crowd.count(low, high, np.arange(2))
    HeadCount(people=array([2, 2]), favourable=array([1, 1]))
    """

    def __init__(
        self, rows: Float32Array, favourable: BoolArray, categorical: Iterable[int] = ()
    ) -> None:
        self.rows, self.favourable, self.categorical = rows, favourable, (*categorical,)
        self._bits = np.packbits([np.ones_like(favourable), favourable], axis=1)  # one a person
        self._sorted: dict[int, tuple[Float32Array, Int64Array]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def count(self, low: Float32Array, high: Float32Array, features: IntArray) -> HeadCount:
        """People with every value from ``low`` to ``high``.

        Parameters
        ----------
        low, high
            The least and the largest value, (plans, features) each; NaN: any value will do.
        features
            The positions of the columns of both among all features, (features,).

        Returns
        -------
        HeadCount
            The number of people, and of those with the favourable outcome, (plans,) each.
        """
        limited = ~np.isnan(low)
        counts = np.zeros((2, len(low)), dtype=np.int64)
        single = limited.sum(axis=1) == 1
        for column in np.flatnonzero(limited[single].any(axis=0)):
            plans = np.flatnonzero(single & limited[:, column])
            counts[:, plans] = self._count_one(
                int(features[column]), low[plans, column], high[plans, column]
            )
        several = np.flatnonzero(~single)
        if len(several):
            # Of a wide table's columns nobody limits most; the first stays so that there is one.
            used = np.flatnonzero(limited[several].any(axis=0) | (features == features[0]))
            cells = np.ix_(several, used)
            bounds = np.nan_to_num(np.hstack([low[cells], high[cells]]), nan=np.inf)
            distinct, inverse = np.unique(bounds, axis=0, return_inverse=True)
            blocks = np.array_split(distinct, -(-len(distinct) * len(self) // COMPARISONS_AT_ONCE))
            found = [self._count_all(block, features[used]) for block in blocks]
            counts[:, several] = np.concatenate(found, axis=1)[:, inverse.ravel()]
        return HeadCount(*counts)

    @cached_property
    def _neighbours(self) -> tuple[Neighbours, BoolArray]:
        """At most 10,000 training people to compare with, and which had the favourable outcome."""
        some = np.random.default_rng(0).permutation(len(self))[:MAX_TRAINING_PEOPLE]
        k = max(MIN_ALIKE, round(ALIKE_SHARE * len(some)))
        return Neighbours.among(self.rows[some], self.categorical, k), self.favourable[some]

    def count_alike(self, rows: Float32Array, low: Float32Array, high: Float32Array) -> HeadCount:
        """People like those in ``rows`` who have every value from ``low`` to ``high``.

        Like somebody is the nearest tenth of training people, and at least 100 of them, on what is
        in their row; of a large table 10,000 people are looked among.

        Parameters
        ----------
        rows
            Encoded facts, NaN where a feature does not matter, (people, features).
        low, high
            As for ``count``, for all features, (people, features) each.

        Examples
        --------
        >>> rows = np.arange(2000, dtype=np.float32).reshape(1000, 2)
        >>> crowd = TrainingSupport(rows, rows[:, 0] < 1000)
        >>> here = np.array([[1000, np.nan]], dtype=np.float32)
        >>> crowd.count_alike(here, here, np.array([[np.inf, np.nan]]))
        HeadCount(people=array([50]), favourable=array([0]))
        """
        neighbours, favourable = self._neighbours
        counts = np.zeros((2, len(rows)), dtype=np.int64)
        step = max(1, COMPARISONS_AT_ONCE // neighbours.k)
        for part in (slice(start, start + step) for start in range(0, len(rows), step)):
            near = neighbours.nearest(rows[part])
            inside = np.ones(near.shape, dtype=bool)
            for column in np.flatnonzero(~np.isnan(low[part]).all(axis=0)):
                values = neighbours.rows[near, column]
                least, most = (end[part, column, None] for end in (low, high))
                inside &= np.isnan(least) | ((values >= least) & (values <= most))
            counts[:, part] = inside.sum(axis=1), (inside & favourable[near]).sum(axis=1)
        return HeadCount(*counts)

    def _count_one(
        self, feature: int, low: Float32Array, high: Float32Array
    ) -> tuple[Int64Array, Int64Array]:
        """Count by one feature alone: positions among its sorted values."""
        if feature not in self._sorted:
            order = np.argsort(self.rows[:, feature], kind="stable")
            good = np.concatenate([[0], np.cumsum(self.favourable[order])])
            self._sorted[feature] = self.rows[order, feature], good
        values, good = self._sorted[feature]
        start = np.searchsorted(values, low, side="left")
        end = np.searchsorted(values, high, side="right")
        return end - start, good[end] - good[start]

    def _count_all(self, bounds: Float32Array, features: IntArray) -> tuple[Int64Array, Int64Array]:
        """Count by several ``features`` (columns,) at once.

        ``bounds`` (plans, 2 * columns) are the least values, then the largest; infinite: any value
        will do.
        """
        low, high = np.hsplit(bounds, 2)
        everybody, favourable = self._bits
        inside = np.tile(everybody, (len(low), 1))
        for column in np.flatnonzero(np.isfinite(low).any(axis=0)):
            plans = np.flatnonzero(np.isfinite(low[:, column]))
            distinct, inverse = np.unique(
                np.stack([low[plans, column], high[plans, column]]), axis=1, return_inverse=True
            )
            least, most = distinct[:, :, None]
            values = self.rows[:, features[column]]
            bits = np.packbits((values >= least) & (values <= most), axis=1)
            inside[plans] &= bits[inverse.ravel()]
        count = partial(np.sum, axis=1, dtype=np.int64)
        return count(np.bitwise_count(inside)), count(np.bitwise_count(inside & favourable))


@dataclass(frozen=True, eq=False)
class PlanFilter:
    """Requirements on plans besides turning the decision.

    Parameters
    ----------
    crowd
        The training people.
    holds_further
        Whether plans must hold further along.
    min_support
        The least number of training people where a plan leads; None: 30 people, or a hundredth of a
        small table.
    """

    crowd: TrainingSupport
    holds_further: bool
    min_support: int | None

    def accepts(self, problem: "SearchProblem", case: IntArray, to: Float32Array) -> BoolArray:
        """Which change sets are sensible.

        Parameters
        ----------
        problem
            The people, the model and what may be changed.
        case
            The case that each change set is for, (change sets,).
        to
            The change sets, (change sets, known features); NaN: unchanged.

        Returns
        -------
        numpy.ndarray
            (change sets,) booleans. That they turn the decision is not asked here.
        """
        fine = _act_by_themselves(problem, case, to)
        if not len(case):
            return fine
        held, far = farthest(problem, case, to)
        if self.holds_further:
            fine &= held
        least = self.min_support
        if least is None:
            least = min(MIN_SUPPORT, int(np.ceil(SMALL_SHARE * len(self.crowd))))
        if least:
            rows = np.flatnonzero(fine)
            far = np.where(np.isnan(far), to, far)[rows]
            low, high = np.minimum(to[rows], far), np.maximum(to[rows], far)
            fine[rows] = self.crowd.count(low, high, problem.features).people >= least
        return fine

    def support(self, problem: "SearchProblem", case: IntArray, to: Float32Array) -> HeadCount:
        """The training people who are like the people of ``case`` with their change sets made, on
        all known facts that the model sees, and who went at least as far in what is changed.

        The parameters are those of ``accepts``.
        """
        rows, low, high = np.full((3, len(case), len(problem.mask)), NAN)
        rows[:, problem.features] = problem.apply(case, to)
        rows[:, ~problem.seen] = np.nan
        end = problem.actions.towards(problem.features, problem.facts[case], to)
        low[:, problem.features] = np.fmin(to, end)
        high[:, problem.features] = np.fmax(to, end)
        return self.crowd.count_alike(rows, low, high)


def farthest(
    problem: "SearchProblem", case: IntArray, to: Float32Array
) -> tuple[BoolArray, Float32Array]:
    """How far change sets hold.

    A model that obeys directions holds to the end. One number alone is looked up in the sweep, if
    the model tells its cells: then nothing is missed. Otherwise the model is asked at eight points
    of the way.

    Parameters
    ----------
    problem, case
        The problem, and the case that each change set is for, (change sets,).
    to
        The change sets, (change sets, known features); NaN: unchanged.

    Returns
    -------
    tuple
        Which change sets hold as far again as they go, or up to the end of what training people
        have, (change sets,); and the farthest value of each changed number up to which that is
        known, (change sets, known features), NaN for what is unchanged and for categories.
    """
    actions, own = problem.actions, problem.facts[case]
    end = actions.towards(problem.features, own, to)
    numbers, upwards = ~np.isnan(end), to > own
    again = np.where(upwards, np.minimum(2 * to - own, end), np.maximum(2 * to - own, end))
    held, ended = np.ones(len(case), dtype=bool), _obeyed(problem, to, own, numbers)
    if ended.all():
        return held, end
    left = np.flatnonzero(~ended)
    exact = _is_exact(problem, to[left], numbers[left])
    asked = left[~exact]
    parts = [
        (rows, _ask) for rows in np.array_split(asked, -(-len(asked) // CHANGE_SETS_PER_CALL) or 1)
    ]
    for rows, find in ((left[exact], _look_up), *parts):
        if len(rows):
            given = case[rows], to[rows], again[rows], end[rows]
            held[rows], ended[rows] = find(problem, *given)
    return held, np.where(ended[:, None], end, again)


def _act_by_themselves(problem: "SearchProblem", case: IntArray, to: Float32Array) -> BoolArray:
    """Which change sets would be recourse today too, without what grows while they take their time,
    (change sets,).
    """
    follows, features, own = problem.actions.consequences, problem.features, problem.facts[case]
    fine = np.ones(len(case), dtype=bool)
    if follows.nothing:
        return fine
    rows = np.flatnonzero(follows.months(features, own, to) > 0)
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

    ``again`` and ``end``, (change sets, known features) like ``to``, are the values as far again
    and at the end; NaN for what is unchanged.
    """
    row, column = np.arange(len(case)), (~np.isnan(to)).argmax(axis=1)
    at, far, last = (
        problem.candidate_of(column, values[row, column]) for values in (to, again, end)
    )
    first_run, last_run = (run[case, at] for run in problem.runs)
    upwards = end[row, column] >= to[row, column]
    held, ended = (np.where(upwards, last_run >= cell, first_run <= cell) for cell in (far, last))
    return held, ended


def _ask(
    problem: "SearchProblem",
    case: IntArray,
    to: Float32Array,
    again: Float32Array,
    end: Float32Array,
) -> tuple[BoolArray, BoolArray]:
    """Whether change sets hold as far again, and up to the end, (change sets,) each; from the
    model.

    The parameters are those of ``_look_up``. All numbers go on together, then each of several
    alone, and from there all together to the end.
    """
    numbers, everybody = ~np.isnan(end), np.arange(len(case))
    way, rest = np.where(numbers, again - to, 0), np.where(numbers, end - again, 0)
    points = [(everybody, to + np.float32(part) * way) for part in SHARES_OF_THE_WAY]
    several = numbers & (numbers.sum(axis=1) > 1)[:, None]
    for column in np.flatnonzero(several.any(axis=0)):
        rows = np.flatnonzero(several[:, column])
        alone = np.zeros_like(way[rows])
        alone[:, column] = way[rows, column]
        points += [(rows, to[rows] + np.float32(part) * alone) for part in ALONE]
    beyond = sum(len(rows) for rows, _ in points)
    points += [(everybody, to + way + np.float32(part) * rest) for part in TO_THE_END]
    row = np.concatenate([rows for rows, _ in points])
    changes = np.concatenate([point for _, point in points])
    changes = problem.actions.whole(problem.features, changes)
    fails = ~problem.is_recourse(case[row], problem.predict_changes(case[row], changes))
    near, far = (
        np.bincount(row[part], weights=fails[part], minlength=len(case)) == 0
        for part in (slice(beyond), slice(beyond, None))
    )
    return near, near & far
