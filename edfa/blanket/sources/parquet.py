"""Parquet files larger than memory, counted by DuckDB.

discover(ParquetRows("people/*.parquet", schema))
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edfa.blanket.columns import CategoricalColumn, Column, ContinuousColumn, grid_ranks, is_categorical, tail_ranks
from edfa.blanket.sources.base import RemoteSource
from edfa.blanket.sources.correlation import CHUNK_ROWS, Correlation, CrossProducts
from edfa.data.schema import Schema
from edfa.errors import ColumnError, DataError, MissingExtraError, UnreadableError, hint
from edfa.typing import AnyArray

__all__ = ["ParquetRows"]

MEMORY = "700MB"  # DuckDB's own limit; grouping beyond it spills to disk


class ParquetRows(RemoteSource):
    """Parquet files, larger than memory if need be, counted by DuckDB (``edfa[scale]``).

    ``path``: a file or a pattern such as ``"people/*.parquet"``; ``memory``: the most that DuckDB may use, as it writes
    it; grouping beyond that spills to disk.
    """

    def __init__(self, path: str | Path, schema: Schema, memory: str = MEMORY) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("counting Parquet files larger than memory", "scale") from None
        self.target = schema.target
        self._duckdb, self._memory = duckdb, memory
        self._db = duckdb.connect(config={"memory_limit": memory})
        self._db.execute("SET enable_progress_bar = false")  # a library does not print
        try:
            self._db.execute(f"CREATE VIEW raw AS SELECT * FROM read_parquet({_quote_text(str(path))})")
        except duckdb.Error as error:
            raise UnreadableError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
        types = {row[0]: row[1] for row in self._db.execute("DESCRIBE raw").fetchall()}
        names = sorted([*schema.names, schema.target])
        if absent := [n for n in names if n not in types]:
            raise ColumnError(f"{path} has no column {absent[0]!r}{hint(absent[0], types)}")
        self._expressions = {n: self._expression(n, types[n], schema) for n in names}
        self.n = int(self._query_value("SELECT count(*) FROM raw"))
        self._set_columns([self._fit_column(n, schema) for n in names])

    def _query_value(self, query: str) -> Any:
        """The first value of the first row, None if there is no row."""
        rows = self._query(query).fetchall()
        return rows[0][0] if rows else None

    def _query(self, query: str) -> Any:
        try:
            return self._db.execute(query)
        except self._duckdb.OutOfMemoryException:
            raise DataError(f"DuckDB needs more than {self._memory} for this table; pass memory='2GB'") from None

    def _expression(self, name: str, sql_type: str, schema: Schema) -> str:
        """SQL for a column as text (VARCHAR) or number (DOUBLE), cleaned as ``validate_frame`` does."""
        column, text = _quote_name(name), _as_text(_quote_name(name), sql_type)
        if schema.missing and sql_type == "VARCHAR":
            column = text = _null_if_in(column, schema.missing)
        if name == schema.target:
            return _lookup(text, schema.merge) if schema.merge else text
        feature = schema[name]
        if is_categorical(feature, int(self._query_value(f"SELECT count(DISTINCT {column}) FROM raw"))):
            return text
        if feature.words:
            return _lookup(text, {str(level): i for i, level in enumerate(feature.levels)})
        return f"CAST({column} AS DOUBLE)"

    def _fit_column(self, name: str, schema: Schema) -> Column:
        """Query the levels or the quantiles of a column."""
        value = self._expressions[name]
        if self._query_value(f"SELECT typeof({value}) FROM raw LIMIT 1") == "VARCHAR":
            counts = dict(self._query(f"SELECT {value} AS v, count(*) FROM raw GROUP BY v").fetchall())
            missing = counts.pop(None, 0)
            return CategoricalColumn.fit(name, counts, bool(missing))
        codes = [float(c) for c in schema[name].codes] if name != schema.target else []
        special = tuple(c for c in codes if self._query_value(f"SELECT bool_or({value} = {c!r}) FROM raw"))
        measured = f"{value} IS NOT NULL AND NOT isnan({value})" + "".join(f" AND {value} <> {c!r}" for c in special)
        n = int(self._query_value(f"SELECT count(*) FROM raw WHERE {measured}"))
        if not n:
            return ContinuousColumn(name, (0.0,) * len(grid_ranks(1)), special, True)
        inner, outer = grid_ranks(n), tail_ranks(n)
        shares = ", ".join(repr((rank - 0.5) / n) for rank in (*inner.tolist(), *outer.tolist()))
        quantiles = self._query_value(f"SELECT quantile_disc({value}, [{shares}]) FROM raw WHERE {measured}")
        missing = self._query_value(f"SELECT bool_or({value} IS NULL OR isnan({value})) FROM raw")
        values = tuple(float(q) for q in quantiles)
        return ContinuousColumn(name, values[: len(inner)], special, bool(missing), values[len(inner) :])

    def _code(self, index: int, bins: int) -> str:
        """SQL for a column's code; levels stay text until ``_count_groups`` has them back."""
        column, value = self.columns[index], self._expressions[self.columns[index].name]
        if isinstance(column, CategoricalColumn):
            return value
        edges = column.edges(bins)
        special = "".join(
            f" WHEN {value} = {s!r} THEN {len(edges) + 1 + k}" for k, s in enumerate(column.special_values)
        )
        bin_code = _bin_code(value, edges.tolist())
        return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL{special} ELSE {bin_code} END"

    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        parts = ", ".join(f"{self._code(i, bins)} AS c{k}" for k, (i, bins) in enumerate(coded))
        names = [f"c{k}" for k in range(len(coded))]
        known = " AND ".join(f"{name} IS NOT NULL" for name in names)
        query = f"SELECT {', '.join(names)}, count(*) AS n FROM (SELECT {parts} FROM raw) WHERE {known} GROUP BY ALL"
        groups = self._query(query).df()
        codes = [
            self.columns[i].read(groups[name])
            if isinstance(self.columns[i], CategoricalColumn)
            else groups[name].to_numpy(np.int64)
            for name, (i, _) in zip(names, coded, strict=True)
        ]
        return codes, groups["n"].to_numpy(np.int64)

    def correlation(self) -> Correlation:
        """Correlations of the terms of all columns, from one pass over the files, a chunk of rows at a time."""
        products = CrossProducts(self.columns)
        parts = ", ".join(f"{self._expressions[c.name]} AS c{k}" for k, c in enumerate(self.columns))
        rows: Any = self._db.sql(f"SELECT {parts} FROM raw")
        for batch in rows.to_arrow_reader(CHUNK_ROWS):
            frame = batch.to_pandas()
            products.add([c.read(frame[f"c{k}"]) for k, c in enumerate(self.columns)])
        return products.correlation()


