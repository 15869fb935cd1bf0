"""What the card's directions cost: the same model fitted without them, both on people they have not
met.
"""

import json
from dataclasses import asdict, dataclass

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from edfa.advice.fitted import FittedAdvisor
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import SettingError
from edfa.people import Background
from edfa.predictors.base import Predictor

__all__ = ["Comparison", "check_comparable", "compare_free"]


@dataclass(frozen=True)
class Comparison:
    """How well two models order some people by their chance of the favourable class: with
    directions, and without.

    ``auroc`` and ``auroc_free`` are the chances that of two people, one with the favourable outcome
    and one without, the former is given the higher probability.
    """

    people: int
    auroc: float
    auroc_free: float

    @property
    def lost(self) -> float:
        """What the directions cost; below zero where they help."""
        return self.auroc_free - self.auroc

    @property
    def sentence(self) -> str:
        """Both figures and their difference, in one line."""
        verb = "cost" if self.lost >= 0 else "gain"
        return (
            f"Directions of the card {verb} {abs(self.lost):.4f} of the AUROC: {self.auroc:.4f} "
            f"with them, {self.auroc_free:.4f} without ({self.people} people)."
        )

    def to_json(self) -> str:
        """As JSON, with ``lost``."""
        return json.dumps(asdict(self) | {"lost": self.lost})


def check_comparable(schema: Schema, obey_directions: bool = True) -> None:
    """Raise SettingError where there is nothing to compare with: no directions, or none that are
    obeyed.
    """
    if not obey_directions:
        raise SettingError(
            "a model that ignores the directions of the card cannot be compared with one "
            "that is free"
        )
    if not any(feature.monotone for feature in schema):
        raise SettingError(
            "the card has no directions to compare with; say which way is good: monotone = 'up'"
        )


def compare_free(fitted: FittedAdvisor, people: Table) -> Comparison:
    """Fit the advisor's model once more without directions, and compare the two.

    Parameters
    ----------
    fitted
        The advisor. Both models are shown what its policy shows, with everything of it known.
    people
        People of whom neither has learnt, with their outcomes: the test part of a table.
    """
    if not any(fitted.model.get_params(deep=False).get("monotone") or ()):
        raise SettingError(f"this {type(fitted.model).__name__} has no directions to compare with")
    train, policy = fitted.train, fitted.policy
    free: Predictor = clone(fitted.model).set_params(monotone=None).fit(train.X, train.y)
    other = Background.of(train, free, policy.blanket, aligned=policy.aligned).predictor
    return Comparison(
        len(people),
        *(_auroc(model, people, fitted.favourable) for model in (fitted.predictor, other)),
    )


def _auroc(model: Predictor, people: Table, favourable: int) -> float:
    chances = model.predict_proba(people.X)[:, favourable]
    return float(roc_auc_score(np.asarray(people.y) == favourable, chances))
