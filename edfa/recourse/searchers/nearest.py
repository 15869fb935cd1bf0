"""EDFA-default: what similar training people have, put in place of one's own values, as little of
it as will do.

First every single change (the sweep); then two and three changes at once, with values of the
nearest training people (``Donors``) whom the model, from what is known, puts where one wants to be
(``combine``). Cases without a plan by then are tried with all values of more distant people, or
with all changes that help by themselves, without those that are not needed.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import combinations
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.explanation.necessity import Support
from edfa.predictors.base import smallest
from edfa.recourse._search.single_changes import SingleChanges
from edfa.recourse.searcher import Candidates, Searcher, SearchProblem, rank_in_case
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, Int32Array, Int64Array, IntArray

Metric = Literal["euclidean", "cityblock"]
MAX_DONORS = 10_000  # donors
DISTANCES_AT_ONCE = 200_000  # distances at a time: few enough to stay in a processor's cache
COMBINED = 8  # of a donor's values that differ, those that help most by themselves are combined
FOLLOWED = 5  # of the more distant donors whose values are recourse, the nearest are followed up


@dataclass(frozen=True, eq=False)
class Side:
    """Donors on one side of a decision, as indices into ``Donors.rows``; what is cached for it goes
    by its identity.
    """

    donors: IntArray


class Donors:
    """Donors for people who know any set of features; at most ``limit`` training people, drawn
    once.

    The distance is HEOM: numbers in units of their training range, a different category counts one;
    as a root of squares (``"euclidean"``) or a sum (``"cityblock"``, NICE's). Equal distances go by
    the order of the donors.

    Parameters
    ----------
    rows
        Encoded training rows, (training people, features).
    ordered
        Which features are no categories, (features,).
    support
        The values of these rows; what is worked out for a model goes into its cache.
    metric, limit
        How features' distances add up; the largest number of donors.

    Attributes
    ----------
    row_number
        The training row that each donor is, (donors,).
    rows
        The donors' facts, (donors, features).
    value_range
        The distance between the extremes of each feature, (features,).
    everyone
        All donors, on whichever side.
    """

    def __init__(
        self,
        rows: Float32Array,
        ordered: BoolArray,
        support: Support,
        metric: Metric = "euclidean",
        limit: int = MAX_DONORS,
    ) -> None:
        self.row_number = np.sort(np.random.default_rng(0).permutation(len(rows))[:limit])
        self.rows = np.ascontiguousarray(rows[self.row_number])
        self.ordered, self.support, self.metric = ordered, support, metric
        self.everyone = Side(np.arange(len(self.rows)))
        self.value_range = np.array([float(np.ptp(values)) or 1.0 for values in support.values])

    def decisions(self, problem: SearchProblem) -> IntArray:
        """The model's decision about each donor, (donors,), from the features known of the
        problem's people.
        """

        def decide() -> IntArray:
            known = np.ascontiguousarray(self.rows[:, problem.features])
            return problem.predictor.decide(problem.predict(known))

        return self.support.cache.get(
            problem.predictor, problem.mask, ("donor decisions", self), decide
        )

    def sides(
        self, problem: SearchProblem, true_classes: Int64Array | None = None
    ) -> Iterator[tuple[IntArray, Side]]:
        """The cases of each decision, with the donors whose decision would be recourse for them.

        ``true_classes`` are the donors' own classes (donors,): if given, only donors who are
        decided as they truly are.
        """
        decision, wanted = problem.group.decision, problem.desired_class

        def choose(now: int) -> Side:
            decisions = self.decisions(problem)
            chosen = decisions != now if wanted is None else decisions == wanted
            if true_classes is not None:
                chosen &= decisions == true_classes
            return Side(np.flatnonzero(chosen))

        for now in np.unique(decision).tolist():
            name = "side", self, now, wanted, true_classes is not None
            side = self.support.cache.get(
                problem.predictor, problem.mask, name, partial(choose, now)
            )
            yield np.flatnonzero(decision == now), side

    def nearest(self, problem: SearchProblem, case: IntArray, side: Side, k: int) -> IntArray:
        """The k nearest donors of ``side`` to each case of ``case`` (cases,), nearest first.

        Returns indices into ``rows``, (cases, k); fewer columns if the side has fewer donors.
        """
        return side.donors[self._nearest(problem, problem.facts[case], side, k)]

    def distance(self, problem: SearchProblem, rows: Float32Array) -> Float64Array:
        """The distance of rows (rows, known features) from the nearest donor of all, as a root of
        squares, (rows,).
        """
        near, space = (
            self._nearest(problem, rows, self.everyone, 1),
            self._space(problem, self.everyone),
        )
        gap = space.place(rows) - space.coordinates[near[:, 0]]
        squares = np.einsum("ij,ij->i", gap, gap)
        return np.asarray(np.sqrt(np.round(squares, 6)))

    def _nearest(self, problem: SearchProblem, rows: Float32Array, side: Side, k: int) -> IntArray:
        """The positions within ``side`` of the k donors nearest to rows (rows, known features),
        nearest first, (rows, k).
        """
        k = min(k, len(side.donors))
        nearest = np.empty((len(rows), k), dtype=np.intp)
        if not nearest.size:
            return nearest
        space = self._space(problem, side)
        step = max(1, DISTANCES_AT_ONCE // len(side.donors))
        for part in gen_batches(len(rows), step):
            ours = space.place(rows[part])
            # What is the same for all donors of one row is left out: it does not change their
            # order.
            if self.metric == "cityblock":
                distance = cdist(ours, space.coordinates, "cityblock")
            else:
                distance = space.norms - 2 * ours @ space.coordinates.T
            near, row = smallest(distance, k), np.arange(len(ours))[:, None]
            nearest[part] = near[row, distance[row, near].argsort(axis=1)]
        return nearest

    def _space(self, problem: SearchProblem, side: Side) -> "_Space":
        """Where the donors of a side lie by what the problem's people know; cached."""

        def make() -> _Space:
            features, half = problem.features, 0.5
            if self.metric == "euclidean":
                half = np.sqrt(half)
            number = np.full(1, NAN)
            levels = [number if self.ordered[f] else self.support.values[f] for f in features]
            counts = np.array([len(part) for part in levels], dtype=np.intp)
            column = np.repeat(np.arange(len(levels)), counts)
            value_range = self.value_range.astype(np.float32)[features[column]]
            level = np.concatenate([number[:0], *levels])
            none = np.zeros((0, len(level) + 1))
            space = _Space(column, value_range, level, half, none, none[:, 0])
            coordinates = space.place(self.rows[side.donors][:, features])
            # The last axis parts donors at the same distance by their order, whatever the batch.
            order = 1e-9 * np.arange(len(side.donors))
            coordinates[:, -1] = np.sqrt(order) if self.metric == "euclidean" else order
            norms = np.einsum("ij,ij->i", coordinates, coordinates)
            return space._replace(coordinates=coordinates, norms=norms)

        return self.support.cache.get(
            problem.predictor, problem.mask, ("space", self, side), make, large=True
        )


class _Space(NamedTuple):
    """A space of distances: one axis for each number, one for each level of a category, and a last
    one for the order of the donors.

    ``column`` (axes,) is the known feature that an axis belongs to, ``value_range`` (axes,) its
    training range, ``level`` (axes,) the level that the axis stands for, NaN for a number, and
    ``half`` where that level lies. ``coordinates`` (donors, axes + 1) and ``norms`` (donors,) are
    the donors' places and squared distances from the origin.
    """

    column: IntArray
    value_range: Float32Array
    level: Float32Array
    half: float
    coordinates: Float64Array
    norms: Float64Array

    def place(self, rows: Float32Array) -> Float64Array:
        """Where rows (rows, known features) lie, (rows, axes + 1); the last axis is zero."""
        values = rows[:, self.column]
        numbers, levels = values / self.value_range, (values == self.level) * self.half
        places = np.where(np.isnan(self.level), numbers, levels)
        return np.hstack([places, np.zeros((len(rows), 1))])


class DonorChanges(NamedTuple):
    """Pairs of a case and one of its donors, and the changes that lead to the donor's values.

    ``case`` is (pairs,). ``change`` (pairs, free features) is the single change to each of the
    donor's values, and ``usable`` says whether it is for the case. The pairs of a case stand
    together, the nearest donor first.
    """

    case: IntArray
    change: IntArray
    usable: BoolArray


@dataclass(eq=False, repr=False)
class DonorSearch(Searcher):
    """Combines values of the nearest training people: what ``Nearest`` and ``SurvivalSearch``
    share.

    Parameters
    ----------
    neighbours, farther
        How many of the nearest are combined with; and how many are looked at where that gives
        nothing.
    max_changes
        The largest number of changes combined, at most 3.
    """

    # DEVIATION: the paper fixes neither the number of neighbours nor how sets of changes grow; 10
    # and up to 3 give about as many plans of about the size that its quality table implies.
    _: KW_ONLY
    neighbours: int = 10
    farther: int = 50
    max_changes: int = 3

    keep_dominated = False
    uses_sweep = True
    finished = True

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.neighbours < 1 or self.farther < 1 or not 1 <= self.max_changes <= 3:
            raise SettingError("neighbours and farther are at least 1, and max_changes from 1 to 3")

    def _learn(self, train: Table) -> None:
        self.donors_ = Donors(self.rows_, self.ordered_, self.support_)

    def _most_changes(self, problem: SearchProblem) -> int:
        """The largest number of changes that are combined."""
        return min(self.max_changes, problem.actions.max_changes, len(problem.free))

    def near_changes(
        self, changes: SingleChanges, k: int, among: IntArray | None = None
    ) -> Iterator[DonorChanges]:
        """What the k nearest donors on the other side of the decision have, for each decision.

        Parameters
        ----------
        changes
            The single changes of all cases.
        k
            The number of donors of each case.
        among
            The cases that are asked about, (cases,); None: all of them.
        """
        problem, layout = changes.problem, changes.layout

        def make() -> Int32Array:
            return layout.changes_to(self.donors_.rows[:, problem.features])

        for case, side in self.donors_.sides(problem):
            case = case if among is None else np.intersect1d(case, among)
            near = self.donors_.nearest(problem, case, side, k)
            if near.size:
                name = "donor changes", layout
                by_donor = self.cache_.get(problem.predictor, problem.mask, name, make, large=True)
                case, near = np.repeat(case, near.shape[1]), near.ravel()
                change = by_donor[near].astype(np.intp)
                usable = (change >= 0) & ~np.isnan(changes.to[case[:, None], change])
                yield DonorChanges(case, change, usable)

    def _with_farther(self, changes: SingleChanges, candidates: Candidates) -> Candidates:
        """The candidates, and what more distant donors have for cases without any.

        For these all that a donor has is tried, and all that helps by itself; then only what is
        needed of it is taken.
        """
        problem = changes.problem
        left = np.flatnonzero(np.bincount(candidates.case, minlength=len(problem)) == 0)
        if not len(left):
            return candidates
        parts = [self.confirm(problem, _growing_sets(changes, left))]
        for case, change, usable in self.near_changes(changes, self.farther, left):
            values = np.where(usable, changes.to[case[:, None], change], NAN)
            good = self.confirm(problem, Candidates(case, problem.change(problem.free, values)))
            parts.append(good.take(rank_in_case(good.case) < FOLLOWED))
        minimal = self.minimise(problem, Candidates.join(*parts))
        minimal = problem.within_max_changes(minimal)
        if not self.keep_dominated:
            minimal = problem.undominated(minimal)
        return Candidates.join(candidates, minimal)


@dataclass(eq=False, repr=False)
class Nearest(DonorSearch):
    """The paper's default searcher.

    Parameters
    ----------
    train
        The training people: donors of values.
    neighbours, farther, max_changes
        How many of the nearest are combined with; how many are looked at where that gives nothing;
        and the largest number of changes combined, at most 3.
    keep_dominated
        Whether to keep plans that move the same features in the same directions as another, and
        none of them less, because a neighbour is there.
    holds_further, min_support
        As for every ``Searcher``.

    Examples
    --------
    >>> import edfa
    >>> from edfa.people import Background, People
    >>> from edfa.recourse import find_recourse
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> refused = table.test.X[model.predict(table.test.X) == 0][:5]
    >>> people = People(refused, Background.of(table.train, model))
    >>> plans = find_recourse(people, Nearest(table.train), desired_class=1)
    >>> bool((model.predict(plans.rows()) == 1).all()), bool(plans.legal.all())
    (True, True)
    """

    _: KW_ONLY
    keep_dominated: bool = False

    @classmethod
    def part_of(cls, searcher: Searcher) -> Self:
        """A searcher with default settings for a step of another one, with its training people,
        support and cache.
        """
        nearest = cls()
        for name in ("train_", "rows_", "ordered_", "support_", "cache_", "training_support_"):
            setattr(nearest, name, getattr(searcher, name))
        nearest._learn(searcher.train_)
        return nearest

    def search(self, problem: SearchProblem) -> Candidates:
        """Single changes, then several; more distant people for cases that have no plan by then."""
        changes = SingleChanges.of(problem)
        if not len(changes):
            return Candidates.none(problem)
        parts = [changes.candidates(*changes.nearest_recourse())]
        most = self._most_changes(problem)
        for near in self.near_changes(changes, self.neighbours):
            if self.keep_dominated:
                works = near.usable & changes.is_recourse[near.case[:, None], near.change]
                row, feature = np.nonzero(works)
                parts.append(changes.candidates(near.case[row], near.change[row, feature]))
            if most > 1:
                plans = combine(changes, near, most)
                parts.append(plans if self.keep_dominated else problem.undominated(plans))
        candidates = self._with_farther(changes, Candidates.join(*parts))
        return candidates.distinct() if self.keep_dominated else candidates


def _growing_sets(changes: SingleChanges, case: IntArray) -> Candidates:
    """Each case's best change of every feature, one more at a time, the most helpful first."""
    problem, starts = changes.problem, changes.layout.starts
    score = changes.score(case)
    filled = np.flatnonzero(np.diff(starts))
    change = np.stack(
        [starts[k] + score[:, starts[k] : starts[k + 1]].argmax(axis=1) for k in filled], axis=1
    )
    gain = np.take_along_axis(score, change, axis=1)
    change = np.take_along_axis(change, np.argsort(-gain, axis=1, kind="stable"), axis=1)
    count = change.shape[1]
    case, change = np.repeat(case, count), np.repeat(change, count, axis=0)
    taken = np.tile(np.tri(count, dtype=bool), (len(case) // count, 1))
    values = np.where(taken, changes.to[case[:, None], change], NAN)
    return Candidates(case, problem.change(changes.layout.column[change], values))


def combine(
    changes: SingleChanges, near: DonorChanges, max_changes: int, *, keep_supersets: bool = False
) -> Candidates:
    """Sets of two up to ``max_changes`` (three) of a donor's values that are recourse.

    All are asked about in one call: sets that hold a smaller one are so few that they cost less
    than a second call.

    Parameters
    ----------
    changes
        The single changes of all cases.
    near
        The donors' values that are combined.
    max_changes
        The largest number of changes in a set, 2 or 3.
    keep_supersets
        Whether to keep sets that hold a smaller one which is recourse.
    """
    problem, (case, change, usable) = changes.problem, near
    if not keep_supersets:
        usable = usable & ~changes.is_recourse[case[:, None], change]
    if change.shape[1] > COMBINED:
        # those that bring a case nearest to recourse by themselves, in their old order
        distinct, position = np.unique(case, return_inverse=True)
        score = np.where(usable, changes.score(distinct)[position[:, None], change], -1.0)
        best = np.sort(np.argsort(-score, axis=1, kind="stable")[:, :COMBINED], axis=1)
        change = np.take_along_axis(change, best, axis=1)
        usable = np.take_along_axis(usable, best, axis=1)
    sets = _index_sets(change.shape[1], max_changes)
    one, two, three = (usable.take(index, axis=1) for index in sets.T)
    row, set_ = np.nonzero(one & two & three)
    if not len(row):
        return Candidates.none(problem)
    chosen = change[row[:, None], sets[set_]]

    def number(of: IntArray, *parts: IntArray) -> IntArray:
        """A number for each case and some changes of it."""
        for part in parts:
            of = of * len(changes) + part
        return of

    triple = sets[set_, 1] != sets[set_, 2]  # pairs first
    _, first = np.unique(number(triple * len(problem) + case[row], *chosen.T), return_index=True)
    case, picked, triple = case[row[first]], chosen[first], triple[first]
    to = problem.change(changes.layout.column[picked], changes.to[case[:, None], picked])
    probabilities = problem.predict_changes(case, to)
    fine = problem.is_recourse(case, probabilities)
    turned = np.flatnonzero(fine)
    fine[turned] = problem.is_sensible(case[turned], to[turned])
    if not keep_supersets:
        a, b, c = picked.T
        pairs = number(case, a, b)[fine & ~triple]
        for held in (number(case, a, b), number(case, a, c), number(case, b, c)):
            fine &= ~(triple & np.isin(held, pairs))
    return Candidates(case, to, probabilities).take(fine)


def _index_sets(size: int, max_changes: int) -> IntArray:
    """Every pair and triple of indices below ``size``, (sets, 3), a pair with its last index
    twice.
    """
    pairs = [(a, b, b) for a, b in combinations(range(size), 2)]
    triples = combinations(range(size), 3) if max_changes > 2 else ()
    return np.array([*pairs, *triples], dtype=np.intp).reshape(-1, 3)
