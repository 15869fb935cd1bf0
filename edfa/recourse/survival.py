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
from edfa.errors import DataError, SettingError
from edfa.people import People
from edfa.predictors.base import Predictor, by_mask
from edfa.predictors.cache import ModelCache
from edfa.predictors.conditional import Neighbours
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Completions", "PlannedChanges", "Survival", "survive"]

ROWS = 50_000  # in one model call: few enough to stay in a processor's cache
FEW = 16  # people of whom more is asked in a call than may be needed: a call costs more than its rows
HEATS, HEATS_OF_FEW = (1, 2, 4, 8, 16, sys.maxsize), (4, 16, sys.maxsize)  # plans asked about together, by their places


class Survival(NamedTuple):
    """The chance that each plan survives, and the standard error of that estimate."""

    chance: Float64Array
    error: Float64Array


@dataclass(frozen=True, eq=False)
class PlannedChanges:
    """Change sets for people of a batch.

    ``of`` (plans,) is the row of ``people`` that each is for; ``to`` (plans, features) what changes, NaN: nothing.
    ``desired_class`` is a class code; None: any other decision than today's is recourse.
    """

    people: People
    of: IntArray
    to: Float32Array
    desired_class: int | None = None

    def __len__(self) -> int:
        return len(self.of)

    def take(self, rows: IntArray) -> "PlannedChanges":
        """Some of the plans, for the same people."""
        return replace(self, of=self.of[rows], to=self.to[rows])

    def turned(self, plan: IntArray, decided: IntArray) -> BoolArray:
        """Whether ``decided`` is recourse for the person of each ``plan``."""
        if self.desired_class is not None:
            return np.asarray(decided == self.desired_class)
        return np.asarray(decided != self.people.decision[self.of[plan]])


@dataclass(frozen=True, eq=False)
class Completions:
    """What is not known of a person, filled in from the k training people nearest on what is.

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
    cache: ModelCache = field(default_factory=ModelCache, repr=False)

    @classmethod
    def of(
        cls, train: Table, k: int = 32, *, without: Iterable[int] = (), cache: ModelCache | None = None
    ) -> "Completions":
        """From at most 10,000 training people, ``without`` these rows."""
        if k < 2:
            raise SettingError(f"k: at least 2 completions a person, not {k}")
        rows = np.setdiff1d(np.arange(len(train)), np.asarray(list(without), dtype=np.intp))
        categorical = [i for i, feature in enumerate(train.schema) if feature.kind == "categorical"]
        return cls(Neighbours.of(train.X[rows], categorical, k=k), cache or ModelCache())

    def survives(self, plans: PlannedChanges) -> BoolArray:
        """In which completion of its person each plan survives, (plans, k); k is 1 where nothing is unknown."""
        return _survives(plans, *self._complete(plans.people))

    def decision_stability(self, people: People) -> Float64Array:
        """The share of completions in which each person's decision stays what it is, (people,)."""
        return np.asarray(self._complete(people)[1].mean(axis=1))

    def survival(self, plans: PlannedChanges) -> Survival:
        """The share of completions in which each plan survives."""
        seen = plans.people.predictor.varies_
        unsure = np.asarray(np.isnan(plans.people.X[:, seen]).any(axis=1))
        estimate = _share(self.survives(plans))
        return Survival(estimate.chance, np.where(unsure[plans.of], estimate.error, 0.0))

    def race(self, plans: PlannedChanges, rank: IntArray, enough: float = 1.0) -> Survival:
        """Survival in rank order; stops early and leaves NaN for plans that cannot survive better than an earlier one.

        ``rank`` (plans,) counts from 0 within each person. Once a plan survives wherever the decision stays, or in a
        share ``enough`` of completions, later ones are not asked about.
        """
        people, of = plans.people, plans.of
        survival = Survival(*(np.full(len(plans), np.nan) for _ in range(2)))
        if not np.isnan(people.X[:, people.predictor.varies_]).any():  # a plan that works now works then
            survival.chance[rank == 0], survival.error[rank == 0] = 1.0, 0.0
            return survival
        heats = HEATS_OF_FEW if len(people) <= FEW else HEATS
        filled, first = self._fill(people), np.flatnonzero(rank < heats[0])
        same, survives = _ask(plans.take(first), filled)
        survival.chance[first], survival.error[first] = _share(survives)
        best, most = np.full(len(same), -1.0), np.minimum(same.sum(axis=1) / same.shape[1], enough)
        np.maximum.at(best, of[first], survival.chance[first])
        for start, end in pairwise(heats):
            left = np.flatnonzero((rank >= start) & (rank < end) & (best < most)[of])
            if not len(left):
                break
            survival.chance[left], survival.error[left] = _share(_survives(plans.take(left), filled, same))
            np.maximum.at(best, of[left], survival.chance[left])
        return survival

    def _fill(self, people: People) -> "_Filled":
        """The completions as the model sees them."""
        predictor = people.predictor
        seen = np.flatnonzero(predictor.varies_)
        own = people.X[:, None, seen]
        if not np.isnan(own).any():
            return _Filled(own)
        near = self.neighbours.nearest(people.X)
        rows = np.where(np.isnan(own), self.neighbours.rows[near[:, :, None], seen], own)
        if len(near) <= FEW:
            return _Filled(rows)
        alike = np.empty(near.shape, dtype=np.intp)
        for mask, who in by_mask(people.X):
            alike[who] = _alike(self._kinds(predictor, mask)[near[who]])
        return _Filled(rows, alike)

    def _kinds(self, predictor: Predictor, mask: BoolArray) -> IntArray:
        """A number for each training person, the same for those whom the model cannot tell apart by what is unknown."""

        def make() -> IntArray:
            cells: list[AnyArray] = [np.zeros(len(self.neighbours.rows))]
            for feature in np.flatnonzero(predictor.varies_ & ~mask).tolist():
                values, cuts = self.neighbours.rows[:, feature], predictor.cells(predictor.varies_, feature)
                cells.append(values if cuts is None else np.searchsorted(cuts, values, side="right"))
            return np.unique(np.stack(cells), axis=1, return_inverse=True)[1].reshape(-1)

        return self.cache.get(predictor, mask, ("kinds", self), make)

    def _complete(self, people: People) -> tuple["_Filled", BoolArray]:
        """The completions, and in which of them the model decides as now, (people, k)."""
        filled = self._fill(people)
        nothing = PlannedChanges(people, np.zeros(0, dtype=np.intp), people.X[:0])
        return filled, _ask(nothing, filled)[0]


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


