"""Figures of acting early: CF Valid@K and its certified bound against cost (11, 12), what limits it
(13), and certified costs.

Frames come from ``traces``, ``limits`` and ``certified_points``; ``draw_traces``,
``draw_all_limits`` and ``draw_certified`` draw whole figures of them, ``draw_trace``,
``draw_limits`` and ``draw_costs`` single panels.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edfa.certification import critical_losses, floor, zones
from edfa_studies.figures.style import (
    BLACK,
    COST,
    GREY,
    colour,
    handle,
    head,
    legend,
    look,
    marker,
    marks,
    panels,
)
from edfa_studies.tables.names import NAMES, in_order, ordered, title
from edfa_studies.tables.promises import certificate_rows, rule_rows
from edfa_studies.tables.rows import Results, over_seeds, preferred

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DELTA = 0.05
LEVEL: dict[str, Any] = {"color": BLACK, "lw": 0.9, "ls": (0, (1, 1.5))}
NEEDED: dict[str, Any] = {"color": BLACK, "lw": 1.3}
CLOSED_FORM: dict[str, Any] = {"color": BLACK, "lw": 1.1, "ls": (0, (1, 1.5))}
FLOOR: dict[str, Any] = {"color": GREY, "lw": 1, "ls": (0, (4, 2))}
LAST_STEP: dict[str, Any] = FLOOR | {"lw": 0.9}


def traces(results: Results) -> pd.DataFrame:
    """The three stop rules of EDFA with each searcher, under the paper's promise and bound.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model, alpha, searcher and rule ("first", "safe", "last"): means
        over seeds of cost, CF Valid@K (``valid``), its certified bound (``lower``), and the number
        of calibration people.
    """
    rows = preferred(rule_rows(results), "policy", "edfa")
    by = ["data", "predictor", "alpha", "searcher", "rule"]
    return over_seeds(rows, by, ["cost", "valid", "lower", "n", "test_cost", "test_valid"])


def draw_trace(ax: "Axes", frame: pd.DataFrame, alpha: float) -> "Axes":
    """Draw the traces of all searchers on one set: first plan, certified rule, last step.

    A point is CF Valid@K; the short line below it ends at the bound that holds with 95 %
    confidence.

    Parameters
    ----------
    ax
        The axis to draw on.
    frame
        Rows of ``traces`` of one data set, model and alpha.
    alpha
        The level; a dotted line is drawn at 1 - alpha.
    """
    for name in ordered("searcher", frame["searcher"]):
        line = frame[frame["searcher"] == name].set_index("rule").reindex(list(NAMES["rule"]))
        line = line.dropna(subset=["cost", "valid"])
        style = look("searcher", name)
        of = {"color": style["color"]}
        ax.plot(line["cost"], line["valid"], **style | {"linewidth": 1.2})
        ax.vlines(line["cost"], line["lower"], line["valid"], lw=0.9, alpha=0.8, **of)
        ax.plot(line["cost"], line["lower"], "_", ms=5, mew=1, **of)
        for rule, point in line.iterrows():
            mark = marker("rule", str(rule))
            ax.plot(point["cost"], point["valid"], mark, ms=4, mec="white", mew=0.4, zorder=4, **of)
    ax.axhline(1 - alpha, **LEVEL)
    return ax


def draw_traces(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw the traces of one model, with one legend for all panels.

    Parameters
    ----------
    figure
        The figure to draw on.
    frame
        Rows of ``traces`` of one model.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: a block of rows for each alpha, a panel for each set.
    """
    sets, alphas = ordered("data", frame["data"]), sorted(set(frame["alpha"]))
    blocks = panels(figure, sets, len(alphas), sharex=True, sharey=True)
    for alpha, axes in zip(alphas, blocks, strict=True):
        for ax, name in zip(axes, sets, strict=True):
            draw_trace(ax, frame[(frame["data"] == name) & (frame["alpha"] == alpha)], alpha)
            ax.set_title(f"{title('data', name)}, alpha = {alpha:g}", loc="left")
            ax.tick_params(labelbottom=True)
            if ax.get_subplotspec().is_first_col():  # type: ignore[union-attr]
                ax.set_ylabel("CF Valid@K")
    figure.axes[0].set_xlim(0, 1.05 * max(0.1, float(frame["cost"].max())))  # shared by all
    figure.supxlabel(COST, fontsize=8)
    rules = marks("rule", NAMES["rule"], color=GREY, ms=4.5)
    bound = handle("certified bound", marker="_", mew=1, color=GREY, ls="none", ms=4.5)
    extra = [*rules, bound, handle("1 - alpha", **LEVEL)]
    legend(figure, "searcher", ordered("searcher", frame["searcher"]), extra)
    return figure


