"""Random orders: over all features, and over the blanket (the paper's random variant)."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from edfa.acquisition.base import Policy
from edfa.blanket.units import Blanket
from edfa.explanation.partition import members
from edfa.people import People
from edfa.recourse.searcher import Searcher
from edfa.typing import Float64Array, Int64Array

__all__ = ["Random", "RandomBlanket"]


class Random(Policy):
    """Any open feature, all alike. A person's order depends on the seed and on who they are, on nobody else."""

    per_cost = False

    def score(self, people: People) -> Float64Array:
        """A lot for every person and feature."""
        return np.where(people.askable, _lots(people.person, people.X.shape[1], people.seed), np.nan)


@dataclass(eq=False, repr=False)
class RandomBlanket(Policy):
    """Any open feature of the blanket, all alike."""

    blanket: Blanket
    aligned: bool = True
    per_cost: bool = False

    @classmethod
    def default(cls, blanket: Blanket, searcher: Searcher, desired_class: int) -> Self:
        """A random order of the advisor's blanket."""
        return cls(blanket)

    def score(self, people: People) -> Float64Array:
        """A lot for every person and member."""
        inside = members(people.schema.names, self.blanket)
        return np.where(people.askable & inside, _lots(people.person, people.X.shape[1], people.seed), np.nan)


def _lots(person: Int64Array, features: int, seed: Int64Array) -> Float64Array:
    """Numbers in [0, 1) that depend on seed, person and feature alone: a counter, well mixed (splitmix64)."""
    with np.errstate(over="ignore"):
        place = person.astype(np.uint64)[:, None] * np.uint64(features) + np.arange(features, dtype=np.uint64)
        lots = np.asarray(place + seed.astype(np.uint64)[:, None] * np.uint64(0x632BE59BD9B4E019), dtype=np.uint64)
        lots = np.asarray(lots * np.uint64(0x9E3779B97F4A7C15), dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            lots = np.asarray((lots ^ (lots >> np.uint64(shift))) * np.uint64(factor), dtype=np.uint64)
    return np.asarray((lots ^ (lots >> np.uint64(31))) / 2.0**64)
