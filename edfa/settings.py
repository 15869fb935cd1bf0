"""Checks of settings that many parts share, made before any work is spent."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from edfa.errors import SettingError

__all__ = ["LARGEST_SEED", "check_count", "check_items", "check_seed"]

LARGEST_SEED = 2**32 - 1  # what NumPy, scikit-learn, XGBoost and PyTorch all take


def check_seed(seed: Any) -> int:
    """``seed`` as an int, if it is a whole number from 0 to 4,294,967,295; else SettingError.

    Examples
    --------
    >>> check_seed(7)
    7
    >>> check_seed(-1)
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: seed: a whole number from 0 to 4294967295, not -1
    """
    if (
        isinstance(seed, bool)
        or not isinstance(seed, Integral)
        or not 0 <= int(seed) <= LARGEST_SEED
    ):
        raise SettingError(f"seed: a whole number from 0 to {LARGEST_SEED}, not {str(seed)[:40]}")
    return int(seed)


def check_count(name: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Raise SettingError unless ``value`` is a whole number of at least ``least``, or None if it is
    ``optional``.

    Examples
    --------
    >>> check_count("n_completions", 2.5, 2)
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: n_completions: a whole number of at least 2, not 2.5
    """
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        more = ", or None" if optional else ""
        raise SettingError(
            f"{name}: a whole number of at least {least}{more}, not {repr(value)[:40]}"
        )


def check_items(name: str, values: Any, what: str, *, text: bool = False) -> list[Any]:
    """The items of a list, tuple or array that is not empty, all of them texts if ``text`` is set;
    else SettingError.

    One text is no list of its letters, and a set has no order. ``what`` says what the setting
    takes.

    Examples
    --------
    >>> check_items("classes", "good", "the outcomes in order")
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: classes: a list of the outcomes in order, not 'good'
    """
    listed = values.tolist() if hasattr(values, "tolist") else values  # of numpy and pandas
    items = (
        list(listed) if isinstance(listed, Sequence) and not isinstance(listed, str | bytes) else []
    )
    if not items or (text and not all(isinstance(item, str) for item in items)):
        raise SettingError(f"{name}: a list of {what}, not {repr(values)[:40]}")
    return items
