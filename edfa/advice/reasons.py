"""One person's decision, next question and standing, read off their outlook, with the facts behind each."""

from typing import Any

import numpy as np

from edfa.acquisition.greedy import Greedy
from edfa.acquisition.survival import SurvivalPolicy
from edfa.advice.answers import Decision, Question, Reason, Standing
from edfa.advice.assessment import Assessment
from edfa.blanket.units import Blanket
from edfa.data.codes import Levels

__all__ = ["decide", "question", "standing"]


def decide(look: Assessment) -> Decision:
    """What is decided about the one person of ``look``."""
    fitted, code = look.fitted, int(look.decision[0])
    return Decision(
        probability=float(look.probability[0]),
        outcome=fitted.schema.classes[code],
        favourable=code == fitted.favourable,
        threshold=fitted.threshold,
    )


def question(look: Assessment) -> Question | None:
    """What to ask the one person of ``look`` next, and why."""
    if (chosen := int(look.next[0])) < 0:
        return None
    fitted = look.fitted
    name, column = fitted.schema.names[chosen], fitted.encoder.columns[chosen]
    told: dict[str, Any] = _reason(look, name)
    if isinstance(column, Levels):
        told["choices"] = column.levels
    else:
        told |= {"low": column.low, "high": column.high}
    inside = fitted.visible if fitted.policy.blanket else np.ones(len(fitted.schema), dtype=bool)
    return Question(
        feature=name,
        cost=float(look.costs[0, chosen]),
        spent=float(look.spent[0]),
        left=int((look.state.open[0] & inside).sum()),
        **told,
    )


def _reason(look: Assessment, name: str) -> dict[str, Any]:
    """Why this feature: its place in the blanket, what it tells, or how much longer advice lasts with it."""
    policy, blanket = look.fitted.policy, look.fitted.policy.blanket
    why: Reason = "policy"
    unit: str | None = None
    if isinstance(policy, Greedy):
        why = "information"
    elif blanket is not None and name in blanket:
        why, unit = _place(look, blanket, name)
    told: dict[str, Any] = {"why": why, "unit": unit}
    if blanket is not None:
        told["unlocks"] = _unlocks(look, blanket, name)
    if isinstance(policy, SurvivalPolicy):
        told |= {"why": "survival"} | _survival(look, policy, name)
    return told


def _survival(look: Assessment, policy: SurvivalPolicy, name: str) -> dict[str, float]:
    """How often advice lasts before and after this question: of this person, or on average in the order learnt."""
    if policy.personal:
        chosen = look.fitted.schema.index(name)
        now, then = policy.expected(look.state, np.arange(look.X.shape[1])[None] == chosen)
        return {"survival_now": float(now[0]), "survival_then": float(then[0, chosen])}
    step = next((step for step in policy.steps_ if step.feature == name), None)
    return {} if step is None else {"survival_now": step.before, "survival_then": step.after}


def _place(look: Assessment, blanket: Blanket, name: str) -> tuple[Reason, str | None]:
    """Head of a unit, behind one (rather a head that is known), or behind none."""
    if name in blanket.units:
        return "head", name
    heads = [head for head, behind in blanket.units.items() if name in behind]
    known = [head for head in heads if look.known[0, look.fitted.schema.index(head)]]
    return ("spouse", (known or heads)[0]) if heads else ("unattached", None)


def _unlocks(look: Assessment, blanket: Blanket, name: str) -> tuple[str, ...]:
    """Known facts of the same units that cannot turn the decision as long as this one is not known."""
    units = [(head, *behind) for head, behind in blanket.units.items() if name == head or name in behind]
    others = dict.fromkeys(other for unit in units for other in unit if other != name)
    names, waits = look.fitted.schema, look.known[0] & look.partition.semifactual[0]
    return tuple(other for other in others if waits[names.index(other)])


def standing(look: Assessment, course: list[Assessment], off: tuple[str, ...], k: int) -> Standing:
    """Whether the one person of ``look`` may act now.

    ``course`` holds the states that the certified rule passes on the way here, ``off`` why they do not lead here.
    """
    tau = look.fitted.tau
    if not look.refused[0]:
        return Standing("granted", tau=tau)
    signal = float(look.signal(k)[0])
    if np.isnan(signal):
        return Standing("no_plan", tau=tau)
    if tau is None:
        return Standing("not_certified", signal)
    if off:
        return Standing("off_path", signal, tau, off=off)
    since = next((i for i, then in enumerate(course) if then.stops(tau, k)[0]), None)
    if look.next[0] < 0 or (since is None and signal <= tau):
        return Standing("act", signal, tau)
    return Standing("ask" if since is None else "passed", signal, tau, since)
