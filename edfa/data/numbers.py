"""Numbers as people write them: ``€1,430``, ``45 %``, ``$2.5k``, `` 12 ``.

A point is the decimal point and a comma parts thousands. What could mean two things (``1,5``,
``€1.430``) is no number: a guess that is wrong by a factor of a thousand must not be made in
silence.
"""

import math
import re
from numbers import Real

__all__ = ["LARGEST", "exact_text", "parse_number", "unit_of"]

# numbers beyond it measure nothing about a person, and are no longer whole in floating point
LARGEST = 1e15

CURRENCIES = ("€", "$", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "JPY", "INR", "Rs")
_MONEY = "|".join(map(re.escape, CURRENCIES))
_NUMBER = re.compile(
    rf"""(?P<open>\()?\s*                                      # accountants write (1,430) for -1430
    (?P<sign>[-+\u2212]?)\s*(?P<before>{_MONEY})?\s*(?P<inner>[-\u2212]?)
    (?P<whole>[1-9]\d{{0,2}}(?P<separator>[,'\u2019\ \u00a0\u202f])\d{{3}}(?:(?P=separator)\d{{3}})*|\d+)?
    (?P<decimals>\.\d*)?(?P<power>[eE][-+]?\d+)?
    \s*(?P<scale>[kKmM])?\s*(?P<after>%|{_MONEY})?\s*(?P<close>\))?""",  # noqa: E501
    re.VERBOSE,
)


def exact_text(value: object) -> str:
    """A value as text that no other value has: whole numbers without a fraction, others with all
    their digits; anything that is no number as it is.

    Examples
    --------
    >>> exact_text(9999997.0), exact_text(0.1), exact_text(2), exact_text("own ")
    ('9999997', '0.1', '2', 'own ')
    """
    if isinstance(value, int) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) <= LARGEST else repr(number)


def parse_number(text: str) -> float | None:
    """The number that a text means; None if it is no number, could be two, or is too large for a
    float.

    A per cent sign is left out: ``"45%"`` is 45. ``k`` are thousands, and after money ``m`` are
    millions.

    Examples
    --------
    >>> parse_number(" €1,430 "), parse_number("$2.5k"), parse_number("45 %"), parse_number("(200)")
    (1430.0, 2500.0, 45.0, -200.0)
    >>> parse_number("1,5"), parse_number("€1.430"), parse_number("12 months")
    (None, None, None)
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None or not (match["whole"] or len(match["decimals"] or "") > 1):
        return None
    money = bool(match["before"] or match["after"] not in (None, "%"))
    if bool(match["open"]) != bool(match["close"]) or (match["sign"] and match["inner"]):
        return None
    if money and len(match["decimals"] or "") == 4 and not match["separator"]:  # 1430, or 1.43?
        return None
    scale = (match["scale"] or "").lower()
    if scale == "m" and not money:  # metres, months, minutes or millions
        return None
    digits = (
        re.sub(r"\D", "", match["whole"] or "0")
        + (match["decimals"] or "")
        + (match["power"] or "")
    )
    negative = (
        bool(match["open"]) or "-" in (sign := match["sign"] + match["inner"]) or "\u2212" in sign
    )
    number = float(digits) * {"": 1.0, "k": 1e3, "m": 1e6}[scale]
    if not math.isfinite(number):
        return None
    return -number if negative else number


def unit_of(texts: list[str]) -> tuple[str, ...]:
    """The signs of money and per cent that stand beside numbers in ``texts``, sorted, each once.

    >>> unit_of(["€1,430", "€20", "7"])
    ('€',)
    """
    matches = [match for text in texts if (match := _NUMBER.fullmatch(text.strip()))]
    return tuple(sorted({sign for m in matches for sign in (m["before"], m["after"]) if sign}))
