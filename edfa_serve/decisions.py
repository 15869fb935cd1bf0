"""What an operator decided about one person: declared on their view or over the API, appended to
the interview's log.

A decision is about the interview as it stood then; a letter is written of that state, whatever was
told later. What was declared is never changed: who declares again appends, and the last declaration
counts.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from edfa.errors import DataError, MismatchError, SettingError
from edfa.reading import one_line, parse
from edfa_serve.letters.letter import write_letter
from edfa_serve.letters.settings import (
    LACKING,
    OURS,
    Taken,
    Template,
    check_taken,
    read_operator,
)
from edfa_serve.letters.words import forbidden_phrase
from edfa_serve.service import AUDIT, Service, Session, retry, tell
from edfa_serve.store import ConflictError, StoredInterview, utc_now

__all__ = ["TEXTS", "decide", "letter_writer", "read_taken"]

TEXTS = {"officer": 200, "credit": 300, "counter_offer": 500}  # characters
REASON = 300  # characters
AHEAD = timedelta(days=1)  # the operator's day may have begun already


def read_taken(given: Mapping[str, Any]) -> Taken:
    """The decision that a form or a request declares, one entry a field of ``Taken``; SettingError
    names the field.
    """
    taken = parse(Taken, given, "", SettingError)
    if not taken.action:
        raise SettingError("action is missing: refused or incomplete")
    if taken.date is None:
        raise SettingError("date is missing: the day of the decision; deadlines run from it")
    if taken.date > (utc_now() + AHEAD).date():
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
    """Append a decision about an interview, by its id; returns its record then. The same once more
    appends nothing.

    ``seq`` is the number of events that the decider had seen: ConflictError if something was done
    since.
    """

    def append() -> None:
        record = service.store.find(interview)
        if record.advisor != service.advisor.fingerprint:
            raise MismatchError("this interview was held with another advisor than is served now")
        if seq is not None and not 0 < seq <= record.seq:
            raise ConflictError
        if seq is not None and any(event.kind not in AUDIT for event in record.events[seq:]):
            raise ConflictError
        content = _plain(taken)
        if not _said_already(record, content):
            _check(service.then(record, record.seq), record, taken)
            service.store.append(record.id, record.seq, [("decided", content)], finished=True)
            tell("decided")

    retry(append)
    return service.store.find(interview)


def taken_of(session: Session) -> Taken | None:
    """What was decided last about the person of a session; None if nothing was."""
    return None if session.decided is None else parse(Taken, session.decided[0], "decision")


def _plain(taken: Taken) -> dict[str, Any]:
    """A decision as plain JSON, without what is empty."""
    days = ("date", "until")
    return {
        name: str(value) if name in days else value
        for name, value in asdict(taken).items()
        if value
    }


def _said_already(record: StoredInterview, content: Mapping[str, Any]) -> bool:
    """Whether the last that was done or declared is just this."""
    decided = record.of("decided")[-1:]
    if not decided or any(event.kind not in AUDIT for event in record.events[decided[0].seq :]):
        return False
    return parse(Taken, decided[0].content, "") == parse(Taken, content, "")


def _check(session: Session, record: StoredInterview, taken: Taken) -> None:
    """SettingError or DataError if the decision cannot be about this interview, or a letter could
    not tell it.
    """
    if taken.date is not None and taken.date < (record.began - AHEAD).date():
        raise SettingError(f"date: the interview began later, on {record.began.date()}")
    for name in ("reasons", "counter_offer", "credit"):
        value = getattr(taken, name)
        text = " ".join(value) if name == "reasons" else value
        if said := forbidden_phrase(text, session.interview.language):
            raise SettingError(f"{name}: it says {one_line(said)}")
    if (
        taken.action == "refused"
        and taken.decided_by in OURS
        and session.interview.decision.favourable
    ):
        raise DataError(
            "decided_by: the system grants this person what they ask for; if somebody "
            "else refused, they give their "
            "own reasons"
        )


@dataclass(frozen=True)
class LetterWriter:
    """Writes letters about interviews; called with a session and the name of a template (None: the
    ``usual`` one).

    ``path`` is the operator's ``letter.toml``. What the operator has decided about the person goes
    before its section ``decision``, and the letter is then about the interview as it stood when
    they decided. Where they have decided nothing and the file has no date, a decision is taken on
    the day of the letter. ``decides``: the file itself says what is decided, so that letters can be
    written although the operator decided nothing about single people.
    """

    path: Path
    usual: Template
    decides: bool

    def __call__(self, session: Session, template: Template | None) -> tuple[str, dict[str, Any]]:
        """The letter's HTML, and what is recorded of it."""
        interview, taken = session.interview, taken_of(session)
        operator = read_operator(self.path, interview.language)
        if taken is not None and session.decided is not None:
            interview = session.decided[1].copy(language=interview.language)
            operator = replace(operator, decision=taken)
        elif operator.decision.date is None:
            operator = replace(
                operator, decision=replace(operator.decision, date=datetime.now(UTC).date())
            )
        letter = write_letter(interview, operator, template or self.usual)
        return letter.html, {
            "template": letter.template,
            "kind": letter.kind,
            "audit": dict(letter.audit),
        }

    def can_write(self, session: Session) -> bool:
        """Whether a decision about the person of a session is declared."""
        return self.decides or session.decided is not None


def letter_writer(path: Path, languages: tuple[str, ...], usual: Template) -> LetterWriter:
    """The writer of letters of an operator; what is wrong with their ``letter.toml`` is an error
    now.
    """
    declared = [read_operator(path, language) for language in languages]
    return LetterWriter(path, usual, all(operator.decision.action for operator in declared))
