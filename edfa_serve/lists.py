"""Three lists: what would help if it changed, what would not help yet and why, what made no
difference here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edfa.text.record import InterviewRecord
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
    empty: str
    lead: str = ""


def show_lists(
    record: InterviewRecord, wording: Wording, plans: Sequence[PlanView]
) -> tuple[FactList, ...]:
    """The three lists of an interview. Who has the favourable decision is not told how to turn
    it.
    """
    person, favourable = record.interview.partition, record.interview.decision.favourable
    declined = record.interview.log.declined
    planned: dict[str, list[str]] = {}
    for plan in plans:
        for row in plan.rows:
            planned.setdefault(row.feature, []).append(plan.name)
    turning, waiting = [], []
    for name in wording.schema.names:
        reason, label = person.semifactual.get(name), wording.label(name)
        if name in planned and name not in person.violations:
            turning.append(wording("lists.help_plan", label=label, plans=", ".join(planned[name])))
        elif name in record.facts and reason is None:
            turning.append(record.facts[name])
        if reason == "blocked":
            waiting.append(record.facts[name])
        elif reason == "not_known":
            key = "declined" if name in declined else "unknown"
            waiting.append(wording(f"lists.{key}", label=label))
        elif reason is not None and name not in planned:
            waiting.append(wording("lists.not_alone", label=label))
    none = [wording.label(name) for name in person.alterfactual if name not in person.violations]
    return (
        FactList(
            wording("lists.against" if favourable else "lists.help"),
            tuple(turning),
            wording("lists.empty_help"),
        ),
        FactList(
            wording("lists.nothing_yet" if favourable else "lists.not_yet"),
            tuple(waiting),
            wording("lists.empty_not_yet"),
        ),
        FactList(
            wording("lists.no_difference"),
            tuple(none),
            wording("lists.empty_no_difference"),
            wording("lists.no_difference_lead"),
        ),
    )
