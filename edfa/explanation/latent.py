"""Latent recourse (Definition 9): how many more facts can turn the decision once one more is
known?
"""

import numpy as np

from edfa.explanation.necessity import sweep
from edfa.explanation.support import Support
from edfa.predictors.base import Predictor
from edfa.predictors.conditional import Sampler
from edfa.typing import BoolArray, Float32Array, Float64Array

__all__ = ["latent_recourse"]


def latent_recourse(
    X: Float32Array,  # noqa: N803
    feature: int,
    predictor: Predictor,
    support: Support,
    sampler: Sampler,
    features: BoolArray | None = None,
) -> Float64Array:
    """E|C(A ∪ {j})| - |C(A)| of everybody, (people,): the expected gain in counterfactual features
    from knowing j.

    The expectation is over what feature j may turn out to be; j itself is not counted. Above zero:
    j is expected to unlock recourse that is latent now.

    Parameters
    ----------
    X
        Encoded facts, (people, features); NaN: not known.
    feature
        The index of j.
    predictor
        The fitted model.
    support
        The training values that facts are replaced by.
    sampler
        Draws likely values of j, with weights, from what is known.
    features
        Which features count, such as a blanket's, (features,); None: all of them.
    """
    values, weights = sampler.given(X)(feature)
    now = np.nan_to_num(sweep(X, predictor, support, features).necessity) > 0
    people, draws = values.shape
    then = np.repeat(X, draws, axis=0)
    then[:, feature] = values.ravel()
    counterfactual = np.nan_to_num(sweep(then, predictor, support, features).necessity) > 0
    counterfactual[:, feature] = False
    counts = counterfactual.sum(axis=1).reshape(people, draws)
    return np.asarray((counts * weights).sum(axis=1) - now.sum(axis=1))
