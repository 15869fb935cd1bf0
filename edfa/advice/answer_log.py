"""What a person has told: a log of answers and refusals, each checked when it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from edfa.data.encode import Encoder, Flag
from edfa.data.schema import Schema
from edfa.errors import DataError, FactError, UnknownNameError
from edfa.reading import is_unicode
from edfa.typing import BoolArray, Float32Array

__all__ = ["AnswerLog", "Event", "Kind"]

Kind = Literal["start", "answer", "decline"]
LONGEST = 10_000  # characters of one answer
LONGEST_NAME = 60  # characters of an unknown name that are repeated
LARGEST = 10**300  # nothing is counted that far, and a float still holds it


@dataclass(frozen=True)
class Event:
    """What was told at once, in the person's words; or what was declined. ``asked``: it answered
    the open question.
    """

    kind: Kind
    facts: Mapping[str, Any]
    asked: bool = False


@dataclass(frozen=True, eq=False)
class AnswerLog:
    """The log. Nothing in it changes; every addition makes a new one.

    It keeps what the person said. What cannot be understood is an error, unless it is about a
    feature that is not ``relevant`` (features,): then it is kept, flagged and left out. None: all
    features are relevant.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> log = AnswerLog(table.schema, table.encoder).add("start", {"age": 35}).add("decline",
    ...     {"housing": None})
    >>> dict(log.facts), log.declined
    ({'age': 35}, ('housing',))
    """

    schema: Schema
    encoder: Encoder
    events: tuple[Event, ...] = ()
    relevant: BoolArray | None = None

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
    def unknown(self) -> tuple[str, ...]:
        """What is not known."""
        return tuple(name for name in self.schema.names if name not in self.facts)

    @cached_property
    def row(self) -> Float32Array:
        """The facts as one encoded row; NaN: not known, or left out. Numbers beyond the known are
        at the edge.
        """
        taken = {name: value for name, value in self.facts.items() if self._understood(name, value)}
        return self.encoder.encode_person(taken)[None]

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """The facts that are not taken as told, in the card's order."""
        return tuple(flag for name in self.schema.names if (flag := self._flag(name)) is not None)

    def _flag(self, name: str) -> Flag | None:
        value = self.facts.get(name)
        if value is None or value == "":
            return None
        if self._is_relevant(name):
            return self.encoder[name].find_flag(value)
        return None if self._understood(name, value) else Flag(name, "left_out", value)

    def _is_relevant(self, name: str) -> bool:
        return self.relevant is None or bool(self.relevant[self.schema.index(name)])

    def _understood(self, name: str, value: Any) -> bool:
        """Whether a fact of the log can be encoded; one of a relevant feature can, or it would not
        be in the log.
        """
        try:
            self._check(name, value)
        except FactError:
            return False
        return True

    @property
    def declined_mask(self) -> BoolArray:
        """Which features are declined, (1, features)."""
        return np.isin(self.schema.names, self.declined)[None]

    def add(self, kind: Kind, facts: Mapping[str, Any], asked: bool = False) -> "AnswerLog":
        """The log with one more entry; an entry that cannot be understood is an error, and nothing
        is added.
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

    def undo_position(self, name: str | None = None) -> int:
        """The index of the entry to undo: the last one after the start; or the last one about a
        feature.
        """
        if name is not None:
            self.check_name(name)
        last = range(1, len(self.events)) if name is None else range(len(self.events))
        positions = [i for i in last if name is None or name in self.events[i].facts]
        if not positions:
            raise DataError(f"there is nothing {f'about {name!r} ' if name else ''}to undo")
        return positions[-1]

    def is_gap(self, name: str, value: Any) -> bool:
        """Whether nothing is told: a null where no training person had a gap, so that it stands for
        nothing.
        """
        self.check_name(name)
        return value is None and None not in self.encoder[name].states

    def check_name(self, name: Any) -> None:
        """UnknownNameError unless it names a feature."""
        if not isinstance(name, str) or name not in self.schema.names:
            known = name[:LONGEST_NAME] if isinstance(name, str) else _kind(name)
            raise UnknownNameError("feature", known, self.schema.names)

    def check_value(self, name: str, value: Any) -> Any:
        """A value that can be understood, or need not be, as plain data."""
        try:
            plain = self._plain(name, value)
        except FactError:
            if self._is_relevant(name):
                raise
            return _as_text(value)
        if self._is_relevant(name):
            self._check(name, plain)
        return plain

    def _plain(self, name: str, value: Any) -> Any:
        """An answer as data that can be written: a text, a finite number, true, false or None; else
        FactError.
        """
        is_scalar = isinstance(value, np.generic) or (
            isinstance(value, np.ndarray) and not value.ndim
        )
        plain: Any = value.item() if is_scalar else value
        if plain is None or isinstance(plain, bool):
            return plain
        if isinstance(plain, str):
            if len(plain) > LONGEST or not is_unicode(plain):
                raise FactError(
                    f"{name}: an answer is text of at most {LONGEST:,} characters, all of "
                    "them whole"
                )
            return str.__str__(plain)
        if not isinstance(plain, int | float):
            raise FactError(
                f"{name}: {'a word' if self.schema[name].words else 'a number'} is "
                f"needed, not {_kind(plain)}"
            )
        if isinstance(plain, int) and not -LARGEST < plain < LARGEST:
            raise FactError(f"{name}: a number is needed that is not as large")
        if isinstance(plain, float) and not isfinite(plain):
            if np.isnan(plain):
                return None
            raise FactError(f"{name}: a finite number is needed, not {plain!r}")
        return float(plain) if isinstance(plain, float) else int(plain)

    def _check(self, name: str, plain: Any) -> None:
        """FactError unless the value can be understood."""
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
    return text[:LONGEST].encode(errors="replace").decode()
