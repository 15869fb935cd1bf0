"""SurvivalPolicy: the order is the greedy one, prices and refusals count, and nothing peeks."""

import numpy as np
import pandas as pd
import pytest
from advisors import plain_german

import edfa
from edfa import (
    Background,
    Blanket,
    People,
    Rules,
    SurvivalPolicy,
    SurvivalSearch,
    acquire,
    find_recourse,
)
from edfa.acquisition import Terms
from edfa.acquisition.survival import expected_survival
from edfa.errors import DataError, SettingError
from edfa.predictors.base import UnfittedError, align
from edfa.recourse.survival import Completions
from edfa.testing import check_policy

UNITS = {
    "checking_status": (),
    "duration": ("credit_amount", "savings_status"),
    "housing": ("employment",),
}
BLANKET = Blanket("class", UNITS)


@pytest.fixture(scope="module")
def table():
    return plain_german()


@pytest.fixture(scope="module")
def model(table):
    return edfa.SubsetXGB(n_estimators=30).fit(table.train.X, table.train.y)


@pytest.fixture(scope="module")
def searcher(table):
    return SurvivalSearch(table.train, n_completions=16, n_candidates=16)


@pytest.fixture(scope="module")
def fitted(table, searcher, model):
    return SurvivalPolicy(BLANKET, searcher, n_people=24).fit(table.train, model)


def test_the_order_does_not_depend_on_who_shares_the_work(table, searcher, fitted):
    fresh = edfa.SubsetXGB(n_estimators=30).fit(
        table.train.X, table.train.y
    )  # whose models are learnt by several at once
    assert (
        SurvivalPolicy(BLANKET, searcher, n_people=24).fit(table.train, fresh, n_jobs=3).steps_
        == fitted.steps_
    )


def literal_order(table, model, searcher, blanket, people, seed=0):
    """Greedy search, one training person at a time."""
    schema, train = table.schema, table.train
    chosen = np.sort(np.random.default_rng(seed).permutation(len(train))[:people])
    view = align(model, [schema.index(name) for name in blanket.features])
    twin = SurvivalSearch(train, n_completions=16, n_candidates=16)
    twin.completions_ = Completions.of(train, 16, without=chosen)
    known = [f.name for f in schema if f.start]

    def mean(names):
        survival = []
        for row in train.X[chosen]:
            facts = np.full((1, len(schema)), np.nan, dtype=np.float32)
            for name in names:
                facts[0, schema.index(name)] = row[schema.index(name)]
            plans = find_recourse(People(facts, Background.of(train, view, blanket)), twin)
            survival.append(max((plan.survival for plan in plans), default=0.0))
        return np.mean(survival)

    steps, now = [], mean(known)
    while left := [n for n in schema.names if n in blanket and n not in known]:
        then = {name: mean([*known, name]) for name in left}
        best = min(left, key=lambda n: (-max(then[n] - now, 0) / schema[n].cost, schema[n].cost))
        steps.append((best, now, then[best]))
        known, now = [*known, best], then[best]
    return steps


def test_the_order_is_that_of_a_literal_search(table, model, searcher, fitted):
    expected = literal_order(table, model, searcher, BLANKET, 24)
    assert list(fitted.order_) == [name for name, _, _ in expected]
    np.testing.assert_allclose(
        [s.before for s in fitted.steps_], [before for _, before, _ in expected]
    )
    np.testing.assert_allclose(
        [s.after for s in fitted.steps_], [after for _, _, after in expected]
    )
    assert fitted.steps_[-1].after > fitted.steps_[0].before


def test_what_opens_recourse_comes_first():
    """The outcome follows one feature, which nobody knows at first; the others are noise, and
    cheaper.
    """
    random = np.random.default_rng(0)
    n = 800
    facts = {f"noise {i}": random.normal(size=n) for i in range(3)} | {
        "cause": random.normal(size=n)
    }
    facts["known"] = random.normal(size=n)
    frame = pd.DataFrame(facts).assign(
        y=np.where(facts["cause"] + 0.3 * random.normal(size=n) > 0, "good", "bad")
    )
    features = tuple(
        edfa.Feature(
            name,
            "continuous",
            start=name == "known",
            cost=0 if name == "known" else 1 + 2 * (name == "cause"),
        )
        for name in facts
    )
    table = edfa.Table.from_frame(frame, edfa.Schema(features, "y", "good"))
    model = edfa.SubsetXGB(n_estimators=30).fit(table.train.X, table.train.y)
    blanket = Blanket("y", dict.fromkeys(facts, ()))
    policy = SurvivalPolicy(blanket, SurvivalSearch(), n_people=24).fit(table.train, model)
    assert policy.order_[0] == "cause"
    assert policy.steps_[0].after > policy.steps_[0].before + 0.5


@pytest.mark.parametrize("personal", [False, pytest.param(True, marks=pytest.mark.long)])
def test_it_keeps_the_contract(personal, table, searcher, fitted):
    # One model for all subsets: a personal order visits many.
    model = edfa.SubsetXGB("nan", n_estimators=20).fit(table.train.X, table.train.y)
    policy = fitted
    if personal:
        policy = SurvivalPolicy(BLANKET, searcher, personal=True, n_draws=2).fit(table.train, model)
    check_policy(policy, table.test, model)


def test_everybody_is_asked_in_the_order_learnt(table, model, fitted):
    trajectory = acquire(table.test, fitted, model, budget="inf", explain=False)
    assert {order for _, order in trajectory} == {fitted.order_}


