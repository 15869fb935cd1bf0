"""Parquet files larger than memory, counted by DuckDB.

discover(ParquetRows("people/*.parquet", schema))
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
from edfa.blanket.sources.base import RemoteSource, check_outcome, validate_distinct
from edfa.blanket.sources.correlation import CHUNK_ROWS, Correlation, CrossProducts
from edfa.blanket.sources.parquet_files import column_names, list_parquet
from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.data.values import LARGEST
from edfa.errors import (
    ColumnError,
    DataError,
    EmptyTableError,
    MissingExtraError,
    SettingError,
    UnreadableError,
    hint,
)
from edfa.typing import AnyArray

__all__ = ["ParquetRows"]

MEMORY = "700MB"  # DuckDB's own limit; grouping beyond it spills to disk
MANY_TEXTS = 100_000  # different texts of a column of numbers that are read one by one
MANY_ARMS = 1_000  # texts that SQL translates one by one
WHOLE = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
)
NUMBERS = (*WHOLE, "FLOAT", "DOUBLE", "DECIMAL")


class ParquetRows(RemoteSource):
    """Parquet files, larger than memory if need be, counted by DuckDB (``edfa[scale]``).

    ``path``: a file, a folder of Parquet files, or a pattern such as ``"people/*.parquet"``;
    ``memory``: the most that DuckDB may use, as it writes it; grouping beyond that spills to disk.
    What is wrong with a table in memory is wrong with it here, and the same error.
    """

    def __init__(self, path: str | Path, schema: Schema, memory: str = MEMORY) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("counting Parquet files larger than memory", "scale") from None
        self.target = schema.target
        self._duckdb, self._memory, self._path = duckdb, memory, Path(path)
        types = self._open(list_parquet(path))
        names = sorted([*schema.names, schema.target])
        if absent := [n for n in names if n not in types]:
            raise ColumnError(f"{path} has no column {absent[0]!r}{hint(absent[0], types)}")
        self.n = int(self._value("SELECT count(*) FROM raw"))
        if not self.n:
            raise EmptyTableError(f"{path} has columns but no rows")
        self._expressions: dict[str, str] = {}
        self._set_columns([self._clean(n, *types[n], schema) for n in names])

    def _open(self, files: list[Path]) -> dict[str, tuple[str, str]]:
        """Open the files as the view ``raw``; of each column, by its name in the file: its name and
        type in the view.

        Columns are numbered in the view: a name from outside could be that of another, or differ by
        its case alone.
        """
        names = column_names(files[0])
        paths = ", ".join(
            _quote_text(glob.escape(str(file))) for file in files
        )  # no pattern is left in them
        source = f"read_parquet([{paths}], hive_partitioning = false)"
        # Nothing is fetched: DuckDB would install what a file asks for.
        settings: dict[str, Any] = {
            "memory_limit": self._memory,
            "autoinstall_known_extensions": "false",
        }
        try:
            self._db = self._duckdb.connect(config=settings)
        except self._duckdb.Error as error:
            raise SettingError(
                f"memory: such as '2GB', not {self._memory!r}: {_first_line(error)}"
            ) from None
        with self._typed():
            self._db.execute("SET enable_progress_bar = false")  # a library does not print
            described = self._db.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
            numbered = ", ".join(
                f"{_quote_name(row[0])} AS r{k}" for k, row in enumerate(described)
            )
            self._db.execute(f"CREATE VIEW raw AS SELECT {numbered} FROM {source}")
        return {
            name: (f"r{k}", row[1])
            for k, (name, row) in enumerate(zip(names, described, strict=True))
        }

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
            raise UnreadableError(f"{name} cannot be read: {_first_line(error)}") from None

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._typed():
            rows: list[tuple[Any, ...]] = self._db.execute(query).fetchall()
        return rows

    def _value(self, query: str) -> Any:
        """The first value of the first row."""
        return self._rows(query)[0][0]

    def _clean(self, name: str, column: str, sql_type: str, schema: Schema) -> Column:
        """Clean a column as ``validate_frame`` does, remember the SQL for it, and summarise its
        values.

        The SQL is text of a categorical column, a number else; NULL where it is missing.
        """
        if sql_type.split("(")[0] not in (*NUMBERS, "VARCHAR", "BOOLEAN"):
            raise ColumnError(f"column {name!r} holds neither numbers nor words, but {sql_type}")
        if name == schema.target:
            return self._clean_target(column, sql_type, schema)
        feature = schema[name]
        value = (self._words if feature.words else self._numbers)(column, sql_type, feature, schema)
        if not self._value(f"SELECT count({value}) FROM raw"):
            raise ColumnError(f"column {name!r} has no value in any row; leave it out of the card")
        if feature.levels:
            self._distinct(value, feature, schema)
        if is_categorical(feature, int(self._value(f"SELECT count(DISTINCT {value}) FROM raw"))):
            return self._fit_levels(
                name, value if feature.words else self._as_text(value, "DOUBLE")
            )
        if feature.words:
            value = _lookup(value, {str(level): float(i) for i, level in enumerate(feature.levels)})
        return self._fit_quantiles(
            name, value, [] if feature.words else [float(c) for c in feature.codes]
        )

    def _clean_target(self, column: str, sql_type: str, schema: Schema) -> Column:
        value = self._as_text(column, sql_type)
        value = _null_if_in(value, schema.missing) if sql_type == "VARCHAR" else value
        check_outcome(dict(self._rows(f"SELECT {value}, count(*) FROM raw GROUP BY 1")), schema)
        return self._fit_levels(
            schema.target, _lookup(value, schema.merge) if schema.merge else value
        )

    def _words(self, column: str, sql_type: str, feature: Feature, schema: Schema) -> str:
        """SQL for a feature of words."""
        text = self._as_text(column, sql_type)
        return _null_if_in(text, schema.missing) if sql_type == "VARCHAR" else text

    def _numbers(self, column: str, sql_type: str, feature: Feature, schema: Schema) -> str:
        """SQL for a feature of numbers; ColumnError if one is none, infinite or beyond all
        measurement.
        """
        if sql_type in ("VARCHAR", "BOOLEAN"):
            column = _null_if_in(column, schema.missing) if sql_type == "VARCHAR" else column
            return self._parsed(column, feature, schema)
        number = f"CAST({column} AS DOUBLE)"
        value = f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END"
        if (self._value(f"SELECT max(abs({value})) FROM raw") or 0.0) > LARGEST:
            far = self._value(f"SELECT {value} FROM raw WHERE abs({value}) > {LARGEST!r} LIMIT 1")
            what = "infinite" if math.isinf(far) else f"beyond {LARGEST:g}, no measurement,"
            raise ColumnError(f"column {feature.name!r} is {what} in a row")
        return value

    def _distinct(
        self, value: str, feature: Feature, schema: Schema
    ) -> tuple[pd.Series, pd.Series]:
        """The different values of a column, and what a table in memory makes of them; ColumnError
        if it refuses.
        """
        query = (
            f"SELECT DISTINCT {value} FROM raw WHERE {value} IS NOT NULL "
            f"ORDER BY 1 LIMIT {MANY_TEXTS + 1}"
        )
        raw = pd.Series([row[0] for row in self._rows(query)])
        return raw, validate_distinct(raw, feature, schema)

    def _parsed(self, text: str, feature: Feature, schema: Schema) -> str:
        """SQL for numbers that are written as text, or as truth values."""
        if not self._value(f"SELECT count({text}) FROM raw"):
            return "CAST(NULL AS DOUBLE)"
        raw, numbers = self._distinct(text, feature, schema)
        plain = f"TRY_CAST({text} AS DOUBLE)"
        read = dict(self._rows(f"SELECT DISTINCT {text}, {plain} FROM raw LIMIT {MANY_TEXTS + 2}"))
        if len(raw) <= MANY_TEXTS and all(
            read[t] == n for t, n in zip(raw, numbers.tolist(), strict=True)
        ):
            return plain
        if len(raw) > MANY_ARMS:
            raise ColumnError(
                f"column {feature.name!r} has numbers written as text; store them as numbers"
            )
        return _lookup(
            f"CAST({text} AS VARCHAR)",
            {_sql_text(t): float(n) for t, n in zip(raw, numbers, strict=True)},
        )

    def _as_text(self, column: str, sql_type: str) -> str:
        """SQL for a value as a text as ``to_words`` writes it: a float that is whole has no decimal
        point.
        """
        if sql_type in ("DOUBLE", "FLOAT"):
            number = f"(CAST({column} AS DOUBLE) + 0.0)"  # -0.0 is 0.0
            whole = f"{number} = floor({number}) AND abs({number}) < {2**53}"
            known = f"{number} IS NOT NULL AND NOT isnan({number})"
            short = f"CAST(CAST({number} AS BIGINT) AS VARCHAR)"
            return (
                f"CASE WHEN {known} AND {whole} THEN {short} WHEN {known} "
                f"THEN CAST({number} AS VARCHAR) END"
            )
        if sql_type == "BOOLEAN":
            return f"CASE {column} WHEN TRUE THEN 'True' WHEN FALSE THEN 'False' END"
        return column if sql_type == "VARCHAR" else f"CAST({column} AS VARCHAR)"

    def _fit_levels(self, name: str, value: str) -> CategoricalColumn:
        self._expressions[name] = value
        counts = dict(self._rows(f"SELECT {value}, count(*) FROM raw GROUP BY 1"))
        missing = counts.pop(None, 0)
        return CategoricalColumn.fit(name, counts, bool(missing))

    def _fit_quantiles(self, name: str, value: str, codes: Sequence[float]) -> ContinuousColumn:
        self._expressions[name] = value
        special = tuple(
            c for c in codes if self._value(f"SELECT bool_or({value} = {c!r}) FROM raw")
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
        """SQL for a column's code; levels stay text until ``_count_groups`` has them back."""
        column, value = self.columns[index], self._expressions[self.columns[index].name]
        if isinstance(column, CategoricalColumn):
            return value
        edges = column.edges(bins)
        special = "".join(
            f" WHEN {value} = {s!r} THEN {len(edges) + 1 + k}"
            for k, s in enumerate(column.special_values)
        )
        bin_code = _bin_code(value, edges.tolist())
        return f"CASE WHEN {value} IS NULL THEN NULL{special} ELSE {bin_code} END"

    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        parts = ", ".join(f"{self._code(i, bins)} AS c{k}" for k, (i, bins) in enumerate(coded))
        names = [f"c{k}" for k in range(len(coded))]
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        query = (
            f"SELECT {', '.join(names)}, count(*) AS n FROM (SELECT {parts} "
            f"FROM raw) WHERE {known} GROUP BY ALL"
        )
        with self._typed():
            groups = self._db.execute(query).df()
        codes = [
            self.columns[i].read(groups[name])
            if isinstance(self.columns[i], CategoricalColumn)
            else groups[name].to_numpy(np.int64)
            for name, (i, _) in zip(names, coded, strict=True)
        ]
        return codes, groups["n"].to_numpy(np.int64)

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
                frame = batch.to_pandas()
                products.add([c.read(frame[f"c{k}"]) for k, c in enumerate(self.columns)])
        return products.correlation()


