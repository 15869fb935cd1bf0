"""Tables on growing recourse, past the paper: policies at equal cost, the first recourse,
ablations, models, lift.

Each function takes the results of a study and returns one table; ``area`` and ``areas`` are the
means over the cost grid that they are made of.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from edfa_studies.cells import PARTS
from edfa_studies.tables.names import ABLATIONS
from edfa_studies.tables.rows import (
    Results,
    comparable,
    compared,
    growth_rows,
    matching,
    one_searcher,
    over_seeds,
    rows_of,
    shown,
    summary,
    without_variants,
)

GROUP = ["data", "predictor", "blanket", "policy"]
CURVES = ["recourse", "accuracy"]
AT_END = ["accuracy", "base_rate", "recourse", "any_recourse", "active"]
SHARES = (0.25, 0.5, 0.75)  # of the cost of everything, where policies are compared
NAMES = {
    "base_rate": "base rate",
    "any_recourse": "with recourse",
    "active": "|C(A)|/|MB|",
    "first_share": "people with recourse",
    "first_cost": "cost to the first",
}


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


def areas(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Recourse and accuracy as means over the cost grid, one row for each combination of ``by``.

    ``rows`` are of the payload table ``cost``, with columns cost, recourse and accuracy.
    """
    table = [
        dict(zip(by, key, strict=True))
        | {name: area(group["cost"], group[name]) for name in CURVES}
        for key, group in rows.groupby(list(by))
    ]
    return pd.DataFrame(table, columns=[*by, *CURVES])


def _ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Rank policies by their recourse at equal cost.

    ``rows`` are of the payload table ``cost``. The result has one row for each data set, model,
    blanket and policy: its rank within data set and model, the means of recourse and accuracy over
    the cost grid, recourse at a quarter, a half and three quarters of the cost, and the least
    number of seeds.
    """
    means = over_seeds(rows, [*GROUP, "cost"], CURVES)
    table = areas(means, GROUP).rename(columns={name: f"mean {name}" for name in CURVES})
    groups = table.groupby(["data", "predictor"])["mean recourse"]
    table.insert(len(GROUP), "rank", groups.rank(ascending=False, method="min"))
    table = table.set_index(GROUP)
    for share in SHARES:
        at = means[np.isclose(means["cost"].astype(float), share)].groupby(GROUP)
        table[f"at {share:.0%}"] = at["recourse"].first()
    return table.assign(seeds=means.groupby(GROUP)["seeds"].min()).reset_index()


def equal_cost(results: Results) -> pd.DataFrame:
    """Policies at equal cost.

    Parameters
    ----------
    results
        The results of a study.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model and policy, best first: recourse and accuracy as means over
        the cost grid, and recourse at 25, 50 and 75 % of the cost of everything.
    """
    table = _ranked(without_variants(compared(growth_rows(results, "cost", ["cost", *CURVES]))))
    return shown(table, ["data", "predictor", "rank", "policy"])


def first_recourse(results: Results) -> pd.DataFrame:
    """What the first recourse costs.

    Parameters
    ----------
    results
        The results of a study.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model and policy: the share of people who ever have recourse, the
        mean cost of the first for those who do, and cost and share at the end.
    """
    columns = ["first_share", "first_cost", "cost", "any_recourse"]
    rows = without_variants(compared(growth_rows(results, "end", columns)))
    names = NAMES | {"cost": "cost at the end", "any_recourse": "with recourse at the end"}
    return summary(rows, GROUP, columns, order=["data", "predictor", "policy"], names=names)


def ablations(results: Results) -> pd.DataFrame:
    """EDFA and its variants, ranked by recourse at equal cost.

    Parameters
    ----------
    results
        The results of a study.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model and variant: recourse and accuracy as means over the cost
        grid, and at the end. Sets and models with one variant alone are left out.
    """
    rows = comparable(growth_rows(results, "cost", ["cost", *CURVES]), ABLATIONS)
    table = _ranked(rows).drop(columns=[f"at {share:.0%}" for share in SHARES])
    several = table.groupby(["data", "predictor"])["rank"].transform("size") > 1
    ends = comparable(growth_rows(results, "end", CURVES), ABLATIONS)
    ends = over_seeds(ends, GROUP, CURVES).drop(columns="seeds")
    # one variant alone is no comparison
    table = table[several.astype(bool)].merge(ends, on=GROUP, how="left")
    names = {name: f"{name} at the end" for name in CURVES}
    return shown(table, ["data", "predictor", "rank", "policy"], names)


def models(results: Results) -> pd.DataFrame:
    """EDFA under every model, at the end of each run.

    Parameters
    ----------
    results
        The results of a study.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, blanket and model: accuracy, base rate, recourse options, the
        share of people with recourse, active share, features and cost.
    """
    columns = [*AT_END, "features", "cost"]
    rows = growth_rows(results, "end", columns)
    rows = one_searcher(rows[rows["policy"] == "edfa"])
    return summary(rows, ["data", "blanket", "predictor"], columns, names=NAMES)


def thresholds(results: Results) -> pd.DataFrame:
    """Models with a decision threshold of their own ("-balanced") beside the same model that
    decides by the majority.

    A rare class, as in GMSC, never wins a majority; without it nothing can flip.

    Parameters
    ----------
    results
        The results of a study.

    Returns
    -------
    pandas.DataFrame
        One row for each data set, blanket, policy and model, of the models that were measured both
        ways.
    """
    columns = [*AT_END, "first_share", "first_cost"]
    rows = one_searcher(growth_rows(results, "end", columns))
    rows = rows.assign(model=rows["predictor"].astype(str).str.removesuffix("-balanced"))
    rows = matching(rows, ["data", "model"], rows[rows["model"] != rows["predictor"]])
    return summary(rows, ["data", "blanket", "policy", "predictor"], columns, names=NAMES)


def outcome_lift(results: Results) -> pd.DataFrame:
    """By how much plans raise the chance of the class they lead to, as a model sees it that took no
    part and knows everything that is true of the person.

    Parameters
    ----------
    results
        The results of a study.

    Returns
    -------
    pandas.DataFrame
        One row for each reading, data set, model, blanket, policy and searcher.
    """
    columns = ["plans", "lift", "effort", "on_blanket", "l0"]
    rows = without_variants(rows_of(results, "growth", "quality", columns)).dropna(subset="lift")
    names = {"on_blanket": "on blanket", "l0": "L0"}
    return summary(rows, ["reading", *PARTS], columns, names=names)
