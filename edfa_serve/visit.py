"""One request of one person: whose interview it is, whether a form may be acted on, and what was
shown to them.

The token is in a cookie and nowhere else. Every form carries a field derived from it, which no
other site can know, and the number of events that its page had seen: what others only recorded
since does not matter, what they did does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from starlette.requests import Request

from edfa_serve.forms import Given
from edfa_serve.problems import ForgedError
from edfa_serve.security import Cookie, same_key, sign
from edfa_serve.service import AUDIT, Service, Session, describe_shown, retry
from edfa_serve.store import ConflictError, StoredInterview, UnknownInterviewError
from edfa_serve.view import View
from edfa_serve.wording import Wording

__all__ = [
    "TOKEN",
    "Visit",
    "act",
    "check_form",
    "enter",
    "has_token",
    "note_shown",
    "wording_for",
]

NEUTRAL = (
    *AUDIT,
    "language",
)  # what may have happened since a form was shown without making it stale
TOKEN = Cookie("edfa", "lax")  # until the browser is closed


@dataclass(frozen=True, eq=False)
class Visit:
    """A person with an interview, as it stood when they came."""

    request: Request
    token: str
    record: StoredInterview
    session: Session
    wording: Wording

    @property
    def service(self) -> Service:
        """Where their interview is."""
        service: Service = self.request.app.state.service
        return service

    @cached_property
    def view(self) -> View:
        """What the page shows of their interview."""
        return View(self.session.record, self.wording, self.session.chosen)

    @property
    def csrf(self) -> str:
        """What their forms carry."""
        return sign(self.token, "csrf")[:32]


def wording_for(request: Request, language: str | None = None) -> Wording:
    """The wording in a language; unless it is one of the page's, in the first that the browser asks
    for and it has.
    """
    wordings: Mapping[str, Wording] = request.app.state.wordings
    if language in wordings:
        return wordings[str(language)]
    accepted = request.headers.get("accept-language", "")
    asked = [part.split(";")[0].strip()[:2].lower() for part in accepted.split(",")]
    return wordings[next((code for code in asked if code in wordings), next(iter(wordings)))]


def has_token(request: Request) -> bool:
    """Whether the browser holds the token of an interview, which need not be there any more."""
    return bool(TOKEN.read(request))


def enter(request: Request) -> Visit:
    """The visit of a request; UnknownInterviewError without a token, or with one that opens
    nothing.
    """
    service: Service = request.app.state.service
    if not (token := TOKEN.read(request)):
        raise UnknownInterviewError
    session, record = service.find(token), service.store.read(token)
    wording = wording_for(request, session.interview.language)
    return Visit(request, token, record, session, wording)


def check_form(visit: Visit, form: Given) -> None:
    """ForgedError unless the form is one that was made for this person."""
    if not same_key(form.get("csrf"), visit.csrf):
        raise ForgedError


def act(
    visit: Visit, form: Given, kind: str, content: Mapping[str, Any], *, also: tuple[str, ...] = ()
) -> Session:
    """Do what a form asks for; ConflictError if the interview has gone on since the form was shown.

    Events of the kinds ``also`` may have happened since.
    """
    check_form(visit, form)

    def do() -> Session:
        record = visit.service.store.read(visit.token)
        check_fresh(record, form, also)
        return visit.service.act(visit.token, record.seq, kind, content)

    return retry(do)


def check_fresh(record: StoredInterview, form: Given, also: tuple[str, ...] = ()) -> None:
    """ConflictError unless nothing was done since the form was shown."""
    seen = form.get("seq", "")
    if not (seen.isascii() and seen.isdigit()) or int(seen[:9]) > record.seq:
        raise ConflictError
    if any(event.kind not in (*NEUTRAL, *also) for event in record.events[int(seen[:9]) :]):
        raise ConflictError


def note_shown(visit: Visit, page: str) -> Visit:
    """Record what is shown to the person: once for each page and state, and for the first time that
    it is a refusal.

    The visit that comes back has seen this event too, so that forms made from it are fresh.
    """
    changed = max((e.seq for e in visit.record.events if e.kind not in NEUTRAL), default=0)
    content = describe_shown(visit.session, page)
    said = {part: content[part] for part in ("page", "status")}.items()
    shown = [event.content for event in visit.record.of("shown") if event.seq > changed]
    if any(said <= before.items() for before in shown):
        return visit
    try:
        session = visit.service.act(visit.token, visit.session.seq, "shown", content)
    except (
        ConflictError
    ):  # somebody was faster; the page shows what it has, and its forms may be stale
        return visit
    return replace(visit, session=session)
