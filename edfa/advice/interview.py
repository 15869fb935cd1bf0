"""One person's conversation with an advisor.

``AnswerLog`` holds what was told: answers and refusals, each checked when it is made;
``Interview``, which ``Advisor.interview`` begins, says what follows from it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edfa.advice.assessment import (
    Assessment,
    Decision,
    Question,
    describe_decision,
    describe_question,
)
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.promise import CertifyLater, Progress
from edfa.advice.receipt import Receipt, now, versions
from edfa.advice.standing import Standing, find_standing
from edfa.cache import Cache
from edfa.certification.certificate import Certificate
from edfa.data.encode import Encoder, Flag
from edfa.data.rules import NO_OVERLAY, Overlay
from edfa.data.schema import Schema
from edfa.errors import (
    DataError,
    EdfaError,
    FactError,
    MismatchError,
    PendingError,
    SettingError,
    UnknownNameError,
    UnreadableError,
    check_known,
)
from edfa.explanation.partition import Person
from edfa.predictors.user_model.given import Given, numbers_given
from edfa.reading import is_unicode, one_line, parse, parse_object
from edfa.recourse.plans import NoPlan, Plan
from edfa.text import html, narrate
from edfa.text.flags import flag_sentence
from edfa.text.interview_page import interview_html
from edfa.text.phrases import table
from edfa.typing import NAN, BoolArray, Float32Array

if TYPE_CHECKING:
    from edfa.advice.advisor import Advisor

VERSION = 1  # of ``Interview.to_json``
K = 3  # plans that are offered
# assessments in memory, which interviews of people with the same facts share
STATES_IN_MEMORY = 512
Kind = Literal["start", "answer", "decline"]
MAX_ANSWER_CHARACTERS = 10_000  # characters of one answer
LONGEST_NAME = 60  # characters of an unknown name that are repeated
LARGEST_NUMBER = 10**300  # nothing is counted that far, and a float still holds it


@dataclass(frozen=True)
class Event:
    """One entry of the log of an interview.

    Parameters
    ----------
    kind
        ``"start"`` (what is known from the start), ``"answer"`` or ``"decline"``.
    facts
        Values by feature name, in the person's words; None for what is declined.
    asked
        Whether it answered the question that was open.
    """

    kind: Kind
    facts: Mapping[str, Any]
    asked: bool = False


@dataclass(frozen=True, eq=False)
class AnswerLog:
    """What a person said and declined. Nothing in a log changes; every addition makes a new one.

    Parameters
    ----------
    schema, encoder
        The card, and how facts become numbers.
    relevant
        Which features matter, (features,). A fact about one of these that cannot be understood is
        an error; a fact about another feature is recorded, flagged and left out.
    events
        What was told and declined so far, in order.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> log = AnswerLog(table.schema, table.encoder, np.ones(len(table.schema), dtype=bool))
    >>> log = log.add("start", {"age": 35}).add("decline", {"housing": None})
    >>> dict(log.facts), log.declined
    ({'age': 35}, ('housing',))
    """

    schema: Schema
    encoder: Encoder
    relevant: BoolArray
    events: tuple[Event, ...] = ()

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What is known, in the person's words."""
        answers = (event.facts for event in self.events if event.kind != "decline")
        return MappingProxyType({name: value for facts in answers for name, value in facts.items()})

    @cached_property
    def declined(self) -> tuple[str, ...]:
        """What the person will not tell; who tells it after all no longer declines."""
        declined = dict.fromkeys(
            name for event in self.events if event.kind == "decline" for name in event.facts
        )
        return tuple(name for name in declined if name not in self.facts)

    @cached_property
    def row(self) -> Float32Array:
        """The facts as one encoded row, (1, features); NaN: not known, or left out. Numbers beyond
        those of training people are at the edge of these.
        """
        taken = {name: value for name, value in self.facts.items() if self._understood(name, value)}
        return self.encoder.encode_person(taken)[None]

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """The facts that are not taken as told, in the card's order."""
        flags: list[Flag | None] = []
        for name, relevant in zip(self.schema.names, self.relevant, strict=True):
            value = self.facts.get(name)
            if value is not None and value != "":
                if relevant:
                    flags.append(self.encoder[name].find_flag(value))
                elif not self._understood(name, value):
                    flags.append(Flag(name, "left_out", value))
        return tuple(flag for flag in flags if flag is not None)

    def _understood(self, name: str, value: Any) -> bool:
        """Whether a fact of the log can be encoded.

        One of a relevant feature can, or it would not be in the log.
        """
        try:
            self._check(name, value)
        except FactError:
            return False
        return True

    def add(self, kind: Kind, facts: Mapping[str, Any], asked: bool = False) -> "AnswerLog":
        """The log with one more entry; its arguments are those of ``Event``.

        Raises
        ------
        FactError
            If a value cannot be understood, or the feature is known or declined already.
        UnknownNameError
            If there is no such feature.
        """
        if not isinstance(facts, Mapping) or (kind != "start" and not facts):
            raise FactError("an answer names features and their values: {'housing': 'own'}")
        for name in facts:
            self.check_name(name)
            if name in self.facts:
                raise FactError(
                    f"{name} is known already ({self.facts[name]!r}); undo({name!r}) takes it back"
                )
            if kind == "decline" and name in self.declined:
                raise FactError(f"{name} was declined before")
            if kind == "decline" and facts[name] is not None:
                raise FactError(f"{name}: what is declined has no value")
        if kind != "decline":
            facts = {name: self.check_value(name, value) for name, value in facts.items()}
        return replace(self, events=(*self.events, Event(kind, dict(facts), asked)))

    def check_name(self, name: Any) -> None:
        """Raise UnknownNameError unless ``name`` is the name of a feature."""
        if not isinstance(name, str) or name not in self.schema.names:
            known = name[:LONGEST_NAME] if isinstance(name, str) else _kind(name)
            raise UnknownNameError("feature", known, self.schema.names)

    def check_value(self, name: str, value: Any) -> Any:
        """A person's value for a feature as plain data.

        A FactError where it cannot be understood; of a feature that does not matter it is then
        recorded as text.
        """
        relevant = self.relevant[self.schema.index(name)]
        try:
            plain = self._plain(name, value)
        except FactError:
            if relevant:
                raise
            return _as_text(value)
        if relevant:
            self._check(name, plain)
        return plain

    def _plain(self, name: str, value: Any) -> Any:
        """An answer as data that can be written: a text, a finite number, true, false or None.

        Numbers of numpy become plain ones, and NaN becomes None.

        Raises
        ------
        FactError
            For anything else, for a text of more than ``LONGEST`` characters, and for a number that
            is not finite or beyond ``LARGEST``.
        """
        is_scalar = isinstance(value, np.generic | np.ndarray) and not value.ndim
        plain: Any = value.item() if is_scalar else value
        if plain is None or isinstance(plain, bool):
            return plain
        if isinstance(plain, str):
            if len(plain) > MAX_ANSWER_CHARACTERS or not is_unicode(plain):
                raise FactError(
                    f"{name}: an answer is text of at most {MAX_ANSWER_CHARACTERS:,} characters, "
                    "all of them whole"
                )
            return str.__str__(plain)
        if not isinstance(plain, int | float):
            raise FactError(
                f"{name}: {'a word' if self.schema[name].words else 'a number'} is "
                f"needed, not {_kind(plain)}"
            )
        if isinstance(plain, int) and not -LARGEST_NUMBER < plain < LARGEST_NUMBER:
            raise FactError(f"{name}: a number is needed that is not as large")
        if isinstance(plain, float) and not isfinite(plain):
            if np.isnan(plain):
                return None
            raise FactError(f"{name}: a finite number is needed, not {plain!r}")
        return float(plain) if isinstance(plain, float) else int(plain)

    def _check(self, name: str, plain: Any) -> None:
        """Raise FactError unless the encoder understands a value; the message says the unit."""
        feature = self.schema[name]
        if isinstance(plain, bool) and not feature.words:
            raise FactError(f"{name}: a number is needed, not {plain!r}")
        try:
            self.encoder[name].encode_fact(plain)
        except FactError as error:
            unit = (
                f"; it is counted in {feature.unit}" if feature.unit and not feature.words else ""
            )
            raise FactError(f"{error}{unit}") from None


