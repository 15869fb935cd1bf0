"""How far a plan may move a feature at most, and how long far takes: no searcher goes beyond."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa.data.values import months_of
from edfa.people import Background, People
from edfa.recourse import CVAE, NICE, PROBE, DiCE, Nearest, Rules, SurvivalSearch, find_recourse
from edfa.recourse.action_set import ActionSet
from edfa.recourse.searchers import cvae

SEARCHERS = {
    "nearest": Nearest,
    "survival": partial(SurvivalSearch, n_completions=8),
    "probe": PROBE,
    "dice": DiCE,
    "nice": NICE,
    "cvae": partial(CVAE, draws=16, max_draws=64),
}
CAPS = {
    "duration": {"max_ratio": 1.5, "takes_per_unit": "1 week"},
    "credit_amount": {"max_ratio": 2.0, "max_step": 1500.0},
    "checking_status": {"max_step": 1.0},
    "age": {"max_step": 3.0, "takes": "1 month", "takes_per_unit": "2 months"},
}


def capped(table, caps):
    """The same people with a card of these keys, free to change what they are about."""
    loose = {"change": "free", "monotone": None, "sensitive": False, "per_year": 0.0, "takes": ""}
    loose |= {"max_ratio": None, "max_step": None}
    features = tuple(
        replace(f, **(loose | caps[f.name])) if f.name in caps else f for f in table.schema
    )
    return replace(table.schema, features=features, rules=Rules())


def within(change, caps):
    """Whether a change, in words, keeps to the caps of its feature."""
    before, after = change.before, change.after
    if change.feature == "checking_status":
        levels = ["<0", "0<=X<200", ">=200", "no checking"]
        before, after = levels.index(before) + 1, levels.index(after) + 1
    step, ratio = caps.get("max_step", np.inf), caps.get("max_ratio", np.inf)
    return abs(after - before) <= step and max(before, after) <= ratio * min(before, after)


@pytest.fixture(scope="module")
def german():
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=40).fit(table.train.X, table.train.y)
    rows = table.test.X[model.predict(table.test.X) == 0][:30].copy()
    rows[::2, 14:] = np.nan
    return table, People(rows, Background.of(table.train, model))


@pytest.mark.parametrize("name", SEARCHERS)
def test_no_plan_goes_farther_than_the_card_lets_it(german, name, monkeypatch):
    monkeypatch.setattr(cvae, "STEPS", 20)
    monkeypatch.setattr(cvae, "CHECKS", 2)
    table, people = german
    searcher, broken = SEARCHERS[name]().fit(table.train), []
    for caps in (CAPS, {feature: {} for feature in CAPS}):
        background = replace(people.background, schema=capped(table, caps))
        plans = find_recourse(People(people.X, background), searcher, desired_class=1)
        changes = [change for plan in plans for change in plan.changes if change.feature in CAPS]
        assert changes
        broken.append(sum(not within(change, CAPS[change.feature]) for change in changes))
    assert broken[0] == 0
    assert broken[1] > 0, "without the caps some plans would go farther"


def test_a_cap_in_the_way_is_a_reason(german):
    """Whoever would get there with a larger step is told so, and not that nothing helps."""
    table, people = german
    reasons = {}
    for step in (None, 0.5):
        card = capped(table, {"duration": {"max_step": step}})
        frozen = tuple(
            f if f.name == "duration" else replace(f, change="frozen", monotone=None) for f in card
        )
        background = replace(people.background, schema=replace(card, features=frozen))
        plans = find_recourse(People(people.X, background), Nearest(table.train), desired_class=1)
        reasons[step] = plans.legal, [no_plan.reason for no_plan in plans.reasons.values()]
    assert reasons[None][0].any()
    assert not reasons[0.5][0].any()
    told = np.array(reasons[0.5][1])[reasons[None][0]]
    assert (told == "range_too_narrow").all()


def test_the_paper_asks_no_caps(german):
    table, people = german
    background = replace(people.background, schema=capped(table, CAPS))
    paper = Rules(reading="paper")
    plans = find_recourse(People(people.X, background), Nearest(table.train), rules=paper)
    assert any(
        not within(c, CAPS[c.feature]) for p in plans for c in p.changes if c.feature in CAPS
    )
    assert not plans.months.any()


def test_months_grow_with_the_size_of_a_change(german):
    table, people = german
    background = replace(people.background, schema=capped(table, CAPS))
    plans = find_recourse(People(people.X, background), Nearest(table.train), desired_class=1)
    sizes = set()
    for plan in plans:
        sized = {
            c.feature: abs(c.after - c.before)
            for c in plan.changes
            if c.feature in ("duration", "age")
        }
        if sized and {c.feature for c in plan.changes} <= {*CAPS}:
            week = months_of("1 week")
            needed = [
                week * size if name == "duration" else 1 + 2 * size for name, size in sized.items()
            ]
            assert plan.months == pytest.approx(max(needed), abs=1e-3)
            sizes |= {*sized.values()}
    assert len(sizes) > 2
    soon = find_recourse(
        People(people.X, background),
        Nearest(table.train),
        desired_class=1,
        rules=Rules(max_months=1),
    )
    assert len(soon)
    assert all(plan.months <= 1 + 1e-6 for plan in soon)


@settings(max_examples=40, deadline=None)
@given(
    step=st.none() | st.integers(1, 8),
    ratio=st.none() | st.sampled_from([1.25, 1.5, 2.0, 3.0]),
    seed=st.integers(0, 100),
)
def test_what_may_be_proposed_is_what_the_caps_say(step, ratio, seed):
    """Of whole numbers, levels and a code: every pair of values, worked out by hand."""
    random = np.random.default_rng(seed)
    x, level = random.integers(-3, 15, 300), random.integers(0, 5, 300)
    x[:40] = -9
    frame = pd.DataFrame(
        {"x": x, "level": level, "y": np.where(random.random(300) < 0.5, "a", "b")}
    )
    features = (
        edfa.Feature("x", "continuous", codes={"-9": "none"}, max_step=step, max_ratio=ratio),
        edfa.Feature("level", "ordinal", levels=(0, 1, 2, 3, 4), max_step=step),
    )
    table = edfa.Table.from_frame(frame, edfa.Schema(features, "y", "a"), shares=(0.9, 0.05, 0.05))
    background = Background.of(table.train, None)
    actions = ActionSet.of(None, background, table.train.X, background.support)
    for feature in (0, 1):
        codes = np.unique(table.train.X[:, feature])
        numbers = table.encoder.decode_cells(table.schema.names[feature], codes)
        may = actions.permits(feature, codes[:, None], codes[None])
        for i, own in enumerate(numbers):
            for j, new in enumerate(numbers):
                near = step is None or abs(new - own) <= step
                if ratio is not None and feature == 0:
                    near &= min(own, new) > 0 and max(own, new) <= ratio * min(own, new)
                measured = own != -9 or (step is None and (ratio is None or feature == 1))
                assert may[i, j] == (own != new and new != -9 and near and measured), (own, new)


def test_an_instalment_that_follows_stays_affordable():
    """A shorter loan is proposed only as far as its instalment grows by half at most."""
    random = np.random.default_rng(0)
    months, amount = random.integers(6, 61, 2_000), random.integers(5, 100, 2_000) * 100.0
    frame = pd.DataFrame(
        {
            "months": months,
            "amount": amount,
            "instalment": amount / months,
            "y": np.where(months + random.normal(0, 3, 2_000) < 30, "good", "bad"),
        }
    )
    found = {}
    for ratio in (None, 1.5):
        features = (
            edfa.Feature("months", "continuous"),
            edfa.Feature("amount", "continuous", change="down"),
            edfa.Feature("instalment", "continuous", max_ratio=ratio),
        )
        rules = Rules(linked={"instalment": "amount / months"})
        schema = edfa.Schema(features, "y", "good", classes=("bad", "good"), rules=rules)
        table = edfa.Table.from_frame(frame, schema)
        model = edfa.SubsetXGB(n_estimators=30).fit(table.train.X, table.train.y)
        rows = table.test.X[model.predict(table.test.X) == 0][:60]
        people = People(rows, Background.of(table.train, model))
        for kind in (Nearest, SurvivalSearch):
            plans = find_recourse(people, kind(table.train), desired_class=1)
            own, after = (table.encoder.decode(X) for X in (people.X[plans.of], plans.rows()))
            found[kind, ratio] = (after["instalment"] / own["instalment"]).to_numpy()
    for kind in (Nearest, SurvivalSearch):
        assert len(found[kind, 1.5])
        assert found[kind, 1.5].max() <= 1.5 + 1e-3
        assert found[kind, None].max() > 2


KEYS = {"max_step": 2.5, "max_ratio": 3.0, "takes_per_unit": "2 weeks"}


def test_a_card_keeps_them():
    feature = edfa.Feature("x", "continuous", **KEYS)
    schema = edfa.Schema((feature,), "y", "good")
    assert edfa.Schema.from_toml(schema.to_toml()) == schema
    assert edfa.Schema.from_json(schema.to_json()) == schema
    without = edfa.Schema((edfa.Feature("x", "continuous"),), "y", "good").to_json()
    assert not any(key in without for key in KEYS), "an advisor saved before reads the same"
    old = schema.to_toml()
    changed = replace(schema, features=(replace(feature, max_ratio=2, max_step=None),))
    new = changed.update_toml(old)
    assert edfa.Schema.from_toml(new) == changed
    assert "max_step" not in new
    assert (
        "max_ratio" not in edfa.Schema((replace(feature, max_ratio=None),), "y", "good").to_toml()
    )


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("categorical", "max_step", 1, "max_step: a change of category has no size"),
        ("continuous", "max_step", 0, "max_step: the largest change is a positive number, not 0"),
        ("continuous", "max_step", float("nan"), "max_step: the largest change is a positive"),
        ("ordinal", "max_ratio", 2, "max_ratio: only a continuous feature is multiplied"),
        ("continuous", "max_ratio", 0.5, "max_ratio: a number above 1 .*, not 0.5"),
        ("continuous", "max_ratio", float("inf"), "max_ratio: a number above 1"),
        ("ordinal", "takes_per_unit", "1 week", "takes_per_unit: only a continuous .* say takes"),
        ("continuous", "takes_per_unit", "soon", "takes_per_unit: a number of days, weeks"),
    ],
)
def test_a_wrong_cap_is_one_line_that_teaches(kind, key, value, message):
    with pytest.raises(edfa.errors.SchemaError, match=rf"^features\.x\.{message}") as error:
        edfa.Feature("x", kind, levels=(1, 2) if kind == "ordinal" else (), **{key: value})
    assert "\n" not in str(error.value)


def test_a_card_with_a_misspelt_cap_names_the_right_one():
    card = '[target]\nname = "y"\nfavourable = "a"\n[features.x]\nkind = "continuous"\n'
    with pytest.raises(
        edfa.errors.SchemaError, match="max_stop: no such key; did you mean 'max_step'"
    ):
        edfa.Schema.from_toml(card + "max_stop = 2\n")
    with pytest.raises(edfa.errors.SchemaError, match=r"features\.x\.max_ratio: .*number"):
        edfa.Schema.from_toml(card + 'max_ratio = "two"\n')
