"""Tables: rows with their schema, split into train, calibration and test by a seed.

``validate_frame`` holds a data frame against a schema. A validated frame has the schema's columns:
numbers are finite or null, words are strings or null, and the outcome is one of the classes in
every row. Null means "not recorded"; "not acquired" does not exist at this stage.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder
from edfa.data.read import read_csv, read_parquet
from edfa.data.schema import Feature, Schema
from edfa.data.values import (
    LARGEST_NUMBER,
    check_columns,
    check_names,
    find_gaps,
    find_missing,
    match_level,
    read_numbers,
    to_pandas,
    to_words,
)
from edfa.errors import (
    ColumnError,
    DataError,
    EmptyTableError,
    SettingError,
    TargetError,
    hint,
)
from edfa.reading import check_seed, shorten
from edfa.typing import AnyArray, Float32Array, Float64Array, Int64Array, IntArray

Part = Literal["all", "train", "calibration", "test"]
PARTS: tuple[Part, ...] = ("train", "calibration", "test")
Shares = tuple[float, float, float]
"""Shares of the three parts, in the order of ``PARTS``; they add up to 1."""
SHARES: Shares = (0.6, 0.2, 0.2)


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
    shares: Shares = SHARES
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
        shares: Shares = SHARES,
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
            The shares of train, calibration and test, which add up to 1; train's is not 0. By
            default three fifths, one fifth and one fifth.
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
        schema = replace(schema, classes=find_classes(rows[schema.target], schema))
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
        shares: Shares = SHARES,
        cap: int | None = None,
    ) -> Self:
        """Make a table from a CSV file.

        Parameters
        ----------
        path
            The file, which may be compressed (``.csv.gz``, ``.csv.bz2``, ``.csv.xz``,
            ``.csv.zip``).
        schema
            A schema, or the path of its card.
        encoding, separator
            How the file's text is encoded, and the character between two cells.
        name
            The name of the table; None: the file's.
        seed, shares, cap
            As in ``from_frame``.

        Raises
        ------
        DataError
            If the file cannot be read, or does not fit the schema.
        """
        schema = schema if isinstance(schema, Schema) else Schema.read(schema)
        frame = read_csv(path, encoding, separator, schema)
        name = name or Path(path).stem
        return cls.from_frame(frame, schema, name=name, seed=seed, shares=shares, cap=cap)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        schema: Schema | str | Path,
        *,
        name: str | None = None,
        seed: int = 0,
        shares: Shares = SHARES,
        cap: int | None = None,
    ) -> Self:
        """Make a table from a Parquet file.

        Parameters
        ----------
        path
            The file.
        schema
            A schema, or the path of its card.
        name
            The name of the table; None: the file's.
        seed, shares, cap
            As in ``from_frame``.

        Raises
        ------
        DataError
            If the file cannot be read, or does not fit the schema.
        """
        frame, name = read_parquet(path), name or Path(path).stem
        return cls.from_frame(frame, schema, name=name, seed=seed, shares=shares, cap=cap)

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
        classes = pd.Categorical(self.frame[self.schema.target], self.schema.classes)
        return classes.codes.astype(np.int64)

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

    def split(self, seed: int, shares: Shares | None = None) -> "Table":
        """Split the same rows in another way.

        Parameters
        ----------
        seed
            Decides the split.
        shares
            The shares of train, calibration and test; None: those of this table.

        Returns
        -------
        Table
            The whole table with its new parts.

        Raises
        ------
        DataError
            If this is a part of a split already.
        """
        self._check_whole()
        return replace(self, seed=seed, shares=shares or self.shares)

    def describe(self) -> pd.DataFrame:
        """Describe the features and their values.

        Returns
        -------
        pandas.DataFrame
            One row a feature, indexed by name: kind, cost, start, sensitive, change and unit of the
            card, the share of missing values, the number of different ones, and in words the range
            of numbers or the most frequent words.
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
        by_class = []
        for members in self._shuffled():
            ends = np.cumsum(_allocate(len(members), np.array(self.shares)))
            by_class.append(np.split(members, ends[:-1]))
        parts = map(np.concatenate, zip(*by_class, strict=True))
        return {part: np.sort(rows) for part, rows in zip(PARTS, parts, strict=True)}

    def _capped(self, cap: int) -> Self:
        """A table of ``cap`` of these rows, drawn at random in the classes' proportions."""
        counts = np.bincount(self.y, minlength=len(self.schema.classes))
        if cap < 3 * len(counts):
            raise SettingError(
                f"a cap of {cap} rows cannot hold three of each of the {len(counts)} classes"
            )
        sizes = _allocate(cap, counts / counts.sum())
        rows = [members[:size] for members, size in zip(self._shuffled(), sizes, strict=True)]
        return replace(
            self, frame=self.frame.iloc[np.sort(np.concatenate(rows))].reset_index(drop=True)
        )

    def _shuffled(self) -> Iterator[IntArray]:
        """The row numbers of each class in turn, in an order that the seed decides."""
        random = np.random.default_rng(self.seed)
        for code in range(len(self.schema.classes)):
            yield random.permutation(np.flatnonzero(self.y == code))


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
        known = column[~column.isin([float(code) for code in feature.codes])]
        return f"{known.min():,.10g} to {known.max():,.10g}"
    counts = column.value_counts()
    return ", ".join(counts.index[:3]) + (", …" if len(counts) > 3 else "")


