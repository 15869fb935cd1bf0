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
from scipy import sparse

from edfa.blanket.cells import Cells, Margin, Totals
from edfa.blanket.columns import TEST_BINS, Numbers, Words
from edfa.blanket.recent import Recent
from edfa.typing import AnyArray, Float64Array, IntArray

__all__ = ["Column", "Correlation", "Gram", "Rows", "Source"]

Column = Any  # Words | Numbers: each reads, codes and embeds its own kind of array
CHUNK = 65_536
MEMORY = 256 << 20  # bytes of strata that are kept
FEW_STRATA = 32  # so few may be empty: numbering them anew costs more than counting in vain


@dataclass(frozen=True)
class Correlation:
    """The correlation matrix of all embedded columns, and which of them belong to which variable."""

    matrix: Float64Array
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

    def add(self, values: Sequence[AnyArray]) -> "Gram":
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

    def _places(self, which: Sequence[int]) -> IntArray:
        parts = [np.arange(self.blocks[i].start, self.blocks[i].stop) for i in which]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def _indicators(self, values: Sequence[AnyArray], n: int) -> Any:
        """Which indicators are on, a row each: at most one of every column of words."""
        widths = [self.columns[i].width for i in self.words]
        on = np.empty((n, len(self.words)), dtype=np.int64)
        for k, i in enumerate(self.words):
            on[:, k] = self.columns[i].indicators(values[i])
        occurs = on >= 0
        on += np.cumsum([0, *widths])[:-1]
        ends = np.concatenate([[0], np.cumsum(occurs.sum(axis=1))])
        places = on[occurs]
        return sparse.csr_array((np.ones(len(places)), places, ends), shape=(n, sum(widths)))


class Rows:
    """A table in memory: an array of codes or numbers for each column."""

    def __init__(self, columns: Sequence[Column], values: Sequence[AnyArray]) -> None:
        self.n = len(values[0])
        self.columns = tuple(columns)
        self._values = values
        self._gap = [bool(c.gaps) for c in columns]
        self._whole = not any(self._gap)
        self._sizes = [c.size(TEST_BINS) for c in columns]
        self._codes: dict[tuple[int, int], AnyArray] = {}
        limit = max(64, MEMORY // (16 * self.n))
        self._strata: Recent[tuple[tuple[int, ...], int], tuple[AnyArray, int]] = Recent(limit)
        self._margins: Recent[tuple[int, tuple[int, ...]], Margin] = Recent(limit)
        self._totals: Recent[tuple[int, ...], Totals] = Recent(limit)
        self._pairs: Recent[tuple[int, int], AnyArray] = Recent(limit)

    def take(self, rows: IntArray) -> "Rows":
        """Some of the rows, with the same levels and quantiles."""
        return Rows(self.columns, [v[rows] for v in self._values])

    def cells(self, x: int, y: int, given: tuple[int, ...], bins: int) -> Cells:
        """One pass over the codes: strata, x and y folded into one number, counted."""
        strata, number = self._strata_of(given, bins)
        rx, ry = self._sizes[x], self._sizes[y]
        key = _fold(strata, self._pair(x, y), rx * ry, number) if given else self._pair(x, y)
        if not (whole := self._whole or not self._gaps(x, y, *given)):
            key = key[(self._code(x, TEST_BINS) >= 0) & (self._code(y, TEST_BINS) >= 0) & (strata >= 0)]
        shape = (number, rx, ry)
        possible = math.prod([float(self.columns[g].size(bins)) for g in given]) * rx * ry
        if (space := math.prod(shape)) <= max(16 * self.n, 100_000):
            count = np.bincount(key, minlength=space)
            full = count.reshape(shape)
            again = whole and bins == TEST_BINS  # fine strata that confirm are asked for once
            known = (self._margin(x, given, full, 2), self._margin(y, given, full, 1)) if again else None
            return Cells(count, shape, possible, None, known)
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

    def _code(self, i: int, bins: int) -> AnyArray:
        if (i, bins) not in self._codes:
            self._codes[i, bins] = self.columns[i].code(self._values[i], bins).astype(np.int32)
        return self._codes[i, bins]

    def _margin(self, i: int, given: tuple[int, ...], full: AnyArray, axis: int) -> Margin:
        if (known := self._margins.get((i, given))) is None:
            known = Margin(np.add.reduce(full, axis=axis), self._totals.get(given))
            self._margins[i, given], self._totals[given] = known, known.totals
        return known

    def _pair(self, x: int, y: int) -> AnyArray:
        """Both codes in one number: the same pair is tested in many strata."""
        if (known := self._pairs.get((x, y))) is None:
            a, b = self._code(x, TEST_BINS), self._code(y, TEST_BINS)
            self._pairs[x, y] = known = _fold(a, b, self._sizes[y], self._sizes[x])
        return known

    def _strata_of(self, given: tuple[int, ...], bins: int) -> tuple[AnyArray, int]:
        """The stratum of each row (-1 with a gap), numbered without holes if they are many, and how many there are."""
        if not given:
            return np.zeros(1, dtype=np.int32), 1
        if (known := self._strata.get((given, bins))) is not None:
            return known
        before, count = self._strata_of(given[:-1], bins)
        codes, size = self._code(given[-1], bins), self.columns[given[-1]].size(bins)
        both = _fold(before, codes, size, count)
        if self._gaps(*given):
            both[(before < 0) | (codes < 0)] = -1
        space = count * size
        self._strata[given, bins] = found = (both, space) if space <= FEW_STRATA else _compress(both, space)
        return found


def _fold(left: AnyArray, right: AnyArray, size: int, times: int) -> AnyArray:
    """Two codes in one number; half as wide where that holds them all, which is twice as fast to read."""
    return left * size + right if size * times < 1 << 31 else left.astype(np.int64) * size + right


def _compress(codes: AnyArray, space: int) -> tuple[AnyArray, int]:
    """Numbers 0, 1, 2, … for the codes that occur; -1 stays."""
    if space <= 16 * len(codes):
        seen = np.zeros(space + 1, dtype=np.int32)
        seen[codes] = 1
        seen[-1] = 0
        number = np.cumsum(seen) - 1
        count = int(number[-1]) + 1
        number[-1] = -1
        return number.astype(np.int32)[codes], count
    found, place = np.unique(codes, return_inverse=True)
    shift = int(found[0] < 0)
    return place.astype(np.int32) - np.int32(shift), len(found) - shift
