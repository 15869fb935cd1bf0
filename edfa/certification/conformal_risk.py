"""For very few people: a promise about the average over calibration samples, without a confidence level (CRC).

Conformal risk control needs four people for alpha = 0.2 where a certificate needs fourteen. It promises less: the risk
is at most alpha on average over the samples one might have calibrated on, not for all but a share delta of them.

Reference: Angelopoulos et al. 2024 (Conformal risk control).
"""

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from edfa.certification.certificate import for_this
from edfa.certification.guarantee import Guarantee
from edfa.certification.records import Records, Reference
from edfa.certification.replay import Options, Watched, records_of
from edfa.certification.risk_curve import Curve, trace
from edfa.certification.runs import Runs
from edfa.certification.settings import level
from edfa.certification.stops import Stops, stop_at
from edfa.recourse.plans import Plans
from edfa.text.phrases import say
from edfa.typing import Float64Array

__all__ = ["AverageCertificate", "certify_on_average"]


@dataclass(frozen=True)
class AverageCertificate(Guarantee):
    """The threshold found, or None for "issue nothing", which is the strictest rule here and never fails."""

    alpha: float
    tau: float | None
    risk: float | None
    bound: float | None
    n: int
    people: int
    signal: str
    reference: Reference
    advisor: str

    @property
    def certified(self) -> bool:
        """Whether any plan may be issued."""
        return self.tau is not None

    @property
    def sentence(self) -> str:
        """The promise in words; or why there is none."""
        if not self.certified:
            return f"No certificate: the {self.n} people with a plan allow none to be issued."
        told = {"whom": say("formal.all", "en"), "later": say(f"formal.{self.reference}", "en")}
        promise = say("formal.drop", "en", within="", share=f"{self.alpha:.4g}", **told)
        return f"{promise}, on average over calibration samples."

    def stop(self, runs: Any, **options: Unpack[Watched]) -> Stops:
        """Where to stop, as ``Certificate.stop``; without a threshold nothing is issued."""
        runs = for_this(self, runs, options)
        if self.tau is not None:
            return stop_at(runs, self.tau, "safe", self.sentence)
        nothing = stop_at(runs, -np.inf, "safe", "")
        return replace(nothing, step=np.full_like(nothing.step, -1))


def certify_on_average(found: Records | Plans, alpha: float = 0.2, **options: Unpack[Options]) -> AverageCertificate:
    """The largest threshold whose risk is at most ``alpha`` on average, one made-up lost person included.

    Examples
    --------
    >>> from edfa.certification.examples import people
    >>> certify_on_average(people(12, seed=1)).certified
    True
    """
    level(alpha, "alpha")
    records = records_of(found, **options)
    curve = trace(Runs.of(records))
    made = AverageCertificate(
        alpha=float(alpha),
        tau=None,
        risk=None,
        bound=None,
        n=0 if curve is None else curve.n,
        people=len(records.people),
        signal=records.signal_name,
        reference=records.reference,
        advisor=records.advisor,
    )
    if curve is None:
        return made
    bounds = (_worst_so_far(curve) + 1) / (curve.n + 1)
    passed = int(np.searchsorted(bounds, alpha + 1e-12, side="right"))
    if not passed:
        return made
    high = float(curve.tau[passed]) if passed < len(curve.tau) else np.inf
    low = curve.last_low(high)
    tau = low + (high - low) / 2 if np.isfinite(low) and np.isfinite(high) else low if np.isinf(low) else high
    return replace(made, tau=tau, risk=float(curve.risk[passed - 1]), bound=float(bounds[passed - 1]))


def _worst_so_far(curve: Curve) -> Float64Array:
    """The people's losses added up at each point, each person's being the largest up to there: it never falls."""
    order = np.lexsort((curve.at, curve.who))
    who, at, change = curve.who[order], curve.at[order], curve.change[order, 0]
    begins = np.flatnonzero(np.append(True, who[1:] != who[:-1]))
    sums = np.cumsum(change)
    before = np.repeat(sums[begins] - change[begins], np.diff(begins, append=len(who)))
    loss = curve.start[who, 0] + sums - before
    done = np.append((who[1:] != who[:-1]) | (at[1:] != at[:-1]), True)  # only what a threshold leaves behind counts
    who, at, loss = who[done], at[done], loss[done]
    first = np.append(True, who[1:] != who[:-1])
    # Losses lie in [0, 1], so steps of two keep the running maxima of different people apart.
    worst = np.maximum.accumulate(np.maximum(loss, curve.start[who, 0]) + 2.0 * who) - 2.0 * who
    previous = np.where(first, curve.start[who, 0], np.roll(worst, 1))
    rises = np.bincount(at, np.maximum(worst - previous, 0.0), len(curve.tau))
    return np.asarray(curve.start[:, 0].sum() + np.cumsum(rises))
