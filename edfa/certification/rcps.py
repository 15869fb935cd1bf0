"""RCPS-HB (Algorithm 2) and its repairs: the largest threshold at which acting early keeps the risk
below alpha.

Reference: Bates et al. 2021 (Distribution-free, risk-controlling prediction sets).
"""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from edfa.certification.bounds import BOUNDS
from edfa.certification.certificate import Certificate, GroupCertificates, by_group
from edfa.certification.fixed_sequence import FixedSequenceResult, RiskTest
from edfa.certification.held_out import HeldOutRisk, measure, wasted_share
from edfa.certification.issue import issue
from edfa.certification.records import Records
from edfa.certification.reference import Against
from edfa.certification.replay import ReplayOptions, Signal, as_records, is_trajectory, signal_name
from edfa.certification.risk_curve import TARGETS, RiskCurve, Target, trace
from edfa.certification.stopping import Rule, Runs, Stops
from edfa.certification.validation import check_choice, check_level
from edfa.errors import DataError, MismatchError, SettingError
from edfa.people import Provenance
from edfa.predictors.base import UnfittedError
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.typing import Float64Array

__all__ = ["HeldOutRisk", "RecourseCertifier", "certify"]

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

    def calibrate(
        self,
        runs: Records | Plans,
        *,
        signal: Signal | None = None,
        **options: Unpack[ReplayOptions],
    ) -> "RecourseCertifier":
        """Make the certificate of plans or records, kept in ``certificate_``; returns the
        certifier.

        The keyword arguments go with plans and are those of ``replay``; ``signal`` is the
        certifier's by default.
        """
        if signal is None and isinstance(runs, Plans):
            signal = self.signal
        records = as_records(runs, signal=signal, **options)
        if hasattr(self, "certificate_"):
            warnings.warn(
                "calibrating again replaces the certificate; both together promise less",
                stacklevel=2,
            )
        self.certificate_ = (
            self._certify_groups(records) if self.groups else self.certificate_for(records)
        )
        self._provenance = runs.provenance if isinstance(runs, Plans) else Provenance()
        return self

    def _certify_groups(self, records: Records) -> GroupCertificates:
        parts = by_group(records)
        delta = self.delta / len(parts) if self.groups == "joint" else self.delta
        certificates = {
            group: self.certificate_for(part, delta, group) for group, part in parts.items()
        }
        return GroupCertificates(certificates, self.groups == "joint")

    def certificate_for(
        self, records: Records, delta: float | None = None, group: str | None = None
    ) -> Certificate:
        """Return one certificate for all of ``records`` together, without keeping it.

        ``delta`` replaces the certifier's; ``group`` is the label that goes into the certificate.
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
        """Test the thresholds and say how many passed, without making a certificate; None if nobody
        has a plan.
        """
        runs = Runs.from_records(records)
        curve, also = trace(runs, self.target), None
        if curve is None:
            return None
        if self.target == "early" and self.include_last_step:
            also = trace(runs, "act")
        curves = (curve,) if also is None else (curve, also)
        test = self._test(curves, records, delta or self.delta)
        thresholds = self._thresholds(curves, records.signal[records.legal])
        # A threshold is false if the risk of the early ones or the risk of all who act is above
        # alpha: the hypothesis to reject is a union. Rejecting it only where both tests reject,
        # each at the whole of delta, errs with probability at most delta, because whichever of the
        # two is true must itself have been rejected (an intersection-union test); so delta is not
        # split. The thresholds then form one fixed sequence as ever.
        passed = min(test.count_passed(each, each.index(thresholds)) for each in curves)
        points, grid_free = curve.index(thresholds), self.bound != "paper"
        return FixedSequenceResult(
            curve, test, thresholds, points, passed, grid_free, also, self.ceiling
        )

    def _test(self, curves: tuple[RiskCurve, ...], records: Records, delta: float) -> RiskTest:
        binary = all(curve.binary for curve in curves)
        bound: Any = {"paper": "hb", "auto": "cp" if binary and not self.horizon else "wsr"}.get(
            self.bound, self.bound
        )
        if bound == "cp" and not binary:
            raise SettingError(
                "bound='cp' needs one run a person, lost or not; draw one with records.one_seed()"
            )
        if bound != "wsr" or self.horizon:  # who looks while people arrive must bet in that order
            return RiskTest(bound, self.alpha, delta, horizon=self.horizon)
        return RiskTest(
            bound,
            self.alpha,
            delta,
            np.argsort(records.person_hashes[curves[0].people], kind="stable"),
        )

    def _thresholds(self, curves: tuple[RiskCurve, ...], signals: Float64Array) -> Float64Array:
        """The thresholds to test, rising; "never stop early" comes first, but for the paper's grid
        and an anchor.
        """
        # DEVIATION: Algorithm 2's grid is made of calibration signals, which its theorem does not
        # cover. By default every threshold is tried, so that nothing about the data selects one.
        if self.bound == "paper":
            return np.unique(np.quantile(signals, np.linspace(0, 1, self.grid)))
        thresholds = (
            curves[0].tau if len(curves) == 1 else np.union1d(*(curve.tau for curve in curves))
        )
        if self.ceiling is not None:
            thresholds = thresholds[thresholds <= self.ceiling]
        return (
            thresholds
            if self.anchor is None
            else np.append(self.anchor, thresholds[thresholds > self.anchor])
        )

    def stop(
        self,
        runs: Any,
        rule: Rule = "safe",
        *,
        signal: Signal | None = None,
        group: npt.ArrayLike | None = None,
        advisor: str | None = None,
    ) -> Stops | dict[str, Stops]:
        """Find where the certified rule, or one of the baselines "first" and "last", stops; as
        ``Certificate.stop``.

        If the certificate was made from plans, a trajectory will do: its plans are found in the
        same way.
        """
        certificate, runs = self._calibrated(), self._with_plans(runs)
        if signal is None and isinstance(runs, Plans):
            signal = self.signal
        return certificate.stop(runs, rule, signal=signal, group=group, advisor=advisor)

    def evaluate(
        self, runs: Any, *, signal: Signal | None = None, **options: Unpack[ReplayOptions]
    ) -> HeldOutRisk | dict[str, HeldOutRisk | None] | None:
        """Measure risk and cost on held-out people; by group if there are groups, None if nobody
        has a plan.

        ``runs`` are records, plans or, as for ``stop``, a trajectory. The keyword arguments go with
        plans and are those of ``replay``; by default ``signal`` is the certifier's, ``against``
        and ``loss`` are the certificate's.
        """
        certificate, runs = self._calibrated(), self._with_plans(runs)
        if isinstance(runs, Plans):
            one = (
                certificate
                if isinstance(certificate, Certificate)
                else next(iter(certificate.values()))
            )
            signal = self.signal if signal is None else signal
            options["against"] = options.get("against") or Against(one.reference)
            options["loss"] = options.get("loss") or one.loss
        records = as_records(runs, signal=signal, **options)
        if isinstance(certificate, GroupCertificates):
            return {
                label: measure(certificate[label], part)
                for label, part in by_group(records).items()
            }
        return measure(certificate, records)

    def _with_plans(self, runs: Any) -> Any:
        """Find a trajectory's plans as those of the calibration were found; return anything else
        unchanged.
        """
        if not is_trajectory(runs):
            return runs
        made = self._provenance
        if made.searcher is None:
            raise DataError(
                "a trajectory has no plans; pass find_recourse(trajectory, searcher) or "
                "calibrate on plans"
            )
        return find_recourse(
            runs, made.searcher, rules=made.rules, desired_class=made.desired_class
        )

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
    **options: Unpack[ReplayOptions],
) -> Certificate:
    """Make one certificate from plans (replayed here) or from records.

    Parameters
    ----------
    runs
        Plans of every step, or records.
    alpha, delta, bound, target, signal, anchor
        As for ``RecourseCertifier``, which has more settings.
    **options
        With plans: keyword arguments of ``replay``.

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> print(certify(simulate_records(300, seed=1), alpha=0.2))
    Of people handled by this rule for whom some recourse exists, a share of at most 0.2 would see the prediction or \
the recourse fail once the remaining features within the budget are acquired; this statement is wrong with probability \
at most 0.05 over the calibration sample.
    """  # noqa: E501
    certifier = RecourseCertifier(alpha, delta, bound, target, signal, anchor=anchor)
    watched = signal if isinstance(runs, Plans) else None  # of records, the name is compared
    return certifier.certificate_for(as_records(runs, signal=watched, **options))
