"""Plans as people hold them: frames, JSON, names, order, and the reasons of those who have none."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from discrete import world

import edfa
from edfa.errors import DataError, UnknownNameError, UnreadableError
from edfa.people import Background, People
from edfa.recourse import Constraints, Nearest, Plans, find_recourse
from edfa.recourse import searcher as named
from edfa.recourse.searcher import Candidates, Searcher


@pytest.fixture(scope="module")
def german(table, trees):
    return table, trees, Nearest(table.train)


@pytest.fixture(scope="module")
def plans(german):
    table, model, searcher = german
    rows = table.test.X[:50].copy()
    rows[::2, 8:] = np.nan
    blanket = edfa.Blanket("class", dict.fromkeys(table.schema.names[:12], ()))
    numbers = {"person": np.arange(50) + 100, "seed": 3, "step": np.arange(50) % 2}
    return find_recourse(People(rows, Background.of(table.reference, model, blanket), **numbers), searcher)


def test_a_frame_has_a_row_a_change_in_peoples_words(plans, german):
    told = plans.frame()
    first = "person seed step plan feature from to".split()
    assert list(told.columns[:7]) == first
    assert {"l0", "l2", "valid"} <= set(told.columns)
    assert len(told) == plans.l0.sum()
    assert set(told["seed"]) == {3}
    assert told["person"].min() >= 100
    source = german[0].test.frame
    for _, line in told.sample(40, random_state=0).iterrows():
        assert source[line["feature"]].iloc[line["person"] - 100] == line["from"]
        assert line["to"] in set(german[0].train.frame[line["feature"]])
    counts = told.groupby(["person", "plan"])["l0"].agg(["size", "first"])
    assert (counts["size"] == counts["first"]).all()


def test_a_full_frame_has_what_stays_as_well(plans):
    told = plans.frame(changes_only=False)
    known = (~np.isnan(plans.people.X)).sum(axis=1)
    assert len(told) == known[plans.of].sum()
    assert (told["from"] != told["to"]).sum() == plans.l0.sum()


def test_distances_are_those_of_the_definition(plans, german):
    table = german[0]
    spread = np.ptp(table.train.X, axis=0)
    own = plans.people.X[plans.of]
    gap = np.where(np.isnan(plans.to), 0, np.abs(plans.to - own)) / spread
    assert np.allclose(plans.l2, np.sqrt((gap**2).sum(axis=1)), atol=1e-5)
    words = np.array([f.kind == "categorical" for f in table.schema])
    mixed = np.where(words, ~np.isnan(plans.to), gap)
    assert np.allclose(plans.heom, np.sqrt((mixed**2).sum(axis=1)), atol=1e-5)


def test_the_best_plan_comes_first(plans):
    same = plans.of[1:] == plans.of[:-1]
    assert (np.diff(plans.effort)[same] >= -1e-6).all()
    assert (plans.first[plans.legal] == np.flatnonzero(np.r_[True, ~same])).all()
    assert (plans.number[plans.first[plans.legal]] == 0).all()


def test_one_plan_says_what_the_columns_do(plans):
    for i, plan in enumerate(plans):
        assert plan.l0 == len(plan.changes) == plans.l0[i]
        assert plan.probability_after > plan.probability_before
        assert len(plan.unknown) == np.isnan(plans.people.X[plans.of[i]]).sum()
    assert plans[-1] == plans[len(plans) - 1]
    with pytest.raises(IndexError):
        plans[len(plans)]
    person = int(plans.people.person[plans.of[0]])
    assert [p.person for p in plans.of_person(person)] == [person] * int(plans.count[plans.of[0]])
    assert plans.of_person(person, step=7) == ()
    assert plans[0].changes[0].feature in str(plans[0])


def test_a_donor_has_the_values_it_gave_to_the_model(plans, german):
    table, model, _ = german
    given = np.flatnonzero(plans.donor >= 0)
    assert len(given) > 50
    changed = ~np.isnan(plans.to[given])
    whole = np.where(changed, table.train.X[plans.donor[given]], plans.people.X[plans.of[given]])
    assert np.allclose(model.predict_proba(whole).max(axis=1), plans.probability_after[given])


def test_names_are_stable_and_different(plans, german):
    assert len(set(plans.ids)) == len(plans)
    one = People(
        plans.people.X[[4]],
        Background(*(getattr(plans.people, n) for n in ("schema", "encoder", "predictor", "blanket")), 104, 3, 0),
    )
    again = find_recourse(one, german[2])
    assert again.ids == tuple(i for i, row in zip(plans.ids, plans.of, strict=True) if row == 4)


def test_json_round_trip(plans):
    again = Plans.from_json(plans.to_json())
    pd.testing.assert_frame_equal(again.frame(), plans.frame())
    assert list(again) == list(plans)
    assert dict(again.reasons) == dict(plans.reasons)
    assert again.to_json() == plans.to_json()
    assert again.people.predictor is None
    with pytest.raises(DataError, match="no predictor"):
        find_recourse(again.people, Nearest(edfa.load("german").train))
    old = json.loads(plans.to_json()) | {"version": 0}
    with pytest.raises(UnreadableError, match="version 0"):
        Plans.from_json(json.dumps(old))


def test_html_escapes(plans):
    assert "&lt;" in plans._repr_html_()
    assert "<table>" in plans._repr_html_()


def test_k_plans_are_the_best_and_then_the_most_different(german):
    table, model, searcher = german
    people = People(table.test.X[:50], Background.of(table.reference, model))
    free, few = find_recourse(people, searcher), find_recourse(people, searcher, k=3)
    assert few.count.max() == 3
    assert (few.count == np.minimum(free.count, 3)).all()
    assert np.array_equal(few.to[few.first[few.legal]], free.to[free.first[free.legal]], equal_nan=True)
    sets = lambda plans, i: len({tuple(~np.isnan(v)) for v in plans.to[plans.of == i][:3]})  # noqa: E731
    rich = np.flatnonzero(free.count > 6)
    assert np.mean([sets(few, i) for i in rich]) > np.mean([sets(free, i) for i in rich])


def test_reasons(german):
    table, model, searcher = german
    blanket = edfa.Blanket("class", {"checking_status": ("housing",), "duration": (), "credit_history": ()})
    people = lambda some: People(some, Background.of(table.reference, model, blanket))  # noqa: E731
    rows = table.test.X
    favourable = model.predict(rows) == 1
    there = find_recourse(people(rows[favourable][:5]), searcher, desired_class=1)
    assert len(there) == 0
    assert {r.reason for r in there.reasons.values()} == {"already_there"}
    nothing = np.full((1, 20), np.nan, dtype=np.float32)
    told = find_recourse(people(nothing), searcher).reasons[0]
    assert (told.reason, told.unlock) == (
        "more_information_needed",
        ("checking_status", "duration", "credit_history", "housing"),
    )
    spouse = nothing.copy()
    spouse[0, table.schema.index("housing")] = 1
    assert find_recourse(people(spouse), searcher).reasons[0].unlock[0] == "checking_status"
    whole = People(rows, Background.of(table.reference, model))
    locked = find_recourse(whole, searcher, constraints=Constraints(only=("residence_since",)))
    seen = {r.reason for r in locked.reasons.values()}
    assert "only_locked_features_flip" in seen
    assert "nothing_flips" in seen
    narrow = Constraints(only=("credit_amount",), ranges={"credit_amount": (15_000, 15_001)})
    assert "range_too_narrow" in {r.reason for r in find_recourse(whole, searcher, constraints=narrow).reasons.values()}


def test_reasons_are_true_in_a_world_that_can_be_listed():
    train, model = world(["categorical"] * 3, [3, 3, 2], seed=11, changes=["free", "frozen", "free"])
    people = People(train.X[:18], Background.of(train.reference, model))
    plans = find_recourse(people, Nearest(train, neighbours=1000), constraints=Constraints(levels={"f0": ("0",)}))
    now = model.predict(people.X)

    def turns(row, j, values):
        rows = np.repeat(people.X[[row]], len(values), axis=0)
        rows[:, j] = values
        return (model.predict(rows) != now[row]).any()

    assert plans.reasons
    for row, told in plans.reasons.items():
        free = turns(row, 0, range(3)) or turns(row, 2, range(2))
        desired_class = (
            "range_too_narrow" if free else "only_locked_features_flip" if turns(row, 1, range(3)) else "nothing_flips"
        )
        assert told.reason == desired_class


def test_mistakes_are_told_before_any_work(german):
    table, model, searcher = german
    people = People(table.test.X[:3], Background.of(table.reference, model))
    with pytest.raises(UnknownNameError, match="class"):
        find_recourse(people, searcher, desired_class=7)
    other = table.split(seed=1)
    with pytest.raises(DataError, match="encoded differently"):
        find_recourse(People(other.test.X[:3], Background(table.schema, other.encoder, model)), searcher)
    with pytest.raises(DataError, match="k: at least one"):
        find_recourse(people, searcher, k=0)
    with pytest.raises(DataError, match=r"Nearest\(train\)"):
        find_recourse(people, "nearest")
    with pytest.raises(DataError, match="rows of 20 features"):
        People(table.test.X[:, :4], Background.of(table.reference, model))
    with pytest.raises(DataError, match="2 numbers for 3 people"):
        People(table.test.X[:3], Background.of(table.reference, model), person=np.arange(2))
    with pytest.raises(UnknownNameError, match="did you mean 'duration'"):
        People(table.test.X[:3], Background.of(table.reference, model, edfa.Blanket("class", {"durations": ()})))
    with pytest.raises(UnknownNameError, match="did you mean"):
        named("neares")


def test_nobody_is_no_error(german):
    table, model, searcher = german
    nobody = find_recourse(People(table.test.X[:0], Background.of(table.reference, model)), searcher)
    assert (len(nobody), len(nobody.frame()), len(nobody.reasons)) == (0, 0, 0)
    assert Plans.from_json(nobody.to_json()).frame().equals(nobody.frame())


def test_a_state_is_anything_with_people(german):
    table, model, searcher = german

    class Trajectory:
        def people(self):
            return People(table.test.X[:2], Background.of(table.reference, model))

    assert len(find_recourse(Trajectory(), searcher)) > 0


class Silent(Searcher):
    def search(self, problem):
        return Candidates.none(problem)


def test_a_searcher_may_find_nothing(german):
    table, model, _ = german
    plans = find_recourse(People(table.test.X[:3], Background.of(table.reference, model)), Silent(table.train))
    assert len(plans) == 0
    assert len(plans.reasons) == 3


def test_importing_recourse_does_not_import_torch():
    code = "import edfa.recourse, sys; edfa.recourse.Nearest; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_that_is_fitted_again_is_another_one(table):
    searcher = Nearest(table.train)
    model = edfa.SubsetXGB(n_estimators=10).fit(table.train.X, table.train.y)
    people = People(table.test.X[:40], Background.of(table.reference, model))
    find_recourse(people, searcher)
    model.set_params(n_estimators=50, depth=6).fit(table.train.X, table.train.y)
    again, fresh = (find_recourse(people, s) for s in (searcher, Nearest(table.train)))
    assert np.array_equal(again.to, fresh.to, equal_nan=True)
    assert (model.predict(again.rows()) != again.decision[again.of]).all()
    model.threshold = 0.8
    again, fresh = (find_recourse(people, s) for s in (searcher, Nearest(table.train)))
    assert np.array_equal(again.to, fresh.to, equal_nan=True)
