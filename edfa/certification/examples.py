"""A small made-up population of runs, for examples and tests of one's own signal or bound."""

import numpy as np
from scipy.special import expit

from edfa.certification.records import Records

__all__ = ["people"]


def people(n: int, seed: int = 0, seeds: int = 1, steps: int = 6, advisor: str = "") -> Records:
    """Runs whose score is revealed step by step; a plan made early fails if the score still changes sides.

    The score ends as a sum of ``steps`` normal parts of falling size. The signal is the chance of the other class as
    far as one knows; a plan moves the score past the boundary by a random margin and fails if the rest eats it up.

    >>> people(3)
    Records(3 people, 3 runs, 18 steps)
    """
    random = np.random.default_rng(seed)
    sizes = 0.6 ** np.arange(steps)
    parts = random.normal(size=(n, 1, steps)) * sizes + random.normal(size=(n, seeds, steps)) * sizes * 0.5
    score = np.cumsum(parts, axis=-1)
    left = np.sqrt(np.append(np.cumsum((sizes**2 * 1.25)[::-1])[::-1][1:], 0.04))
    rest = score[..., -1:] - score
    side = np.sign(score)
    margin = 0.2 + random.exponential(0.8, size=score.shape)
    lost = (side != side[..., -1:]) | (side * rest > margin)
    signal = expit(-1.7 * np.abs(score) / left)
    legal = random.random(score.shape) < np.linspace(0.6, 0.95, steps)
    who, which, step = (axis.ravel() for axis in np.indices(score.shape))
    return Records(
        person=who,
        seed=which,
        step=step,
        spent=step.astype(np.float64),
        signal=signal.ravel(),
        loss=lost.ravel().astype(np.float64),
        legal=legal.ravel(),
        refused=(side < 0).ravel(),
        advisor=advisor,
    )
