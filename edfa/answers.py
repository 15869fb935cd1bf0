"""What an interview answers with: a decision, and the next question with the facts behind it. Words are ``narrate``'s."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from edfa.checked import checked

__all__ = ["Decision", "Question", "Reason"]

Reason = Literal["head", "spouse", "unattached", "information", "survival", "policy"]


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
        return checked(cls, json.loads(text), "decision")


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
        return checked(cls, values, "question")
