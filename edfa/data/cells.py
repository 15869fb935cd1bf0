"""The border for one value: what a cell of a file, or an answer of a person, means as a number or
as a word.

Every way in asks here: CSV, Parquet, JSON lines, data frames and interviews. ``edfa.data.border``
does the same to whole columns at once.

- A **gap** is null, NaN or an empty text.
- A **number** is a number that is not a truth value, or a text as ``parse_number`` reads it. It is
  exact to the last digit, and at most ``LARGEST`` away from zero.
- A **word** is a text as it stands. A whole number is written without a point (1.0 is ``"1"``), any
  other number with all its digits, a truth value as ``"True"`` or ``"False"``.
"""

import math
import numbers
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.numbers import LARGEST, parse_number
from edfa.errors import FactError

__all__ = [
    "SHOWN",
    "as_number",
    "as_word",
    "exact",
    "is_gap",
    "match_level",
    "shorten",
    "unwrap",
    "without_limit",
]

SHOWN = 60  # characters of a value in an error message
WHOLE = 2**53  # floats below it are whole numbers exactly
_WHOLE_FLOAT = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0")


def is_gap(value: Any) -> bool:
    """Whether a value says nothing: null, NaN or an empty text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, str):
        return value == ""
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return bool(isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value))


def unwrap(value: Any) -> Any:
    """The Python value of a numpy scalar or an array without dimensions; anything else as it is."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    # A date of numpy would become a number of nanoseconds.
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufSU" else value


def without_limit(value: Any) -> float | None:
    """The number that a value means, of any size; None if it means none, or is a gap. Too large for
    a float: infinite.

    >>> without_limit("€1,430"), without_limit(True), without_limit(10**400)
    (1430.0, None, inf)
    """
    value = unwrap(value)
    if is_gap(value) or isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, str):
        return parse_number(value)
    if not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < Fraction(0) else math.inf


def as_number(value: Any, name: str) -> float | None:
    """An answer as a number, None for a gap; FactError naming the feature ``name`` if it is
    neither.

    >>> as_number("€1,430", "income"), as_number("", "income")
    (1430.0, None)
    """
    value = unwrap(value)
    if is_gap(value):
        return None
    number = without_limit(value)
    if number is None:
        raise FactError(f"{name}: a number is needed, not {shorten(value)}")
    if not math.isfinite(number):
        raise FactError(f"{name}: a finite number is needed, not {shorten(value)}")
    if abs(number) > LARGEST:
        raise FactError(f"{name}: {number:g} is beyond {LARGEST:g}, no measurement")
    return number


def as_word(value: Any, name: str) -> str | None:
    """An answer as a word, None for a gap; FactError naming the feature ``name`` if it is neither.

    >>> as_word(1.0, "job"), as_word("01", "job"), as_word(True, "job")
    ('1', '01', 'True')
    """
    value = unwrap(value)
    if is_gap(value):
        return None
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise FactError(f"{name}: {shorten(value)} is no text: it has half a character")
        return str(value)
    if isinstance(value, Decimal) and value.is_finite():
        return format(value, "f")
    if isinstance(value, numbers.Integral) and abs(int(value)) < 10**SHOWN:
        return str(bool(value)) if isinstance(value, bool) else str(int(value))
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < WHOLE else repr(number)
    raise FactError(f"{name}: a word is needed, not {shorten(value)}")


def match_level(word: str, levels: Iterable[str]) -> str | None:
    """The level that a word means: itself, or else the only one that differs by the way software
    writes it.

    A data frame writes the whole numbers of a column with gaps as ``1.0``, and a truth value as
    ``True``.

    >>> match_level("1.0", ["1", "2"]), match_level("True", ["true", "false"]), match_level("01",
    ...     ["1", "2"])
    ('1', 'true', None)
    """
    known = list(levels)
    if word in known:
        return word
    if word in ("True", "False"):
        same = [level for level in known if level.casefold() == word.casefold()]
    else:
        same = [level for level in known if _without_point(level) == _without_point(word)]
    return same[0] if len(same) == 1 else None


def _without_point(word: str) -> str:
    match = _WHOLE_FLOAT.fullmatch(word)
    return match[1] if match else word


def exact(number: float) -> str:
    """A number with as many digits as it takes to tell it from every other.

    >>> exact(99.95), exact(20.0), exact(0.27384999999999998)
    ('99.95', '20', '0.27385')
    """
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number)).removesuffix(".0")


def shorten(value: Any) -> str:
    """A value for an error message: on one line, and not long."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a whole number of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    if not isinstance(value, str | int | float | Decimal | bytes | list | tuple | dict | set):
        return (
            f"a {type(value).__name__}"
            if isinstance(value, np.ndarray | pd.Series)
            else _shown(value)
        )
    return _shown(value[:SHOWN] if isinstance(value, str | bytes) else value)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (
        ValueError,
        RecursionError,
    ):  # a list of whole numbers with thousands of digits, or one inside itself
        text = f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= SHOWN + 2 else text[:SHOWN] + "…"
