"""What an interview answers with, as facts: decision, question, standing, moments. Words are ``narrate``'s."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from edfa.parsing import parse

__all__ = ["OFF", "Decision", "Moment", "Question", "Reason", "Standing", "Status"]

Reason = Literal["head", "spouse", "unattached", "information", "survival", "policy"]
Status = Literal["act", "ask", "granted", "no plan", "passed", "not certified", "off course"]
OFF = ("start", "order", "declined", "costs", "locks")


@dataclass(frozen=True)
class Decision:
    """What the model decides from what is known.

    ``probability`` is that of the favourable class, whatever was decided; ``outcome`` the class that was decided, and
    ``favourable`` whether it is the good one (``refused`` is the opposite). Where the advisor decides by a threshold,
    ``threshold`` is the probability of the favourable class that is needed; otherwise the likeliest class wins.

    Examples
    --------
    >>> Decision(0.31, "bad", favourable=False).refused
    True
    """

    probability: float
    outcome: str
    favourable: bool
    threshold: float | None = None

    @property
    def refused(self) -> bool:
        """Whether it is not the outcome a person would want."""
        return not self.favourable

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Decision":
        """Read what ``to_json`` wrote."""
        return parse(cls, json.loads(text), "decision")


@dataclass(frozen=True)
class Question:
    """What to ask next, what it costs, and why.

    ``why`` is one of: ``"head"`` (a parent or child of the outcome, which opens the unit ``unit``, itself),
    ``"spouse"`` (it stands behind ``unit``, whose part it completes), ``"unattached"`` (a member behind no child),
    ``"information"`` (it tells most about the outcome per cost), ``"survival"`` (it makes today's best plan likelier
    to last, from ``survival_now`` to ``survival_then``), or ``"policy"`` (another policy's choice).
    ``unlocks`` names facts that are known and cannot turn the decision now, but may once this one is known.
    ``spent`` is what was paid so far, ``left`` how many more questions there may be, this one included. ``choices`` are
    the levels an answer may have; for a number, ``low`` and ``high`` are its ends.
    """

    feature: str
    cost: float
    spent: float
    why: Reason
    unit: str | None = None
    unlocks: tuple[str, ...] = ()
    survival_now: float | None = None
    survival_then: float | None = None
    left: int = 1
    choices: tuple[str | float, ...] = ()
    low: float | None = None
    high: float | None = None

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Question":
        """Read what ``to_json`` wrote."""
        values: dict[str, Any] = json.loads(text)
        return parse(cls, values, "question")


@dataclass(frozen=True)
class Standing:
    """Whether a person may act now.

    ``"act"``: today's first plan is one the certificate speaks of. ``"ask"``: there is a plan, and the certified rule
    asks on. ``"granted"``: the decision is favourable. ``"no plan"``: refused, and nothing to act on yet. ``"passed"``:
    the rule said "act" at step ``since`` of the course and the person went on; the promise was about the plan there.
    ``"not certified"``: nothing is promised to anybody. ``"off course"``: the certificate is about people who are asked
    in the policy's order, for the card's prices; ``off`` says how this person differs (one or more of ``OFF``: facts of
    the start set are not known, others were told out of order, something was declined, prices or locks are their own).

    ``signal`` is what the rule watches (none without a plan), ``tau`` its threshold (none without a certificate).
    """

    status: Status
    signal: float | None = None
    tau: float | None = None
    since: int | None = None
    off: tuple[str, ...] = ()

    @property
    def may_act(self) -> bool:
        """Whether the certificate covers acting on today's first plan."""
        return self.status == "act"


@dataclass(frozen=True)
class Moment:
    """One step of an interview: what was told or declined, what it cost, and what was known and decided after it.

    ``asked`` says whether it answered the question that was open. ``unlocked`` names facts that were known before and
    can turn the decision since this step.
    """

    step: int
    kind: Literal["start", "answer", "decline"]
    facts: Mapping[str, Any]
    asked: bool
    cost: float
    spent: float
    decision: Decision
    counterfactual: tuple[str, ...]
    unlocked: tuple[str, ...] = ()
