"""What a certified rule does to people who took no part in its calibration."""

from dataclasses import dataclass, replace

import numpy as np

from edfa.certification.certificate import Certificate
from edfa.certification.records import Records
from edfa.certification.risk_curve import Target, trace
from edfa.certification.stopping import Runs

__all__ = ["HeldOutRisk", "measure", "wasted_share"]


@dataclass(frozen=True)
class HeldOutRisk:
    """What a certified rule does to held-out people.

    ``risk`` is the share who fail, ``cost`` the mean cost per person, ``triggered`` the share of
    runs that stop early, ``first`` and ``last`` are the risks of the rules "stop at the first plan"
    and "stop at the last step"; ``n`` of ``people`` have a plan. ``act_risk`` is the risk of all
    whom the rule tells to act, for the targets "early", "act"; ``wasted`` the share who would be
    given the desired class without their plan, where records say so.
    """

    risk: float
    cost: float
    triggered: float
    first: float
    last: float
    n: int
    people: int
    act_risk: float | None = None
    wasted: float | None = None


def measure(certificate: Certificate, records: Records) -> HeldOutRisk | None:
    """Risk and cost of the certificate's rule, for whom its promise is about; None if nobody has a
    plan.
    """
    certificate.stop(records)  # refuses another advisor or signal
    runs, target = Runs.from_records(records), certificate.target
    curve = trace(runs, target)
    if curve is None:
        return None
    act = trace(runs, "act") if target in ("early", "act") else None
    tau = -np.inf if certificate.tau is None else certificate.tau
    triggered, cost = curve.triggered_and_cost(tau)
    return HeldOutRisk(
        risk=float(curve.risk[curve.index(tau)]),
        cost=float(cost[0]),
        triggered=float(triggered[0]),
        first=float(curve.risk[-1]),
        last=float(curve.risk[0]),
        n=curve.n,
        people=len(records.people),
        act_risk=None if act is None else float(act.risk[act.index(tau)]),
        wasted=wasted_share(runs, target, tau),
    )


def wasted_share(runs: Runs, target: Target, tau: float) -> float | None:
    """The share, of those whom the promise is about, who would be given the desired class without
    their plan.

    None where the records do not say so, or nobody has a plan.
    """
    if runs.wasted is None:
        return None
    curve = trace(replace(runs, loss=runs.wasted.astype(np.float64)), target)
    return None if curve is None else float(curve.risk[curve.index(tau)])
