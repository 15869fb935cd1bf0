"""Why people have no plan: what stands in the way, and the smallest loosening of the rules that
would give one.

``NoPlanReasons`` is the entry: a mapping that ``find_recourse`` puts into ``Plans.reasons``. The
reasons take sweeps and searches of their own, so each is worked out when it is read.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from edfa.data.rules import NO_RULES, Rules
from edfa.explanation.necessity import sweep
from edfa.explanation.partition import members
from edfa.people import Background, People
from edfa.recourse.action_set import ActionSet
from edfa.recourse.plans import NoPlan, Plan, Plans, Reason
from edfa.recourse.searcher import Searcher
from edfa.typing import BoolArray, IntArray, ObjectArray

Search = Callable[[People, Searcher, Rules], Plans]
"""Finds the plans of people with a searcher, under rules."""


@dataclass(frozen=True, eq=False)
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
    searcher
        The searcher that found no plan for them.
    search
        Looks for plans under other rules.
    """

    people: People
    actions: ActionSet
    goal: int | None
    rows: IntArray
    planned: IntArray
    searcher: Searcher
    search: Search

    @cached_property
    def without(self) -> IntArray:
        """The rows of people without a plan, ascending."""
        return np.setdiff1d(np.arange(len(self.people)), self.planned)

    def __getitem__(self, row: int) -> NoPlan:
        if row not in self._loosened:
            if row not in self.without:  # which is known without looking for anything
                raise KeyError(row)
            reason, people = self.reasons[row], self.people
            unlock = self._unlock(row) if reason == "more_information_needed" else ()
            person, seed, step = (int(n[row]) for n in (people.person, people.seed, people.step))
            in_the_way = reason in ("rules", "too_few_people_there")
            loosening = self._loosening(row) if in_the_way else Loosening()
            self._loosened[row] = NoPlan(person, seed, step, reason, unlock, *loosening)
        return self._loosened[row]

    @cached_property
    def _loosened(self) -> dict[int, NoPlan]:
        return {}

    def __iter__(self) -> Iterator[int]:
        return iter(self.without.tolist())

    def __len__(self) -> int:
        return len(self.without)

    @cached_property
    def reasons(self) -> ObjectArray:
        """The reason of everybody without a plan, None for everybody else, (people,).

        In this order: the decision is the desired one already; there would be a plan without the
        rules; or where fewer people are; or that does not hold further along; a feature that may
        change turns it by itself, but not to a value that may be proposed; only a feature that must
        not change turns it; nothing does, but something is not known yet; nothing does and nothing
        is left to ask. ``NoPlan`` explains the words.
        """
        reasons = np.full(len(self.people), None, dtype=object)
        reasons[self.without] = "already_there"
        left = np.intersect1d(self.without, self.rows)
        if not len(left):
            return reasons
        rules, anywhere = self.actions.rules, self._asking_less(min_support=0)
        anything = self._asking_less(min_support=0, holds_further=False)
        relaxed: tuple[tuple[Reason, Searcher, Rules], ...] = (
            ("rules", self.searcher, self._without_rules),
            ("too_few_people_there", anywhere, rules),
            ("does_not_hold", anything, rules),
        )
        # with nothing asked of a plan there would be one
        hopeful = left[self._plans(left, anything, self._without_rules).legal]
        for reason, searcher, limits in relaxed:
            rows = np.intersect1d(hopeful, left)
            if len(rows) and (searcher is not self.searcher or limits != rules):
                planned = rows[self._plans(rows, searcher, limits).legal]
                reasons[planned] = reason
                left = np.setdiff1d(left, planned)
        by_free, by_locked = self._flips(left)
        unknown = np.isnan(self.people.X[left]) & self._askable
        last = np.where(unknown.any(axis=1), "more_information_needed", "nothing_flips")
        reasons[left] = np.where(
            by_free, "range_too_narrow", np.where(by_locked, "only_locked_features_flip", last)
        )
        return reasons

    @property
    def _without_rules(self) -> Rules:
        """Only what is a fact and no rule: links, times, and how hard things are."""
        given = self.actions.rules
        if given.reading == "paper":
            return Rules(reading="paper")
        facts = "weights", "difficulty", "linked", "per_year", "takes", "never_ask"
        return Rules(**{name: getattr(given, name) for name in facts})

    def _asking_less(self, **settings: Any) -> Searcher:
        """The searcher with other settings of what is asked of its plans; itself in the paper's
        reading, which asks nothing.

        ``settings`` are attributes of the searcher, such as ``min_support=0``.
        """
        if self.searcher.plan_filter(self.actions) is None:
            return self.searcher
        searcher = copy(self.searcher)
        for name, value in settings.items():
            setattr(searcher, name, value)
        return searcher

    def _plans(self, rows: IntArray, searcher: Searcher, rules: Rules) -> Plans:
        """The plans of some people under rules that the card's rules are no part of."""
        return self.search(People(self.people.X[rows], self._plain), searcher, rules)

    @cached_property
    def _plain(self) -> Background:
        """The background with a card without rules."""
        background = self.people.background
        return background.with_schema(replace(background.schema, rules=Rules()))

    def _loosening(self, row: int) -> "Loosening":
        """The smallest loosening that gives the person in a row a plan: of one rule, or of as few
        as will do.
        """

        def best(rules: Rules, searcher: Searcher = self.searcher) -> Plan | None:
            plans = self._plans(np.array([row]), searcher, rules)
            easiest = np.lexsort((plans.l0, plans.effort))
            return plans[int(easiest[0])] if len(easiest) else None

        def among(people: int) -> Plan | None:
            return best(given, self._asking_less(min_support=people))

        given = self.actions.rules
        if alone := loosen_one(given, best):
            return alone
        if (plan := among(0)) is None:
            return loosen_several(given, best)
        few, many = 0, len(self.searcher.training_support_) + 1
        while many - few > 1:  # the largest number of people with which there is a plan
            middle = (few + many) // 2
            if found := among(middle):
                few, plan = middle, found
            else:
                many = middle
        return Loosening(("min_support",), f"min_support = {few}: {plan}")

    def _flips(self, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Whether any value of a feature that may change, and of one that may not, turns the
        decision; (rows,) each.
        """
        free, locked = np.zeros((2, len(rows)), dtype=bool)
        inside = members(self.people.schema.names, self.people.blanket)
        swept = sweep(self.people.X[rows], self.people.predictor, self.actions.support, inside)
        for group in swept.groups:
            turned, columns = group.flips(self.goal), group.grid.columns[group.grid.owner]
            may_change = self.actions.free[group.mask][columns]
            free[group.people] = (turned & may_change)[group.case].any(axis=1)
            locked[group.people] = (turned & ~may_change)[group.case].any(axis=1)
        return free, locked

    @cached_property
    def _askable(self) -> BoolArray:
        """Which features may be asked for: those of the blanket that are not never asked,
        (features,).
        """
        names = self.people.schema.names
        return members(names, self.people.blanket) & ~np.isin(names, self.actions.rules.never_ask)

    def _unlock(self, row: int) -> tuple[str, ...]:
        """The unknown features that may be asked for; those with a known spouse first (Definition
        9).
        """
        names, blanket = np.array(self.people.schema.names), self.people.blanket
        unknown, units = np.isnan(self.people.X[row]), blanket.units if blanket else {}
        known, askable = names[~unknown].tolist(), names[unknown & self._askable].tolist()
        return tuple(sorted(askable, key=lambda name: set(units.get(name, ())).isdisjoint(known)))


class Loosening(NamedTuple):
    """Rules that stand in the way of a plan, and in words how far they must give way; empty: there
    are none.
    """

    rules: tuple[str, ...] = ()
    words: str = ""


Best = Callable[[Rules], Plan | None]
"""The easiest plan under rules; None: there is none."""


def loosen_one(given: Rules, best: Best) -> Loosening | None:
    """The one rule that gives a plan of the least effort if it gives way; None: no rule alone does.

    Parameters
    ----------
    given
        The rules that leave no plan.
    best
        The easiest plan under other rules.
    """
    options = [(rule, plan) for rule in _rules_of(given, best) if (plan := best(rule.drop(given)))]
    if not options:
        return None
    rule, plan = min(options, key=lambda option: option[1].effort)
    return Loosening((rule.rule,), f"{rule.words(plan)}: {plan}")


def loosen_several(given: Rules, best: Best) -> Loosening:
    """As few rules as will do, where none will do alone: all are dropped, then put back where a
    plan remains.

    The parameters are those of ``loosen_one``.
    """

    def without(rules: Iterable[Rule]) -> Plan | None:
        return best(reduce(lambda limits, rule: rule.drop(limits), rules, given))

    dropped = list(_rules_of(given))
    plan = without(dropped)
    if plan is None:
        return Loosening()
    for rule in list(dropped):
        fewer = [other for other in dropped if other is not rule]
        if (other_plan := without(fewer)) is not None:
            dropped, plan = fewer, other_plan
    words = " and ".join(rule.words(plan) for rule in dropped)
    return Loosening(tuple(rule.rule for rule in dropped), f"{words}: {plan}")


@dataclass(frozen=True)
class Rule:
    """One rule of rules.

    Parameters
    ----------
    name
        The field of ``Rules`` that it stands in.
    item
        Which entry of a list it is, or which key of a mapping; None: all of the field.
    rule
        How it is written.
    """

    name: str
    item: Any
    rule: str

    def drop(self, limits: Rules) -> Rules:
        """The rules without this one."""
        entries: Any = getattr(limits, self.name)
        if self.name in LISTS:
            entries = tuple(entry for entry in entries if entry != self.item)
        elif self.name in MAPPINGS:
            entries = {key: value for key, value in entries.items() if key != self.item}
        else:
            return limits.without(self.name)
        return replace(limits, **{self.name: entries})

    def words(self, plan: Plan) -> str:
        """How far it must give way for a plan, such as ``"max_changes = 2"``.

        A direction or a range says the value that the plan needs; a rule that can only be dropped
        reads ``"without ..."``.
        """
        if self.name in LIMITS:
            return f"{self.name} = {LIMITS[self.name](plan):g}"
        if self.name in MAPPINGS:
            for change in plan.changes:
                if change.feature == self.item:
                    return f"{self.name}.{self.item} with {_text(change.after)}"
        return f"without {self.rule}"


def _rules_of(given: Rules, best: Best | None = None) -> Iterator[Rule]:
    """Every rule of ``given`` that can stand in the way of a plan.

    Parameters
    ----------
    given
        The rules.
    best
        The easiest plan under other rules: with it, lists and mappings of rules are looked into
        only if there would be a plan without the whole of them. None: all are looked into.
    """
    for name in LIMITS:
        if (value := getattr(given, name)) != getattr(NO_RULES, name):
            yield Rule(name, None, f"{name} = {value:g}")
    for name in (*LISTS, *MAPPINGS):
        entries = getattr(given, name)
        if len(entries) > 1 and best is not None and best(given.without(name)) is None:
            continue
        for entry in entries:
            if name in MAPPINGS:
                yield Rule(name, entry, f"{name}.{entry} = {_text(entries[entry])}")
            else:
                said = entry if isinstance(entry, str) else _text(entry)
                yield Rule(name, entry, f"{name}: {said}")
    if given.only is not None:
        yield Rule("only", None, f"only = {_text(given.only)}")


LIMITS: Mapping[str, Callable[[Plan], float]] = {
    "max_changes": lambda plan: plan.l0,
    "max_effort": lambda plan: math.ceil(plan.effort * 100) / 100,
    "max_months": lambda plan: math.ceil(plan.months),
    "min_probability": lambda plan: math.floor(plan.probability_after * 100) / 100,
}
"""Rules that are one number, and the number that a plan needs."""
LISTS = ("locked", "forbidden", "together")
MAPPINGS = ("ranges", "levels", "directions")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
