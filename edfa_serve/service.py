"""What can be done in an interview over the web, the same for the page and for the API.

Every action names the number of events the caller has seen (``seq``), is tried on the interview
first, and is appended to the store before it is answered: what was acknowledged is on disk, and
what is an error changes nothing. Interviews are kept in memory as long as there is room; another
process, or a later one, replays them from their events.
"""

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from queue import Full, Queue
from typing import Any, TypeVar

from edfa.advice.advisor import Advisor
from edfa.advice.assessment import Assessment, Decision, Question
from edfa.advice.interview import Interview
from edfa.advice.receipt import Receipt
from edfa.advice.standing import Standing
from edfa.data.rules import Overlay
from edfa.errors import EdfaError, MismatchError, UnknownNameError
from edfa_serve.recent import LeastRecent
from edfa_serve.store import ConflictError, Event, InterviewRecord, InterviewStore, hash_of_body
from edfa_serve.turns import TURNS

__all__ = [
    "AUDIT",
    "DONE",
    "RepeatedKeyError",
    "Service",
    "Session",
    "describe_shown",
    "happened",
    "retry",
]

HELD = 256  # interviews in memory
STATES = 512  # assessments in memory, which interviews of people with the same facts share
CALIBRATIONS = 32  # states whose certificates may wait to be made; more are asked for again later
WORKED_OUT = (
    "decision",
    "question",
)  # of a session, which what is only noted does not change
AUDIT = (
    "shown",
    "receipt",
    "letter",
    "let_down",
    "decided",
)  # events that change nothing about an interview
DONE = (
    "stop",
    "receipt",
    "letter",
    "let_down",
    "decided",
)  # events after which an interview is kept as a finished one
TRIES = 3
Result = TypeVar("Result")
happened: ContextVar[list[str] | None] = ContextVar("happened", default=None)
"""The kinds of events of the present request, if somebody wants to know them: for logs and metrics.
"""


@dataclass(frozen=True, eq=False)
class Session:
    """One interview as it stands.

    ``seq`` is the number of its events, ``chosen`` the id of the plan that the person follows.
    ``stopped``: they want no more questions; ``went_on``: they may act and want to be asked on all
    the same. ``refusal_shown`` and
    ``told_to_act``: they were shown once that they would be refused, or that they may act.
    ``decided`` is what the operator decided last, if anything: what they declared, and the
    interview as it stood then.
    """

    id: str
    seq: int
    interview: Interview
    chosen: str | None = None
    stopped: bool = False
    went_on: bool = False
    refusal_shown: bool = False
    told_to_act: bool = False
    decided: tuple[Mapping[str, Any], Interview] | None = None

    @property
    def asking(self) -> bool:
        """Whether the next question is to be put: there is one, and nothing says that the person is
        done.
        """
        if self.stopped or self.question is None:
            return False
        return self.went_on or not self.standing.may_act

    @property
    def standing(self) -> Standing:
        """Whether the person may act now; its status is "pending" while that is being worked out.

        This and the next two are worked out once, until something is told.
        """
        return self.interview.standing

    @cached_property
    def decision(self) -> Decision:
        """What is decided from what is known."""
        return self.interview.decision

    @cached_property
    def question(self) -> Question | None:
        """What to ask next, whether or not it is to be put."""
        return self.interview.question

    def then(self, kind: str, content: Mapping[str, Any]) -> "Session":
        """The session after one more event; this one stays as it is. What cannot be is an error."""
        if kind in AUDIT:
            refused = self.refusal_shown or bool(content.get("refusal_shown"))
            acting = self.told_to_act or (kind == "shown" and content.get("status") == "act")
            decided = (content, self.interview) if kind == "decided" else self.decided
            return self.noted(
                seq=self.seq + 1, refusal_shown=refused, told_to_act=acting, decided=decided
            )
        return _ACTIONS[kind](
            replace(self, seq=self.seq + 1, interview=self.interview.copy()), content
        )

    def noted(self, **fields: Any) -> "Session":
        """The same state of the same interview with other ``fields``; nothing is worked out
        again.
        """
        after = replace(self, **fields)
        after.__dict__.update(
            {name: self.__dict__[name] for name in WORKED_OUT if name in self.__dict__}
        )
        return after


