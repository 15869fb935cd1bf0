"""The applicant's page: start, question, result, what-if, receipt, letter, deletion.

``add_pages`` puts the routes into an application. A form is answered by a redirect to a page, so
that reloading sends nothing again; only what-if is not, for it changes nothing, and what was
supposed must stand in no address.
"""

import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from edfa.advice.interview import Interview
from edfa.data.encode import Encoder
from edfa.data.rules import NO_OVERLAY
from edfa.errors import EdfaError, MismatchError, PendingError, SettingError, check_known
from edfa.text.phrases import LANGUAGES
from edfa.text.record import InterviewRecord
from edfa_serve.forms import Field, Given, UnclearError, make_field, read_fact
from edfa_serve.limits import make_controls, read_limits
from edfa_serve.problems import ForgedError
from edfa_serve.rendering import (
    HEADERS,
    LETTER_HEADERS,
    has_letter,
    redirect,
    render,
    serve_asset,
    writes_letters,
)
from edfa_serve.security import check_origin
from edfa_serve.service import Service
from edfa_serve.store import ConflictError, UnknownInterviewError
from edfa_serve.view import View, receipt_rows, supposable, suppose
from edfa_serve.visit import (
    TOKEN,
    Visit,
    act,
    check_form,
    check_fresh,
    enter,
    note_shown,
    wording_for,
)
from edfa_serve.wording import Wording

TROUBLE: tuple[tuple[type[EdfaError], str, int], ...] = (
    (UnknownInterviewError, "gone", 404),
    (MismatchError, "other", 410),
    (ForgedError, "csrf", 403),
    (PendingError, "pending", 503),
    (EdfaError, "wrong", 422),
)
MOST_FIELDS = 1_000
# where another language may be chosen
PLACES = ("/interview", "/result", "/what-if", "/receipt", "/delete")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def show(visit: Visit, name: str, status: int = 200, **context: Any) -> Response:
    """Render a page of somebody's interview.

    Parameters
    ----------
    visit
        The person's visit.
    name, status
        The template, and the status of the response.
    context
        What else the template shows, and ``checked``, as for ``render``.
    """
    context |= {"view": visit.view, "csrf": visit.csrf, "seq": visit.session.seq}
    return render(visit.request, name, visit.wording, status, **context)


def start_page(
    request: Request,
    wording: Wording,
    given: Given | None = None,
    errors: Mapping[str, str] | None = None,
) -> Response:
    """What this does, and the facts to begin with.

    Parameters
    ----------
    request, wording
        The request, and the words of the page.
    given, errors
        The form that is shown again, and what is wrong with it, by feature.
    """
    fitted, wrong = request.app.state.service.advisor.fitted, errors or {}
    question = Interview(fitted).question
    fields = [
        make_field(wording, fitted.encoder, name, given, optional=True, error=wrong.get(name, ""))
        for name in fitted.schema.start
    ]
    return render(
        request,
        "start.html",
        wording,
        422 if wrong else 200,
        fields=fields,
        questions=question.left if question else 0,
        under_way=bool(TOKEN.read(request)),
        checked=fields,
    )


def question_page(
    visit: Visit, given: Given | None = None, error: str = "", notice: str = ""
) -> Response:
    """The next question.

    Parameters
    ----------
    visit
        The person's visit.
    given, error
        The answer that could not be understood, and what is wrong with it.
    notice
        What is to be said before; the interview has then gone on in another window.
    """
    visit = note_shown(visit, "question")
    fields, record = _question_field(visit, given, error), visit.session.record
    if not fields:
        return redirect("/result")
    return show(
        visit,
        "question.html",
        _status(error, notice),
        field=fields[0],
        can_undo=len(record.interview.log.events) > 1,
        may_end=visit.session.went_on and record.standing.promised,
        checked=fields,
        notice=notice,
    )


def _status(wrong: object, notice: str) -> int:
    """The status of a page with what is wrong with a form, or a notice of a conflict."""
    return 409 if notice else 422 if wrong else 200


