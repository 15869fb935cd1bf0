import numpy as np
import pandas as pd
import polars
import pytest
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import Schema, Table
from edfa.data.infer_schema import infer_card, infer_schema
from edfa.errors import ColumnError, TargetError

PEOPLE = pd.DataFrame(
    {
        "customer_id": [f"c{i}" for i in range(40)],
        "age": range(20, 60),
        "income": ["NA", *map(str, range(39))],
        "visits": [0, 1, 2, 3] * 10,
        "gender": ["f", "m"] * 20,
        "late_payments": [0.0, 1.0, None, 2.0] * 10,
        "outcome": ["rejected", "approved"] * 20,
    }
)


def messy(n=400, seed=0):
    """A table as it comes out of a spreadsheet."""
    random = np.random.default_rng(seed)
    income = random.integers(500, 5000, n)
    return pd.DataFrame(
        {
            "row": range(n),
            "income": [f"€{v:,}" if i % 20 else "n/a" for i, v in enumerate(income)],
            "share": [f" {v} %" for v in random.integers(0, 100, n)],
            "applied_on": [f"{d:02d}/03/2021" for d in random.integers(1, 29, n)],
            "risk": random.choice(["low", "medium", "high"], n),
            "employed_for": random.choice(["<1 year", "1-4 years", "4+ years"], n),
            "owner": random.choice(["yes", "no"], n),
            "purpose": random.choice(["car", "home", "?"], n),
            "postcode": random.integers(10000, 10009, n),
            "customer_id": np.where(random.random(n) < 0.1, np.nan, np.arange(n) * 7.0),
            "age": random.integers(18, 80, n),
            "status": np.where(random.random(n) < income / 6000, "paid", "default"),
        }
    )


def test_a_draft_is_a_card_that_works_as_it_is():
    card = infer_card(PEOPLE, "outcome", "approved")
    schema = Schema.from_toml(card)
    table = Table.from_frame(PEOPLE, schema)
    assert table.train.X.shape == (24, 5)
    assert schema.missing == ("NA",)
    assert "customer_id" not in schema.names


def test_guesses_are_marked_for_a_person_to_check():
    card = infer_card(PEOPLE, "outcome", "approved")
    schema = Schema.from_toml(card)
    assert schema.guessed == schema.names
    assert "Left out: customer_id: looks like an identifier" in card
    assert (schema["age"].sensitive, schema["age"].change, schema["age"].per_year) == (
        True,
        "frozen",
        1,
    )
    assert (schema["gender"].kind, schema["gender"].change) == ("categorical", "frozen")
    assert schema["late_payments"].change == "frozen"
    for feature in schema:
        section = card.split(f"[features.{feature.name}]")
        assert section[0].rsplit("\n\n", 1)[1].startswith(f"# guessed: {feature.kind}"), (
            feature.name
        )
        assert "\nguessed = true" in section[1].split("\n\n")[0], feature.name
    assert "25.0% missing" in card
    assert "few values: ordinal, or categorical if they are codes?" in card
    head = card.split("\n\n")[0]
    assert "`guessed = true`" in head
    assert "--accept-guesses" in head


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["rejected", "approved"],
            "which class would a person want, approved, rejected?.*--favourable 'approved'?",
        ),
        (["default", "other"], "--favourable 'other'"),
        (["good", "bad", "ugly"], "--favourable 'good'"),
        (["no", "yes"], "pass --favourable NAME"),
        ([0, 1], "want, 0, 1?.*pass --favourable NAME"),
        (["aaa", "zzz"], "pass --favourable NAME"),
    ],
)
@pytest.mark.parametrize("infer", [infer_card, infer_schema])
def test_the_favourable_class_is_asked_for_and_never_guessed(infer, labels, message):
    table = pd.DataFrame({"x": [1.5, 2, 3] * 10, "y": (labels * 15)[:30]})
    with pytest.raises(TargetError, match=message.replace("?", r"\?", 1)):
        infer(table, "y")


