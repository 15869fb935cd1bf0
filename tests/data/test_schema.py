import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edfa import Feature, Schema
from edfa.errors import SchemaError, UnknownNameError, UnreadableError

CARD = """
title = "A card"
missing = ["?"]

[target]
name = "class"
favourable = "good"

[features.age]
kind = "continuous"
cost = 0
start = true
sensitive = true
change = "up"
range = [18, inf]
unit = "years"

[features.savings]
kind = "ordinal"
levels = ["none", "some", "much"]
cost = 2
effort = 1.5
"""


def test_a_card_says_everything_about_a_feature():
    schema = Schema.from_toml(CARD)
    age, savings = schema
    assert (age.kind, age.cost, age.start, age.sensitive, age.change) == ("continuous", 0, True, True, "up")
    assert age.range == (18, math.inf)
    assert not age.actionable
    assert (savings.levels, savings.effort, savings.title) == (("none", "some", "much"), 1.5, "savings")
    assert savings.actionable
    assert schema.start == schema.sensitive == ("age",)
    assert schema.costs.tolist() == [0, 2]
    assert (schema.target, schema.favourable, schema.missing) == ("class", "good", ("?",))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'kind = "ordinal"',
            'kind = "ordnal"',
            "features.savings.kind: 'ordnal' is not one of .*; did you mean 'ordinal'",
        ),
        ("start = true", "strat = true", "features.age.strat: no such key; did you mean 'start'"),
        ('change = "up"', 'change = "upp"', "features.age.change: 'upp' is not one of .*; did you mean 'up'"),
        ("cost = 2", 'cost = "two"', "features.savings.cost: .*number.*, not 'two'"),
        ("cost = 2", "cost = -2", "features.savings.cost: a price is zero or more, not -2"),
        ("cost = 2", "cost = nan", "features.savings.cost"),
        ("effort = 1.5", "effort = 0", "features.savings.effort: effort is a positive number"),
        ("range = [18, inf]", "range = [99, 18]", "features.age.range: the first number must be below the second"),
        ("range = [18, inf]", "range = [18]", "features.age.range"),
        ('levels = ["none"', 'levels = ["some"', "features.savings.levels: a level is listed twice"),
        ('levels = ["none", "some", "much"]', "range = [2, 1]", "features.savings.range"),
        ('kind = "continuous"', 'kind = "categorical"', "features.age.(range|change)"),
        ("[target]", "[traget]", r"target: the card has no \[target\] section; did you mean 'traget'"),
        (
            'favourable = "good"',
            'favourable = "good"\nclasses = ["bad", "goood"]',
            "target.favourable: no class 'good'; did you mean 'goood'",
        ),
        ('favourable = "good"', 'favourite = "good"', "target.(favourable: is missing|favourite: no such key)"),
        ('title = "A card"', 'titel = "A card"', "titel: no such key; did you mean 'title'"),
        ('name = "class"', 'name = "age"', "target.name: 'age' is also a feature"),
        ("[target]", "[target", "not a TOML file"),
        ('kind = "continuous"', "", "features.age.kind: is missing"),
    ],
)
def test_a_wrong_card_names_the_key_and_the_nearest_right_one(old, new, message):
    assert old in CARD
    with pytest.raises(SchemaError, match=message) as caught:
        Schema.from_toml(CARD.replace(old, new, 1), where="mine.toml")
    assert str(caught.value).startswith("mine.toml: ")
    assert "\n" not in str(caught.value)


def test_the_constructor_checks_as_the_card_does():
    with pytest.raises(SchemaError, match="did you mean 'continuous'"):
        Feature("age", "continous")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="needs an order"):
        Feature("colour", "categorical", change="up")
    with pytest.raises(SchemaError, match="only numbers can be codes"):
        Feature("colour", "categorical", codes={"-9": "none"})
    with pytest.raises(SchemaError, match="'x' is not a number"):
        Feature("age", "continuous", codes={"x": "none"})
    with pytest.raises(SchemaError, match="described twice"):
        Schema((Feature("a", "continuous"), Feature("a", "continuous")), "y", "good")
    with pytest.raises(SchemaError, match="at least one"):
        Schema((), "y", "good")


def test_an_unknown_feature_is_answered_with_the_nearest():
    schema = Schema.from_toml(CARD)
    with pytest.raises(UnknownNameError, match="no feature named 'saving'; did you mean 'savings'"):
        schema["saving"]
    assert schema["savings"] is schema.features[schema.index("savings")]


def test_a_card_that_cannot_be_read(tmp_path):
    with pytest.raises(UnreadableError, match="cannot read the card"):
        Schema.read(tmp_path / "none.toml")


def test_numbers_as_classes_become_words():
    card = CARD.replace('favourable = "good"', "favourable = 0\nclasses = [0, 1]")
    schema = Schema.from_toml(card)
    assert (schema.favourable, schema.classes) == ("0", ("0", "1"))


words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@st.composite
def features(draw, name):
    kind = draw(st.sampled_from(["continuous", "ordinal", "categorical"]))
    ordered = ["frozen", "up", "down", "free"]
    ranges = st.none() | st.tuples(numbers, numbers | st.just(math.inf)).filter(lambda r: r[0] < r[1])
    levels = draw(st.lists(words, unique=True, max_size=4)) if kind != "continuous" else []
    plain = kind == "continuous"
    return Feature(
        name,
        kind,
        cost=draw(st.floats(0, 1e6)),
        start=draw(st.booleans()),
        sensitive=draw(st.booleans()),
        change=draw(st.sampled_from(ordered if kind != "categorical" else ["frozen", "free"])),
        range=draw(ranges) if plain else None,
        effort=draw(st.none() | st.floats(1e-3, 1e3)),
        label=draw(words),
        unit=draw(words),
        levels=tuple(levels),
        codes=draw(st.dictionaries(st.integers().map(str), words, max_size=2)) if plain else {},
    )


@st.composite
def schemas(draw):
    names = draw(st.lists(words, unique=True, min_size=2, max_size=4))
    return Schema(
        tuple(draw(features(n)) for n in names[1:]),
        target=names[0],
        favourable=draw(words),
        missing=tuple(draw(st.lists(words, max_size=2))),
        title=draw(words),
        notes=tuple(draw(st.lists(words, max_size=2))),
    )


@given(schemas())
def test_cards_and_json_give_the_same_schema_back(schema):
    assert Schema.from_toml(schema.to_toml()) == schema
    assert Schema.from_json(schema.to_json()) == schema


def test_a_card_survives_the_disk(tmp_path):
    schema = Schema.from_toml(CARD)
    schema.write(tmp_path / "card.toml")
    assert Schema.read(tmp_path / "card.toml") == schema


def test_html_escapes_what_a_card_says():
    schema = Schema((Feature("<script>", "continuous", label="<b>"),), "y", "good")
    assert "<script>" not in schema._repr_html_()
    assert "&lt;b&gt;" in schema._repr_html_()
