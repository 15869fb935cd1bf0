"""Plans hold further along, stand among people and go the good way; counted and asked by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from advisors import plain_german
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa.people import Background, People
from edfa.recourse import SEARCHERS, Nearest, Rules, SurvivalSearch, find_recourse
from edfa.recourse.plan_filter import TrainingSupport


@pytest.fixture(scope="module")
def german():
    table = plain_german()
    return table, edfa.SubsetXGB(n_estimators=60).fit(table.train.X, table.train.y)


def refused(table, model, count=60):
    """People whom the model refuses, half of them partly known."""
    rows = table.test.X[model.predict(table.test.X) == 0][:count].copy()
    rows[::2, 14:] = np.nan
    return People(rows, Background.of(table.train, model))


def further(plans, part):
    """Rows with every changed number moved on by a part of its way, up to the end of what training
    people have.
    """
    schema, rows = plans.people.schema, plans.rows()
    own, train = plans.people.X[plans.of], plans.people.background.rows
    for j, feature in enumerate(schema):
        if feature.kind != "categorical":
            changed = ~np.isnan(plans.to[:, j])
            there = plans.to[:, j] + part * (plans.to[:, j] - own[:, j])
            low, high = train[:, j].min(), train[:, j].max()
            there, column = np.clip(there, low, high), plans.people.encoder.columns[j]
            if feature.kind == "ordinal":
                there = np.round(there)
            elif column.whole:  # whole months, whole amounts
                numbers = np.round(there.astype(float) * column.scale + column.mean)
                there = (numbers - column.mean) / column.scale
            rows[changed, j] = there[changed]
    return rows


@pytest.mark.parametrize("name", ["nearest", "survival", "dice", "nice", "probe"])
def test_every_plan_holds_as_far_again(german, name):
    table, model = german
    people = refused(table, model)
    plans = find_recourse(people, SEARCHERS[name]().fit(table.train), desired_class=1)
    assert plans.legal.mean() > 0.5
    for part in (0.25, 0.5, 1.0):
        assert (model.predict(further(plans, part)) == 1).all(), part


def test_without_it_some_do_not(german):
    """The fixture has islands: a test of holding that nothing could fail would be none."""
    table, model = german
    plans = find_recourse(
        refused(table, model),
        Nearest(table.train, holds_further=False, min_support=0),
        desired_class=1,
    )
    assert (model.predict(further(plans, 0.5)) != 1).any()
    paper = find_recourse(
        refused(table, model),
        Nearest(table.train),
        desired_class=1,
        rules=Rules(reading="paper"),
    )
    assert (model.predict(further(paper, 0.5)) != 1).any()
    assert paper.support is None


def by_hand(plans, i, searcher):
    """The training people at each value of plan i or farther, all changes together."""
    train, row = searcher.rows_, plans.people.X[plans.of[i]]
    inside = np.ones(len(train), dtype=bool)
    for j in np.flatnonzero(~np.isnan(plans.to[i])):
        to = plans.to[i, j]
        if plans.people.schema.features[j].kind == "categorical":
            inside &= train[:, j] == to
        else:
            inside &= train[:, j] >= to if to > row[j] else train[:, j] <= to
    return inside


def test_only_plans_where_people_are_get_through(german):
    table, model = german
    searcher = Nearest(table.train)
    plans = find_recourse(refused(table, model), searcher, desired_class=1)
    least = int(np.ceil(0.01 * len(table.train)))
    assert all(by_hand(plans, i, searcher).sum() >= least for i in range(len(plans)))
    assert plans.support is None, "people like this person are counted for plans that are shown"
    anywhere = Nearest(table.train, min_support=0)
    lax = find_recourse(refused(table, model), anywhere, desired_class=1)
    assert min(by_hand(lax, i, anywhere).sum() for i in range(len(lax))) < least


def alike_by_hand(train, categorical, row):
    """The nearest tenth of training people to a row, one after the other; all who are as near as
    the last of them.
    """
    distance = np.zeros(len(train))
    for j in np.flatnonzero(~np.isnan(row)):
        column = train[:, j].astype(float)
        if j in categorical:
            _, counts = np.unique(column, return_counts=True)
            differ = 1 - ((counts / len(column)) ** 2).sum()
            distance += 2 * (column != row[j]) / (differ or 1)
        else:
            distance += ((column - row[j]) / (column.std() or 1)) ** 2
    k = max(100, round(0.1 * len(train)))
    return distance, np.sort(distance)[k - 1], k


@pytest.mark.parametrize("kind", [Nearest, SurvivalSearch])
def test_support_counts_people_like_this_person_with_the_plan_made(german, kind):
    """Against distances and comparisons that are worked out one person after the other."""
    table, model = german
    searcher = kind(table.train)
    plans = find_recourse(refused(table, model, 12), searcher, desired_class=1, k=3)
    categorical = {*np.flatnonzero(table.schema.categorical).tolist()}
    train, good, exact = table.train.X, table.train.y == 1, 0
    for i, row in enumerate(plans.rows()):
        seen = np.where(model.varies_, row, np.nan)
        distance, last, k = alike_by_hand(train, categorical, seen)
        there = by_hand(plans, i, searcher)
        sure, perhaps = distance < last - 1e-4, distance <= last + 1e-4
        assert (sure & there).sum() <= plans.support[i] <= (perhaps & there).sum()
        assert plans.support[i] <= k
        if perhaps.sum() == k and plans.support[i]:  # nobody else is as near as the last
            assert plans.support_share[i] == pytest.approx(good[perhaps & there].mean())
            exact += 1
        everybody = there.sum()
        assert plans.support[i] <= everybody
    assert exact > 5
    plan = plans[0]
    assert plan.support == plans.support[0]
    assert plan.support_share == pytest.approx(plans.support_share[0])


def test_people_who_are_otherwise_unlike_do_not_count():
    """At 20 of x most people are well because w is high; of those like this person none is."""
    random = np.random.default_rng(0)
    x, w = random.integers(0, 40, 4_000), random.integers(0, 2, 4_000)
    good = (x >= 20) & (w == 1)
    crowd = TrainingSupport(np.stack([x, w], axis=1).astype(np.float32), good, [1])
    for own, share in ((0, 0.0), (1, 1.0)):
        row = np.array([[20, own]], dtype=np.float32)
        low, high = np.array([[20, np.nan]]), np.array([[39, np.nan]])
        people, well = crowd.count_alike(row, low, high)
        assert 0 < people[0] <= 400
        assert well[0] / people[0] == share
    assert 0.4 < good[x >= 20].mean() < 0.6


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_a_crowd_counts_as_brute_force_does(seed):
    random = np.random.default_rng(seed)
    rows = random.integers(0, 6, (80, 4)).astype(np.float32)
    crowd = TrainingSupport(rows, random.random(80) < 0.5)
    low = random.integers(0, 6, (12, 4)).astype(np.float32)
    high = low + random.integers(0, 3, (12, 4)).astype(np.float32)
    hidden = random.random((12, 4)) < 0.5
    low[hidden], high[hidden] = np.nan, np.nan
    counts = crowd.count(low, high, np.arange(4))
    for i in range(12):
        inside = np.all(hidden[i] | ((rows >= low[i]) & (rows <= high[i])), axis=1)
        assert counts.people[i] == inside.sum()
        assert counts.favourable[i] == (inside & crowd.favourable).sum()


def test_people_where_no_plan_may_lead_do_not_support_one():
    """The best risks of German credit have no checking account; nobody who fills theirs is told to
    be among them.
    """
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=60).fit(table.train.X, table.train.y)
    blanket = edfa.Blanket("class", {"checking_status": (), "duration": ()})
    background = Background.of(table.train, edfa.predictors.align(model, [0, 1]), blanket)
    there = (table.train.frame["checking_status"] == ">=200").sum()
    searcher, most = (
        Nearest(table.train, min_support=0),
        Nearest(table.train, min_support=there + 1),
    )
    top = Rules(levels={"checking_status": (">=200",)}, only=("checking_status",))
    people = People(table.test.X, background)
    plans = find_recourse(people, searcher, desired_class="good", rules=top, k=3)
    assert len(plans)
    assert plans.support.max() <= there
    assert not len(find_recourse(people, most, desired_class="good", rules=top))
    just = Nearest(table.train, min_support=there)
    assert len(find_recourse(people, just, desired_class="good", rules=top)) == len(plans)


def test_too_few_people_is_a_reason_and_the_loosening_says_how_few(german):
    table, model = german
    people = refused(table, model)
    strict = Nearest(table.train, min_support=600)
    plans = find_recourse(people, strict, desired_class=1)
    few = [row for row in plans.reasons if plans.reasons[row].reason == "too_few_people_there"]
    assert few
    reason = plans.reasons[few[0]]
    assert reason.rules == ("min_support",)
    needed = int(reason.loosening.split("=")[1].split(":")[0])
    assert 0 < needed < 600
    one = People(people.X[[few[0]]], people.background)
    assert find_recourse(one, Nearest(table.train, min_support=needed), desired_class=1).legal[0]
    more = Nearest(table.train, min_support=needed + 1)
    assert not find_recourse(one, more, desired_class=1).legal[0]


def test_an_island_is_a_reason():
    """The outcome is good from 10 to 12 alone: no plan leads there, and the reason says that it
    would not hold.
    """
    x = np.repeat(np.arange(0, 40), 30)
    frame = pd.DataFrame(
        {"x": x.astype(float), "y": np.where((x >= 10) & (x <= 12), "good", "bad")}
    )
    schema = edfa.Schema((edfa.Feature("x", "continuous"),), "y", "good", classes=("bad", "good"))
    table = edfa.Table.from_frame(frame, schema)
    model = edfa.SubsetXGB().fit(table.train.X, table.train.y)
    people = People(
        table.encoder.encode(pd.DataFrame({"x": [2.0]})), Background.of(table.train, model)
    )
    plans = find_recourse(people, Nearest(table.train), desired_class=1)
    assert plans.reasons[0].reason == "does_not_hold"
    assert find_recourse(people, Nearest(table.train, holds_further=False), desired_class=1).legal[
        0
    ]


@pytest.mark.parametrize("searcher", [Nearest, SurvivalSearch])
def test_an_open_end_is_told_as_it_is(german, searcher):
    """36 months or fewer: every training value beyond works; and where one does not, the end is not
    open.
    """
    table, model = german
    plans = find_recourse(refused(table, model), searcher(table.train), desired_class=1)
    opened = closed = 0
    for i in np.flatnonzero((plans.l0 == 1) & ~(np.isnan(plans.low) & np.isnan(plans.high))):
        (j,) = np.flatnonzero(~np.isnan(plans.to[i]))
        row, values = plans.people.X[plans.of[i]], np.unique(table.train.X[:, j])
        upwards = plans.to[i, j] > row[j]
        rows = np.repeat(row[None], len(values), axis=0)
        rows[:, j] = values
        works = (model.predict(rows) == 1)[
            values >= plans.to[i, j] if upwards else values <= plans.to[i, j]
        ]
        change = plans[int(i)].changes[0]
        end = change.high if upwards else change.low
        assert (change.low if upwards else change.high) is not None
        assert (end is None) == works.all()
        opened, closed = opened + (end is None), closed + (end is not None)
    assert opened > 10


def test_an_end_is_open_too_where_a_change_takes_its_time(german):
    """While the loan gets shorter the person ages, so that the sweep is silent; the model's
    direction is not.
    """
    table, _ = german
    signs = tuple(-1 if name == "duration" else 0 for name in table.schema.names)
    model = edfa.SubsetXGB(n_estimators=60, monotone=signs).fit(table.train.X, table.train.y)
    slow = Rules(takes={"duration": "24 months"}, per_year={"age": 1})
    plans = find_recourse(refused(table, model), Nearest(table.train), desired_class=1, rules=slow)
    shorter = [
        plan for plan in plans if [change.feature for change in plan.changes] == ["duration"]
    ]
    assert shorter
    assert all(
        p.months == 24 and p.changes[0].low is None and p.changes[0].high == p.changes[0].after
        for p in shorter
    )
    free = edfa.SubsetXGB(n_estimators=60).fit(table.train.X, table.train.y)
    unknown = find_recourse(refused(table, free), Nearest(table.train), desired_class=1, rules=slow)
    assert {
        (c.low, c.high) for p in unknown if p.l0 == 1 for c in p.changes if c.feature == "duration"
    } == {(None, None)}


def test_directions_of_the_card_are_obeyed_towards_the_favourable_class(german):
    table, model = german
    features = tuple(
        replace(f, monotone="down") if f.name == "duration" else f for f in table.schema
    )
    features = tuple(
        replace(f, monotone="up") if f.name == "credit_amount" else f for f in features
    )
    schema = replace(table.schema, features=features)
    people = refused(table, model)
    signed = People(people.X, replace(people.background, schema=schema))
    plans = find_recourse(
        signed, Nearest(table.train, holds_further=False, min_support=0), desired_class=1
    )
    for name, sign in (("duration", -1), ("credit_amount", 1)):
        j = table.schema.index(name)
        moved = (plans.to - people.X[plans.of])[:, j]
        assert ((moved * sign)[~np.isnan(moved)] > 0).all()
        assert (~np.isnan(moved)).any()
    free = find_recourse(
        people, Nearest(table.train, holds_further=False, min_support=0), desired_class=1
    )
    wrong = (free.to - people.X[free.of])[:, table.schema.index("duration")]
    assert (wrong[~np.isnan(wrong)] > 0).any()  # without the card's word some go the wrong way


def test_a_model_that_obeys_directions_needs_no_look_further(german):
    table, _ = german
    signs = tuple(-1 if name in ("duration", "credit_amount") else 0 for name in table.schema.names)
    model = edfa.SubsetXGB(n_estimators=60, monotone=signs).fit(table.train.X, table.train.y)
    plans = find_recourse(refused(table, model), Nearest(table.train), desired_class=1)
    down = [j for j, sign in enumerate(signs) if sign]
    some = ~np.isnan(plans.to[:, down]).all(axis=1)
    assert some.any()
    for part in (0.25, 0.5, 1.0, 10.0):
        assert (model.predict(further(plans, part)[some]) == 1).all()
