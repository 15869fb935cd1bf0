"""The operator's view: how interviews go, whether the promise holds, which letters are due.

``add_operator`` puts it into an application. ``Counted`` counts the last interviews; a ``Case`` is
one interview: its events are shown, its decision is recorded, or a letter about it is written.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response

from edfa.advice.fitted import FittedAdvisor
from edfa.certification.monitor import Monitor
from edfa.errors import EdfaError, SettingError
from edfa_serve.decisions import TEXTS, decide, read_taken
from edfa_serve.problems import ProblemError
from edfa_serve.rendering import LETTER_HEADERS, fill, redirect, writes_letters
from edfa_serve.security import (
    OPENS,
    check_form,
    check_operator,
    check_origin,
    csrf_of,
    give_cookie,
    same_key,
)
from edfa_serve.service import Service, retry
from edfa_serve.settings import WebSettings
from edfa_serve.statistics import LEAST_PEOPLE_IN_A_CELL, Summary, groups_of, hide_small, summarise
from edfa_serve.store import ConflictError, StoredInterview, UnknownInterviewError, utc_now

MOST_FIELDS = 20
DAYS_COUNTED = 30  # that are counted
FRESH = 10.0  # seconds that counts are shown before interviews are counted again
router = APIRouter(include_in_schema=False)
ID = 64  # characters of an interview's id, at most
GONE_ON = "The interview has gone on since you looked; see its events below and decide again."
ENDS = {"granted": "granted", "act": "may act", "nothing": "nothing helps"}  # as columns
PLAIN = ("action", "date", "decided_by", "until", *TEXTS)  # fields of the form that are one line


def add_operator(app: FastAPI) -> None:
    """Put the operator's view into an application that has ``state.service`` and
    ``state.settings``.
    """
    app.state.counted = Counted(app.state.service)
    app.include_router(router)


def page(status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page of the view.

    Parameters
    ----------
    status
        The status of the response.
    context
        What its template shows; what is left out is empty.
    """
    defaults = {"summary": None, "events": None, "error": "", "interview": "", "wrong": ""}
    return fill("operator.html", status, defaults | context)


