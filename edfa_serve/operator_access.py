"""Access to the operator's view, and its pages.

The view is opened by the operator's key, sent as ``Authorization: Bearer KEY`` or once through a
form, which sets a cookie for an hour. There is no account and nothing is stored: the cookie is its
own time of expiry, signed with the key. Forms in a session with the cookie carry a field derived
from it, which no other site can know. ``check_operator`` and ``check_form`` are the main entries.
"""

import time
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from edfa_serve.problems import ForgedError, ProblemError
from edfa_serve.rendering import fill
from edfa_serve.security import Cookie, bearer, check_origin, same_key, sign
from edfa_serve.settings import WebSettings

__all__ = [
    "OPENS",
    "check_form",
    "check_operator",
    "csrf_of",
    "give_cookie",
    "has_key",
    "page",
    "read_fields",
    "settings_of",
]

MOST_FIELDS = 20
OPENS = Cookie("edfa-operator", "strict", seconds=3600)


def check_operator(request: Request, *, by_cookie: bool = True) -> None:
    """Check that a request comes from the operator.

    Parameters
    ----------
    request
        The request.
    by_cookie
        Whether the cookie that was given for the key will do, or only the key itself.

    Raises
    ------
    ProblemError
        If it has no key (nor cookie), or if the service has none, so that the view is closed.
    """
    key = settings_of(request).operator_key
    if key is None:
        raise ProblemError("closed")
    if has_key(request):
        return
    until, _, _ = (cookie := OPENS.read(request)).partition(".")
    valid = until.isascii() and until.isdecimal() and len(until) < 12 and int(until) > time.time()
    if not (by_cookie and valid and same_key(cookie, _signed(until, key))):
        raise ProblemError("no-operator", "send Authorization: Bearer KEY")


def has_key(request: Request) -> bool:
    """Whether a request sends the operator's key itself, which no other site can."""
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
    """Check that a form may be acted on.

    Raises
    ------
    ProblemError
        If it does not come from the operator, not from our own page, or was made for another
        cookie.
    """
    check_operator(request)
    check_origin(request)
    if not has_key(request) and not same_key(fields.get("csrf"), csrf_of(request)):
        raise ForgedError


def page(status: int = 200, **context: Any) -> HTMLResponse:
    """Render a page of the view; ``context`` is what its template shows."""
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
