"""A letter from a receipt, only for one that holds."""

from edfa.advice.answer_log import Event
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Interview
from edfa.advice.receipt import Receipt
from edfa.advice.verify import verify
from edfa.data.rules import Overlay
from edfa.errors import MismatchError
from edfa.reading import parse
from edfa_serve.letters.letter import Letter, write_letter
from edfa_serve.letters.settings import Operator, Template

__all__ = ["letter_of_receipt"]


def letter_of_receipt(
    fitted: FittedAdvisor,
    receipt: Receipt | str,
    operator: Operator,
    template: Template = "us",
    *,
    language: str | None = None,
    key: bytes | None = None,
) -> Letter:
    """Verify a receipt, an object or its JSON, and write the letter about its interview.

    ``language`` is the receipt's own by default; with ``key``, the signature must be right.
    MismatchError if the receipt does not hold.
    """
    receipt = Receipt.from_json(receipt) if isinstance(receipt, str) else receipt
    verification = verify(fitted, receipt, key)
    if not verification.holds:
        raise MismatchError(
            f"no letter is written for a receipt that does not hold. {verification}"
        )
    overlay = None if receipt.overlay is None else Overlay.from_dict(receipt.overlay)
    interview = Interview(fitted, overlay=overlay, language=language or receipt.language)
    interview.replay(parse(Event, event, "events") for event in receipt.events)
    return write_letter(interview, operator, template, receipt=receipt)
