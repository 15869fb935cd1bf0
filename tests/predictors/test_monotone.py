"""Directions: what is promised of a column holds for everybody, whatever else is known of them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import edfa
from edfa import FTTransformer, MaskedMLP, SubsetXGB
from edfa.errors import DataError, SettingError
from edfa.fingerprint import digest
from edfa.predictors import Predictor, align
from edfa.predictors.mlp import MaskedNet
from edfa.predictors.monotone import DirectionCheck, check_directions, signs
from edfa.predictors.penalty import Penalty
from edfa.testing import check_predictor

TABLE = edfa.load("german")
X, Y = TABLE.train.X, TABLE.train.y
SIGNS = tuple({1: -1, 4: -1, 12: 1, 7: -1}.get(j, 0) for j in range(20))
SIGNED = np.flatnonzero(SIGNS)


def small(**options):
    return SubsetXGB(**{"n_estimators": 60, "monotone": SIGNS, **options})


MODELS = {mode: small(mode=mode).fit(X, Y) for mode in ("per_subset", "nan")}


def swept(rows, column, values):
    """Each row with each value in a column, (rows, values, columns)."""
    people = np.repeat(rows[:, None], len(values), axis=1)
    people[:, :, column] = values
    return people


def steps(model, rows, column, values):
    """How the probability of the second class changes from each value to the next one up, (rows,
    values - 1).
    """
    people = swept(rows, column, np.sort(values))
    chances = model.predict_proba(people.reshape(-1, rows.shape[1]))[:, 1]
    return np.diff(chances.reshape(people.shape[:2]), axis=1)


@settings(max_examples=some(40), deadline=None)
@given(
    st.sampled_from(sorted(MODELS)),
    st.sampled_from(SIGNED.tolist()),
    st.integers(0, 2**20 - 1),
    st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=30),
    st.integers(0, 1000),
)
def test_no_two_values_go_the_wrong_way_whatever_is_known(model, column, subset, values, seed):
    known = (subset >> np.arange(20)) & 1 == 1
    known[column] = True
    rows = TABLE.test.X[np.random.default_rng(seed).permutation(len(TABLE.test))[:20]]
    rows = np.where(known, rows, np.float32(np.nan))
    assert (steps(MODELS[model], rows, column, np.float32(values)) * SIGNS[column] >= 0).all()


@pytest.mark.parametrize("mode", ["per_subset", "nan"])
def test_a_free_model_does_go_the_wrong_way(mode):
    """The law above can fail; and a signed column still matters."""
    free, signed = SubsetXGB(mode, n_estimators=60).fit(X, Y), MODELS[mode]
    wrong = moved = 0.0
    for column in SIGNED:
        values = np.unique(X[:, column])
        wrong += (steps(free, TABLE.test.X, column, values) * SIGNS[column] < 0).sum()
        moved += np.abs(steps(signed, TABLE.test.X, column, values)).sum()
    assert wrong > 100
    assert moved > 10


@pytest.mark.parametrize("monotone", [None, (0,) * 20])
def test_without_directions_the_trees_are_those_of_before(monotone):
    mask = np.arange(20) < 9
    plain, other = (
        SubsetXGB(n_estimators=20).fit(X, Y),
        small(n_estimators=20, monotone=monotone).fit(X, Y),
    )
    assert plain.booster(mask).save_raw("json") == other.booster(mask).save_raw("json")


def test_shorter_ways_to_decide_stay_right():
    mask = np.isin(np.arange(20), [1, 3, 4, 12])
    model = MODELS["per_subset"]
    known, column = TABLE.test.X[:, mask], np.repeat(np.arange(4), 20)
    value = X[:20][:, mask].T.ravel()
    people = np.repeat(known[:, None], 80, axis=1)
    people[:, np.arange(80), column] = value
    asked = model.decide(model.predict_known(mask, people.reshape(-1, 4))).reshape(-1, 80)
    assert np.array_equal(model.decide_tries(mask, known, column, value), asked)
    edges = model.cells(mask, 4)
    below = swept(TABLE.test.X[:50], 4, np.nextafter(edges, np.float32(-np.inf)))
    at = swept(TABLE.test.X[:50], 4, edges)
    below, at = (np.where(mask, rows, np.nan).reshape(-1, 20) for rows in (below, at))
    differ = model.predict_proba(below)[:, 1] != model.predict_proba(at)[:, 1]
    assert differ.reshape(50, -1).any(axis=0).mean() > 0.5, "cells end where the answer changes"


def test_directions_are_settings_like_others(tmp_path):
    """Saved, loaded, part of the fingerprint and of the name of what is cached on disk."""
    model = MODELS["per_subset"]
    before = model.predict_proba(TABLE.test.X)
    model.to_folder(tmp_path / "model")
    again = SubsetXGB.from_folder(tmp_path / "model")
    assert again.monotone == SIGNS
    assert digest(again) == digest(model) != digest(small(monotone=None).fit(X, Y))
    fresh = again.fit(X, Y).predict_proba(TABLE.test.X)
    np.testing.assert_array_equal(fresh, before)
    mask = np.ones(20, dtype=bool)
    free = small(monotone=None).cache_in(tmp_path / "cache").fit(X, Y)
    free.booster(mask)
    signed = small().cache_in(tmp_path / "cache").fit(X, Y)
    np.testing.assert_array_equal(signed.predict_proba(TABLE.test.X), before)


@pytest.mark.parametrize("mode", ["per_subset", "nan"])
def test_the_contract_holds_with_directions_that_all_agree(mode):
    """Every column down: what the contract asks of permuted columns can be asked of these."""
    check_predictor(lambda: small(mode=mode, n_estimators=20, monotone=(-1,) * 20), X, Y)


@pytest.mark.parametrize(
    ("monotone", "message"),
    [
        ((1, 0), "one sign a column, 20, not 2"),
        ((2,) * 20, "one of -1, 0, 1 for each column, not 2"),
        (("up",) * 20, "not 'up'"),
        ((True,) * 20, "not True"),
        ([0] * 20, "a tuple"),
    ],
)
def test_wrong_directions(monotone, message):
    with pytest.raises(SettingError, match=message):
        small(monotone=monotone).fit(X, Y)


def test_trees_refuse_directions_with_three_classes():
    three = np.arange(len(X)) % 3
    with pytest.raises(SettingError, match="two classes, not 3"):
        small().fit(X, three)
    small(monotone=(0,) * 20).fit(X, three)


def story(count=3000, seed=0):
    """Three classes of people: more of x is better, more of z is worse, and w wanders."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(count, 3)).round(2), columns=["x", "z", "w"])
    luck = frame.x - frame.z + np.sin(3 * frame.w) + random.normal(size=count)
    frame["outcome"] = np.array(["refused", "granted", "looked at"])[
        np.where(luck > 0.8, 1, np.where(luck < 0, 0, 2))
    ]
    features = (
        edfa.Feature("x", "continuous", start=True, monotone="up"),
        edfa.Feature("z", "continuous", monotone="down"),
        edfa.Feature("w", "continuous"),
    )
    classes = ("granted", "looked at", "refused")
    return edfa.Table(
        frame, edfa.Schema(features, "outcome", "granted", classes=classes), name="story"
    )


