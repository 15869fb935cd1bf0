"""Plans as people hold them: frames, JSON, names, order, and the reasons of those who have none."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from advisors import plain_german
from discrete import world

import edfa
from edfa.errors import DataError, SettingError, UnknownNameError, UnreadableError
from edfa.people import Background, People
from edfa.recourse import SEARCHERS, Nearest, Plan, Plans, Rules, find_recourse
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
    return find_recourse(
        People(rows, Background.of(table.train, model, blanket), **numbers), searcher
    )


def test_a_frame_has_a_row_a_change_in_peoples_words(plans, german):
    frame = plans.frame()
    first = "person seed step plan feature from to".split()
    assert list(frame.columns[:7]) == first
    assert {"l0", "l2", "valid"} <= set(frame.columns)
    assert len(frame) == plans.l0.sum()
    assert set(frame["seed"]) == {3}
    assert frame["person"].min() >= 100
    source = german[0].test.frame
    for _, line in frame.sample(40, random_state=0).iterrows():
        assert source[line["feature"]].iloc[line["person"] - 100] == line["from"]
        assert line["to"] in set(german[0].train.frame[line["feature"]])
    counts = frame.groupby(["person", "plan"])["l0"].agg(["size", "first"])
    assert (counts["size"] == counts["first"]).all()


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
    assert plans[0].person == plans.people.person[plans.of[0]]
    assert plans[0].changes[0].feature in str(plans[0])


def test_some_training_person_has_all_values_of_a_plan_to_the_model(plans, german):
    table, model, _ = german
    joint = np.flatnonzero(plans.l0 > 1)
    assert len(joint) > 50
    for i in joint:
        changed = ~np.isnan(plans.to[i])
        whole = np.where(changed, table.train.X, plans.people.X[plans.of[i]])
        after = model.predict_proba(whole).max(axis=1)
        assert np.isclose(after, plans.probability_after[i]).any()


def test_names_are_stable_and_different(plans, german):
    ids = [plan.id for plan in plans]
    for row in np.unique(plans.of):
        own = [i for i, of in zip(ids, plans.of, strict=True) if of == row]
        assert len(set(own)) == len(own)
    assert len(set(ids)) == len({row.tobytes() for row in plans.to})
    one = People(
        plans.people.X[[4]],
        plans.people.background,
        person=104,
        seed=3,
        step=0,
    )
    again = find_recourse(one, german[2])
    assert [p.id for p in again] == [i for i, row in zip(ids, plans.of, strict=True) if row == 4]


def test_json_round_trip(plans):
    again = Plans.from_json(plans.to_json())
    pd.testing.assert_frame_equal(again.frame(), plans.frame())
    assert list(again) == list(plans)
    assert dict(again.reasons) == dict(plans.reasons)
    assert again.to_json() == plans.to_json()
    assert again.people.background.model is None
    with pytest.raises(DataError, match="no predictor"):
        find_recourse(again.people, Nearest(plain_german().train))
    old = json.loads(plans.to_json()) | {"version": 0}
    with pytest.raises(UnreadableError, match="version 0"):
        Plans.from_json(json.dumps(old))


def test_plans_that_are_damaged_are_unreadable(plans):
    text = plans.to_json()
    for damaged in (
        "",
        "{}",
        "null",
        "3",
        "[]",
        "[" * 100_000,
        text[:-1],
        text[: len(text) // 2],
        text[:30],
    ):
        with pytest.raises(
            UnreadableError, match=r"^this text is not plans as to_json writes them$"
        ):
            Plans.from_json(damaged)
    with pytest.raises(UnreadableError, match=r"^these plans are damaged: 'people' is missing$"):
        Plans.from_json(json.dumps({k: v for k, v in json.loads(text).items() if k != "people"}))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("people.person", [1, 2]),
        ("people.seed", None),
        ("people.X", [[1.0, 2.0]]),
        ("people.decision", [0]),
        ("people.decision", [7] * 50),
        ("plans", None),
        ("plans", "rows"),
        ("plans.0", {}),
        ("plans.0.reached", None),
        ("plans.0.changes", [{"0": 1.0}]),
        ("plans.0.l2", "far"),
        ("plans.0.valid", "perhaps"),
        ("plans.0.donor", 1),
        ("plans.0.survival", [0.5]),
        ("reasons", None),
        ("reasons", [{"row": 0}]),
        ("reasons", [{"row": 999, "person": 0, "seed": 0, "step": 0, "reason": "nothing_flips"}]),
        ("reasons", [{"row": 0, "person": 0, "seed": 0, "step": 0, "reason": "nothing flips"}]),
        ("schema", {}),
        ("schema", []),
        ("encoder", []),
        ("encoder", [{}]),
        ("blanket", {"version": 1}),
    ],
)
def test_a_part_of_plans_that_is_wrong_is_said_in_one_line(plans, path, value):
    content = json.loads(plans.to_json())
    *outer, last = path.split(".")
    inner = content
    for name in outer:
        inner = inner[int(name) if name.isdigit() else name]
    inner[int(last) if last.isdigit() else last] = value
    with pytest.raises(UnreadableError, match=r"^these plans are damaged: .+$") as caught:
        Plans.from_json(json.dumps(content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "value"), [("row", 50), ("row", -1), ("reached", "fine"), ("reached", 1)]
)
def test_plans_for_nobody_or_no_class_are_damaged(plans, column, value):
    content = json.loads(plans.to_json())
    content["plans"][-1][column] = value
    with pytest.raises(UnreadableError, match=r"plans\.row|not in tuple|plan\.reached"):
        Plans.from_json(json.dumps(content))
    content = json.loads(plans.to_json())
    content["plans"][0]["changes"][0] |= {"feature": "shoe"}
    with pytest.raises(UnreadableError, match="shoe"):
        Plans.from_json(json.dumps(content))


def test_a_plan_comes_back_from_its_one_json_form(plans):
    for plan, content in zip(plans, plans.to_dicts(), strict=True):
        assert content == plan.to_dict()
        assert Plan.from_dict(json.loads(json.dumps(content))) == plan
    with pytest.raises(UnreadableError, match=r"plan\.effort"):
        Plan.from_dict(plans[0].to_dict() | {"effort": "none"})
    assert replace(plans[0], effort=9.0) != plans[0]


def test_html_escapes(plans):
    assert "&lt;" in plans._repr_html_()
    assert "<table>" in plans._repr_html_()


@pytest.mark.parametrize("kind", [edfa.Nearest, edfa.SurvivalSearch])
def test_k_plans_are_the_best_and_then_other_ways(german, kind):
    """No plan does what an earlier one does and more; only one is offered only where all others
    would.
    """
    table, model, _ = german
    searcher, rows = kind(table.train), table.test.X[:50].copy()
    rows[::2, 12:] = np.nan
    people = People(rows, Background.of(table.train, model))
    everything, few = find_recourse(people, searcher), find_recourse(people, searcher, k=3)
    assert few.count.max() == 3
    assert (few.count == 3).mean() > 0.4
    assert np.array_equal(
        few.to[few.first[few.legal]],
        everything.to[everything.first[everything.legal]],
        equal_nan=True,
    )
    ordered = np.array([feature.kind != "categorical" for feature in table.schema])
    for i in np.flatnonzero(few.legal):
        ways = [_way(to, people.X[i], ordered) for to in few.to[few.of == i]]
        assert not any(a <= b for k, a in enumerate(ways) for b in ways[k + 1 :])
        if len(ways) == 1 and kind is edfa.Nearest:  # the other leaves out what does not survive
            others = [_way(to, people.X[i], ordered) for to in everything.to[everything.of == i]]
            assert all(ways[0] <= other for other in others)


def _way(to, own, ordered):
    """What a plan does: features with their direction or level."""
    changed = np.flatnonzero(~np.isnan(to))
    return {(int(j), float(np.sign(to[j] - own[j]) if ordered[j] else to[j] + 2)) for j in changed}


def test_reasons(german):
    table, model, searcher = german
    blanket = edfa.Blanket(
        "class", {"checking_status": ("housing",), "duration": (), "credit_history": ()}
    )
    people = lambda some: People(some, Background.of(table.train, model, blanket))  # noqa: E731
    rows = table.test.X
    favourable = model.predict(rows) == 1
    satisfied = find_recourse(people(rows[favourable][:5]), searcher, desired_class=1)
    assert len(satisfied) == 0
    assert {r.reason for r in satisfied.reasons.values()} == {"already_there"}
    nothing = np.full((1, 20), np.nan, dtype=np.float32)
    reason = find_recourse(people(nothing), searcher).reasons[0]
    assert (reason.reason, reason.unlock) == (
        "more_information_needed",
        ("checking_status", "duration", "credit_history", "housing"),
    )
    spouse = nothing.copy()
    spouse[0, table.schema.index("housing")] = 1
    assert find_recourse(people(spouse), searcher).reasons[0].unlock[0] == "checking_status"
    whole = People(rows, Background.of(table.train, model))
    locked = find_recourse(whole, searcher, rules=Rules(only=("residence_since",)))
    seen = {r.reason for r in locked.reasons.values()}
    assert "only_locked_features_flip" in seen
    assert "nothing_flips" in seen
    narrow = Rules(only=("credit_amount",), ranges={"credit_amount": (15_000, 15_001)})
    assert "range_too_narrow" in {
        r.reason for r in find_recourse(whole, searcher, rules=narrow).reasons.values()
    }


def test_reasons_are_true_in_a_world_that_can_be_listed():
    train, model = world(
        ["categorical"] * 3, [3, 3, 2], seed=11, changes=["free", "frozen", "free"]
    )
    people = People(train.X[:18], Background.of(train, model))
    plans = find_recourse(
        people, Nearest(train, neighbours=1000), rules=Rules(levels={"f0": ("0",)})
    )
    now = model.predict(people.X)

    def turns(row, j, values):
        rows = np.repeat(people.X[[row]], len(values), axis=0)
        rows[:, j] = values
        return (model.predict(rows) != now[row]).any()

    assert plans.reasons
    for row, no_plan in plans.reasons.items():
        free = turns(row, 0, range(3)) or turns(row, 2, range(2))
        expected = (
            "range_too_narrow"
            if free
            else "only_locked_features_flip"
            if turns(row, 1, range(3))
            else "nothing_flips"
        )
        assert no_plan.reason == expected


def test_mistakes_are_told_before_any_work(german):
    table, model, searcher = german
    people = People(table.test.X[:3], Background.of(table.train, model))
    with pytest.raises(UnknownNameError, match="class"):
        find_recourse(people, searcher, desired_class=7)
    other = table.split(seed=1)
    with pytest.raises(DataError, match="encoded differently"):
        find_recourse(
            People(other.test.X[:3], Background(table.schema, other.encoder, model)), searcher
        )
    with pytest.raises(SettingError, match="k: at least one"):
        find_recourse(people, searcher, k=0)
    with pytest.raises(DataError, match=r"Nearest\(\)\.fit\(train\)"):
        find_recourse(people, "nearest")
    with pytest.raises(DataError, match="rows of 20 features"):
        People(table.test.X[:, :4], Background.of(table.train, model))
    with pytest.raises(DataError, match="2 numbers for 3 people"):
        People(table.test.X[:3], Background.of(table.train, model), person=np.arange(2))
    with pytest.raises(UnknownNameError, match="did you mean 'duration'"):
        People(
            table.test.X[:3],
            Background.of(table.train, model, edfa.Blanket("class", {"durations": ()})),
        )
    with pytest.raises(UnknownNameError, match="did you mean"):
        SEARCHERS["neares"]


def test_nobody_is_no_error(german):
    table, model, searcher = german
    nobody = find_recourse(People(table.test.X[:0], Background.of(table.train, model)), searcher)
    assert (len(nobody), len(nobody.frame()), len(nobody.reasons)) == (0, 0, 0)
    assert Plans.from_json(nobody.to_json()).frame().equals(nobody.frame())


def test_a_state_is_anything_with_people(german):
    table, model, searcher = german

    class Trajectory:
        def people(self):
            return People(table.test.X[:2], Background.of(table.train, model))

    assert len(find_recourse(Trajectory(), searcher)) > 0


class Silent(Searcher):
    def search(self, problem):
        return Candidates.none(problem)


def test_a_searcher_may_find_nothing(german):
    table, model, _ = german
    plans = find_recourse(
        People(table.test.X[:3], Background.of(table.train, model)), Silent().fit(table.train)
    )
    assert len(plans) == 0
    assert len(plans.reasons) == 3


class Useless(Searcher):
    """Says that its candidates are confirmed, and proposes the next level of the checking account
    whatever it does.
    """

    finished = True

    def __init__(self, asks=False):
        self.asks = asks

    def search(self, problem):
        case = np.arange(len(problem))
        to = np.full((len(problem), len(problem.features)), np.nan, dtype=np.float32)
        to[:, 0] = (problem.facts[:, 0] + 1) % 4
        return Candidates(case, to, problem.predict(problem.apply(case, to)) if self.asks else None)


@pytest.mark.parametrize("asks", [True, False])
def test_valid_is_what_the_model_says_and_not_what_a_searcher_claims(german, asks):
    table, model, _ = german
    people = People(table.test.X, Background.of(table.train, model))
    plans = find_recourse(people, Useless(asks).fit(table.train), rules=Rules(reading="paper"))
    turned = model.predict(plans.rows()) != model.predict(people.X)[plans.of]
    assert len(plans) == len(people)
    assert 0 < turned.mean() < 1
    assert np.array_equal(plans.valid, turned)
    assert [plan.valid for plan in plans] == turned.tolist()
    assert np.array_equal(plans.frame()["valid"], turned)
    wanted = find_recourse(
        people,
        Useless(asks).fit(table.train),
        desired_class="good",
        rules=Rules(min_probability=0.7, reading="paper"),
    )
    then = model.predict_proba(wanted.rows())[:, 1]
    assert np.array_equal(wanted.valid, (then > 0.5) & (then >= 0.7))
    assert 0 < wanted.valid.mean() < 1


def test_importing_recourse_does_not_import_torch():
    code = "import edfa.recourse, sys; edfa.recourse.Nearest; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_model_that_is_fitted_again_is_another_one(table):
    searcher = Nearest(table.train)
    model = edfa.SubsetXGB(n_estimators=10).fit(table.train.X, table.train.y)
    people = People(table.test.X[:40], Background.of(table.train, model))
    find_recourse(people, searcher)
    model.set_params(n_estimators=50, max_depth=6).fit(table.train.X, table.train.y)
    again, fresh = (find_recourse(people, s) for s in (searcher, Nearest(table.train)))
    assert np.array_equal(again.to, fresh.to, equal_nan=True)
    assert (model.predict(again.rows()) != again.decision[again.of]).all()
    model.threshold = 0.8
    again, fresh = (find_recourse(people, s) for s in (searcher, Nearest(table.train)))
    assert np.array_equal(again.to, fresh.to, equal_nan=True)


def test_a_plan_shows_itself():
    """In a notebook as a table, in a terminal as one line."""
    table = plain_german()
    model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    people = edfa.People(table.test.X[:20], edfa.Background.of(table.train, model))
    plan = edfa.find_recourse(people, edfa.Nearest(table.train))[0]
    assert plan.changes[0].feature in plan._repr_html_()
    assert plan.changes[0].feature in str(plan)
