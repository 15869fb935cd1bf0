"""The tripartite partition (Definition 7): what can be changed, what would not help yet, what the
model leaves out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from edfa.blanket.units import Blanket
from edfa.errors import DataError, check_known
from edfa.explanation.necessity import Support, necessity
from edfa.predictors.base import Predictor
from edfa.predictors.conditional import Sampler
from edfa.typing import BoolArray, Float32Array, Float64Array

Reason = Literal["not_known", "blocked", "not_decisive"]


@dataclass(frozen=True)
class Person:
    """One person's partition, by name of the feature.

    Parameters
    ----------
    counterfactual
        The features that can turn the decision by themselves, with their necessity α.
    semifactual
        The other features of the blanket, with the reason why they cannot: ``"not_known"``,
        ``"blocked"`` (a known spouse, none of whose children is known) or ``"not_decisive"``
        (known, but no value of it turns the decision).
    alterfactual
        The features outside the blanket.
    violations
        Known features outside the blanket that turn the decision all the same, with their α: the
        model is not aligned.
    """

    counterfactual: Mapping[str, float]
    semifactual: Mapping[str, Reason]
    alterfactual: tuple[str, ...]
    violations: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Partition:
    """The partition of a batch of people.

    Parameters
    ----------
    names
        The names of all features.
    blanket
        The features that count; None: all of them.
    known
        Which features are known, (people, features).
    necessity
        α of each known feature, (people, features); NaN if it was not swept.

    Examples
    --------
    >>> blanket = Blanket("repays", {"late_payment": ("wage_came_late",)})
    >>> names = ("late_payment", "wage_came_late", "telephone")
    >>> known, necessity = np.array([[False, True, True]]), np.array([[np.nan, 0.0, 0.0]])
    >>> Partition(names, blanket, known, necessity).person(0).semifactual
    {'late_payment': 'not_known', 'wage_came_late': 'blocked'}
    """

    names: tuple[str, ...]
    blanket: Blanket | None
    known: BoolArray
    necessity: Float64Array

    def __post_init__(self) -> None:
        for name in self.blanket.features if self.blanket else ():
            check_known("feature", name, self.names)

    def __len__(self) -> int:
        return len(self.known)

    @cached_property
    def members(self) -> BoolArray:
        """Which features are in the blanket, (features,); all of them if there is no blanket."""
        return members(self.names, self.blanket)

    @cached_property
    def counterfactual(self) -> BoolArray:
        """C(A): which known features of the blanket can turn the decision by themselves, (people,
        features).
        """
        return self.members & self.known & (np.nan_to_num(self.necessity) > 0)

    @cached_property
    def semifactual(self) -> BoolArray:
        """S(A): which other features are in the blanket, (people, features)."""
        return self.members & ~self.counterfactual

    @property
    def alterfactual(self) -> BoolArray:
        """A_alt: which features are outside the blanket, (features,); the same for everybody."""
        return ~self.members

    @cached_property
    def violations(self) -> BoolArray:
        """Which known features outside the blanket turn the decision, (people, features).

        There are none if the model is aligned with the blanket.
        """
        return ~self.members & self.known & (np.nan_to_num(self.necessity) > 0)

    @cached_property
    def blocked(self) -> BoolArray:
        """Which known semifactual features are spouses none of whose children is known, (people,
        features).
        """
        inert, blocked = self.semifactual & self.known, np.zeros(self.known.shape, dtype=bool)
        units = self.blanket.units if self.blanket else {}
        for name in set().union(*units.values()) - set(units):
            children = [
                self.names.index(child) for child, spouses in units.items() if name in spouses
            ]
            j = self.names.index(name)
            blocked[:, j] = inert[:, j] & ~self.known[:, children].any(axis=1)
        return blocked

    def person(self, i: int) -> Person:
        """The partition of the person in row ``i``, by name of the feature."""
        known, blocked, necessity = self.known[i], self.blocked[i], self.necessity[i].tolist()
        semifactual: dict[str, Reason] = {}
        for j in np.flatnonzero(self.semifactual[i]):
            known_reason: Reason = "blocked" if blocked[j] else "not_decisive"
            semifactual[self.names[j]] = known_reason if known[j] else "not_known"
        turning, violations = (
            {self.names[j]: necessity[j] for j in np.flatnonzero(part[i])}
            for part in (self.counterfactual, self.violations)
        )
        outside = tuple(self.names[j] for j in np.flatnonzero(self.alterfactual))
        return Person(turning, semifactual, outside, violations)


def members(names: tuple[str, ...], blanket: Blanket | None) -> BoolArray:
    """Which of the names are in the blanket, (names,); all of them if there is no blanket."""
    inside = names if blanket is None else set(blanket.features)
    return np.array([name in inside for name in names])


def explain(
    X: Float32Array,  # noqa: N803
    predictor: Predictor,
    support: Support,
    names: tuple[str, ...],
    blanket: Blanket | None = None,
) -> Partition:
    """Partition the features of everybody.

    Parameters
    ----------
    X
        Encoded facts, (people, features); NaN: not known.
    predictor
        The fitted model.
    support
        The training values that facts are replaced by.
    names
        The names of the features.
    blanket
        The features that count; None: all of them. The others are swept as well, so that violations
        show.

    Returns
    -------
    Partition
        Of all the people.
    """
    return Partition(names, blanket, ~np.isnan(X), necessity(X, predictor, support))


def transitions(before: Partition, after: Partition) -> pd.DataFrame:
    """List the features that moved to another part between two states of the same people.

    Parameters
    ----------
    before, after
        The partitions of the two states; the second knows all that the first does.

    Returns
    -------
    pandas.DataFrame
        One row for each move: ``person`` (row), ``feature``, its part ``before`` and ``after``, the
        features ``learnt`` in between, and ``latent``: whether it was known all along and became
        counterfactual, that is, had latent recourse (Definition 9) which what was learnt unlocked.

    Raises
    ------
    DataError
        If the people or features differ, or something is forgotten.
    """
    if before.names != after.names or len(before) != len(after):
        raise DataError(
            "transitions are between two states of the same people and the same features"
        )
    if (before.known & ~after.known).any():
        raise DataError("nothing is forgotten: the second state must know what the first one does")
    people, features = np.nonzero(before.counterfactual != after.counterfactual)
    learnt = after.known & ~before.known
    names = np.array(before.names)
    turned = after.counterfactual[people, features]
    return pd.DataFrame(
        {
            "person": people,
            "feature": names[features],
            "before": np.where(turned, "semifactual", "counterfactual"),
            "after": np.where(turned, "counterfactual", "semifactual"),
            "latent": turned & before.known[people, features],
            "learnt": [tuple(names[learnt[i]].tolist()) for i in people],
        }
    )


def latent_recourse(
    X: Float32Array,  # noqa: N803
    feature: int,
    predictor: Predictor,
    support: Support,
    sampler: Sampler,
) -> Float64Array:
    """E|C(A ∪ {j})| - |C(A)| of everybody: the expected gain in counterfactual features from
    knowing j.

    The expectation is over what feature j may turn out to be; j itself is not counted. Above zero:
    j is expected to unlock recourse that is latent now.

    Parameters
    ----------
    X
        Encoded facts, (people, features); NaN: not known.
    feature
        The index of j.
    predictor
        The fitted model.
    support
        The training values that facts are replaced by.
    sampler
        Draws likely values of j, with weights, from what is known.

    Returns
    -------
    numpy.ndarray
        (people,)
    """
    values, weights = sampler.given(X)(feature)
    then = np.repeat(X, values.shape[1], axis=0)
    then[:, feature] = values.ravel()
    before, after = (np.nan_to_num(necessity(rows, predictor, support)) > 0 for rows in (X, then))
    after[:, feature] = False
    expected = (after.sum(axis=1).reshape(values.shape) * weights).sum(axis=1)
    return np.asarray(expected - before.sum(axis=1))
