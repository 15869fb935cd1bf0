"""Correlations of the terms of a table's columns, from sums that are added up chunk by chunk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from edfa.blanket.columns import CategoricalColumn, Column, ContinuousColumn
from edfa.typing import AnyArray, Float64Array, IntArray

__all__ = ["CHUNK_ROWS", "Correlation", "CrossProducts"]

CHUNK_ROWS = 65_536  # rows whose terms are in memory at a time


@dataclass(frozen=True)
class Correlation:
    """Correlations of all terms, ``(terms, terms)``, over n rows; ``blocks``: the terms of each column, as slices."""

    matrix: Float64Array
    blocks: tuple[slice, ...]
    n: int


class CrossProducts:
    """Sums of the terms of all columns, and of their products, added up chunk by chunk."""

    def __init__(self, columns: Sequence[Column]) -> None:
        ends = np.cumsum([c.n_terms for c in columns])
        self.blocks = tuple(slice(int(e - c.n_terms), int(e)) for c, e in zip(columns, ends, strict=True))
        self._categorical = [(i, c) for i, c in enumerate(columns) if isinstance(c, CategoricalColumn)]
        self._continuous = [(i, c) for i, c in enumerate(columns) if isinstance(c, ContinuousColumn)]
        self.sums, self.products, self.n = np.zeros(ends[-1]), np.zeros((ends[-1], ends[-1])), 0

    def add(self, values: Sequence[AnyArray]) -> "CrossProducts":
        """Add one chunk: for each column an array ``(rows,)``, as ``Column.read`` returns it.

        Indicators are multiplied as sparse matrices: 500 levels cost as much as two.
        """
        n = len(values[0])
        indicators = self._indicators(values, n)
        terms = [column.embed(values[i]) for i, column in self._continuous]
        dense = np.concatenate(terms, axis=1) if terms else np.zeros((n, 0))
        w, d = (self._term_indices([i for i, _ in part]) for part in (self._categorical, self._continuous))
        self.sums[w] += np.asarray(indicators.sum(axis=0)).ravel()
        self.sums[d] += dense.sum(axis=0)
        self.products[np.ix_(w, w)] += (indicators.T @ indicators).toarray()
        self.products[np.ix_(d, d)] += dense.T @ dense
        mixed = indicators.T @ dense
        self.products[np.ix_(w, d)] += mixed
        self.products[np.ix_(d, w)] += mixed.T
        self.n += n
        return self

    def merge(self, other: "CrossProducts") -> "CrossProducts":
        """Add the sums of other rows of the same table."""
        self.sums += other.sums
        self.products += other.products
        self.n += other.n
        return self

    def correlation(self) -> Correlation:
        """The correlations over all rows added so far; those of a constant term are 0."""
        mean = self.sums / self.n
        covariance = self.products / self.n - np.outer(mean, mean)
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        constant = deviation < 1e-9
        scale = np.where(constant, 1.0, deviation)
        matrix = covariance / np.outer(scale, scale)
        matrix[constant, :] = matrix[:, constant] = 0.0
        return Correlation(matrix, self.blocks, self.n)

    def _term_indices(self, columns: Sequence[int]) -> IntArray:
        """Indices of all terms of some columns."""
        parts = [np.arange(self.blocks[i].start, self.blocks[i].stop) for i in columns]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.intp)

    def _indicators(self, values: Sequence[AnyArray], n: int) -> Any:
        """Indicators of all categorical columns, sparse ``(n, indicators)``: in each row at most one 1 a column."""
        widths = [column.n_terms for _, column in self._categorical]
        active = np.empty((n, len(self._categorical)), dtype=np.int64)
        for k, (i, column) in enumerate(self._categorical):
            active[:, k] = column.indicator(values[i])
        occurs = active >= 0
        active += np.cumsum([0, *widths])[:-1]
        ends = np.concatenate([[0], np.cumsum(occurs.sum(axis=1))])
        indices = active[occurs]
        return sparse.csr_array((np.ones(len(indices)), indices, ends), shape=(n, sum(widths)))
