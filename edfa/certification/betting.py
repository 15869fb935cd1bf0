"""Bounds by betting: capital that can only grow by luck if the risk is what the bet denies.

Somebody who doubts that the risk is ``mu`` or more bets on each loss in turn, looking only at the losses before it.
If the doubt is wrong the capital is fair or worse, so it ever reaches 1/delta with chance at most delta (Ville): the
p-value is one over the largest capital so far, at any time. The bets are one-sided: a two-sided capital also grows
when the risk lies far *above* mu, and would certify that.

Reference: Waudby-Smith and Ramdas 2024 (predictable plug-in bets).
"""

from typing import Any

import numpy as np

from edfa.certification.bounds import HALVINGS
from edfa.certification.settings import level, share
from edfa.errors import SettingError
from edfa.typing import Float64Array

__all__ = ["log_capital", "wsr_p_value", "wsr_ucb"]


def wsr_p_value(losses: Any, mu: Any, delta: float = 0.05, horizon: int | None = None) -> Any:
    """The p-value for a mean loss of ``mu`` or more, from losses in [0, 1] in an order that saw none of them.

    The last axis is the order. ``delta`` only tunes the bets: the p-value holds for every level. So does ``horizon``,
    the number of people one plans for; whoever looks while people still arrive must fix it beforehand, else the bets
    would change with every look.

    Examples
    --------
    >>> print(f"{wsr_p_value([0.0] * 40, 0.1):.4f}")
    0.0226
    >>> print(wsr_p_value([1.0] * 40, 0.1))
    1.0
    """
    capital = log_capital(_checked(losses), share("mu", mu), float(level(delta)), horizon)
    return np.exp(-np.maximum(capital.max(axis=-1), 0.0))[()]


def wsr_ucb(losses: Any, delta: float = 0.05, horizon: int | None = None) -> Any:
    """The smallest mean loss that the bets rule out at level ``delta``; rounded up by less than 1e-15.

    The bets do not depend on ``mu``, hence the capital grows with it and the bound agrees with the p-value.

    Examples
    --------
    >>> print(f"{wsr_ucb([0.0] * 40):.4f}")
    0.0783
    """
    values = _checked(losses)
    doubt = float(level(delta))
    low, high = np.zeros(values.shape[:-1]), np.ones(values.shape[:-1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        out = log_capital(values, middle, doubt, horizon).max(axis=-1) >= -np.log(doubt)
        low, high = np.where(out, low, middle), np.where(out, middle, high)
    return high[()]


def log_capital(losses: Float64Array, mu: Any, delta: float, horizon: int | None = None) -> Float64Array:
    """The logarithm of the capital after each loss along the last axis."""
    stakes = _bets(losses, delta, horizon or losses.shape[-1])
    with np.errstate(divide="ignore"):  # a sure bet against mu = 0 that is lost
        return np.cumsum(np.log1p(-stakes * (losses - np.asarray(mu)[..., None])), axis=-1)


def _bets(losses: Float64Array, delta: float, horizon: int) -> Float64Array:
    """min(1, sqrt(2 log(1/delta) / (horizon * variance so far))): one made-up loss of 1/2 stands for the start."""
    seen = np.arange(2, losses.shape[-1] + 2)
    means = (0.5 + np.cumsum(losses, axis=-1)) / seen
    spread = (0.25 + np.cumsum((losses - means) ** 2, axis=-1)) / seen
    before = np.concatenate([np.full((*losses.shape[:-1], 1), 0.25), spread[..., :-1]], axis=-1)
    return np.asarray(np.minimum(1.0, np.sqrt(-2 * np.log(delta) / (horizon * before))))


def _checked(losses: Any) -> Float64Array:
    values = share("a loss", losses)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise SettingError("a bet needs at least one loss")
    return values
