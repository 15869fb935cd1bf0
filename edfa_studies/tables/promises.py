"""Tables on early action: what was certified at which cost, under which promise, and for which
groups.
"""

import pandas as pd

from edfa_studies.tables.growth import shown_names
from edfa_studies.tables.labels import in_order, ordered, title
from edfa_studies.tables.results import (
    PARTS,
    Results,
    numeric_rows,
    over_seeds,
    preferred,
    text_rows,
)

__all__ = ["certificate_rows", "certified_costs", "certified_summary", "groups", "stop_rules"]

NUMBERS = (
    "alpha tau n people risk upper cost full_cost early strictest_risk floor n_first "
    "n_stable n_closed "
    "test_n test_risk test_cost test_early"
).split()


def certificate_rows(results: Results) -> pd.DataFrame:
    """Every certificate with its labels: numbers as numbers, method and status as names."""
    rows = numeric_rows(results, "promise", "certificate", NUMBERS)
    words = text_rows(results, "promise", "certificate", ["method", "status"])
    return rows.assign(method=words["method"], status=words["status"])


def certified_costs(results: Results) -> pd.DataFrame:
    """What acting early costs where it is certified, by promise, policy and searcher; a column for
    each bound.

    Costs are shares of the cost of everything, as means over the seeds with a certificate; "full"
    is that of going to the last step. "test risk" is the largest that held-out people saw under any
    of the bounds.
    """
    rows = _costs(results)
    if rows.empty:
        return pd.DataFrame()
    by = ["promise", "alpha", *PARTS]
    table = over_seeds(rows, by, ["full_cost", "n", "strictest_risk"])
    methods = ordered("method", rows["method"])
    for method in methods:
        part = (
            rows[rows["method"] == method]
            .groupby(by)["cost"]
            .mean()
            .rename(title("method", method))
        )
        table = table.merge(part, left_on=by, right_index=True, how="left")
    worst = rows.groupby(by)["test_risk"].max().rename("test risk")
    table = table.merge(worst, left_on=by, right_index=True, how="left")
    names = {"full_cost": "full", "strictest_risk": "strictest risk"}
    order = ["promise", "data", "predictor", "alpha", "blanket", "policy", "searcher"]
    return shown_names(in_order(table.rename(columns=names), order))


def certified_summary(results: Results) -> pd.DataFrame:
    """Over all sets: the share of cells that were certified, and the cost saved there, by promise
    and bound.
    """
    rows = _costs(results)
    if rows.empty:
        return pd.DataFrame()
    rows = rows.assign(
        saved=1 - rows["cost"] / rows["full_cost"], kept=rows["test_risk"] <= rows["alpha"]
    )
    by = ["promise", "predictor", "alpha", "policy", "searcher", "method"]
    groups = rows.groupby(by)
    table = groups[["certified", "cost", "full_cost", "saved"]].mean()
    kept = rows[rows["test_risk"].notna()].groupby(by)["kept"].mean()
    table = table.assign(kept=kept, cells=groups.size()).reset_index()
    names = {"full_cost": "full", "kept": "test risk within alpha"}
    return shown_names(in_order(table.rename(columns=names), by))


def _costs(results: Results) -> pd.DataFrame:
    """Certificates with ``certified`` as 0 or 1, and cost and risks only where there is one."""
    rows = certificate_rows(results)
    yes = rows["status"] == "certified"
    rows = rows.assign(certified=yes.astype(float))
    return rows.assign(**{name: rows[name].where(yes) for name in ("cost", "test_risk", "upper")})


def stop_rules(results: Results) -> pd.DataFrame:
    """CF Valid@K, its certified bound and the cost of three rules: the first plan, the certified
    rule, the last step.

    Of the paper's loss and its own bound, as in Figures 11 and 12; ``test`` columns are of held-out
    people.
    """
    rows = rule_rows(results)
    if rows.empty:
        return pd.DataFrame()
    columns = ["cost", "valid", "lower", "n", "test_cost", "test_valid"]
    table = over_seeds(rows, ["alpha", *PARTS, "rule"], columns)
    order = ["predictor", "data", "alpha", "blanket", "policy", "searcher", "rule"]
    table = shown_names(in_order(table, order)).assign(
        rule=lambda frame: [title("rule", x) for x in frame["rule"]]
    )
    return table.rename(
        columns={"test_cost": "test cost", "test_valid": "test valid", "lower": "certified bound"}
    )


def rule_rows(results: Results) -> pd.DataFrame:
    """Rows of the stop rules under the paper's promise and its bound, or the first of each there
    is.
    """
    rows = numeric_rows(
        results,
        "promise",
        "rule",
        ["alpha", "cost", "valid", "lower", "n", "test_valid", "test_cost"],
    )
    words = text_rows(results, "promise", "rule", ["method", "rule"])
    rows = rows.assign(method=words["method"], rule=words["rule"])
    return preferred(preferred(rows, "promise", "paper"), "method", "paper")


def groups(results: Results) -> pd.DataFrame:
    """Certificates by group: people, risk and bound of each, and what held-out people of the group
    saw.
    """
    numbers = ["alpha", "n", "risk", "upper", "test_n", "test_risk"]
    rows = numeric_rows(results, "promise", "group", numbers)
    words = text_rows(results, "promise", "group", ["method", "status", "feature", "group"])
    if rows.empty:
        return pd.DataFrame()
    rows = rows.assign(**{name: words[name].astype(str) for name in ("method", "feature", "group")})
    rows = rows.assign(certified=(words["status"] == "certified").astype(float))
    by = [
        "promise",
        "data",
        "predictor",
        "policy",
        "searcher",
        "alpha",
        "method",
        "feature",
        "group",
    ]
    table = over_seeds(rows, by, ["certified", *numbers[1:]])
    names = {"upper": "bound", "test_n": "test n", "test_risk": "test risk"}
    return shown_names(in_order(table.rename(columns=names), by))
