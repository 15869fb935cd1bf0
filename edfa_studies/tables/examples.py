"""Examples in words: transitions from semifactual to counterfactual, and one person under two
policies.

Both functions choose among the rows of the measure "examples"; ``edfa_studies.figures.examples``
draws what they return as cards.
"""

import pandas as pd

from edfa_studies.tables.names import ABLATIONS, in_order, ordered
from edfa_studies.tables.rows import Results, preferred, rows_of

PAPER_ORDER = ("adult", "taiwan", "diabetes130", "heloc")  # the sets of the paper's four examples
TRANSITION_WORDS = (
    "person step cost known asked asked_value role decision feature from to reached before after "
    "had_recourse helps"
).split()
PERSON_NUMBERS = ["outside_changes", "outside", "steps"]
PERSON_WORDS = "person cost decision plan reached changes asked".split()
SHOWN = "policy steps outside cost decision plan reached changes outside_changes asked".split()


def transitions(results: Results, count: int = 4) -> pd.DataFrame:
    """Choose transitions: a feature that could not flip the decision can, once another is known.

    One from each set, those of the paper first; changes that a person could make towards the
    favourable class before others, then people who had no recourse before, then spouses, which
    complete a unit; EDFA only.

    Parameters
    ----------
    results
        The results of a study.
    count
        The largest number of transitions.

    Returns
    -------
    pandas.DataFrame
        One row for each transition: labels, what was known, what was asked, and the change that
        turns the decision since.
    """
    rows = rows_of(results, "examples", "transition", [], TRANSITION_WORDS)
    rows = preferred(rows, "policy", "edfa")
    shown = rows.columns
    rest = [name for name in ordered("data", rows["data"]) if name not in PAPER_ORDER]
    places = {name: i for i, name in enumerate((*PAPER_ORDER, *rest))}
    rows = rows.assign(
        place=rows["data"].map(places),
        unhelpful=rows["helps"].ne(True),
        had_some=rows["had_recourse"].eq(True),
        no_spouse=rows["role"].ne("spouse"),
    )
    labels = ["predictor", "blanket", "searcher", "seed", "step", "person"]
    rows = rows.sort_values(["place", "unhelpful", "had_some", "no_spouse", *labels])
    # the first of each set, then the second of each
    rows = rows.assign(turn=rows.groupby("place").cumcount())
    return rows.sort_values(["turn", "place"], kind="stable", ignore_index=True)[shown].head(count)


def side_by_side(results: Results, count: int = 3) -> pd.DataFrame:
    """Choose people under a baseline and under EDFA, one a set.

    Both must have led to a plan. Preferred are people whom the baseline asked for, and told to
    change, most features outside the blanket.

    Parameters
    ----------
    results
        The results of a study.
    count
        The largest number of people.

    Returns
    -------
    pandas.DataFrame
        Two rows for each person, first the baseline, then EDFA, with the same number in the column
        ``example``: what was asked, at which cost, the decision and the plan.
    """
    rows = rows_of(results, "examples", "person", PERSON_NUMBERS, PERSON_WORDS)
    rows = rows[rows["plan"].map(lambda plan: isinstance(plan, str) and plan != "").astype(bool)]
    keys = ["data", "predictor", "blanket", "searcher", "seed", "reading", "person"]
    ours = rows[rows["policy"] == "edfa"].drop_duplicates(keys)
    others = rows[~rows["policy"].isin([*ABLATIONS, "survival"])]
    pairs = others.merge(ours, on=keys, suffixes=("", "_edfa"))
    pairs = in_order(pairs.fillna(dict.fromkeys(PERSON_NUMBERS, 0)), ["data", "policy", "person"])
    pairs = pairs.sort_values(PERSON_NUMBERS, ascending=False, kind="stable")
    pairs = pairs.drop_duplicates("data").head(count)
    pairs = pairs.assign(example=range(1, len(pairs) + 1)).set_index(["example", *keys])
    ours = pairs[[f"{name}_edfa" for name in SHOWN]].set_axis(SHOWN, axis=1)
    table = pd.concat([pairs[SHOWN], ours]).reset_index()
    return table.sort_values("example", kind="stable", ignore_index=True)
