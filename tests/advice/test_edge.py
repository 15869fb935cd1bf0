"""The edge of the known world: what was never seen is taken at the edge and said; only what cannot
be is refused.
"""

import json

import numpy as np
import pandas as pd
import pytest
from advisors import german
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import Advisor, Feature, Interview, Schema
from edfa.advice.batch import advise
from edfa.advice.calibration_people import encode_complete
from edfa.data.encode import Encoder
from edfa.data.partial import encode_partial
from edfa.errors import ColumnError, DataError, FactError

START = {"age": 35, "purpose": "radio/tv", "credit_amount": 2400}
SCHEMA = Schema(
    (
        Feature("size", "continuous", codes={"-9": "not measured"}),
        Feature("shift", "continuous"),
        Feature("rooms", "ordinal"),
        Feature("home", "categorical"),
    ),
    "y",
    "good",
)
TRAIN = pd.DataFrame(
    {
        "size": [20, 40, 60, -9],
        "shift": [-1.0, 0, 2, 3],
        "rooms": [1, 2, 5, 5],
        "home": ["own", "rent", "rent", "own"],
    }
)
ENCODER = Encoder.fit(TRAIN, SCHEMA)


@pytest.mark.parametrize(
    ("name", "told", "kind", "taken"),
    [
        ("size", 61, "above", 60),
        ("size", 100, "above", 60),
        ("size", "100", "above", 60),
        ("size", 0, "below", 20),
        ("shift", -5, "below", -1),
        ("shift", 7.0, "above", 3),
        ("rooms", 9, "above", 5),
        ("rooms", 0, "below", 1),
        ("rooms", 3, "between", 2),
        ("rooms", 3.6, "between", 5),
    ],
)
def test_what_is_slightly_outside_is_taken_at_the_edge(name, told, kind, taken):
    flag = ENCODER[name].find_flag(told)
    assert (flag.kind, flag.taken, flag.told) == (kind, taken, told)
    assert isinstance(flag.taken, int) == (name != "shift")
    assert ENCODER[name].encode_fact(told) == ENCODER[name].encode_one(taken)
    with pytest.raises(FactError):  # rules are not moved
        ENCODER[name].encode_one(told)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("size", 101),
        ("size", -1),
        ("size", -8),
        ("size", "many"),
        ("size", float("inf")),
        ("shift", -6),
        ("shift", 8),
        ("rooms", 10),
        ("rooms", -1),
        ("rooms", "two"),
        ("home", "castle"),
        ("home", None),
        ("size", None),
    ],
)
def test_what_cannot_be_is_refused(name, told):
    with pytest.raises(FactError, match=name):
        ENCODER[name].encode_fact(told)
    with pytest.raises(FactError, match=name):
        ENCODER.encode_person({name: told})


@pytest.mark.parametrize(
    ("name", "told"), [("size", 20), ("size", -9), ("shift", 3), ("rooms", "5"), ("home", "own")]
)
def test_what_was_seen_is_not_flagged(name, told):
    assert ENCODER[name].find_flag(told) is None
    assert ENCODER[name].encode_fact(told) == ENCODER[name].encode_one(told)


@settings(max_examples=some(200))
@given(
    st.lists(
        st.tuples(*[st.none() | st.floats(-40, 140) | st.integers(-40, 140)] * 3),
        min_size=1,
        max_size=6,
    )
)
def test_a_batch_moves_and_refuses_what_single_facts_do(people):
    """And what is moved has the code that a table's own cell would have."""
    frame = pd.DataFrame(people, columns=["size", "shift", "rooms"]).astype(float)
    told = encode_partial(frame, ENCODER, SCHEMA)
    outside = np.column_stack([ENCODER[name].outside(frame[name]) for name in frame.columns])
    for i, row in enumerate(frame.to_dict("records")):
        facts = {name: value for name, value in row.items() if value == value}
        if i in told.errors:
            with pytest.raises(FactError) as refused:
                ENCODER.encode_person(facts)
            assert told.errors[i] == str(refused.value)
            assert i not in told.flags
            continue
        single = ENCODER.encode_person(facts)
        assert np.array_equal(told.X[i], single, equal_nan=True)
        flags = [
            flag for name in facts if (flag := ENCODER[name].find_flag(facts[name])) is not None
        ]
        assert list(told.flags.get(i, ())) == flags
        assert [flag.feature for flag in flags] == [
            n for n, moved in zip(frame.columns, outside[i], strict=True) if moved
        ]
        for name in facts:
            position = SCHEMA.index(name)
            assert single[position] == ENCODER[name].encode(frame[name])[i]