def limits(results: Results) -> pd.DataFrame:
    """What limits certificates of EDFA under the paper's promise.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model, alpha and searcher: the number ``n`` of people and the
        observed ``risk`` of the strictest rule, means over seeds, the ``zone`` ("certified",
        "data_limited", "risk_limited") and the people needed (see ``edfa.certification.zones``).
    """
    rows = certificate_rows(results)
    for column, name in (("promise", "paper"), ("method", "paper"), ("policy", "edfa")):
        rows = preferred(rows, column, name)
    rows = over_seeds(rows, ["predictor", "alpha", "data", "searcher"], ["n", "strictest_risk"])
    rows = rows.dropna(subset=["n", "strictest_risk"]).rename(columns={"strictest_risk": "risk"})
    rows = rows[rows["n"] >= 1].assign(n=lambda frame: frame["n"].round().astype(int))
    parts = [zones(part, float(str(alpha)), DELTA) for alpha, part in rows.groupby("alpha")]
    return pd.concat(parts, ignore_index=True) if parts else rows.assign(zone="")


def draw_limits(ax: "Axes", frame: pd.DataFrame, alpha: float) -> "Axes":
    """Draw people against observed risk: zones, floor, required people exactly and by the closed
    form, a point for each cell.

    Colours are data sets, markers searchers.

    Parameters
    ----------
    ax
        The axis to draw on.
    frame
        Rows of ``limits`` of one model and alpha.
    alpha
        The level that the zones belong to.
    """
    most = max(1200.0, 1.4 * float(frame["n"].max())) if len(frame) else 1200.0
    top = max(0.5, float(frame["risk"].max()) + 0.06) if len(frame) else 0.5
    low = 8.0
    _draw_zones(ax, alpha, np.unique(np.geomspace(low, most, 120).round().astype(int)), top)
    curve = zones({"n": 1, "risk": np.linspace(0, 0.95 * alpha, 80)}, alpha, DELTA)
    for name, style in (("stable", NEEDED), ("closed_form", CLOSED_FORM)):
        ax.plot(curve[name].astype(float), curve["risk"], zorder=3, **style)
    ax.axvline(floor(alpha, DELTA), zorder=2, **FLOOR)
    ax.axhline(alpha, color=GREY, lw=0.7, zorder=1)
    for row in frame.to_dict("records"):
        ink, mark = colour("data", str(row["data"])), marker("searcher", str(row["searcher"]))
        ax.plot(row["n"], row["risk"], mark, color=ink, mec="white", mew=0.4, ms=5, zorder=4)
    ax.set(xscale="log", xlim=(low, most), ylim=(0, top), xlabel="calibration people n (log scale)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter("")
    ax.grid(visible=False)
    return ax


def _draw_zones(ax: "Axes", alpha: float, people: Any, top: float) -> None:
    """Colour where a certificate is possible, where more people may help, and where none can.

    ``people`` are numbers of people, rising, (points,); ``top`` is the largest risk shown.
    """
    certified = np.maximum(critical_losses(people, alpha, DELTA), 0) / people
    # the least risk whose lower bound lies above alpha: gains are the losses of a test at 1 - alpha
    hopeless = np.minimum((people - critical_losses(people, 1 - alpha, DELTA)) / people, 1.0)
    # Losses are whole people, so the borders are saws; drawn are the borders from which on every n
    # is on one side.
    certified = np.minimum.accumulate(certified[::-1])[::-1]
    hopeless = np.minimum(np.maximum.accumulate(hopeless[::-1])[::-1], top)
    borders = [np.zeros(len(people)), certified, hopeless, np.full(len(people), top)]
    for zone, low, high in zip(NAMES["status"], borders, borders[1:], strict=False):
        ax.fill_between(people, low, high, color=colour("status", zone), linewidth=0, zorder=0)


def draw_all_limits(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw what limits certificates, with one legend for all panels.

    Parameters
    ----------
    figure
        The figure to draw on.
    frame
        Rows of ``limits``.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: a row of panels for each model, a panel for each alpha.
    """
    from matplotlib.patches import Patch

    models, alphas = ordered("predictor", frame["predictor"]), sorted(set(frame["alpha"]))
    axes: Any = figure.subplots(len(models), len(alphas), squeeze=False)
    for line, model in zip(axes, models, strict=True):
        for ax, alpha in zip(line, alphas, strict=True):
            chosen = (frame["predictor"] == model) & (frame["alpha"] == alpha)
            draw_limits(ax, frame[chosen], alpha)
            head(ax, f"{title('predictor', model)}, alpha = {alpha:g}")
        line[0].set_ylabel("observed risk of the strictest rule")
    sets = marks("data", ordered("data", frame["data"]), marker="o", ms=5)
    searchers = marks("searcher", ordered("searcher", frame["searcher"]), color=GREY, ms=5)
    lines = [
        handle("people needed, exact", **NEEDED),
        handle("closed form", **CLOSED_FORM),
        handle("floor", **FLOOR),
    ]
    areas = [Patch(color=colour("status", z), label=title("status", z)) for z in NAMES["status"]]
    legend(figure, "data", [], [*sets, *searchers, *lines, *areas])
    return figure


def certified_points(results: Results) -> pd.DataFrame:
    """Certified cost of EDFA with each searcher under each bound and promise.

    Returns
    -------
    pandas.DataFrame
        One row for each promise, model, alpha, data set, searcher and bound: the mean ``cost`` over
        the seeds that certified, NaN if none did; ``full_cost``, that of going to the last step;
        ``certified``, the share of seeds.
    """
    rows = preferred(certificate_rows(results), "policy", "edfa")
    rows = rows.assign(cost=rows["cost"].where(rows["certified"] == 1))
    by = ["promise", "predictor", "alpha", "data", "searcher", "method"]
    return over_seeds(rows, by, ["cost", "full_cost", "certified"])


def draw_costs(
    ax: "Axes", frame: pd.DataFrame, searchers: Sequence[str], methods: Sequence[str]
) -> "Axes":
    """Draw certified costs on one set: a row for each searcher, a marker for each bound, a cross if
    none certifies.

    Parameters
    ----------
    ax
        The axis to draw on.
    frame
        Rows of ``certified_points`` of one promise, model, alpha and data set.
    searchers, methods
        The names of the rows, from above, and of the bounds. A mark is filled if every seed
        certified.
    """
    for row in in_order(frame, ["searcher", "method"]).to_dict("records"):
        method, certified = str(row["method"]), not np.isnan(row["cost"])
        ink, shift = colour("method", method), methods.index(method) - (len(methods) - 1) / 2
        ax.plot(
            row["cost"] if certified else 1.04,
            searchers.index(str(row["searcher"])) + 0.22 * shift,
            marker("method", method) if certified else "x",
            color=ink,
            mfc=ink if row["certified"] == 1 else "white",
            ms=4,
        )
    full = frame["full_cost"].mean()
    if not np.isnan(full):
        ax.axvline(full, **LAST_STEP)
    ax.set(xlim=(0, 1.08), ylim=(len(searchers) - 0.4, -0.6))
    ax.set_yticks(range(len(searchers)), [title("searcher", name) for name in searchers])
    return ax


def draw_certified(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw certified costs, with one legend for all panels.

    Parameters
    ----------
    figure
        The figure to draw on.
    frame
        Rows of ``certified_points`` of one promise, model and alpha.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: a panel for each set, with searchers as rows and bounds as marks.
    """
    sets, searchers = ordered("data", frame["data"]), ordered("searcher", frame["searcher"])
    methods = ordered("method", frame["method"])
    for ax, name in zip(*panels(figure, sets, sharex=True, sharey=True), sets, strict=True):
        draw_costs(ax, frame[frame["data"] == name], searchers, methods)
        head(ax, title("data", name))
        ax.tick_params(labelbottom=True)
    figure.supxlabel(COST, fontsize=8)
    extra = [*marks("method", methods), handle("to the last step", **LAST_STEP)]
    legend(figure, "method", [], extra)
    return figure
