"""Rules of card and person: no plan breaks one, whatever they are; who has no plan is told which
rule to loosen.
"""

from dataclasses import replace

import numpy as np
import pytest
from advisors import plain_german
from effort import some
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import edfa
from edfa.data.rules import Overlay
from edfa.errors import SchemaError, SettingError
from edfa.people import Background, People
from edfa.recourse import Nearest, Rules, SurvivalSearch, find_recourse

NUMBERS = ("duration", "credit_amount", "existing_credits")
WORDS = ("checking_status", "savings_status", "housing", "other_payment_plans")


@pytest.fixture(scope="module")
def german(table):
    """German credit with a plain card: these are rules of the tests' own."""
    plain = replace(table.schema, rules=Rules())
    features = tuple(
        replace(f, change="free", monotone=None, takes="", per_year=0, range=None)
        if f.name in NUMBERS
        else edfa.Feature(f.name, "categorical", cost=f.cost, start=f.start)
        if f.name in WORDS
        else replace(f, change="frozen", monotone=None, takes="", per_year=0)
        for f in plain.features
    )
    own = edfa.Table.from_frame(table.frame, replace(plain, features=features), seed=0)
    model = edfa.SubsetXGB(n_estimators=60).fit(own.train.X, own.train.y)
    rows = own.test.X[model.predict(own.test.X) == 0][:40].copy()
    rows[::2, 14:] = np.nan
    return own, model, rows, (Nearest(own.train), SurvivalSearch(own.train, n_completions=8))


def levels_of(table, name):
    return sorted(table.frame[name].unique())


@st.composite
def rules(draw, table):
    """Any rules about the numbers and words that may change."""
    numbers, words = st.sampled_from(NUMBERS), st.sampled_from(WORDS)
    forbidden = []
    for name in draw(st.lists(words, max_size=3)):
        level = st.sampled_from([*levels_of(table, name), "*"])
        forbidden.append((name, draw(level), draw(st.sampled_from(levels_of(table, name)))))
    directions = draw(st.dictionaries(numbers, st.sampled_from(["up", "down"]), max_size=2))
    bounds = table.frame[list(NUMBERS)].quantile([0.1, 0.6])
    return Rules(
        locked=tuple(draw(st.lists(words | numbers, max_size=2, unique=True))),
        directions=directions,
        ranges={name: tuple(bounds[name]) for name in draw(st.lists(numbers, max_size=2))},
        levels={
            name: tuple(levels_of(table, name)[:2]) for name in draw(st.lists(words, max_size=1))
        },
        max_changes=draw(st.none() | st.integers(1, 3)),
        max_effort=draw(st.none() | st.floats(0.3, 4)),
        min_probability=draw(st.sampled_from([0.0, 0.55, 0.7])),
        forbidden=tuple(forbidden),
        together=draw(st.sampled_from([(), (("duration", "credit_amount"),)])),
    )


def broken(plan, limits):
    """The rules that a plan breaks, read off its words."""
    if limits.max_changes and len(plan.changes) > limits.max_changes:
        yield "max_changes"
    if limits.max_effort and plan.effort > limits.max_effort + 1e-6:
        yield "max_effort"
    if plan.probability_after < limits.min_probability:
        yield "min_probability"
    for change in plan.changes:
        yield from broken_by(change, limits)


def broken_by(change, limits):
    name, low_high = change.feature, limits.ranges.get(change.feature, (-np.inf, np.inf))
    if name in limits.locked:
        yield f"locked {name}"
    if name in NUMBERS and not low_high[0] <= change.after <= low_high[1]:
        yield f"range of {name}"
    if name in limits.levels and change.after not in limits.levels[name]:
        yield f"levels of {name}"
    if name in limits.directions and (change.after > change.before) != (
        limits.directions[name] == "up"
    ):
        yield f"direction of {name}"
    for feature, old, new in limits.forbidden:
        if feature == name and old in ("*", change.before) and new in ("*", change.after):
            yield f"forbidden {name}"


