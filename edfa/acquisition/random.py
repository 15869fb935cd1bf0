"""Random orders: over all features, and over the blanket (the paper's random variant)."""

from dataclasses import dataclass

import numpy as np

from edfa.acquisition.base import Policy, State
from edfa.blanket.units import Blanket
from edfa.explanation.partition import members
from edfa.typing import Float64Array, Int64Array

__all__ = ["Random", "RandomBlanket"]


class Random(Policy):
    """Any open feature, all alike. A person's order depends on the seed and on who they are, on nobody else."""

    per_cost = False

    def score(self, state: State) -> Float64Array:
        """A lot for every person and feature."""
        return np.where(state.open, _lots(state.person, state.X.shape[1], state.seed), np.nan)


@dataclass(frozen=True)
class RandomBlanket(Policy):
    """Any open feature of the blanket, all alike."""

    blanket: Blanket
    aligned: bool = True
    per_cost: bool = False

    def score(self, state: State) -> Float64Array:
        """A lot for every person and member."""
        inside = members(state.schema.names, self.blanket)
        return np.where(state.open & inside, _lots(state.person, state.X.shape[1], state.seed), np.nan)


def _lots(person: Int64Array, features: int, seed: int) -> Float64Array:
    """Numbers in [0, 1) that depend on seed, person and feature alone: a counter, well mixed (splitmix64)."""
    with np.errstate(over="ignore"):
        place = person.astype(np.uint64)[:, None] * np.uint64(features) + np.arange(features, dtype=np.uint64)
        lots = np.asarray(place + np.uint64(seed) * np.uint64(0x632BE59BD9B4E019), dtype=np.uint64)
        lots = np.asarray(lots * np.uint64(0x9E3779B97F4A7C15), dtype=np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            lots = np.asarray((lots ^ (lots >> np.uint64(shift))) * np.uint64(factor), dtype=np.uint64)
    return np.asarray((lots ^ (lots >> np.uint64(31))) / 2.0**64)
