"""What can be done in an interview over the web, the same for the page and for the API.

The main entry is ``Service.act``. Every action names the number of events the caller has seen
(``seq``), is tried on the interview first, and is appended to the store before it is answered: what
was acknowledged is on disk, and what is an error changes nothing. Interviews are held in memory as
long as there is room; another process, or a later one, replays them from their events.
"""

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from queue import Full, Queue
from typing import Any, TypeVar

from edfa.advice.advisor import Advisor
from edfa.advice.assessment import Assessment
from edfa.advice.interview import STATES_IN_MEMORY, Interview
from edfa.advice.receipt import Receipt
from edfa.cache import Cache
from edfa.data.rules import Overlay
from edfa.errors import EdfaError, MismatchError, check_known
from edfa.text.record import InterviewRecord
from edfa_serve.store import ConflictError, InterviewStore, StoredInterview
from edfa_serve.turns import TURNS

HELD = 256  # interviews in memory
LOCKS = 256  # threads that may work on interviews at once, one on each
CALIBRATIONS = 32  # states whose certificates may wait to be made; more are asked for again later
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
Happening = tuple[str, Mapping[str, Any]]  # the kind of an event, and its content
happened: ContextVar[list[str] | None] = ContextVar("happened", default=None)
"""The kinds of events of the present request, if somebody wants to know them: for logs and metrics.
"""


@dataclass(frozen=True, eq=False)
class Session:
    """One interview after a number of events. Sessions never change; ``then`` makes a new one.

    Parameters
    ----------
    id
        The id of the interview.
    seq
        The number of its events.
    record
        The interview in facts and words.
    chosen
        The id of the plan that the person follows, if any.
    stopped
        Whether they want no more questions.
    went_on
        Whether they were told an ending, and want to be asked on all the same.
    refusal_shown, told_to_act
        Whether they were shown once that they would be refused, or that they may act.
    decided
        What the operator declared last, and the interview as it stood then; None: nothing.
    """

    id: str
    seq: int
    record: InterviewRecord
    chosen: str | None = None
    stopped: bool = False
    went_on: bool = False
    refusal_shown: bool = False
    told_to_act: bool = False
    decided: tuple[Mapping[str, Any], Interview] | None = None

    @property
    def interview(self) -> Interview:
        """The interview; it is not to be changed."""
        return self.record.interview

    @property
    def asking(self) -> bool:
        """Whether the next question is to be put.

        There is one, the person has not stopped, and they were told no ending or want to go on.
        """
        if self.stopped or self.record.question is None:
            return False
        return self.went_on or not self.record.standing.promised

    def then(self, kind: str, content: Mapping[str, Any]) -> "Session":
        """The session after one more event.

        Parameters
        ----------
        kind, content
            The event, as for ``Service.act``.

        Raises
        ------
        EdfaError
            If the event is not possible: a fact that cannot be understood, an unknown name.
        """
        after = replace(self, seq=self.seq + 1)
        if kind not in AUDIT:
            return _ACTIONS[kind](after, content)
        return replace(
            after,
            refusal_shown=self.refusal_shown or bool(content.get("refusal_shown")),
            told_to_act=self.told_to_act or (kind == "shown" and content.get("status") == "act"),
            decided=(content, self.interview) if kind == "decided" else self.decided,
        )

    def changed(self, interview: Interview) -> "Session":
        """The session with a changed copy of the interview, in which no plan is chosen yet."""
        return replace(self, record=InterviewRecord(interview), chosen=None)


