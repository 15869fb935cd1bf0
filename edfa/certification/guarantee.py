"""What everything that promises something shares: a sentence, and JSON that brings it back."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np

from edfa.errors import UnreadableError
from edfa.parsing import parse
from edfa.text import html

__all__ = ["Guarantee"]

VERSION = 1


class Guarantee(ABC):
    """A dataclass with a ``sentence``; ``kind`` is what errors call it."""

    kind: ClassVar[str] = "certificate"

    @property
    @abstractmethod
    def sentence(self) -> str:
        """What is promised, in words; or why nothing is."""

    def __str__(self) -> str:
        return self.sentence

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal. Infinite thresholds are the words inf and -inf."""
        parts: Any = asdict(self)  # type: ignore[call-overload]
        return json.dumps({"version": VERSION} | _plain(parts), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote."""
        try:
            values = json.loads(text)
            version = values.pop("version")
        except (ValueError, AttributeError, KeyError, TypeError):
            raise UnreadableError(f"this text is not a {cls.kind} as to_json writes it") from None
        if version != VERSION:
            raise UnreadableError(f"this {cls.kind} has version {version!r}; this edfa reads version {VERSION}")
        return parse(cls, values, cls.kind)

    def _repr_html_(self) -> str:
        return html.fragment(html.paragraph(self.sentence))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and np.isinf(value) else value
