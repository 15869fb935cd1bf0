"""Observational necessity (Definition 5): would another value of this one fact turn the decision?

One model call for everybody who knows the same features answers it for all their facts and all values at once. The
expectation over replacement values is a sum over the training support, not a sample.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edfa.errors import DataError
from edfa.explanation.support import Grid, Support, Tries
from edfa.predictors.base import Predictor, by_mask
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["DOWN", "UP", "Group", "Reach", "Sweep", "necessity", "sweep"]

ROWS = 200_000  # in one model call at most
MANY = 4_000  # rows from which on a shorter way is looked for
DOWN, UP = 0, 1


@dataclass(frozen=True, eq=False)
class Group:
    """People who know the same features, and what the model says when one of these has another value.

    People with the same values are one *case*: ``case[i]`` is that of ``people[i]``. ``grid`` is what was tried;
    ``decisions`` has a column for every try of every feature, one after the other, and so has ``asked``, where the
    model was asked what it says and not only what it decides.
    """

    predictor: Predictor
    mask: BoolArray
    people: IntArray
    case: IntArray
    facts: Float32Array
    grid: Grid
    probabilities: Float64Array
    decision: IntArray
    decisions: IntArray
    asked: Float64Array | None = None

    @cached_property
    def candidate_probabilities(self) -> Float64Array:
        """What the model says of every candidate value of every case, (cases, candidate values, classes)."""
        if self.asked is not None:
            return self.asked
        case, column = np.indices(self.decisions.shape).reshape(2, -1)
        return self.predict_candidates(case, column).reshape(*self.decisions.shape, -1)

    def predict_candidates(self, case: IntArray, column: IntArray) -> Float64Array:
        """What the model says of some of them."""
        if self.asked is not None:
            return self.asked[case, column]
        rows = self.facts[case]
        rows[np.arange(len(rows)), self.grid.columns[self.grid.owner[column]]] = self.grid.value[column]
        parts = np.array_split(rows, -(-len(rows) // ROWS) or 1)
        return np.concatenate([self.predictor.predict_known(self.mask, part) for part in parts])

    @property
    def features(self) -> tuple[int, ...]:
        """The swept features."""
        return self.grid.features

    @property
    def tries(self) -> tuple[Tries, ...]:
        """What was tried of each."""
        return self.grid.tries

    @property
    def ends(self) -> IntArray:
        """Where the columns of each feature end."""
        return self.grid.starts[1:]

    def flips(self, desired_class: int | None = None) -> BoolArray:
        """Which tries turn each case's decision, or turn it to the wanted class."""
        turned: BoolArray = self.decisions != self.decision[:, None]
        return turned if desired_class is None else turned & (self.decisions == desired_class)

    def by_feature(self, columns: BoolArray) -> Iterator[tuple[int, Tries, BoolArray]]:
        """The columns of each feature, with the feature and its tries."""
        parts = np.split(columns, self.ends[:-1], axis=1)[: len(self.features)]
        yield from zip(self.features, self.tries, parts, strict=True)

    def of(self, feature: int) -> tuple[Tries, IntArray]:
        """The tries of one feature, and what is decided at each (cases, tries)."""
        k = self.features.index(feature)
        return self.tries[k], self.decisions[:, self.ends[k] - len(self.tries[k]) : self.ends[k]]

    def own(self, feature: int) -> Float32Array:
        """Each case's own value."""
        return self.facts[:, int(np.count_nonzero(self.mask[:feature]))]

    def take(self, place: IntArray, features: BoolArray) -> "Group | None":
        """Of people with a new ``place`` (others: -1), and of some swept features; None where nobody is left."""
        kept = np.flatnonzero(place[self.people] >= 0)
        if not len(kept):
            return None
        some, case = (slice(None), self.case) if len(kept) == len(self.case) else _used(self.case[kept])
        grid, column = self.grid.take(features)
        asked, decided = self.asked, self.decisions[some]
        asked = None if asked is None else asked[some]
        if len(grid) < len(self.grid):
            asked, decided = None if asked is None else asked[:, column], decided[:, column]
        now = (self.facts[some], grid, self.probabilities[some], self.decision[some])
        return Group(self.predictor, self.mask, place[self.people[kept]], case, *now, decided, asked)


@dataclass(frozen=True, eq=False)
class Reach:
    """How far one fact must move to turn the decision, by direction: the last axis is ``DOWN``, ``UP``.

    ``value`` is the nearest value of a training person that turns it, ``start`` and ``end`` the interval around it in
    which every value does (``end`` itself does not, where the model has a threshold there), ``holds`` the farthest
    value of a training person up to which nothing turns. NaN where there is none; all in encoded units, of shape
    (people, features, 2).
    """

    value: Float32Array
    start: Float32Array
    end: Float32Array
    holds: Float32Array


