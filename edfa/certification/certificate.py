"""A certificate: from which threshold on a person may act early, what that promises, and to whom."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
import pandas as pd

from edfa.certification.guarantee import Guarantee
from edfa.certification.records import Records, Reference
from edfa.certification.replay import NAMED, Watched, watch
from edfa.certification.risk_curve import Target, Undefined
from edfa.certification.sample_size import Required
from edfa.certification.stops import Rule, Stops, stop_at
from edfa.errors import DataError, MismatchError
from edfa.recourse.plans import Plans
from edfa.text import html
from edfa.text.phrases import number, say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Certificate", "Point", "Status", "for_this"]

Status = Literal["certified", "data_limited", "risk_limited", "undefined"]


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
class Certificate(Guarantee):
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
        return self.words()

    def words(self, language: str = "en") -> str:
        """The same in another language; ``edfa.text.narrate.certificate`` says it to a person."""
        if self.certified:
            return _promise(self, language)
        return say("formal.none", language, within=_within(self, language), why=_why_not(self, language))

    def stop(self, runs: Any, rule: Rule = "safe", **options: Unpack[Watched]) -> Stops:
        """Where to stop: each run of plans or records, or each row of an array of signals (NaN where there is no plan).

        Only the signal and whether there is a plan are read, never a loss nor a later step. Runs of another advisor
        are refused; with bare signals, name theirs as ``advisor``.
        """
        runs = for_this(self, runs, options)
        # Not certified: Algorithm 2's strictest rule, and no guarantee with it.
        tau = -np.inf if self.tau is None else self.tau
        return stop_at(runs, tau, rule, self.sentence if self.certified else "")

    def frame(self) -> pd.DataFrame:
        """The curve, one row a threshold."""
        return pd.DataFrame([asdict(point) for point in self.curve], columns=[f.name for f in fields(Point)])

    def draw(self, ax: "Axes") -> "Axes":
        """Risk and bound against the mean cost, with alpha and the certified rule."""
        curve = self.frame()
        for name, style in (("bound", "--"), ("risk", "-")):
            ax.plot(curve["cost"], curve[name], style, color="black", lw=1.2, label=name)
        ax.axhline(self.alpha, color="black", ls=":", lw=1, label=f"alpha = {self.alpha:g}")
        if self.cost is not None and self.bound is not None and self.certified:
            ax.plot(self.cost, self.bound, "o", mfc="white", mec="black", label="certified rule")
        ax.set(xlabel="mean cost of a person", ylabel="share of people who fail")
        ax.set_ylim(0, min(1.02, max(2.5 * self.alpha, 1.1 * float(curve["risk"].max()))))
        ax.legend(frameon=False)
        return ax

    def _repr_html_(self) -> str:
        names = ("zone", "tau", "risk", "bound", "alpha", "delta", "n", "people", "n_more", "cost", "method", "target")
        rows = [(name, _show(value)) for name in names if (value := getattr(self, name)) is not None]
        curve = [html.figure(self.draw, "Risk and its bound against the mean cost")] if self.curve else []
        return html.fragment(
            html.paragraph(self.sentence), *curve, html.definition_table(rows), html.bullet_list(self.warnings)
        )


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


def _promise(certificate: Certificate, language: str) -> str:
    c = certificate
    key = c.undefined if c.undefined in ("zero", "one") else "drop"
    told = {"whom": say(f"formal.{c.target}", language), "later": say(f"formal.{c.reference}", language)}
    share = _digits(c.alpha, language)
    promise = say(f"formal.{key}", language, within=_within(c, language), share=share, **told)
    return say("formal.sure", language, promise=promise, delta=_digits(c.delta, language))


def _within(certificate: Certificate, language: str) -> str:
    return "" if certificate.group is None else say("formal.within", language, group=certificate.group)


def _why_not(certificate: Certificate, language: str) -> str:
    c = certificate
    if c.status == "undefined":
        return say("formal.undefined", language, people=number(c.people, language))
    seen = say("formal.seen", language, risk=_digits(c.risk or 0.0, language), n=number(c.n, language))
    more = "" if c.n_more is None else number(c.n_more, language)
    key = "risk_limited" if c.status == "risk_limited" else "data_limited" if more else "too_near"
    return say(f"formal.{key}", language, seen=seen, share=_digits(c.alpha, language), more=more)


def _digits(value: float, language: str) -> str:
    return number(float(f"{value:.4g}"), language)


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
