"""What every request passes: an id, limits on its size and number, safe headers, a line in the log.

``Guard`` is the middleware. Cookies, signatures, the check of a request's origin and that of the
operator are here too. The operator's view is opened by their key, sent as ``Authorization: Bearer
KEY`` or once through a form, which sets a cookie for an hour. There is no account and nothing is
stored: the cookie is its own time of expiry, signed with the key.

The line names the request's id, method, route template, status, milliseconds and the kinds of
events. It never has an answer, a token, an address, a query string or the text of an error.
"""

import hashlib
import hmac
import ipaddress
import logging
import secrets
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edfa_serve.metrics import Metrics
from edfa_serve.problems import ForgedError, ProblemError, handle_error, problem_of, respond
from edfa_serve.service import happened
from edfa_serve.settings import WebSettings

LOG = logging.getLogger("edfa_serve")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src "
    "'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": (
        "camera=(), microphone=(), geolocation=(), payment=(), interest-cohort=()"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
HSTS = "max-age=63072000; includeSubDomains"
COOKIES = ("__Host-edfa", "edfa")  # which hold the token of the page
MAX_BODY = 64 * 1024  # bytes of a request
CLIENTS = 20_000  # whose last requests are remembered
COST = {
    "what-if": 4,
    "overlay": 4,
    "verify": 10,
    "advise": 10,
    "letter": 4,
    "login": 20,
    "audit": 4,
}  # by last word
ADDRESS_SHARE = 4  # people behind one address


def bearer(request: Request) -> str | None:
    """The token of a header ``Authorization: Bearer TOKEN``; None if there is none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def same_key(given: str | None, key: str | None) -> bool:
    """Compare two keys in a time that does not depend on where they differ.

    Parameters
    ----------
    given, key
        The key that was sent, and the right one; None is no key, and equals none.
    """
    if given is None or key is None:
        return False
    return hmac.compare_digest(
        hashlib.sha256(given.encode()).digest(), hashlib.sha256(key.encode()).digest()
    )


def sign(key: str, text: str) -> str:
    """Sign a text.

    Parameters
    ----------
    key, text
        The key, and what is signed.

    Returns
    -------
    str
        The HMAC-SHA256 in hexadecimal digits.
    """
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def check_origin(request: Request) -> None:
    """Check that a browser does not say that a request comes from another site.

    Parameters
    ----------
    request
        Its headers ``Origin`` and ``Sec-Fetch-Site`` are looked at; programs send neither.

    Raises
    ------
    ForgedError
        If it comes from another site.
    """
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin", "none"):
        raise ForgedError
    if origin not in (None, "null") and urlsplit(str(origin)).netloc != request.headers.get("host"):
        raise ForgedError
    if origin == "null" and site is None:
        raise ForgedError


@dataclass(frozen=True)
class Cookie:
    """A cookie that no script reads, sent over HTTPS alone unless the service runs without.

    Parameters
    ----------
    name
        Its name; over HTTPS ``__Host-`` stands before it.
    samesite
        Whether it comes with links from other sites (``"lax"``) or not.
    seconds
        How long it lasts; None: until the browser is closed.
    """

    name: str
    samesite: Literal["lax", "strict"]
    seconds: int | None = None

    def read(self, request: Request) -> str:
        """Its value; empty if the browser has none."""
        return request.cookies.get(self._name(request), "")

    def give(self, request: Request, response: Response, value: str) -> None:
        """Hand the browser a value.

        Parameters
        ----------
        request, response
            The request that is answered, and the answer, which gets the header.
        value
            The value; an empty one makes the browser forget the cookie.
        """
        response.set_cookie(
            self._name(request),
            value,
            self.seconds if value else 0,
            path="/",
            secure=request.app.state.settings.secure,
            httponly=True,
            samesite=self.samesite,
        )

    def _name(self, request: Request) -> str:
        return f"__Host-{self.name}" if request.app.state.settings.secure else self.name


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
    key = request.app.state.settings.operator_key
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
    return same_key(bearer(request), request.app.state.settings.operator_key)


def _signed(until: object, key: str) -> str:
    return f"{until}.{sign(key, f'operator {until}')}"


def give_cookie(request: Request, response: Response, key: str) -> None:
    """Let the browser open the view for an hour."""
    OPENS.give(request, response, _signed(int(time.time()) + (OPENS.seconds or 0), key))


def csrf_of(request: Request) -> str:
    """The field against forged forms, derived from the cookie; empty if the key itself was sent."""
    cookie, key = OPENS.read(request), request.app.state.settings.operator_key or ""
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


class RateLimiter:
    """Token buckets: a client may make ``a_minute`` requests at once, and as many again in every
    minute. Threads may share it.

    Parameters
    ----------
    a_minute
        How many requests a client may make in a minute.
    clients
        How many clients are remembered; those that were not seen for longest are forgotten first.

    Examples
    --------
    >>> limiter = RateLimiter(2)
    >>> [limiter.wait("a", now=0.0), limiter.wait("a", now=0.0), limiter.wait("a", now=0.0),
    ...     limiter.wait("b", now=0.0)]
    [0.0, 0.0, 30.0, 0.0]
    """

    def __init__(self, a_minute: int, clients: int = CLIENTS) -> None:
        self.a_minute, self.clients = a_minute, clients
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, client: str, cost: float = 1.0, now: float | None = None) -> float:
        """Take ``cost`` from the bucket of a client, if there is enough in it.

        Parameters
        ----------
        client
            Whose bucket.
        cost
            How many requests it counts as; more than a full bucket counts as that.
        now
            The time in seconds; by default that of a monotonic clock.

        Returns
        -------
        float
            0 if it was taken, else the seconds until there is enough.
        """
        now, rate = time.monotonic() if now is None else now, self.a_minute / 60
        cost = min(cost, self.a_minute)
        with self._lock:
            left, then = self._left.pop(client, (float(self.a_minute), now))
            left = min(self.a_minute, left + (now - then) * rate)
            short = max(cost - left, 0.0)
            self._left[client] = (left if short else left - cost, now)
            if len(self._left) > self.clients:
                self._left.popitem(last=False)
        return short / rate


class Guard:
    """ASGI middleware around the whole application; see the module.

    Parameters
    ----------
    app
        The application inside.
    settings
        Its limits.
    metrics
        Where requests are counted.
    """

    def __init__(self, app: ASGIApp, settings: WebSettings, metrics: Metrics) -> None:
        self.app, self.settings, self.metrics = app, settings, metrics
        self._tokens = RateLimiter(settings.requests_a_minute)
        self._addresses = RateLimiter(settings.requests_a_minute * ADDRESS_SHARE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id, began = secrets.token_hex(8), time.perf_counter()
        scope["edfa.request"] = request_id
        kinds: list[str] = []
        reset = happened.set(kinds)
        status = 0

        async def safe_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, request_id)
            await send(message)

        try:
            await self._answer(scope, self._bounded(scope, receive), safe_send)
        except Exception as error:
            LOG.error("request=%s fault=%s at=%s", request_id, type(error).__name__, _place(error))
            if not status:
                await handle_error(Request(scope), error)(scope, receive, safe_send)
        finally:
            happened.reset(reset)
            seconds = time.perf_counter() - began
            route, method, status = _route(scope), _method(scope), status or 499
            self.metrics.request(method, route, status, seconds, kinds)
            words = (request_id, method, route, status, seconds * 1e3, ",".join(kinds) or "-")
            LOG.info("request=%s method=%s route=%s status=%d ms=%.0f event=%s", *words)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer, unless the body or the number of requests is too large."""
        length, app = Headers(scope=scope).get("content-length", ""), self.app
        if length.isdecimal() and int(length[:20]) > MAX_BODY:
            app = respond(problem_of("too-large"), scope["edfa.request"])
        elif wait := self._wait(scope):
            after = {"retry-after": str(int(wait) + 1)}
            app = respond(problem_of("too-many"), scope["edfa.request"], after)
        await app(scope, receive, send)

    def _wait(self, scope: Scope) -> float:
        """How long a client has to wait, by their token and by their address."""
        if scope["path"] == "/healthz":
            return 0.0
        cost = COST.get(scope["path"].rstrip("/").rpartition("/")[2], 1)
        address = self._addresses.wait(_network(scope), cost)
        token = _token(scope)
        if address or token is None:
            return address
        return self._tokens.wait(hashlib.sha256(token.encode()).hexdigest(), cost)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """``receive``, which ends with 413 where a body goes past the limit."""
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BODY:
                raise HTTPException(413)
            return message

        return bounded

    def _add_headers(self, message: MutableMapping[str, Any], request_id: str) -> None:
        """Add the headers of every answer; those that a route has set stay."""
        headers = MutableHeaders(scope=message)
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers["x-request-id"] = request_id
        if self.settings.secure:
            headers["strict-transport-security"] = HSTS


def _network(scope: Scope) -> str:
    """The client's address; of IPv6 the network of its home, which has as many addresses as it
    likes.
    """
    host = (scope.get("client") or ("-", 0))[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _token(scope: Scope) -> str | None:
    """What a client is known by: the token of the API, or of the page's cookie."""
    request = Request(scope)
    cookies = (request.cookies[name] for name in COOKIES if name in request.cookies)
    return bearer(request) or next(cookies, None)


def _route(scope: Scope) -> str:
    """The template of the route that answered; a path that has none may hold anything."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else "-"


def _method(scope: Scope) -> str:
    known = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
    return scope["method"] if scope["method"] in known else "-"


def _place(error: BaseException) -> str:
    """Where an error was raised, without what it says."""
    frames = reversed(traceback.extract_tb(error.__traceback__)[-3:])
    places = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]
    return " < ".join(places) or "-"
