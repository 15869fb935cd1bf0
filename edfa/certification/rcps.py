"""RCPS-HB (Algorithm 2) and its repairs: the largest threshold at which acting early keeps the risk
below alpha.

``RecourseCertifier`` tests thresholds on records and issues a certificate (``certify`` does so
in one call); ``choose_anchor`` says, from training people, where its tests begin; ``measure``
holds a certified rule against other people.

Reference: Bates et al. 2021 (Distribution-free, risk-controlling prediction sets).
"""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from edfa.certification.bounds import BOUNDS, COUNT_BOUNDS, check_choice, check_level, floor
from edfa.certification.certificate import (
    Certificate,
    GroupCertificates,
    Point,
    by_group,
    runs_for,
)
from edfa.certification.records import Records, Runs, Stops
from edfa.certification.replay import (
    Signal,
    as_records,
    is_trajectory,
    signal_name,
    watch,
)
from edfa.certification.risk_curve import (
    TARGETS,
    FixedSequenceResult,
    RiskCurve,
    RiskTest,
    Target,
    trace,
)
from edfa.certification.sample_size import n_required
from edfa.errors import DataError, MismatchError, SettingError
from edfa.people import Provenance
from edfa.predictors.base import UnfittedError
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.typing import Float64Array


def choose_anchor(
    records: Records,
    n: int,
    alpha: float,
    *,
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
    alpha
        Of the certificate. Its delta does not matter: the smallest p-value is the likeliest to be
        small enough, whatever delta is.
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
    check_choice("target", target, ("early", "act"))
    if n < 1:
        raise SettingError(f"n is a number of people, at least 1, not {n!r}")
    most, curves = np.inf if ceiling is None else ceiling, _trace_all(records, target)
    thresholds = np.unique(np.concatenate([curve.tau for curve in curves] or [np.zeros(0)]))
    thresholds = thresholds[np.isfinite(thresholds) & (thresholds <= most)]
    if curves:
        thresholds = thresholds[curves[0].eligible[curves[0].index(thresholds)] > 0]
    if not len(thresholds):
        within = "" if ceiling is None else f" with a signal of at most {ceiling:g}"
        raise DataError(
            f"none of these people acts before the last step{within}, so that no anchor "
            "can be chosen"
        )
    share = n / len(records.people)
    p_values = [_expected_p_values(curve, thresholds, share, alpha) for curve in curves]
    return float(thresholds[np.argmin(np.max(p_values, axis=0))])


def _trace_all(
    records: Records, target: Target, include_last_step: bool = True
) -> tuple[RiskCurve, ...]:
    """The risk curve of the target and, for "early", that of all who act; none without a plan."""
    runs = Runs.from_records(records)
    targets: list[Target] = [target]
    if target == "early" and include_last_step:
        targets.append("act")
    return tuple(curve for each in targets if (curve := trace(runs, each)) is not None)


def _expected_p_values(
    curve: RiskCurve, thresholds: Float64Array, share: float, alpha: float
) -> Float64Array:
    """The exact p-value at the expected numbers of people and losses, (thresholds,).

    Parameters
    ----------
    curve
        The risk curve of training people.
    thresholds
        The thresholds to look at, (thresholds,).
    share
        The number of calibration people for each person on the curve; expected numbers need not
        be whole.
    alpha
        The risk that is tested.
    """
    points = curve.index(thresholds)
    eligible, lost = curve.eligible[points], curve.lost[points]
    people = share * eligible
    losses = people * (lost + 1) / (eligible + 2)
    # P(Bin(people, alpha) <= losses) as an incomplete beta function, which takes parts of people
    # too.
    return np.asarray(special.betainc(people - losses, losses + 1, 1 - alpha))


CURVE_POINTS = 200  # points of a curve that a certificate keeps


def issue(blank: Certificate, result: FixedSequenceResult) -> Certificate:
    """Fill in a certificate from the result of the tests.

    Parameters
    ----------
    blank
        A certificate that holds the settings alone.
    result
        The result of ``RecourseCertifier.search``.

    Returns
    -------
    Certificate
        With the status, the threshold, the curve and the warnings; all but the share ``wasted``.
    """
    tau, paper = result.tau_on_curve, blank.method == "paper"
    curve = _shown_points(result)
    here = next(point for point in curve if point.tau == tau)
    acting = result.curves[-1]  # all who act, where the promise is about them
    filled = replace(
        blank,
        method="paper" if paper else result.test.bound,
        n=result.curve.n,
        risk=here.risk,
        bound=here.bound,
        cost=here.cost,
        triggered=here.triggered,
        complete=result.complete,
        curve=curve,
        warnings=_warnings(blank, result),
        act_risk=(
            float(acting.risk[acting.index(tau)])
            if blank.target == "act" or blank.include_last_step
            else None
        ),
    )
    if result.passed:
        return replace(filled, status="certified", tau=result.tau, interval=result.interval)
    # DEVIATION: the paper says risk-limited as soon as the observed risk reaches alpha; here a
    # lower bound must.
    hopeless = any(result.test.surely_above(each, int(each.index(tau))) for each in result.curves)
    return replace(
        filled,
        status="risk_limited" if hopeless else "data_limited",
        n_more=_people_needed(result),
        tau=tau if paper else -np.inf,
    )


def _people_needed(result: FixedSequenceResult) -> int | None:
    """How many more people of the same kind it would take at the risk of the first threshold.

    Of two curves, the one that needs more; None if one of them says that no number helps.
    """
    test, most = result.test, 0
    bound = test.bound if test.bound in COUNT_BOUNDS else "hb"
    for curve in result.curves:
        first = curve.index(result.thresholds[:1])
        if test.count_passed(curve, first):
            continue
        point = int(first[0])
        required = n_required(test.alpha, float(curve.risk[point]), test.delta, bound)
        eligible = curve.eligible[point] if curve.conditional else curve.n
        if required.stable is None or eligible == 0 or test.surely_above(curve, point):
            return None
        more = max(required.stable - eligible, 1) * curve.n / eligible
        most = max(most, int(np.ceil(more - 1e-9)))
    return most


def _shown_points(result: FixedSequenceResult) -> tuple[Point, ...]:
    """The tested grid, or the curve thinned; always with both ends, the certified threshold and the
    one after it.
    """
    curve, last = result.curve, len(result.curve.tau) - 1
    room = (
        CURVE_POINTS
        if result.test.bound != "wsr"
        else int(np.clip(200_000 // curve.n, 20, CURVE_POINTS))
    )
    thinned = np.linspace(0, last, min(room, last + 1)).astype(np.int64)
    shown = curve.tau[thinned] if result.grid_free else result.thresholds
    after = curve.tau[min(result.point + 1, last)]
    levels = np.unique(np.concatenate([curve.tau[[0, last]], shown, [result.tau_on_curve, after]]))
    points = curve.index(levels)
    upper, p = result.test.upper(curve, points), result.test.p_values(curve, points)
    columns = [levels, curve.risk[points], upper, p, *curve.triggered_and_cost(levels)]
    return tuple(Point(*values) for values in np.column_stack(columns).tolist())


def _warnings(blank: Certificate, result: FixedSequenceResult) -> tuple[str, ...]:
    """What a reader of the certificate should know, as short texts.

    They are about samples too small for any certificate, people without a plan, the paper's
    grid, and looking more than once.
    """
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


@dataclass(frozen=True)
class HeldOutRisk:
    """What a certified rule does to held-out people.

    Parameters
    ----------
    risk
        The share who fail, of those whom the promise is about.
    cost
        The mean cost of a person with a plan.
    triggered
        The share of runs that the signal stops.
    first, last
        The risks of the rules "stop at the first plan" and "stop at the last step".
    n, people
        The number of people with a plan, and of all people.
    """

    risk: float
    cost: float
    triggered: float
    first: float
    last: float
    n: int
    people: int


def measure(certificate: Certificate, records: Records) -> HeldOutRisk | None:
    """Measure what a certified rule does to held-out people.

    Parameters
    ----------
    certificate
        The certificate; where nothing is certified, the rule "never stop early" is measured.
    records
        Runs of other people with the same advisor, with losses.

    Returns
    -------
    HeldOutRisk or None
        Risk and cost for those whom the promise is about; None if nobody has a plan.

    Raises
    ------
    MismatchError
        If the records are of another advisor or signal.
    """
    runs_for(certificate, records)  # refuses another advisor or signal
    curve = trace(Runs.from_records(records), certificate.target)
    if curve is None:
        return None
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
    )


def wasted_share(runs: Runs, target: Target, tau: float) -> float | None:
    """The share of people who would be given the desired class without their plan.

    Parameters
    ----------
    runs
        The runs.
    target
        Whom the promise is about; the share is that of these people.
    tau
        The threshold of the stop rule.

    Returns
    -------
    float or None
        None where the records do not say so, or nobody has a plan.
    """
    if runs.wasted is None:
        return None
    curve = trace(replace(runs, loss=runs.wasted.astype(np.float64)), target)
    return None if curve is None else float(curve.risk[curve.index(tau)])


CertifierBound = Literal["auto", "paper", "hb", "hb_kl", "cp", "wsr", "hoeffding"]


@dataclass
class RecourseCertifier:
    """Calibrates the stop rule "act at the first plan whose signal is at most tau".

    Parameters
    ----------
    alpha, delta
        The risk is to be at most alpha; the certificate may be wrong with probability delta.
    bound
        "cp" (losses of 0 or 1), "wsr" (gains from several seeds; may be looked at while people
        arrive), "hb", "hb_kl", "hoeffding"; "auto" takes cp for one run per person and wsr
        otherwise; "paper" is Algorithm 2 with its grid.
    target
        Whom the promise is about: "all" with a plan, those who stop "early" (before their last
        step), those whom the rule tells to "act" (whose signal is low enough, at their last step
        too), or those "refused" where they stop.
    signal
        What the rule watches in plans: "uncertainty" (the paper's), "plan", "survival", or a
        function of the plans such as a fitted ``SurvivalScore``. With records, the name their
        signal must have. None: "uncertainty" of plans, whatever records have.
    groups
        "separate" or "joint" certificates for the records' groups; None: one for all people.
    grid
        For the bound "paper": the number of quantiles of the signals that are tested.
    anchor
        For the targets "early" and "act": the threshold where the tests start, fixed without the
        calibration people; ``choose_anchor`` finds one on training people.
    horizon
        The number of people one plans for, if one looks while they arrive, in the order of the
        records.
    ceiling
        No threshold above it is tested or used. With the signal "survival", 0.5 means that nobody
        is told to act on a plan whose own survival is below one half.
    include_last_step
        For ``target="early"``: whether the risk of all who are told to act, their last step
        included, must be at most alpha too.

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> certifier = RecourseCertifier(alpha=0.2).calibrate(simulate_records(300, seed=1))
    >>> certifier.certificate_.status, round(certifier.certificate_.tau, 2)
    ('certified', 0.22)
    >>> certifier.stop(simulate_records(3, seed=2)).frame()["step"].tolist()
    [2, 0, 4]
    """

    alpha: float = 0.2
    delta: float = 0.05
    bound: CertifierBound = "auto"
    target: Target = "all"
    signal: Signal | None = None
    groups: Literal["separate", "joint"] | None = None
    grid: int = 100
    anchor: float | None = None
    horizon: int | None = None
    ceiling: float | None = None
    include_last_step: bool = True
    certificate_: Certificate | GroupCertificates = field(init=False, repr=False)
    _provenance: Provenance = field(init=False, repr=False, default_factory=Provenance)

    def __post_init__(self) -> None:
        check_level("alpha", self.alpha)
        check_level("delta", self.delta)
        check_choice("bound", self.bound, ("auto", "paper", *BOUNDS))
        check_choice("target", self.target, TARGETS)
        check_choice("groups", self.groups or "joint", ("separate", "joint"))
        if self.target in ("early", "act") and self.anchor is None:
            raise SettingError(
                f"target={self.target!r} needs anchor=, a threshold fixed without the "
                "calibration people"
            )
        least = -np.inf if self.anchor is None else self.anchor
        if self.ceiling is not None and not self.ceiling >= least:
            raise SettingError("ceiling= is the largest threshold, at least anchor=")
        if self.bound == "paper" and (
            self.target != "all" or self.ceiling is not None or self.grid < 2
        ):
            raise SettingError(
                "bound='paper' goes with target='all', without ceiling=, and with a grid= of at "
                "least 2 thresholds"
            )
        if self.horizon is not None and (self.bound not in ("auto", "wsr") or self.horizon < 1):
            raise SettingError(
                "horizon= is a number of people and goes with bound='wsr': the others "
                "hold for one look"
            )

    def calibrate(self, runs: Records | Plans) -> "RecourseCertifier":
        """Make the certificate and store it as ``certificate_``.

        Parameters
        ----------
        runs
            Plans of every step of calibration people, or their records, with losses. With plans,
            the way in which they were found is remembered, so that ``stop`` takes trajectories
            too.

        Returns
        -------
        RecourseCertifier
            Itself. A second call warns: two certificates together promise less than each alone.
        """
        records = as_records(runs, self.signal)
        if hasattr(self, "certificate_"):
            warnings.warn(
                "calibrating again replaces the certificate; both together promise less",
                stacklevel=2,
            )
        self._provenance = runs.provenance if isinstance(runs, Plans) else Provenance()
        if self.groups is None:
            self.certificate_ = self.certificate_for(records)
            return self
        parts = by_group(records)
        delta = self.delta / len(parts) if self.groups == "joint" else self.delta
        certificates = {
            group: self.certificate_for(part, delta, group) for group, part in parts.items()
        }
        self.certificate_ = GroupCertificates(certificates, self.groups == "joint")
        return self

    def certificate_for(
        self, records: Records, delta: float | None = None, group: str | None = None
    ) -> Certificate:
        """Return one certificate for all of ``records`` together, without storing it.

        Parameters
        ----------
        records
            Runs of calibration people, with losses.
        delta
            Replaces the certifier's.
        group
            The label of these people, which goes into the certificate.

        Raises
        ------
        MismatchError
            If the records carry another signal than the certifier's.
        """
        if self.signal is not None and signal_name(self.signal) != records.signal_name:
            raise MismatchError(
                f"the records carry the signal {records.signal_name!r}, not "
                f"{signal_name(self.signal)!r}"
            )
        runs = Runs.from_records(records)
        blank = Certificate(
            status="undefined",
            alpha=self.alpha,
            delta=delta or self.delta,
            method=self.bound,
            target=self.target,
            people=len(records.people),
            n=0,
            signal=records.signal_name,
            reference=records.reference,
            loss=records.loss_name,
            advisor=records.advisor,
            group=group,
            anchor=self.anchor,
            ceiling=self.ceiling,
            include_last_step=self.target == "early" and self.include_last_step,
        )
        result = self.search(records, blank.delta)
        if result is None:
            return blank
        certificate = issue(blank, result)
        return replace(certificate, wasted=wasted_share(runs, self.target, result.tau_on_curve))

    def search(self, records: Records, delta: float | None = None) -> FixedSequenceResult | None:
        """Test the thresholds and say how many passed, without making a certificate.

        Parameters
        ----------
        records
            Runs of calibration people, with losses.
        delta
            Replaces the certifier's.

        Returns
        -------
        FixedSequenceResult or None
            The thresholds, the curves and how many thresholds passed; None if nobody has a plan.
        """
        curves = _trace_all(records, self.target, self.include_last_step)
        if not curves:
            return None
        test = self._test(curves, records, delta or self.delta)
        thresholds = self._thresholds(curves, records.signal[records.legal])
        # A threshold is false if the risk of the early ones or the risk of all who act is above
        # alpha: the hypothesis to reject is a union. Rejecting it only where both tests reject,
        # each at the whole of delta, errs with probability at most delta, because whichever of the
        # two is true must itself have been rejected (an intersection-union test); so delta is not
        # split. The thresholds then form one fixed sequence as ever.
        passed = min(test.count_passed(each, each.index(thresholds)) for each in curves)
        points, grid_free = curves[0].index(thresholds), self.bound != "paper"
        return FixedSequenceResult(
            curves, test, thresholds, points, passed, grid_free, self.ceiling
        )

    def _test(self, curves: tuple[RiskCurve, ...], records: Records, delta: float) -> RiskTest:
        """The test of the certifier's bound; "auto" is "cp" for one run a person with losses of 0
        or 1, and "wsr" otherwise.

        ``curves`` are those that a threshold has to pass, ``records`` the runs that they were
        traced from.
        """
        binary = all(curve.binary for curve in curves)
        bound: Any = {"paper": "hb", "auto": "cp" if binary and not self.horizon else "wsr"}.get(
            self.bound, self.bound
        )
        if bound == "cp" and not binary:
            raise SettingError("bound='cp' needs one run a person, lost or not")
        order = None
        if bound == "wsr" and not self.horizon:
            # Sorting by a hash of the name gives an order that has seen no loss. With a horizon,
            # while people arrive, bets must be made in the order in which they do.
            names = np.array([str(person) for person in records.people], dtype=object)
            order = np.argsort(pd.util.hash_array(names)[curves[0].people], kind="stable")
        return RiskTest(bound, self.alpha, delta, order, self.horizon)

    def _thresholds(self, curves: tuple[RiskCurve, ...], signals: Float64Array) -> Float64Array:
        """The thresholds to test, rising; "never stop early" comes first, but for the paper's grid
        and an anchor.

        ``signals`` are those of all steps with a plan, (steps,), from which the paper's grid is
        made.
        """
        # DEVIATION: Algorithm 2's grid is made of calibration signals, which its theorem does not
        # cover. By default every threshold is tried, so that nothing about the data selects one.
        if self.bound == "paper":
            return np.unique(np.quantile(signals, np.linspace(0, 1, self.grid)))
        thresholds = np.unique(np.concatenate([curve.tau for curve in curves]))
        if self.ceiling is not None:
            thresholds = thresholds[thresholds <= self.ceiling]
        if self.anchor is None:
            return thresholds
        return np.append(self.anchor, thresholds[thresholds > self.anchor])

    def stop(self, runs: Any, *, advisor: str = "") -> Stops | dict[str, Stops]:
        """Find where the certified rule stops.

        Parameters
        ----------
        runs
            Plans, records, or signals of shape (runs, steps), NaN at a step without a plan. If
            the certificate was made from plans, a trajectory will do: its plans are found in the
            same way.
        advisor
            The fingerprint of the advisor of bare signals, or of plans in place of their own.

        Returns
        -------
        Stops or dict of str to Stops
            Where each run stops; by group if the certificates are of groups.

        Raises
        ------
        UnfittedError
            Before ``calibrate``.
        MismatchError
            If the runs are of another advisor or signal.
        """
        certificate, made = self._calibrated(), self._provenance
        if is_trajectory(runs):
            if made.searcher is None:
                raise DataError(
                    "a trajectory has no plans; pass find_recourse(trajectory, searcher) or "
                    "calibrate on plans"
                )
            runs = find_recourse(
                runs, made.searcher, rules=made.rules, desired_class=made.desired_class
            )
        if self.signal is not None and isinstance(runs, Plans):
            runs = watch(runs, signal=self.signal, advisor=advisor)
        return certificate.stop(runs, advisor=advisor)

    def evaluate(self, records: Records) -> HeldOutRisk | dict[str, HeldOutRisk | None] | None:
        """Measure risk and cost on held-out people.

        Parameters
        ----------
        records
            Runs of people who took no part in the calibration, with losses.

        Returns
        -------
        HeldOutRisk, or dict of str to HeldOutRisk, or None
            By group if there are groups; None if nobody has a plan.
        """
        certificate = self._calibrated()
        if isinstance(certificate, GroupCertificates):
            parts = by_group(records).items()
            return {label: measure(certificate[label], part) for label, part in parts}
        return measure(certificate, records)

    def _calibrated(self) -> Certificate | GroupCertificates:
        if not hasattr(self, "certificate_"):
            raise UnfittedError(
                "this certifier has no certificate yet; call calibrate(plans) first"
            )
        return self.certificate_


def certify(
    runs: Records | Plans,
    alpha: float = 0.2,
    delta: float = 0.05,
    *,
    bound: CertifierBound = "auto",
    target: Target = "all",
    signal: Signal | None = None,
    anchor: float | None = None,
) -> Certificate:
    """Make one certificate from plans (replayed here) or from records.

    Parameters
    ----------
    runs
        Plans of every step, or records.
    alpha, delta, bound, target, signal, anchor
        As for ``RecourseCertifier``, which has more settings.

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> print(certify(simulate_records(300, seed=1), alpha=0.2))
    Of people handled by this rule for whom some recourse exists, a share of at most 0.2 would see the prediction or \
the recourse fail once the remaining features within the budget are acquired; this statement is wrong with probability \
at most 0.05 over the calibration sample.
    """  # noqa: E501
    certifier = RecourseCertifier(alpha, delta, bound, target, signal, anchor=anchor)
    return certifier.certificate_for(as_records(runs, signal))
