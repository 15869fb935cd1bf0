"""Tests of conditional independence on mixed tables, behind one protocol: ``(x, y, given) -> CIResult``.

- ``g2``: likelihood ratio on counts, degrees of freedom adjusted for empty margins; unreliable below 5 rows a cell.
- ``x2mm``: Pearson's statistic with its exact conditional mean and variance, for sparse and high-cardinality tables.
- ``lrt``: likelihood ratio of multivariate regressions on spline terms, from one correlation matrix: constant in n.
- ``fisher_z``: partial correlation of plain scores, the field's standard for continuous data.
- ``auto``: ``g2`` where it is reliable, ``x2mm`` above 20 levels or 100 degrees of freedom, else ``lrt``, which from
  2,000 rows on must be confirmed by ``cmh`` within thin strata, because it is blind to interactions among conditions.
  A column that several conditions determine together, and none alone, cannot be tested: unreliable.

References: Dawson (1954) for the moments of Pearson's statistic; Bartlett (1938) and Rao (1951) for the law of Wilks'
lambda; Landis, Heyman and Koch (1978) for Cochran, Mantel and Haenszel's statistic on tables of any size.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from edfa.blanket.cells import Cells
from edfa.blanket.columns import ROWS_PER_STRATUM, TEST_BINS, Numbers, Words, bins_for
from edfa.blanket.counts import Source
from edfa.blanket.tables import ROWS_PER_CELL, CIResult, cmh, g2, x2mm
from edfa.blanket.wilks import Blocks

__all__ = ["CIResult", "DataTester", "TestName", "Tester", "g2", "x2mm"]

TestName = Literal["auto", "g2", "x2mm", "lrt", "fisher_z"]
TESTS: tuple[TestName, ...] = ("auto", "g2", "x2mm", "lrt", "fisher_z")
MANY_LEVELS = 20
MANY_FREE = 100  # degrees of freedom from which g2's excess over chi-square adds up, at five rows a cell
CONFIRM_FROM = 2_000
THIN = 5  # rows of a stratum that confirms
MOST_STRATA = 20_000


class Tester(ABC):
    """Asks each question once, counts, and reads the answers at a level. Subclasses answer in ``run``."""

    def __init__(
        self, names: Iterable[str], alpha: float = 0.01, min_effect: float = 0.0, rank: str = "effect"
    ) -> None:
        self.names = tuple(names)
        self.alpha = alpha
        self.min_effect = min_effect
        self.rank = rank
        self.results: dict[tuple[int, int, tuple[int, ...]], CIResult] = {}
        self.memo: dict[tuple[object, ...], Any] = {}  # what a search found before, for other targets to use

    @abstractmethod
    def run(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        """Answer one question, x < y, conditions sorted."""

    def test(self, x: int, y: int, given: Iterable[int] = ()) -> CIResult:
        """Whether x and y are independent given others; the same answer for (y, x) and any order of the others."""
        key = (x, y, tuple(sorted(given))) if x < y else (y, x, tuple(sorted(given)))
        if (known := self.results.get(key)) is None:
            known = self.results[key] = self.run(*key)
        return known

    def significant(self, result: CIResult) -> bool:
        """Whether a result speaks for dependence: p at most alpha, and an effect worth the name."""
        return result.p <= self.alpha and result.effect >= self.min_effect

    def dependent(self, x: int, y: int, given: Iterable[int] = ()) -> bool:
        """Reliably dependent."""
        result = self.test(x, y, given)
        return result.reliable and self.significant(result)

    def independent(self, x: int, y: int, given: Iterable[int] = ()) -> bool:
        """Reliably independent."""
        result = self.test(x, y, given)
        return result.reliable and not self.significant(result)

    def strength(self, result: CIResult) -> float:
        """What candidates are ranked by; 0 unless dependent. Rounded, so that noise in the last bits breaks no tie."""
        if not (result.reliable and self.significant(result)):
            return 0.0
        value = result.statistic if self.rank == "statistic" else result.effect
        return float(f"{value:.9g}")

    @property
    def tests(self) -> int:
        """How many different questions were asked."""
        return len(self.results)


class DataTester(Tester):
    """Answers from a table. One tester serves every method and target; its caches are the table's."""

    def __init__(
        self,
        source: Source,
        test: TestName = "auto",
        alpha: float = 0.01,
        min_effect: float = 0.001,
        rank: str = "effect",
    ) -> None:
        super().__init__((c.name for c in source.columns), alpha, min_effect, rank)
        self.source = source
        self.kind = test
        self._sizes = [float(c.size(TEST_BINS)) for c in source.columns]
        counted = [isinstance(c, Words) for c in source.columns]
        self._levels = [size if words else math.inf for size, words in zip(self._sizes, counted, strict=True)]
        answers = {"auto": self._auto, "g2": self._g2, "x2mm": self._x2mm, "lrt": self._lrt, "fisher_z": self._fisher_z}
        self._answer = answers[test]

    def run(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        """A column that is among the conditions tells nothing more; only parity mode ever asks."""
        if x in given or y in given:
            space = math.prod(self._sizes[i] for i in (x, y, *given))
            return CIResult(1.0, 0.0, 0.0, 0.0, self.source.n >= ROWS_PER_CELL * space, "none")
        return self._answer(x, y, given)

    def _g2(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        return g2(self.source.cells(x, y, given, bins=TEST_BINS))

    def _x2mm(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        return x2mm(self.source.cells(x, y, given, bins=TEST_BINS))

    def _lrt(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        return self._splines.test(x, y, given)

    def _fisher_z(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        return self._scores.fisher_z(x, y, given)

    def _auto(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        space = math.prod([self._levels[i] for i in (x, y, *given)])
        if self.source.n >= ROWS_PER_CELL * space:
            return self._counted(x, y, given)
        result = self._lrt(x, y, given)
        wide = max(self._sizes[x], self._sizes[y]) > MANY_LEVELS
        bins = self._confirming_bins(given, ROWS_PER_STRATUM if wide else THIN)
        if not (bins and self.significant(result)):
            return result
        # DEVIATION: the note confirms by x2mm in strata of 25 rows, from 5,000 rows on. That adds up squares over the
        # strata and so misses weak dependences; cmh squares the sum, and has power to spare for narrower strata.
        second = (x2mm if wide else cmh)(self.source.cells(x, y, given, bins))
        return replace(result, p=max(result.p, second.p), test=f"lrt+{second.test}")

    def _counted(self, x: int, y: int, given: tuple[int, ...]) -> CIResult:
        """Well-filled tables; no answer where several conditions together leave x or y no room to vary."""
        cells = self.source.cells(x, y, given, bins=TEST_BINS)
        wide = max(self._sizes[x], self._sizes[y]) > MANY_LEVELS
        result = x2mm(cells) if wide else g2(cells)
        if result.dof == 0 and len(given) > 1 and self._is_law(x, y, given, cells):
            # DEVIATION: the note reads no degrees of freedom as independence. Of a target that a law of several columns
            # makes (either = lung or tub), that would drop all that is beyond the law: nothing was tested.
            return replace(result, reliable=False, test="law")
        return result if wide or result.dof <= MANY_FREE else x2mm(cells)

    def _is_law(self, x: int, y: int, given: tuple[int, ...], cells: Cells) -> bool:
        """Whether the conditions determine x or y together, and none of them alone: who copies another is redundant."""
        left, right = cells.margins()
        fixed = [i for i, margin in ((x, left), (y, right)) if margin.present.max(initial=0) <= 1]
        return bool(fixed) and not any(self._copies(i, g) for i in fixed for g in given)

    def _copies(self, i: int, other: int) -> bool:
        """Whether one column alone determines another."""
        key = ("copies", i, other)
        if key not in self.memo:
            left, right = min(i, other), max(i, other)
            table = self.source.cells(left, right, (), bins=TEST_BINS).pooled()
            self.memo[key] = bool(((table > 0).sum(axis=0 if i == left else 1) <= 1).all())
        return bool(self.memo[key])

    def _confirming_bins(self, given: tuple[int, ...], rows: int) -> int:
        """How finely continuous conditions can be cut so that a stratum keeps its rows; 0 where that is too coarse."""
        columns = [self.source.columns[i] for i in given]
        continuous = sum(isinstance(c, Numbers) for c in columns)
        if self.source.n < CONFIRM_FROM or not continuous:
            return 0
        strata = math.prod(float(c.size(TEST_BINS)) for c in columns if isinstance(c, Words))
        return bins_for((min(self.source.n / rows, MOST_STRATA) / strata) ** (1 / continuous))

    @cached_property
    def _splines(self) -> "Blocks":
        found = self.source.correlation()
        blocks = [np.arange(b.start, b.stop) for b in found.blocks]
        return Blocks(found.matrix, blocks, found.n, [c.tested for c in self.source.columns])

    @cached_property
    def _scores(self) -> "Blocks":
        """The first term of each block: a number's score, the indicator of a word's second level."""
        found = self.source.correlation()
        return Blocks(found.matrix, [np.arange(b.start, b.start + 1) for b in found.blocks], found.n)
