"""What a plan, a receipt and an advisor show of themselves in a notebook: complete HTML fragments,
all text escaped.

``plan_html``, ``receipt_html`` and ``advisor_html`` are what the ``_repr_html_`` of these
objects returns. Their words are in ``sentences/summary.<language>.toml``.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from edfa.data.schema import Feature
from edfa.text import html, phrases

if TYPE_CHECKING:
    from edfa.advice.receipt import Receipt
    from edfa.recourse.plans import Change, Plan


def say_summary(key: str, language: str, /, **values: object) -> str:
    """One entry of ``sentences/summary.<language>.toml`` with its placeholders filled.

    >>> say_summary("plan.after", "de")
    'neu'
    """
    return str(phrases.table(language, "summary")[key]).format(**values)


def plan_html(plan: "Plan", language: str = "en") -> str:
    """A plan's changes in one table, what is known about the plan in another.

    Parameters
    ----------
    plan
        The plan.
    language
        "en" or "de".

    Returns
    -------
    str
        An HTML fragment.
    """

    def say(key: str, **values: object) -> str:
        return say_summary(f"plan.{key}", language, **values)

    def percent(share: float | None, digits: int = 0) -> str:
        return "" if share is None else phrases.percent(share, language, digits)

    error = "" if plan.survival_error is None else f" ± {percent(plan.survival_error, 1)}"
    facts = {
        "decision": plan.reached,
        "probability": _rise(plan.probability_before, plan.probability_after, language),
        "effort": phrases.number(round(plan.effort, 2), language),
        "holds": say("yes" if plan.valid else "no"),
        "takes": phrases.duration(plan.months, language) if plan.months > 0 else "",
        "support": "" if plan.support is None else phrases.number(plan.support, language),
        "support_share": percent(plan.support_share),
        "inlier": "" if plan.inlier is None else say("yes" if plan.inlier else "hardly"),
        "invalidation": percent(plan.invalidation),
        "survival": percent(plan.survival) + error,
        "unknown": ", ".join(plan.unknown),
    }
    columns = [say(name) for name in ("feature", "before", "after", "enough")]
    changes = [_change_row(change, language) for change in plan.changes]
    known = [(say(name), value) for name, value in facts.items() if value]
    table = html.table(columns, changes, say("title", id=plan.id))
    return html.fragment(table, html.definition_table(known))


def _change_row(change: "Change", language: str) -> list[object]:
    """Feature, value today, value to reach, and the range of values that are as good (empty if
    there is none).
    """
    # Without a card nothing is known of the feature: its values stand as they are.
    feature = Feature(change.feature, "categorical")
    low, high, enough = change.low, change.high, ""
    if low is None and high is not None:
        enough = phrases.bounded(feature, high, -1, language)
    elif low is not None and high is None:
        enough = phrases.bounded(feature, low, 1, language)
    elif low != high:
        enough = say_summary("plan.between", language, low=low, high=high)
    if change.enough_now is not None:
        enough = say_summary("plan.today", language, value=change.enough_now)
    return [change.feature, change.before, change.after, enough]


def signed_sentence(receipt: "Receipt", language: str = "en") -> str:
    """Whether and how a receipt is signed, in words.

    Parameters
    ----------
    receipt
        The receipt.
    language
        "en" or "de".
    """
    return say_summary(
        "receipt.signed" if receipt.signed else "receipt.not_signed", language, key=receipt.key
    )


def receipt_html(receipt: "Receipt", language: str = "en") -> str:
    """A receipt: whether it is signed, what was decided and by whom, what was known, and the plans
    offered.

    Parameters
    ----------
    receipt
        The receipt, which may come from a file, so that its parts may be of any type.
    language
        "en" or "de".

    Returns
    -------
    str
        An HTML fragment.
    """
    decision, standing, no_plan = receipt.decision, receipt.standing, receipt.no_plan or {}

    def say(key: str) -> str:
        return say_summary(f"receipt.{key}", language)

    facts = {
        "time": receipt.time,
        "advisor": receipt.advisor,
        "decision": decision.get("outcome"),
        "probability": _percent(decision.get("probability"), language),
        "standing": _words("status", standing.get("status"), language),
        "guarantee": receipt.certificate,
        "certificate": receipt.certificate_id,
        "question": receipt.question,
        "spent": phrases.number(receipt.spent, language),
        "declined": ", ".join(map(str, receipt.declined)),
        "locked": ", ".join(map(str, (receipt.overlay or {}).get("locked", ()))),
        "flags": "; ".join(receipt.flags),
        "no_plan": _words("reason", no_plan.get("reason"), language),
        "chosen": receipt.chosen,
    }
    feature, reached, probability = (
        say_summary(f"plan.{name}", language) for name in ("feature", "decision", "probability")
    )
    plans = [_plan_row(plan, language) for plan in receipt.plans]
    columns = [say("plan"), say("changes"), reached, f">{probability}"]
    return html.fragment(
        html.paragraph(signed_sentence(receipt, language)),
        html.definition_table((say(name), value) for name, value in facts.items() if value),
        html.table([feature, say("answer")], receipt.facts.items(), say("known"))
        if receipt.facts
        else Markup(),
        html.table(columns, plans, say("plans")) if plans else Markup(),
    )


def _plan_row(plan: Mapping[str, Any], language: str) -> list[object]:
    """A receipt's plan, which is data and may come from a file: id, changes, decision,
    probability.
    """
    listed, changes = plan.get("changes"), []
    for change in listed if isinstance(listed, list | tuple) else ():
        if isinstance(change, Mapping):
            feature, before, after = map(change.get, ("feature", "before", "after"))
            changes.append(f"{feature}: {before} → {after}")
    return [
        plan.get("id"),
        "; ".join(changes),
        plan.get("reached"),
        _rise(plan.get("probability_before"), plan.get("probability_after"), language),
    ]


def advisor_html(
    settings: Mapping[str, object],
    *,
    fingerprint: str = "",
    certificate: str = "",
    evaluation: str = "",
    blanket: str = "",
) -> str:
    """An advisor's settings and, once it is fitted, its fingerprint, its guarantee, its results and
    its blanket.

    Parameters
    ----------
    settings
        The settings by name.
    fingerprint
        The advisor's fingerprint; empty: it is shown as not fitted.
    certificate
        The certificate's sentence; empty: none.
    evaluation
        The results on the test part, as ``str`` gives them; empty: none.
    blanket
        The features of the blanket, as text.

    Returns
    -------
    str
        An HTML fragment.
    """
    results = {
        "fingerprint": fingerprint,
        "certificate": certificate,
        "on the test part": evaluation,
        "blanket": blanket,
    }
    learnt = {name: text for name, text in results.items() if text}
    unfitted = html.paragraph("Not fitted yet: call fit(table).")
    return html.fragment(
        _named_texts(settings, "Advisor"),
        _named_texts(learnt, "Fitted") if fingerprint else unfitted,
    )


def _named_texts(texts: Mapping[str, object], caption: str) -> Markup:
    """A table of names and texts; one of several lines, such as a tree, keeps its lines."""
    lines = Markup("<pre>{}</pre>")
    return html.definition_table(
        [(name, lines.format(text) if "\n" in str(text) else text) for name, text in texts.items()],
        caption,
    )


def _rise(before: Any, after: Any, language: str) -> str:
    return f"{_percent(before, language)} → {_percent(after, language)}"


def _percent(share: Any, language: str) -> str:
    """A share as a percentage; "?" for anything else, which a receipt from a file may have."""
    is_share = isinstance(share, int | float) and 0 <= share <= 1
    return phrases.percent(share, language) if is_share else "?"


def _words(kind: str, name: Any, language: str) -> str:
    """A ``"status"`` or ``"reason"`` such as ``no_plan`` in words; one that is not known stands as
    it is.
    """
    entry = phrases.table(language, "summary").get(f"{kind}.{name}")
    return str(name or "").replace("_", " ") if entry is None else str(entry)
