"""Cost against risk: what it costs to keep people from being let down, and where the certified rule
stops.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edfa.errors import DataError
from edfa.plots.axis import DARK, INK, PALE, drawing, legend_above, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.certification.certificate import Certificate

__all__ = ["RiskCurve", "draw_risk", "trace_risk"]


@dataclass(frozen=True)
class RiskCurve:
    """Mean cost, observed risk and its upper bound for each threshold, the strictest first.

    ``stop`` is (cost, risk, bound) of the certified rule; None if nothing is certified. ``what``
    says what the risk is a share of.
    """

    cost: tuple[float, ...]
    risk: tuple[float, ...]
    bound: tuple[float, ...]
    alpha: float
    stop: tuple[float, float, float] | None
    what: str


def trace_risk(certificate: "Certificate") -> RiskCurve:
    """The curve of a certificate; DataError if it has none: nobody had a plan, or it is one of
    several groups.
    """
    curve = certificate.curve
    if not curve:
        raise DataError(
            "this certificate has no curve: nobody has a plan, or it was joined from "
            "those of groups"
        )
    stop = None
    cost, risk, bound = certificate.cost, certificate.risk, certificate.bound
    if certificate.certified and cost is not None and risk is not None and bound is not None:
        stop = (cost, risk, bound)
    failed = "let down" if certificate.loss == "let_down" else "whose plan fails"
    who = {"act": " of those told to act", "early": " of those told to act early"}
    return RiskCurve(
        tuple(point.cost for point in curve),
        tuple(point.risk for point in curve),
        tuple(point.bound for point in curve),
        certificate.alpha,
        stop,
        f"share {failed}{who.get(certificate.target, '')}",
    )


def draw_risk(curve: RiskCurve, ax: "Axes | None" = None) -> "Axes":
    """Draw risk and bound against the mean cost, the allowed risk, and the certified stop."""
    with drawing(ax, (5.6, 3.0)) as ax:
        top = min(1.02, max(2.2 * curve.alpha, 1.15 * max(curve.risk)))
        ax.fill_between(curve.cost, curve.risk, curve.bound, color=PALE, linewidth=0)
        ax.plot(curve.cost, curve.bound, "--", color=DARK, linewidth=1.3, label="upper bound")
        ax.plot(curve.cost, curve.risk, color=DARK, linewidth=1.6, label="observed")
        ax.axhline(
            curve.alpha,
            color=INK,
            linestyle=":",
            linewidth=1,
            label=f"allowed: alpha = {curve.alpha:g}",
        )
        if curve.stop is not None:
            cost, risk, bound = curve.stop
            ax.vlines(cost, 0, curve.alpha, color=INK, linewidth=0.8, zorder=1)
            ax.plot([cost], [bound], "o", color=INK, mfc="white", markersize=6, label="_stop")
            ax.plot([cost], [risk], "o", color=INK, markersize=3.5, label="_stop risk")
            text = (
                f"certified stop: mean cost {cost:.3g},\nobserved {risk:.3f}, at most {bound:.3f}"
            )
            place = (cost, curve.alpha)
            ax.annotate(text, place, (2, 4), textcoords="offset points", fontsize=7, va="bottom")
        ax.set(xlabel="mean cost of asking one person", ylabel=curve.what, ylim=(0, top))
        tidy(ax, "y")
        legend_above(ax)
    return ax
