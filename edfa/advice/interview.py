"""One person's conversation with an advisor: what was told, and what follows from it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Protocol, TypedDict, Unpack

import numpy as np

from edfa.advice.answer_log import AnswerLog, Event, Kind
from edfa.advice.answers import Decision, Moment, Question, Standing
from edfa.advice.assessment import Assessment, Fitted
from edfa.advice.policy_path import Chain
from edfa.advice.reasons import decide, question, standing
from edfa.advice.receipt import Receipt, now, versions
from edfa.errors import DataError, FactError, MismatchError, SettingError, UnknownNameError, UnreadableError
from edfa.explanation.partition import Person
from edfa.parsing import parse
from edfa.recourse.constraints import Constraints
from edfa.recourse.plans import NoPlan, Plan
from edfa.text import html, narrate
from edfa.text.interview_page import sheet
from edfa.text.phrases import table
from edfa.typing import Float64Array

__all__ = ["HasFitted", "Interview", "Offer"]

VERSION = 1
K = 3  # plans that are offered


class HasFitted(Protocol):
    """An advisor, as far as an interview needs one."""

    @property
    def fitted(self) -> Fitted:
        """What it has learnt."""


class Offer(TypedDict, total=False):
    """What a receipt is to say beyond the interview."""

    k: int  # plans that were offered
    constraints: Constraints | None  # under these
    chosen: str | None  # the id of the one that is followed
    key: bytes | None  # what it is signed with
    time: str | None  # instead of now


class Interview:
    """One person's interview. ``answer``, ``decline`` and ``undo`` change it and return it; all else is worked out
    when it is looked at, and once.

    Examples
    --------
    >>> import edfa
    >>> advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(edfa.load("german"))
    >>> interview = advisor.interview({"age": 35, "purpose": "radio/tv", "credit_amount": 2400})
    >>> interview.question.feature
    'checking_status'
    >>> interview.answer(checking_status="<0").question.feature
    'duration'
    >>> interview.answer(duration=48).decision.refused
    True
    >>> [change.feature for change in interview.plans()[0].changes]
    ['duration']
    """

    def __init__(
        self,
        fitted: Fitted,
        *,
        costs: Mapping[str, float] | None = None,
        locks: tuple[str, ...] = (),
        language: str = "en",
        supposed: bool = False,
    ) -> None:
        for name in (*(costs or {}), *locks):
            fitted.schema.index(name)
        table(language)  # a language nobody speaks is an error now
        self.fitted, self.language, self.supposed = fitted, language, supposed
        self.costs, self.locks = dict(costs or {}), tuple(locks)
        self.told = AnswerLog(fitted.schema, fitted.encoder)
        self._prices = _prices(fitted, self.costs)
        self._looks: list[Assessment] = []
        self._chain = Chain(fitted)

    def begin(self, facts: Mapping[str, Any]) -> "Interview":
        """What is known from the start; anything may be left out."""
        return self._add("start", facts, asked=False)

    def answer(self, facts: Mapping[str, Any] | None = None, **values: Any) -> "Interview":
        """Tell one or more facts, asked for or not."""
        told = {**(facts or {}), **values}
        if not told:
            raise FactError("an answer names a feature and its value: answer(housing='own')")
        return self._add("answer", told)

    def decline(self, name: str) -> "Interview":
        """Will not tell: it is not asked again, and what comes next is planned without it."""
        return self._add("decline", {name: None})

    def undo(self, name: str | None = None) -> "Interview":
        """Take back the last answer or refusal, or the one about a feature."""
        place = self.told.place(name)
        later = self.told.events[place + 1 :]
        self.told, self._chain = replace(self.told, events=self.told.events[:place]), Chain(self.fitted)
        del self._looks[place:]
        for event in later:
            self._add(event.kind, event.facts)
        return self

    def what_if(self, facts: Mapping[str, Any]) -> "Interview":
        """Another interview in which these facts are, or turn out to be, so. This one stays as it is."""
        other = Interview(self.fitted, costs=self.costs, locks=self.locks, language=self.language, supposed=True)
        other.begin({**self.told.facts, **facts})
        for name in self.told.declined:
            if name not in facts:
                other.decline(name)
        return other

    @property
    def look(self) -> Assessment:
        """The state the person is in; before anything was told, nothing is known."""
        if not self._looks:
            self.begin({})
        return self._looks[-1]

    @property
    def decision(self) -> Decision:
        """What is decided from what is known."""
        return decide(self.look)

    @property
    def partition(self) -> Person:
        """What can turn the decision, what cannot yet and why, what never matters."""
        return self.look.partition.person(0)

    @property
    def question(self) -> Question | None:
        """What to ask next; None: nothing more."""
        return question(self.look)

    def plans(self, k: int = K, constraints: Constraints | None = None) -> tuple[Plan, ...]:
        """At most k plans, the best first, the others as different as there are; none where ``no_plan`` says why."""
        return tuple(self.look.plans(k, constraints))

    @property
    def no_plan(self) -> NoPlan | None:
        """Why there is no plan, where there is none."""
        return self.look.plans(K).reasons.get(0)

    @property
    def standing(self) -> Standing:
        """Whether the person may act now."""
        course = self._chain.reach(self._looks)
        wishes = {"declined": bool(self.told.declined), "costs": bool(self.costs), "locks": bool(self.locks)}
        return standing(self.look, course[:-1], self._chain.off(self.look, course[-1], **wishes), K)

    @property
    def certificate(self) -> str | None:
        """The guarantee in words, where the person may act now under it."""
        given = self.fitted.certificate
        return narrate.certificate(given, self.language) if given is not None and self.standing.may_act else None

    @property
    def timeline(self) -> tuple[Moment, ...]:
        """Every step, with what was known and decided after it."""
        return tuple(self._moments())

    def receipt(self, **offer: Unpack[Offer]) -> Receipt:
        """What was told, decided and offered, to take home; signed where there is a key."""
        if self.supposed:
            raise DataError("a receipt is for what was told, not for what was supposed")
        k, constraints, chosen = offer.get("k", K), offer.get("constraints"), offer.get("chosen")
        plans, asked = self.plans(k, constraints), self.question
        if chosen is not None and chosen not in [plan.id for plan in plans]:
            raise UnknownNameError("plan", chosen, [plan.id for plan in plans])
        none = None if plans else self.look.plans(k, constraints).reasons[0]
        told = Receipt(
            time=offer.get("time") or now(),
            advisor=self.fitted.fingerprint,
            versions=versions(),
            language=self.language,
            facts=dict(self.told.facts),
            unknown=self.told.unknown,
            declined=self.told.declined,
            spent=float(self.look.spent[0]),
            events=tuple(asdict(event) for event in self.told.events),
            costs=self.costs,
            locks=self.locks,
            decision=asdict(self.decision),
            question=asked.feature if asked else None,
            plans=tuple(asdict(plan) for plan in plans),
            no_plan=asdict(none) if none else None,
            k=k,
            constraints=json.loads(constraints.to_json()) if constraints else None,
            chosen=chosen,
            standing=asdict(self.standing),
            certificate=self.certificate or "",
        )
        told = Receipt.from_json(told.to_json())  # as it will be read again, so that equal ones are equal
        return told.sign(key) if (key := offer.get("key")) else told

    def to_json(self) -> str:
        """As JSON; ``from_json`` goes on where it was."""
        if self.supposed:
            raise DataError("what was only supposed is not kept; keep the interview it came from")
        events = [asdict(event) for event in self.told.events]
        told = {"version": VERSION, "advisor": self.fitted.fingerprint, "language": self.language}
        return json.dumps(told | {"costs": self.costs, "locks": self.locks, "events": events}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, advisor: HasFitted) -> "Interview":
        """Go on with an interview that ``to_json`` kept, with the advisor it was held with."""
        try:
            told = json.loads(text)
            written, theirs, mine = told["version"], told["advisor"], advisor.fitted.fingerprint
        except (ValueError, KeyError, TypeError):
            raise UnreadableError("this is not an interview") from None
        if written != VERSION:
            raise UnreadableError(f"this interview is of version {written}; version {VERSION} can be read")
        if theirs != mine:
            raise MismatchError(f"the interview was held with advisor {theirs!r}, not {mine!r}; begin a new one")
        made = cls(advisor.fitted, costs=told["costs"], locks=tuple(told["locks"]), language=told["language"])
        return made.replay(parse(Event, event, "events") for event in told["events"])

    def replay(self, events: Iterator[Event]) -> "Interview":
        """Take up a log."""
        for event in events:
            self._add(event.kind, event.facts, event.asked)
        return self

    def __repr__(self) -> str:
        return f"<Interview: {len(self.told.facts)} facts known, {len(self.told.declined)} declined>"

    def _repr_html_(self) -> str:
        return html.shown(sheet(self))

    def _add(self, kind: Kind, facts: Mapping[str, Any], asked: bool | None = None) -> "Interview":
        if asked is None:
            open_ = int(self.look.next[0])
            asked = open_ >= 0 and list(facts) == [self.fitted.schema.names[open_]]
        self.told = self.told.add(kind, facts, asked)
        shown = np.where(self.fitted.heeded, self.told.row, np.float32(np.nan))
        self._looks.append(Assessment(self.fitted, shown, self.told.refusals, self._prices, self.locks))
        return self

    def _moments(self) -> Iterator[Moment]:
        before: tuple[str, ...] = ()
        paid, known = 0.0, np.zeros(len(self.fitted.schema), dtype=bool)
        names = np.array(self.fitted.schema.names)
        for step, (event, look) in enumerate(zip(self.told.events, self._looks, strict=True)):
            turns = look.partition.counterfactual[0]
            spent = float(look.spent[0])
            unlocked = [name for name in names[turns & known].tolist() if name not in before]
            before, known = tuple(names[turns].tolist()), look.known[0]
            told = (event.kind, event.facts, event.asked, spent - paid, spent, decide(look), before)
            yield Moment(step, *told, unlocked=tuple(unlocked) if step else ())
            paid = spent


def _prices(fitted: Fitted, costs: Mapping[str, float]) -> Float64Array:
    """A row of prices, the person's own where there are some."""
    found = fitted.schema.costs.astype(float)[None].copy()
    for name, price in costs.items():
        place = fitted.schema.index(name)
        if not isinstance(price, int | float) or not 0 <= price < float("inf"):
            raise SettingError(f"costs.{name}: a price is a number, zero or more, not {price!r}")
        if price == 0 and not fitted.start[place]:
            raise SettingError(f"costs.{name}: what costs nothing is told at the start; give a price above zero")
        found[0, place] = price
    return found