@settings(
    max_examples=some(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_no_plan_breaks_any_rule(german, data):
    table, model, rows, searchers = german
    card, own = data.draw(rules(table)), data.draw(rules(table))
    try:
        together = card.tighten(own)
    except SettingError:
        return  # the two contradict each other in a direction
    try:
        schema = replace(table.schema, rules=card)
    except SchemaError as error:
        assert "leaves nothing to change" in str(error)  # noqa: PT017
        return
    people = People(rows, replace(Background.of(table.train, model), schema=schema))
    searcher = data.draw(st.sampled_from(searchers))
    plans = find_recourse(people, searcher, rules=own, desired_class=1)
    for plan in plans:
        assert not list(broken(plan, card))
        assert not list(broken(plan, own))
    if together.together:
        pairs = table.train.frame[["duration", "credit_amount"]].to_numpy()
        tenths = [np.quantile(pairs[:, k], np.arange(1, 10) / 10) for k in range(2)]
        cell = lambda values, k: np.searchsorted(tenths[k], values, side="right")  # noqa: E731
        seen = set(zip(cell(pairs[:, 0], 0).tolist(), cell(pairs[:, 1], 1).tolist(), strict=True))
        after = table.encoder.decode(
            np.where(np.isnan(plans.rows()), table.train.X[0], plans.rows())
        )
        touched = ~np.isnan(
            plans.to[:, [table.schema.index(n) for n in ("duration", "credit_amount")]]
        ).all(axis=1)
        near = [
            any(
                (a + i, b + j) in seen for i in (-1, 0, 1) for j in (-1, 0, 1)
            )  # a value at a border is in either tenth
            for a, b in zip(
                cell(after["duration"], 0), cell(after["credit_amount"], 1), strict=True
            )
        ]
        assert np.array(near)[touched].all()
    for row in list(plans.reasons)[:2]:
        check_loosening(german, people, searcher, own, plans.reasons[row], row)


def check_loosening(german, people, searcher, own, reason, row):
    """A reason is always told; where rules are the reason they are named, and loosening them would
    give a plan.
    """
    assert reason.reason
    if reason.reason != "rules":
        return
    assert reason.rules
    assert reason.loosening
    table = german[0]
    free = People(
        people.X[[row]],
        replace(people.background, schema=replace(table.schema, rules=Rules())),
    )
    assert find_recourse(free, searcher, desired_class=1).legal[0]


@pytest.mark.parametrize(
    ("given", "rule", "loosened"),
    [
        ({"max_effort": 0.01}, "max_effort = 0.01", "max_effort"),
        ({"min_probability": 0.97}, "min_probability = 0.97", "min_probability"),
        ({"locked": (*NUMBERS, *WORDS)}, None, None),
        ({"only": ("existing_credits",), "directions": {"existing_credits": "up"}}, None, None),
        (
            {"ranges": dict.fromkeys(NUMBERS, (1e6, 2e6)), "levels": dict.fromkeys(WORDS, ())},
            None,
            None,
        ),
    ],
)
def test_the_rule_in_the_way_is_named(german, given, rule, loosened):
    table, model, rows, (searcher, _) = german
    limits = Rules(**given)
    people = People(rows, Background.of(table.train, model))
    plans = find_recourse(people, searcher, rules=limits, desired_class=1)
    reasons = [reason for reason in plans.reasons.values() if reason.reason == "rules"]
    assert reasons
    for reason in reasons[:5]:
        assert reason.rules
        assert reason.loosening
        if rule:
            assert reason.rules == (rule,)
            assert reason.loosening.startswith(f"{loosened} = ")
    if loosened:
        row = next(row for row in plans.reasons if plans.reasons[row].reason == "rules")
        value = float(plans.reasons[row].loosening.split("=")[1].split(":")[0])
        loose = Rules(**{loosened: value})
        one = People(rows[[row]], people.background)
        assert find_recourse(one, searcher, rules=loose, desired_class=1).legal[0]


def test_wildcards(german):
    table, model, rows, (searcher, _) = german
    people = People(rows, Background.of(table.train, model))
    free = find_recourse(people, searcher, desired_class=1).frame()
    assert ((free["feature"] == "checking_status") & (free["to"] == "no checking")).any()
    closed = Rules(
        forbidden=(("checking_status", "*", "no checking"), ("savings_status", "<100", "*"))
    )
    plans = find_recourse(people, searcher, rules=closed, desired_class=1).frame()
    assert not ((plans["feature"] == "checking_status") & (plans["to"] == "no checking")).any()
    assert not ((plans["feature"] == "savings_status") & (plans["from"] == "<100")).any()


def test_a_person_only_tightens():
    rules = Rules(
        locked=("age",),
        ranges={"x": (0, 10)},
        max_changes=2,
        directions={"x": "up"},
        only=("x", "z"),
    )
    mine = rules.tighten(
        Rules(locked=("z",), ranges={"x": (5, 20)}, max_changes=3, only=("z", "w"))
    )
    assert mine.locked == ("age", "z")
    assert mine.ranges == {"x": (5, 10)}
    assert (mine.max_changes, mine.only, mine.directions) == (2, ("z",), {"x": "up"})
    assert rules.tighten(None) is rules
    with pytest.raises(SettingError, match=r"directions\.x: the rules say 'up'"):
        rules.tighten(Rules(directions={"x": "down"}))
    with pytest.raises(SettingError, match="would loosen"):
        rules.tighten(Rules(reading="paper"))
    nothing = rules.tighten(Rules(ranges={"x": (20, 30)})).ranges["x"]
    assert nothing[0] == float("inf")


def test_a_person_cannot_make_things_easier_than_the_rules_say():
    rules = Rules(max_effort=2, weights={"x": 2})
    assert rules.tighten(Rules(weights={"x": 0.1, "y": 3})).weights == {"x": 2, "y": 3}
    assert Rules(weights={"x": 2}).tighten(Rules(weights={"x": 0.1})).weights == {"x": 0.2}
    for own in ({"takes": {"x": "1 day"}}, {"per_year": {"x": 9}}, {"linked": {"x": "y"}}):
        with pytest.raises(SettingError, match="the operator's to say"):
            Overlay.parse(own)


@settings(max_examples=some(100), deadline=None)
@given(st.data())
def test_tightening_is_what_both_allow(data):
    table = plain_german()
    one, other = (data.draw(rules(table)) for _ in range(2))
    try:
        both = one.tighten(other)
    except SettingError:
        assert any(
            one.directions[n] != other.directions[n]
            for n in one.directions
            if n in other.directions
        )
        return
    for feature in table.schema:
        assert both.may_change(feature) == (one.may_change(feature) and other.may_change(feature))
    assert both.min_probability == max(one.min_probability, other.min_probability)
    for limits in (one, other):
        again = both.tighten(limits)
        assert set(again.forbidden) == set(both.forbidden) == {*one.forbidden, *other.forbidden}
        assert (again.ranges, again.max_changes, again.max_effort) == (
            both.ranges,
            both.max_changes,
            both.max_effort,
        )


@pytest.mark.parametrize(
    ("rules", "line"),
    [
        ({"locked": ("x", "z")}, "rules.locked = ['x', 'z']: leaves nothing to change"),
        ({"only": ()}, "rules.only = []: leaves nothing to change"),
        ({"locked": ("z",), "ranges": {"x": (5, 5)}}, None),
        ({"locked": ("z",), "forbidden": (("x", "*", "*"),)}, "leaves nothing to change"),
        ({"locked": ("x",), "levels": {"z": ()}}, "leaves nothing to change"),
        ({"locked": ("x",)}, None),
    ],
)
def test_a_rule_that_forbids_everything_is_an_error_that_names_it(rules, line):
    features = (
        edfa.Feature("x", "continuous"),
        edfa.Feature("z", "categorical"),
        edfa.Feature("w", "continuous", change="frozen"),
    )
    make = lambda: edfa.Schema(features, "y", "good", rules=Rules(**rules))  # noqa: E731
    if line is None:
        assert make().rules
        return
    with pytest.raises(SchemaError) as error:
        make()
    assert line in str(error.value)


def test_contradictory_directions_name_the_line():
    with pytest.raises(
        SchemaError, match=r"features\.x\.monotone: 'down' is good, but it may only change 'up'"
    ):
        edfa.Feature("x", "continuous", change="up", monotone="down")
    feature = edfa.Feature("x", "continuous", monotone="down")
    with pytest.raises(SchemaError, match=r"rules\.directions\.x: only 'up' is allowed"):
        edfa.Schema((feature,), "y", "good", rules=Rules(directions={"x": "up"}))
