"""Groups side by side: how often the promise about plans was broken, what they cost, and who of the
refused has a plan.

``draw_groups`` draws the evaluation of an advisor that was fitted with ``groups``.
"""

from textwrap import fill
from typing import TYPE_CHECKING, Any

from edfa.advice.evaluation import AdvisorEvaluation, GroupEvaluation
from edfa.data.schema import Feature
from edfa.errors import DataError
from edfa.plots.axis import DARK, GREY, INK, drawing, label_of, share_interval, tidy
from edfa.text import phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.34  # inches
BESIDE: dict[str, Any] = {"textcoords": "offset points", "color": GREY}
PANELS = (
    ("risk", "promise broken, of those told to act"),
    ("cost", "mean cost of a person"),
    ("coverage", "refused who have a plan"),
)


def draw_groups(
    evaluation: AdvisorEvaluation,
    feature: Feature,
    *,
    alpha: float | None = None,
    language: str = "en",
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw three panels inside the axis, a row for everybody and for each group: risk and coverage
    with exact intervals at the level 0.95, and cost.

    Parameters
    ----------
    evaluation
        ``advisor.evaluation_`` of an advisor with groups.
    feature
        What makes the groups, for its label and the words for its levels:
        ``advisor.schema["housing"]``.
    alpha
        The risk that is allowed; it is drawn as a line. None: no line.
    language
        Of the words.
    ax
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axis that was drawn on; its three panels are ``child_axes``.

    Raises
    ------
    DataError
        If the evaluation has no groups.
    MissingExtraError
        If matplotlib is not installed.
    """
    if not evaluation.groups:
        raise DataError(
            "this evaluation has no groups; fit the advisor with groups='name of a feature'"
        )
    rows: dict[str, AdvisorEvaluation | GroupEvaluation] = {"everybody": evaluation}
    for level, group in evaluation.groups.items():
        rows[phrases.plain(phrases.named(feature, level, language) or level)] = group
    intervals = [_interval(row, "risk") for row in rows.values()]
    highest = max([*(span[1] for span in intervals if span), 2 * (alpha or 0.0)])
    ends = {  # of the axes: a little beyond all that is on them
        "risk": min(1.1, 1.12 * highest or 1.0),
        "cost": 1.12 * max(row.cost for row in rows.values()) or 1.0,
        "coverage": 1.1,
    }
    with drawing(ax, (7.2, 0.9 + ROW * len(rows))) as ax:
        ax.set_axis_off()
        panels = [ax.inset_axes((i * 0.35, 0, 0.3, 1)) for i in range(len(PANELS))]
        for panel, (measure, label) in zip(panels, PANELS, strict=True):
            for y, row in enumerate(rows.values()):
                _mark(panel, row, measure, y)
            panel.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, ends[measure]), xlabel=label)
            panel.set_yticks(range(len(rows)), [""] * len(rows))
            panel.tick_params(axis="y", length=0)
            panel.axhline(0.5, color="#999999", linewidth=0.6)  # everybody above, groups below
            tidy(panel, "x")
        panels[0].set_yticklabels([f"{name} ({row.people})" for name, row in rows.items()])
        panels[0].set_ylabel(fill(label_of(feature, language), 6 * len(rows)))
        if alpha is not None:
            panels[0].axvline(alpha, color=INK, linestyle=":", linewidth=1)
            panels[0].set_title(f"dotted: allowed, {alpha:g}", fontsize=7, loc="left")
    return ax


def _people(row: AdvisorEvaluation | GroupEvaluation, measure: str) -> int:
    """The people whom a measure is about: those told to act, or those refused."""
    return row.n if measure == "risk" else round(row.refused * row.people)


def _interval(row: AdvisorEvaluation | GroupEvaluation, measure: str) -> tuple[float, float] | None:
    """The interval of a share; None for the cost, and where there is nobody."""
    share = getattr(row, measure)
    if measure == "cost" or share is None:
        return None
    return share_interval(share, _people(row, measure))


def _mark(panel: "Axes", row: AdvisorEvaluation | GroupEvaluation, measure: str, y: int) -> None:
    """One mark with its interval; everybody's is hollow. Where there is nobody to measure, words
    say so.

    ``panel`` is the axis of a ``measure`` (a name in ``PANELS``), ``y`` the position of the row.
    """
    value, interval = getattr(row, measure), _interval(row, measure)
    if value is None:
        acting = "nobody is told to act" if getattr(row, "certified", True) else "no certificate"
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
        of = _people(row, measure)
        text = f"{round(value * of)} of {of}"
        panel.annotate(text, (value, y), (0, 5), ha="center", va="bottom", fontsize=6, **BESIDE)
