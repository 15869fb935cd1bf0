"""Parquet files larger than memory, counted by DuckDB: ``discover(ParquetRows("people/*.parquet",
schema))``.

Each column has an SQL expression for its values, and of a categorical one a translation of what
they mean. Counts are one GROUP BY over the codes, correlations one pass over chunks of rows.
"""

import glob
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import (
    CategoricalColumn,
    Column,
    ContinuousColumn,
    grid_ranks,
    is_categorical,
    tail_ranks,
)
from edfa.blanket.sources.base import (
    RemoteSource,
    fit_levels,
    read_column,
    read_distinct,
)
from edfa.blanket.sources.correlation import CHUNK_ROWS, Correlation, CrossProducts
from edfa.data.read import open_parquet
from edfa.data.schema import Feature, Schema
from edfa.data.values import LARGEST_NUMBER
from edfa.errors import (
    ColumnError,
    DataError,
    EmptyTableError,
    MissingExtraError,
    SettingError,
    UnreadableError,
)
from edfa.reading import existing, first_line
from edfa.typing import AnyArray

ENDINGS = (".parquet", ".pq")
MEMORY_LIMIT = "700MB"  # DuckDB's own limit; grouping beyond it spills to disk
MAX_TEXTS = 100_000  # different texts of a column of numbers that are read one by one
MAX_ARMS = 1_000  # texts that SQL translates one by one
WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
NUMBERS = (*WHOLE, *(f"U{kind}" for kind in WHOLE[:-1]), "FLOAT", "DOUBLE", "DECIMAL")


