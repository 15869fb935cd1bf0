"""Checks of settings that many parts share, made before any work is spent."""

from numbers import Integral
from typing import Any

from edfa.errors import SettingError

__all__ = ["LARGEST_SEED", "check_seed"]

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
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) <= LARGEST_SEED:
        raise SettingError(f"seed: a whole number from 0 to {LARGEST_SEED}, not {str(seed)[:40]}")
    return int(seed)