def _kind(value: Any) -> str:
    """What a value is, without saying what is in it."""
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _as_text(value: Any) -> str:
    """Anything as text that can be written: what does not matter is recorded, and left out."""
    try:
        text = str(value)
    except Exception:  # whatever somebody else's object does
        text = _kind(value)
    return text[:MAX_ANSWER_CHARACTERS].encode(errors="replace").decode()


@dataclass(frozen=True)
class Moment:
    """One step of an interview: what was told or declined, and what was decided after it.

    Parameters
    ----------
    step
        Its number from 0.
    kind, facts, asked
        What was told or declined: see ``Event``.
    cost, spent
        What it cost, and everything up to it.
    decision
        The decision after it.
    counterfactual
        The features that can turn that decision.
    unlocked
        Those of them that were known before and could not turn the one before.
    """

    step: int
    kind: Kind
    facts: Mapping[str, Any]
    asked: bool
    cost: float
    spent: float
    decision: Decision
    counterfactual: tuple[str, ...]
    unlocked: tuple[str, ...] = ()


@dataclass(frozen=True)
class SavedInterview:
    """The content of ``Interview.to_json``, as plain data.

    Parameters
    ----------
    advisor
        The fingerprint of the advisor.
    language
        ``"en"`` or ``"de"``.
    overlay
        The person's prices, locks and limits; None: there are none.
    events
        What was told and declined, in order.
    """

    advisor: str
    language: str
    overlay: Mapping[str, Any] | None
    events: tuple[Mapping[str, Any], ...]