def _bin_code(value: str, edges: list[float], first: int = 0) -> str:
    """SQL for ``first`` plus the number of edges below a value, by bisection: 100 edges cost seven comparisons."""
    if not edges:
        return str(first)
    half = len(edges) // 2
    below, above = _bin_code(value, edges[:half], first), _bin_code(value, edges[half + 1 :], first + half + 1)
    return f"CASE WHEN {value} <= {edges[half]!r} THEN {below} ELSE {above} END"


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _lookup(value: str, mapping: Mapping[str, str] | Mapping[str, int]) -> str:
    """SQL that maps a text by a dictionary, NULL if it is not in it; numbers become DOUBLE."""
    arms = [
        f"WHEN {_quote_text(k)} THEN {_quote_text(v) if isinstance(v, str) else f'{v}::DOUBLE'}"
        for k, v in mapping.items()
    ]
    return f"CASE {value} {' '.join(arms)} ELSE NULL END"


def _null_if_in(column: str, missing: Sequence[str]) -> str:
    """SQL for a column whose values in ``missing`` are NULL."""
    return f"CASE WHEN {column} IN ({', '.join(map(_quote_text, missing))}) THEN NULL ELSE {column} END"


def _as_text(column: str, sql_type: str) -> str:
    """SQL for a value as text: whole floats without a decimal point, truth values as Python writes them."""
    text = f"CAST({column} AS VARCHAR)"
    if sql_type in ("DOUBLE", "FLOAT"):
        return f"CASE WHEN {column} = floor({column}) THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE {text} END"
    if sql_type == "BOOLEAN":
        return f"CASE {column} WHEN TRUE THEN 'True' WHEN FALSE THEN 'False' END"
    return text
