"""What the page shows of an interview, as plain records of words: templates only lay them out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from edfa.advice.assessment import Decision
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Interview
from edfa.advice.receipt import Receipt
from edfa.text import narrate, phrases
from edfa.text.record import InterviewRecord, PlanRecord
from edfa.text.steps import Step
from edfa_serve.forms import Field, Given, make_field
from edfa_serve.limits import GRADES, make_controls
from edfa_serve.service import Session
from edfa_serve.timeline import Timeline, show_timeline
from edfa_serve.wording import Wording

__all__ = [
    "show_decision",
    "show_question",
    "show_receipt",
    "show_result",
    "supposable",
    "suppose",
]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Row:
    """One changed fact: its label, its value now and then, and what else would do."""

    feature: str
    label: str
    before: str
    after: str
    works: str


@dataclass(frozen=True)
class PlanView:
    """A plan's card. ``facts`` are pairs of a heading and what is said under it, ``notes`` what
    speaks against it.
    """

    id: str
    letter: str
    name: str
    rows: tuple[Row, ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    chosen: bool
    first: bool


@dataclass(frozen=True)
class Comparison:
    """A table: the plans' names, and rows of a heading and a cell for each plan, with whether it is
    a change.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, bool], ...]], ...]


def show_plans(
    record: InterviewRecord, wording: Wording, chosen: str | None
) -> tuple[PlanView, ...]:
    """The cards of the plans that are offered now; the first is marked if the person may act on
    it.
    """
    may_act = record.standing.may_act
    uncovered = (wording("plans.covered", letter=LETTERS[0]),) if may_act else ()
    return tuple(
        PlanView(
            id=offered.plan.id,
            letter=letter,
            name=wording("plans.name", letter=letter),
            rows=tuple(_row(step, wording) for step in offered.steps),
            facts=_facts(offered, wording),
            notes=offered.notes + (uncovered if number else ()),
            chosen=offered.plan.id == chosen,
            first=may_act and number == 0,
        )
        for number, (letter, offered) in enumerate(zip(LETTERS, record.plans, strict=False))
    )


def _row(step: Step, wording: Wording) -> Row:
    """One change, in words."""
    works = wording("plans.wait") if step.time else ""
    if isinstance(step.enough, tuple):
        works = wording("plans.works", low=step.enough[0], high=step.enough[1])
    elif step.enough:
        works = wording("plans.works_open", bound=step.enough)
    before, after = (
        phrases.unquoted(value, wording.language) for value in (step.before, step.after)
    )
    return Row(step.feature.name, wording.label(step.feature.name), before, after, works)


def _facts(offered: PlanRecord, wording: Wording) -> tuple[tuple[str, str], ...]:
    """What is said of a plan beside its changes."""
    plan, language, not_said = offered.plan, wording.language, wording("plans.holds_unknown")
    shares = phrases.hundredths(plan.probability_before, plan.probability_after, language)
    before, after = (wording("of", n=share, total=100) for share in shares)
    cases = None if plan.survival is None else phrases.cases(language, plan.survival)
    holds = wording("plans.holds_value", cases=cases[0]) if cases else not_said
    if plan.survival == 1 and not offered.unknown:
        holds = wording("plans.holds_all")
    people = not_said
    if plan.support is not None:
        well = wording.number(round(plan.support * (plan.support_share or 0.0)))
        counted = plan.support and plan.support_share is not None
        people = (
            wording("plans.people_value", plan.support, well=well)
            if counted
            else wording("plans.people_none")
        )
    effort, time = wording.number(max(round(plan.effort, 2), 0.01)), wording("plans.at_once")
    if plan.months:
        time = wording("plans.about", time=phrases.duration(plan.months, language))
    facts = {
        "after": wording("plans.after_value", before=before, after=after),
        "holds": holds,
        "people": people,
        "effort": wording("plans.effort_value", effort=effort),
        "time": time,
    }
    return tuple((wording(f"plans.{heading}"), text) for heading, text in facts.items())


def compare(plans: Sequence[PlanView], wording: Wording) -> Comparison | None:
    """The plans side by side: facts as rows, plans as columns; None if there is nothing to
    compare.
    """
    if len(plans) < 2:
        return None
    labels = {row.feature: row for plan in plans for row in plan.rows}
    rows = []
    for feature, first in labels.items():
        goals = [{row.feature: row.after for row in plan.rows}.get(feature, "") for plan in plans]
        heading = f"{first.label} ({wording('now')}: {first.before})"
        rows.append((heading, tuple((goal or wording("plans.same"), bool(goal)) for goal in goals)))
    rows += [
        (facts[0][0], tuple((text, False) for _, text in facts))
        for facts in zip(*(plan.facts for plan in plans), strict=True)
    ]
    return Comparison(tuple(plan.name for plan in plans), tuple(rows))


