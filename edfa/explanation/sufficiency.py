"""Observational sufficiency (Definition 6): do these facts settle the decision, whatever the others
are?
"""

from typing import NamedTuple

import numpy as np

from edfa.errors import DataError
from edfa.predictors.base import Predictor
from edfa.typing import BoolArray, Float32Array, Float64Array

__all__ = ["Sufficiency", "sufficiency"]


class Sufficiency(NamedTuple):
    """β of each person and its standard error over the draws, (people,) each."""

    beta: Float64Array
    error: Float64Array


def sufficiency(
    X: Float32Array,  # noqa: N803
    features: BoolArray,
    predictor: Predictor,
    rows: Float32Array,
    *,
    draws: int = 200,
    seed: int = 0,
) -> Sufficiency:
    """β(S, x, y*) of everybody: how often the decision from S alone stays if all else is a training
    person's.

    Parameters
    ----------
    X
        Encoded facts, (people, features); NaN: not known.
    features
        Which features are in S, (features,); everybody must know them.
    predictor
        The fitted model.
    rows
        Encoded training rows, (training people, features). What is outside S is taken from one row
        at a time, so that its values go together.
    draws
        The number of training rows drawn, the same for everybody.
    seed
        Of the draws.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> everything = np.ones(20, dtype=bool)
    >>> sufficiency(table.test.X[:3], everything, model, table.train.X).beta
    array([1., 1., 1.])
    """
    if np.isnan(X[:, features]).any():
        raise DataError(
            "sufficiency asks what follows from known facts; some of these are not known (NaN)"
        )
    drawn = rows[np.random.default_rng(seed).integers(0, len(rows), draws)]
    decision = predictor.decide(predictor.predict_proba(np.where(features, X, np.float32(np.nan))))
    filled = np.where(features, X[:, None, :], drawn).reshape(-1, X.shape[1])
    stays = (
        predictor.decide(predictor.predict_proba(filled)).reshape(len(X), draws)
        == decision[:, None]
    )
    beta = stays.mean(axis=1)
    return Sufficiency(beta, np.sqrt(beta * (1 - beta) / draws))
