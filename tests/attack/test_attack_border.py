"""One border: a value means the same in CSV, Parquet, JSON lines, data frames and interviews, or is
an error in all.
"""

import csv
import json
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile.answers import any_value, file_values
from hostile.tables import frames
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from edfa import Feature, Schema, Table
from edfa.data.encode import Encoder
from edfa.data.partial import encode_partial
from edfa.data.read import chunks
from edfa.errors import ColumnError, EdfaError, FactError

LOWEST = 0.27384999999999998 + 1e-7
LEVELS = ("01", "1", "1.10", "1.1", "true", "TRUE", "False", "2.0", "9007199254740993", "own")
SCHEMA = Schema(
    (
        Feature("x", "continuous", codes={"-9": "none"}),
        Feature("rooms", "ordinal", levels=(1, 2, 5)),
        Feature("w", "categorical", levels=LEVELS),
        Feature("size", "ordinal", levels=("small", "3", "large")),
    ),
    "y",
    "good",
)
TRAIN = pd.DataFrame(
    {
        "x": [LOWEST, 99.95, 40.0, 50.5] * 5,
        "rooms": [1, 2, 5, 2] * 5,
        "w": list(LEVELS) * 2,
        "size": ["small", "3", "large", "3"] * 5,
    }
)
ENCODER = Encoder.fit(TRAIN, SCHEMA)
FAST = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def outcome(frame, row=0):
    """The code of the only column's value in a row, or "error"."""
    people = encode_partial(frame, ENCODER, SCHEMA)
    if row in people.errors:
        return "error"
    return float(people.X[row, SCHEMA.index(frame.columns[0])])


def told(name, value):
    try:
        return float(ENCODER.encode_person({name: value})[SCHEMA.index(name)])
    except FactError:
        return "error"


def refusal(work, *arguments):
    """What an error of edfa's says; None if there is none."""
    try:
        work(*arguments)
    except EdfaError as error:
        return str(error)
    return None


def as_csv(folder, name, value):
    path = Path(folder) / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[name], [str(value)]])
    return path


def as_json(folder, name, value):
    path = Path(folder) / "people.jsonl"
    path.write_text(json.dumps({name: value}) + "\n", encoding="utf-8")
    return path


def as_parquet(folder, name, value):
    path = Path(folder) / "people.parquet"
    pq.write_table(pa.table({name: pa.array([value])}), path)
    return path


@pytest.mark.parametrize("name", SCHEMA.names)
@FAST
@given(value=file_values.filter(lambda value: value != ""))
@example(value=True)
@example(value=1.0)
@example(value="01")
@example(value="1.10")
@example(value=LOWEST)
@example(value=2**63 + 5)
@example(value="TRUE")
@example(value=-9)
def test_a_value_means_the_same_wherever_it_comes_from(name, value, tmp_path):
    expected = told(name, value)
    ways = {
        "objects": outcome(pd.DataFrame({name: pd.Series([value], dtype=object)})),
        "beside a gap": outcome(pd.DataFrame({name: pd.Series([value, None], dtype=object)})),
        "beside words": outcome(pd.DataFrame({name: pd.Series(["?", value], dtype=object)}), row=1),
    }
    for path in (as_csv(tmp_path, name, value), as_json(tmp_path, name, value)):
        for schema in (SCHEMA, None):
            (frame,) = chunks(path, 10, schema)
            ways[f"{path.suffix} {schema is None}"] = outcome(frame[[name]])
    if not isinstance(value, int) or abs(value) < 2**63:
        (frame,) = chunks(as_parquet(tmp_path, name, value), 10)
        ways["parquet"] = outcome(frame)
    assert ways == dict.fromkeys(ways, expected)


CELLS = {
    "x": st.sampled_from(
        [
            "",
            "5",
            "5.0",
            "1e1",
            " 7 ",
            "€9",
            "nan",
            "inf",
            "abc",
            "150",
            "1e300",
            "-3",
            "120.50",
            "True",
        ]
    ),
    "w": st.sampled_from(["", "01", "1", "1.10", "1.1", "TRUE", "true", "2", "a\nb", 'q"', "own"]),
}


@FAST
@given(
    people=st.lists(st.tuples(CELLS["x"], CELLS["w"]), min_size=1, max_size=8),
    size=st.integers(1, 9),
)
def test_chunks_change_nothing(people, size, tmp_path):
    path = tmp_path / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["x", "w"], *people])
    parts = [encode_partial(frame, ENCODER, SCHEMA) for frame in chunks(path, size, SCHEMA)]
    alone = [encode_partial(pd.DataFrame([p], columns=["x", "w"]), ENCODER, SCHEMA) for p in people]
    np.testing.assert_array_equal(
        np.concatenate([p.X for p in parts]), np.concatenate([p.X for p in alone])
    )
    assert [p.errors.get(i) for p in parts for i in range(len(p.X))] == [
        p.errors.get(0) for p in alone
    ]
    assert [p.flags.get(i) for p in parts for i in range(len(p.X))] == [
        p.flags.get(0) for p in alone
    ]


@FAST
@given(name=st.sampled_from(SCHEMA.names), value=any_value)
def test_any_answer_is_understood_or_refused_in_words(name, value):
    if (message := refusal(ENCODER.encode_person, {name: value})) is None:
        assert math.isfinite(ENCODER.encode_person({name: value})[SCHEMA.index(name)])
    else:
        assert "\n" not in message
        assert len(message) < 400


