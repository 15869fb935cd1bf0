"""An interview as it is kept, to go on with later: the advisor it is held with, the person's
overlay, all they said.
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
    """Plain data; ``advisor`` is the fingerprint, ``overlay`` what the person has set
    themselves, None if nothing.
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
        """Read what ``to_json`` wrote; UnreadableError for other text, MismatchError for one of
        another advisor.
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
