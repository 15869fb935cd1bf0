"""Interviews, plans and schemas as the API's models: the same words as everywhere else."""

import json
from typing import Any

from edfa.advice.assessment import Decision, Question
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Interview
from edfa.advice.receipt import Verification
from edfa.data.encode import Levels
from edfa.data.rules import Overlay
from edfa.recourse.plans import NoPlan, Plan
from edfa.text import narrate, phrases
from edfa_serve import models
from edfa_serve.service import Session

__all__ = ["interview_state", "offered", "schema_state", "supposed_state", "verified_state"]

OVERLAY_FIELDS = tuple(models.Overlay.model_fields)


def interview_state(session: Session) -> models.InterviewState:
    """All that is to be known of a session."""
    interview = session.interview
    return models.InterviewState(
        **dict(offered(session)),
        id=session.id,
        language=interview.language,
        asking=session.asking,
        stopped=session.stopped,
        went_on=session.went_on,
        facts=dict(interview.log.facts),
        declined=list(interview.log.declined),
        flags=list(interview.flags),
        decision=_decision(interview, session.decision),
        standing=_standing(session),
        question=_question(interview, session.question),
        overlay=_overlay(session.interview.overlay),
    )


def offered(session: Session, k: int = 3) -> models.Offered:
    """At most k plans of a session, or why there is none."""
    plans, no_plan = _plans(session.interview, k)
    return models.Offered(seq=session.seq, chosen=session.chosen, plans=plans, no_plan=no_plan)


def supposed_state(session: Session, supposed: Interview) -> models.Supposed:
    """What would be if ``supposed`` were so."""
    plans, no_plan = _plans(supposed, 3)
    return models.Supposed(
        seq=session.seq,
        decision=_decision(supposed, supposed.decision),
        plans=plans,
        no_plan=no_plan,
    )


def _decision(interview: Interview, decision: Decision) -> models.DecisionState:
    schema, language = interview.fitted.schema, interview.language
    return models.DecisionState(
        outcome=decision.outcome,
        label=schema.outcome(decision.outcome, language),
        favourable=decision.favourable,
        probability=decision.probability,
        threshold=decision.threshold,
        cases=decision.cases,
        sentence=narrate.decision(decision, schema, language),
    )


def _standing(session: Session) -> models.StandingState:
    interview, standing = session.interview, session.standing
    return models.StandingState(
        status=standing.status,
        may_act=standing.may_act,
        deviations=list(standing.deviations),
        sentence=narrate.standing(standing, interview.language),
        guarantee=interview.guarantee if standing.may_act else None,
    )


def _question(interview: Interview, question: Question | None) -> models.QuestionState | None:
    schema, language = interview.fitted.schema, interview.language
    if question is None:
        return None
    feature = schema[question.feature]
    said = feature.said(language)
    return models.QuestionState(
        feature=question.feature,
        label=said.label,
        unit=said.unit,
        ask=said.ask,
        hint=said.hint,
        cost=question.cost,
        spent=question.spent,
        left=question.left,
        why=question.why,
        sentence=narrate.question(question, schema, language),
        choices=[
            models.Choosable(value=choice, label=phrases.value(feature, choice, language))
            for choice in question.choices
        ],
        low=question.low,
        high=question.high,
    )


def _plans(
    interview: Interview, k: int
) -> tuple[list[models.PlanState], models.NoPlanState | None]:
    plans = interview.plans(k)
    no_plan = None if plans else interview.no_plan
    return [_plan(interview, plan) for plan in plans], None if no_plan is None else _no_plan(
        interview, no_plan
    )


def _plan(interview: Interview, plan: Plan) -> models.PlanState:
    fitted, language = interview.fitted, interview.language
    visible = fitted.decisive
    sentence = narrate.plan(
        plan,
        fitted.schema,
        language,
        blanket=visible,
        locked=interview.overlay.locked,
        operator=fitted.rules,
    )
    changes = [
        models.ChangeState(
            feature=change.feature,
            label=fitted.schema[change.feature].said(language).label,
            before=change.before,
            after=change.after,
            low=change.low,
            high=change.high,
        )
        for change in plan.changes
    ]
    return models.PlanState(
        id=plan.id,
        changes=changes,
        reached=plan.reached,
        probability_before=plan.probability_before,
        probability_after=plan.probability_after,
        effort=plan.effort,
        months=plan.months,
        survival=plan.survival,
        support=plan.support,
        support_share=plan.support_share,
        unknown=list(plan.unknown),
        sentence=sentence,
    )


def _no_plan(interview: Interview, no_plan: NoPlan) -> models.NoPlanState:
    fitted = interview.fitted
    sentence = narrate.no_plan(no_plan, fitted.schema, interview.language, operator=fitted.rules)
    return models.NoPlanState(reason=no_plan.reason, unlock=list(no_plan.unlock), sentence=sentence)


def _overlay(overlay: Overlay) -> models.Overlay:
    """The limits that the API knows; the page may have set others."""
    content: dict[str, Any] = json.loads(overlay.to_json())
    return models.Overlay(**{name: content[name] for name in OVERLAY_FIELDS})


def schema_state(
    fitted: FittedAdvisor, language: str, languages: tuple[str, ...]
) -> models.SchemaState:
    """What is asked, in a language."""
    schema = fitted.schema
    return models.SchemaState(
        title=schema.title_in(language),
        language=language,
        languages=list(languages),
        advisor=fitted.fingerprint,
        favourable=schema.favourable,
        outcomes={name: schema.outcome(name, language) for name in schema.classes},
        features=[_feature(fitted, number, language) for number in range(len(schema))],
    )


def _feature(fitted: FittedAdvisor, number: int, language: str) -> models.FeatureState:
    feature, column = fitted.schema.features[number], fitted.encoder.columns[number]
    said = feature.said(language)
    levels = column.levels if isinstance(column, Levels) else ()
    ends = (None, None) if isinstance(column, Levels) else (column.low, column.high)
    return models.FeatureState(
        name=feature.name,
        label=said.label,
        unit=said.unit,
        kind=feature.kind,
        start=feature.start,
        asked=bool(fitted.relevant[number]) and feature.name not in fitted.rules.never_ask,
        sensitive=feature.sensitive,
        cost=feature.cost,
        ask=said.ask,
        hint=said.hint,
        choices=[
            models.Choosable(value=level, label=phrases.value(feature, level, language))
            for level in levels
        ],
        low=ends[0],
        high=ends[1],
    )


def verified_state(verification: Verification) -> models.Verified:
    """What became of a receipt."""
    differences = [
        models.DifferenceState(part=part.part, receipt=part.receipt, today=part.today)
        for part in verification.differences
    ]
    return models.Verified.model_validate(
        {
            "holds": verification.holds,
            "signature": verification.signature,
            "advisor": verification.advisor,
            "differences": differences,
            "sentence": str(verification),
        }
    )
