"""One person's decision and next question, read off their assessment, with the facts behind each."""

from typing import Any

import numpy as np

from edfa.acquisition.greedy import Greedy
from edfa.acquisition.survival import SurvivalPolicy
from edfa.advice.answers import Decision, Question, QuestionReason
from edfa.advice.assessment import Assessment
from edfa.blanket.units import Blanket
from edfa.data.codes import Levels

__all__ = ["describe_decision", "describe_question"]


def describe_decision(assessment: Assessment) -> Decision:
    """What is decided about the one person of ``assessment``."""
    fitted, code = assessment.fitted, int(assessment.decision[0])
    return Decision(
        probability=float(assessment.probability[0]),
        outcome=fitted.schema.classes[code],
        favourable=code == fitted.favourable,
        threshold=fitted.threshold,
    )


def describe_question(assessment: Assessment) -> Question | None:
    """What to ask the one person of ``assessment`` next, and why; None: nothing more."""
    if (chosen := int(assessment.next[0])) < 0:
        return None
    fitted = assessment.fitted
    name, column = fitted.schema.names[chosen], fitted.encoder.columns[chosen]
    details: dict[str, Any] = _reason(assessment, name)
    if isinstance(column, Levels):
        details["choices"] = column.levels
    else:
        details |= {"low": column.low, "high": column.high}
    inside = fitted.background.visible if fitted.policy.blanket else np.ones(len(fitted.schema), dtype=bool)
    return Question(
        feature=name,
        cost=float(assessment.people.costs[0, chosen]),
        spent=float(assessment.people.spent[0]),
        left=int((assessment.people.askable[0] & inside).sum()),
        **details,
    )


def _reason(assessment: Assessment, name: str) -> dict[str, Any]:
    """Why this feature: its place in the blanket, what it tells, or how much longer advice lasts with it."""
    policy, blanket = assessment.fitted.policy, assessment.fitted.policy.blanket
    why: QuestionReason = "policy"
    unit: str | None = None
    if isinstance(policy, Greedy):
        why = "information"
    elif blanket is not None and name in blanket:
        why, unit = _position(assessment, blanket, name)
    details: dict[str, Any] = {"why": why, "unit": unit}
    if blanket is not None:
        details["unlocks"] = _unlocks(assessment, blanket, name)
    if isinstance(policy, SurvivalPolicy):
        details |= {"why": "survival"} | _survival(assessment, policy, name)
    return details


def _survival(assessment: Assessment, policy: SurvivalPolicy, name: str) -> dict[str, float]:
    """How often advice lasts before and after this question: of this person, or on average in the order learnt."""
    if policy.personal:
        chosen = assessment.fitted.schema.index(name)
        asked = np.arange(assessment.X.shape[1])[None] == chosen
        now, then = policy.expected(assessment.people, asked)
        return {"survival_now": float(now[0]), "survival_then": float(then[0, chosen])}
    step = next((step for step in policy.steps_ if step.feature == name), None)
    return {} if step is None else {"survival_now": step.before, "survival_then": step.after}


def _position(assessment: Assessment, blanket: Blanket, name: str) -> tuple[QuestionReason, str | None]:
    """Whether the feature heads a unit, stands behind one (preferably one whose head is known), or behind none."""
    if name in blanket.units:
        return "head", name
    heads = [head for head, spouses in blanket.units.items() if name in spouses]
    known = [head for head in heads if assessment.known[0, assessment.fitted.schema.index(head)]]
    return ("spouse", (known or heads)[0]) if heads else ("unattached", None)


def _unlocks(assessment: Assessment, blanket: Blanket, name: str) -> tuple[str, ...]:
    """Known facts of the same units that cannot turn the decision as long as this one is not known."""
    units = [(head, *spouses) for head, spouses in blanket.units.items() if name == head or name in spouses]
    others = dict.fromkeys(other for unit in units for other in unit if other != name)
    schema, partition = assessment.fitted.schema, assessment.explained.partition
    waits = assessment.known[0] & partition.semifactual[0]
    return tuple(other for other in others if waits[schema.index(other)])
