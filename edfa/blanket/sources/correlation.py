"""Correlations of the terms of a table's columns, from sums that are added up chunk by chunk.

``CrossProducts`` adds up the sums and gives a ``Correlation``. The terms of thousands of columns
correlate in too many ways to hold: 40,000 terms would take 13 GB. Of a wide table in memory,
``PairwiseCorrelation`` works out those that are asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from scipy import sparse

from edfa.blanket.columns import CategoricalColumn, Column, ContinuousColumn
from edfa.blanket.contingency import test_work
from edfa.errors import DataError
from edfa.typing import AnyArray, Float64Array, IntArray

CHUNK_ROWS = 65_536  # rows whose terms are in memory at a time
MOST_TERMS = 6_000  # terms whose correlations are held at once, 288 MB; the sums take as much again
STRIP = 256  # rows of a matrix that are worked on at a time


@dataclass(frozen=True)
class Correlation:
    """Correlations of all terms of all columns.

    Parameters
    ----------
    matrix
        ``(terms, terms)``; 0 for a constant term.
    blocks
        For each column the slice of its terms.
    n
        The number of rows behind the correlations.
    """

    matrix: Float64Array
    blocks: tuple[slice, ...]
    n: int

    def between(self, left: IntArray, right: IntArray) -> Float64Array:
        """Correlations of some terms, ``(a,)``, with others, ``(b,)``: shape ``(a, b)``."""
        return self.matrix[np.ix_(left, right)]


class PairwiseCorrelation:
    """Correlations of the terms of a wide table in memory, worked out when they are asked for.

    It answers like a ``Correlation``. The standardised terms of the columns that were asked for
    last are remembered.

    Parameters
    ----------
    columns
        The columns of the table.
    values
        For each column an array ``(rows,)``, as ``Column.read`` returns it.
    """

    def __init__(self, columns: Sequence[Column], values: Sequence[AnyArray]) -> None:
        self.blocks = _slice_terms(columns)
        self.n = len(values[0])
        self._columns, self._values = columns, values
        self._place = {
            term: (column, position)
            for column, block in enumerate(self.blocks)
            for position, term in enumerate(range(block.start, block.stop))
        }
        typical_terms = max(1, len(self._place) // len(columns))
        self._terms = test_work(8 * self.n * typical_terms)

    def between(self, left: IntArray, right: IntArray) -> Float64Array:
        """Correlations of some terms, ``(a,)``, with others, ``(b,)``: shape ``(a, b)``."""
        return np.asarray(self._take(left).T @ self._take(right))

    def _take(self, terms: IntArray) -> Float64Array:
        """Some terms, standardised to mean 0 and length 1, ``(rows, len(terms))``."""
        taken = np.empty((self.n, len(terms)), order="F")
        for k, term in enumerate(terms.tolist()):
            column, position = self._place[term]
            taken[:, k] = self._standardised(column)[:, position]
        return taken

    def _standardised(self, index: int) -> Float64Array:
        """All terms of a column, standardised, ``(rows, terms)``; constant terms are 0."""

        def make() -> Float64Array:
            terms = self._columns[index].embed(self._values[index])
            deviation = terms.std(axis=0)
            constant = deviation < 1e-9
            scale = np.where(constant, 1.0, deviation) * np.sqrt(self.n)
            terms = (terms - terms.mean(axis=0)) / scale
            terms[:, constant] = 0.0
            return np.asarray(terms)

        terms: Float64Array = self._terms.get(index, make)
        return terms


TermCorrelations: TypeAlias = Correlation | PairwiseCorrelation
"""Either has ``blocks``, the slice of each column's terms, and ``n``, the number of rows;
``between`` gives the correlations of some terms with others.
"""


def _slice_terms(columns: Sequence[Column]) -> tuple[slice, ...]:
    """The terms of each column, as slices of all terms: those of categorical columns come first."""
    slices, start = {}, 0
    for kind in (CategoricalColumn, ContinuousColumn):
        for i, column in enumerate(columns):
            if isinstance(column, kind):
                slices[i] = slice(start, start + column.n_terms)
                start += column.n_terms
    return tuple(slices[i] for i in range(len(columns)))


class CrossProducts:
    """Sums of the terms of all columns, and of their products, added up chunk by chunk.

    Parameters
    ----------
    columns
        The columns of the table.

    Raises
    ------
    DataError
        If they have more terms than can be correlated at once.

    Examples
    --------
    >>> age = ContinuousColumn.fit("age", np.arange(100.0))
    >>> paid = CategoricalColumn("paid", ("no", "yes"))
    >>> products = CrossProducts([paid, age]).add([np.arange(100) // 50, np.arange(100.0)])
    >>> products.correlation().matrix[0, :2].round(2)
    array([1.  , 0.87])
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.blocks = _slice_terms(columns)
        terms = max(block.stop for block in self.blocks)
        if terms > MOST_TERMS:
            fits = len(columns) * MOST_TERMS // terms
            raise DataError(
                f"{len(columns):,} columns have {terms:,} terms to correlate, and "
                f"{MOST_TERMS:,} fit: about {fits:,} "
                "columns like these; leave some out, or read the table into memory"
            )
        self._categorical = [
            (i, c) for i, c in enumerate(columns) if isinstance(c, CategoricalColumn)
        ]
        self._continuous = [
            (i, c) for i, c in enumerate(columns) if isinstance(c, ContinuousColumn)
        ]
        self.sums, self.products, self.n = np.zeros(terms), np.zeros((terms, terms)), 0

    def add(self, values: Sequence[AnyArray]) -> Self:
        """Add one chunk of rows.

        Indicators are multiplied as sparse matrices: 500 levels cost as much as two.

        Parameters
        ----------
        values
            For each column an array ``(rows,)``, as ``Column.read`` returns it.
        """
        n = len(values[0])
        indicators = self._indicators(values, n)
        terms = [column.embed(values[i]) for i, column in self._continuous]
        dense = np.concatenate([np.zeros((n, 0)), *terms], axis=1)
        first, mixed = indicators.shape[1], indicators.T @ dense  # of the terms that are numbers
        self.sums[:first] += indicators.sum(axis=0)
        self.sums[first:] += dense.sum(axis=0)
        self.products[:first, :first] += (indicators.T @ indicators).toarray()
        self.products[:first, first:] += mixed
        self.products[first:, :first] += mixed.T
        self.products[first:, first:] += dense.T @ dense
        self.n += n
        return self

    def merge(self, other: "CrossProducts") -> None:
        """Add the sums of other rows of the same table."""
        self.sums += other.sums
        self.products += other.products
        self.n += other.n

    def correlation(self) -> Correlation:
        """The correlations over all rows added so far; those of a constant term are 0."""
        mean = self.sums / self.n
        matrix = self.products / self.n
        # A strip at a time: no second matrix of this size is made.
        strips = [slice(start, start + STRIP) for start in range(0, len(mean), STRIP)]
        for strip in strips:
            matrix[strip] -= np.outer(mean[strip], mean)
        deviation = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        constant = deviation < 1e-9
        scale = np.where(constant, 1.0, deviation)
        for strip in strips:
            matrix[strip] /= np.outer(scale[strip], scale)
        matrix[constant, :] = matrix[:, constant] = 0.0
        return Correlation(matrix, self.blocks, self.n)

    def _indicators(self, values: Sequence[AnyArray], n: int) -> Any:
        """Indicators of all categorical columns, sparse ``(n, indicators)``: in each row at most
        one 1 a column.
        """
        active = np.empty((n, len(self._categorical)), dtype=np.int64)
        for k, (i, column) in enumerate(self._categorical):
            active[:, k] = column.indicator(values[i])
        occurs = active >= 0
        ends = np.cumsum([0, *(column.n_terms for _, column in self._categorical)])
        indices = (active + ends[:-1])[occurs]
        rows = np.append(0, np.cumsum(occurs.sum(axis=1)))
        return sparse.csr_array((np.ones(len(indices)), indices, rows), shape=(n, ends[-1]))
