"""From a finished walk to a certificate: which threshold, which zone, how many more people."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from edfa.certification.certificate import Certificate, Point, Status
from edfa.certification.fixed_sequence import RiskTest
from edfa.certification.risk_curve import Curve
from edfa.certification.sample_size import PLANNED, Required, floor, n_required
from edfa.typing import Float64Array, Int64Array

__all__ = ["Found", "issue"]

SHOWN = 200  # points of a curve that are kept


@dataclass(frozen=True, eq=False)
class Found:
    """A walk: the thresholds tried, their points on the curve, and how many passed before the first failure."""

    curve: Curve
    test: RiskTest
    tried: Float64Array
    points: Int64Array
    passed: int
    every: bool  # whether all thresholds there are were tried

    @property
    def at(self) -> int:
        """The point of the last threshold passed, or of the first one tried."""
        return int(self.points[max(self.passed - 1, 0)])

    @property
    def chosen(self) -> float:
        """The largest signal at which the certified rule stops somebody; or the first threshold tried."""
        if not self.passed:
            return float(self.tried[0])
        return self.interval[0]

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The thresholds that do the same on these people as the largest one passed."""
        curve = self.curve
        if not self.every:
            tau = float(self.tried[self.passed - 1])
            return curve.last_low(np.nextafter(tau, np.inf)), curve.next_low(tau)
        high = float(curve.tau[self.at + 1]) if self.at + 1 < len(curve.tau) else np.inf
        return max(curve.last_low(high), float(self.tried[0])), high

    @property
    def tau(self) -> float:
        """The threshold to use; half-way to the next signal, where rounding at deployment cannot reach it."""
        # DEVIATION: Algorithm 2 takes the grid point itself; bound="paper" does so too.
        if not self.every:
            return float(self.tried[self.passed - 1])
        low, high = self.interval
        if np.isinf(low) or np.isinf(high):
            return low if np.isinf(low) else high
        middle = low + (high - low) / 2
        return middle if middle < high else low


def issue(blank: Certificate, found: Found) -> Certificate:
    """Fill in ``blank`` from what the walk found."""
    needed, n_more = _needed(found) if not found.passed else (None, None)
    shown = _points(found)
    here = next(point for point in shown if point.tau == found.chosen)
    filled = replace(
        blank,
        status=_status(found),
        method=blank.method if blank.method == "paper" else found.test.bound,
        n=found.curve.n,
        risk=here.risk,
        bound=here.bound,
        cost=here.cost,
        triggered=here.triggered,
        required=needed,
        n_more=n_more,
        complete=found.passed == len(found.tried),
        curve=shown,
        warnings=_warnings(blank, found),
    )
    if found.passed:
        return replace(filled, tau=found.tau, interval=found.interval)
    return replace(filled, tau=float(found.tried[0]) if blank.method == "paper" else -np.inf)


def _status(found: Found) -> Status:
    if found.passed:
        return "certified"
    # DEVIATION: the paper says risk-limited as soon as the observed risk reaches alpha; here a lower bound must.
    return "risk_limited" if found.test.surely_above(found.curve, found.at) else "data_limited"


def _needed(found: Found) -> tuple[Required, int | None]:
    """People needed at the risk of the first threshold tried, and how many more of the same kind that is."""
    curve, test = found.curve, found.test
    bound = test.bound if test.bound in PLANNED else "hb"
    needed = n_required(test.alpha, float(curve.risk[found.at]), test.delta, bound)
    spoken = curve.eligible[found.at] if curve.conditional else curve.n
    if needed.stable is None or spoken == 0 or test.surely_above(curve, found.at):
        return needed, None
    more = max(needed.stable - spoken, 1) * curve.n / spoken
    return needed, int(np.ceil(more - 1e-9))


def _points(found: Found) -> tuple[Point, ...]:
    """The grid that was tried, or the curve, thinned; its ends, the threshold chosen and the one after it are there."""
    curve, last = found.curve, len(found.curve.tau) - 1
    room = SHOWN if found.test.bound != "wsr" else int(np.clip(200_000 // curve.n, 20, SHOWN))
    shown = curve.tau[np.linspace(0, last, min(room, last + 1)).astype(np.int64)] if found.every else found.tried
    after = curve.tau[min(found.at + 1, last)]
    levels = np.unique(np.concatenate([curve.tau[[0, last]], shown, [found.chosen, after]]))
    points = curve.index(levels)
    upper, p = found.test.upper(curve, points), found.test.p_values(curve, points)
    columns: list[Any] = [levels, curve.risk[points], upper, p, *curve.triggered_and_cost(levels)]
    return tuple(Point(*values) for values in zip(*(column.tolist() for column in columns), strict=True))


def _warnings(blank: Certificate, found: Found) -> tuple[str, ...]:
    curve, test = found.curve, found.test
    told = []
    least = floor(test.alpha, test.delta, test.bound if test.bound in PLANNED else "cp")
    if curve.n < least:
        told.append(f"below {least} people nothing can be certified at this level, even without a loss")
    if curve.n < blank.people:
        told.append(
            f"{blank.people - curve.n} of {blank.people} people have no plan at any step; nothing is said of them"
        )
    if blank.method == "paper":
        told.append("the grid comes from the calibration runs themselves, which the theory does not cover")
    if test.bound != "wsr" or test.horizon is None:
        told.append("valid for one look at one calibration set; more looks need bound='wsr' with a horizon")
    return tuple(told)
