"""A committee: who its members have learnt from, what they see, how they decide, and how far they
differ.
"""

import json
import pickle

import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone

import edfa
from edfa.errors import SettingError, UnreadableError
from edfa.fingerprint import digest
from edfa.predictors.base import align
from edfa.predictors.boosting import merge_boosters
from edfa.predictors.committee import FOLDS, Committee, fold_of


@pytest.fixture(scope="module")
def german():
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=30, threshold=0.7).fit(table.train.X, table.train.y)
    return table, model


def votes(committee, rows):
    return np.array([committee.decide(member, rows) for member in range(len(committee))])


def test_members_differ_and_are_the_same_for_the_same_seed(german):
    table, model = german
    one, same, other = (
        Committee.of(table.train.X, table.train.y, model, 4, seed=seed) for seed in (0, 0, 1)
    )
    decided = votes(one, table.test.X)
    assert not (decided == decided[0]).all(axis=1)[1:].any(), "every member is another model"
    np.testing.assert_array_equal(decided, votes(same, table.test.X))
    assert (decided != votes(other, table.test.X)).any()
    assert digest(one) == digest(same) != digest(other)


def test_members_see_what_the_model_is_shown(german):
    table, model = german
    view = align(model, [0, 1, 4])
    committee = Committee.of(table.train.X, table.train.y, view, 3)
    assert np.flatnonzero(committee.columns).tolist() == [0, 1, 4]
    poisoned = table.test.X.copy()
    poisoned[:, ~committee.columns] = 1e6
    np.testing.assert_array_equal(votes(committee, table.test.X), votes(committee, poisoned))


def test_members_decide_by_the_models_threshold(german):
    table, model = german
    committee = Committee.of(table.train.X, table.train.y, model, 3)
    from edfa.predictors.base import class_probabilities

    rows = np.ascontiguousarray(table.test.X[:, committee.columns])
    probabilities = [class_probabilities(b.inplace_predict(rows))[:, 1] for b in committee.boosters]
    np.testing.assert_array_equal(votes(committee, table.test.X), np.array(probabilities) >= 0.7)


def test_members_obey_the_directions_of_the_model():
    random = np.random.default_rng(0)
    people = random.normal(size=(400, 3)).astype(np.float32)
    y = (people[:, 0] + random.normal(size=400) > 0).astype(np.int64)
    model = edfa.SubsetXGB(n_estimators=20, monotone=(1, 0, 0)).fit(people, y)
    committee = Committee.of(people, y, model, 6)
    line = np.repeat(people[:50], 30, axis=0)
    line[:, 0] = np.tile(np.linspace(-3, 3, 30), 50)
    rising = votes(committee, line).reshape(6, 50, 30)
    assert (np.diff(rising, axis=2) >= 0).all()
    free = Committee.of(people, y, edfa.SubsetXGB(n_estimators=20).fit(people, y), 6)
    assert (np.diff(votes(free, line).reshape(6, 50, 30), axis=2) < 0).any(), (
        "the law is not one of the data"
    )


def test_a_judge_has_not_learnt_from_those_of_its_fold(german):
    """Turn the outcomes of one fold of the others: its members stay as they are, bit for bit, all
    others change.
    """
    table, model = german
    people, y = table.calibration.X, table.calibration.y
    before = Committee.of(
        table.train.X, table.train.y, model, 2 * FOLDS, others=(people, y), varied=False
    )
    turned = np.where(fold_of(np.arange(len(y))) == 1, 1 - y, y)
    after = Committee.of(
        table.train.X, table.train.y, model, 2 * FOLDS, others=(people, turned), varied=False
    )
    same = [
        a.save_raw() == b.save_raw() for a, b in zip(before.boosters, after.boosters, strict=True)
    ]
    assert same == [fold_of(member) == 1 for member in range(2 * FOLDS)]


def test_members_differ_from_the_model_as_much_as_models_of_other_people_do():
    """The claim behind half as many people drawn with replacement, where the truth can be drawn
    from again.
    """
    random = np.random.default_rng(3)

    def draw(n):
        people = random.normal(size=(n, 5)).astype(np.float32)
        chance = 1 / (
            1
            + np.exp(-(people @ np.array([1.5, -1, 0.5, 0, 0])) - 0.5 * people[:, 0] * people[:, 1])
        )
        return people, (random.random(n) < chance).astype(np.int64)

    again, resampled = [], []
    new = draw(4_000)[0]
    for seed in range(4):
        people, y = draw(1_000)
        model = edfa.SubsetXGB(n_estimators=100, seed=seed).fit(people, y)
        mine = model.predict(new)
        fresh = [edfa.SubsetXGB(n_estimators=100, seed=seed).fit(*draw(1_000)) for _ in range(3)]
        again += [(other.predict(new) != mine).mean() for other in fresh]
        resampled += (
            (votes(Committee.of(people, y, model, 3, seed=seed, varied=False), new) != mine)
            .mean(axis=1)
            .tolist()
        )
    assert 0.7 < np.mean(resampled) / np.mean(again) < 1.5, (np.mean(resampled), np.mean(again))


