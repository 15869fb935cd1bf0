"""I(Y; X_i | x_A) of each person: how much one more fact is expected to tell about the outcome.

Jensen's form: the entropy of the mean answer less the mean entropy of the answers, over what the fact may turn out to
be. It is never negative, and zero where the model does not heed the fact.
"""

from typing import Literal

import numpy as np

from edfa.errors import SettingError, UnknownNameError
from edfa.people import People
from edfa.predictors.base import Predictor, by_mask
from edfa.predictors.bn import BayesNet
from edfa.predictors.conditional import Exact, Sampler
from edfa.typing import BoolArray, Float32Array, Float64Array

__all__ = ["information"]

Name = Literal["knn", "bins", "exact"]


def information(
    people: People, asked: BoolArray, sampler: Sampler | Name = "knn", model: Predictor | None = None
) -> Float64Array:
    """The information of each feature that is ``asked`` about (people, features); NaN elsewhere.

    ``model`` answers in place of the one in use, where that is too slow or too rough for this.
    """
    predictor, drawer = model or people.background.predictor, _sampler(people, sampler)
    asked = asked & ~people.known  # what is known has nothing left to tell
    found = np.full(people.X.shape, np.nan)
    for mask, who in by_mask(people.X):
        here = asked[who]
        if not here.any():
            continue
        facts, case = np.unique(people.X[np.ix_(who, np.flatnonzero(mask))], axis=0, return_inverse=True)
        rows = np.full((len(facts), people.X.shape[1]), np.nan, dtype=np.float32)
        rows[:, mask] = facts
        draw = drawer.given(rows)
        for feature in np.flatnonzero(here.any(axis=0)):
            gain = _gain(predictor, mask, facts, int(feature), *draw(int(feature)))
            found[who, feature] = np.where(here[:, feature], gain[case.ravel()], np.nan)
    return found


def _sampler(people: People, sampler: Sampler | Name) -> Sampler:
    if not isinstance(sampler, str):
        return sampler
    if sampler == "knn":
        return people.background.neighbours
    if sampler == "bins":
        return people.background.bins
    if sampler != "exact":
        raise UnknownNameError("sampler", sampler, ("knn", "bins", "exact"))
    network = people.background.model
    if not isinstance(network, BayesNet):
        raise SettingError(f"the exact sampler asks a BayesNet; the model in use is a {type(network).__name__}")
    return Exact(network)


def _gain(
    predictor: Predictor,
    mask: BoolArray,
    facts: Float32Array,
    feature: int,
    values: Float32Array,
    weights: Float64Array,
) -> Float64Array:
    """One call for everybody: each with each value the feature may have, those that are the same to the model once."""
    then = mask.copy()
    then[feature] = True
    cuts = predictor.cells(then, feature)
    kinds = np.unique(values, return_inverse=True)[1] if cuts is None else np.searchsorted(cuts, values, side="right")
    width = int(kinds.max()) + 1
    pairs = (np.arange(len(facts))[:, None] * width + kinds.reshape(values.shape)).ravel()
    pair, first, back = np.unique(pairs, return_index=True, return_inverse=True)
    weight = np.bincount(back, weights=weights.ravel())
    person = pair // width
    rows = np.insert(facts[person], int(np.count_nonzero(mask[:feature])), values.ravel()[first], axis=1)
    probabilities = predictor.predict_known(then, rows)
    count = len(facts)
    mean: Float64Array = np.stack(
        [np.bincount(person, weights=weight * p, minlength=count) for p in probabilities.T], axis=1
    )
    told = np.bincount(person, weights=weight * _entropy(probabilities), minlength=count)
    return np.maximum(_entropy(mean) - told, 0)


def _entropy(probabilities: Float64Array) -> Float64Array:
    return np.asarray(-(probabilities * np.log(np.maximum(probabilities, 1e-300))).sum(axis=1))
