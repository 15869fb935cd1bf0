"""Dot plots: one number for each policy on each set, such as the cost to the first recourse or the
lift of plans.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edfa_studies.figures.style import GREY, legend, look
from edfa_studies.tables.labels import ABLATIONS, ordered, title
from edfa_studies.tables.results import Results, compared, growth_rows, numeric_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_dots", "draw_dots_by_model", "first_costs", "lifts"]

MARKS = "osD^v<>PX*"


def first_costs(results: Results) -> pd.DataFrame:
    """The cost to the first recourse by set, model and policy: mean and standard deviation over
    seeds.
    """
    rows = compared(growth_rows(results, "end", ["first_cost"]))
    return _over_seeds(rows, "first_cost")


def lifts(results: Results) -> pd.DataFrame:
    """The outcome lift of plans by set, model and policy: mean and standard deviation over
    seeds.
    """
    rows = numeric_rows(results, "growth", "quality", ["lift"])
    readings = ordered("reading", rows["reading"].dropna())
    rows = (
        rows[rows["reading"] == readings[0]] if readings else rows
    )  # "card" before "paper": the advisor's reading
    return _over_seeds(compared(rows), "lift")


def _over_seeds(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    rows = rows[~rows["policy"].isin(ABLATIONS[1:]) & rows[column].notna()]
    by = ["data", "predictor", "blanket", "policy"]
    if rows.empty:
        return pd.DataFrame(columns=[*by, "mean", "std", "seeds"])
    groups = rows.groupby(by)[column]
    frame = pd.DataFrame({"mean": groups.mean(), "std": groups.std(ddof=0), "seeds": groups.size()})
    return frame.reset_index()


def draw_dots(
    ax: "Axes", frame: pd.DataFrame, sets: Sequence[str], policies: Sequence[str]
) -> "Axes":
    """Draw a row for each set and a mark for each policy, with its standard deviation over
    seeds.
    """
    for j, policy in enumerate(policies):
        rows = frame[frame["policy"] == policy].set_index("data").reindex(list(sets))
        style, bold = look("policy", policy), policy == "edfa"
        y = np.arange(len(sets)) + 0.09 * (j - (len(policies) - 1) / 2)
        ax.errorbar(
            rows["mean"],
            y,
            xerr=rows["std"].fillna(0),
            fmt=MARKS[j % len(MARKS)],
            color=style["color"],
            ms=6 if bold else 4,
            elinewidth=0.8,
            zorder=style["zorder"],
        )
    ax.set(ylim=(len(sets) - 0.5, -0.5), yticks=range(len(sets)))
    ax.set_yticklabels([title("data", name) for name in sets])
    ax.set_yticks(np.arange(len(sets) - 1) + 0.5, minor=True)
    ax.grid(visible=False, axis="y")
    ax.grid(visible=True, axis="y", which="minor")
    ax.tick_params(axis="y", which="both", length=0)
    return ax


def draw_dots_by_model(figure: "Figure", frame: pd.DataFrame, label: str) -> "Figure":
    """Draw a panel for each model, one legend for all."""
    from matplotlib.lines import Line2D

    models, sets = ordered("predictor", frame["predictor"]), ordered("data", frame["data"])
    policies = ordered("policy", frame["policy"])
    axes: Any = figure.subplots(1, len(models), squeeze=False, sharey=True)
    for ax, model in zip(axes[0], models, strict=True):
        draw_dots(ax, frame[frame["predictor"] == model], sets, policies)
        ax.axvline(0, color=GREY, lw=0.7)
        ax.set_title(title("predictor", model), loc="left", fontweight="bold")
        ax.set_xlabel(label)
    handles = [
        Line2D(
            [],
            [],
            ls="none",
            marker=MARKS[j % len(MARKS)],
            color=look("policy", name)["color"],
            label=title("policy", name),
        )
        for j, name in enumerate(policies)
    ]
    legend(figure, "policy", [], handles)
    return figure
