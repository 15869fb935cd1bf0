"""Decisions from the leaves are those of the trees, to the last one."""

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import SubsetXGB
from edfa.predictors import align
from edfa.predictors.boosting import Forest

TABLE = edfa.load("german")
X, Y = TABLE.train.X, TABLE.train.y
MASK = np.isin(np.arange(20), [1, 3, 4, 12])


def tries(rows, count, seed=0):
    """Columns and values to give: of others, and halfway between them."""
    random = np.random.default_rng(seed)
    column = np.sort(random.integers(0, rows.shape[1], count))
    value = rows[random.integers(0, len(rows), count), column]
    return column, value + random.integers(0, 2, count).astype(np.float32) / 2


def changed(known, column, value):
    rows = np.repeat(known[:, None, :], len(column), axis=1)
    rows[:, np.arange(len(column)), column] = value
    return rows.reshape(-1, known.shape[1])


def by_the_trees(model, mask, known, column, value):
    decided = model.decide(model.predict_known(mask, changed(known, column, value)))
    return decided.reshape(len(known), len(column))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 60), st.integers(1, 6))
def test_the_sum_of_the_leaves_is_that_of_the_trees(seed, columns, trees, depth):
    random = np.random.default_rng(seed)
    rows = random.integers(-3, 4, (200, columns)).astype(np.float32)
    classes = random.random(200) < 1 / (1 + np.exp(-rows.sum(axis=1)))
    settings_ = {"objective": "binary:logistic", "max_depth": depth, "eta": 0.5, "nthread": 1}
    booster = xgb.train(settings_, xgb.DMatrix(rows, classes), trees)
    forest, (column, value) = Forest.of(booster.save_raw("json")), tries(rows, 30, seed)
    exact = booster.inplace_predict(changed(rows, column, value), predict_type="margin").reshape(
        200, 30
    )
    assert np.abs(forest.margins(rows, column, value) - exact).max() <= forest.tolerance < 0.01


@pytest.mark.parametrize(
    "settings_",
    [
        {},
        {"threshold": 0.7},
        {"threshold": 0.3},
        {"n_estimators": 2, "threshold": 0.7},
    ],
)
def test_decisions_are_those_of_the_trees(settings_):
    model = SubsetXGB(**{"n_estimators": 60} | settings_).fit(X, Y)
    known = TABLE.test.X[:, MASK]
    column, value = tries(X[:, MASK], 80)
    decisions = model.decide_tries(MASK, known, column, value)
    assert np.array_equal(decisions, by_the_trees(model, MASK, known, column, value))
    assert 0.02 < decisions.mean() < 0.999


def test_a_probability_that_is_the_threshold_is_decided_as_the_trees_do():
    """Sums in another order differ by a rounding: on the border the trees themselves are asked."""
    model = SubsetXGB(n_estimators=60).fit(X, Y)
    known = TABLE.test.X[:, MASK]
    column, value = tries(X[:, MASK], 40)
    probabilities = model.predict_known(MASK, changed(known, column, value))[:, 1]
    differ = 0
    for border in np.unique(probabilities)[::40]:
        model.threshold = float(border)
        decisions = model.decide_tries(MASK, known, column, value)
        assert np.array_equal(decisions, by_the_trees(model, MASK, known, column, value))
        forest = model._trees_for(MASK).forest
        bare = forest.margins(known, column, value) >= np.log(border / (1 - border))
        differ += int((bare != decisions).sum())
    assert differ > 0  # without the trees some would be wrong


def test_what_is_not_shown_or_never_varied_changes_nothing():
    fixed = X.copy()
    fixed[:, 3] = 1
    model = align(SubsetXGB(n_estimators=40).fit(fixed, Y), [1, 3, 4])
    known = TABLE.test.X[:, MASK]
    column = np.repeat(np.arange(4), 20)
    value = X[:20][:, MASK].T.ravel()
    decisions = model.decide_tries(MASK, known, column, value)
    assert np.array_equal(decisions, by_the_trees(model, MASK, known, column, value))
    now = model.decide(model.predict_known(MASK, known))
    assert (decisions[:, np.isin(column, [1, 3])] == now[:, None]).all()
    assert (decisions != now[:, None]).any()


def test_without_a_faster_way_the_answer_is_none():
    known, (column, value) = TABLE.test.X[:, MASK], tries(X[:, MASK], 10)
    three = np.random.default_rng(0).integers(0, 3, len(Y))
    for model in (
        SubsetXGB("nan", n_estimators=5).fit(X, Y),
        SubsetXGB(n_estimators=5).fit(X, three),
        SubsetXGB(n_estimators=5, threshold=1.0).fit(X, Y),
        edfa.MaskedMLP(epochs=1).fit(X, Y),
    ):
        assert model.decide_tries(MASK, known, column, value) is None
    model = align(SubsetXGB(n_estimators=5).fit(X, Y), [0])
    assert model.decide_tries(MASK, known, column, value) is None  # nothing of it is known


def test_leaves_that_tell_something_else_than_the_trees_are_not_relied_on(monkeypatch):
    """As if XGBoost had changed what it writes."""
    model = SubsetXGB(n_estimators=20).fit(X, Y)
    column, value = tries(X[:, MASK], 10)
    read = Forest.of.__func__
    monkeypatch.setattr(Forest, "of", classmethod(lambda cls, text: doubled(read(cls, text))))
    assert model.decide_tries(MASK, TABLE.test.X[:, MASK], column, value) is None


def doubled(forest):
    return Forest(
        forest.value * 2, forest.low, forest.high, forest.tree, forest.base, forest.thresholds
    )