def test_an_interview_takes_the_edge_and_says_so():
    told = german().interview({**START, "age": 80}).answer(checking_status="<0").answer(duration=90)
    edge = german().interview({**START, "age": 75}).answer(checking_status="<0").answer(duration=72)
    assert told.log.facts["age"] == 80
    assert told.log.facts["duration"] == 90
    assert edge.flags == ()
    assert len(told.flags) == 2
    assert "80 is above 75, the highest seen; taken as 75" in told.flags[1]
    assert (told.decision, told.standing, told.plans()) == (
        edge.decision,
        edge.standing,
        edge.plans(),
    )
    receipt = told.receipt(time="then")
    assert receipt.flags == told.flags
    assert receipt.facts["age"] == 80
    assert german().verify(receipt).holds
    assert Interview.from_json(told.to_json(), german()).flags == told.flags
    for page in (told._repr_html_(), receipt._repr_html_()):
        assert "80 is above 75" in page
        assert "80 is above 75" not in edge._repr_html_()
    assert told.undo("duration").flags == told.flags
    assert len(told.flags) == 1
    spoken = german().interview({"age": 80}, language="de")
    assert "80 liegt über 75" in spoken.flags[0]
    assert not [flag for flag in (*spoken.flags, *told.flags) if "\n" in flag]


def test_a_number_as_people_write_it_is_at_the_edge_too():
    held = german().interview({"credit_amount": "€30,000"})
    assert held.flags[0].startswith(german().schema["credit_amount"].title)
    assert "€30,000 is above" in held.flags[0]
    told = advise(german().fitted, pd.DataFrame({"credit_amount": ["€30,000", "2400"]}))
    assert told["flags"].tolist()[0] == held.flags[0]
    assert told["flags"].isna().tolist() == [False, True]


def test_features_that_do_not_matter_are_no_reason_to_refuse_anybody():
    assert not german().fitted.relevant[german().schema.index("housing")]
    odd = {
        "housing": "castle",
        "existing_credits": -3,
        "job": ["two", "jobs"],
        "residence_since": float("inf"),
    }
    plain, told = german().interview(START), german().interview({**START, **odd})
    for held in (plain, told):
        held.answer(checking_status="<0", duration=48)
    assert told.log.facts["housing"] == "castle"
    assert len(told.flags) == 4
    assert [flag for flag in told.flags if "“castle” is not understood; left out" in flag]
    assert (told.decision, told.standing, told.plans()) == (
        plain.decision,
        plain.standing,
        plain.plans(),
    )
    assert Interview.from_json(told.to_json(), german()).receipt(time="t") == told.receipt(time="t")
    assert german().verify(told.receipt()).holds
    assert told.undo().flags == told.flags
    with pytest.raises(FactError, match="checking_status: no level 'castle'"):
        german().interview({"checking_status": "castle"})


