"""What an advisor makes of a batch of partly known people.

One interview is a batch of one, and a file is a batch of many: both read their answers off an
``Assessment``; ``Decision`` and ``Question`` are what it says of one person. Whatever is looked at
is worked out once; of a few people, everything shares one sweep of the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from edfa.acquisition.greedy import Greedy
from edfa.acquisition.loop import budget_amount, next_question
from edfa.acquisition.survival import SurvivalPolicy
from edfa.advice.fitted import NEVER, FittedAdvisor
from edfa.blanket.units import Blanket
from edfa.certification.replay import signal_of, uncertainty
from edfa.data.encode import Levels
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.explanation.necessity import necessity
from edfa.explanation.partition import Partition, members
from edfa.people import People
from edfa.predictors.base import ModelCache, Predictor
from edfa.predictors.user_model.given import Given
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.recourse.survival import Completions
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = [
    "Assess",
    "Assessment",
    "Decision",
    "Question",
    "QuestionReason",
    "describe_decision",
    "describe_question",
]

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
        # Its view may see a person otherwise than most completions: nobody is told that they are
        # refused where most people like them are not.
        others, favourable = people.probabilities.copy(), self.fitted.favourable
        others[:, favourable] = -np.inf
        decided = np.where(self.shares[0] > 1 / 2, favourable, others.argmax(axis=1))
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

    @property
    def declined(self) -> BoolArray:
        """Which features people will not tell, (people, features)."""
        return np.asarray(~self.known & ~self.people.askable & ~self.fitted.never_ask)

    @cached_property
    def wishes(self) -> dict[str, BoolArray]:
        """Who differs from people without an overlay, (people,) each: declined a question, pays
        other prices, has limits on plans.
        """
        rules, on_plans = self.fitted.rules, self.people.overlay.without("never_ask")
        return {
            "declined": self.declined.any(axis=1),
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
        people = self.explained
        if overlay is not None:
            people = replace(people, overlay=people.overlay.tighten(overlay))
        key = (k, str(people.overlay), enough)
        if key not in self._plans:
            self._plans[key] = find_recourse(
                people,
                self.fitted.searcher.content_with(enough),
                rules=self.fitted.operator_rules,
                desired_class=self.fitted.favourable,
                k=k,
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


QuestionReason = Literal["head", "spouse", "unattached", "information", "survival", "policy"]


@dataclass(frozen=True)
class Decision:
    """What the model decides from what is known.

    ``probability`` is that of the favourable class, whatever was decided; ``outcome`` the class
    that was decided, and ``favourable`` whether it is the good one (``refused`` is the opposite).
    Where the advisor decides by a threshold, ``threshold`` is the probability of the favourable
    class that is needed; otherwise the likeliest class wins. Where a user model
    decides and not everything is known, ``probability`` is the share of ``cases``, in which what is
    not known was filled in from people like this one, for which that model decides favourably.

    Examples
    --------
    >>> Decision(0.31, "bad", favourable=False).refused
    True
    """

    probability: float
    outcome: str
    favourable: bool
    threshold: float | None = None
    cases: int | None = None

    @property
    def refused(self) -> bool:
        """Whether it is not the outcome a person would want."""
        return not self.favourable


@dataclass(frozen=True)
class Question:
    """What to ask next, what it costs, and why.

    ``why`` is one of: ``"head"`` (a parent or child of the outcome, which opens the unit ``unit``,
    itself), ``"spouse"`` (it stands behind ``unit``, whose part it completes), ``"unattached"`` (a
    member behind no child), ``"information"`` (it tells most about the outcome per cost),
    ``"survival"`` (it makes today's best plan likelier to last, from ``survival_now`` to
    ``survival_then``), or ``"policy"`` (another policy's choice). ``unlocks`` names facts that are
    known and cannot turn the decision now, but may once this one is known. ``spent`` is what was
    paid so far, ``left`` how many more questions there may be, this one included. ``choices`` are
    the levels an answer may have; for a number, ``low`` and ``high`` are its ends.
    """

    feature: str
    cost: float
    spent: float
    why: QuestionReason
    unit: str | None = None
    unlocks: tuple[str, ...] = ()
    survival_now: float | None = None
    survival_then: float | None = None
    left: int = 1
    choices: tuple[str | float, ...] = ()
    low: float | None = None
    high: float | None = None


def describe_decision(assessment: Assessment) -> Decision:
    """What is decided about the one person of ``assessment``."""
    fitted, code = assessment.fitted, int(assessment.decision[0])
    words: dict[str, Any] = {
        "outcome": fitted.schema.classes[code],
        "favourable": code == fitted.favourable,
    }
    if assessment.shares is None:
        return Decision(float(assessment.probability[0]), threshold=fitted.threshold, **words)
    share, cases = assessment.shares
    return Decision(float(share[0]), cases=cases, **words)


def describe_question(assessment: Assessment) -> Question | None:
    """What to ask the one person of ``assessment`` next, and why; None: nothing more."""
    if (chosen := int(assessment.next[0])) < 0:
        return None
    fitted = assessment.fitted
    name, column = fitted.schema.names[chosen], fitted.encoder.columns[chosen]
    details: dict[str, Any] = _reason(assessment, name)
    if isinstance(column, Levels):
        details["choices"] = column.levels
    else:
        details |= {"low": column.low, "high": column.high}
    inside = members(fitted.schema.names, fitted.policy.blanket)
    return Question(
        feature=name,
        cost=float(assessment.people.costs[0, chosen]),
        spent=float(assessment.people.spent[0]),
        left=int((assessment.people.askable[0] & inside).sum()),
        **details,
    )


def _reason(assessment: Assessment, name: str) -> dict[str, Any]:
    """Why this feature: its place in the blanket, what it tells, or how much longer advice lasts
    with it.
    """
    policy, blanket = assessment.fitted.policy, assessment.fitted.policy.blanket
    why: QuestionReason = "policy"
    unit: str | None = None
    if isinstance(policy, Greedy):
        why = "information"
    elif blanket is not None and name in blanket:
        why, unit = _position(assessment, blanket, name)
    details: dict[str, Any] = {"why": why, "unit": unit}
    if blanket is not None:
        details["unlocks"] = _unlocks(assessment, blanket, name)
    if isinstance(policy, SurvivalPolicy):
        details |= {"why": "survival"} | _survival(assessment, policy, name)
    return details


def _survival(assessment: Assessment, policy: SurvivalPolicy, name: str) -> dict[str, float]:
    """How often advice lasts before and after this question: of this person, or on average in the
    order learnt.
    """
    if policy.personal:
        chosen = assessment.fitted.schema.index(name)
        asked = np.arange(assessment.X.shape[1])[None] == chosen
        now, then = policy.expected(assessment.people, asked)
        return {"survival_now": float(now[0]), "survival_then": float(then[0, chosen])}
    order = [step.feature for step in policy.steps_]
    if name not in order:
        return {}
    schema, relevant = assessment.fitted.schema, assessment.fitted.relevant
    before = {*order[: order.index(name)], *(n for n in schema.start if relevant[schema.index(n)])}
    if not all(
        assessment.known[0, schema.index(other)] for other in before
    ):  # nobody was tried who knew just this
        return {}
    step = policy.steps_[order.index(name)]
    return {"survival_now": step.before, "survival_then": step.after}


def _position(
    assessment: Assessment, blanket: Blanket, name: str
) -> tuple[QuestionReason, str | None]:
    """Whether the feature heads a unit, stands behind one (preferably one whose head is known), or
    behind none.
    """
    if name in blanket.units:
        return "head", name
    heads = [head for head, spouses in blanket.units.items() if name in spouses]
    known = [head for head in heads if assessment.known[0, assessment.fitted.schema.index(head)]]
    return ("spouse", (known or heads)[0]) if heads else ("unattached", None)


def _unlocks(assessment: Assessment, blanket: Blanket, name: str) -> tuple[str, ...]:
    """Known facts of the same units that cannot turn the decision as long as this one is not
    known.
    """
    units = [
        (head, *spouses)
        for head, spouses in blanket.units.items()
        if name == head or name in spouses
    ]
    others = dict.fromkeys(other for unit in units for other in unit if other != name)
    known = [
        other for other in others if assessment.known[0, assessment.fitted.schema.index(other)]
    ]
    if not known:
        return ()
    waits = assessment.partition.semifactual[0]
    return tuple(other for other in known if waits[assessment.fitted.schema.index(other)])
