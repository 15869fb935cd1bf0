"""Survival: will today's decision, and a plan for it, still stand when everything is known?

What is not known of a person is filled in from the training people nearest on what is. The model that sees everything
is asked about each completion, as it is and with the plan made. The plan survives where the decision is today's and
the plan turns it; its survival is the share of completions in which it does.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edfa.data.table import Table
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.predictors.base import Floats, Predictor
from edfa.predictors.conditional import Neighbours
from edfa.recourse.plans import Plans
from edfa.recourse.rules import Bools, Reals

__all__ = ["Completions", "Survival", "survive"]

Codes = npt.NDArray[np.intp]
ROWS = 50_000  # in one model call: few enough to stay in a processor's cache
HEATS = (4, 16, sys.maxsize)  # plans that are asked about together, by their places


class Survival(NamedTuple):
    """The chance that each plan survives, and the standard error of that estimate."""

    chance: Reals
    error: Reals


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

    @classmethod
    def of(cls, train: Table, k: int = 32, *, without: Iterable[int] = ()) -> "Completions":
        """From at most 10,000 training people, ``without`` these rows."""
        if k < 2:
            raise SettingError(f"k: at least 2 completions a person, not {k}")
        kept = np.setdiff1d(np.arange(len(train)), np.asarray(list(without), dtype=np.intp))
        words = [i for i, f in enumerate(train.schema) if f.kind == "categorical"]
        return cls(Neighbours.of(train.X[kept], words, k=k))

    def stands(self, people: "Decided", of: Codes, to: Floats) -> Bools:
        """In which completion of the person it is for each plan survives (plans, k, or 1 where nothing is unknown).

        ``to`` has a row a plan and a column a feature; NaN: unchanged.
        """
        return _stands(people, *self._complete(people), of, to)

    def steady(self, people: "Decided") -> Reals:
        """How often each person's decision itself stays what it is."""
        return np.asarray(self._complete(people)[1].mean(axis=1))

    def survival(self, people: "Decided", of: Codes, to: Floats) -> Survival:
        """How often each plan survives."""
        unsure = np.asarray(np.isnan(people.X[:, people.predictor.varies_]).any(axis=1))
        found = _share(self.stands(people, of, to))
        return Survival(found.chance, np.where(unsure[of], found.error, 0.0))

    def race(self, people: "Decided", of: Codes, to: Floats, place: Codes) -> Survival:
        """The same, but NaN for plans that cannot survive better than one before them; ``place`` is from 0 on for each.

        As soon as a plan survives wherever the decision stays, all that come after it need not be asked about.
        """
        found = Survival(*(np.full(len(of), np.nan) for _ in range(2)))
        if not np.isnan(people.X[:, people.predictor.varies_]).any():  # a plan that works now works then
            found.chance[place == 0], found.error[place == 0] = 1.0, 0.0
            return found
        filled, first = self._fill(people), np.flatnonzero(place < HEATS[0])
        same, stands = _ask(people, filled, of[first], to[first])
        found.chance[first], found.error[first] = _share(stands)
        best, most = np.full(len(same), -1), same.sum(axis=1)
        np.maximum.at(best, of[first], stands.sum(axis=1))
        for start, end in pairwise(HEATS):
            left = np.flatnonzero((place >= start) & (place < end) & (best < most)[of])
            if not len(left):
                break
            stands = _stands(people, filled, same, of[left], to[left])
            np.maximum.at(best, of[left], stands.sum(axis=1))
            found.chance[left], found.error[left] = _share(stands)
        return found

    def _fill(self, people: "Decided") -> Floats:
        """What the model sees of each completion (people, k, columns)."""
        return self.neighbours.complete(people.X)[:, :, people.predictor.varies_]

    def _complete(self, people: "Decided") -> tuple[Floats, Bools]:
        """What the model sees of each completion (people, k, columns), and whether it decides as now (people, k)."""
        seen = people.predictor.varies_
        whole = not np.isnan(people.X[:, seen]).any()
        filled = people.X[:, None, seen] if whole else self._fill(people)
        decided = _decide(people.predictor, filled.reshape(-1, filled.shape[2]))
        return filled, decided.reshape(filled.shape[:2]) == people.now[:, None]


class Decided(NamedTuple):
    """Partially known rows, what is decided about them now, and where they want to be (positions of classes)."""

    X: Floats
    now: Codes
    predictor: Predictor
    wanted: int | None = None


def survive(plans: Plans, train: Table, *, wanted: int | None = None, k: int = 32) -> Plans:
    """The plans, told how likely each is to survive; for plans of any searcher.

    ``train`` are the people to complete others from. ``wanted`` is what ``find_recourse`` was told, unless given.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(trees=20).fit(table.train.X, table.train.y)
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


def _ask(people: Decided, filled: Floats, of: Codes, to: Floats) -> tuple[Bools, Bools]:
    """Where the decision is as now, and where the plans survive, in one call for both."""
    rows, new = filled[of], to[:, None, people.predictor.varies_]
    np.copyto(rows, new, where=~np.isnan(new))
    width = filled.shape[2]
    decided = _decide(people.predictor, np.concatenate([filled.reshape(-1, width), rows.reshape(-1, width)]))
    same = decided[: filled.shape[0] * filled.shape[1]].reshape(filled.shape[:2]) == people.now[:, None]
    then = decided[same.size :].reshape(len(of), filled.shape[1])
    return same, _turned(people, then, people.now[of][:, None]) & same[of]


def _stands(people: Decided, filled: Floats, same: Bools, of: Codes, to: Floats) -> Bools:
    """Where the decision is as now, and the plan turns it."""
    changes, stands = to[:, people.predictor.varies_], np.zeros((len(of), same.shape[1]), dtype=bool)
    plan, completion = np.nonzero(same[of])  # elsewhere every plan is lost with the decision
    for part in np.array_split(np.arange(len(plan)), -(-len(plan) // ROWS) or 1):  # each a copy of rows
        rows, new = filled[of[plan[part]], completion[part]], changes[plan[part]]
        np.copyto(rows, new, where=~np.isnan(new))
        then = _decide(people.predictor, rows)
        stands[plan[part], completion[part]] = _turned(people, then, people.now[of[plan[part]]])
    return stands


def _turned(people: Decided, then: Codes, now: Codes) -> Bools:
    """Whether decisions are recourse from today's."""
    return np.asarray(then != now if people.wanted is None else then == people.wanted)


def _share(stands: Bools) -> Survival:
    """How often, with the standard error."""
    count = stands.shape[1]
    # Agresti and Coull's centre: an estimate of 0 or 1 from a few completions is not certain.
    centre = (stands.sum(axis=1) + 2) / (count + 4)
    return Survival(stands.mean(axis=1), np.sqrt(centre * (1 - centre) / (count + 4)))


def _decide(predictor: Predictor, rows: Floats) -> Codes:
    """From everything that the model sees."""
    if not len(rows):
        return np.zeros(0, dtype=np.intp)
    parts = np.array_split(rows, -(-len(rows) // ROWS))
    return np.concatenate([predictor.decide(predictor.predict_known(predictor.varies_, part)) for part in parts])
