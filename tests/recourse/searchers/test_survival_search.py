"""SurvivalSearch: nothing that works today survives better, and a person's limits rule."""

import numpy as np
import pytest
from discrete import KINDS, SIZES, by_hand, matching, partly, world
from hypothesis import given, settings
from hypothesis import strategies as st

from edfa import Background, Nearest, People, Rules, SurvivalSearch, find_recourse
from edfa.recourse import add_survival


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 500), st.lists(st.booleans(), min_size=4, max_size=4).filter(any))
def test_no_single_change_survives_better(seed, known):
    """Every value of every known feature is put in, and counted by hand."""
    mask = np.array(known)
    train, model = world(KINDS, SIZES, seed)
    people = People(partly(train, mask, 6), Background.of(train, model))
    searcher = SurvivalSearch(
        train, n_completions=matching(mask), n_candidates=64, holds_further=False, min_support=0
    )
    plans = find_recourse(people, searcher, rules=Rules(max_changes=1))
    for i, row in enumerate(people.X):
        best = 0.0
        for j in np.flatnonzero(mask):
            for value in range(SIZES[j]):
                to = np.full(4, np.nan, dtype=np.float32)
                to[j] = value
                changed = np.where(np.isnan(to), row, to)
                if (
                    value != row[j]
                    and model.predict(changed[None])[0] != model.predict(row[None])[0]
                ):
                    best = max(best, by_hand(model, train, row, to))
        survival = plans.survival[plans.first[i]] if plans.legal[i] else 0.0
        assert survival == pytest.approx(best)


@pytest.fixture(scope="module")
def halfway(german):
    table, model = german
    rows = table.test.X[:60].copy()
    rows[:, 12:] = np.nan
    return table, People(rows, Background.of(table.train, model))


def test_it_survives_at_least_as_well_as_the_nearest(halfway):
    table, people = halfway
    near = add_survival(find_recourse(people, Nearest(table.train)), table.train)
    lasting = find_recourse(people, SurvivalSearch(table.train))
    assert np.array_equal(near.legal, lasting.legal)
    ours, theirs = (p.survival[p.first[p.legal]] for p in (lasting, near))
    assert (ours >= theirs).all()
    assert ours.mean() > theirs.mean() + 0.1


def test_each_next_plan_survives_less_and_takes_less(halfway):
    table, people = halfway
    plans = find_recourse(people, SurvivalSearch(table.train))
    same = plans.of[1:] == plans.of[:-1]
    assert same.any()
    assert (np.diff(plans.survival)[same] < 0).all()
    assert (np.diff(plans.effort)[same] < 0).all()


def test_with_everything_known_the_nearest_is_the_best(german):
    table, model = german
    people = People(table.test.X[:40], Background.of(table.train, model))
    near, lasting = (find_recourse(people, s(table.train)) for s in (Nearest, SurvivalSearch))
    legal = near.legal & lasting.legal
    assert legal.any()
    np.testing.assert_allclose(lasting.effort[lasting.first[legal]], near.effort[near.first[legal]])


def test_a_limit_of_changes_and_of_effort_rules(halfway):
    table, people = halfway
    free = find_recourse(people, SurvivalSearch(table.train))
    assert free.l0.max() > 1
    limit = float(np.median(free.effort[free.first[free.legal]]))
    for searcher in (SurvivalSearch(table.train), Nearest(table.train)):
        one = find_recourse(people, searcher, rules=Rules(max_changes=1))
        assert one.l0.max() == 1
        little = find_recourse(people, searcher, rules=Rules(max_effort=limit))
        assert len(little)
        assert (little.effort <= limit + 1e-9).all()
    assert (free.effort > limit + 1e-9).any()


def test_a_larger_set_is_offered_only_where_it_survives_better(halfway):
    table, people = halfway
    plans = find_recourse(people, SurvivalSearch(table.train))
    larger = 0
    for row in np.flatnonzero(plans.legal):
        mine = np.flatnonzero(plans.of == row)
        changes = [
            {(j, plans.to[i, j]) for j in np.flatnonzero(~np.isnan(plans.to[i]))} for i in mine
        ]
        for a, i in zip(changes, mine, strict=True):
            for b, j in zip(changes, mine, strict=True):
                if a < b:
                    larger += 1
                    assert plans.survival[j] > plans.survival[i]
    assert larger
