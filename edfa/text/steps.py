"""The changes of a plan as steps: how far to go, what is enough, and what is reached by waiting.

``plan_steps`` makes a ``Step`` of each change, in words; numbers are rounded so that the plan
still holds. ``say_steps`` lists them in a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from edfa.data.schema import Feature, Schema
from edfa.text import phrases
from edfa.text.phrases import label, say

if TYPE_CHECKING:
    from edfa.blanket.units import Blanket
    from edfa.data.rules import Rules
    from edfa.recourse.plans import Change, Plan


@dataclass(frozen=True)
class Step:
    """One change of a plan in words; numbers have three significant digits, rounded the way that
    the plan goes.

    Parameters
    ----------
    feature
        The feature that changes.
    before, after
        Its value today, and where to go.
    enough
        All that is known to be enough: a text such as ``36 months or fewer``, or the two ends of
        a range; empty if that is ``after`` alone.
    time
        How long the change takes if it is reached by waiting; otherwise empty.
    today
        What would turn today's decision, where the step goes farther so that it should hold later:
        the value before, if the step is not needed today. Otherwise empty.
    """

    feature: Feature
    before: str
    after: str
    enough: str | tuple[str, str] = ""
    time: str = ""
    today: str = ""

    def sentence(self, language: str, *, alone: bool = True) -> str:
        """The step with its label, as a part of a sentence; ``alone`` if it is the plan's only
        one.
        """
        words: dict[str, object] = {
            "label": label(self.feature, language),
            "before": self.before,
            "after": self.after,
        }
        if self.today == self.before:
            return say("plan.change_later", language, **words)
        if self.time:
            key = "plan.wait_today" if self.today else "plan.wait"
            return say(key, language, time=self.time, today=self.today, **words)
        if self.today:
            key = "plan.change_today" if alone else "plan.change_today_with"
            return say(key, language, today=self.today, **words)
        if not self.enough:
            return say("plan.change", language, **words)
        if isinstance(self.enough, str):
            return say("plan.change_open", language, bound=self.enough, **words)
        low, high = self.enough
        return say("plan.change_within", language, low=low, high=high, **words)


def plan_steps(
    plan: "Plan",
    schema: Schema,
    language: str = "en",
    *,
    operator: "Rules | None" = None,
    blanket: "Blanket | None" = None,
) -> list[Step]:
    """One step for each change of a plan.

    While something is not known, what the plan goes beyond the least that is needed today is its
    reserve, and is not told as too much.

    Parameters
    ----------
    plan
        The plan.
    schema
        The card.
    language
        "en" or "de".
    operator
        The operator's rules, by default the card's; they say what grows by itself, so that it is
        waited for.
    blanket
        The features that the model sees, if it does not see all.
    """
    reserve = plan.survival is not None and bool(not_known(plan, blanket))
    grows = (operator or schema.rules).per_year
    steps = []
    for change in plan.changes:
        feature, way = schema[change.feature], way_of(change)
        today = _today(change, feature, language)
        growth = grows.get(feature.name, feature.per_year)
        if plan.months > 0 and way * growth > 0:
            before = told(feature, change.before, 0, language)
            after = told(feature, change.after, way, language)
            time = phrases.duration(plan.months, language)
            steps.append(Step(feature, before, after, time=time, today=today))
        else:
            further = plan.support is not None
            step = _change(
                change, feature, language, reserve=reserve or bool(today), further=further
            )
            steps.append(replace(step, enough="", today=today) if today else step)
    return steps


def say_steps(steps: Sequence[Step], language: str) -> str:
    """The steps as a list in words that leaves nothing out."""
    parts = [step.sentence(language, alone=len(steps) == 1) for step in steps]
    return phrases.listed(parts, language, max_listed=len(parts))


def not_known(plan: "Plan", blanket: "Blanket | None" = None) -> list[str]:
    """The features that were not known of the person when the plan was made and that the model
    would see.

    Parameters
    ----------
    plan
        The plan.
    blanket
        The features that the model sees; None: all of them.
    """
    return [name for name in plan.unknown if blanket is None or name in blanket]


def what_if(change: "Change", schema: Schema, language: str) -> str:
    """One change as a supposition, with its values and their units."""
    feature = schema[change.feature]
    before, after = (
        phrases.value(feature, value, language) for value in (change.before, change.after)
    )
    return say("plan.what_if", language, label=label(feature, language), before=before, after=after)


def _change(
    change: "Change", feature: Feature, language: str, *, reserve: bool, further: bool
) -> Step:
    """One change as a step.

    Parameters
    ----------
    change
        The change, with the interval of values that are as good.
    feature
        Its feature.
    language
        "en" or "de".
    reserve
        Whether the step goes to ``after`` and not only as far as the open end.
    further
        Whether values a little beyond are as good, so that the number may be rounded onward.
    """
    low, high, after = change.low, change.high, change.after
    before, way = told(feature, change.before, 0, language), way_of(change)
    if low is not None and high is not None and low != high:
        goal, bare = after, False
        if isinstance(low, Real):
            # rounded inwards, unless nothing would be left
            start, end = shortened(feature, low, 1), shortened(feature, high, -1)
            low, high = (start, end) if start < end else (low, high)
            goal = min(max(shortened(feature, after, way), low), high)
            # "8 to 14 months": the unit follows the upper end alone
            bare = phrases.named(feature, low, language) is None
        first = phrases.number(low, language) if bare else phrases.value(feature, low, language)
        goal, last = (phrases.value(feature, value, language) for value in (goal, high))
        return Step(feature, before, goal, (first, last))
    if (low is None) == (high is None):
        goal = shortened(feature, after, way) if way and further and low is None else after
        return Step(feature, before, phrases.value(feature, goal, language))
    side, end = (-1, high) if low is None else (1, low)
    goal = shortened(feature, after, side)
    if reserve or end == after:
        return Step(feature, before, phrases.bounded(feature, goal, side, language))
    enough = phrases.bounded(feature, shortened(feature, end, side), side, language)
    return Step(feature, before, phrases.value(feature, goal, language), enough)


def _today(change: "Change", feature: Feature, language: str) -> str:
    """What would turn today's decision, if a plan is told to go farther; otherwise empty."""
    if change.enough_now is None:
        return ""
    way = way_of(change)
    if change.enough_now == change.before:
        return told(feature, change.before, 0, language)
    least, goal = (shortened(feature, v, way) for v in (change.enough_now, change.after))
    if way and (goal - least) * way <= 0:
        return ""
    return phrases.value(feature, least, language)


def told(feature: Feature, value: Any, way: int, language: str) -> str:
    """A value in words, a number shortened."""
    return phrases.value(feature, shortened(feature, value, way), language)


def shortened(feature: Feature, value: Any, way: int) -> Any:
    """A number in three significant digits, as every face of an interview shows it.

    A code, a level, and a number that rounding would take out of the card's range stay as they
    are.

    Parameters
    ----------
    feature
        The feature, with its codes and its range.
    value
        The value.
    way
        1: upwards, -1: downwards, 0: to the nearest; whole numbers then stay as they are.

    Examples
    --------
    >>> months = Feature("duration", "continuous", range=(0, 12345))
    >>> shortened(months, 1234, 1), shortened(months, 12345, 1), shortened(months, 12345, -1)
    (1240.0, 12345, 12300.0)
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


def way_of(change: "Change") -> int:
    """1: a number goes up, -1: down; 0: it is no number."""
    if not isinstance(change.before, Real) or not isinstance(change.after, Real):
        return 0
    return 1 if change.after > change.before else -1