def test_signs_are_for_the_second_of_two_classes_and_for_the_favourable_one_of_more():
    schema = story(30).schema
    assert signs(schema) == (1, -1, 0)
    assert signs(replace(schema, classes=("granted", "refused"))) == (-1, 1, 0)
    assert signs(replace(schema, classes=("refused", "granted"))) == (1, -1, 0)
    with pytest.raises(SettingError, match="classes are not known yet"):
        signs(replace(schema, classes=()))


def test_directions_may_be_told_for_the_first_of_two_classes():
    turned = SubsetXGB(n_estimators=60, monotone=tuple(-sign for sign in SIGNS), favourable=0).fit(
        X, Y
    )
    np.testing.assert_array_equal(
        turned.predict_proba(TABLE.test.X), MODELS["per_subset"].predict_proba(TABLE.test.X)
    )
    assert check_directions(turned, X, turned.monotone, TABLE.schema.names).worst is None


def test_a_sweep_finds_what_goes_the_wrong_way_and_how_far():
    names = TABLE.schema.names
    held = check_directions(MODELS["per_subset"], X, SIGNS, names)
    assert held.worst is None
    assert "they hold" in held.sentence
    assert {f.feature for f in held.features} == {names[j] for j in SIGNED}
    free = SubsetXGB(n_estimators=60, threshold=0.7).fit(X, Y)
    found = check_directions(free, X, SIGNS, names)
    assert found.worst.feature in found.sentence
    assert all(0 < f.wrong < 1 for f in found.features)
    assert found.worst.largest > 0.05
    assert 0 < max(f.turned for f in found.features) < 0.9
    assert DirectionCheck.from_json(found.to_json()) == found
    assert check_directions(free, X, SIGNS, names) == found, "the same people every time"
    shown = check_directions(align(free, [1, 3]), X, SIGNS, names)
    assert [f.feature for f in shown.features] == [names[1]], (
        "what the model is not shown is not checked"
    )


