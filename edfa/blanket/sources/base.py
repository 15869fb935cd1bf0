"""What tests ask of a table, wherever its rows are; and the part that sources with remote rows share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from edfa.blanket.columns import TEST_BINS, Column
from edfa.blanket.contingency import ContingencyTable
from edfa.blanket.sources.correlation import Correlation, TermCorrelations
from edfa.typing import AnyArray

__all__ = ["RemoteSource", "TableSource"]


@runtime_checkable
class TableSource(Protocol):
    """A table of ``n`` rows that can be counted and correlated. Columns are numbered as in ``columns``."""

    n: int
    columns: tuple[Column, ...]

    def contingency_table(self, x: int, y: int, conditions: tuple[int, ...], bins: int) -> ContingencyTable:
        """Counts of x and y in each stratum of the conditions.

        Continuous columns are cut: x and y into five bins, conditions into ``bins``.
        """

    def correlation(self) -> TermCorrelations:
        """Correlations of the terms of all columns."""


class RemoteSource(ABC):
    """A source whose rows stay elsewhere: it asks for group counts and for sums of products, and holds only summaries.

    ``ParquetRows`` asks DuckDB about files larger than memory, ``DaskRows`` the workers of a Dask cluster. Both answer
    what ``MemoryRows`` would answer on the same rows. ``left_out``: names of the columns that are constant.
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
        """Count the rows of each combination of codes of some (column, number of bins), without missing values.

        Returns the codes of each column, ``(groups,)`` each, and the number of rows of each group, ``(groups,)``.
        """

    @abstractmethod
    def correlation(self) -> Correlation:
        """Correlations of the terms of all columns."""

    def contingency_table(self, x: int, y: int, conditions: tuple[int, ...], bins: int) -> ContingencyTable:
        """Counts of x and y in each stratum that occurs; strata are numbered in the order of their codes."""
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
        return ContingencyTable(counts[order], shape, float(np.prod(np.array(sizes, float))), positions[order])
