"""The pages as responses: each takes a visit, or a request without one, and lays out what there is
to show.
"""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from edfa.advice.interview import Interview
from edfa.data.rules import NO_OVERLAY
from edfa.errors import EdfaError, MismatchError, PendingError
from edfa.text.record import InterviewRecord
from edfa_serve.forms import Field, Given, make_field
from edfa_serve.limits import make_controls
from edfa_serve.problems import ForgedError
from edfa_serve.rendering import has_letter, redirect, render
from edfa_serve.service import Service
from edfa_serve.store import ConflictError, UnknownInterviewError
from edfa_serve.view import show_decision, show_question, show_result, supposable, suppose
from edfa_serve.visit import TOKEN, Visit, enter, has_token, note_shown, wording_for
from edfa_serve.wording import Wording

__all__ = [
    "for_forms",
    "question_page",
    "result_page",
    "start_page",
    "supposed_page",
    "trouble_page",
]

TROUBLE: tuple[tuple[type[EdfaError], str, int], ...] = (
    (UnknownInterviewError, "gone", 404),
    (MismatchError, "other", 410),
    (ForgedError, "csrf", 403),
    (PendingError, "pending", 503),
    (EdfaError, "wrong", 422),
)


def for_forms(visit: Visit) -> dict[str, Any]:
    """What every form carries."""
    return {"csrf": visit.csrf, "seq": visit.session.seq}


def start_page(
    request: Request,
    wording: Wording,
    given: Given | None = None,
    errors: Mapping[str, str] | None = None,
) -> Response:
    """What this does, and the facts to begin with; with what was ``given`` and what is wrong with
    it, by feature.
    """
    service: Service = request.app.state.service
    fitted, wrong = service.advisor.fitted, errors or {}
    question = Interview(fitted).question
    fields = [
        make_field(
            wording, fitted.encoder, name, given=given, optional=True, error=wrong.get(name, "")
        )
        for name in fitted.schema.start
    ]
    return render(
        request,
        "start.html",
        wording,
        422 if wrong else 200,
        fields=fields,
        questions=question.left if question else 0,
        under_way=has_token(request),
        errors=_errors(fields),
    )


def _errors(fields: list[Field]) -> list[tuple[str, str]]:
    return [(field.id, field.error) for field in fields if field.error]


def question_page(
    request: Request,
    visit: Visit,
    given: Given | None = None,
    error: str = "",
    status: int = 200,
    notice: str = "",
) -> Response:
    """The next question; with what was ``given`` if it is put again because of an ``error``."""
    visit = note_shown(visit, "question")
    interview = visit.session.interview
    question = show_question(InterviewRecord(interview), visit.wording, given, error)
    if question is None:
        return redirect("/result")
    return render(
        request,
        "question.html",
        visit.wording,
        status,
        question=question,
        decision=show_decision(interview.decision, visit.wording),
        can_undo=len(interview.log.events) > 1,
        may_act=visit.session.went_on and interview.standing.may_act,
        errors=_errors([question.field]),
        notice=notice,
        **for_forms(visit),
    )


def result_page(
    request: Request,
    visit: Visit,
    *,
    given: Given | None = None,
    error: str = "",
    limits: Given | None = None,
    wrong: dict[str, str] | None = None,
    status: int = 200,
    notice: str = "",
) -> Response:
    """Everything in one view.

    ``given`` and ``error`` are of an answer, ``limits`` and ``wrong`` (by feature) of limits that
    could not be understood.
    """
    visit = note_shown(visit, "result")
    session, wording, fitted = visit.session, visit.wording, visit.service.advisor.fitted
    record = InterviewRecord(session.interview)
    question = show_question(record, wording, given, error) if session.asking else None
    controls = make_controls(fitted, wording, session.interview.overlay, limits, wrong)
    errors = [(control.id, control.error) for control in controls if control.error]
    return render(
        request,
        "result.html",
        wording,
        status,
        view=show_result(session, wording),
        question=question,
        more=session.interview.question is not None and question is None,
        can_undo=len(session.interview.log.events) > 1 and not session.stopped,
        controls=controls,
        limited=session.interview.overlay != NO_OVERLAY,
        fields=_supposed_fields(visit, None),
        errors=errors + (_errors([question.field]) if question else []),
        notice=notice,
        letters=has_letter(request, session),
        scripts=True,
        **for_forms(visit),
    )


def supposed_page(
    request: Request,
    visit: Visit,
    given: Given | None = None,
    errors: Mapping[str, str] | None = None,
    other: Interview | None = None,
) -> Response:
    """A form to suppose something, and what would be in the ``other`` interview where it is so."""
    fields = _supposed_fields(visit, given, errors)
    return render(
        request,
        "what_if.html",
        visit.wording,
        422 if errors else 200,
        fields=fields,
        supposition=None
        if other is None
        else suppose(visit.session.interview, other, visit.wording),
        errors=_errors(fields),
        scripts=True,
        **for_forms(visit),
    )


def _supposed_fields(
    visit: Visit, given: Given | None, errors: Mapping[str, str] | None = None
) -> list[Field]:
    fitted, known = visit.service.advisor.fitted, visit.session.interview.log.facts
    return [
        make_field(
            visit.wording,
            fitted.encoder,
            name,
            known=known.get(name),
            given=given,
            optional=name not in known,
            error=(errors or {}).get(name, ""),
            prefix="w",
        )
        for name in supposable(fitted)
    ]


def trouble_page(request: Request, error: EdfaError) -> Response:
    """The page of an error; where another window has caused it, how things stand now."""
    if isinstance(error, ConflictError):
        try:
            visit = enter(request)
        except EdfaError as other:
            return trouble_page(request, other)
        notice = visit.wording("trouble.conflict")
        if visit.session.asking:
            return question_page(request, visit, status=409, notice=notice)
        return result_page(request, visit, status=409, notice=notice)
    key, status = next((key, status) for kind, key, status in TROUBLE if isinstance(error, kind))
    wording, lost = _their_wording(request), key in ("gone", "other")
    response = render(
        request,
        "message.html",
        wording,
        status,
        title=wording(f"trouble.{key}"),
        lead=wording(f"trouble.{key}_lead"),
        to="/" if lost else "/interview",
        link=wording("trouble.begin" if lost else "trouble.look"),
    )
    if lost:
        TOKEN.give(request, response, "")
    return response


def _their_wording(request: Request) -> Wording:
    """In the language of their interview, if they have one."""
    try:
        return enter(request).wording
    except EdfaError:
        return wording_for(request)
