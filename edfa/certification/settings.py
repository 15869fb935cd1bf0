"""What the settings of a certificate may be, checked before any work is spent."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from edfa.errors import SettingError, hint
from edfa.typing import Float64Array

__all__ = ["first", "level", "one_of", "share"]


def share(name: str, value: Any) -> Float64Array:
    """Numbers between 0 and 1, the ends included."""
    try:
        shares = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"{name} is a number between 0 and 1, not {value!r}") from None
    bad = ~((shares >= 0) & (shares <= 1))
    if bad.any():
        raise SettingError(f"{name} lies between 0 and 1, which {first(shares, bad)} does not")
    return shares


def level(value: Any, name: str = "delta") -> Float64Array:
    """Numbers between 0 and 1, the ends left out."""
    levels = share(name, value)
    ends = (levels <= 0) | (levels >= 1)
    if ends.any():
        raise SettingError(f"{name} lies between 0 and 1, the ends left out, not at {first(levels, ends):g}")
    return levels


def one_of(name: str, value: Any, known: Iterable[str]) -> None:
    """Refuse a word that is not among the known ones, and name the nearest."""
    words = list(known)
    if value not in words:
        raise SettingError(f"{name} is not {value!r}{hint(value, words)}")


def first(values: Any, bad: Any) -> Any:
    """The first of the bad values, for a message."""
    return np.broadcast_to(values, bad.shape)[bad].flat[0]
