"""Cost certificates: the mean cost of the certified rule stays within a share of the budget."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edfa.certification.bounds import check_level, p_value, upper_bound
from edfa.certification.certificate import Certificate, Guarantee, runs_for
from edfa.certification.records import Records, Runs
from edfa.certification.replay import as_records
from edfa.certification.risk_curve import leading, trace
from edfa.errors import DataError, SettingError
from edfa.recourse.plans import Plans


@dataclass(frozen=True)
class CostCertificate(Guarantee):
    """Whether the mean cost is at most ``limit`` times ``budget``, wrong with probability at most
    ``delta``.

    Parameters
    ----------
    limit, budget, delta
        What is promised; see ``certify_cost``.
    lowest
        The promise holds for every threshold from here on; None: for no threshold surely.
    tau
        The risk certificate's threshold; None if that promises nothing.
    share, bound
        The observed mean cost at ``tau`` and its upper bound, as shares of the budget.
    n
        The number of people with a plan.
    risk_delta
        The risk certificate's delta.
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
            return (
                "No cost certificate: no threshold surely keeps both the risk "
                "and the cost within their limits."
            )
        both = self.delta + self.risk_delta
        promise = (
            f"The mean cost of people with a plan is at most {self.limit:.4g} "
            f"of the budget of {self.budget:.4g}"
        )
        return (
            f"{promise}; this or the promise about the risk is wrong with "
            f"probability at most {both:.4g}."
        )


def certify_cost(
    runs: Records | Plans,
    certificate: Certificate,
    limit: float,
    budget: float,
    delta: float = 0.05,
) -> CostCertificate:
    """Test whether the mean cost at the certificate's threshold is at most ``limit`` times
    ``budget``.

    The looser the rule, the cheaper it is; so thresholds are tested from "stop at the first plan"
    downward, on the same people as the risk.

    Parameters
    ----------
    runs
        The plans or records that ``certificate`` was made from.
    certificate
        The risk certificate.
    limit
        A share of the budget.
    budget
        The most a run can cost, known beforehand.
    delta
        Probability of a false statement about the cost, on top of the certificate's own.

    Examples
    --------
    >>> from edfa.certification import certify
    >>> from edfa.certification.simulate import simulate_records
    >>> records = simulate_records(300, seed=1)
    >>> certify_cost(records, certify(records), limit=0.45, budget=5.0).holds
    True
    """
    check_level("limit", limit)
    check_level("delta", delta)
    records = as_records(runs, certificate.signal)
    runs_for(certificate, records)  # refuses another advisor or signal
    curve = trace(Runs.from_records(records), certificate.target)
    if not budget > 0 or float(records.spent.max()) > budget:
        raise DataError(
            f"budget= is the most a run can cost, at least {records.spent.max():g} here, "
            f"not {budget!r}"
        )
    if curve is None:
        raise SettingError("there is no cost to certify: nobody has a plan at any step")
    levels = np.append(-np.inf, np.unique(curve.trigger_signal))
    shares = np.clip(curve.cost(levels) / budget, 0.0, 1.0)
    passed = int(leading(p_value("hb_kl", limit, curve.n, risk=shares)[::-1] <= delta))
    lowest = float(levels[-passed]) if passed else None
    tau = certificate.tau if certificate.certified else None
    share = None if tau is None else float(np.clip(curve.cost(tau)[0] / budget, 0.0, 1.0))
    upper = None if share is None else float(upper_bound("hb_kl", delta, curve.n, risk=share))
    return CostCertificate(
        limit, budget, delta, lowest, tau, share, upper, curve.n, certificate.delta
    )
