"""From the result of fixed-sequence testing to a certificate: its threshold, its zone, and how many
more people.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from edfa.certification.bounds import COUNT_BOUNDS
from edfa.certification.certificate import Certificate, Point, Status
from edfa.certification.fixed_sequence import FixedSequenceResult, RiskTest
from edfa.certification.risk_curve import RiskCurve
from edfa.certification.sample_size import floor, n_required

__all__ = ["issue"]

SHOWN = 200  # points of a curve that a certificate keeps


def issue(blank: Certificate, result: FixedSequenceResult) -> Certificate:
    """Fill in ``blank``, which holds the settings, from the result of the tests."""
    n_more = None if result.passed else _people_needed(result)
    curve = _shown_points(result)
    here = next(point for point in curve if point.tau == result.tau_on_curve)
    filled = replace(
        blank,
        status=_status(result),
        method=blank.method if blank.method == "paper" else result.test.bound,
        n=result.curve.n,
        risk=here.risk,
        bound=here.bound,
        cost=here.cost,
        triggered=here.triggered,
        n_more=n_more,
        complete=result.complete,
        curve=curve,
        warnings=_warnings(blank, result),
        act_risk=_act_risk(blank, result),
    )
    if result.passed:
        return replace(filled, tau=result.tau, interval=result.interval)
    return replace(filled, tau=float(result.thresholds[0]) if blank.method == "paper" else -np.inf)


def _status(result: FixedSequenceResult) -> Status:
    if result.passed:
        return "certified"
    # DEVIATION: the paper says risk-limited as soon as the observed risk reaches alpha; here a
    # lower bound must.
    first = result.thresholds[0]
    hopeless = any(
        result.test.surely_above(curve, int(curve.index(first))) for curve in result.curves
    )
    return "risk_limited" if hopeless else "data_limited"


def _act_risk(blank: Certificate, result: FixedSequenceResult) -> float | None:
    """The observed risk, at the rule that is shown, of all whom it tells to act."""
    curve = result.curve if blank.target == "act" else result.also
    return None if curve is None else float(curve.risk[curve.index(result.tau_on_curve)])


def _people_needed(result: FixedSequenceResult) -> int | None:
    """How many more people of the same kind it would take at the risk of the first threshold.

    Of two curves, the one that needs more; None if one of them says that no number helps.
    """
    first = result.thresholds[:1]
    failed = [
        curve for curve in result.curves if not result.test.count_passed(curve, curve.index(first))
    ]
    needed = [_needed_on(curve, int(curve.index(first[0])), result.test) for curve in failed]
    return max(needed, key=lambda more: np.inf if more is None else more)


def _needed_on(curve: RiskCurve, point: int, test: RiskTest) -> int | None:
    """``_people_needed`` at one point of one curve."""
    bound = test.bound if test.bound in COUNT_BOUNDS else "hb"
    required = n_required(test.alpha, float(curve.risk[point]), test.delta, bound)
    eligible = curve.eligible[point] if curve.conditional else curve.n
    if required.stable is None or eligible == 0 or test.surely_above(curve, point):
        return None
    more = max(required.stable - eligible, 1) * curve.n / eligible
    return int(np.ceil(more - 1e-9))


def _shown_points(result: FixedSequenceResult) -> tuple[Point, ...]:
    """The tested grid, or the curve thinned; always with both ends, the certified threshold and the
    one after it.
    """
    curve, last = result.curve, len(result.curve.tau) - 1
    room = SHOWN if result.test.bound != "wsr" else int(np.clip(200_000 // curve.n, 20, SHOWN))
    thinned = np.linspace(0, last, min(room, last + 1)).astype(np.int64)
    shown = curve.tau[thinned] if result.grid_free else result.thresholds
    after = curve.tau[min(result.point + 1, last)]
    levels = np.unique(np.concatenate([curve.tau[[0, last]], shown, [result.tau_on_curve, after]]))
    points = curve.index(levels)
    upper, p = result.test.upper(curve, points), result.test.p_values(curve, points)
    columns: list[Any] = [levels, curve.risk[points], upper, p, *curve.triggered_and_cost(levels)]
    return tuple(
        Point(*values) for values in zip(*(column.tolist() for column in columns), strict=True)
    )


def _warnings(blank: Certificate, result: FixedSequenceResult) -> tuple[str, ...]:
    curve, test = result.curve, result.test
    messages = []
    least = floor(test.alpha, test.delta, test.bound if test.bound in COUNT_BOUNDS else "cp")
    if curve.n < least:
        messages.append(
            f"below {least} people nothing can be certified at this level, even without a loss"
        )
    if curve.n < blank.people:
        messages.append(
            f"{blank.people - curve.n} of {blank.people} people have no plan at any step; "
            "nothing is said of them"
        )
    if blank.method == "paper":
        messages.append(
            "the grid comes from the calibration runs themselves, which the theory does not cover"
        )
    if test.bound != "wsr" or test.horizon is None:
        messages.append(
            "valid for one look at one calibration set; more looks need bound='wsr' with a horizon"
        )
    return tuple(messages)
