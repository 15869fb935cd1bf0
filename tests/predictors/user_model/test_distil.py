"""Learning another model's probabilities: what is learnt, from whom, and when to stop."""

import numpy as np
import pytest
import xgboost as xgb
from own_people import WEIGHTS, hide, mean_chance, people, two_numbers

import edfa
from edfa.errors import DataError, SettingError
from edfa.fingerprint import digest
from edfa.predictors import boosting
from edfa.predictors.base import inner_split
from edfa.predictors.conditional import Neighbours
from edfa.predictors.user_model.distil import distil, make_hybrids
from edfa.predictors.xgb import SubsetXGB

SMALL = {"n_estimators": 15, "max_depth": 3}


@pytest.fixture(scope="module")
def table():
    return people()


def soft(matrix, classes=2):
    """Probabilities that depend on the first two columns."""
    scores = np.stack([np.zeros(len(matrix)), matrix[:, 0], matrix[:, 1]][:classes], axis=1)
    soft_labels = np.exp(scores - scores.max(axis=1, keepdims=True))
    return soft_labels / soft_labels.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [2, 3])
def test_soft_labels_equal_weighted_duplicates(classes, table, monkeypatch):
    """Each row once a class, weighted by its chance: the same gradients, so the same trees.

    Few distinct values, so that XGBoost's quantiles are exact whatever the weights; and no rows are
    drawn.
    """
    monkeypatch.setitem(boosting.FIXED, "subsample", 1.0)
    matrix, test = np.round(2 * table.train.X), np.round(2 * table.test.X)
    soft_labels = soft(matrix, classes).astype(np.float32)
    model = SubsetXGB(**SMALL).fit(
        matrix, np.arange(len(matrix)) % classes, soft_labels=soft_labels
    )

    def each_class(rows):
        label = np.repeat(np.arange(classes), len(rows))
        return xgb.DMatrix(
            np.tile(matrix[rows], (classes, 1)), label=label, weight=soft_labels[rows].T.ravel()
        )

    learn, held_out = map(each_class, model.inner_split_)
    settings = boosting.TreeSettings(trees=15, depth=3)
    expected = boosting.train_booster(learn, held_out, classes, settings).inplace_predict(test)
    given = model.predict_proba(test)
    np.testing.assert_allclose(given[:, 1] if classes == 2 else given, expected, atol=1e-6)
    np.testing.assert_allclose(model.prior_, soft_labels.mean(axis=0), atol=1e-6)
    assert given.std(axis=0).min() > 0.05


