"""Counts and moments of a table, wherever its rows are.

A *source* answers two questions: how often each combination of a few columns occurs (``cells``), and how the embedded
columns correlate (``correlation``). ``Rows`` holds the table in memory; ``ParquetRows`` asks DuckDB about files larger
than memory, ``DaskRows`` a Dask cluster.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from edfa.blanket.columns import TEST_BINS, Codes, Floats, Numbers, Words
from edfa.blanket.recent import Recent

__all__ = ["Cells", "Column", "Correlation", "Gram", "Rows", "Source"]

Column = Any  # Words | Numbers: each reads, codes and embeds its own kind of array
Values = npt.NDArray[Any]
CHUNK = 65_536
MEMORY = 256 << 20  # bytes of strata that are kept


@dataclass(frozen=True)
class Cells:
    """How often each combination of (stratum, x, y) occurs; ``space`` is how many combinations there could be.

    ``count`` either fills the whole ``shape``, or holds the cells that occur, whose places are ``where``.
    """

    count: Codes
    shape: tuple[int, int, int]
    space: float
    where: Codes | None = None

    @property
    def n(self) -> int:
        """The rows counted (those with a gap in one of the columns are not)."""
        return int(self.count.sum())

    def margins(self) -> tuple[Codes, Codes]:
        """Counts of (stratum, x) and of (stratum, y)."""
        if self.where is None:
            full = self.count.reshape(self.shape)
            return np.add.reduce(full, axis=2), np.add.reduce(full, axis=1)
        strata, rx, ry = self.shape
        z, x, y, count = self.occurring()
        zx = np.bincount(z * rx + x, weights=count, minlength=strata * rx).reshape(strata, rx)
        zy = np.bincount(z * ry + y, weights=count, minlength=strata * ry).reshape(strata, ry)
        return zx.astype(np.int64), zy.astype(np.int64)

    def occurring(self) -> tuple[Codes, Codes, Codes, Codes]:
        """Stratum, x, y and count of each cell that occurs."""
        _, rx, ry = self.shape
        where = np.flatnonzero(self.count) if self.where is None else self.where
        count = self.count[where] if self.where is None else self.count
        z, rest = np.divmod(where, rx * ry)
        return z, rest // ry, rest % ry, count


@dataclass(frozen=True)
class Correlation:
    """The correlation matrix of all embedded columns, and which of them belong to which variable."""

    matrix: Floats
    blocks: tuple[slice, ...]
    n: int


@runtime_checkable
class Source(Protocol):
    """What a test asks of a table."""

    n: int
    columns: tuple[Column, ...]

    def cells(self, x: int, y: int, given: tuple[int, ...], bins: int) -> Cells:
        """Counts of x and y (numbers in five bins) in each stratum of ``given`` (numbers in ``bins`` bins)."""

    def correlation(self) -> Correlation:
        """Correlations of the embedded columns."""


class Gram:
    """Sums and products of embedded columns, added up chunk by chunk."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        ends = np.cumsum([c.width for c in columns])
        self.blocks = tuple(slice(int(e - c.width), int(e)) for c, e in zip(columns, ends, strict=True))
        self.words = [i for i, c in enumerate(columns) if isinstance(c, Words)]
        self.numbers = [i for i, c in enumerate(columns) if isinstance(c, Numbers)]
        self.sums, self.products, self.n = np.zeros(ends[-1]), np.zeros((ends[-1], ends[-1])), 0

    def add(self, values: Sequence[Values]) -> "Gram":
        """Add one chunk, an array a column. Indicators multiply as sparse matrices: 500 levels cost what two do."""
        n = len(values[0])
        ones = self._indicators(values, n)
        terms = [self.columns[i].embed(values[i]) for i in self.numbers]
        dense = np.concatenate(terms, axis=1) if terms else np.zeros((n, 0))
        w, d = self._places(self.words), self._places(self.numbers)
        self.sums[w] += np.asarray(ones.sum(axis=0)).ravel()
        self.sums[d] += dense.sum(axis=0)
        self.products[np.ix_(w, w)] += (ones.T @ ones).toarray()
        self.products[np.ix_(d, d)] += dense.T @ dense
        mixed = ones.T @ dense
        self.products[np.ix_(w, d)] += mixed
        self.products[np.ix_(d, w)] += mixed.T
        self.n += n
        return self

    def merge(self, other: "Gram") -> "Gram":
        """Add what another has seen."""
        self.sums += other.sums
        self.products += other.products
        self.n += other.n
        return self

    def correlation(self) -> Correlation:
        """Correlations; a column that never varies correlates with nothing."""
        mean = self.sums / self.n
        covariance = self.products / self.n - np.outer(mean, mean)
        spread = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        flat = spread < 1e-9
        scale = np.where(flat, 1.0, spread)
        matrix = covariance / np.outer(scale, scale)
        matrix[flat, :] = matrix[:, flat] = 0.0
        return Correlation(matrix, self.blocks, self.n)

    def _places(self, which: Sequence[int]) -> npt.NDArray[np.intp]:
        parts = [np.arange(self.blocks[i].start, self.blocks[i].stop) for i in which]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def _indicators(self, values: Sequence[Values], n: int) -> Any:
        rows, places, start = [], [], 0
        for i in self.words:
            on = self.columns[i].indicators(values[i])
            rows.append(np.flatnonzero(on >= 0))
            places.append(on[on >= 0] + start)
            start += self.columns[i].width
        where = (np.concatenate(rows), np.concatenate(places)) if rows else (np.zeros(0, int), np.zeros(0, int))
        return sparse.csr_array((np.ones(len(where[0])), where), shape=(n, start))


