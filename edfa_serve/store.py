"""Interviews in a database: a log of events each, which only grows.

The main entry is ``InterviewStore``. An interview is what its events say, so that replaying them
restores it. The holder of a token may read and go on with one interview; the token is handed out
once and stored as its hash. Of two writers of the event with the same number, the second gets a
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


class RepeatedKeyError(EdfaError):
    """A key that was used for another request."""

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key was used for another request; take a new one")


@dataclass(frozen=True)
class Event:
    """One event of an interview.

    Parameters
    ----------
    seq
        Its number, from 1.
    time
        When it was written, in UTC without a time zone.
    kind, content
        What happened (see ``Service.act``), and its content as plain JSON.
    """

    seq: int
    time: datetime
    kind: str
    content: Mapping[str, Any]


@dataclass(frozen=True)
class StoredInterview:
    """What is stored about one interview.

    Parameters
    ----------
    id
        Its id, which opens nothing.
    advisor
        The fingerprint of the advisor that it is held with.
    began, finished
        When it began, in UTC without a time zone, and whether it is finished.
    events
        Its events in order.
    """

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

    def gone_on(self, seq: int, *but: str) -> bool:
        """Whether there are events after the first ``seq``, other than of the kinds ``but``."""
        return any(event.kind not in but for event in self.events[seq:])


class InterviewStore(Database):
    """The interviews of a service, in SQLite or PostgreSQL.

    ``InterviewStore.open`` opens a store, or begins one. Threads and processes may share it.

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
        """Begin an interview.

        Parameters
        ----------
        advisor
            The fingerprint of the advisor.
        events
            The first events, each as its kind and its content.
        interview
            The id of the interview, which must be new and tell nothing about the person; by default
            a random one.

        Returns
        -------
        str
            The token, which is stored nowhere.
        """
        token, now = secrets.token_urlsafe(TOKEN_BYTES), utc_now()
        row: dict[str, Any] = {
            "id": interview or uuid.uuid4().hex,
            "token": _digest(token),
            "advisor": advisor,
            "began": now,
            "changed": now,
            "finished": False,
        }
        with self.writing() as connection:
            connection.execute(sa.insert(INTERVIEWS).values(row))
            _insert(connection, row["id"], 0, events)
        return token

    def append(
        self,
        interview: str,
        seq: int,
        events: Iterable[tuple[str, Mapping[str, Any]]],
        *,
        finished: bool | None = None,
        request: tuple[str, bytes] | None = None,
    ) -> int:
        """Append events to an interview; when this returns, they are on disk.

        Parameters
        ----------
        interview
            The id of the interview.
        seq
            The number of events that the caller has seen.
        events
            The new events, each as its kind and its content.
        finished
            Whether the interview is finished; None: as it was.
        request
            A key of the caller's and what they asked for, which ``reply`` finds later; written in
            the same transaction.

        Returns
        -------
        int
            The number of events now.

        Raises
        ------
        ConflictError
            If there are more events than ``seq``.
        UnknownInterviewError
            If the interview was deleted.
        """
        changes: dict[str, Any] = {"changed": utc_now()}
        if finished is not None:
            changes["finished"] = finished
        last = sa.select(sa.func.max(EVENTS.c.seq)).where(EVENTS.c.interview == interview)
        try:
            with self.writing() as connection:
                changed = sa.update(INTERVIEWS).where(_alive(interview)).values(changes)
                if connection.execute(changed).rowcount != 1:
                    raise UnknownInterviewError
                if (connection.scalar(last) or 0) != seq:
                    raise ConflictError
                seq = _insert(connection, interview, seq, events)
                if request is not None:
                    key, body = _digest(request[0]), _digest(request[1])
                    values = {"interview": interview, "key": key, "body": body, "seq": seq}
                    connection.execute(sa.insert(REPLIES).values(**values, time=utc_now()))
                return seq
        except sa.exc.IntegrityError:
            raise ConflictError from None

    def delete(self, interview: str) -> None:
        """Forget what was said in an interview, by its id; that there was one, and when, stays."""
        self._forget(INTERVIEWS.c.id == interview)

    def expire(self, unfinished: timedelta, finished: timedelta) -> int:
        """Delete old interviews.

        Parameters
        ----------
        unfinished, finished
            How long an interview of each kind is kept after its last change.

        Returns
        -------
        int
            How many were deleted.
        """
        now, table = utc_now(), INTERVIEWS.c
        oldest = sa.case((table.finished.is_(True), now - finished), else_=now - unfinished)
        return self._forget(table.deleted.is_(None) & (table.changed < oldest))

    def _forget(self, which: sa.ColumnElement[bool]) -> int:
        """Delete the events of some interviews, and take them out of SQLite's log too."""
        left = {"token": None, "deleted": utc_now()}
        with self.writing() as connection:
            found = connection.scalars(sa.select(INTERVIEWS.c.id).where(which))
            gone = [{"gone": interview} for interview in found]
            if gone:
                for key in (EVENTS.c.interview, REPLIES.c.interview):
                    connection.execute(
                        sa.delete(key.table).where(key == sa.bindparam("gone")), gone
                    )
                these = INTERVIEWS.c.id == sa.bindparam("gone")
                connection.execute(sa.update(INTERVIEWS).where(these).values(left), gone)
        if gone and self.engine.dialect.name == "sqlite":
            with typed(self.name, "written"), self.engine.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(
                    "PRAGMA wal_checkpoint(TRUNCATE)"
                )
        return len(gone)

    def records(self, since: datetime | None = None) -> Iterator[StoredInterview]:
        """Iterate over the interviews that were not deleted, in the order of their beginning.

        They are read ``PAGE`` at a time: memory does not grow with their number, and nobody waits
        for the reader.

        Parameters
        ----------
        since
            Leaves out interviews that began earlier, in UTC without a time zone.
        """
        order = sa.tuple_(INTERVIEWS.c.began, INTERVIEWS.c.id)
        query = sa.select(INTERVIEWS).where(INTERVIEWS.c.deleted.is_(None))
        if since is not None:
            query = query.where(INTERVIEWS.c.began >= since)
        page = query = query.order_by(*order.clauses).limit(PAGE)
        while True:
            with self.reading() as connection:
                found = _read(connection, page)
            yield from found
            if len(found) < PAGE:
                return
            last = found[-1]
            page = query.where(order > sa.tuple_(sa.literal(last.began), sa.literal(last.id)))

    def read(self, token: str) -> StoredInterview:
        """Read the interview that a token opens.

        Raises
        ------
        UnknownInterviewError
            If the token opens none.
        """
        return self._one(INTERVIEWS.c.token == _digest(token))

    def find(self, interview: str) -> StoredInterview:
        """Read an interview by its id, for an audit.

        Raises
        ------
        UnknownInterviewError
            If there is none, or it was deleted.
        """
        return self._one(_alive(interview))

    def _one(self, which: sa.ColumnElement[bool]) -> StoredInterview:
        with self.reading() as connection:
            found = _read(connection, sa.select(INTERVIEWS).where(which))
        if not found:
            raise UnknownInterviewError
        return found[0]

    def count(self) -> dict[str, int]:
        """Count the interviews.

        Returns
        -------
        dict
            How many there are, by ``"begun"`` (all of them), ``"finished"`` and ``"deleted"``.
        """
        done, gone = INTERVIEWS.c.finished.is_(True), INTERVIEWS.c.deleted.is_not(None)
        query = sa.select(
            sa.func.count().label("begun"),
            sa.func.count(sa.case((done, 1))).label("finished"),
            sa.func.count(sa.case((gone, 1))).label("deleted"),
        )
        with self.reading() as connection:
            return dict(connection.execute(query.select_from(INTERVIEWS)).mappings().one())

    def check(self) -> None:
        """UnavailableError if the database does not answer."""
        with self.reading() as connection:
            connection.execute(sa.select(ABOUT.c.key).limit(1)).first()

    def reply(self, interview: str, request: tuple[str, bytes]) -> int | None:
        """Look up an earlier request.

        Parameters
        ----------
        interview
            The id of the interview.
        request
            A key and what is asked for, as for ``append``.

        Returns
        -------
        int or None
            The number of events after the earlier request; None if there was none.

        Raises
        ------
        RepeatedKeyError
            If a request with this key asked for something else.
        """
        key, body = _digest(request[0]), _digest(request[1])
        query = sa.select(REPLIES.c.body, REPLIES.c.seq).where(
            REPLIES.c.interview == interview, REPLIES.c.key == key
        )
        with self.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        if row.body != body:
            raise RepeatedKeyError
        return int(row.seq)

    def commit(self, transaction: sa.RootTransaction) -> None:
        """End a transaction; other requests take their turn while the disk works."""
        with TURNS.pause():
            transaction.commit()


