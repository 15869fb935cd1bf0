"""What an operator declares for a letter: ``letter.toml``, read and checked.

``read_operator`` reads it, ``check_operator`` finds what a letter still needs. Who decided, when,
and whom to write to are never taken from an interview: they are the operator's to say. Most of it
is the same for everybody; what concerns one person may stand in a second file of the same keys, the
*case*, which goes before the first. A text may be given by language: ``to = {en = "…", de = "…"}``.
"""

import datetime
import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from edfa.errors import SchemaError, SettingError, UnreadableError, hint
from edfa.reading import MEGABYTE, parse, read_bytes
from edfa.text.phrases import LANGUAGES
from edfa.text.phrases import table as check_language

Template = Literal["us", "eu"]
Action = Literal["", "refused", "incomplete"]
DecidedBy = Literal["", "system", "system_and_officer", "officer", "rule", "other_model"]
OURS = ("system", "system_and_officer")  # who decides by the advisor's own reasons
MOST_REASONS = 4
MOST_FACTORS = 5  # the fifth only for the number of inquiries


@dataclass(frozen=True)
class Creditor:
    """Who writes the letter.

    Parameters
    ----------
    name, address
        Of the creditor, as they stand at the head of the letter.
    contact
        How the creditor can be asked; may be left out.
    """

    name: str = ""
    address: str = ""
    contact: str = ""


@dataclass(frozen=True)
class Addressee:
    """Whom the letter is written to; all of it may be left out.

    Parameters
    ----------
    name, address
        Of the person.
    reference
        The operator's number of the application.
    """

    name: str = ""
    address: str = ""
    reference: str = ""


@dataclass(frozen=True)
class Taken:
    """The action taken, as the operator declares it.

    Parameters
    ----------
    action
        ``"refused"``, or ``"incomplete"``: nothing is decided, because facts are lacking.
    date
        The day of the decision.
    decided_by
        ``"system"``: the advisor's model alone. ``"system_and_officer"``: the model proposed, and
        ``officer`` looked at it and followed. ``"officer"``, ``"rule"`` or ``"other_model"``: on
        grounds of their own, which are then the ``reasons``.
    officer
        Name and office of the officer who took part.
    reasons
        Reasons of somebody else than the model, at most four.
    credit
        What was applied for.
    counter_offer
        What is offered instead.
    until
        The day by which lacking facts are awaited.
    """

    action: Action = ""
    date: datetime.date | None = None
    decided_by: DecidedBy = ""
    officer: str = ""
    reasons: tuple[str, ...] = ()
    credit: str = ""
    counter_offer: str = ""
    until: datetime.date | None = None

    @property
    def own_reasons(self) -> bool:
        """Whether somebody else than the advisor's model decided, on grounds of their own."""
        return self.decided_by not in OURS


@dataclass(frozen=True)
class Review:
    """How a person contests the decision.

    Parameters
    ----------
    to, how, until
        Whom they write to, how, and until when.
    correction
        Who corrects their data and gives access to them.
    """

    to: str = ""
    how: str = ""
    until: str = ""
    correction: str = ""


@dataclass(frozen=True)
class UnitedStates:
    """What only an American letter says.

    Parameters
    ----------
    agency, agency_address
        The Federal agency that the notice under the Equal Credit Opportunity Act names.
    """

    agency: str = ""
    agency_address: str = ""


@dataclass(frozen=True)
class EuropeanUnion:
    """What only a European letter says.

    Parameters
    ----------
    consequences
        What the decision means for the person.
    authority, authority_address
        The authority that takes complaints.
    data_protection_officer, debt_advice
        Who else helps; may be left out.
    """

    consequences: str = ""
    authority: str = ""
    authority_address: str = ""
    data_protection_officer: str = ""
    debt_advice: str = ""


@dataclass(frozen=True)
class Bureau:
    """The credit bureau whose report was used, and the score, if one was.

    Parameters
    ----------
    used
        Whether a report was used although no fact of the model comes from it.
    name, address, phone
        Of the bureau.
    score_used
        Whether a score of the bureau was used; None: not declared.
    score, score_date, score_low, score_high
        The score, the day it was made, and the range of possible scores.
    score_factors
        The key factors of the score, at most four.
    score_from
        Who provided the score.
    inquiries_a_factor
        Whether the number of inquiries is a fifth factor.
    """

    used: bool = False
    name: str = ""
    address: str = ""
    phone: str = ""
    score_used: bool | None = None
    score: int | str = ""
    score_date: datetime.date | None = None
    score_low: int | str = ""
    score_high: int | str = ""
    score_factors: tuple[str, ...] = ()
    score_from: str = ""
    inquiries_a_factor: bool = False


