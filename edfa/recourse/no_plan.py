"""Why somebody has no plan: asked for when it is read, since it takes a sweep of everything they know."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np

from edfa.explanation.necessity import sweep
from edfa.explanation.partition import members
from edfa.people import People
from edfa.recourse.action_set import ActionSet
from edfa.recourse.plan import NoPlan, Reason
from edfa.typing import BoolArray, IntArray

__all__ = ["NoPlanReasons"]


class NoPlanReasons(Mapping[int, NoPlan]):
    """The reasons of everybody without a plan, by row; ``rows`` are who is not where they want to be."""

    def __init__(self, people: People, actions: ActionSet, goal: int | None, rows: IntArray, planned: IntArray) -> None:
        self.people, self.actions, self.goal, self.rows, self.planned = people, actions, goal, rows, planned

    @cached_property
    def without(self) -> IntArray:
        """Who has no plan."""
        return np.setdiff1d(np.arange(len(self.people)), self.planned)

    def __getitem__(self, row: int) -> NoPlan:
        return self._found[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self.without.tolist())

    def __len__(self) -> int:
        return len(self.without)

    @cached_property
    def _found(self) -> dict[int, NoPlan]:
        there = np.setdiff1d(self.without, self.rows)
        found = {int(row): self._no_plan(int(row), "already_there") for row in there}
        left = np.setdiff1d(self.without, there)
        free, locked = self._flips(left)
        for row, may, may_not in zip(left.tolist(), free, locked, strict=True):
            unlock = () if may or may_not else self._unlock(row)
            rest: Reason = "more_information_needed" if unlock else "nothing_flips"
            reason: Reason = "range_too_narrow" if may else "only_locked_features_flip" if may_not else rest
            found[row] = self._no_plan(row, reason, unlock)
        return found

    def _flips(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Whether a feature that may change, and whether one that may not, turns the decision by itself."""
        free, locked = (np.zeros(len(rows), dtype=bool) for _ in range(2))
        inside = members(self.people.schema.names, self.people.blanket)
        if self.people.background.model is None or not len(rows):
            return free, locked
        swept = sweep(self.people.X[rows], self.people.predictor, self.actions.support, inside)
        for group in (g for g in swept.groups if g.features):
            for feature, _, flips in group.by_feature(group.flips(self.goal)):
                turned = np.asarray(flips.any(axis=1))[group.case]
                found = free if self.actions.free[feature] else locked
                found[group.people] |= turned
        return free, locked

    def _unlock(self, row: int) -> tuple[str, ...]:
        """What is not known of the blanket; first a child of which a spouse is known (Definition 9)."""
        names, blanket = self.people.schema.names, self.people.blanket
        known = ~np.isnan(self.people.X[row])
        told = {name for name, there in zip(names, known, strict=True) if there}
        left = [n for n in names if n not in told and (blanket is None or n in blanket)]
        waits = {pc for pc, behind in blanket.units.items() if told.intersection(behind)} if blanket else set()
        return tuple(sorted(left, key=lambda name: name not in waits))

    def _no_plan(self, row: int, reason: Reason, unlock: tuple[str, ...] = ()) -> NoPlan:
        numbers = (self.people.person, self.people.seed, self.people.step)
        person, seed, step = (int(np.asarray(n)[row]) for n in numbers)
        return NoPlan(person, seed, step, reason, unlock)
