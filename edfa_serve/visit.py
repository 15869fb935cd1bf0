"""One request of one person: their interview, whether a form may be acted on, what was shown.

``enter`` makes the ``Visit`` of a request, ``act`` does what a form asks for. The token is in a
cookie and nowhere else. Every form carries a field derived from it, which no other site can know,
and the number of events that its page had seen: events that only record something do not make it
stale.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from starlette.requests import Request

from edfa.text.phrases import LANGUAGES
from edfa_serve.forms import Given
from edfa_serve.problems import ForgedError
from edfa_serve.security import Cookie, same_key, sign
from edfa_serve.service import AUDIT, Service, Session, describe_shown, retry
from edfa_serve.store import ConflictError, StoredInterview, UnknownInterviewError
from edfa_serve.view import View
from edfa_serve.wording import Wording

NEUTRAL = (
    *AUDIT,
    "language",
)  # what may have happened since a form was shown without making it stale
TOKEN = Cookie("edfa", "lax")  # until the browser is closed


@dataclass(frozen=True, eq=False)
class Visit:
    """A person with an interview, as it stood when the request came.

    Parameters
    ----------
    request, token
        The request, and the token in its cookie.
    record, session
        What is stored about the interview, and its session.
    wording
        The words of the page in the language of the interview.
    """

    request: Request
    token: str
    record: StoredInterview
    session: Session
    wording: Wording

    @property
    def service(self) -> Service:
        """The service of the application."""
        service: Service = self.request.app.state.service
        return service

    @cached_property
    def view(self) -> View:
        """The interview as a page shows it."""
        writer = self.request.app.state.write_letter
        contact = writer.contacts[self.wording.language] if writer else ""
        return View(self.session.record, self.wording, self.session.chosen, contact)

    @property
    def csrf(self) -> str:
        """What a form must carry: a signature under the token."""
        return sign(self.token, "csrf")[:32]


def wording_for(request: Request, language: str | None = None) -> Wording:
    """The words of the page in a language.

    Parameters
    ----------
    request
        Its header ``Accept-Language`` decides where ``language`` is none of the page's.
    language
        The code of a language, which may be anything.
    """
    accepted = request.headers.get("accept-language", "").lower().split(",")
    asked = [language, *(part.split(";")[0].strip()[:2] for part in accepted)]
    chosen = next((code for code in asked if code in LANGUAGES), LANGUAGES[0])
    return Wording(request.app.state.service.advisor.schema, chosen)


def enter(request: Request) -> Visit:
    """Find the visit of a request.

    Parameters
    ----------
    request
        A request with the cookie of an interview.

    Raises
    ------
    UnknownInterviewError
        If there is no token, or it opens nothing.
    MismatchError
        If the interview was held with another advisor.
    """
    service: Service = request.app.state.service
    if not (token := TOKEN.read(request)):
        raise UnknownInterviewError
    session, record = service.find(token), service.store.read(token)
    wording = wording_for(request, session.interview.language)
    return Visit(request, token, record, session, wording)


def check_form(visit: Visit, form: Given) -> None:
    """Raise ForgedError unless the form was made for this person."""
    if not same_key(form.get("csrf"), visit.csrf):
        raise ForgedError


def act(
    visit: Visit, form: Given, kind: str, content: Mapping[str, Any], *, also: tuple[str, ...] = ()
) -> Session:
    """Do what a form asks for.

    Parameters
    ----------
    visit, form
        The person's visit, and the form, which ``check_form`` has found to be theirs.
    kind, content
        What to do, as for ``Service.act``.
    also
        Kinds of events that may have happened since the form was shown.

    Raises
    ------
    ConflictError
        If the interview has gone on since the form was shown.
    """

    def do() -> Session:
        record = visit.service.store.read(visit.token)
        check_fresh(record, form, also)
        return visit.service.act(visit.token, record.seq, kind, content)

    return retry(do)


def check_fresh(record: StoredInterview, form: Given, also: tuple[str, ...] = ()) -> None:
    """Check that nothing was done since a form was shown.

    Parameters
    ----------
    record
        The interview as it is stored now.
    form
        The form, whose field ``seq`` is the number of events that its page had seen.
    also
        Kinds of events that may have happened, besides those of ``NEUTRAL``.

    Raises
    ------
    ConflictError
        If something else was done, or the form does not say what it had seen.
    """
    seen = form.get("seq", "")
    if not (seen.isascii() and seen.isdigit()) or int(seen[:9]) > record.seq:
        raise ConflictError
    if record.gone_on(int(seen[:9]), *NEUTRAL, *also):
        raise ConflictError


def note_shown(visit: Visit, page: str) -> Visit:
    """Record what is shown to the person, once for each page and state.

    Parameters
    ----------
    visit
        The person's visit.
    page
        The page that is shown.

    Returns
    -------
    Visit
        The same visit after this event, so that forms made from it are fresh.
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
