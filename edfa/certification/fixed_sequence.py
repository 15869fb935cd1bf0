"""Fixed-sequence testing: thresholds are tested from the strictest upward, until the first that
fails.

DEVIATION: equation (bound1) takes the largest threshold whose own bound passes, which certifies
falsely far more often than delta when the risk is not monotone. Algorithm 2's running maximum is
this sequence: each threshold is tested at the full level, and to certify a bad one the sequence
would have to pass the first bad one, which it does with probability delta.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edfa.certification.bounds import (
    HALVINGS,
    Bound,
    cp_p_value,
    cp_ucb,
    hb_ucb,
    log_capital,
    p_value,
    upper_bound,
    wsr_p_value,
)
from edfa.certification.risk_curve import RiskCurve
from edfa.typing import BoolArray, Float64Array, Int64Array

__all__ = ["FixedSequenceResult", "RiskTest", "between", "leading"]

BETS_AT_A_TIME = 2**17  # people times thresholds of one block
FIRST_PEOPLE = 64  # whom bets are made on to begin with


def leading(passed: BoolArray) -> Int64Array:
    """Number of tests passed before the first failure, along the last axis; (..., tests) to (...).

    >>> leading(np.array([[True, True, False, True], [False, True, True, True]]))
    array([2, 0])
    """
    return np.asarray(np.cumprod(passed, axis=-1, dtype=np.int64).sum(axis=-1))


@dataclass(frozen=True)
class RiskTest:
    """A test of "the risk is alpha or more" at points of a risk curve, at level ``delta``.

    ``order`` is the order in which people are bet on, as positions on the curve, fixed without
    looking at the losses; ``horizon`` the number of people the bets plan for. Both concern the
    bound "wsr" alone.
    """

    bound: Bound
    alpha: float
    delta: float
    order: Int64Array | None = None
    horizon: int | None = None

    def count_passed(self, curve: RiskCurve, points: Int64Array) -> int:
        """Number of the rising ``points`` that pass before the first failure."""
        if self.bound == "wsr":
            return _count_passed_by_betting(self, curve, points)
        return _first_true(self.p_values(curve, points) > self.delta)

    def p_values(self, curve: RiskCurve, points: Int64Array) -> Float64Array:
        """The p-value of "the risk is alpha or more" at each of the rising ``points``."""
        if curve.lost_count is not None and self.bound != "wsr":
            lost, inverse = np.unique(
                curve.lost_count[points], return_inverse=True
            )  # far fewer than thresholds
            return p_value(self.bound, self.alpha, curve.n, losses=lost, m=curve.unit)[inverse]
        return self._p_value_function(curve, points)(np.full(len(points), self.alpha))

    def upper(self, curve: RiskCurve, points: Int64Array) -> Float64Array:
        """The upper bound of the risk at each of the rising ``points``: at most alpha exactly where
        the test passes.
        """
        if self.bound != "wsr" and not curve.conditional:
            if curve.lost_count is None:
                return upper_bound(self.bound, self.delta, curve.n, risk=curve.risk[points])
            return upper_bound(
                self.bound, self.delta, curve.n, losses=curve.lost_count[points], m=curve.unit
            )
        p_values = self._p_value_function(curve, points)
        passed = p_values(np.full(len(points), self.alpha)) <= self.delta
        low, high = np.where(passed, 0.0, self.alpha), np.where(passed, self.alpha, 1.0)
        for _ in range(HALVINGS // 2):
            middle = (low + high) / 2
            ruled_out = p_values(middle) <= self.delta
            low, high = np.where(ruled_out, low, middle), np.where(ruled_out, middle, high)
        return high

    def surely_above(self, curve: RiskCurve, point: int) -> bool:
        """Whether a lower bound of the risk at ``point`` exceeds alpha, so that more people cannot
        help.
        """
        successes = curve.n - curve.lost[point] - (curve.n - curve.eligible[point]) * self.alpha
        people, exact = curve.n, curve.binary
        if exact and curve.conditional:
            people, successes = (
                round(curve.eligible[point]),
                curve.eligible[point] - curve.lost[point],
            )
        if not people:
            return False
        upper = cp_ucb if exact else hb_ucb
        return bool(
            1 - upper(np.clip(successes / people, 0.0, 1.0), people, self.delta) > self.alpha
        )

    def bet_order(self, curve: RiskCurve) -> Int64Array:
        """The positions of people on the curve, in the order in which they are bet on."""
        return np.arange(curve.n) if self.order is None else self.order

    def _p_value_function(
        self, curve: RiskCurve, points: Int64Array
    ) -> Callable[[Float64Array], Float64Array]:
        """The p-values at ``points`` as a function of the tested risk ``mu``, (points,) to
        (points,).

        People whom the target is not about count as a loss of ``mu``, which neither helps nor
        hurts.
        """
        if self.bound == "wsr":
            lost, eligible = (part[:, self.bet_order(curve)] for part in curve.people_at(points))
            return lambda mu: np.asarray(
                wsr_p_value(lost + (1 - eligible) * mu[:, None], mu, self.delta, self.horizon)
            )
        lost, eligible = curve.lost[points], curve.eligible[points]
        if self.bound == "cp" and curve.conditional:
            lost, people = np.rint(lost), np.maximum(np.rint(eligible), 1)
            return lambda mu: np.where(eligible > 0, cp_p_value(n=people, mu=mu, losses=lost), 1.0)
        n = curve.n
        return lambda mu: p_value(
            self.bound, mu, n, risk=np.clip((lost + (n - eligible) * mu) / n, 0.0, 1.0)
        )


@dataclass(frozen=True, eq=False)
class FixedSequenceResult:
    """The outcome of testing ``thresholds`` in rising order on a risk curve.

    ``points`` are the thresholds' points on the curve, ``passed`` is how many passed before the
    first failure, and ``grid_free`` says whether the thresholds were all there are, rather than a
    grid. ``also`` is a second curve that the same thresholds had to pass, ``ceiling`` the largest
    threshold that may be used.
    """

    curve: RiskCurve
    test: RiskTest
    thresholds: Float64Array
    points: Int64Array
    passed: int
    grid_free: bool
    also: RiskCurve | None = None
    ceiling: float | None = None

    @property
    def curves(self) -> tuple[RiskCurve, ...]:
        """The curves that the thresholds had to pass."""
        return (self.curve,) if self.also is None else (self.curve, self.also)

    @property
    def complete(self) -> bool:
        """Whether every threshold passed."""
        return self.passed == len(self.thresholds)

    @property
    def point(self) -> int:
        """The point of the last threshold that passed; of the first one if none did."""
        return int(self.points[max(self.passed - 1, 0)])

    @property
    def tau_on_curve(self) -> float:
        """The largest signal at which the certified rule stops somebody; the first threshold if
        none passed.
        """
        if not self.passed:
            return float(self.thresholds[0])
        return self.interval[0]

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The thresholds [low, high) that stop the calibration runs where the last one that passed
        does.

        Where nothing but the ceiling ends them, it is the last of them.
        """
        curve, most = self.curve, np.inf if self.ceiling is None else self.ceiling
        if not self.grid_free:
            tau = float(self.thresholds[self.passed - 1])
            return curve.trigger_below(np.nextafter(tau, np.inf)), min(
                curve.trigger_above(tau), most
            )
        if self.complete:
            return max(
                curve.trigger_below(np.nextafter(most, np.inf)), float(self.thresholds[0])
            ), most
        high = float(self.thresholds[self.passed])
        return max(curve.trigger_below(high), float(self.thresholds[0])), high

    @property
    def tau(self) -> float:
        """The threshold to use: half-way to the next signal, where rounding at deployment cannot
        reach it.
        """
        # DEVIATION: Algorithm 2 takes the grid point itself; bound="paper" does so too.
        if not self.grid_free:
            return float(self.thresholds[self.passed - 1])
        if self.complete and self.ceiling is not None:
            return self.ceiling
        return between(*self.interval)