@dataclass(frozen=True)
class FactList:
    """One list: its title, a sentence before it, what is said of each fact, and what is said if
    there is none.
    """

    title: str
    items: tuple[str, ...]
    empty: str
    lead: str = ""


def show_lists(
    record: InterviewRecord, wording: Wording, plans: Sequence[PlanView]
) -> tuple[FactList, ...]:
    """The three lists of an interview. Who has the favourable decision is not told how to turn
    it.
    """
    person, favourable = record.interview.partition, record.decision.favourable
    declined = record.interview.log.declined
    planned: dict[str, list[str]] = {}
    for plan in plans:
        for row in plan.rows:
            planned.setdefault(row.feature, []).append(plan.name)
    turning, waiting = [], []
    for name in wording.schema.names:
        reason, label = person.semifactual.get(name), wording.label(name)
        if name in planned and name not in person.violations:
            turning.append(wording("lists.help_plan", label=label, plans=", ".join(planned[name])))
        elif name in record.facts and reason is None:
            turning.append(record.facts[name])
        if reason == "blocked":
            waiting.append(record.facts[name])
        elif reason == "not_known":
            key = "declined" if name in declined else "unknown"
            waiting.append(wording(f"lists.{key}", label=label))
        elif reason is not None and name not in planned:
            waiting.append(wording("lists.not_alone", label=label))
    none = [wording.label(name) for name in person.alterfactual if name not in person.violations]
    return (
        FactList(
            wording("lists.against" if favourable else "lists.help"),
            tuple(turning),
            wording("lists.empty_help"),
        ),
        FactList(
            wording("lists.nothing_yet" if favourable else "lists.not_yet"),
            tuple(waiting),
            wording("lists.empty_not_yet"),
        ),
        FactList(
            wording("lists.no_difference"),
            tuple(none),
            wording("lists.empty_no_difference"),
            wording("lists.no_difference_lead"),
        ),
    )


Light = Literal["yes", "wait", "none", "granted", "nothing"]
LIGHTS: Mapping[str, Light] = {
    "act": "yes",
    "ask": "wait",
    "pending": "wait",
    "granted": "granted",
}


@dataclass(frozen=True)
class DecisionView:
    """The decision: its title, the estimate and what is needed in a sentence, the estimate as a
    count, and both as shares from 0 to 100.
    """

    title: str
    outcome: str
    favourable: bool
    estimate: str
    count: str
    share: float
    line: float | None


@dataclass(frozen=True)
class StandingView:
    """Whether the person may act: which light, its word, why, and the promise in short and in
    full.
    """

    light: Light
    badge: str
    sentences: tuple[str, ...]
    promise: str = ""
    full: str = ""


@dataclass(frozen=True)
class QuestionView:
    """The next question: its field, why it is asked in one line and in full, and how many may
    come.
    """

    feature: str
    title: str
    field: Field
    left: str
    why: str
    more: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """One fact that was told, or declined (then ``value`` says so); ``undo``: it can be taken
    back.
    """

    name: str
    label: str
    value: str
    undo: bool