def _question_field(visit: Visit, given: Given | None, error: str) -> list[Field]:
    """The field of the next question; none if there is no question."""
    question, encoder = visit.session.record.question, visit.service.advisor.fitted.encoder
    if question is None:
        return []
    return [make_field(visit.wording, encoder, question.feature, given, error=error)]


def result_page(
    visit: Visit,
    *,
    given: Given | None = None,
    error: str = "",
    limits: Given | None = None,
    wrong: Mapping[str, str] | None = None,
    notice: str = "",
) -> Response:
    """Everything in one view.

    Parameters
    ----------
    visit
        The person's visit.
    given, error
        The answer that could not be understood, and what is wrong with it.
    limits, wrong
        The limits that could not be understood, and what is wrong with them, by feature.
    notice
        What is to be said before; the interview has then gone on in another window.
    """
    visit = note_shown(visit, "result")
    session, fitted = visit.session, visit.service.advisor.fitted
    asked = _question_field(visit, given, error) if session.asking else []
    controls = make_controls(fitted, visit.wording, session.interview.overlay, limits, wrong)
    return show(
        visit,
        "result.html",
        _status(error or wrong, notice),
        field=asked[0] if asked else None,
        more=session.record.question is not None and not asked,
        can_undo=len(session.interview.log.events) > 1 and not session.stopped,
        controls=controls,
        limited=session.interview.overlay != NO_OVERLAY,
        fields=_supposed_fields(visit),
        checked=[*controls, *asked],
        notice=notice,
        letters=has_letter(visit.request, session),
        scripts=True,
    )


def supposed_page(
    visit: Visit,
    given: Given | None = None,
    errors: Mapping[str, str] | None = None,
    other: Interview | None = None,
) -> Response:
    """A form to suppose something, and what would be then.

    Parameters
    ----------
    visit
        The person's visit.
    given, errors
        The form that is shown again, and what is wrong with it, by feature.
    other
        The interview in which it is so; None: nothing is supposed yet.
    """
    fields = _supposed_fields(visit, given, errors)
    then = None if other is None else View(InterviewRecord(other), visit.wording)
    verdict, rows = suppose(visit.view, then) if then else ("", {})
    return show(
        visit,
        "what_if.html",
        422 if errors else 200,
        fields=fields,
        verdict=verdict,
        rows=rows,
        checked=fields,
        scripts=True,
    )


def _supposed_fields(
    visit: Visit, given: Given | None = None, errors: Mapping[str, str] | None = None
) -> list[Field]:
    """The fields of what may be supposed; facts that are not known may be left out."""
    fitted, known = visit.service.advisor.fitted, visit.session.interview.log.facts
    return [
        make_field(
            visit.wording,
            fitted.encoder,
            name,
            given,
            known=known.get(name),
            optional=name not in known,
            error=(errors or {}).get(name, ""),
            prefix="w",
        )
        for name in supposable(fitted)
    ]


def trouble_page(request: Request, error: EdfaError) -> Response:
    """Make the page of an error.

    Parameters
    ----------
    request
        The request that failed. The page is in the language of its interview, if it has one.
    error
        What was raised. After a conflict with another window, the page is that of the interview as
        it stands now; an interview that is gone takes its cookie along.
    """
    if isinstance(error, ConflictError):
        try:
            visit = enter(request)
        except EdfaError as other:
            return trouble_page(request, other)
        notice = visit.wording("trouble.conflict")
        if visit.session.asking:
            return question_page(visit, notice=notice)
        return result_page(visit, notice=notice)
    key, status = next((key, status) for kind, key, status in TROUBLE if isinstance(error, kind))
    try:  # in the language of their interview, if they have one
        wording = enter(request).wording
    except EdfaError:
        wording = wording_for(request)
    lost = key in ("gone", "other")
    response = render(
        request,
        "message.html",
        wording,
        status,
        said=f"trouble.{key}",
        to="/" if lost else "/interview",
        link="trouble.begin" if lost else "trouble.look",
    )
    if lost:
        TOKEN.give(request, response, "")
    return response


