"""What tests ask of a table, wherever its rows are; and the part that sources with remote rows
share.

``TableSource`` is the contract. ``RemoteSource`` counts and reads columns for the two sources whose
rows are elsewhere, with the functions at the end of this module.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from edfa.blanket.columns import TEST_BINS, CategoricalColumn, Column, as_tested
from edfa.blanket.contingency import ContingencyTable
from edfa.blanket.sources.correlation import TermCorrelations
from edfa.data.schema import Feature, Schema
from edfa.data.table import find_classes, validate_features, validate_target
from edfa.errors import ColumnError, hint
from edfa.typing import AnyArray

Translation = dict[Any, Any] | None
"""What the raw values of a column mean: words, or numbers; None: what they are."""

ENOUGH_ROWS = 3  # of a class, for every check


class TableSource(ABC):
    """A table that can be counted and correlated. Columns are numbered as in ``columns``.

    Attributes
    ----------
    n
        The number of rows.
    columns
        The columns that vary.
    target
        The name of the outcome, if the source knows it.
    left_out
        Names of the columns that are constant.
    """

    n: int
    columns: tuple[Column, ...]
    target: str | None = None
    left_out: tuple[str, ...] = ()

    @abstractmethod
    def contingency_table(
        self, x: int, y: int, conditions: tuple[int, ...], bins: int
    ) -> ContingencyTable:
        """Count columns x and y in each stratum of the conditions.

        Parameters
        ----------
        x, y, conditions
            Positions of columns. A continuous x or y is cut into five bins.
        bins
            The number of bins of a continuous condition.
        """

    @abstractmethod
    def correlation(self) -> TermCorrelations:
        """Correlations of the terms of all columns."""


class RemoteSource(TableSource):
    """A source whose rows stay elsewhere: it asks for group counts and for sums of products, and
    holds only summaries.

    ``ParquetRows`` asks DuckDB about files larger than memory, ``DaskRows`` the workers of a Dask
    cluster. Both answer what ``MemoryRows`` would answer on the same rows. What the raw values of a
    column mean is decided once, from its different values (``read_distinct``), and remembered as a
    translation.
    """

    def _find_columns(self, schema: Schema, held: Collection[str], where: str) -> list[str]:
        """The names of the features and the target, sorted; ColumnError, which says ``where``, if
        one is not among the columns ``held``.
        """
        self.target = schema.target
        self._translations: dict[str, Translation] = {}
        names = sorted([*schema.names, schema.target])
        if absent := [name for name in names if name not in held]:
            raise ColumnError(f"{where} has no column {absent[0]!r}{hint(absent[0], held)}")
        return names

    def _set_columns(self, columns: Sequence[Column]) -> None:
        """Keep the columns that vary, and the names of those that do not."""
        self.columns = tuple(c for c in columns if not c.is_constant)
        self.left_out = tuple(c.name for c in columns if c.is_constant)

    @abstractmethod
    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        """Count the rows of each combination of codes of some (column, number of bins).

        Returns the codes of each column, ``(groups,)`` each, -1 where a value is missing, and the
        number of rows of each group, ``(groups,)``; a combination may be there several times.
        """

    def contingency_table(
        self, x: int, y: int, conditions: tuple[int, ...], bins: int
    ) -> ContingencyTable:
        """Counts of x and y in each stratum that occurs; strata are numbered in the order of their
        codes.
        """
        coded = [*((c, bins) for c in conditions), (x, TEST_BINS), (y, TEST_BINS)]
        sizes = [self.columns[i].n_codes(k) for i, k in coded]
        codes, counts = self._count_groups(coded)
        known = np.logical_and.reduce([code >= 0 for code in codes])
        *given, x_code, y_code = (code[known].astype(np.int64) for code in codes)
        strata = np.zeros(len(x_code), dtype=np.int64)
        for code, size in zip(given, sizes, strict=False):
            # Renumbered each time: many conditions have more combinations than numbers of 64 bits.
            strata = np.unique(strata * size + code, return_inverse=True)[1]
        shape = (1 + int(strata.max(initial=0)), sizes[-2], sizes[-1])
        positions, cell = np.unique(
            np.ravel_multi_index((strata, x_code, y_code), shape), return_inverse=True
        )
        rows = np.bincount(cell, weights=counts[known], minlength=len(positions))
        return ContingencyTable(rows, shape, math.prod(map(float, sizes)), positions)


def read_distinct(
    name: str, raw: pd.Series, rows: AnyArray, schema: Schema
) -> tuple[pd.Series, bool]:
    """What the different values of a column mean, as a table in memory would read them.

    Parameters
    ----------
    name
        The column: a feature of the schema, or its target.
    raw, rows
        Its different values, and the number of rows of each, both ``(values,)``.
    schema
        Says which of them are missing, and what the others should be.

    Returns
    -------
    tuple[pandas.Series, bool]
        Words of a categorical column, numbers of a continuous one, null where missing,
        ``(values,)``; and whether tests treat it as categorical.

    Raises
    ------
    ColumnError, TargetError
        If the values do not fit the card.
    """
    if name == schema.target:
        words = validate_target(raw, schema, rows)
        find_classes(words.repeat(np.minimum(rows, ENOUGH_ROWS).tolist()), schema)
        return words, True
    return as_tested(_validate(raw, schema[name], schema), schema[name])


def fit_levels(name: str, words: pd.Series, rows: AnyArray) -> CategoricalColumn:
    """Summarise a categorical column.

    Parameters
    ----------
    name
        The name of the column.
    words, rows
        Its different values, null where missing, and the number of rows of each, both
        ``(values,)``; a word may be there several times.
    """
    counts = pd.Series(rows).groupby(words.to_numpy(object)).sum()
    return CategoricalColumn.fit(
        name,
        {str(word): int(count) for word, count in counts.items() if count},
        bool(rows[words.isna()].any()),
    )


def read_column(raw: pd.Series, column: Column, translation: Translation) -> AnyArray:
    """Raw values of a column, ``(rows,)``, as codes or floats, ``(rows,)``."""
    return column.read(raw if translation is None else raw.astype(object).map(translation))


def _validate(values: pd.Series, feature: Feature, schema: Schema) -> pd.Series:
    """The different values of a feature, (values,), as ``validate_frame`` would leave them in a
    table in memory.

    ColumnError if they do not fit the card.
    """
    alone = Schema(
        (feature,), f"{feature.name}'s outcome", schema.favourable, missing=schema.missing
    )
    try:
        return validate_features(pd.DataFrame({feature.name: values}), alone)[feature.name]
    except ColumnError as error:
        raise ColumnError(f"{error} (rows are counted among the different values)") from None