class ParquetRows(RemoteSource):
    """Parquet files, larger than memory if need be, counted by DuckDB (``edfa[scale]``).

    What is wrong with a table in memory is wrong with it here, and the same error.

    Parameters
    ----------
    path
        A file, a folder of Parquet files, or a pattern such as ``"people/*.parquet"``.
    schema
        The features and the outcome; other columns of the files are not read.
    memory
        The most that DuckDB may use, as it writes it; grouping beyond that spills to disk.

    Raises
    ------
    MissingExtraError
        If DuckDB is not installed.
    UnreadableError
        If there are no such files, or they are damaged or do not fit each other.
    ColumnError, TargetError, EmptyTableError
        If a column is not there, there are no rows, or values do not fit the card.
    """

    def __init__(self, path: str | Path, schema: Schema, memory: str = MEMORY_LIMIT) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("counting Parquet files larger than memory", "scale") from None
        self._duckdb, self._memory, self._path = duckdb, memory, Path(path)
        types = self._open(list_parquet(path))
        names = self._find_columns(schema, types, str(path))
        self.n = int(self._value("SELECT count(*) FROM raw"))
        if not self.n:
            raise EmptyTableError(f"{path} has columns but no rows")
        self._expressions: dict[str, str] = {}
        self._set_columns([self._fit(n, *types[n], schema) for n in names])

    def _open(self, files: list[Path]) -> dict[str, tuple[str, str]]:
        """Open the files as the view ``raw``.

        Columns are numbered in the view: a name from outside could be that of another, or differ by
        its case alone.

        Returns
        -------
        dict
            For each column, by its name in the files, its name and type in the view.
        """
        with open_parquet(files[0]) as first:
            names = first.schema_arrow.names  # as they are there: DuckDB may rename a beside A
        # Nothing is fetched: DuckDB would install what a file asks for.
        settings: dict[str, Any] = {
            "memory_limit": self._memory,
            "autoinstall_known_extensions": "false",
        }
        try:
            self._db = self._duckdb.connect(config=settings)
        except self._duckdb.Error as error:
            raise SettingError(
                f"memory: such as '2GB', not {self._memory!r}: {first_line(error)}"
            ) from None
        with self._typed():
            self._db.execute("SET enable_progress_bar = false")  # a library does not print
            paths = [glob.escape(str(file)) for file in files]  # no pattern is left in them
            rows = self._db.read_parquet(paths, hive_partitioning=False)
            quoted = (name.replace('"', '""') for name in rows.columns)
            rows.project(
                ", ".join(f'"{name}" AS r{k}' for k, name in enumerate(quoted))
            ).create_view("raw")
        numbered = enumerate(zip(names, map(str, rows.types), strict=True))
        return {name: (f"r{k}", sql_type) for k, (name, sql_type) in numbered}

    @contextmanager
    def _typed(self) -> Iterator[None]:
        """What DuckDB refuses: too little memory, or files that are damaged or do not fit each
        other.
        """
        try:
            yield
        except self._duckdb.OutOfMemoryException:
            raise DataError(
                f"DuckDB needs more than {self._memory} for this table; pass memory='2GB'"
            ) from None
        except (self._duckdb.Error, UnicodeError) as error:
            name = str(self._path).encode("utf-8", "backslashreplace").decode()
            raise UnreadableError(f"{name} cannot be read: {first_line(error)}") from None

    def _frame(self, query: str) -> pd.DataFrame:
        """The rows that a query gives; whole numbers with gaps stay exact."""
        with self._typed():
            rows = self._db.sql(query).to_arrow_reader(CHUNK_ROWS).read_all()
        frame: pd.DataFrame = rows.to_pandas(integer_object_nulls=True)
        return frame

    def _value(self, query: str) -> Any:
        """The first value of the first row."""
        with self._typed():
            return self._db.execute(query).fetchall()[0][0]

    def _fit(self, name: str, column: str, sql_type: str, schema: Schema) -> Column:
        """Summarise a column, and remember how it is read: SQL, and a translation of levels.

        The SQL of a continuous column is a number, NULL where it is missing; of a categorical one
        it is the raw value.
        """
        kind = sql_type.split("(")[0]
        if kind not in (*NUMBERS, "VARCHAR", "BOOLEAN"):
            raise ColumnError(f"column {name!r} holds neither numbers nor words, but {sql_type}")
        measured = name != schema.target and not schema[name].words
        numbers = measured and kind in NUMBERS
        if numbers:
            column = self._checked_numbers(column, name)
            distinct = int(self._value(f"SELECT count(DISTINCT {column}) FROM raw"))
            if not schema[name].levels and not is_categorical(schema[name], distinct):
                return self._fit_quantiles(name, column, schema[name])
        limit = f"LIMIT {MAX_TEXTS + 1}" if measured else ""
        found = self._frame(
            f"SELECT {column} AS value, count(*) AS n FROM raw GROUP BY 1 ORDER BY 1 {limit}"
        )
        raw, rows = found["value"], found["n"].to_numpy()
        values, categorical = read_distinct(name, raw, rows, schema)
        meaning = dict(zip(raw.tolist(), values.tolist(), strict=True))
        if categorical:
            self._expressions[name], self._translations[name] = column, meaning
            return fit_levels(name, values, rows)
        if not numbers:
            column = self._translated(column, name, meaning)
        return self._fit_quantiles(name, column, schema[name])

    def _checked_numbers(self, column: str, name: str) -> str:
        """SQL for a column of numbers; ColumnError if one is infinite or beyond all measurement, or
        there is none.
        """
        number = f"CAST({column} AS DOUBLE)"
        value = f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END"
        largest = self._value(f"SELECT max(abs({value})) FROM raw")
        if largest is None:
            raise ColumnError(f"column {name!r} has no value in any row; leave it out of the card")
        if largest > LARGEST_NUMBER:
            what = (
                "infinite" if math.isinf(largest) else f"beyond {LARGEST_NUMBER:g}, no measurement,"
            )
            raise ColumnError(f"column {name!r} is {what} in a row")
        return value

    def _translated(self, column: str, name: str, meaning: Mapping[Any, float]) -> str:
        """SQL for the numbers that texts or truth values mean."""
        plain = f"TRY_CAST({column} AS DOUBLE)"
        read = self._frame(f"SELECT DISTINCT {column} AS t, {plain} AS n FROM raw")
        if len(meaning) <= MAX_TEXTS and read["n"].equals(read["t"].map(meaning).astype(float)):
            return plain
        if len(meaning) > MAX_ARMS:
            raise ColumnError(f"column {name!r} has numbers written as text; store them as numbers")
        arms = " ".join(
            f"WHEN {_quote_text(_sql_text(text))} THEN {float(number)!r}::DOUBLE"
            for text, number in meaning.items()
            if number == number  # a text that means nothing is NULL
        )
        return f"CASE CAST({column} AS VARCHAR) {arms} ELSE NULL END"

    def _fit_quantiles(self, name: str, value: str, feature: Feature) -> ContinuousColumn:
        """The column of a feature whose numbers are ``value`` in SQL, NULL where missing."""
        self._expressions[name], self._translations[name] = value, None
        special = tuple(
            c
            for c in map(float, feature.codes)
            if self._value(f"SELECT bool_or({value} = {c!r}) FROM raw")
        )
        measured = f"{value} IS NOT NULL" + "".join(f" AND {value} <> {c!r}" for c in special)
        n = int(self._value(f"SELECT count(*) FROM raw WHERE {measured}"))
        missing = bool(self._value(f"SELECT bool_or({value} IS NULL) FROM raw"))
        if not n:
            return ContinuousColumn(name, (0.0,) * len(grid_ranks(1)), special, missing)
        inner, outer = grid_ranks(n), tail_ranks(n)
        shares = ", ".join(repr((rank - 0.5) / n) for rank in (*inner.tolist(), *outer.tolist()))
        quantiles = self._value(
            f"SELECT quantile_disc({value}, [{shares}]) FROM raw WHERE {measured}"
        )
        values = tuple(float(q) for q in quantiles)
        return ContinuousColumn(name, values[: len(inner)], special, missing, values[len(inner) :])

    def _code(self, index: int, bins: int) -> str:
        """SQL for a column's code, -1 where it is missing; levels stay raw values."""
        column, value = self.columns[index], self._expressions[self.columns[index].name]
        if isinstance(column, CategoricalColumn):
            return value
        edges = column.edges(bins)
        special = "".join(
            f" WHEN {value} = {s!r} THEN {len(edges) + 1 + k}"
            for k, s in enumerate(column.special_values)
        )
        bin_code = _bin_code(value, edges.tolist())
        return f"CASE WHEN {value} IS NULL THEN -1{special} ELSE {bin_code} END"

    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        parts = ", ".join(f"{self._code(i, bins)} AS c{k}" for k, (i, bins) in enumerate(coded))
        groups = self._frame(f"SELECT {parts}, count(*) AS n FROM raw GROUP BY ALL")
        codes: list[AnyArray] = []
        for k, (i, _) in enumerate(coded):
            column, raw = self.columns[i], groups[f"c{k}"]
            words = isinstance(column, CategoricalColumn)
            codes.append(self._read(raw, column) if words else raw.to_numpy(np.int64))
        return codes, groups["n"].to_numpy(np.int64)

    def _read(self, raw: pd.Series, column: Column) -> AnyArray:
        return read_column(raw, column, self._translations[column.name])

    def correlation(self) -> Correlation:
        """Correlations of the terms of all columns, from one pass over the files, a chunk of rows
        at a time.
        """
        products = CrossProducts(self.columns)
        parts = ", ".join(
            f"{self._expressions[c.name]} AS c{k}" for k, c in enumerate(self.columns)
        )
        with self._typed():
            for batch in self._db.sql(f"SELECT {parts} FROM raw").to_arrow_reader(CHUNK_ROWS):
                frame = batch.to_pandas(integer_object_nulls=True)
                products.add([self._read(frame[f"c{k}"], c) for k, c in enumerate(self.columns)])
        return products.correlation()


