"""Interviews in a database: a log of events each, to which events are appended and in which nothing
changes.

An interview is what its events say: a reader of them can replay it. The holder of a token may
read and go on with one interview; the token is handed out once and stored as its hash. Two writers
of one interview are told apart by the number of the event: the second to write number 5 is a
``ConflictError``.
"""

import hashlib
import json
import secrets
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from edfa.database import Database, typed
from edfa.errors import EdfaError
from edfa_serve.turns import TURNS

__all__ = [
    "METADATA",
    "ConflictError",
    "Event",
    "InterviewStore",
    "StoredInterview",
    "UnknownInterviewError",
    "hash_of_body",
    "utc_now",
]

METADATA = sa.MetaData()
ABOUT = sa.Table(
    "edfa_web",
    METADATA,
    sa.Column("key", sa.String(32), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
INTERVIEWS = sa.Table(
    "interviews",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column(
        "token", sa.String(64), nullable=True, unique=True
    ),  # its hash; none once the interview is deleted
    sa.Column("advisor", sa.String(64), nullable=False),
    sa.Column("began", sa.DateTime, nullable=False, index=True),
    sa.Column("changed", sa.DateTime, nullable=False),
    sa.Column("finished", sa.Boolean, nullable=False, default=False),
    sa.Column("deleted", sa.DateTime, nullable=True),
)
EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("interview", sa.String(32), sa.ForeignKey("interviews.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("time", sa.DateTime, nullable=False, index=True),
    sa.Column("kind", sa.String(16), nullable=False, index=True),
    sa.Column("content", sa.Text, nullable=False),
)
REPLIES = sa.Table(
    "replies",
    METADATA,
    sa.Column("interview", sa.String(32), sa.ForeignKey("interviews.id"), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),  # hash of an Idempotency-Key
    sa.Column("body", sa.String(64), nullable=False),  # hash of the request's body
    sa.Column("time", sa.DateTime, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),  # the number of events after it
)


TOKEN_BYTES = 16  # 128 bits
PAGE = 500  # interviews that are read or deleted at once


class ConflictError(EdfaError):
    """Somebody else has gone on with the same interview meanwhile."""

    def __init__(self) -> None:
        super().__init__("this interview has gone on in another window; look at it again")


class UnknownInterviewError(EdfaError, LookupError):
    """No interview has this token, or it was deleted."""

    def __init__(self) -> None:
        super().__init__("there is no such interview; it may have been deleted")


@dataclass(frozen=True)
class Event:
    """One thing that happened in an interview: ``seq`` counts from 1, ``content`` is plain JSON."""

    seq: int
    time: datetime
    kind: str
    content: Mapping[str, Any]


@dataclass(frozen=True)
class StoredInterview:
    """What is stored about one interview, its events in order."""

    id: str
    advisor: str
    began: datetime
    finished: bool
    events: tuple[Event, ...]

    @property
    def seq(self) -> int:
        """The number of events."""
        return len(self.events)

    def of(self, *kinds: str) -> list[Event]:
        """The events of some kinds, in order."""
        return [event for event in self.events if event.kind in kinds]


class InterviewStore(Database):
    """The interviews of a service; ``InterviewStore.open`` opens or begins one. Threads and
    processes may share it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> folder = TemporaryDirectory()
    >>> with InterviewStore.open(Path(folder.name) / "interviews.sqlite") as store:
    ...     token = store.begin("0123", [("start", {"age": 35})])
    ...     record = store.read(token)
    ...     store.append(record.id, record.seq, [("decline", {"name": "housing"})])
    ...     [(event.seq, event.kind) for event in store.read(token).events]
    2
    [(1, 'start'), (2, 'decline')]
    >>> folder.cleanup()
    """

    metadata, about, lock, durable = METADATA, ABOUT, 20260921, True

    def begin(
        self,
        advisor: str,
        events: Iterable[tuple[str, Mapping[str, Any]]] = (),
        *,
        interview: str | None = None,
    ) -> str:
        """Begin an interview with an advisor, by its fingerprint; returns the token, which is
        stored nowhere.

        ``interview`` is its id, which must be new and tell nothing; by default a random one.
        """
        token, key, now = (
            secrets.token_urlsafe(TOKEN_BYTES),
            interview or uuid.uuid4().hex,
            utc_now(),
        )
        row = {
            "id": key,
            "token": _digest(token),
            "advisor": advisor,
            "began": now,
            "changed": now,
        }
        with self.writing() as connection:
            connection.execute(sa.insert(INTERVIEWS).values(**row, finished=False))
            self._insert(connection, key, 0, events)
        return token

    def read(self, token: str) -> StoredInterview:
        """The interview that a token opens; UnknownInterviewError if there is none."""
        return self._one(INTERVIEWS.c.token == _digest(token))

    def append(
        self,
        interview: str,
        seq: int,
        events: Iterable[tuple[str, Mapping[str, Any]]],
        *,
        finished: bool | None = None,
        request: tuple[str, bytes] | None = None,
    ) -> int:
        """Append events, as kind and content, to an interview that has ``seq`` of them; returns how
        many it has then.

        When this returns, they are on disk. ConflictError if it has more already,
        UnknownInterviewError if it was deleted. ``request`` is a key of the caller's and what they
        asked for, remembered in the same transaction: see ``reply``.
        """
        changes: dict[str, Any] = {"changed": utc_now()} | (
            {} if finished is None else {"finished": finished}
        )
        alive = (INTERVIEWS.c.id == interview) & INTERVIEWS.c.deleted.is_(None)
        try:
            with self.writing() as connection:
                if (
                    connection.execute(sa.update(INTERVIEWS).where(alive).values(changes)).rowcount
                    != 1
                ):
                    raise UnknownInterviewError
                last = connection.scalar(
                    sa.select(sa.func.max(EVENTS.c.seq)).where(EVENTS.c.interview == interview)
                )
                if (last or 0) != seq:
                    raise ConflictError
                seq = self._insert(connection, interview, seq, events)
                if request is not None:
                    key, body = _digest(request[0]), hash_of_body(request[1])
                    values = {"interview": interview, "key": key, "body": body, "seq": seq}
                    connection.execute(sa.insert(REPLIES).values(**values, time=utc_now()))
                return seq
        except sa.exc.IntegrityError:
            raise ConflictError from None

    def delete(self, interview: str) -> None:
        """Forget what was said in an interview; that there was one, and when, stays."""
        with self.writing() as connection:
            self._forget(connection, [interview])
        self._truncate()

    def expire(self, unfinished: timedelta, finished: timedelta) -> int:
        """Delete interviews that were last changed longer ago than this; returns how many."""
        now, old = utc_now(), []
        with self.writing() as connection:
            for done, age in ((False, unfinished), (True, finished)):
                query = sa.select(INTERVIEWS.c.id).where(
                    INTERVIEWS.c.finished.is_(done),
                    INTERVIEWS.c.deleted.is_(None),
                    INTERVIEWS.c.changed < now - age,
                )
                old += [row.id for row in connection.execute(query)]
            for first in range(0, len(old), PAGE):
                self._forget(connection, old[first : first + PAGE])
        if old:
            self._truncate()
        return len(old)

    def records(self, since: datetime | None = None) -> Iterator[StoredInterview]:
        """All interviews that were not deleted, or those that began since a time, in the order of
        their beginning.

        They are read ``PAGE`` at a time: memory does not grow with their number, and nobody waits
        for the reader.
        """
        order = sa.tuple_(INTERVIEWS.c.began, INTERVIEWS.c.id)
        query = (
            sa.select(INTERVIEWS)
            .where(INTERVIEWS.c.deleted.is_(None))
            .order_by(*order.clauses)
            .limit(PAGE)
        )
        if since is not None:
            query = query.where(INTERVIEWS.c.began >= since)
        page = query
        while True:
            with self.reading() as connection:
                rows = connection.execute(page).all()
                events = self._events(connection, [row.id for row in rows])
            yield from (_stored(row, events) for row in rows)
            if len(rows) < PAGE:
                return
            last = rows[-1]
            page = query.where(order > sa.tuple_(sa.literal(last.began), sa.literal(last.id)))

    def find(self, interview: str) -> StoredInterview:
        """An interview by its id, for an audit; UnknownInterviewError if there is none, or it was
        deleted.
        """
        return self._one((INTERVIEWS.c.id == interview) & INTERVIEWS.c.deleted.is_(None))

    def _one(self, which: sa.ColumnElement[bool]) -> StoredInterview:
        with self.reading() as connection:
            row = connection.execute(sa.select(INTERVIEWS).where(which)).one_or_none()
            if row is None:
                raise UnknownInterviewError
            return _stored(row, self._events(connection, [row.id]))

    def count(self) -> dict[str, int]:
        """How many interviews there are: ``begun`` (all), ``finished``, ``deleted``."""
        done, gone = INTERVIEWS.c.finished.is_(True), INTERVIEWS.c.deleted.is_not(None)
        parts = [sa.func.count(), *(sa.func.count(sa.case((part, 1))) for part in (done, gone))]
        with self.reading() as connection:
            numbers = connection.execute(sa.select(*parts).select_from(INTERVIEWS)).one()
        return dict(zip(("begun", "finished", "deleted"), numbers, strict=True))

    def check(self) -> None:
        """UnavailableError if the database does not answer."""
        with self.reading() as connection:
            connection.execute(sa.select(ABOUT.c.key).limit(1)).first()

    def reply(self, interview: str, key: str) -> tuple[str, int] | None:
        """The hash of the body, and the number of events after it, of an earlier request with this
        key; or None.
        """
        query = sa.select(REPLIES.c.body, REPLIES.c.seq).where(
            REPLIES.c.interview == interview, REPLIES.c.key == _digest(key)
        )
        with self.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else (row.body, row.seq)

    def _events(self, connection: sa.Connection, interviews: list[str]) -> dict[str, list[Event]]:
        """The events of some interviews, in order."""
        query = (
            sa.select(EVENTS)
            .where(EVENTS.c.interview.in_(interviews))
            .order_by(EVENTS.c.interview, EVENTS.c.seq)
        )
        events: dict[str, list[Event]] = {}
        for e in connection.execute(query):
            events.setdefault(e.interview, []).append(
                Event(e.seq, e.time, e.kind, json.loads(e.content))
            )
        return events

    def _insert(
        self,
        connection: sa.Connection,
        interview: str,
        seq: int,
        events: Iterable[tuple[str, Mapping[str, Any]]],
    ) -> int:
        """Write events after the first ``seq``; the number of all of them then."""
        now = utc_now()
        rows = [
            {
                "interview": interview,
                "seq": number,
                "time": now,
                "kind": kind,
                "content": _text(content),
            }
            for number, (kind, content) in enumerate(events, seq + 1)
        ]
        if rows:
            connection.execute(sa.insert(EVENTS), rows)
        return seq + len(rows)

    def _forget(self, connection: sa.Connection, interviews: list[str]) -> None:
        for table in (EVENTS, REPLIES):
            connection.execute(sa.delete(table).where(table.c.interview.in_(interviews)))
        left = {"token": None, "deleted": utc_now()}
        connection.execute(
            sa.update(INTERVIEWS).where(INTERVIEWS.c.id.in_(interviews)).values(left)
        )

    def _truncate(self) -> None:
        """Take what was deleted out of SQLite's log too."""
        if self.engine.dialect.name == "sqlite":
            with typed(self.name, "written"), self.engine.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(
                    "PRAGMA wal_checkpoint(TRUNCATE)"
                )

    def commit(self, transaction: sa.RootTransaction) -> None:
        """Let others take their turn while the disk works."""
        with TURNS.pause():
            transaction.commit()


def _stored(row: sa.Row[Any], events: Mapping[str, Iterable[Event]]) -> StoredInterview:
    own = tuple(events.get(row.id, ()))
    return StoredInterview(row.id, row.advisor, row.began, row.finished, own)


def hash_of_body(body: bytes) -> str:
    """What is remembered of a request."""
    return hashlib.sha256(body).hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(dict(content), ensure_ascii=False, allow_nan=False)


def utc_now() -> datetime:
    """The time as the store keeps it."""
    return datetime.now(UTC).replace(tzinfo=None)  # SQLite keeps no time zone; all times are UTC
