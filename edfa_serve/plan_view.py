"""Plans as the page shows them: cards with the rows that change, and a table that sets them side by
side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edfa.text import phrases
from edfa.text.record import InterviewRecord, PlanRecord
from edfa.text.steps import Step
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
    works: str


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


def show_plans(
    record: InterviewRecord, wording: Wording, chosen: str | None
) -> tuple[PlanView, ...]:
    """The cards of the plans that are offered now; the first is marked if the person may act on
    it.
    """
    may_act = record.interview.standing.may_act
    uncovered = (wording("plans.covered", letter=LETTERS[0]),) if may_act else ()
    return tuple(
        PlanView(
            id=offered.plan.id,
            letter=letter,
            name=wording("plans.name", letter=letter),
            rows=tuple(_row(step, wording) for step in offered.steps),
            facts=_facts(offered, wording),
            notes=offered.notes + (uncovered if number else ()),
            chosen=offered.plan.id == chosen,
            first=may_act and number == 0,
        )
        for number, (letter, offered) in enumerate(zip(LETTERS, record.plans, strict=False))
    )


def _row(step: Step, wording: Wording) -> Row:
    """One change, in words."""
    works = wording("plans.wait") if step.time else ""
    if isinstance(step.enough, tuple):
        works = wording("plans.works", low=step.enough[0], high=step.enough[1])
    elif step.enough:
        works = wording("plans.works_open", bound=step.enough)
    before, after = (
        phrases.unquoted(value, wording.language) for value in (step.before, step.after)
    )
    return Row(step.feature.name, wording.label(step.feature.name), before, after, works)


def _facts(offered: PlanRecord, wording: Wording) -> tuple[tuple[str, str], ...]:
    """What is said of a plan beside its changes."""
    plan, language, not_said = offered.plan, wording.language, wording("plans.holds_unknown")
    shares = phrases.hundredths(plan.probability_before, plan.probability_after, language)
    before, after = (wording("of", n=share, total=100) for share in shares)
    cases = None if plan.survival is None else phrases.cases(language, plan.survival)
    holds = wording("plans.holds_value", cases=cases[0]) if cases else not_said
    if plan.survival == 1 and not offered.unknown:
        holds = wording("plans.holds_all")
    people = not_said
    if plan.support is not None:
        well = wording.number(round(plan.support * (plan.support_share or 0.0)))
        counted = plan.support and plan.support_share is not None
        people = (
            wording("plans.people_value", plan.support, well=well)
            if counted
            else wording("plans.people_none")
        )
    effort, time = wording.number(max(round(plan.effort, 2), 0.01)), wording("plans.at_once")
    if plan.months:
        time = wording("plans.about", time=phrases.duration(plan.months, language))
    facts = {
        "after": wording("plans.after_value", before=before, after=after),
        "holds": holds,
        "people": people,
        "effort": wording("plans.effort_value", effort=effort),
        "time": time,
    }
    return tuple((wording(f"plans.{heading}"), text) for heading, text in facts.items())


def compare(plans: Sequence[PlanView], wording: Wording) -> Comparison | None:
    """The plans side by side: facts as rows, plans as columns; None if there is nothing to
    compare.
    """
    if len(plans) < 2:
        return None
    labels = {row.feature: row for plan in plans for row in plan.rows}
    rows = []
    for feature, first in labels.items():
        goals = [{row.feature: row.after for row in plan.rows}.get(feature, "") for plan in plans]
        heading = f"{first.label} ({wording('now')}: {first.before})"
        rows.append((heading, tuple((goal or wording("plans.same"), bool(goal)) for goal in goals)))
    rows += [
        (facts[0][0], tuple((text, False) for _, text in facts))
        for facts in zip(*(plan.facts for plan in plans), strict=True)
    ]
    return Comparison(tuple(plan.name for plan in plans), tuple(rows))
