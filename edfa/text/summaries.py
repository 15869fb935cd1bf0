"""What a plan, a receipt and an advisor show of themselves in a notebook: complete HTML fragments, all text escaped."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from edfa.data.feature import Feature
from edfa.text import html, phrases

if TYPE_CHECKING:
    from edfa.advice.receipt import Receipt
    from edfa.data.schema import Schema
    from edfa.recourse.plan import Change, Plan

__all__ = ["advisor_html", "plan_html", "receipt_html"]


def plan_html(plan: "Plan", schema: "Schema | None" = None) -> str:
    """A plan's changes in one table, what is known about the plan in another.

    With a ``schema``, features are shown by their titles and values with their units.
    """
    columns = ["feature", "from", "to", "also enough"]
    changes = [_change_row(change, schema) for change in plan.changes]
    facts: list[tuple[str, object]] = [
        ("decision then", _outcome(plan.reached, schema)),
        ("probability", _rise(plan.probability_before, plan.probability_after)),
        ("effort", f"{plan.effort:.2f}"),
        ("holds with what is known now", "yes" if plan.valid else "no"),
    ]
    if plan.months > 0:
        facts.append(("takes about", phrases.duration(plan.months, "en")))
    if plan.support is not None:
        facts.append(("training people there", f"{plan.support:,}"))
    if plan.support_share is not None:
        facts.append(("of them with the favourable outcome", f"{plan.support_share:.0%}"))
    if plan.inlier is not None:
        facts.append(("people like the result in training", "yes" if plan.inlier else "hardly any"))
    if plan.invalidation is not None:
        facts.append(("fails if met only roughly", f"{plan.invalidation:.0%}"))
    if plan.survival is not None:
        error = "" if plan.survival_error is None else f" ± {plan.survival_error:.1%}"
        facts.append(("holds once everything is known", f"{plan.survival:.0%}{error}"))
    if plan.unknown:
        facts.append(("not known yet", ", ".join(plan.unknown)))
    return html.fragment(html.table(columns, changes, f"Plan {plan.id}"), html.definition_table(facts))


def _change_row(change: "Change", schema: "Schema | None") -> list[object]:
    """Feature, value today, value to reach, and the range of values that are as good (empty if there is none)."""
    # Without a schema nothing is known of the feature: its values stand as they are.
    feature = Feature(change.feature, "categorical", label=change.feature) if schema is None else schema[change.feature]

    def words(value: Any) -> Any:
        return value if schema is None else phrases.value(feature, value, "en")

    low, high = change.low, change.high
    if low is None and high is None:
        enough = ""
    elif low is None or high is None:
        enough = phrases.at_most(feature, high, "en") if low is None else phrases.at_least(feature, low, "en")
    else:
        enough = f"{words(low)} to {words(high)}" if low != high else ""
    return [feature.title, words(change.before), words(change.after), enough]


def receipt_html(receipt: "Receipt", schema: "Schema | None" = None) -> str:
    """A receipt: whether it is signed, what was decided and by whom, what was known, and the plans offered.

    With a ``schema``, decisions, facts and their values are shown in the card's words.
    """
    decision, standing, no_plan = receipt.decision, receipt.standing, receipt.no_plan or {}
    facts: list[tuple[str, object]] = [
        ("time", receipt.time),
        ("advisor", receipt.advisor),
        ("decision", _outcome(decision.get("outcome"), schema)),
        ("probability of the favourable class", _percent(decision.get("probability"))),
        ("may the person act", _words(standing.get("status"))),
        ("guarantee", receipt.certificate),
        ("certificate", receipt.certificate_id),
        ("next question", _title(receipt.question, schema)),
        ("spent", f"{receipt.spent:g}"),
        ("declined", ", ".join(str(_title(name, schema)) for name in receipt.declined)),
        ("must not change", ", ".join(str(_title(name, schema)) for name in receipt.locks)),
        ("not taken as told", "; ".join(receipt.flags)),
        ("why there is no plan", _words(no_plan.get("reason"))),
        ("plan the person follows", receipt.chosen),
    ]
    answers = [_answer_row(name, answer, schema) for name, answer in receipt.facts.items()]
    known = html.table(["feature", "answer"], answers, "What was known")
    plans = html.table(
        ["plan", "changes", "decision then", ">probability"],
        [_plan_row(plan, schema) for plan in receipt.plans],
        "Plans",
    )
    return html.fragment(
        html.paragraph(receipt.sentence),
        html.definition_table((name, value) for name, value in facts if value),
        known if receipt.facts else Markup(),
        plans if receipt.plans else Markup(),
    )


def _title(name: Any, schema: "Schema | None") -> Any:
    """A feature's name for people; a name that the schema does not know stays as it is."""
    return schema[name].title if schema is not None and name in schema.names else name


def _answer_row(name: Any, answer: Any, schema: "Schema | None") -> list[object]:
    """A fact of a receipt and its value; in the card's words, where the schema knows it."""
    is_known = schema is not None and name in schema.names
    return [_title(name, schema), phrases.value(schema[name], answer, "en") if schema and is_known else answer]


def _plan_row(plan: Mapping[str, Any], schema: "Schema | None") -> list[object]:
    """A receipt's plan, which is data and may come from a file: id, changes, decision, probability."""
    listed = plan.get("changes")
    parts = [c for c in listed if isinstance(c, Mapping)] if isinstance(listed, list | tuple) else []
    rows = [
        [_answer_row(change.get("feature"), change.get(end), schema) for end in ("before", "after")] for change in parts
    ]
    changes = [f"{before[0]}: {before[1]} → {after[1]}" for before, after in rows]
    probability = _rise(plan.get("probability_before"), plan.get("probability_after"))
    return [plan.get("id"), "; ".join(changes), _outcome(plan.get("reached"), schema), probability]


def _outcome(class_name: Any, schema: "Schema | None") -> Any:
    """What a class means in the card's words; without a schema, its name."""
    return class_name if schema is None else schema.outcome(class_name)


def advisor_html(
    settings: Mapping[str, object],
    *,
    fingerprint: str = "",
    certificate: str = "",
    evaluation: str = "",
    blanket: str = "",
) -> str:
    """An advisor's settings and, once it is fitted, its fingerprint, its guarantee, its results and its blanket.

    All but the settings are texts: the certificate's sentence, the evaluation and the blanket as ``str`` gives them.
    Without a ``fingerprint`` the advisor is shown as not fitted.
    """
    results = [("fingerprint", fingerprint), ("certificate", certificate), ("on the test part", evaluation)]
    fitted = html.definition_table([(name, text) for name, text in results if text], "Fitted")
    return html.fragment(
        html.definition_table(settings.items(), "Advisor"),
        fitted if fingerprint else html.paragraph("Not fitted yet: call fit(table)."),
        Markup("<pre>{}</pre>").format(blanket) if blanket else Markup(),
    )


def _rise(before: Any, after: Any) -> str:
    return f"{_percent(before)} → {_percent(after)}"


def _percent(share: Any) -> str:
    """A share as a percentage; "?" for anything else, which a receipt from a file may have."""
    return f"{share:.0%}" if isinstance(share, int | float) else "?"


def _words(status: Any) -> str:
    """A status such as ``no_plan`` as words."""
    return str(status or "").replace("_", " ")
