"""Tables: rows with their schema, split into train, calibration and test by a seed."""

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
from edfa.data.validate import find_classes, validate_frame
from edfa.errors import DataError, EmptyTableError, SettingError
from edfa.settings import check_seed
from edfa.typing import Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["Table"]

Part = Literal["all", "train", "calibration", "test"]
PARTS: tuple[Part, ...] = ("train", "calibration", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """People, one row each, with their schema. Made by ``from_frame``, ``from_csv``,
    ``from_parquet`` or ``edfa.load``.

    ``train``, ``calibration`` and ``test`` are Tables too; all share one encoder, fitted on the
    training part alone. The split is stratified by outcome and depends on the seed and nothing
    else.

    Parameters
    ----------
    frame
        The validated rows: the schema's features in order, and the outcome last.
    schema
        The features and the outcome, with its classes.
    name, seed, shares
        As in ``from_frame``.
    part
        Which part of a split this is; ``"all"`` for a whole table.
    fitted
        The encoder of a part; None for a whole table, which takes that of its training part.
    origin
        The whole table of a part; None for a whole table.

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
        check_seed(self.seed)
        if (
            min(self.shares) < 0
            or abs(sum(self.shares) - 1) > 1e-9
            or len(self.shares) != 3
            or self.shares[0] == 0
        ):
            raise SettingError(
                f"shares must be three parts of 1 with a training part, not {self.shares}"
            )

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
        """Make a table from a data frame, validated against a schema.

        Parameters
        ----------
        frame
            A pandas, polars or pyarrow frame, one row a person. Columns that the schema does not
            name are left out.
        schema
            A schema, or the path of its card.
        name
            The name of the table, for people.
        seed
            Decides the split, and which rows a cap keeps.
        shares
            The shares of train, calibration and test, which add up to 1; train's is not 0.
        cap
            The largest number of rows; more are thinned out at random, in the classes' proportions.
            None: no limit.

        Raises
        ------
        DataError
            If the frame does not fit the schema; the subclass and the message say how.
        SettingError
            If the shares are not three parts of 1, or the cap is too small for three rows of each
            class.
        """
        schema = schema if isinstance(schema, Schema) else Schema.read(schema)
        rows = validate_frame(frame, schema)
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
        name: str | None = None,
        seed: int = 0,
        shares: tuple[float, float, float] = (0.6, 0.2, 0.2),
        cap: int | None = None,
    ) -> Self:
        """Make a table from a CSV file; the name is the file's unless given, the rest is as in
        ``from_frame``.
        """
        schema = schema if isinstance(schema, Schema) else Schema.read(schema)
        frame = read_csv(path, encoding, separator, schema)
        name = Path(path).stem if name is None else name
        return cls.from_frame(frame, schema, name=name, seed=seed, shares=shares, cap=cap)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        schema: Schema | str | Path,
        *,
        name: str | None = None,
        seed: int = 0,
        shares: tuple[float, float, float] = (0.6, 0.2, 0.2),
        cap: int | None = None,
    ) -> Self:
        """Make a table from a Parquet file; the name is the file's unless given, the rest is as in
        ``from_frame``.
        """
        name = Path(path).stem if name is None else name
        return cls.from_frame(
            read_parquet(path), schema, name=name, seed=seed, shares=shares, cap=cap
        )

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        part = "" if self.part == "all" else f" ({self.part})"
        return (
            f"<Table {self.name}{part}: {len(self):,} rows, {len(self.schema)} "
            f"features, target {self.schema.target!r}>"
        )

    def _repr_html_(self) -> str:
        return str(self.describe().to_html(na_rep=""))

    @cached_property
    def X(self) -> Float32Array:  # noqa: N802  (the name every estimator uses)
        """The encoded features, (people, features), without NaN; see ``edfa.data.encode``."""
        return self.encoder.encode(self.frame)

    @cached_property
    def y(self) -> Int64Array:
        """The outcomes, (people,), each as the position of its class in ``schema.classes``."""
        return (
            pd.Index(self.schema.classes)
            .get_indexer(pd.Index(self.frame[self.schema.target]))
            .astype(np.int64)
        )

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder, fitted on the training part whichever part this is."""
        return self.fitted or self.train.encoder

    @cached_property
    def train(self) -> "Table":
        """The part that models, blankets and searchers learn from."""
        return self._take("train")

    @property
    def reference(self) -> "Table":
        """The training part of the whole table, whichever part this is."""
        return self if self.part == "train" else (self.origin or self).train

    @cached_property
    def calibration(self) -> "Table":
        """The part that certificates are made on."""
        return self._take("calibration")

    @cached_property
    def test(self) -> "Table":
        """The part that results are reported on."""
        return self._take("test")

    def split(self, seed: int, shares: tuple[float, float, float] | None = None) -> "Table":
        """The same rows with another split; ``shares`` stay as they are if None."""
        self._check_whole()
        return Table(self.frame, self.schema, self.name, seed, shares or self.shares)

    def describe(self) -> pd.DataFrame:
        """A data frame with one row a feature: keys of the card, the share of missing values, and
        what values occur.
        """
        card = self.schema.frame()[["kind", "cost", "start", "sensitive", "change", "unit"]]
        rows = self.frame[list(self.schema.names)]
        return card.assign(
            missing=rows.isna().mean(),
            distinct=rows.nunique(),
            values=[_values(rows[f.name], f) for f in self.schema],
        )

    def _check_whole(self) -> None:
        """Raise DataError if this is a part of a split."""
        if self.part != "all":
            raise DataError(
                f"this is the {self.part} part of {self.name!r} already; split the whole table"
            )

    def _take(self, part: Part) -> "Table":
        """One part of the split as a Table; EmptyTableError if it has no rows."""
        self._check_whole()
        if not len(rows := self._rows[part]):
            raise EmptyTableError(
                f"the {part} part of {self.name!r} is empty; its share is "
                f"{self.shares[PARTS.index(part)]:g}"
            )
        frame = self.frame.iloc[rows].reset_index(drop=True)
        fitted = Encoder.fit(frame, self.schema) if part == "train" else self.encoder
        return replace(self, frame=frame, part=part, fitted=fitted, origin=self)

    @cached_property
    def _rows(self) -> dict[Part, IntArray]:
        """The row numbers of each part, ascending."""
        random = np.random.default_rng(self.seed)
        parts: list[list[IntArray]] = [[], [], []]
        for code in range(len(self.schema.classes)):
            members = random.permutation(np.flatnonzero(self.y == code))
            ends = np.cumsum(_allocate(len(members), np.array(self.shares)))
            for rows, members_of_part in zip(parts, np.split(members, ends[:-1]), strict=True):
                rows.append(members_of_part)
        return {
            part: np.sort(np.concatenate(rows)) for part, rows in zip(PARTS, parts, strict=True)
        }

    def _capped(self, cap: int) -> Self:
        """A table of ``cap`` of these rows, drawn at random in the classes' proportions."""
        counts = np.bincount(self.y, minlength=len(self.schema.classes))
        if cap < 3 * len(counts):
            raise SettingError(
                f"a cap of {cap} rows cannot hold three of each of the {len(counts)} classes"
            )
        sizes = _allocate(cap, counts / counts.sum())
        random = np.random.default_rng(self.seed)
        rows = [
            random.permutation(np.flatnonzero(self.y == code))[:size]
            for code, size in enumerate(sizes)
        ]
        return replace(
            self, frame=self.frame.iloc[np.sort(np.concatenate(rows))].reset_index(drop=True)
        )


def _allocate(total: int, shares: Float64Array) -> Int64Array:
    """Whole numbers in proportion to ``shares``, (parts,), that add up to ``total``; 0 only where
    the share is 0.
    """
    exact = total * shares
    counts = np.floor(exact).astype(np.int64)
    largest_remainders = np.argsort(counts - exact, kind="stable")[: total - counts.sum()]
    counts[largest_remainders] += 1
    for i in np.flatnonzero((counts == 0) & (shares > 0)):
        counts[counts.argmax()] -= 1
        counts[i] += 1
    return counts


def _values(column: pd.Series, feature: Feature) -> str:
    """The range of a column of numbers, or the most frequent values of one of strings, for
    people.
    """
    if not feature.words:
        known = (
            column[~column.isin([float(code) for code in feature.codes])]
            if feature.codes
            else column
        )
        return f"{known.min():,.10g} to {known.max():,.10g}"
    counts = column.value_counts()
    return ", ".join(counts.index[:3]) + (", …" if len(counts) > 3 else "")
