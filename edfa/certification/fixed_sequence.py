"""From the strictest threshold upward, until the first that fails.

DEVIATION: equation (bound1) takes the largest threshold whose own bound passes, which certifies falsely far more often
than delta when the risk is not monotone. Algorithm 2's running maximum is this walk: each threshold is tested at the
full level, and to certify a bad one the walk would have to pass the first bad one, which it does with chance delta.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from edfa.certification.betting import log_capital, wsr_p_value
from edfa.certification.bounds import HALVINGS, cp_p_value, cp_ucb, hb_p_value, hb_ucb, hoeffding_p_value, hoeffding_ucb
from edfa.certification.risk_curve import Curve
from edfa.certification.sample_size import critical_losses
from edfa.typing import BoolArray, Float64Array, Int64Array

__all__ = ["BOUNDS", "Bound", "RiskTest", "leading"]

Bound = Literal["hb", "hb_kl", "cp", "wsr", "hoeffding"]
BOUNDS: tuple[Bound, ...] = ("hb", "hb_kl", "cp", "wsr", "hoeffding")
CELLS = 2**17  # people times thresholds of one block of bets
PREFIX = 64  # people to begin with


def leading(passed: BoolArray) -> Int64Array:
    """How many thresholds are passed before the first failure, along the last axis.

    >>> leading(np.array([[True, True, False, True], [False, True, True, True]]))
    array([2, 0])
    """
    return np.asarray(np.cumprod(passed, axis=-1, dtype=np.int64).sum(axis=-1))


@lru_cache(maxsize=1024)
def _most(n: int, alpha: float, delta: float, bound: Bound, unit: int) -> int:
    """Groups and candidates of one size ask for the same number."""
    return int(critical_losses(n, alpha, delta, bound, unit))


def _first(failed: BoolArray) -> int:
    at = int(np.argmax(failed))
    return at if failed[at] else len(failed)


@dataclass(frozen=True)
class RiskTest:
    """A test of "the risk is alpha or more" at each point of a curve, at level ``delta``.

    ``order`` is the one in which people are bet on, by their place on the curve; fixed without a look at the losses.
    """

    bound: Bound
    alpha: float
    delta: float
    order: Any = None
    horizon: int | None = None

    def walk(self, curve: Curve, points: Int64Array) -> int:
        """How many of the rising ``points`` are passed before the first failure."""
        if self.bound == "wsr":
            return _bet_along(self, curve, points)
        if curve.count is not None:  # the p-value rises with the losses, so one number decides
            most = _most(curve.n, self.alpha, self.delta, self.bound, curve.unit)
            return _first(curve.count[points] > most)
        return _first(self.p_values(curve, points) > self.delta)

    def p_values(self, curve: Curve, points: Int64Array) -> Float64Array:
        """The p-value for a risk of alpha or more at each of the rising ``points``."""
        if curve.count is not None and self.bound != "wsr":
            lost, back = np.unique(curve.count[points], return_inverse=True)  # far fewer than thresholds
            return np.asarray(self._p(self.alpha, curve, losses=lost, m=curve.unit))[back]
        return self._filled(curve, points)(np.full(len(points), self.alpha))

    def _filled(self, curve: Curve, points: Int64Array) -> Callable[[Float64Array], Float64Array]:
        """The p-values as a function of the risk in question, which is also what those not spoken of count as."""
        if self.bound == "wsr":
            hits, eligible = (part[:, self._order(curve)] for part in curve.people_at(points))
            return lambda mu: np.asarray(wsr_p_value(hits + (1 - eligible) * mu[:, None], mu, self.delta, self.horizon))
        lost, spoken = curve.hits[points], curve.eligible[points]
        if self.bound == "cp" and curve.conditional:
            lost, people = np.rint(lost), np.maximum(np.rint(spoken), 1)
            return lambda mu: np.where(spoken > 0, cp_p_value(n=people, mu=mu, losses=lost), 1.0)
        return lambda mu: self._p(mu, curve, risk=np.clip((lost + (curve.n - spoken) * mu) / curve.n, 0.0, 1.0))

    def _order(self, curve: Curve) -> Int64Array:
        return np.arange(curve.n) if self.order is None else self.order

    def _p(self, mu: Any, curve: Curve, **seen: Any) -> Any:
        if self.bound == "cp":
            seen.pop("m", None)
            return cp_p_value(n=curve.n, mu=mu, **seen)
        if self.bound == "hoeffding":
            return hoeffding_p_value(n=curve.n, mu=mu, **seen)
        return hb_p_value(n=curve.n, mu=mu, form="kl" if self.bound == "hb_kl" else "quadratic", **seen)

    def upper(self, curve: Curve, points: Int64Array) -> Float64Array:
        """The upper bound of the risk at ``points``: at most alpha exactly where the test passes."""
        if self.bound != "wsr" and not curve.conditional:
            return self._closed(curve, points)
        p_values = self._filled(curve, points)
        passed = p_values(np.full(len(points), self.alpha)) <= self.delta
        low, high = np.where(passed, 0.0, self.alpha), np.where(passed, self.alpha, 1.0)
        for _ in range(HALVINGS // 2):
            middle = (low + high) / 2
            out = p_values(middle) <= self.delta
            low, high = np.where(out, low, middle), np.where(out, middle, high)
        return high

    def surely_above(self, curve: Curve, point: int) -> bool:
        """Whether a lower bound of the risk exceeds alpha, so that more people cannot help."""
        kept = curve.n - curve.hits[point] - (curve.n - curve.eligible[point]) * self.alpha
        people, exact = curve.n, curve.binary
        if exact and curve.conditional:
            people, kept = round(curve.eligible[point]), curve.eligible[point] - curve.hits[point]
        if not people:
            return False
        upper = cp_ucb if exact else hb_ucb
        return bool(1 - upper(np.clip(kept / people, 0.0, 1.0), people, self.delta) > self.alpha)

    def _closed(self, curve: Curve, points: Int64Array) -> Float64Array:
        whole = curve.count is not None
        seen: dict[str, Any] = (
            {"losses": curve.count[points]} if curve.count is not None else {"risk": curve.risk[points]}
        )
        if self.bound == "cp":
            return np.asarray(cp_ucb(n=curve.n, delta=self.delta, **seen))
        seen |= {"m": curve.unit} if whole else {}
        if self.bound == "hoeffding":
            return np.asarray(hoeffding_ucb(n=curve.n, delta=self.delta, **seen))
        form: Any = "kl" if self.bound == "hb_kl" else "quadratic"
        return np.asarray(hb_ucb(n=curve.n, delta=self.delta, form=form, **seen))


def _bet_along(test: RiskTest, curve: Curve, points: Int64Array) -> int:
    """The walk by betting: exact, but not with bets on everybody at every threshold.

    Where the capital reaches 1/delta within the first people, thresholds that only change later people pass as well.
    So the bets go over a prefix of the people, which is doubled where it does not suffice.
    """
    order = test._order(curve)
    place = np.empty(curve.n, dtype=np.int64)
    place[order] = np.arange(curve.n)
    slot = np.searchsorted(points, curve.at)
    fill = np.array([1.0, -test.alpha])
    losses = (curve.start @ fill + test.alpha)[order]
    change, where = curve.change @ fill, place[curve.who]
    done = int(np.searchsorted(slot, 0, side="right"))
    np.add.at(losses, where[:done], change[:done])
    horizon, prefix = test.horizon or curve.n, min(PREFIX, curve.n)
    # The first row of every block is the threshold passed last, so that the first block tests the first threshold.
    while True:
        # So many changes that about CELLS / prefix of them fall within the prefix.
        upto = _block(slot, done, len(points), max(CELLS // prefix, 8) * curve.n // prefix)
        near = np.flatnonzero(where[done:upto] < prefix) + done
        slots, row = np.unique(slot[near], return_inverse=True)
        rows = np.zeros((len(slots) + 1, prefix))
        rows[0] = losses[:prefix]
        np.add.at(rows, (row + 1, where[near]), change[near])
        capital = log_capital(np.clip(np.cumsum(rows, axis=0), 0.0, 1.0), test.alpha, test.delta, horizon)
        passed = np.exp(-capital.max(axis=1)) <= test.delta
        if passed.all():
            np.add.at(losses, where[done:upto], change[done:upto])
            done = upto
            if done == len(slot) or slot[done] >= len(points):
                return len(points)
        elif prefix < curve.n:
            prefix = min(2 * prefix, curve.n)
        else:
            return int(np.append(0, slots)[np.argmin(passed)])


def _block(slot: Int64Array, done: int, points: int, size: int) -> int:
    """The end of the next changes to look at: whole thresholds, about ``size`` changes."""
    if done == len(slot) or slot[done] >= points:
        return done
    last = min(slot[min(done + size, len(slot)) - 1], points - 1)
    return int(np.searchsorted(slot, last, side="right"))
