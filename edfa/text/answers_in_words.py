"""Answers as people type them: ``12,000`` or ``12.000`` by language; levels by their words, number
or beginning.

A number that could mean two things in the language is an error that says how to write it: a guess
that is wrong by a factor of a thousand must not be made in silence.
"""

import re
from collections.abc import Sequence
from itertools import compress

from edfa.data.schema import Feature
from edfa.data.values import CURRENCIES, LARGEST_NUMBER, exact_text, parse_number
from edfa.errors import FactError
from edfa.text import phrases
from edfa.text.phrases import say

Answer = str | int | float
MONEY = (*CURRENCIES, "DM", "NT$")
WRITTEN = re.compile(r"[-+\u2212]?[\d,.'\u2019\s]*\d\s?[kK]?")  # no unit, and nothing after a point
GROUP = re.compile(r"[-+\u2212]?\s*[1-9]\d{0,2}\.(\d{3})\s?[kK]?")
EXPONENT = re.compile(r"[-+]?\d+(?:\.\d+)?[eE][-+]?\d+")


def parse_answer(
    text: str, feature: Feature, language: str, choices: Sequence[Answer] = ()
) -> Answer:
    """What a person means by what they have typed: a number, or one of the levels.

    A level may be given by its name in the card, its words in the language, the key that
    ``choice_keys`` prints before it, or the beginning of name or words if no other level begins so;
    capitals do not matter. Where levels are intervals, a number that is no such key is the level
    that holds it. A number may have its unit and a sign of money beside it; amounts in other money
    are not converted.

    Parameters
    ----------
    text
        What was typed; not empty.
    choices
        The levels in the order in which they are printed; by default the card's.

    Raises
    ------
    FactError
        If the text means nothing, or two things; the message is in the language.

    Examples
    --------
    >>> amount = Feature("amount", "continuous", unit="EUR")
    >>> parse_answer("€12,000", amount, "en"), parse_answer("12.000,50 €", amount, "de")
    (12000, 12000.5)
    >>> housing = Feature("housing", "categorical", levels=("own", "rent"))
    >>> parse_answer("R", housing, "en"), parse_answer("1", housing, "en")
    ('rent', 'own')
    """
    text = phrases.plain(text)
    levels = tuple(choices) or feature.levels
    if not levels and (code := _code(text, feature, language)) is not None:
        return code
    if levels:
        return _level(text, feature, levels, language)
    return text if feature.words else _number(text, feature, language)


def choice_keys(choices: Sequence[Answer]) -> list[str]:
    """What is printed before each level, and may be typed instead of it.

    Parameters
    ----------
    choices
        The levels, in the order in which they are printed.

    Returns
    -------
    list of str
        1, 2, …; where all levels are numbers, the levels themselves.

    Examples
    --------
    >>> choice_keys(["own", "rent"]), choice_keys([-1, 0, 1])
    (['1', '2'], ['-1', '0', '1'])
    """
    if all(phrases.as_number(choice) is not None for choice in choices):
        return [exact_text(choice) for choice in choices]
    return [str(i) for i in range(1, len(choices) + 1)]


def words_of(feature: Feature, level: Answer, language: str) -> str:
    """A level as it is printed in a list of choices: its words without quotation marks.

    >>> words_of(Feature("job", "ordinal", levels=("none", "<1"), unit="years"), "<1", "en")
    'below 1 year'
    """
    return phrases.unquoted(phrases.value(feature, level, language), language)


