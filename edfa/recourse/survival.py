"""Survival: will today's decision, and a plan for it, still stand when everything is known?

A person's unknown features are filled in from the training people who are nearest on the known ones: each is one
*completion*. The model is asked about each completion as it is and with the plan made. The plan survives in a
completion if the decision is today's and the plan turns it; its survival is the share of completions in which it does.
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
from edfa.recourse.consequences import Consequences
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Completions", "PlannedChanges", "Survival", "add_survival"]

ROWS = 50_000  # in one model call: few enough to stay in a processor's cache
FEW = 16  # people for whom a call asks about more than may be needed: a call costs more than its rows
HEATS, HEATS_OF_FEW = (1, 2, 4, 8, 16, sys.maxsize), (4, 16, sys.maxsize)  # ranks up to which plans share a call


class Survival(NamedTuple):
    """The probability that each plan survives, and the standard error of that estimate, (plans,) each."""

    probability: Float64Array
    error: Float64Array


@dataclass(frozen=True, eq=False)
class PlannedChanges:
    """Change sets for people of a batch.

    Parameters
    ----------
    people
        The batch.
    of
        The row of ``people`` that each change set is for, (plans,).
    to
        The new values, (plans, features); NaN: unchanged.
    desired_class
        A class code; None: any other decision than today's is recourse.
    consequences
        What follows from the changes; None: nothing does.
    """

    people: People
    of: IntArray
    to: Float32Array
    desired_class: int | None = None
    consequences: Consequences | None = None

    def __len__(self) -> int:
        return len(self.of)

    def take(self, rows: IntArray) -> "PlannedChanges":
        """Some of the plans, for the same people."""
        return replace(self, of=self.of[rows], to=self.to[rows])

    def turned(self, plan: IntArray, decided: IntArray) -> BoolArray:
        """Whether the class code ``decided`` (n,) is recourse for the person of ``plan`` (n,)."""
        if self.desired_class is not None:
            return np.asarray(decided == self.desired_class)
        return np.asarray(decided != self.people.decision[self.of[plan]])


@dataclass(frozen=True, eq=False)
class Completions:
    """Fills in a person's unknown features from the k training people who are nearest on the known ones.

    Parameters
    ----------
    neighbours
        The training people to complete others from.
    cache
        Results that are worked out once for a model and a set of known features.

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
        """Completions from at most 10,000 training people; the rows ``without`` complete nobody.

        ``k`` is the number of completions a person, ``cache`` a cache to share; a new one if None.
        """
        if k < 2:
            raise SettingError(f"k: at least 2 completions a person, not {k}")
        rows = np.setdiff1d(np.arange(len(train)), np.asarray(list(without), dtype=np.intp))
        categorical = [i for i, feature in enumerate(train.schema) if feature.kind == "categorical"]
        return cls(Neighbours.of(train.X[rows], categorical, k=k), ModelCache() if cache is None else cache)

    def survives(self, plans: PlannedChanges) -> BoolArray:
        """In which completions of its person each plan survives, (plans, k); k is 1 if everything is known."""
        return _survives(plans, *self._complete(plans.people, plans.consequences))

    def decision_stability(self, people: People) -> Float64Array:
        """The share of completions in which each person's decision stays what it is, (people,)."""
        return np.asarray(self._complete(people)[1].mean(axis=1))

    def survival(self, plans: PlannedChanges) -> Survival:
        """The share of completions in which each plan survives; the error is 0 if the model sees everything already."""
        seen = plans.people.predictor.varies_
        unsure = np.asarray(np.isnan(plans.people.X[:, seen]).any(axis=1))
        estimate = _share(self.survives(plans))
        return Survival(estimate.probability, np.where(unsure[plans.of], estimate.error, 0.0))

    def race(self, plans: PlannedChanges, rank: IntArray, enough: float = 1.0) -> Survival:
        """Survival in rank order; stops early and leaves NaN for plans that cannot survive better than an earlier one.

        ``rank`` (plans,) counts from 0 within each person. Once a plan survives wherever the decision stays, or in a
        share ``enough`` of completions, later ones are not asked about.
        """
        people, of = plans.people, plans.of
        survival = Survival(*(np.full(len(plans), np.nan) for _ in range(2)))
        if not np.isnan(people.X[:, people.predictor.varies_]).any():  # a plan that works now works then
            survival.probability[rank == 0], survival.error[rank == 0] = 1.0, 0.0
            return survival
        heats = HEATS_OF_FEW if len(people) <= FEW else HEATS
        filled, first = self._fill(people, plans.consequences), np.flatnonzero(rank < heats[0])
        same, survives = _ask(plans.take(first), filled)
        survival.probability[first], survival.error[first] = _share(survives)
        best, most = np.full(len(same), -1.0), np.minimum(same.sum(axis=1) / same.shape[1], enough)
        np.maximum.at(best, of[first], survival.probability[first])
        for start, end in pairwise(heats):
            left = np.flatnonzero((rank >= start) & (rank < end) & (best < most)[of])
            if not len(left):
                break
            survival.probability[left], survival.error[left] = _share(_survives(plans.take(left), filled, same))
            np.maximum.at(best, of[left], survival.probability[left])
        return survival

    def _fill(self, people: People, consequences: Consequences | None = None) -> "_Filled":
        """The completions of all people as the model sees them; ``consequences`` of the plans that they are for."""
        predictor = people.predictor
        seen = np.flatnonzero(predictor.varies_)
        own = people.X[:, None, seen]
        if not np.isnan(own).any():
            return _Filled(own)
        near = self.neighbours.nearest(people.X)
        rows = np.where(np.isnan(own), self.neighbours.rows[near[:, :, None], seen], own)
        if len(near) <= FEW:
            return _Filled(rows)
        first_equal = np.empty(near.shape, dtype=np.intp)
        for mask, members in by_mask(people.X):
            first_equal[members] = _first_equal(self._kinds(predictor, mask, consequences)[near[members]])
        return _Filled(rows, first_equal)

    def _kinds(self, predictor: Predictor, mask: BoolArray, consequences: Consequences | None) -> IntArray:
        """A number for each training person, equal if the model cannot tell two of them apart by the unknown features.

        ``mask`` (features,) marks the known features. What may follow from a plan is told apart by every value.
        """
        exact = np.zeros(len(mask), dtype=bool) if consequences is None else consequences.involved

        def make() -> IntArray:
            cells: list[AnyArray] = [np.zeros(len(self.neighbours.rows))]
            for feature in np.flatnonzero(predictor.varies_ & ~mask).tolist():
                values, cuts = self.neighbours.rows[:, feature], predictor.cells(predictor.varies_, feature)
                if cuts is None or exact[feature]:
                    cells.append(values)
                else:
                    cells.append(np.searchsorted(cuts, values, side="right"))
            return np.unique(np.stack(cells), axis=1, return_inverse=True)[1].reshape(-1)

        return self.cache.get(predictor, mask, ("kinds", self, exact.tobytes()), make)

    def _complete(self, people: People, consequences: Consequences | None = None) -> tuple["_Filled", BoolArray]:
        """The completions, and in which of them the decision is today's, (people, k)."""
        filled = self._fill(people, consequences)
        nothing = PlannedChanges(people, np.zeros(0, dtype=np.intp), people.X[:0])
        return filled, _ask(nothing, filled)[0]


