"""Correlations of the terms of a table's columns, from sums that are added up chunk by chunk.

The terms of thousands of columns correlate in too many ways to hold: 40,000 terms would take 13 GB.
Of a wide table in memory, ``PairwiseCorrelation`` works out those that are asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from edfa.blanket.columns import CategoricalColumn, Column, ContinuousColumn
from edfa.blanket.contingency import test_work
from edfa.errors import DataError
from edfa.typing import AnyArray, Float64Array, IntArray

__all__ = [
    "CHUNK_ROWS",
    "MOST_TERMS",
    "Correlation",
    "CrossProducts",
    "PairwiseCorrelation",
    "TermCorrelations",
    "slice_terms",
]

CHUNK_ROWS = 65_536  # rows whose terms are in memory at a time
MOST_TERMS = 6_000  # terms whose correlations are held at once, 288 MB; the sums take as much again
STRIP = 256  # rows of a matrix that are worked on at a time


@dataclass(frozen=True)
class Correlation:
    """Correlations of all terms, ``(terms, terms)``, over n rows; ``blocks``: the terms of each
    column, as slices.
    """

    matrix: Float64Array
    blocks: tuple[slice, ...]
    n: int

    def between(self, left: IntArray, right: IntArray) -> Float64Array:
        """Correlations of some terms, ``(a,)``, with others, ``(b,)``: shape ``(a, b)``."""
        return self.matrix[np.ix_(left, right)]


class PairwiseCorrelation:
    """Correlations of the terms of a wide table in memory, worked out for the terms that are asked
    for.

    ``values``: for each column an array ``(rows,)``, as ``Column.read`` returns it. The
    standardised terms of columns that were asked for last are kept.
    """

    def __init__(self, columns: Sequence[Column], values: Sequence[AnyArray]) -> None:
        self.blocks = slice_terms(columns)
        self.n = len(values[0])
        self._columns, self._values = columns, values
        self._column_of = np.repeat(
            np.arange(len(columns)), [b.stop - b.start for b in self.blocks]
        )
        typical = (
            8 * self.n * max(1, len(self._column_of) // len(columns))
        )  # bytes of one column's terms
        self._terms = test_work(typical)

    def between(self, left: IntArray, right: IntArray) -> Float64Array:
        """Correlations of some terms, ``(a,)``, with others, ``(b,)``: shape ``(a, b)``."""
        return np.asarray(self._take(left).T @ self._take(right))

    def _take(self, terms: IntArray) -> Float64Array:
        """Some terms, standardised to mean 0 and length 1, ``(rows, len(terms))``."""
        if not len(terms):
            return np.zeros((self.n, 0))
        columns = list(dict.fromkeys(self._column_of[terms].tolist()))
        offset, start = np.zeros(len(self._columns), dtype=np.intp), 0
        for column in columns:
            offset[column] = start - self.blocks[column].start
            start += self.blocks[column].stop - self.blocks[column].start
        together = np.concatenate([self._standardised(column) for column in columns], axis=1)
        return together[:, terms + offset[self._column_of[terms]]]

    def _standardised(self, index: int) -> Float64Array:
        """All terms of a column, standardised, ``(rows, terms)``; constant terms are 0."""

        def make() -> Float64Array:
            terms = _embed(self._columns[index], self._values[index])
            deviation = terms.std(axis=0)
            constant = deviation < 1e-9
            scale = np.where(constant, 1.0, deviation) * np.sqrt(self.n)
            terms = (terms - terms.mean(axis=0)) / scale
            terms[:, constant] = 0.0
            return np.asarray(terms)

        terms: Float64Array = self._terms.get(index, make)
        return terms


TermCorrelations: TypeAlias = Correlation | PairwiseCorrelation
"""Correlations of the terms of all columns over ``n`` rows; ``blocks``: the terms of each column,
as slices. ``between`` gives those of some terms with others.
"""


def slice_terms(columns: Sequence[Column]) -> tuple[slice, ...]:
    """The terms of each column, as slices of all terms."""
    ends = np.cumsum([c.n_terms for c in columns])
    return tuple(slice(int(e - c.n_terms), int(e)) for c, e in zip(columns, ends, strict=True))


def _embed(column: Column, values: AnyArray) -> Float64Array:
    """All terms of a column, ``(rows, terms)``."""
    if isinstance(column, ContinuousColumn):
        return column.embed(values)
    terms, active = np.zeros((len(values), column.n_terms)), column.indicator(values)
    rows = np.flatnonzero(active >= 0)
    terms[rows, active[rows]] = 1.0
    return terms


class CrossProducts:
    """Sums of the terms of all columns, and of their products, added up chunk by chunk."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.blocks = slice_terms(columns)
        terms = self.blocks[-1].stop
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

    def add(self, values: Sequence[AnyArray]) -> "CrossProducts":
        """Add one chunk: for each column an array ``(rows,)``, as ``Column.read`` returns it.

        Indicators are multiplied as sparse matrices: 500 levels cost as much as two.
        """
        n = len(values[0])
        indicators = self._indicators(values, n)
        terms = [column.embed(values[i]) for i, column in self._continuous]
        dense = np.concatenate(terms, axis=1) if terms else np.zeros((n, 0))
        w, d = (
            self._term_indices([i for i, _ in part])
            for part in (self._categorical, self._continuous)
        )
        self.sums[w] += np.asarray(indicators.sum(axis=0)).ravel()
        self.sums[d] += dense.sum(axis=0)
        self._add_products(w, (indicators.T @ indicators).toarray())
        self._add_products(d, dense.T @ dense)
        mixed = indicators.T @ dense
        self.products[np.ix_(w, d)] += mixed
        self.products[np.ix_(d, w)] += mixed.T
        self.n += n
        return self

    def _add_products(self, terms: IntArray, products: Float64Array) -> None:
        """Add products of some terms, ``(k, k)``, a strip at a time: no second copy of either
        matrix is made.
        """
        for start in range(0, len(terms), STRIP):
            strip = slice(start, start + STRIP)
            self.products[np.ix_(terms[strip], terms)] += products[strip]

    def merge(self, other: "CrossProducts") -> "CrossProducts":
        """Add the sums of other rows of the same table."""
        self.sums += other.sums
        self.products += other.products
        self.n += other.n
        return self

    def correlation(self) -> Correlation:
        """The correlations over all rows added so far; those of a constant term are 0."""
        mean = self.sums / self.n
        matrix = self.products / self.n
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

    def _term_indices(self, columns: Sequence[int]) -> IntArray:
        """Indices of all terms of some columns."""
        parts = [np.arange(self.blocks[i].start, self.blocks[i].stop) for i in columns]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def _indicators(self, values: Sequence[AnyArray], n: int) -> Any:
        """Indicators of all categorical columns, sparse ``(n, indicators)``: in each row at most
        one 1 a column.
        """
        widths = [column.n_terms for _, column in self._categorical]
        active = np.empty((n, len(self._categorical)), dtype=np.int64)
        for k, (i, column) in enumerate(self._categorical):
            active[:, k] = column.indicator(values[i])
        occurs = active >= 0
        active += np.cumsum([0, *widths])[:-1]
        ends = np.concatenate([[0], np.cumsum(occurs.sum(axis=1))])
        indices = active[occurs]
        return sparse.csr_array((np.ones(len(indices)), indices, ends), shape=(n, sum(widths)))
