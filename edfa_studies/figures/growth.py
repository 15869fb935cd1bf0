"""Curves of growing recourse: EDFA under each blanket (Figures 3 and 4), all policies (5 to 10),
ablations (14 to 17).

Every frame is tidy: data, predictor, kind of series, series, step or cost, cost, measure, mean,
std, seeds.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from edfa_studies.figures.style import legend, look
from edfa_studies.tables.labels import ABLATIONS, ordered, title
from edfa_studies.tables.results import Results, compared, growth_rows, one_blanket, one_searcher

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "MEASURES",
    "ablation_lines",
    "blanket_lines",
    "draw_growth",
    "draw_rows",
    "model_lines",
    "policy_lines",
]

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
COST = "cost (share of everything)"
COLUMNS = [
    "data",
    "predictor",
    "blanket",
    "kind",
    "series",
    "place",
    "cost",
    "measure",
    "mean",
    "std",
    "seeds",
]


def blanket_lines(results: Results) -> pd.DataFrame:
    """EDFA step by step under each blanket: recourse, semifactuals, accuracy, active share (Figures
    3 and 4).
    """
    rows = _rows(results, "step")
    rows = one_searcher(rows[rows["policy"] == "edfa"])
    lines = _lines(rows.assign(series=rows["blanket"]), "blanket", "step", FRONTIER)
    several = lines.groupby(["data", "predictor"])["series"].transform("nunique").astype(float) > 1
    return lines[several].reset_index(drop=True) if several.any() else lines


def policy_lines(results: Results, table: str = "step") -> pd.DataFrame:
    """All policies under one blanket, step by step, or at equal cost with ``table="cost"`` (Figures
    5 to 10).
    """
    rows = _rows(results, table)
    plain = rows[~rows["policy"].isin(["edfa-no-pc-priority", "edfa-structural"])]
    generative = plain[(plain["policy"] == "edfa") & (plain["searcher"] == "generative")]
    main = compared(plain)
    keys = set(zip(main["data"], main["predictor"], main["blanket"], strict=True))
    generative = generative[~generative.index.isin(main.index)]
    of_main = [
        key in keys
        for key in zip(
            generative["data"], generative["predictor"], generative["blanket"], strict=True
        )
    ]
    both = pd.concat(
        [main.assign(series=main["policy"]), generative[of_main].assign(series="edfa generative")]
    )
    return _lines(
        both,
        "policy",
        table,
        POLICIES if table == "step" else ("recourse", "accuracy", "any_recourse"),
    )


def ablation_lines(results: Results) -> pd.DataFrame:
    """EDFA and its three variants under one blanket (Figures 14 to 17)."""
    rows = _rows(results, "step")
    rows = one_blanket(one_searcher(rows[rows["policy"].isin(ABLATIONS)]))
    lines = _lines(rows.assign(series=rows["policy"]), "policy", "step", FRONTIER)
    several = lines.groupby(["data", "predictor"])["series"].transform("nunique") > 1
    return lines[several.astype(bool)].reset_index(drop=True)


def model_lines(results: Results, model: str = "bn") -> pd.DataFrame:
    """EDFA under one blanket with each model, on the sets where ``model`` was measured; the model
    is the series.
    """
    rows = _rows(results, "step")
    rows = one_searcher(rows[rows["policy"] == "edfa"])
    with_model = rows[rows["predictor"] == model]
    rows = rows[
        rows["data"].isin(with_model["data"]) & ~rows["predictor"].astype(str).str.contains("-")
    ]  # no variants
    blankets = {
        name: ordered("blanket", part["blanket"])[0] for name, part in with_model.groupby("data")
    }
    rows = rows[rows["blanket"] == rows["data"].map(blankets)]
    lines = _lines(rows.assign(series=rows["predictor"]), "predictor", "step", FRONTIER)
    return lines.assign(predictor=model)


def _rows(results: Results, table: str) -> pd.DataFrame:
    columns = ["cost", *MEASURES]
    rows = growth_rows(results, table, ["step", *columns] if table == "step" else columns)
    return rows if table == "step" else rows.assign(grid=rows["cost"])


def _lines(rows: pd.DataFrame, kind: str, table: str, measures: Sequence[str]) -> pd.DataFrame:
    """Mean and standard deviation over seeds at each step, or each cost of the grid.

    A seed whose last step is earlier stays at its last values, as people do within a seed.
    """
    keys = ["data", "predictor", "blanket", "series"]
    rows = rows.assign(place=rows["step" if table == "step" else "grid"]).dropna(
        subset=["place", "cost"]
    )
    measures = [name for name in measures if rows[name].notna().any()]
    if not measures:
        return pd.DataFrame(columns=COLUMNS)
    wide = rows.pivot_table(
        index=[*keys, "place"], columns="seed", values=["cost", *measures], aggfunc="mean"
    )
    wide = wide.groupby(level=keys).ffill()
    cost = pd.DataFrame(wide["cost"]).mean(axis=1)
    parts = []
    for measure in measures:
        values = pd.DataFrame(wide[measure])
        seeds = values.notna().groupby(level=keys).any().sum(axis=1).rename("seeds")
        columns = {"cost": cost, "mean": values.mean(axis=1), "std": values.std(axis=1, ddof=0)}
        part = pd.DataFrame(columns).assign(kind=kind, measure=measure).reset_index()
        parts.append(part.merge(seeds.reset_index(), on=keys))
    lines = pd.concat(parts, ignore_index=True)[COLUMNS]
    return lines[lines["mean"].notna()].sort_values([*keys, "measure", "place"], ignore_index=True)


def draw_growth(ax: "Axes", frame: pd.DataFrame, measure: str) -> "Axes":
    """Draw one measure against the cost: a line for each series, a band of one standard deviation
    over seeds.
    """
    rows = frame[frame["measure"] == measure]
    for kind, group in rows.groupby("kind"):
        for name in series_order(group):
            line = group[group["series"] == name].sort_values("place")
            style = look(str(kind), name)
            ax.plot(line["cost"], line["mean"], **style)
            if (line["std"] > 0).any():
                low, high = line["mean"] - line["std"], line["mean"] + line["std"]
                ax.fill_between(
                    line["cost"], low, high, color=style["color"], alpha=0.13, linewidth=0
                )
    ax.set_ylabel(MEASURES.get(measure, measure))
    end = float(frame["cost"].max()) if len(frame) else 1.0
    ax.set_xlim(-0.02 * end, 1.02 * end if end > 0 else 1)
    if measure != "accuracy" and len(rows):  # counts and shares start at nothing
        top = max(0.1, float((rows["mean"] + rows["std"]).max()))
        ax.set_ylim(-0.03 * top, 1.06 * top)
    return ax


def series_order(frame: pd.DataFrame) -> list[str]:
    """The series of a frame in the order of legends."""
    if frame.empty:
        return []
    kind = str(frame["kind"].iloc[0])
    names = ordered(kind, {str(name).partition(" ")[0] for name in frame["series"]})
    return sorted(
        set(frame["series"]), key=lambda name: (names.index(str(name).partition(" ")[0]), str(name))
    )


def draw_rows(
    figure: "Figure", rows: Sequence[tuple[str, pd.DataFrame]], measures: Sequence[str]
) -> "Figure":
    """Draw rows of panels, each with a title and a frame: a panel for each measure, one legend for
    all.
    """
    axes: Any = figure.subplots(len(rows), len(measures), squeeze=False)
    for line, (name, frame) in zip(axes, rows, strict=True):
        for ax, measure in zip(line, measures, strict=True):
            draw_growth(ax, frame, measure)
        line[0].set_title(name, loc="left", fontweight="bold")
    for ax in axes[-1]:
        ax.set_xlabel(COST)
    everything = pd.concat([frame for _, frame in rows])
    legend(figure, str(everything["kind"].iloc[0]), series_order(everything))
    return figure


def row_title(frame: pd.DataFrame) -> str:
    """Data set, model and blanket of a frame in words."""
    first = frame.iloc[0]
    names = [title("data", first["data"])]
    if first["kind"] != "predictor":
        names.append(title("predictor", first["predictor"]))
    blankets = ordered("blanket", frame["blanket"])
    if len(blankets) == 1 and first["kind"] != "blanket":
        names.append(title("blanket", blankets[0]))
    return " · ".join(names)
