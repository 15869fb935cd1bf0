"""What the API answers: interviews, plans and schemas as models of ``edfa_serve.models``.

Sentences come from ``edfa.text.record.InterviewRecord``, so that page, API and letter say the same.
The main entries are ``interview_state`` and ``schema_state``.
"""

from collections.abc import Mapping
from typing import Any

from edfa.advice.fitted import FittedAdvisor
from edfa.advice.receipt import Verification
from edfa.data.encode import Measure
from edfa.data.rules import Overlay
from edfa.data.schema import Schema
from edfa.text import narrate, phrases
from edfa.text.record import InterviewRecord, PlanRecord
from edfa_serve import models
from edfa_serve.service import Session

__all__ = ["interview_state", "offered", "schema_state", "supposed_state", "verified_state"]


def interview_state(session: Session) -> models.InterviewState:
    """Describe an interview: what is known, decided, offered and asked next."""
    interview, record = session.interview, session.record
    words = {
        "language": interview.language,
        "asking": session.asking,
        "facts": dict(interview.log.facts),
        "declined": interview.log.declined,
        "flags": interview.flags,
        "decision": _decision(record),
        "standing": _standing(record),
        "question": _question(record),
        "overlay": _overlay(interview.overlay),
    }
    return models.InterviewState.model_validate(vars(session) | _plans(record) | words)


def offered(session: Session, k: int) -> models.Offered:
    """Describe at most ``k`` plans of an interview, the best first, or why there is none."""
    record = session.record if k == session.record.k else InterviewRecord(session.interview, k)
    return models.Offered(seq=session.seq, chosen=session.chosen, **_plans(record))


def supposed_state(session: Session, facts: Mapping[str, Any]) -> models.Supposed:
    """Say what would be in an interview if some facts were otherwise.

    Parameters
    ----------
    session
        The interview, which stays as it is.
    facts
        The supposed values by feature.
    """
    record = InterviewRecord(session.interview.what_if(facts))
    return models.Supposed(seq=session.seq, decision=_decision(record), **_plans(record))


def _decision(record: InterviewRecord) -> models.DecisionState:
    interview, outcome = record.interview, record.decision.outcome
    label = interview.fitted.schema.outcome(outcome, interview.language)
    words = {"label": label, "sentence": record.decision_text}
    return models.DecisionState.model_validate(vars(record.decision) | words)


def _standing(record: InterviewRecord) -> models.StandingState:
    """Whether the person may act; all of it is of one look, for it may be found meanwhile."""
    standing = record.standing
    words = {
        "may_act": standing.may_act,
        "sentence": narrate.standing(standing, record.interview.language),
        "guarantee": record.interview.guarantee if standing.may_act else None,
    }
    return models.StandingState.model_validate(vars(standing) | words)


def _question(record: InterviewRecord) -> models.QuestionState | None:
    """The next question and how it is asked; None if there is none."""
    fitted, question = record.interview.fitted, record.question
    if question is None:
        return None
    words = {"feature": question.feature, "sentence": record.question_text}
    asked = _asked(fitted, question.feature, record.interview.language)
    return models.QuestionState.model_validate(vars(question) | asked | words)


def _plans(record: InterviewRecord) -> dict[str, Any]:
    """The plans, and why there is none."""
    schema, language = record.interview.fitted.schema, record.interview.language
    return {
        "plans": [_plan(offered, schema, language) for offered in record.plans],
        "no_plan": None
        if record.no_plan is None
        else models.NoPlanState.model_validate(
            vars(record.no_plan) | {"sentence": record.no_plan_text}
        ),
    }


def _plan(offered: PlanRecord, schema: Schema, language: str) -> models.PlanState:
    changes = [
        vars(change) | {"label": schema[change.feature].said(language).label}
        for change in offered.plan.changes
    ]
    words = {"changes": changes, "sentence": offered.text}
    return models.PlanState.model_validate(vars(offered.plan) | words)


def schema_state(fitted: FittedAdvisor, language: str) -> models.SchemaState:
    """Describe what is asked.

    Parameters
    ----------
    fitted
        The fitted advisor.
    language
        The language of labels, questions and hints.
    """
    schema = fitted.schema
    return models.SchemaState(
        title=schema.title_in(language),
        language=language,
        languages=list(phrases.LANGUAGES),
        advisor=fitted.fingerprint,
        favourable=schema.favourable,
        outcomes={name: schema.outcome(name, language) for name in schema.classes},
        features=[_feature(fitted, name, language) for name in schema.names],
    )


def _feature(fitted: FittedAdvisor, name: str, language: str) -> models.FeatureState:
    relevant = bool(fitted.relevant[fitted.schema.index(name)])
    asked = {"asked": relevant and name not in fitted.rules.never_ask}
    return models.FeatureState.model_validate(
        vars(fitted.schema[name]) | _asked(fitted, name, language) | asked
    )


def _overlay(overlay: Overlay) -> models.Overlay:
    """The limits that the API knows; the page may have set others."""
    content = overlay.to_dict()
    return models.Overlay(**{name: content[name] for name in models.Overlay.model_fields})


def _asked(fitted: FittedAdvisor, name: str, language: str) -> dict[str, Any]:
    """How a fact is asked for in a language, and its answers: levels to choose, or the ends of the
    range of a number.
    """
    feature, column = fitted.schema[name], fitted.encoder[name]
    said, levels = feature.said(language), getattr(column, "levels", ())
    return {
        **{part: getattr(said, part) for part in ("label", "unit", "ask", "hint")},
        "choices": [
            {"value": level, "label": phrases.value(feature, level, language)} for level in levels
        ],
        "low": column.low if isinstance(column, Measure) else None,
        "high": column.high if isinstance(column, Measure) else None,
    }


def verified_state(verification: Verification) -> models.Verified:
    """Describe what became of a receipt when its interview was replayed."""
    words = {
        "holds": verification.holds,
        "differences": [vars(part) for part in verification.differences],
        "sentence": str(verification),
    }
    return models.Verified.model_validate(vars(verification) | words)
