"""Rules one by one: how to name each, what it is like to be without it, and how far it would have
to give way.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from edfa.data.rules import Rules
from edfa.recourse.plans import Plan

__all__ = ["Loosening", "Rule", "loosenings"]


class Loosening(NamedTuple):
    """Rules that stand in the way of a plan, and in words how far they must give way; empty: there
    are none.
    """

    rules: tuple[str, ...] = ()
    words: str = ""

    @classmethod
    def of_support(cls, plan: Plan) -> "Loosening":
        """Fewer training people asked for, where a plan leads."""
        return cls(("min_support",), f"min_support = {plan.support}: {plan}")

    @classmethod
    def of_several(
        cls, given: Rules, rules: Iterable["Rule"], best: Callable[[Rules], Plan | None]
    ) -> "Loosening":
        """As few rules as will do, where none will do alone: all are dropped, then put back where a
        plan remains.
        """
        dropped = list(rules)

        def without(some: list[Rule]) -> Rules:
            return reduce(lambda limits, rule: rule.drop(limits), some, given)

        plan = best(without(dropped))
        if plan is None:
            return cls()
        for rule in list(dropped):
            fewer = [other for other in dropped if other is not rule]
            if (other_plan := best(without(fewer))) is not None:
                dropped, plan = fewer, other_plan
        words = " and ".join(rule.words(plan) for rule in dropped)
        return cls(tuple(rule.rule for rule in dropped), f"{words}: {plan}")


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
        entries = getattr(limits, self.name)
        rest: Any = LIMITS[self.name][0] if self.name in LIMITS else None
        if self.name in LISTS:
            rest = tuple(entry for entry in entries if entry != self.item)
        elif self.name in MAPPINGS:
            rest = {key: value for key, value in entries.items() if key != self.item}
        return replace(limits, **{self.name: rest})

    def words(self, plan: Plan) -> str:
        """How far it must give way for a plan."""
        if self.name in LIMITS:
            return f"{self.name} = {LIMITS[self.name][1](plan):g}"
        if self.name in MAPPINGS:
            for change in plan.changes:
                if change.feature == self.item:
                    return f"{self.name}.{self.item} with {_text(change.after)}"
        return f"without {self.rule}"


def loosenings(given: Rules, helps: Callable[[Rules], bool] | None = None) -> tuple[Rule, ...]:
    """Every rule of ``given`` that can stand in the way of a plan.

    With ``helps``, which says whether rules leave a plan, lists and mappings of rules are
    looked into only if there would be one without the whole of them.
    """
    rules = [
        Rule(name, None, f"{name} = {value:g}")
        for name, (limitless, _) in LIMITS.items()
        if (value := getattr(given, name)) not in (None, limitless)
    ]
    for name in (*LISTS, *MAPPINGS):
        entries = getattr(given, name)
        nothing: dict[str, Any] = {name: type(entries)()}
        if len(entries) > 1 and helps is not None and not helps(replace(given, **nothing)):
            continue
        for entry in entries:
            value = entries[entry] if name in MAPPINGS else entry
            said = value if isinstance(value, str) and name in LISTS else _text(value)
            where = f"{name}.{entry} =" if name in MAPPINGS else f"{name}:"
            rules.append(Rule(name, entry, f"{where} {said}"))
    if given.only is not None:
        rules.append(Rule("only", None, f"only = {_text(list(given.only))}"))
    return tuple(rules)


LIMITS: Mapping[str, tuple[Any, Callable[[Plan], Any]]] = {
    "max_changes": (None, lambda plan: plan.l0),
    "max_effort": (None, lambda plan: float(np.ceil(plan.effort * 100) / 100)),
    "max_months": (None, lambda plan: float(np.ceil(plan.months))),
    "min_probability": (0.0, lambda plan: float(np.floor(plan.probability_after * 100) / 100)),
}
"""Rules that are one number: its value that limits nothing, and the one that a plan needs."""
LISTS = ("locked", "forbidden", "together")
MAPPINGS = ("ranges", "levels", "directions")


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
