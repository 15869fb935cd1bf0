"""Form fields for the facts of a card, and reading what was entered into them.

``make_field`` makes a field, ``read_fact`` reads it. What a field sends is never taken on trust: a
choice must be one of the levels, a number must lie in the range that the encoder accepts.
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

MAX_RADIO_BUTTONS = 6  # levels that are shown as radio buttons; more are a list to choose from
GAP = "?"  # what a form sends for "I don't know"; levels and codes carry a sign before them
LEVEL, CODE = "=", "#"
MAX_NUMBER_CHARACTERS = 60  # letters of a number
GERMAN = re.compile(r"([^\d.,]*)(\d{1,3}(?:\.\d{3})+|\d+)(,\d*)?([^\d.,]*)")
Kind = Literal["radios", "select", "number"]
Given = Mapping[str, str]  # what a form sent, by the name of its fields


class UnclearError(FactError):
    """What was entered into a field cannot be understood; the message is in the person's
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
    """The form field of one fact.

    Parameters
    ----------
    name, id
        Its name in the form, and its id in the page.
    label, ask, hint
        The feature's label, the question and the hint of the card; the last two may be empty.
    kind
        ``"radios"`` or ``"select"`` for levels, else ``"number"``.
    unit, range, whole
        Of a number: its unit, the allowed range in words, and whether it has no decimals.
    text
        The number that was entered.
    choices
        Answers to choose. Of a number: codes and not knowing, sent under ``name`` and ``~``.
    error
        What is wrong with what was entered, in the person's language.
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
    """Make the form field of one feature.

    Parameters
    ----------
    wording, encoder
        The words of the page, and the encoder of the advisor, which knows levels and ranges.
    name
        The feature.
    given
        The fields of a form that is shown again; they go before ``known``.
    known
        The value to show; None: nothing is filled in.
    optional
        Whether the question may be left out; a choice says so.
    error
        What is wrong with what was entered, in the person's language.
    prefix
        Begins the ids in the page, which are unique only for each prefix.
    """
    said, column, key = wording.schema[name].said(wording.language), encoder[name], f"fact.{name}"
    if given is None:
        given = _form_of(wording, column, key, known)
    common: dict[str, Any] = {
        "name": key,
        "id": f"{prefix}{wording.schema.index(name)}",
        "label": wording.label(name),
        "ask": phrases.plain(said.ask),
        "hint": phrases.plain(said.hint),
        "error": error,
    }
    text = _entry(given, key)
    if isinstance(column, Levels):
        choices = _choosable(wording, column, name, text)
        if optional:
            choices.append(Choice("", wording("field.rather_not"), not text))
        kind: Kind = "radios" if len(column.levels) <= MAX_RADIO_BUTTONS else "select"
        return Field(kind=kind, choices=tuple(choices), **common)
    state = given.get(f"{key}~", "")
    states = _choosable(wording, column, name, state)
    rest = [Choice("", wording("field.number_above"), not state)] if states else []
    return Field(
        kind="number",
        unit=wording.unit(name),
        range=wording("field.range", **_ends(wording, column, name)),
        whole=column.whole,
        text=text,
        choices=(*rest, *states),
        **common,
    )


def _entry(given: Given, key: str) -> str:
    """What a form sends in a field, without superfluous white space."""
    return " ".join(given.get(key, "").split())


def _form_of(wording: Wording, column: Measure | Levels, key: str, known: Any) -> Given:
    """The fields of a form in which the value of a feature is filled in."""
    if known is None:
        return {}
    same = float(known) if isinstance(known, int) and not isinstance(known, bool) else known
    for token, answer in _answers(column).items():
        if answer is not None and exact_text(answer) == exact_text(same):
            return {key if isinstance(column, Levels) else f"{key}~": token}
    return {} if isinstance(column, Levels) else {key: wording.number(known)}


def _ends(wording: Wording, column: Measure, name: str) -> dict[str, str]:
    """The ends of the range in few digits; what lies a hair outside is taken at the edge."""
    low, high = (
        end if end.is_integer() else phrases.short(end) for end in (column.low, column.high)
    )
    return {"low": wording.number(low), "high": wording.value(name, high)}


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
    """Read what was entered for a feature.

    Parameters
    ----------
    wording, encoder
        As for ``make_field``.
    name
        The feature.
    given
        The fields of the form.
    optional
        Whether the question may be left out.

    Returns
    -------
    tuple
        One value, in the person's words; none if an ``optional`` question was left out.

    Raises
    ------
    UnclearError
        If it is missing, no level, no number, or one that cannot be.
    """
    column, key = encoder[name], f"fact.{name}"
    text, label, answers = _entry(given, key), wording.label(name), _answers(column)
    chosen = _entry(given, f"{key}~") if isinstance(column, Measure) and not text else text
    if chosen in answers:
        return (_whole(answers[chosen], column.whole),)
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
        ends = _ends(wording, column, name)
        raise UnclearError(wording("invalid.outside", label=label, **ends)) from None
    return (number,)


def _whole(value: Any, whole: bool) -> Any:
    return int(value) if whole and isinstance(value, float) and value.is_integer() else value


def read_number(text: str, wording: Wording, label: str, example: float = 12) -> float:
    """Read a number as the language writes it, with or without a sign of money.

    Parameters
    ----------
    text
        What was entered, such as ``12.000,50`` in German, ``12,000.50`` in English.
    wording
        Its language decides what a point and a comma are.
    label, example
        What the error message calls the number, and a number that it shows as an example.

    Raises
    ------
    UnclearError
        If it is no number, or longer than ``LONGEST`` letters.

    Examples
    --------
    >>> import edfa
    >>> german, english = (Wording(edfa.load("german").schema, language) for language in ("de",
    ...     "en"))
    >>> read_number("12.000,50 €", german, "amount"), read_number("€12,000.50", english, "amount")
    (12000.5, 12000.5)
    """
    written = text.strip()
    if wording.language == "de" and (match := GERMAN.fullmatch(written)):
        before, whole, decimals, after = match.groups()
        written = f"{before}{whole.replace('.', '')}{(decimals or '').replace(',', '.')}{after}"
    number = parse_number(written) if len(written) <= MAX_NUMBER_CHARACTERS else None
    if number is None:
        raise not_a_number(wording, label, example)
    return number


def not_a_number(wording: Wording, label: str, example: float) -> UnclearError:
    """The error that asks for a number, with an example of one."""
    return UnclearError(wording("invalid.number", label=label, example=wording.number(example)))
