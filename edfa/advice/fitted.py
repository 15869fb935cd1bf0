"""Everything that an advisor has learnt, as one immutable record that interviews, files and certificates share."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from edfa.acquisition.base import Policy
from edfa.acquisition.loop import Budget
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.people import Background
from edfa.predictors.base import Predictor
from edfa.recourse.searcher import Searcher
from edfa.typing import BoolArray

__all__ = ["FittedAdvisor"]


@dataclass(frozen=True, eq=False)
class FittedAdvisor:
    """What an advisor has learnt.

    ``train`` are the training people; ``background`` holds the model as the policy shows it; ``blanket`` is the one that
    was found, whether or not the policy keeps to it. ``signal`` is what the stop rule watches, ``budget`` what one
    interview may cost.
    """

    train: Table
    background: Background
    blanket: Blanket
    policy: Policy
    searcher: Searcher
    certificate: Certificate | None = None
    fingerprint: str = ""
    signal: str = "uncertainty"
    budget: Budget = "inf"

    @classmethod
    def of(
        cls, train: Table, model: Predictor, blanket: Blanket, policy: Policy, searcher: Searcher
    ) -> "FittedAdvisor":
        """From fitted parts; the model is shown what the policy says it may see."""
        background = Background.of(train, model, policy.blanket, aligned=policy.aligned, support=searcher.support_)
        return cls(train, background, blanket, policy, searcher)

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.background.schema

    @property
    def encoder(self) -> Encoder:
        """How facts become numbers."""
        return self.background.encoder

    @property
    def model(self) -> Predictor:
        """The model as it was fitted, shown everything."""
        model = self.background.model
        assert model is not None  # noqa: S101  a fitted advisor has one
        return model

    @property
    def predictor(self) -> Predictor:
        """The model as the policy shows it."""
        return self.background.predictor

    @property
    def tau(self) -> float | None:
        """The threshold of the certified stop rule; None if nothing is certified."""
        certificate = self.certificate
        return certificate.tau if certificate is not None and certificate.certified else None

    @cached_property
    def favourable(self) -> int:
        """The code of the favourable class."""
        return self.schema.classes.index(self.schema.favourable)

    @cached_property
    def relevant(self) -> BoolArray:
        """The start set and what the model is shown, (features,). Other facts are recorded and change nothing."""
        return self.background.start | self.background.visible

    @cached_property
    def threshold(self) -> float | None:
        """The probability of the favourable class that is needed; None: the likeliest class is decided."""
        threshold = self.predictor.threshold
        return None if threshold is None else float(threshold if self.favourable == 1 else 1 - threshold)

    @cached_property
    def card_costs(self) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """The card's prices, (features,)."""
        return self.schema.costs.astype(float)