class PageRoute(APIRoute):
    """A route whose errors are pages, and which takes forms from this site alone."""

    def get_route_handler(self) -> Handler:
        """The handler of the route; what it raises as ``EdfaError`` becomes a page."""
        handle = super().get_route_handler()

        async def safely(request: Request) -> Response:
            try:
                if request.method == "POST":
                    check_origin(request)
                return await handle(request)
            except EdfaError as error:
                return await run_in_threadpool(trouble_page, request, error)

        return safely


async def _read_form(request: Request) -> Given:
    """The fields of a form, the last of each name; no files."""
    form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    return {name: value for name, value in form.multi_items() if isinstance(value, str)}


Form = Annotated[Given, Depends(_read_form)]
Visiting = Annotated[Visit, Depends(enter)]


def _posting(visit: Visiting, form: Form) -> Visit:
    check_form(visit, form)
    return visit


Posting = Annotated[Visit, Depends(_posting)]
router = APIRouter(route_class=PageRoute, include_in_schema=False)


def add_pages(app: FastAPI) -> None:
    """Put the pages and their files into an application that has ``state.service`` and
    ``state.settings``.
    """
    app.router.routes.append(Route("/static/{digest}/{name}", serve_asset, methods=["GET"]))
    app.include_router(router)


@router.get("/")
def start(request: Request, language: str | None = None) -> Response:
    """What this does, and the facts to begin with."""
    return start_page(request, wording_for(request, language))


@router.post("/begin")
def begin(request: Request, form: Form) -> Response:
    """Begin an interview."""
    service: Service = request.app.state.service
    wording, advisor = wording_for(request, form.get("language")), service.advisor
    facts, errors = _read_facts(advisor.schema.start, wording, advisor.fitted.encoder, form)
    if errors:
        return start_page(request, wording, form, errors)
    token, _ = service.begin(facts, wording.language)
    response = redirect("/interview")
    TOKEN.give(request, response, token)
    return response


def _read_facts(
    names: Iterable[str], wording: Wording, encoder: Encoder, form: Given
) -> tuple[dict[str, Any], dict[str, str]]:
    """The facts that a form tells, and what is wrong with others, both by feature."""
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name in names:
        try:
            for value in read_fact(wording, encoder, name, form, optional=True):
                facts[name] = value
        except UnclearError as error:
            errors[name] = str(error)
    return facts, errors


@router.get("/interview")
def interview(visit: Visiting) -> Response:
    """The next question; where there is none to put, the result."""
    return question_page(visit) if visit.session.asking else redirect("/result")


@router.post("/interview")
def do(visit: Posting, form: Form) -> Response:
    """Answer, decline, stop, go on, take back, or choose a plan: the field ``do`` says which."""
    kind, name = form.get("do", "answer"), form.get("feature", "")
    if kind == "answer":
        return _answer(visit, form)
    contents: dict[str, dict[str, Any]] = {
        "decline": {"name": name},
        "undo": {"name": name or None},
        "choose": {"plan": form.get("plan", "")},
        "stop": {},
        "go_on": {},
    }
    check_known("action", kind, contents)
    act(visit, form, kind, contents[kind])
    return redirect("/result#plans" if kind == "choose" else "/interview")


def _answer(visit: Visit, form: Given) -> Response:
    """Take the answer to the question that was put, or ask again."""
    check_fresh(visit.record, form)
    question, on_result = visit.session.record.question, form.get("from") == "/result"
    if question is None or form.get("feature") != question.feature:
        raise ConflictError
    try:
        encoder = visit.service.advisor.fitted.encoder
        (value,) = read_fact(visit.wording, encoder, question.feature, form)
    except UnclearError as error:
        if on_result:
            return result_page(visit, given=form, error=str(error))
        return question_page(visit, form, str(error))
    act(visit, form, "answer", {"facts": {question.feature: value}})
    return redirect("/result" if on_result else "/interview")


