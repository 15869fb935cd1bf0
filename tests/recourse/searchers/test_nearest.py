"""Nearest against everything that could be tried."""

import numpy as np
import pytest
from advisors import plain_german
from discrete import all_plans, as_sets, world
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa.explanation.necessity import Support
from edfa.people import Background, People
from edfa.predictors.base import Predictor
from edfa.recourse import Nearest, Rules, find_recourse

KINDS = st.lists(st.sampled_from(["categorical", "ordinal"]), min_size=2, max_size=4)


def hidden(train, random, count):
    """Some rows with some facts not known."""
    rows = train.X[random.integers(0, len(train), count)].copy()
    rows[random.random(rows.shape) < 0.25] = np.nan
    return rows


ANY_PLAN = {
    "holds_further": False,
    "min_support": 0,
}  # the search alone, whatever the sense of its plans


@settings(max_examples=25, deadline=None)
@given(
    KINDS,
    st.integers(0, 10_000),
    st.sampled_from([2, 3]),
    st.sampled_from([None, 0, 1]),
    st.booleans(),
)
def test_the_minimal_plans_are_those_of_enumeration(kinds, seed, classes, desired_class, dominated):
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 5, len(kinds)).tolist()
    train, model = world(kinds, sizes, seed, classes)
    rows = hidden(train, random, 12)
    searcher = Nearest(train, neighbours=10_000, keep_dominated=dominated, **ANY_PLAN)
    plans = find_recourse(
        People(rows, Background.of(train, model)), searcher, desired_class=desired_class
    )
    for i, row in enumerate(rows):
        free = np.flatnonzero(~np.isnan(row)).tolist()
        values, ordered = [range(s) for s in sizes], [k == "ordinal" for k in kinds]
        truth = all_plans(
            model, row, free, values, ordered, desired_class=desired_class, dominated=dominated
        )
        sets = as_sets(plans, i)
        assert len(sets) == len(set(sets))
        assert set(sets) == truth


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_directions_and_blankets_restrict_the_enumeration(seed):
    random = np.random.default_rng(seed)
    ways = random.choice(["free", "up", "down", "frozen"], 4).tolist()
    train, model = world(["ordinal"] * 4, [3] * 4, seed, changes=ways)
    rows = hidden(train, random, 12)
    blanket = edfa.Blanket("y", {"f0": ("f2",), "f1": ()})
    plans = find_recourse(
        People(rows, Background.of(train, model, blanket)),
        Nearest(train, neighbours=10_000, **ANY_PLAN),
    )
    sign = {"free": 0, "up": 1, "down": -1}
    for i, row in enumerate(rows):
        free = [j for j in range(3) if not np.isnan(row[j]) and ways[j] != "frozen"]
        allowed = lambda j, own, value: (value - own) * sign[ways[j]] >= 0  # noqa: E731
        truth = all_plans(model, row, free, [range(3)] * 4, [True] * 4, allowed=allowed)
        assert set(as_sets(plans, i)) == truth


def test_cells_of_trees_equal_brute_force_over_all_training_values():
    table = plain_german()
    model = edfa.SubsetXGB(n_estimators=60).fit(table.train.X, table.train.y)
    people = People(table.test.X[:60], Background.of(table.train, model))
    plans = find_recourse(people, Nearest(table.train, max_changes=1), rules=Rules(reading="paper"))
    support, now = Support.of(table.train.X), model.predict(people.X)
    single = plans.l0 == 1
    differences = 0
    for j, feature in enumerate(table.schema):
        values = support.values[j]
        rows = np.repeat(people.X, len(values), axis=0)
        rows[:, j] = np.tile(values, len(people))
        flips = (model.predict(rows).reshape(len(people), -1) != now[:, None]) & (
            values != people.X[:, [j]]
        )
        changed = single & ~np.isnan(plans.to[:, j])
        if feature.sensitive:
            assert not changed.any()
            continue
        truth = {(i, float(values[v])) for i, v in zip(*np.nonzero(flips), strict=True)}
        proposed = {
            (int(i), float(v)) for i, v in zip(plans.of[changed], plans.to[changed, j], strict=True)
        }
        if feature.kind != "categorical":
            own = people.X[:, j]
            up = {
                (i, min(v for p, v in truth if p == i and v > own[i]))
                for i, v in truth
                if v > own[i]
            }
            down = {
                (i, max(v for p, v in truth if p == i and v < own[i]))
                for i, v in truth
                if v < own[i]
            }
            truth = up | down
        differences += len(truth ^ proposed)
    assert single.sum() > 100
    assert differences == 0


