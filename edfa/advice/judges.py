"""Judges: models learnt again from other people, who say whether a plan would still work. They
choose nothing.
"""

import numpy as np

from edfa.advice.fitted import FittedAdvisor
from edfa.data.table import Table
from edfa.predictors.committee import Committee, fold_of
from edfa.typing import Float32Array, IntArray

__all__ = ["draw_judges", "learn_judges"]

N_JUDGES = 12
TRAINING_SHARE = 0.15  # training people that a judge learns from, besides calibration people
JUDGES_SEED = 1_000_003  # added to the advisor's: no draw in common with the committee that chooses


def learn_judges(fitted: FittedAdvisor, calibration: Table, seed: int) -> Committee:
    """Models of the advisor's kind learnt again, mostly from calibration people, less from training
    ones.

    They have no part in choosing plans or questions. Who is judged was left out by the judge: see
    ``draw_judges``. A judge that shares many people with the advisor shares its accidents and is
    too kind; one that learnt from few people is too harsh. With this share they came out like
    models learnt from as many people as the advisor, none of them the same (``docs/decisions.md``).
    """
    train, others = fitted.train, (calibration.X, calibration.y)
    return Committee.of(
        train.X,
        train.y,
        fitted.predictor,
        N_JUDGES,
        seed=seed + JUDGES_SEED,
        others=others,
        varied=False,
        share=TRAINING_SHARE,
    )


def draw_judges(fitted: FittedAdvisor, X: Float32Array) -> IntArray:  # noqa: N803
    """The judge of each of the encoded people X (people, features), drawn at random, (people,).

    Whoever is among the people that judges learnt from, as far as their facts are known, gets one
    that has left them out.
    """
    size = len(fitted.judges or ())
    judge = np.random.default_rng(len(X)).integers(max(size, 1), size=len(X))
    if not size:
        return judge
    learnt = _positions(X, fitted.calibration)
    folds = int(fold_of(np.arange(size)).max()) + 1
    same_fold = judge - fold_of(judge) + fold_of(learnt)
    return np.where(learnt >= 0, np.where(same_fold < size, same_fold, same_fold - folds), judge)


def _positions(X: Float32Array, learnt: Float32Array) -> IntArray:  # noqa: N803
    """The row of ``learnt`` (people, features) that each row of X is, (rows,); -1: none. NaN in X:
    not known.

    Of several equal ones the first belongs to the first, and so on.
    """
    columns = ~np.isnan(X).any(axis=0)
    places: dict[bytes, list[int]] = {}
    for i, row in enumerate(np.ascontiguousarray(learnt[:, columns])):
        places.setdefault(row.tobytes(), []).append(i)
    positions = np.full(len(X), -1, dtype=np.intp)
    for i, row in enumerate(np.ascontiguousarray(X[:, columns])):
        if equal := places.get(row.tobytes()):
            positions[i] = equal.pop(0) if len(equal) > 1 else equal[0]
    return positions
