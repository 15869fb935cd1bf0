import math
import re
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edfa import Feature, Schema
from edfa.data.catalog import NAMES, load_schema
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
    assert (age.kind, age.cost, age.start, age.sensitive, age.change) == (
        "continuous",
        0,
        True,
        True,
        "up",
    )
    assert age.range == (18, math.inf)
    assert not age.actionable
    assert (savings.levels, savings.effort, savings.title) == (
        ("none", "some", "much"),
        1.5,
        "savings",
    )
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
        (
            'change = "up"',
            'change = "upp"',
            "features.age.change: 'upp' is not one of .*; did you mean 'up'",
        ),
        ("cost = 2", 'cost = "two"', "features.savings.cost: .*number.*, not 'two'"),
        ("cost = 2", "cost = -2", "features.savings.cost: a price is zero or more, not -2"),
        ("cost = 2", "cost = nan", "features.savings.cost"),
        ("effort = 1.5", "effort = 0", "features.savings.effort: effort is a positive number"),
        (
            "range = [18, inf]",
            "range = [99, 18]",
            "features.age.range: the first number must be below the second",
        ),
        ("range = [18, inf]", "range = [18]", "features.age.range"),
        ('levels = ["none"', 'levels = ["some"', "features.savings.levels: 'some' is listed twice"),
        ('levels = ["none", "some", "much"]', "range = [2, 1]", "features.savings.range"),
        ('kind = "continuous"', 'kind = "categorical"', "features.age.(range|change)"),
        (
            "[target]",
            "[traget]",
            r"target: the card has no \[target\] section; did you mean 'traget'",
        ),
        (
            'favourable = "good"',
            'favourable = "good"\nclasses = ["bad", "goood"]',
            "target.favourable: no class 'good'; did you mean 'goood'",
        ),
        (
            'favourable = "good"',
            'favourite = "good"',
            "target.(favourable: is missing|favourite: no such key)",
        ),
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
    with pytest.raises(UnreadableError, match=r"there is no file .*none\.toml"):
        Schema.read(tmp_path / "none.toml")


def test_numbers_as_classes_become_words():
    card = CARD.replace('favourable = "good"', "favourable = 0\nclasses = [0, 1]")
    schema = Schema.from_toml(card)
    assert (schema.favourable, schema.classes) == ("0", ("0", "1"))


words = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8)
numbers = st.floats(-1e9, 1e9)


@st.composite
def features(draw, name):
    kind = draw(st.sampled_from(["continuous", "ordinal", "categorical"]))
    ordered = ["frozen", "up", "down", "free"]
    ranges = st.none() | st.tuples(numbers, numbers | st.just(math.inf)).filter(
        lambda r: r[0] < r[1]
    )
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
        codes=draw(st.dictionaries(st.integers(-(10**15), 10**15).map(str), words, max_size=2))
        if plain
        else {},
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


COMMENTED = """\
# Prices are the ones of the May meeting.
title = "A card"  # shown on the page

# Who decides: the credit desk.

[target]
name = "class"
favourable = 1  # repaid in time
classes = [
    0,  # defaulted
    1,  # repaid
]

# asked on the form
[features.age]
sensitive = true  # by law
kind = "continuous"
cost = 2.0  # agreed in May
range = [18, inf]
# to be discussed: months instead?

# --- The bureau ---

# from the report, page 2
[features.score]
kind = "continuous"
start = true  # bought in advance
[features.score.codes]
-9 = "no record"  # most of the young
-8 = "closed"  # rare

# in words
[features.savings]
kind = "ordinal"
levels = [
    "none",
    # less than a wage
    "some",
    "much",  # more than a wage
]  # as on the form
"""
COMMENTS = re.compile("#.*")


def changed(schema, **changes):
    """The schema with some keys of some features changed."""
    return replace(schema, features=tuple(replace(f, **changes.get(f.name, {})) for f in schema))


def test_a_card_with_comments_keeps_them_when_values_change():
    schema = Schema.from_toml(COMMENTED)
    assert schema.update_toml(COMMENTED) == COMMENTED
    new = changed(
        schema,
        age={"cost": 3, "unit": "years", "change": "up"},
        score={"start": False, "codes": {"-9": "nothing", "-7": "new"}},
        savings={"levels": ("none", "little", "some", "much"), "cost": 5},
    )
    new = replace(
        new,
        title="Another",
        favourable="0",
        source="the desk",
        features=(*new.features, Feature("job", "categorical")),
    )
    text = new.update_toml(COMMENTED)
    assert Schema.from_toml(text) == new
    gone = {"# rare"}  # the comment beside the code -8, which is taken out
    assert set(COMMENTS.findall(text)) == set(COMMENTS.findall(COMMENTED)) - gone
    assert (
        text.index("sensitive = true  # by law")
        < text.index("cost = 3  # agreed in May")
        < text.index("[features.score]")
    )
    assert "start = false  # bought in advance" in text
    assert 'title = "Another"  # shown on the page' in text
    assert text.endswith('\n\n[features.job]\nkind = "categorical"\ncost = 1\n')
    assert "    0,  # defaulted" in text, "a list that did not change is not touched"