def describe_shown(session: Session, page: str) -> dict[str, Any]:
    """The content of a "shown" event: what a person is shown of a session; the first refusal is
    marked as such.
    """
    content: dict[str, Any] = {
        "page": page,
        "outcome": session.decision.outcome,
        "status": session.standing.status,
        "question": session.question.feature if session.question else None,
        "plans": [plan.id for plan in session.interview.plans()],
    }
    refused_first = session.decision.refused and not session.refusal_shown
    return content | ({"refusal_shown": True} if refused_first else {})


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


def _overlay(session: Session, content: Mapping[str, Any]) -> Session:
    overlay = Overlay.parse(content["overlay"])
    return replace(session, interview=session.interview.copy(overlay=overlay), chosen=None)


def _language(session: Session, content: Mapping[str, Any]) -> Session:
    return replace(session, interview=session.interview.copy(language=content["language"]))


def _go_on(session: Session, content: Mapping[str, Any]) -> Session:
    """Ask on: who may act goes on although they may; who had only stopped comes back."""
    return replace(session, stopped=False, went_on=session.went_on or session.standing.may_act)


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
    "overlay": _overlay,
    "language": _language,
    "choose": _choose,
    "stop": lambda session, content: replace(session, stopped=True),
    "go_on": _go_on,
}


def retry(work: Callable[[], Result]) -> Result:
    """What ``work`` gives, which is tried again when others record something at the same moment."""
    for _ in range(TRIES - 1):
        with suppress(ConflictError):
            return work()
    return work()


class RepeatedKeyError(EdfaError):
    """A key that was used for another request."""

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key was used for another request; take a new one")


