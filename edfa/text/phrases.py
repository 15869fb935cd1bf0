"""Sentences from the language files, and numbers, units, labels and levels as a language writes
them.

The sentences are in ``edfa/text/sentences/<language>.toml``; a new language is one more file
with the same keys. ``say`` fills a sentence; ``value`` writes a value of a feature, ``number`` a
number, ``listed`` a list. Languages are named "en" and "de".
"""

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from numbers import Real
from typing import Any, Literal

from edfa.data.schema import Feature
from edfa.errors import check_known
from edfa.reading import read_entries

Conjunction = Literal["and", "or"]
LANGUAGES = ("en", "de")
MAX_LISTED = 5  # longer lists end with "and 3 others"
SIGNIFICANT = 3  # digits of a number that may be rounded
GROUPED_FROM = 10_000  # smaller numbers have no thousands separator, so that years stay as they are
DAYS_A_MONTH = 365.25 / 12
CASES = {100: "in_hundred", 1000: "in_thousand"}
JOINERS = "\u200c\u200d"  # invisible, and part of how some words are written
BOUNDS = {"<": "below", "<=": "at_most", ">": "above", ">=": "at_least"}
ONE_BOUND = re.compile(r"(<=|>=|<|>)\s*(-?\d+(?:\.\d+)?)")
TWO_BOUNDS = re.compile(r"(-?\d+(?:\.\d+)?)\s*<=\s*[Xx]\s*<\s*(-?\d+(?:\.\d+)?)")


def table(language: str, kind: str = "") -> Mapping[str, Any]:
    """Every entry of a language file, keyed ``section.name``.

    Parameters
    ----------
    language
        "en" or "de".
    kind
        Names another file than that of what a person is told: "summary" for
        ``summary.<language>.toml``.

    Raises
    ------
    UnknownNameError
        If the language is not known.
    """
    check_known("language", language, LANGUAGES)
    name = f"{kind}.{language}.toml" if kind else f"{language}.toml"
    return read_entries("edfa.text", f"sentences/{name}")


def say(key: str, language: str, count: int | None = None, /, **values: object) -> str:
    """One entry with its placeholders filled.

    Parameters
    ----------
    key
        The entry, ``section.name``.
    language
        "en" or "de".
    count
        Chooses between the entries ``<key>.one`` and ``<key>.other``, and fills ``{count}``;
        None: the entry has one form.
    values
        What the placeholders stand for.

    Examples
    --------
    >>> say("plan.unknown", "de", 1)
    'Eine Angabe zu Ihnen ist noch nicht bekannt; sie könnte das noch umstoßen.'
    """
    if count is not None:
        key = f"{key}.{'one' if count == 1 else 'other'}"
        values["count"] = number(count, language)
    return str(table(language)[key]).format(**values)


def plain(text: object) -> str:
    """The text on one line without control characters: names come from other people's files."""
    visible = (c if c.isprintable() or c in JOINERS else " " for c in str(text))
    return " ".join("".join(visible).split())


def quoted(text: object, language: str) -> str:
    """The text in quotation marks, so that a name needs no inflection."""
    left, right = table(language)["quotes"]
    return f"{left}{plain(text)}{right}"


def unquoted(text: str, language: str) -> str:
    """The text without the quotation marks around it, for a place of its own: a cell, a choice."""
    left, right = table(language)["quotes"]
    bare = text.removeprefix(left).removesuffix(right)
    return bare if len(text) - len(bare) == len(left) + len(right) else text


def label(feature: Feature, language: str) -> str:
    """A feature's label in a language, in quotation marks."""
    return quoted(feature.said(language).label, language)


def number(value: float, language: str) -> str:
    """A number with all its digits: a plan's number, rounded, might no longer be enough.

    Numbers from 10,000 on have the language's mark between thousands; smaller ones have none, so
    that years stay as they are. What is very large, very small or not finite is written as Python
    does.

    >>> number(12345.5, "en"), number(12345.5, "de"), number(2019, "de")
    ('12,345.5', '12.345,5', '2019')
    """
    exact = Decimal(str(value)).normalize() + 0  # adding 0 turns -0 into 0
    if not exact.is_finite() or abs(exact.adjusted()) > 15:
        return str(value)
    digits = f"{exact:,f}" if abs(exact) >= GROUPED_FROM else f"{exact:f}"
    entries = table(language)
    return digits.translate({ord(","): entries["thousands"], ord("."): entries["decimal"]})


def short(value: float, way: int = 0) -> float:
    """The number in three significant digits: upwards (``way`` 1), downwards (-1), or to the
    nearest.

    >>> short(0.5457365, -1), short(0.5457365, 1), short(36, -1), short(12579, -1), short(0.923145)
    (0.545, 0.546, 36.0, 12500.0, 0.923)
    """
    exact = Decimal(str(value))
    if not exact or not exact.is_finite():
        return value
    rounding = {1: ROUND_CEILING, -1: ROUND_FLOOR}.get(way, ROUND_HALF_EVEN)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - SIGNIFICANT + 1), rounding))


