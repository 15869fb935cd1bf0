"""PROBE: the rate it reports is the rate there is, and it is low enough."""

import numpy as np
import pandas as pd
import pytest
import torch

import edfa
from edfa.errors import SettingError
from edfa.people import Background, People
from edfa.recourse import PROBE, Nearest, Rules, find_recourse

DRAWS = 4000


def simulate(plans, table, sigma, draws=DRAWS, seed=1):
    """Each plan met roughly, many times: how often is it no recourse?"""
    random, spread = np.random.default_rng(seed), np.ptp(table.train.X, axis=0)
    numbers = np.array([f.kind == "continuous" for f in table.schema])
    fails = []
    for row, to, now in zip(plans.rows(), plans.to, plans.decision[plans.of], strict=True):
        noise = random.normal(size=(draws, len(row))) * sigma * spread * (numbers & ~np.isnan(to))
        noisy = (row + noise).astype(np.float32)
        fails.append((plans.people.predictor.predict(noisy) == now).mean())
    return np.array(fails)


@pytest.mark.parametrize("model", ["trees", "network"])
def test_the_reported_rate_is_that_of_simulation(model, table, request):
    count = {"trees": 60, "network": 20}[model]
    people = People(
        table.test.X[:count], Background.of(table.train, request.getfixturevalue(model))
    )
    searcher = PROBE(table.train, rate=0.3, sigma=0.1)
    plans = find_recourse(people, searcher, rules=Rules(reading="paper"), k=4)
    truth = simulate(plans, table, 0.1)
    measured = np.array([f.kind == "continuous" for f in table.schema])
    noisy = (~np.isnan(plans.to) & measured).sum(axis=1)
    exact = (plans.l0 == 1) & (noisy == 1) & (model == "trees")
    sampled = (noisy > 0) & ~exact
    assert (plans.invalidation[noisy == 0] == 0).all()
    assert (plans.invalidation <= 0.3).all()
    error = np.sqrt(np.maximum(truth * (1 - truth), 1 / DRAWS) / DRAWS)
    draws = np.sqrt(np.maximum(truth * (1 - truth), 1 / 256) / 256)
    gap = np.abs(truth - plans.invalidation)
    # Three standard errors for every plan would be too much to ask of so many; of one in a hundred
    # it is not.
    assert exact.sum() > 10 or model == "network"
    assert sampled.sum() > 5
    for rows, se in ((exact, error), (sampled, np.hypot(error, draws))):
        assert (gap[rows] <= 3 * se[rows]).mean() >= 0.99 if rows.any() else True
        assert (gap[rows] <= 5 * se[rows]).all()


def test_a_robust_plan_is_the_nearest_that_is_robust(table, trees):
    """One feature, every training value tried: its exact rate by the cells of the model."""
    people = People(table.test.X[:80], Background.of(table.train, trees))
    only = Rules(only=("credit_amount",), reading="paper")
    plans = find_recourse(people, PROBE(table.train, rate=0.2, sigma=0.05), rules=only)
    j = table.schema.index("credit_amount")
    values, checked = np.unique(table.train.X[:, j]), 0
    cuts = trees.cells(np.ones(20, dtype=bool), j)
    from scipy.stats import norm

    scale = 0.05 * np.ptp(table.train.X[:, j])
    cells = np.r_[-np.inf, cuts, np.inf]
    weight = np.diff(norm.cdf((cells - values[:, None].astype(float)) / scale), axis=1)
    for i, row in enumerate(people.X):
        rows = np.repeat(row[None], len(cuts) + 1, axis=0)
        rows[:, j] = np.r_[np.nextafter(cuts[0], -np.inf), cuts]
        stays = trees.predict(rows) == trees.predict(row[None])[0]
        rate = weight @ stays
        works = ~stays[np.searchsorted(cuts, values, side="right")]
        good = works & (rate <= 0.2)
        truth = [*values[good & (values > row[j])][:1], *values[good & (values < row[j])][-1:]]
        proposed = plans.to[plans.of == i, j]
        assert sorted(proposed.tolist()) == sorted(truth)
        checked += len(truth)
    assert checked > 10


