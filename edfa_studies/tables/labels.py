"""What tables and figures call the parts of a study, and the order they stand in."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

__all__ = ["ABLATIONS", "BASELINES", "PAPER_SETS", "in_order", "ordered", "series_title", "title"]

TITLES = {
    "data": {
        "german": "German Credit",
        "adult": "Adult Income",
        "heloc": "HELOC",
        "taiwan": "Taiwan Credit",
        "acs_income": "ACS Income",
        "gmsc": "GMSC",
        "diabetes130": "Diabetes130",
    },
    "predictor": {"ftt": "FTT", "xgb": "XGB", "xgb-masked": "XGB masked", "bn": "BN", "mlp": "MLP"},
    "blanket": {"eamb": "EAMB", "hiton-mb": "HITON-MB", "bamb": "BAMB", "iamb": "IAMB"},
    "policy": {
        "edfa": "EDFA",
        "edfa-random": "EDFA-random",
        "edfa-no-pc-priority": "EDFA-noPCpriority",
        "edfa-structural": "EDFA-structural",
        "survival": "survival",
        "dime": "DIME",
        "eddi": "EDDI",
        "gsmrl": "GSMRL",
        "greedy": "greedy",
        "random": "random",
    },
    "searcher": {
        "nearest": "nearest",
        "generative": "generative",
        "dice": "DiCE",
        "nice": "NICE",
        "probe": "PROBE",
        "survival": "survival",
    },
    "promise": {"paper": "the paper's loss", "advisor": "the advisor's promise"},
    "rule": {"first": "first plan", "safe": "certified rule", "last": "last step"},
    "method": {"paper": "RCPS-HB (paper)", "hb": "HB", "cp": "Clopper-Pearson", "wsr": "WSR"},
    "status": {
        "certified": "certified",
        "data_limited": "data-limited",
        "risk_limited": "risk-limited",
    },
}
ABLATIONS = ("edfa", "edfa-random", "edfa-no-pc-priority", "edfa-structural")
BASELINES = ("dime", "eddi", "gsmrl", "greedy", "random")
PAPER_SETS = tuple(TITLES["data"])


def title(kind: str, name: object) -> str:
    """What a name is called; a name of the user's own stays as it is, but for the model that it
    begins with.

    >>> title("policy", "edfa-no-pc-priority"), title("data", "applications"), title("predictor",
    ...     "xgb-balanced")
    ('EDFA-noPCpriority', 'applications', 'XGB balanced')
    """
    known, text = TITLES.get(kind, {}), str(name)
    first, _, rest = text.partition("-")
    if kind == "predictor" and text not in known and first in known:
        return f"{known[first]} {rest.replace('-', ' ')}"
    return known.get(text, text)


def series_title(policy: object, searcher: object, main_searcher: object = "nearest") -> str:
    """A policy and a searcher as one name: the policy's, and the searcher's where it is not the
    main one.

    >>> series_title("edfa", "nearest"), series_title("edfa", "generative")
    ('EDFA', 'EDFA generative')
    """
    name = title("policy", policy)
    return name if searcher == main_searcher else f"{name} {title('searcher', searcher)}"


def ordered(kind: str, names: Iterable[object]) -> list[str]:
    """Distinct names in the order of the paper; names of the user's own follow by the alphabet.

    >>> ordered("data", ["mine", "gmsc", "german"])
    ['german', 'gmsc', 'mine']
    """
    known = list(TITLES.get(kind, {}))
    distinct = {str(name) for name in names if name is not None}
    return sorted(
        distinct, key=lambda name: (known.index(name) if name in known else len(known), name)
    )


def in_order(frame: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """The rows sorted by these columns, names in the order of ``ordered`` and numbers by size."""

    def positions(column: "pd.Series[Any]") -> "pd.Series[Any]":
        if column.name not in TITLES:
            return column
        places = {name: i for i, name in enumerate(ordered(str(column.name), column))}
        return column.astype(str).map(places)

    return frame.sort_values(list(columns), key=positions, kind="stable", ignore_index=True)
