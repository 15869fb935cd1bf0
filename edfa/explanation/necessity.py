"""Observational necessity and sufficiency (Definitions 5 and 6): would another value of one fact
turn the decision, and do these facts settle it whatever the others are?

``Support`` has the values that training people have and picks those worth asking a model about;
``sweep`` asks about them, in one model call for everybody who knows the same features. The
expectation over replacement values is a sum over the training support, not a sample.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from edfa.errors import DataError
from edfa.predictors.base import ROWS_PER_CALL, ModelCache, Predictor, by_mask, distinct_cases
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, IntArray

# candidate values of a feature that has more, where the model names no cells
MAX_CANDIDATE_VALUES = 64
SHORTCUT_FROM_ROWS = 4_000  # rows from which on a model's shortcut to decisions is used
DOWN, UP = 0, 1


@dataclass(frozen=True, eq=False)
class CandidateValues:
    """Candidate values of one feature in ascending order, each with the interval of values that it
    represents.

    All arrays are (candidate values,), in encoded units.

    Parameters
    ----------
    value
        The value that the model is asked about.
    weight
        The share of training people whose value is in the interval.
    low, high
        The least and the largest training value in the interval; NaN if there is none.
    lower, upper
        The interval, ``upper`` excluded: a cell whose values the model cannot tell apart. If the
        model's cells are not known, a candidate represents itself alone, and both are ``value``.
    """

    value: Float32Array
    weight: Float64Array
    low: Float32Array
    high: Float32Array
    lower: Float32Array
    upper: Float32Array

    def __len__(self) -> int:
        return len(self.value)

    def index_of(self, values: Float32Array) -> IntArray:
        """The index of the candidate that represents each of ``values``, in the same shape; -1 if
        none does.
        """
        if np.isneginf(self.lower[0]):
            return np.searchsorted(self.upper, values, side="right")
        index = np.minimum(np.searchsorted(self.value, values), len(self) - 1)
        return np.where(self.value[index] == values, index, -1)

    def negated(self) -> "CandidateValues":
        """The candidates of the feature times -1, in ascending order again."""
        value, low, high, lower, upper = (
            -part[::-1] for part in (self.value, self.low, self.high, self.lower, self.upper)
        )
        return CandidateValues(value, self.weight[::-1], high, low, upper, lower)


@dataclass(frozen=True, eq=False)
class CandidateGrid:
    """The candidate values of several features of people who know the same, one feature after the
    other.

    Parameters
    ----------
    features
        The indices of these features, ascending.
    columns
        The position of each among the known features, (features,).
    candidate_values
        The candidates of each.
    """

    features: tuple[int, ...]
    columns: IntArray
    candidate_values: tuple[CandidateValues, ...]

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> IntArray:
        """The index of each feature's first candidate, then the number of candidates, (features +
        1,).
        """
        return np.cumsum([0, *(len(values) for values in self.candidate_values)], dtype=np.intp)

    @cached_property
    def owner(self) -> IntArray:
        """The position in ``features`` of the feature of each candidate, (candidate values,)."""
        return np.repeat(np.arange(len(self.candidate_values)), np.diff(self.starts))

    @cached_property
    def value(self) -> Float32Array:
        """The value of each candidate, (candidate values,)."""
        return self._join("value")

    @cached_property
    def lower(self) -> Float32Array:
        """The least value that each candidate represents, (candidate values,)."""
        return self._join("lower")

    @cached_property
    def upper(self) -> Float32Array:
        """The value up to which each candidate represents all, (candidate values,)."""
        return self._join("upper")

    def take(self, features: BoolArray) -> "tuple[CandidateGrid, IntArray]":
        """The grid of some features, and the indices of their candidates in this one.

        ``features`` marks them among all features, (all features,).
        """
        chosen = features[list(self.features)]
        values = [v for v, keep in zip(self.candidate_values, chosen, strict=True) if keep]
        names = np.array(self.features, dtype=np.intp)[chosen].tolist()
        subset = CandidateGrid(tuple(names), self.columns[chosen], tuple(values))
        return subset, np.flatnonzero(chosen[self.owner])

    def _join(self, name: str) -> Float32Array:
        """One array of every feature's candidates after the other."""
        return np.concatenate(
            [np.zeros(0, dtype=np.float32), *(getattr(v, name) for v in self.candidate_values)]
        )

    @cached_property
    def has_cells(self) -> tuple[bool, ...]:
        """Whether each feature's candidates are the cells of the model, so that intervals between
        them are known.
        """
        return tuple(bool((values.lower < values.upper).all()) for values in self.candidate_values)


