"""The numbers that the paper prints, under the names that studies use, to stand beside one's
own.
"""

import json
from typing import Any

import pandas as pd

from edfa.resources import RESOURCES, read_resource

__all__ = ["features_acquired", "figure_number", "figure_numbers", "quality", "sets"]


def _numbers() -> dict[str, Any]:
    numbers: dict[str, Any] = RESOURCES.get(
        "the paper's numbers",
        lambda: json.loads(read_resource("edfa_studies", "paper_numbers.json")),
    )
    return numbers


def sets() -> pd.DataFrame:
    """Table 1: data, features, target.

    >>> sets().set_index("data").loc["german", "target"]
    'Credit risk'
    """
    return pd.DataFrame([{"data": name} | values for name, values in _numbers()["sets"].items()])


def features_acquired() -> pd.DataFrame:
    """Table 2, one row a set: data, features, blanket (its size), and the features each policy
    acquires.

    >>> features_acquired().set_index("data").loc["adult", ["blanket", "edfa", "gsmrl"]].tolist()
    [6.0, 3.0, 7.6]
    """
    return pd.DataFrame(
        [{"data": name} | values for name, values in _numbers()["features_acquired"].items()]
    )


def quality() -> pd.DataFrame:
    """Table 3, one row a set and policy: data, policy, l0, l2, plausible (a share). What it leaves
    open is absent.

    >>> len(quality()), "edfa" in set(quality().query("data == 'gmsc'")["policy"])
    (27, False)
    """
    table = _numbers()["quality"]
    rows = [
        {"data": name, "policy": policy} | values
        for name, policies in table.items()
        for policy, values in policies.items()
        if values is not None
    ]
    return pd.DataFrame(rows)


def figure_numbers(family: str) -> dict[str, int]:
    """The paper's figure numbers of a family ("frontier", "policies", "promises", "ablations"), by
    what they show.
    """
    numbers: dict[str, int] = _numbers()["figures"][family]
    return numbers


def figure_number(family: str) -> int:
    """The paper's number of a figure that is alone: "limits", "transitions" or "side_by_side"."""
    return int(_numbers()["figures"][family])
