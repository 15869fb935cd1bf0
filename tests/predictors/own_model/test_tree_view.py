"""Answers by the paths of trees equal brute force; thresholds of the model are cells of the
encoder.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from own_people import HOMES, hide, people
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import edfa
from edfa import Feature, Schema
from edfa.errors import ModelError

NAMES = ["income", "debt", "home", "years", "height"]
NUMBERS = ["income", "debt", "height"]


def by_hand(tree, row, known, node=0):
    """The mean value (classes,) of a scikit-learn tree: where a split's column is not known, both
    ways by weight.
    """
    if tree.children_left[node] < 0:
        value = tree.value[node][0]
        return value / value.sum()
    left, right = tree.children_left[node], tree.children_right[node]
    column = tree.feature[node]
    if column in known:
        return by_hand(tree, row, known, left if row[column] <= tree.threshold[node] else right)
    weights = np.array([tree.weighted_n_node_samples[left], tree.weighted_n_node_samples[right]])
    values = np.array([by_hand(tree, row, known, left), by_hand(tree, row, known, right)])
    return weights @ values / weights.sum()


@cache
def fitted(kind):
    """A table and a model of it: of encoded people, of two columns of a frame, or behind a
    Pipeline.
    """
    table = people()
    frame = table.train.frame[NAMES]
    forest = RandomForestClassifier(6, max_depth=4, random_state=0)
    if kind == "encoded":
        return forest.fit(table.train.X, table.train.y), {"columns": "encoded"}
    if kind == "frame":
        return forest.fit(frame[NUMBERS], table.train.y), {}
    if kind == "pipeline":
        made = make_column_transformer(
            (OneHotEncoder(), ["home"]), ("passthrough", ["debt", "income"])
        )
        return make_pipeline(made, forest).fit(frame, table.train.y), {}
    like = frame.astype({"home": pd.CategoricalDtype(HOMES)})
    model = xgb.XGBClassifier(n_estimators=8, max_depth=3, enable_categorical=True)
    return model.fit(like, table.train.y), {"like": like}


def wrapped(kind, partial="tree"):
    model, options = fitted(kind)
    return edfa.wrap(model, partial, classes=("no", "yes"), **options).fit_table(people().train)


@pytest.mark.parametrize("hidden", [(1,), (0, 3), (0, 1, 2, 3)])
def test_paths_of_an_encoded_forest_equal_brute_force(hidden):
    table, (forest, _) = people(), fitted("encoded")
    known = set(range(5)) - set(hidden)
    some = table.test.X[:12]
    expected = [
        np.mean([by_hand(t.tree_, row, known) for t in forest.estimators_], axis=0) for row in some
    ]
    np.testing.assert_allclose(
        wrapped("encoded").predict_proba(hide(some, *hidden)), expected, atol=1e-6
    )


def test_paths_of_a_forest_of_raw_columns_equal_brute_force():
    table, (forest, _) = people(), fitted("frame")
    some = table.test.frame[NUMBERS].to_numpy(np.float32)[:12]
    expected = [
        np.mean([by_hand(t.tree_, row, {0, 2}) for t in forest.estimators_], axis=0) for row in some
    ]
    np.testing.assert_allclose(
        wrapped("frame").predict_proba(hide(table.test.X[:12], 1)), expected, atol=1e-6
    )


def test_a_feature_behind_a_pipeline_moves_all_its_columns():
    """The home is three columns of the forest: known together, or not at all."""
    table, (pipeline, _) = people(), fitted("pipeline")
    made = pipeline[0].transform(table.test.frame[NAMES])
    made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float32)[:12]
    model = wrapped("pipeline")
    for hidden, known in (((2,), {3, 4}), ((1,), {0, 1, 2, 4}), ((0, 1), {0, 1, 2})):
        expected = [
            np.mean([by_hand(t.tree_, row, known) for t in pipeline[-1].estimators_], axis=0)
            for row in made
        ]
        np.testing.assert_allclose(
            model.predict_proba(hide(table.test.X[:12], *hidden)), expected, atol=1e-6
        )


def test_with_everything_known_the_model_itself_answers():
    for kind in ("encoded", "frame", "pipeline", "categories"):
        table, (model, _) = people(), fitted(kind)
        raw = table.test.X if kind == "encoded" else table.test.frame[NAMES]
        if kind == "categories":
            raw = raw.astype({"home": pd.CategoricalDtype(HOMES)})
        if kind == "frame":
            raw = raw[NUMBERS]
        np.testing.assert_array_equal(
            wrapped(kind).predict_proba(table.test.X), model.predict_proba(raw)
        )


@pytest.mark.parametrize("kind", ["encoded", "frame", "categories"])
def test_numbers_in_one_cell_are_the_same_to_the_model_and_cells_are_found(kind):
    table, model = people(), wrapped(kind)
    everything = np.ones(5, dtype=bool)
    for feature in (0, 1, 4):
        cuts = model.cells(everything, feature)
        assert len(cuts) > 3
        assert (np.diff(cuts) > 0).all()
        rows = np.repeat(table.test.X[:20], 2 * len(cuts), axis=0)
        below = np.nextafter(cuts, np.float32(-np.inf))
        rows[:, feature] = np.tile(np.stack([below, cuts], axis=1).ravel(), 20)
        answers = model.ask(rows)[:, 1].reshape(20, len(cuts), 2)
        assert (answers[:, :, 0] != answers[:, :, 1]).any(
            axis=0
        ).mean() > 0.3  # at a cut, somebody's answer changes
        inside = model.ask(rows)[:, 1].reshape(20, -1)[:, 1:-1].reshape(20, -1, 2)
        np.testing.assert_array_equal(
            inside[:, :, 0], inside[:, :, 1]
        )  # from a cut to just below the next, nobody's


def test_levels_have_no_cells_to_ask_between():
    model, everything = wrapped("categories"), np.ones(5, dtype=bool)
    assert model.cells(everything, 2) is None
    assert model.cells(everything, 3) is None


def test_plans_and_explanations_of_categories_are_found_by_trees():
    """Candidate values are levels that training people have; in between there is nothing to ask
    about.
    """
    table, model = people(), wrapped("categories")
    states = edfa.People(hide(table.test.X[:15], 1), edfa.Background.of(table.train, model))
    plans = edfa.find_recourse(states, edfa.SurvivalSearch(table.train), desired_class="yes")
    assert len(plans)
    assert np.isfinite(states.with_sweep().sweep.necessity[:, 2]).all()


def test_a_gap_is_a_cell_of_its_own():
    """A missing number goes its own way through the trees; it does not lie with the lowest
    numbers.
    """
    random = np.random.default_rng(0)
    debt = random.normal(size=400).round(2)
    debt[random.random(400) < 0.3] = np.nan
    outcome = np.where(np.isnan(debt), 1, debt > 0.5)
    frame = pd.DataFrame(
        {"debt": debt, "age": random.normal(size=400).round(2), "y": np.where(outcome, "b", "a")}
    )
    schema = Schema((Feature("debt", "continuous"), Feature("age", "continuous")), "y", "b")
    table = edfa.Table.from_frame(frame, schema)
    model = xgb.XGBClassifier(n_estimators=5, max_depth=2).fit(
        table.train.frame[["debt", "age"]], table.train.y
    )
    ready = edfa.wrap(model, "tree", classes=("a", "b")).fit_table(table.train)
    codes = np.unique(table.train.X[:, 0])
    gap, lowest = codes[0], codes[1]
    assert table.encoder.columns[0].slots.tolist() == [gap]
    cell = np.searchsorted(ready.cells(np.ones(2, dtype=bool), 0), [gap, lowest], side="right")
    assert cell[0] < cell[1]
    answers = ready.predict_proba(np.array([[gap, 0], [lowest, 0]], dtype=np.float32))[:, 1]
    assert answers[0] > 0.5 > answers[1]


def test_models_that_cannot_be_read_are_refused_or_have_no_cells():
    table = people()
    logistic = LogisticRegression().fit(table.train.frame[NUMBERS], table.train.y)
    with pytest.raises(ModelError, match="LogisticRegression cannot be read"):
        edfa.wrap(logistic, "tree", classes=("no", "yes")).fit_table(table.train)
    model = edfa.wrap(logistic, "completed", classes=("no", "yes")).fit_table(table.train)
    assert model.cells(np.ones(5, dtype=bool), 0) is None
