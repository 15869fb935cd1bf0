"""What a plan that was followed is charged with: the paper's loss, and the one that a person
means.
"""

from typing import Any

import numpy as np

from edfa.errors import DataError
from edfa.typing import AnyArray, Float64Array

__all__ = ["NO_PLAN", "let_down", "recourse_loss"]

NO_PLAN = -1


def recourse_loss(
    at_step: Any, at_end: Any, changed_at_end: Any, favourable: int | None = None
) -> AnyArray:
    """The loss of the paper's equation (prob1), from predictions alone; arrays of one shape.

    It is 1 where the decision or the plan does not last, 0 where both do, and NaN where there is no
    plan.

    Parameters
    ----------
    at_step, at_end
        Class codes predicted at the step, and when the rest is known.
    changed_at_end
        Class codes predicted for the plan's values put over everything known at the end;
        ``NO_PLAN`` without a plan.
    favourable
        The class the plan must lead to. None: any class other than ``at_end``.

    Examples
    --------
    >>> recourse_loss(at_step=[0, 0, 1, 0], at_end=[0, 0, 0, 0], changed_at_end=[1, 0, 1, NO_PLAN])
    array([ 0.,  1.,  1., nan])
    """
    early, late, changed = (np.asarray(codes) for codes in (at_step, at_end, changed_at_end))
    for name, codes in (("at_step", early), ("at_end", late), ("changed_at_end", changed)):
        _check_codes(name, codes, early.shape)
    lasts = changed != late if favourable is None else changed == favourable
    lost = (early != late) | ~lasts
    return np.where(changed == NO_PLAN, np.nan, lost.astype(np.float64))


def let_down(changed_at_end: Any, favourable: int) -> Float64Array:
    """Who did the plan and is still not given the desired class when the rest is known; an array of
    the same shape.

    It is 1 for those, 0 for whoever is given it, and NaN where there is no plan: nothing was
    promised there. What would have been decided without the plan does not matter; a plan that was
    not needed is wasted, not broken.

    Parameters
    ----------
    changed_at_end
        Class codes predicted for the plan's values put over everything known at the end;
        ``NO_PLAN`` without a plan.
    favourable
        The class that the plan should lead to.

    Examples
    --------
    >>> let_down([1, 0, 2, NO_PLAN], favourable=1)
    array([ 0.,  1.,  1., nan])
    """
    changed = np.asarray(changed_at_end)
    _check_codes("changed_at_end", changed, changed.shape)
    return np.where(changed == NO_PLAN, np.nan, (changed != favourable).astype(np.float64))


def _check_codes(name: str, codes: AnyArray, shape: tuple[int, ...]) -> None:
    if codes.dtype.kind not in "iub" or codes.shape != shape:
        raise DataError(
            f"{name} must be class codes of shape {shape}, not {codes.dtype} of {codes.shape}"
        )
