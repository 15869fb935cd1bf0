"""The changes of a plan as steps in words: how far to go, what is enough, and what is reached by
waiting.
"""

from numbers import Real
from typing import TYPE_CHECKING, Any

from edfa.data.schema import Feature, Schema
from edfa.text import phrases
from edfa.text.phrases import label, say

if TYPE_CHECKING:
    from edfa.blanket.units import Blanket
    from edfa.data.rules import Rules
    from edfa.recourse.plans import Change, Plan

__all__ = ["not_known", "shortened", "steps", "waits", "what_if"]


def steps(
    plan: "Plan",
    schema: Schema,
    language: str = "en",
    *,
    operator: "Rules | None" = None,
    blanket: "Blanket | None" = None,
) -> list[str]:
    """One step for each change of a plan, with all that is known to be enough: ``36 months or
    fewer``, or a range.

    Numbers have three significant digits, rounded the way that the plan goes. While something is
    not known, what the plan goes beyond the least that is needed today is its reserve, and is not
    told as too much.
    """
    reserve = plan.survival is not None and bool(not_known(plan, blanket))
    return [
        _wait(change, plan.months, schema, language)
        if waits(change, plan, schema, operator)
        else _change(
            change,
            schema[change.feature],
            language,
            reserve=reserve,
            further=plan.support is not None,
        )
        for change in plan.changes
    ]


def not_known(plan: "Plan", blanket: "Blanket | None" = None) -> list[str]:
    """What was not known of the person and the model would see: of the ``blanket``, if it sees that
    alone.
    """
    return [name for name in plan.unknown if blanket is None or name in blanket]


def waits(change: "Change", plan: "Plan", schema: Schema, operator: "Rules | None" = None) -> bool:
    """Whether a change happens by itself while time passes; the ``operator``'s rules are by default
    the card's.
    """
    growth = (operator or schema.rules).per_year.get(
        change.feature, schema[change.feature].per_year
    )
    numbers = isinstance(change.before, Real) and isinstance(change.after, Real)
    return bool(plan.months > 0 and numbers and (change.after - change.before) * growth > 0)


def what_if(change: "Change", schema: Schema, language: str) -> str:
    """One change as a supposition, with its values and their units."""
    feature = schema[change.feature]
    before, after = (
        phrases.value(feature, value, language) for value in (change.before, change.after)
    )
    return say("plan.what_if", language, label=label(feature, language), before=before, after=after)


def _wait(change: "Change", months: float, schema: Schema, language: str) -> str:
    feature, time = schema[change.feature], phrases.duration(months, language)
    way = 1 if change.after > change.before else -1
    before, after = (
        _told(feature, change.before, 0, language),
        _told(feature, change.after, way, language),
    )
    return say(
        "plan.wait", language, label=label(feature, language), before=before, after=after, time=time
    )


def _change(
    change: "Change", feature: Feature, language: str, *, reserve: bool, further: bool
) -> str:
    """One change as a step.

    With a ``reserve``, it goes to ``after`` and not only as far as the open end; ``further`` says
    that values a little beyond are as good.
    """
    low, high, after = change.low, change.high, change.after
    words = {
        "label": label(feature, language),
        "before": _told(feature, change.before, 0, language),
    }
    if low is not None and high is not None and low != high:
        start, end = _inside(feature, low, high)
        # "8 to 14 months": the unit follows the upper end alone
        is_number = isinstance(low, Real) and phrases.named(feature, start, language) is None
        first = (
            phrases.number(start, language)
            if is_number
            else phrases.value(feature, start, language)
        )
        goal = _between(shortened(feature, after, _way(change) or 0), start, end)
        goal, last = (phrases.value(feature, value, language) for value in (goal, end))
        return say("plan.change_within", language, after=goal, low=first, high=last, **words)
    if (low is None) == (high is None):
        way = _way(change) if further and low is None else None
        return say("plan.change", language, after=_told(feature, after, way, language), **words)
    way, end = (-1, high) if low is None else (1, low)
    bounded = phrases.at_most if low is None else phrases.at_least
    if reserve or end == after:
        return say(
            "plan.change",
            language,
            after=bounded(feature, shortened(feature, after, way), language),
            **words,
        )
    bound = bounded(feature, shortened(feature, end, way), language)
    return say(
        "plan.change_open",
        language,
        bound=bound,
        after=_told(feature, after, way, language),
        **words,
    )


def _told(feature: Feature, value: Any, way: int | None, language: str) -> str:
    """A value in words, a number shortened; with ``way`` None as it is."""
    return phrases.value(
        feature, value if way is None else shortened(feature, value, way), language
    )


def shortened(feature: Feature, value: Any, way: int) -> Any:
    """A number in three significant digits, as every face of an interview shows it.

    It is rounded up (``way`` 1), down (-1) or to the nearest (0; whole numbers then stay as they
    are). A code, a level, and a number that rounding would take out of the card's range stay as
    they are.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or any(float(code) == value for code in feature.codes)
        or (way == 0 and float(value).is_integer())
    ):
        return value
    rounded = phrases.short(float(value), way)
    low, high = feature.range or (-float("inf"), float("inf"))
    return rounded if way == 0 or low <= rounded <= high else value


def _way(change: "Change") -> int | None:
    """1: a number goes up, -1: down; None if it is no number."""
    if not isinstance(change.before, Real) or not isinstance(change.after, Real):
        return None
    return 1 if change.after > change.before else -1


def _inside(feature: Feature, low: Any, high: Any) -> tuple[Any, Any]:
    """The ends of a range, rounded inwards unless nothing would be left."""
    start, end = shortened(feature, low, 1), shortened(feature, high, -1)
    return (start, end) if not isinstance(low, Real) or start < end else (low, high)


def _between(value: Any, low: Any, high: Any) -> Any:
    """A number within its range, which rounding may have narrowed."""
    return (
        min(max(value, low), high) if isinstance(low, Real) and isinstance(value, Real) else value
    )