@dataclass(frozen=True, eq=False)
class Support:
    """Every value of every feature among training people, with its share of people.

    Parameters
    ----------
    values, shares
        For each feature its distinct values in ascending order, and the share of training people
        with each.
    unordered
        Features whose values are all candidates, whatever their number: they have no order to thin
        out by.
    cache
        Results that are worked out once for a model and a set of known features.
    most
        The number of candidate values of a feature that has more, if the model does not say where
        its cells are.

    Examples
    --------
    >>> support = Support.of(np.array([[1, 0], [1, 1], [3, 1], [5, 1]], dtype=np.float32))
    >>> support.values[0], support.shares[0]
    (array([1., 3., 5.], dtype=float32), array([0.5 , 0.25, 0.25]))
    """

    values: tuple[Float32Array, ...]
    shares: tuple[Float64Array, ...]
    unordered: tuple[int, ...] = ()
    cache: ModelCache = field(default_factory=ModelCache, repr=False)
    most: int = MAX_CANDIDATE_VALUES

    @classmethod
    def of(
        cls, rows: Float32Array, unordered: Iterable[int] = (), *, cache: ModelCache | None = None
    ) -> "Support":
        """The support of training rows.

        Parameters
        ----------
        rows
            Encoded training rows, (training people, features); NaN is not a value.
        unordered
            The indices of categorical features.
        cache
            A cache to share; a new one if None.

        Raises
        ------
        DataError
            If there are no rows.
        """
        if not len(rows):
            raise DataError("the support of a feature is what training people have; there are none")
        values, counts = zip(
            *(np.unique(column[~np.isnan(column)], return_counts=True) for column in rows.T),
            strict=True,
        )
        shares = tuple(count / count.sum() for count in counts)
        return cls(values, shares, tuple(unordered), ModelCache() if cache is None else cache)

    def candidate_values(
        self, predictor: Predictor, mask: BoolArray, feature: int
    ) -> CandidateValues:
        """The candidate values of a feature for a model that knows the features in ``mask``,
        (features,).

        One value of each cell, if the model says where its cells are: then nothing is sampled and
        nothing missed. Otherwise every training value, or, if there are many, the medians of groups
        of about the same weight.
        """
        values, shares = self.values[feature], self.shares[feature]
        if (cuts := predictor.cells(mask, feature)) is not None:
            return _one_per_cell(values, shares, cuts)
        if len(values) > self.most and feature not in self.unordered:
            values, shares = _group_medians(values, shares, self.most)
        return CandidateValues(values, shares, values, values, values, values)

    def grid(self, predictor: Predictor, mask: BoolArray, features: BoolArray) -> CandidateGrid:
        """The candidate values of the known features (``mask``) among ``features``, both
        (features,); cached.
        """

        def make() -> CandidateGrid:
            known = np.flatnonzero(mask)
            columns = np.flatnonzero(features[known])
            swept = tuple(int(j) for j in known[columns])
            return CandidateGrid(
                swept, columns, tuple(self.candidate_values(predictor, mask, j) for j in swept)
            )

        return self.cache.get(predictor, mask, ("grid", features.tobytes()), make)