def list_parquet(path: str | Path) -> list[Path]:
    """The files that a path means: itself, all Parquet files of a folder, or those that fit a
    pattern; never none.

    A file that is there is taken by its name, whatever signs are in it; only else is ``*``, ``?``
    or ``[`` a pattern.

    Raises
    ------
    UnreadableError
        If there is no such file; the message has the most similar name.
    """
    path = Path(path)
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            files = sorted(
                file for file in path.iterdir() if file.suffix.lower() in ENDINGS and file.is_file()
            )
            if not files:
                raise UnreadableError(f"there is no Parquet file in the folder {path}")
            return files
        matching = (
            sorted(Path(name) for name in glob.glob(str(path))) if glob.has_magic(str(path)) else []  # noqa: PTH207
        )
    except (OSError, ValueError) as error:  # a name that is too long, or has a zero byte
        raise UnreadableError(
            f"cannot look for {str(path)[:80]!r}: {getattr(error, 'strerror', error)}"
        ) from None
    return [file for file in matching if file.is_file()] or [existing(path)]


def _bin_code(value: str, edges: list[float], first: int = 0) -> str:
    """SQL for ``first`` plus the number of edges below a value, by bisection: 100 edges cost seven
    comparisons.
    """
    if not edges:
        return str(first)
    half = len(edges) // 2
    below = _bin_code(value, edges[:half], first)
    above = _bin_code(value, edges[half + 1 :], first + half + 1)
    return f"CASE WHEN {value} <= {edges[half]!r} THEN {below} ELSE {above} END"


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _sql_text(value: object) -> str:
    """How DuckDB writes a value as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)
