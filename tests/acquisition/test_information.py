import numpy as np
import pytest
from effort import some
from exact import ExactModel, ExactSampler, network_people
from hypothesis import given, settings
from hypothesis import strategies as st
from random_worlds import CLASSES, FEATURES, Cube, random_network
from scipy.stats import norm

import edfa
from edfa import Background, BayesNet, Blanket, People, SubsetXGB, acquire
from edfa.acquisition import Greedy
from edfa.acquisition.information import expected_information
from edfa.data.synthetic import credit_story
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.predictors import align
from edfa.predictors.bins import Bins
from edfa.predictors.conditional import Neighbours, smallest


def by_enumeration(network, row, i):
    """I(Y; X_i | x_A) from the definition: the mean divergence of the posterior after from the
    posterior before.
    """
    before = network.posterior(row[None])[0]
    probabilities = network.posterior(row[None], network.features[i])[0]
    total = 0.0
    for level, probability in enumerate(probabilities):
        known = row.copy()
        known[i] = level
        after = network.posterior(known[None])[0]
        total += probability * (after * np.log(after / before)).sum()
    return total


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_mutual_information(seed):
    network = random_network(7, seed=seed)
    complete = network.codes(network.sample(40, seed)).astype(np.float32)
    rows = np.where(
        np.random.default_rng(seed).random((10, 6)) < 0.4, complete[:10], np.nan
    ).astype(np.float32)
    people = network_people(network, rows, 40, seed)
    estimate = expected_information(people, people.askable, ExactSampler(network))
    for r, i in np.argwhere(people.askable):
        assert estimate[r, i] == pytest.approx(
            by_enumeration(network, rows[r].astype(float), i), abs=1e-9
        )
    assert np.isnan(estimate[~people.askable]).all()


def test_exact_with_a_bayes_net_is_the_mutual_information_of_its_network():
    story = credit_story()
    table = story.table(4000)
    model = BayesNet().fit(table.train.X, table.train.y)
    rows = np.where(
        np.random.default_rng(0).random((12, 5)) < 0.4, table.test.X[:12], np.nan
    ).astype(np.float32)
    people = People(rows, Background.of(table.train, model))
    estimate = expected_information(people, people.askable, "exact")
    network = model.network_
    for r, i in np.argwhere(people.askable):
        row = rows[r].astype(float)
        assert estimate[r, i] == pytest.approx(by_enumeration(network, row, i), abs=1e-9)
    two = Blanket(table.schema.target, dict.fromkeys(table.schema.names[:2], ()))
    aligned = People(rows, Background.of(table.train, model, two, aligned=True))
    estimate = expected_information(aligned, aligned.askable, "exact")
    assert np.nanmax(estimate[:, 2:]) < 1e-12, "what the model does not see tells nothing"
    trees = SubsetXGB(n_estimators=5).fit(table.train.X, table.train.y)
    with pytest.raises(SettingError, match="asks a BayesNet; the model in use is a SubsetXGB"):
        expected_information(
            People(rows, Background.of(table.train, trees)), people.askable, "exact"
        )
    with pytest.raises(UnknownNameError, match="did you mean 'knn'"):
        expected_information(people, people.askable, "knnn")


@pytest.mark.parametrize("sampler", ["knn", pytest.param("bins", marks=pytest.mark.long)])
def test_samplers_come_close_to_the_truth(sampler):
    """With the exact posterior as model, what is left is the sampler's error."""
    network = random_network(8, seed=4, strength=1.0)
    complete = network.codes(network.sample(6000, 1)).astype(np.float32)
    rows = np.where(np.random.default_rng(0).random((60, 7)) < 0.35, complete[:60], np.nan).astype(
        np.float32
    )
    people = network_people(network, rows, 6000, 1)
    askable = people.askable
    truth = expected_information(people, askable, ExactSampler(network))
    estimate = expected_information(people, askable, sampler)
    assert np.corrcoef(truth[askable], estimate[askable])[0, 1] > 0.95
    lost = (
        np.nanmax(truth, axis=1)
        - truth[np.arange(60), np.nanargmax(np.where(askable, estimate, -1), axis=1)]
    )
    assert lost.mean() < 0.1 * np.nanmax(truth, axis=1).mean(), "what is chosen is nearly the best"


def test_jensens_form_is_never_negative_and_zero_where_the_model_does_not_look():
    table = edfa.load("german")
    model = align(SubsetXGB("nan", n_estimators=40).fit(table.train.X, table.train.y), range(10))
    rows = np.where(
        np.random.default_rng(0).random((40, 20)) < 0.3, table.test.X[:40], np.nan
    ).astype(np.float32)
    people = People(rows, Background.of(table.train, model))
    estimate, askable = expected_information(people, people.askable), people.askable
    assert (estimate[askable] >= 0).all()
    assert (estimate[:, 10:][askable[:, 10:]] == 0).all()
    assert (estimate[:, :10][askable[:, :10]] > 0).any()


