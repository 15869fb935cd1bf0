"""Directions: what is promised of a column holds for everybody, whatever else is known of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import SubsetXGB
from edfa.errors import SettingError
from edfa.fingerprint import digest
from edfa.testing import check_predictor

TABLE = edfa.load("german")
X, Y = TABLE.train.X, TABLE.train.y
SIGNS = tuple({1: -1, 4: -1, 12: 1, 7: -1}.get(j, 0) for j in range(20))
SIGNED = np.flatnonzero(SIGNS)


def small(**options):
    return SubsetXGB(**{"n_estimators": 60, "monotone": SIGNS, **options})


MODELS = {
    (mode, calibrate): small(mode=mode, calibrate=calibrate).fit(X, Y)
    for mode in ("per_subset", "nan")
    for calibrate in (False, True)
}


def swept(rows, column, values):
    """Each row with each value in a column, (rows, values, columns)."""
    people = np.repeat(rows[:, None], len(values), axis=1)
    people[:, :, column] = values
    return people


def steps(model, rows, column, values):
    """How the probability of the second class changes from each value to the next one up, (rows, values - 1)."""
    people = swept(rows, column, np.sort(values))
    chances = model.predict_proba(people.reshape(-1, rows.shape[1]))[:, 1]
    return np.diff(chances.reshape(people.shape[:2]), axis=1)


@settings(max_examples=40, deadline=None)
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
    free, signed = SubsetXGB(mode, n_estimators=60).fit(X, Y), MODELS[mode, False]
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
    plain, other = SubsetXGB(n_estimators=20).fit(X, Y), small(n_estimators=20, monotone=monotone).fit(X, Y)
    assert plain.booster(mask).save_raw("json") == other.booster(mask).save_raw("json")


def test_shorter_ways_to_decide_stay_right():
    mask = np.isin(np.arange(20), [1, 3, 4, 12])
    for model in (MODELS["per_subset", False], MODELS["per_subset", True]):
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
    model = MODELS["per_subset", False]
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
