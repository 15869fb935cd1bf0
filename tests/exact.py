"""Test doubles that know the truth: a model and a sampler that ask a network instead of learning
from rows.
"""

import numpy as np

from edfa.data.encode import Encoder
from edfa.people import Background, People
from edfa.predictors.base import Predictor


class ExactModel(Predictor):
    """The exact posterior of a world with ``posterior``, for rows in its own codes."""

    def __init__(self, world=None):
        self.world = world

    @classmethod
    def of(cls, world, features, classes):
        model = cls(world)
        model.n_features_in_, model.classes_ = features, np.arange(classes)
        model.prior_ = world.posterior(np.full((1, features), np.nan))[0]
        model.varies_ = np.ones(features, dtype=bool)
        return model

    def _fit(self, matrix, codes, progress):
        raise NotImplementedError

    def _answer(self, mask, known):
        rows = np.full((len(known), self.n_features_in_), np.nan)
        rows[:, mask] = known
        return self.world.posterior(rows)


def exact_model(network):
    return ExactModel.of(network, len(network.features), len(network.levels[network.target]))


class ExactSampler:
    """P(X_i | x_A) of a discrete network: every level with its probability."""

    def __init__(self, network):
        self.network = network

    def given(self, rows):
        def draw(feature):
            probabilities = self.network.posterior(rows, self.network.features[feature])
            values = np.arange(probabilities.shape[1], dtype=np.float32)
            return np.tile(values, (len(rows), 1)), probabilities

        return draw


def as_blanket(network):
    """The true blanket of a network's target."""
    from edfa import Blanket

    return Blanket(network.target, network.graph.units(network.target))


def network_people(network, rows, n_train=200, seed=0):
    """Partly known people of a network, as level codes (people, features), whose model is the exact
    posterior.
    """
    sample, schema = network.sample(n_train, seed), network.schema()
    training_rows = network.codes(sample).astype(np.float32)
    background = Background(
        schema, Encoder.fit(sample, schema), exact_model(network), rows=training_rows
    )
    return People(rows, background)