def percent(share: float, language: str, digits: int = 0) -> str:
    """A share as a percentage; never 0% or 100% unless it is exactly that.

    >>> percent(0.431, "en"), percent(0.9999, "en"), percent(0.0001, "de")
    ('43%', 'more than 99%', 'weniger als 1\\xa0%')
    """
    return in_hundred(share, language, digits, unit="percent")


def in_hundred(share: float, language: str, digits: int = 0, unit: str = "") -> str:
    """A share as a number out of 100; never 0 or 100 unless it is exactly that.

    Parameters
    ----------
    share
        The share, between 0 and 1.
    language
        "en" or "de".
    digits
        Decimals of the number.
    unit
        The entry with the unit around the number; empty: none. ``percent`` uses it.

    Examples
    --------
    >>> in_hundred(0.431, "en"), in_hundred(0.9999, "en"), in_hundred(0.4996, "de", 2)
    ('43', 'more than 99', '49,96')
    """
    smallest, rounded = Decimal(1).scaleb(-digits), round(_exact(share) * 100, digits)
    bound = ""
    if 0 < share < 1 and not 0 < rounded < 100:
        bound = "under" if rounded <= 0 else "over"
        rounded = smallest if bound == "under" else 100 - smallest
    text = number(float(rounded), language)
    if unit:
        text = say(unit, language, number=text)
    return say(bound, language, amount=text) if bound else text


def hundredths(first: float, second: float, language: str) -> tuple[str, str]:
    """Two shares as numbers out of 100, with as many digits as it takes to tell them apart.

    Parameters
    ----------
    first, second
        The shares, between 0 and 1.
    language
        "en" or "de".

    Returns
    -------
    tuple of str
        The two numbers, with at most three decimals. Shares that are nearer than that are rounded
        apart, to whole numbers.

    Examples
    --------
    >>> hundredths(0.695, 0.7, "en"), hundredths(0.6999999, 0.7, "en")
    (('69.5', '70'), ('69', '70'))
    """
    for digits in range(4):
        pair = in_hundred(first, language, digits), in_hundred(second, language, digits)
        if pair[0] != pair[1]:
            return pair
    if first == second:
        return in_hundred(first, language), in_hundred(second, language)
    ways = (ROUND_FLOOR, ROUND_CEILING) if first < second else (ROUND_CEILING, ROUND_FLOOR)
    low, high = (
        number(float((_exact(share) * 100).quantize(Decimal(1), way)), language)
        for share, way in zip((first, second), ways, strict=True)
    )
    return low, high


def _exact(share: float) -> Decimal:
    """The number with the digits that Python prints of it."""
    return Decimal(repr(float(share)))


def cases(language: str, *shares: float) -> tuple[str, ...] | None:
    """Shares as counts out of 100 or, if these cannot tell them apart or round one to 0 or all, out
    of 1000.

    Parameters
    ----------
    language
        "en" or "de".
    shares
        One share or several, between 0 and 1.

    Returns
    -------
    tuple of str or None
        One text for each share; None if not even counts out of 1000 will do.

    Examples
    --------
    >>> cases("en", 0.58, 0.31), cases("de", 0.333, 0.334)
    (('58 of 100', '31 of 100'), ('333 von 1000', '334 von 1000'))
    """
    counted = counts(*shares)
    return (
        None
        if counted is None
        else tuple(say(CASES[counted[0]], language, n=n) for n in counted[1])
    )


def counts(*shares: float) -> tuple[int, tuple[int, ...]] | None:
    """The total, 100 or 1000, that ``cases`` counts out of, and the count of each share; None if
    neither will do.
    """
    for total in CASES:
        numbers = tuple(round(share * total) for share in shares)
        honest = all(
            0 < n < total or share in (0, 1) for n, share in zip(numbers, shares, strict=True)
        )
        if honest and len(set(numbers)) == len(numbers):
            return total, numbers
    return None


def listed(
    words: Sequence[str],
    language: str,
    conjunction: Conjunction = "and",
    max_listed: int = MAX_LISTED,
) -> str:
    """A list in words.

    Parameters
    ----------
    words
        The entries.
    language
        "en" or "de".
    conjunction
        "and" or "or", before the last entry.
    max_listed
        Of more entries than this the last are only counted.

    Examples
    --------
    >>> listed(["a", "b", "c"], "de", "or")
    'a, b oder c'
    >>> listed("abcdef", "en", max_listed=3)
    'a, b and 4 others'
    """
    entries = [*words]
    if len(entries) > max_listed:
        entries[max_listed - 1 :] = [say("others", language, n=len(entries) - max_listed + 1)]
    if len(entries) < 2:
        return "".join(entries)
    return say(conjunction, language, first=", ".join(entries[:-1]), last=entries[-1])