class CalibrationThread:
    """Makes certificates of people's own states beside the requests, one after the other.

    Called with a task, it says whether there is room for it; the thread is started by the first
    one and ends with the process.
    """

    def __init__(self) -> None:
        self._tasks: Queue[Callable[[], None]] = Queue(CALIBRATIONS)
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self, task: Callable[[], None]) -> bool:
        """Take a task; False if too many are waiting."""
        try:
            self._tasks.put_nowait(task)
        except Full:
            return False
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True, name="certify")
                self._thread.start()
        return True

    def finish(self) -> None:
        """Wait until all certificates that were asked for are made."""
        self._tasks.join()

    def _work(self) -> None:
        while True:
            self._tasks.get()()
            self._tasks.task_done()


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
        self._states: dict[bytes, Assessment] = LeastRecent(STATES)
        self.certify_later = CalibrationThread()

    def begin(
        self,
        facts: Mapping[str, Any],
        language: str = "en",
        *,
        shows: Callable[[Session], Mapping[str, Any] | None] | None = None,
    ) -> tuple[str, Session]:
        """Begin an interview with what is known from the start; returns its token and the session.

        ``shows`` as for ``act``.
        """
        with TURNS.take():
            session = self._new("", language).then("start", {"facts": dict(facts)})
            events = [("language", {"language": language}), ("start", _plain(session.interview))]
            if shows is not None and (shown := shows(session)) is not None:
                session, events = session.then("shown", shown), [*events, ("shown", dict(shown))]
        session = session.noted(id=uuid.uuid4().hex, seq=len(events))
        token = self.store.begin(self.advisor.fingerprint, events, interview=session.id)
        self._hold(session)
        _tell("start", *(["act"] if session.told_to_act else []))
        return token, session

    def find(self, token: str) -> Session:
        """The session of a token as it stands now."""
        record = self.store.read(token)
        with self._alone(record.id):
            return self._current(record)

    def act(
        self,
        token: str,
        seq: int | None,
        kind: str,
        content: Mapping[str, Any],
        *,
        shows: Callable[[Session], Mapping[str, Any] | None] | None = None,
        request: tuple[str, bytes] | None = None,
    ) -> Session:
        """Do one thing in an interview that has ``seq`` events (None: however many it has).

        Kinds are ``"start"``, ``"answer"`` (content ``{"facts": {name: value}}``), ``"decline"``
        and ``"undo"`` (``{"name": …}``), ``"overlay"`` (``{"overlay": {…}}``), ``"language"``,
        ``"choose"`` (``{"plan": id}``), ``"stop"``, ``"go_on"``, and those of ``AUDIT``, which only
        record something. ConflictError if the interview has gone on meanwhile.

        ``shows`` says what the person is shown of the session then, if that is to be recorded.
        ``request`` is a key of the caller's and what they asked for: see ``repeated``.
        """
        if kind not in (*_ACTIONS, *AUDIT):
            raise UnknownNameError("action", kind, (*_ACTIONS, *AUDIT))
        record = self.store.read(token)
        with self._alone(record.id):
            session = self._current(record)
            if seq is not None and seq != session.seq:
                raise ConflictError
            with TURNS.take():
                after, events = session.then(kind, content), [(kind, content)]
                if shows is not None and (shown := shows(after)) is not None:
                    after, events = after.then("shown", shown), [*events, ("shown", shown)]
            finished = after.stopped or kind in DONE or None
            self.store.append(session.id, session.seq, events, finished=finished, request=request)
            self._hold(after)
        _tell(kind, *(["act"] if after.told_to_act and not session.told_to_act else []))
        return after

    def repeated(self, token: str, request: tuple[str, bytes]) -> Session | None:
        """The session as it stood after an earlier request with the same key; None if there was
        none.

        RepeatedKeyError if that request asked for something else.
        """
        earlier = self.store.reply(self.store.read(token).id, request[0])
        if earlier is None:
            return None
        body, seq = earlier
        if body != hash_of_body(request[1]):
            raise RepeatedKeyError
        return self.then(
            self.store.read(token), seq
        )  # read after the reply, which may have come just now

    def then(self, record: InterviewRecord, seq: int) -> Session:
        """The session of a record as it stood after ``seq`` events."""
        self._check_advisor(record)
        session = self._new(record.id, "en")
        for event in record.events[:seq]:
            session = _replayed(session, event)
        return session

    def what_if(self, token: str, facts: Mapping[str, Any]) -> tuple[Session, Interview]:
        """The session, and an interview in which these facts are so; nothing is kept of it."""
        session = self.find(token)
        return session, session.interview.what_if(facts)

    def receipt(self, token: str) -> tuple[Session, Receipt]:
        """A receipt of the interview as it stands, signed if there is a key; that it was handed out
        is recorded.
        """
        session = self.find(token)
        receipt = session.interview.receipt(chosen=session.chosen, key=self.key)
        return self.act(token, None, "receipt", {"time": receipt.time}), receipt

    def last_receipt(self, token: str, seq: int | None = None) -> Receipt | None:
        """The receipt that was handed out last among the first ``seq`` events, made again; None if
        none was.
        """
        record = self.store.read(token)
        times = [event for event in record.events[:seq] if event.kind == "receipt"]
        if not times:
            return None
        session = self.then(record, times[-1].seq - 1)
        time = times[-1].content["time"]
        return session.interview.receipt(chosen=session.chosen, key=self.key, time=time)

    def delete(self, token: str) -> None:
        """Forget everything that was said in an interview."""
        record = self.store.read(token)
        with self._alone(record.id):
            self.store.delete(record.id)
            self._drop(record.id)
        _tell("delete")

    def _new(self, key: str, language: str) -> Session:
        return Session(
            key,
            0,
            Interview(
                self.advisor.fitted,
                language=language,
                certify_later=self.certify_later,
                states=self._states,
            ),
        )

    def _current(self, record: InterviewRecord) -> Session:
        """The session of a record: as it is held, with what others have appended meanwhile."""
        self._check_advisor(record)
        with self._lock:
            session = self._held.get(record.id)
        if session is None or session.seq > record.seq:
            session = self._new(record.id, "en")
        for event in record.events[session.seq :]:
            session = _replayed(session, event)
        self._hold(session)
        return session

    def _check_advisor(self, record: InterviewRecord) -> None:
        if record.advisor != self.advisor.fingerprint:
            raise MismatchError(
                "this interview was held with another advisor; please begin a new one"
            )

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
            self._locks.pop(interview, None)

    @contextmanager
    def _alone(self, interview: str) -> Iterator[None]:
        """One thread at a time works on an interview."""
        with self._lock:
            lock = self._locks.setdefault(interview, threading.Lock())
        if not lock.acquire(blocking=False):
            with TURNS.pause():  # whoever works on it may be waiting for a turn
                lock.acquire()
        try:
            yield
        finally:
            lock.release()


def _tell(*kinds: str) -> None:
    listener = happened.get()
    if listener is not None:
        listener.extend(kinds)


def _replayed(session: Session, event: Event) -> Session:
    return session.then(event.kind, event.content)


def _plain(interview: Interview) -> dict[str, Any]:
    """The facts of the start as they were understood, which are plain JSON."""
    return {"facts": dict(interview.log.events[0].facts)}