def validate_frame(frame: Any, schema: Schema) -> pd.DataFrame:
    """Check a frame against a schema, and convert its columns to the types of their kinds.

    Parameters
    ----------
    frame
        A frame of any make, one row a person. Columns that the schema does not name are left out.
    schema
        The features, and the outcome.

    Returns
    -------
    pandas.DataFrame
        A copy of the schema's columns, in its order: numbers, or words with the levels as the card
        writes them, null where nothing is recorded. The outcome comes last, as words.

    Raises
    ------
    DataError
        If a column is missing, doubled, looks like one that the schema names, or holds something
        its kind does not allow, or there are no rows.
    """
    frame = to_pandas(frame)
    rows = validate_features(frame, schema, schema.target)
    rows[schema.target] = validate_target(frame[schema.target], schema).to_numpy()
    return rows


def validate_features(frame: Any, schema: Schema, *others: str) -> pd.DataFrame:
    """Check and convert the features of a frame like ``validate_frame``, without the outcome.

    Parameters
    ----------
    frame, schema
        As in ``validate_frame``.
    others
        Columns that must be there too, and are left out of the result.

    Returns
    -------
    pandas.DataFrame
        The features' columns, in the schema's order.
    """
    frame = to_pandas(frame)
    required = [*schema.names, *others]
    check_columns(frame, required)
    check_names(frame.columns, required)
    columns = {
        feature.name: _validate_feature(frame[feature.name], feature, schema) for feature in schema
    }
    return pd.DataFrame(columns).reset_index(drop=True)


def find_classes(outcome: pd.Series, schema: Schema) -> tuple[str, ...]:
    """Find the classes in the order of their codes.

    Parameters
    ----------
    outcome
        The outcome of each row as words, (rows,), without gaps.
    schema
        The card. If it lists classes these are taken, otherwise the two that occur, sorted.

    Returns
    -------
    tuple[str, ...]
        The classes.

    Raises
    ------
    TargetError
        If there is only one class, one that the card does not know, no favourable one, more than
        two that the card does not list, or fewer than three rows of one: each part of a split needs
        one.
    """
    classes = sorted(outcome.unique())
    if schema.classes:
        if stray := [c for c in classes if c not in schema.classes]:
            raise TargetError(
                f"target {schema.target!r}: the card knows no class "
                f"{stray[0]!r}{hint(stray[0], schema.classes)}"
            )
        classes = list(schema.classes)
    elif len(classes) > 2:
        shown = ", ".join(classes[:5]) + (", …" if len(classes) > 5 else "")
        raise TargetError(
            f"target {schema.target!r} has {len(classes)} classes ({shown}) where two are needed; "
            "merge them in the card, or list them as classes to allow more"
        )
    counts = outcome.value_counts()
    if len(counts) < 2:
        raise TargetError(f"target {schema.target!r} is constant: every row is {counts.index[0]!r}")
    if schema.favourable not in classes:
        near = hint(schema.favourable, classes)
        raise TargetError(
            f"target {schema.target!r} never is {schema.favourable!r}, the favourable class{near}"
        )
    if few := [c for c in classes if counts.get(c, 0) < 3]:
        rows = int(counts.get(few[0], 0))
        raise TargetError(
            f"class {few[0]!r} of {schema.target!r}: three rows are needed, one for each "
            f"part, not {rows}"
        )
    return tuple(classes)


