"""A table whose rows are in memory, counted with numpy.

The strata of conditions are numbered one condition after the other, and remembered, because a
search asks for the same conditions in many tests.
"""

import math
from collections.abc import Sequence

import numpy as np

from edfa.blanket.columns import TEST_BINS, Column
from edfa.blanket.contingency import ContingencyTable, test_work
from edfa.blanket.sources.base import TableSource
from edfa.blanket.sources.correlation import (
    CHUNK_ROWS,
    MOST_TERMS,
    CrossProducts,
    PairwiseCorrelation,
    TermCorrelations,
)
from edfa.typing import AnyArray, IntArray

FEW_STRATA = 32  # up to this many, counting empty strata costs less than renumbering


class MemoryRows(TableSource):
    """A table in memory.

    Codes and strata are cached, because a search asks for the same ones in many tests.

    Parameters
    ----------
    columns
        The columns of the table.
    values
        For each column an array ``(rows,)`` of codes or floats, as ``Column.read`` gives.
    """

    def __init__(self, columns: Sequence[Column], values: Sequence[AnyArray]) -> None:
        self.n = len(values[0])
        self.columns = tuple(columns)
        self._values = values
        self._n_codes = [c.n_codes(TEST_BINS) for c in columns]
        self._codes = test_work(4 * self.n)
        self._strata = test_work(16 * self.n)

    def take(self, rows: IntArray) -> "MemoryRows":
        """The table of some rows, by position, with the levels and quantiles of all rows."""
        return MemoryRows(self.columns, [v[rows] for v in self._values])

    def contingency_table(
        self, x: int, y: int, conditions: tuple[int, ...], bins: int
    ) -> ContingencyTable:
        """Counts of x and y in each stratum: stratum, x and y are folded into one number, and that
        is counted.
        """
        strata, n_strata = self._stratify(conditions, bins)
        rx, ry = self._n_codes[x], self._n_codes[y]
        x_code, y_code = self._code(x, TEST_BINS), self._code(y, TEST_BINS)
        pair = _fold(x_code, y_code, ry, rx)
        key = _fold(strata, pair, rx * ry, n_strata) if conditions else pair
        if self._any_missing(x, y, *conditions):
            key = key[(x_code >= 0) & (y_code >= 0) & (strata >= 0)]
        shape = (n_strata, rx, ry)
        given = math.prod([float(self.columns[c].n_codes(bins)) for c in conditions])
        possible_cells = given * rx * ry
        if (cells := math.prod(shape)) <= max(16 * self.n, 100_000):
            return ContingencyTable(np.bincount(key, minlength=cells), shape, possible_cells)
        positions, counts = np.unique(key, return_counts=True)
        return ContingencyTable(counts, shape, possible_cells, positions)

    def correlation(self) -> TermCorrelations:
        """Correlations of the terms of all columns, from sums over chunks of rows; of a wide table,
        when asked for.
        """
        if sum(c.n_terms for c in self.columns) > MOST_TERMS:
            return PairwiseCorrelation(self.columns, self._values)
        products = CrossProducts(self.columns)
        for start in range(0, self.n, CHUNK_ROWS):
            products.add([v[start : start + CHUNK_ROWS] for v in self._values])
        return products.correlation()

    def _any_missing(self, *columns: int) -> bool:
        """Whether one of these columns has missing values."""
        return any(self.columns[i].has_missing for i in columns)

    def _code(self, column: int, bins: int) -> AnyArray:
        """Codes of a column, ``(rows,)``; -1 if the value is missing."""

        def make() -> AnyArray:
            return self.columns[column].code(self._values[column], bins).astype(np.int32)

        codes: AnyArray = self._codes.get((column, bins), make)
        return codes

    def _stratify(self, conditions: tuple[int, ...], bins: int) -> tuple[AnyArray, int]:
        """Number the strata of some conditions.

        Returns
        -------
        tuple[numpy.ndarray, int]
            The stratum of each row, ``(rows,)``, -1 if a condition is missing; and the number of
            strata. Strata that do not occur are numbered too if there are few.
        """
        if not conditions:
            return np.zeros(1, dtype=np.int32), 1

        def make() -> tuple[AnyArray, int]:
            outer, n_outer = self._stratify(conditions[:-1], bins)
            last = self._code(conditions[-1], bins)
            n_last = self.columns[conditions[-1]].n_codes(bins)
            both = _fold(outer, last, n_last, n_outer)
            if self._any_missing(*conditions):
                both[(outer < 0) | (last < 0)] = -1
            possible = n_outer * n_last
            return (both, possible) if possible <= FEW_STRATA else _renumber(both, possible)

        strata: tuple[AnyArray, int] = self._strata.get((conditions, bins), make)
        return strata


def _fold(left: AnyArray, right: AnyArray, n_right: int, n_left: int) -> AnyArray:
    """Two codes in one number; 32 bits wide where they suffice, which is twice as fast to read."""
    wide = left if n_right * n_left < 1 << 31 else left.astype(np.int64)
    return wide * n_right + right


def _renumber(codes: AnyArray, possible: int) -> tuple[AnyArray, int]:
    """Replace the codes that occur, out of ``possible`` ones, by 0, 1, 2, …; -1 stays. Also the
    number of codes.
    """
    if possible <= 16 * len(codes):
        seen = np.zeros(possible + 1, dtype=np.int32)
        seen[codes] = 1
        seen[-1] = 0
        number = np.cumsum(seen) - 1
        count = int(number[-1]) + 1
        number[-1] = -1
        return number.astype(np.int32)[codes], count
    distinct, index = np.unique(codes, return_inverse=True)
    shift = int(distinct[0] < 0)
    return index.astype(np.int32) - np.int32(shift), len(distinct) - shift
