"""Whether a receipt holds: the interview is held again, and whatever comes out differently is named."""

from typing import Any

from edfa.advice.answer_log import Event
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Interview
from edfa.advice.receipt import Difference, Receipt, Verification
from edfa.advice.rules import read_overlay
from edfa.errors import EdfaError
from edfa.parsing import parse

__all__ = ["verify"]

REPLAYED = (
    "facts",
    "unknown",
    "declined",
    "spent",
    "flags",
    "decision",
    "question",
    "plans",
    "no_plan",
    "standing",
    "certificate",
)


def verify(fitted: FittedAdvisor, receipt: Receipt | str, key: bytes | None = None) -> Verification:
    """Replay the interview of a receipt, an object or its JSON; with ``key``, check the signature."""
    receipt = Receipt.from_json(receipt) if isinstance(receipt, str) else receipt
    signature = _signature(receipt, key)
    if receipt.advisor != fitted.fingerprint:
        return Verification(signature, False, (Difference("advisor", receipt.advisor, fitted.fingerprint),))
    try:
        constraints, overlay = read_overlay(receipt.constraints), read_overlay(receipt.overlay)
        own: dict[str, Any] = {"costs": receipt.costs, "locks": receipt.locks, "constraints": overlay}
        interview = Interview(fitted, **own, language=receipt.language)
        interview.replay(parse(Event, event, "events") for event in receipt.events)
        today = interview.receipt(k=receipt.k, constraints=constraints, time=receipt.time)
    except (EdfaError, KeyError, TypeError) as error:
        return Verification(signature, True, (Difference("events", "as told", str(error)),))
    parts = [(name, getattr(receipt, name), getattr(today, name)) for name in REPLAYED]
    differs = [Difference(*part) for part in parts if part[1] != part[2]]
    if receipt.chosen is not None and receipt.chosen not in [plan["id"] for plan in today.plans]:
        differs.append(Difference("chosen", receipt.chosen, None))
    return Verification(signature, True, tuple(differs))


def _signature(receipt: Receipt, key: bytes | None) -> str:
    if key is None:
        return "not_checked" if receipt.signed else "none"
    if not receipt.signed:
        return "missing"
    return "right" if receipt.right(key) else "wrong"