@dataclass(frozen=True, eq=False)
class SweepGroup:
    """People who know the same features, and what the model decides if one known fact has another
    value.

    People with the same facts are one *case*.

    Parameters
    ----------
    predictor
        The model.
    mask
        Which features are known, (features,).
    people, case
        The row of each person in the batch, and the case that they are, (people of the group,).
    facts
        The known facts of each case, (cases, known features).
    grid
        The candidate values of the swept features.
    probabilities, decision
        What the model says and decides now, (cases, classes) and (cases,).
    candidate_decisions
        What it decides with one fact replaced by a candidate value, (cases, candidate values).
    cached_probabilities
        What it says then, (cases, candidate values, classes); None if it was only asked what it
        decides.
    """

    predictor: Predictor
    mask: BoolArray
    people: IntArray
    case: IntArray
    facts: Float32Array
    grid: CandidateGrid
    probabilities: Float64Array
    decision: IntArray
    candidate_decisions: IntArray
    cached_probabilities: Float64Array | None = None

    @cached_property
    def candidate_probabilities(self) -> Float64Array:
        """The model's probabilities for every candidate value of every case, (cases, candidate
        values, classes).
        """
        if self.cached_probabilities is not None:
            return self.cached_probabilities
        case, column = np.indices(self.candidate_decisions.shape).reshape(2, -1)
        return self.predict_candidates(case, column).reshape(*self.candidate_decisions.shape, -1)

    def predict_candidates(self, case: IntArray, column: IntArray) -> Float64Array:
        """The model's probabilities for cases with one candidate value each, (n, classes).

        ``case`` and ``column`` (of the grid) are (n,).
        """
        if self.cached_probabilities is not None:
            return self.cached_probabilities[case, column]
        rows = self.facts[case]
        replaced = self.grid.columns[self.grid.owner[column]]
        rows[np.arange(len(rows)), replaced] = self.grid.value[column]
        return self.predictor.predict_known(self.mask, rows)

    @property
    def features(self) -> tuple[int, ...]:
        """The indices of the swept features."""
        return self.grid.features

    @property
    def candidate_values(self) -> tuple[CandidateValues, ...]:
        """The candidate values of each swept feature."""
        return self.grid.candidate_values

    def flips(self, desired_class: int | None = None) -> BoolArray:
        """Which candidate values turn each case's decision (to the desired class), (cases,
        candidate values).
        """
        turned: BoolArray = self.candidate_decisions != self.decision[:, None]
        if desired_class is not None:
            turned &= self.candidate_decisions == desired_class
        return turned

    def by_feature(self, columns: BoolArray) -> Iterator[tuple[int, CandidateValues, BoolArray]]:
        """Each swept feature, its candidate values, and its part of ``columns``, (cases, candidate
        values).
        """
        parts = np.split(columns, self.grid.starts[1:-1], axis=1)[: len(self.features)]
        yield from zip(self.features, self.candidate_values, parts, strict=True)

    def decisions_for(self, feature: int) -> tuple[CandidateValues, IntArray]:
        """The candidate values of one feature, and what is decided at each, (cases, its candidate
        values).
        """
        k = self.features.index(feature)
        columns = np.flatnonzero(self.grid.owner == k)
        return self.candidate_values[k], self.candidate_decisions[:, columns]

    def own_values(self, feature: int) -> Float32Array:
        """Each case's own value of a feature, (cases,)."""
        return self.facts[:, int(np.count_nonzero(self.mask[:feature]))]

    def take(self, new_row: IntArray, features: BoolArray) -> "SweepGroup | None":
        """The group of some people and some swept features; None if nobody is left.

        ``new_row`` (people of the batch,) is everybody's row in the new batch, -1 if they are not
        in it; ``features`` marks features, (features,).
        """
        members = np.flatnonzero(new_row[self.people] >= 0)
        if not len(members):
            return None
        cases, case = np.unique(self.case[members], return_inverse=True)
        grid, columns = self.grid.take(features)
        chosen, probabilities = np.ix_(cases, columns), self.cached_probabilities
        return replace(
            self,
            people=new_row[self.people[members]],
            case=case.ravel(),
            facts=self.facts[cases],
            grid=grid,
            probabilities=self.probabilities[cases],
            decision=self.decision[cases],
            candidate_decisions=self.candidate_decisions[chosen],
            cached_probabilities=None if probabilities is None else probabilities[chosen],
        )


class Reach(NamedTuple):
    """How far one fact must move to turn the decision, in each direction; the last axis is
    ``DOWN``, ``UP``.

    All arrays are (people, features, 2) in encoded units; NaN if there is no such value.

    Parameters
    ----------
    value
        The nearest value of a training person that turns the decision.
    holds
        The farthest value of a training person up to which nothing turns.
    """

    value: Float32Array
    holds: Float32Array


