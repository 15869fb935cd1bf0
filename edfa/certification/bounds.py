"""P-values and upper bounds for a mean loss (the risk), valid for every number of people n.

A p-value tests "the mean loss is ``mu`` or more". The upper bound is the smallest ``mu`` whose
p-value is at most ``delta``, so ``p(mu) <= delta`` and ``bound <= mu`` are the same statement.

- Hoeffding-Bentkus (``hb``): losses anywhere in [0, 1]; equation (hb) of the paper, in closed form.
- Clopper-Pearson (``cp``): losses that are 0 or 1; exact.
- Hoeffding alone (``hoeffding``): the paper's simpler curve UCB_H, from which its formula for the
  calibration size follows.
- Waudby-Smith-Ramdas (``wsr``): betting. It needs every single loss, gains from losses between 0
  and 1, and may be looked at again and again while people arrive.

Betting works like this: somebody who doubts that the risk is ``mu`` or more bets on each loss in
turn, seeing only the earlier ones. If the doubt is wrong, the capital is a non-negative
supermartingale and reaches 1/delta with probability at most delta (Ville's inequality), so one over
the largest capital so far is a p-value at any time. The bets are one-sided: a two-sided capital
also grows when the risk lies far *above* mu, and would certify that.

References: Bates et al. 2021 (RCPS); Bentkus 2004; Angelopoulos et al. 2021 (Learn then Test);
Waudby-Smith and Ramdas 2024 (predictable plug-in bets).
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal, get_args

import numpy as np
from scipy import special

from edfa.errors import SettingError, hint
from edfa.typing import BoolArray, Float64Array, Int64Array


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


def check_test(alpha: float, delta: float, bound: str) -> None:
    """Refuse levels outside (0, 1), and bounds that need more than the number of losses."""
    check_level("alpha", alpha)
    check_level("delta", delta)
    check_choice("bound", bound, COUNT_BOUNDS)


def first_where(values: Any, mask: Any) -> Any:
    """Return the first element of ``values`` (broadcast to ``mask``) at which ``mask`` is true."""
    return np.broadcast_to(values, mask.shape)[mask].flat[0]


Bound = Literal["hb", "hb_kl", "cp", "wsr", "hoeffding"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)
COUNT_BOUNDS = ("hb", "hb_kl", "cp", "hoeffding")  # those that need the number of losses alone
ROUNDING = 1e-9  # n * risk within this of a whole number, per person, is that number
HALVINGS = 60  # of an interval of length 1: past float64


def hb_p_value(risk: Any = None, n: Any = None, mu: Any = None, *, losses: Any = None) -> Any:
    """Hoeffding-Bentkus p-value: bounds the probability of so small a mean loss if the true one is
    ``mu``.

    Parameters
    ----------
    risk
        The mean loss of ``n`` people, in [0, 1]. Numbers or arrays; all arguments broadcast.
    n
        Number of people.
    mu
        The mean loss that is tested.
    losses
        Instead of ``risk``: the exact number of people with a loss.

    Returns
    -------
    float or numpy.ndarray
        The p-values, of the shape that the arguments broadcast to.

    Examples
    --------
    >>> print(f"{hb_p_value(0.11, 100, 0.2):.6f}")
    0.034182
    >>> hb_p_value(n=100, mu=0.2, losses=[11, 12]).round(6)
    array([0.034182, 0.068851])
    """
    return p_value("hb", mu, n, risk=risk, losses=losses)[()]


def hb_ucb(risk: Any = None, n: Any = None, delta: Any = 0.05, *, losses: Any = None) -> Any:
    """Hoeffding-Bentkus upper bound: the true risk is below it with probability 1 - ``delta``.

    The paper bisects; the smallest mean that is ruled out is the smaller of two closed forms.

    Parameters
    ----------
    risk, n, losses
        As in ``hb_p_value``.
    delta
        Probability that the true risk is above the bound.

    Examples
    --------
    >>> hb_ucb([0, 0.07, 0.2], 100, 0.05).round(6)
    array([0.03917 , 0.14373 , 0.297876])
    """
    return upper_bound("hb", delta, n, risk=risk, losses=losses)[()]


def cp_p_value(risk: Any = None, n: Any = None, mu: Any = None, *, losses: Any = None) -> Any:
    """Clopper-Pearson p-value: P(Bin(n, mu) <= number of losses), exact if every loss is 0 or 1.

    A ``risk`` that is not a whole number of losses counts as the next larger one.

    Examples
    --------
    >>> print(f"{cp_p_value(0.13, 100, 0.2):.5f}")
    0.04691
    """
    return p_value("cp", mu, n, risk=risk, losses=losses)[()]


def cp_ucb(risk: Any = None, n: Any = None, delta: Any = 0.05, *, losses: Any = None) -> Any:
    """Clopper-Pearson upper bound for losses that are 0 or 1.

    Examples
    --------
    >>> cp_ucb(losses=[0, 10], n=100).round(6)
    array([0.029513, 0.163718])
    """
    return upper_bound("cp", delta, n, risk=risk, losses=losses)[()]


def p_value(
    bound: str, mu: Any, n: Any, *, risk: Any = None, losses: Any = None, m: int = 1
) -> Float64Array:
    """P-value of one of ``COUNT_BOUNDS``, by its name; ``cp`` has one run per person, whatever
    ``m``.
    """
    count, mean, size = _count_losses(risk, n, losses, 1 if bound == "cp" else m)
    tested = check_share("mu", mu)
    if bound == "cp":
        return _binomial_cdf(count, size, tested)
    p = np.exp(-size * _divergence(mean, tested, kl=bound == "hb_kl"))
    if bound != "hoeffding":
        p = np.minimum(np.e * _binomial_cdf(count, size, tested), p)
    return np.where(tested <= mean, 1.0, p)


def upper_bound(
    bound: str, delta: Any, n: Any, *, risk: Any = None, losses: Any = None, m: int = 1
) -> Float64Array:
    """Upper bound of one of ``COUNT_BOUNDS``, by its name; ``cp`` has one run per person, whatever
    ``m``.
    """
    count, mean, size = _count_losses(risk, n, losses, 1 if bound == "cp" else m)
    tail = check_level("delta", delta)
    if bound == "cp":
        return _binomial_ucb(count, size, tail)
    if bound == "hb_kl":  # the largest mu with n * KL(mean, mu) <= log(1/delta)
        upper = smallest_ruled_out(
            lambda mu: size * _divergence(mean, mu, kl=True) >= -np.log(tail), mean, 1.0
        )
    else:
        upper = mean + np.sqrt(-np.log(tail) / (2 * size))
    if bound != "hoeffding":
        upper = np.minimum(upper, _binomial_ucb(count, size, tail / np.e))
    return np.minimum(upper, 1.0)


def lower_bound(bound: str, delta: Any, n: Any, risk: Any) -> Float64Array:
    """Lower bound of one of ``COUNT_BOUNDS``: the upper bound of the share without a loss, turned
    round.
    """
    return np.asarray(1 - upper_bound(bound, delta, n, risk=1 - risk))


def wsr_p_value(losses: Any, mu: Any, delta: float = 0.05, horizon: int | None = None) -> Any:
    """Betting p-value for a mean loss of ``mu`` or more.

    Parameters
    ----------
    losses
        Losses in [0, 1], shape (..., people). The last axis is the order of the bets; it must have
        been fixed without looking at the losses.
    mu
        The mean loss that is tested; broadcasts with the leading axes of ``losses``.
    delta
        Tunes the bets only: the p-value is valid at every level.
    horizon
        Number of people that is planned for; tunes the bets too. Whoever looks while people still
        arrive must fix it beforehand, else the bets would change with every look. None: the number
        of losses.

    Examples
    --------
    >>> print(f"{wsr_p_value([0.0] * 40, 0.1):.4f}")
    0.0226
    >>> print(wsr_p_value([1.0] * 40, 0.1))
    1.0
    """
    capital = log_capital(
        _check_losses(losses), check_share("mu", mu), float(check_level("delta", delta)), horizon
    )
    return np.exp(-np.maximum(capital.max(axis=-1), 0.0))[()]


def wsr_ucb(losses: Any, delta: float = 0.05, horizon: int | None = None) -> Any:
    """Betting upper bound: the smallest mean loss ruled out at level ``delta``, rounded up by less
    than 1e-15.

    The bets do not depend on ``mu``, so the capital grows with it and the bound agrees with the
    p-value.

    Examples
    --------
    >>> print(f"{wsr_ucb([0.0] * 40):.4f}")
    0.0783
    """
    values = _check_losses(losses)
    tail = float(check_level("delta", delta))

    def ruled_out(mu: Float64Array) -> BoolArray:
        capital = log_capital(values, mu, tail, horizon).max(axis=-1)
        return np.asarray(capital >= -np.log(tail))

    return smallest_ruled_out(ruled_out, 0.0, 1.0)[()]


def log_capital(
    losses: Float64Array, mu: Any, delta: float, horizon: int | None = None
) -> Float64Array:
    """Logarithm of the bettor's capital after each loss, shape (..., people); arguments as in
    ``wsr_p_value``.
    """
    bets = _bets(losses, delta, horizon or losses.shape[-1])
    with np.errstate(divide="ignore"):  # a sure bet against mu = 0 that is lost
        return np.cumsum(np.log1p(-bets * (losses - np.asarray(mu)[..., None])), axis=-1)


def _bets(losses: Float64Array, delta: float, horizon: int) -> Float64Array:
    """min(1, sqrt(2 log(1/delta) / (horizon * variance so far))), started by one imaginary loss of
    1/2.
    """
    seen = np.arange(2, losses.shape[-1] + 2)
    means = (0.5 + np.cumsum(losses, axis=-1)) / seen
    variance = (0.25 + np.cumsum((losses - means) ** 2, axis=-1)) / seen
    before = np.concatenate([np.full((*losses.shape[:-1], 1), 0.25), variance[..., :-1]], axis=-1)
    return np.asarray(np.minimum(1.0, np.sqrt(-2 * np.log(delta) / (horizon * before))))


def _check_losses(losses: Any) -> Float64Array:
    values = check_share("a loss", losses)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise SettingError("a bet needs at least one loss")
    return values


def _count_losses(
    risk: Any, n: Any, losses: Any, m: int
) -> tuple[Int64Array, Float64Array, Int64Array]:
    """Losses rounded up to whole people, the exact mean loss, and n; refuses what no sample can
    give.
    """
    size = np.asarray(n if n is not None else 0)
    if not (
        np.issubdtype(size.dtype, np.number) and np.all(np.mod(size, 1) == 0) and np.all(size >= 1)
    ):
        raise SettingError(f"n is a whole number of people, at least 1, not {n!r}")
    size = size.astype(np.int64)
    if (risk is None) == (losses is None):
        raise SettingError("give either risk= or losses=, and not both")
    if losses is not None:
        return _check_count(losses, size, m)
    mean = check_share("risk", risk)
    scaled = size * mean
    nearest = np.rint(scaled)
    whole = np.abs(scaled - nearest) <= ROUNDING * size
    count = np.where(whole, nearest, np.floor(scaled) + 1).astype(np.int64)
    return count, np.where(whole, nearest / size, mean), size


def _check_count(
    losses: Any, size: Int64Array, m: int
) -> tuple[Int64Array, Float64Array, Int64Array]:
    """``_count_losses`` for a number of lost runs."""
    if m < 1 or int(m) != m:
        raise SettingError(f"m is a whole number of runs, at least 1, not {m!r}")
    lost = np.asarray(losses)
    if not np.issubdtype(lost.dtype, np.number) or np.any(np.mod(lost, 1) != 0):
        raise SettingError("losses= is a whole number of lost runs; give a mean loss as risk=")
    lost = lost.astype(np.int64)
    outside = (lost < 0) | (lost > size * m)
    if np.any(outside):
        raise SettingError(
            f"losses= lies between 0 and n * m, which {first_where(lost, outside)} is not"
        )
    return -(-lost // m), lost / (size * m), size


def _binomial_cdf(count: Int64Array, n: Int64Array, mu: Float64Array) -> Float64Array:
    """P(Bin(n, mu) <= count), from the tail of the beta distribution: full precision down to
    1e-300.
    """
    inside = count < n
    lower: Float64Array = special.betaincc(
        np.minimum(count, n - 1) + 1.0, np.maximum(n - count, 1), mu
    )
    return np.where(inside, lower, 1.0)


def _binomial_ucb(count: Int64Array, n: Int64Array, tail: Float64Array) -> Float64Array:
    """The mu at which P(Bin(n, mu) <= count) falls to ``tail``; by the survival side, exact for
    small tails.
    """
    quantile: Float64Array = special.betainccinv(
        np.minimum(count, n - 1) + 1.0, np.maximum(n - count, 1), tail
    )
    return np.where(count < n, quantile, 1.0)


def _divergence(mean: Float64Array, mu: Float64Array, *, kl: bool) -> Float64Array:
    """Exponent of Hoeffding's inequality per person: 2 (mu - mean)^2, or KL(mean, mu), which is 0
    for mu < mean.
    """
    if not kl:
        return 2 * (mu - mean) ** 2
    above = np.maximum(mu, mean)  # nothing is learnt about a mu below the mean
    with np.errstate(invalid="ignore"):
        divergence: Float64Array = special.rel_entr(mean, above) + special.rel_entr(
            1 - mean, 1 - above
        )
    return np.where(above == mean, 0.0, divergence)


def smallest_ruled_out(
    ruled_out: Callable[[Float64Array], BoolArray], low: Any, high: Any, halvings: int = HALVINGS
) -> Float64Array:
    """The smallest means that a test rules out, by halving intervals, rounded up.

    Parameters
    ----------
    ruled_out
        Whether the test rules out each of some means; arrays of one shape. A mean above one that is
        ruled out must be ruled out, too.
    low, high
        The ends of the intervals to look in, as numbers or arrays; the upper end is taken as ruled
        out.
    halvings
        How often each interval is halved.
    """
    for _ in range(halvings):
        middle = np.asarray((low + high) / 2)
        out = ruled_out(middle)
        low, high = np.where(out, low, middle), np.where(out, middle, high)
    return np.asarray(high)


def floor(alpha: float, delta: float = 0.05, bound: str = "hb") -> int:
    """The fewest people with whom anything can be certified, even without a single loss.

    >>> [floor(alpha) for alpha in (0.05, 0.1, 0.2, 0.3)]
    [78, 38, 18, 12]
    """
    check_test(alpha, delta, bound)
    low, high = 0, int(np.ceil(-np.log(delta) / (2 * alpha**2))) + 1  # enough by Hoeffding alone
    while high - low > 1:
        middle = (low + high) // 2
        if p_value(bound, alpha, middle, losses=0) <= delta:
            high = middle
        else:
            low = middle
    return high
