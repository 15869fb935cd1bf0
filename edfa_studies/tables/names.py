"""What tables and figures call the parts of a study, the order they stand in, and the numbers that
the paper prints.
"""

import json
import tomllib
from collections.abc import Iterable
from typing import Any

import pandas as pd

from edfa.reading import read_resource

NAMES: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    read_resource("edfa_studies", "names.toml")
)
"""Title and look of each name, by kind, in the order of the paper."""
PAPER: dict[str, Any] = json.loads(read_resource("edfa_studies", "paper_numbers.json"))
"""The paper's numbers: ``sets`` (Table 1), ``features_acquired`` (Table 2), ``quality`` (Table 3)
by data set, and the numbers of its ``figures``."""
ABLATIONS = ("edfa", "edfa-random", "edfa-no-pc-priority", "edfa-structural")
BASELINES = ("dime", "eddi", "gsmrl", "greedy", "random")
PAPER_SETS = tuple(NAMES["data"])


def title(kind: str, name: object) -> str:
    """What a name is called.

    A name of the user's own stays as it is; a variant of a known model has the model's title and
    the rest of its name.

    Parameters
    ----------
    kind
        What it names: a section of ``names.toml``, such as ``"policy"``.
    name
        The name as the study calls it.

    Examples
    --------
    >>> title("policy", "edfa-no-pc-priority"), title("data", "applications")
    ('EDFA-noPCpriority', 'applications')
    >>> title("predictor", "xgb-balanced")
    'XGB balanced'
    """
    known, text = NAMES.get(kind, {}), str(name)
    first, _, rest = text.partition("-")
    if kind == "predictor" and text not in known and first in known:
        return f"{known[first]['title']} {rest.replace('-', ' ')}"
    return str(known[text]["title"]) if text in known else text


def ordered(kind: str, names: Iterable[object]) -> list[str]:
    """Distinct names in the order of the paper; names of the user's own follow by the alphabet.

    Parameters
    ----------
    kind
        What they name: a section of ``names.toml``, such as ``"policy"``.
    names
        Names as the study calls them; None does not count.

    Examples
    --------
    >>> ordered("data", ["mine", "gmsc", "german"])
    ['german', 'gmsc', 'mine']
    """
    known = list(NAMES.get(kind, {}))
    distinct = {str(name) for name in names if name is not None}
    return sorted(
        distinct, key=lambda name: (known.index(name) if name in known else len(known), name)
    )


def in_order(frame: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """The rows sorted by these columns, names in the order of ``ordered`` and numbers by size."""

    def positions(column: "pd.Series[Any]") -> "pd.Series[Any]":
        if column.name not in NAMES:
            return column
        places = {name: i for i, name in enumerate(ordered(str(column.name), column))}
        return column.astype(str).map(places)

    return frame.sort_values(list(columns), key=positions, kind="stable", ignore_index=True)
