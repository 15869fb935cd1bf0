"""What an advisor makes of a batch of partly known people.

One interview is a batch of one, and a file is a batch of many: both read their answers off an
``Assessment``, which ``Assessment.of`` makes; ``Decision`` and ``Question`` are what it says of one
person. Whatever is looked at is worked out once; of a few people, everything shares one sweep of
the model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from edfa.acquisition.greedy import Greedy
from edfa.acquisition.loop import budget_amount, next_question
from edfa.acquisition.survival import SurvivalPolicy
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.signals import find_signals
from edfa.certification.endings import EndingName
from edfa.certification.replay import OF_PLANS, uncertainty
from edfa.data.encode import Levels, Measure
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.explanation.necessity import necessity
from edfa.explanation.partition import Partition, members
from edfa.people import People
from edfa.predictors.base import ModelCache, Predictor
from edfa.predictors.user_model.given import Given
from edfa.recourse.find import find_recourse
from edfa.recourse.plans import Plans
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

FEW_PEOPLE = 16  # people of whom everything is read off one sweep
# rows, about, that a user model is asked to say what can turn one person's decision
SWEPT = 100_000
YEARS_AHEAD = 2  # that people are asked to wait for what grows by itself
LEAST_HELP = 0.01  # of a probability, that is worth waiting for
Assess = Callable[[Float32Array], "Assessment"]
"""Makes, or finds again, the assessment of people without an overlay from their encoded facts
(people, features).
"""


@dataclass(frozen=True, eq=False)
class Assessment:
    """Partly known people and all that an advisor says of them.

    Parameters
    ----------
    fitted
        The advisor.
    people
        The people: ``people.askable`` is what may be asked and has not been declined,
        ``people.costs`` are each person's prices, ``people.overlay`` is what all of them have set
        themselves, beyond the operator's rules, and ``people.predictor`` is the model as it is
        asked about them.
    """

    fitted: FittedAdvisor
    people: People
    _plans: dict[Any, Plans] = field(default_factory=dict, repr=False)
    _signals: dict[Any, Mapping[EndingName, Float64Array]] = field(default_factory=dict, repr=False)

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
        """Assess people by what is known of them.

        Parameters
        ----------
        fitted
            The advisor.
        X
            Encoded facts, (people, features); NaN: not known.
        overlay
            What all of these people have set themselves.
        declined
            What they will not tell and is not asked again, (people, features); None: nothing.
        given
            Numbers beyond all that training people showed, which all of them gave: a user model is
            asked about these.
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
        people = self.people.with_sweep() if 0 < len(self) <= FEW_PEOPLE else self.people
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
        """What people are told of the favourable class, (people,): its probability, or with a user
        model the share of completions that it decides favourably.

        Of whom all that such a model uses is known, it is the probability that the model gives.
        """
        if self.shares is None:
            return self.probability
        complete = self.people.predictor.is_enough(self.known)
        return np.where(complete, self.probability, self.shares[0])

    @cached_property
    def shares(self) -> tuple[Float64Array, int] | None:
        """The share of completions that a user model decides favourably, (people,), and the number
        of completions of each person.

        None where another model decides, or everything that it uses is known: then the probability
        says it.
        """
        if not self.people.predictor.decides_by_completions(self.known):
            return None
        share = self.fitted.completions.decided_share(self.people, self.fitted.favourable)
        return share, self.fitted.completions.neighbours.k

    def majority(self, row: int = 0) -> Predictor:
        """The model that decides about the person in ``row``, and about whoever differs from them
        in known facts alone.

        While facts are missing that a user model uses, it decides by most of the person's
        completions.
        """
        predictor = self.people.predictor
        if self.shares is None:
            return predictor
        completions = self.fitted.completions.neighbours.complete(self.X[row][None])[0]
        return predictor.over_completions(completions, self.fitted.favourable)

    @cached_property
    def partition(self) -> Partition:
        """What can turn each person's decision, what cannot yet, what never will.

        With a user model that is what changes its decision in most completions of the person.
        """
        whole = self.explained.partition
        if self.shares is None:
            return whole
        background, rows = self.fitted.background, np.empty(self.X.shape)
        rows_each = self.X.shape[1] * self.fitted.completions.neighbours.k
        most = max(4, min(background.support.most, SWEPT // rows_each))
        # A memory of its own, of one person: nobody asks again.
        support = replace(background.support, cache=ModelCache(1), most=most)
        for row in range(len(self)):
            rows[row] = necessity(
                self.X[row][None], self.majority(row), support, background.visible
            )[0]
        return replace(whole, necessity=rows)

    @cached_property
    def helped_by_time(self) -> tuple[str, ...]:
        """Names of the known facts of the first person that grow by themselves, and whose growth
        in ``YEARS_AHEAD`` years raises the probability of the favourable class by ``LEAST_HELP``.
        """
        schema, rules, now = self.fitted.schema, self.fitted.rules, self.X[:1]
        per_year = np.array([rules.per_year.get(f.name, f.per_year) for f in schema])
        growing = np.flatnonzero((per_year != 0) & self.known[0])
        rows = np.repeat(now, len(growing) + 1, axis=0)  # the last one stays as it is
        for row, i in zip(rows, growing, strict=False):
            row[i] = _grown(self.fitted.encoder.columns[i], row[i], YEARS_AHEAD * per_year[i])
        chance = self.majority().predict_proba(rows)[:, self.fitted.favourable]
        return tuple(schema.names[i] for i in growing[chance[:-1] >= chance[-1] + LEAST_HELP])

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
        """Who differs from people without an overlay, (people,) each: who ``"declined"`` a
        question, who pays other ``"prices"``, and who has ``"limits"`` on plans.
        """
        return {
            "declined": self.declined.any(axis=1),
            "prices": (self.people.costs != self.fitted.background.costs).any(axis=1),
            "limits": np.full(len(self), self.limits != NO_OVERLAY),
        }

    @cached_property
    def limits(self) -> Overlay:
        """The people's limits on plans alone, without prices; ``NO_OVERLAY`` where these change
        nothing about the rules of everybody.
        """
        rules, limits = self.fitted.rules, replace(self.people.overlay, never_ask=(), prices={})
        return NO_OVERLAY if rules.tighten(limits) == rules else limits

    def plans(
        self, k: int | None = None, overlay: Overlay | None = None, enough: float = 1.0
    ) -> Plans:
        """Plans for each refused person; searched once for the same arguments.

        Parameters
        ----------
        k
            The largest number of plans for each person; None: as many as the searcher finds.
        overlay
            Limits on top of the people's own; one that loosens a rule is a ``SettingError``.
        enough
            Below 1 a searcher that looks for plans that survive may stop at the first one that
            does in this share of completions.
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

    def signals(
        self, k: int | None = None, enough: float = 1.0
    ) -> Mapping[EndingName, Float64Array]:
        """What the stop rules watch, (people,) by the name of the ending; NaN where it is not
        possible. The arguments are those of ``plans``, whose search is used again.
        """
        key = (k, enough)
        if key not in self._signals:
            self._signals[key] = find_signals(self.fitted, self.plans(k, enough=enough))
        return self._signals[key]

    def stops(self, tau: Mapping[EndingName, float], k: int | None = None) -> BoolArray:
        """Who is told an ending here, if they get here, (people,).

        Parameters
        ----------
        tau
            The threshold of each ending by its name; NaN: nobody is told so.
        k
            As for ``plans``.
        """
        act, watched = tau["act"], self.fitted.promise.ending.signal
        alone = len(tau) == 1
        if alone and watched == "uncertainty":
            # It is known without a plan: only where it is low enough is one looked for.
            low = self.refused & (uncertainty(self.explained.probabilities) <= act)
            if not low.all():
                stopped, rows = np.zeros(len(self), dtype=bool), np.flatnonzero(low)
                if len(rows):
                    some = replace(self, people=self.explained.take(rows), _plans={}, _signals={})
                    stopped[rows] = some.stops(tau, k)
                return stopped
        # One plan that is clearly sure enough says it; the best one is not needed, unless it is
        # looked at again.
        searcher = self.fitted.searcher
        again = isinstance(searcher, SurvivalSearch) and searcher.second_look > 0
        planned = any(enough == 1.0 for *_, enough in self._plans)
        # The effort that is compared with a later one's is that of the best plan, though.
        weighed = watched == "help" and self.fitted.schema.effort_per_price > 0
        quick = watched in OF_PLANS and not (planned or again or weighed or np.isnan(act))
        signals = self.signals(k, min(1 - act + 1e-9, 1.0) if quick else 1.0)
        told = [signal <= tau[name] for name, signal in signals.items()]
        return np.asarray(np.logical_or.reduce(told))


QuestionReason = Literal[
    "head", "spouse", "unattached", "information", "survival", "endings", "policy"
]


@dataclass(frozen=True)
class Decision:
    """What the model decides from what is known.

    Parameters
    ----------
    probability
        That of the favourable class, whatever was decided; or the share of ``cases`` for which a
        user model decides favourably.
    outcome
        The class that was decided.
    favourable
        Whether it is the good one.
    threshold
        The probability of the favourable class that is needed; None: the likeliest class wins.
    cases
        The number of completions, in which what is not known was filled in from people like this
        one; None unless a user model decides and something that it uses is not known.

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

    Parameters
    ----------
    feature, cost
        What is asked, and its price.
    spent
        What was paid so far.
    why
        ``"head"`` (a parent or child of the outcome, which opens the unit ``unit``, itself),
        ``"spouse"`` (it stands behind ``unit``, whose part it completes), ``"unattached"`` (a
        member of the blanket behind no child), ``"information"`` (it tells most about the outcome
        per cost), ``"survival"`` (it makes today's best plan likelier to last), ``"endings"`` (it
        tells most about how the interview ends, per cost), or ``"policy"`` (another policy's
        choice).
    unit
        The parent or child of the outcome that leads the feature's unit, if there is one.
    unlocks
        Facts that are known and cannot turn the decision now, but may once this one is known.
    survival_now, survival_then
        How often the best plan survives now, and once this is answered, where that is known.
    ended_by
        Of people who were asked this at this point, the share who needed no further question; None:
        that is not known.
    left
        How many more questions there may be, this one included.
    choices, low, high
        The levels that an answer may have; for a number, its ends.
    """

    feature: str
    cost: float
    spent: float
    why: QuestionReason
    unit: str | None = None
    unlocks: tuple[str, ...] = ()
    survival_now: float | None = None
    survival_then: float | None = None
    ended_by: float | None = None
    left: int = 1
    choices: tuple[str | float, ...] = ()
    low: float | None = None
    high: float | None = None


def describe_decision(assessment: Assessment) -> Decision:
    """What is decided about the one person of ``assessment``.

    Of a user model that cannot be asked yet, because something that it uses is not known, it is
    what it decides in most of the person's completions.
    """
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
    inside = members(fitted.schema.names, fitted.policy.blanket)
    return Question(
        feature=fitted.schema.names[chosen],
        cost=float(assessment.people.costs[0, chosen]),
        spent=float(assessment.people.spent[0]),
        left=int((assessment.people.askable[0] & inside).sum()),
        **possible_answers(fitted.encoder.columns[chosen]),
        **_reason(assessment, fitted.schema.names[chosen]),
    )


def _grown(column: Levels | Measure, value: float, by: float) -> float:
    """An encoded measurement that is larger by so many units, within the range that is understood;
    anything else as it is.
    """
    if not isinstance(column, Measure):
        return value
    number = value * column.scale + column.mean
    if number < column.low - column.scale * 1e-4:  # a gap or a code, which is below all numbers
        return value
    return (float(np.clip(number + by, column.low, column.high)) - column.mean) / column.scale


def possible_answers(column: Levels | Measure) -> dict[str, Any]:
    """The fields of a ``Question`` that say which answers a feature may have."""
    if isinstance(column, Levels):
        return {"choices": column.levels}
    return {"low": column.low, "high": column.high}


def _reason(assessment: Assessment, name: str) -> dict[str, Any]:
    """The fields of a ``Question`` that say why this feature is asked: its place in the blanket,
    what it tells, or how much longer advice lasts with it.
    """
    policy, blanket = assessment.fitted.policy, assessment.fitted.policy.blanket
    known = _named(assessment, assessment.known[0])
    why: dict[str, Any] = {"why": "policy"}
    if blanket is not None:
        units = [(head, *spouses) for head, spouses in blanket.units.items()]
        own = [unit for unit in units if name in unit]
        heads = [head for head, *_ in own]
        if name in heads:
            why = {"why": "head", "unit": name}
        elif heads:  # behind one whose head is known, if there is one
            why = {"why": "spouse", "unit": next((h for h in heads if h in known), heads[0])}
        elif name in blanket:
            why = {"why": "unattached"}
        if others := [n for n in dict.fromkeys(n for unit in own for n in unit) if n in known]:
            waits = _named(assessment, assessment.partition.semifactual[0])
            why["unlocks"] = tuple(other for other in others if other in waits)
    if isinstance(policy, Greedy):
        why |= {"why": "information", "unit": None}
    if isinstance(policy, SurvivalPolicy) and policy.aim == "endings":
        why |= {"why": "endings", "ended_by": _ended_by(assessment, policy, name, known)}
    elif isinstance(policy, SurvivalPolicy):
        why |= {"why": "survival"} | _survival(assessment, policy, name, known)
    return why


def _named(assessment: Assessment, mask: BoolArray) -> set[str]:
    """The names of the features of a mask, (features,)."""
    return {*np.array(assessment.fitted.schema.names)[mask].tolist()}


def _ended_by(
    assessment: Assessment, policy: SurvivalPolicy, name: str, known: set[str]
) -> float | None:
    """Of people who were asked for a feature at this point of the order learnt, the share whose
    interview ended with the answer; None where the person is not at this point.
    """
    order, shares = policy.order_, assessment.fitted.promise.ended_by
    if name not in order or (place := order.index(name)) >= len(shares):
        return None
    on_path = known == {*assessment.fitted.schema.start, *order[:place]}
    return shares[place] if on_path and not assessment.wishes["declined"][0] else None


def _survival(
    assessment: Assessment, policy: SurvivalPolicy, name: str, known: set[str]
) -> dict[str, float]:
    """The fields of a ``Question`` that say how often advice lasts before and after it.

    Parameters
    ----------
    assessment, policy
        One person, and the policy that asks: one that is ``personal`` says it of this person,
        another one on average over training people in the order that it has learnt.
    name
        The feature that is asked.
    known
        The names of the features that are known.

    Returns
    -------
    dict
        Empty where the person does not know everything that comes before this question in that
        order: no training person was tried in such a state.
    """
    if policy.personal:
        chosen = assessment.fitted.schema.index(name)
        asked = np.arange(assessment.X.shape[1])[None] == chosen
        now, then = policy.expected(assessment.people, asked)
        return {"survival_now": float(now[0]), "survival_then": float(then[0, chosen])}
    before = {*assessment.fitted.schema.start}
    for step in policy.steps_:
        if step.feature == name and before <= known:
            return {"survival_now": step.before, "survival_then": step.after}
        before.add(step.feature)
    return {}