def test_every_value_of_an_interval_works_and_none_could_be_added():
    table = plain_german()
    model = edfa.SubsetXGB(n_estimators=60).fit(table.train.X, table.train.y)
    people = People(table.test.X[:60], Background.of(table.train, model))
    plans = find_recourse(people, Nearest(table.train, max_changes=1), rules=Rules(reading="paper"))
    support, mask, ends = Support.of(table.train.X), np.ones(20, dtype=bool), 0
    for i in np.flatnonzero(~(np.isnan(plans.low) & np.isnan(plans.high))):
        (j,) = np.flatnonzero(~np.isnan(plans.to[i]))
        row, values = people.X[plans.of[i]], support.values[j]

        def flips(tried, row=row, j=j):
            rows = np.repeat(row[None], len(tried), axis=0)
            rows[:, j] = tried
            return model.predict(rows) != model.predict(row[None])

        low, high = plans.low[i], plans.high[i]
        upwards = plans.to[i, j] > row[j]
        assert not np.isnan(low if upwards else high)
        low, high = (
            np.nan_to_num(low, nan=values[0]),
            np.nan_to_num(high, nan=values[-1]),
        )  # an open end
        assert low <= plans.to[i, j] <= high
        cuts = model.cells(mask, j)
        assert flips(
            np.r_[values, cuts][(np.r_[values, cuts] >= low) & (np.r_[values, cuts] <= high)]
        ).all()
        below, above = values[values < low], values[values > high]
        for near, far in ((low, below[-1:]), (high, above[:1])):
            if len(
                far
            ):  # something up to the next value of a training person does not turn the decision
                inner = cuts[(cuts > min(near, far[0])) & (cuts <= max(near, far[0]))]
                assert not flips(np.r_[far, inner]).all()
                ends += 1
    assert ends > 50


class AllTogether(Predictor):
    """The second class only where every known feature is at its highest level."""

    def _fit(self, matrix, codes, progress):
        self.top_ = matrix.max(axis=0)

    def _answer(self, mask, known):
        share = (known == self.top_[mask]).mean(axis=1)
        probability = np.where(share == 1, 0.9, 0.4 * share)
        return np.stack([1 - probability, probability], axis=1)


@pytest.mark.parametrize("donors", [True, False])
def test_where_three_changes_do_not_do_more_are_tried(donors):
    train, _ = world(["ordinal", "categorical"] * 3, [2] * 6)
    model = AllTogether().fit(train.X, train.y)
    # With nobody on the other side, what helps by itself is put together.
    some = (
        train
        if donors
        else edfa.Table(
            train.frame[train.X.min(axis=1) == 0], train.schema, part="train", fitted=train.encoder
        )
    )
    rows = np.zeros((3, 6), dtype=np.float32)
    rows[1, 4:] = 1
    rows[2, 5] = np.nan
    people = People(rows, Background.of(train, model))
    plans = find_recourse(people, Nearest(some, **ANY_PLAN))
    assert [set(as_sets(plans, i)) for i in range(3)] == [
        {frozenset((j, 1.0) for j in range(6))},
        {frozenset((j, 1.0) for j in range(4))},
        {frozenset((j, 1.0) for j in range(5))},
    ]
    assert len(find_recourse(people, Nearest(some, **ANY_PLAN), rules=Rules(max_changes=3))) == 0


def test_a_bayesian_network_is_a_model_like_any_other():
    pytest.importorskip("pyagrum")
    train, _ = world(["ordinal", "categorical", "categorical"], [3, 3, 2], seed=4)
    frame = train.frame.assign(
        y=np.where(train.X[:, 0] + train.X[:, 2] > 1.5, "class 1", "class 0")
    )
    table = edfa.Table(frame, train.schema, part="train", fitted=train.encoder)
    model = edfa.BayesNet().fit(table.X, table.y)
    people = People(hidden(table, np.random.default_rng(0), 10), Background.of(train, model))
    plans = find_recourse(people, Nearest(table, neighbours=1000, **ANY_PLAN))
    for i, row in enumerate(people.X):
        free = np.flatnonzero(~np.isnan(row)).tolist()
        truth = all_plans(model, row, free, [range(3), range(3), range(2)], [True, False, False])
        assert set(as_sets(plans, i)) == truth
    assert len(plans) > 5


def test_numbers_of_neighbours_are_combined_where_the_model_has_no_cells(table, network):
    """A neural model is tried at 64 values of a number; a neighbour's is taken at the nearest of
    them.
    """
    people = People(table.test.X[:80], Background.of(table.train, network))
    plans = find_recourse(people, Nearest(table.train), rules=Rules(reading="paper"))
    assert (network.predict(plans.rows()) != plans.decision[plans.of]).all()
    column = table.schema.index("credit_amount")
    joint = (plans.l0 > 1) & ~np.isnan(plans.to[:, column])
    assert joint.sum() > 40
    values = np.unique(table.train.X[:, column])
    assert np.isin(plans.to[joint, column], values).all()


