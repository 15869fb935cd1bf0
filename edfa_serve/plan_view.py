"""Plans as the page shows them: cards with the rows that change, and a table that sets them side by
side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from edfa.advice.interview import Interview
from edfa.data.schema import Feature
from edfa.recourse.plans import Change, Plan
from edfa.text import phrases
from edfa.text.steps import not_known, shortened, waits
from edfa_serve.wording import Wording

__all__ = ["Comparison", "PlanView", "Row", "compare", "show_plans"]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Row:
    """One changed fact: its label, its value now and then, and what else would do."""

    feature: str
    label: str
    before: str
    after: str
    works: str = ""


@dataclass(frozen=True)
class PlanView:
    """A plan's card. ``facts`` are pairs of a heading and what is said under it, ``notes`` what
    speaks against it.
    """

    id: str
    letter: str
    name: str
    rows: tuple[Row, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    chosen: bool
    first: bool


@dataclass(frozen=True)
class Comparison:
    """A table: the plans' names, and rows of a heading and a cell for each plan, with whether it is
    a change.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]


def show_plans(interview: Interview, wording: Wording, chosen: str | None) -> tuple[PlanView, ...]:
    """The cards of the plans that are offered now; the first is marked if the person may act on
    it.
    """
    may_act = interview.standing.may_act
    uncovered = (wording("plans.covered", letter=LETTERS[0]),) if may_act else ()
    return tuple(
        PlanView(
            id=plan.id,
            letter=LETTERS[number],
            name=wording("plans.name", letter=LETTERS[number]),
            rows=tuple(_row(change, plan, interview, wording) for change in plan.changes),
            facts=_facts(plan, interview, wording),
            notes=_notes(plan, interview, wording) + (uncovered if number else ()),
            chosen=plan.id == chosen,
            first=may_act and number == 0,
        )
        for number, plan in enumerate(interview.plans())
    )


def _row(change: Change, plan: Plan, interview: Interview, wording: Wording) -> Row:
    """One change, in words."""
    name = change.feature
    label, before = (
        wording.label(name),
        wording.value(name, shortened(wording.schema[name], change.before, 0)),
    )
    if waits(change, plan, interview.fitted.schema, interview.fitted.rules):
        way = 1 if change.after > change.before else -1
        return Row(
            name,
            label,
            before,
            wording.value(name, shortened(wording.schema[name], change.after, way)),
            wording("plans.wait"),
        )
    after, works = _goal(
        change, wording, reserve=plan.survival is not None and bool(_unknown(plan, interview))
    )
    return Row(name, label, before, after, works)


def _goal(change: Change, wording: Wording, *, reserve: bool) -> tuple[str, str]:
    """Where to go, and what else works. With a ``reserve``, the plan goes as far as it says, not
    only to the edge.
    """
    name, low, high, after = change.feature, change.low, change.high, change.after
    way, feature = _way(change), wording.schema[change.feature]
    if low is not None and high is not None and low != high:
        start, end = _inside(feature, low, high)
        first = (
            wording.number(float(start)) if isinstance(start, Real) else wording.value(name, start)
        )
        goal = (
            min(max(shortened(feature, after, way), start), end)
            if isinstance(start, Real)
            else after
        )
        return wording.value(name, goal), wording(
            "plans.works", low=first, high=wording.value(name, end)
        )
    if (low is None) == (high is None):
        return wording.value(name, shortened(feature, after, way)), ""
    side, end = (-1, high) if low is None else (1, low)
    if reserve or end == after:
        return wording.bounded(name, shortened(feature, after, side), side), ""
    bound = wording.bounded(name, shortened(feature, end, side), side)
    return wording.value(name, shortened(feature, after, side)), wording(
        "plans.works_open", bound=bound
    )


def _inside(feature: Feature, low: Any, high: Any) -> tuple[Any, Any]:
    """The ends of a range, rounded inwards unless nothing would be left."""
    start, end = shortened(feature, low, 1), shortened(feature, high, -1)
    return (start, end) if not isinstance(low, Real) or start < end else (low, high)


def _way(change: Change) -> int:
    """1: a number goes up, -1: down; 0: it is no number."""
    if not isinstance(change.before, Real) or not isinstance(change.after, Real):
        return 0
    return 1 if change.after > change.before else -1


def _facts(plan: Plan, interview: Interview, wording: Wording) -> tuple[tuple[str, str], ...]:
    """What is said of a plan beside its changes."""
    before, after = wording.pair(plan.probability_before, plan.probability_after)
    months = plan.months
    return (
        (wording("plans.after"), wording("plans.after_value", before=before, after=after)),
        (wording("plans.holds"), _holds(plan, interview, wording)),
        (wording("plans.people"), _people(plan, wording)),
        (
            wording("plans.effort"),
            wording("plans.effort_value", effort=wording.number(max(round(plan.effort, 2), 0.01))),
        ),
        (
            wording("plans.time"),
            wording("plans.about", time=phrases.duration(months, wording.language))
            if months
            else wording("plans.at_once"),
        ),
    )


def _holds(plan: Plan, interview: Interview, wording: Wording) -> str:
    if plan.survival is None:
        return wording("plans.holds_unknown")
    if plan.survival == 1 and not _unknown(plan, interview):
        return wording("plans.holds_all")
    cases = phrases.cases(wording.language, plan.survival)
    return (
        wording("plans.holds_unknown")
        if cases is None
        else wording("plans.holds_value", cases=cases[0])
    )


def _people(plan: Plan, wording: Wording) -> str:
    if plan.support is None:
        return wording("plans.holds_unknown")
    if not plan.support or plan.support_share is None:
        return wording("plans.people_none")
    return wording(
        "plans.people_value",
        plan.support,
        well=wording.number(round(plan.support * plan.support_share)),
    )


def _unknown(plan: Plan, interview: Interview) -> list[str]:
    """What is not known and the model would see."""
    fitted = interview.fitted
    return not_known(plan, fitted.decisive)


def _notes(plan: Plan, interview: Interview, wording: Wording) -> tuple[str, ...]:
    """What speaks against relying on the plan."""
    open_facts = len(_unknown(plan, interview))
    notes = [] if plan.valid else [wording("plans.stale")]
    notes += [wording("plans.rare")] if plan.inlier is False else []
    return (*notes, *([wording("plans.open", open_facts)] if open_facts else []))


def compare(plans: Sequence[PlanView], wording: Wording) -> Comparison | None:
    """The plans side by side: facts as rows, plans as columns; None if there is nothing to
    compare.
    """
    if len(plans) < 2:
        return None
    labels = dict.fromkeys(
        (row.feature, row.label, row.before) for plan in plans for row in plan.rows
    )
    rows = []
    for feature, label, before in labels:
        after = [
            next((row.after for row in plan.rows if row.feature == feature), "") for plan in plans
        ]
        heading = f"{label} ({wording('now')}: {before})"
        rows.append((heading, tuple((text or wording("plans.same"), bool(text)) for text in after)))
    for number, (heading, _) in enumerate(plans[0].facts):
        rows.append((heading, tuple((plan.facts[number][1], False) for plan in plans)))
    return Comparison(tuple(plan.name for plan in plans), tuple(rows))
