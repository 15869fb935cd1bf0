"""What turns today's decision beside what should last; against every training value between."""

from dataclasses import replace

import numpy as np
import pytest
from advisors import plain_german

import edfa
from edfa.people import Background, People
from edfa.recourse import Nearest, Plans, Rules, SurvivalSearch, find_recourse
from edfa.recourse.plans import Plan


@pytest.fixture(scope="module", params=["german", "plain", "slow"])
def found(request):
    """The model, and three plans a person that are chosen to last; half are partly known."""
    table = edfa.load("german") if request.param == "german" else plain_german()
    if request.param == "slow":  # people age by years while a loan gets shorter
        slow = {
            "duration": {"takes_per_unit": "1 month"},
            "age": {"per_year": 12.0, "change": "frozen", "monotone": None},
        }
        features = tuple(replace(f, **slow.get(f.name, {})) for f in table.schema)
        table = edfa.Table.from_frame(table.frame, replace(table.schema, features=features))
    model = edfa.SubsetXGB(n_estimators=40).fit(table.train.X, table.train.y)
    rows = table.test.X[model.predict(table.test.X) == 0][:40].copy()
    rows[::2, 12:] = np.nan
    people = People(rows, Background.of(table.train, model))
    searcher = SurvivalSearch(table.train)
    rules = Rules(min_probability=0.55)
    return model, searcher, find_recourse(people, searcher, desired_class=1, k=3, rules=rules)


def by_hand(model, searcher, plans, i, j):
    """The least change of feature j of plan i today, none at all included, from which all training
    values up to the plan's own turn the decision; NaN: only the plan's own does.
    """
    actions = searcher.action_set(Rules(min_probability=0.55), plans.people, 1)
    own, goal = plans.people.X[plans.of[i], j], plans.to[i, j]
    values = actions.values[j]
    between = ((values - own) * (goal - own) > 0) & (np.abs(values - own) < abs(goal - own))
    values = values[between & (plans.people.schema.features[j].kind != "categorical")]
    values = values[actions.permits(j, own, values)]
    to = np.repeat(plans.to[[i]], len(values), axis=0)
    to[:, j] = values
    rows = np.repeat(plans.people.X[[plans.of[i]]], len(values), axis=0)
    after, _ = actions.consequences.apply(np.arange(to.shape[1]), rows, to, growth=False)
    turned = model.predict_proba(after)[:, 1] >= 0.55 if len(values) else np.zeros(0)
    if plans.l0[i] > 1:
        to, row = plans.to[[i]].copy(), plans.people.X[[plans.of[i]]]
        to[:, j] = np.nan
        after, _ = actions.consequences.apply(np.arange(to.shape[1]), row, to, growth=False)
        values, turned = np.r_[values, own], np.r_[turned, model.predict_proba(after)[0, 1] >= 0.55]
    for value, works in sorted(zip(values, turned, strict=True), key=lambda v: -abs(v[0] - own)):
        if not works:
            break
        goal = value
    return goal if goal != plans.to[i, j] else np.nan


def test_it_is_the_least_from_which_on_everything_does(found):
    model, searcher, plans = found
    told = needless = 0
    for i, j in zip(*np.nonzero(~np.isnan(plans.to)), strict=True):
        expected = by_hand(model, searcher, plans, i, j)
        assert np.array_equal(plans.enough_now[i, j], expected, equal_nan=True), (i, j)
        told += not np.isnan(expected)
        needless += expected == plans.people.X[plans.of[i], j]
    assert told > 5
    assert needless
    assert np.isnan(plans.enough_now[np.isnan(plans.to)]).all()


def test_both_numbers_are_told_and_neither_is_lost(found):
    _, _, plans = found
    again = Plans.from_json(plans.to_json())
    assert np.array_equal(again.enough_now, plans.enough_now, equal_nan=True)
    changes = [(plan, change) for plan in plans for change in plan.changes]
    some = [plan for plan, change in changes if change.enough_now is not None]
    assert some
    for plan in some:
        assert Plan.from_dict(plan.to_dict()) == plan
    assert all(("enough_now" in c.to_dict()) == (c.enough_now is not None) for _, c in changes)
    told = plans.frame()["enough_now"]
    assert told.notna().sum() == sum(c.enough_now is not None for _, c in changes)


def test_the_first_plan_is_the_same_as_where_nothing_is_shown(found):
    _, searcher, plans = found
    rules = Rules(min_probability=0.55)
    every = find_recourse(plans.people, searcher, desired_class=1, rules=rules)
    first = [p.to[p.first[p.legal]] for p in (plans, every)]
    assert np.array_equal(*first, equal_nan=True)
    assert every.enough_now is None


def test_only_plans_that_should_last_say_it(found):
    _, searcher, plans = found
    nearest = find_recourse(plans.people, Nearest(searcher.train_), desired_class=1, k=3)
    assert nearest.enough_now is None
    assert all(c.enough_now is None for plan in nearest for c in plan.changes)


def test_people_with_other_knowledge_and_nobody():
    """Some are partly known, some have a plan of one change, some have none: each has their own."""
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    rows = table.test.X[:30].copy()
    rows[::3, 5:], rows[1::3, :3] = np.nan, np.nan
    people, searcher = People(rows, Background.of(table.train, model)), SurvivalSearch(table.train)
    together = find_recourse(people, searcher, desired_class=1, k=2)
    for row in range(0, 30, 7):
        alone = find_recourse(people.take(np.array([row])), searcher, desired_class=1, k=2)
        mine = together.of == row
        if not mine.any():
            assert not len(alone)
            continue
        assert np.array_equal(alone.enough_now, together.enough_now[mine], equal_nan=True)
        assert np.array_equal(alone.support, together.support[mine])
    none = find_recourse(
        replace(people, X=rows), searcher, desired_class=1, k=2, rules=Rules(only=())
    )
    assert len(none) == 0
