"""How large may a risk be, given the losses of n people: p-values and upper bounds that hold for every n.

A p-value here answers "could the mean loss still be ``mu`` or more?". An upper bound is the smallest ``mu`` whose
p-value is at most ``delta``, so ``p(mu) <= delta`` and ``bound <= mu`` are one and the same statement.

- Hoeffding-Bentkus (``hb``): losses anywhere in [0, 1]; equation (hb) of the paper, in closed form.
- Clopper-Pearson (``cp``): losses that are 0 or 1; exact.
- Hoeffding alone (``hoeffding``): the paper's simpler curve.

``edfa.certification.betting`` has the bound that gains from losses between 0 and 1.

References: Bates et al. 2021 (RCPS); Bentkus 2004; Angelopoulos et al. 2021 (Learn then Test).
"""

from typing import Any, Literal

import numpy as np
from scipy import special

from edfa.certification.settings import first, level, share
from edfa.errors import SettingError
from edfa.typing import Float64Array, Int64Array

__all__ = ["cp_p_value", "cp_ucb", "hb_p_value", "hb_ucb", "hoeffding_p_value", "hoeffding_ucb", "tally"]

Form = Literal["quadratic", "kl"]
NEAR = 1e-9  # n * risk this near to a whole number, per person, is that number
HALVINGS = 60  # of an interval of length 1: past float64


def hb_p_value(
    risk: Any = None, n: Any = None, mu: Any = None, *, losses: Any = None, m: int = 1, form: Form = "quadratic"
) -> Any:
    """Hoeffding-Bentkus: the chance to see so small a risk when the true one is ``mu`` is at most this.

    ``risk`` is the mean loss of ``n`` people; or give it exactly as ``losses``, the number of lost runs when each
    person has ``m`` of them. ``form="kl"`` takes Hoeffding's sharper term; it is never looser.

    Examples
    --------
    >>> print(f"{hb_p_value(0.11, 100, 0.2):.6f}")
    0.034182
    >>> hb_p_value(n=100, mu=0.2, losses=[110, 111], m=10).round(6)
    array([0.034182, 0.068851])
    """
    count, mean, size = tally(risk, n, losses, m)
    true = share("mu", mu)
    p = np.minimum(np.e * _binomial(count, size, true), np.exp(-size * _distance(mean, true, form)))
    return np.where(true <= mean, 1.0, p)[()]


def hb_ucb(
    risk: Any = None, n: Any = None, delta: Any = 0.05, *, losses: Any = None, m: int = 1, form: Form = "quadratic"
) -> Any:
    """Hoeffding-Bentkus upper bound: the true risk is below it with chance 1 - ``delta``.

    The paper bisects; the smallest mean that is ruled out is the smaller of two closed forms.

    Examples
    --------
    >>> hb_ucb([0, 0.07, 0.2], 100, 0.05).round(6)
    array([0.03917 , 0.14373 , 0.297876])
    """
    count, mean, size = tally(risk, n, losses, m)
    doubt = level(delta)
    hoeffding = mean + np.sqrt(-np.log(doubt) / (2 * size)) if form == "quadratic" else _kl_ucb(mean, size, doubt)
    return np.minimum(np.minimum(hoeffding, _beta(count, size, doubt / np.e)), 1.0)[()]


def cp_p_value(risk: Any = None, n: Any = None, mu: Any = None, *, losses: Any = None) -> Any:
    """Clopper-Pearson: P(Bin(n, mu) <= number of losses), exact when every loss is 0 or 1.

    A ``risk`` that is no whole number of losses counts as the next larger one.

    Examples
    --------
    >>> print(f"{cp_p_value(0.13, 100, 0.2):.5f}")
    0.04691
    """
    count, _, size = tally(risk, n, losses, 1)
    return _binomial(count, size, share("mu", mu))[()]


def cp_ucb(risk: Any = None, n: Any = None, delta: Any = 0.05, *, losses: Any = None) -> Any:
    """Clopper-Pearson upper bound for losses that are 0 or 1.

    Examples
    --------
    >>> cp_ucb(losses=[0, 10], n=100).round(6)
    array([0.029513, 0.163718])
    """
    count, _, size = tally(risk, n, losses, 1)
    return _beta(count, size, level(delta))[()]