def validate_target(values: pd.Series, schema: Schema, rows: AnyArray | None = None) -> pd.Series:
    """Read an outcome as words, merged as the card says.

    Parameters
    ----------
    values
        The outcome, (values,).
    schema
        The card, whose ``missing`` and ``merge`` apply.
    rows
        In how many rows each value stands, (values,), for the message about gaps; None: one each.

    Returns
    -------
    pandas.Series
        The classes, (values,), of data type ``str``.

    Raises
    ------
    TargetError
        If there is a gap, or a label that the card does not merge.
    """
    values = _recorded(values, schema.target, schema, words=True)
    counts = np.ones(len(values), dtype=int) if rows is None else rows
    if gaps := int(counts[values.isna()].sum()):
        raise TargetError(
            f"target {schema.target!r} is missing in {gaps} of {counts.sum()} rows; drop "
            "them or find their outcome"
        )
    words = to_words(values)
    if schema.merge:
        merged = words.map(
            {name: name for name in schema.merge.values()} | dict(schema.merge)
        )  # merged once: it stays
        if merged.isna().any():
            raw = words[merged.isna()].iloc[0]
            raise TargetError(
                f"target {schema.target!r}: the card merges no label "
                f"{raw!r}{hint(raw, schema.merge)}"
            )
        words = merged.astype("str")
    return words


def _validate_feature(values: pd.Series, feature: Feature, schema: Schema) -> pd.Series:
    """A feature's column as words or numbers, its levels checked."""
    values = _recorded(values, feature.name, schema, feature.words)
    if values.isna().all():
        raise ColumnError(
            f"column {feature.name!r} has no value in any row; leave it out of the card"
        )
    converted = to_words(values) if feature.words else _to_numbers(values, feature)
    return _known_levels(converted, feature) if feature.levels else converted


def _recorded(values: pd.Series, name: str, schema: Schema, words: bool) -> pd.Series:
    """A column, (rows,), with null for every gap and for what the card lists as ``missing``.

    ColumnError for dates, and for cells that hold a list or another collection.
    """
    if values.dtype.kind in "mM":
        raise ColumnError(
            f"column {name!r} holds dates; turn them into a number, such as days until today"
        )
    if values.dtype == object:
        odd = ~values.map(
            lambda value: pd.api.types.is_scalar(value) or getattr(value, "ndim", 1) == 0
        )
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            raise ColumnError(
                f"column {name!r} holds a {type(values.iloc[row]).__name__} in row {row}; "
                "one value a cell is needed"
            )
    gaps = find_missing(values, schema.missing, words) | find_gaps(values)
    return values.mask(gaps) if gaps.any() else values


def _to_numbers(values: pd.Series, feature: Feature) -> pd.Series:
    """A column as int64 or float64, ``€1,430`` as 1430; ColumnError for a cell that is no number,
    or infinite.
    """
    numbers = read_numbers(values)
    bad = np.flatnonzero(numbers.isna() & values.notna())
    if len(bad):
        raise ColumnError(
            f"column {feature.name!r} is {feature.kind}, but row {bad[0]} says "
            f"{shorten(values.iloc[bad[0]])}; "
            "list it under `missing` in the card if it means not recorded"
        )
    far = np.flatnonzero(np.abs(numbers.to_numpy(float)) > LARGEST_NUMBER)
    if len(far):
        number = float(numbers.iloc[far[0]])
        what = (
            "infinite"
            if np.isinf(number)
            else f"{number:g}, beyond {LARGEST_NUMBER:g} and no measurement,"
        )
        raise ColumnError(f"column {feature.name!r} is {what} in row {far[0]}")
    return numbers.astype("int64") if numbers.dtype.kind in "iu" else numbers.astype("float64")


def _known_levels(values: pd.Series, feature: Feature) -> pd.Series:
    """The column with every word as the card writes its level; ColumnError for a value that is no
    level or code.
    """
    known: list[Any] = [*feature.levels, *map(float, feature.codes)]
    if feature.words:
        known = [str(level) for level in feature.levels]
        words = values[~values.isin(known)].dropna().unique().tolist()
        meant = {word: level for word in words if (level := match_level(word, known)) is not None}
        values = values.replace(meant) if meant else values
    stray = ~values.isin(known) & values.notna()
    if stray.any():
        row = int(np.flatnonzero(stray)[0])
        level = values.iloc[row]
        near = hint(level, known)
        raise ColumnError(
            f"column {feature.name!r}: the card knows no level {shorten(level)} (row {row}){near}"
        )
    return values
