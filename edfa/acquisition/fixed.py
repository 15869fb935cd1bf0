"""Fixed: the same order for everybody."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from edfa.acquisition.base import Policy
from edfa.errors import SettingError
from edfa.people import People
from edfa.typing import Float64Array


@dataclass(eq=False, repr=False)
class Fixed(Policy):
    """Features in one order, whatever the answers.

    Parameters
    ----------
    order
        Names of features, the first to be asked first. Others are never asked.
    per_cost
        Whether scores are divided by prices, which would change the order.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=10).fit(table.train.X, table.train.y)
    >>> edfa.acquire(table.test, Fixed(("housing", "duration")), model, budget=0.9).order(0)
    ('housing', 'duration')
    """

    order: Sequence[str]
    per_cost: bool = False

    @classmethod
    def default(cls, **parts: Any) -> Self:
        """SettingError: there is no default, the order must be given."""
        raise SettingError(
            "policy 'fixed' needs an order; pass edfa.acquisition.Fixed(('housing', 'duration'))"
        )

    def score(self, people: People) -> Float64Array:
        """Minus the position in the order, (people, features); NaN for features that are not in
        it.
        """
        rank = np.full(len(people.schema), np.nan)
        rank[[people.schema.index(name) for name in self.order]] = -np.arange(
            len(self.order), dtype=float
        )
        return np.where(people.askable, rank, np.nan)
