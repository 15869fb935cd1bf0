import sys

import numpy as np
import pytest
from effort import some
from exact import as_blanket, exact_model
from hypothesis import given, settings
from hypothesis import strategies as st
from random_worlds import random_network

import edfa
from edfa import MaskedMLP, SubsetXGB
from edfa.errors import DataError
from edfa.explanation.necessity import (
    DOWN,
    MAX_CANDIDATE_VALUES,
    UP,
    Support,
    necessity,
    sufficiency,
    sweep,
)
from edfa.predictors import align

TABLE = edfa.load("german")
TRAIN, Y = TABLE.train.X, TABLE.train.y
SUPPORT = Support.of(TRAIN)


def partly_known(rows, share, seed=0):
    hidden = np.random.default_rng(seed).random(rows.shape) > share
    return np.where(hidden, np.float32(np.nan), rows)


def draw(network, n, seed):
    return network.codes(network.sample(n, seed)).astype(np.float32)


def by_brute_force(model, rows):
    """Every known fact of everybody replaced by every training person's value, one row at a
    time.
    """
    alpha = np.full(rows.shape, np.nan)
    decided = model.decide(model.predict_proba(rows))
    for i, row in enumerate(rows):
        for j in np.flatnonzero(~np.isnan(row)):
            tried = np.tile(row, (len(TRAIN), 1))
            tried[:, j] = TRAIN[:, j]
            alpha[i, j] = (model.decide(model.predict_proba(tried)) != decided[i]).mean()
    return alpha


@pytest.mark.parametrize("mode", ["per_subset", "nan"])
def test_alpha_of_trees_is_the_share_of_all_training_values_that_flip(mode):
    model = SubsetXGB(mode, n_estimators=60).fit(TRAIN, Y)
    masks = np.random.default_rng(0).random((3, 20)) < 0.4
    rows = np.where(masks[np.arange(12) % 3], TABLE.test.X[:12], np.float32(np.nan))
    np.testing.assert_allclose(
        necessity(rows, model, SUPPORT), by_brute_force(model, rows), atol=1e-12
    )


def test_alpha_of_other_models_is_exact_over_their_levels():
    model = MaskedMLP(epochs=5).fit(TRAIN, Y)
    few = [j for j in range(20) if len(SUPPORT.values[j]) <= MAX_CANDIDATE_VALUES]
    rows = np.full((8, 20), np.nan, dtype=np.float32)
    rows[:, few] = TABLE.test.X[:8, few]
    np.testing.assert_allclose(
        necessity(rows, model, SUPPORT), by_brute_force(model, rows), atol=1e-12
    )


def test_a_grid_stands_for_many_values():
    column = np.random.default_rng(0).lognormal(size=5000).astype(np.float32)
    candidates = Support.of(column[:, None]).candidate_values(
        MaskedMLP(epochs=1).fit(column[:, None], column > 1), np.array([True]), 0
    )
    assert len(candidates) == MAX_CANDIDATE_VALUES
    assert candidates.weight.sum() == pytest.approx(1)
    assert np.abs(candidates.weight - 1 / MAX_CANDIDATE_VALUES).max() < 0.001
    for cut in (0.5, 1.0, 3.0):
        assert candidates.weight[candidates.value > cut].sum() == pytest.approx(
            (column > cut).mean(), abs=1.5 / MAX_CANDIDATE_VALUES
        )


@settings(max_examples=some(60), deadline=None)
@given(seed=st.integers(0, 10_000))
def test_alpha_is_enumeration_on_exact_posteriors(seed):
    network = random_network(6, seed=seed)
    people = draw(network, 60, seed)
    model, rows = exact_model(network), partly_known(people[:6], 0.6, seed)
    alpha = necessity(rows, model, Support.of(people))
    decided = model.decide(model.predict_proba(rows))
    for i, j in np.argwhere(~np.isnan(rows)):
        expected = 0.0
        for level in np.unique(people[:, j]):
            changed = rows[i].copy()
            changed[j] = level
            turned = model.decide(model.predict_proba(changed[None]))[0] != decided[i]
            expected += turned * (people[:, j] == level).mean()
        assert alpha[i, j] == pytest.approx(expected)
    assert np.isnan(alpha[np.isnan(rows)]).all()


