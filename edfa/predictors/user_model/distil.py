"""What a user model says before everything is known, learnt by a ``SubsetXGB`` from
its probabilities.

A model that has memorised its training people says little about others. Its answers are free, so
that it is also asked about *hybrids*: training people with some facts of a near one. Those who stop
the training early have no part in any hybrid: hybrids of theirs among what is learnt would let it
go on far too long.
"""

from collections.abc import Callable, Sequence

import numpy as np

from edfa.predictors.base import inner_split
from edfa.predictors.conditional import Neighbours
from edfa.predictors.xgb import SubsetXGB
from edfa.typing import NAN, Float32Array, Float64Array, Int64Array

N_MASKS = 32  # sets of facts that are exchanged: each is one search for near people
MAX_TRAINING_ROWS = 20_000  # people and hybrids to learn from
TREES = 200


def distil(
    ask: Callable[[Float32Array], Float64Array],
    X: Float32Array,  # noqa: N803
    codes: Int64Array,
    categorical: Sequence[int],
    *,
    k: int,
    n_hybrids: int,
    seed: int,
) -> SubsetXGB:
    """A ``SubsetXGB`` that has learnt a model's probabilities of training people and of hybrids.

    Parameters
    ----------
    ask
        Gives the model's probabilities (n, classes) of complete encoded rows (n, features).
    X, codes
        Encoded training people (people, features), and their outcomes as class codes (people,).
    categorical
        The positions of categorical features.
    k
        The number of near people of whom one is drawn.
    n_hybrids
        Hybrids a person; there are fewer where people and hybrids would be more than 20,000.
    seed
        Decides who is exchanged with whom.
    """
    learn, held_out = inner_split(codes, seed)
    count = min(n_hybrids * len(learn), max(0, MAX_TRAINING_ROWS - len(X)))
    hybrids = make_hybrids(X[learn], Neighbours.of(X[learn], categorical, k=k), count, seed)
    rows = np.concatenate([X, hybrids])
    soft_labels = ask(rows)
    outcomes = np.concatenate([codes, soft_labels[len(X) :].argmax(axis=1)])
    model = SubsetXGB("mixed", seed=seed, n_estimators=TREES)
    return model.fit(rows, outcomes, soft_labels=soft_labels, held_out=held_out)


def make_hybrids(X: Float32Array, near: Neighbours, count: int, seed: int) -> Float32Array:  # noqa: N803
    """Training people with some facts of a person who is near on the facts that stay.

    Parameters
    ----------
    X
        Complete encoded people to start from, (people, features).
    near
        Finds near people; their facts are those that are taken over.
    count
        The number of hybrids.
    seed
        Decides who is exchanged with whom, and which facts.

    Returns
    -------
    Complete encoded people, (count, features).
    """
    random = np.random.default_rng([seed, count])
    rows = X[random.integers(len(X), size=count)]
    for part in np.array_split(np.arange(count), min(N_MASKS, max(count, 1))):
        taken = random.random(X.shape[1]) < random.random()
        known = np.where(taken, NAN, rows[part])
        neighbours = near.nearest(known)
        other = near.rows[neighbours[np.arange(len(part)), random.integers(near.k, size=len(part))]]
        rows[part] = np.where(taken, other, rows[part])
    return rows
