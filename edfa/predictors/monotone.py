"""Directions in models: which way of a column is good, as signs, and whether a fitted model keeps to them."""

from edfa.errors import SettingError

__all__ = ["check_signs"]


def check_signs(monotone: tuple[int, ...] | None, columns: int) -> tuple[int, ...]:
    """A model's ``monotone`` setting as one sign a column; SettingError unless it is one of -1, 0, 1 for each.

    >>> check_signs(None, 3)
    (0, 0, 0)
    """
    if monotone is None:
        return (0,) * columns
    if not isinstance(monotone, tuple):
        raise SettingError(f"monotone: a tuple with one of -1, 0, 1 for each column, not {monotone!r}")
    if wrong := [sign for sign in monotone if type(sign) is not int or sign not in (-1, 0, 1)]:
        raise SettingError(f"monotone: one of -1, 0, 1 for each column, not {wrong[0]!r}")
    if len(monotone) != columns:
        raise SettingError(f"monotone: one sign a column, {columns}, not {len(monotone)}")
    return monotone
