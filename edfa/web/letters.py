"""Letters of the service: what the operator declares in ``letter.toml``, about the interview of a request."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from edfa.advice.letter import write_letter
from edfa.advice.letter_settings import read_operator
from edfa.web.service import Session

__all__ = ["letter_writer"]

Template = Literal["us", "eu"]


def letter_writer(
    path: Path, languages: tuple[str, ...], usual: Template
) -> Callable[[Session, Template | None], tuple[str, dict[str, Any]]]:
    """A function of a session and a template that gives the letter's HTML and what is recorded of it.

    ``path`` is the operator's ``letter.toml``; what is wrong with it is an error now. Without a date in it, a decision
    is taken on the day of the letter.
    """
    for language in languages:
        read_operator(path, language)

    def write(session: Session, template: Template | None) -> tuple[str, dict[str, Any]]:
        operator = read_operator(path, session.interview.language)
        if operator.decision.date is None:
            today = datetime.now(UTC).date()
            operator = replace(operator, decision=replace(operator.decision, date=today))
        letter = write_letter(session.interview, operator, template or usual)
        return letter.html, {"template": letter.template, "kind": letter.kind, "audit": dict(letter.audit)}

    return write
