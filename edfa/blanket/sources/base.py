"""What tests ask of a table, wherever its rows are; and the part that sources with remote rows
share.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

from edfa.blanket.columns import TEST_BINS, Column
from edfa.blanket.contingency import ContingencyTable
from edfa.blanket.sources.correlation import Correlation, TermCorrelations
from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.data.validate import find_classes, validate_features
from edfa.errors import ColumnError, TargetError, hint
from edfa.typing import AnyArray

__all__ = ["RemoteSource", "TableSource", "check_outcome", "validate_distinct"]

ENOUGH = 3  # rows of a class that are enough for every check


@runtime_checkable
class TableSource(Protocol):
    """A table of ``n`` rows that can be counted and correlated. Columns are numbered as in
    ``columns``.
    """

    n: int
    columns: tuple[Column, ...]

    def contingency_table(
        self, x: int, y: int, conditions: tuple[int, ...], bins: int
    ) -> ContingencyTable:
        """Counts of x and y in each stratum of the conditions.

        Continuous columns are cut: x and y into five bins, conditions into ``bins``.
        """

    def correlation(self) -> TermCorrelations:
        """Correlations of the terms of all columns."""


class RemoteSource(ABC):
    """A source whose rows stay elsewhere: it asks for group counts and for sums of products, and
    holds only summaries.

    ``ParquetRows`` asks DuckDB about files larger than memory, ``DaskRows`` the workers of a Dask
    cluster. Both answer what ``MemoryRows`` would answer on the same rows. ``left_out``: names of
    the columns that are constant.
    """

    n: int
    columns: tuple[Column, ...]
    target: str
    left_out: tuple[str, ...]

    def _set_columns(self, columns: Sequence[Column]) -> None:
        """Keep the columns that vary, and the names of those that do not."""
        self.columns = tuple(c for c in columns if not c.is_constant)
        self.left_out = tuple(c.name for c in columns if c.is_constant)

    @abstractmethod
    def _count_groups(self, coded: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        """Count the rows of each combination of codes of some (column, number of bins), without
        missing values.

        Returns the codes of each column, ``(groups,)`` each, and the number of rows of each group,
        ``(groups,)``.
        """

    @abstractmethod
    def correlation(self) -> Correlation:
        """Correlations of the terms of all columns."""

    def contingency_table(
        self, x: int, y: int, conditions: tuple[int, ...], bins: int
    ) -> ContingencyTable:
        """Counts of x and y in each stratum that occurs; strata are numbered in the order of their
        codes.
        """
        coded = [*((c, bins) for c in conditions), (x, TEST_BINS), (y, TEST_BINS)]
        codes, counts = self._count_groups(coded)
        sizes = [self.columns[i].n_codes(k) for i, k in coded]
        strata = np.zeros(len(counts), dtype=np.int64)
        for code, size in zip(codes[:-2], sizes[:-2], strict=True):
            strata = strata * size + code
        distinct, z = np.unique(strata, return_inverse=True)
        rx, ry = sizes[-2:]
        positions = (z.astype(np.int64) * rx + codes[-2]) * ry + codes[-1]
        order = np.argsort(positions)
        shape = (max(len(distinct), 1), rx, ry)
        return ContingencyTable(
            counts[order], shape, float(np.prod(np.array(sizes, float))), positions[order]
        )


def validate_distinct(values: pd.Series, feature: Feature, schema: Schema) -> pd.Series:
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


def check_outcome(labels: Mapping[str | None, int], schema: Schema) -> None:
    """TargetError if the outcome's labels, with the number of rows of each, do not fit the card;
    None: a gap.
    """
    rows = sum(labels.values())
    if gaps := labels.get(None, 0):
        raise TargetError(
            f"target {schema.target!r} is missing in {gaps} of {rows} rows; drop them or "
            "find their outcome"
        )
    words = [label for label in labels if label is not None]
    if schema.merge and (stray := [word for word in words if word not in schema.merge]):
        raise TargetError(
            f"target {schema.target!r}: the card merges no label "
            f"{stray[0]!r}{hint(stray[0], schema.merge)}"
        )
    merged = [schema.merge[word] if schema.merge else word for word in words]
    few = [min(labels[word], ENOUGH) for word in words]
    find_classes(pd.Series(np.repeat(np.array(merged, dtype=object), few)), schema)
