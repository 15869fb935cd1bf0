"""How many calibration people a certificate takes, and in which zone a combination of people and
risk lies.

A bound is not monotone in the number of people n: losses are rounded up to whole people, so one
more person can make it worse. Hence two answers: the first n that suffices, and the n from which on
every n does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from edfa.certification.bounds import (
    check_level,
    check_share,
    check_test,
    floor,
    lower_bound,
    p_value,
)
from edfa.errors import ColumnError, hint

MAX_PEOPLE = 200_000  # beyond it only the closed form is given


@dataclass(frozen=True)
class Required:
    """The number of people a certificate takes at an observed risk.

    ``closed_form`` is the paper's formula, ``first`` the smallest n that suffices, ``stable`` the n
    from which on every n suffices, ``floor`` the fewest people with whom anything can be certified.
    The first three are None if the risk is not below alpha, where no n suffices; ``first`` and
    ``stable`` also if they would exceed 200,000.
    """

    closed_form: int | None
    first: int | None
    stable: int | None
    floor: int


def n_required(alpha: float, r0: float, delta: float = 0.05, bound: str = "hb") -> Required:
    """Number of people needed to certify ``alpha`` if the strictest rule has the observed risk
    ``r0``.

    The closed form is the paper's equation (hb-lower), from Hoeffding's term alone.

    Examples
    --------
    >>> n_required(0.2, 0.1)
    Required(closed_form=150, first=78, stable=84, floor=18)
    >>> n_required(0.2, 0.1, bound="cp").first
    50
    """
    check_test(alpha, delta, bound)
    check_share("r0", r0)
    least = floor(alpha, delta, bound)
    if r0 >= alpha:
        return Required(None, None, None, least)
    gap, log_term = alpha - r0, -np.log(delta)
    closed = int(np.ceil(log_term / (2 * gap**2)))
    # One loss more than n * r0 is the most that rounding up can add, and from here on Hoeffding
    # allows for it.
    end = int((log_term / 2 + 2 * gap) / gap**2) + 2
    if end > MAX_PEOPLE:
        return Required(closed, None, None, least)
    sizes = np.arange(1, end + 1)
    passed = p_value(bound, alpha, sizes, risk=np.full(end, float(r0))) <= delta
    first = int(sizes[np.argmax(passed)])
    stable = int(sizes[~passed][-1]) + 1 if not passed.all() else 1
    return Required(closed, first, stable, least)


def critical_losses(
    n: Any, alpha: float, delta: float = 0.05, bound: str = "hb", m: int = 1
) -> Any:
    """The largest number of lost runs that still certifies; -1 if not even 0 does.

    ``n`` is a number of people or an array of them, and the result has its shape; ``m`` is the
    number of runs per person, 1 for the bound "cp".

    >>> critical_losses([30, 100, 500], 0.2)
    array([ 1, 11, 81])
    """
    check_test(alpha, delta, bound)
    people = np.asarray(n, dtype=np.int64)
    low, high = np.full(people.shape, -1), people * m
    while np.any(high - low > 1):
        middle = (low + high + 1) // 2  # above low, so never negative
        passed = p_value(bound, alpha, people, losses=middle, m=m) <= delta
        low, high = np.where(passed, middle, low), np.where(passed, high, middle)
    return low[()]


def power(n: Any, alpha: float, risk: float, delta: float = 0.05, bound: str = "hb") -> Any:
    """Probability that n people certify ``alpha`` if losses are 0 or 1 and the true risk is
    ``risk``.

    >>> power([78, 128], 0.2, 0.1).round(2)
    array([0.62, 0.86])
    """
    people = np.asarray(n, dtype=np.int64)
    allowed = critical_losses(people, alpha, delta, bound)
    tail = special.betaincc(
        np.maximum(allowed, 0) + 1.0, np.maximum(people - allowed, 1), check_share("risk", risk)
    )
    return np.where(allowed < 0, 0.0, tail)[()]


def n_for_power(
    alpha: float,
    risk: float,
    powers: Sequence[float] = (0.5, 0.8, 0.9),
    delta: float = 0.05,
    bound: str = "hb",
) -> tuple[int | None, ...]:
    """The n from which on ``power`` is at least each of ``powers``; None beyond 200,000, or if no n
    suffices.

    Putting an observed risk into ``n_required`` gives about an even chance to certify; plan with 80
    or 90 %.

    >>> n_for_power(0.2, 0.1)
    (78, 128, 159)
    """
    check_test(alpha, delta, bound)
    wanted = check_level("powers", powers)
    last, start, short = (
        np.zeros(len(wanted), dtype=np.int64),
        1,
        np.full(len(wanted), risk < alpha),
    )
    # Each block of sizes is as long as all before it. Power is not monotone in n; once it suffices
    # throughout a block, it does not fall below again.
    while short.any() and start < MAX_PEOPLE:
        sizes = np.arange(start, 2 * start + 64)
        below = power(sizes, alpha, risk, delta, bound) < wanted[:, None]
        short = below.any(axis=1)
        last = np.where(short, (sizes * below).max(axis=1), last)
        start = int(sizes[-1]) + 1
    reached = (risk < alpha) & ~short
    return tuple(int(n) + 1 if ok else None for n, ok in zip(last, reached, strict=True))


def zones(table: Any, alpha: float, delta: float = 0.05, bound: str = "hb") -> pd.DataFrame:
    """Find the zone of each row of ``table``: certified, data_limited or risk_limited.

    ``table`` is a frame or a mapping of columns, with the people ``n`` and the observed ``risk`` of
    the strictest rule. It comes back with the columns zone, closed_form, first, stable (people
    needed) and n_more.

    DEVIATION: the paper calls a combination risk-limited as soon as the observed risk reaches
    alpha. Seven losses of thirty settle nothing at 0.2; here it takes a lower bound above alpha.

    Examples
    --------
    >>> frame = zones({"n": [200, 30, 30, 300], "risk": [0.1, 0.1, 7 / 30, 0.3]}, alpha=0.2)
    >>> frame["zone"].tolist(), frame["n_more"].tolist()
    (['certified', 'data_limited', 'data_limited', 'risk_limited'], [0, 54, <NA>, <NA>])
    """
    check_test(alpha, delta, bound)
    frame = pd.DataFrame(table).copy()
    for name in ("n", "risk"):
        if name not in frame.columns:
            raise ColumnError(f"zones need a column {name!r}{hint(name, frame.columns)}")
    people, risks = frame["n"].to_numpy(), frame["risk"].to_numpy(dtype=np.float64)
    passed = p_value(bound, alpha, people, risk=risks) <= delta
    hopeless = lower_bound("cp" if bound == "cp" else "hb", delta, people, risks) > alpha
    needed = [n_required(alpha, float(r), delta, bound) for r in risks]
    frame["zone"] = np.select([passed, hopeless], ["certified", "risk_limited"], "data_limited")
    for name in ("closed_form", "first", "stable"):
        frame[name] = pd.array([getattr(n, name) for n in needed], dtype="Int64")
    frame["n_more"] = (frame["stable"] - people).clip(lower=0).mask(passed, 0)
    return frame
