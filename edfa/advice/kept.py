"""An interview as JSON, to go on with later: the advisor it is held with, the person's overlay, and
all they said. ``Interview.to_json`` and ``Interview.from_json`` are the way in and out.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from edfa.errors import MismatchError, UnreadableError
from edfa.reading import parse, parse_object

__all__ = ["KeptInterview"]

VERSION = 1


@dataclass(frozen=True)
class KeptInterview:
    """The content of a saved interview as plain data.

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

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps({"version": VERSION} | asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, advisor: str) -> "KeptInterview":
        """Read what ``to_json`` wrote.

        Raises
        ------
        UnreadableError
            If the text is no interview, or one of another version.
        MismatchError
            If it was held with another advisor than the one of this fingerprint.
        """
        content = parse_object(text, "this interview")
        if "version" not in content or "advisor" not in content:
            raise UnreadableError("this is not an interview")
        written = content.pop("version")
        if type(written) is not int or written != VERSION:
            raise UnreadableError(
                f"this interview is of version {written!r:.20}; version {VERSION} can be read"
            )
        kept = parse(cls, content, "interview", UnreadableError)
        if kept.advisor != advisor:
            theirs = f"{kept.advisor!r:.40}"
            raise MismatchError(
                f"the interview was held with advisor {theirs}, not {advisor!r}; begin a new one"
            )
        return kept
