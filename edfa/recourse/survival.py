"""Survival: will today's decision, and a plan for it, still stand when everything is known?

What is not known of a person is filled in from the training people nearest on what is. The model that sees everything
is asked about each completion, as it is and with the plan made. The plan survives where the decision is today's and
the plan turns it; its survival is the share of completions in which it does.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from edfa.data.table import Table
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.predictors.base import Predictor, by_mask
from edfa.predictors.cache import ModelCache
from edfa.predictors.conditional import Neighbours
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Completions", "Survival", "survive"]

ROWS = 50_000  # in one model call: few enough to stay in a processor's cache
KEPT = 512  # sets of known features for which training people are numbered
FEW = 16  # people of whom more is asked in a call than may be needed: a call costs more than its rows
HEATS, HEATS_OF_FEW = (1, 2, 4, 8, 16, sys.maxsize), (4, 16, sys.maxsize)  # plans asked about together, by their places


class Survival(NamedTuple):
    """The chance that each plan survives, and the standard error of that estimate."""

    chance: Float64Array
    error: Float64Array


@dataclass(frozen=True, eq=False)
class Completions:
    """Training people who complete others: k of them for everybody, the nearest on what is known.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> known = table.test.X[:2].copy()
    >>> known[:, 5:] = np.nan
    >>> filled = Completions.of(table.train).neighbours.complete(known)
    >>> filled.shape, bool((filled[:, :, :5] == known[:, None, :5]).all())
    ((2, 32, 20), True)
    """

    neighbours: Neighbours
    _kept: ModelCache = field(default_factory=lambda: ModelCache(KEPT), init=False, repr=False)

    @classmethod
    def of(cls, train: Table, k: int = 32, *, without: Iterable[int] = ()) -> "Completions":
        """From at most 10,000 training people, ``without`` these rows."""
        if k < 2:
            raise SettingError(f"k: at least 2 completions a person, not {k}")
        kept = np.setdiff1d(np.arange(len(train)), np.asarray(list(without), dtype=np.intp))
        words = [i for i, f in enumerate(train.schema) if f.kind == "categorical"]
        return cls(Neighbours.of(train.X[kept], words, k=k))

    def stands(self, people: "Decided", of: IntArray, to: Float32Array) -> BoolArray:
        """In which completion of the person it is for each plan survives (plans, k, or 1 where nothing is unknown).

        ``to`` has a row a plan and a column a feature; NaN: unchanged.
        """
        return _stands(people, *self._complete(people), of, to)

    def steady(self, people: "Decided") -> Float64Array:
        """How often each person's decision itself stays what it is."""
        return np.asarray(self._complete(people)[1].mean(axis=1))

    def survival(self, people: "Decided", of: IntArray, to: Float32Array) -> Survival:
        """How often each plan survives."""
        unsure = np.asarray(np.isnan(people.X[:, people.predictor.varies_]).any(axis=1))
        found = _share(self.stands(people, of, to))
        return Survival(found.chance, np.where(unsure[of], found.error, 0.0))

    def race(self, people: "Decided", of: IntArray, to: Float32Array, place: IntArray, enough: float = 1.0) -> Survival:
        """The same, but NaN for plans that cannot survive better than one before them; ``place`` is from 0 on for each.

        As soon as a plan survives wherever the decision stays, or ``enough``, all that come after it need not be asked
        about.
        """
        found = Survival(*(np.full(len(of), np.nan) for _ in range(2)))
        if not np.isnan(people.X[:, people.predictor.varies_]).any():  # a plan that works now works then
            found.chance[place == 0], found.error[place == 0] = 1.0, 0.0
            return found
        heats = HEATS_OF_FEW if len(people.X) <= FEW else HEATS
        filled, first = self._fill(people), np.flatnonzero(place < heats[0])
        same, stands = _ask(people, filled, of[first], to[first])
        found.chance[first], found.error[first] = _share(stands)
        best, most = np.full(len(same), -1.0), np.minimum(same.sum(axis=1) / same.shape[1], enough)
        np.maximum.at(best, of[first], found.chance[first])
        for start, end in pairwise(heats):
            left = np.flatnonzero((place >= start) & (place < end) & (best < most)[of])
            if not len(left):
                break
            found.chance[left], found.error[left] = _share(_stands(people, filled, same, of[left], to[left]))
            np.maximum.at(best, of[left], found.chance[left])
        return found

    def _fill(self, people: "Decided") -> "_Filled":
        """What the model sees of each completion."""
        seen = np.flatnonzero(people.predictor.varies_)
        own = people.X[:, None, seen]
        if not np.isnan(own).any():
            return _Filled(own)
        near = self.neighbours.nearest(people.X)
        rows = np.where(np.isnan(own), self.neighbours.rows[near[:, :, None], seen], own)
        if len(near) <= FEW:
            return _Filled(rows)
        alike = np.empty(near.shape, dtype=np.intp)
        for mask, who in by_mask(people.X):
            alike[who] = _alike(self._kinds(people.predictor, mask)[near[who]])
        return _Filled(rows, alike)

    def _kinds(self, predictor: Predictor, mask: BoolArray) -> IntArray:
        """Training people whom the model cannot tell apart by what is not known have the same number."""

        def make() -> IntArray:
            cells: list[AnyArray] = [np.zeros(len(self.neighbours.rows))]
            for feature in np.flatnonzero(predictor.varies_ & ~mask).tolist():
                values, cuts = self.neighbours.rows[:, feature], predictor.cells(predictor.varies_, feature)
                cells.append(values if cuts is None else np.searchsorted(cuts, values, side="right"))
            return np.unique(np.stack(cells), axis=1, return_inverse=True)[1].reshape(-1)

        return self._kept.get(predictor, mask, "kinds", make)

    def _complete(self, people: "Decided") -> tuple["_Filled", BoolArray]:
        """The completions, and of which the model decides as now (people, k)."""
        filled = self._fill(people)
        return filled, _ask(people, filled, np.zeros(0, dtype=np.intp), people.X[:0])[0]


