"""The operator's view: how interviews go, whether the promise holds, which letters are due, the log of one interview.

It is opened by the operator's key, sent as ``Authorization: Bearer KEY`` or once through a form, which sets a cookie
for an hour. There is no account and nothing is kept of it: the cookie is its own time of expiry, signed with the key.
"""

import hashlib
import hmac
import time
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

import jinja2
from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from edfa.advice.fitted import FittedAdvisor
from edfa.certification.certificate import Certificate
from edfa.certification.monitor import Monitor
from edfa.errors import EdfaError
from edfa.web.problems import ProblemError
from edfa.web.security import bearer, same_key
from edfa.web.service import Service
from edfa.web.settings import WebSettings
from edfa.web.statistics import LEAST, Summary, groups_of, hide_small, summarise
from edfa.web.store import UnknownInterviewError, utc_now

__all__ = ["add_operator", "check_operator"]

SECONDS = 3600  # that a cookie opens the view
DAYS = 30  # that are counted
HEADERS = {"Referrer-Policy": "same-origin"}  # with none at all, browsers send forms without their origin
router = APIRouter(include_in_schema=False)


def add_operator(app: FastAPI) -> None:
    """Put the operator's view into an application that has ``state.service`` and ``state.settings``."""
    app.include_router(router)


def check_operator(request: Request) -> None:
    """ProblemError unless a request has the operator's key, or the cookie that was given for it."""
    key = _settings(request).operator_key
    if key is None:
        raise ProblemError("closed")
    if same_key(bearer(request.headers.get("authorization")), key):
        return
    if not _valid(request.cookies.get(_cookie(request), ""), key):
        raise ProblemError("no-operator", "send Authorization: Bearer KEY")


def _settings(request: Request) -> WebSettings:
    settings: WebSettings = request.app.state.settings
    return settings


def _cookie(request: Request) -> str:
    return "__Host-edfa-operator" if _settings(request).secure else "edfa-operator"


def _signed(until: int, key: str) -> str:
    return f"{until}.{hmac.new(key.encode(), f'operator {until}'.encode(), hashlib.sha256).hexdigest()}"


def _valid(cookie: str, key: str) -> bool:
    until = cookie.partition(".")[0]
    if not (until.isascii() and until.isdecimal() and len(until) < 12 and int(until) > time.time()):
        return False
    return hmac.compare_digest(cookie.encode(), _signed(int(until), key).encode())


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("edfa.web")
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)


def _page(status: int = 200, **context: Any) -> HTMLResponse:
    defaults: dict[str, Any] = {"summary": None, "events": None, "error": "", "interview": ""}
    text = _environment().get_template("operator.html").render(**(defaults | context))
    return HTMLResponse(text, status, headers=HEADERS)


async def _field(request: Request, name: str) -> str:
    """One field of a form; a body that is no form has none."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=10)
    return fields.get(name, [""])[0].strip()


def _check_origin(request: Request) -> None:
    """ProblemError if a browser says that a form comes from another site."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if site not in (None, "same-origin", "none") or not own:
        raise ProblemError("bad-request", "this form comes from another site")


@router.get("/operator")
def view(request: Request) -> Response:
    """The view, or the form for the key."""
    try:
        check_operator(request)
    except ProblemError as error:
        return _page(403 if error.kind == "closed" else 401, error="closed" if error.kind == "closed" else "")
    return _page(**_overview(request.app.state.service, _settings(request)))


@router.post("/operator/login")
async def login(request: Request) -> Response:
    """Take the key, and give a cookie for it."""
    _check_origin(request)
    key = _settings(request).operator_key
    if key is None or not same_key(await _field(request, "key"), key):
        return _page(401, error="closed" if key is None else "wrong")
    response = RedirectResponse("/operator", 303, headers=HEADERS)
    secure, until = _settings(request).secure, int(time.time()) + SECONDS
    response.set_cookie(
        _cookie(request), _signed(until, key), SECONDS, path="/", secure=secure, httponly=True, samesite="strict"
    )
    return response


@router.post("/operator/logout")
def logout(request: Request) -> Response:
    """Make the browser forget its cookie."""
    _check_origin(request)
    response = RedirectResponse("/operator", 303, headers=HEADERS)
    response.delete_cookie(
        _cookie(request), path="/", secure=_settings(request).secure, httponly=True, samesite="strict"
    )
    return response


@router.post("/operator/audit")
async def audit(request: Request) -> Response:
    """The events of one interview, by its id, which stands in no address."""
    check_operator(request)
    _check_origin(request)
    interview = (await _field(request, "interview"))[:64]
    store = request.app.state.service.store
    try:
        record = await run_in_threadpool(store.find, interview)
    except UnknownInterviewError:
        return _page(404, error="unknown", interview=interview)
    return _page(events=record.events, interview=record.id)


@router.get("/operator/style.css")
def style() -> Response:
    """The look of the view."""
    text = files("edfa.web").joinpath("templates", "operator.css").read_text(encoding="utf-8")
    return Response(text, media_type="text/css")


def _overview(service: Service, settings: WebSettings) -> dict[str, Any]:
    """What the view shows."""
    fitted = service.advisor.fitted
    groups = groups_of(fitted.schema, fitted.groups)
    refused = [name for code, name in enumerate(fitted.schema.classes) if code != fitted.favourable]
    summary = summarise(service.store.records(utc_now() - timedelta(days=DAYS)), groups, refused)
    certificates = _certificates(fitted)
    labels = {feature.name: feature.title for feature in fitted.schema}
    return {
        "summary": summary,
        "days": DAYS,
        "least": LEAST,
        "advisor": fitted.fingerprint,
        "title": fitted.schema.title,
        "groups": summary.groups,
        "labels": labels,
        **_rows(summary, labels),
        "certificates": certificates,
        "alpha": min((c.alpha for c in certificates.values() if c.certified), default=None),
        "monitor": _monitor(settings, fitted),
    }


def _rows(summary: Summary, labels: dict[str, str]) -> dict[str, Any]:
    """The rows of the view's tables."""
    now, hidden = utc_now(), ["fewer than " + str(LEAST), "", ""]
    numbers = sorted({number for number, _ in summary.steps})
    return {
        "due_rows": [(d.interview, d.shown.isoformat(" ", "minutes"), (d.until - now).days) for d in summary.due],
        "step_rows": [(n, *(summary.steps[n, end] for end in ("act", "stopped", "open"))) for n in numbers],
        "declined_rows": [(labels.get(n, n), count, summary.asked[n]) for n, count in summary.declined.most_common()],
        "group_rows": {
            name: [(level, *(hidden if cell is None else cell)) for level, cell in sorted(hide_small(levels).items())]
            for name, levels in summary.groups.items()
        },
    }


def _certificates(fitted: FittedAdvisor) -> dict[str, Certificate]:
    if fitted.certificates is not None:
        return dict(fitted.certificates)
    return {} if fitted.certificate is None else {"": fitted.certificate}


def _monitor(settings: WebSettings, fitted: FittedAdvisor) -> Monitor | None:
    """The monitor as the last audit left it (``edfa monitor``); None if there were no audits of this advisor."""
    if settings.monitor is None or not settings.monitor.is_file():
        return None
    try:
        monitor = Monitor.from_json(settings.monitor.read_text(encoding="utf-8"))
    except (EdfaError, OSError, ValueError):
        return None
    return monitor if isinstance(monitor, Monitor) and monitor.advisor == fitted.fingerprint else None
