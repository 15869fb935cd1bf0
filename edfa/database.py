"""Connections to a database: an SQLite file by default, PostgreSQL by its URL; errors in one
line.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import OperationalError
from typing import Any

import sqlalchemy as sa

from edfa.errors import MissingExtraError, SettingError, UnavailableError, UnreadableError

__all__ = ["connect", "name_of", "typed"]

BUSY_SECONDS = 60.0  # to wait for another writer


def connect(place: str | Path, *, durable: bool = False) -> sa.Engine:
    """An engine for a path or URL; SQLite waits for other writers, and readers do not wait for
    them.

    Parameters
    ----------
    place
        The path of an SQLite file, ``sqlite:///PATH``, or ``postgresql://USER@HOST/DATABASE``.
    durable
        Whether what was committed must survive a loss of power, what is deleted must be gone from
        the file, and every transaction must have the right to write from its beginning (SQLite
        alone; PostgreSQL does all that).

    Raises
    ------
    SettingError
        If the URL is of no known kind.
    """
    url = _url(place)
    if url.get_backend_name() == "postgresql":
        try:
            return sa.create_engine(url, pool_pre_ping=True)
        except ImportError:
            raise MissingExtraError("a database in PostgreSQL", "postgres") from None
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        # Refused while another process writes or changes it; the file keeps it once it is set.
        with suppress(OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if durable:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            connection.isolation_level = (
                None  # the driver begins no transaction by itself: see below
            )

    if durable:

        @sa.event.listens_for(engine, "begin")
        def begin(connection: sa.Connection) -> None:
            # A transaction that reads first and writes then may find that another has written
            # meanwhile.
            writes = connection.get_execution_options().get("writes", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def name_of(engine: sa.Engine) -> str:
    """The file, or the URL without its password."""
    url = engine.url
    return str(url.database) if engine.dialect.name == "sqlite" else url.render_as_string()


@contextmanager
def typed(name: str, what: str) -> Iterator[None]:
    """What goes wrong with a disk or a server, in one line; ``what`` is "read" or "written"."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except sa.exc.OperationalError as error:
        raise UnavailableError(f"{name} cannot be {what}: {_first_line(error)}") from None
    except sa.exc.DatabaseError as error:
        raise UnreadableError(
            f"{name} is not a database of edfa, or damaged ({what}): {_first_line(error)}"
        ) from None


def _url(place: str | Path) -> sa.URL:
    if "://" not in str(place):
        path = Path(place)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnavailableError(f"{path} cannot be written: {error.strerror}") from None
        return sa.URL.create("sqlite", database=str(path))
    try:
        url = sa.make_url(str(place))
    except sa.exc.ArgumentError:
        raise SettingError(
            "a database is a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"
        ) from None
    if url.drivername not in ("sqlite", "postgresql", "postgresql+psycopg"):
        raise SettingError(
            f"a database is an SQLite file or in PostgreSQL (postgresql://), not {url.drivername}"
        )
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _first_line(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0]