def _alive(interview: str) -> sa.ColumnElement[bool]:
    """The interview of this id, unless it was deleted."""
    return (INTERVIEWS.c.id == interview) & INTERVIEWS.c.deleted.is_(None)


def _read(connection: sa.Connection, query: sa.Select[Any]) -> list[StoredInterview]:
    """The interviews that a query of ``INTERVIEWS`` finds, with their events."""
    rows = connection.execute(query).all()
    events: dict[str, list[Event]] = {row.id: [] for row in rows}
    found = sa.select(EVENTS).where(EVENTS.c.interview.in_(events))
    for e in connection.execute(found.order_by(EVENTS.c.interview, EVENTS.c.seq)):
        events[e.interview].append(Event(e.seq, e.time, e.kind, json.loads(e.content)))
    return [
        StoredInterview(row.id, row.advisor, row.began, row.finished, tuple(events[row.id]))
        for row in rows
    ]


def _insert(
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
            "content": json.dumps(dict(content), ensure_ascii=False, allow_nan=False),
        }
        for number, (kind, content) in enumerate(events, seq + 1)
    ]
    if rows:
        connection.execute(sa.insert(EVENTS), rows)
    return seq + len(rows)


def _digest(content: str | bytes) -> str:
    content = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(content).hexdigest()


def utc_now() -> datetime:
    """The present time in UTC, without a time zone: SQLite stores none."""
    return datetime.now(UTC).replace(tzinfo=None)
