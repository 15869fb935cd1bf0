"""Random orders: over all features, and over the blanket (the paper's random variant)."""

from dataclasses import dataclass, field

import numpy as np

from edfa.acquisition.base import Policy
from edfa.blanket.units import Blanket
from edfa.explanation.partition import members
from edfa.people import People
from edfa.typing import Float64Array


class Random(Policy):
    """Every feature in random order.

    A person's order depends on the run's seed and on the person's number alone, not on who else is
    in the batch.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB("nan", n_estimators=10).fit(table.train.X, table.train.y)
    >>> orders = [edfa.acquire(table.test, Random(), model, 4, seed).order(0) for seed in (0, 0, 1)]
    >>> orders[0] == orders[1], orders[0] == orders[2]
    (True, False)
    """

    per_cost = False

    def score(self, people: People) -> Float64Array:
        """A random number for every feature that may be asked, or member of the blanket if there
        is one, (people, features); NaN elsewhere.
        """
        inside = members(people.schema.names, self.blanket)
        return np.where(people.askable & inside, _uniform(people), np.nan)


@dataclass(eq=False, repr=False)
class RandomBlanket(Random):
    """The members of a blanket in random order, which is the paper's random variant.

    Parameters
    ----------
    blanket
        Only its members are asked.
    aligned
        Whether the model is shown the blanket alone.
    per_cost
        Whether random numbers are divided by prices before the largest is chosen.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> blanket = edfa.Blanket("class", {"checking_status": (), "housing": ()})
    >>> model = edfa.SubsetXGB("nan", n_estimators=10).fit(table.train.X, table.train.y)
    >>> sorted(edfa.acquire(table.test, RandomBlanket(blanket), model, "inf").order(0))
    ['checking_status', 'housing']
    """

    blanket: Blanket = field()  # required, whatever the default of all policies
    aligned: bool = True
    per_cost: bool = False
    takes = ("blanket",)


def _uniform(people: People) -> Float64Array:
    """Uniform numbers in [0, 1), (people, features), that follow from seed, person and feature:
    splitmix64.
    """
    features = people.X.shape[1]
    with np.errstate(over="ignore"):
        counter = people.person.astype(np.uint64)[:, None] * np.uint64(features) + np.arange(
            features, dtype=np.uint64
        )
        offset = people.seed.astype(np.uint64)[:, None] * np.uint64(0x632BE59BD9B4E019)
        bits = np.asarray((counter + offset) * np.uint64(0x9E3779B97F4A7C15), dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = np.asarray(
                (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor), dtype=np.uint64
            )
    return np.asarray((bits ^ (bits >> np.uint64(31))) / 2.0**64)
