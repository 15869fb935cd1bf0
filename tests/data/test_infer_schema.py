import pandas as pd
import pytest

import edfa
from edfa import Schema, Table
from edfa.data.infer_schema import infer_card, infer_schema
from edfa.errors import ColumnError, TargetError

PEOPLE = pd.DataFrame(
    {
        "customer_id": [f"c{i}" for i in range(40)],
        "age": range(20, 60),
        "income": ["NA", *map(str, range(39))],
        "children": [0, 1, 2, 3] * 10,
        "gender": ["f", "m"] * 20,
        "late_payments": [0.0, 1.0, None, 2.0] * 10,
        "outcome": ["rejected", "approved"] * 20,
    }
)


def test_a_draft_is_a_card_that_works_as_it_is():
    card = infer_card(PEOPLE, "outcome")
    schema = Schema.from_toml(card)
    table = Table.from_frame(PEOPLE, schema)
    assert table.train.X.shape == (24, 5)
    assert schema.missing == ("NA",)
    assert "customer_id" not in schema.names


def test_guesses_are_marked_for_a_person_to_check():
    card = infer_card(PEOPLE, "outcome")
    schema = Schema.from_toml(card)
    assert schema.favourable == "approved"
    assert "guessed: which of approved, rejected is good for the person?" in card
    assert "Left out: customer_id: looks like an identifier" in card
    assert (schema["age"].sensitive, schema["age"].change) == (True, "up")
    assert (schema["gender"].kind, schema["gender"].change) == ("categorical", "frozen")
    assert schema["late_payments"].change == "frozen"
    for feature in schema:
        head = card.split(f"[features.{feature.name}]")[0].rsplit("\n\n", 1)[1]
        assert head.startswith(f"# guessed: {feature.kind}"), feature.name
    assert "25.0% missing" in card
    assert "few values: ordinal, or categorical if they are codes?" in card


def test_the_favourable_class_can_be_said():
    assert Schema.from_toml(infer_card(PEOPLE, "outcome", favourable="rejected")).favourable == "rejected"
    with pytest.raises(TargetError, match="never is 'aproved'; did you mean 'approved'"):
        infer_card(PEOPLE, "outcome", favourable="aproved")


@pytest.mark.parametrize("name", ["german", "adult", "taiwan"])
def test_a_draft_of_real_data_finds_the_kinds(name):
    table = edfa.load(name)
    guessed = Schema.from_toml(infer_card(table.frame, table.schema.target))
    for feature in guessed:
        kind = table.schema[feature.name].kind
        assert feature.kind == kind or kind == "ordinal", feature.name
    assert len(Table.from_frame(table.frame, guessed).train) == len(table.train)


def test_a_draft_needs_an_outcome():
    with pytest.raises(ColumnError, match="did you mean 'outcome'"):
        infer_card(PEOPLE, "outcom")
    with pytest.raises(TargetError, match="constant"):
        infer_card(PEOPLE.assign(outcome=1), "outcome")


def test_the_schema_alone_is_the_cards():
    assert infer_schema(PEOPLE, "outcome", title="people") == Schema.from_toml(
        infer_card(PEOPLE, "outcome", title="people")
    )


def test_strange_characters_in_the_data_do_not_spoil_the_card():
    odd = PEOPLE.assign(gender=["f\x01\u2028\n[x]", "m\x7f\r"] * 20).rename(columns={"customer_id": "customer_id\x00"})
    card = infer_card(odd, "outcome")
    assert Schema.from_toml(card) == infer_schema(odd, "outcome")
    assert "Left out: customer_id\\x00" in card