@dataclass(frozen=True)
class ResultView:
    """Everything there is to say of an interview now."""

    decision: DecisionView
    standing: StandingView
    plans: tuple[PlanView, ...]
    comparison: Comparison | None
    no_plan: str
    lists: tuple[FactList, ...]
    timeline: Timeline
    answers: tuple[Answer, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Supposition:
    """Now and then: rows of a heading and two texts, whether they differ, and the verdict in a
    sentence.
    """

    verdict: str
    rows: tuple[tuple[str, str, str, bool], ...]


def show_decision(decision: Decision, wording: Wording) -> DecisionView:
    """The decision in words and counts."""
    outcome = wording.outcome(decision.outcome)
    return DecisionView(
        title=wording("decision.title", outcome=outcome),
        outcome=outcome,
        favourable=decision.favourable,
        estimate=narrate.estimate(decision, wording.schema, wording.language),
        count=wording.count(decision),
        share=round(100 * decision.probability, 1),
        line=None if decision.threshold is None else round(100 * decision.threshold, 1),
    )


def show_standing(record: InterviewRecord, wording: Wording) -> StandingView:
    """Whether the person may act, with the promise if there is one."""
    interview, standing = record.interview, record.standing
    light, certificate = _light(record), interview.certificate
    sentences = [narrate.standing(standing, interview.language)]
    if light == "granted" and record.question is not None:
        sentences.append(wording("standing.still_open"))
    if standing.since is not None and not standing.may_act:
        sentences.append(wording("standing.earlier", since=standing.since))
    promise = ""
    if certificate is not None and certificate.loss == "let_down":
        promise = wording("standing.promise", round(100 * certificate.alpha), wanted=wording.wanted)
    return StandingView(
        light, wording(f"standing.{light}"), tuple(sentences), promise, interview.guarantee or ""
    )


def _light(record: InterviewRecord) -> Light:
    if record.standing.status == "no_plan":
        return "nothing" if record.question is None else "wait"
    return LIGHTS.get(record.standing.status, "none")


def show_question(
    record: InterviewRecord, wording: Wording, given: Given | None = None, error: str = ""
) -> QuestionView | None:
    """The next question, with what was entered if the form is shown again; None: there is none."""
    question, encoder = record.question, record.interview.fitted.encoder
    if question is None:
        return None
    field = make_field(wording, encoder, question.feature, given=given, error=error)
    why, *more, left = record.reasons
    if question.cost:
        more.append(wording("question.price"))
    return QuestionView(question.feature, field.ask or field.label, field, left, why, tuple(more))


def show_answers(interview: Interview, wording: Wording) -> tuple[Answer, ...]:
    """What was told and declined, in order; what was told at the start cannot be taken back."""
    answers = []
    for number, event in enumerate(interview.log.events):
        for name, value in event.facts.items():
            declined = event.kind == "decline"
            if declined and name not in interview.log.declined:
                continue
            text = wording("answers.declined") if declined else wording.value(name, value)
            answers.append(Answer(name, wording.label(name), text, number > 0))
    return tuple(answers)


def show_result(session: Session, wording: Wording) -> ResultView:
    """All there is to say of a session."""
    interview, record = session.interview, session.record
    plans = show_plans(record, wording, session.chosen)
    return ResultView(
        decision=show_decision(record.decision, wording),
        standing=show_standing(record, wording),
        plans=plans,
        comparison=compare(plans, wording),
        no_plan=record.no_plan_text if record.decision.refused else "",
        lists=show_lists(record, wording, plans),
        timeline=show_timeline(interview, wording),
        answers=show_answers(interview, wording),
        flags=interview.flags,
    )


def supposable(fitted: FittedAdvisor) -> tuple[str, ...]:
    """The facts that may be supposed to be different: what the model looks at or the start has,
    nothing sensitive.
    """
    return tuple(
        f.name
        for f, matters in zip(fitted.schema, fitted.relevant, strict=True)
        if matters and not f.sensitive
    )


def suppose(now: InterviewRecord, then: InterviewRecord, wording: Wording) -> Supposition:
    """What would be otherwise."""
    before, after = (_summary(record, wording) for record in (now, then))
    keys = ("decision", "estimate", "act", "plan")
    rows = tuple(
        (wording(f"suppose.{key}"), b, a, a != b)
        for key, b, a in zip(keys, before, after, strict=True)
    )
    outcome = wording.outcome(then.decision.outcome)
    if before == after:
        return Supposition(wording("suppose.same"), rows)
    key = "suppose.kept" if then.decision.outcome == now.decision.outcome else "suppose.differs"
    return Supposition(wording(key, outcome=outcome), rows)


def _summary(record: InterviewRecord, wording: Wording) -> tuple[str, ...]:
    """Decision, estimate, whether to act, and the plan with the fewest changes."""
    decision, plans = show_decision(record.decision, wording), show_plans(record, wording, None)
    rows = min((plan.rows for plan in plans), key=len, default=())
    steps = "; ".join(f"{row.label}: {row.before} → {row.after}" for row in rows)
    light = wording(f"standing.{_light(record)}")
    return decision.outcome, decision.count, light, steps or wording("suppose.no_plan")


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
    interview, record = session.interview, session.record
    decision, standing = (
        show_decision(record.decision, wording),
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
        refused=record.decision.refused,
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
