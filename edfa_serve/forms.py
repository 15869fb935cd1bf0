"""Form fields for the facts of a card: how each is asked, and what was entered into it means.

What a field sends is never taken on trust: a choice must be one of the levels, a number one that
may be.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from edfa.data.encode import Encoder, Levels, Measure
from edfa.data.values import exact_text, parse_number
from edfa.errors import FactError
from edfa.text import phrases
from edfa_serve.wording import Wording

__all__ = ["Choice", "Field", "UnclearError", "make_field", "read_fact", "read_number"]

FEW = 6  # levels that are shown as radio buttons; more are a list to choose from
GAP = "?"  # what a form sends for "I don't know"; levels and codes carry a sign before them
LEVEL, CODE = "=", "#"
LONGEST = 60  # letters of a number
GERMAN = re.compile(r"([^\d.,]*)(\d{1,3}(?:\.\d{3})+|\d+)(,\d*)?([^\d.,]*)")
Kind = Literal["radios", "select", "number"]
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
    kind: Kind
    ask: str = ""
    hint: str = ""
    unit: str = ""
    range: str = ""
    whole: bool = False
    text: str = ""
    choices: tuple[Choice, ...] = ()
    error: str = ""

    @property
    def title(self) -> str:
        """The question as the card puts it, else the label."""
        return self.ask or self.label

    @property
    def about(self) -> str:
        """The ids of what describes the field."""
        parts = (("hint", self.hint), ("range", self.range), ("error", self.error))
        return " ".join(f"{self.id}-{part}" for part, text in parts if text)


def make_field(
    wording: Wording,
    encoder: Encoder,
    name: str,
    given: Given | None = None,
    *,
    known: Any = None,
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
    chosen = " ".join(given.get(key, "").split()) if given is not None else _sent(column, known)
    if isinstance(column, Levels):
        choices = _choosable(wording, column, name, chosen)
        if optional:
            choices.append(Choice("", wording("field.rather_not"), not chosen))
        kind: Kind = "radios" if len(column.levels) <= FEW else "select"
        return Field(kind=kind, choices=tuple(choices), **common)
    if given is not None:
        state, text = given.get(f"{key}~", ""), chosen
    else:
        state = chosen if chosen[:1] in (GAP, CODE) else ""
        text = "" if state or known is None else wording.number(known)
    states = _choosable(wording, column, name, state)
    rest = [Choice("", wording("field.number_above"), not state)] if states else []
    return Field(
        kind="number",
        unit=wording.unit(name),
        range=_range(wording, column, name),
        whole=column.whole,
        text=text,
        choices=(*rest, *states),
        **common,
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


def _answers(column: Measure | Levels) -> dict[str, Any]:
    """What a form sends for each answer to choose, and what it means: levels, then codes, then
    None for not knowing, where others did not either.

    The position tells apart names that look alike; the name tells a form of another card.
    """
    levels = column.levels if isinstance(column, Levels) else ()
    codes = [state for state in column.states if state is not None]
    answers: dict[str, Any] = {
        " ".join(f"{sign}{position}:{exact_text(value)}".split()): value
        for sign, values in ((LEVEL, levels), (CODE, codes))
        for position, value in enumerate(values)
    }
    return answers | ({GAP: None} if None in column.states else {})


def _sent(column: Measure | Levels, value: Any) -> str:
    """What a form would send for a known value; of a number that is no answer to choose, itself."""
    if value is None:
        return ""
    same = float(value) if isinstance(value, int) and not isinstance(value, bool) else value
    for token, answer in _answers(column).items():
        if answer is not None and exact_text(answer) == exact_text(same):
            return token
    return "" if isinstance(column, Levels) else str(value)


def _choosable(wording: Wording, column: Measure | Levels, name: str, chosen: str) -> list[Choice]:
    """Answers to choose: levels, the card's codes, and not to know."""
    return [
        Choice(
            token,
            wording("field.unknown") if value is None else wording.value(name, value),
            token == chosen,
        )
        for token, value in _answers(column).items()
    ]


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
    chosen = given.get(f"{key}~", "") if isinstance(column, Measure) and not text else text
    answers = _answers(column)
    if (token := " ".join(chosen.split())) in answers:
        return (_whole(answers[token], column.whole),)
    if not chosen and optional:
        return ()
    if not chosen:
        raise UnclearError(wording("invalid.missing", label=label))
    if isinstance(column, Levels) or not text:
        raise UnclearError(wording("invalid.choice", label=label))
    number = _whole(read_number(text, wording, label, column.typical), column.whole)
    try:
        column.encode_fact(number)
    except FactError:
        low, high = _ends(column)
        ends = {"low": wording.number(low), "high": wording.value(name, high)}
        raise UnclearError(wording("invalid.outside", label=label, **ends)) from None
    return (number,)


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
