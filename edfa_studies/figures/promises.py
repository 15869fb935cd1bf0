"""Figures of acting early: CF Valid@K and its certified bound against cost (11, 12), and what
limits it (13).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edfa.certification import critical_losses, hb_ucb, zones
from edfa_studies.figures.labelling import place_labels
from edfa_studies.figures.style import BLACK, GREY, MARKERS, ZONES, legend, look
from edfa_studies.tables.labels import ordered, title
from edfa_studies.tables.promises import certificate_rows, rule_rows
from edfa_studies.tables.results import Results, over_seeds, preferred

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["certified_points", "draw_costs", "draw_limits", "draw_trace", "limits", "traces"]

RULES = ("first", "safe", "last")
RULE_MARKERS = {"first": "o", "safe": "s", "last": "^"}
DELTA = 0.05


def traces(results: Results) -> pd.DataFrame:
    """The three stop rules of EDFA with each searcher: cost, CF Valid@K and its certified bound,
    means over seeds.
    """
    rows = rule_rows(results)
    rows = preferred(rows, "policy", "edfa")
    by = ["data", "predictor", "alpha", "searcher", "rule"]
    return over_seeds(rows, by, ["cost", "valid", "lower", "n", "test_cost", "test_valid"])


def draw_trace(ax: "Axes", frame: pd.DataFrame, alpha: float) -> "Axes":
    """Draw the traces of all searchers on one set: first plan, certified rule, last step.

    A point is CF Valid@K; the short line below it ends at the bound that holds with 95 %
    confidence.
    """
    for name in ordered("searcher", frame["searcher"]):
        line = (
            frame[frame["searcher"] == name]
            .set_index("rule")
            .reindex(RULES)
            .dropna(subset=["cost", "valid"])
        )
        style = look("searcher", name)
        ax.plot(line["cost"], line["valid"], **style | {"linewidth": 1.2})
        ax.vlines(
            line["cost"], line["lower"], line["valid"], color=style["color"], lw=0.9, alpha=0.8
        )
        ax.plot(line["cost"], line["lower"], "_", color=style["color"], ms=5, mew=1)
        for rule, point in line.iterrows():
            marker = RULE_MARKERS[str(rule)]
            ax.plot(
                point["cost"],
                point["valid"],
                marker,
                color=style["color"],
                ms=4,
                mec="white",
                mew=0.4,
                zorder=4,
            )
    ax.axhline(1 - alpha, color=BLACK, lw=0.9, ls=(0, (1, 1.5)))
    return ax


def draw_traces(figure: "Figure", frame: pd.DataFrame, columns: int = 4) -> "Figure":
    """Draw the traces of one model: a block of rows for each alpha, a panel for each set, one
    legend for all.
    """
    from matplotlib.lines import Line2D

    sets, alphas = ordered("data", frame["data"]), sorted(set(frame["alpha"]))
    columns = min(columns, len(sets))
    lines = -(-len(sets) // columns)
    axes: Any = figure.subplots(
        lines * len(alphas), columns, squeeze=False, sharex=True, sharey=True
    )
    for i, alpha in enumerate(alphas):
        panels = axes[i * lines : (i + 1) * lines].ravel()
        for ax, name in zip(panels, sets, strict=False):
            draw_trace(ax, frame[(frame["data"] == name) & (frame["alpha"] == alpha)], alpha)
            ax.set_title(f"{title('data', name)}, alpha = {alpha:g}", loc="left")
        for ax in panels[len(sets) :]:
            ax.set_visible(False)
    axes[0, 0].set_xlim(0, 1.05 * max(0.1, float(frame["cost"].max())))  # shared by all
    for line in axes:
        line[0].set_ylabel("CF Valid@K")
        for ax in line:
            ax.tick_params(labelbottom=True)
    figure.supxlabel("cost (share of everything)", fontsize=8)
    grey: dict[str, Any] = {"color": GREY, "linestyle": "none", "ms": 4.5}
    rules = [
        Line2D([], [], marker=RULE_MARKERS[rule], label=title("rule", rule), **grey)
        for rule in RULES
    ]
    bound = Line2D([], [], marker="_", mew=1, label="certified bound", **grey)
    level = Line2D([], [], color=BLACK, lw=0.9, ls=(0, (1, 1.5)), label="1 - alpha")
    legend(figure, "searcher", ordered("searcher", frame["searcher"]), [*rules, bound, level])
    return figure


def limits(results: Results) -> pd.DataFrame:
    """People and observed risk of the strictest rule, for each set and searcher, with the zone;
    means over seeds.
    """
    rows = preferred(preferred(certificate_rows(results), "promise", "paper"), "method", "paper")
    rows = preferred(rows, "policy", "edfa")
    rows = over_seeds(rows, ["predictor", "alpha", "data", "searcher"], ["n", "strictest_risk"])
    rows = rows.dropna(subset=["n", "strictest_risk"]).rename(columns={"strictest_risk": "risk"})
    rows = rows[rows["n"] >= 1].assign(n=lambda frame: frame["n"].round().astype(int))
    parts = [zones(part, float(str(alpha)), DELTA).frame() for alpha, part in rows.groupby("alpha")]
    return pd.concat(parts, ignore_index=True) if parts else rows.assign(zone="")


def draw_limits(ax: "Axes", frame: pd.DataFrame, alpha: float, *, names: bool = True) -> "Axes":
    """Draw people against observed risk: zones, floor, required people exactly and by the closed
    form, a point a cell.

    Colours are data sets, markers searchers; each set is named once, beside its points.
    """
    most = max(1200.0, 1.4 * float(frame["n"].max())) if len(frame) else 1200.0
    top = max(0.5, float(frame["risk"].max()) + 0.06) if len(frame) else 0.5
    low = 8.0
    _draw_zones(ax, alpha, low, most, top)
    marks = zones({"n": [100], "risk": [0.0]}, alpha, DELTA)
    curve = marks.curve(80)
    ax.plot(curve["stable"], curve["risk"], color=BLACK, lw=1.3, zorder=3)
    ax.plot(curve["closed_form"], curve["risk"], color=BLACK, lw=1.1, ls=(0, (1, 1.5)), zorder=3)
    ax.axvline(marks.floor, color=GREY, lw=1, ls=(0, (4, 2)), zorder=2)
    ax.axhline(alpha, color=GREY, lw=0.7, zorder=1)
    for row in frame.to_dict("records"):
        marker = MARKERS.get(str(row["searcher"]), "X")
        style: dict[str, Any] = {
            "color": look("data", str(row["data"]))["color"],
            "mec": "white",
            "mew": 0.4,
            "ms": 5,
        }
        ax.plot(row["n"], row["risk"], marker, zorder=4, **style)
    ax.set(xscale="log", xlim=(low, most), ylim=(0, top), xlabel="calibration people n (log scale)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.grid(visible=False)
    if names:
        ax.figure.draw_without_rendering()  # type: ignore[union-attr]
        _name_sets(ax, frame)
    return ax


def _name_sets(ax: "Axes", frame: pd.DataFrame) -> None:
    place_labels(
        ax,
        frame.assign(name=[title("data", name) for name in frame["data"]], colour=_colours(frame)),
    )


def _colours(frame: pd.DataFrame) -> list[str]:
    return [look("data", str(name))["color"] for name in frame["data"]]


def _draw_zones(ax: "Axes", alpha: float, low: float, most: float, top: float) -> None:
    """Colour where a certificate is possible, where more people may help, and where none can."""
    people = np.unique(np.geomspace(low, most, 120).round().astype(int))
    certified = np.maximum(critical_losses(people, alpha, DELTA), 0) / people
    hopeless = np.array([_hopeless(int(n), alpha) for n in people])
    # Losses are whole people, so the borders are saws; drawn are the borders from which on every n
    # is on one side.
    certified = np.minimum.accumulate(certified[::-1])[::-1]
    hopeless = np.maximum.accumulate(hopeless[::-1])[::-1]
    style: dict[str, Any] = {"linewidth": 0, "zorder": 0}
    ax.fill_between(people, 0, certified, color=ZONES["certified"], **style)
    ax.fill_between(
        people, certified, np.minimum(hopeless, top), color=ZONES["data_limited"], **style
    )
    ax.fill_between(people, np.minimum(hopeless, top), top, color=ZONES["risk_limited"], **style)


def _hopeless(n: int, alpha: float) -> float:
    """The least observed risk of n people whose lower bound lies above alpha."""
    risks = np.arange(n + 1) / n
    above = 1 - np.asarray(hb_ucb(1 - risks, np.full(n + 1, n), DELTA)) > alpha
    return float(risks[np.argmax(above)]) if above.any() else 1.0


def draw_all_limits(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw a row of panels for each model, a panel for each alpha, one legend for all."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    models, alphas = ordered("predictor", frame["predictor"]), sorted(set(frame["alpha"]))
    axes: Any = figure.subplots(len(models), len(alphas), squeeze=False)
    for line, model in zip(axes, models, strict=True):
        for ax, alpha in zip(line, alphas, strict=True):
            draw_limits(ax, _panel(frame, model, alpha), alpha, names=False)
            ax.set_title(
                f"{title('predictor', model)}, alpha = {alpha:g}", loc="left", fontweight="bold"
            )
        line[0].set_ylabel("observed risk of the strictest rule")
    points = [
        Line2D(
            [],
            [],
            ls="none",
            marker=MARKERS.get(name, "X"),
            color=GREY,
            ms=5,
            label=title("searcher", name),
        )
        for name in ordered("searcher", frame["searcher"])
    ]
    lines = [
        Line2D([], [], color=BLACK, lw=1.3, label="people needed, exact"),
        Line2D([], [], color=BLACK, lw=1.1, ls=(0, (1, 1.5)), label="closed form"),
        Line2D([], [], color=GREY, lw=1, ls=(0, (4, 2)), label="floor"),
    ]
    patches = [Patch(color=colour, label=title("status", zone)) for zone, colour in ZONES.items()]
    figure.legend(handles=[*points, *lines, *patches], loc="outside upper left", ncols=6)
    figure.draw_without_rendering()  # names are placed in the final layout
    for line, model in zip(axes, models, strict=True):
        for ax, alpha in zip(line, alphas, strict=True):
            _name_sets(ax, _panel(frame, model, alpha))
    return figure


def _panel(frame: pd.DataFrame, model: str, alpha: float) -> pd.DataFrame:
    return frame[(frame["predictor"] == model) & (frame["alpha"] == alpha)]


def certified_points(results: Results) -> pd.DataFrame:
    """Certified cost of EDFA with each searcher under each bound and promise; NaN where nothing was
    certified.
    """
    rows = preferred(certificate_rows(results), "policy", "edfa")
    yes = rows["status"] == "certified"
    rows = rows.assign(cost=rows["cost"].where(yes), certified=yes.astype(float))
    by = ["promise", "predictor", "alpha", "data", "searcher", "method"]
    return over_seeds(rows, by, ["cost", "full_cost", "certified"])


def draw_costs(
    ax: "Axes", frame: pd.DataFrame, searchers: Sequence[str], methods: Sequence[str]
) -> "Axes":
    """Draw certified costs on one set: a row for each searcher, a marker for each bound, a cross if
    none certifies.
    """
    step = 0.22
    for i, searcher in enumerate(searchers):
        for j, method in enumerate(methods):
            rows = frame[(frame["searcher"] == searcher) & (frame["method"] == method)]
            y = i + step * (j - (len(methods) - 1) / 2)
            colour = look("method", method)["color"]
            for row in rows.to_dict("records"):
                certified = not np.isnan(row["cost"])
                ax.plot(
                    row["cost"] if certified else 1.04,
                    y,
                    MARKERS.get(method, "X") if certified else "x",
                    color=colour,
                    mfc=colour if row["certified"] == 1 else "white",
                    ms=4,
                )
    full = frame["full_cost"].mean()
    if not np.isnan(full):
        ax.axvline(full, color=GREY, lw=0.9, ls=(0, (4, 2)))
    ax.set(xlim=(0, 1.08), ylim=(len(searchers) - 0.4, -0.6), yticks=range(len(searchers)))
    ax.set_yticklabels([title("searcher", name) for name in searchers])
    return ax