def hoeffding_p_value(risk: Any = None, n: Any = None, mu: Any = None, *, losses: Any = None, m: int = 1) -> Any:
    """Hoeffding's quadratic term alone.

    Examples
    --------
    >>> print(f"{hoeffding_p_value(0.1, 150, 0.2):.4f}")
    0.0498
    """
    _, mean, size = tally(risk, n, losses, m)
    true = share("mu", mu)
    return np.where(true <= mean, 1.0, np.exp(-size * _distance(mean, true, "quadratic")))[()]


def hoeffding_ucb(risk: Any = None, n: Any = None, delta: Any = 0.05, *, losses: Any = None, m: int = 1) -> Any:
    """Hoeffding's upper bound: the paper's UCB_H, from which its formula for the calibration size follows.

    Examples
    --------
    >>> print(f"{hoeffding_ucb(0.1, 150):.4f}")
    0.1999
    """
    _, mean, size = tally(risk, n, losses, m)
    return np.minimum(mean + np.sqrt(-np.log(level(delta)) / (2 * size)), 1.0)[()]


def tally(risk: Any, n: Any, losses: Any, m: int) -> tuple[Int64Array, Float64Array, Int64Array]:
    """Losses counted up to whole people, the exact mean, and n; refuses what no sample can give."""
    size = np.asarray(n if n is not None else 0)
    if not (np.issubdtype(size.dtype, np.number) and np.all(np.mod(size, 1) == 0) and np.all(size >= 1)):
        raise SettingError(f"n is a whole number of people, at least 1, not {n!r}")
    size = size.astype(np.int64)
    if (risk is None) == (losses is None):
        raise SettingError("give either risk= or losses=, and not both")
    if losses is not None:
        return _whole_losses(losses, size, m)
    mean = share("risk", risk)
    scaled = size * mean
    near = np.rint(scaled)
    whole = np.abs(scaled - near) <= NEAR * size
    count = np.where(whole, near, np.floor(scaled) + 1).astype(np.int64)
    return count, np.where(whole, near / size, mean), size


def _whole_losses(losses: Any, size: Int64Array, m: int) -> tuple[Int64Array, Float64Array, Int64Array]:
    if m < 1 or int(m) != m:
        raise SettingError(f"m is a whole number of runs, at least 1, not {m!r}")
    lost = np.asarray(losses)
    if not np.issubdtype(lost.dtype, np.number) or np.any(np.mod(lost, 1) != 0):
        raise SettingError("losses= is a whole number of lost runs; give a mean loss as risk=")
    lost = lost.astype(np.int64)
    if np.any(lost < 0) or np.any(lost > size * m):
        raise SettingError(
            f"losses= lies between 0 and n * m, which {first(lost, (lost < 0) | (lost > size * m))} is not"
        )
    return -(-lost // m), lost / (size * m), size


def _binomial(count: Int64Array, n: Int64Array, mu: Float64Array) -> Float64Array:
    """P(Bin(n, mu) <= count), from the tail of the beta law: full precision down to 1e-300."""
    inside = count < n
    lower: Float64Array = special.betaincc(np.minimum(count, n - 1) + 1.0, np.maximum(n - count, 1), mu)
    return np.where(inside, lower, 1.0)


def _beta(count: Int64Array, n: Int64Array, tail: Float64Array) -> Float64Array:
    """The mu at which P(Bin(n, mu) <= count) falls to ``tail``, from the survival side: small tails stay exact."""
    quantile: Float64Array = special.betainccinv(np.minimum(count, n - 1) + 1.0, np.maximum(n - count, 1), tail)
    return np.where(count < n, quantile, 1.0)


def _distance(mean: Float64Array, mu: Float64Array, form: Form) -> Float64Array:
    if form == "quadratic":
        return 2 * (mu - mean) ** 2
    if form == "kl":
        nearer = np.maximum(mu, mean)  # nothing is learnt about a mu below the mean
        with np.errstate(invalid="ignore"):
            distance: Float64Array = special.rel_entr(mean, nearer) + special.rel_entr(1 - mean, 1 - nearer)
        return np.where(nearer == mean, 0.0, distance)
    raise SettingError(f"form is 'quadratic' or 'kl', not {form!r}")


def _kl_ucb(mean: Float64Array, n: Int64Array, delta: Float64Array) -> Float64Array:
    """The largest mu with n * KL(mean, mu) <= log(1/delta); the upper end of the last interval, so never too small."""
    low, high = np.broadcast_arrays(mean, np.ones(np.broadcast_shapes(mean.shape, n.shape, delta.shape)))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        beyond = n * _distance(mean, middle, "kl") >= -np.log(delta)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return high
