"""A receipt as the page shows it, in words."""

import json
from dataclasses import dataclass

from edfa.advice.receipt import Receipt
from edfa.text.record import InterviewRecord
from edfa_serve.limits import GRADES, make_controls
from edfa_serve.plan_view import PlanView, show_plans
from edfa_serve.service import Session
from edfa_serve.view import show_answers, show_decision, show_standing
from edfa_serve.wording import Wording

__all__ = ["ReceiptView", "show_receipt"]


@dataclass(frozen=True)
class ReceiptView:
    """Rows of a heading and what is said under it, the plans, and the receipt's JSON, indented."""

    told: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, str], ...]
    plans: tuple[PlanView, ...]
    json: str
    refused: bool


def show_receipt(session: Session, receipt: Receipt, wording: Wording) -> ReceiptView:
    """A receipt that was just made of a session, in its language."""
    interview, record = session.interview, InterviewRecord(session.interview)
    decision, standing = (
        show_decision(interview.decision, wording),
        show_standing(record, wording),
    )
    plans = show_plans(record, wording, session.chosen)
    chosen = next((plan.name for plan in plans if plan.chosen), "")
    none = wording("receipt.none")
    signature = (
        wording("receipt.signed", key=receipt.key)
        if receipt.signed
        else wording("receipt.not_signed")
    )
    rows = {
        "decision": decision.outcome,
        "estimate": decision.estimate,
        "standing": f"{standing.badge}. {' '.join(standing.sentences)}",
        "certificate": receipt.certificate or wording("receipt.no_promise"),
        "chosen": chosen or none,
        "limits": _limits(session, wording) or none,
        "unknown": ", ".join(wording.label(name) for name in receipt.unknown) or none,
        "made": receipt.time.replace("T", " ").replace("+00:00", " UTC"),
        "advisor": receipt.advisor,
        "signature": signature,
    }
    return ReceiptView(
        told=tuple((answer.label, answer.value) for answer in show_answers(interview, wording)),
        rows=tuple((wording(f"receipt.{key}"), text) for key, text in rows.items()),
        plans=plans,
        json=json.dumps(json.loads(receipt.to_json()), ensure_ascii=False, indent=1),
        refused=interview.decision.refused,
    )


def _limits(session: Session, wording: Wording) -> str:
    """The person's own limits, in words."""
    said = []
    for control in make_controls(session.interview.fitted, wording, session.interview.overlay):
        grade = next(choice for choice in control.choices if choice.chosen)
        parts = [] if grade.value == GRADES[2] else [grade.text]
        parts += (
            [f"{wording('limits.low')} {control.low} {wording('limits.high')} {control.high}"]
            if control.low
            else []
        )
        said += [f"{control.label}: {', '.join(parts)}"] if parts else []
    return "; ".join(said)
