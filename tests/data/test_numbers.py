import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edfa import Feature, Schema, Table
from edfa.data.encode import Encoder
from edfa.data.values import parse_number, read_numbers, unit_of
from edfa.errors import ColumnError, FactError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("€1,430", 1430),
        ("1,430.50 €", 1430.5),
        ("-$2.5k", -2500),
        ("$1.2m", 1.2e6),
        (" 12 ", 12),
        ("45%", 45),
        ("(1,430)", -1430),
        ("1'234'567", 1234567),
        ("EUR 20", 20),
        ("1e3", 1000),
        (".5", 0.5),
        ("£\u22127", -7),
    ],
)
def test_numbers_as_people_write_them(text, number):
    assert parse_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        ".",
        "€",
        "1,5",
        "1.430,50",
        "€1.430",
        "12,34,567",
        "12m",
        "(5",
        "12 months",
        "020 123",
        "nan",
        "1-4",
    ],
)
def test_what_could_be_two_numbers_or_none_is_none(text):
    assert parse_number(text) is None


@given(
    st.decimals(min_value=-(10**9), max_value=10**9, places=2),
    st.sampled_from(["{:,}", "€{:,}", "{:,} %", " ${:,} ", "{}"]),
)
def test_a_number_comes_back_from_its_text(number, layout):
    assert parse_number(layout.format(number)) == float(number)


@given(st.text(max_size=12))
def test_any_text_is_a_finite_number_or_none(text):
    number = parse_number(text)
    assert number is None or math.isfinite(number)


def test_a_column_is_read_cell_by_cell():
    column = read_numbers(pd.Series(["€1,430", "7", None, "oops"]))
    assert column.tolist()[:2] == [1430, 7]
    assert column.isna().tolist() == [False, False, True, True]
    assert read_numbers(pd.Series(["€1,430", "7"])).dtype == "int64"
    assert read_numbers(pd.Series(["€1.50", "7"])).dtype == "float64"
    assert unit_of(["€1", "$2", "3 %", "x"]) == ("$", "%", "€")


def test_a_table_a_person_and_a_card_read_the_same_number():
    schema = Schema((Feature("income", "continuous"),), "y", "good")
    frame = pd.DataFrame(
        {"income": ["€1,430", "€2,000", " 900 "] * 4, "y": ["good", "bad", "good"] * 4}
    )
    table = Table.from_frame(frame, schema)
    assert sorted(set(table.frame["income"])) == [900, 1430, 2000]
    encoder = Encoder.fit(table.frame, schema)
    assert encoder.encode_person({"income": "€1,430"}) == encoder.encode_person({"income": 1430})
    with pytest.raises(FactError, match="a number is needed, not '1,4'"):
        encoder.encode_person({"income": "1,4"})
    with pytest.raises(ColumnError, match=r"row 0 says '€1\.430'"):
        Table.from_frame(frame.assign(income="€1.430"), schema)