def test_cells_change_nothing_but_the_cost(monkeypatch):
    """Values that are the same to the trees are asked once; asked one by one they give the same."""
    table = edfa.load("german")
    model = SubsetXGB("nan", n_estimators=40).fit(table.train.X, table.train.y)
    rows = np.where(
        np.random.default_rng(0).random((30, 20)) < 0.3, table.test.X[:30], np.nan
    ).astype(np.float32)
    people = People(rows, Background.of(table.train, model))
    asked, counts = people.askable, []
    answer = model._answer
    monkeypatch.setattr(model, "_answer", lambda *a: counts.append(len(a[1])) or answer(*a))
    by_cells, few = expected_information(people, asked), sum(counts)
    counts.clear()
    monkeypatch.setattr(model, "cells", lambda *_: None)
    np.testing.assert_allclose(expected_information(people, asked), by_cells, atol=1e-9)
    assert few < sum(counts)


def test_neighbours_are_the_nearest_by_the_stated_distance():
    random = np.random.default_rng(0)
    rows = np.column_stack(
        [random.normal(3, 5, 400), random.integers(0, 4, 400), random.normal(0, 1, 400)]
    )
    rows = rows.astype(np.float32)
    near = Neighbours.of(rows, [1], k=20)
    query = np.array([[2.0, 3.0, np.nan]], dtype=np.float32)
    shares = np.bincount(near.rows[:, 1].astype(int)) / 400
    distance = ((near.rows[:, 0] - 2) / near.rows[:, 0].std()) ** 2
    distance += (near.rows[:, 1] != 3) * 2 / (1 - (shares**2).sum())
    assert set(near.nearest(query)[0]) == set(np.argsort(distance)[:20])
    pairs = random.integers(0, 400, (2, 20_000))
    apart = (near.rows[pairs[0], 1] != near.rows[pairs[1], 1]) * 2 / (1 - (shares**2).sum())
    assert apart.mean() == pytest.approx(2, rel=0.03), "a category counts as much as a number"


def test_neighbours_do_not_depend_on_the_batch_or_on_what_is_unknown():
    table = edfa.load("german")
    words = [i for i, f in enumerate(table.schema) if f.kind == "categorical"]
    near = Neighbours.of(table.train.X, words)
    assert near.k == 50
    rows = np.where(
        np.random.default_rng(0).random((80, 20)) < 0.3, table.test.X[:80], np.nan
    ).astype(np.float32)
    rows[5] = np.nan
    together = near.nearest(rows)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(near.nearest(row[None])[0], together[i])
    np.testing.assert_array_equal(together[5], np.arange(50))
    whole = near.complete(rows)
    assert whole.shape == (80, 50, 20)
    assert not np.isnan(whole).any()
    known = ~np.isnan(rows)
    np.testing.assert_array_equal(whole[:, 7][known], rows[known])
    first = whole[3, 0][~known[3]]
    assert (near.rows[:, ~known[3]] == first).all(axis=1).any(), (
        "what is unknown comes from one neighbour"
    )
    with pytest.raises(DataError, match="complete training rows"):
        Neighbours.of(rows, words)
    with pytest.raises(DataError, match="complete training rows"):
        Bins.of(rows)


GRID = 12


class Quadrature:
    """CUBE's exact conditional of one feature, as a fine grid over the mixture."""

    def __init__(self, cube):
        self.cube = cube
        mean, spread = cube.moments()
        levels = norm.ppf((np.arange(GRID) + 0.5) / GRID)
        self.points = (
            mean.T[:, :, None] + spread.T[:, :, None] * levels
        )  # (features, classes, grid)

    def given(self, rows):
        posterior = self.cube.posterior(rows)

        def draw(feature):
            points = self.points[feature].reshape(-1)
            weights = np.repeat(posterior / GRID, GRID, axis=1)
            return np.tile(points, (len(rows), 1)).astype(np.float32), weights

        return draw


EXACT_GREEDY = {0.3: (0.270, 0.478, 0.614, 0.692, 0.753), 0.1: (0.323, 0.632, 0.833, 0.925, 0.960)}


@pytest.mark.long
@pytest.mark.parametrize(("sigma", "curve"), EXACT_GREEDY.items())
def test_greedy_on_cube_comes_up_to_the_exact_curve(sigma, curve):
    """Accuracy after 1 to 5 features, against the exact greedy curve (its own error is about
    0.01).
    """
    cube, n = Cube(sigma), 2000
    table = cube.table(n + 200, seed=11, shares=(100 / (n + 200), 100 / (n + 200), n / (n + 200)))
    raw = table.test.frame[list(table.schema.names)].to_numpy(np.float32)
    model = ExactModel.of(cube, FEATURES, CLASSES)
    run = acquire(
        raw, Greedy(sampler=Quadrature(cube)), model, 5, reference=table.train, explain=False
    )
    for features, expected in enumerate(curve, start=1):
        accuracy = (run.decision[run.at(features)] == table.test.y).mean()
        assert accuracy == pytest.approx(expected, abs=0.02)


@settings(max_examples=some(40), deadline=None)
@given(
    st.integers(0, 1000),
    st.integers(1, 60),
    st.integers(1, 5_000),
    st.integers(1, 40),
    st.booleans(),
)
def test_the_smallest_are_the_smallest(seed, rows, columns, k, sorted_):
    """Of few and of many, in any order; ties are broken by position."""
    random, k = np.random.default_rng(seed), min(k, columns)
    distance = random.integers(0, 50, (rows, columns)) + np.arange(columns) * 1e-6
    distance = np.sort(distance, axis=1)[:, ::-1].copy() if sorted_ else distance
    expected = np.argsort(distance, axis=1)[:, :k]
    assert np.array_equal(np.sort(smallest(distance, k), axis=1), np.sort(expected, axis=1))