def test_who_pays_more_for_a_fact_is_asked_for_it_later(table, model, fitted):
    costs = np.tile(table.schema.costs, (3, 1))
    first = table.schema.index(fitted.order_[0])
    costs[1, first] *= 1e12  # however little the others are worth
    costs[2] = np.where(
        costs[2] > 0, costs[2] * 7, 0
    )  # seven times as much of everything changes nothing
    trajectory = acquire(
        table.test.X[:3],
        fitted,
        model,
        budget="inf",
        terms=Terms(costs=costs),
        reference=table.train,
        explain=False,
    )
    assert trajectory.order(0) == trajectory.order(2) == fitted.order_
    assert trajectory.order(1) == (*fitted.order_[1:], fitted.order_[0])


def test_personal_worth_is_the_mean_over_likely_values(table, searcher):
    """One value at a time, by the plans that each would open."""
    model = edfa.SubsetXGB("nan", n_estimators=20).fit(table.train.X, table.train.y)
    view = align(model, [table.schema.index(name) for name in BLANKET.features])
    start = np.array([f.start for f in table.schema])
    rows = np.where(start, table.test.X[:3], np.float32(np.nan))
    people = People(
        rows, Background.of(table.train, model, BLANKET, aligned=True), costs=np.ones(rows.shape)
    )
    policy = SurvivalPolicy(BLANKET, searcher, personal=True, n_draws=16).fit(table.train, model)
    feature = table.schema.index("duration")
    now, then = policy.expected(people, np.arange(20) == np.full((3, 1), feature))
    for i, row in enumerate(rows):
        values, _ = searcher.completions_.neighbours.given(row[None])(feature)
        survival = []
        for value in values[0]:
            facts = row.copy()
            facts[feature] = value
            plans = find_recourse(
                People(facts[None], Background.of(table.reference, view, BLANKET)), searcher
            )
            survival.append(max((plan.survival for plan in plans), default=0.0))
        assert then[i, feature] == pytest.approx(np.mean(survival))
    assert np.isnan(np.delete(then, feature, axis=1)).all()
    assert (policy.score(people)[:, feature] >= then[:, feature] - now - 1e-12).all()


def test_who_is_there_already_counts_as_often_as_that_lasts(table, model, searcher):
    view = align(model, [table.schema.index(name) for name in BLANKET.features])
    rows = table.test.X[:40].copy()
    rows[:, [table.schema.index("checking_status"), table.schema.index("housing")]] = np.nan
    people = People(rows, Background.of(table.reference, view, BLANKET))
    survival = expected_survival(people, searcher, None, 1)
    favourable = view.predict(rows) == 1
    assert favourable.any()
    assert not favourable.all()
    filled = searcher.completions_.neighbours.complete(rows[favourable])
    stays = np.array([(view.predict(person) == 1).mean() for person in filled])
    np.testing.assert_allclose(survival[favourable], stays)
    plans = find_recourse(people, searcher, desired_class=1)
    for i in np.flatnonzero(~favourable):
        assert survival[i] == plans.survival[plans.of == i].max(initial=0.0)


def test_what_may_not_change_opens_nothing(table, model, searcher):
    """Where every feature is locked, no question opens recourse."""
    names = tuple(n for n in BLANKET.features if table.schema[n].actionable)
    policy = SurvivalPolicy(BLANKET, searcher, Rules(locked=names), n_people=16).fit(
        table.train, model
    )
    assert all(step.before == step.after == 0 for step in policy.steps_)
    costs = [step.cost for step in policy.steps_]
    assert costs == sorted(costs)


def test_it_is_written_and_read_again(table, searcher, fitted, tmp_path):
    fitted.save_state(tmp_path)
    again = SurvivalPolicy(BLANKET, searcher).load_state(tmp_path, table.train)
    assert again.steps_ == fitted.steps_
    with pytest.raises(DataError, match="not in the blanket"):
        SurvivalPolicy(Blanket("class", {"housing": ()}), searcher).load_state(
            tmp_path, table.train
        )


def test_progress_and_errors(table, model, searcher):
    reports = []
    blanket = Blanket("class", {"checking_status": (), "duration": ()})
    policy = SurvivalPolicy(blanket, searcher, n_people=16)
    policy.fit(table.train, model, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(UnfittedError, match="call fit"):
        acquire(table.test, SurvivalPolicy(BLANKET, searcher), model)
    with pytest.raises(SettingError, match="SurvivalSearch"):
        SurvivalPolicy(BLANKET, edfa.Nearest(table.train))
    with pytest.raises(SettingError, match="at least 2"):
        SurvivalPolicy(BLANKET, searcher, n_people=1)


def test_an_order_must_have_been_learnt_for_every_question(table, model, searcher):
    personal = SurvivalPolicy(BLANKET, searcher, personal=True).fit(table.train, model)
    assert personal.steps_ == ()
    with pytest.raises(UnfittedError, match="has learnt no order yet"):
        acquire(table.test, personal.set_params(personal=False), model)


def test_a_blanket_that_is_known_from_the_start_leaves_nothing_to_ask(table, model, searcher):
    policy = SurvivalPolicy(Blanket("class", {"age": (), "credit_amount": ()}), searcher).fit(
        table.train, model
    )
    assert policy.order_ == ()
    assert (acquire(table.test, policy, model, explain=False).step == 0).all()