@dataclass(frozen=True)
class Operator:
    """All that an operator declares.

    Parameters
    ----------
    creditor, person, decision, review, us, eu, bureau
        The sections of ``letter.toml``.
    nameable
        Sensitive features that may be named as a reason, each with its legal basis.
    templates
        A folder of templates that go before those of edfa; empty: none.
    paper
        The size of the page; empty: that of the template.
    digest
        The SHA-256 of the files it was read from.
    """

    creditor: Creditor = Creditor()
    person: Addressee = Addressee()
    decision: Taken = Taken()
    review: Review = Review()
    us: UnitedStates = UnitedStates()
    eu: EuropeanUnion = EuropeanUnion()
    bureau: Bureau = Bureau()
    nameable: Mapping[str, str] = field(default_factory=dict)
    templates: str = ""
    paper: Literal["", "a4", "letter"] = ""
    digest: str = ""


SECTIONS: dict[str, type[Any]] = {
    part.name: type(part.default) for part in fields(Operator) if is_dataclass(part.default)
}
PLAIN = ("nameable", "templates", "paper")  # keys that are no section of the above

ALWAYS = {
    "creditor.name": "a notice names who decided (12 CFR 1002.9(a)(2); GDPR Art. 13(1)(a))",
    "creditor.address": (
        "a notice says where the creditor is (12 CFR 1002.9(a)(2); GDPR Art. 13(1)(a))"
    ),
    "decision.action": "the action taken is the operator's to declare, refused or incomplete",
    "decision.date": "a notice says when the action was taken, and deadlines run from it",
}
LACKING = {
    "decision.until": "a request for facts sets a reasonable time for them (12 CFR 1002.9(c)(2))"
}
REFUSED = {
    "decision.decided_by": (
        "reasons are those of whoever decided (comments 9(b)(2)-6 to -8; GDPR Art. 22)"
    )
}
AMERICAN = {
    "us.agency": "the ECOA notice names the Federal agency of Appendix A (12 CFR 1002.9(b)(1))",
    "us.agency_address": "the ECOA notice gives the agency's address (12 CFR 1002.9(b)(1))",
}
EUROPEAN = {
    "eu.consequences": (
        "significance and consequences of the decision are explained (GDPR Art. 15(1)(h))"
    ),
    "review.to": "whom to ask for a person to look at it (GDPR Art. 22(3))",
    "review.how": "how to contest the decision and say one's own view (GDPR Art. 22(3))",
    "review.until": "until when the decision can be contested (GDPR Art. 22(3))",
    "review.correction": "who corrects data and gives access to them (GDPR Art. 15, 16)",
    "eu.authority": "the authority that takes complaints (GDPR Art. 77)",
    "eu.authority_address": "where that authority is (GDPR Art. 77)",
}
REPORT = {
    "bureau.name": (
        "a fact comes from a credit bureau: the letter says which "
        "(FCRA 615(a)(3); GDPR Art. 15(1)(g))"
    ),
    "bureau.address": (
        "a fact comes from a credit bureau: the letter says where it is (FCRA 615(a)(3))"
    ),
}
AMERICAN_REPORT = REPORT | {
    "bureau.phone": (
        "a fact comes from a credit bureau: the letter gives its telephone number (FCRA 615(a)(3))"
    ),
    "bureau.score_used": (
        "say true or false: a bureau's score that was used is disclosed (FCRA 615(a)(2))"
    ),
}
SCORE = {
    "bureau.score": "the score that was used (FCRA 615(a)(2), 609(f)(1)(A))",
    "bureau.score_date": "the day the score was made (FCRA 609(f)(1)(D))",
    "bureau.score_low": "the range of possible scores (FCRA 609(f)(1)(B))",
    "bureau.score_high": "the range of possible scores (FCRA 609(f)(1)(B))",
    "bureau.score_factors": "the key factors of the score, at most four (FCRA 609(f)(1)(C))",
    "bureau.score_from": "who provided the score (FCRA 609(f)(1)(E))",
}


def read_operator(path: str | Path, language: str, case: str | Path | None = None) -> Operator:
    """Read ``letter.toml``.

    Parameters
    ----------
    path
        The file. A folder of ``templates`` is looked for beside the file that names it.
    language
        The language of the letter; of texts that are given by language, those in it are read.
    case
        A file of the same keys about one person, which goes before the first.

    Returns
    -------
    Operator
        What both files declare.

    Raises
    ------
    SettingError
        If a key is unknown or of a wrong type, or a text is not given in the language.
    UnreadableError
        If a file cannot be read or is no TOML file in UTF-8.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "letter.toml"
    ...     _ = file.write_text('[creditor]\\nname = {en = "The Bank", de = "Die Bank"}')
    ...     read_operator(file, "de").creditor.name
    'Die Bank'
    """
    check_language(language)
    merged: dict[str, Any] = {}
    digest = hashlib.sha256()
    for file in (Path(name) for name in (path, case) if name is not None):
        content = read_bytes(file, MEGABYTE)
        digest.update(hashlib.sha256(content).digest())
        values = _decode(content, file, language)
        if values.get("templates"):
            values["templates"] = str((file.parent / str(values["templates"])).resolve())
        for key, value in values.items():
            merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value
    return _build(merged, Path(path).name, digest.hexdigest())


