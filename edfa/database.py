"""Databases of edfa: an SQLite file by default, PostgreSQL by its URL; errors in one line.

``Database`` is what the store of a study and the interviews of a service have in common: opening,
making the tables, checking their version, transactions, closing.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import OperationalError
from typing import Any, ClassVar, Self

import sqlalchemy as sa

from edfa.errors import MissingExtraError, SettingError, UnavailableError, UnreadableError
from edfa.reading import first_line

BUSY_SECONDS = 60.0  # to wait for another writer


class Database:
    """A database with tables of one version; ``open`` opens or begins one.

    Threads and processes may share it. All transactions of SQLite are begun explicitly: one that
    writes has the right to from its beginning, so that two writers wait for each other instead of
    failing.

    Attributes
    ----------
    metadata : sqlalchemy.MetaData
        The tables, which a subclass names.
    about : sqlalchemy.Table
        The table of two columns, name and value, that holds the version in the row
        ``version_name``.
    version, version_name
        The version of the tables, and the name of its row.
    engine : sqlalchemy.Engine
        The connections.
    name : str
        The path or URL, without a password.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> class Notes(Database):
    ...     metadata = sa.MetaData()
    ...     about = sa.Table("about", metadata, sa.Column("name", sa.Text, primary_key=True),
    ...         sa.Column("value", sa.Text))
    >>> with TemporaryDirectory() as folder, Notes.open(Path(folder) / "notes.sqlite") as notes:
    ...     with notes.reading() as connection:
    ...         connection.execute(sa.select(Notes.about)).all()
    [('version', '1')]
    """

    metadata: ClassVar[sa.MetaData]
    about: ClassVar[sa.Table]
    version: ClassVar[int] = 1
    version_name: ClassVar[str] = "version"
    lock: ClassVar[int] = 1
    """Number of PostgreSQL's advisory lock under which the tables are made."""
    durable: ClassVar[bool] = False
    """Whether what was committed must survive a loss of power, and what is deleted must be gone
    from the file (SQLite; PostgreSQL does both)."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._writer = engine.execution_options(writes=True)
        file, url = engine.dialect.name == "sqlite", engine.url
        self.name = str(url.database) if file else url.render_as_string()  # without a password

    @classmethod
    def open(cls, place: str | Path) -> Self:
        """Open the database at ``place``; it is begun if it is not there.

        Parameters
        ----------
        place
            The path of an SQLite file, ``sqlite:///PATH`` or ``postgresql://USER@HOST/DATABASE``.

        Raises
        ------
        SettingError
            If the URL is of no known kind.
        UnavailableError
            If the file cannot be opened or the server does not answer.
        UnreadableError
            If it is not such a database, or one of another version.
        """
        database = cls(_connect(place, durable=cls.durable))
        try:
            database._make_tables()
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection to read from; everything read in the block is of one moment.

        Yields
        ------
        sqlalchemy.Connection
            It is given back at the end of the block.
        """
        with typed(self.name, "read"), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One transaction: all of the block is written, or nothing if it raises.

        Yields
        ------
        sqlalchemy.Connection
            What is written through it is committed at the end of the block.
        """
        with (
            typed(self.name, "written"),
            self._writer.connect() as connection,
            connection.begin() as transaction,
        ):
            yield connection
            self.commit(transaction)

    def commit(self, transaction: sa.RootTransaction) -> None:
        """End a transaction of ``writing``; a subclass may let others work meanwhile."""
        transaction.commit()

    def _make_tables(self) -> None:
        """Make the tables that are not there, one process at a time, and check their version.

        Raises
        ------
        UnreadableError
            If the tables are of another version.
        """
        name, value = self.about.columns
        with self.writing() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(self.lock)))
            self.metadata.create_all(connection)
            row = sa.select(value).where(name == self.version_name)
            written = connection.scalar(row)
            if written is None:
                first = {name: self.version_name, value: str(self.version)}
                connection.execute(sa.insert(self.about).values(first))
            elif written != str(self.version):
                raise UnreadableError(
                    f"{self.name} has version {written}; this version of edfa reads {self.version}"
                )


def _connect(place: str | Path, *, durable: bool) -> sa.Engine:
    """Make an engine for a path or URL.

    SQLite waits ``BUSY_SECONDS`` for other writers, and readers do not wait for them. ``durable``
    is as in ``Database``.
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
        connection.isolation_level = None  # the driver begins no transaction by itself: see below

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # A transaction that reads first and writes then may find that another has written
        # meanwhile.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def typed(name: str, what: str) -> Iterator[None]:
    """Turn what goes wrong with a disk or a server in the block into an error of one line.

    Parameters
    ----------
    name
        The name of the database.
    what
        What is done with it in the block, ``"read"`` or ``"written"``.

    Raises
    ------
    UnavailableError
        If the disk or the server does not answer.
    UnreadableError
        If it is no database of edfa, or damaged.
    """
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except sa.exc.OperationalError as error:
        raise UnavailableError(f"{name} cannot be {what}: {first_line(error.orig)}") from None
    except sa.exc.DatabaseError as error:
        raise UnreadableError(
            f"{name} is not a database of edfa, or damaged ({what}): {first_line(error.orig)}"
        ) from None


def _url(place: str | Path) -> sa.URL:
    """The URL of a database at a path or URL; the folder of a file is made.

    Raises
    ------
    SettingError
        If the URL is of no known kind.
    UnavailableError
        If the folder cannot be made.
    """
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