class _Filled(NamedTuple):
    """Completions as the model sees them (people, k, columns); of each, if told, the first that is the same to it."""

    rows: Float32Array
    alike: IntArray | None = None

    @property
    def first(self) -> BoolArray:
        """Those that need to be asked about: the others are the same as one before."""
        if self.alike is None:
            return np.ones(self.rows.shape[:2], dtype=bool)
        return np.asarray(self.alike == np.arange(self.alike.shape[1]))

    def spread(self, found: BoolArray, of: IntArray | slice = slice(None)) -> BoolArray:
        """What was found of the first ones of these people, for all that are the same."""
        return found if self.alike is None else np.take_along_axis(found, self.alike[of], axis=1)


class Decided(NamedTuple):
    """Partially known rows, what is decided about them now, and where they want to be (positions of classes)."""

    X: Float32Array
    now: IntArray
    predictor: Predictor
    wanted: int | None = None


def survive(plans: Plans, train: Table, *, wanted: int | None = None, k: int = 32) -> Plans:
    """The plans, told how likely each is to survive; for plans of any searcher.

    ``train`` are the people to complete others from. ``wanted`` is what ``find_recourse`` was told, unless given.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:20].copy()
    >>> known[:, 10:] = np.nan
    >>> people = edfa.People(known, table.schema, table.encoder, model)
    >>> plans = survive(edfa.find_recourse(people, edfa.Nearest(table.train)), table.train)
    >>> bool(((plans.survival >= 0) & (plans.survival <= 1)).all())
    True
    """
    people, predictor = plans.people, plans.people.predictor
    if predictor is None:
        raise DataError("these plans were read from a file and have no predictor; only one can say if they last")
    aim = plans.made.get("wanted") if wanted is None else wanted
    if aim is not None and aim not in predictor.classes_:
        raise UnknownNameError("class", aim, predictor.classes_)
    goal = None if aim is None else int(np.searchsorted(predictor.classes_, aim))
    now = np.searchsorted(predictor.classes_, plans.decision)
    asked, place = np.unique(plans.of, return_inverse=True)
    rows = Decided(people.X[asked], now[asked], predictor, goal)
    found = Completions.of(train, k).survival(rows, place, plans.to)
    made = {**plans.made, "survival": [train, k]}
    return replace(plans, survival=found.chance, survival_error=found.error, made=made)


