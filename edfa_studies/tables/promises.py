"""Tables on early action: what was certified at which cost, under which promise, and for which
groups.

``certificate_rows`` and ``rule_rows`` are what tables and figures are made of; the other functions
return one table each.
"""

import pandas as pd

from edfa_studies.cells import PARTS
from edfa_studies.tables.names import ordered, title
from edfa_studies.tables.rows import Results, over_seeds, preferred, rows_of, shown, summary

NUMBERS = "alpha n upper cost full_cost strictest_risk test_n test_risk".split()


def certificate_rows(results: Results) -> pd.DataFrame:
    """Every certificate with its labels, one row each.

    Returns
    -------
    pandas.DataFrame
        Labels, ``method`` (the bound), ``status``, numbers of the certificate and of held-out
        people (``test_n``, ``test_risk``), and ``certified``, 0 or 1.
    """
    rows = rows_of(results, "promise", "certificate", NUMBERS, ["method", "status"])
    return rows.assign(certified=(rows["status"] == "certified").astype(float))


def _costs(results: Results) -> pd.DataFrame:
    """Certificates with cost and risk only where there is one."""
    rows = certificate_rows(results)
    yes = rows["certified"] == 1
    return rows.assign(**{name: rows[name].where(yes) for name in ("cost", "test_risk")})


def certified_costs(results: Results) -> pd.DataFrame:
    """What acting early costs where it is certified.

    Costs are shares of the cost of everything, as means over the seeds with a certificate.

    Parameters
    ----------
    results
        The results of a study; read are those of the measure "promise".

    Returns
    -------
    pandas.DataFrame
        One row for each promise, data set, model, alpha, blanket, policy and searcher, and a column
        for each bound. ``full`` is the cost of going to the last step, ``test risk`` the largest
        that held-out people saw under any of the bounds.
    """
    rows = _costs(results)
    by = ["promise", "alpha", *PARTS]
    table = over_seeds(rows, by, ["full_cost", "n", "strictest_risk"]).set_index(by)
    for method in ordered("method", rows["method"].dropna()):
        of_method = rows[rows["method"] == method].groupby(by)["cost"]
        table[title("method", method)] = of_method.mean()
    table["test risk"] = rows.groupby(by)["test_risk"].max()
    names = {"full_cost": "full", "strictest_risk": "strictest risk"}
    order = ["promise", "data", "predictor", "alpha", "blanket", "policy", "searcher"]
    return shown(table.reset_index(), order, names)


def certified_summary(results: Results) -> pd.DataFrame:
    """Certificates over all sets, by promise, model, alpha, policy, searcher and bound.

    Parameters
    ----------
    results
        The results of a study; read are those of the measure "promise".

    Returns
    -------
    pandas.DataFrame
        The share of cells that were certified, their cost, the share of the full cost that is saved
        there, and the share of them whose held-out risk is at most alpha.
    """
    rows = _costs(results)
    kept = (rows["test_risk"] <= rows["alpha"]).where(rows["test_risk"].notna())
    rows = rows.assign(saved=1 - rows["cost"] / rows["full_cost"], kept=kept.astype(float))
    by = ["promise", "predictor", "alpha", "policy", "searcher", "method"]
    groups = rows.groupby(by)
    table = groups[["certified", "cost", "full_cost", "saved", "kept"]].mean()
    table = table.assign(cells=groups.size()).reset_index()
    return shown(table, by, {"full_cost": "full", "kept": "test risk within alpha"})


def rule_rows(results: Results) -> pd.DataFrame:
    """Rows of the stop rules under the paper's promise and its bound, or the first of each there
    is.

    Returns
    -------
    pandas.DataFrame
        One row for each cell, alpha and rule ("first", "safe", "last"): cost, CF Valid@K
        (``valid``), its certified bound (``lower``), and the same for test people.
    """
    numbers = ["alpha", "cost", "valid", "lower", "n", "test_valid", "test_cost"]
    rows = rows_of(results, "promise", "rule", numbers, ["method", "rule"])
    return preferred(preferred(rows, "promise", "paper"), "method", "paper")


def stop_rules(results: Results) -> pd.DataFrame:
    """CF Valid@K, its certified bound and the cost of three rules: the first plan, the certified
    rule, the last step.

    Parameters
    ----------
    results
        The results of a study; read are those of the measure "promise".

    Returns
    -------
    pandas.DataFrame
        Means over seeds, one row for each alpha, part and rule, of the paper's loss and its own
        bound, as in Figures 11 and 12; ``test`` columns are of held-out people.
    """
    columns = ["cost", "valid", "lower", "n", "test_cost", "test_valid"]
    names = {"test_cost": "test cost", "test_valid": "test valid", "lower": "certified bound"}
    order = ["predictor", "data", "alpha", "blanket", "policy", "searcher", "rule"]
    by = ["alpha", *PARTS, "rule"]
    return summary(rule_rows(results), by, columns, order=order, names=names)


def groups(results: Results) -> pd.DataFrame:
    """Certificates by group of people.

    Parameters
    ----------
    results
        The results of a study; read are those of the measure "promise".

    Returns
    -------
    pandas.DataFrame
        One row for each promise, data set, model, policy, searcher, alpha, bound, sensitive feature
        and group: people, risk and bound, and what held-out people of the group saw.
    """
    numbers = ["n", "risk", "upper", "test_n", "test_risk"]
    words = ["method", "feature", "group", "status"]
    rows = rows_of(results, "promise", "group", ["alpha", *numbers], words)
    rows = rows.assign(certified=(rows["status"] == "certified").astype(float))
    by = ["promise", "data", "predictor", "policy", "searcher", "alpha", *words[:3]]
    names = {"upper": "bound", "test_n": "test n", "test_risk": "test risk"}
    return summary(rows, by, ["certified", *numbers], names=names)
