"""One request of one person: whose interview it is, whether a form may be acted on, and what was
shown to them.

The token is in a cookie and nowhere else. Every form carries a field derived from it, which no
other site can know, and the number of events that its page had seen: what others only recorded
since does not matter, what they did does.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from edfa.errors import EdfaError
from edfa_serve.forms import Given
from edfa_serve.service import AUDIT, Service, Session
from edfa_serve.settings import WebSettings
from edfa_serve.store import ConflictError, InterviewRecord, UnknownInterviewError
from edfa_serve.wording import Wording

__all__ = [
    "ForgedError",
    "Visit",
    "act",
    "check_form",
    "check_origin",
    "enter",
    "give_token",
    "has_token",
    "note_shown",
    "take_token",
    "wording_for",
]

NEUTRAL = (
    *AUDIT,
    "language",
)  # what may have happened since a form was shown without making it stale
TRIES = 3  # when others record something at the same moment


class ForgedError(EdfaError):
    """A form that did not come from this page."""

    def __init__(self) -> None:
        super().__init__("this form did not come from this page; open it again")


@dataclass(frozen=True, eq=False)
class Visit:
    """A person with an interview, as it stood when they came."""

    service: Service
    settings: WebSettings
    token: str
    record: InterviewRecord
    session: Session
    wording: Wording

    @property
    def csrf(self) -> str:
        """What their forms carry."""
        return csrf_of(self.token)


def csrf_of(token: str) -> str:
    """The field of a token's forms, the same in every process."""
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()[:32]


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


def _cookie(request: Request) -> str:
    return "__Host-edfa" if request.app.state.settings.secure else "edfa"


def has_token(request: Request) -> bool:
    """Whether the browser holds the token of an interview, which need not be there any more."""
    return bool(request.cookies.get(_cookie(request)))


def give_token(request: Request, response: Response, token: str) -> None:
    """Hand the browser a token, until it is closed."""
    secure = request.app.state.settings.secure
    response.set_cookie(
        _cookie(request), token, path="/", httponly=True, samesite="lax", secure=secure
    )


def take_token(request: Request, response: Response) -> None:
    """Make the browser forget its token."""
    secure = request.app.state.settings.secure
    response.delete_cookie(_cookie(request), path="/", httponly=True, samesite="lax", secure=secure)


def enter(request: Request) -> Visit:
    """The visit of a request; UnknownInterviewError without a token, or with one that opens
    nothing.
    """
    service: Service = request.app.state.service
    token = request.cookies.get(_cookie(request))
    if not token:
        raise UnknownInterviewError
    session = service.find(token)
    record = service.store.read(token)
    wording = wording_for(request, session.interview.language)
    return Visit(service, request.app.state.settings, token, record, session, wording)


def check_origin(request: Request) -> None:
    """ForgedError if a browser says that a request comes from another site."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin", "none"):
        raise ForgedError
    if origin not in (None, "null") and urlsplit(str(origin)).netloc != request.headers.get("host"):
        raise ForgedError
    if origin == "null" and site is None:
        raise ForgedError


def check_form(visit: Visit, form: Given) -> None:
    """ForgedError unless the form is one that was made for this person."""
    if not hmac.compare_digest(form.get("csrf", "").encode(), visit.csrf.encode()):
        raise ForgedError


def act(
    visit: Visit, form: Given, kind: str, content: Mapping[str, Any], *, also: tuple[str, ...] = ()
) -> Session:
    """Do what a form asks for; ConflictError if the interview has gone on since the form was shown.

    Events of the kinds ``also`` may have happened since.
    """
    check_form(visit, form)
    for _ in range(TRIES):
        record = visit.service.store.read(visit.token)
        check_fresh(record, form, also)
        try:
            return visit.service.act(visit.token, record.seq, kind, content)
        except ConflictError:
            continue
    raise ConflictError


def check_fresh(record: InterviewRecord, form: Given, also: tuple[str, ...] = ()) -> None:
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
    changed = max(
        (event.seq for event in visit.record.events if event.kind not in NEUTRAL), default=0
    )
    shown = [event for event in visit.record.events if event.kind == "shown"]
    interview = visit.session.interview
    said = {"page": page, "status": interview.standing.status}
    if any(event.seq > changed and said.items() <= event.content.items() for event in shown):
        return visit
    decision, question = interview.decision, interview.question
    content: dict[str, Any] = {
        **said,
        "outcome": decision.outcome,
        "question": question.feature if question else None,
        "plans": [plan.id for plan in interview.plans()],
    }
    if decision.refused and not any(event.content.get("refusal_shown") for event in shown):
        content["refusal_shown"] = True
    try:
        session = visit.service.act(visit.token, visit.session.seq, "shown", content)
    except (
        ConflictError
    ):  # somebody was faster; the page shows what it has, and its forms may be stale
        return visit
    return replace(visit, session=session)
