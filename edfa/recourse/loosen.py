"""Rules one by one: how to name each, what it is like to be without it, and how far it would have
to give way.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
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
            limits = given
            for rule in some:
                limits = rule.drop(limits)
            return limits

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

    ``rule`` names it, ``drop`` gives rules without it, ``words`` says how far it must give
    way for a plan.
    """

    rule: str
    drop: Callable[[Rules], Rules]
    words: Callable[[Plan], str]


def loosenings(given: Rules, helps: Callable[[Rules], bool] | None = None) -> tuple[Rule, ...]:
    """Every rule of ``given`` that can stand in the way of a plan.

    With ``helps``, which says whether rules leave a plan, lists and mappings of rules are
    looked into only if there would be one without the whole of them.
    """
    rules = [
        _limit(name, getattr(given, name))
        for name in LIMITS
        if getattr(given, name) not in (None, LIMITS[name][0])
    ]
    for name in (*LISTS, *MAPPINGS):
        entries = getattr(given, name)
        nothing: dict[str, Any] = {name: type(entries)()}
        if not entries or (
            len(entries) > 1 and helps is not None and not helps(replace(given, **nothing))
        ):
            continue
        if name in LISTS:
            rules += [_entry(name, entry) for entry in entries]
        else:
            rules += [_keyed(name, key, value) for key, value in entries.items()]
    if given.only is not None:
        words = f"only = {_text(list(given.only))}"
        rules.append(
            Rule(words, lambda limits: replace(limits, only=None), lambda plan: f"without {words}")
        )
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


def _limit(name: str, value: Any) -> Rule:
    nothing, needed = LIMITS[name]
    return Rule(
        f"{name} = {value:g}",
        lambda limits: replace(limits, **{name: nothing}),
        lambda plan: f"{name} = {needed(plan):g}",
    )


def _entry(name: str, entry: Any) -> Rule:
    words = f"{name}: {entry if isinstance(entry, str) else _text(entry)}"

    def drop(limits: Rules) -> Rules:
        kept: dict[str, Any] = {
            name: tuple(other for other in getattr(limits, name) if other != entry)
        }
        return replace(limits, **kept)

    return Rule(words, drop, lambda plan: f"without {words}")


def _keyed(name: str, key: str, value: Any) -> Rule:
    words = f"{name}.{key} = {_text(value)}"

    def drop(limits: Rules) -> Rules:
        kept: dict[str, Any] = {name: {k: v for k, v in getattr(limits, name).items() if k != key}}
        return replace(limits, **kept)

    def needed(plan: Plan) -> str:
        after = next((change.after for change in plan.changes if change.feature == key), None)
        return f"without {words}" if after is None else f"{name}.{key} with {_text(after)}"

    return Rule(words, drop, needed)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
