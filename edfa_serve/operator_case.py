"""One interview on the operator's view: its events, what was decided about it, and the letter."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from edfa.errors import EdfaError, SettingError
from edfa.reading import parse
from edfa_serve.decisions import TEXTS, decide, read_taken
from edfa_serve.letters.settings import Taken
from edfa_serve.operator_access import (
    check_form,
    check_operator,
    csrf_of,
    page,
    read_fields,
)
from edfa_serve.rendering import LETTER_HEADERS, writes_letters
from edfa_serve.security import check_origin
from edfa_serve.service import Service, retry
from edfa_serve.store import ConflictError, InterviewRecord, UnknownInterviewError

__all__ = ["router"]

ID = 64  # characters of an interview's id, at most
PLAIN = ("action", "date", "decided_by", "until", *TEXTS)  # fields of the form that are one line
router = APIRouter(include_in_schema=False)


@router.post("/operator/audit")
async def audit(request: Request) -> Response:
    """The events of one interview, by its id, which stands in no address."""
    check_operator(request)
    check_origin(request)
    fields = await read_fields(request)
    return await run_in_threadpool(_show, request, fields.get("interview", "")[:ID])


@router.post("/operator/decision")
async def decision(request: Request) -> Response:
    """Record what was decided about the person of an interview."""
    fields = await read_fields(request)
    check_form(request, fields)
    return await run_in_threadpool(_decide, request, fields)


@router.post("/operator/letter")
async def letter(request: Request) -> Response:
    """The letter about an interview, to send; that it was written is recorded."""
    fields = await read_fields(request)
    check_form(request, fields)
    return await run_in_threadpool(_write, request, fields.get("interview", "")[:ID])


def _decide(request: Request, fields: dict[str, str]) -> Response:
    interview, service = fields.get("interview", "")[:ID], _service(request)
    try:
        decide(service, interview, _read(fields), _seq(fields.get("seq", "")))
    except UnknownInterviewError:
        return page(404, error="unknown", interview=interview)
    except ConflictError:
        why = "The interview has gone on since you looked; see its events below and decide again."
        return _show(request, interview, given=fields, wrong=why, status=409)
    except EdfaError as error:
        return _show(request, interview, given=fields, wrong=str(error), status=422)
    return _show(request, interview, notice="The decision is recorded.")


def _read(fields: dict[str, str]) -> Taken:
    """The decision that a form declares; a reason stands on each line."""
    lines = (line.strip() for line in fields.get("reasons", "").splitlines())
    given = {name: fields.get(name) for name in PLAIN} | {"reasons": [*filter(None, lines)]}
    return read_taken({name: value for name, value in given.items() if value})


def _seq(text: str) -> int:
    """The number of events that a form had seen; one that has none is stale."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ConflictError
    return int(text)


def _write(request: Request, interview: str) -> Response:
    service = _service(request)

    def write() -> Response:
        record = service.store.find(interview)
        text, content = request.app.state.write_letter(service.then(record, record.seq), None)
        service.store.append(record.id, record.seq, [("letter", content)], finished=True)
        return HTMLResponse(text, headers=LETTER_HEADERS)

    try:
        if not writes_letters(request):
            raise SettingError("this service writes no letters; edfa serve --letter letter.toml")
        return retry(write)
    except UnknownInterviewError:
        return page(404, error="unknown", interview=interview)
    except EdfaError as error:
        return _show(request, interview, wrong=str(error), status=422)


def _show(
    request: Request,
    interview: str,
    *,
    given: dict[str, str] | None = None,
    wrong: str = "",
    notice: str = "",
    status: int = 200,
) -> Response:
    """One interview, with a form for its decision; with what was ``given`` and what is ``wrong``
    with it.
    """
    service = _service(request)
    try:
        record = service.store.find(interview)
    except UnknownInterviewError:
        return page(404, error="unknown", interview=interview)
    return page(
        status,
        events=record.events,
        interview=record.id,
        seq=record.seq,
        csrf=csrf_of(request),
        form=given or _last(record) or {"date": str(datetime.now(UTC).date())},
        letters=writes_letters(request),
        wrong=wrong,
        notice=notice,
    )


def _last(record: InterviewRecord) -> dict[str, str] | None:
    """What was decided last, as the form has it."""
    contents = [event.content for event in record.events if event.kind == "decided"]
    if not contents:
        return None
    taken = parse(Taken, contents[-1], "decision")
    lines = {name: str(getattr(taken, name) or "") for name in PLAIN}
    return lines | {"reasons": "\n".join(taken.reasons)}


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service
