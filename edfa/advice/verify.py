"""Whether a receipt holds: ``verify`` holds the interview again, and names whatever comes out
differently.
"""

from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Event, Interview
from edfa.advice.promise import CertifyLater
from edfa.advice.receipt import Difference, Receipt, Verification, check_key
from edfa.data.rules import Overlay
from edfa.errors import EdfaError, PendingError, UnreadableError
from edfa.reading import parse

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
    "events",
)
"""The parts of a receipt that are compared whatever the certificate."""
PROMISED = ("standing", "certificate")
"""The parts that depend on the certificate that the advisor has."""


def verify(
    fitted: FittedAdvisor,
    receipt: Receipt | str,
    key: bytes | None = None,
    certify_later: CertifyLater | None = None,
) -> Verification:
    """Replay the interview of a receipt, and compare what the advisor says today.

    A receipt that was made under another certificate is compared in all that does not depend on it.

    Parameters
    ----------
    fitted
        The advisor.
    receipt
        The receipt, or its JSON.
    key
        The operator's key, with which the signature is checked; None: it is not checked.
    certify_later
        Runs a calibration that this takes elsewhere; None: it is run at once.

    Returns
    -------
    Verification
        What differs, and what is wrong with the signature.

    Raises
    ------
    UnreadableError
        If the text is no receipt.
    SettingError
        If the key is too short.
    PendingError
        While a calibration is run elsewhere.
    """
    receipt = Receipt.from_json(receipt) if isinstance(receipt, str) else receipt
    signature = _signature(receipt, key)
    if receipt.advisor != fitted.fingerprint:
        return Verification(
            signature, False, (Difference("advisor", receipt.advisor, fitted.fingerprint),)
        )
    try:
        again = replay_receipt(fitted, receipt, certify_later=certify_later)
        today = again.receipt(k=receipt.k, time=receipt.time)
    except PendingError:
        raise
    except (EdfaError, KeyError, TypeError) as error:
        return Verification(signature, True, (Difference("events", "as told", str(error)),))
    same = receipt.certificate_id == today.certificate_id
    compared = (*REPLAYED, *PROMISED) if same else REPLAYED
    parts = [(name, getattr(receipt, name), getattr(today, name)) for name in compared]
    differs = [Difference(*part) for part in parts if part[1] != part[2]]
    if receipt.chosen is not None and receipt.chosen not in [plan["id"] for plan in today.plans]:
        differs.append(Difference("chosen", receipt.chosen, None))
    others = None if same else (receipt.certificate_id, today.certificate_id)
    return Verification(signature, True, tuple(differs), others)


def replay_receipt(
    fitted: FittedAdvisor,
    receipt: Receipt,
    *,
    language: str | None = None,
    certify_later: CertifyLater | None = None,
) -> Interview:
    """Hold the interview of a receipt again.

    Parameters
    ----------
    fitted
        The advisor that holds it.
    receipt
        What the person told, in which order, and their overlay.
    language
        In which the interview speaks; None: that of the receipt.
    certify_later
        As for ``Interview``.

    Raises
    ------
    UnreadableError
        If the receipt tells something that is no event of an interview.
    """
    overlay = None if receipt.overlay is None else Overlay.from_dict(receipt.overlay)
    interview = Interview(
        fitted, overlay=overlay, language=language or receipt.language, certify_later=certify_later
    )
    return interview.replay(
        parse(Event, event, "events", UnreadableError) for event in receipt.events
    )


def _signature(receipt: Receipt, key: bytes | None) -> str:
    """What is to be said of the signature, in the words of ``Verification.signature``."""
    if key is None:
        return "not_checked" if receipt.signed else "none"
    check_key(key)
    if not receipt.signed:
        return "missing"
    return "right" if receipt.right(key) else "wrong"
