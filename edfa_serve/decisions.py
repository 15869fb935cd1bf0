"""What an operator decided about one person, declared on their view or over the API.

``read_taken`` reads a decision, ``decide`` appends it to the log of the interview, and a
``LetterWriter`` writes the letter. A decision is about the interview as it stood then; the letter
is about that state, whatever was told later. Declarations are never changed: declaring again
appends, and the last one counts.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from edfa.errors import DataError, MismatchError, SettingError
from edfa.reading import one_line, parse
from edfa.text.phrases import LANGUAGES
from edfa_serve.letters.letter import check_ended, write_letter
from edfa_serve.letters.settings import LACKING, Taken, Template, check_taken, read_operator
from edfa_serve.letters.words import forbidden_phrase
from edfa_serve.service import AUDIT, Service, Session, retry, tell
from edfa_serve.settings import WebSettings
from edfa_serve.store import ConflictError, StoredInterview, utc_now

TEXTS = {"officer": 200, "credit": 300, "counter_offer": 500}  # characters
REASON = 300  # characters
MAX_TIME_AHEAD = timedelta(days=1)  # the operator's day may have begun already


def read_taken(given: Mapping[str, Any]) -> Taken:
    """Read a decision that a form or a request declares.

    Parameters
    ----------
    given
        Values by field of ``Taken``; dates may be ISO texts.

    Returns
    -------
    Taken
        The decision.

    Raises
    ------
    SettingError
        If something is missing or cannot be; the message begins with the field.
    """
    taken = parse(Taken, given, "", SettingError)
    if not taken.action:
        raise SettingError("action is missing: refused or incomplete")
    if taken.date is None:
        raise SettingError("date is missing: the day of the decision; deadlines run from it")
    if taken.date > (utc_now() + MAX_TIME_AHEAD).date():
        raise SettingError(f"date: {taken.date} is still to come")
    for name, most in TEXTS.items():
        if len(getattr(taken, name)) > most:
            raise SettingError(f"{name}: at most {most} characters")
    if any(len(reason) > REASON for reason in taken.reasons):
        raise SettingError(f"reasons: at most {REASON} characters each")
    if taken.action == "incomplete":
        if taken.until is None:
            raise SettingError(f"until is missing: {LACKING['decision.until']}")
        return taken
    if not taken.decided_by:
        raise SettingError("decided_by is missing: reasons are those of whoever decided")
    check_taken(taken, "")
    return taken


def decide(
    service: Service, interview: str, taken: Taken, seq: int | None = None
) -> StoredInterview:
    """Append a decision to the log of an interview; the same decision once more appends nothing.

    Parameters
    ----------
    service
        The service that has the interview.
    interview
        The id of the interview.
    taken
        The decision, as ``read_taken`` reads it.
    seq
        The number of events that the decider had seen; None: not compared.

    Returns
    -------
    StoredInterview
        The interview then.

    Raises
    ------
    ConflictError
        If something was done since ``seq``.
    MismatchError
        If the interview was held with another advisor.
    SettingError, DataError
        If the decision cannot be about this interview, or no letter could say it.
    """

    def append() -> StoredInterview:
        record = service.store.find(interview)
        if record.advisor != service.advisor.fingerprint:
            raise MismatchError("this interview was held with another advisor than is served now")
        if seq is not None and (not 0 < seq <= record.seq or record.gone_on(seq, *AUDIT)):
            raise ConflictError
        for last in record.of("decided")[-1:]:
            if not record.gone_on(last.seq, *AUDIT) and parse(Taken, last.content, "") == taken:
                return record
        _check(service.then(record, record.seq), record, taken)
        service.store.append(record.id, record.seq, [("decided", content)], finished=True)
        tell("decided")
        return service.store.find(interview)

    given = {name: value for name, value in asdict(taken).items() if value}
    content = {n: str(value) if isinstance(value, date) else value for n, value in given.items()}
    return retry(append)


def _check(session: Session, record: StoredInterview, taken: Taken) -> None:
    """Raise SettingError or DataError if the decision cannot be about this interview, or a letter
    could not say it.
    """
    if taken.date is not None and taken.date < (record.began - MAX_TIME_AHEAD).date():
        raise SettingError(f"date: the interview began later, on {record.began.date()}")
    texts = {
        "reasons": " ".join(taken.reasons),
        "counter_offer": taken.counter_offer,
        "credit": taken.credit,
    }
    for name, text in texts.items():
        if said := forbidden_phrase(text, session.interview.language):
            raise SettingError(f"{name}: it says {one_line(said)}")
    by_model = taken.action == "refused" and not taken.own_reasons
    if by_model:
        check_ended(session.record)
    if by_model and session.interview.decision.favourable:
        raise DataError(
            "decided_by: the system grants this person what they ask for; if somebody else "
            "refused, they give their own reasons"
        )


@dataclass(frozen=True)
class LetterWriter:
    """Writes letters about interviews.

    What the operator has decided about a person goes before the section ``decision`` of their
    ``letter.toml``, and the letter is then about the interview as it stood when they decided. Where
    they have decided nothing and the file has no date, the decision is taken on the day of the
    letter.

    Parameters
    ----------
    path
        The operator's ``letter.toml``.
    usual
        The template of letters for which none is named.
    decides
        Whether the file itself says what is decided, so that letters can be written although the
        operator decided nothing about single people.
    contacts
        How the operator can be asked, by language; empty where the file does not say.
    """

    path: Path
    usual: Template
    decides: bool
    contacts: Mapping[str, str]

    @classmethod
    def of(cls, settings: WebSettings) -> "LetterWriter":
        """The writer of a service that has a ``letter.toml``; what is wrong with that is an error
        now.
        """
        path = Path(str(settings.letter))
        declared = {language: read_operator(path, language) for language in LANGUAGES}
        decides = all(operator.decision.action for operator in declared.values())
        contacts = {language: made.creditor.contact for language, made in declared.items()}
        return cls(path, settings.letter_template, decides, contacts)

    def __call__(self, session: Session, template: Template | None) -> tuple[str, dict[str, Any]]:
        """Write the letter about an interview.

        Parameters
        ----------
        session
            The interview.
        template
            ``"us"`` or ``"eu"``; None: the usual one.

        Returns
        -------
        html : str
            The letter.
        content : dict
            What is recorded of it: template, kind and audit.
        """
        interview = session.interview
        operator = read_operator(self.path, interview.language)
        if session.decided is not None:
            declared, stood = session.decided
            interview = stood.copy(language=interview.language)
            operator = replace(operator, decision=parse(Taken, declared, "decision"))
        elif operator.decision.date is None:
            today = replace(operator.decision, date=datetime.now(UTC).date())
            operator = replace(operator, decision=today)
        letter = write_letter(interview, operator, template or self.usual)
        content = {"template": letter.template, "kind": letter.kind, "audit": dict(letter.audit)}
        return letter.html, content

    def can_write(self, session: Session) -> bool:
        """Whether it is declared what was decided about the person."""
        return self.decides or session.decided is not None
