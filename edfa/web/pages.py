"""The applicant's page: start, question, result, what-if, receipt. Every form is answered by a redirect to a page.

Only what-if is not: it changes nothing, and what was supposed must stand in no address.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.routing import Route

from edfa.advice.interview import Interview
from edfa.errors import EdfaError, MismatchError
from edfa.web.assets import serve_asset
from edfa.web.forms import Given, UnclearError, make_field, read_fact
from edfa.web.limits import make_controls, read_limits
from edfa.web.receipt_view import show_receipt
from edfa.web.rendering import HEADERS, redirect, render
from edfa.web.service import Service
from edfa.web.store import ConflictError, UnknownInterviewError
from edfa.web.view import show_decision, show_question, show_result, supposable, suppose
from edfa.web.visit import (
    ForgedError,
    Visit,
    act,
    check_form,
    check_fresh,
    check_origin,
    enter,
    give_token,
    has_token,
    note_shown,
    take_token,
    wording_for,
)
from edfa.web.wording import Wording

__all__ = ["add_pages", "router"]

MOST_FIELDS = 1_000
PLACES = ("/interview", "/result", "/what-if", "/receipt", "/delete")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Handler:
        """The handler, with errors caught."""
        handle = super().get_route_handler()

        async def safely(request: Request) -> Response:
            try:
                if request.method == "POST":
                    check_origin(request)
                return await handle(request)
            except EdfaError as error:
                return await run_in_threadpool(show_trouble, request, error)

        return safely


async def _read_form(request: Request) -> Given:
    """The fields of a form, the last of each name; no files."""
    form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    return {name: value for name, value in form.multi_items() if isinstance(value, str)}


Form = Annotated[Given, Depends(_read_form)]
router = APIRouter(route_class=PageRoute, include_in_schema=False, default_response_class=Response)


def add_pages(app: FastAPI) -> None:
    """Put the pages and their files into an application that has ``state.service`` and ``state.settings``."""
    schema = app.state.service.advisor.schema
    app.state.wordings = {language: Wording.of(schema, language) for language in app.state.settings.languages}
    app.router.routes.append(Route("/static/{digest}/{name}", serve_asset, methods=["GET"]))
    app.include_router(router)


@router.get("/")
def start(request: Request, language: str | None = None) -> Response:
    """What this does, and the facts to begin with."""
    return _start_page(request, wording_for(request, language))


def _start_page(
    request: Request, wording: Wording, given: Given | None = None, errors: Mapping[str, str] | None = None
) -> Response:
    service: Service = request.app.state.service
    fitted, wrong = service.advisor.fitted, errors or {}
    question = Interview(fitted).question
    fields = [
        make_field(wording, fitted.encoder, name, given=given, optional=True, error=wrong.get(name, ""))
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
        errors=[(field.id, field.error) for field in fields if field.error],
    )


@router.post("/begin")
def begin(request: Request, form: Form) -> Response:
    """Begin an interview."""
    service: Service = request.app.state.service
    wording = wording_for(request, form.get("language"))
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name in service.advisor.schema.start:
        try:
            values = read_fact(wording, service.advisor.fitted.encoder, name, form, optional=True)
            facts |= {name: value for value in values}
        except UnclearError as error:
            errors[name] = str(error)
    if errors:
        return _start_page(request, wording, form, errors)
    token, _ = service.begin(facts, wording.language)
    response = redirect("/interview")
    give_token(request, response, token)
    return response


@router.get("/interview")
def interview(request: Request) -> Response:
    """The next question; where there is none to put, the result."""
    visit = enter(request)
    return _question_page(request, visit) if visit.session.asking else redirect("/result")


def _question_page(
    request: Request, visit: Visit, given: Given | None = None, error: str = "", status: int = 200, notice: str = ""
) -> Response:
    visit = note_shown(visit, "question")
    held = visit.session.interview
    question = show_question(held, visit.wording, given, error)
    if question is None:
        return redirect("/result")
    return render(
        request,
        "question.html",
        visit.wording,
        status,
        question=question,
        decision=show_decision(held.decision, visit.wording),
        can_undo=len(held.log.events) > 1,
        may_act=visit.session.went_on and held.standing.may_act,
        errors=[(question.field.id, error)] if error else [],
        notice=notice,
        **_for_forms(visit),
    )


@router.post("/interview")
def do(request: Request, form: Form) -> Response:
    """Answer, decline, stop, go on, take back, or choose a plan: the field ``do`` says which."""
    visit = enter(request)
    check_form(visit, form)
    kind, name = form.get("do", "answer"), form.get("feature", "")
    if kind == "answer":
        return _answer(request, visit, form)
    contents: dict[str, dict[str, Any]] = {
        "decline": {"name": name},
        "undo": {"name": name or None},
        "choose": {"plan": form.get("plan", "")},
        "stop": {},
        "go_on": {},
    }
    act(visit, form, kind, contents.get(kind, {}), also=("wishes",) if kind == "choose" else ())
    return redirect("/result#plans" if kind == "choose" else "/interview")


def _answer(request: Request, visit: Visit, form: Given) -> Response:
    """Take the answer to the question that was put; one that cannot be understood is asked for again."""
    check_fresh(visit.record, form)
    question = visit.session.interview.question
    if question is None or form.get("feature") != question.feature:
        raise ConflictError
    try:
        (value,) = read_fact(visit.wording, visit.service.advisor.fitted.encoder, question.feature, form)
    except UnclearError as error:
        if form.get("from") == "/result":
            return _result_page(request, visit, given=form, error=str(error), status=422)
        return _question_page(request, visit, form, str(error), 422)
    act(visit, form, "answer", {"facts": {question.feature: value}})
    return redirect("/interview" if form.get("from") != "/result" else "/result")


@router.get("/result")
def result(request: Request) -> Response:
    """Decision, standing, plans, lists, controls, what-if and timeline in one view."""
    return _result_page(request, enter(request))


def _result_page(
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
    visit = note_shown(visit, "result")
    session, wording, fitted = visit.session, visit.wording, visit.service.advisor.fitted
    question = show_question(session.interview, wording, given, error) if session.asking else None
    controls = make_controls(fitted, wording, session.wishes, limits, wrong)
    errors = [(control.id, control.error) for control in controls if control.error]
    errors += [(question.field.id, error)] if question and error else []
    return render(
        request,
        "result.html",
        wording,
        status,
        view=show_result(session, wording),
        session=session,
        question=question,
        more=session.interview.question is not None and question is None,
        can_undo=len(session.interview.log.events) > 1,
        controls=controls,
        limited=session.wishes != type(session.wishes)(),
        fields=_supposed_fields(visit, None),
        errors=errors,
        notice=notice,
        scripts=True,
        **_for_forms(visit),
    )


@router.post("/wishes")
def wishes(request: Request, form: Form) -> Response:
    """Plan again with what is easy, hard or impossible for the person; the field ``do`` may take all of it back."""
    visit = enter(request)
    content, errors = read_limits(visit.service.advisor.fitted, visit.wording, form)
    if form.get("do") == "remove":
        content, errors = {}, {}
    if errors:
        check_form(visit, form)
        return _result_page(request, visit, limits=form, wrong=errors, status=422)
    act(visit, form, "wishes", {"constraints": content}, also=("wishes", "choose"))
    return redirect("/result#limits")


@router.get("/what-if")
def what_if_form(request: Request) -> Response:
    """Suppose that something were different."""
    visit = enter(request)
    return _supposed_page(request, visit)


@router.post("/what-if")
def what_if(request: Request, form: Form) -> Response:
    """What would be then; nothing is saved."""
    visit = enter(request)
    check_form(visit, form)
    encoder, told = visit.service.advisor.fitted.encoder, visit.session.interview.log.facts
    facts: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name in supposable(visit.service.advisor.fitted):
        try:
            values = read_fact(visit.wording, encoder, name, form, optional=True)
            facts |= {name: value for value in values if name not in told or value != told[name]}
        except UnclearError as error:
            errors[name] = str(error)
    if errors:
        return _supposed_page(request, visit, form, errors)
    session, other = visit.service.what_if(visit.token, facts)
    return _supposed_page(request, replace(visit, session=session), form, other=other)


def _supposed_page(
    request: Request,
    visit: Visit,
    given: Given | None = None,
    errors: Mapping[str, str] | None = None,
    other: Interview | None = None,
) -> Response:
    wrong = errors or {}
    fields = _supposed_fields(visit, given, wrong)
    return render(
        request,
        "what_if.html",
        visit.wording,
        422 if wrong else 200,
        fields=fields,
        supposition=None if other is None else suppose(visit.session.interview, other, visit.wording),
        errors=[(field.id, field.error) for field in fields if field.error],
        scripts=True,
        **_for_forms(visit),
    )


def _supposed_fields(visit: Visit, given: Given | None, errors: Mapping[str, str] | None = None) -> list[Any]:
    fitted, told = visit.service.advisor.fitted, visit.session.interview.log.facts
    return [
        make_field(
            visit.wording,
            fitted.encoder,
            name,
            known=told.get(name),
            given=given,
            optional=name not in told,
            error=(errors or {}).get(name, ""),
        )
        for name in supposable(fitted)
    ]


@router.get("/receipt")
def receipt(request: Request) -> Response:
    """The receipt, to print."""
    visit = enter(request)
    session, paper = visit.service.receipt(visit.token)
    visit = replace(visit, session=session)
    view = show_receipt(session, paper, visit.wording)
    return render(request, "receipt.html", visit.wording, receipt=view, **_for_forms(visit))


@router.get("/receipt.json")
def receipt_json(request: Request) -> Response:
    """The receipt, to keep and to have checked."""
    _, paper = enter(request).service.receipt(enter(request).token)
    headers = HEADERS | {"Content-Disposition": 'attachment; filename="receipt.json"'}
    return Response(paper.to_json(), media_type="application/json", headers=headers)


@router.post("/language")
def language(request: Request, form: Form) -> Response:
    """Go on in another language, on the same page."""
    visit = enter(request)
    check_form(visit, form)
    if form.get("language") in request.app.state.wordings:
        visit.service.act(visit.token, None, "language", {"language": form["language"]})
    return redirect(form["to"] if form.get("to") in PLACES else "/interview")


@router.get("/delete")
def delete_form(request: Request) -> Response:
    """Ask whether everything is to be deleted."""
    visit = enter(request)
    return render(request, "delete.html", visit.wording, **_for_forms(visit))


@router.post("/delete")
def delete(request: Request, form: Form) -> Response:
    """Delete everything that was said."""
    visit = enter(request)
    check_form(visit, form)
    visit.service.delete(visit.token)
    response = redirect(f"/deleted?language={visit.wording.language}")
    take_token(request, response)
    return response


@router.get("/deleted")
def deleted(request: Request, language: str | None = None) -> Response:
    """That everything is deleted."""
    wording = wording_for(request, language)
    words = {"title": wording("delete.done"), "lead": wording("delete.done_lead"), "link": wording("delete.begin")}
    return render(request, "message.html", wording, to="/", **words)


def _for_forms(visit: Visit) -> dict[str, Any]:
    """What forms carry."""
    return {"csrf": visit.csrf, "seq": visit.session.seq}


def show_trouble(request: Request, error: EdfaError) -> Response:
    """The page of an error. One that somebody else has caused shows how things stand now."""
    if isinstance(error, ConflictError):
        try:
            visit = enter(request)
        except EdfaError as other:
            return show_trouble(request, other)
        notice = visit.wording("trouble.conflict")
        if visit.session.asking:
            return _question_page(request, visit, status=409, notice=notice)
        return _result_page(request, visit, status=409, notice=notice)
    kinds: list[tuple[type[EdfaError], str, int]] = [
        (UnknownInterviewError, "gone", 404),
        (MismatchError, "other", 410),
        (ForgedError, "csrf", 403),
    ]
    key, status = next(((key, status) for kind, key, status in kinds if isinstance(error, kind)), ("wrong", 422))
    wording = wording_for(request)
    to, link = ("/", "begin") if key in ("gone", "other") else ("/interview", "look")
    words = {"title": wording(f"trouble.{key}"), "lead": wording(f"trouble.{key}_lead")}
    response = render(request, "message.html", wording, status, to=to, link=wording(f"trouble.{link}"), **words)
    if key in ("gone", "other"):
        take_token(request, response)
    return response
