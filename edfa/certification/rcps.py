"""RCPS-HB (Algorithm 2) and its repairs: the largest threshold at which acting early keeps the risk below alpha."""

import warnings
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, Unpack

import numpy as np

from edfa.certification.certificate import Certificate
from edfa.certification.fixed_sequence import BOUNDS, RiskTest
from edfa.certification.groups import GroupCertificates, by_group
from edfa.certification.issue import Found, issue
from edfa.certification.records import Records
from edfa.certification.replay import Options, Watched, name_of, records_of
from edfa.certification.risk_curve import Curve, Target, Undefined, trace
from edfa.certification.runs import Runs
from edfa.certification.settings import level, one_of
from edfa.certification.stops import Rule, Stops
from edfa.errors import DataError, MismatchError, SettingError
from edfa.people import HasPeople, Provenance
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.typing import Float64Array

__all__ = ["Evaluation", "RecourseCertifier", "certify"]

Chosen = Literal["auto", "paper", "hb", "hb_kl", "cp", "wsr", "hoeffding"]
Walk = Literal["grid_free", "quantile", "fixed"]


@dataclass(frozen=True)
class Evaluation:
    """What a rule did on other people; ``first`` and ``last`` are the risks of the baseline rules."""

    risk: float
    cost: float
    triggered: float
    first: float
    last: float
    n: int
    people: int


