"""What an advisor makes of people in the middle of being asked: decision, partition, next question, plans.

A batch like everything else, and one interview is a batch of one. Whatever is looked at is worked out once; the
partition and the plans share one sweep of the model.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from edfa.acquisition.base import Background, Policy, State
from edfa.acquisition.loop import SLACK, acquire, money
from edfa.acquisition.trajectory import Trajectory
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate
from edfa.certification.replay import signal_of, uncertainty
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.explanation.necessity import Sweep, sweep
from edfa.explanation.partition import Partition, members
from edfa.people import Explained, People
from edfa.predictors.aligned import Aligned, align
from edfa.predictors.base import Predictor
from edfa.recourse.constraints import Constraints
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Assessment", "Budget", "Fitted"]

Budget = float | Literal["inf"]
FEW = 16  # people of whom everything is read off one sweep


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that an advisor has learnt: whom it learnt from, the model as the policy shows it, how it asks and plans."""

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
    def of(cls, train: Table, predictor: Predictor, blanket: Blanket, policy: Policy, searcher: Searcher) -> "Fitted":
        """With the model shown what the policy says it may see."""
        shown = predictor
        if policy.blanket is not None and policy.aligned:
            shown = align(predictor, np.flatnonzero(members(train.schema.names, policy.blanket)).tolist())
        return cls(train, Background(train.schema, shown, train.X), blanket, policy, searcher)

    @property
    def schema(self) -> Schema:
        """The features."""
        return self.background.schema

    @cached_property
    def encoder(self) -> Encoder:
        """How facts become numbers."""
        return self.train.encoder

    @property
    def predictor(self) -> Predictor:
        """The model, shown what the policy shows it."""
        return self.background.predictor

    @property
    def model(self) -> Predictor:
        """The model as it was fitted, shown everything."""
        shown = self.background.predictor
        return shown.predictor_ if isinstance(shown, Aligned) else shown

    @property
    def tau(self) -> float | None:
        """The threshold of the stop rule, where it is certified."""
        found = self.certificate
        return found.tau if found is not None and found.certified else None

    @cached_property
    def favourable(self) -> int:
        """The place of the favourable class."""
        return self.schema.classes.index(self.schema.favourable)

    @cached_property
    def visible(self) -> BoolArray:
        """What the model is shown at all."""
        return members(self.schema.names, self.policy.blanket if self.policy.aligned else None)

    @cached_property
    def start(self) -> BoolArray:
        """What is known before the first question."""
        return np.array([f.start for f in self.schema])

    @cached_property
    def heeded(self) -> BoolArray:
        """What is looked at: the start set, and what the model is shown. The rest is kept, and changes nothing."""
        return self.start | self.visible

    @cached_property
    def threshold(self) -> float | None:
        """The chance of the favourable class from which on it is decided, where a threshold decides."""
        told = self.predictor.threshold
        return None if told is None else float(told if self.favourable == 1 else 1 - told)

    def course(self, X: Float32Array) -> Trajectory:  # noqa: N803
        """As far as the policy's own order goes with what is known, from the start set on: a run that ends at the
        first question to which nobody has the answer."""
        return acquire(
            X,  # type: ignore[arg-type]
            self.policy,
            self.model,
            self.budget,
            reference=self.train,
            declines=np.isnan(X),
            on_declined="stop",
            explain=False,
        )


