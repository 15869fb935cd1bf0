"""How many people must be calibrated on, and what more of them could change.

A bound on n people is a saw-tooth in n: losses are rounded up to whole people, so one more person can make it worse.
Hence two numbers, the first n that suffices and the n from which on every n does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from edfa.certification.bounds import cp_p_value, hb_p_value, hoeffding_p_value
from edfa.certification.settings import level, one_of, share
from edfa.typing import Float64Array

__all__ = [
    "PLANNED",
    "Required",
    "check_plan",
    "critical_losses",
    "floor",
    "n_for_power",
    "n_required",
    "p_value",
    "power",
]

PLANNED = ("hb", "hb_kl", "cp", "hoeffding")
FARTHEST = 200_000  # people; past it only the closed form is given


@dataclass(frozen=True)
class Required:
    """How many people a certificate takes at an observed risk: by formula, and exactly.

    All are None where the risk is not below alpha: no n suffices. ``first`` and ``stable`` alone are None where they
    would be past 200,000.
    """

    closed_form: int | None
    first: int | None
    stable: int | None
    floor: int

    @property
    def possible(self) -> bool:
        """Whether enough people could help at all."""
        return self.closed_form is not None


def n_required(alpha: float, r0: float, delta: float = 0.05, bound: str = "hb") -> Required:
    """People needed to certify ``alpha`` when the risk of the strictest rule is observed as ``r0``.

    The closed form is the paper's equation (hb-lower), from Hoeffding's term alone.

    Examples
    --------
    >>> n_required(0.2, 0.1)
    Required(closed_form=150, first=78, stable=84, floor=18)
    >>> n_required(0.2, 0.1, bound="cp").first
    50
    >>> n_required(0.2, 0.3).possible
    False
    """
    check_plan(alpha, delta, bound)
    share("r0", r0)
    least = floor(alpha, delta, bound)
    if r0 >= alpha:
        return Required(None, None, None, least)
    gap, doubt = alpha - r0, -np.log(delta)
    closed = int(np.ceil(doubt / (2 * gap**2)))
    # One loss more than n * r0 is the most that rounding up can add, and from here on Hoeffding allows for it.
    end = int((doubt / 2 + 2 * gap) / gap**2) + 2
    if end > FARTHEST:
        return Required(closed, None, None, least)
    sizes = np.arange(1, end + 1)
    passed = p_value(bound, alpha, sizes, risk=np.full(end, float(r0))) <= delta
    first = int(sizes[np.argmax(passed)])
    stable = int(sizes[~passed][-1]) + 1 if not passed.all() else 1
    return Required(closed, first, stable, least)


def floor(alpha: float, delta: float = 0.05, bound: str = "hb") -> int:
    """The fewest people with whom anything can be certified, even without a single loss.

    >>> [floor(alpha) for alpha in (0.05, 0.1, 0.2, 0.3)]
    [78, 38, 18, 12]
    """
    check_plan(alpha, delta, bound)
    low, high = 0, int(np.ceil(-np.log(delta) / (2 * alpha**2))) + 1  # Hoeffding alone passes at the upper end
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if p_value(bound, alpha, middle, losses=0) <= delta else (middle, high)
    return high


def critical_losses(n: Any, alpha: float, delta: float = 0.05, bound: str = "hb", m: int = 1) -> Any:
    """The largest number of lost runs, of n people with m runs each, that still certifies; -1 where none does.

    >>> critical_losses([30, 100, 500], 0.2)
    array([ 1, 11, 81])
    """
    check_plan(alpha, delta, bound)
    people = np.asarray(n, dtype=np.int64)
    low, high = np.full(people.shape, -1), people * m
    runs = {} if bound == "cp" else {"m": m}
    while np.any(high - low > 1):
        middle = (low + high + 1) // 2  # above low, so never negative; high where nothing is left between
        passed = p_value(bound, alpha, people, losses=middle, **runs) <= delta
        low, high = np.where(passed, middle, low), np.where(passed, high, middle)
    return low[()]


def power(n: Any, alpha: float, risk: float, delta: float = 0.05, bound: str = "hb") -> Any:
    """The chance that n people certify ``alpha`` when the true risk (of losses that are 0 or 1) is ``risk``.

    >>> power([78, 128], 0.2, 0.1).round(2)
    array([0.62, 0.86])
    """
    people = np.asarray(n, dtype=np.int64)
    allowed = critical_losses(people, alpha, delta, bound)
    chance = special.betaincc(np.maximum(allowed, 0) + 1.0, np.maximum(people - allowed, 1), share("risk", risk))
    return np.where(allowed < 0, 0.0, chance)[()]


def n_for_power(
    alpha: float, risk: float, chances: Sequence[float] = (0.5, 0.8, 0.9), delta: float = 0.05, bound: str = "hb"
) -> tuple[int | None, ...]:
    """The n from which on the chance to certify is at least each of ``chances``; None past 200,000, or if no n will do.

    Putting an observed risk into ``n_required`` gives about an even chance; plan with 80 or 90 %.

    >>> n_for_power(0.2, 0.1)
    (78, 128, 159)
    """
    check_plan(alpha, delta, bound)
    wanted = level(chances, "chances")
    last, start, short = np.zeros(len(wanted), dtype=np.int64), 1, np.full(len(wanted), risk < alpha)
    # A block is as long as all before it; once the chance holds throughout one, the saw-tooth has passed below it.
    while short.any() and start < FARTHEST:
        sizes = np.arange(start, 2 * start + 64)
        below = power(sizes, alpha, risk, delta, bound) < wanted[:, None]
        short = below.any(axis=1)
        last = np.where(short, (sizes * below).max(axis=1), last)
        start = int(sizes[-1]) + 1
    found = (risk < alpha) & ~short
    return tuple(int(n) + 1 if ok else None for n, ok in zip(last, found, strict=True))


def check_plan(alpha: float, delta: float, bound: str) -> None:
    """Refuse levels and bounds that cannot be planned with."""
    level(alpha, "alpha")
    level(delta)
    one_of("bound", bound, PLANNED)


def p_value(bound: str, alpha: float, n: Any, **seen: Any) -> Float64Array:
    """The p-value of one of the bounds that can be planned with."""
    if bound == "cp":
        return np.asarray(cp_p_value(n=n, mu=alpha, **seen))
    if bound == "hoeffding":
        return np.asarray(hoeffding_p_value(n=n, mu=alpha, **seen))
    return np.asarray(hb_p_value(n=n, mu=alpha, form="kl" if bound == "hb_kl" else "quadratic", **seen))