def test_a_lower_rate_is_bought_with_a_longer_way(table, trees):
    people = People(table.test.X[:60], Background.of(table.train, trees))
    rates, ways = [], []
    for rate in (0.05, 0.45):
        plans = find_recourse(
            people,
            PROBE(table.train, rate=rate),
            rules=Rules(only=("credit_amount", "duration")),
        )
        assert (plans.invalidation <= rate).all()
        rates.append(set(plans.of.tolist()))
        ways.append({int(i): plans.l2[plans.of == i].min() for i in np.unique(plans.of)})
    both = rates[0] & rates[1]
    assert rates[0] < rates[1]
    assert sum(ways[0][i] for i in both) > sum(ways[1][i] for i in both)
    plain = find_recourse(people, Nearest(table.train))
    assert (simulate(plain, table, 0.05, draws=200) > 0.2).mean() > 0.1


def test_the_gradient_shortens_the_way():
    """Three numbers and a straight border: moving along the gradient beats what neighbours happen
    to have.
    """
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(900, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(frame.sum(axis=1) + random.normal(size=900) * 0.3 > 0, "yes", "no")
    table = edfa.Table.from_frame(
        frame, edfa.Schema(tuple(edfa.Feature(n, "continuous") for n in "abc"), "y", "yes")
    )
    model = edfa.MaskedMLP(epochs=40).fit(table.train.X, table.train.y)
    people = People(table.test.X[:40], Background.of(table.train, model))
    way = []
    for searcher in (PROBE, Without):
        plans = find_recourse(people, searcher(table.train, rate=0.1))
        assert (plans.invalidation <= 0.1).all()
        way.append(np.array([plans.l2[plans.of == i].min(initial=9) for i in range(40)]))
    assert (way[0] < 9).mean() > 0.9
    assert (way[0] <= way[1] + 1e-6).all()
    assert (way[0] < way[1] - 1e-3).mean() > 0.2


def test_logits_as_tensors_are_the_models_and_have_its_slope(table, network):
    """The model's logits as tensors are its probabilities, and gradients flow."""
    mask = np.random.default_rng(0).random(20) < 0.6
    mask[table.schema.index("credit_amount")] = True
    known = table.test.X[:30][:, mask]
    values = torch.from_numpy(known).double().requires_grad_(True)
    logits = network.differentiable(mask)(values)
    assert np.allclose(
        torch.softmax(logits, dim=1).detach().numpy(), network.predict_known(mask, known), atol=1e-5
    )
    (slope,) = torch.autograd.grad((logits[:, 1] - logits[:, 0]).sum(), values)
    j = int(np.flatnonzero(np.flatnonzero(mask) == table.schema.index("credit_amount"))[0])
    step = 1e-6
    ends = [torch.from_numpy(known).double() for _ in range(2)]
    ends[0][:, j] += step
    ends[1][:, j] -= step
    margins = [logits[:, 1] - logits[:, 0] for logits in map(network.differentiable(mask), ends)]
    numeric = (margins[0] - margins[1]) / (2 * step)
    near = np.isclose(slope[:, j].numpy(), numeric.numpy(), rtol=1e-3, atol=1e-5)
    assert near.mean() > 0.9  # but where a value is a knot, at which the slope changes


class Without(PROBE):
    """The same without the gradient."""

    def search(self, problem):
        problem.__dict__["differentiable"] = False
        return super().search(problem)


@pytest.mark.parametrize("settings", [{"rate": 0.0}, {"sigma": 0}, {"draws": 100}, {"steps": 0}])
def test_settings_that_cannot_be(settings, table):
    with pytest.raises(SettingError):
        PROBE(table.train, **settings)
