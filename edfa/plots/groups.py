"""Groups side by side: how often people of each were let down, what they cost, and who of the
refused has a plan.
"""

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

from edfa.advice.evaluation import AdvisorEvaluation, GroupEvaluation
from edfa.data.schema import Feature
from edfa.errors import DataError
from edfa.plots.axis import DARK, GREY, INK, drawing, label_of, share_interval, tidy
from edfa.text import phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GroupComparison", "GroupMeasures", "compare_groups", "draw_groups"]

Interval = tuple[float, float]
ROW = 0.34  # inches
BESIDE: dict[str, Any] = {"textcoords": "offset points", "color": GREY}
PANELS = (
    ("risk", "let down, of those told to act"),
    ("cost", "mean cost of a person"),
    ("coverage", "refused who have a plan"),
)


@dataclass(frozen=True)
class GroupMeasures:
    """One group, or everybody: the measures of ``GroupEvaluation`` with exact intervals at the
    level 0.95.

    ``n`` are those told to act, whom the risk is about, and ``refused`` those whom the coverage is
    about; None where there is nobody. ``certified`` says whether the group has a certificate; if
    not, nobody of it is told to act.
    """

    label: str
    people: int
    n: int
    refused: int
    risk: float | None
    risk_interval: Interval | None
    cost: float
    coverage: float | None
    coverage_interval: Interval | None
    certified: bool = True


@dataclass(frozen=True)
class GroupComparison:
    """Everybody first, then each group; ``title`` is what makes the groups, ``alpha`` the risk that
    is allowed.
    """

    rows: tuple[GroupMeasures, ...]
    title: str = ""
    alpha: float | None = None


def compare_groups(
    evaluation: AdvisorEvaluation,
    feature: Feature | None = None,
    *,
    alpha: float | None = None,
    language: str = "en",
) -> GroupComparison:
    """The measures of all groups of an evaluation, in the words of the card.

    Parameters
    ----------
    evaluation
        ``advisor.evaluation_`` of an advisor with groups.
    feature
        What makes the groups, for its label and the words for its levels:
        ``advisor.schema["housing"]``.
    alpha
        The risk that is allowed.
    language
        Of the words.

    Raises
    ------
    DataError
        If the evaluation has no groups.
    """
    if not evaluation.groups:
        raise DataError(
            "this evaluation has no groups; fit the advisor with groups='name of a feature'"
        )
    rows = [_measures("everybody", evaluation)]
    for level, group in evaluation.groups.items():
        words = None if feature is None else phrases.named(feature, level, language)
        rows.append(_measures(phrases.plain(words or level), group))
    title = "" if feature is None else label_of(feature, language)
    return GroupComparison(tuple(rows), title, alpha)


def _measures(label: str, of: AdvisorEvaluation | GroupEvaluation) -> GroupMeasures:
    refused = round(of.refused * of.people)

    def interval(share: float | None, n: int) -> Interval | None:
        return None if share is None else share_interval(share, n)

    return GroupMeasures(
        label,
        of.people,
        of.n,
        refused,
        of.risk,
        interval(of.risk, of.n),
        of.cost,
        of.coverage,
        interval(of.coverage, refused),
        getattr(of, "certified", True),
    )


def draw_groups(comparison: GroupComparison, ax: "Axes | None" = None) -> "Axes":
    """Draw three panels inside the axis, a row for each group: risk and coverage with intervals,
    and cost.
    """
    rows = comparison.rows
    risks = [row.risk_interval[1] for row in rows if row.risk_interval is not None]
    ends = {  # of the axes: a little beyond all that is on them
        "risk": min(1.1, 1.12 * max([*risks, 2 * (comparison.alpha or 0.0)]) or 1.0),
        "cost": 1.12 * max(row.cost for row in rows) or 1.0,
        "coverage": 1.1,
    }
    with drawing(ax, (7.2, 0.9 + ROW * len(rows))) as ax:
        ax.set_axis_off()
        panels = [ax.inset_axes((i * 0.35, 0, 0.3, 1)) for i in range(len(PANELS))]
        for panel, (measure, label) in zip(panels, PANELS, strict=True):
            for y, row in enumerate(rows):
                _mark(panel, row, measure, y)
            panel.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, ends[measure]), xlabel=label)
            panel.set_yticks(range(len(rows)), [""] * len(rows))
            panel.tick_params(axis="y", length=0)
            panel.axhline(0.5, color="#999999", linewidth=0.6)  # everybody above, groups below
            tidy(panel, "x")
        panels[0].set_yticklabels([f"{row.label} ({row.people})" for row in rows])
        panels[0].set_ylabel(fill(comparison.title, 6 * len(rows)))
        if comparison.alpha is not None:
            panels[0].axvline(comparison.alpha, color=INK, linestyle=":", linewidth=1)
            panels[0].set_title(f"dotted: allowed, {comparison.alpha:g}", fontsize=7, loc="left")
    return ax


def _mark(panel: "Axes", row: GroupMeasures, measure: str, y: int) -> None:
    """One mark with its interval; everybody's is hollow. Where there is nobody to measure, words
    say so.
    """
    value, interval = getattr(row, measure), getattr(row, f"{measure}_interval", None)
    if value is None:
        acting = "nobody is told to act" if row.certified else "no certificate"
        words = "nobody is refused" if measure == "coverage" else acting
        panel.annotate(words, (0, y), (5, 0), va="center", fontsize=7, **BESIDE)
        return
    low, high = interval or (value, value)
    panel.errorbar(
        [value],
        [y],
        xerr=[[max(0.0, value - low)], [max(0.0, high - value)]],
        fmt="o",
        color=DARK,
        markerfacecolor=DARK if y else "white",
        markersize=5.5,
        elinewidth=1,
    )
    if interval is not None:
        of = row.n if measure == "risk" else row.refused
        text = f"{round(value * of)} of {of}"
        panel.annotate(text, (value, y), (0, 5), ha="center", va="bottom", fontsize=6, **BESIDE)