def test_a_sweep_counts_exactly():
    """A model that falls once in six steps, across its threshold, for everybody."""

    class Bump(Predictor):
        threshold = 0.5

        def _fit(self, matrix, codes, progress):
            pass

        def _answer(self, mask, known):
            chance = np.array([0.1, 0.2, 0.6, 0.4, 0.7, 0.8, 0.9])[known[:, 0].astype(int)]
            return np.column_stack([1 - chance, chance])

    rows = (np.arange(70) % 7).astype(np.float32)[:, None]
    found = check_directions(Bump().fit(rows, np.arange(70) % 2), rows, (1,), ["x"])
    (feature,) = found.features
    assert (found.people, feature.wrong, feature.turned) == (70, pytest.approx(1 / 6), 1.0)
    assert feature.largest == pytest.approx(0.2)
    (down,) = check_directions(Bump().fit(rows, np.arange(70) % 2), rows, (-1,), ["x"]).features
    assert down.wrong == pytest.approx(5 / 6)


NETWORKS = [
    lambda **o: MaskedMLP(**{"epochs": 40, **o}),
    lambda **o: FTTransformer(**{"epochs": 12, **o}),
]
each_network = pytest.mark.parametrize("make", NETWORKS, ids=["mlp", "ftt"])


@pytest.mark.parametrize(
    "make",
    [NETWORKS[0], pytest.param(NETWORKS[1], marks=pytest.mark.long)],
    ids=["mlp", "ftt"],
)
def test_networks_take_directions_as_a_penalty(make):
    names = TABLE.schema.names
    free, signed = make().fit(X, Y), make(monotone=SIGNS).fit(X, Y)
    before, after = (check_directions(model, X, SIGNS, names) for model in (free, signed))
    assert np.mean([f.wrong for f in after.features]) < 0.6 * np.mean(
        [f.wrong for f in before.features]
    )
    assert after.worst is None or after.worst.largest < 0.6 * before.worst.largest
    assert not signed.obeys_directions


@each_network
def test_without_directions_networks_are_those_of_before(make, monkeypatch):
    """Not a number is drawn for a penalty that is not there: a penalty could not even be made."""
    monkeypatch.setattr(Penalty, "of", None)
    plain, zeros = make(epochs=2).fit(X, Y), make(epochs=2, monotone=(0,) * 20).fit(X, Y)
    for name, weights in plain.learnt_state()["network_"].items():
        np.testing.assert_array_equal(weights, zeros.learnt_state()["network_"][name])


@each_network
def test_networks_with_directions_are_saved_and_fitted_alike(make, tmp_path):
    model = make(epochs=2, monotone=SIGNS, favourable=1).fit(X, Y)
    model.to_folder(tmp_path / "model")
    again = type(model).from_folder(tmp_path / "model")
    assert (again.monotone, again.favourable) == (SIGNS, 1)
    assert digest(again) == digest(model) == digest(clone(model).fit(X, Y))