def test_a_file_says_what_interviews_say_at_the_edge():
    table = edfa.load("german")
    frame = table.test.frame.head(40).drop(columns="class").astype(object)
    frame.loc[1, "age"], frame.loc[2, "duration"], frame.loc[3, "housing"] = 80, 90, "castle"
    frame.loc[4, "age"], frame.loc[5, "duration"], frame.loc[6, "checking_status"] = (
        -4,
        900,
        "plenty",
    )
    frame.loc[7, ["age", "existing_credits"]] = [15, -1]
    frame.loc[8, "residence_since"] = 77
    frame["job"] = [["two", "jobs"] if i == 9 else job for i, job in enumerate(frame["job"])]
    told = advise(german().fitted, frame)
    assert set(np.flatnonzero(told["error"].notna())) == {4, 5, 6}
    assert set(np.flatnonzero(told["flags"].notna())) >= {1, 2, 3, 7, 8, 9}
    for i, person in enumerate(frame.to_dict("records")):
        if i in (4, 5, 6):
            with pytest.raises(FactError):
                german().interview(person)
            assert told["flags"].isna()[i]
            continue
        held = german().interview(person)
        assert (told["flags"][i] if told["flags"].notna()[i] else "") == "; ".join(held.flags)
        assert told["probability"][i] == held.decision.probability
        assert told["status"][i] == held.standing.status
    few = advise(
        german().fitted, frame[["age", "purpose", "credit_amount", "checking_status", "duration"]]
    )
    fine = told["error"].isna()
    assert few["plans"][fine].equals(told["plans"][fine])


def test_certifying_counts_who_was_moved_and_refuses_what_cannot_be():
    table = edfa.load("german")
    advisor = Advisor(
        predictor=edfa.SubsetXGB(n_estimators=20), threshold="balanced", searcher="nearest"
    ).fit(table)
    people = table.calibration.frame.drop(columns="class")
    outside = [
        advisor.fitted.encoder[n].outside(people[n])
        for n in (*advisor.schema.start, "duration")
        if n != "purpose"
    ]
    moved = int(np.logical_or.reduce(outside).sum())
    assert advisor.certificate.moved == moved
    before = advisor.certificate
    assert advisor.certify(people) == before
    older = people.assign(
        age=people["age"].where(people.index != 5, 80), duration=people["duration"].clip(upper=90)
    )
    count = moved + int(not np.logical_or.reduce(outside)[5])
    certificate = advisor.certify(older)
    assert certificate.moved == count
    assert f"{count} of {len(people)} people have a number that nobody had in training" in " ".join(
        certificate.warnings
    )
    inside = people.assign(age=35, credit_amount=2400, duration=24)
    assert not [warning for warning in advisor.certify(inside).warnings if "nobody had" in warning]
    for name, value, message in (
        ("age", -4, "row 7: age: -4 is outside"),
        ("duration", 900, "row 7: duration: 900 is outside"),
        ("checking_status", "plenty", "row 7: checking_status: no level 'plenty'"),
    ):
        spoilt = people.astype({name: object})
        spoilt.loc[7, name] = value
        with pytest.raises(DataError, match=message):
            advisor.certify(spoilt)
    assert advisor.certify(people.drop(columns="housing").assign(job="king")) == before
    with pytest.raises(ColumnError, match="no column 'duration'"):
        advisor.certify(people.drop(columns="duration"))


def test_gaps_that_training_people_had_are_complete(load_real):
    table = load_real("adult", cap=2_000)
    blanket = edfa.Blanket("income", {"occupation": (), "age": ()})
    blanket = edfa.Blanket(table.schema.target, dict(blanket.units))
    advisor = Advisor(
        predictor=edfa.SubsetXGB(n_estimators=10), blanket=blanket, searcher="nearest"
    ).fit(table)
    people = table.calibration.frame.drop(columns=table.schema.target)
    assert people["occupation"].isna().any()
    relevant = advisor.fitted.relevant
    encoded = encode_complete(people, advisor.fitted).X
    assert np.array_equal(encoded[:, relevant], table.calibration.X[:, relevant])
    assert (
        json.loads(advisor.certificate.to_json())["moved"]
        == encode_complete(people, advisor.fitted).at_edge.sum()
    )
