"""Growing recourse: curves of EDFA under each blanket (Figures 3 and 4), of all policies (5 to 10)
and of ablations (14 to 17); one number for each policy on each set as dots.

Each figure has a function from results to a frame (``blanket_lines``, ``policy_lines``,
``ablation_lines``, ``model_lines``, ``first_costs``, ``lifts``) and one that draws such a frame.
Frames of curves are tidy: one row for each series, place and measure, with the columns data,
predictor, blanket, kind (of part that the series are), series, place (the step, or the cost of a
grid), cost, measure, mean, std and seeds.
"""

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edfa_studies.figures.style import COST, GREY, colour, head, legend, look, marks, panels
from edfa_studies.tables.names import ABLATIONS, ordered, title
from edfa_studies.tables.rows import (
    Results,
    comparable,
    compared,
    growth_rows,
    matching,
    one_searcher,
    rows_of,
    without_variants,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = {
    "recourse": "recourse options",
    "semifactual": "semifactual features",
    "accuracy": "accuracy",
    "active": "|C(A)|/|MB|",
    "outside": "features outside MB",
    "any_recourse": "people with recourse",
}
FRONTIER = ("recourse", "semifactual", "accuracy", "active")
POLICIES = ("recourse", "accuracy", "active", "outside")
SERIES = ["data", "predictor", "blanket", "series"]
COLUMNS = [*SERIES[:3], "kind", "series", "place", "cost", "measure", "mean", "std", "seeds"]
MARKERS = "osD^v<>PX*"  # of policies, as they come


def blanket_lines(results: Results) -> pd.DataFrame:
    """EDFA step by step under each blanket: recourse, semifactuals, accuracy, active share (Figures
    3 and 4).

    Parameters
    ----------
    results
        The results of a study.

    Returns
    -------
    pandas.DataFrame
        Curves; the series are blankets. Data sets and models with one blanket alone are left out
        if any has several.
    """
    rows = _rows(results, "step")
    lines = _lines(one_searcher(rows[rows["policy"] == "edfa"]), "blanket", FRONTIER)
    several = with_several(lines, ["data", "predictor"])
    return lines if several.empty else several


def policy_lines(results: Results, table: str = "step") -> pd.DataFrame:
    """All policies under one blanket, step by step, or at equal cost (Figures 5 to 10).

    Parameters
    ----------
    results
        The results of a study.
    table
        ``"step"``: after each question. ``"cost"``: at each cost of a grid.

    Returns
    -------
    pandas.DataFrame
        Curves; the series are policies, with EDFA's generative plans as one of their own.
    """
    rows = _rows(results, table)
    rows = rows[~rows["policy"].isin(["edfa-no-pc-priority", "edfa-structural"])]
    main = compared(rows)
    generative = rows[(rows["policy"] == "edfa") & (rows["searcher"] == "generative")]
    generative = generative[~generative.index.isin(main.index)]
    generative = matching(generative, ["data", "predictor", "blanket"], main)
    both = pd.concat([main, generative.assign(policy="edfa generative")])
    measures = POLICIES if table == "step" else ("recourse", "accuracy", "any_recourse")
    return _lines(both, "policy", measures)


def ablation_lines(results: Results) -> pd.DataFrame:
    """EDFA and its three variants under one blanket (Figures 14 to 17).

    Returns
    -------
    pandas.DataFrame
        Curves; the series are policies. Data sets and models without a variant are left out.
    """
    lines = _lines(comparable(_rows(results, "step"), ABLATIONS), "policy", FRONTIER)
    return with_several(lines, ["data", "predictor"])


def model_lines(results: Results) -> pd.DataFrame:
    """EDFA under one blanket with each model, on the sets where the Bayesian network was measured.

    Returns
    -------
    pandas.DataFrame
        Curves; the series are models, so that the column predictor is ``"bn"`` everywhere.
    """
    rows = _rows(results, "step")
    rows = one_searcher(rows[rows["policy"] == "edfa"])
    networks = rows[rows["predictor"] == "bn"].groupby("data")["blanket"]
    blankets = networks.agg(lambda names: ordered("blanket", names)[0])
    rows = rows[rows["blanket"] == rows["data"].map(blankets)]
    rows = rows[~rows["predictor"].astype(str).str.contains("-")]  # no variants
    return _lines(rows, "predictor", FRONTIER).assign(predictor="bn")


def with_several(lines: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The lines of groups with more than one series."""
    several = lines.groupby(list(by))["series"].transform("nunique").astype(float) > 1
    return lines[several].reset_index(drop=True)


def _rows(results: Results, table: str) -> pd.DataFrame:
    """Rows of the table ``"step"`` or ``"cost"``, with the step or the cost as ``place``."""
    rows = growth_rows(results, table, dict.fromkeys([table, "cost", *MEASURES]))
    return rows.assign(place=rows[table])


def _lines(rows: pd.DataFrame, kind: str, measures: Sequence[str]) -> pd.DataFrame:
    """Mean and standard deviation over seeds at each place.

    A seed whose last step is earlier stays at its last values, as people do within a seed.

    Parameters
    ----------
    rows
        Rows of ``_rows``.
    kind
        The kind of part that makes the series: ``"blanket"``, ``"policy"`` or ``"predictor"``.
    measures
        Names in ``MEASURES``; those without any value are left out.

    Returns
    -------
    pandas.DataFrame
        Curves, sorted by data, predictor, blanket, series, measure and place.
    """
    rows = rows.assign(series=rows[kind]).dropna(subset=["place", "cost"])
    measures = [name for name in measures if rows[name].notna().any()]
    if not measures:
        return pd.DataFrame(columns=COLUMNS)
    wide = rows.pivot_table(
        index=[*SERIES, "place"], columns="seed", values=["cost", *measures], aggfunc="mean"
    )
    wide = wide.groupby(level=SERIES).ffill()
    cost = pd.DataFrame(wide["cost"]).mean(axis=1)
    parts = []
    for measure in measures:
        values = pd.DataFrame(wide[measure])
        seeds = values.notna().groupby(level=SERIES).transform("any").sum(axis=1)
        columns = {"cost": cost, "mean": values.mean(axis=1), "std": values.std(axis=1, ddof=0)}
        parts.append(pd.DataFrame(columns | {"measure": measure, "seeds": seeds}))
    lines = pd.concat(parts).dropna(subset="mean").assign(kind=kind).reset_index()[COLUMNS]
    return lines.sort_values([*SERIES, "measure", "place"], ignore_index=True)


def draw_growth(ax: "Axes", frame: pd.DataFrame, measure: str) -> "Axes":
    """Draw one measure against the cost.

    Parameters
    ----------
    ax
        The axis to draw on.
    frame
        Curves of one data set and model, as of ``policy_lines``.
    measure
        A name in ``MEASURES``.

    Returns
    -------
    matplotlib.axes.Axes
        The axis, with a line for each series and a band of one standard deviation over seeds.
    """
    rows = frame[frame["measure"] == measure].sort_values("place")
    for name in series_order(rows):
        line = rows[rows["series"] == name]
        style = look(str(line["kind"].iloc[0]), name)
        ax.plot(line["cost"], line["mean"], **style)
        if (line["std"] > 0).any():
            low, high = line["mean"] - line["std"], line["mean"] + line["std"]
            band = {"color": style["color"], "alpha": 0.13, "linewidth": 0}
            ax.fill_between(line["cost"], low, high, **band)
    ax.set_ylabel(MEASURES.get(measure, measure))
    end = frame["cost"].max() if len(frame) else 1.0
    ax.set_xlim(-0.02 * end, 1.02 * end if end > 0 else 1)
    if measure != "accuracy" and len(rows):  # counts and shares start at nothing
        top = max(0.1, (rows["mean"] + rows["std"]).max())
        ax.set_ylim(-0.03 * top, 1.06 * top)
    return ax


def series_order(frame: pd.DataFrame) -> list[str]:
    """The series of a frame in the order of legends."""
    return ordered(str(frame["kind"].iloc[0]), frame["series"]) if len(frame) else []


def draw_rows(
    figure: "Figure", rows: Sequence[tuple[str, pd.DataFrame]], measures: Sequence[str]
) -> "Figure":
    """Draw rows of panels, a panel for each measure, with one legend for all.

    Parameters
    ----------
    figure
        The figure to draw on.
    rows
        The title of each row and its curves; all of one kind of series.
    measures
        Names in ``MEASURES``, one for each column.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    axes: Any = figure.subplots(len(rows), len(measures), squeeze=False)
    for line, (name, frame) in zip(axes, rows, strict=True):
        for ax, measure in zip(line, measures, strict=True):
            draw_growth(ax, frame, measure)
        head(line[0], name)
    for ax in axes[-1]:
        ax.set_xlabel(COST)
    everything = pd.concat([frame for _, frame in rows])
    legend(figure, str(everything["kind"].iloc[0]), series_order(everything))
    return figure


def row_title(frame: pd.DataFrame) -> str:
    """Data set, model and blanket of curves in words, but for what the series are."""
    first = frame.iloc[0]
    names = [title("data", first["data"])]
    if first["kind"] != "predictor":
        names.append(title("predictor", first["predictor"]))
    blankets = ordered("blanket", frame["blanket"])
    if len(blankets) == 1 and first["kind"] != "blanket":
        names.append(title("blanket", blankets[0]))
    return " · ".join(names)


def draw_sets(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw recourse against the cost: a panel for each set, one legend for all."""
    sets = ordered("data", frame["data"])
    for ax, name in zip(*panels(figure, sets), sets, strict=True):
        draw_growth(ax, frame[frame["data"] == name], "recourse")
        head(ax, title("data", name))
        ax.set_xlabel(COST)
    legend(figure, "policy", series_order(frame))
    return figure


def first_costs(results: Results) -> pd.DataFrame:
    """The cost to the first recourse, a share of the price of everything beyond the start set.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model and policy: mean and std over seeds, and how many seeds
        there are. Seeds in which nobody ever has recourse do not count.
    """
    return _spread(growth_rows(results, "end", ["first_cost"]), "first_cost")


def lifts(results: Results) -> pd.DataFrame:
    """The outcome lift of plans, in the advisor's reading where there is one.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model and policy: mean and std over seeds, and how many seeds
        there are.
    """
    rows = rows_of(results, "growth", "quality", ["lift"])
    return _spread(rows[rows["reading"] == rows["reading"].dropna().min()], "lift")


def _spread(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean and standard deviation of a column over seeds, by data, predictor, blanket, policy."""
    rows = without_variants(compared(rows)).dropna(subset=column)
    groups = rows.groupby(["data", "predictor", "blanket", "policy"])[column]
    spread = {"mean": groups.mean(), "std": groups.std(ddof=0), "seeds": groups.size()}
    return pd.DataFrame(spread).reset_index()


def draw_dots(figure: "Figure", frame: pd.DataFrame, label: str) -> "Figure":
    """Draw one number for each policy on each data set, as of ``first_costs``.

    Parameters
    ----------
    figure
        The figure to draw on.
    frame
        Columns data, predictor, policy, mean and std.
    label
        What the numbers are, below each panel.

    Returns
    -------
    matplotlib.figure.Figure
        The figure: a panel for each model, a row for each set, a mark for each policy with its
        standard deviation over seeds.
    """
    models, sets = ordered("predictor", frame["predictor"]), ordered("data", frame["data"])
    policies = dict(zip(ordered("policy", frame["policy"]), cycle(MARKERS), strict=False))
    axes: Any = figure.subplots(1, len(models), squeeze=False, sharey=True)
    for ax, model in zip(axes[0], models, strict=True):
        for j, (policy, mark) in enumerate(policies.items()):
            rows = frame[(frame["predictor"] == model) & (frame["policy"] == policy)]
            rows = rows.set_index("data").reindex(sets)
            ax.errorbar(
                rows["mean"],
                np.arange(len(sets)) + 0.09 * (j - (len(policies) - 1) / 2),
                xerr=rows["std"].fillna(0),
                fmt=mark,
                color=colour("policy", policy),
                ms=6 if policy == "edfa" else 4,
                elinewidth=0.8,
                zorder=look("policy", policy)["zorder"],
            )
        ax.set(ylim=(len(sets) - 0.5, -0.5), xlabel=label)
        ax.set_yticks(range(len(sets)), [title("data", name) for name in sets])
        ax.set_yticks(np.arange(len(sets) - 1) + 0.5, minor=True)
        ax.grid(visible=False, axis="y")
        ax.grid(visible=True, axis="y", which="minor")
        ax.tick_params(axis="y", which="both", length=0)
        ax.axvline(0, color=GREY, lw=0.7)
        head(ax, title("predictor", model))
    shown = [marks("policy", [policy], marker=mark)[0] for policy, mark in policies.items()]
    legend(figure, "policy", [], shown)
    return figure
