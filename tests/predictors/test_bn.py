import sys

import numpy as np
import pytest
from random_worlds import random_network
from sklearn.metrics import roc_auc_score

import edfa
from edfa import BayesNet, SubsetXGB
from edfa.data.synthetic import credit_story
from edfa.errors import MissingExtraError, SettingError
from edfa.testing import check_predictor


def test_the_contract():
    table = edfa.load("german")
    rows = table.train.X[:, [0, 1, 2, 4]]
    check_predictor(BayesNet, rows, table.train.y)
    check_predictor(BayesNet, rows[:, :3], np.arange(len(rows)) % 3)


def test_the_contract_balanced():
    table = edfa.load("german")
    rows = table.train.X[:, [0, 1, 2, 4]]
    check_predictor(lambda: BayesNet(class_weight="balanced"), rows, table.train.y)


def test_balance_moves_towards_the_rare_class():
    table = edfa.load("german")
    plain, even = (
        BayesNet((0, 1, 2, 4), **o).fit(table.train.X, table.train.y)
        for o in ({}, {"class_weight": "balanced"})
    )
    probabilities = [model.predict_proba(table.test.X) for model in (plain, even)]
    assert (probabilities[1][:, 0] > probabilities[0][:, 0]).all(), "class 0 is the rarer one"
    assert even.network_.posterior(np.full((1, 4), np.nan))[0, 0] == pytest.approx(0.5, abs=0.02)


def test_it_comes_close_to_the_exact_posterior():
    story = credit_story()
    table = story.table(6000)
    model = BayesNet().fit(table.train.X, table.train.y)
    rows = table.test.X[:400].astype(float)
    rows[np.random.default_rng(0).random(rows.shape) < 0.5] = np.nan
    assert np.abs(model.predict_proba(rows) - story.posterior(rows)).mean() < 0.02


def test_tables_are_smoothed_counts():
    network = random_network(5, seed=1)
    table = network.table(500)
    learnt = BayesNet(smoothing=2.0).fit(table.train.X, table.train.y).network_
    for name, above in learnt.graph.parents.items():
        if not above and name != "y":
            codes = table.train.X[:, int(name[1:])].astype(int)
            expected = (np.bincount(codes) + 2.0 / len(learnt.levels[name])) / (len(codes) + 2.0)
            np.testing.assert_allclose(learnt.tables[name], expected)


@pytest.mark.parametrize(
    "name", ["german", "adult", "heloc", "taiwan", "acs_income", "gmsc", "diabetes130"]
)
def test_over_a_blanket_it_is_feasible_on_every_real_set(load_real, name):
    table = load_real(name, cap=6000)
    blanket = edfa.discover(table.train, "bamb")
    columns = tuple(table.schema.index(f) for f in blanket.features)
    facts = np.full_like(table.test.X, np.nan)
    facts[:, columns] = table.test.X[:, columns]
    models = [model.fit(table.train.X, table.train.y) for model in (BayesNet(columns), SubsetXGB())]
    mine, trees = (
        roc_auc_score(table.test.y, model.predict_proba(facts)[:, 1]) for model in models
    )
    assert mine > trees - 0.04, "bins cost a little, the structure nothing"


def test_what_is_outside_the_network_is_ignored():
    table = edfa.load("german")
    model = BayesNet((0, 1)).fit(table.train.X, table.train.y)
    rows = table.test.X.copy()
    changed = rows.copy()
    changed[:, 2:] = 0
    np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(changed))


def test_bad_settings():
    table = edfa.load("german")
    for features in ((), (0, 20), (-1,)):
        with pytest.raises(SettingError, match="features must name columns from 0 to 19"):
            BayesNet(features).fit(table.train.X, table.train.y)
    with pytest.raises(SettingError, match="bins is at least 2"):
        BayesNet(bins=1).fit(table.train.X, table.train.y)


def test_without_pyagrum_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyagrum", None)
    table = edfa.load("german")
    with pytest.raises(MissingExtraError, match=r"pip install 'edfa\[bn\]'"):
        BayesNet().fit(table.train.X, table.train.y)
