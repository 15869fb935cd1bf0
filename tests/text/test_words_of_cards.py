"""The seven cards in both languages: each fact has a question, each level words, a German page
nothing English.
"""

import re
from functools import cache

import pytest
from effort import some

import edfa
from edfa.advice.assessment import Decision
from edfa.data.catalog import load_schema
from edfa.text import narrate, phrases
from edfa.text.interview_page import interview_html
from edfa.text.record import InterviewRecord

CARDS = ("german", "adult", "taiwan", "gmsc", "heloc", "acs_income", "diabetes130")
FEW = 20  # longer lists of levels, such as the codes of occupations, need no words
SAME = {  # what is written alike in both languages
    *(
        "China Ecuador England Guatemala Haiti Honduras Iran Japan Korea "
        "Laos Nicaragua Peru Portugal Taiwan"
    ).split(),
    *"Thailand Vietnam normal".split(),
    "El Salvador",
    "Puerto Rico",
}


def levels_of(feature, encoder=None):
    return [
        str(level)
        for level in (feature.levels or (encoder[feature.name].levels if encoder else ()))
    ]


def is_interval(level):
    return bool(phrases.ONE_BOUND.fullmatch(level) or phrases.TWO_BOUNDS.fullmatch(level))


@pytest.mark.parametrize("name", CARDS)
def test_every_feature_has_words_in_both_languages(name):
    schema = load_schema(name)
    assert schema.title_in("de") != schema.title
    assert {schema.outcome(c, "de") for c in schema.classes}.isdisjoint(
        schema.outcome(c) for c in schema.classes
    )
    for feature in schema:
        german, english = feature.translations["de"], feature.said("en")
        assert german.label
        assert german.label != english.label
        assert feature.ask.endswith("?")
        assert german.ask.endswith("?")
        assert bool(german.hint) == bool(feature.hint)
        assert bool(german.reason) == bool(feature.reason)
        assert german.codes.keys() == feature.codes.keys()
        assert not re.search(r"\b(du|dich|dir|dein\w*)\b", f"{german.ask} {german.hint}", re.I)
        for english_words, german_words in (
            (english.ask, german.ask),
            *((english.levels.get(level, level), words) for level, words in german.levels.items()),
        ):
            assert english_words != german_words or english_words in SAME, (
                feature.name,
                english_words,
            )


@pytest.mark.parametrize("name", CARDS)
def test_every_level_of_a_short_list_has_german_words(name):
    for feature in load_schema(name):
        levels = [level for level in levels_of(feature) if not is_interval(level)]
        if feature.words and len(levels) <= FEW:
            assert set(levels) <= feature.said("de").levels.keys(), feature.name


@pytest.mark.parametrize(
    "name", ["german", "adult", "taiwan", "heloc", "acs_income", "diabetes130"]
)
def test_the_levels_that_data_have_are_those_with_words(name, load_real):
    table = load_real(name)
    for feature in table.schema:
        if feature.kind == "continuous":
            continue
        levels = {
            f"{level:g}" if isinstance(level, float) else level
            for level in table.encoder[feature.name].levels
        }
        if feature.words and len(levels) <= FEW:
            missing = {level for level in levels if not is_interval(level)} - feature.said(
                "de"
            ).levels.keys()
            assert not missing, feature.name


@pytest.mark.parametrize("name", CARDS)
def test_reasons_are_noun_phrases_and_bureau_facts_are_marked(name):
    schema = load_schema(name)
    for feature in schema:
        for language in ("en", "de"):
            reason = feature.said(language).reason
            assert reason, feature.name
            assert not reason.endswith((".", "?")), feature.name
            assert not re.search(r"\b(too|zu (hoch|niedrig|kurz|lang))\b", reason), (
                "a direction is the letter's to say"
            )
    bureau = [feature.name for feature in schema if feature.source in ("bureau", "bureau score")]
    assert len(bureau) == {"heloc": len(schema), "gmsc": 6}.get(name, 0)


@cache
def advisor(name):
    table = (
        edfa.load("german")
        if name == "german"
        else edfa.Table.from_frame(adult_rows(), load_schema("adult"))
    )
    return edfa.Advisor(
        predictor=edfa.SubsetXGB(n_estimators=20), threshold="balanced", searcher="nearest"
    ).fit(table)


def adult_rows():
    return edfa.load("adult", cap=2000).frame


ENGLISH = re.compile(
    r"\b(the|of|and|you|your|loan|months?|years?|hours|account|granted|refused|above|below|other|car|rented|own|job|"
    r"Bachelors|Private|Never-married|Exec|spouse|gain|schooling|checking|savings|purpose|duration|not recorded)\b"
)


def german_text(interview):
    sentences = [
        text for section in InterviewRecord(interview).sentences().values() for text in section
    ]
    page = re.sub(r"<style.*?</style>|<[^>]+>", " ", str(interview_html(interview)), flags=re.S)
    return " ".join([*sentences, page, *interview.flags])


@pytest.mark.parametrize("name", ["german", pytest.param("adult", marks=pytest.mark.long)])
def test_a_german_page_has_nothing_english(name, load_real):
    if name == "adult":
        load_real("adult")
    fitted = advisor(name)
    people = fitted.fitted.encoder.decode(fitted.fitted.train.X[:400]).to_dict("records")
    looked_at = 0
    for person in people[:: 400 // some(20)]:
        facts = {k: v for k, v in person.items() if v is not None and v == v}
        held = fitted.interview(
            {n: facts[n] for n in fitted.schema.start if n in facts}, language="de"
        )
        while (question := held.question) is not None and question.feature in facts:
            assert not ENGLISH.search(german_text(held)), ENGLISH.search(german_text(held))
            held.answer({question.feature: facts[question.feature]})
        assert not ENGLISH.search(german_text(held)), ENGLISH.search(german_text(held))
        looked_at += 1
    assert looked_at == some(20)


def test_levels_that_are_numbers_are_said_in_words():
    schema = load_schema("taiwan")
    pay = schema["pay_0"]
    assert [phrases.value(pay, level, "en") for level in (-1, 0.0, 2)] == [
        "“paid in full”",
        "“paid in part and in time”",
        "“2 months late”",
    ]
    assert phrases.bounded(pay, 0, -1, "en") == "“paid in part and in time” or better"
    assert phrases.bounded(pay, 1, -1, "de") == "„1 Monat im Verzug“ oder besser"
    assert phrases.bounded(pay, -2, -1, "en") == "“card not used”", "nothing is below it"
    schooling = load_schema("adult")["education-num"]
    assert phrases.bounded(schooling, 13, 1, "en") == "“bachelor's degree” or higher"
    assert (
        phrases.value(load_schema("heloc")["MSinceMostRecentDelq"], -7, "de")
        == "„keine verspätete Zahlung erfasst“"
    )
    assert phrases.value(load_schema("adult")["hours-per-week"], 1, "de") == "1 Stunde pro Woche"
    told = narrate.decision(Decision(0.3, "1", favourable=False), schema, "de")
    assert "„Zahlungsausfall zu erwarten“" in told
