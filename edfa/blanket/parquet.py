"""Parquet files larger than memory, counted by DuckDB.

discover(ParquetRows("people/*.parquet", schema))
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edfa.blanket.columns import Numbers, Words, ranks, tail_ranks
from edfa.blanket.counts import CHUNK, Column, Correlation, Gram
from edfa.blanket.opening import is_counted
from edfa.blanket.remote import Remote
from edfa.data.schema import Schema
from edfa.errors import ColumnError, DataError, MissingExtraError, UnreadableError, hint
from edfa.typing import AnyArray

__all__ = ["ParquetRows"]

MEMORY = "700MB"  # DuckDB's own limit; grouping beyond it spills to disk


class ParquetRows(Remote):
    """Parquet files, larger than memory if need be, counted by DuckDB (``edfa[scale]``)."""

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
            self._db.execute(f"CREATE VIEW raw AS SELECT * FROM read_parquet({_text(str(path))})")
        except duckdb.Error as error:
            raise UnreadableError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
        described = self._db.execute("DESCRIBE raw").fetchall()
        kinds = {row[0]: row[1] for row in described}
        names = sorted([*schema.names, schema.target])
        if absent := [n for n in names if n not in kinds]:
            raise ColumnError(f"{path} has no column {absent[0]!r}{hint(absent[0], kinds)}")
        self._expressions = {n: self._expression(n, kinds[n], schema) for n in names}
        self.n = int(self._one("SELECT count(*) FROM raw"))
        fitted = [self._fit(n, schema) for n in names]
        self._keep(fitted)

    def _one(self, query: str) -> Any:
        rows = self._ask(query).fetchall()
        return rows[0][0] if rows else None

    def _ask(self, query: str) -> Any:
        try:
            return self._db.execute(query)
        except self._duckdb.OutOfMemoryException:
            raise DataError(f"DuckDB needs more than {self._memory} for this table; pass memory='2GB'") from None

    def _expression(self, name: str, kind: str, schema: Schema) -> str:
        """SQL for the column as words (VARCHAR) or numbers (DOUBLE), as ``validate_frame`` would make it."""
        column, text = _name(name), _word(_name(name), kind)
        if schema.missing and kind == "VARCHAR":
            column = text = _nulled(column, schema.missing)
        if name == schema.target:
            return _case(text, schema.merge) if schema.merge else text
        feature = schema[name]
        if is_counted(feature, int(self._one(f"SELECT count(DISTINCT {column}) FROM raw"))):
            return text
        if feature.words:
            return _case(text, {str(level): i for i, level in enumerate(feature.levels)})
        return f"CAST({column} AS DOUBLE)"

    def _fit(self, name: str, schema: Schema) -> Column:
        value = self._expressions[name]
        if self._one(f"SELECT typeof({value}) FROM raw LIMIT 1") == "VARCHAR":
            counts = dict(self._ask(f"SELECT {value} AS v, count(*) FROM raw GROUP BY v").fetchall())
            gaps = counts.pop(None, 0)
            return Words.fit(name, counts, bool(gaps))
        codes = [float(c) for c in schema[name].codes] if name != schema.target else []
        states = tuple(c for c in codes if self._one(f"SELECT bool_or({value} = {c!r}) FROM raw"))
        known = f"{value} IS NOT NULL AND NOT isnan({value})" + "".join(f" AND {value} <> {c!r}" for c in states)
        n = int(self._one(f"SELECT count(*) FROM raw WHERE {known}"))
        if not n:
            return Numbers(name, (0.0,) * len(ranks(1)), states, True)
        inner, outer = ranks(n), tail_ranks(n)
        places = ", ".join(repr((r - 0.5) / n) for r in (*inner.tolist(), *outer.tolist()))
        grid = self._one(f"SELECT quantile_disc({value}, [{places}]) FROM raw WHERE {known}")
        gaps = self._one(f"SELECT bool_or({value} IS NULL OR isnan({value})) FROM raw")
        found = tuple(float(q) for q in grid)
        return Numbers(name, found[: len(inner)], states, bool(gaps), found[len(inner) :])

    def _code(self, i: int, bins: int) -> str:
        """SQL for a column's code; words stay words until they are back here."""
        column, value = self.columns[i], self._expressions[self.columns[i].name]
        if isinstance(column, Words):
            return value
        edges = column.edges[bins]
        states = "".join(f" WHEN {value} = {s!r} THEN {len(edges) + 1 + k}" for k, s in enumerate(column.states))
        return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL{states} ELSE {_bin(value, edges.tolist())} END"

    def _groups(self, which: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        parts = ", ".join(f"{self._code(i, bins)} AS c{k}" for k, (i, bins) in enumerate(which))
        names = [f"c{k}" for k in range(len(which))]
        some = " AND ".join(f"{name} IS NOT NULL" for name in names)
        query = f"SELECT {', '.join(names)}, count(*) AS n FROM (SELECT {parts} FROM raw) WHERE {some} GROUP BY ALL"
        groups = self._ask(query).df()
        codes = [
            self.columns[i].read(groups[name])
            if isinstance(self.columns[i], Words)
            else groups[name].to_numpy(np.int64)
            for name, (i, _) in zip(names, which, strict=True)
        ]
        return codes, groups["n"].to_numpy(np.int64)

    def correlation(self) -> Correlation:
        """One pass over the files, a chunk at a time."""
        gram = Gram(self.columns)
        parts = ", ".join(f"{self._expressions[c.name]} AS c{k}" for k, c in enumerate(self.columns))
        rows: Any = self._db.sql(f"SELECT {parts} FROM raw")
        for batch in rows.to_arrow_reader(CHUNK):
            frame = batch.to_pandas()
            gram.add([c.read(frame[f"c{k}"]) for k, c in enumerate(self.columns)])
        return gram.correlation()


def _bin(value: str, edges: list[float], first: int = 0) -> str:
    """SQL for how many edges lie below a value, by bisection: a hundred edges cost seven comparisons."""
    if not edges:
        return str(first)
    half = len(edges) // 2
    below, above = _bin(value, edges[:half], first), _bin(value, edges[half + 1 :], first + half + 1)
    return f"CASE WHEN {value} <= {edges[half]!r} THEN {below} ELSE {above} END"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _case(value: str, mapping: Mapping[str, str] | Mapping[str, int]) -> str:
    """SQL for a look-up; numbers come out as DOUBLE."""
    arms = [f"WHEN {_text(k)} THEN {_text(v) if isinstance(v, str) else f'{v}::DOUBLE'}" for k, v in mapping.items()]
    return f"CASE {value} {' '.join(arms)} ELSE NULL END"


def _nulled(column: str, missing: Sequence[str]) -> str:
    return f"CASE WHEN {column} IN ({', '.join(map(_text, missing))}) THEN NULL ELSE {column} END"


def _word(column: str, kind: str) -> str:
    """SQL for a value in words: whole floats without a point, truth values as Python writes them."""
    text = f"CAST({column} AS VARCHAR)"
    if kind in ("DOUBLE", "FLOAT"):
        return f"CASE WHEN {column} = floor({column}) THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE {text} END"
    if kind == "BOOLEAN":
        return f"CASE {column} WHEN TRUE THEN 'True' WHEN FALSE THEN 'False' END"
    return text
