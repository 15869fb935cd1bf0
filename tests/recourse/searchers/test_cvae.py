"""The generative searcher: ranks come back, what it learnt is the conditional, training stops by
validity.
"""

import numpy as np
import pandas as pd
import pytest
import torch

import edfa
from edfa.errors import SettingError
from edfa.explanation.necessity import Support
from edfa.people import Background, People
from edfa.recourse import CVAE, Rules, find_recourse
from edfa.recourse.searchers import cvae
from edfa.recourse.searchers.cvae import (
    Autoencoder,
    DrawNoise,
    InputLayout,
    generate,
    train_autoencoder,
)


def test_ranks_come_back(table):
    ordered = np.array([f.kind != "categorical" for f in table.schema])
    layout = InputLayout(Support.of(table.train.X), ordered)
    inputs = layout.encode(table.train.X)
    assert inputs.shape[1] == sum(layout.sizes) == len(layout.feature)
    first = np.cumsum([0, *layout.sizes[:-1]])
    for j in np.flatnonzero(ordered):
        assert np.array_equal(layout.decode_number(j, inputs[:, first[j]]), table.train.X[:, j])
        assert abs(inputs[:, first[j]].mean()) < 0.25
    for j in np.flatnonzero(~ordered):
        level, levels = (
            inputs[:, first[j] : first[j] + layout.sizes[j]].argmax(axis=1),
            np.unique(table.train.X[:, j]),
        )
        assert np.array_equal(levels[level], table.train.X[:, j])


@pytest.mark.long
def test_it_learns_the_conditional(monkeypatch):
    """b is a's noisy copy, c a number around the class: made up from a and the class, they are as
    in the data.
    """
    monkeypatch.setattr(cvae, "CHECKS", 24)
    monkeypatch.setattr(
        cvae, "BETA", 1.0
    )  # below one, draws from the prior are wider than the data
    random = np.random.default_rng(0)
    a, y = random.integers(0, 3, 3000), random.integers(0, 2, 3000)
    b = np.where(random.random(3000) < 0.8, a, random.integers(0, 3, 3000))
    c = np.round(y + random.normal(size=3000), 2)
    frame = pd.DataFrame(
        {"a": a.astype(str), "b": b.astype(str), "c": c, "y": np.array(["no", "yes"])[y]}
    )
    kinds = {"a": "categorical", "b": "categorical", "c": "continuous"}
    schema = edfa.Schema(tuple(edfa.Feature(n, k) for n, k in kinds.items()), "y", "yes")
    table = edfa.Table.from_frame(frame, schema, shares=(1.0, 0.0, 0.0)).train
    layout = InputLayout(Support.of(table.X), np.array([False, False, True]))
    torch.manual_seed(0)
    network = train_autoencoder(Autoencoder(layout, 2), table.X, table.y, lambda n: next(COUNT), 0)
    prior = DrawNoise.of(random, 4000, network)._replace(near=np.zeros(4000, dtype=bool))
    for level in range(3):
        for desired_class in range(2):
            rows = np.tile(np.array([[level, 0, 0]], np.float32), (4000, 1))
            masks = np.ones(3, dtype=bool), np.array([True, False, False])
            made = generate(network, rows, np.full(4000, desired_class), masks, prior)
            truth = table.X[(table.X[:, 0] == level) & (table.y == desired_class)]
            for other in range(3):
                assert (made[:, 1] == other).mean() == pytest.approx(
                    (truth[:, 1] == other).mean(), abs=0.08
                )
            assert made[:, 2].mean() == pytest.approx(truth[:, 2].mean(), abs=0.2)
            assert made[:, 2].std() == pytest.approx(truth[:, 2].std(), abs=0.2)


COUNT = iter(range(1000))


def test_training_keeps_what_was_most_valid(table, monkeypatch):
    monkeypatch.setattr(cvae, "STEPS", 1)
    layout = InputLayout(
        Support.of(table.train.X), np.array([f.kind != "categorical" for f in table.schema])
    )
    torch.manual_seed(0)
    shares, seen = iter([0.1, 0.5, 0.3, 0.2, 0.4, 0.1, 0.9]), []

    def validity(network):
        seen.append({name: value.clone() for name, value in network.state_dict().items()})
        return next(shares)

    network = train_autoencoder(Autoencoder(layout, 2), table.train.X, table.train.y, validity, 0)
    assert len(seen) == 5, "three looks without a better one"
    assert all(
        torch.equal(value, seen[1][name].double()) for name, value in network.state_dict().items()
    )


@pytest.mark.long
def test_plans_for_nearly_everybody(german):
    table, model = german
    rows = table.test.X[:60].copy()
    rows[::2, 14:] = np.nan
    people = People(rows, Background.of(table.train, model))
    plans = find_recourse(people, CVAE(table.train), rules=Rules(reading="paper"))
    assert plans.legal.mean() > 0.95
    assert plans.count.mean() > 3
    with pytest.raises(SettingError):
        CVAE(table.train, draws=64, max_draws=32)
