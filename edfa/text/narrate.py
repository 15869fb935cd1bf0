"""What there is to say to a person, in sentences: decision, question, plan, partition, certificate.

Facts in, words out: nothing is computed here and nothing is random, so the same objects give the same sentences. Which
sentence is chosen depends on what a person can do: what is sensitive, frozen or locked is never told as a step to take.
"""

from collections.abc import Collection

from edfa.advice.answers import Decision, Question, Standing
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate
from edfa.data.schema import Schema
from edfa.explanation.partition import BLOCKED, NOT_DECISIVE, NOT_KNOWN, Person
from edfa.recourse.plan import Change, NoPlan, Plan
from edfa.text import phrases
from edfa.text.phrases import MANY, Joint, label, listed, say

__all__ = ["answers", "certificate", "decision", "no_plan", "partition", "plan", "question", "standing"]


def decision(decision: Decision, schema: Schema, language: str = "en") -> str:
    """What the model decides, and how sure it is.

    >>> from edfa import Feature
    >>> schema = Schema((Feature("age", "continuous"),), "class", "good", ("bad", "good"))
    >>> decision(Decision(0.31, "bad", favourable=False), schema)
    'From what is known so far, the decision is “bad”. The probability of “good” is 31%.'
    """
    key = "decision.favourable" if decision.favourable else "decision.refused"
    names = {"outcome": phrases.plain(decision.outcome), "wanted": phrases.plain(schema.favourable)}
    if decision.threshold is None:
        return say(key, language, chance=phrases.percent(decision.probability, language), **names)
    chance, needed = phrases.percents(decision.probability, decision.threshold, language)
    return f"{say(key, language, chance=chance, **names)} {say('decision.threshold', language, needed=needed)}"


def question(question: Question, schema: Schema, language: str = "en") -> str:
    """What to tell next, why, what it may unlock, and what it costs."""
    feature = schema[question.feature]
    told = [say("question.ask", language, label=label(feature, language)), _why(question, schema, language)]
    if question.unlocks:
        told.append(say("question.unlocks", language, labels=_labels(question.unlocks, schema, language)))
    if feature.sensitive:
        told.append(say("question.sensitive", language))
    if question.cost:
        price = {"cost": question.cost, "spent": question.spent}
        told.append(say("question.cost", language, **{k: phrases.number(v, language) for k, v in price.items()}))
    else:
        told.append(say("question.free", language))
    return " ".join([*told, say("question.left", language, question.left)])


def _why(question: Question, schema: Schema, language: str) -> str:
    if question.why == "survival":
        now, then = question.survival_now, question.survival_then
        shown = phrases.cases(language, now, then) if now is not None and then is not None and then > now else None
        if shown is None:
            return say("question.lasting", language)
        return say("question.survival", language, now=shown[0], then=shown[1])
    if question.why == "spouse" and question.unit is not None:
        return say("question.spouse", language, unit=label(schema[question.unit], language))
    return say("question.unattached" if question.why == "spouse" else f"question.{question.why}", language)


def answers(question: Question, schema: Schema, language: str = "en") -> str:
    """What may be answered: one of some levels, or a number between two."""
    feature = schema[question.feature]
    if question.choices:
        values = [phrases.value(feature, choice, language) for choice in question.choices]
        return say("question.choices", language, values=listed(values, language, "or", many=len(values)))
    if question.low is None or question.high is None:
        return ""
    low = phrases.number(question.low, language)
    return say("question.numbers", language, low=low, high=phrases.value(feature, question.high, language))


def plan(
    plan: Plan,
    schema: Schema,
    language: str = "en",
    *,
    blanket: Blanket | None = None,
    locked: Collection[str] = (),
) -> str:
    """The steps with their intervals and units, what they lead to, and what could still overturn them.

    A plan that touches what is not the person's to change is told as an observation, not as advice. Where the model
    sees a ``blanket`` alone, only what is not known of it is counted.
    """
    fixed = [c.feature for c in plan.changes if c.feature in locked or not schema[c.feature].actionable]
    reached = phrases.plain(plan.reached)
    if fixed:
        said = [_change("plan.what_if", c, schema, language) for c in plan.changes]
        named = {"labels": _labels(fixed, schema, language), "changes": _all(said, language)}
        return say("plan.hypothetical", language, reached=reached, **named)
    said = [
        _change("plan.change" if c.low is None or c.low == c.high else "plan.change_within", c, schema, language)
        for c in plan.changes
    ]
    before, after = phrases.percents(plan.probability_before, plan.probability_after, language)
    lead = "plan.lead" if plan.survival is None else "plan.lasting"  # one that is chosen to last need not be minimal
    told = [say(lead, language, len(said), changes=_all(said, language))]
    told.append(say("plan.outcome", language, reached=reached, before=before, after=after))
    return " ".join([*told, *_reserve(plan, language, blanket)])