@dataclass
class RecourseCertifier:
    """Calibrates the stop rule "act at the first plan whose signal is at most tau".

    ``bound``: "cp" (losses of 0 or 1), "wsr" (gains from several seeds, may be looked at while people arrive), "hb",
    "hb_kl", "hoeffding"; "auto" takes cp for single runs and wsr otherwise; "paper" is Algorithm 2 with its grid.
    ``walk``: "grid_free" tries every threshold, "quantile" takes ``grid`` quantiles of the signals, "fixed" the
    thresholds of ``grid``. ``target``: whom the promise is about, "all" with a plan, those who stop "early" (before
    their last step), or those "refused" where they stop. The early walk starts at ``anchor``, a threshold fixed
    without the calibration people. ``undefined``: what a run without any plan counts as. ``groups``: "separate" or
    "joint" certificates of the records' groups. ``horizon``: how many people one plans for, when looking while they
    arrive in the order of the records. ``signal``: what the rule watches in plans, "uncertainty" (the paper's), "plan",
    "survival" or a function of the plans, such as a fitted ``SurvivalScore``; of records, the name theirs must have.

    Examples
    --------
    >>> from edfa.certification.examples import people
    >>> certifier = RecourseCertifier(alpha=0.2).calibrate(people(300, seed=1))
    >>> certifier.certificate_.status, round(certifier.certificate_.tau, 2)
    ('certified', 0.22)
    >>> certifier.stop(people(3, seed=2)).frame()["step"].tolist()
    [2, 0, 4]
    """

    alpha: float = 0.2
    delta: float = 0.05
    bound: Chosen = "auto"
    walk: Walk = "grid_free"
    target: Target = "all"
    undefined: Undefined = "drop"
    signal: Any = None
    groups: Literal["separate", "joint"] | None = None
    grid: int | Sequence[float] = 100
    anchor: float | None = None
    horizon: int | None = None
    confidence_level: InitVar[float | None] = None
    certificate_: Certificate | GroupCertificates = field(init=False, repr=False)
    _provenance: Provenance = field(init=False, repr=False, default_factory=Provenance)

    def __post_init__(self, confidence_level: float | None) -> None:
        if confidence_level is not None:
            self.delta = round(1 - float(level(confidence_level, "confidence_level")), 12)
        level(self.alpha, "alpha")
        level(self.delta)
        one_of("bound", self.bound, ("auto", "paper", *BOUNDS))
        one_of("walk", self.walk, ("grid_free", "quantile", "fixed"))
        one_of("target", self.target, ("all", "early", "refused"))
        one_of("undefined", self.undefined, ("drop", "alpha", "zero", "one"))
        if self.groups is not None:
            one_of("groups", self.groups, ("separate", "joint"))
        if self.bound == "paper":
            self.walk = "quantile"
        self._check_together()

    def _check_together(self) -> None:
        if self.target == "early" and self.anchor is None:
            raise SettingError("target='early' needs anchor=, a threshold fixed without the calibration people")
        if self.target != "all" and (self.undefined in ("zero", "one") or self.bound == "paper"):
            raise SettingError(
                f"target={self.target!r} goes with undefined='drop' or 'alpha' and not with bound='paper'"
            )
        if self.horizon is not None and (self.bound not in ("auto", "wsr") or self.horizon < 1):
            raise SettingError("horizon= is a number of people and goes with bound='wsr': the others hold for one look")
        if self.walk == "fixed" and (np.ndim(self.grid) != 1 or not np.all(np.diff(self.grid) > 0)):
            raise SettingError("walk='fixed' needs grid=, a list of rising thresholds")
        if self.walk == "quantile" and (np.ndim(self.grid) != 0 or int(np.max(self.grid)) < 2):
            raise SettingError("walk='quantile' needs grid=, a number of thresholds, at least 2")

    def calibrate(self, found: Records | Plans, **options: Unpack[Options]) -> "RecourseCertifier":
        """Find the certificate of plans or records, in ``certificate_``; returns the certifier.

        ``options`` are those of ``replay``, for plans.
        """
        records = self._read(found, options)
        if hasattr(self, "certificate_"):
            warnings.warn("calibrating again replaces the certificate; both together promise less", stacklevel=2)
        self.certificate_ = self._by_group(records) if self.groups else self.one(records)
        self._provenance = found.provenance if isinstance(found, Plans) else Provenance()
        return self

    def _read(self, found: Any, options: Any) -> Records:
        watched = {"signal": self.signal} if isinstance(found, Plans) and self.signal is not None else {}
        return records_of(found, **watched | options)

    def _by_group(self, records: Records) -> GroupCertificates:
        parts = by_group(records)
        delta = self.delta / len(parts) if self.groups == "joint" else self.delta
        certificates = {group: self.one(part, delta, group) for group, part in parts.items()}
        return GroupCertificates(certificates, self.groups == "joint")

    def one(self, records: Records, delta: float | None = None, group: str | None = None) -> Certificate:
        """The certificate of all of ``records`` together; keeps nothing."""
        if self.signal is not None and name_of(self.signal) != records.signal_name:
            raise MismatchError(f"the records carry the signal {records.signal_name!r}, not {name_of(self.signal)!r}")
        blank = Certificate(
            status="undefined",
            alpha=self.alpha,
            delta=delta or self.delta,
            method=self.bound,
            walk=self.walk,
            target=self.target,
            undefined=self.undefined,
            people=len(records.people),
            n=0,
            runs=len(Runs.of(records).start),
            signal=records.signal_name,
            reference=records.reference,
            advisor=records.advisor,
            group=group,
            anchor=self.anchor,
        )
        found = self.search(records, blank.delta)
        return blank if found is None else issue(blank, found)

    def search(self, records: Records, delta: float | None = None) -> Found | None:
        """The walk alone: the curve, the thresholds tried and how many of them passed; None where nobody has a plan."""
        runs = Runs.of(records)
        curve = trace(runs, self.target, self.undefined)
        if curve is None:
            return None
        test = self._test(curve, records, delta or self.delta)
        tried = self._thresholds(curve, records.signal[records.legal])
        points = curve.index(tried)
        return Found(curve, test, tried, points, test.walk(curve, points), self.walk == "grid_free")

    def _test(self, curve: Curve, records: Records, delta: float) -> RiskTest:
        bound: Any = {"paper": "hb", "auto": "cp" if curve.binary and not self.horizon else "wsr"}.get(
            self.bound, self.bound
        )
        if bound == "cp" and not curve.binary:
            raise SettingError("bound='cp' needs one run a person, lost or not; draw one with records.one_seed()")
        if bound != "wsr" or self.horizon:  # who looks while people arrive must bet in that order
            return RiskTest(bound, self.alpha, delta, horizon=self.horizon)
        return RiskTest(bound, self.alpha, delta, np.argsort(records.lots[curve.people], kind="stable"))

    def _thresholds(self, curve: Curve, signals: Float64Array) -> Float64Array:
        """What to try, in order. The first is "never stop early", but for the paper's grid and an anchor."""
        # DEVIATION: Algorithm 2's grid is made of calibration signals, which its theorem does not cover. By default
        # every threshold is tried, so that nothing about the data selects one.
        if self.bound == "paper":
            return np.unique(np.quantile(signals, np.linspace(0, 1, int(np.max(self.grid)))))
        tried = curve.tau
        if self.walk == "quantile":
            tried = np.append(-np.inf, np.unique(np.quantile(signals, np.linspace(0, 1, int(np.max(self.grid))))))
        elif self.walk == "fixed":
            tried = np.append(-np.inf, np.asarray(self.grid, dtype=np.float64))
        return tried if self.anchor is None else np.append(self.anchor, tried[tried > self.anchor])

    def stop(self, runs: Any, rule: Rule = "safe", **options: Unpack[Watched]) -> Stops | dict[str, Stops]:
        """Where the certified rule, or one of the baselines "first" and "last", stops; see ``Certificate.stop``.

        A trajectory will do where the certificate was made from plans: its own are found in the same way.
        """
        certificate, runs = self._calibrated(), self._with_plans(runs)
        if isinstance(runs, Plans) and self.signal is not None:
            options = {"signal": self.signal, **options}
        return certificate.stop(runs, rule, **options)

    def evaluate(
        self, found: Records | Plans | HasPeople, **options: Unpack[Options]
    ) -> Evaluation | dict[str, Evaluation | None] | None:
        """The risk, cost and share of triggered runs on held-out people; None where nobody has a plan."""
        certificate, found = self._calibrated(), self._with_plans(found)
        if isinstance(found, Plans):
            one = certificate if isinstance(certificate, Certificate) else next(iter(certificate.values()))
            options = {"reference": one.reference, **options}
        records = self._read(found, options)
        if isinstance(certificate, GroupCertificates):
            return {group: self._held_out(certificate[group], part) for group, part in by_group(records).items()}
        return self._held_out(certificate, records)

    def _with_plans(self, runs: Any) -> Any:
        """A trajectory with plans found as those of the calibration were; anything else as it is."""
        if not hasattr(runs, "people") or not callable(runs.people):
            return runs
        if self._provenance.searcher is None:
            raise DataError("a trajectory has no plans; pass find_recourse(trajectory, searcher) or calibrate on plans")
        how = self._provenance
        return find_recourse(runs, how.searcher, constraints=how.constraints, desired_class=how.desired_class)

    def _held_out(self, certificate: Certificate, records: Records) -> Evaluation | None:
        certificate.stop(records)  # refuses another advisor or signal
        curve = trace(Runs.of(records), self.target, self.undefined)
        if curve is None:
            return None
        tau = -np.inf if certificate.tau is None else certificate.tau
        triggered, cost = curve.triggered_and_cost(tau)
        return Evaluation(
            risk=float(curve.risk[curve.index(tau)]),
            cost=float(cost[0]),
            triggered=float(triggered[0]),
            first=float(curve.risk[-1]),
            last=float(curve.risk[0]),
            n=curve.n,
            people=len(records.people),
        )

    def _calibrated(self) -> Certificate | GroupCertificates:
        if not hasattr(self, "certificate_"):
            from edfa.predictors.base import UnfittedError

            raise UnfittedError("this certifier has no certificate yet; call calibrate(plans) first")
        return self.certificate_


def certify(found: Records | Plans, alpha: float = 0.2, delta: float = 0.05, **settings: Any) -> Certificate:
    """A certificate from plans (replayed here) or from records.

    ``settings`` are those of ``RecourseCertifier``, but for groups; with plans, those of ``replay`` as well.

    Examples
    --------
    >>> from edfa.certification.examples import people
    >>> print(certify(people(300, seed=1), alpha=0.2))
    Of people handled by this rule for whom some recourse exists, a share of at most 0.2 would see the prediction or \
the recourse fail once the remaining features within the budget are acquired; this statement is wrong with probability \
at most 0.05 over the calibration sample.
    """
    if settings.get("groups"):
        raise SettingError("certify gives one certificate; use RecourseCertifier(groups=...) for those of groups")
    watched = Options.__annotations__ if isinstance(found, Plans) else ()
    options: Any = {name: settings.pop(name) for name in watched if name in settings}
    return RecourseCertifier(alpha, delta, **settings).one(records_of(found, **options))