def test_a_feature_that_is_gone_takes_its_own_comments_only():
    schema = Schema.from_toml(COMMENTED)
    for gone, comments in {
        "age": {
            "# asked on the form",
            "# by law",
            "# agreed in May",
            "# to be discussed: months instead?",
        },
        "score": {
            "# from the report, page 2",
            "# bought in advance",
            "# most of the young",
            "# rare",
        },
        "savings": {"# in words", "# less than a wage", "# more than a wage", "# as on the form"},
    }.items():
        new = replace(schema, features=tuple(f for f in schema if f.name != gone))
        text = new.update_toml(COMMENTED)
        assert Schema.from_toml(text) == new
        assert set(COMMENTS.findall(COMMENTED)) - set(COMMENTS.findall(text)) == comments


def test_comments_move_with_their_feature():
    schema = Schema.from_toml(COMMENTED)
    new = replace(schema, features=schema.features[::-1])
    text = new.update_toml(COMMENTED)
    assert Schema.from_toml(text) == new
    assert set(COMMENTS.findall(text)) == set(COMMENTS.findall(COMMENTED))
    for above, header in (
        ("asked on the form", "age"),
        ("from the report, page 2", "score"),
        ("in words", "savings"),
    ):
        assert f"# {above}\n[features.{header}]" in text


COMPACT = """\
title = \"\"\"
# no comment
[features.none]
# nor this \"\"\"
target = { name = "y", favourable = "good" }  # the outcome

# one line each
[features]
age = { kind = "continuous", cost = 2 }  # years
home.kind = "categorical"  # rent or own
home.cost = 3
"""


def test_other_layouts_of_a_card_are_kept():
    schema = Schema.from_toml(COMPACT)
    new = changed(schema, age={"cost": 4}, home={"cost": 5})
    text = replace(new, favourable="bad").update_toml(COMPACT)
    assert Schema.from_toml(text) == replace(new, favourable="bad")
    expected = COMPACT.replace("cost = 2", "cost = 4").replace("home.cost = 3", "home.cost = 5")
    assert text == expected.replace('"good"', '"bad"')
    for names in (("home", "age"), ("home",), ("age", "new", "home"), ("age", "home", "new")):
        other = replace(
            schema,
            features=tuple(schema[n] if n != "new" else Feature(n, "continuous") for n in names),
        )
        assert Schema.from_toml(other.update_toml(COMPACT)) == other
    dotted = 'features.age.kind = "continuous"\n[target]\nname = "y"\nfavourable = "good"'
    other = replace(
        Schema.from_toml(dotted),
        features=(Feature("age", "ordinal"), Feature("home", "categorical")),
    )
    assert Schema.from_toml(other.update_toml(dotted)) == other


def test_what_cannot_be_updated_is_an_error():
    schema = Schema.from_toml(CARD)
    with pytest.raises(SchemaError, match="not a TOML file"):
        schema.update_toml("[target")
    with pytest.raises(SchemaError, match=r"features.age.kind: is missing"):
        schema.update_toml(CARD.replace('kind = "continuous"', ""))
    scattered = (
        '[target]\nname = "y"\nfavourable = "good"\n[features]\na.kind = '
        '"continuous"\n[features.a.codes]\n-9 = "x"\n'
    )
    with pytest.raises(SchemaError, match="the layout of this card cannot be kept"):
        changed(Schema.from_toml(scattered), a={"cost": 9}).update_toml(scattered)


@given(schemas(), schemas(), st.data())
@settings(deadline=None)
def test_any_card_can_become_any_other(old, new, data):
    assert Schema.from_toml(new.update_toml(old.to_toml())) == new
    kept = data.draw(st.lists(st.sampled_from(old.features), unique_by=lambda f: f.name))
    added = [f for f in new.features if f.name not in (*old.names, old.target)]
    mixed = (
        data.draw(st.permutations([*kept, *added]).filter(len))
        if kept or added
        else list(old.features)
    )
    comments = {name: f"about {i}" for i, name in enumerate(old.names)}
    target = replace(old, features=tuple(mixed))
    text = target.update_toml(old.to_toml(comments))
    assert Schema.from_toml(text) == target
    assert all(
        (f"# about {i}\n" in text) == (name in target.names) for i, name in enumerate(old.names)
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_cards_keep_their_comments(name):
    text = (files("edfa.data") / "cards" / f"{name}.toml").read_text(encoding="utf-8")
    schema = load_schema(name)
    assert schema.update_toml(text) == text
    dearer = replace(
        schema, features=tuple(replace(f, cost=f.cost + 1, label="new") for f in schema)
    )
    updated = dearer.update_toml(text)
    assert Schema.from_toml(updated) == dearer
    assert COMMENTS.findall(updated) == COMMENTS.findall(text)


def test_writing_a_card_back_keeps_its_comments(tmp_path):
    path = tmp_path / "card.toml"
    path.write_text(COMMENTED, encoding="utf-8")
    schema = changed(Schema.read(path), age={"cost": 7})
    schema.write(path)
    assert Schema.read(path) == schema
    assert path.read_text(encoding="utf-8") == COMMENTED.replace("cost = 2.0", "cost = 7")
    assert [p.name for p in tmp_path.iterdir()] == ["card.toml"]
    path.write_text("no card", encoding="utf-8")
    schema.write(path)
    assert Schema.read(path) == schema


def test_numbers_of_numpy_can_be_written():
    feature = Feature(
        "age", "continuous", cost=np.float64(2.5), range=(np.float32(0), np.float64(90))
    )  # type: ignore[arg-type]
    schema = Schema((feature, Feature("n", "ordinal", levels=tuple(np.arange(3)))), "y", "good")
    assert Schema.from_toml(schema.to_toml()) == schema
