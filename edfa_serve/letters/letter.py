"""The letter to somebody who was refused: why, from which facts, what would change it, and what
they can do about it.

``write_letter`` writes it about an interview, ``letter_of_receipt`` about a receipt. What was
decided, by whom and when is the operator's to declare; the reasons come from the decision itself.
Nothing that a letter must say is left out silently: what is missing is an error that names it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import cached_property
from itertools import compress
from numbers import Real
from pathlib import Path
from typing import Any, Literal, get_args

from edfa.advice.fitted import FittedAdvisor
from edfa.advice.interview import Interview
from edfa.advice.principal import NamedReason, Reasons, find_reasons
from edfa.advice.receipt import Receipt
from edfa.advice.verify import replay_receipt, verify
from edfa.errors import DataError, MismatchError, SettingError, check_known
from edfa.text import narrate, phrases
from edfa.text.record import InterviewRecord, PlanRecord
from edfa.text.steps import say_steps
from edfa.writing import write_text
from edfa_serve.letters.page import print_pdf, render_letter
from edfa_serve.letters.settings import SECTIONS, Operator, Template, check_operator
from edfa_serve.letters.words import (
    BUREAU_SOURCES,
    say_letter,
    write_date,
    write_estimate,
    write_origin,
    write_reason,
)

TEMPLATES = get_args(Template)
Kind = Literal["refusal", "request"]
PAPER = {"us": "letter", "eu": "a4"}
DAYS = (("decision", "date"), ("decision", "until"), ("bureau", "score_date"))


@dataclass(frozen=True)
class Facts:
    """The facts of one person by what became of them; names are in the order of the card.

    Parameters
    ----------
    used
        Facts that were shown to the model, with their values.
    unused
        Facts that were told and not shown to it.
    unknown
        Facts that the model would see and nobody has asked for or told.
    declined
        Facts that the person would not tell.
    needed
        Facts that are lacking and may be asked for. No sensitive one is among them: no decision may
        wait for it.
    sources
        Where used facts come from, if not from the person.
    """

    used: Mapping[str, Any]
    unused: tuple[str, ...]
    unknown: tuple[str, ...]
    declined: tuple[str, ...]
    needed: tuple[str, ...]
    sources: frozenset[str]

    @property
    def from_bureau(self) -> bool:
        """Whether a used fact comes from a credit bureau."""
        return not self.sources.isdisjoint(BUREAU_SOURCES)


def sort_facts(interview: Interview) -> Facts:
    """Sort the facts of an interview by what became of them.

    Parameters
    ----------
    interview
        The interview, as it stood when the decision was taken.

    Returns
    -------
    Facts
        Every fact that was told, declined, or is lacking.
    """
    fitted, log = interview.fitted, interview.log
    schema, told, declined = fitted.schema, log.facts, log.declined
    shown = [*compress(schema.names, fitted.predictor.varies_)]
    lacking = [name for name in shown if name not in told]
    never = {*compress(schema.names, fitted.never_ask)}
    used = {name: _value(name, interview) for name in shown if name in told}
    return Facts(
        used=used,
        unused=tuple(name for name in schema.names if name in told and name not in used),
        unknown=tuple(name for name in lacking if name not in declined),
        declined=tuple(name for name in schema.names if name in declined),
        needed=tuple(name for name in lacking if name not in never and not schema[name].sensitive),
        sources=frozenset(schema[name].source for name in used) - {""},
    )


def _value(name: str, interview: Interview) -> Any:
    """A number as it was told; anything else as it was understood."""
    told, log = interview.log.facts[name], interview.log
    if isinstance(told, Real) and not isinstance(told, bool):
        return told
    return interview.fitted.encoder.decode_cells(name, log.row[0, log.schema.index(name)])[0]


@dataclass(frozen=True)
class Letter:
    """A written letter.

    Parameters
    ----------
    kind
        ``"refusal"``, or ``"request"`` where nothing was decided because facts are lacking.
    template, language
        ``"us"`` or ``"eu"``; ``"en"`` or ``"de"``.
    day
        The day of the decision.
    reasons, plans
        The reasons and the plans in words, in the order of the letter.
    html
        The whole page.
    receipt
        The receipt that the letter names, which the sender keeps.
    audit
        What the operator's log needs to show later how the letter came about: contributions of all
        facts, hashes of the people compared with, of the templates and of ``letter.toml``.
    """

    kind: Kind
    template: Template
    language: str
    day: date
    reasons: tuple[str, ...]
    plans: tuple[str, ...]
    html: str
    receipt: Receipt
    audit: Mapping[str, Any]

    def write(self, path: str | Path) -> None:
        """Write the letter to a file.

        Parameters
        ----------
        path
            Ends in .html, .htm or .pdf; a PDF is printed by Chromium.

        Raises
        ------
        SettingError
            If it has another ending.
        UnavailableError
            If a PDF is wanted and there is no Chromium.
        """
        ending = Path(path).suffix.lower()
        if ending == ".pdf":
            print_pdf(self.html, path, self.day)
        elif ending in (".html", ".htm"):
            write_text(path, self.html)
        else:
            raise SettingError(f"{Path(path).name}: a letter is written as .html or .pdf")

    def _repr_html_(self) -> str:
        """The letter in a frame of its own, for notebooks."""
        from markupsafe import escape

        return (
            f'<iframe sandbox srcdoc="{escape(self.html)}" '
            'style="width:100%;height:60em;border:1px solid"></iframe>'
        )


def write_letter(
    interview: Interview,
    operator: Operator,
    template: Template = "us",
    *,
    receipt: Receipt | None = None,
) -> Letter:
    """Write the letter about an interview, in its language.

    Parameters
    ----------
    interview
        As it stood when the decision was taken.
    operator
        What the operator declares: ``read_operator("letter.toml", language)``.
    template
        ``"us"``: a notice of adverse action under Regulation B and the Fair Credit Reporting Act.
        ``"eu"``: information under Art. 15 and 22 of the GDPR, Art. 86 of the AI Act and Art. 18 of
        Directive 2023/2225.
    receipt
        The receipt that the person was handed, of this interview; plans are told as it has them.
        Without one, one is made, dated on the day of the decision.

    Raises
    ------
    SettingError
        If the operator has not declared something the letter needs; the message names the key in
        letter.toml and why.
    DataError
        If there is no refusal to write about: supposed facts, an interview that has not ended, a
        granted person, nothing known; or if a sensitive fact is among the principal reasons, or
        none is unfavourable.

    Examples
    --------
    >>> import edfa
    >>> from edfa_serve.letters.settings import read_operator
    >>> advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(edfa.load("german"))
    >>> interview = advisor.interview({"age": 35, "purpose": "radio/tv", "credit_amount": 2400})
    >>> _ = interview.answer(duration=48).answer(checking_status="<0")
    >>> letter = write_letter(interview, read_operator("letter.toml", "en"))  # doctest: +SKIP
    >>> letter.write("letter.pdf")  # doctest: +SKIP
    """
    check_known("template", template, TEMPLATES)
    for name in operator.nameable:
        interview.fitted.schema.index(name)
    if interview.supposed:
        raise DataError("a letter is for what was told, not for what was supposed")
    facts, log = sort_facts(interview), interview.log
    score = "bureau score" in facts.sources
    check_operator(operator, template, report=facts.from_bureau, score=score)
    receipt = receipt or interview.receipt(time=str(operator.decision.date))
    if receipt.advisor != interview.fitted.fingerprint or dict(receipt.facts) != dict(log.facts):
        raise MismatchError("the receipt is not of this interview")
    return _Writer(interview, operator, template, receipt, facts).write()


def check_ended(record: InterviewRecord) -> None:
    """Raise DataError where it is too early to refuse anybody: facts are open that would probably
    decide.
    """
    if record.too_early:
        raise DataError(
            "no refusal yet: facts are open that would probably decide; ask on (at most "
            f"{record.left} more), record what is declined, or declare decision.action = incomplete"
        )


def receipt_id(receipt: Receipt) -> str:
    """The name of a receipt in letters.

    Parameters
    ----------
    receipt
        The receipt, signed or not.

    Returns
    -------
    str
        16 digits of the SHA-256 of its content.
    """
    return hashlib.sha256(receipt.payload()).hexdigest()[:16]


@dataclass(frozen=True, eq=False)
class _Writer:
    """All that a letter is written from."""

    interview: Interview
    operator: Operator
    template: Template
    receipt: Receipt
    facts: Facts

    @property
    def language(self) -> str:
        return self.interview.language

    @cached_property
    def reasons(self) -> Reasons | None:
        """The model's reasons; None if nothing was decided, or on other grounds.

        Raises
        ------
        DataError
            If the interview has not ended, the model grants the person what they ask for, no fact
            is unfavourable, or a sensitive fact is among the principal reasons.
        """
        taken = self.operator.decision
        if taken.action == "incomplete" or taken.own_reasons:
            return None
        check_ended(InterviewRecord(self.interview))
        if self.interview.decision.favourable:
            raise DataError(
                "this person is granted what they ask for by the system; if somebody else refused, "
                "say so in letter.toml: decision.decided_by, with their reasons"
            )
        found = find_reasons(self.interview.assessment, self.operator.nameable)
        if not found.named:
            raise DataError(
                "no fact that is known is unfavourable by itself, so there is no reason to name; "
                "somebody has to look: decision.decided_by in letter.toml, with their reasons"
            )
        return found

    def write(self) -> Letter:
        """Write the letter."""
        taken = self.operator.decision
        kind: Kind = "request" if taken.action == "incomplete" else "refusal"
        content = self._request() if kind == "request" else self._refusal()
        reasons = tuple(line["text"] for line in content.get("reasons", ()))
        document, templates = render_letter(
            self._common(kind) | content,
            self.template,
            self.language,
            self.operator.templates,
        )
        assert taken.date is not None  # noqa: S101 - check_operator has seen to it
        return Letter(
            kind=kind,
            template=self.template,
            language=self.language,
            day=taken.date,
            reasons=reasons,
            plans=tuple(plan["text"] for plan in content.get("plans", ())),
            html=document,
            receipt=self.receipt,
            audit=self._audit(kind, document, templates, reasons),
        )

    def _request(self) -> dict[str, Any]:
        """What a letter says that asks for lacking facts."""
        lacking = [self._label(name) for name in self.facts.needed]
        if not lacking:
            raise DataError(
                "decision.action is incomplete, but no fact that may be asked for is lacking; the "
                "application is to be decided"
            )
        return {"lacking": lacking}

    def _refusal(self) -> dict[str, Any]:
        """What a letter says that gives the reasons of a refusal."""
        decision, reasons = self.interview.decision, self.reasons
        # somebody else's reasons are told with nobody's plans
        record = InterviewRecord(self.interview, self.receipt.k) if reasons else None
        plans = [self._plan(offered) for offered in record.plans] if record else []
        return {
            "reasons": self._reason_lines(),
            "only_one": reasons is not None and len(reasons.values.ranked) == 1,
            "plans": plans,
            "no_plan": record.no_plan_text if record else "",
            "certificate": self._certificate() if plans else "",
            "estimate": write_estimate(decision.probability, decision.threshold, self.language),
            "compared": reasons.values.people if reasons else 0,
        }

    def _common(self, kind: Kind) -> dict[str, Any]:
        """What every template may use."""
        operator, schema, language = self.operator, self.interview.fitted.schema, self.language
        declared = {name: asdict(getattr(operator, name)) for name in SECTIONS}
        for section, name in DAYS:
            declared[section][name] = self._day(declared[section][name])
        return {
            **declared,
            "kind": kind,
            "language": language,
            "own_reasons": operator.decision.own_reasons,
            "paper": operator.paper or PAPER[self.template],
            "wanted": phrases.plain(schema.outcome(schema.favourable, language)),
            "facts": self._fact_rows(),
            **{
                kind: [self._label(name) for name in getattr(self.facts, kind)]
                for kind in ("unused", "unknown", "declined")
            },
            "flags": list(self.interview.flags),
            "from_bureau": self.facts.from_bureau or operator.bureau.used,
            "from_others": bool(self.facts.sources - {*BUREAU_SOURCES}),
            "receipt": {
                "id": receipt_id(self.receipt),
                "day": self._receipt_day(),
                "signed": self.receipt.signed,
            },
            "advisor": self.interview.fitted.fingerprint,
        }

    def _day(self, day: date | None) -> str:
        return "" if day is None else write_date(day, self.template, self.language)

    def _receipt_day(self) -> str:
        """The day of the receipt in words; a time that is none stands as it is."""
        try:
            return self._day(datetime.fromisoformat(self.receipt.time).date())
        except ValueError:
            return phrases.plain(self.receipt.time)

    def _label(self, name: str) -> str:
        return phrases.plain(self.interview.fitted.schema[name].said(self.language).label)

    def _fact_rows(self) -> list[dict[str, str]]:
        """The used facts with their values and where they come from, in words."""
        schema, language = self.interview.fitted.schema, self.language
        return [
            {
                "label": self._label(name),
                "value": phrases.value(schema[name], value, language),
                "origin": write_origin(schema[name], self.operator.bureau.name, language),
            }
            for name, value in self.facts.used.items()
        ]

    def _reason_lines(self) -> list[dict[str, str]]:
        """The reasons in words, each with the legal basis of naming it (empty if it needs none)."""
        if self.reasons is None:
            own = self.operator.decision.reasons
            return [{"text": phrases.plain(reason), "basis": ""} for reason in own]
        named = self.reasons.named
        return [{"text": self._in_words(reason), "basis": reason.basis} for reason in named]

    def _in_words(self, reason: NamedReason) -> str:
        """A reason in words; its direction is said where the model obeys the card's."""
        fitted = self.interview.fitted
        directed = reason.features if fitted.model.obeys_directions else ()
        features = [fitted.schema[name] for name in reason.features]
        reasons = [feature.reason for feature in fitted.schema if feature.reason]
        shared = reasons.count(features[0].reason) > 1
        return write_reason(
            features, self.facts.used, self.language, directed=directed, shared=shared
        )

    def _plan(self, offered: PlanRecord) -> dict[str, Any]:
        """A plan as templates show it.

        ``lead``, ``steps`` and ``rest`` are its sentences with the steps apart, ``notes`` is what
        else is to be said of it, ``text`` all of it in one line.
        """
        plan, text, language = offered.plan, offered.text, self.language
        reasons = self.reasons.named if self.reasons else ()
        named = {name for reason in reasons for name in reason.features}
        touches = any(change.feature in named for change in plan.changes)
        notes = [say_letter("plan.among" if touches else "plan.not_among", language)]
        if not plan.months:
            notes.insert(0, say_letter("plan.no_wait", language))
        if plan.id == self.receipt.chosen:
            notes.insert(0, say_letter("plan.chosen", language))
        lead, _, rest = text.partition(f"{say_steps(offered.steps, language)}.")
        alone = len(offered.steps) == 1
        taken = [step.sentence(language, alone=alone) for step in offered.steps]
        return {
            "lead": lead if rest else "",
            "steps": taken if rest else [],
            "rest": rest or text,
            "text": f"{text} {' '.join(notes)}",
            "notes": " ".join(notes),
            "id": plan.id,
        }

    def _certificate(self) -> str:
        """The certificate's sentence, if the person may act on the first plan that the letter
        tells; else empty.
        """
        interview, first = self.interview, self.receipt.plans[:1]
        if not interview.standing.may_act or not first or first[0]["id"] != interview.plans()[0].id:
            return ""
        return f"{narrate.standing(interview.standing, self.language)} {interview.guarantee}"

    def _audit(
        self, kind: str, document: str, templates: str, lines: tuple[str, ...]
    ) -> dict[str, Any]:
        """What is recorded of the letter: see ``Letter.audit``."""
        taken = self.operator.decision
        return {
            "kind": kind,
            "template": self.template,
            "language": self.language,
            "date": str(taken.date),
            "action": taken.action,
            "decided_by": taken.decided_by,
            "advisor": self.receipt.advisor,
            "receipt": receipt_id(self.receipt),
            "reasons": list(lines),
            "named": [asdict(reason) for reason in self.reasons.named] if self.reasons else [],
            "method": dict(self.reasons.audit) if self.reasons else {},
            "templates_sha256": templates,
            "operator_sha256": self.operator.digest,
            "letter_sha256": hashlib.sha256(document.encode()).hexdigest(),
        }


def letter_of_receipt(
    fitted: FittedAdvisor,
    receipt: Receipt,
    operator: Operator,
    template: Template = "us",
    *,
    language: str | None = None,
    key: bytes | None = None,
) -> Letter:
    """Verify a receipt and write the letter about its interview.

    Parameters
    ----------
    fitted
        What the advisor has learnt that the receipt is of.
    receipt
        The receipt that the person was handed.
    operator, template
        As for ``write_letter``.
    language
        The language of the letter; by default that of the receipt.
    key
        The operator's key; the receipt must then be signed with it.

    Raises
    ------
    MismatchError
        If the receipt does not hold.
    SettingError, DataError
        As for ``write_letter``.
    """
    verification = verify(fitted, receipt, key)
    if not verification.holds:
        raise MismatchError(
            f"no letter is written for a receipt that does not hold. {verification}"
        )
    interview = replay_receipt(fitted, receipt, language=language)
    return write_letter(interview, operator, template, receipt=receipt)
