"""Greedy: the feature that tells most about the outcome per cost, over all features or a
blanket's.
"""

from dataclasses import dataclass

from edfa.acquisition.information import InformationPolicy, SamplerName
from edfa.blanket.units import Blanket
from edfa.explanation.partition import members
from edfa.people import People
from edfa.predictors.base import Predictor
from edfa.predictors.conditional import Sampler
from edfa.typing import Float64Array


@dataclass(eq=False, repr=False)
class Greedy(InformationPolicy):
    """The feature with the largest I(Y; X_i | x_A) per cost first.

    Parameters
    ----------
    blanket
        Only its members are asked; None: every feature may be.
    sampler
        Where the likely values of an unknown feature come from: ``"knn"`` (the nearest training
        people), ``"bins"`` (a small network), ``"exact"`` (the model itself, a BayesNet), or a
        sampler.
    model
        A predictor to estimate information with, instead of the one that decides.
    aligned
        Whether the model is shown the blanket alone.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB("nan", n_estimators=10).fit(table.train.X, table.train.y)
    >>> edfa.acquire(table.test, Greedy(), model, budget=2, explain=False).order(0)
    ('checking_status',)
    """

    blanket: Blanket | None = None
    sampler: Sampler | SamplerName = "knn"
    model: Predictor | None = None
    aligned: bool = False

    def score(self, people: People) -> Float64Array:
        """The expected information of every feature that may be asked, (people, features), in nats;
        NaN elsewhere.
        """
        inside = members(people.schema.names, self.blanket)
        return self._information(people, people.askable & inside)