@FAST
@given(frame=frames(SCHEMA.names))
def test_any_frame_of_people_is_encoded_or_refused_in_words(frame):
    try:
        people = encode_partial(frame, ENCODER, SCHEMA)
    except EdfaError:
        return
    for row in range(len(frame)):
        for name in (name for name in SCHEMA.names if name in frame):
            code = people.X[row, SCHEMA.index(name)]
            assert (
                row in people.errors
                or math.isnan(code)
                or code == told(name, frame[name].astype(object).iloc[row])
            )


@FAST
@given(frame=frames(SCHEMA.names))
def test_nan_never_comes_out_of_an_encoder(frame):
    try:
        encoded = ENCODER.encode(frame)
    except EdfaError:
        return
    assert np.isfinite(encoded).all()


@FAST
@given(frame=frames(["x", "w", "y"]), data=st.data())
def test_any_table_is_taken_or_refused_in_words(frame, data):
    schema = Schema((Feature("x", "continuous"), Feature("w", "categorical")), "y", "good")
    rows = pd.concat([frame] * 4, ignore_index=True).assign(y=["good", "bad"] * (2 * len(frame)))
    try:
        table = Table.from_frame(rows, schema)
    except EdfaError:
        return
    assert np.isfinite(table.X).all()


@pytest.mark.parametrize(
    "far", [9223372036854775813, 1e308, -1e308, 1e200, float("inf"), 1e16, Decimal("1e20")]
)
def test_numbers_that_measure_nothing_are_refused_everywhere(far):
    with pytest.raises(FactError, match=r"beyond 1e\+15|finite number"):
        ENCODER.encode_person({"x": far})
    assert encode_partial(pd.DataFrame({"x": [far, 5]}), ENCODER, SCHEMA).errors.keys() == {0}
    frame = TRAIN.assign(x=[far] * 20, y=["good", "bad"] * 10)
    with pytest.raises(ColumnError, match=r"'x' is (infinite|.*beyond)"):
        Table.from_frame(frame, SCHEMA)


@pytest.mark.parametrize(
    "dtype", ["Int64", "Float64", "int64[pyarrow]", "double[pyarrow]", "object", "category"]
)
def test_a_null_of_any_data_type_is_a_gap(dtype):
    column = pd.Series([None if i % 4 == 3 else i for i in range(20)], dtype="Int64")
    frame = TRAIN.assign(x=column.astype(dtype), y=["good", "bad"] * 10)
    table = Table.from_frame(frame, SCHEMA)
    assert table.frame["x"].isna().tolist() == [i % 4 == 3 for i in range(20)]
    people = encode_partial(frame[["x"]].head(8), ENCODER, SCHEMA)
    assert np.isnan(people.X[[3, 7], 0]).all()


def test_words_that_only_look_alike_stay_apart():
    """Levels 01 and 1, 1.10 and 1.1, true and TRUE, and numbers of 16 digits."""
    codes = [told("w", level) for level in LEVELS]
    assert codes == list(range(len(LEVELS)))
    assert told("w", 9007199254740993) == LEVELS.index("9007199254740993")
    assert told("w", "9007199254740992") == "error"
    assert told("w", True) == "error"  # true or TRUE?
    assert told("w", False) == LEVELS.index("False")
    assert told("w", 2) == LEVELS.index("2.0")


def test_the_ends_of_the_range_can_be_told_back(tmp_path):
    assert told("x", LOWEST) == told("x", repr(LOWEST)) == told("x", f"{LOWEST:g}")
    path = as_json(tmp_path, "x", LOWEST)
    (frame,) = chunks(path, 10, SCHEMA)
    assert not encode_partial(frame, ENCODER, SCHEMA).errors
    constant = Encoder.fit(TRAIN.assign(x=LOWEST), SCHEMA)
    for number in (LOWEST + 1e-9, LOWEST - 1e-3):
        try:
            constant.encode_person({"x": number})
        except FactError as error:
            value, low = str(error).removeprefix("x: ").split(" is outside ")
            assert float(value) != float(low.split(" to ")[0])


@pytest.mark.parametrize(
    "answer", [Path("own"), ["own"], {"own": 1}, np.array(["own"]), b"own", 1j]
)
def test_an_answer_that_is_no_word_is_refused(answer):
    with pytest.raises(FactError, match="w: a word is needed"):
        ENCODER.encode_person({"w": answer})


@pytest.mark.parametrize("answer", [Decimal("40"), np.array(40), np.float32(40), np.int8(40), "40"])
def test_a_number_of_any_make_is_a_number(answer):
    assert told("x", answer) == told("x", 40.0)


def test_levels_that_are_the_same_word_are_refused():
    from edfa.errors import SchemaError

    with pytest.raises(SchemaError, match="'1' is listed twice"):
        Feature("w", "categorical", levels=(1, "1"))
    with pytest.raises(SchemaError, match="write true as a text"):
        Schema.from_toml(
            '[target]\nname = "y"\nfavourable = "a"\n[features.w]\nkind = '
            '"categorical"\nlevels = [true, "a"]\n'
        )
