"""Fixed: the same order for everybody."""

from dataclasses import dataclass

import numpy as np

from edfa.acquisition.base import Policy
from edfa.people import People
from edfa.typing import Float64Array

__all__ = ["Fixed"]


@dataclass(eq=False, repr=False)
class Fixed(Policy):
    """Features in a given order, whatever the answers; what is not in it is not asked.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=10).fit(table.train.X, table.train.y)
    >>> edfa.acquire(table.test, Fixed(("housing", "duration")), model, budget=0.9).order(0)
    ('housing', 'duration')
    """

    order: tuple[str, ...]
    per_cost: bool = False

    def score(self, people: People) -> Float64Array:
        """The earlier, the more."""
        rank = np.full(len(people.schema), np.nan)
        rank[[people.schema.index(name) for name in self.order]] = -np.arange(len(self.order), dtype=float)
        return np.where(people.askable, rank, np.nan)
