"""Rules one by one: how to name each, what it is like to be without it, and how far it would have
to give way.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

from edfa.data.rules import NO_RULES, Rules
from edfa.recourse.plans import Plan

__all__ = ["Loosening", "Rule", "loosen_one", "loosen_several"]


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
        """How far it must give way for a plan."""
        if self.name in LIMITS:
            return f"{self.name} = {LIMITS[self.name](plan):g}"
        if self.name in MAPPINGS:
            for change in plan.changes:
                if change.feature == self.item:
                    return f"{self.name}.{self.item} with {_text(change.after)}"
        return f"without {self.rule}"


def _rules_of(given: Rules, best: Best | None = None) -> Iterator[Rule]:
    """Every rule of ``given`` that can stand in the way of a plan.

    With ``best``, lists and mappings of rules are looked into only if there would be a plan without
    the whole of them.
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