def _ask(people: Decided, filled: _Filled, of: IntArray, to: Float32Array) -> tuple[BoolArray, BoolArray]:
    """Where the decision is as now, and where the plans survive, in one call for both."""
    first = filled.first
    person, plan, rows = np.nonzero(first)[0], *_changed(people, filled, of, to, first[of])
    decided = _decide(people.predictor, np.concatenate([filled.rows[first], rows]))
    same, stands = np.zeros_like(first), np.zeros((len(of), first.shape[1]), dtype=bool)
    same[first] = decided[: len(person)] == people.now[person]
    stands[first[of]] = _turned(people, decided[len(person) :], people.now[of[plan]])
    same = filled.spread(same)
    return same, filled.spread(stands, of) & same[of]


def _stands(people: Decided, filled: _Filled, same: BoolArray, of: IntArray, to: Float32Array) -> BoolArray:
    """Where the decision is as now, and the plan turns it."""
    stands = np.zeros((len(of), same.shape[1]), dtype=bool)
    asked = same & filled.first  # elsewhere every plan is lost with the decision
    for part in np.array_split(np.arange(len(of)), -(-len(of) * same.shape[1] // ROWS) or 1):  # each a copy of rows
        plan, rows = _changed(people, filled, of[part], to[part], asked[of[part]])
        found = np.zeros((len(part), same.shape[1]), dtype=bool)
        found[asked[of[part]]] = _turned(people, _decide(people.predictor, rows), people.now[of[part][plan]])
        stands[part] = filled.spread(found, of[part])
    return stands


def _changed(
    people: Decided, filled: _Filled, of: IntArray, to: Float32Array, asked: BoolArray
) -> tuple[IntArray, Float32Array]:
    """The completions that are asked about (plans, k) with each plan's changes made, and the plan of each."""
    plan, completion = np.nonzero(asked)
    rows, new = filled.rows[of[plan], completion], to[:, people.predictor.varies_][plan]
    np.copyto(rows, new, where=~np.isnan(new))
    return plan, rows


def _alike(kind: IntArray) -> IntArray:
    """Of every entry of a row, the place of the first one that is equal.

    >>> _alike(np.array([[7, 3, 7, 3, 1]]))
    array([[0, 1, 0, 1, 4]])
    """
    order = np.argsort(kind, axis=1, kind="stable")
    ordered = np.take_along_axis(kind, order, axis=1)
    new = np.ones_like(ordered, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.maximum.accumulate(np.where(new, np.arange(kind.shape[1]), 0), axis=1)
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.take_along_axis(order, start, axis=1), axis=1)
    return found


def _turned(people: Decided, then: IntArray, now: IntArray) -> BoolArray:
    """Whether decisions are recourse from today's."""
    return np.asarray(then != now if people.wanted is None else then == people.wanted)


def _share(stands: BoolArray) -> Survival:
    """How often, with the standard error."""
    times, count = stands.sum(axis=1), stands.shape[1]
    # Agresti and Coull's centre: an estimate of 0 or 1 from a few completions is not certain.
    centre = (times + 2) / (count + 4)
    return Survival(times / count, np.sqrt(centre * (1 - centre) / (count + 4)))


def _decide(predictor: Predictor, rows: Float32Array) -> IntArray:
    """From everything that the model sees."""
    if len(rows) <= ROWS:
        return predictor.decide(predictor.predict_known(predictor.varies_, rows)) if len(rows) else np.zeros(0, np.intp)
    parts = np.array_split(rows, -(-len(rows) // ROWS))
    return np.concatenate([predictor.decide(predictor.predict_known(predictor.varies_, part)) for part in parts])
