"""A table that is elsewhere: groups of codes and sums of products are asked for, rows never come here.

``ParquetRows`` asks DuckDB about files larger than memory, ``DaskRows`` the workers of a Dask cluster. Both answer what
``Rows`` would on the same rows, and hold only summaries: levels, quantiles, cells and one matrix.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from edfa.blanket.cells import Cells
from edfa.blanket.columns import TEST_BINS
from edfa.blanket.counts import Column, Correlation
from edfa.typing import AnyArray

__all__ = ["Remote"]


class Remote(ABC):
    """A source that asks somebody else for groups of codes and for sums of products."""

    n: int
    columns: tuple[Column, ...]
    target: str
    left_out: tuple[str, ...]  # columns that never vary

    def _keep(self, fitted: Sequence[Column]) -> None:
        self.columns = tuple(c for c in fitted if not c.flat)
        self.left_out = tuple(c.name for c in fitted if c.flat)

    @abstractmethod
    def _groups(self, which: Sequence[tuple[int, int]]) -> tuple[list[AnyArray], AnyArray]:
        """The codes of some (column, bins) in each group that occurs, gaps left out, and the size of each group."""

    @abstractmethod
    def correlation(self) -> Correlation:
        """Correlations of the embedded columns."""

    def cells(self, x: int, y: int, given: tuple[int, ...], bins: int) -> Cells:
        """Groups folded into strata, numbered without holes in the order of their codes."""
        *conditions, a, b = (*((g, bins) for g in given), (x, TEST_BINS), (y, TEST_BINS))
        codes, count = self._groups([*conditions, a, b])
        sizes = [self.columns[i].size(k) for i, k in (*conditions, a, b)]
        strata = np.zeros(len(count), dtype=np.int64)
        for code, size in zip(codes[:-2], sizes[:-2], strict=True):
            strata = strata * size + code
        found, z = np.unique(strata, return_inverse=True)
        rx, ry = sizes[-2:]
        where = (z.astype(np.int64) * rx + codes[-2]) * ry + codes[-1]
        order = np.argsort(where)
        return Cells(count[order], (max(len(found), 1), rx, ry), float(np.prod(np.array(sizes, float))), where[order])
