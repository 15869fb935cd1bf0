"""Tests of conditional independence on mixed tables, behind one protocol: ``(x, y, conditions) ->
CIResult``.

- ``g2``: likelihood ratio on counts, degrees of freedom adjusted for empty margins; unreliable
  below 5 rows a cell.
- ``x2mm``: Pearson's statistic with its exact conditional mean and variance, for sparse and
  high-cardinality tables.
- ``lrt``: likelihood ratio of multivariate regressions on spline terms, from one correlation
  matrix: constant in n.
- ``fisher_z``: partial correlation of plain scores, the field's standard for continuous data.
- ``auto``: ``g2`` where it is reliable, ``x2mm`` above 20 levels or 100 degrees of freedom, else
  ``lrt``, which from 2,000 rows on must be confirmed by ``cmh`` within thin strata, because it is
  blind to interactions among conditions. A column that several conditions determine together, and
  none alone, cannot be tested: unreliable.

References: Dawson (1954) for the moments of Pearson's statistic; Bartlett (1938) and Rao (1951) for
the distribution of Wilks' lambda; Landis, Heyman and Koch (1978) for Cochran, Mantel and Haenszel's
statistic on tables of any size.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from edfa.blanket.columns import (
    ROWS_PER_STRATUM,
    TEST_BINS,
    CategoricalColumn,
    ContinuousColumn,
    finest_bins,
)
from edfa.blanket.contingency import (
    ROWS_PER_CELL,
    CIResult,
    ContingencyTable,
    cmh,
    g2,
    test_work,
    x2mm,
)
from edfa.blanket.correlation_tests import CorrelationTests
from edfa.blanket.sources.base import TableSource

TestName = Literal["auto", "g2", "x2mm", "lrt", "fisher_z"]
TESTS: tuple[TestName, ...] = get_args(TestName)
RankBy = Literal["effect", "statistic"]
MANY_LEVELS = 20
# Degrees of freedom from which g2's excess over chi-square adds up, at five rows a cell.
MANY_DOF = 100
CONFIRM_FROM = 2_000  # rows from which an lrt is confirmed within strata
ROWS_TO_CONFIRM = 5  # of each stratum in which an lrt is confirmed
MAX_STRATA = 20_000
PARTIAL_BYTES = 4_096  # of a partial result of a search


class Tester(ABC):
    """Runs each test once, caches its result, and decides at a significance level.

    A subclass implements ``run``; ``Search.find`` takes any tester.

    Parameters
    ----------
    names
        The names of the columns, which are numbered in this order.
    significance_level
        The largest p-value of a dependence.
    min_effect
        The smallest effect of a dependence, in nats.
    rank_by
        Whether candidates are ranked by effect or by statistic.

    Attributes
    ----------
    results
        The results so far, by (x, y, conditions) with x < y and conditions sorted.
    memo
        Partial results of searches, shared between targets.
    """

    def __init__(
        self,
        names: Iterable[str],
        significance_level: float = 0.01,
        min_effect: float = 0.0,
        rank_by: RankBy = "effect",
    ) -> None:
        self.names = tuple(names)
        self.significance_level = significance_level
        self.min_effect = min_effect
        self.rank_by = rank_by
        self.results: dict[tuple[int, int, tuple[int, ...]], CIResult] = {}
        self.memo = test_work(PARTIAL_BYTES)

    @abstractmethod
    def run(self, x: int, y: int, conditions: tuple[int, ...]) -> CIResult:
        """Test columns x < y given the conditions, which are sorted; called once for each test."""

    def test(self, x: int, y: int, conditions: Iterable[int] = ()) -> CIResult:
        """Test whether columns x and y are independent given the conditions.

        The order of either does not matter; a test that was run before is not run again.
        """
        key = min(x, y), max(x, y), tuple(sorted(conditions))
        if (result := self.results.get(key)) is None:
            result = self.results[key] = self.run(*key)
        return result

    def significant(self, result: CIResult) -> bool:
        """Whether a result shows dependence: p at most the significance level, and at least the
        smallest effect.
        """
        return result.p <= self.significance_level and result.effect >= self.min_effect

    def independent(self, x: int, y: int, conditions: Iterable[int] = ()) -> bool:
        """Whether columns x and y are reliably independent given the conditions."""
        result = self.test(x, y, conditions)
        return result.reliable and not self.significant(result)

    def strength(self, result: CIResult) -> float:
        """The number by which candidates are ranked; 0 unless dependent.

        Rounded to nine digits, so that floating-point noise breaks no tie.
        """
        if not (result.reliable and self.significant(result)):
            return 0.0
        value = result.statistic if self.rank_by == "statistic" else result.effect
        return float(f"{value:.9g}")


class DataTester(Tester):
    """Tests the columns of a table. One tester serves every method and target, so that they share
    its cache.

    Parameters
    ----------
    source
        The table.
    test
        Which test decides: ``"auto"``, ``"g2"``, ``"x2mm"``, ``"lrt"`` or ``"fisher_z"``, as the
        head of this module describes them.
    significance_level, min_effect, rank_by
        As in ``Tester``.

    Examples
    --------
    >>> from edfa.blanket.sources.open import open_source
    >>> from edfa.data.synthetic import credit_story
    >>> source, target, _ = open_source(credit_story().table(2_000), None, None, False)
    >>> tester = DataTester(source)
    >>> x, y = tester.names.index("savings"), tester.names.index(target)
    >>> tester.test(x, y).test, tester.independent(x, y)
    ('g2', False)
    """

    def __init__(
        self,
        source: TableSource,
        test: TestName = "auto",
        significance_level: float = 0.01,
        min_effect: float = 0.001,
        rank_by: RankBy = "effect",
    ) -> None:
        super().__init__((c.name for c in source.columns), significance_level, min_effect, rank_by)
        self.source = source
        self.kind = test
        self._n_codes = [float(c.n_codes(TEST_BINS)) for c in source.columns]
        self._n_levels = [
            codes if isinstance(column, CategoricalColumn) else math.inf
            for column, codes in zip(source.columns, self._n_codes, strict=True)
        ]

    def run(self, x: int, y: int, conditions: tuple[int, ...]) -> CIResult:
        """Run the test; a column that is also a condition is independent of everything (only parity
        mode asks).
        """
        if x in conditions or y in conditions:
            possible_cells = math.prod(self._n_codes[i] for i in (x, y, *conditions))
            enough = self.source.n >= ROWS_PER_CELL * possible_cells
            return CIResult(1.0, 0.0, 0.0, 0.0, enough, "none")
        if self.kind == "auto":
            return self._auto(x, y, conditions)
        if self.kind == "lrt":
            return self._correlation_tests.likelihood_ratio(x, y, conditions)
        if self.kind == "fisher_z":
            return self._correlation_tests.fisher_z(x, y, conditions)
        table = self.source.contingency_table(x, y, conditions, bins=TEST_BINS)
        return g2(table) if self.kind == "g2" else x2mm(table)

    def _auto(self, x: int, y: int, conditions: tuple[int, ...]) -> CIResult:
        """The test that suits the columns and the number of rows."""
        possible_cells = math.prod([self._n_levels[i] for i in (x, y, *conditions)])
        if self.source.n >= ROWS_PER_CELL * possible_cells:
            return self._count_test(x, y, conditions)
        result = self._correlation_tests.likelihood_ratio(x, y, conditions)
        wide = self._is_wide(x, y)
        bins = self._confirming_bins(conditions, ROWS_PER_STRATUM if wide else ROWS_TO_CONFIRM)
        if not (bins and self.significant(result)):
            return result
        # DEVIATION: the note confirms by x2mm in strata of 25 rows, from 5,000 rows on. That adds
        # up squares over the strata and so misses weak dependences; cmh squares the sum, and has
        # power to spare for narrower strata.
        second = (x2mm if wide else cmh)(self.source.contingency_table(x, y, conditions, bins))
        return replace(result, p=max(result.p, second.p), test=f"lrt+{second.test}")

    def _is_wide(self, x: int, y: int) -> bool:
        """Whether one of two columns has many levels."""
        return max(self._n_codes[x], self._n_codes[y]) > MANY_LEVELS

    def _count_test(self, x: int, y: int, conditions: tuple[int, ...]) -> CIResult:
        """Test on a well-filled table; unreliable if several conditions together determine x or
        y.
        """
        table = self.source.contingency_table(x, y, conditions, bins=TEST_BINS)
        wide = self._is_wide(x, y)
        result = x2mm(table) if wide else g2(table)
        untested = result.dof == 0 and len(conditions) > 1
        if untested and self._determined_jointly(x, y, conditions, table):
            # DEVIATION: the note reads no degrees of freedom as independence. Of a target that a
            # law of several columns makes (either = lung or tub), that would drop all that is
            # beyond the law: nothing was tested.
            return replace(result, reliable=False, test="law")
        return result if wide or result.dof <= MANY_DOF else x2mm(table)

    def _determined_jointly(
        self, x: int, y: int, conditions: tuple[int, ...], table: ContingencyTable
    ) -> bool:
        """Whether the conditions determine x or y together, and none does alone: a copy of a
        condition is redundant.
        """
        determined = [
            i
            for i, margin in zip((x, y), table.margins(), strict=True)
            if np.count_nonzero(margin, axis=1).max(initial=0) <= 1
        ]
        alone = (self._determines(c, i) for i in determined for c in conditions)
        return bool(determined) and not any(alone)

    def _determines(self, condition: int, column: int) -> bool:
        """Whether one column alone determines another."""

        def find_out() -> bool:
            left, right = min(column, condition), max(column, condition)
            counts = self.source.contingency_table(left, right, (), bins=TEST_BINS).pooled()
            return bool(((counts > 0).sum(axis=0 if column == left else 1) <= 1).all())

        return bool(self.memo.get(("determines", condition, column), find_out))

    def _confirming_bins(self, conditions: tuple[int, ...], rows: int) -> int:
        """Bins of each continuous condition such that strata hold ``rows`` rows on average; 0 if
        that is too coarse.
        """
        columns = [self.source.columns[i] for i in conditions]
        continuous = sum(isinstance(c, ContinuousColumn) for c in columns)
        if self.source.n < CONFIRM_FROM or not continuous:
            return 0
        strata = math.prod(
            float(c.n_codes(TEST_BINS)) for c in columns if isinstance(c, CategoricalColumn)
        )
        return finest_bins((min(self.source.n / rows, MAX_STRATA) / strata) ** (1 / continuous))

    @cached_property
    def _correlation_tests(self) -> CorrelationTests:
        """Tests on all terms of each column; Fisher's on its first alone, the score of a number or
        the indicator of the second level.
        """
        correlation = self.source.correlation()
        blocks = [np.arange(block.start, block.stop) for block in correlation.blocks]
        if self.kind == "fisher_z":
            blocks = [block[:1] for block in blocks]
        tested = [column.n_tested_terms for column in self.source.columns]
        return CorrelationTests(correlation.between, correlation.n, blocks, tested)