def _change(key: str, change: Change, schema: Schema, language: str) -> str:
    feature = schema[change.feature]
    ends = {name: phrases.value(feature, getattr(change, name), language) for name in ("before", "after", "high")}
    low = phrases.number(change.low, language) if _is_number(change) else phrases.value(feature, change.low, language)
    return say(key, language, label=label(feature, language), low=low, **ends)


def _is_number(change: Change) -> bool:
    return isinstance(change.low, int | float)


def _reserve(plan: Plan, language: str, blanket: Blanket | None) -> list[str]:
    """What speaks against relying on it."""
    told = [] if plan.valid else [say("plan.stale", language)]
    if plan.inlier is False:
        told.append(say("plan.rare", language))
    unknown = [name for name in plan.unknown if blanket is None or name in blanket]
    lasts = plan.survival if unknown else None
    for key, share in (("plan.rough", plan.invalidation), ("plan.survival", lasts)):
        shown = None if share is None else phrases.cases(language, share)
        told += [say(key, language, cases=shown[0])] if shown else []
    return [*told, say("plan.unknown", language, len(unknown))] if unknown else told


def no_plan(no_plan: NoPlan, schema: Schema, language: str = "en") -> str:
    """Why there is no plan, and what may open one."""
    labels = _labels(no_plan.unlock, schema, language, "or")
    return say(f"no_plan.{no_plan.reason}", language, labels=labels)


def partition(
    person: Person,
    schema: Schema,
    language: str = "en",
    *,
    favourable: bool = False,
    blanket: Blanket | None = None,
    locked: Collection[str] = (),
) -> list[str]:
    """What can turn the decision, what cannot yet and why, what never matters; in the order of the card.

    Nobody whose decision is ``favourable`` is told that it is in their hands to turn it.
    """
    told, holds = [], []
    for feature in schema:
        name, shown = feature.name, label(feature, language)
        if name in person.counterfactual:
            mine = feature.actionable and name not in locked
            key = "partition.weighs" if not mine else "partition.against" if favourable else "partition.turns"
            share = phrases.percent(person.counterfactual[name], language)
            told.append(say(key, language, share=share, label=shown))
        elif name in person.violations:
            told.append(say("partition.violation", language, label=shown))
        elif person.semifactual.get(name) == BLOCKED:
            told.append(_blocked(name, schema, language, blanket))
        elif person.semifactual.get(name) == NOT_DECISIVE:
            holds.append(name)
    unknown = [name for name, reason in person.semifactual.items() if reason == NOT_KNOWN]
    never = [name for name in person.alterfactual if name not in person.violations]
    for key, names in (("holds", holds), ("not_known", unknown), ("no_matter", never)):
        if names:
            count, labels = (
                None if key == "not_known" else len(names),
                _labels(names, schema, language, many=len(names)),
            )
            told.append(say(f"partition.{key}", language, count, labels=labels))
    return told


def _blocked(name: str, schema: Schema, language: str, blanket: Blanket | None) -> str:
    heads = [head for head, behind in blanket.units.items() if name in behind] if blanket else []
    shown = {"label": label(schema[name], language), "heads": _labels(heads, schema, language, "or")}
    return say("partition.blocked" if heads else "partition.blocked_alone", language, **shown)


def certificate(certificate: Certificate, language: str = "en") -> str:
    """The promise in a person's words; nothing where nothing is certified."""
    if not certificate.certified:
        return ""
    c = certificate
    group = "" if c.group is None else say("certificate.within", language, group=phrases.quoted(c.group, language))
    share, delta = (phrases.number(round(100 * x, 10), language) for x in (c.alpha, c.delta))
    parts = {
        "whom": say(f"certificate.{c.target}", language),
        "later": say(f"certificate.{c.reference}", language),
        "share": say("percent", language, number=share),
    }
    key = f"certificate.{c.undefined if c.undefined in ('zero', 'one') else 'drop'}"
    delta = say("percent", language, number=delta)
    everybody = say("certificate.everybody", language)
    sure = say("certificate.sure", language, n=phrases.number(c.n, language), delta=delta)
    # A promise to all can be kept although many who act early are let down; they must not take it for their own.
    told = [say(key, language, within=group, **parts), *([] if c.target == "early" else [everybody]), sure]
    return " ".join(told)


def standing(standing: Standing, language: str = "en") -> str:
    """Whether a person may act now, and why not."""
    # Whoever declines is asked in another order from there on; one of the two is enough to say.
    off = [reason for reason in standing.deviations if reason != "order" or "declined" not in standing.deviations]
    reasons = listed([say(f"off.{reason}", language) for reason in off], language)
    return say(f"standing.{standing.status}", language, reasons=reasons, since=standing.since)


def _labels(names: Collection[str], schema: Schema, language: str, joint: Joint = "and", many: int = MANY) -> str:
    return listed([label(schema[name], language) for name in names], language, joint, many)


def _all(said: list[str], language: str) -> str:
    return listed(said, language, many=len(said))
