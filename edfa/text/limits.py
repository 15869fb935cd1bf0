"""Rules as ``NoPlan.rules`` names them, such as ``max_changes = 1`` or ``locked: purpose``, in a
person's words.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from edfa.data.rules import Rules
from edfa.data.schema import Schema
from edfa.text.phrases import duration, in_hundred, label, listed, number, quoted, say

LISTS = ("locked", "forbidden", "together")  # "locked: purpose"
KEYED = ("ranges", "levels", "directions")  # "ranges.duration = [4, 24]"
SAID: dict[str, Callable[[float, str], str]] = {
    "min_probability": in_hundred,
    "max_months": duration,
}
NUMBERS = ("max_changes", "max_effort", "max_months", "min_probability")  # "max_changes = 1"


def is_among(rule: str, rules: Rules) -> bool:
    """Whether the named rule is one of these.

    Parameters
    ----------
    rule
        A rule as ``NoPlan.rules`` names it. Ranges, levels and directions are known by their
        feature alone, other rules by their value.
    rules
        The rules to look among. How many people must be there is a setting of the search, and
        always counts as one of them.

    Examples
    --------
    >>> is_among("locked: purpose", Rules(locked=("purpose",)))
    True
    >>> is_among("max_changes = 1", Rules())
    False
    """
    name, key, value = _parts(rule)
    if name in LISTS:
        return (tuple(value) if isinstance(value, list) else value) in getattr(rules, name)
    if name in KEYED:
        return key in getattr(rules, name)
    if name == "only":
        return rules.only is not None and [*rules.only] == value
    # How many people must be there is a setting of the search: it is never the person's own.
    return name == "min_support" or (name in NUMBERS and getattr(rules, name) == value)


def in_words(rule: str, schema: Schema, language: str) -> str:
    """The named rule as a person would say it; one of another form in quotation marks.

    >>> from edfa import Feature
    >>> schema = Schema((Feature("purpose", "categorical", label="purpose of the loan"),), "class",
    ...     "good")
    >>> in_words("locked: purpose", schema, "en"), in_words("max_changes = 1", schema, "en")
    ('“purpose of the loan” stays as it is', 'no more than 1 change')
    """
    name, key, value = _parts(rule)
    if name in NUMBERS and isinstance(value, int | float):
        if name == "max_changes":
            return say("limits.max_changes", language, int(value))
        amount = SAID.get(name, number)(value, language)
        return say(f"limits.{name}", language, amount=amount)
    named = [key] if name in KEYED else value if isinstance(value, list) else [value]
    named = (
        named[:1] if name == "forbidden" else named
    )  # the others are the values it moves between
    if name in (*LISTS, *KEYED) and all(feature in schema.names for feature in named):
        labels = listed([label(schema[feature], language) for feature in named], language)
        return say(f"limits.{name}", language, labels=labels)
    return say("limits.only", language) if name == "only" else quoted(rule, language)


def loosened(rules: Sequence[str], loosening: str, schema: Schema, language: str) -> str:
    """That there would be a plan without these rules or, where they are numbers, with which others.

    ``loosening`` is ``NoPlan.loosening``; the plan that it ends with is not told.

    >>> from edfa import Feature
    >>> schema = Schema((Feature("purpose", "categorical"),), "class", "good")
    >>> loosened(["max_changes = 1"], "max_changes = 2: duration: 36 → 24", schema, "en")
    'There would be a plan with no more than 2 changes.'
    >>> loosened(["locked: purpose"], "without locked: purpose: …", schema, "en")
    'Without this limit there would be a plan.'
    """
    names = [name for name, _, _ in map(_parts, rules) if name in NUMBERS]
    given = [re.search(rf"\b{name} = -?[\d.]+(e[+-]?\d+)?", loosening) for name in names]
    limits = [in_words(match.group(), schema, language) for match in given if match]
    if len(limits) < len(rules):
        return say("no_plan.without", language, len(rules))
    return say("no_plan.loosening", language, limits=listed(limits, language))


def _parts(rule: str) -> tuple[str, str, Any]:
    """The kind of a rule, the feature that it is keyed by (empty if none), and its value."""
    for name in LISTS:
        if rule.startswith(f"{name}: "):
            return name, "", _value(rule.removeprefix(f"{name}: "))
    path, _, value = rule.partition(" = ")
    name, _, key = path.partition(".")
    return name, key, _value(value)


def _value(text: str) -> Any:
    """What the JSON says where it is a list or a number, else the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, list | int | float) else text