def test_the_favourable_class_must_be_one():
    assert infer_schema(PEOPLE, "outcome", favourable="rejected").favourable == "rejected"
    assert (
        infer_schema(PEOPLE.assign(outcome=[0.0, 1.0] * 20), "outcome", favourable=1).favourable
        == "1"
    )
    with pytest.raises(TargetError, match="never is 'aproved'; did you mean 'approved'"):
        infer_card(PEOPLE, "outcome", favourable="aproved")


@pytest.mark.parametrize("name", ["german", "adult", "taiwan"])
def test_a_draft_of_real_data_finds_the_kinds(name):
    table = edfa.load(name)
    guessed = Schema.from_toml(
        infer_card(table.frame, table.schema.target, table.schema.favourable)
    )
    for feature in guessed:
        kind = table.schema[feature.name].kind
        assert feature.kind == kind or "ordinal" in (kind, feature.kind), feature.name
    assert len(Table.from_frame(table.frame, guessed).train) == len(table.train)


def test_a_draft_needs_an_outcome():
    with pytest.raises(ColumnError, match="did you mean 'outcome'"):
        infer_card(PEOPLE, "outcom", "approved")
    with pytest.raises(TargetError, match="constant"):
        infer_card(PEOPLE.assign(outcome=1), "outcome", "1")
    with pytest.raises(
        TargetError, match="40 different values; an outcome is one of at most 20 classes"
    ):
        infer_card(PEOPLE, "age", "20")
    with pytest.raises(ColumnError, match="no column besides 'outcome'"):
        infer_card(PEOPLE[["customer_id", "outcome"]], "outcome", "approved")


def test_the_schema_alone_is_the_cards():
    assert infer_schema(PEOPLE, "outcome", "approved", title="people") == Schema.from_toml(
        infer_card(PEOPLE, "outcome", "approved", title="people")
    )


def test_strange_characters_in_the_data_do_not_spoil_the_card():
    odd = PEOPLE.assign(gender=["f\x01\u2028\n[x]", "m\x7f\r"] * 20).rename(
        columns={"customer_id": "customer_id\x00"}
    )
    card = infer_card(odd, "outcome", "approved")
    assert Schema.from_toml(card) == infer_schema(odd, "outcome", "approved")
    assert "Left out: customer_id\\x00" in card


@pytest.mark.parametrize("make", [lambda f: f, polars.from_pandas], ids=["pandas", "polars"])
def test_a_messy_table_is_read_as_people_mean_it(make):
    frame = make(messy())
    card = infer_card(frame, "status", "paid")
    schema = Schema.from_toml(card)
    assert {f.name: f.kind for f in schema} == {
        "income": "continuous",
        "share": "continuous",
        "risk": "ordinal",
        "employed_for": "ordinal",
        "owner": "categorical",
        "purpose": "categorical",
        "postcode": "categorical",
        "age": "continuous",
    }
    assert schema.missing == ("?", "n/a")
    assert schema["risk"].levels == ("low", "medium", "high")
    assert schema["employed_for"].levels == ("<1 year", "1-4 years", "4+ years")
    assert schema["owner"].levels == ("no", "yes")
    assert (schema["income"].unit, schema["share"].unit) == ("€", "%")
    assert schema["postcode"].sensitive
    for line in (
        "applied_on: a date; turn it into a number of days or years first.",
        "row: a row number.",
        "customer_id: looks like an identifier",
        "guessed: not recorded, in every column, means '?' or 'n/a'.",
    ):
        assert line in card
    table = Table.from_frame(frame, schema)
    assert table.frame["income"].isna().sum() == 20
    assert table.frame["purpose"].isna().sum() == (messy()["purpose"] == "?").sum()
    assert table.frame["income"].max() == max(
        int(v[1:].replace(",", "")) for v in messy()["income"] if v != "n/a"
    )


