"""Tables 1 to 3 of the paper: the data sets, the features acquired, the quality of the
counterfactuals.

``sets``, ``features_acquired`` and ``quality`` make one table each. The paper's numbers stand in
columns of their own, right after ours, with names that end in ``IN_PAPER``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from edfa_studies.tables.names import ABLATIONS, PAPER, in_order, ordered, title
from edfa_studies.tables.rows import Results, compared, growth_rows, over_seeds, rows_of, shown

IN_PAPER = " (paper)"
"""Ends the name of a column of the paper's numbers, which stands right after ours and is shown in
brackets."""
DIFFERS = "≠"
METRICS = {"L0": "l0", "L2": "l2", "plausible": "plausible"}
COMPARED = ("edfa", "dime", "eddi", "gsmrl", "survival", "greedy", "random", "edfa-random")
GROUP = ["data", "predictor", "blanket"]


def sets(results: Results) -> pd.DataFrame:
    """Table 1: rows, split, features and target of each set, and the size of each blanket found on
    it.

    Parameters
    ----------
    results
        The results of a study; read are those of the measure "sets".

    Returns
    -------
    pandas.DataFrame
        One row for each data set, a column for each blanket algorithm.
    """
    sizes = ["rows", "train", "calibration", "test", "features"]
    numbers, words = [*sizes, "start", "base_rate"], ["target", "favourable"]
    rows = rows_of(results, "sets", "set", numbers, words).drop_duplicates("data")
    table = rows[["data", *sizes]].copy()
    table[f"features{IN_PAPER}"] = _printed("sets", rows["data"])["features"].to_numpy()
    table[["start", *words, "base rate"]] = rows[["start", *words, "base_rate"]]
    found = rows_of(results, "sets", "blanket", ["size"]).drop_duplicates(["data", "blanket"])
    for name in ordered("blanket", found["blanket"]):
        of_blanket = found[found["blanket"] == name].set_index("data")["size"]
        table[title("blanket", name)] = table["data"].map(of_blanket)
    printed = _printed("features_acquired", rows["data"])["blanket"]
    table[f"blanket{IN_PAPER}"] = printed.to_numpy()
    return shown(table, ["data"])


def _printed(table: str, sets: Iterable[Any]) -> pd.DataFrame:
    """What the paper prints in one of its tables, a row for each of these sets."""
    return pd.DataFrame.from_dict(PAPER[table], orient="index").reindex([*sets])


def features_acquired(results: Results) -> pd.DataFrame:
    """Table 2: features acquired at the budget's end by each policy, ours and the paper's.

    Parameters
    ----------
    results
        The results of a study; read are those of the measure "growth".

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model and blanket, a column for each policy, means over seeds.
        The column ``differs`` has a sign where the paper's order is not ours: "≠ least" if another
        policy acquires the fewest, "≠ order" if two others have changed places.
    """
    columns = ["features", "blanket_size", "n_features"]
    rows = compared(growth_rows(results, "end", columns))
    rows = over_seeds(rows[rows["policy"].isin(COMPARED)], [*GROUP, "policy"], columns)
    # unlike pivot_table, it has a row where nothing was measured
    ours = rows.pivot(index=GROUP, columns="policy", values="features")  # noqa: PD010
    paper = _printed("features_acquired", ours.index.get_level_values("data"))
    groups = rows.groupby(GROUP)
    table = groups[["n_features", "blanket_size"]].first()
    table.columns = pd.Index(["features", "MB size"])
    table[f"MB size{IN_PAPER}"] = paper["blanket"].to_numpy()
    for name in (name for name in COMPARED if name in ours):
        table[title("policy", name)] = ours[name]
        if name in paper:
            table[f"{title('policy', name)}{IN_PAPER}"] = paper[name].to_numpy()
    both = zip(ours.to_dict("records"), paper.to_dict("records"), strict=True)
    table["differs"] = [order_sign(*row) for row in both]
    return shown(table.assign(seeds=groups["seeds"].min()).reset_index(), GROUP)


def order_sign(ours: Mapping[Any, float], paper: Mapping[Any, float]) -> str:
    """The sign for a row of counts: "" if the paper's order is ours.

    >>> order_sign({"edfa": 3, "dime": 9}, {"edfa": 2, "dime": 5})
    ''
    >>> order_sign({"edfa": 3, "dime": 2}, {"edfa": 2, "dime": 5})
    '≠ least'
    >>> order_sign({"edfa": 3, "dime": 5, "eddi": 4}, {"edfa": 2, "dime": 5, "eddi": 6})
    '≠ order'
    """
    both = pd.DataFrame({"ours": pd.Series(ours), "paper": pd.Series(paper)}).dropna()
    if _other_best(both):
        return f"{DIFFERS} least"
    pairs = both.to_numpy()
    swapped = any(((a - b).prod() < 0) for a in pairs for b in pairs)
    return f"{DIFFERS} order" if swapped else ""


def _other_best(both: pd.DataFrame) -> bool:
    """Whether no row has the least value in both columns; ties are equally good."""
    least = both == both.min()
    return len(both) > 1 and not least.all(axis=1).any()


def quality(results: Results) -> pd.DataFrame:
    """Table 3: L0, L2 and plausibility of all counterfactuals, ours and the paper's, with two base
    rates.

    Parameters
    ----------
    results
        The results of a study; read are those of the measure "growth".

    Returns
    -------
    pandas.DataFrame
        One row for each data set, model and policy, means over seeds. ``real`` and ``shuffled`` are
        the shares of test rows, and of rows whose columns were shuffled, that the same detector
        calls plausible. ``differs`` names the measures in which another policy is best than in the
        paper, among the policies that both have; it stands in the first row of each set and model.
    """
    names = {
        "plausible_real": "real",
        "plausible_shuffled": "shuffled",
        "on_blanket": "on blanket",
    }
    columns = ["plans", *METRICS.values(), *names]
    rows = compared(growth_rows(results, "quality", columns))
    rows = rows[rows["policy"].isin([name for name in COMPARED if name not in ABLATIONS[1:]])]
    rows = in_order(over_seeds(rows, [*GROUP, "policy"], columns), ["data", "predictor", "policy"])
    table = rows[[*GROUP, "policy", "plans"]].copy()
    for name, column in METRICS.items():
        table[name] = rows[column]
        table[f"{name}{IN_PAPER}"] = [
            (PAPER["quality"].get(data, {}).get(policy) or {}).get(column, np.nan)
            for data, policy in zip(rows["data"], rows["policy"], strict=True)
        ]
    table = table.join(rows[list(names)]).assign(differs="", seeds=rows["seeds"])
    for _, group in table.groupby(["data", "predictor"], sort=False):
        table.loc[group.index[0], "differs"] = best_sign(group)
    return shown(table, names=names)


def best_sign(group: pd.DataFrame) -> str:
    """The sign of a set and model in Table 3.

    Parameters
    ----------
    group
        The rows of one set and model, with a column for each of ``METRICS`` and for the paper's
        number. Policies without both numbers do not count.

    Returns
    -------
    str
        "≠" and the measures that have another best policy than in the paper; empty if none has.
    """
    differing = []
    for name in METRICS:
        both = group[[name, f"{name}{IN_PAPER}"]].dropna()
        if _other_best(-both if name == "plausible" else both):
            differing.append(name)
    return f"{DIFFERS} {', '.join(differing)}" if differing else ""