def _bin_code(value: str, edges: list[float], first: int = 0) -> str:
    """SQL for ``first`` plus the number of edges below a value, by bisection: 100 edges cost seven
    comparisons.
    """
    if not edges:
        return str(first)
    half = len(edges) // 2
    below, above = (
        _bin_code(value, edges[:half], first),
        _bin_code(value, edges[half + 1 :], first + half + 1),
    )
    return f"CASE WHEN {value} <= {edges[half]!r} THEN {below} ELSE {above} END"


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _sql_text(value: object) -> str:
    """How DuckDB writes a value as text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lookup(value: str, mapping: Mapping[str, str] | Mapping[str, float]) -> str:
    """SQL that maps a text by a dictionary, NULL if it is not in it; numbers become DOUBLE."""
    arms = [
        f"WHEN {_quote_text(k)} THEN {_quote_text(v) if isinstance(v, str) else f'{v!r}::DOUBLE'}"
        for k, v in mapping.items()
        if v == v  # a text that means nothing is NULL
    ]
    return f"CASE {value} {' '.join(arms)} ELSE NULL END"


def _null_if_in(column: str, listed: Sequence[str]) -> str:
    """SQL for a text that is NULL where it is empty, or one of those ``listed`` as missing."""
    missing = ("", *listed)
    return (
        f"CASE WHEN {column} IN "
        f"({', '.join(map(_quote_text, missing))}) THEN NULL ELSE {column} END"
    )


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
