"""The outlook of partly known people, and the chance of a decision, against listing everybody who
may be meant.
"""

import numpy as np
import pytest
from discrete import KINDS, SIZES, all_plans, matching, partly, world
from hypothesis import given, settings
from hypothesis import strategies as st

from edfa import Background, Nearest, People, find_recourse
from edfa.predictors.conditional import Neighbours
from edfa.recourse.outlook import COMPLETIONS, Outlook, effort_when_complete
from edfa.recourse.survival import Completions

CHANGES = ("frozen", "up", "frozen", "up")
UP = (1, 3)
VALUES = {j: range(SIZES[j]) for j in UP}
ORDERED = [kind == "ordinal" for kind in KINDS]
masks = st.lists(st.booleans(), min_size=4, max_size=4).map(np.array)


def finder(train):
    """Finds every plan that there is."""
    return Nearest(train, holds_further=False, min_support=0)


def look(train, model, asked, desired_class, k=32):
    """The outlook of a world in which half of the features change, and only upwards."""
    neighbours = Neighbours.among(train.X, np.flatnonzero(train.schema.categorical), k)
    background = Background.of(train, model)
    return Outlook.of(neighbours, finder(train), background, asked, None, desired_class)


def is_stuck(model, row, asked, desired_class):
    """Whether a person is refused and no change of what is known of them helps, by trying all."""
    seen = np.where(asked, row, np.float32(np.nan))
    if model.predict(seen[None])[0] == desired_class:
        return False
    free = [j for j in UP if asked[j]]
    rises = lambda j, own, value: value > own  # noqa: E731
    return not all_plans(
        model, seen, free, VALUES, ORDERED, desired_class=desired_class, allowed=rises
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 500), masks, masks, st.integers(0, 2))
def test_no_way_is_the_share_of_all_that_may_be_who_are_refused_without_a_plan(
    seed, known, asked, desired_class
):
    """Where every combination is as likely, and all training people who agree are asked, it is
    exact.
    """
    asked = asked | known
    train, model = world(KINDS, SIZES, seed, 3, CHANGES)
    outlook = look(train, model, asked, desired_class, matching(known))
    stuck = np.array([is_stuck(model, row, asked, desired_class) for row in train.X])
    np.testing.assert_array_equal(outlook.stuck, stuck)
    people = partly(train, known)
    expected = [stuck[(train.X[:, known] == row[known]).all(axis=1)].mean() for row in people]
    np.testing.assert_allclose(outlook.no_way(people), expected, atol=1e-12)


def test_effort_when_complete_is_that_of_each_completions_own_first_plan():
    """Some of the training people who are nearest complete each person, who is then looked at with
    everything known that may be asked; by searching for each one by itself.
    """
    train, model = world(KINDS, SIZES, 3, 2, CHANGES)
    known = np.array([True, False, False, True])
    asked = np.array([True, True, False, True])
    background, search = Background.of(train, model), finder(train)
    near = Neighbours.among(train.X, np.flatnonzero(train.schema.categorical), 16)
    people = People(partly(train, known), background)
    efforts = effort_when_complete(people, near, search, asked, None, 1)
    assert efforts.shape == (len(people), COMPLETIONS)
    for row, nearest, mine in zip(people.X, near.nearest(people.X), efforts, strict=True):
        for other, effort in zip(near.rows[nearest[::2]], mine, strict=True):
            whole = np.where(asked, np.where(np.isnan(row), other, row), np.float32(np.nan))
            plans = find_recourse(People(whole[None], background), search, desired_class=1)
            granted = plans.decision[0] == 1
            assert effort == (0 if granted else plans.effort[0] if len(plans) else np.inf)
    assert {0.0, np.inf} < {*efforts.ravel().tolist()}


def test_with_everything_known_it_is_certain():
    train, model = world(KINDS, SIZES, 5, 2, CHANGES)
    outlook = look(train, model, np.ones(4, dtype=bool), 1, k=3)  # each combination is there thrice
    np.testing.assert_array_equal(outlook.no_way(train.X), outlook.stuck)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 500), masks, st.integers(0, 2))
def test_chance_is_the_share_of_all_that_may_be_who_are_decided_so(seed, known, code):
    train, model = world(KINDS, SIZES, seed, 3)
    people = People(partly(train, known), Background.of(train, model))
    decided = model.predict(train.X) == code
    expected = [decided[(train.X[:, known] == row[known]).all(axis=1)].mean() for row in people.X]
    completions = Completions.of(train, k=matching(known) if not known.all() else 3)
    np.testing.assert_allclose(completions.chance(people, code), expected, atol=1e-12)


@pytest.mark.parametrize("most", [1, 5])
def test_chance_does_not_depend_on_how_people_are_batched(most, monkeypatch):
    train, model = world(KINDS, SIZES, 1, 2)
    people = People(
        partly(train, np.array([True, False, False, True])), Background.of(train, model)
    )
    completions = Completions.of(train)
    whole = completions.chance(people, 1)
    monkeypatch.setattr("edfa.recourse.survival.PEOPLE_PER_CALL", most)
    np.testing.assert_array_equal(completions.chance(people, 1), whole)
    assert 0 < whole.mean() < 1