class Rows:
    """A table in memory: an array of codes or numbers for each column."""

    def __init__(self, columns: Sequence[Column], values: Sequence[Values]) -> None:
        self.n = len(values[0])
        self.columns = tuple(columns)
        self._values = values
        self._gap = [bool(c.gaps) for c in columns]
        self._codes: dict[tuple[int, int], Codes] = {}
        self._strata: Recent[tuple[tuple[int, ...], int], tuple[Codes, int]] = Recent(max(64, MEMORY // (8 * self.n)))

    def take(self, rows: npt.NDArray[np.intp]) -> "Rows":
        """Some of the rows, with the same levels and quantiles."""
        return Rows(self.columns, [v[rows] for v in self._values])

    def cells(self, x: int, y: int, given: tuple[int, ...], bins: int) -> Cells:
        """One pass over the codes: strata, x and y folded into one number, counted."""
        strata, count = self._strata_of(given, bins)
        a, b = self._code(x, TEST_BINS), self._code(y, TEST_BINS)
        rx, ry = self.columns[x].size(TEST_BINS), self.columns[y].size(TEST_BINS)
        key = a * ry + b
        if given:
            key += strata * (rx * ry)
        if self._gaps(x, y, *given):
            key = key[(a >= 0) & (b >= 0) & (strata >= 0)]
        shape = (count, rx, ry)
        possible = math.prod([float(self.columns[g].size(bins)) for g in given]) * rx * ry
        if (space := math.prod(shape)) <= max(16 * self.n, 100_000):
            return Cells(np.bincount(key, minlength=space), shape, possible)
        where, counts = np.unique(key, return_counts=True)
        return Cells(counts, shape, possible, where)

    def correlation(self) -> Correlation:
        """Correlations, gathered in chunks."""
        gram = Gram(self.columns)
        for start in range(0, self.n, CHUNK):
            gram.add([v[start : start + CHUNK] for v in self._values])
        return gram.correlation()

    def _gaps(self, *which: int) -> bool:
        return any(self._gap[i] for i in which)

    def _code(self, i: int, bins: int) -> Codes:
        if (i, bins) not in self._codes:
            self._codes[i, bins] = self.columns[i].code(self._values[i], bins)
        return self._codes[i, bins]

    def _strata_of(self, given: tuple[int, ...], bins: int) -> tuple[Codes, int]:
        """The stratum of each row (-1 with a gap), numbered without holes, and how many there are."""
        if not given:
            return np.zeros(1, dtype=np.int64), 1
        if (known := self._strata.get((given, bins))) is not None:
            return known
        before, count = self._strata_of(given[:-1], bins)
        codes, size = self._code(given[-1], bins), self.columns[given[-1]].size(bins)
        both = before * size + codes
        if self._gaps(*given):
            both[(before < 0) | (codes < 0)] = -1
        self._strata[given, bins] = found = _compress(both, count * size)
        return found


def _compress(codes: Codes, space: int) -> tuple[Codes, int]:
    """Numbers 0, 1, 2, … for the codes that occur; -1 stays."""
    if space <= 16 * len(codes):
        seen = np.zeros(space + 1, dtype=np.int64)
        seen[codes] = 1
        seen[-1] = 0
        number = np.cumsum(seen) - 1
        count = int(number[-1]) + 1
        number[-1] = -1
        return number[codes], count
    found, place = np.unique(codes, return_inverse=True)
    shift = int(found[0] < 0)
    return place.astype(np.int64) - shift, len(found) - shift
