"""Tables on growing recourse, past the paper: policies at equal cost, the first recourse,
ablations, models, lift.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from edfa_studies.tables.labels import ABLATIONS, in_order, title
from edfa_studies.tables.results import (
    PARTS,
    Results,
    compared,
    growth_rows,
    numeric_rows,
    one_blanket,
    one_searcher,
    over_seeds,
)

__all__ = ["ablations", "equal_cost", "first_recourse", "models", "outcome_lift", "thresholds"]

GROUP = ["data", "predictor", "blanket", "policy"]
SHARES = (0.25, 0.5, 0.75)  # of the cost of everything, where policies are compared


def area(cost: "pd.Series[float]", value: "pd.Series[float]") -> float:
    """Mean of a curve over its cost range, by the trapezoidal rule; the value itself where there is
    one point.

    >>> area(pd.Series([0.0, 0.5, 1.0]), pd.Series([0.0, 1.0, 1.0]))
    0.75
    """
    known = cost.notna() & value.notna()
    x, y = cost[known].to_numpy(), value[known].to_numpy()
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    if len(x) < 2 or x[-1] == x[0]:
        return float(y.mean()) if len(y) else np.nan
    return float(np.trapezoid(y, x) / (x[-1] - x[0]))


def _curves(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """For each group: mean over the cost grid of each column, and recourse at a quarter, a half,
    three quarters.
    """
    means = over_seeds(rows, [*GROUP, "cost"], columns)
    table = []
    for key, group in means.groupby(GROUP, sort=True):
        row = dict(zip(GROUP, key, strict=True))
        row |= {f"mean {name}": area(group["cost"], group[name]) for name in columns}
        for share in SHARES:
            at = group[np.isclose(group["cost"], share)]["recourse"]
            row[f"at {share:.0%}"] = float(at.iloc[0]) if len(at) else np.nan
        table.append(row | {"seeds": int(group["seeds"].min())})
    return pd.DataFrame(table)


def equal_cost(results: Results) -> pd.DataFrame:
    """Policies at equal cost: recourse as a mean over the cost grid, and at 25, 50 and 75 % of the
    cost; best first.
    """
    columns = ["recourse", "accuracy"]
    rows = compared(growth_rows(results, "cost", ["cost", *columns]))
    rows = rows[~rows["policy"].isin(ABLATIONS[1:])]
    table = _curves(rows, columns)
    if table.empty:
        return table
    groups = table.groupby(["data", "predictor"])["mean recourse"]
    table.insert(len(GROUP), "rank", groups.rank(ascending=False, method="min"))
    return shown_names(in_order(table, ["data", "predictor", "rank", "policy"]))


def first_recourse(results: Results) -> pd.DataFrame:
    """What the first recourse costs: the share of people who ever have one, and its mean cost for
    those who do.
    """
    columns = ["first_share", "first_cost", "cost", "any_recourse"]
    rows = compared(growth_rows(results, "end", columns))
    table = over_seeds(rows[~rows["policy"].isin(ABLATIONS[1:])], GROUP, columns)
    if table.empty:
        return table
    names = {
        "first_share": "people with recourse",
        "first_cost": "cost to the first",
        "cost": "cost at the end",
    }
    table = table.rename(columns=names | {"any_recourse": "with recourse at the end"})
    return shown_names(in_order(table, ["data", "predictor", "policy"]))


def ablations(results: Results) -> pd.DataFrame:
    """EDFA and its variants: mean recourse and accuracy over the cost grid, both at the end, ranked
    by recourse.
    """
    columns = ["recourse", "accuracy"]
    rows = growth_rows(results, "cost", ["cost", *columns])
    rows = one_blanket(one_searcher(rows[rows["policy"].isin(ABLATIONS)]))
    table = _curves(rows, columns)
    if table.empty:
        return table
    ends = growth_rows(results, "end", ["recourse", "accuracy"])
    ends = one_blanket(one_searcher(ends[ends["policy"].isin(ABLATIONS)]))
    ends = over_seeds(ends, GROUP, columns).drop(columns="seeds")
    ends = ends.rename(
        columns={"recourse": "recourse at the end", "accuracy": "accuracy at the end"}
    )
    table = table.drop(columns=[f"at {share:.0%}" for share in SHARES]).merge(
        ends, on=GROUP, how="left"
    )
    groups = table.groupby(["data", "predictor"])["mean recourse"]
    table.insert(len(GROUP), "rank", groups.rank(ascending=False, method="min"))
    several = groups.transform("size") > 1  # one variant alone is no comparison
    return shown_names(in_order(table[several], ["data", "predictor", "rank", "policy"]))


def models(results: Results, policy: str = "edfa") -> pd.DataFrame:
    """One policy under every model: accuracy, base rate, recourse and active share at the end."""
    columns = ["accuracy", "base_rate", "recourse", "any_recourse", "active", "features", "cost"]
    rows = growth_rows(results, "end", columns)
    rows = one_searcher(rows[rows["policy"] == policy])
    table = over_seeds(rows, ["data", "blanket", "predictor"], columns)
    if table.empty:
        return table
    names = {"base_rate": "base rate", "any_recourse": "with recourse", "active": "|C(A)|/|MB|"}
    return shown_names(in_order(table.rename(columns=names), ["data", "blanket", "predictor"]))


def thresholds(results: Results) -> pd.DataFrame:
    """Models with a decision threshold of their own ("-balanced") beside the same model that
    decides by the majority.

    A rare class, as in GMSC, never wins a majority; without it nothing can flip.
    """
    columns = [
        "accuracy",
        "base_rate",
        "recourse",
        "any_recourse",
        "active",
        "first_share",
        "first_cost",
    ]
    rows = one_searcher(growth_rows(results, "end", columns))
    of = rows["predictor"].astype(str).str.removesuffix("-balanced")
    balanced = rows[of != rows["predictor"]]
    pairs = set(zip(balanced["data"], of[balanced.index], strict=True))
    rows = rows[[key in pairs for key in zip(rows["data"], of, strict=True)]]
    table = over_seeds(rows, ["data", "blanket", "policy", "predictor"], columns)
    if table.empty:
        return table
    names = {"base_rate": "base rate", "any_recourse": "with recourse", "active": "|C(A)|/|MB|"}
    names |= {"first_share": "people with recourse", "first_cost": "cost to the first"}
    return shown_names(
        in_order(table.rename(columns=names), ["data", "blanket", "policy", "predictor"])
    )


def outcome_lift(results: Results) -> pd.DataFrame:
    """By how much plans raise the chance of the class they lead to, as a model sees it that took no
    part.

    That model knows everything that is true of the person; one row for each reading, policy and
    searcher.
    """
    columns = ["plans", "lift", "effort", "on_blanket", "l0"]
    rows = numeric_rows(results, "growth", "quality", columns)
    rows = rows[rows["lift"].notna() & ~rows["policy"].isin(ABLATIONS[1:])]
    table = over_seeds(rows, ["reading", *PARTS], columns)
    if table.empty:
        return table
    table = table.rename(columns={"on_blanket": "on blanket", "l0": "L0"})
    return shown_names(
        in_order(table, ["reading", "data", "predictor", "blanket", "policy", "searcher"])
    )


def shown_names(table: pd.DataFrame) -> pd.DataFrame:
    """Names of parts as they are shown."""
    kinds = [kind for kind in (*PARTS, "promise", "method", "status") if kind in table]
    return table.assign(**{kind: [title(kind, name) for name in table[kind]] for kind in kinds})
