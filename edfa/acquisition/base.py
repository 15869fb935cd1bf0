"""The contract of policies: a score for every feature that may be asked next, for a batch of people
at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from edfa.artifacts import Folder
from edfa.blanket.units import Blanket
from edfa.data.rules import NO_RULES, Rules
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError
from edfa.people import People
from edfa.predictors.base import Predictor, Progress
from edfa.typing import BoolArray, Float64Array, IntArray


class Policy(BaseEstimator, ABC):  # type: ignore[misc]
    """Which feature to ask next, for a batch of people at once; scikit-learn's contract.

    ``__init__`` stores settings, each under its own name, and does nothing else; a dataclass may
    also refuse bad ones in ``__post_init__``. ``fit`` learns from training people (most policies
    learn nothing) and stores what it learns in attributes that end in an underscore. ``clone``
    gives the same settings and nothing that was learnt.

    A subclass gives ``score``. Prices, budget, refusals and ties are not its business: the loop
    sees to them.

    Attributes
    ----------
    blanket
        The features that may be asked; None: all of them.
    aligned
        Whether the model is shown the blanket alone, too.
    per_cost
        Whether scores are divided by each person's prices before the best is chosen.
    asks_model
        Whether what ``fit`` learns depends on the fitted model that it is given.
    takes
        The parts of an advisor that the constructor is given by ``default``.
    """

    blanket: Blanket | None = None
    aligned: bool = False
    per_cost: bool = True
    asks_model: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Refuse settings that cannot be; called by the constructor of dataclasses, and by
        ``set_params``.
        """

    @abstractmethod
    def score(self, people: People) -> Float64Array:
        """What each feature is worth before its price, (people, features); NaN: it is not to be
        asked now.

        ``people.X`` is NaN where a feature is not known, so that a policy cannot peek. Only
        features in ``people.askable`` can be chosen, whatever the others score.
        """

    def fit(
        self,
        train: Table,
        predictor: Predictor | None = None,
        *,
        n_jobs: int | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from training people and the fitted model; a policy that learns nothing only checks
        its blanket.

        ``n_jobs`` threads share the work, as scikit-learn counts them. ``progress`` is called as
        work is done.
        """
        for name in self.blanket.features if self.blanket else ():
            train.schema.index(name)
        return self

    @classmethod
    def default(cls, **parts: Any) -> Self:
        """The policy behind a name, which ``takes`` what it needs of an advisor's ``parts``: its
        ``blanket``, its ``searcher``, the code ``desired_class`` of the favourable class, and the
        operator's ``rules`` (or None).
        """
        return cls(**{name: parts[name] for name in cls.takes})

    def learnt_state(self) -> Mapping[str, Any]:
        """The learnt state that decides which features are asked, for fingerprints: plain values,
        arrays, and fitted parts.
        """
        return {}

    def save_state(self, folder: Path) -> None:
        """Write what was learnt into a folder; a policy that learns nothing writes nothing."""

    def load_state(self, folder: Path | Folder, train: Table) -> Self:
        """Read what ``save_state`` wrote; ``train`` are the training people it was learnt from.

        The folder of a saved advisor is in memory when this is called: its files are read once, and
        checked.
        """
        return self

    def set_params(self, **params: Any) -> Self:
        """Change settings by name; they are checked as those of the constructor are."""
        super().set_params(**params)
        self.__post_init__()
        return self

    def masked_score(self, people: People) -> Float64Array:
        """``score``, with NaN wherever a feature may not be asked, (people, features); what is
        known never may.

        Everything that asks goes through here, so that no policy can ask for a known fact.
        """
        scores = np.asarray(self.score(people), dtype=float)
        if scores.shape != people.X.shape:
            raise DataError(
                f"{type(self).__name__}.score gives an array of shape {scores.shape}, not "
                f"{people.X.shape}: "
                "a row for each person, a column for each feature"
            )
        return np.where(people.askable, scores, np.nan)

    def next(self, people: People) -> IntArray:
        """The index of the feature to ask each person for, (people,); -1: nothing more."""
        return choose(self.masked_score(people), people.costs, self.per_cost)


def never_asked(schema: Schema, rules: Rules | None = None) -> BoolArray:
    """Marks the features that are never asked, (features,), by the card's rules and by
    ``rules``.

    Start features are never asked anyway. In the paper's reading the card's rules do not count.
    """
    rules = rules or NO_RULES
    names = {*rules.never_ask, *(schema.rules.never_ask if rules.reading == "card" else ())}
    return np.array([feature.name in names and not feature.start for feature in schema])


def choose(scores: Float64Array, costs: Float64Array, per_cost: bool = True) -> IntArray:
    """The column with the best score in each row, (rows,); -1: all are NaN.

    With ``per_cost``, scores are divided by ``costs``, both (rows, columns). Ties go to the
    cheapest, then the first.

    >>> choose(np.array([[2.0, 1.0, np.nan], [np.nan, np.nan, np.nan]]), np.array([[2.0, 1.0,
    ...     1.0]] * 2))
    array([ 1, -1])
    """
    candidates = ~np.isnan(scores)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = (
            np.where(costs > 0, scores / costs, np.where(scores > 0, np.inf, scores))
            if per_cost
            else scores
        )
    worth = np.where(candidates, worth, -np.inf)
    tied = candidates & (worth == worth.max(axis=1, keepdims=True, initial=-np.inf))
    cheapest = np.where(tied, costs, np.inf).argmin(axis=1)
    return np.where(candidates.any(axis=1), cheapest, -1)