class Interview:
    """One person's interview. ``answer``, ``decline`` and ``undo`` change it and return it; all
    else is worked out when it is looked at, and once.

    ``Advisor.interview`` begins one.

    Parameters
    ----------
    fitted
        What the advisor has learnt.
    overlay
        The person's prices, locks and limits for the whole interview, on top of the operator's
        rules, which they only tighten.
    language
        ``"en"`` or ``"de"``.
    certify_later
        Runs such a calibration elsewhere; until it is done, ``standing.status`` is ``"pending"``.
        None: it is run at once.
    states
        Where assessments of people without wishes are remembered, by their facts; interviews with
        the same advisor may share it. By default one of its own, which its copies share.

    Attributes
    ----------
    log
        What was told: an ``AnswerLog``.
    progress
        Called with the number of calibration people that are done, and of all, while a certificate
        is made for the person's wishes; that may take a few seconds. None unless it is set.
    supposed
        Whether this is a what-if; then it can neither be saved nor handed out.

    Examples
    --------
    >>> import edfa
    >>> advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(edfa.load("german"))
    >>> interview = advisor.interview({"age": 35, "purpose": "radio/tv", "credit_amount": 2400})
    >>> interview.question.feature
    'checking_status'
    >>> interview.answer(duration=48).question.feature
    'checking_status'
    >>> interview.answer(checking_status="<0").decision.refused
    True
    >>> [change.feature for change in interview.plans()[0].changes]
    ['duration']
    """

    def __init__(
        self,
        fitted: FittedAdvisor,
        *,
        overlay: Overlay | None = None,
        language: str = "en",
        certify_later: CertifyLater | None = None,
        states: Cache[Assessment] | None = None,
    ) -> None:
        table(language)  # a language nobody speaks is an error now
        self.fitted, self.language, self.supposed = fitted, language, False
        self.progress: Progress | None = None
        if not isinstance(overlay, Overlay | None):
            raise SettingError(f"overlay: Overlay(...) or None, not {overlay!r}")
        self.overlay = overlay or NO_OVERLAY
        self.overlay.check(fitted.rules, fitted.schema, fitted.encoder)
        self.log = AnswerLog(fitted.schema, fitted.encoder, fitted.relevant)
        self._history: list[Assessment] = []  # one after every event of the log
        self.certify_later = certify_later
        # whether they may act, after the events of a log
        self._stood: tuple[AnswerLog, tuple[Standing, Certificate | None]] | None = None
        self._states: Cache[Assessment] = (
            Cache("interviews", STATES_IN_MEMORY) if states is None else states
        )

    def begin(self, facts: Mapping[str, Any]) -> "Interview":
        """Tell what is known from the start.

        Parameters
        ----------
        facts
            Values by feature name; anything may be left out. A feature whose value is None is
            declined, unless training people had gaps there: then that is its value.
        """
        if not isinstance(facts, Mapping):
            raise FactError(
                "an interview begins with names of features and their values: {'housing': 'own'}"
            )
        for name in facts:
            self.log.check_name(name)
        states = {name: self.fitted.encoder[name].states for name in facts}
        declined = [n for n, value in facts.items() if value is None and None not in states[n]]
        told = {name: value for name, value in facts.items() if name not in declined}
        return self._tell(
            Event("start", told), *(Event("decline", {name: None}) for name in declined)
        )

    def answer(self, facts: Mapping[str, Any] | None = None, **values: Any) -> "Interview":
        """Tell one or more facts, asked for or not.

        Parameters
        ----------
        facts, values
            Values by feature name, as a mapping or as keywords.

        Raises
        ------
        FactError
            If a value cannot be understood; nothing is told then.
        """
        answers = {**(facts or {}), **values} if isinstance(facts, Mapping | None) else {}
        if not answers:
            raise FactError("an answer names a feature and its value: answer(housing='own')")
        return self._tell(Event("answer", answers))

    def decline(self, name: str) -> "Interview":
        """Refuse to tell a feature: it is not asked again, and what comes next is planned without
        it.

        Parameters
        ----------
        name
            The feature. It may be told later all the same.
        """
        self.log.check_name(name)
        return self._tell(Event("decline", {name: None}))

    def undo(self, name: str | None = None) -> "Interview":
        """Take back an answer or a refusal.

        Parameters
        ----------
        name
            The feature that it is about, which may be one of the start; None: the last one after
            the start.
        """
        if name is not None:
            self.log.check_name(name)
        told = list(enumerate(self.log.events))[1 if name is None else 0 :]
        positions = [i for i, event in told if name is None or name in event.facts]
        if not positions:
            raise DataError(f"there is nothing {f'about {name!r} ' if name else ''}to undo")
        position = positions[-1]
        events = [*self.log.events[position + 1 :]]
        if not position:
            start = self.log.events[0].facts
            events.insert(0, Event("start", {n: v for n, v in start.items() if n != name}))
        return self._tell(*events, after=position)

    def what_if(self, facts: Mapping[str, Any]) -> "Interview":
        """Another interview in which these facts are, or turn out to be, so; this one stays as it
        is.

        Parameters
        ----------
        facts
            Values by feature name, in place of what was told or beside it.
        """
        other = self.copy()
        other.supposed = True
        other.log, other._history = replace(self.log, events=()), []
        other.begin({**self.log.facts, **facts})
        for name in self.log.declined:
            if name not in facts:
                other.decline(name)
        return other

    @property
    def assessment(self) -> Assessment:
        """What the advisor makes of what is known now; before anything was told, nothing is
        known.
        """
        if not self._history:
            self.begin({})
        return self._history[-1]

    @property
    def decision(self) -> Decision:
        """What is decided from what is known."""
        return describe_decision(self.assessment)

    @property
    def partition(self) -> Person:
        """What can turn the decision, what cannot yet and why, what does not matter to this
        model.
        """
        return self.assessment.partition.person(0)

    @property
    def question(self) -> Question | None:
        """What to ask next; None: nothing more."""
        return describe_question(self.assessment)

    @property
    def flags(self) -> tuple[str, ...]:
        """One sentence for each fact that is not taken as told: beyond what was seen, or not
        understood.
        """
        schema, as_given = self.fitted.schema, self.fitted.model.reads_given
        return tuple(
            flag_sentence(flag, schema, self.language, as_given=as_given) for flag in self.log.flags
        )

    def plans(self, k: int = K, overlay: Overlay | None = None) -> tuple[Plan, ...]:
        """Plans for the person, the best first, the others as different as there are.

        Parameters
        ----------
        k
            The largest number of plans. If there is none, ``why_no_plan`` says why.
        overlay
            Further limits, for this time.
        """
        return tuple(self.assessment.plans(k, overlay))

    def why_no_plan(self, overlay: Overlay | None = None) -> NoPlan | None:
        """Why there is no plan; None if there is one.

        Parameters
        ----------
        overlay
            Further limits, for this time.
        """
        return self.assessment.plans(K, overlay).reasons.get(0)

    @property
    def no_plan(self) -> NoPlan | None:
        """Why there is no plan; None if there is one."""
        return self.why_no_plan()

    @property
    def standing(self) -> Standing:
        """Whether the person may act now; worked out once, until something is told.

        Where that takes a calibration which is made elsewhere (``certify_later``), its status is
        ``"pending"`` until that is done.
        """
        return self._stands()[0]

    @property
    def certificate(self) -> Certificate | None:
        """The certificate under which the person may act now; None if they may not.

        It is the advisor's own, or one that was made for the person's state of knowledge and their
        wishes.
        """
        return self._stands()[1]

    def _stands(self) -> tuple[Standing, Certificate | None]:
        """The standing and its certificate, after the events of the log; worked out once, unless
        it is pending.
        """
        assessment = self.assessment
        if self._stood is None or self._stood[0] is not self.log:
            group = self.fitted.group_of(self.log.row)
            visited = np.concatenate([earlier.X for earlier in self._history])
            stands = find_standing(
                assessment, K, self._assess, group, visited, self.certify_later, self.progress
            )
            if stands[0].status == "pending":
                return stands
            self._stood = (self.log, stands)
        return self._stood[1]

    @property
    def guarantee(self) -> str | None:
        """The certificate in the person's words; None if they may not act now."""
        standing, certificate = self._stands()
        if certificate is None:
            return None
        if not standing.for_wishes:
            return narrate.certificate(certificate, self.language)
        wishes = {"declined", "prices", "limits"} & {*standing.deviations}
        return narrate.certificate(
            certificate, self.language, made_for="wishes" if wishes else "known"
        )

    @property
    def timeline(self) -> tuple[Moment, ...]:
        """Every step, with what was known and decided after it."""
        _ = self.assessment  # which begins where nothing was told
        names = np.array(self.fitted.schema.names)
        moments: list[Moment] = []
        paid, before, known = 0.0, set[str](), np.zeros(len(names), dtype=bool)
        for event, assessment in zip(self.log.events, self._history, strict=True):
            turns = assessment.partition.counterfactual[0]
            spent = float(assessment.people.spent[0])
            moments.append(
                Moment(
                    step=len(moments),
                    kind=event.kind,
                    facts=event.facts,
                    asked=event.asked,
                    cost=spent - paid,
                    spent=spent,
                    decision=describe_decision(assessment),
                    counterfactual=tuple(names[turns].tolist()),
                    unlocked=tuple(n for n in names[turns & known].tolist() if n not in before),
                )
            )
            paid, before, known = spent, {*moments[-1].counterfactual}, assessment.known[0]
        return tuple(moments)

    def receipt(
        self,
        *,
        k: int = K,
        chosen: str | None = None,
        key: bytes | None = None,
        time: str | None = None,
    ) -> Receipt:
        """What was told, decided and offered, to take home.

        Parameters
        ----------
        k
            The largest number of plans.
        chosen
            The id of the plan that the person follows.
        key
            The operator's key of at least 16 bytes that signs it; None: it is not signed.
        time
            In place of the present time.

        Raises
        ------
        PendingError
            While it is being worked out whether the person may act.
        DataError
            If this is a what-if.
        """
        if self.supposed:
            raise DataError("a receipt is for what was told, not for what was supposed")
        if self.standing.status == "pending":
            raise PendingError
        plans, question = self.plans(k), self.question
        if chosen is not None:
            check_known("plan", chosen, [plan.id for plan in plans])
        no_plan = None if plans else self.assessment.plans(k).reasons[0]
        receipt = Receipt(
            time=time or now(),
            advisor=self.fitted.fingerprint,
            versions=versions(),
            language=self.language,
            facts=dict(self.log.facts),
            unknown=tuple(n for n in self.fitted.schema.names if n not in self.log.facts),
            declined=self.log.declined,
            spent=float(self.assessment.people.spent[0]),
            events=tuple(asdict(event) for event in self.log.events),
            overlay=self._overlay(),
            flags=self.flags,
            decision={
                name: value
                for name, value in asdict(self.decision).items()
                if name != "cases" or value
            },
            question=question.feature if question else None,
            plans=tuple(plan.to_dict() for plan in plans),
            no_plan=asdict(no_plan) if no_plan else None,
            k=k,
            chosen=chosen,
            standing=asdict(self.standing),
            certificate=self.guarantee or "",
            certificate_id=self.fitted.promise.certificate_id,
            model=self.fitted.user_model,
        )
        receipt = Receipt.from_json(
            receipt.to_json()
        )  # as it will be read again, so that equal ones are equal
        return receipt if key is None else receipt.sign(key)

    def to_json(self) -> str:
        """The interview as JSON: what was told, the overlay and the advisor's fingerprint;
        ``from_json`` goes on where it was. A what-if is a DataError.
        """
        if self.supposed:
            raise DataError("what was only supposed is not kept; keep the interview it came from")
        events = tuple(asdict(event) for event in self.log.events)
        saved = SavedInterview(self.fitted.fingerprint, self.language, self._overlay(), events)
        return json.dumps({"version": VERSION} | asdict(saved), ensure_ascii=False)

    @classmethod
    def from_json(
        cls, text: str, advisor: "Advisor", *, language: str | None = None
    ) -> "Interview":
        """Go on with an interview that ``to_json`` wrote.

        Parameters
        ----------
        text
            Its JSON. All that was told is checked and assessed again.
        advisor
            The advisor it was held with.
        language
            In place of the interview's.

        Raises
        ------
        UnreadableError
            For a text that ``to_json`` never wrote.
        MismatchError
            For an interview with another advisor.
        """
        table("en" if language is None else language)
        content, fitted = parse_object(text, "this interview"), advisor.fitted
        if "version" not in content or "advisor" not in content:
            raise UnreadableError("this is not an interview")
        written = content.pop("version")
        if type(written) is not int or written != VERSION:
            raise UnreadableError(
                f"this interview is of version {written!r:.20}; version {VERSION} can be read"
            )
        saved = parse(SavedInterview, content, "interview", UnreadableError)
        if saved.advisor != fitted.fingerprint:
            theirs = f"{saved.advisor!r:.40}"
            raise MismatchError(
                f"the interview was held with advisor {theirs}, not "
                f"{fitted.fingerprint!r}; begin a new one"
            )
        try:
            overlay = None if saved.overlay is None else Overlay.from_dict(saved.overlay)
            interview = cls(fitted, overlay=overlay, language=language or saved.language)
            events = enumerate(saved.events)
            return interview.replay(
                parse(Event, event, f"events.{i}", UnreadableError) for i, event in events
            )
        except EdfaError as error:
            raise UnreadableError(f"this interview is damaged: {one_line(error)}") from None

    def replay(self, events: Iterable[Event]) -> "Interview":
        """Tell all that a log says again.

        Parameters
        ----------
        events
            The events of another interview's log, in order.

        Raises
        ------
        UnreadableError
            For an event that cannot have happened: it says that it answered the open question, and
            it did not, or the other way round.
        """
        for event in events:
            self._tell(event)
            if self.log.events[-1].asked != event.asked:
                raise UnreadableError(
                    f"events.{len(self.log.events) - 1}.asked: it is not as it was"
                )
        return self

    def copy(self, *, language: str | None = None, overlay: Overlay | None = None) -> "Interview":
        """Another interview in which the same was told; this one stays as it is when the other goes
        on.

        Parameters
        ----------
        language
            In place of the interview's.
        overlay
            In place of the person's.

        Examples
        --------
        >>> import edfa
        >>> advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(edfa.load("german"))
        >>> interview = advisor.interview({"age": 35})
        >>> other = interview.copy(language="de").answer(duration=48)
        >>> dict(other.log.facts), dict(interview.log.facts)
        ({'age': 35, 'duration': 48}, {'age': 35})
        """  # noqa: E501
        chosen = self.overlay if overlay is None else overlay
        other = Interview(
            self.fitted,
            overlay=chosen,
            language=self.language if language is None else language,
            certify_later=self.certify_later,
            states=self._states,
        )
        other.progress, other.supposed = self.progress, self.supposed
        if chosen != self.overlay:
            return other.replay(self.log.events)
        other.log, other._history = self.log, self._history
        return other

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> "Interview":
        """The same as a copy: the advisor is not copied."""
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise DataError(
            "an interview is kept with to_json() and read with Interview.from_json(text, advisor)"
        )

    def __repr__(self) -> str:
        return f"<Interview: {len(self.log.facts)} facts known, {len(self.log.declined)} declined>"

    def _repr_html_(self) -> str:
        return html.fragment(interview_html(self))

    def _tell(self, *events: Event, after: int | None = None) -> "Interview":
        """Add events to the log, and what follows from each; if one is refused, nothing has
        changed.

        Parameters
        ----------
        events
            What is told or declined; whether it answers the open question is worked out here.
        after
            After how many events of the log they are told; the log's others are dropped. None:
            after all of them.
        """
        if not self._history and events[0].kind != "start":
            self.begin({})
        log = replace(self.log, events=self.log.events[:after])
        history = self._history[:after]
        for event in events:
            question = int(history[-1].next[0]) if event.kind != "start" else -1
            asked = question >= 0 and list(event.facts) == [self.fitted.schema.names[question]]
            log = log.add(event.kind, event.facts, asked)
            relevant = np.where(self.fitted.relevant, log.row, NAN)
            wishes: dict[str, Any] = {}
            if log.declined or self.overlay != NO_OVERLAY:
                declined = np.isin(log.schema.names, log.declined)[None]
                wishes = {"overlay": self.overlay, "declined": declined}
            history = [*history, self._assess(relevant, log, **wishes)]
        self.log, self._history = log, history
        return self

    def _overlay(self) -> dict[str, Any] | None:
        """The person's overlay as plain data; None if there is none."""
        return None if self.overlay == NO_OVERLAY else self.overlay.to_dict()

    def _assess(
        self,
        X: Float32Array,  # noqa: N803
        log: AnswerLog | None = None,
        **wishes: Any,
    ) -> Assessment:
        """An assessment of the person; without wishes the same one for the same facts.

        Parameters
        ----------
        X
            Encoded facts, (1, features).
        log
            Where they were told; None: the log of now.
        wishes
            The ``overlay`` and what is ``declined``, for ``Assessment.of``.
        """
        given: tuple[Given, ...] = ()
        if self.fitted.model.reads_given:
            given = numbers_given((log or self.log).flags, self.fitted.encoder)
        make = partial(Assessment.of, self.fitted, X, given=given, **wishes)
        key = (repr(given).encode() if given else b"") + X.tobytes()
        return make() if wishes else self._states.get(key, make)