async def read_fields(request: Request) -> dict[str, str]:
    """Read the fields of a form, the first of each name; a body that is no form has none."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qs(body, max_num_fields=MOST_FIELDS)
    except ValueError:  # more fields than any form of ours has
        return {}
    return {name: values[0].strip() for name, values in fields.items()}


class Counted:
    """The counts of the interviews of the last ``DAYS`` days. Threads may share it.

    Parameters
    ----------
    service
        The service whose interviews are counted.
    """

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, threading.Lock()
        self._summary, self._until = Summary(), 0.0

    def summary(self) -> Summary:
        """Count the interviews.

        Returns
        -------
        Summary
            The counts, at most ``FRESH`` seconds old; a second caller waits while they are made.
        """
        with self._lock:
            if time.monotonic() >= self._until:
                fitted = self._service.advisor.fitted
                good = fitted.schema.classes[fitted.favourable]
                self._summary = summarise(
                    self._service.store.records(utc_now() - timedelta(days=DAYS_COUNTED)),
                    groups_of(fitted.schema, fitted.promise.groups),
                    {*fitted.schema.classes} - {good},
                )
                self._until = time.monotonic() + FRESH
            return self._summary


@router.get("/operator")
def view(request: Request) -> Response:
    """The view; without access, the form for the key."""
    try:
        check_operator(request)
    except ProblemError as error:
        closed = error.kind == "closed"
        return page(403 if closed else 401, error="closed" if closed else "")
    summary, service = request.app.state.counted.summary(), request.app.state.service
    return page(**_overview(summary, service.advisor.fitted, request.app.state.settings))


@router.post("/operator/login")
async def login(request: Request) -> Response:
    """Take the key, and give a cookie for it."""
    check_origin(request)
    key = request.app.state.settings.operator_key
    if key is None or not same_key((await read_fields(request)).get("key"), key):
        return page(401, error="closed" if key is None else "wrong")
    response = redirect("/operator")
    give_cookie(request, response, key)
    return response


@router.post("/operator/logout")
def logout(request: Request) -> Response:
    """Make the browser forget its cookie."""
    check_origin(request)
    response = redirect("/operator")
    OPENS.give(request, response, "")
    return response


def _overview(summary: Summary, fitted: FittedAdvisor, settings: WebSettings) -> dict[str, Any]:
    """What the template of the view shows."""
    endings = fitted.promise.endings
    certificates = {
        ", ".join(filter(None, [ending.name if len(endings) > 1 else "", label])): made
        for ending in endings
        for label, made in ending.certificates.items()
    }
    told = {ENDS[ending.name]: ending.name for ending in endings}
    ends = told | {"stopped": "stopped", "open": "open"}
    labels = {feature.name: feature.title for feature in fitted.schema}
    now, hidden, steps = utc_now(), [f"fewer than {LEAST_PEOPLE_IN_A_CELL}", "", ""], summary.steps
    return {
        "summary": summary,
        "days": DAYS_COUNTED,
        "seconds": round(FRESH),
        "least": LEAST_PEOPLE_IN_A_CELL,
        "fitted": fitted,
        "labels": labels,
        "due_rows": [
            (
                letter.interview,
                letter.shown.isoformat(" ", "minutes"),
                letter.decided or "not yet",
                (letter.until - now).days,
            )
            for letter in summary.due
        ],
        "step_rows": [
            (number, *(steps[number, end] for end in ends.values()))
            for number in sorted({number for number, _ in steps})
        ],
        "declined_rows": [
            (labels.get(name, name), count, summary.asked[name])
            for name, count in summary.declined.most_common()
        ],
        "group_rows": {
            name: [(level, *(cell or hidden)) for level, cell in sorted(hide_small(levels).items())]
            for name, levels in summary.groups.items()
        },
        "ends": ["questions", *ends],
        "certificates": certificates,
        "alpha": min(
            (c.alpha for c in fitted.promise.certificates.values() if c.certified), default=None
        ),
        "monitor": _monitor(settings, fitted),
    }


def _monitor(settings: WebSettings, fitted: FittedAdvisor) -> Monitor | None:
    """The monitor as the last audit left it (``edfa monitor``); None if this advisor has had no
    audit.
    """
    if settings.monitor is None or not settings.monitor.is_file():
        return None
    try:
        monitor = Monitor.from_json(settings.monitor.read_text(encoding="utf-8"))
    except (EdfaError, OSError, ValueError):
        return None
    return monitor if monitor.advisor == fitted.fingerprint else None


@router.post("/operator/audit")
async def audit(request: Request) -> Response:
    """The events of one interview, by its id, which stands in no address."""
    check_operator(request)
    check_origin(request)
    return await run_in_threadpool(_answer, Case.show, request, await read_fields(request))


@router.post("/operator/decision")
async def decision(request: Request) -> Response:
    """Record what was decided about the person of an interview."""
    check_form(request, fields := await read_fields(request))
    return await run_in_threadpool(_answer, Case.decide, request, fields)


@router.post("/operator/letter")
async def letter(request: Request) -> Response:
    """The letter about an interview, to send; that it was written is recorded."""
    check_form(request, fields := await read_fields(request))
    return await run_in_threadpool(_answer, Case.write, request, fields)


def _answer(
    work: "Callable[[Case], Response]", request: Request, fields: dict[str, str]
) -> Response:
    """The response of ``work``; what is wrong is said above the events of the interview."""
    case = Case(request, fields)
    try:
        return work(case)
    except UnknownInterviewError:
        return page(404, error="unknown", interview=case.interview)
    except ConflictError:
        return case.show(wrong=GONE_ON, status=409)
    except EdfaError as error:
        return case.show(wrong=str(error), status=422)


class Case:
    """One interview, as the fields of a form name it and say what to do about it.

    Parameters
    ----------
    request
        The request of the operator, who was found to have access.
    fields
        The fields of the form; ``interview`` is the id of the interview.
    """

    def __init__(self, request: Request, fields: dict[str, str]) -> None:
        self.request, self.fields = request, fields
        self.interview = fields.get("interview", "")[:ID]
        self.service: Service = request.app.state.service

    def decide(self) -> Response:
        """Record the decision that the form declares, its reasons one on a line.

        Raises
        ------
        SettingError, DataError
            If the decision is incomplete or cannot be.
        ConflictError
            If something was done in the interview since the form was shown.
        """
        lines = (line.strip() for line in self.fields.get("reasons", "").splitlines())
        given: dict[str, object] = {name: self.fields.get(name) for name in PLAIN}
        given["reasons"] = [*filter(None, lines)]
        seen = self.fields.get("seq", "")
        taken = read_taken({name: value for name, value in given.items() if value})
        if not (seen.isascii() and seen.isdecimal() and len(seen) < 10):
            raise ConflictError  # a form that has seen nothing is stale
        decide(self.service, self.interview, taken, int(seen))
        return self.show(notice="The decision is recorded.")

    def write(self) -> Response:
        """Write the letter, and record that it was written.

        Raises
        ------
        SettingError
            If the service writes no letters, or something for the letter is not declared.
        """
        state, service = self.request.app.state, self.service
        if not writes_letters(self.request):
            raise SettingError("this service writes no letters; edfa serve --letter letter.toml")

        def write() -> Response:
            record = service.store.find(self.interview)
            text, content = state.write_letter(service.then(record, record.seq), None)
            service.store.append(record.id, record.seq, [("letter", content)], finished=True)
            return HTMLResponse(text, headers=LETTER_HEADERS)

        return retry(write)

    def show(self, wrong: str = "", notice: str = "", status: int = 200) -> Response:
        """Show the interview, with a form for its decision.

        Parameters
        ----------
        wrong
            What is wrong with the form that was sent, which is then shown again.
        notice
            What was done.
        status
            The status of the response.
        """
        record = self.service.store.find(self.interview)
        given = self.fields if wrong and "action" in self.fields else None
        return page(
            status,
            events=record.events,
            interview=record.id,
            seq=record.seq,
            csrf=csrf_of(self.request),
            form=given or _last(record) or {"date": str(datetime.now(UTC).date())},
            letters=writes_letters(self.request),
            wrong=wrong,
            notice=notice,
        )


def _last(record: StoredInterview) -> dict[str, str] | None:
    """The last decision as fields of the form; None if there is none."""
    decided = record.of("decided")
    if not decided:
        return None
    content = decided[-1].content
    lines = {name: content.get(name, "") for name in PLAIN}
    return lines | {"reasons": "\n".join(content.get("reasons", ()))}
