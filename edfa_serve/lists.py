"""Three lists: what would help if it changed, what would not help yet and why, what made no
difference here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edfa.advice.interview import Interview
from edfa.explanation.partition import Person
from edfa.text import phrases
from edfa_serve.plan_view import PlanView
from edfa_serve.wording import Wording

__all__ = ["FactList", "show_lists"]


@dataclass(frozen=True)
class FactList:
    """One list: its title, a sentence before it, what is said of each fact, and what is said if
    there is none.
    """

    title: str
    items: tuple[str, ...]
    lead: str = ""
    empty: str = ""


def show_lists(
    interview: Interview, wording: Wording, plans: Sequence[PlanView]
) -> tuple[FactList, ...]:
    """The three lists of an interview. Who has the favourable decision is not told how to turn
    it.
    """
    person, favourable = interview.partition, interview.decision.favourable
    return (
        FactList(
            wording("lists.against" if favourable else "lists.help"),
            tuple(_turning(interview, person, wording, plans)),
            empty=wording("lists.empty_help"),
        ),
        FactList(
            wording("lists.nothing_yet" if favourable else "lists.not_yet"),
            tuple(_waiting(interview, person, wording)),
            empty=wording("lists.empty_not_yet"),
        ),
        FactList(
            wording("lists.no_difference"),
            tuple(
                wording.label(name) for name in person.alterfactual if name not in person.violations
            ),
            lead=wording("lists.no_difference_lead"),
            empty=wording("lists.empty_no_difference"),
        ),
    )


def _turning(
    interview: Interview, person: Person, wording: Wording, plans: Sequence[PlanView]
) -> list[str]:
    """What is said of each fact that turns the decision by itself; those in a plan refer to it,
    also with others.
    """
    items = []
    fixed = {*interview.overlay.locked, *interview.fitted.rules.locked}
    for feature in wording.schema:
        name, label = feature.name, wording.label(feature.name)
        named = [plan.name for plan in plans if any(row.feature == name for row in plan.rows)]
        share = phrases.in_hundred(person.counterfactual.get(name, 0.0), wording.language)
        if name in person.violations:
            items.append(wording("lists.leans", label=label))
        elif named:
            items.append(wording("lists.help_plan", label=label, plans=", ".join(named)))
        elif name not in person.counterfactual:
            continue
        elif not feature.actionable or name in fixed:
            items.append(wording("lists.weighs", label=label))
        else:
            key = "lists.help_against" if interview.decision.favourable else "lists.help_alone"
            items.append(wording(key, label=label, share=share))
    return items


def _waiting(interview: Interview, person: Person, wording: Wording) -> list[str]:
    """What is said of each fact that cannot turn the decision yet, and what would unlock it."""
    blanket, items = interview.fitted.blanket, []
    planned = {change.feature for plan in interview.plans() for change in plan.changes}
    for name, reason in person.semifactual.items():
        label = wording.label(name)
        if reason == "not_known":
            items.append(
                wording(
                    "lists.declined" if name in interview.log.declined else "lists.unknown",
                    label=label,
                )
            )
        elif reason == "blocked":
            heads = (
                [head for head, spouses in blanket.units.items() if name in spouses]
                if blanket
                else []
            )
            key = "lists.blocked" if heads else "lists.blocked_alone"
            items.append(wording(key, label=label, heads=wording.labels(heads, "or")))
        elif name not in planned:
            items.append(wording("lists.not_alone", label=label))
    return items
