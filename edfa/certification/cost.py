"""A promise about the bill: the mean cost of the rule stays within a share of the budget."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from edfa.certification.bounds import hb_p_value, hb_ucb
from edfa.certification.certificate import Certificate
from edfa.certification.fixed_sequence import leading
from edfa.certification.guarantee import Guarantee
from edfa.certification.records import Records
from edfa.certification.replay import replay
from edfa.certification.risk_curve import trace
from edfa.certification.runs import Runs
from edfa.certification.settings import level
from edfa.errors import DataError, SettingError
from edfa.recourse.plans import Plans

__all__ = ["CostCertificate", "certify_cost"]


@dataclass(frozen=True)
class CostCertificate(Guarantee):
    """Thresholds from ``lowest`` on keep the mean cost within ``limit`` of the budget; None where none surely does.

    ``share`` and ``bound`` are the observed mean cost and its upper bound at the risk certificate's threshold ``tau``.
    """

    kind: ClassVar[str] = "cost certificate"
    limit: float
    budget: float
    delta: float
    lowest: float | None
    tau: float | None
    share: float | None
    bound: float | None
    n: int
    risk_delta: float

    @property
    def holds(self) -> bool:
        """Whether the certified threshold also keeps within the limit."""
        return self.lowest is not None and self.tau is not None and self.tau >= self.lowest

    @property
    def sentence(self) -> str:
        """The promise in words; or that there is none."""
        if not self.holds:
            return "No cost certificate: no threshold surely keeps both the risk and the cost within their limits."
        both = self.delta + self.risk_delta
        told = f"The mean cost of people with a plan is at most {self.limit:.4g} of the budget of {self.budget:.4g}"
        return f"{told}; this or the promise about the risk is wrong with probability at most {both:.4g}."


def certify_cost(
    found: Records | Plans,
    certificate: Certificate,
    limit: float,
    budget: float,
    delta: float = 0.05,
    form: Literal["quadratic", "kl"] = "kl",
) -> CostCertificate:
    """Whether the mean cost at the certificate's threshold is at most ``limit`` times ``budget``.

    The looser the rule, the cheaper; so this walk starts at "stop at the first plan" and goes down, with a ``delta`` of
    its own, on the same people. ``budget`` is the most a run can cost, known beforehand.

    Examples
    --------
    >>> from edfa.certification import certify
    >>> from edfa.certification.examples import people
    >>> records = people(300, seed=1)
    >>> certify_cost(records, certify(records), limit=0.45, budget=5.0).holds
    True
    """
    level(limit, "limit")
    level(delta)
    records = found if isinstance(found, Records) else replay(found, signal=certificate.signal)
    certificate.stop(records)  # refuses another advisor or signal
    curve = trace(Runs.of(records), certificate.target, certificate.undefined)
    if not budget > 0 or float(records.spent.max()) > budget:
        raise DataError(f"budget= is the most a run can cost, at least {records.spent.max():g} here, not {budget!r}")
    if curve is None:
        raise SettingError("there is no cost to certify: nobody has a plan at any step")
    levels = np.append(-np.inf, np.unique(curve.lows))
    shares = np.clip(curve.cost(levels) / budget, 0.0, 1.0)
    down = int(leading(hb_p_value(shares, curve.n, limit, form=form)[::-1] <= delta))
    lowest = float(levels[-down]) if down else None
    tau = certificate.tau if certificate.certified else None
    seen: Any = None if tau is None else float(np.clip(curve.cost(tau)[0] / budget, 0.0, 1.0))
    upper = None if seen is None else float(hb_ucb(seen, curve.n, delta, form=form))
    return CostCertificate(limit, budget, delta, lowest, tau, seen, upper, curve.n, certificate.delta)