def test_intervals_are_told_only_where_they_are_known(table, network):
    people = People(table.test.X[:60], Background.of(table.train, network))
    plans = find_recourse(people, Nearest(table.train, max_changes=1), rules=Rules(reading="paper"))
    kinds = [table.schema.features[int(np.flatnonzero(~np.isnan(to))[0])].kind for to in plans.to]
    with_interval = {kind for kind, low in zip(kinds, plans.low, strict=True) if not np.isnan(low)}
    assert "continuous" in kinds
    assert with_interval == {"ordinal"}


def test_a_category_of_many_levels(load_real):
    """More than the 64 values that are tried of a number where the model has no cells: every level
    is, all the same.
    """
    table = load_real("acs_income", cap=3000)
    wide = max(
        (f for f in table.schema if f.kind == "categorical"),
        key=lambda f: len(table.encoder[f.name].levels),
    )
    column = table.schema.index(wide.name)
    levels = np.unique(table.train.X[:, column])
    assert len(levels) > 64
    model = edfa.MaskedMLP(epochs=12, class_weight="balanced", learning_rate=5e-3).fit(
        table.train.X, table.train.y
    )
    people = People(table.test.X[:40], Background.of(table.train, model))
    plans = find_recourse(people, Nearest(table.train), rules=Rules(reading="paper"))
    rows = np.repeat(people.X, len(levels), axis=0)
    rows[:, column] = np.tile(levels, len(people))
    flips = model.predict(rows).reshape(len(people), -1) != model.predict(people.X)[:, None]
    slots = table.encoder[wide.name].slots
    truth = {
        (int(i), float(levels[v]))
        for i, v in zip(*np.nonzero(flips & ~np.isin(levels, slots)), strict=True)
    }
    single = (plans.l0 == 1) & ~np.isnan(plans.to[:, column])
    assert len(truth) > 100
    assert {
        (int(i), float(v)) for i, v in zip(plans.of[single], plans.to[single, column], strict=True)
    } == truth
    words = [j for j, f in enumerate(table.schema) if f.kind == "categorical"]
    several = (~np.isnan(plans.to[:, words])).sum(axis=1) > 1
    assert several.sum() > 10
    for to in plans.to[several][:, words]:
        same = np.isnan(to) | (table.train.X[:, words] == to)
        assert same.all(axis=1).any(), "somebody has all these levels"


class Counting(Predictor):
    """Another model that counts how often it is asked."""

    def __init__(self, inner):
        self.inner = inner

    def _fit(self, matrix, codes, progress):
        self.asked_ = []

    def _answer(self, mask, known):
        self.asked_.append(len(known))
        return self.inner.predict_known(mask, known)

    def cells(self, mask, feature):
        return self.inner.cells(mask, feature)


@pytest.mark.parametrize("reading", ["card", "paper"])
def test_a_group_is_asked_about_a_few_times_however_many_they_are(table, trees, reading):
    """Once for every single change of everybody, once for every set of two and three of their
    neighbours' values.

    What holds further along is asked once where plans are chosen and once where they are described.
    """
    asked = {"card": 4, "paper": 2}[reading]
    rules = Rules(reading=reading)
    model, searcher = Counting(trees).fit(table.train.X, table.train.y), Nearest(table.train)
    rows = table.test.X[trees.predict(table.test.X) == 0][:12]
    background = Background.of(table.train, model)
    find_recourse(People(rows[:1], background), searcher, rules=rules, desired_class=1)
    for some in (rows[1:], rows[1:2]):
        model.asked_.clear()
        plans = find_recourse(People(some, background), searcher, rules=rules, desired_class=1)
        assert plans.legal.all()
        assert (plans.l0 > 1).any()
        assert len(model.asked_) <= asked


@pytest.mark.parametrize("desired_class", [None, 1])
@pytest.mark.parametrize("dominated", [False, True])
def test_alone_everybody_has_the_plans_they_have_in_a_batch(table, trees, desired_class, dominated):
    """Bit for bit, in every column, from one searcher and from one of their own."""
    rows = np.concatenate([table.test.X[:30], table.test.X[:3]])
    rows[::3, 11:] = np.nan
    searcher, paper = Nearest(table.train, keep_dominated=dominated), Rules(reading="paper")
    batch = find_recourse(
        People(rows, Background.of(table.train, trees)),
        searcher,
        rules=paper,
        desired_class=desired_class,
    )
    assert batch.count.max() > 3
    for i in range(len(rows)):
        own = searcher if i % 2 else Nearest(table.train, keep_dominated=dominated)
        one = People(rows[[i]], Background.of(table.train, trees))
        alone = find_recourse(one, own, rules=paper, desired_class=desired_class)
        mine = batch.of == i
        for name in (
            "to low high reached probability_before probability_after l0 l2 heom effort"
        ).split():
            assert getattr(alone, name).tobytes() == getattr(batch, name)[mine].tobytes(), name