def survive(plans: Plans, train: Table, *, desired_class: int | str | None = None, k: int = 32) -> Plans:
    """The plans, told how likely each is to survive; for plans of any searcher.

    ``train`` are the people to complete others from. ``desired_class`` is what ``find_recourse`` was told, unless given.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:20].copy()
    >>> known[:, 10:] = np.nan
    >>> people = edfa.People(known, edfa.Background.of(table.train, model))
    >>> plans = survive(edfa.find_recourse(people, edfa.Nearest(table.train)), table.train)
    >>> bool(((plans.survival >= 0) & (plans.survival <= 1)).all())
    True
    """
    people = plans.people
    if people.background.model is None:
        raise DataError("these plans were read from a file and have no predictor; only one can say if they last")
    aim = plans.provenance.desired_class if desired_class is None else people.background.class_code(desired_class)
    asked, position = np.unique(plans.of, return_inverse=True)
    rows = People(people.X[asked], people.background, decided=plans.decision[asked])
    estimate = Completions.of(train, k).survival(PlannedChanges(rows, position, plans.to, aim))
    provenance = replace(plans.provenance, completions={"X": train.X, "k": k})
    return replace(plans, survival=estimate.chance, survival_error=estimate.error, provenance=provenance)


def _ask(plans: PlannedChanges, filled: _Filled) -> tuple[BoolArray, BoolArray]:
    """Where the decision is as now (people, k), and where the plans survive (plans, k), in one call for both."""
    first, people = filled.first, plans.people
    person = np.nonzero(first)[0]
    plan, rows = _changed(plans, filled, first[plans.of])
    decided = _decide(people.predictor, np.concatenate([filled.rows[first], rows]))
    same, survives = np.zeros_like(first), np.zeros((len(plans), first.shape[1]), dtype=bool)
    same[first] = decided[: len(person)] == people.decision[person]
    survives[first[plans.of]] = plans.turned(plan, decided[len(person) :])
    same = filled.spread(same)
    return same, filled.spread(survives, plans.of) & same[plans.of]


def _survives(plans: PlannedChanges, filled: _Filled, same: BoolArray) -> BoolArray:
    """Where the decision is as now and the plan turns it, (plans, k)."""
    survives = np.zeros((len(plans), same.shape[1]), dtype=bool)
    asked = same & filled.first  # elsewhere every plan is lost with the decision
    for rows in np.array_split(np.arange(len(plans)), -(-len(plans) * same.shape[1] // ROWS) or 1):  # each a copy
        part = plans.take(rows)
        plan, changed = _changed(part, filled, asked[part.of])
        turned = np.zeros((len(rows), same.shape[1]), dtype=bool)
        turned[asked[part.of]] = part.turned(plan, _decide(plans.people.predictor, changed))
        survives[rows] = filled.spread(turned, part.of)
    return survives


def _changed(plans: PlannedChanges, filled: _Filled, asked: BoolArray) -> tuple[IntArray, Float32Array]:
    """The completions that are asked about (plans, k) with each plan's changes made, and the plan of each."""
    plan, completion = np.nonzero(asked)
    rows, new = filled.rows[plans.of[plan], completion], plans.to[:, plans.people.predictor.varies_][plan]
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