def _decode(content: bytes, file: Path, language: str) -> dict[str, Any]:
    """The values of a file, its texts in one language."""
    try:
        values = tomllib.loads(content.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{file.name} is not a TOML file in UTF-8: {error}") from None
    return {
        key: _in_language(value, language, f"{file.name}: {key}") for key, value in values.items()
    }


def _in_language(value: Any, language: str, where: str) -> Any:
    """A value with every text that is given by language in this one."""
    if not isinstance(value, dict):
        return value
    if value and set(value) <= set(LANGUAGES):
        if language not in value:
            raise SettingError(f"{where}: is not given in the language of the letter, {language!r}")
        return value[language]
    return {key: _in_language(part, language, f"{where}.{key}") for key, part in value.items()}


def _build(values: Mapping[str, Any], name: str, digest: str) -> Operator:
    """Make the declarations from values by section; SettingError for the first wrong key."""
    parts: dict[str, Any] = {"digest": digest}
    try:
        for key, value in values.items():
            if key in SECTIONS and isinstance(value, dict):
                parts[key] = parse(SECTIONS[key], value, key)
            elif key in PLAIN:
                parts[key] = value
            else:
                raise SchemaError(f"{key}: no such section{hint(key, (*SECTIONS, *PLAIN))}")
        return parse(Operator, parts, "")
    except SchemaError as error:
        raise SettingError(f"{name}: {error}") from None


def check_operator(
    operator: Operator, template: Template, *, report: bool, score: bool = False
) -> None:
    """Check that everything is declared that a letter needs.

    Parameters
    ----------
    operator
        What the operator declares.
    template
        ``"us"`` or ``"eu"``.
    report
        Whether a fact that was used comes from a credit bureau.
    score
        Whether one is a score that the bureau has made.

    Raises
    ------
    SettingError
        For the first thing that is missing; the message names its key and why it is needed.
    """
    _need(operator, ALWAYS)
    if operator.decision.action == "incomplete":
        _need(operator, LACKING)
        return
    _need(operator, REFUSED | (AMERICAN if template == "us" else EUROPEAN))
    check_taken(operator.decision, "letter.toml: decision.")
    if report or operator.bureau.used:
        _need(operator, AMERICAN_REPORT if template == "us" else REPORT)
    if score and template == "us" and not operator.bureau.score_used:
        raise SettingError(
            "letter.toml: bureau.score_used: a fact that was used is a bureau's score, so it is "
            "disclosed: say true and give the score (FCRA 615(a)(2))"
        )
    if operator.bureau.score_used:
        _check_score(operator)


def _need(operator: Operator, keys: Mapping[str, str]) -> None:
    """Raise SettingError for the first empty key; ``keys`` says why each is needed."""
    for key, why in keys.items():
        section, _, name = key.partition(".")
        value = getattr(getattr(operator, section), name)
        empty = not value.strip() if isinstance(value, str) else value is None or value == ()
        if empty:
            raise SettingError(f"letter.toml: {key} is missing: {why}")


def check_taken(taken: Taken, where: str) -> None:
    """Check that the decider is named and the reasons are theirs.

    Parameters
    ----------
    taken
        The decision.
    where
        What the message of the error begins with.

    Raises
    ------
    SettingError
        If the officer is not named, or reasons are missing or superfluous.
    """
    if taken.decided_by in ("officer", "system_and_officer") and not taken.officer.strip():
        raise SettingError(
            f"{where}officer is missing: the letter says to whom the system proposed, or "
            "who decided"
        )
    if taken.own_reasons and not [reason for reason in taken.reasons if reason.strip()]:
        raise SettingError(
            f"{where}reasons is missing: decided_by = {taken.decided_by!r}, so the specific "
            "reasons are theirs to state and not the model's (comments 9(b)(2)-6 to -8)"
        )
    if not taken.own_reasons and taken.reasons:
        raise SettingError(
            f"{where}reasons: decided_by = {taken.decided_by!r}, so reasons are computed; "
            "leave them out"
        )
    if len(taken.reasons) > MOST_REASONS:
        raise SettingError(f"{where}reasons: at most {MOST_REASONS}, not {len(taken.reasons)}")


def _check_score(operator: Operator) -> None:
    """Raise SettingError unless a score that was used is declared in full."""
    _need(operator, SCORE)
    bureau = operator.bureau
    most = MOST_FACTORS if bureau.inquiries_a_factor else MOST_FACTORS - 1
    if len(bureau.score_factors) > most:
        raise SettingError(
            f"letter.toml: bureau.score_factors: at most {most}, not {len(bureau.score_factors)} "
            "(five only with inquiries_a_factor = true)"
        )