def test_directions_come_from_training_people_and_are_guesses():
    frame = messy(3000)
    card = infer_card(frame, "status", "paid")
    schema = Schema.from_toml(card)
    assert {f.name: f.monotone for f in schema if f.monotone} == {"income": "up"}
    assert (
        "guessed from 1,800 training rows: monotone 'up' (rank correlation with 'paid' +0." in card
    )
    assert infer_schema(frame, "status", "default")["income"].monotone == "down"
    train = Table.from_frame(frame, schema)._rows["train"]
    others = ~frame.index.isin(train)
    opposite = frame["income"].mask(others, np.where(frame["status"] == "paid", "€500", "€4,999"))
    changed = infer_card(frame.assign(income=opposite), "status", "paid")
    assert [line for line in changed.splitlines() if "monotone" in line] == [
        line for line in card.splitlines() if "monotone" in line
    ]


def test_a_direction_never_contradicts_how_a_feature_may_change():
    random = np.random.default_rng(0)
    years = random.integers(0, 20, 2000)
    frame = pd.DataFrame(
        {"education_years": years, "y": np.where(random.random(2000) < years / 25, "bad", "good")}
    )
    feature = infer_schema(frame, "y", "good")["education_years"]
    assert (feature.change, feature.monotone) == ("up", None)
    assert infer_schema(frame, "y", "bad")["education_years"].monotone == "up"


def test_three_classes_are_listed_in_their_order_and_are_a_guess():
    frame = messy().assign(status=["medium", "high", "low", "NA"] * 100)
    card = infer_card(frame[frame["status"] != "NA"], "status", "low")
    schema = Schema.from_toml(card)
    assert schema.classes == ("low", "medium", "high")
    assert schema.guessed[0] == "status"
    assert len(Table.from_frame(frame[frame["status"] != "NA"], schema).train.schema.classes) == 3
    with_gaps = infer_schema(frame, "status", "low")
    assert with_gaps.classes == ("low", "medium", "high")
    assert "NA" in with_gaps.missing
    assert "status" not in infer_schema(messy(), "status", "paid").guessed
    assert infer_schema(messy().assign(status=[10, 9, 2, 9] * 100), "status", "2").classes == (
        "2",
        "9",
        "10",
    )


def test_an_outcome_of_plus_and_minus_keeps_both():
    frame = messy().assign(status=["+", "-"] * 200, purpose=["car", "home", "-", "boat"] * 100)
    schema = infer_schema(frame, "status", "+")
    assert "-" not in schema.missing
    assert len(Table.from_frame(frame, schema)) == 400


CELLS = st.one_of(
    st.sampled_from(
        [
            "€1,430",
            "45 %",
            "1,5",
            "€1.430",
            "NA",
            "n/a",
            "-",
            "?",
            "",
            " ",
            "none",
            "unknown",
            "2021-01-31",
        ]
    ),
    st.sampled_from(
        [
            "low",
            "high",
            "yes",
            "no",
            "<1 year",
            "4+ years",
            "rent",
            "own",
            "1",
            "2.5",
            "-3",
            "inf",
            "nan",
        ]
    ),
    st.text(max_size=4),
    st.integers(-(2**40), 2**40),
    st.floats(),
    st.booleans(),
    st.none(),
)
NAMES = st.sampled_from(
    ["age", "postcode", "income", "late", "education", "date", "id", "x", "years_at_job", "name"]
)


@settings(max_examples=some(40), deadline=None)
@given(
    st.dictionaries(NAMES, st.lists(CELLS, min_size=1, max_size=6), min_size=1, max_size=5),
    st.integers(12, 60),
)
def test_whatever_the_table_its_draft_loads_it(columns, n):
    frame = pd.DataFrame({name: (cells * n)[:n] for name, cells in columns.items()})
    frame["status"] = (["paid", "default", "default"] * n)[:n]
    frame["fine"] = [1.5, 2.5, *range(n - 2)]
    card = infer_card(frame, "status", "paid")
    table = Table.from_frame(frame, Schema.from_toml(card))
    assert np.isfinite(table.X).all()
    assert set(table.schema.guessed) == set(table.schema.names)