class _Filled(NamedTuple):
    """Completions as the model sees them.

    ``rows`` is (people, k, features that the model sees). ``first_equal`` (people, k) is the index of the person's
    first completion that is the same to the model; None: every completion counts as different.
    """

    rows: Float32Array
    first_equal: IntArray | None = None

    @property
    def first(self) -> BoolArray:
        """Which completions need to be asked about, (people, k): the others equal an earlier one."""
        if self.first_equal is None:
            return np.ones(self.rows.shape[:2], dtype=bool)
        return np.asarray(self.first_equal == np.arange(self.first_equal.shape[1]))

    def spread(self, answers: BoolArray, of: IntArray | slice = slice(None)) -> BoolArray:
        """Answers about first completions of the people ``of`` (n,), copied to all equal ones; (n, k) to (n, k)."""
        return answers if self.first_equal is None else np.take_along_axis(answers, self.first_equal[of], axis=1)


def add_survival(plans: Plans, train: Table, *, desired_class: int | str | None = None, k: int = 32) -> Plans:
    """The same plans, of any searcher, with ``survival`` and ``survival_error`` filled in.

    Parameters
    ----------
    plans
        Plans whose people have a model.
    train
        The training people to complete others from.
    desired_class
        The name or code of the class that plans should lead to; None: that of ``find_recourse``.
    k
        The number of completions a person, at least 2.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> known = table.test.X[:20].copy()
    >>> known[:, 10:] = np.nan
    >>> people = edfa.People(known, edfa.Background.of(table.train, model))
    >>> plans = add_survival(edfa.find_recourse(people, edfa.Nearest(table.train)), table.train)
    >>> bool(((plans.survival >= 0) & (plans.survival <= 1)).all())
    True
    """
    people = plans.people
    if people.background.model is None:
        raise DataError("these plans were read from a file and have no predictor; only one can say if they last")
    aim = plans.provenance.desired_class if desired_class is None else people.background.class_code(desired_class)
    planned, position = np.unique(plans.of, return_inverse=True)
    rows = People(people.X[planned], people.background, decided=plans.decision[planned])
    estimate = Completions.of(train, k).survival(PlannedChanges(rows, position, plans.to, aim, plans.consequences))
    provenance = replace(plans.provenance, completions={"X": train.X, "k": k})
    return replace(plans, survival=estimate.probability, survival_error=estimate.error, provenance=provenance)


