"""Latent recourse (Definition 9): how many more facts could turn the decision once one more is known?"""

import numpy as np
import numpy.typing as npt

from edfa.explanation.necessity import sweep
from edfa.explanation.support import Support
from edfa.predictors.base import Floats, Mask, Predictor
from edfa.predictors.conditional import Sampler

__all__ = ["latent_recourse"]


def latent_recourse(
    X: Floats,  # noqa: N803
    feature: int,
    predictor: Predictor,
    support: Support,
    sampler: Sampler,
    features: Mask | None = None,
) -> npt.NDArray[np.float64]:
    """E|C(A ∪ {j})| - |C(A)| of everybody, over what feature j may turn out to be; only of facts known already.

    Above zero: j is expected to unlock recourse that is latent now. ``features`` are those that count, a blanket's.
    """
    values, weights = sampler.given(X)(feature)
    now = np.nan_to_num(sweep(X, predictor, support, features).alpha) > 0
    people, draws = values.shape
    then = np.repeat(X, draws, axis=0)
    then[:, feature] = values.ravel()
    found = np.nan_to_num(sweep(then, predictor, support, features).alpha) > 0
    found[:, feature] = False
    counts = found.sum(axis=1).reshape(people, draws)
    return np.asarray((counts * weights).sum(axis=1) - now.sum(axis=1))
