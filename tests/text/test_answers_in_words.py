"""Answers as people type them: what is printed is read back, and no number is wrong by a factor of
a thousand.
"""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edfa import Feature
from edfa.data.catalog import load_schema
from edfa.errors import FactError
from edfa.text import phrases
from edfa.text.answers_in_words import choice_keys, parse_answer, words_of

PLAIN = Feature("x", "continuous")
MONEY = Feature("amount", "continuous", unit="EUR")
MONTHS = Feature("duration", "continuous", unit="months")
GERMAN = load_schema("german")
NUMBERS = st.floats(-1e14, 1e14).filter(lambda x: x == 0 or abs(x) > 1e-13) | st.integers(
    -(10**14), 10**14
)


@pytest.mark.parametrize(
    ("text", "language", "number"),
    [
        ("12,000", "en", 12000),
        ("€12,000", "en", 12000),
        ("12 000", "en", 12000),
        ("12\u202f000", "de", 12000),
        ("12'000", "de", 12000),
        ("1,234,567.5", "en", 1234567.5),
        ("12.000,50", "de", 12000.5),
        ("12.000 €", "de", 12000),
        ("EUR 12.000", "de", 12000),
        ("-€50", "en", -50),
        ("\u2212 50", "de", -50),
        ("2.5k", "en", 2500),
        ("2,5k", "de", 2500),
        (",5", "de", 0.5),
        ("1e3", "de", 1000),
    ],
)
def test_numbers_as_people_write_them(text, language, number):
    assert parse_answer(text, MONEY, language) == number


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("12.000", "en"),  # twelve, or twelve thousand
        ("€1.430", "en"),
        ("12,000", "de"),
        ("12,5", "en"),
        ("1.5", "de"),
        ("12.000,50", "en"),
        ("1,234.5", "de"),
        ("0.545", "de"),
        ("1,23,456", "en"),
        ("12 0000", "en"),
        ("12 months", "en"),
        ("45%", "en"),
        ("inf", "en"),
        ("nan", "de"),
        ("1e99", "en"),
        ("twelve", "en"),
        ("--5", "en"),
        ("€", "en"),
    ],
)
def test_what_is_no_number_or_two_is_an_error_in_the_language(text, language):
    with pytest.raises(FactError) as caught:
        parse_answer(text, MONEY, language)
    message = str(caught.value)
    assert phrases.quoted(text, language) in message
    assert re.search(r"\bWrite|larger" if language == "en" else r"\bSchreiben|größer", message)


@given(NUMBERS, st.sampled_from(phrases.LANGUAGES))
def test_what_is_printed_is_read_back(number, language):
    shown = phrases.number(number, language)
    assert parse_answer(shown, PLAIN, language) == float(shown if "e" in shown else number)


@given(st.integers(0, 10**9), st.integers(0, 99), st.sampled_from(phrases.LANGUAGES))
def test_money_that_is_printed_is_read_back(whole, cents, language):
    amount = whole + cents / 100
    assert parse_answer(phrases.value(MONEY, amount, language), MONEY, language) == amount


@given(st.integers(1, 10**6), st.sampled_from(phrases.LANGUAGES))
def test_units_that_are_printed_are_read_back(number, language):
    assert parse_answer(phrases.value(MONTHS, number, language), MONTHS, language) == number


@given(
    st.integers(1, 999),
    st.integers(0, 999),
    st.sampled_from(",."),
    st.sampled_from(phrases.LANGUAGES),
)
def test_no_amount_is_wrong_by_a_factor_of_a_thousand_in_silence(thousands, rest, mark, language):
    """``12.345`` is twelve thousand in the one language; in the other, where it would be twelve, it
    is refused.
    """
    text = f"{thousands}{mark}{rest:03d}"
    if mark == phrases.table(language)["thousands"]:
        assert parse_answer(text, MONEY, language) == 1000 * thousands + rest
    else:
        with pytest.raises(FactError):
            parse_answer(text, MONEY, language)


def test_a_percentage_only_where_one_is_asked_for():
    assert parse_answer("45 %", Feature("burden", "continuous", unit="%"), "de") == 45
    with pytest.raises(FactError, match=r"Write it like this: 0\.45"):
        parse_answer("45 %", PLAIN, "en")


@pytest.mark.parametrize(
    "name", ["german", "adult", "taiwan", "heloc", "acs_income", "diabetes130"]
)
@pytest.mark.parametrize("language", phrases.LANGUAGES)
def test_every_level_is_understood_by_name_words_and_key(name, language):
    for feature in load_schema(name):
        levels = feature.levels
        words = [words_of(feature, level, language) for level in levels]
        assert len(set(words)) == len(words), feature.name
        for level, said, key in zip(levels, words, choice_keys(levels), strict=True):
            assert parse_answer(str(level), feature, language) == level
            assert parse_answer(said.upper(), feature, language) == level
            assert parse_answer(key, feature, language) == level


def test_the_beginning_of_a_level():
    purpose, levels = (
        GERMAN["purpose"],
        ("new car", "used car", "radio/tv", "repairs", "retraining"),
    )
    assert parse_answer("Neu", purpose, "de", levels) == "new car"
    assert parse_answer("RADIO", purpose, "en", levels) == "radio/tv"
    assert parse_answer("2", purpose, "en", levels) == "used car"
    with pytest.raises(FactError, match=r"“re” could be “repairs” or “retraining”"):
        parse_answer("re", purpose, "en", levels)
    with pytest.raises(FactError, match=r"1\) Neuwagen, 2\) Gebrauchtwagen"):
        parse_answer("Boot", purpose, "de", levels)


def test_a_number_among_intervals_is_no_beginning():
    account = GERMAN["checking_status"]
    assert parse_answer("20", account, "en") == "0<=X<200", "and not 200 DM or more"
    assert parse_answer("200", account, "en") == ">=200"
    assert parse_answer("-3", account, "de") == "<0"
    assert parse_answer("3", account, "en") == ">=200", "the key that is printed before it"


def test_codes_by_their_meaning():
    months = load_schema("heloc")["MSinceOldestTradeOpen"]
    assert parse_answer("no bureau record", months, "en") == -9
    assert parse_answer("kein Eintrag bei der Auskunftei", months, "de") == -9
    assert parse_answer("-9", months, "de") == -9


@given(
    st.text(max_size=20),
    st.sampled_from(["duration", "purpose", "employment"]),
    st.sampled_from(phrases.LANGUAGES),
)
def test_any_text_is_an_answer_or_a_fact_error(text, name, language):
    with contextlib.suppress(FactError):
        parse_answer(text, GERMAN[name], language)
