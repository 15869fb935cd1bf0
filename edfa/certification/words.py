"""What a certificate promises, in the exact words of the record."""

from typing import TYPE_CHECKING

from edfa.certification.records import Loss, Reference
from edfa.certification.risk_curve import Target
from edfa.text.phrases import listed, number, say

if TYPE_CHECKING:
    from edfa.certification.certificate import Certificate

__all__ = ["certificate_in_words", "promise_in_words"]


def certificate_in_words(certificate: "Certificate", language: str) -> str:
    """The guarantee; or why there is none."""
    if certificate.certified:
        return _promise(certificate, language)
    why = _why_not(certificate, language)
    return say("formal.none", language, within=_within(certificate, language), why=why)


def promise_in_words(
    language: str,
    loss: Loss,
    target: Target,
    reference: Reference,
    **parts: str,
) -> str:
    """What is promised, to whom, and against what; ``parts`` are ``share`` and, with a group,
    ``within``.
    """
    section = "formal" if loss == "recourse" else f"formal.{loss}"
    whom, later = (say(f"{section}.{name}", language) for name in (target, reference))
    return say(
        f"{section}.promise", language, **{"within": "", "whom": whom, "later": later} | parts
    )


def _promise(certificate: "Certificate", language: str) -> str:
    c = certificate
    parts = {"share": _digits(c.alpha, language), "within": _within(c, language)}
    promise = promise_in_words(language, c.loss, c.target, c.reference, **parts)
    if c.include_last_step and c.loss != "recourse":
        promise = say("formal.include_last_step", language, promise=promise)
    promise = say("formal.sure", language, promise=promise, delta=_digits(c.delta, language))
    if c.ceiling is not None and c.signal == "survival":
        promise = say(
            "formal.survival_floor",
            language,
            promise=promise,
            least=_digits(1 - c.ceiling, language),
        )
    elif c.ceiling is not None:
        promise = say(
            "formal.ceiling", language, promise=promise, most=_digits(c.ceiling, language)
        )
    if c.rules:
        promise = say("formal.rules", language, promise=promise, rules=listed(c.rules, language))
    return say("formal.model", language, promise=promise, model=c.model) if c.model else promise


def _within(certificate: "Certificate", language: str) -> str:
    return (
        "" if certificate.group is None else say("formal.within", language, group=certificate.group)
    )


def _why_not(certificate: "Certificate", language: str) -> str:
    c = certificate
    if c.status == "undefined":
        return say("formal.undefined", language, people=number(c.people, language))
    if not c.asked and c.target == "early":
        return say("formal.nothing_asked", language)
    if c.target in ("early", "act") and not c.risk and c.bound == 1:
        whom = say(
            f"{'formal' if c.loss == 'recourse' else f'formal.{c.loss}'}.{c.target}", language
        )
        return say("formal.nobody", language, whom=whom, n=number(c.n, language))
    risk = max(
        c.risk or 0.0, c.act_risk or 0.0
    )  # whichever of the two stands in the way, it is not the smaller
    seen = say("formal.seen", language, risk=_digits(risk, language), n=number(c.n, language))
    more = "" if c.n_more is None else number(c.n_more, language)
    key = "risk_limited" if c.status == "risk_limited" else "data_limited" if more else "too_near"
    return say(f"formal.{key}", language, seen=seen, share=_digits(c.alpha, language), more=more)


def _digits(value: float, language: str) -> str:
    return number(float(f"{value:.4g}"), language)