@dataclass(frozen=True, eq=False)
class Sweep:
    """Every single change of every swept fact of every person, and what the model would say."""

    shape: tuple[int, int]
    groups: tuple[Group, ...]

    @cached_property
    def necessity(self) -> Float64Array:
        """α({i}, x, y*): the share of training people whose value of i would turn the decision; NaN if not swept."""
        found = np.full(self.shape, np.nan)
        for group in self.groups:
            for feature, tries, flips in group.by_feature(group.flips()):
                found[group.people, feature] = (flips * tries.weight).sum(axis=1)[group.case]
        return found

    @cached_property
    def decision(self) -> IntArray:
        """What the model decides now, as a position in its classes."""
        found = np.empty(self.shape[0], dtype=np.intp)
        for group in self.groups:
            found[group.people] = group.decision[group.case]
        return found

    @cached_property
    def probabilities(self) -> Float64Array:
        """What the model says now."""
        found = np.empty((self.shape[0], self.groups[0].probabilities.shape[1] if self.groups else 0))
        for group in self.groups:
            found[group.people] = group.probabilities[group.case]
        return found

    def take(self, rows: IntArray, features: BoolArray) -> "Sweep":
        """What ``sweep`` would give of some of the people, by row, and some of the features; no model is asked."""
        place = np.full(self.shape[0], -1, dtype=np.intp)
        place[rows] = np.arange(len(rows))
        for group in self.groups:
            if (group.mask & features).sum() > features[list(group.features)].sum():
                raise DataError("a feature that is known and wanted was not swept")
        found = (group.take(place, features) for group in self.groups)
        return Sweep((len(rows), self.shape[1]), tuple(group for group in found if group is not None))

    def reach(self, desired_class: int | None = None) -> Reach:
        """The nearest turning value of each fact in each direction, with its interval."""
        parts = [np.full((*self.shape, 2), np.nan, dtype=np.float32) for _ in range(4)]
        for group in self.groups:
            for feature, tries, flips in group.by_feature(group.flips(desired_class)):
                for way in (DOWN, UP):
                    found = _reach(tries, flips, group.own(feature), way)
                    for part, values in zip(parts, found, strict=True):
                        part[group.people, feature, way] = values[group.case]
        return Reach(*parts)


def sweep(X: Float32Array, predictor: Predictor, support: Support, features: BoolArray | None = None) -> Sweep:  # noqa: N803
    """Try every value of every known feature (of those in ``features``), one at a time, on everybody.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> found = sweep(table.test.X[:5], model, Support.of(table.train.X))
    >>> found.necessity.shape
    (5, 20)
    """
    groups: list[Group] = []
    for mask, people in by_mask(X):
        grid = support.grid(predictor, mask, mask if features is None else mask & features)
        size = max(1, ROWS // (1 + len(grid)))
        facts, case = _cases(X.take(people, axis=0).take(np.flatnonzero(mask), axis=1))
        order = np.argsort(case, kind="stable")
        for first in range(0, len(facts), size):
            part = order if len(facts) <= size else order[(case[order] >= first) & (case[order] < first + size)]
            groups.append(_ask(predictor, mask, (people[part], case[part] - first), facts[first : first + size], grid))
    return Sweep((len(X), X.shape[1]), tuple(groups))


def necessity(
    X: Float32Array,  # noqa: N803
    predictor: Predictor,
    support: Support,
    features: BoolArray | None = None,
) -> Float64Array:
    """α({i}, x, y*) of every known feature of everybody (Definition 5); NaN where a feature is not known."""
    return sweep(X, predictor, support, features).necessity


def _used(case: IntArray) -> tuple[IntArray, IntArray]:
    """The cases that occur, and each one's place among them."""
    found, place = np.unique(case, return_inverse=True)
    return found, place.ravel()


def _cases(facts: Float32Array) -> tuple[Float32Array, IntArray]:
    """The distinct rows, and which of them each row is."""
    if len(facts) == 1 or not facts.shape[1]:
        return facts[:1], np.zeros(len(facts), dtype=np.intp)
    found, case = np.unique(facts, axis=0, return_inverse=True)
    return found, case.ravel()


def _ask(
    predictor: Predictor, mask: BoolArray, who: tuple[IntArray, IntArray], facts: Float32Array, grid: Grid
) -> Group:
    """Each case as it is, then with every try of every feature: in one call, unless the model knows a shorter way."""
    total, column = 1 + len(grid), grid.columns[grid.owner]
    many = len(facts) * total >= MANY
    if many and (decided := predictor.decide_tries(mask, facts, column, grid.value)) is not None:
        told = predictor.predict_known(mask, facts)
        return Group(predictor, mask, *who, facts, grid, told, predictor.decide(told), decided)
    rows = np.repeat(facts[:, None, :], total, axis=1)
    rows[:, np.arange(1, total), column] = grid.value
    flat = predictor.predict_known(mask, rows.reshape(len(facts) * total, -1))
    decided = predictor.decide(flat).reshape(len(facts), total)
    probabilities = flat.reshape(len(facts), total, -1)
    now, then = (probabilities[:, 0], decided[:, 0]), (decided[:, 1:], probabilities[:, 1:])
    return Group(predictor, mask, *who, facts, grid, *now, *then)


def _reach(
    tries: Tries, flips: BoolArray, own: Float32Array, way: int
) -> tuple[Float32Array, Float32Array, Float32Array, Float32Array]:
    """Value, start, end and holds of one feature in one direction, a number a case."""
    if way == DOWN:  # in the mirror, where down is up
        value, start, end, holds = _reach(tries.mirrored(), flips[:, ::-1], -own, UP)
        return -value, -end, -start, -holds
    places, none = np.arange(len(tries)), len(tries)
    turning = flips & (tries.low > own[:, None])  # a cell nobody is in has no low: it is not offered
    found, first = turning.any(axis=1), turning.argmax(axis=1)
    before = np.where(~flips & (places <= first[:, None]), places, -1).max(axis=1)
    after = np.where(~flips & (places >= first[:, None]), places, none).min(axis=1)
    value, start, end = tries.low[first], tries.lower[np.minimum(before + 1, none - 1)], tries.upper[after - 1]
    first_turn = np.where(flips & (tries.upper > own[:, None]), places, none).min(axis=1)
    steady = (tries.high > own[:, None]) & (places < first_turn[:, None])
    holds = np.where(steady, tries.high, np.nan)[np.arange(len(own)), none - 1 - steady[:, ::-1].argmax(axis=1)]
    return (*(np.where(found, part, np.nan).astype(np.float32) for part in (value, start, end)), holds)
