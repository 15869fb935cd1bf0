"""What a policy is: a score for every feature that may be asked next, for a batch of people at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from edfa.blanket.units import Blanket
from edfa.data.table import Table
from edfa.people import People
from edfa.predictors.base import Predictor
from edfa.recourse.searcher import Searcher
from edfa.typing import Float64Array, IntArray

__all__ = ["Policy", "choose"]

Progress = Callable[[int, int], None]


class Policy(BaseEstimator, ABC):  # type: ignore[misc]
    """Which feature to ask next, for a batch of people at once; scikit-learn's contract.

    ``__init__`` holds settings, ``fit`` learns (most policies learn nothing), what is learnt ends in an underscore. A
    subclass gives ``score``. With ``per_cost`` scores are divided by each person's prices. A policy with a ``blanket``
    asks only for its members; ``aligned`` says that the model is shown nothing else either.
    """

    blanket: Blanket | None = None
    aligned: bool = False
    per_cost: bool = True

    @abstractmethod
    def score(self, people: People) -> Float64Array:
        """What each feature is worth, before its price, (people, features); NaN: it is not to be asked now.

        Only ``people.askable`` features can be chosen, whatever the others score.
        """

    def fit(
        self,
        train: Table,
        predictor: Predictor | None = None,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from training people and the fitted model; a policy that learns nothing only checks its blanket."""
        for name in self.blanket.features if self.blanket else ():
            train.schema.index(name)
        return self

    @classmethod
    def default(cls, blanket: Blanket, searcher: Searcher, desired_class: int) -> Self:
        """The policy that an advisor uses when it is named: with the advisor's blanket, searcher and favourable class.

        ``desired_class`` is a class code. A policy takes of these what it needs.
        """
        return cls()

    def learnt_state(self) -> Mapping[str, Any]:
        """Everything that was learnt and decides what is asked, for fingerprints: plain values and arrays."""
        return {}

    def save_state(self, folder: Path) -> None:
        """Write what was learnt into a folder; a policy that learns nothing writes nothing."""

    def load_state(self, folder: Path, train: Table) -> Self:
        """Take up what ``save_state`` wrote; ``train`` are the training people it was learnt from."""
        return self

    def masked_score(self, people: People) -> Float64Array:
        """``score``, with NaN wherever a feature may not be asked."""
        return np.where(people.askable, self.score(people), np.nan)

    def next(self, people: People) -> IntArray:
        """The index of the feature to ask each person for, (people,); -1: nothing more."""
        return choose(self.masked_score(people), people.costs, self.per_cost)


def choose(scores: Float64Array, costs: Float64Array, per_cost: bool = True) -> IntArray:
    """The column of the best score by price in each row; ties go to the cheapest, then the first. -1: all NaN.

    >>> choose(np.array([[2.0, 1.0, np.nan], [np.nan, np.nan, np.nan]]), np.array([[2.0, 1.0, 1.0]] * 2))
    array([ 1, -1])
    """
    asked = ~np.isnan(scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(costs > 0, scores / costs, np.where(scores > 0, np.inf, scores)) if per_cost else scores
    worth = np.where(asked, worth, -np.inf)
    tied = asked & (worth == worth.max(axis=1, keepdims=True, initial=-np.inf))
    best = np.where(tied, costs, np.inf).argmin(axis=1)
    return np.where(asked.any(axis=1), best, -1)
