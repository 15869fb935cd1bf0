"""Why people have no plan. Worked out when it is first read, since it takes a sweep of everything they know."""

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
    """A ``NoPlan`` for everybody without a plan, by row of the batch.

    Parameters
    ----------
    people
        The whole batch.
    actions
        What they may change.
    goal
        The code of the class that plans should lead to; None: any other decision.
    rows
        The rows of people who do not have the desired decision yet: plans were looked for.
    planned
        The rows of people who have a plan.
    """

    def __init__(self, people: People, actions: ActionSet, goal: int | None, rows: IntArray, planned: IntArray) -> None:
        self.people, self.actions, self.goal, self.rows, self.planned = people, actions, goal, rows, planned

    @cached_property
    def without(self) -> IntArray:
        """The rows of people without a plan, ascending."""
        return np.setdiff1d(np.arange(len(self.people)), self.planned)

    def __getitem__(self, row: int) -> NoPlan:
        return self._reasons[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self.without.tolist())

    def __len__(self) -> int:
        return len(self.without)

    @cached_property
    def _reasons(self) -> dict[int, NoPlan]:
        """The reason of everybody without a plan.

        In this order: the decision is the desired one already; a feature that may change turns it by itself, but not to
        a value that may be proposed; only a feature that must not change turns it; nothing does, but something is not
        known yet; nothing does and nothing is left to ask.
        """
        satisfied = np.setdiff1d(self.without, self.rows)
        reasons = {int(row): self._no_plan(int(row), "already_there") for row in satisfied}
        unsatisfied = np.setdiff1d(self.without, satisfied)
        free_flips, locked_flips = self._flips(unsatisfied)
        for row, by_free, by_locked in zip(unsatisfied.tolist(), free_flips, locked_flips, strict=True):
            unlock = () if by_free or by_locked else self._unlock(row)
            otherwise: Reason = "more_information_needed" if unlock else "nothing_flips"
            reason: Reason = "range_too_narrow" if by_free else "only_locked_features_flip" if by_locked else otherwise
            reasons[row] = self._no_plan(row, reason, unlock)
        return reasons

    def _flips(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Whether any value of a feature that may change, and of one that may not, turns the decision; (rows,) each."""
        free, locked = (np.zeros(len(rows), dtype=bool) for _ in range(2))
        inside = members(self.people.schema.names, self.people.blanket)
        if self.people.background.model is None or not len(rows):
            return free, locked
        swept = sweep(self.people.X[rows], self.people.predictor, self.actions.support, inside)
        for group in (g for g in swept.groups if g.features):
            for feature, _, flips in group.by_feature(group.flips(self.goal)):
                turned = np.asarray(flips.any(axis=1))[group.case]
                side = free if self.actions.free[feature] else locked
                side[group.people] |= turned
        return free, locked

    def _unlock(self, row: int) -> tuple[str, ...]:
        """The unknown features of the blanket; those with a known spouse first (Definition 9)."""
        names, blanket = self.people.schema.names, self.people.blanket
        is_known = ~np.isnan(self.people.X[row])
        known = {name for name, flag in zip(names, is_known, strict=True) if flag}
        unknown = [n for n in names if n not in known and (blanket is None or n in blanket)]
        first = {pc for pc, spouses in blanket.units.items() if known.intersection(spouses)} if blanket else set()
        return tuple(sorted(unknown, key=lambda name: name not in first))

    def _no_plan(self, row: int, reason: Reason, unlock: tuple[str, ...] = ()) -> NoPlan:
        """The ``NoPlan`` of the person in a row."""
        numbers = (self.people.person, self.people.seed, self.people.step)
        person, seed, step = (int(np.asarray(n)[row]) for n in numbers)
        return NoPlan(person, seed, step, reason, unlock)