def test_three_classes_and_a_class_that_is_rare():
    random = np.random.default_rng(1)
    people = random.normal(size=(300, 2)).astype(np.float32)
    y = np.where(people[:, 0] > 0, 1, 0)
    y[:2] = 2
    model = edfa.SubsetXGB(n_estimators=10).fit(people, y)
    committee = Committee.of(people, y, model, 5)
    assert set(np.unique(votes(committee, people))) <= {0, 1, 2}
    assert (votes(committee, people[2:]) == y[2:]).mean() > 0.9


def test_a_committee_travels_and_is_cloned_as_itself(german, tmp_path):
    table, model = german
    committee = Committee.of(table.train.X, table.train.y, model, 3)
    committee.to_folder(tmp_path / "committee")
    read = Committee.from_folder(tmp_path / "committee", model)
    np.testing.assert_array_equal(votes(committee, table.test.X), votes(read, table.test.X))
    assert digest(read) == digest(committee)
    assert clone(edfa.SurvivalSearch(committee=committee)).committee is committee
    part = next((tmp_path / "committee").glob("000.ubj"))
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(UnreadableError):
        Committee.from_folder(tmp_path / "committee", model)


def test_one_model_is_no_committee(german):
    table, model = german
    with pytest.raises(SettingError, match="at least 2 models"):
        Committee.of(table.train.X, table.train.y, model, 1)


def test_members_together_decide_what_each_decides_alone(german):
    table, model = german
    committee = Committee.of(table.train.X, table.train.y, align(model, range(8)), 5, seed=2)
    rows = np.ascontiguousarray(
        np.concatenate([table.test.X, table.calibration.X])[:, committee.columns]
    )
    assert committee.asks_together(len(rows)), "they are merged"
    merged = merge_boosters(committee.boosters)
    apart = np.stack([booster.inplace_predict(rows) for booster in committee.boosters], axis=1)
    np.testing.assert_array_equal(merged.inplace_predict(rows), apart, "bit for bit")
    for some in (rows, rows[:1], rows[:0]):
        alone = [committee.decide_shown(member, some) for member in range(len(committee))]
        np.testing.assert_array_equal(committee.decide_together(some), alone)


def test_members_of_several_classes_are_asked_one_after_the_other():
    random = np.random.default_rng(1)
    people = random.normal(size=(300, 3)).astype(np.float32)
    y = np.digitize(people[:, 0] + random.normal(size=300) / 2, [-0.5, 0.5]).astype(np.int64)
    committee = Committee.of(people, y, edfa.SubsetXGB(n_estimators=10).fit(people, y), 3)
    assert merge_boosters(committee.boosters) is None
    assert not committee.asks_together(1)
    np.testing.assert_array_equal(committee.decide_together(people), votes(committee, people))


def test_a_merged_booster_that_answers_otherwise_is_not_used(german, monkeypatch):
    """What XGBoost writes may change: then members are asked one after the other, and decide the
    same.
    """
    table, model = german
    committee = Committee.of(table.train.X, table.train.y, model, 3)
    load = xgb.Booster.load_model

    def wrong(booster, content):
        learner = json.loads(content)
        learner["learner"]["learner_model_param"]["base_score"] = "[5E-1,5E-1,5E-1]"
        load(booster, bytearray(json.dumps(learner).encode()))

    monkeypatch.setattr(xgb.Booster, "load_model", wrong)
    assert merge_boosters(committee.boosters) is None
    np.testing.assert_array_equal(
        committee.decide_together(table.test.X), votes(committee, table.test.X)
    )


def test_what_is_merged_is_not_sent_to_other_processes(german):
    table, model = german
    committee = Committee.of(table.train.X, table.train.y, model, 3)
    size = len(pickle.dumps(committee))
    decided = committee.decide_together(table.test.X)
    assert len(pickle.dumps(committee)) == size
    again = pickle.loads(pickle.dumps(committee))  # noqa: S301
    np.testing.assert_array_equal(again.decide_together(table.test.X), decided)
