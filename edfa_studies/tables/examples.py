"""Examples in words: transitions from semifactual to counterfactual, and one person under two
policies.
"""

from typing import Any

import pandas as pd

from edfa_studies.tables.labels import ABLATIONS, BASELINES, in_order, ordered, title
from edfa_studies.tables.results import LABELS, Results, text_rows

__all__ = ["side_by_side", "transitions"]

PAPER_ORDER = ("adult", "taiwan", "diabetes130", "heloc")  # the sets of the paper's four examples
WORDS = (
    "person step cost known asked asked_value role decision feature from to reached before after"
).split()
WORDS += ["had_recourse", "helps"]
PERSON = "person steps outside cost decision plan reached changes outside_changes asked".split()


def transitions(results: Results, count: int = 4) -> pd.DataFrame:
    """Four transitions: a feature that could not flip the decision can, once another is known.

    One from each set, those of the paper first; changes that a person could make towards the
    favourable class before others, then people who had no recourse before, then spouses, which
    complete a unit; EDFA only.
    """
    rows = text_rows(results, "examples", "transition", WORDS)
    rows = rows[rows["policy"] == "edfa"] if (rows["policy"] == "edfa").any() else rows
    if rows.empty:
        return pd.DataFrame()
    late = 4 * rows["helps"].ne(True).astype(int) + 2 * rows["had_recourse"].eq(True).astype(int)
    rows = rows.assign(late=late + (rows["role"] != "spouse").astype(int))
    rows = rows.assign(person=pd.to_numeric(rows["person"]), step=pd.to_numeric(rows["step"]))
    rows = rows.sort_values(
        ["data", "late", "predictor", "blanket", "searcher", "seed", "step", "person"]
    )
    rows = rows.assign(
        turn=rows.groupby("data").cumcount()
    )  # the first of each set, then the second of each
    rest = [name for name in ordered("data", rows["data"]) if name not in PAPER_ORDER]
    places = {name: i for i, name in enumerate((*PAPER_ORDER, *rest))}
    rows = rows.assign(place=rows["data"].map(places)).sort_values(["turn", "place"], kind="stable")
    return rows.head(count).drop(columns=["late", "turn", "place"]).reset_index(drop=True)


def side_by_side(results: Results, count: int = 3) -> pd.DataFrame:
    """The same person under a baseline and under EDFA, two rows for each: one person a set, those
    with most to see.

    Both must have led to a plan. Preferred are people whom the baseline asked for, and told to
    change, most features outside the blanket.
    """
    rows = text_rows(results, "examples", "person", PERSON)
    if rows.empty:
        return pd.DataFrame()
    rows = rows[[isinstance(plan, str) and plan != "" for plan in rows["plan"]]]
    keys = ["data", "predictor", "blanket", "searcher", "seed", "reading", "person"]
    ours = rows[rows["policy"] == "edfa"].drop_duplicates(keys)
    others = rows[rows["policy"].isin(BASELINES) | ~rows["policy"].isin([*ABLATIONS, "survival"])]
    pairs = others.merge(ours, on=keys, suffixes=("", "_edfa"), how="inner")
    if pairs.empty:
        return pd.DataFrame()
    for name in ("outside_changes", "outside", "steps"):
        pairs[name] = pd.to_numeric(pairs[name], errors="coerce").fillna(0)
    pairs = in_order(pairs, ["data", "policy", "person"])
    by = ["outside_changes", "outside", "steps"]
    pairs = (
        pairs.sort_values(by, ascending=False, kind="stable").drop_duplicates("data").head(count)
    )
    shared = [name for name in (*LABELS, *PERSON) if name not in (*keys, "promise", "cell")]
    table = []
    for i, pair in enumerate(pairs.to_dict("records")):
        common: dict[str, Any] = {"example": i + 1} | {name: pair[name] for name in keys}
        table.append(common | {name: pair[name] for name in shared})
        table.append(common | {name: pair[f"{name}_edfa"] for name in shared})
    return pd.DataFrame(table)


def listed(value: Any) -> list[str]:
    """A list that a payload holds, or nothing."""
    return [str(entry) for entry in value] if isinstance(value, list | tuple) else []


def steps_text(row: "pd.Series[Any]") -> str:
    """How many facts were asked and, in brackets, how many of them lie outside the blanket, as in
    the paper.
    """
    return f"{title('policy', row['policy'])}: {int(row['steps'])} steps ({int(row['outside'])})"
