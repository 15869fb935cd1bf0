"""Who may see the operator's view, and how its pages are made.

It is opened by the operator's key, sent as ``Authorization: Bearer KEY`` or once through a form,
which sets a cookie for an hour. There is no account and nothing is kept of it: the cookie is its
own time of expiry, signed with the key. Forms of whoever came with the cookie carry a field derived
from it, which no other site can know.
"""

import hashlib
import hmac
import json
import time
from typing import Any
from urllib.parse import parse_qs

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from edfa.reading import RESOURCES
from edfa_serve.problems import ProblemError
from edfa_serve.security import bearer, same_key
from edfa_serve.settings import WebSettings

__all__ = [
    "HEADERS",
    "check_form",
    "check_operator",
    "check_origin",
    "csrf_of",
    "give_cookie",
    "page",
    "read_fields",
    "settings_of",
    "take_cookie",
]

SECONDS = 3600  # that a cookie opens the view
MOST_FIELDS = 20
HEADERS = {
    "Referrer-Policy": "same-origin"
}  # with none at all, browsers send forms without their origin


def check_operator(request: Request) -> None:
    """ProblemError unless a request has the operator's key, or the cookie that was given for it."""
    key = settings_of(request).operator_key
    if key is None:
        raise ProblemError("closed")
    if same_key(bearer(request.headers.get("authorization")), key):
        return
    if not _valid(request.cookies.get(_cookie(request), ""), key):
        raise ProblemError("no-operator", "send Authorization: Bearer KEY")


def settings_of(request: Request) -> WebSettings:
    """The settings of the application that a request came to."""
    settings: WebSettings = request.app.state.settings
    return settings


def _cookie(request: Request) -> str:
    return "__Host-edfa-operator" if settings_of(request).secure else "edfa-operator"


def _signed(until: int, key: str) -> str:
    return f"{until}.{hmac.new(key.encode(), f'operator {until}'.encode(), hashlib.sha256).hexdigest()}"  # noqa: E501


def _valid(cookie: str, key: str) -> bool:
    until = cookie.partition(".")[0]
    if not (until.isascii() and until.isdecimal() and len(until) < 12 and int(until) > time.time()):
        return False
    return hmac.compare_digest(cookie.encode(), _signed(int(until), key).encode())


def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("edfa_serve")
    made = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    made.filters["as_json"] = lambda value: json.dumps(
        value, ensure_ascii=False
    )  # text, which is escaped as such
    return made


def page(status: int = 200, **context: Any) -> HTMLResponse:
    """A page of the view; ``context`` is what its template shows."""
    defaults: dict[str, Any] = {
        "summary": None,
        "events": None,
        "error": "",
        "interview": "",
        "wrong": "",
    }
    templates: jinja2.Environment = RESOURCES.get("operator templates", _environment)
    text = templates.get_template("operator.html").render(**(defaults | context))
    return HTMLResponse(text, status, headers=HEADERS)


async def read_fields(request: Request) -> dict[str, str]:
    """The fields of a form, the first of each name; a body that is no form has none."""
    try:
        fields = parse_qs(
            (await request.body()).decode("utf-8", "replace"), max_num_fields=MOST_FIELDS
        )
    except ValueError:  # more fields than any form of ours has
        return {}
    return {name: values[0].strip() for name, values in fields.items()}


def check_origin(request: Request) -> None:
    """ProblemError if a browser says that a form comes from another site."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if site not in (None, "same-origin", "none") or not own:
        raise ProblemError("bad-request", "this form comes from another site")


def csrf_of(request: Request) -> str:
    """What the forms of whoever came with a cookie carry; empty for whoever sent the key itself."""
    cookie, key = request.cookies.get(_cookie(request), ""), settings_of(request).operator_key or ""
    return (
        hmac.new(key.encode(), b"csrf " + cookie.encode(), hashlib.sha256).hexdigest()[:32]
        if cookie
        else ""
    )


def check_form(request: Request, fields: dict[str, str]) -> None:
    """ProblemError unless a form may be acted on: by the operator, from our own page, made for this
    cookie.
    """
    check_operator(request)
    check_origin(request)
    if same_key(bearer(request.headers.get("authorization")), settings_of(request).operator_key):
        return  # no other site can send the key itself
    if not hmac.compare_digest(fields.get("csrf", "").encode(), csrf_of(request).encode()):
        raise ProblemError("bad-request", "this form did not come from this page; open it again")


def give_cookie(request: Request, response: Response, key: str) -> None:
    """Let the browser open the view for an hour."""
    secure, until = settings_of(request).secure, int(time.time()) + SECONDS
    response.set_cookie(
        _cookie(request),
        _signed(until, key),
        SECONDS,
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def take_cookie(request: Request, response: Response) -> None:
    """Make the browser forget its cookie."""
    secure = settings_of(request).secure
    response.delete_cookie(
        _cookie(request), path="/", secure=secure, httponly=True, samesite="strict"
    )
