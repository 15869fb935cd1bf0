"""What a person has told: a log of answers and refusals, each checked when it is made."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from edfa.data.edge import Flag, find_flag
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.errors import DataError, FactError
from edfa.typing import BoolArray, Float32Array

__all__ = ["AnswerLog", "Event", "Kind"]

Kind = Literal["start", "answer", "decline"]


@dataclass(frozen=True)
class Event:
    """What was told at once, in the person's words; or what was declined. ``asked``: it answered the open question."""

    kind: Kind
    facts: Mapping[str, Any]
    asked: bool = False


@dataclass(frozen=True, eq=False)
class AnswerLog:
    """The log. Nothing in it changes; every addition makes a new one.

    It keeps what the person said. What cannot be understood is an error, unless it is about a feature that is not
    ``relevant`` (features,): then it is kept, flagged and left out. None: all features are relevant.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> log = AnswerLog(table.schema, table.encoder).add("start", {"age": 35}).add("decline", {"housing": None})
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
        declined = dict.fromkeys(name for event in self.events if event.kind == "decline" for name in event.facts)
        return tuple(name for name in declined if name not in self.facts)

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """What is not known."""
        return tuple(name for name in self.schema.names if name not in self.facts)

    @cached_property
    def row(self) -> Float32Array:
        """The facts as one encoded row; NaN: not known, or left out. Numbers beyond the known are at the edge."""
        taken = {name: value for name, value in self.facts.items() if self._understood(name, value)}
        return self.encoder.encode_person(taken)[None]

    @cached_property
    def flags(self) -> tuple[Flag, ...]:
        """The facts that are not taken as told, in the card's order."""
        return tuple(flag for name in self.schema.names if (flag := self._flag(name)) is not None)

    def _flag(self, name: str) -> Flag | None:
        value = self.facts.get(name)
        if name not in self.facts or value is None or value == "":
            return None
        if self._is_relevant(name):
            return find_flag(self.encoder[name], value)
        return None if self._understood(name, value) else Flag(name, "left_out", value)

    def _is_relevant(self, name: str) -> bool:
        return self.relevant is None or bool(self.relevant[self.schema.index(name)])

    def _understood(self, name: str, value: Any) -> bool:
        """Whether a fact of the log can be encoded; one of a relevant feature can, or it would not be in the log."""
        if self._is_relevant(name):
            return True
        try:
            self._check(name, value)
        except FactError:
            return False
        return True

    @property
    def declined_mask(self) -> BoolArray:
        """Which features are declined, (1, features)."""
        mask = np.zeros((1, len(self.schema)), dtype=bool)
        mask[0, [self.schema.index(name) for name in self.declined]] = True
        return mask

    def add(self, kind: Kind, facts: Mapping[str, Any], asked: bool = False) -> "AnswerLog":
        """The log with one more entry; an entry that cannot be understood is an error, and nothing is added."""
        for name in facts:
            self.schema.index(name)
            if name in self.facts:
                raise FactError(f"{name} is known already ({self.facts[name]!r}); undo({name!r}) takes it back")
            if kind == "decline" and name in self.declined:
                raise FactError(f"{name} was declined before")
        if kind != "decline":
            facts = {name: self.check_value(name, value) for name, value in facts.items()}
        return replace(self, events=(*self.events, Event(kind, dict(facts), asked)))

    def undo_position(self, name: str | None = None) -> int:
        """The index of the entry to undo: the last one, or the last one about a feature; the start cannot be undone."""
        if name is not None:
            self.schema.index(name)
        positions = [i for i, event in enumerate(self.events) if i and (name is None or name in event.facts)]
        if not positions:
            raise DataError(f"there is nothing {f'about {name!r} ' if name else ''}to undo")
        return positions[-1]

    def check_value(self, name: str, value: Any) -> Any:
        """A value that can be understood, or need not be, as plain data."""
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, float) and np.isnan(plain):
            plain = None
        try:
            self._check(name, plain)
        except FactError:
            if self._is_relevant(name):
                raise
            is_plain = isinstance(plain, str | int | None) or (isinstance(plain, float) and isfinite(plain))
            return plain if is_plain else str(plain)
        return plain

    def _check(self, name: str, plain: Any) -> None:
        """FactError unless the value can be understood."""
        feature = self.schema[name]
        if isinstance(plain, bool) and not feature.words:
            raise FactError(f"{name}: a number is needed, not {plain!r}")
        try:
            self.encoder[name].encode_fact(plain)
        except FactError as error:
            unit = f"; it is counted in {feature.unit}" if feature.unit and not feature.words else ""
            raise FactError(f"{error}{unit}") from None