@settings(max_examples=some(300), deadline=None)
@given(seed=st.integers(0, 100_000))
def test_theorem_1(seed):
    """Of the exact posterior, with everything known: the blanket suffices, and nothing outside it
    is ever necessary.
    """
    network = random_network(7, seed=seed)
    people, model = draw(network, 40, seed), exact_model(network)
    inside = np.array([name in as_blanket(network) for name in network.features])
    enough = sufficiency(people[:5], inside, model, people, draws=30)
    np.testing.assert_array_equal(enough.beta, 1)
    np.testing.assert_array_equal(enough.error, 0)
    alpha = necessity(people[:5], model, Support.of(people))
    assert (alpha[:, ~inside] == 0).all()


def test_less_than_the_blanket_does_not_suffice():
    """The check above can fail: without one member of the blanket somebody's decision moves."""
    network = random_network(7, seed=3)
    people = draw(network, 400, 3)
    inside = np.array([name in as_blanket(network) for name in network.features])
    smaller = inside.copy()
    smaller[np.flatnonzero(inside)[0]] = False
    estimate = sufficiency(people[:200], smaller, exact_model(network), people)
    assert (estimate.beta < 1).any()
    share = estimate.beta[estimate.beta < 1]
    np.testing.assert_allclose(
        estimate.error[estimate.beta < 1], np.sqrt(share * (1 - share) / 200)
    )


def test_sufficiency_needs_known_facts():
    model = SubsetXGB(n_estimators=5).fit(TRAIN, Y)
    with pytest.raises(DataError, match="not known"):
        sufficiency(partly_known(TRAIN[:3], 0.5), np.ones(20, dtype=bool), model, TRAIN)


def test_what_an_aligned_model_is_not_shown_cannot_matter():
    model = align(SubsetXGB(n_estimators=30).fit(TRAIN, Y), [0, 1, 2])
    alpha = necessity(TABLE.test.X[:50], model, SUPPORT)
    assert (alpha[:, 3:] == 0).all()
    assert (alpha[:, :3] > 0).any()


def test_reach_is_the_nearest_flipping_value():
    model = SubsetXGB(n_estimators=60).fit(TRAIN, Y)
    rows = partly_known(TABLE.test.X[:40], 0.5)
    swept = sweep(rows, model, SUPPORT)
    reach = swept.reach()
    decided = model.decide(model.predict_proba(rows))

    def flips(i, j, values):
        tried = np.tile(rows[i], (len(values), 1))
        tried[:, j] = values
        return model.decide(model.predict_proba(tried)) != decided[i]

    seen = 0
    for i, j in np.argwhere(~np.isnan(rows)):
        values, own = SUPPORT.values[j], rows[i, j]
        turning = flips(i, j, values)
        for way, side, pick in ((DOWN, values < own, np.max), (UP, values > own, np.min)):
            value = reach.value[i, j, way]
            if not (turning & side).any():
                assert np.isnan(value), "nothing flips on that side"
                continue
            seen += 1
            assert value == pick(values[turning & side]), "the nearest training value that flips"
    assert seen > 50


def test_up_to_what_holds_nothing_flips():
    model = SubsetXGB(n_estimators=60).fit(TRAIN, Y)
    rows = partly_known(TABLE.test.X[:30], 0.5, seed=1)
    holds = sweep(rows, model, SUPPORT).reach().holds
    decided = model.decide(model.predict_proba(rows))
    seen = 0
    for i, j in np.argwhere(~np.isnan(rows)):
        values, own = SUPPORT.values[j], rows[i, j]
        tried = np.tile(rows[i], (len(values), 1))
        tried[:, j] = values
        turning = model.decide(model.predict_proba(tried)) != decided[i]
        for way in (DOWN, UP):
            beyond = values[::-1][values[::-1] < own] if way == DOWN else values[values > own]
            stays = [
                not t
                for t in (
                    turning[::-1][values[::-1] < own] if way == DOWN else turning[values > own]
                )
            ]
            steady = int(np.argmin([*stays, False]))
            if not np.isnan(holds[i, j, way]):
                seen += 1
                assert holds[i, j, way] in beyond[:steady]
            if steady == 0:
                assert np.isnan(holds[i, j, way])
    assert seen > 50


