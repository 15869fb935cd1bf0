"""What the page shows of an interview, as plain records of words: templates only lay them out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edfa.advice.assessment import Decision, Question
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Interview
from edfa.advice.standing import Standing
from edfa.text import narrate
from edfa.text.record import InterviewRecord
from edfa_serve.forms import Field, Given, make_field
from edfa_serve.lists import FactList, show_lists
from edfa_serve.plan_view import Comparison, PlanView, compare, show_plans
from edfa_serve.service import Session
from edfa_serve.timeline import Timeline, show_timeline
from edfa_serve.wording import Wording

__all__ = [
    "Answer",
    "DecisionView",
    "QuestionView",
    "ResultView",
    "StandingView",
    "Supposition",
    "show_answers",
    "show_decision",
    "show_question",
    "show_result",
    "show_standing",
    "supposable",
    "suppose",
]

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
    interview, standing = record.interview, record.interview.standing
    light, certificate = _light(standing, interview.question), interview.certificate
    sentences = [record.standing]
    if light == "granted" and interview.question is not None:
        sentences.append(wording("standing.still_open"))
    if standing.since is not None and not standing.may_act:
        sentences.append(wording("standing.earlier", since=standing.since))
    promise = ""
    if certificate is not None and certificate.loss == "let_down":
        promise = wording("standing.promise", round(100 * certificate.alpha), wanted=wording.wanted)
    return StandingView(
        light, wording(f"standing.{light}"), tuple(sentences), promise, interview.guarantee or ""
    )


def _light(standing: Standing, question: Question | None) -> Light:
    if standing.status == "no_plan":
        return "nothing" if question is None else "wait"
    return LIGHTS.get(standing.status, "none")


def show_question(
    record: InterviewRecord, wording: Wording, given: Given | None = None, error: str = ""
) -> QuestionView | None:
    """The next question, with what was entered if the form is shown again; None: there is none."""
    question, encoder = record.interview.question, record.interview.fitted.encoder
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
    interview, record = session.interview, InterviewRecord(session.interview)
    plans = show_plans(record, wording, session.chosen)
    return ResultView(
        decision=show_decision(interview.decision, wording),
        standing=show_standing(record, wording),
        plans=plans,
        comparison=compare(plans, wording),
        no_plan=record.no_plan if interview.decision.refused else "",
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


def suppose(now: Interview, then: Interview, wording: Wording) -> Supposition:
    """What would be otherwise."""
    before, after = (_summary(interview, wording) for interview in (now, then))
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


def _summary(interview: Interview, wording: Wording) -> tuple[str, ...]:
    """Decision, estimate, whether to act, and the plan with the fewest changes."""
    decision = show_decision(interview.decision, wording)
    plans = show_plans(InterviewRecord(interview), wording, None)
    rows = min((plan.rows for plan in plans), key=len, default=())
    steps = "; ".join(f"{row.label}: {row.before} → {row.after}" for row in rows)
    light = wording(f"standing.{_light(interview.standing, interview.question)}")
    return decision.outcome, decision.count, light, steps or wording("suppose.no_plan")
