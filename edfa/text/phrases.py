"""Words for people: sentences from one string table, numbers, units, labels and levels as a language writes them.

The table is ``edfa/text/sentences/<language>.toml``; a new language is one more file with the same keys.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files
from numbers import Real
from typing import Any, Literal

from edfa.data.feature import Feature
from edfa.errors import UnknownNameError

__all__ = [
    "LANGUAGES",
    "Joint",
    "cases",
    "label",
    "listed",
    "number",
    "percent",
    "percents",
    "plain",
    "quoted",
    "say",
    "value",
]

Joint = Literal["and", "or"]
LANGUAGES = ("en", "de")
MANY = 5  # things that are listed one by one
LONG = 10_000  # whole parts are grouped from here on, so that years stay as they are
TENTHS = {10: "in_ten", 100: "in_hundred", 1000: "in_thousand"}
JOINERS = "\u200c\u200d"  # invisible, and part of how some words are written
ENDS = {"<": "below", "<=": "at_most", ">": "above", ">=": "at_least"}
ONE_END = re.compile(r"(<=|>=|<|>)\s*(-?\d+(?:\.\d+)?)")
TWO_ENDS = re.compile(r"(-?\d+(?:\.\d+)?)\s*<=\s*[Xx]\s*<\s*(-?\d+(?:\.\d+)?)")


@cache
def table(language: str) -> Mapping[str, Any]:
    """All entries of a language, keyed ``section.name``."""
    if language not in LANGUAGES:
        raise UnknownNameError("language", language, LANGUAGES)
    text = (files("edfa.text") / "sentences" / f"{language}.toml").read_text(encoding="utf-8")
    return dict(_flat(tomllib.loads(text)))


def _flat(section: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, entry in section.items():
        found += _flat(entry, f"{before}{name}.") if isinstance(entry, dict) else [(before + name, entry)]
    return found


def say(key: str, language: str, count: int | None = None, /, **values: object) -> str:
    """One entry with its places filled; with a ``count``, its form for one or for more.

    >>> say("plan.unknown", "de", 1)
    'Eine Angabe zu Ihnen ist noch nicht bekannt; sie könnte das noch umstoßen.'
    """
    if count is not None:
        key, values = f"{key}.{'one' if count == 1 else 'other'}", values | {"count": number(count, language)}
    return str(table(language)[key]).format(**values)


def plain(text: object) -> str:
    """One line without control characters: names come from other people's files."""
    kept = (c if c.isprintable() or c in JOINERS else " " for c in str(text))
    return " ".join("".join(kept).split())


def quoted(text: object, language: str) -> str:
    """In quotation marks, so that a name needs no inflection."""
    left, right = table(language)["quotes"]
    return f"{left}{plain(text)}{right}"


def label(feature: Feature, language: str) -> str:
    """A fact by its card's name."""
    return quoted(feature.title, language)


def number(value: float, language: str) -> str:
    """All its digits: rounded, a plan's number might no longer do.

    >>> number(12345.5, "en"), number(12345.5, "de"), number(2019, "de")
    ('12,345.5', '12.345,5', '2019')
    """
    exact = Decimal(str(value)).normalize() + 0  # and no -0
    if not exact.is_finite() or abs(exact.adjusted()) > 15:
        return str(value)
    shown = f"{exact:,f}" if abs(exact) >= LONG else f"{exact:f}"
    entries = table(language)
    return shown.translate({ord(","): entries["thousands"], ord("."): entries["decimal"]})


def percent(share: float, language: str, digits: int = 0) -> str:
    """A share as a percentage; never 0 or 100 where that is not so.

    >>> percent(0.431, "en"), percent(0.9999, "en"), percent(0.0001, "de")
    ('43%', 'more than 99%', 'weniger als 1\\xa0%')
    """
    least = Decimal(1).scaleb(-digits)
    shown = round(Decimal(repr(float(share))) * 100, digits)
    if 0 < share < 1 and (shown <= 0 or shown >= 100):
        edge, key = (least, "under") if shown <= 0 else (100 - least, "over")
        return say(key, language, percent=say("percent", language, number=number(float(edge), language)))
    return say("percent", language, number=number(float(shown), language))


def percents(first: float, second: float, language: str) -> tuple[str, str]:
    """Two shares with as many digits as it takes to tell them apart."""
    for digits in range(4):
        shown = percent(first, language, digits), percent(second, language, digits)
        if shown[0] != shown[1]:
            return shown
    return percent(first, language), percent(second, language)


def cases(language: str, *shares: float) -> tuple[str, ...] | None:
    """Shares as so many of 10, or of 100 or 1000 where that tells them apart or is needed to say more than none.

    >>> cases("en", 0.58, 0.31), cases("de", 0.33, 0.34)
    (('6 of 10', '3 of 10'), ('33 von 100', '34 von 100'))
    """
    for of, key in TENTHS.items():
        counts = [round(share * of) for share in shares]
        honest = all(0 < n < of or share in (0, 1) for n, share in zip(counts, shares, strict=True))
        if honest and len(set(counts)) == len(counts):
            return tuple(say(key, language, n=n) for n in counts)
    return None


def listed(words: Sequence[str], language: str, joint: Joint = "and", many: int = MANY) -> str:
    """A list in words; of a long one the first few.

    >>> listed(["a", "b", "c"], "de", "or")
    'a, b oder c'
    """
    shown = [*words]
    if len(shown) > many:
        shown[many - 1 :] = [say("others", language, n=len(shown) - many + 1)]
    if len(shown) < 2:
        return "".join(shown)
    return say(joint, language, first=", ".join(shown[:-1]), last=shown[-1])


def value(feature: Feature, given: Any, language: str) -> str:
    """A value of a feature with its unit; what a code means; an interval in words; any other level in quotes.

    >>> years = Feature("job", "ordinal", levels=("none", "<1", "1<=X<4"), unit="years")
    >>> [value(years, level, "en") for level in years.levels]
    ['“none”', 'below 1 year', '1 to below 4 years']
    >>> value(Feature("months", "continuous", unit="months", codes={"-9": "no record"}), -9.0, "de")
    '„no record“'
    """
    if given is None or given != given:  # NaN
        return say("gap", language)
    if isinstance(given, bool) or not isinstance(given, Real):
        return _level(feature, plain(given), language)
    for code, meaning in feature.codes.items():
        if float(code) == given:
            return quoted(meaning, language)
    return _measured(feature, float(given), language)


def _measured(feature: Feature, given: float, language: str) -> str:
    """A number and its unit. The commonest units have their two forms in the string table, others stay as they are."""
    unit, form = plain(feature.unit), "one" if given == 1 else "other"
    unit = table(language).get(f"units.{unit}.{form}", unit)
    return f"{number(given, language)} {unit}".strip()


def _level(feature: Feature, level: str, language: str) -> str:
    if found := ONE_END.fullmatch(level):
        sign, end = found.groups()
        return say(f"levels.{ENDS[sign]}", language, end=_measured(feature, float(end), language))
    if found := TWO_ENDS.fullmatch(level):
        start, end = map(float, found.groups())
        return say("levels.between", language, start=number(start, language), end=_measured(feature, end, language))
    return quoted(level, language)