def describe_shown(session: Session, page: str) -> dict[str, Any]:
    """Make the content of a ``"shown"`` event.

    Parameters
    ----------
    session
        What the person is shown.
    page
        Where: the name of a page, or ``"api"``.

    Returns
    -------
    dict
        Page, outcome, standing, next question and ids of plans; ``promised`` is there, and true,
        if the standing is an ending that is promised, and ``refusal_shown`` the first time that a
        refusal is told.
    """
    record, standing = session.record, session.record.standing
    content: dict[str, Any] = {
        "page": page,
        "outcome": record.decision.outcome,
        "status": standing.status,
        "question": record.question.feature if record.question else None,
        "plans": [offered.plan.id for offered in record.plans],
    }
    told = not record.several_endings or standing.ends
    refused_first = told and record.decision.refused and not session.refusal_shown
    marks = {"promised": standing.promised, "refusal_shown": refused_first}
    return content | {name: True for name, holds in marks.items() if holds}


def _undo(session: Session, content: Mapping[str, Any]) -> Session:
    after = session.changed(session.interview.copy().undo(content.get("name")))
    return replace(after, stopped=False, went_on=False)


def _overlay(session: Session, content: Mapping[str, Any]) -> Session:
    overlay = Overlay.parse(content["overlay"])
    return session.changed(session.interview.copy(overlay=overlay))


def _language(session: Session, content: Mapping[str, Any]) -> Session:
    after = session.changed(session.interview.copy(language=content["language"]))
    return replace(after, chosen=session.chosen)


def _go_on(session: Session, content: Mapping[str, Any]) -> Session:
    """Ask on: a person who was told an ending goes on all the same, one who had stopped comes
    back.
    """
    went_on = session.went_on or session.record.standing.promised
    return replace(session, stopped=False, went_on=went_on)


def _choose(session: Session, content: Mapping[str, Any]) -> Session:
    offered = [record.plan.id for record in session.record.plans]
    check_known("plan", content["plan"], offered)
    return replace(session, chosen=content["plan"])


_ACTIONS: dict[str, Callable[[Session, Mapping[str, Any]], Session]] = {
    "start": lambda now, content: now.changed(now.interview.copy().begin(content["facts"])),
    "answer": lambda now, content: now.changed(now.interview.copy().answer(content["facts"])),
    "decline": lambda now, content: now.changed(now.interview.copy().decline(content["name"])),
    "undo": _undo,
    "overlay": _overlay,
    "language": _language,
    "choose": _choose,
    "stop": lambda session, content: replace(session, stopped=True),
    "go_on": _go_on,
}


def retry(work: Callable[[], Result]) -> Result:
    """Call ``work``, up to ``TRIES`` times while it raises ConflictError, and return what it
    returns: others may record something at the same moment.
    """
    for _ in range(TRIES - 1):
        with suppress(ConflictError):
            return work()
    return work()