def test_three_classes_come_near_the_chances():
    many = people(1500, seed=1)
    soft_labels = soft(many.train.X, 3)
    model = SubsetXGB(n_estimators=100).fit(
        many.train.X, soft_labels.argmax(axis=1), soft_labels=soft_labels
    )
    assert np.sqrt(((model.predict_proba(many.test.X) - soft(many.test.X, 3)) ** 2).mean()) < 0.04
    np.testing.assert_allclose(model.prior_, soft_labels.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_saved_and_loaded_are_equal(classes, table, tmp_path):
    soft_labels = soft(table.train.X, classes)
    held_out = np.arange(0, len(table.train), 5)
    model = SubsetXGB("mixed", **SMALL).fit(
        table.train.X, soft_labels.argmax(1), soft_labels=soft_labels, held_out=held_out
    )
    model = model.keeping([[True] * 5])
    model.to_folder(tmp_path / "model")
    again = SubsetXGB.from_folder(tmp_path / "model")
    for hidden in ((), (0,), (1, 3)):
        matrix = hide(table.test.X, *hidden)
        np.testing.assert_array_equal(again.predict_proba(matrix), model.predict_proba(matrix))
    assert digest(again) == digest(model)
    np.testing.assert_array_equal(again.inner_split_[1], held_out)


def test_chances_and_held_out_rows_are_part_of_the_fingerprint(table):
    matrix, y, soft_labels = table.train.X, table.train.y, soft(table.train.X)
    ways = [
        {},
        {"soft_labels": soft_labels},
        {"soft_labels": soft_labels[:, ::-1]},
        {"soft_labels": soft_labels, "held_out": [1, 2, 3]},
    ]
    assert len({digest(SubsetXGB(**SMALL).fit(matrix, y, **way)) for way in ways}) == 4


def test_chances_that_are_none_are_refused(table):
    matrix, y, soft_labels = table.train.X, table.train.y, soft(table.train.X)
    for wrong in (
        soft_labels[:-1],
        soft_labels[:, :1],
        soft_labels * 1.1,
        np.full_like(soft_labels, np.nan),
    ):
        with pytest.raises(DataError, match="soft_labels"):
            SubsetXGB(**SMALL).fit(matrix, y, soft_labels=wrong)
    with pytest.raises(SettingError, match="about outcomes"):
        SubsetXGB(**SMALL, class_weight="balanced").fit(matrix, y, soft_labels=soft_labels)


@pytest.mark.parametrize("wrong", [[-1], [1000], [2, 2], [[1, 2]], [0.5], range(216)])
def test_held_out_rows_that_are_none_are_refused(wrong, table):
    with pytest.raises(DataError, match="held_out"):
        SubsetXGB(**SMALL).fit(table.train.X, table.train.y, held_out=list(wrong))


def test_hybrids_are_of_two_people_who_are_near_on_what_stays():
    random = np.random.default_rng(0)
    matrix = random.normal(size=(300, 4)).astype(np.float32)
    near = Neighbours.of(matrix, (), k=5)
    hybrids = make_hybrids(matrix, near, 400, seed=1)
    assert hybrids.shape == (400, 4)
    for j in range(4):
        assert np.isin(hybrids[:, j], matrix[:, j]).all()
    sources = np.array(
        [[np.flatnonzero(matrix[:, j] == row[j])[0] for j in range(4)] for row in hybrids]
    )
    people_in_it = np.array([len(set(row)) for row in sources])
    assert people_in_it.max() == 2
    assert (people_in_it == 2).mean() > 0.4
    np.testing.assert_array_equal(make_hybrids(matrix, near, 400, seed=1), hybrids)
    assert not np.array_equal(make_hybrids(matrix, near, 400, seed=2), hybrids)


def test_who_stops_the_training_has_no_part_in_any_hybrid(table):
    asked = []

    def ask(rows):
        asked.append(rows)
        return soft(rows)

    matrix, y = table.train.X, table.train.y
    model = distil(ask, matrix, y, (2,), k=10, n_hybrids=4, seed=0)
    _, held_out = inner_split(y, 0)
    np.testing.assert_array_equal(model.inner_split_[1], held_out)
    hybrids = asked[0][len(matrix) :]
    assert len(hybrids) == 4 * (len(matrix) - len(held_out))
    for j in (0, 1, 4):  # numbers tell people apart
        alone = np.setdiff1d(matrix[held_out, j], np.delete(matrix[:, j], held_out))
        assert len(alone) > 10
        assert not np.isin(hybrids[:, j], alone).any()


def test_hybrids_do_not_make_it_learn_the_training_people_by_heart():
    """Held out by rows, hybrids of one person stood on both sides, and training went on to the last
    tree.
    """
    many = people(2400, seed=3)
    model = edfa.wrap(two_numbers, columns=list(WEIGHTS), n_hybrids=4).fit_table(many.train).view_
    only_income = np.arange(5) == 0
    assert model.booster(only_income).num_boosted_rounds() < 100
    expected = mean_chance(WEIGHTS["income"] * many.test.frame["income"], WEIGHTS["debt"])
    given = model.predict_proba(hide(many.test.X, 1, 2, 3, 4))[:, 1]
    assert np.sqrt(((given - expected) ** 2).mean()) < 0.055


def test_there_are_never_more_rows_than_the_limit(monkeypatch, table):
    monkeypatch.setattr("edfa.predictors.user_model.distil.MAX_TRAINING_ROWS", 300)
    model = distil(soft, table.train.X, table.train.y, (2,), k=10, n_hybrids=9, seed=0)
    assert len(model.rows_) == 300


def test_farther_neighbours_are_the_next_ones_and_no_others():
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, 3)).astype(np.float32)
    rows[:, 2] = random.integers(0, 3, 200)
    near = Neighbours.of(rows, (2,), k=12)
    matrix = hide(random.normal(size=(9, 3)).astype(np.float32), 2)
    matrix[:4, 2] = 1
    matrix[8] = np.nan
    together = Neighbours.of(rows, (2,), k=12 + 20).nearest(matrix)
    first, second = near.nearest(matrix), near.farther(20).nearest(matrix)
    assert second.shape == (9, 20)
    for ours, theirs, both in zip(first, second, together, strict=True):
        assert not set(ours) & set(theirs)
        assert set(ours) | set(theirs) == set(both)
    third = near.farther(20).farther(20)
    assert not set(third.nearest(matrix)[0]) & {*first[0], *second[0]}
    assert near.farther(1000).k == 188
