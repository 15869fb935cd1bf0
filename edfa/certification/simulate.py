"""Simulated records of a made-up population, for examples and for trying out one's own signal or
bound.
"""

import numpy as np
from scipy.special import expit

from edfa.certification.records import Records


def simulate_records(
    n: int, seed: int = 0, seeds: int = 1, steps: int = 6, advisor: str = ""
) -> Records:
    """Draw runs in which a score is revealed step by step and a plan made early fails if the score
    changes sides.

    The final score is a sum of ``steps`` normal parts of falling size. The signal is the
    probability of the other class given the parts revealed so far. A plan moves the score past the
    boundary by a random margin, and fails if the parts still to come use it up.

    Parameters
    ----------
    n
        Number of people.
    seed
        Of the random numbers.
    seeds
        Runs per person: the people's own parts plus an independent part for each run.
    steps
        Steps per run.
    advisor
        Fingerprint to put into the records.

    Examples
    --------
    >>> simulate_records(3)
    Records(3 people, 3 runs, 18 steps)
    """
    random = np.random.default_rng(seed)
    sizes = 0.6 ** np.arange(steps)
    parts = (
        random.normal(size=(n, 1, steps)) * sizes
        + random.normal(size=(n, seeds, steps)) * sizes * 0.5
    )
    score = np.cumsum(parts, axis=-1)
    remaining_std = np.sqrt(np.append(np.cumsum((sizes**2 * 1.25)[::-1])[::-1][1:], 0.04))
    remaining = score[..., -1:] - score
    side = np.sign(score)
    margin = 0.2 + random.exponential(0.8, size=score.shape)
    lost = (side != side[..., -1:]) | (side * remaining > margin)
    signal = expit(-1.7 * np.abs(score) / remaining_std)
    legal = random.random(score.shape) < np.linspace(0.6, 0.95, steps)
    person, run_seed, step = (axis.ravel() for axis in np.indices(score.shape))
    return Records(
        person=person,
        seed=run_seed,
        step=step,
        spent=step.astype(np.float64),
        signal=signal.ravel(),
        loss=lost.ravel().astype(np.float64),
        legal=legal.ravel(),
        refused=(side < 0).ravel(),
        advisor=advisor,
    )
