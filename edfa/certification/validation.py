"""Checks of arguments, made before any work is spent; every failure is a ``SettingError``."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from edfa.errors import SettingError, hint
from edfa.typing import Float64Array

__all__ = ["check_choice", "check_level", "check_share", "first_where"]


def check_share(name: str, value: Any) -> Float64Array:
    """Return ``value`` as float64 (any shape); every element must lie in [0, 1]."""
    try:
        shares = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"{name} is a number between 0 and 1, not {value!r}") from None
    outside = ~((shares >= 0) & (shares <= 1))
    if outside.any():
        raise SettingError(
            f"{name} lies between 0 and 1, which {first_where(shares, outside)} does not"
        )
    return shares


def check_level(name: str, value: Any) -> Float64Array:
    """Return ``value`` as float64 (any shape); every element must lie strictly between 0 and 1."""
    levels = check_share(name, value)
    at_end = (levels <= 0) | (levels >= 1)
    if at_end.any():
        raise SettingError(
            f"{name} lies between 0 and 1, the ends left out, not at "
            f"{first_where(levels, at_end):g}"
        )
    return levels


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a word that is not one of ``choices``, and suggest the nearest."""
    words = list(choices)
    if value not in words:
        raise SettingError(f"{name} is not {value!r}{hint(value, words)}")


def first_where(values: Any, mask: Any) -> Any:
    """Return the first element of ``values`` (broadcast to ``mask``) at which ``mask`` is true."""
    return np.broadcast_to(values, mask.shape)[mask].flat[0]
