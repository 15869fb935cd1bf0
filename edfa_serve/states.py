"""What the API answers: interviews, plans and schemas as models of ``edfa_serve.models``.

Sentences come from ``edfa.text.record.InterviewRecord``, so that page, API and letter say the same.
The main entries are ``interview_state`` and ``schema_state``.
"""

from collections.abc import Mapping
from typing import Any

from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Interview
from edfa.advice.receipt import Verification
from edfa.data.encode import Measure
from edfa.text import phrases
from edfa.text.record import InterviewRecord, PlanRecord
from edfa_serve import models
from edfa_serve.service import Session


def interview_state(session: Session) -> models.InterviewState:
    """Describe an interview: what is known, decided, offered and asked next."""
    interview, record = session.interview, session.record
    overlay = interview.overlay.to_dict()
    content = {
        "language": interview.language,
        "asking": session.asking,
        "facts": dict(interview.log.facts),
        "declined": interview.log.declined,
        "flags": interview.flags,
        "decision": _decision(record),
        "standing": _standing(record),
        "question": _question(record),
        # the limits that the API knows; the page may have set others
        "overlay": {name: overlay[name] for name in models.Overlay.model_fields},
    }
    return models.InterviewState.model_validate(vars(session) | _plans(record) | content)


def offered(session: Session, k: int) -> models.Offered:
    """Describe at most ``k`` plans of an interview, the best first, or why there is none."""
    record = session.record if k == session.record.k else InterviewRecord(session.interview, k)
    return models.Offered.model_validate(vars(session) | _plans(record))


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
    content = {"seq": session.seq, "decision": _decision(record)}
    return models.Supposed.model_validate(content | _plans(record))


# The functions below return what a model is validated from; what it does not have is left out.


def _decision(record: InterviewRecord) -> dict[str, Any]:
    """What is decided."""
    interview, outcome = record.interview, record.decision.outcome
    label = interview.fitted.schema.outcome(outcome, interview.language)
    return vars(record.decision) | {"label": label, "sentence": record.decision_text}


def _standing(record: InterviewRecord) -> dict[str, Any]:
    """Whether the interview may end; all of it is of one look, for it may be found meanwhile."""
    standing = record.standing
    return vars(standing) | {
        "may_act": standing.may_act,
        "ends": standing.ends,
        "sentence": " ".join(record.say_standing(standing)),
        "guarantee": record.interview.guarantee if standing.promised else None,
    }


def _question(record: InterviewRecord) -> dict[str, Any] | None:
    """The next question and how it is asked; None if there is none."""
    question, interview = record.question, record.interview
    if question is None:
        return None
    asked = _asked(interview.fitted, question.feature, interview.language)
    return vars(question) | asked | {"sentence": record.question_text}


def _plans(record: InterviewRecord) -> dict[str, Any]:
    """The plans, or why there is none."""
    why, plans = record.no_plan, [_plan(offered, record.interview) for offered in record.plans]
    no_plan = None if why is None else vars(why) | {"sentence": record.no_plan_text}
    return {"plans": plans, "no_plan": no_plan}


def _plan(offered: PlanRecord, interview: Interview) -> dict[str, Any]:
    """A plan with its changes."""
    schema, language = interview.fitted.schema, interview.language
    changes = [
        vars(change) | {"label": schema[change.feature].said(language).label}
        for change in offered.plan.changes
    ]
    return vars(offered.plan) | {"changes": changes, "sentence": offered.text}


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
    content = {
        "title": schema.title_in(language),
        "language": language,
        "languages": phrases.LANGUAGES,
        "advisor": fitted.fingerprint,
        "favourable": schema.favourable,
        "outcomes": {name: schema.outcome(name, language) for name in schema.classes},
        "features": [_feature(fitted, name, language) for name in schema.names],
    }
    return models.SchemaState.model_validate(content)


def _feature(fitted: FittedAdvisor, name: str, language: str) -> dict[str, Any]:
    """One fact that may be told, and whether it may be asked for."""
    relevant = bool(fitted.relevant[fitted.schema.index(name)])
    asked = {"asked": relevant and name not in fitted.rules.never_ask}
    return vars(fitted.schema[name]) | _asked(fitted, name, language) | asked


def _asked(fitted: FittedAdvisor, name: str, language: str) -> dict[str, Any]:
    """How a fact is asked for in a language, and its answers: levels to choose, or the ends of the
    range of a number.
    """
    feature, column = fitted.schema[name], fitted.encoder[name]
    levels = getattr(column, "levels", ())
    return vars(feature.said(language)) | {
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
