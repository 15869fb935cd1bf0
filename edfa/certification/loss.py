"""Does a plan made early survive: the loss of the paper's equation (prob1), from predictions alone."""

from typing import Any

import numpy as np

from edfa.errors import DataError
from edfa.typing import AnyArray

__all__ = ["NO_PLAN", "recourse_loss"]

NO_PLAN = -1


def recourse_loss(at_step: Any, at_end: Any, changed_at_end: Any, favourable: int | None = None) -> AnyArray:
    """1 where the decision or the plan does not last, 0 where both do, NaN where there is no plan.

    ``at_step`` and ``at_end`` are the class codes predicted at the step and when the rest is known; ``changed_at_end``
    is what is predicted for the plan's values put over everything known at the end, or ``NO_PLAN``. A plan lasts when
    that differs from ``at_end``; with ``favourable`` it must be that class.

    Examples
    --------
    >>> recourse_loss(at_step=[0, 0, 1, 0], at_end=[0, 0, 0, 0], changed_at_end=[1, 0, 1, NO_PLAN])
    array([ 0.,  1.,  1., nan])
    """
    early, late, changed = (np.asarray(codes) for codes in (at_step, at_end, changed_at_end))
    for name, codes in (("at_step", early), ("at_end", late), ("changed_at_end", changed)):
        if codes.dtype.kind not in "iub" or codes.shape != early.shape:
            raise DataError(f"{name} must be class codes of shape {early.shape}, not {codes.dtype} of {codes.shape}")
    lasts = changed != late if favourable is None else changed == favourable
    lost = (early != late) | ~lasts
    return np.where(changed == NO_PLAN, np.nan, lost.astype(np.float64))
