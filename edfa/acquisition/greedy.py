"""Greedy: the feature that tells most about the outcome per cost, over all features or a blanket's."""

from dataclasses import dataclass

from edfa.acquisition.base import Policy
from edfa.acquisition.information import Name, information
from edfa.blanket.units import Blanket
from edfa.explanation.partition import members
from edfa.people import People
from edfa.predictors.base import Predictor
from edfa.predictors.conditional import Sampler
from edfa.typing import Float64Array

__all__ = ["Greedy"]


@dataclass(eq=False, repr=False)
class Greedy(Policy):
    """Most information first. ``blanket`` confines it, ``aligned`` what the model is shown as well."""

    blanket: Blanket | None = None
    sampler: Sampler | Name = "knn"
    model: Predictor | None = None
    aligned: bool = False

    def score(self, people: People) -> Float64Array:
        """I(Y; X_i | x_A) of every open feature."""
        inside = members(people.schema.names, self.blanket)
        return information(people, people.askable & inside, self.sampler, self.model)