@dataclass(frozen=True, eq=False)
class Assessment:
    """People who know some things, a row each, and all that follows from it.

    ``declined`` is never asked, ``costs`` are each person's prices, ``locked`` features are left as they are.
    """

    fitted: Fitted
    X: Float32Array
    declined: BoolArray
    costs: Float64Array
    locked: tuple[str, ...] = ()
    _plans: dict[Any, Plans] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, fitted: Fitted, X: Float32Array) -> "Assessment":  # noqa: N803
        """People without wishes of their own."""
        costs = np.broadcast_to(fitted.schema.costs, X.shape)
        return cls(fitted, X, np.zeros(X.shape, dtype=bool), costs)

    def __len__(self) -> int:
        return len(self.X)

    @cached_property
    def plain(self) -> bool:
        """Whether nobody here has wishes: nothing is declined or locked, and prices are the card's."""
        return not self.locked and not self.declined.any() and bool((self.costs == self.fitted.schema.costs).all())

    @cached_property
    def known(self) -> BoolArray:
        """What is known of whom."""
        return ~np.isnan(self.X)

    @cached_property
    def spent(self) -> Float64Array:
        """What everything known has cost."""
        return np.asarray((self.costs * self.known).sum(axis=1))

    @cached_property
    def swept(self) -> Sweep:
        """Every single change of every known fact that the model is shown."""
        return sweep(self.X, self.fitted.predictor, self.fitted.searcher.support, self.fitted.visible)

    @property
    def _sweeps(self) -> bool:
        """Whether everything is read off the sweep: of a few people it is one model call for all that is asked."""
        return 0 < len(self) <= FEW or "swept" in self.__dict__

    @cached_property
    def chances(self) -> Float64Array:
        """What the model says now."""
        return self.swept.chances if self._sweeps else self.fitted.predictor.predict_proba(self.X)

    @cached_property
    def decision(self) -> IntArray:
        """The place of the class that is decided."""
        return self.swept.decision if self._sweeps else self.fitted.predictor.decide(self.chances)

    @property
    def probability(self) -> Float64Array:
        """The chance of the favourable class."""
        return np.asarray(self.chances[:, self.fitted.favourable])

    @cached_property
    def refused(self) -> BoolArray:
        """Who has not got the favourable decision."""
        return np.asarray(self.decision != self.fitted.favourable)

    @cached_property
    def partition(self) -> Partition:
        """What can turn the decision, what cannot yet, what never will."""
        return Partition(self.fitted.schema.names, self.fitted.policy.blanket, self.known, self.swept.alpha)

    @cached_property
    def state(self) -> State:
        """As a policy sees them."""
        open_ = ~self.known & ~self.declined
        return State(self.fitted.background, self.X, open_, self.costs, np.arange(len(self)))

    @cached_property
    def next(self) -> IntArray:
        """The feature to ask each person for, or -1: there is none, or it does not fit into the budget."""
        chosen = np.asarray(self.fitted.policy.next(self.state))
        limit = money(self.fitted.budget, self.costs, self.fitted.start)
        rows = np.arange(len(self))
        fits = self.spent + self.costs[rows, chosen] <= limit + SLACK
        return np.where((chosen >= 0) & fits, chosen, -1)

    @cached_property
    def people(self) -> People:
        """As a searcher sees them."""
        fitted = self.fitted
        return People(self.X, fitted.schema, fitted.encoder, fitted.predictor, fitted.policy.blanket, spent=self.spent)

    def plans(self, k: int | None = None, constraints: Constraints | None = None) -> Plans:
        """What each refused person could change; kept for the next time."""
        return self._search(k, self._with_locks(constraints))

    def _search(self, k: int | None, constraints: Constraints | None, enough: float | None = None) -> Plans:
        """Plans, or with ``enough`` only so many as tell whether one survives so often."""
        key = (k, None if constraints is None else constraints.to_json(), enough)
        if key not in self._plans:
            states = Explained(self.people, self.swept) if self._sweeps else self.people
            wanted, searcher = self.fitted.favourable, self.fitted.searcher
            if enough is not None and isinstance(searcher, SurvivalSearch):
                searcher = searcher.until(enough)
            self._plans[key] = find_recourse(states, searcher, constraints=constraints, wanted=wanted, k=k)
        return self._plans[key]

    def _with_locks(self, constraints: Constraints | None) -> Constraints | None:
        if not self.locked:
            return constraints
        given = constraints or Constraints()
        return replace(given, locked=tuple(dict.fromkeys((*given.locked, *self.locked))))

    def signal(self, k: int | None = None) -> Float64Array:
        """What the stop rule watches; NaN where there is no plan. ``k`` as in plans that were made already."""
        return self._signal(self.plans(k))

    def _signal(self, plans: Plans) -> Float64Array:
        if not len(plans):
            return np.full(len(self), np.nan)
        told = signal_of(plans, self.chances, self.fitted.signal)
        return np.where(plans.legal, told, np.nan)

    def stops(self, tau: float, k: int | None = None) -> BoolArray:
        """Where the rule "act at the first plan whose signal is at most tau" stops, if it gets there."""
        fitted = self.fitted
        if fitted.signal == "uncertainty" and not (self.refused & (uncertainty(self.chances) <= tau)).any():
            return np.zeros(len(self), dtype=bool)  # known without a plan
        # One plan that survives clearly often enough says it; the best one is not needed.
        planned = any(enough is None for *_, enough in self._plans)
        enough = 1 - tau + 1e-9 if fitted.signal == "survival" and not planned else None
        plans = self._search(k, self._with_locks(None), enough)
        return np.asarray(self.refused & (self._signal(plans) <= tau))
