"""People and models of the user's own whose answers are known in closed form, for tests of wrapped
models.
"""

from functools import cache

import numpy as np
import pandas as pd
from scipy.special import expit

import edfa
from edfa import Feature, Schema

HOMES = ("rent", "own", "free")
WEIGHTS = {"income": 1.6, "debt": -1.2}
SCHEMA = Schema(
    (
        Feature("income", "continuous", cost=1, start=True, change="up"),
        Feature("debt", "continuous", cost=2, change="down"),
        Feature("home", "categorical", cost=1),
        Feature("years", "ordinal", cost=1, levels=(0, 1, 2, 3)),
        Feature("height", "continuous", cost=3),
    ),
    "repays",
    "yes",
)


@cache
def people(rows=360, seed=0):
    """A table of independent facts; who repays depends on income and debt, and a little on the
    home.
    """
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": random.normal(size=rows).round(3),
            "debt": random.normal(size=rows).round(3),
            "home": random.choice(HOMES, rows),
            "years": random.integers(0, 4, rows),
            "height": random.normal(size=rows).round(3),
        }
    )
    score = sum(weight * frame[name] for name, weight in WEIGHTS.items()) + 0.5 * (
        frame["home"] == "own"
    )
    frame["repays"] = np.where(random.random(rows) < expit(score), "yes", "no")
    return edfa.Table.from_frame(frame, SCHEMA, name="people")


def two_numbers(frame):
    """A model that is a plain function: the chance of "yes", logistic in income and debt."""
    return expit(sum(weight * frame[name].to_numpy(float) for name, weight in WEIGHTS.items()))


def mean_chance(known, unknown_weight):
    """The mean of ``two_numbers`` over a standard normal fact with this weight, given the score of
    the other (n,).
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    return expit(np.asarray(known)[:, None] + unknown_weight * nodes) @ weights / weights.sum()


def wrap_two_numbers(partial="distilled", **options):
    """``two_numbers``, wrapped and not yet shown anybody."""
    return edfa.wrap(two_numbers, partial, columns=list(WEIGHTS), **options)


def hide(matrix, *positions):
    """Encoded people of whom the features at these positions are not known."""
    hidden = matrix.copy()
    hidden[:, list(positions)] = np.nan
    return hidden
