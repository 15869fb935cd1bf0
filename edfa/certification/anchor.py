"""Where the tests of a certificate for those who act begin: the threshold at which it is likeliest
to be granted.
"""

import numpy as np
from scipy import special

from edfa.certification.records import Records
from edfa.certification.risk_curve import RiskCurve, Target, trace
from edfa.certification.stopping import Runs
from edfa.certification.validation import check_choice, check_level
from edfa.errors import DataError, SettingError
from edfa.typing import Float64Array

__all__ = ["choose_anchor"]


def choose_anchor(
    records: Records,
    n: int,
    alpha: float,
    delta: float = 0.05,
    ceiling: float | None = None,
    target: Target = "early",
) -> float:
    """The threshold at which ``n`` calibration people most likely certify, judged by training
    people.

    A strict threshold lets few people act, too few to certify anything; a loose one lets down too
    many. At every threshold the p-value is worked out that the calibration would have if it went as
    the training people did, with one loss and one success added for caution. The smallest wins, for
    the early ones and all who act alike; of equals, the strictest.

    Parameters
    ----------
    records
        Runs of training people, with losses. Never the calibration people: an anchor that has seen
        them is no anchor.
    n
        The number of calibration people there will be, with a plan or without.
    alpha, delta
        Of the certificate. The smallest p-value is the likeliest to be small enough, whatever
        ``delta`` is.
    ceiling
        The largest threshold that may be used.
    target
        "early" or "act".

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> print(f"{choose_anchor(simulate_records(500), n=300, alpha=0.2):.1e}")
    9.2e-06
    """
    check_level("alpha", alpha)
    check_level("delta", delta)
    check_choice("target", target, ("early", "act"))
    if n < 1:
        raise SettingError(f"n is a number of people, at least 1, not {n!r}")
    runs, most = Runs.from_records(records), np.inf if ceiling is None else ceiling
    curves = [trace(runs, "act")] if target == "act" else [trace(runs, "early"), trace(runs, "act")]
    traced = [curve for curve in curves if curve is not None]
    thresholds = (
        np.unique(np.concatenate([curve.tau for curve in traced])) if traced else np.zeros(0)
    )
    thresholds = thresholds[np.isfinite(thresholds) & (thresholds <= most)]
    if traced:
        thresholds = thresholds[traced[0].eligible[traced[0].index(thresholds)] > 0]
    if not len(thresholds):
        within = "" if ceiling is None else f" with a signal of at most {ceiling:g}"
        raise DataError(
            f"none of these people acts before the last step{within}, so that no anchor "
            "can be chosen"
        )
    share = n / len(records.people)
    worst = np.max(
        [_expected_p_values(curve, thresholds, share, alpha) for curve in traced], axis=0
    )
    return float(thresholds[np.argmin(worst)])


def _expected_p_values(
    curve: RiskCurve, thresholds: Float64Array, share: float, alpha: float
) -> Float64Array:
    """The exact p-value at the expected numbers of people and losses, (thresholds,); these need not
    be whole.

    ``share`` is the number of calibration people for each person on the curve.
    """
    points = curve.index(thresholds)
    eligible, lost = curve.eligible[points], curve.lost[points]
    people = share * eligible
    losses = people * (lost + 1) / (eligible + 2)
    # P(Bin(people, alpha) <= losses) as an incomplete beta function, which takes parts of people
    # too.
    return np.asarray(special.betainc(people - losses, losses + 1, 1 - alpha))
