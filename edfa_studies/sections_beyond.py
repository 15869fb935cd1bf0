"""The sections of a report that the paper does not have."""

from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from edfa_studies.exhibits import BANDS, WIDTH, FigureExhibit, Section, TableExhibit
from edfa_studies.figures import dots
from edfa_studies.figures import growth as curves
from edfa_studies.figures import promises as early
from edfa_studies.figures.style import GREY, MARKERS, legend, look
from edfa_studies.tables import growth, promises
from edfa_studies.tables.labels import ordered, title
from edfa_studies.tables.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["beyond_sections"]

COLUMNS = 4  # panels in a row
NARROW = 6.8  # inches that the legends take


def beyond_sections(results: Results) -> list[Section]:
    """Comparisons at equal cost, the first recourse, certified costs, lift, thresholds, groups."""
    return [
        _equal_cost(results),
        _first(results),
        _certified(results),
        _lift(results),
        _rest(results),
    ]


def _equal_cost(results: Results) -> Section:
    lines = curves.policy_lines(results, "cost")
    lines = lines[lines["measure"] == "recourse"]
    exhibits: list[FigureExhibit | TableExhibit] = []
    for predictor in ordered("predictor", lines["predictor"]) or ["xgb"]:
        rows = lines[lines["predictor"] == predictor]
        rows = rows[rows.groupby("data")["series"].transform("nunique").astype(float) > 1]
        caption = f"Recourse options at equal cost with {title('predictor', predictor)}. {BANDS}"
        size = (_width(rows), 0.65 + 2 * max(1, -(-rows["data"].nunique() // COLUMNS)))
        draw = partial(draw_sets, frame=rows, measure="recourse")
        if len(rows) or predictor == "xgb":
            exhibits.append(
                FigureExhibit(f"figure_equal_cost_{predictor}", caption, rows, draw, size)
            )
    caption = (
        "Policies at equal cost: mean recourse over the cost grid, and at 25, "
        "50 and 75 % of the cost of everything."
    )
    exhibits.append(
        TableExhibit(
            "equal_cost", caption, growth.equal_cost(results), {"rank": 0, "mean accuracy": 3}
        )
    )
    text = (
        "At the budget's end a policy that buys more has more; here "
        "every policy has spent the same."
    )
    return Section("Policies at equal cost", text, tuple(exhibits))


def draw_sets(figure: "Figure", frame: pd.DataFrame, measure: str) -> "Figure":
    """Draw a panel for each set, one legend for all."""
    sets = ordered("data", frame["data"])
    axes = _panels(figure, sets)
    for ax, name in zip(axes, sets, strict=True):
        curves.draw_growth(ax, frame[frame["data"] == name], measure)
        ax.set_title(title("data", name), loc="left", fontweight="bold")
        ax.set_xlabel(curves.COST)
    legend(figure, "policy", curves.series_order(frame))
    return figure


def _panels(figure: "Figure", sets: list[str], **options: Any) -> list[Any]:
    """One axis for each set, in rows of four; what is left of the last row stays empty."""
    columns = min(COLUMNS, len(sets))
    axes: Any = figure.subplots(-(-len(sets) // columns), columns, squeeze=False, **options)
    for ax in axes.ravel()[len(sets) :]:
        ax.set_visible(False)
    return list(axes.ravel()[: len(sets)])


def _first(results: Results) -> Section:
    frame = dots.first_costs(results)
    label = "cost to the first recourse (share of everything)"
    caption = (
        "What the first recourse costs, mean and standard deviation over "
        "seeds, for people who ever have one."
    )
    figure = FigureExhibit(
        "figure_first_recourse",
        caption,
        frame,
        partial(dots.draw_dots_by_model, frame=frame, label=label),
        _tall(frame),
    )
    table = TableExhibit(
        "first_recourse", "The first recourse in figures.", growth.first_recourse(results)
    )
    return Section("The cost to the first recourse", "", (figure, table))


def _width(frame: pd.DataFrame) -> float:
    """Inches of a row of panels, one for each set up to four."""
    return max(NARROW, WIDTH * min(COLUMNS, frame["data"].nunique()) / COLUMNS)


def _tall(frame: pd.DataFrame) -> tuple[float, float]:
    """Inches of a dot plot with a row for each set."""
    return WIDTH, 1.2 + 0.62 * max(1, frame["data"].nunique())


def _certified(results: Results) -> Section:
    frame = early.certified_points(results)
    exhibits: list[FigureExhibit | TableExhibit] = []
    keys = sorted(set(zip(frame["promise"], frame["predictor"], frame["alpha"], strict=True)))
    for promise, predictor, alpha in keys:
        rows = frame[
            (frame["promise"] == promise)
            & (frame["predictor"] == predictor)
            & (frame["alpha"] == alpha)
        ]
        caption = (
            f"Certified cost of acting early with {title('predictor', predictor)} at "
            f"alpha = {alpha:g} under "
            f"{title('promise', promise)}. A filled mark: every seed certified; a cross: "
            "none. Dashed: the cost of "
            "going to the last step."
        )
        name = f"figure_certified_cost_{promise}_{predictor}_{round(100 * alpha)}"
        size = (
            _width(rows),
            0.65
            + (0.6 + 0.27 * rows["searcher"].nunique()) * -(-rows["data"].nunique() // COLUMNS),
        )
        exhibits.append(
            FigureExhibit(name, caption, rows, partial(draw_certified, frame=rows), size)
        )
    caption = (
        "Over all sets: the share of cells certified, their cost, share of "
        "the full cost saved, promises kept."
    )
    digits = {"certified": 2, "cells": 0}
    exhibits.append(
        TableExhibit("certified_summary", caption, promises.certified_summary(results), digits)
    )
    caption = "Certified cost by promise, policy, searcher and bound; a dash: nothing certified."
    exhibits.append(
        TableExhibit(
            "certified_cost",
            caption,
            promises.certified_costs(results),
            {"n": 0, "strictest risk": 3},
        )
    )
    text = (
        "What acting early costs where it is certified: under the paper's loss, "
        "and under the advisor's own promise."
    )
    return Section("Certified cost by bound, policy and searcher", text, tuple(exhibits))


def draw_certified(figure: "Figure", frame: pd.DataFrame) -> "Figure":
    """Draw a panel for each set: searchers as rows, bounds as marks."""
    from matplotlib.lines import Line2D

    sets, searchers = ordered("data", frame["data"]), ordered("searcher", frame["searcher"])
    methods = ordered("method", frame["method"])
    for ax, name in zip(_panels(figure, sets, sharex=True, sharey=True), sets, strict=True):
        early.draw_costs(ax, frame[frame["data"] == name], searchers, methods)
        ax.set_title(title("data", name), loc="left", fontweight="bold")
        ax.tick_params(labelbottom=True)
    figure.supxlabel("cost (share of everything)", fontsize=8)
    marks = [
        Line2D(
            [],
            [],
            ls="none",
            marker=MARKERS.get(name, "X"),
            color=look("method", name)["color"],
            label=title("method", name),
        )
        for name in methods
    ]
    marks.append(Line2D([], [], color=GREY, lw=0.9, ls=(0, (4, 2)), label="to the last step"))
    legend(figure, "method", [], marks)
    return figure


def _lift(results: Results) -> Section:
    frame = dots.lifts(results)
    label = "lift (change of the probability of the class reached)"
    caption = (
        "Outcome lift: by how much first plans change the probability of the class they "
        "lead to, as seen by a model "
        "that took no part and knows everything. Mean and standard deviation over seeds."
    )
    figure = FigureExhibit(
        "figure_outcome_lift",
        caption,
        frame,
        partial(dots.draw_dots_by_model, frame=frame, label=label),
        _tall(frame),
    )
    table = TableExhibit(
        "outcome_lift",
        "Outcome lift in figures, by reading.",
        growth.outcome_lift(results),
        {"plans": 0, "lift": 3},
    )
    return Section("Outcome lift of plans", "", (figure, table))


def _rest(results: Results) -> Section:
    threshold = TableExhibit(
        "thresholds",
        (
            "Sets with a rare class through a decision threshold: the same model by majority "
            "and balanced."
        ),
        growth.thresholds(results),
        {"accuracy": 3},
    )
    groups = TableExhibit(
        "groups",
        "Certificates by group.",
        promises.groups(results),
        {"n": 0, "test n": 0, "risk": 3, "bound": 3, "test risk": 3},
    )
    return Section("Decision thresholds, and certificates by group", "", (threshold, groups))