@dataclass(frozen=True, eq=False)
class Sweep:
    """Every single change of every swept fact of every person, and what the model decides after it.

    ``shape`` is (people, features); ``groups`` hold the people, those who know the same features
    together.
    """

    shape: tuple[int, int]
    groups: tuple[SweepGroup, ...]

    @cached_property
    def necessity(self) -> Float64Array:
        """α({i}, x, y*): the share of training people whose value of i would turn the decision,
        (people, features).

        NaN for a feature that was not swept.
        """
        alpha = np.full(self.shape, np.nan)
        for group in self.groups:
            for feature, values, flips in group.by_feature(group.flips()):
                alpha[group.people, feature] = (flips * values.weight).sum(axis=1)[group.case]
        return alpha

    @cached_property
    def decision(self) -> IntArray:
        """The model's decision now, as a position in its classes, (people,)."""
        decision = np.empty(self.shape[0], dtype=np.intp)
        for group in self.groups:
            decision[group.people] = group.decision[group.case]
        return decision

    @cached_property
    def probabilities(self) -> Float64Array:
        """The model's probabilities now, (people, classes)."""
        classes = self.groups[0].probabilities.shape[1] if self.groups else 0
        probabilities = np.empty((self.shape[0], classes))
        for group in self.groups:
            probabilities[group.people] = group.probabilities[group.case]
        return probabilities

    def take(self, rows: IntArray, features: BoolArray) -> "Sweep":
        """What ``sweep`` would give for some of the people, by row, and some of the features,
        without asking the model.

        ``features`` (features,) marks them; what is known of them must have been swept.
        """
        new_row = np.full(self.shape[0], -1, dtype=np.intp)
        new_row[rows] = np.arange(len(rows))
        for group in self.groups:
            if (group.mask & features).sum() > features[list(group.features)].sum():
                raise DataError("a feature that is known and wanted was not swept")
        groups = (group.take(new_row, features) for group in self.groups)
        return Sweep((len(rows), self.shape[1]), tuple(filter(None, groups)))

    def reach(self) -> Reach:
        """The nearest value of each fact, in each direction, that turns the decision, and the
        farthest up to which nothing does.
        """
        found = np.full((2, *self.shape, 2), NAN)
        for group in self.groups:
            for feature, candidates, flips in group.by_feature(group.flips()):
                own = group.own_values(feature)
                up = _reach_up(candidates, flips, own)
                down = -_reach_up(candidates.negated(), flips[:, ::-1], -own)
                found[:, group.people, feature, UP] = up[:, group.case]
                found[:, group.people, feature, DOWN] = down[:, group.case]
        return Reach(*found)


