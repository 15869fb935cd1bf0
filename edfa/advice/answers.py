"""What an interview answers with, as plain records: decision, question, standing, moments."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from edfa.acquisition.greedy import Greedy
from edfa.acquisition.survival import SurvivalPolicy
from edfa.advice.answer_log import Event
from edfa.advice.assessment import Assessment
from edfa.blanket.units import Blanket
from edfa.data.encode import Levels
from edfa.explanation.partition import members
from edfa.reading import parse

__all__ = [
    "DEVIATIONS",
    "Decision",
    "Moment",
    "Question",
    "QuestionReason",
    "Standing",
    "Status",
    "describe_decision",
    "describe_question",
    "moments",
]

QuestionReason = Literal["head", "spouse", "unattached", "information", "survival", "policy"]
Status = Literal[
    "act", "ask", "unsure", "granted", "no_plan", "not_certified", "off_path", "pending"
]
DEVIATIONS = ("start", "order", "passed", "declined", "prices", "limits")


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

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Decision":
        """Read what ``to_json`` wrote."""
        return parse(cls, json.loads(text), "decision")


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

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Question":
        """Read what ``to_json`` wrote."""
        values: dict[str, Any] = json.loads(text)
        return parse(cls, values, "question")


@dataclass(frozen=True)
class Standing:
    """Whether a person may act now.

    ``"act"``: today's first plan is one that a certificate speaks of. ``"ask"``: there is a plan,
    and the certified rule asks on. ``"unsure"``: everything is asked, and the plan is too likely to
    fail. ``"granted"``: the decision is favourable. ``"no_plan"``: refused, and nothing to act on
    yet. ``"not_certified"``: nothing is promised to anybody. ``"off_path"``: the person is not
    where the advisor's certificate looks at people (asked in the policy's order up to the point
    where its rule says "act", for the card's prices, under the operator's rules), and there is no
    certificate for the state and the wishes they have; in a file, perhaps none that was tried.
    ``"pending"``: a certificate for the state that the person is in is being made; look again.

    ``deviations`` says how this person differs (one or more of ``DEVIATIONS``: facts of the start
    set are not known, others were told out of order, they went on past the point where the rule
    said "act", which was at step ``since`` of the path, something was declined, prices or limits on
    plans are their own). ``for_wishes`` says that the certificate was made for
    their state and wishes: see ``certify_for``.

    ``signal`` is what the rule watches (none without a plan), ``tau`` its threshold (none without a
    certificate).
    """

    status: Status
    signal: float | None = None
    tau: float | None = None
    since: int | None = None
    deviations: tuple[str, ...] = ()
    for_wishes: bool = False

    @property
    def may_act(self) -> bool:
        """Whether the certificate covers acting on today's first plan."""
        return self.status == "act"


@dataclass(frozen=True)
class Moment:
    """One step of an interview: what was told or declined, what it cost, and what was known and
    decided after it.

    ``asked`` says whether it answered the question that was open. ``unlocked`` names facts that
    were known before and can turn the decision since this step.
    """

    step: int
    kind: Literal["start", "answer", "decline"]
    facts: Mapping[str, Any]
    asked: bool
    cost: float
    spent: float
    decision: Decision
    counterfactual: tuple[str, ...]
    unlocked: tuple[str, ...] = ()


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


def moments(events: Sequence[Event], history: Sequence[Assessment]) -> Iterator[Moment]:
    """What was known and decided after each event of an interview, given the assessment after
    each.
    """
    before: tuple[str, ...] = ()
    paid, known = 0.0, np.zeros(0, dtype=bool)
    for step, (event, assessment) in enumerate(zip(events, history, strict=True)):
        names, turns = (
            np.array(assessment.fitted.schema.names),
            assessment.partition.counterfactual[0],
        )
        spent = float(assessment.people.spent[0])
        unlocked = (
            [name for name in names[turns & known].tolist() if name not in before] if step else []
        )
        before, known = tuple(names[turns].tolist()), assessment.known[0]
        yield Moment(
            step=step,
            kind=event.kind,
            facts=event.facts,
            asked=event.asked,
            cost=spent - paid,
            spent=spent,
            decision=describe_decision(assessment),
            counterfactual=before,
            unlocked=tuple(unlocked),
        )
        paid = spent