def _level(text: str, feature: Feature, levels: Sequence[Answer], language: str) -> Answer:
    """The level that a text names.

    The readings are tried in turn, and the first that gives any level decides: the level's name
    in the card as it stands; a name or its words, whatever the capitals; the printed key; the
    beginning of a name or words, or, for a number, the interval that holds it.

    Raises
    ------
    FactError
        If that reading gives several levels, or no reading gives one.
    """
    typed, keys, number = text.casefold(), choice_keys(levels), phrases.as_number(text)
    names = [
        {exact_text(level).casefold(), words_of(feature, level, language).casefold()}
        for level in levels
    ]
    begins = [any(name.startswith(typed) for name in known) for known in names]
    if number is not None:  # 20 is no beginning of "200 or more"
        begins = [_holds(str(level), number) for level in levels]
    readings = (
        [exact_text(level) == text for level in levels],
        [typed in known for known in names],
        [key == text for key in keys],
        begins,
    )
    matches = next((found for reading in readings if (found := [*compress(levels, reading)])), [])
    if len(matches) == 1:
        return matches[0]
    quoted = phrases.quoted(text, language)
    if matches:
        words = [phrases.value(feature, match, language) for match in matches]
        several = phrases.listed(words, language, "or")
        raise FactError(say("answer.several", language, text=quoted, values=several))
    shown = [
        f"{key}) {words_of(feature, level, language)}"
        for key, level in zip(keys, levels, strict=True)
    ]
    values = phrases.listed(shown, language, "or", max_listed=8)
    raise FactError(say("answer.level", language, text=quoted, values=values))


def _holds(level: str, number: float) -> bool:
    """Whether a level that is written as an interval, such as ``1<=X<4``, holds a number."""
    if match := phrases.ONE_BOUND.fullmatch(level):
        end = float(match[2])
        return bool(
            {"<": number < end, "<=": number <= end, ">": number > end, ">=": number >= end}[
                match[1]
            ]
        )
    match = phrases.TWO_BOUNDS.fullmatch(level)
    return match is not None and float(match[1]) <= number < float(match[2])


def _code(text: str, feature: Feature, language: str) -> Answer | None:
    """The code whose meaning a text is, in this language or in the card's words; None if it is
    none.
    """
    for code, meaning in (*feature.codes.items(), *feature.said(language).codes.items()):
        if text.casefold() == meaning.casefold():
            return _whole(float(code))
    return None


def _number(text: str, feature: Feature, language: str) -> Answer:
    """The number that a text means in a language.

    Raises
    ------
    FactError
        If it is no number, could mean two, is a percentage where none is asked for, or too
        large.
    """
    bare, entries = _without_unit(text, feature, language), phrases.table(language)
    if EXPONENT.fullmatch(bare):
        return _bounded(float(bare), text, language)
    english = bare.translate({ord(entries["thousands"]): ",", ord(entries["decimal"]): "."})
    # 12.000: twelve, or twelve thousand in the other way of writing?
    group, money = GROUP.fullmatch(english), any(sign in text for sign in MONEY)
    if group and (group[1] == "000" or money or feature.unit in MONEY):
        raise _error("group", text, language)
    number = parse_number(english) if WRITTEN.fullmatch(english) else None
    if number is None:
        is_share = bare.endswith("%") and re.search(r"\d", bare)
        raise _error("percent" if is_share else "number", text, language)
    return _bounded(number, text, language)


def _bounded(number: float, text: str, language: str) -> Answer:
    """A number that can be meant."""
    if abs(number) > LARGEST_NUMBER:
        raise _error("too_large", text, language)
    return _whole(number)


def _without_unit(text: str, feature: Feature, language: str) -> str:
    """The text without a sign of money, where the feature may be money, and without the feature's
    unit.
    """
    entries, unit = phrases.table(language), phrases.plain(feature.unit)
    forms = {entries.get(f"units.{unit}.{form}", "") for form in ("one", "other")}
    signs = MONEY if unit in MONEY or not unit else ()
    units = {unit, phrases.plain(feature.said(language).unit), *forms, *signs} - {""}
    for sign in sorted(sorted(units), key=len, reverse=True):  # in one order every time
        if after := re.fullmatch(rf"(.*\d.*?)\s*{re.escape(sign)}\.?", text, re.IGNORECASE):
            return after[1]
        if before := re.fullmatch(
            rf"([-+\u2212]?)\s*{re.escape(sign)}\s*(.*\d.*)", text, re.IGNORECASE
        ):
            return before[1] + before[2]
    return text


def _error(key: str, text: str, language: str) -> FactError:
    example = f"{phrases.number(1500, language)} / {phrases.number(12500.5, language)}"
    if key == "percent":
        example = phrases.number(0.45, language)
    return FactError(
        say(f"answer.{key}", language, text=phrases.quoted(text, language), example=example)
    )


def _whole(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number