class CalibrationThread:
    """Makes certificates of people's own states beside the requests, one after the other.

    It is called with a task, as ``Interview(certify_later=...)`` does. The thread is started by the
    first task, and ends with the process.
    """

    def __init__(self) -> None:
        self._tasks: Queue[Callable[[], None]] = Queue(CALIBRATIONS)
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self, task: Callable[[], None]) -> bool:
        """Take a task, and return whether there was room: at most ``CALIBRATIONS`` wait."""
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
    """Interviews with one advisor, in a store. Threads may share it.

    Parameters
    ----------
    advisor
        A fitted advisor.
    store
        Where the interviews are.
    key
        The operator's key, which receipts are signed with; None: they are not signed.

    Attributes
    ----------
    certify_later : CalibrationThread
        Makes certificates of people's own states beside the requests.

    Examples
    --------
    >>> import edfa
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=5)).fit(edfa.load("german"))
    >>> with TemporaryDirectory() as folder, InterviewStore.open(Path(folder) / "i.db") as store:
    ...     service = Service(advisor, store)
    ...     token, session = service.begin({"age": 35})
    ...     session = service.act(token, session.seq, "answer", {"facts": {"duration": 48}})
    ...     session.seq, dict(service.find(token).interview.log.facts)
    (3, {'age': 35, 'duration': 48})
    """

    def __init__(self, advisor: Advisor, store: InterviewStore, key: bytes | None = None) -> None:
        self.advisor, self.store, self.key = advisor, store, key
        self._held: Cache[Session] = Cache("interviews", HELD)
        self._locks = [threading.Lock() for _ in range(LOCKS)]  # each of many interviews
        self._states: Cache[Assessment] = Cache("interviews", STATES_IN_MEMORY)
        self.certify_later = CalibrationThread()

    def begin(
        self,
        facts: Mapping[str, Any],
        language: str = "en",
        *,
        page: str | None = None,
    ) -> tuple[str, Session]:
        """Begin an interview.

        Parameters
        ----------
        facts
            What is known from the start, by feature.
        language
            The language of the interview.
        page
            As for ``act``.

        Returns
        -------
        token : str
            What opens the interview; it can be had only now.
        session : Session
            The interview as it stands.
        """
        with TURNS.take():
            session = self._new(uuid.uuid4().hex).then("language", {"language": language})
            session = session.then("start", {"facts": dict(facts)})
            # the facts as they were understood, which are plain JSON
            understood = {"facts": dict(session.interview.log.events[0].facts)}
            events: list[Happening] = [("language", {"language": language}), ("start", understood)]
            session, events = _noting(session, events, page)
        token = self.store.begin(self.advisor.fingerprint, events, interview=session.id)
        self._held.keep({session.id: session})
        tell("start", *(["act"] if session.told_to_act else []))
        return token, session

    def find(self, token: str) -> Session:
        """The session that a token opens, as it stands now.

        Raises
        ------
        UnknownInterviewError
            If the token opens nothing.
        MismatchError
            If the interview was held with another advisor.
        """
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
        page: str | None = None,
        request: tuple[str, bytes] | None = None,
    ) -> Session:
        """Do one thing in an interview.

        Parameters
        ----------
        token
            What opens the interview.
        seq
            The number of events that the caller has seen; None: however many there are.
        kind, content
            What to do: ``"start"`` or ``"answer"`` with ``{"facts": {name: value}}``,
            ``"decline"`` or ``"undo"`` with ``{"name": ...}``, ``"overlay"`` with
            ``{"overlay": {...}}``, ``"language"`` with ``{"language": ...}``, ``"choose"`` with
            ``{"plan": id}``, ``"stop"`` and ``"go_on"`` with ``{}``, or one of ``AUDIT``, which
            only record something.
        page
            Where the person is shown the session then, if that is to be recorded.
        request
            A key of the caller's and what they asked for. If an earlier request had this key,
            nothing is done, and the session is returned as it was after that one.

        Returns
        -------
        Session
            The interview after it.

        Raises
        ------
        ConflictError
            If the interview has gone on since ``seq``.
        RepeatedKeyError
            If an earlier request with this key asked for something else.
        EdfaError
            If it is not possible; nothing is changed then.
        """
        check_known("action", kind, (*_ACTIONS, *AUDIT))
        if before := self.repeated(token, request):
            return before
        try:
            return self._act(token, seq, (kind, content), page, request)
        except EdfaError:  # perhaps because of the same request, sent twice at once
            if before := self.repeated(token, request):
                return before
            raise

    def _act(
        self,
        token: str,
        seq: int | None,
        event: Happening,
        page: str | None,
        request: tuple[str, bytes] | None,
    ) -> Session:
        """Do one thing as ``act`` does, if no earlier request did it."""
        record, kind = self.store.read(token), event[0]
        with self._alone(record.id):
            session = self._current(record)
            if seq is not None and seq != session.seq:
                raise ConflictError
            with TURNS.take():
                after, events = _noting(session.then(*event), [event], page)
            finished = after.stopped or kind in DONE or None
            self.store.append(session.id, session.seq, events, finished=finished, request=request)
            self._held.keep({after.id: after})
        tell(kind, *(["act"] if after.told_to_act and not session.told_to_act else []))
        return after

    def repeated(self, token: str, request: tuple[str, bytes] | None) -> Session | None:
        """Look for an earlier request with the same key.

        Parameters
        ----------
        token, request
            As for ``act``.

        Returns
        -------
        Session or None
            The interview after that request; None if there was none.

        Raises
        ------
        RepeatedKeyError
            If it asked for something else.
        """
        if request is None:
            return None
        seq = self.store.reply(self.store.read(token).id, request)
        # read after the reply, which may have come just now
        return None if seq is None else self.then(self.store.read(token), seq)

    def then(self, record: StoredInterview, seq: int) -> Session:
        """Replay an interview.

        Parameters
        ----------
        record
            What is stored about it.
        seq
            After how many events the session is wanted.

        Raises
        ------
        MismatchError
            If the interview was held with another advisor.
        """
        return self._replay(self._new(record.id), record, seq)

    def receipt(self, token: str) -> tuple[Session, Receipt]:
        """Hand out a receipt of the interview as it stands, and record that it was.

        Returns
        -------
        session : Session
            The interview after that.
        receipt : Receipt
            The receipt, signed if the service has a key.
        """
        session = self.find(token)
        receipt = session.interview.receipt(chosen=session.chosen, key=self.key)
        return self.act(token, None, "receipt", {"time": receipt.time}), receipt

    def last_receipt(self, token: str, seq: int | None = None) -> Receipt | None:
        """Make the receipt that was handed out last again.

        Parameters
        ----------
        token
            What opens the interview.
        seq
            Looks at the first ``seq`` events alone; None: at all.

        Returns
        -------
        Receipt or None
            The same receipt; None if none was handed out.
        """
        record = self.store.read(token)
        handed_out = [event for event in record.events[:seq] if event.kind == "receipt"]
        if not handed_out:
            return None
        session, time = self.then(record, handed_out[-1].seq - 1), handed_out[-1].content["time"]
        return session.interview.receipt(chosen=session.chosen, key=self.key, time=time)

    def delete(self, token: str) -> None:
        """Forget everything that was said in the interview that a token opens."""
        record = self.store.read(token)
        with self._alone(record.id):
            self.store.delete(record.id)
            self._held.discard(record.id)
        tell("delete")

    def _new(self, interview: str) -> Session:
        """The session of an interview without events."""
        fitted, later = self.advisor.fitted, self.certify_later
        begun = Interview(fitted, certify_later=later, states=self._states)
        return Session(interview, 0, InterviewRecord(begun))

    def _current(self, record: StoredInterview) -> Session:
        """The session of a record: as it is held, with what others have appended meanwhile."""
        session = self._held.find([record.id]).get(record.id)
        if session is None or session.seq > record.seq:
            session = self._new(record.id)
        session = self._replay(session, record, record.seq)
        self._held.keep({session.id: session})
        return session

    def _replay(self, session: Session, record: StoredInterview, seq: int) -> Session:
        """The session after the first ``seq`` events, from an earlier one of the interview."""
        if record.advisor != self.advisor.fingerprint:
            raise MismatchError(
                "this interview was held with another advisor; please begin a new one"
            )
        for event in record.events[session.seq : seq]:
            session = session.then(event.kind, event.content)
        return session

    @contextmanager
    def _alone(self, interview: str) -> Iterator[None]:
        """One thread at a time works on an interview."""
        lock = self._locks[hash(interview) % LOCKS]
        if not lock.acquire(blocking=False):
            with TURNS.pause():  # the thread that works on it may be waiting for a turn
                lock.acquire()
        try:
            yield
        finally:
            lock.release()


def tell(*kinds: str) -> None:
    """Add to the kinds of events of the present request, if somebody listens to ``happened``."""
    listener = happened.get()
    if listener is not None:
        listener.extend(kinds)


def _noting(
    session: Session, events: list[Happening], page: str | None
) -> tuple[Session, list[Happening]]:
    """The session and its new events, with what the person is shown of it on a page, if on any."""
    if page is None:
        return session, events
    shown = describe_shown(session, page)
    return session.then("shown", shown), [*events, ("shown", shown)]
