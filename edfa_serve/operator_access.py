"""Who may see the operator's view, and how its pages are made.

It is opened by the operator's key, sent as ``Authorization: Bearer KEY`` or once through a form,
which sets a cookie for an hour. There is no account and nothing is stored: the cookie is its
own time of expiry, signed with the key. Forms in a session with the cookie carry a field derived
from it, which no other site can know.
"""

import json
import time
from typing import Any
from urllib.parse import parse_qs

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from edfa.reading import RESOURCES
from edfa_serve.problems import ForgedError, ProblemError
from edfa_serve.rendering import HEADERS
from edfa_serve.security import Cookie, bearer, check_origin, same_key, sign
from edfa_serve.settings import WebSettings

__all__ = [
    "OPENS",
    "check_form",
    "check_operator",
    "csrf_of",
    "give_cookie",
    "page",
    "read_fields",
    "settings_of",
]

MOST_FIELDS = 20
OPENS = Cookie("edfa-operator", "strict", seconds=3600)


def check_operator(request: Request) -> None:
    """ProblemError unless a request has the operator's key, or the cookie that was given for it."""
    key = settings_of(request).operator_key
    if key is None:
        raise ProblemError("closed")
    until, _, _ = (cookie := OPENS.read(request)).partition(".")
    valid = until.isascii() and until.isdecimal() and len(until) < 12 and int(until) > time.time()
    if not _sent_key(request) and not (valid and same_key(cookie, _signed(until, key))):
        raise ProblemError("no-operator", "send Authorization: Bearer KEY")


def _sent_key(request: Request) -> bool:
    """Whether a request has the key itself, which no other site can send."""
    sent = bearer(request.headers.get("authorization"))
    return same_key(sent, settings_of(request).operator_key)


def settings_of(request: Request) -> WebSettings:
    """The settings of the application that a request came to."""
    settings: WebSettings = request.app.state.settings
    return settings


def _signed(until: object, key: str) -> str:
    return f"{until}.{sign(key, f'operator {until}')}"


def give_cookie(request: Request, response: Response, key: str) -> None:
    """Let the browser open the view for an hour."""
    OPENS.give(request, response, _signed(int(time.time()) + (OPENS.seconds or 0), key))


def csrf_of(request: Request) -> str:
    """The field against forged forms, derived from the cookie; empty if the key itself was sent."""
    cookie, key = OPENS.read(request), settings_of(request).operator_key or ""
    return sign(key, f"csrf {cookie}")[:32] if cookie else ""


def check_form(request: Request, fields: dict[str, str]) -> None:
    """ProblemError unless a form may be acted on: by the operator, from our own page, made for this
    cookie.
    """
    check_operator(request)
    check_origin(request)
    if not _sent_key(request) and not same_key(fields.get("csrf"), csrf_of(request)):
        raise ForgedError


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
    defaults = {"summary": None, "events": None, "error": "", "interview": "", "wrong": ""}
    templates: jinja2.Environment = RESOURCES.get("operator templates", _environment)
    text = templates.get_template("operator.html").render(**(defaults | context))
    return HTMLResponse(text, status, headers=HEADERS)


async def read_fields(request: Request) -> dict[str, str]:
    """The fields of a form, the first of each name; a body that is no form has none."""
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qs(body, max_num_fields=MOST_FIELDS)
    except ValueError:  # more fields than any form of ours has
        return {}
    return {name: values[0].strip() for name, values in fields.items()}
