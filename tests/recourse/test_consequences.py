"""What follows from a plan by itself: time that passes, and formulas; against numbers worked out by
hand.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import edfa
from edfa.data.formula import Formula
from edfa.errors import SchemaError, SettingError
from edfa.people import Background, People
from edfa.recourse import Nearest, Rules, SurvivalSearch, find_recourse
from edfa.recourse.action_set import Consequences

LEVELS = ("school", "college", "degree")


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    n = 1_500
    age, months = random.integers(18, 70, n), random.choice([12, 24, 36, 48, 60], n)
    amount, tenure = random.integers(10, 200, n) * 100.0, random.integers(0, 20, n)
    schooling = random.integers(0, 3, n)
    # Rounded as it is worked out from encoded numbers.
    instalment = amount / months
    score = 0.8 * schooling - instalment / 300 + tenure / 8 - (age > 45) * 1.0
    frame = pd.DataFrame(
        {
            "age": age,
            "amount": amount,
            "months": months,
            "instalment": instalment,
            "tenure": tenure,
            "schooling": np.array(LEVELS)[schooling],
            "y": np.where(score + random.normal(0, 0.3, n) > 0.6, "good", "bad"),
        }
    )
    features = (
        edfa.Feature("age", "continuous", change="frozen", per_year=1),
        edfa.Feature("amount", "continuous"),
        edfa.Feature("months", "continuous"),
        edfa.Feature("instalment", "continuous"),
        edfa.Feature("tenure", "continuous", change="up", per_year=1),
        edfa.Feature("schooling", "ordinal", change="up", levels=LEVELS, takes="24 months"),
    )
    rules = Rules(linked={"instalment": "amount / months"})
    schema = edfa.Schema(features, "y", "good", classes=("bad", "good"), rules=rules)
    return edfa.Table.from_frame(frame, schema)


@pytest.fixture(scope="module")
def people(table):
    model = edfa.SubsetXGB(n_estimators=80).fit(table.train.X, table.train.y)
    rows = table.test.X[model.predict(table.test.X) == 0][:80]
    return People(rows, Background.of(table.train, model))


def decoded(table, rows):
    return table.encoder.decode(rows.astype(np.float32))


@pytest.mark.parametrize("kind", [Nearest, SurvivalSearch])
def test_plans_are_judged_with_all_that_follows(table, people, kind):
    plans = find_recourse(people, kind(table.train), desired_class=1)
    before, after = decoded(table, people.X[plans.of]), decoded(table, plans.rows())
    changed = pd.DataFrame(~np.isnan(plans.to), columns=table.schema.names)
    months = np.zeros(len(plans))
    schooling = {level: i for i, level in enumerate(LEVELS)}
    climbed = after["schooling"].map(schooling) - before["schooling"].map(schooling)
    months = np.maximum(months, np.where(changed["schooling"], 24 * climbed, 0))
    months = np.maximum(
        months, np.where(changed["tenure"], 12 * (after["tenure"] - before["tenure"]), 0)
    )
    assert plans.months == pytest.approx(months, abs=1e-3)
    assert (plans.months > 0).any()
    older = np.minimum(before["age"] + np.floor(months / 12 + 1e-6), table.train.frame["age"].max())
    assert (after["age"] == older).all()
    assert not changed["instalment"].any()
    moved = changed["amount"] | changed["months"]
    assert moved.any()
    due = np.clip(
        after["amount"] / after["months"], *table.train.frame["instalment"].agg(["min", "max"])
    )
    assert after["instalment"][moved].to_numpy() == pytest.approx(due[moved].to_numpy(), rel=1e-3)
    assert (after["instalment"][~moved] == before["instalment"][~moved]).all()
    assert (people.predictor.predict(plans.rows()) == 1).all()


def test_without_them_some_plans_would_fail(table, people):
    """A plan that looks good today is refused once the person is older, or the instalment moves
    along.
    """
    plain = replace(people.background, schema=replace(table.schema, rules=Rules()))
    loose = find_recourse(People(people.X, plain), Nearest(table.train), desired_class=1)
    consequences = Consequences.of(table.schema, table.encoder, table.schema.rules)
    rows, _ = consequences.apply(np.arange(6), people.X[loose.of], loose.to)
    assert (people.predictor.predict(rows) != 1).any()


def test_waiting_can_be_a_plan(table, people):
    only = Rules(only=("tenure",))
    plans = find_recourse(people, Nearest(table.train), desired_class=1, rules=only)
    assert plans.legal.any()
    plan = plans[0]
    (change,) = plan.changes
    assert plan.months == pytest.approx(12 * (change.after - change.before), rel=1e-4)


def test_an_unknown_part_of_a_formula_forbids_the_change(table, people):
    """Whoever does not know the amount cannot say what another duration does to the instalment."""
    rows = people.X.copy()
    rows[:, table.schema.index("amount")] = np.nan
    plans = find_recourse(People(rows, people.background), Nearest(table.train), desired_class=1)
    assert np.isnan(plans.to[:, table.schema.index("months")]).all()
    rows[:, table.schema.index("instalment")] = np.nan  # then there is nothing to move along
    plans = find_recourse(People(rows, people.background), Nearest(table.train), desired_class=1)
    assert (~np.isnan(plans.to[:, table.schema.index("months")])).any()


def test_states_do_not_grow(table):
    consequences = Consequences.of(table.schema, table.encoder, Rules(takes={"amount": "5 years"}))
    facts, to = table.train.X[:3].copy(), np.full((3, 6), np.nan, dtype=np.float32)
    to[:, 1] = table.train.X[3, 1]
    rows, fine = consequences.apply(np.arange(6), facts, to)
    assert fine.all()
    assert (decoded(table, rows)["age"] == np.minimum(decoded(table, facts)["age"] + 5, 69)).all()
    facts[:, 0] = np.nan
    assert np.isnan(consequences.apply(np.arange(6), facts, to)[0][:, 0]).all()


def test_the_paper_reads_nothing_of_it(table, people):
    plans = find_recourse(
        people, Nearest(table.train), desired_class=1, rules=Rules(reading="paper")
    )
    assert plans.consequences is None
    assert (~np.isnan(plans.to[:, table.schema.index("instalment")])).any()
    assert not plans.months.any()


@pytest.mark.parametrize(
    ("linked", "message"),
    [
        (
            {"instalment": "amont / months"},
            "linked.instalment = 'amont / months': no feature named 'amont'",
        ),
        ({"instalment": "amount / months", "amount": "instalment * 2"}, "would follow from itself"),
        ({"instalment": "amount / "}, "not a formula"),
        ({"instalment": "__import__('os').system('true')"}, "only numbers, features"),
        ({"instalment": "amount ** 99"}, "only numbers, features"),
        (
            {"instalment": "(" * 60 + "amount" + ")" * 60 + " + -" + "-" * 80 + "1"},
            "brackets inside brackets",
        ),
        ({"instalment": "2 + 2"}, "names no feature"),
    ],
)
def test_a_wrong_formula_names_its_line(table, linked, message):
    with pytest.raises(
        (SchemaError, SettingError), match=message.replace("(", r"\(").replace("*", r"\*")
    ):
        replace(table.schema, rules=Rules(linked=linked))


def test_formulas_work_out_what_they_say():
    values = {"a": np.array([4.0, 0.0]), "b-c": np.array([2.0, 0.0])}
    assert Formula.of("max(a, 3) * -(`b-c` - 1)")(values).tolist() == [-4.0, 3.0]
    assert Formula.of("round(a / `b-c`) + floor(2.9)")(values)[0] == 4.0
    assert np.isnan(Formula.of("a / `b-c`")(values)[1])
