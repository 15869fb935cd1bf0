"""Letters of the service: what the operator declares in ``letter.toml`` and decided about the
person, in one page.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from edfa_serve.decisions import taken_of
from edfa_serve.letters.letter import write_letter
from edfa_serve.letters.settings import read_operator
from edfa_serve.service import Session

__all__ = ["LetterWriter", "letter_writer"]

Template = Literal["us", "eu"]


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
