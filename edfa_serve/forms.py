"""Form fields for the facts of a card: how each is asked, and what was entered into it means.

What a field sends is never taken on trust: a choice must be one of the levels, a number one that
may be.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edfa.data.column import Levels, Measure
from edfa.data.encode import Encoder
from edfa.data.numbers import parse_number
from edfa.errors import FactError
from edfa.text import phrases
from edfa_serve.wording import Wording

__all__ = ["Choice", "Field", "UnclearError", "make_field", "read_fact", "read_number"]

FEW = 6  # levels that are shown as radio buttons; more are a list to choose from
GAP = "?"  # what a form sends for "I don't know"; levels and codes carry a sign before them
LEVEL, CODE = "=", "#"
LONGEST = 60  # letters of a number
GERMAN = re.compile(r"([^\d.,]*)(\d{1,3}(?:\.\d{3})+|\d+)(,\d*)?([^\d.,]*)")
Given = Mapping[str, str]  # what a form sent, by the name of its fields


class UnclearError(FactError):
    """What was entered into a field cannot be understood; the message is for the person, in their
    language.
    """


@dataclass(frozen=True)
class Choice:
    """One answer to choose: what is sent, what is shown, whether it is chosen."""

    value: str
    text: str
    chosen: bool = False


@dataclass(frozen=True)
class Field:
    """One fact to ask for.

    ``name`` is its name in the form and ``id`` in the page. A ``"number"`` has a ``unit``, an
    allowed range in words, and the ``text`` that was entered; its ``choices``, if any, stand in
    place of a number (under the name ``name`` and ``~``). ``error`` says what is wrong with what
    was entered.
    """

    name: str
    id: str
    label: str
    kind: Literal["radios", "select", "number"]
    ask: str = ""
    hint: str = ""
    unit: str = ""
    range: str = ""
    whole: bool = False
    text: str = ""
    choices: tuple[Choice, ...] = ()
    error: str = ""

    @property
    def about(self) -> str:
        """The ids of what describes the field."""
        parts = (("hint", self.hint), ("range", self.range), ("error", self.error))
        return " ".join(f"{self.id}-{part}" for part, text in parts if text)


def make_field(
    wording: Wording,
    encoder: Encoder,
    name: str,
    *,
    known: Any = None,
    given: Given | None = None,
    optional: bool = False,
    error: str = "",
    prefix: str = "f",
) -> Field:
    """The field of one feature.

    It shows the value that is ``known``, or what was ``given`` in a form that is shown again. An
    ``optional`` one may be left out by choosing so. Its id in the page begins with ``prefix``.
    """
    feature, column = wording.schema[name], encoder[name]
    key = f"fact.{name}"
    common: dict[str, Any] = {
        "name": key,
        "id": f"{prefix}{wording.schema.index(name)}",
        "label": wording.label(name),
        "ask": phrases.plain(feature.ask),
        "hint": phrases.plain(feature.hint),
        "error": error,
    }
    chosen = (given or {}).get(key, "") if given is not None else _sent(column, known)
    if isinstance(column, Levels):
        choices = _choices(wording, column, name, chosen, optional)
        return Field(
            kind="radios" if len(column.levels) <= FEW else "select", choices=choices, **common
        )
    state = (
        (given or {}).get(f"{key}~", "")
        if given is not None
        else (chosen if chosen[:1] in (GAP, CODE) else "")
    )
    states = _states(wording, column, name, state)
    rest = (Choice("", wording("field.number_above"), not state),) if states else ()
    text = (
        chosen if given is not None else ("" if state or known is None else wording.number(known))
    )
    return Field(
        kind="number",
        unit=_unit(wording, name),
        range=_range(wording, column, name),
        whole=column.whole,
        text=text,
        choices=(*rest, *states),
        **common,
    )


def _unit(wording: Wording, name: str) -> str:
    """The unit beside a number field."""
    return (
        wording.value(name, 2.5).removeprefix(wording.number(2.5)).strip()
        if wording.schema[name].unit
        else ""
    )


def _range(wording: Wording, column: Measure, name: str) -> str:
    low, high = _ends(column)
    return wording("field.range", low=wording.number(low), high=wording.value(name, high))


def _ends(column: Measure) -> tuple[float, float]:
    """The ends of the range in few digits; what lies a hair outside is taken at the edge."""
    low, high = (
        end if end.is_integer() else phrases.short(end) for end in (column.low, column.high)
    )
    return low, high


def _sent(column: Measure | Levels, value: Any) -> str:
    """What a form would send for a known value."""
    if value is None:
        return ""
    if isinstance(value, int | float) and float(value) in [
        state for state in column.states if state is not None
    ]:
        return f"{CODE}{float(value):g}"
    return f"{LEVEL}{_level_text(column, value)}" if isinstance(column, Levels) else str(value)


def _level_text(column: Levels, level: Any) -> str:
    return str(level) if column.words else f"{float(level):g}"


def _choices(
    wording: Wording, column: Levels, name: str, chosen: str, optional: bool
) -> tuple[Choice, ...]:
    levels = [
        (f"{LEVEL}{_level_text(column, level)}", wording.value(name, level))
        for level in column.levels
    ]
    choices = [Choice(value, text, value == chosen) for value, text in levels]
    choices += _states(wording, column, name, chosen)
    rather_not = Choice("", wording("field.rather_not"), not chosen)
    return (*choices, rather_not) if optional else tuple(choices)


def _states(wording: Wording, column: Measure | Levels, name: str, chosen: str) -> list[Choice]:
    """Answers beside the levels or numbers: the card's codes, and not to know where others did not
    either.
    """
    codes = [state for state in column.states if state is not None]
    states = [
        Choice(f"{CODE}{code:g}", wording.value(name, code), chosen == f"{CODE}{code:g}")
        for code in codes
    ]
    gap = [Choice(GAP, wording("field.unknown"), chosen == GAP)] if None in column.states else []
    return [*states, *gap]


def read_fact(
    wording: Wording, encoder: Encoder, name: str, given: Given, *, optional: bool = False
) -> tuple[Any, ...]:
    """What was entered for a feature, as one value; nothing if an ``optional`` one was left out.

    Raises
    ------
    UnclearError
        If it is missing, no level, no number, or one that cannot be.
    """
    column, key = encoder[name], f"fact.{name}"
    text, label = " ".join(given.get(key, "").split()), wording.label(name)
    state = given.get(f"{key}~", "") if isinstance(column, Measure) and not text else text
    if state[:1] in (GAP, CODE) and (state[:1] == CODE or None in column.states):
        return (_read_state(wording, column, name, state),)
    if not text:
        if optional:
            return ()
        raise UnclearError(wording("invalid.missing", label=label))
    if isinstance(column, Levels):
        levels = {
            " ".join(f"{LEVEL}{_level_text(column, level)}".split()): level
            for level in column.levels
        }
        if text not in levels:
            raise UnclearError(wording("invalid.choice", label=label))
        return (_whole(levels[text], column.whole and not column.words),)
    number = _whole(read_number(text, wording, label, column.typical), column.whole)
    try:
        column.encode_fact(number)
    except FactError:
        low, high = _ends(column)
        ends = {"low": wording.number(low), "high": wording.value(name, high)}
        raise UnclearError(wording("invalid.outside", label=label, **ends)) from None
    return (number,)


def _read_state(wording: Wording, column: Measure | Levels, name: str, state: str) -> Any:
    if state == GAP:
        return None
    for code in column.states:
        if code is not None and state == f"{CODE}{code:g}":
            return _whole(code, column.whole)
    raise UnclearError(wording("invalid.choice", label=wording.label(name)))


def _whole(value: Any, whole: bool) -> Any:
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def read_number(text: str, wording: Wording, label: str, example: float = 12) -> float:
    """A number as the language writes it: ``12.000,50`` in German, ``12,000.50`` in English, with
    or without money.

    >>> import edfa
    >>> german, english = (Wording.of(edfa.load("german").schema, language) for language in ("de",
    ...     "en"))
    >>> read_number("12.000,50 €", german, "amount"), read_number("€12,000.50", english, "amount")
    (12000.5, 12000.5)
    """
    written = text.strip()
    if wording.language == "de" and (match := GERMAN.fullmatch(written)):
        before, whole, decimals, after = match.groups()
        written = f"{before}{whole.replace('.', '')}{(decimals or '').replace(',', '.')}{after}"
    number = parse_number(written) if len(written) <= LONGEST else None
    if number is None:
        raise UnclearError(wording("invalid.number", label=label, example=wording.number(example)))
    return number
