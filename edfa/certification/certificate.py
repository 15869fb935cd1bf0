"""A certificate: from which threshold on a person may act early, what that promises, and to whom."""

from dataclasses import dataclass
from html import escape
from typing import Any, Literal, Unpack

import numpy as np

from edfa.certification.curve import Target, Undefined
from edfa.certification.planning import Required
from edfa.certification.records import Records, Reference
from edfa.certification.replay import NAMED, Watched, watch
from edfa.certification.stops import Rule, Stops, stop_at
from edfa.certification.told import Told
from edfa.errors import DataError, MismatchError
from edfa.recourse.plans import Plans

__all__ = ["Certificate", "Point", "Status", "for_this"]

Status = Literal["certified", "data_limited", "risk_limited", "undefined"]
LATER = {
    "trajectory_end": "once the remaining features within the budget are acquired",
    "all_features": "once all features are acquired",
}
WHOM = {
    "all": "handled by this rule",
    "early": "stopped early by this rule",
    "refused": "refused where this rule stops",
}


@dataclass(frozen=True)
class Point:
    """One threshold: the observed risk, its upper bound and p-value, the share of runs it stops, and the mean cost."""

    tau: float
    risk: float
    bound: float
    p: float
    triggered: float
    cost: float


@dataclass(frozen=True)
class Certificate(Told):
    """What calibration found; immutable.

    ``tau`` is the largest certified threshold, any other of ``interval`` (left end included) behaves the same on the
    calibration runs; -inf means "never stop early" and inf "stop at the first plan". ``risk``, ``bound``, ``cost`` and
    ``triggered`` are those at ``tau``; where nothing is certified, those of the strictest rule. ``n`` people with a
    plan, of ``people`` in all, were calibrated on. ``complete`` says that no threshold failed. ``curve`` has the grid
    that was tried, or some 200 of all thresholds, with both ends.
    """

    status: Status
    alpha: float
    delta: float
    method: str
    walk: str
    target: Target
    undefined: Undefined
    people: int
    n: int
    runs: int
    signal: str = "uncertainty"
    reference: Reference = "trajectory_end"
    advisor: str = ""
    group: str | None = None
    anchor: float | None = None
    tau: float | None = None
    interval: tuple[float, float] | None = None
    risk: float | None = None
    bound: float | None = None
    cost: float | None = None
    triggered: float | None = None
    required: Required | None = None
    n_more: int | None = None
    complete: bool = False
    curve: tuple[Point, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def certified(self) -> bool:
        """Whether anything is promised."""
        return self.status == "certified"

    @property
    def zone(self) -> str:
        """The paper's zone: certified, data-limited or risk-limited; or undefined, where nobody has a plan."""
        return self.status.replace("_", "-")

    @property
    def speaks_for(self) -> float:
        """The share of people that have a plan at some step; of the others nothing is said."""
        return self.n / self.people

    @property
    def left_out(self) -> int:
        """How many of the people have no plan at any step, so that nothing is said of them."""
        return self.people - self.n

    @property
    def last(self) -> Point:
        """The rule "stop at the last step", a single hypothesis of its own."""
        return self.curve[0]

    @property
    def first(self) -> Point:
        """The rule "stop at the first plan", a single hypothesis of its own."""
        return self.curve[-1]

    @property
    def saved(self) -> float | None:
        """The share of the full cost that the certified rule saves on average."""
        if not self.certified or self.cost is None or not self.last.cost:
            return None
        return 1 - self.cost / self.last.cost

    @property
    def sentence(self) -> str:
        """The guarantee in words; or why there is none."""
        return _promise(self) if self.certified else f"No certificate{_within(self)}: {_why_not(self)}."

    def stop(self, runs: Any, rule: Rule = "safe", **options: Unpack[Watched]) -> Stops:
        """Where to stop: each run of plans or records, or each row of an array of signals (NaN where there is no plan).

        Only the signal and whether there is a plan are read, never a loss nor a later step. Runs of another advisor
        are refused; with bare signals, name theirs as ``advisor``.
        """
        runs = for_this(self, runs, options)
        # Not certified: Algorithm 2's strictest rule, and no guarantee with it.
        tau = -np.inf if self.tau is None else self.tau
        return stop_at(runs, tau, rule, self.sentence if self.certified else "")

    def _repr_html_(self) -> str:
        shown = ("zone", "tau", "risk", "bound", "alpha", "delta", "n", "people", "n_more", "cost", "method", "target")
        rows = "".join(f"<tr><th>{name}</th><td>{_show(getattr(self, name))}</td></tr>" for name in shown)
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.warnings)
        return f"<p>{escape(self.sentence)}</p><table><tbody>{rows}</tbody></table><ul>{notes}</ul>"


def for_this(certificate: Any, runs: Any, options: Watched) -> Any:
    """Runs as records, or signals as given, if they are of the certificate's advisor and signal; an error otherwise."""
    if hasattr(runs, "people") and callable(runs.people):
        raise DataError("a trajectory has no plans yet; pass find_recourse(trajectory, searcher), or signals")
    if isinstance(runs, Plans):
        named = certificate.signal in NAMED
        runs = watch(runs, **({"signal": certificate.signal} if named else {}) | options)
    advisor, signal = options.get("advisor", ""), certificate.signal
    if isinstance(runs, Records):
        advisor, signal = runs.advisor, runs.signal_name
    if signal != certificate.signal:
        raise MismatchError(f"the certificate is about the signal {certificate.signal!r}, not {signal!r}")
    if advisor != certificate.advisor:
        raise MismatchError(f"the certificate was made for advisor {certificate.advisor!r}, not for {advisor!r}")
    return runs


def _promise(certificate: Certificate) -> str:
    c = certificate
    later, share = LATER[c.reference], f"at most {c.alpha:.4g}"
    fails = f"would see the prediction or the recourse fail {later}"
    if c.undefined == "zero":
        told = f"Of people {WHOM[c.target]}{_within(c)}, a share of {share} is given a recourse and {fails}"
    elif c.undefined == "one":
        told = f"Of people {WHOM[c.target]}{_within(c)}, a share of {share} finds no recourse or {fails}"
    else:
        told = f"Of people {WHOM[c.target]}{_within(c)} for whom some recourse exists, a share of {share} {fails}"
    return f"{told}; this statement is wrong with probability at most {c.delta:.4g} over the calibration sample."


def _within(certificate: Certificate) -> str:
    return "" if certificate.group is None else f" in group {certificate.group!r}"


def _why_not(certificate: Certificate) -> str:
    c = certificate
    if c.status == "undefined":
        return f"none of the {c.people} people has a plan at any step"
    seen = f"the strictest rule has an observed risk of {c.risk:.4g} among {c.n} people"
    if c.status == "risk_limited":
        return f"{seen}, which is surely above {c.alpha:.4g}; more data cannot help"
    if c.n_more is None:
        return f"{seen}, which is too near to {c.alpha:.4g} to say how many more would settle it"
    return f"{seen}; about {c.n_more} more would be needed if it stays so"


def _show(value: Any) -> str:
    return escape(f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value))
