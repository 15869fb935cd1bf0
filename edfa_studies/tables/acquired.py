"""Tables 1 to 3 of the paper: the data sets, the features acquired, the quality of the
counterfactuals.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from edfa_studies import paper_numbers
from edfa_studies.tables.labels import ABLATIONS, in_order, ordered, title
from edfa_studies.tables.results import (
    Results,
    compared,
    growth_rows,
    numeric_rows,
    over_seeds,
    text_rows,
)

__all__ = ["PAPER", "features_acquired", "quality", "sets"]

PAPER = (
    " (paper)"  # a column of the paper's numbers stands right after ours and is shown in brackets
)
DIFFERS = "≠"
METRICS = {"L0": "l0", "L2": "l2", "plausible": "plausible"}
COMPARED = ("edfa", "dime", "eddi", "gsmrl", "survival", "greedy", "random", "edfa-random")


def sets(results: Results) -> pd.DataFrame:
    """Table 1: rows, split, features and target of each set, and the size of each blanket found on
    it.
    """
    numbers = [
        "rows",
        "train",
        "calibration",
        "test",
        "features",
        "start",
        "sensitive",
        "classes",
        "base_rate",
    ]
    rows = numeric_rows(results, "sets", "set", numbers)
    words = text_rows(results, "sets", "set", ["target", "favourable"])
    if rows.empty:
        return pd.DataFrame()
    rows = rows.assign(target=words["target"], favourable=words["favourable"]).drop_duplicates(
        "data"
    )
    table = pd.DataFrame({"data": rows["data"], "rows": rows["rows"], "train": rows["train"]})
    table = table.assign(
        calibration=rows["calibration"], test=rows["test"], features=rows["features"]
    )
    printed = paper_numbers.sets().set_index("data")
    table[f"features{PAPER}"] = table["data"].map(printed["features"])
    table = table.assign(start=rows["start"], target=rows["target"], favourable=rows["favourable"])
    table["base rate"] = rows["base_rate"]
    sizes = numeric_rows(results, "sets", "blanket", ["size"])
    for name in ordered("blanket", sizes["blanket"].dropna()):
        of_blanket = (
            sizes[sizes["blanket"] == name].drop_duplicates("data").set_index("data")["size"]
        )
        table[title("blanket", name)] = table["data"].map(of_blanket)
    table["blanket (paper)"] = table["data"].map(
        paper_numbers.features_acquired().set_index("data")["blanket"]
    )
    return in_order(table, ["data"]).assign(
        data=lambda frame: [title("data", name) for name in frame["data"]]
    )


def features_acquired(results: Results) -> pd.DataFrame:
    """Table 2: features acquired at the budget's end by each policy, ours and the paper's.

    The last column has a sign where the paper's order is not ours: "≠ least" if another policy
    acquires the fewest, "≠ order" if two others have changed places.
    """
    columns = ["features", "blanket_size", "n_features"]
    rows = compared(growth_rows(results, "end", columns))
    rows = over_seeds(
        rows[rows["policy"].isin(COMPARED)], ["data", "predictor", "blanket", "policy"], columns
    )
    printed = paper_numbers.features_acquired().set_index("data")
    policies = [name for name in COMPARED if name in set(rows["policy"])]
    table = []
    for (data, predictor, blanket), group in rows.groupby(
        ["data", "predictor", "blanket"], sort=False
    ):
        ours = dict(zip(group["policy"], group["features"], strict=True))
        paper = _paper_row(printed, data, policies)
        row = {"data": data, "predictor": predictor, "blanket": blanket}
        row |= {"features": group["n_features"].iloc[0], "MB size": group["blanket_size"].iloc[0]}
        row[f"MB size{PAPER}"] = printed["blanket"].get(data, np.nan)
        for name in policies:
            row[title("policy", name)] = ours.get(name, np.nan)
            if name in printed.columns:
                row[f"{title('policy', name)}{PAPER}"] = paper.get(name, np.nan)
        row["differs"] = order_sign(ours, paper)
        row["seeds"] = int(group["seeds"].min())
        table.append(row)
    return _named(pd.DataFrame(table))


def _paper_row(printed: pd.DataFrame, data: object, policies: list[str]) -> dict[str, float]:
    """What the paper prints for one set, by policy."""
    if data not in printed.index:
        return {}
    return {
        name: float(printed[name].to_dict()[data]) for name in policies if name in printed.columns
    }


def order_sign(ours: Mapping[str, float], paper: Mapping[str, float]) -> str:
    """The sign for a row of counts: "" if the paper's order is ours.

    >>> order_sign({"edfa": 3, "dime": 9}, {"edfa": 2, "dime": 5})
    ''
    >>> order_sign({"edfa": 3, "dime": 2}, {"edfa": 2, "dime": 5})
    '≠ least'
    >>> order_sign({"edfa": 3, "dime": 5, "eddi": 4}, {"edfa": 2, "dime": 5, "eddi": 6})
    '≠ order'
    """
    shared = [name for name in ours if name in paper and not np.isnan(ours[name] + paper[name])]
    if len(shared) < 2:
        return ""
    if not best({name: ours[name] for name in shared}) & best(
        {name: paper[name] for name in shared}
    ):
        return f"{DIFFERS} least"
    swapped = any((ours[a] - ours[b]) * (paper[a] - paper[b]) < 0 for a in shared for b in shared)
    return f"{DIFFERS} order" if swapped else ""


def best(values: Mapping[str, float], *, most: bool = False) -> set[str]:
    """The names with the least (or the most) of these values, more than one where they tie."""
    known = {name: value for name, value in values.items() if not np.isnan(value)}
    if not known:
        return set()
    end = max(known.values()) if most else min(known.values())
    return {name for name, value in known.items() if value == end}


def quality(results: Results) -> pd.DataFrame:
    """Table 3: L0, L2 and plausibility of all counterfactuals, ours and the paper's, with two base
    rates.

    "real" and "shuffled" are the shares of test rows, and of rows whose columns were shuffled, that
    the same detector calls plausible. The sign names the measures in which another policy is best
    than in the paper, among the policies that both have; it stands in the first row of each set and
    model.
    """
    columns = [
        "plans",
        "l0",
        "l2",
        "heom",
        "plausible",
        "plausible_real",
        "plausible_shuffled",
        "on_blanket",
    ]
    rows = compared(growth_rows(results, "quality", columns))
    rows = rows[rows["policy"].isin([name for name in COMPARED if name not in ABLATIONS[1:]])]
    rows = over_seeds(rows, ["data", "predictor", "blanket", "policy"], columns)
    printed = paper_numbers.quality()
    rows = in_order(rows, ["data", "predictor", "policy"])
    rows = rows.merge(printed, on=["data", "policy"], how="left", suffixes=("", PAPER))
    shown = rows[["data", "predictor", "blanket", "policy", "plans"]].copy()
    for name, column in METRICS.items():
        shown[name], shown[f"{name}{PAPER}"] = rows[column], rows[f"{column}{PAPER}"]
    shown = shown.assign(real=rows["plausible_real"], shuffled=rows["plausible_shuffled"])
    shown["on blanket"] = rows["on_blanket"]
    shown["differs"] = ""
    for _, group in rows.groupby(["data", "predictor"], sort=False):
        shown.loc[group.index[0], "differs"] = best_sign(group)
    return _named(shown.assign(seeds=rows["seeds"]), sort=False)


def best_sign(group: pd.DataFrame) -> str:
    """Which measures have another best policy than the paper, among policies that have both
    numbers.
    """
    differing = []
    for name, column in METRICS.items():
        both = group[[column, f"{column}{PAPER}"]].notna().all(axis=1)
        shared = group[both]
        names = shared["policy"].astype(str)
        ours, paper = (
            dict(zip(names, shared[x], strict=True)) for x in (column, f"{column}{PAPER}")
        )
        most = name == "plausible"
        if len(shared) > 1 and not best(ours, most=most) & best(paper, most=most):
            differing.append(name)
    return f"{DIFFERS} {', '.join(differing)}" if differing else ""


def _named(table: pd.DataFrame, *, sort: bool = True) -> pd.DataFrame:
    """Names as they are shown, rows in the paper's order."""
    kinds = [kind for kind in ("data", "predictor", "blanket", "policy") if kind in table]
    if table.empty:
        return table
    table = in_order(table, kinds) if sort else table
    return table.assign(**{kind: [title(kind, name) for name in table[kind]] for kind in kinds})
