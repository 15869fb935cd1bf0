"""What can be done in an interview over the web, the same for the page and for the API.

Every action names the number of events the caller has seen (``seq``), is tried on the interview first, and is appended
to the store before it is answered: what was acknowledged is on disk, and what is an error changes nothing. Interviews
are kept in memory as long as there is room; another process, or a later one, replays them from their events.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from edfa.advice.advisor import Advisor
from edfa.advice.interview import Interview
from edfa.advice.receipt import Receipt
from edfa.data.constraints import Constraints
from edfa.errors import MismatchError, UnknownNameError
from edfa.parsing import parse
from edfa.web.store import ConflictError, Event, InterviewRecord, InterviewStore

__all__ = ["Service", "Session"]

NO_WISHES = Constraints()
HELD = 256  # interviews in memory
AUDIT = ("shown", "receipt", "letter", "let_down")  # events that change nothing about an interview


@dataclass(frozen=True, eq=False)
class Session:
    """One interview as it stands.

    ``seq`` is the number of its events, ``chosen`` the id of the plan that the person follows. ``stopped``: they want
    no more questions; ``went_on``: they may act and want to be asked on all the same. ``wishes`` are their own limits,
    which ``interview`` obeys.
    """

    id: str
    seq: int
    interview: Interview
    chosen: str | None = None
    stopped: bool = False
    went_on: bool = False
    wishes: Constraints = NO_WISHES

    @property
    def asking(self) -> bool:
        """Whether the next question is to be put: there is one, and nothing says that the person is done."""
        if self.stopped or self.interview.question is None:
            return False
        return self.went_on or not self.interview.standing.may_act

    def then(self, kind: str, content: Mapping[str, Any]) -> "Session":
        """The session after one more event. What the event says that cannot be is an error, and changes nothing."""
        after = replace(self, seq=self.seq + 1)
        if kind in AUDIT:
            return after
        return _ACTIONS[kind](after, content)


def _start(session: Session, content: Mapping[str, Any]) -> Session:
    session.interview.begin(content["facts"])
    return session


def _answer(session: Session, content: Mapping[str, Any]) -> Session:
    session.interview.answer(content["facts"])
    return replace(session, chosen=None)


def _decline(session: Session, content: Mapping[str, Any]) -> Session:
    session.interview.decline(content["name"])
    return replace(session, chosen=None)


def _undo(session: Session, content: Mapping[str, Any]) -> Session:
    session.interview.undo(content.get("name"))
    return replace(session, chosen=None, stopped=False, went_on=False)


def _wishes(session: Session, content: Mapping[str, Any]) -> Session:
    wishes = parse(Constraints, content["constraints"], "constraints")
    old = session.interview
    other = Interview(old.fitted, costs=old.costs, locks=old.locks, constraints=wishes, language=old.language)
    return replace(session, interview=other.replay(old.log.events), wishes=wishes, chosen=None)


def _language(session: Session, content: Mapping[str, Any]) -> Session:
    old = session.interview
    other = Interview(
        old.fitted, costs=old.costs, locks=old.locks, constraints=old.constraints, language=content["language"]
    )
    return replace(session, interview=other.replay(old.log.events))


def _choose(session: Session, content: Mapping[str, Any]) -> Session:
    offered = [plan.id for plan in session.interview.plans()]
    if content["plan"] not in offered:
        raise UnknownNameError("plan", content["plan"], offered)
    return replace(session, chosen=content["plan"])


_ACTIONS: dict[str, Callable[[Session, Mapping[str, Any]], Session]] = {
    "start": _start,
    "answer": _answer,
    "decline": _decline,
    "undo": _undo,
    "wishes": _wishes,
    "language": _language,
    "choose": _choose,
    "stop": lambda session, content: replace(session, stopped=True),
    "go_on": lambda session, content: replace(session, stopped=False, went_on=True),
}


class Service:
    """Interviews with one advisor, kept in a store. Threads may share it.

    Parameters
    ----------
    advisor
        A fitted advisor.
    store
        Where the interviews are.
    key
        The operator's key, which receipts are signed with; None: they are not signed.
    """

    def __init__(self, advisor: Advisor, store: InterviewStore, key: bytes | None = None) -> None:
        self.advisor, self.store, self.key = advisor, store, key
        self._held: OrderedDict[str, Session] = OrderedDict()
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def begin(self, facts: Mapping[str, Any], language: str = "en") -> tuple[str, Session]:
        """Begin an interview with what is known from the start; returns its token and the session."""
        session = self._new("", language).then("start", {"facts": dict(facts)})
        events = [("language", {"language": language}), ("start", _plain(session.interview))]
        token = self.store.begin(self.advisor.fingerprint, events)
        session = replace(session, id=self.store.read(token).id, seq=len(events))
        self._hold(session)
        return token, session

    def find(self, token: str) -> Session:
        """The session of a token as it stands now."""
        record = self.store.read(token)
        with self._alone(record.id):
            return self._current(record)

    def act(self, token: str, seq: int | None, kind: str, content: Mapping[str, Any]) -> Session:
        """Do one thing in an interview that has ``seq`` events (None: however many it has).

        Kinds are ``"start"``, ``"answer"`` (content ``{"facts": {name: value}}``), ``"decline"`` and ``"undo"``
        (``{"name": …}``), ``"wishes"`` (``{"constraints": {…}}``), ``"language"``, ``"choose"`` (``{"plan": id}``),
        ``"stop"``, ``"go_on"``, and those of ``AUDIT``, which only record something. ConflictError if the interview
        has gone on meanwhile.
        """
        if kind not in (*_ACTIONS, *AUDIT):
            raise UnknownNameError("action", kind, (*_ACTIONS, *AUDIT))
        record = self.store.read(token)
        with self._alone(record.id):
            session = self._current(record)
            if seq is not None and seq != session.seq:
                raise ConflictError
            try:
                after = session.then(kind, content)
                self.store.append(session.id, session.seq, [(kind, content)], finished=after.stopped or None)
            except BaseException:
                self._drop(session.id)  # it may have changed in memory; what is on disk is replayed
                raise
            self._hold(after)
            return after

    def what_if(self, token: str, facts: Mapping[str, Any]) -> tuple[Session, Interview]:
        """The session, and an interview in which these facts are so; nothing is kept of it."""
        session = self.find(token)
        return session, session.interview.what_if(facts)

    def receipt(self, token: str) -> tuple[Session, Receipt]:
        """A receipt of the interview as it stands, signed if there is a key; that it was handed out is recorded."""
        session = self.find(token)
        receipt = session.interview.receipt(chosen=session.chosen, key=self.key)
        return self.act(token, None, "receipt", {"time": receipt.time}), receipt

    def delete(self, token: str) -> None:
        """Forget everything that was said in an interview."""
        record = self.store.read(token)
        with self._alone(record.id):
            self.store.delete(record.id)
            self._drop(record.id)

    def _new(self, key: str, language: str) -> Session:
        return Session(key, 0, Interview(self.advisor.fitted, language=language))

    def _current(self, record: InterviewRecord) -> Session:
        """The session of a record: as it is held, with what others have appended meanwhile."""
        if record.advisor != self.advisor.fingerprint:
            raise MismatchError("this interview was held with another advisor; please begin a new one")
        with self._lock:
            session = self._held.get(record.id)
        if session is None or session.seq > record.seq:
            session = self._new(record.id, "en")
        for event in record.events[session.seq :]:
            session = _replayed(session, event)
        self._hold(session)
        return session

    def _hold(self, session: Session) -> None:
        with self._lock:
            self._held[session.id] = session
            self._held.move_to_end(session.id)
            while len(self._held) > HELD:
                old, _ = self._held.popitem(last=False)
                self._locks.pop(old, None)

    def _drop(self, interview: str) -> None:
        with self._lock:
            self._held.pop(interview, None)

    @contextmanager
    def _alone(self, interview: str) -> Iterator[None]:
        """One thread at a time works on an interview."""
        with self._lock:
            lock = self._locks.setdefault(interview, threading.Lock())
        with lock:
            yield


def _replayed(session: Session, event: Event) -> Session:
    return session.then(event.kind, event.content)


def _plain(interview: Interview) -> dict[str, Any]:
    """The facts of the start as they were understood, which are plain JSON."""
    return {"facts": dict(interview.log.events[0].facts)}
