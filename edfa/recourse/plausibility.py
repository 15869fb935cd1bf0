"""Whether training people are like the result of a plan, by local outlier factor.

The recipe is fixed, since the share of inliers moves by 10 to 20 points with it: codes in standard units, on what is
known; four fifths of the training rows, each once, at most 5,000; 20 neighbours. The other fifth says what share of
real people are inliers, and with its columns shuffled, what share of people who do not exist.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.neighbors import LocalOutlierFactor

from edfa.data.table import Table
from edfa.predictors.base import Floats, by_mask
from edfa.recourse.plans import Plans
from edfa.recourse.rules import Reals

__all__ = ["Likeness", "likeness", "plausible"]

LIMIT, NEIGHBOURS, HELD = 5000, 20, 1000


class Likeness(NamedTuple):
    """Of each plan: an inlier or not, and the shares of inliers among real and shuffled people who know the same."""

    inlier: Reals
    real: Reals
    shuffled: Reals


def likeness(plans: Plans, train: Table) -> Likeness:
    """Of all plans; a model of outliers for each set of known features."""
    found = Likeness(*(np.full(len(plans), np.nan) for _ in range(3)))
    rows = plans.rows()
    for mask, some in by_mask(rows):
        if mask.any():
            inside, real, shuffled = _fit(train.X[:, mask])
            found.inlier[some], found.real[some], found.shuffled[some] = inside(rows[some][:, mask]), real, shuffled
    return found


def plausible(plans: Plans, train: Table) -> Plans:
    """The plans, told whether each is an inlier, and how many real people are."""
    found = likeness(plans, train)
    return replace(plans, inlier=found.inlier, inlier_base=found.real)


def _fit(rows: Floats) -> tuple[Callable[[Floats], Reals], float, float]:
    random = np.random.default_rng(0)
    order = random.permutation(len(rows))
    held, kept = rows[order[: len(rows) // 5]][:HELD], rows[order[len(rows) // 5 :]]
    spread = np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1)
    # Equal rows make a density infinite, so each counts once.
    distinct = random.permutation(np.unique(kept, axis=0))[:LIMIT]
    count = min(NEIGHBOURS, len(distinct) - 1)
    if count < 1 or not len(held):
        return lambda some: np.ones(len(some)), 1.0, 1.0
    factor = LocalOutlierFactor(count, novelty=True).fit(distinct / spread)

    def inside(some: Floats) -> Reals:
        return np.asarray(factor.predict(some / spread) == 1, dtype=float)

    mixed = np.stack([random.permutation(column) for column in held.T], axis=1)
    return inside, float(inside(held).mean()), float(inside(mixed).mean())