def test_the_wanted_class_counts():
    three = np.arange(len(Y)) % 3
    model = SubsetXGB(n_estimators=30).fit(TRAIN, three)
    swept = sweep(TABLE.test.X[:30], model, SUPPORT)
    for group in swept.groups:
        anywhere = group.flips()
        parts = [group.flips(c) for c in range(3)]
        np.testing.assert_array_equal(anywhere, parts[0] | parts[1] | parts[2])
        assert parts[0].any()


def test_large_batches_are_cut_and_give_the_same(monkeypatch):
    model = SubsetXGB(n_estimators=20).fit(TRAIN, Y)
    rows = partly_known(TABLE.test.X[:60], 0.4, seed=2)
    whole = sweep(rows, model, SUPPORT)
    monkeypatch.setattr(sys.modules[sweep.__module__], "ROWS_PER_CALL", 500)
    cut = sweep(rows, model, SUPPORT)
    assert len(cut.groups) > len(whole.groups) or len(cut.groups) == 60
    np.testing.assert_array_equal(cut.necessity, whole.necessity)
    np.testing.assert_array_equal(cut.probabilities, whole.probabilities)
    np.testing.assert_array_equal(cut.decision, whole.decision)


def test_one_call_for_everybody_who_knows_the_same(monkeypatch):
    model = SubsetXGB(n_estimators=20).fit(TRAIN, Y)
    mask = np.isin(np.arange(20), [0, 1, 4])
    rows = np.where(mask, TABLE.test.X, np.float32(np.nan))
    calls = []
    answer = model._answer
    monkeypatch.setattr(model, "_answer", lambda *a: calls.append(len(a[1])) or answer(*a))
    swept = sweep(rows, model, SUPPORT)
    assert len(calls) == 1
    single = np.concatenate([sweep(row[None], model, SUPPORT).necessity for row in rows[:20]])
    np.testing.assert_array_equal(swept.necessity[:20], single)


def test_nothing_known_and_nobody():
    model = SubsetXGB(n_estimators=5).fit(TRAIN, Y)
    nothing = sweep(np.full((3, 20), np.nan, dtype=np.float32), model, SUPPORT)
    assert np.isnan(nothing.necessity).all()
    np.testing.assert_allclose(nothing.probabilities, np.tile(model.prior_, (3, 1)))
    assert sweep(np.zeros((0, 20), dtype=np.float32), model, SUPPORT).necessity.shape == (0, 20)


def test_a_shorter_way_says_what_asking_about_everything_does(monkeypatch):
    """Decisions from the leaves, and what the model says only of what is looked at."""
    model = align(SubsetXGB(n_estimators=40).fit(TRAIN, Y), range(15))
    rows = TABLE.test.X.copy()
    rows[::2, 3:8] = np.nan
    rows[:5, 0] = np.nan  # and some who are alone with what they know
    short = sweep(rows, model, SUPPORT)
    assert {group.cached_probabilities is None for group in short.groups} == {True, False}
    monkeypatch.setattr(sys.modules[sweep.__module__], "SHORTCUT_FROM_ROWS", np.inf)
    whole = sweep(rows, model, SUPPORT)
    assert all(group.cached_probabilities is not None for group in whole.groups)
    for a, b in zip(short.groups, whole.groups, strict=True):
        assert np.array_equal(a.probabilities, b.probabilities)
        assert np.array_equal(a.decision, b.decision)
        assert np.array_equal(a.candidate_decisions, b.candidate_decisions)
        assert np.array_equal(a.candidate_probabilities, b.candidate_probabilities)
        case, column = np.nonzero(a.flips())
        assert np.array_equal(
            a.predict_candidates(case, column), b.predict_candidates(case, column)
        )
    some, features = np.arange(0, len(rows), 3), np.arange(20) < 9
    for a, b in zip(
        short.take(some, features).groups, whole.take(some, features).groups, strict=True
    ):
        assert np.array_equal(a.candidate_decisions, b.candidate_decisions)
        assert np.array_equal(a.candidate_probabilities, b.candidate_probabilities)