def sweep(
    X: Float32Array,  # noqa: N803
    predictor: Predictor,
    support: Support,
    features: BoolArray | None = None,
) -> Sweep:
    """Replace every known fact of everybody by every candidate value, one fact at a time, and ask
    the model.

    Parameters
    ----------
    X
        Encoded facts, (people, features); NaN: not known.
    predictor
        The fitted model.
    support
        The training values that facts are replaced by.
    features
        Which features to sweep, (features,); None: all of them.

    Returns
    -------
    Sweep
        The people in groups that know the same features.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> swept = sweep(table.test.X[:5], model, Support.of(table.train.X))
    >>> swept.necessity.shape
    (5, 20)
    """
    groups: list[SweepGroup] = []
    for mask, people in by_mask(X):
        grid = support.grid(predictor, mask, mask if features is None else mask & features)
        size = max(1, ROWS_PER_CALL // (1 + len(grid)))
        facts, case = distinct_cases(X.take(people, axis=0).take(np.flatnonzero(mask), axis=1))
        order = np.argsort(case, kind="stable")
        for first in range(0, len(facts), size):
            part = order[(case[order] >= first) & (case[order] < first + size)]
            members = people[part], case[part] - first
            groups.append(_sweep_group(predictor, mask, members, facts[first : first + size], grid))
    return Sweep((len(X), X.shape[1]), tuple(groups))


def necessity(
    X: Float32Array,  # noqa: N803
    predictor: Predictor,
    support: Support,
    features: BoolArray | None = None,
) -> Float64Array:
    """α({i}, x, y*) of every known feature of everybody (Definition 5): the share of training
    people whose value of it would turn the decision.

    Parameters
    ----------
    X, predictor, support, features
        As in ``sweep``.

    Returns
    -------
    numpy.ndarray
        (people, features); NaN if not known, or not swept.
    """
    return sweep(X, predictor, support, features).necessity


class Sufficiency(NamedTuple):
    """β of each person and its standard error over the draws, (people,) each."""

    beta: Float64Array
    error: Float64Array


def sufficiency(
    X: Float32Array,  # noqa: N803
    features: BoolArray,
    predictor: Predictor,
    rows: Float32Array,
    *,
    draws: int = 200,
) -> Sufficiency:
    """β(S, x, y*) of everybody: how often the decision from S alone stays if all else is a training
    person's.

    Parameters
    ----------
    X
        Encoded facts, (people, features); NaN: not known.
    features
        Which features are in S, (features,); everybody must know them.
    predictor
        The fitted model.
    rows
        Encoded training rows, (training people, features). What is outside S is taken from one row
        at a time, so that its values go together.
    draws
        The number of training rows drawn, the same for everybody and in every call.

    Returns
    -------
    Sufficiency
        β and its standard error.

    Raises
    ------
    DataError
        If somebody does not know a feature in S.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> everything = np.ones(20, dtype=bool)
    >>> sufficiency(table.test.X[:3], everything, model, table.train.X).beta
    array([1., 1., 1.])
    """
    if np.isnan(X[:, features]).any():
        raise DataError(
            "sufficiency asks what follows from known facts; some of these are not known (NaN)"
        )
    drawn = rows[np.random.default_rng(0).integers(0, len(rows), draws)]
    filled = np.where(features, X[:, None, :], drawn).reshape(-1, X.shape[1])
    now, then = (
        predictor.decide(predictor.predict_proba(some))
        for some in (np.where(features, X, NAN), filled)
    )
    beta = (then.reshape(len(X), draws) == now[:, None]).mean(axis=1)
    return Sufficiency(beta, np.sqrt(beta * (1 - beta) / draws))


def _sweep_group(
    predictor: Predictor,
    mask: BoolArray,
    members: tuple[IntArray, IntArray],
    facts: Float32Array,
    grid: CandidateGrid,
) -> SweepGroup:
    """Ask about each case as it is and with every candidate value, in one call unless the model has
    a shortcut.

    ``members`` are the rows of the people and the case of each.
    """
    total, column = 1 + len(grid), grid.columns[grid.owner]
    decisions = probabilities = None
    if len(facts) * total >= SHORTCUT_FROM_ROWS:
        decisions = predictor.decide_tries(mask, facts, column, grid.value)
    if decisions is not None:
        now = predictor.predict_known(mask, facts)
    else:
        rows = np.repeat(facts[:, None, :], total, axis=1)
        rows[:, np.arange(1, total), column] = grid.value
        flat = predictor.predict_known(mask, rows.reshape(len(facts) * total, -1))
        decisions = predictor.decide(flat).reshape(len(facts), total)[:, 1:]
        both = flat.reshape(len(facts), total, -1)
        now, probabilities = both[:, 0], both[:, 1:]
    decision = predictor.decide(now)
    return SweepGroup(
        predictor, mask, *members, facts, grid, now, decision, decisions, probabilities
    )


def _reach_up(candidates: CandidateValues, flips: BoolArray, own: Float32Array) -> Float32Array:
    """The value and what holds (see ``Reach``) of one feature upwards, (2, cases)."""
    case, last = np.arange(len(own)), len(candidates) - 1
    # A cell without a training person has no low: it is not offered.
    turning = flips & (candidates.low > own[:, None])
    value = np.where(turning.any(axis=1), candidates.low[turning.argmax(axis=1)], np.nan)
    turned = np.logical_or.accumulate(flips & (candidates.upper > own[:, None]), axis=1)
    steady = (candidates.high > own[:, None]) & ~turned
    farthest = last - steady[:, ::-1].argmax(axis=1)
    holds = np.where(steady, candidates.high, np.nan)[case, farthest]
    return np.stack([value, holds]).astype(np.float32)


def _one_per_cell(
    values: Float32Array, shares: Float64Array, cuts: Float32Array
) -> CandidateValues:
    """One candidate for each cell between the thresholds ``cuts``.

    A cell without a training person has one too, so that what is said of an interval is true all
    through it.
    """
    cells = len(cuts) + 1
    start = np.searchsorted(values, cuts, side="left")
    first, last = np.append(0, start), np.append(start, len(values)) - 1
    occupied = first <= last
    low = np.where(occupied, values[np.minimum(first, len(values) - 1)], np.nan).astype(np.float32)
    high = np.where(occupied, values[np.maximum(last, 0)], np.nan).astype(np.float32)
    lower, upper = (np.r_[ends].astype(np.float32) for ends in ((-np.inf, cuts), (cuts, np.inf)))
    inside = np.where(np.isfinite(lower), lower, np.nextafter(upper, np.float32(-np.inf)))
    weight = _sum_by_group(np.searchsorted(cuts, values, side="right"), shares, cells)
    return CandidateValues(
        np.where(occupied, low, inside).astype(np.float32), weight, low, high, lower, upper
    )


def _group_medians(
    values: Float32Array, shares: Float64Array, groups: int
) -> tuple[Float32Array, Float64Array]:
    """The weighted median of each of some groups, with the group's weight."""
    middle = np.cumsum(shares) - shares / 2
    group = np.minimum((middle * groups).astype(int), groups - 1)
    weight = _sum_by_group(group, shares, groups)
    medians = np.searchsorted(middle, np.cumsum(weight) - weight / 2)
    filled = np.flatnonzero(weight > 0)
    chosen, group_of = np.unique(np.minimum(medians[filled], len(values) - 1), return_inverse=True)
    return values[chosen], _sum_by_group(group_of, weight[filled], len(chosen))


def _sum_by_group(group: IntArray, shares: Float64Array, count: int) -> Float64Array:
    """The sum of the shares in each of ``count`` groups, (count,); ``group`` says which each is
    in.
    """
    return np.bincount(group, weights=shares, minlength=count).astype(float)
