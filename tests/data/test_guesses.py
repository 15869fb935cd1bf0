"""What names, values and data suggest to the draft of a card."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edfa.data.guess_direction import guess_direction
from edfa.data.guess_names import guess_from_name
from edfa.data.guess_values import order_of, read_values, yes_or_no


def guess(name, **given_):
    return guess_from_name(name, **({"numeric": True, "ordered": True} | given_))


@pytest.mark.parametrize(
    "name",
    [
        *[
            "postcode",
            "zip_code",
            "First Name",
            "last_name",
            "surname",
            "name",
            "birthplace",
            "place_of_birth",
        ],
        *[
            "nationality",
            "mother tongue",
            "language",
            "disability",
            "isPregnant",
            "native-country",
            "religion",
        ],
        *["sex", "maritalStatus", "age", "applicant_age", "CITY", "customer_name"],
    ],
)
def test_what_must_not_be_offered_is_sensitive(name):
    named = guess(name)
    assert named.sensitive
    assert named.change == "frozen"
    assert named.why.startswith("sensitive")


@pytest.mark.parametrize(
    "name", ["product_name", "usage", "average", "savings", "car_age", "essex", "manager_level"]
)
def test_words_are_not_found_inside_others(name):
    assert not guess(name).sensitive


def test_levels_can_be_sensitive_whatever_the_column_is_called():
    assert guess(
        "personal_status", numeric=False, ordered=False, levels=["male single", "female div"]
    ).sensitive
    assert not guess("status", numeric=False, ordered=False, levels=["open", "closed"]).sensitive


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *(
            (n, "a measurement of a body")
            for n in ("mean radius", "worst texture", "blood_pressure", "BMI")
        ),
        *(
            (n, "what is past")
            for n in (
                "late_payments",
                "NumberOfTimes90DaysLate",
                "previous_loans",
                "credit_history",
            )
        ),
        *(
            (n, "set by others")
            for n in ("credit_score", "limit_bal", "interest_rate", "ExternalRiskEstimate")
        ),
        *((n, "family") for n in ("children", "num_dependents")),
    ],
)
def test_what_nobody_can_move_is_frozen_and_says_why(name, reason):
    named = guess(name)
    assert named.change == "frozen"
    assert not named.sensitive
    assert f"change 'frozen' ({reason})" in named.why


@pytest.mark.parametrize(
    "name", ["income", "duration_months", "installment_rate", "savings", "loan_amount"]
)
def test_what_a_name_says_nothing_about_is_free(name):
    assert guess(name).change == "free"
    assert guess(name).why == ""


@pytest.mark.parametrize(
    ("name", "span", "per_year", "unit"),
    [
        ("age", (18, 90), 1, "years"),
        ("age", (6000, 30000), 0, ""),  # days, perhaps; nothing says so
        ("age_days", (6000, 30000), 365, "days"),
        ("years_at_address", (0, 30), 1, "years"),
        ("tenure_months", (0, 300), 12, "months"),
        ("months_since_last_loan", (0, 99), 12, "months"),
        ("days_employed", (-9000, 0), 0, ""),  # counted backwards
        ("residence_since", (1, 4), 0, ""),
    ],
)
def test_time_passes_by_itself(name, span, per_year, unit):
    named = guess(name, span=span)
    assert (named.change, named.per_year, named.unit) == ("frozen", per_year, unit)
    assert "it grows by itself" in named.why


def test_education_goes_up_where_it_has_an_order():
    assert guess("education_years").change == "up"
    assert guess("education", numeric=False, ordered=False).change == "frozen"


@pytest.mark.parametrize(
    "ordered",
    [
        ("low", "medium", "high"),
        ("None", "Basic", "Advanced"),
        ("never", "rarely", "sometimes", "often", "always"),
        ("small", "medium", "large"),
        ("poor", "fair", "good", "very good", "excellent"),
        ("very_low", "low", "moderate"),
        ("<1 year", "1-4 years", "4-7 years", ">=7 years"),
        ("< 1 year", "1 year", "2 years", "10+ years"),
        ("<0", "0<=X<200", ">=200"),
        ("under 18", "18 to 25", "over 25"),
        ("[0-10)", "[10-20)", "[100-110)"),
        (" 36 months", " 60 months"),
    ],
)
@given(data=st.data())
def test_words_with_an_order_are_put_in_it(ordered, data):
    assert order_of(data.draw(st.permutations(ordered))) == ordered


@pytest.mark.parametrize(
    "levels",
    [
        ["rent", "own"],
        ["low", "high", "blue"],
        ["medium", "moderate"],
        ["A12", "A13"],
        ["S", "M"],
        ["1-4", "1-6"],
        ["low"],
    ],
)
def test_other_words_have_none(levels):
    assert order_of(levels) == ()


def test_yes_and_no_are_two_levels():
    assert yes_or_no(pd.Series(["Yes", "No", None])) == ("No", "Yes")
    assert yes_or_no(pd.Series([True, False])) == ("False", "True")
    assert yes_or_no(pd.Series([1.0, 0.0, None])) == ("0", "1")
    assert yes_or_no(pd.Series(["yes", "no", "maybe"])) == ()
    assert yes_or_no(pd.Series([1, 2])) == ()


def test_gaps_among_numbers_and_among_words():
    numbers = read_values(pd.Series(["€1,430", "n/a", " NA ", "-", "unknown", "7"]))
    assert numbers.column.tolist()[0] == 1430
    assert numbers.column.isna().sum() == 4
    assert (numbers.gaps, numbers.unit) == ({"n/a", " NA ", "-", "unknown"}, "€")
    words = read_values(pd.Series(["rent", "?", "none", "unknown", "  "]))
    assert words.gaps == {"?", "  "}
    assert words.column.dropna().tolist() == ["rent", "none", "unknown"]
    assert read_values(pd.Series(["rent", "-"]), labels=frozenset("-")).gaps == set()


@pytest.mark.parametrize(
    "dates",
    [
        ["2021-01-31", "2020-12-01"],
        ["2021-01-31 10:00", "2020-12-01T11:12:13Z"],
        ["31/01/2021", "1.2.20"],
        ["Jan-2015", "Dec-2014"],
        ["3 March 2020", "12 April 2021"],
        [pd.Timestamp("2021-01-01"), pd.Timestamp("2022-01-01")],
        [pd.Timestamp("2021-01-01", tz="UTC")],
        [pd.Timestamp("2021-01-01").date(), "NA"],
    ],
)
def test_dates_are_left_out_with_the_reason(dates):
    assert (
        read_values(pd.Series(dates)).reason
        == "a date; turn it into a number of days or years first"
    )


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["1.430,50", "20,5"], "read in two ways"),
        (["€1.430", "€20"], "read in two ways"),
        (["€1", "$2"], "different units ($, €)"),
        ([*map(str, range(60)), "oops"], "row 60 says 'oops'"),
        ([[1], [2]], "lists"),
    ],
)
def test_numbers_that_cannot_be_read_are_left_out_with_the_reason(cells, reason):
    assert reason in read_values(pd.Series(cells)).reason


def outcomes(chance, n=4000, seed=0):
    random = np.random.default_rng(seed)
    values = random.uniform(0, 1, n)
    return values, random.random(n) < chance(values)


def test_a_direction_is_guessed_where_the_data_support_one():
    values, good = outcomes(lambda v: 0.2 + 0.5 * v)
    assert guess_direction(values, good).direction == "up"
    found = guess_direction(-values, good)
    assert found.direction == "down"
    assert -0.5 < found.correlation < -0.1
    gaps = np.where(np.arange(len(values)) % 3 == 0, np.nan, values)
    assert guess_direction(gaps, good).direction == "up"


@pytest.mark.parametrize(
    "chance",
    [
        lambda v: 0.4 + 0 * v,  # nothing
        lambda v: 0.2 + 0.5 * np.minimum(v, 2 * (1 - v)),  # rises, falls at the end
        lambda v: 0.1 + 1.5 * (v - 0.3) ** 2,  # a valley: correlated, and still no direction
    ],
)
def test_no_direction_is_guessed_where_there_is_none_or_it_turns(chance):
    assert guess_direction(*outcomes(chance)) is None


@given(st.integers(0, 2**32 - 1), st.integers(2, 200))
def test_a_direction_turns_with_the_values(seed, n):
    values, good = outcomes(lambda v: v, n, seed)
    there, back = guess_direction(values, good), guess_direction(-values, good)
    assert (there is None) == (back is None)
    assert there is None or {there.direction, back.direction} == {"up", "down"}
