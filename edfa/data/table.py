"""Rows with their schema, split into train, calibration and test by a seed."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder
from edfa.data.feature import Feature
from edfa.data.read import read_csv, read_parquet
from edfa.data.schema import Schema
from edfa.data.validate import find_classes, tidy, to_pandas
from edfa.errors import DataError, EmptyTableError
from edfa.typing import Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Table"]

Part = Literal["all", "train", "calibration", "test"]
PARTS: tuple[Part, ...] = ("train", "calibration", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """People, one row each. Made by ``from_frame``, ``from_csv``, ``from_parquet`` or ``edfa.load``.

    ``train``, ``calibration`` and ``test`` are Tables too; all share one encoder, fitted on the training part
    alone. The split is stratified by outcome and depends on the seed and nothing else.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> len(table.train), len(table.calibration), len(table.test)
    (600, 200, 200)
    >>> table.train.X.shape, table.schema.classes[table.train.y[0]]
    ((600, 20), 'bad')
    """

    frame: pd.DataFrame
    schema: Schema
    name: str = "table"
    seed: int = 0
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    part: Part = "all"
    fitted: Encoder | None = None
    origin: "Table | None" = None

    def __post_init__(self) -> None:
        if min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9 or len(self.shares) != 3 or self.shares[0] == 0:
            raise DataError(f"shares must be three parts of 1 with a training part, not {self.shares}")

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        schema: Schema | str | Path,
        *,
        name: str = "table",
        seed: int = 0,
        shares: tuple[float, float, float] = (0.6, 0.2, 0.2),
        cap: int | None = None,
    ) -> Self:
        """From a pandas, polars or pyarrow frame, and a schema or the path of its card.

        ``shares`` are those of train, calibration and test; ``cap`` keeps at most that many rows, drawn in the
        classes' proportions.
        """
        schema = schema if isinstance(schema, Schema) else Schema.read(schema)
        rows = tidy(to_pandas(frame), schema)
        schema = schema.with_classes(find_classes(rows[schema.target], schema))
        table = cls(rows, schema, name, seed, shares)
        return table if cap is None or cap >= len(rows) else table._capped(cap)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        schema: Schema | str | Path,
        *,
        encoding: str = "utf-8-sig",
        separator: str = ",",
        **options: Any,
    ) -> Self:
        """From a CSV file; options as in ``from_frame``."""
        frame = read_csv(path, encoding, separator)
        return cls.from_frame(frame, schema, **{"name": Path(path).stem, **options})

    @classmethod
    def from_parquet(cls, path: str | Path, schema: Schema | str | Path, **options: Any) -> Self:
        """From a Parquet file; options as in ``from_frame``."""
        return cls.from_frame(read_parquet(path), schema, **{"name": Path(path).stem, **options})

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        part = "" if self.part == "all" else f" ({self.part})"
        return (
            f"<Table {self.name}{part}: {len(self):,} rows, {len(self.schema)} features, target {self.schema.target!r}>"
        )

    def _repr_html_(self) -> str:
        return str(self.describe().to_html(na_rep=""))

    @cached_property
    def X(self) -> Float32Array:  # noqa: N802  (the name every estimator uses)
        """The features as numbers, without NaN; see ``edfa.data.encode``."""
        return self.encoder.encode(self.frame)

    @cached_property
    def y(self) -> Int64Array:
        """The outcome as the position of its class in ``schema.classes``."""
        return pd.Index(self.schema.classes).get_indexer(pd.Index(self.frame[self.schema.target])).astype(np.int64)

    @cached_property
    def encoder(self) -> Encoder:
        """Fitted on the training part, whichever part this is."""
        return self.fitted or self.train.encoder

    @cached_property
    def train(self) -> "Table":
        """What may be learnt from."""
        return self._take("train")

    @property
    def reference(self) -> "Table":
        """The training part, whichever part this is."""
        return self if self.part == "train" else (self.origin or self).train

    @cached_property
    def calibration(self) -> "Table":
        """What certificates are made on."""
        return self._take("calibration")

    @cached_property
    def test(self) -> "Table":
        """What results are told on."""
        return self._take("test")

    def split(self, seed: int, shares: tuple[float, float, float] | None = None) -> "Table":
        """The same rows, split anew."""
        self._check_whole()
        return Table(self.frame, self.schema, self.name, seed, shares or self.shares)

    def describe(self) -> pd.DataFrame:
        """One row a feature: what the card says, and what the rows show."""
        card = self.schema.frame()[["kind", "cost", "start", "sensitive", "change", "unit"]]
        seen = self.frame[list(self.schema.names)]
        return card.assign(
            missing=seen.isna().mean(), distinct=seen.nunique(), values=[_values(seen[f.name], f) for f in self.schema]
        )

    def _check_whole(self) -> None:
        if self.part != "all":
            raise DataError(f"this is the {self.part} part of {self.name!r} already; split the whole table")

    def _take(self, part: Part) -> "Table":
        self._check_whole()
        if not len(rows := self._rows[part]):
            raise EmptyTableError(
                f"the {part} part of {self.name!r} is empty; its share is {self.shares[PARTS.index(part)]:g}"
            )
        frame = self.frame.iloc[rows].reset_index(drop=True)
        fitted = Encoder.fit(frame, self.schema) if part == "train" else self.encoder
        return replace(self, frame=frame, part=part, fitted=fitted, origin=self)

    @cached_property
    def _rows(self) -> dict[Part, IntArray]:
        """The row numbers of each part, in their order in the table."""
        random = np.random.default_rng(self.seed)
        parts: list[list[IntArray]] = [[], [], []]
        for code in range(len(self.schema.classes)):
            members = random.permutation(np.flatnonzero(self.y == code))
            ends = np.cumsum(_allocate(len(members), np.array(self.shares)))
            for rows, chosen in zip(parts, np.split(members, ends[:-1]), strict=True):
                rows.append(chosen)
        return {part: np.sort(np.concatenate(rows)) for part, rows in zip(PARTS, parts, strict=True)}

    def _capped(self, cap: int) -> Self:
        counts = np.bincount(self.y, minlength=len(self.schema.classes))
        if cap < 3 * len(counts):
            raise DataError(f"a cap of {cap} rows cannot hold three of each of the {len(counts)} classes")
        keep = _allocate(cap, counts / counts.sum())
        random = np.random.default_rng(self.seed)
        drawn = [random.permutation(np.flatnonzero(self.y == c))[:k] for c, k in enumerate(keep)]
        return replace(self, frame=self.frame.iloc[np.sort(np.concatenate(drawn))].reset_index(drop=True))


def _allocate(total: int, shares: Float64Array) -> Int64Array:
    """Whole numbers in proportion that add up to the total, none zero whose share is not."""
    exact = total * shares
    counts = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact, kind="stable")[: total - counts.sum()]
    counts[rest] += 1
    for i in np.flatnonzero((counts == 0) & (shares > 0)):
        counts[counts.argmax()] -= 1
        counts[i] += 1
    return counts


def _values(column: pd.Series, feature: Feature) -> str:
    """What a column holds, in a few words."""
    if not feature.words:
        known = column[~column.isin([float(code) for code in feature.codes])] if feature.codes else column
        return f"{known.min():,.10g} to {known.max():,.10g}"
    counts = column.value_counts()
    return ", ".join(counts.index[:3]) + (", …" if len(counts) > 3 else "")
