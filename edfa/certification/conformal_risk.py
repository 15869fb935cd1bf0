"""Conformal risk control, for very few people: a promise about the expected risk, without a
confidence level.

It needs four people for alpha = 0.2 where a certificate needs fourteen, and promises less: the risk
is at most alpha on average over the samples one might have calibrated on, not for all but a share
delta of them.

Reference: Angelopoulos et al. 2024 (Conformal risk control).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edfa.certification.bounds import check_level
from edfa.certification.certificate import Guarantee, promise_in_words, runs_for
from edfa.certification.records import Loss, Records, Reference, Runs, Stops, stop_at
from edfa.certification.replay import Signal, as_records
from edfa.certification.risk_curve import RiskCurve, between, trace
from edfa.recourse.plans import Plans
from edfa.typing import Float64Array

LOSSES_AT_A_TIME = 2**20  # people times thresholds


@dataclass(frozen=True)
class ConformalRiskCertificate(Guarantee):
    """A threshold whose expected risk is at most ``alpha``.

    Parameters
    ----------
    alpha
        The largest expected risk.
    tau
        The threshold; None means "issue no plan", which never fails.
    risk, bound
        The observed risk at ``tau`` and its conformal bound; None without a threshold.
    n, people
        The number of calibration people with a plan, and of all.
    signal, reference, advisor, loss
        Those of the records.
    """

    alpha: float
    tau: float | None
    risk: float | None
    bound: float | None
    n: int
    people: int
    signal: str
    reference: Reference
    advisor: str
    loss: Loss = "recourse"

    @property
    def certified(self) -> bool:
        """Whether any plan may be issued."""
        return self.tau is not None

    @property
    def sentence(self) -> str:
        """The promise in words; or why there is none."""
        if not self.certified:
            return f"No certificate: the {self.n} people with a plan allow none to be issued."
        promise = promise_in_words("en", self.loss, "all", self.reference, self.alpha)
        return f"{promise}, on average over calibration samples."

    def stop(self, runs: Any, *, advisor: str = "") -> Stops:
        """Find where to stop; without a threshold no plan is issued.

        Parameters
        ----------
        runs, advisor
            As in ``Certificate.stop``.

        Returns
        -------
        Stops
            Where each run stops; step -1 everywhere if there is no threshold.
        """
        runs = runs_for(self, runs, advisor)
        if self.tau is not None:
            return stop_at(runs, self.tau, self.sentence)
        nothing = stop_at(runs, -np.inf, "")
        return replace(nothing, step=np.full_like(nothing.step, -1))


def certify_expected_risk(
    runs: Records | Plans,
    alpha: float = 0.2,
    *,
    signal: Signal | None = None,
) -> ConformalRiskCertificate:
    """Find the largest threshold whose expected risk is at most ``alpha``, by conformal risk
    control.

    The bound counts one imaginary person who is lost.

    Parameters
    ----------
    runs
        Plans of every step of calibration people, or their records, with losses.
    alpha
        The largest expected risk, between 0 and 1.
    signal
        What is watched in plans; None: the uncertainty. With records it is theirs.

    Returns
    -------
    ConformalRiskCertificate
        With the threshold, or without one if none keeps the expected risk below alpha.

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> certify_expected_risk(simulate_records(12, seed=1)).certified
    True
    """
    check_level("alpha", alpha)
    records = as_records(runs, signal)
    curve = trace(Runs.from_records(records))
    nothing = ConformalRiskCertificate(
        alpha=float(alpha),
        tau=None,
        risk=None,
        bound=None,
        n=0 if curve is None else curve.n,
        people=len(records.people),
        signal=records.signal_name,
        reference=records.reference,
        advisor=records.advisor,
        loss=records.loss_name,
    )
    if curve is None:
        return nothing
    bounds = (_sum_of_running_maxima(curve) + 1) / (curve.n + 1)
    passed = int(np.searchsorted(bounds, alpha + 1e-12, side="right"))
    if not passed:
        return nothing
    high = float(curve.tau[passed]) if passed < len(curve.tau) else np.inf
    tau = between(curve.trigger_below(high), high)
    return replace(
        nothing, tau=tau, risk=float(curve.risk[passed - 1]), bound=float(bounds[passed - 1])
    )


def _sum_of_running_maxima(curve: RiskCurve) -> Float64Array:
    """The sum over people of the largest loss up to each point, (points,); it never falls, as CRC
    needs it.
    """
    points, sums = np.arange(len(curve.tau)), np.zeros(len(curve.tau))
    worst: Float64Array = np.zeros((1, curve.n))
    for block in np.array_split(points, max(len(points) * curve.n // LOSSES_AT_A_TIME, 1)):
        losses = np.concatenate([worst, curve.people_at(block)[0]])
        running = np.maximum.accumulate(losses, axis=0)
        sums[block], worst = running[1:].sum(axis=1), running[-1:]
    return sums
