"""What an advisor makes of a batch of partly known people.

One interview is a batch of one, and a file is a batch of many: both read their answers off an
``Assessment``. Whatever is looked at is worked out once; of a few people, everything shares one
sweep of the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from edfa.acquisition.loop import budget_amount, next_question
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.terms import NEVER
from edfa.certification.replay import signal_of, uncertainty
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.explanation.necessity import necessity
from edfa.explanation.partition import Partition
from edfa.people import People
from edfa.predictors.base import Predictor
from edfa.predictors.cache import ModelCache
from edfa.predictors.user_model.given import Given
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.recourse.survival import Completions
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Assess", "Assessment"]

FEW = 16  # people of whom everything is read off one sweep
# rows, about, that a user model is asked to say what can turn one person's decision
SWEPT = 100_000
Assess = Callable[[Float32Array], "Assessment"]
"""Makes, or finds again, the assessment of people without an overlay from their encoded facts
(people, features).
"""


@dataclass(frozen=True, eq=False)
class Assessment:
    """Partly known people and all that an advisor says of them.

    ``people.askable`` is what may be asked and has not been declined, ``people.costs`` are each
    person's prices, and ``people.overlay`` what all of them have set themselves, beyond the
    operator's rules. ``people.predictor`` is the model as it is asked about these people.
    """

    fitted: FittedAdvisor
    people: People
    _plans: dict[Any, Plans] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        fitted: FittedAdvisor,
        X: Float32Array,  # noqa: N803
        *,
        overlay: Overlay = NO_OVERLAY,
        declined: BoolArray | None = None,
        given: tuple[Given, ...] = (),
    ) -> "Assessment":
        """Assess people by their encoded facts X (people, features); NaN: not known.

        ``overlay`` holds what all of these people have set themselves; what they ``declined``,
        (people, features), is not asked again. ``given`` are numbers beyond all that was seen,
        which all of them gave: a user model is asked about these.
        """
        unknown = np.isnan(X)
        askable = unknown & ~fitted.never_ask
        numbers = tuple(g for g in given if not unknown[:, g.position].any())
        people = People(
            X,
            fitted.background.for_people(numbers, len(X)),
            spent=(overlay.prices_in(fitted.schema) * ~unknown).sum(axis=1),
            overlay=overlay,
            askable=askable if declined is None else askable & ~declined,
        )
        return cls(fitted, people)

    def __len__(self) -> int:
        return len(self.people)

    @cached_property
    def explained(self) -> People:
        """The people; if they are few, with the sweep that answers everything in one model call."""
        people = self.people.with_sweep() if 0 < len(self) <= FEW else self.people
        if self.shares is None:
            return people
        decided = self._decided_by_shares(people)
        return replace(people, decided=decided, predicted=people.probabilities)

    @property
    def X(self) -> Float32Array:  # noqa: N802
        """Encoded facts, (people, features)."""
        return self.people.X

    @property
    def known(self) -> BoolArray:
        """Which features are known, (people, features)."""
        return self.people.known

    @property
    def decision(self) -> IntArray:
        """The code of the class that is decided, (people,)."""
        return self.explained.decision

    @property
    def probability(self) -> Float64Array:
        """The probability of the favourable class, (people,)."""
        return np.asarray(self.explained.probabilities[:, self.fitted.favourable])

    @property
    def chance(self) -> Float64Array:
        """What people are told of the favourable class, (people,): its probability, or with an own
        model its share.

        Of whom all that such a model uses is known, it is the probability that the model gives.
        """
        if self.shares is None:
            return self.probability
        complete = self.people.predictor.is_enough(self.known)
        return np.where(complete, self.probability, self.shares[0])

    def _decided_by_shares(self, people: People) -> IntArray:
        """The class that a user model decides for in most completions, (people,).

        Its view may see a person otherwise; nobody is told that they are refused where most people
        like them are not.
        """
        share, favourable = (
            (np.zeros(0), 0) if self.shares is None else (self.shares[0], self.fitted.favourable)
        )
        others = people.probabilities.copy()
        others[:, favourable] = -np.inf
        return np.where(share > 1 / 2, favourable, others.argmax(axis=1))

    @cached_property
    def shares(self) -> tuple[Float64Array, int] | None:
        """The share of completions that a user model decides favourably, (people,),
        and their number.

        None where another model decides, or everything that it uses is known: then the probability
        says it.
        """
        if not self.people.predictor.decides_by_completions(self.known):
            return None
        share = self._completions.decided_share(self.people, self.fitted.favourable)
        return share, self._completions.neighbours.k

    @property
    def _completions(self) -> Completions:
        """What completes these people when a user model is asked about them."""
        searcher = self.fitted.searcher
        if isinstance(searcher, SurvivalSearch):
            return searcher.completions_
        return Completions(self.fitted.background.neighbours)

    def majority(self, row: int = 0) -> Predictor:
        """Who decides about the person in ``row``, and whoever differs from them in known facts
        alone.

        That is a user model by most of the person's completions, while facts are
        missing that it uses.
        """
        predictor = self.people.predictor
        if self.shares is None:
            return predictor
        completions = self._completions.neighbours.complete(self.X[row][None])[0]
        return predictor.over_completions(completions, self.fitted.favourable)

    @cached_property
    def partition(self) -> Partition:
        """What can turn each person's decision, what cannot yet, what never will.

        With a user model that is what changes its decision in most completions of the
        person.
        """
        whole = self.explained.partition
        if self.shares is None:
            return whole
        background, rows = self.fitted.background, np.empty(self.X.shape)
        most = max(
            4,
            min(
                background.support.most, SWEPT // (self.X.shape[1] * self._completions.neighbours.k)
            ),
        )
        support = replace(
            background.support, cache=ModelCache(1), most=most
        )  # of one person: nobody asks again
        for row in range(len(self)):
            rows[row] = necessity(
                self.X[row][None], self.majority(row), support, background.visible
            )[0]
        return replace(whole, necessity=rows)

    @cached_property
    def refused(self) -> BoolArray:
        """Who has not got the favourable decision, (people,)."""
        return np.asarray(self.decision != self.fitted.favourable)

    @cached_property
    def next(self) -> IntArray:
        """The feature to ask each person for, (people,); -1: there is none, or it does not fit into
        the budget.
        """
        limit = budget_amount(self.fitted.budget, self.people.costs, self.fitted.background.start)
        return next_question(self.fitted.policy, self.people, limit)[0]

    @cached_property
    def wishes(self) -> dict[str, BoolArray]:
        """Who differs from people without an overlay, (people,) each: declined a question, pays
        other prices, has limits on plans.
        """
        declined = ~self.known & ~self.people.askable & ~self.fitted.never_ask
        rules, on_plans = self.fitted.rules, self.people.overlay.without("never_ask")
        return {
            "declined": declined.any(axis=1),
            "prices": (self.people.costs != self.fitted.card_costs).any(axis=1),
            "limits": np.full(len(self), rules.tighten(on_plans) != rules),
        }

    def plans(self, k: int | None = None, overlay: Overlay | None = None) -> Plans:
        """At most ``k`` plans for each refused person; searched once for the same ``k`` and limits.

        The limits of ``overlay`` come on top of the people's own; one that loosens a rule is a
        ``SettingError``.
        """
        return self._search(k, overlay)

    def _search(self, k: int | None, overlay: Overlay | None = None, enough: float = 1.0) -> Plans:
        """Plans; with ``enough`` below 1 just so many as tell whether one survives in that share of
        completions.
        """
        limits = self.people.overlay.tighten(overlay)
        key = (k, limits.to_json(), enough)
        if key not in self._plans:
            people = self.explained
            self._plans[key] = find_recourse(
                people if overlay is None else replace(people, overlay=limits),
                self.fitted.searcher,
                rules=self.fitted.operator_rules,
                desired_class=self.fitted.favourable,
                k=k,
                enough_survival=enough,
            )
        return self._plans[key]

    def signal(self, k: int | None = None) -> Float64Array:
        """What the stop rule watches, (people,); NaN: no plan. Pass the ``k`` of ``plans`` to reuse
        its search.
        """
        return self._signal(self.plans(k))

    def _signal(self, plans: Plans) -> Float64Array:
        if not len(plans):
            return np.full(len(self), np.nan)
        watched = self.fitted.promise.ending.signal
        signal = signal_of(plans, self.explained.probabilities, watched)
        signal = np.where(plans.legal, signal, np.nan)
        return np.where(self.fitted.lacks_need(self.explained, signal), NEVER, signal)

    def stops(self, tau: float, k: int | None = None) -> BoolArray:
        """Who is stopped here by the rule "act at the first plan whose signal is at most tau", if
        they get here.
        """
        if self.fitted.promise.ending.signal != "uncertainty":
            return self._stops(tau, k) if self.refused.any() else np.zeros(len(self), dtype=bool)
        # The model's uncertainty is known without a plan: only where it is low enough is one looked
        # for.
        low = self.refused & (uncertainty(self.explained.probabilities) <= tau)
        if low.all():
            return self._stops(tau, k)
        stopped, rows = np.zeros(len(self), dtype=bool), np.flatnonzero(low)
        if len(rows):
            stopped[rows] = self._take(rows)._stops(tau, k)
        return stopped

    def _take(self, rows: IntArray) -> "Assessment":
        return replace(self, people=self.explained.take(rows), _plans={})

    def _stops(self, tau: float, k: int | None) -> BoolArray:
        """``stops``, with plans for everybody here."""
        # One plan that survives clearly often enough says it; the best one is not needed, unless it
        # is looked at again.
        searcher = self.fitted.searcher
        again = isinstance(searcher, SurvivalSearch) and searcher.second_look > 0
        planned = any(enough == 1.0 for *_, enough in self._plans)
        watched = self.fitted.promise.ending.signal
        enough = 1.0 if planned or again or watched != "survival" else 1 - tau + 1e-9
        plans = self._search(k, enough=min(enough, 1.0))
        return np.asarray(self.refused & (self._signal(plans) <= tau))