def between(low: float, high: float) -> float:
    """A threshold half-way between two signals; an infinite one, the first, stands for itself."""
    if np.isinf(low) or np.isinf(high):
        return low if np.isinf(low) else high
    middle = low + (high - low) / 2
    return middle if middle < high else low


def _first_true(mask: BoolArray) -> int:
    """Position of the first true element, or the length if there is none."""
    position = int(np.argmax(mask))
    return position if mask[position] else len(mask)


def _count_passed_by_betting(test: RiskTest, curve: RiskCurve, points: Int64Array) -> int:
    """``RiskTest.count_passed`` for betting: exact, but without betting on everybody at every
    threshold.

    Where the capital reaches 1/delta within the first people, thresholds that only change later
    people pass as well. So bets are made on a prefix of the people, which is doubled where it does
    not suffice.
    """
    order = test.bet_order(curve)
    rank = np.empty(curve.n, dtype=np.int64)
    rank[order] = np.arange(curve.n)
    slot = np.searchsorted(
        points, curve.change_point
    )  # the first of ``points`` that sees each change
    fill = np.array(
        [1.0, -test.alpha]
    )  # people whom the target is not about count as a loss of alpha
    losses = (curve.start @ fill + test.alpha)[order]
    change, changed_rank = curve.change @ fill, rank[curve.change_person]
    done = int(np.searchsorted(slot, 0, side="right"))
    np.add.at(losses, changed_rank[:done], change[:done])
    horizon, prefix = test.horizon or curve.n, min(FIRST_PEOPLE, curve.n)
    # The first row of every block is the threshold passed last, so that the first block tests the
    # first threshold.
    while True:
        # Enough changes that about BETS_AT_A_TIME / prefix of them fall within the prefix.
        end = _end_of_block(
            slot, done, len(points), max(BETS_AT_A_TIME // prefix, 8) * curve.n // prefix
        )
        near = np.flatnonzero(changed_rank[done:end] < prefix) + done
        slots, row = np.unique(slot[near], return_inverse=True)
        rows = np.zeros((len(slots) + 1, prefix))
        rows[0] = losses[:prefix]
        np.add.at(rows, (row + 1, changed_rank[near]), change[near])
        capital = log_capital(
            np.clip(np.cumsum(rows, axis=0), 0.0, 1.0), test.alpha, test.delta, horizon
        )
        passed = np.exp(-capital.max(axis=1)) <= test.delta
        if passed.all():
            np.add.at(losses, changed_rank[done:end], change[done:end])
            done = end
            if done == len(slot) or slot[done] >= len(points):
                return len(points)
        elif prefix < curve.n:
            prefix = min(2 * prefix, curve.n)
        else:
            return int(np.append(0, slots)[np.argmin(passed)])


def _end_of_block(slot: Int64Array, done: int, n_points: int, size: int) -> int:
    """The end of the next changes to look at: whole thresholds, about ``size`` changes from
    ``done`` on.
    """
    if done == len(slot) or slot[done] >= n_points:
        return done
    last = min(slot[min(done + size, len(slot)) - 1], n_points - 1)
    return int(np.searchsorted(slot, last, side="right"))