def test_a_penalty_leaves_what_is_not_known_alone():
    """Nobody knows the signed column: there is no slope to be wrong."""
    torch.manual_seed(0)
    positions = torch.rand(64, 3) * 5
    network = MaskedNet([6, 6, 6], 2, 16).train()
    penalty = Penalty.of((0, 1, 0), positions, 1, 10.0, seed=0)
    unknown = torch.ones(64, 3, dtype=torch.bool)
    unknown[:, 1] = False
    assert penalty.loss(network, positions, unknown).item() == 0
    everything = unknown | True
    both = [
        Penalty.of((0, s, 0), positions, 1, 10.0, 0).loss(network, positions, everything).item()
        for s in (1, -1)
    ]
    assert max(both) > 0
    assert network.training
    turned = Penalty.of((0, -1, 0), positions, 0, 10.0, 0)
    assert turned.loss(network, positions, everything).item() == pytest.approx(both[0]), (
        "the other of two classes"
    )


def test_networks_obey_directions_towards_one_of_three_classes():
    table, directions = story(), signs(story(30).schema)
    options = {"epochs": 20, "favourable": 0}
    free, signed = (
        MaskedMLP(**options, monotone=m).fit(table.train.X, table.train.y)
        for m in (None, directions)
    )
    before, after = (
        check_directions(m, table.train.X, directions, table.schema.names) for m in (free, signed)
    )
    assert np.mean([f.wrong for f in after.features]) <= np.mean([f.wrong for f in before.features])
    assert after.worst is None or after.worst.largest < 0.02
    backwards = MaskedMLP(**options, monotone=(-1, 1, 0), monotone_penalty=10.0).fit(
        table.train.X, table.train.y
    )
    assert (
        np.mean(
            [
                f.wrong
                for f in check_directions(backwards, table.train.X, directions, "xzw").features
            ]
        )
        > 0.3
    )
    with pytest.raises(SettingError, match="say towards which of 3 classes"):
        MaskedMLP(monotone=directions).fit(table.train.X, table.train.y)


@each_network
def test_wrong_penalties(make):
    with pytest.raises(SettingError, match="monotone_penalty: a number above 0"):
        make(monotone_penalty=-1.0).fit(X, Y)
    with pytest.raises(SettingError, match="one sign a column"):
        make(monotone=(1,)).fit(X, Y)


def test_a_threshold_for_one_of_three_classes():
    probabilities = np.array(
        [[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.1, 0.3, 0.6], [0.35, 0.4, 0.25]]
    )
    model = SubsetXGB(threshold=0.3, favourable=1)
    assert model.decide(probabilities).tolist() == [1, 1, 1, 1]
    model.threshold = 0.36
    assert model.decide(probabilities).tolist() == [0, 2, 2, 1]
    model.threshold, model.favourable = 0.35, 0
    assert model.decide(probabilities).tolist() == [0, 2, 2, 0]
    model.favourable = None
    with pytest.raises(DataError, match="between two classes, not 3; say for which"):
        model.decide(probabilities)
    with pytest.raises(SettingError, match="favourable: a position from 0 to 1, not 2"):
        SubsetXGB(favourable=2).fit(X, Y)


def test_a_threshold_for_the_first_of_two_classes():
    chances = np.array([[0.3, 0.7], [0.4, 0.6], [0.8, 0.2]])
    assert SubsetXGB(threshold=0.4, favourable=0).decide(chances).tolist() == [1, 0, 0]
    assert SubsetXGB(threshold=0.4).decide(chances).tolist() == [1, 1, 0]
    model = small(threshold=0.4, favourable=0, monotone=None).fit(X, Y)
    mask = np.arange(20) < 5
    column, value = np.repeat(np.arange(5), 4), X[:4, :5].T.ravel()
    assert model.decide_tries(mask, X[:, mask], column, value) is None, (
        "the leaves know of the second class alone"
    )


def test_a_view_decides_by_the_class_of_its_model():
    table = story()
    model = SubsetXGB(n_estimators=20, threshold=0.2, favourable=0).fit(
        table.train.X, table.train.y
    )
    view = align(model, [0, 1])
    chances = view.predict_proba(table.test.X)
    assert np.array_equal(view.predict(table.test.X) == 0, chances[:, 0] >= 0.2)
    other = align(
        SubsetXGB(n_estimators=20, threshold=0.2, favourable=2).fit(table.train.X, table.train.y),
        [0, 1],
    )
    assert digest(other) != digest(view)