def _ask(plans: PlannedChanges, filled: _Filled) -> tuple[BoolArray, BoolArray]:
    """In which completions the decision is today's (people, k), and the plans survive (plans, k); one model call."""
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
    """In which completions the plans survive, (plans, k); ``same`` (people, k): where the decision is today's."""
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
    """The completions that are ``asked`` about (plans, k) with the plan's changes made, and the plan of each.

    Returns the plans (n,) and the rows (n, features that the model sees).
    """
    plan, completion = np.nonzero(asked)
    rows, new = filled.rows[plans.of[plan], completion], plans.to[:, plans.people.predictor.varies_][plan]
    if plans.consequences is not None and not plans.consequences.nothing:
        return plan, plans.consequences.apply(np.flatnonzero(plans.people.predictor.varies_), rows, new)[0]
    np.copyto(rows, new, where=~np.isnan(new))
    return plan, rows


def _first_equal(kind: IntArray) -> IntArray:
    """For every entry of a row, the index of the first entry of that row that is equal to it.

    >>> _first_equal(np.array([[7, 3, 7, 3, 1]]))
    array([[0, 1, 0, 1, 4]])
    """
    order = np.argsort(kind, axis=1, kind="stable")
    ordered = np.take_along_axis(kind, order, axis=1)
    new = np.ones_like(ordered, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.maximum.accumulate(np.where(new, np.arange(kind.shape[1]), 0), axis=1)
    first = np.empty_like(order)
    np.put_along_axis(first, order, np.take_along_axis(order, start, axis=1), axis=1)
    return first


def _share(survives: BoolArray) -> Survival:
    """The share of completions (plans, k) in which each plan survives, with its standard error."""
    times, count = survives.sum(axis=1), survives.shape[1]
    # Agresti and Coull's centre: an estimate of 0 or 1 from a few completions is not certain.
    centre = (times + 2) / (count + 4)
    return Survival(times / count, np.sqrt(centre * (1 - centre) / (count + 4)))


def _decide(predictor: Predictor, rows: Float32Array) -> IntArray:
    """What is decided from complete rows, (n, features that the model sees) to (n,)."""
    if len(rows) <= ROWS:
        return predictor.decide(predictor.predict_known(predictor.varies_, rows)) if len(rows) else np.zeros(0, np.intp)
    parts = np.array_split(rows, -(-len(rows) // ROWS))
    return np.concatenate([predictor.decide(predictor.predict_known(predictor.varies_, part)) for part in parts])
