"""What the page says and reads: two languages alike, honest counts, fields that bring back what
they show.
"""

import string
from dataclasses import fields, replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edfa
from edfa.advice.assessment import Decision
from edfa.data.schema import Feature, FeatureWords, Schema
from edfa.recourse.plans import Change, Plan
from edfa.text import narrate, phrases
from edfa.text.steps import plan_steps
from edfa_serve.forms import UnclearError, make_field, read_fact, read_number
from edfa_serve.view import _row
from edfa_serve.wording import Wording, sentences

TABLE = edfa.load("german")
BARE = dict.fromkeys(field.name for field in fields(Plan)) | {"months": 0.0}
WORDINGS = {language: Wording(TABLE.schema, language) for language in ("en", "de")}
FORBIDDEN = (
    "never matter",
    "whatever it is",
    "whatever they are",
    "score too low",
    "our policy",
    "you will not repay",
)


def placeholders(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_sentences():
    english, german = sentences("en"), sentences("de")
    assert list(english) == list(german)
    assert {k: placeholders(v) for k, v in english.items()} == {
        k: placeholders(v) for k, v in german.items()
    }
    same = [key for key in english if english[key] == german[key]]
    assert set(same) <= {"plans.name"}


@pytest.mark.parametrize("language", ["en", "de"])
def test_nothing_is_said_that_must_not_be(language):
    for text in sentences(language).values():
        assert not any(phrase in text.lower() for phrase in FORBIDDEN), text


def shown(text):
    """The number that a text of out of 100 stands for: less than 1 is 1 at most."""
    bound, _, number = text.rpartition(" ")
    return float(number) + {"less than": -1e-9, "more than": 1e-9}.get(bound, 0.0)


@given(st.floats(0, 1), st.floats(0.01, 0.99))
def test_what_is_refused_never_looks_enough(share, needed):
    decision = Decision(share, "bad", favourable=share >= needed, threshold=needed)
    said = narrate.estimate(decision, TABLE.schema)
    n, m = map(shown, phrases.hundredths(share, needed, "en"))
    assert (n >= m) == (share >= needed)
    assert abs(n / 100 - share) <= 1 / 100
    assert WORDINGS["en"].count(decision).removesuffix(" of 100") in said


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", TABLE.schema.names)
def test_a_field_brings_back_what_it_shows(name, language):
    wording, column = WORDINGS[language], TABLE.encoder[name]
    values = getattr(column, "levels", None) or (column.low, column.high, column.typical)
    for value in values:
        field = make_field(wording, TABLE.encoder, name, known=value)
        sent = field.text or next(choice.value for choice in field.choices if choice.chosen)
        (back,) = read_fact(wording, TABLE.encoder, name, {field.name: sent})
        assert back == value
        again = make_field(wording, TABLE.encoder, name, given={field.name: sent})
        assert again.text == field.text
        assert again.choices == field.choices


@given(st.integers(-(10**9), 10**9), st.integers(0, 99))
def test_numbers_are_read_as_they_are_written(whole, cents):
    number = float(f"{whole}.{cents:02d}")
    for wording in WORDINGS.values():
        assert read_number(wording.number(number), wording, "amount") == number


@pytest.mark.parametrize(
    ("language", "text", "number"),
    [
        ("en", "12,000", 12000),
        ("en", "€12,000", 12000),
        ("de", "12.000,50", 12000.5),
        ("de", "12.000 €", 12000),
        ("de", "1,5", 1.5),
        ("en", "1.5", 1.5),
        ("de", "1.5", 1.5),
        ("en", " 48 ", 48),
    ],
)
def test_numbers_as_people_write_them(language, text, number):
    assert read_number(text, WORDINGS[language], "amount") == number


@pytest.mark.parametrize("text", ["abc", "1,5", "12 months", "9" * 100, "--1", "", "1e", "NaN"])
def test_what_is_no_number_is_asked_for_again(text):
    with pytest.raises(UnclearError, match="Amount: please enter a number"):
        read_number(text, WORDINGS["en"], "Amount")


@pytest.mark.parametrize(
    ("name", "sent", "message"),
    [
        ("duration", "", "please give an answer"),
        ("duration", "500", "from 4 to 72 months"),
        ("duration", "1e999", "please enter a number"),
        ("duration", "-3", "from 4 to 72 months"),
        ("checking_status", "=1000", "choose one"),
        ("checking_status", "<0", "choose one"),
        ("checking_status", "?", "choose one"),
        ("checking_status", "#3", "choose one"),
    ],
)
def test_what_cannot_be_is_asked_for_again(name, sent, message):
    with pytest.raises(UnclearError, match=message):
        read_fact(WORDINGS["en"], TABLE.encoder, name, {f"fact.{name}": sent})


def test_codes_and_not_knowing_are_answers_where_others_gave_them():
    frame = TABLE.frame.assign(
        duration=TABLE.frame["duration"].where(TABLE.frame["duration"] != 24)
    )
    features = tuple(
        replace(f, codes={"-9": "no end"}) if f.name == "duration" else f for f in TABLE.schema
    )
    table = edfa.Table.from_frame(frame, replace(TABLE.schema, features=features))
    wording = Wording(table.schema, "en")
    field = make_field(wording, table.encoder, "duration")
    assert [choice.text for choice in field.choices] == [
        "The number above",
        "no end",
        sentences("en")["field.unknown"],
    ]
    values = [
        read_fact(wording, table.encoder, "duration", {"fact.duration~": c.value})
        for c in field.choices[1:]
    ]
    assert values == [(-9.0,), (None,)]
    assert read_fact(
        wording, table.encoder, "duration", {"fact.duration": "12", "fact.duration~": "?"}
    ) == (12,)


def test_the_card_is_said_in_the_language():
    words = FeatureWords(
        label="Kontostand",
        unit="Mark",
        levels={"no checking": "kein Konto"},
        ask="Wie viel?",
        hint="Ungefähr.",
    )
    features = tuple(
        replace(f, translations={"de": words}) if f.name == "checking_status" else f
        for f in TABLE.schema
    )
    wording = Wording(replace(TABLE.schema, features=features), "de")
    assert wording.value("checking_status", "no checking") == "kein Konto"
    assert wording.value("checking_status", ">=200") == "200 Mark oder mehr"
    field = make_field(wording, TABLE.encoder, "checking_status")
    assert (field.label, field.ask, field.hint) == ("Kontostand", "Wie viel?", "Ungefähr.")
    assert field.choices[-1].text == "kein Konto"


LOOK_ALIKE = {
    "levels": (1000001.0, 1000002.0, 1000003.0),
    "fractions": (0.1234561, 0.1234562),
    "words": ("own", "own ", "own  ", "Own", "0", "0:own"),
}


@pytest.mark.parametrize("name", LOOK_ALIKE)
def test_levels_that_look_alike_are_told_apart(name):
    levels = LOOK_ALIKE[name]
    frame = pd.DataFrame({name: [*levels] * 40, "y": ["good", "bad"] * (20 * len(levels))})
    schema = Schema((Feature(name, "ordinal", levels=levels),), "y", "good")
    table = edfa.Table.from_frame(frame, schema)
    wording, column = Wording(schema, "en"), table.encoder[name]
    field = make_field(wording, table.encoder, name)
    assert len({choice.value for choice in field.choices}) == len(levels)
    for choice, level in zip(field.choices, column.levels, strict=True):
        assert read_fact(wording, table.encoder, name, {field.name: choice.value}) == (level,)
        again = make_field(wording, table.encoder, name, known=level)
        assert [c.value for c in again.choices if c.chosen] == [choice.value]


def test_codes_that_look_alike_are_told_apart():
    feature = replace(TABLE.schema["duration"], codes={"9999997": "no end", "9999998": "not asked"})
    features = tuple(feature if f.name == "duration" else f for f in TABLE.schema)
    table = edfa.Table.from_frame(TABLE.frame, replace(TABLE.schema, features=features))
    wording = Wording(table.schema, "en")
    for code, text in ((9999997, "no end"), (9999998, "not asked")):
        field = make_field(wording, table.encoder, "duration", known=code)
        (chosen,) = (choice for choice in field.choices if choice.chosen)
        assert chosen.text == text
        assert read_fact(wording, table.encoder, "duration", {"fact.duration~": chosen.value}) == (
            code,
        )


def test_a_choice_of_another_card_is_asked_for_again():
    field = make_field(WORDINGS["en"], TABLE.encoder, "checking_status")
    position, _, name = field.choices[0].value.partition(":")
    for sent in (f"{position}:other", f"=1:{name}", f"=99:{name}", position):
        with pytest.raises(UnclearError, match="choose one"):
            read_fact(
                WORDINGS["en"], TABLE.encoder, "checking_status", {"fact.checking_status": sent}
            )


@pytest.mark.parametrize("limits", [None, (0.0, 12345.0)])
def test_text_and_page_round_a_plan_s_numbers_alike(limits):
    amount = Feature("amount", "continuous", unit="EUR", change="up", range=limits)
    schema = Schema((amount,), "y", "good", ("bad", "good"))
    change = Change("amount", 100.0, 12345.0, low=12345.0)
    plan = Plan(**BARE | {"changes": (change,), "unknown": ()})
    (step,) = plan_steps(plan, schema, "en")
    goal = _row(step, Wording(schema, "en")).after
    assert goal == ("12,345 EUR or more" if limits else "12,400 EUR or more")
    assert goal in step.sentence("en")