def value(feature: Feature, raw: Any, language: str) -> str:
    """A feature's value in words: a number with its unit, an interval, or a level or code as the
    card says it, quoted.

    Parameters
    ----------
    feature
        The feature, with its unit, levels and codes.
    raw
        The value: a number, a level, or None or NaN, which is told as a gap.
    language
        "en" or "de".

    Examples
    --------
    >>> years = Feature("job", "ordinal", levels=("none", "<1", "1<=X<4"), unit="years")
    >>> [value(years, level, "en") for level in years.levels]
    ['“none”', 'below 1 year', '1 to below 4 years']
    >>> value(Feature("months", "continuous", unit="months", codes={"-9": "no record"}), -9.0, "de")
    '„no record“'
    """
    if raw is None or raw != raw:  # NaN
        return say("gap", language)
    if (words := named(feature, raw, language)) is not None:
        return quoted(words, language)
    if isinstance(raw, bool) or not isinstance(raw, Real):
        return _level(feature, plain(raw), language)
    return _measurement(feature, float(raw), language)


def named(feature: Feature, raw: Any, language: str) -> str | None:
    """The card's words for a level or a code in a language; None if it has none.

    >>> from edfa.data.schema import FeatureWords
    >>> delay = Feature("delay", "ordinal", levels=(0, 1),
    ...     translations={"de": FeatureWords(levels={"0": "pünktlich"})})
    >>> named(delay, 0.0, "de"), named(delay, 1, "de"), named(delay, 0, "en")
    ('pünktlich', None, None)
    """
    said = feature.said(language)
    if isinstance(raw, bool) or not isinstance(raw, Real):
        return said.levels.get(str(raw))
    names = {**said.codes, **said.levels}
    return next((words for name, words in names.items() if as_number(name) == raw), None)


def as_number(level: object) -> float | None:
    """The number that a level or the name of a code is; None if it is none."""
    try:
        return float(str(level))
    except ValueError:
        return None


def bounded(feature: Feature, raw: Any, way: int, language: str) -> str:
    """A value and everything below or above it.

    Parameters
    ----------
    feature
        The feature.
    raw
        The value that is still included.
    way
        -1: everything below is included; 1: everything above.
    language
        "en" or "de".

    Returns
    -------
    str
        The bound; the value alone if nothing is beyond it.

    Examples
    --------
    >>> months, years = (Feature("duration", "continuous", unit="months"), Feature("job", "ordinal",
    ...     levels=("none", "<1", "1<=X<4", ">=4"), unit="years"))
    >>> bounded(months, 36, -1, "en"), bounded(Feature("burden", "continuous", unit="%"), 30.5, -1,
    ...     "en"), bounded(Feature("x", "continuous"), 12, 1, "de")
    ('36 months or fewer', '30.5 % or less', 'mindestens 12')
    >>> bounded(years, "1<=X<4", 1, "en"), bounded(years, ">=4", 1, "en")
    ('1 to below 4 years or higher', '4 years or more')
    """
    words, unit = value(feature, raw, language), plain(feature.unit)
    if (has_name := named(feature, raw, language) is not None) or not isinstance(raw, Real):
        end, sign = (feature.levels[:1], "<") if way < 0 else (feature.levels[-1:], ">")
        if raw in end or plain(raw).startswith(sign):
            return words  # nothing is beyond it, or it says so itself
        key = "or_higher" if way > 0 else "or_lower"
        if way < 0 and has_name and feature.monotone == "down":
            key = "or_better"
    elif way > 0:
        key = "at_least"
    else:
        counted = not unit or f"units.{unit}.other" in table(language)
        key = "or_fewer" if counted and float(raw).is_integer() else "or_less"
    return say(f"bounds.{key}", language, value=words)


def duration(months: float, language: str) -> str:
    """A time in days below a month, in months below two years, else in half years.

    >>> duration(0.25, "en"), duration(18, "en"), duration(31, "de")
    ('8 days', '18 months', '2,5 Jahre')
    """
    if months < 1:
        amount, unit = max(1.0, round(months * DAYS_A_MONTH)), "days"
    elif months < 24:
        amount, unit = round(months), "months"
    else:
        amount, unit = round(months / 6) / 2, "years"
    return _measurement(Feature("time", "continuous", unit=unit), amount, language)


def _measurement(feature: Feature, amount: float, language: str) -> str:
    """A number and its unit; common units are translated and inflected, others are as the card says
    them.
    """
    unit, form = plain(feature.said(language).unit), "one" if amount == 1 else "other"
    unit = table(language).get(f"units.{unit}.{form}", unit)
    return f"{number(amount, language)} {unit}".strip()


def _level(feature: Feature, level: str, language: str) -> str:
    """A level in words: ``<1`` and ``1<=X<4`` as intervals, any other in quotation marks."""
    if match := ONE_BOUND.fullmatch(level):
        sign, end = match.groups()
        return say(
            f"levels.{BOUNDS[sign]}", language, end=_measurement(feature, float(end), language)
        )
    if match := TWO_BOUNDS.fullmatch(level):
        start, end = map(float, match.groups())
        return say(
            "levels.between",
            language,
            start=number(start, language),
            end=_measurement(feature, end, language),
        )
    return quoted(level, language)