@router.get("/result")
def result(visit: Visiting) -> Response:
    """Decision, standing, plans, lists, controls, what-if and timeline in one view."""
    return result_page(visit)


@router.post("/overlay")
def overlay(visit: Posting, form: Form) -> Response:
    """Plan again with what is easy, hard or impossible for the person; the field ``do`` may take
    all of it back.

    A form holds a whole overlay: of two that are sent one after the other, the last counts.
    """
    content, errors = read_limits(visit.service.advisor.fitted, visit.wording, form)
    if form.get("do") == "remove":
        content, errors = {}, {}
    if errors:
        return result_page(visit, limits=form, wrong=errors)
    act(visit, form, "overlay", {"overlay": content}, also=("overlay", "choose"))
    return redirect("/result#plans")


@router.get("/what-if")
def what_if_form(visit: Visiting) -> Response:
    """Suppose that something were different."""
    return supposed_page(visit)


@router.post("/what-if")
def what_if(visit: Posting, form: Form) -> Response:
    """What would be then; nothing is stored, and facts that are as they are suppose nothing."""
    fitted, known = visit.service.advisor.fitted, visit.session.interview.log.facts
    facts, errors = _read_facts(supposable(fitted), visit.wording, fitted.encoder, form)
    if errors:
        return supposed_page(visit, form, errors)
    supposed = {
        name: value for name, value in facts.items() if name not in known or value != known[name]
    }
    return supposed_page(visit, form, other=visit.session.interview.what_if(supposed))


@router.get("/receipt")
def receipt(visit: Visiting) -> Response:
    """The receipt, to print; that it was handed out is recorded."""
    session, paper = visit.service.receipt(visit.token)
    visit = replace(visit, session=session)
    return show(
        visit,
        "receipt.html",
        rows=receipt_rows(visit.view, paper),
        json=json.dumps(json.loads(paper.to_json()), ensure_ascii=False, indent=1),
        letters=has_letter(visit.request, session),
    )


@router.get("/receipt.json")
def receipt_json(visit: Visiting) -> Response:
    """The receipt as a file, to be verified later; that it was handed out is recorded."""
    _, paper = visit.service.receipt(visit.token)
    headers = HEADERS | {"Content-Disposition": 'attachment; filename="receipt.json"'}
    return Response(paper.to_json(), media_type="application/json", headers=headers)


@router.get("/letter")
def letter(visit: Visiting) -> Response:
    """The letter about a refusal, where the operator writes letters; that it was handed out is
    recorded.
    """
    if not writes_letters(visit.request):
        raise SettingError("this service writes no letters")
    text, record = visit.request.app.state.write_letter(visit.session, None)
    visit.service.act(visit.token, None, "letter", record)
    return Response(text, media_type="text/html", headers=LETTER_HEADERS)


@router.post("/language")
def language(visit: Posting, form: Form) -> Response:
    """Go on in another language, on the same page."""
    if form.get("language") in LANGUAGES:
        visit.service.act(visit.token, None, "language", {"language": form["language"]})
    return redirect(form["to"] if form.get("to") in PLACES else "/interview")


@router.get("/delete")
def delete_form(visit: Visiting) -> Response:
    """Ask whether everything is to be deleted."""
    return show(visit, "delete.html")


@router.post("/delete")
def delete(visit: Posting) -> Response:
    """Delete everything that was said."""
    visit.service.delete(visit.token)
    response = redirect(f"/deleted?language={visit.wording.language}")
    TOKEN.give(visit.request, response, "")
    return response


@router.get("/deleted")
def deleted(request: Request, language: str | None = None) -> Response:
    """That everything is deleted."""
    wording = wording_for(request, language)
    return render(request, "message.html", wording, said="delete.done", to="/", link="delete.begin")
