"""The store of a study: which cells are done, what they gave, which failed and why. An SQLite file,
or PostgreSQL.

A cell's result is written once, in one transaction: whatever ends the run, the cells written before
are there. Results are JSON text, one row of the database for each table of a cell, with a list for
each column; reading them runs no code. ``Store`` is the entry.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from edfa.database import Database
from edfa.errors import DataError
from edfa_studies.cells import PARTS, Cell

LABELS = (*PARTS, "seed", "reading", "promise", "cell")
"""The columns that the store puts before those of a table."""
Payload = Mapping[str, Sequence[Mapping[str, Any]]]
"""What a cell gives: named tables, each a list of rows."""

STATUS = ("key", "measure", *PARTS, "seed", "status", "seconds", "attempts", "error")


def _text(name: str, **options: Any) -> "sa.Column[str]":
    """A column of text that is never empty."""
    return sa.Column(name, sa.Text, nullable=False, **options)


METADATA = sa.MetaData()
CELLS = sa.Table(
    "study_cell",
    METADATA,
    _text("key", primary_key=True),
    _text("measure", index=True),
    *map(_text, PARTS),
    sa.Column("seed", sa.BigInteger, nullable=False),
    *map(_text, ("reading", "promise", "cell")),
    _text("status", default="open"),
    sa.Column("attempts", sa.Integer, nullable=False, default=0),
    sa.Column("seconds", sa.Float),
    sa.Column("error", sa.Text),
)
RESULTS = sa.Table(
    "study_result",
    METADATA,
    sa.Column("key", sa.Text, sa.ForeignKey(CELLS.c.key), primary_key=True),
    _text("name", primary_key=True),
    _text("columns"),
)
NOTES = sa.Table("study_note", METADATA, _text("name", primary_key=True), _text("value"))


class Store(Database):
    """The cells of a study and their results; ``Store.open`` opens or begins one.

    Several processes may use the same store at once.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from edfa_studies.cells import Part
    >>> cell = Cell("growth", *(Part(name, name) for name in ("german", "xgb", "hiton-mb", "edfa",
    ...     "nearest")))
    >>> with TemporaryDirectory() as folder, Store.open(Path(folder) / "study.sqlite") as store:
    ...     store.save(cell, {"step": [{"step": 0, "cost": 0.0}, {"step": 1, "cost": 0.5}]},
    ...     seconds=1.5)
    ...     store.frame("growth", "step")[["policy", "step", "cost"]]
      policy  step  cost
    0   edfa     0   0.0
    1   edfa     1   0.5
    """

    metadata, about, version_name, lock = METADATA, NOTES, "format", 18231406

    def __init__(self, engine: sa.Engine) -> None:
        super().__init__(engine)
        inserts: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
        # both know what to do about a row that is there
        self._insert = inserts[engine.dialect.name]

    def add(self, cells: Iterable[Cell]) -> None:
        """Register cells.

        What is known about those that are there stays; their names are the newest.
        """
        rows = [_row(cell) for cell in cells]
        if rows:
            self._upsert(CELLS, rows)

    def save(self, cell: Cell, payload: Payload, seconds: float, attempts: int = 1) -> None:
        """Write what a cell gave; if the cell is done already, nothing changes.

        Parameters
        ----------
        cell
            The cell, which is registered if need be.
        payload
            Named lists of rows: numbers, texts, lists and mappings; DataError for anything else.
        seconds, attempts
            The time that it took, and how often it was tried.
        """
        tables = [
            {"key": cell.key, "name": name, "columns": encode(by_column(rows))}
            for name, rows in check_tables(payload).items()
        ]
        with self.writing() as connection:
            if self._set(connection, cell, "done", None, seconds, attempts) and tables:
                connection.execute(sa.insert(RESULTS), tables)

    def fail(self, cell: Cell, error: str, seconds: float, attempts: int = 1) -> None:
        """Write that a cell failed; a cell that is done stays so.

        Parameters
        ----------
        cell
            The cell, which is registered if need be.
        error
            The text of the traceback.
        seconds, attempts
            The time that it took, and how often it was tried; attempts of several runs add up.
        """
        with self.writing() as connection:
            self._set(connection, cell, "failed", error, seconds, attempts)

    def status(self) -> pd.DataFrame:
        """What is known about each cell.

        Returns
        -------
        pandas.DataFrame
            One row a cell, sorted by its names and seed: its key, measure, parts and seed, whether
            it is open, done or failed, its seconds, attempts and error.
        """
        rows = self._select(sa.select(*(CELLS.c[name] for name in STATUS)))
        frame = pd.DataFrame(map(tuple, rows), columns=list(STATUS))
        frame = frame.sort_values([*STATUS[1:8], "key"], ignore_index=True)
        return frame.astype({"seed": "int64", "seconds": "float64", "attempts": "int64"})

    def done(self) -> set[str]:
        """The keys of the cells that are done."""
        return self._keys("done")

    def failed(self) -> set[str]:
        """The keys of the cells that failed."""
        return self._keys("failed")

    def frame(self, measure: str, table: str, keys: Collection[str] | None = None) -> pd.DataFrame:
        """All rows of one table of the cells that are done, with the names of their parts first.

        Parameters
        ----------
        measure, table
            Which results: ``"growth"``, ``"step"``.
        keys
            Of these cells alone.

        Returns
        -------
        pandas.DataFrame
            Columns data, predictor, blanket, policy, searcher, seed, reading, promise and cell (its
            key), then those of the rows. Cells are in the order of these columns, not in that in
            which they were measured. What was not a number is NaN.
        """
        columns = [*(CELLS.c[name] for name in LABELS[:-1]), CELLS.c.key, RESULTS.c.columns]
        wanted = (
            (CELLS.c.measure == measure) & (CELLS.c.status == "done") & (RESULTS.c.name == table)
        )
        stored = self._select(sa.select(*columns).join_from(CELLS, RESULTS).where(wanted))
        chosen = None if keys is None else frozenset(keys)
        # Sorted here and not by the database: these sort text each in its own way.
        cells = sorted(tuple(cell) for cell in stored if chosen is None or cell.key in chosen)
        tables = [json.loads(cell[-1]) for cell in cells]
        lengths = [len(next(iter(columns.values()), ())) for columns in tables]
        labels = pd.DataFrame([cell[:-1] for cell in cells], columns=list(LABELS))
        rows = labels.loc[np.repeat(np.arange(len(cells)), lengths)].reset_index(drop=True)
        joined = {
            # a column that a table lacks has no values there
            name: list(
                chain(*(t.get(name, [None] * n) for t, n in zip(tables, lengths, strict=True)))
            )
            for name in dict.fromkeys(chain(*tables))
        }
        values = {name: _numbers(column) for name, column in joined.items()}
        return rows.join(pd.DataFrame(values, index=rows.index))

    def note(self, name: str, value: Any) -> None:
        """Write something about the study: its title, its configuration, the versions it ran with.

        Parameters
        ----------
        name
            What it is; a note of this name is replaced.
        value
            Numbers, texts, lists and mappings.
        """
        self._upsert(NOTES, [{"name": name, "value": encode(value)}])

    @property
    def notes(self) -> dict[str, Any]:
        """Everything that was noted, by name."""
        notes = sorted(map(tuple, self._select(sa.select(NOTES.c.name, NOTES.c.value))))
        return {name: json.loads(value) for name, value in notes if name != self.version_name}

    def _upsert(self, table: sa.Table, rows: list[dict[str, Any]]) -> None:
        """Write rows; those whose key is there replace what these columns say."""
        insert, key = self._insert(table), table.primary_key.columns.keys()
        newest = {name: insert.excluded[name] for name in rows[0] if name not in key}
        with self.writing() as connection:
            connection.execute(insert.on_conflict_do_update(index_elements=key, set_=newest), rows)

    def _set(
        self,
        connection: sa.Connection,
        cell: Cell,
        status: str,
        error: str | None,
        seconds: float,
        attempts: int,
    ) -> bool:
        """Change the row of a cell that is not done; False if it is."""
        connection.execute(self._insert(CELLS).values(_row(cell)).on_conflict_do_nothing())
        unfinished = (CELLS.c.key == cell.key) & (CELLS.c.status != "done")
        tried = CELLS.c.attempts + attempts
        update = sa.update(CELLS).where(unfinished)
        update = update.values(status=status, error=error, seconds=seconds, attempts=tried)
        return connection.execute(update).rowcount == 1

    def _keys(self, status: str) -> set[str]:
        return {
            key for (key,) in self._select(sa.select(CELLS.c.key).where(CELLS.c.status == status))
        }

    def _select(self, query: sa.Select[Any]) -> list[sa.Row[Any]]:
        with self.reading() as connection:
            return list(connection.execute(query).all())


def _numbers(values: list[Any]) -> pd.Series:
    """A column; of numbers, too, where infinities were words or nothing was a number."""
    column = pd.Series(values)
    if column.dtype.kind in "biuf":
        return column
    numeric = all(type(v) in (int, float) or v in (None, "inf", "-inf") for v in values)
    return column.astype("float64") if numeric else column


def _row(cell: Cell) -> dict[str, Any]:
    """What the store says about a cell that is new."""
    return cell.description | {"key": cell.key, "seed": cell.seed, "cell": cell.to_json()}


def check_tables(payload: Payload) -> Payload:
    """Check the names of columns.

    Parameters
    ----------
    payload
        Named lists of rows.

    Returns
    -------
    dict
        The same.

    Raises
    ------
    DataError
        If a table has a column with the name of a label (``LABELS``), which the store puts before
        them.
    """
    for table, rows in payload.items():
        if taken := sorted(set().union(*rows) & set(LABELS)):
            raise DataError(
                f"table {table!r} of a result has a column {taken[0]!r}, which is the store's own"
            )
    return payload


def plain(value: Any) -> Any:
    """The same as strict JSON can hold it.

    Parameters
    ----------
    value
        Numbers, also of numpy, texts, arrays, sequences and mappings of them, or None.

    Returns
    -------
    object
        Lists for arrays and sequences, None for NaN, and the words inf and -inf for infinities.

    Raises
    ------
    DataError
        If it holds anything else.

    Examples
    --------
    >>> plain({"tau": -np.inf, "risk": np.float32("nan"), "known": (np.int64(2), np.array([0.5]))})
    {'tau': '-inf', 'risk': None, 'known': [2, [0.5]]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int):
        return value
    raise DataError(
        f"a result holds something of type {type(value).__name__}; it is made of numbers, "
        "texts, lists and mappings"
    )


def encode(value: Any) -> str:
    """Strict JSON, without spaces."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def by_column(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns: each name is written once, which is shorter and much quicker to read.

    >>> by_column([{"step": 0, "cost": 0.5}, {"step": 1}])
    {'step': [0, 1], 'cost': [0.5, None]}
    """
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain(*rows))}
