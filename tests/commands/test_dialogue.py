"""The interview in a terminal, with what is typed written down beforehand."""

from functools import cache

import pytest
from advisors import always, begin, held, never, surviving, words

import edfa
from edfa.commands.dialogue import Dialogue
from edfa.text import phrases
from edfa.text.answers_in_words import choice_keys, words_of
from edfa.text.record import InterviewRecord

ASKED = {
    "en": "How many months should the loan run?",
    "de": "Wie viele Monate soll der Kredit laufen?",
}


def hold(interview, *typed):
    """The dialogue, and all that it said, with the prompts; after the last typed line the input
    ends.
    """
    lines, replies = [], iter(typed)

    def ask(prompt):
        lines.append(prompt)
        try:
            return next(replies)
        except StopIteration:
            raise EOFError from None

    dialogue = Dialogue(interview, ask, lambda line, style: lines.append(line))
    dialogue.run()
    assert not list(replies), "everything that was typed was asked for"
    return dialogue, lines


@cache
def early():
    """A test person who may act before the last question, in words, and the facts that lead
    there.
    """
    advisor = surviving()
    for person in words(edfa.load("german")):
        interview = begin(advisor, person)
        while interview.question is not None and not interview.standing.may_act:
            interview.answer({interview.question.feature: person[interview.question.feature]})
        if interview.standing.may_act and interview.question is not None:
            return person, interview
    raise AssertionError("nobody may act early")


@pytest.mark.parametrize("language", phrases.LANGUAGES)
def test_numbers_words_and_keys_are_understood_in_the_language(language):
    purpose, amount = {"en": ("radio", "2,400 DM"), "de": ("Radio", "2.400 DM")}[language]
    dialogue, lines = hold(
        surviving().interview({}, language=language), purpose, amount, "35", "36", "y", "1"
    )
    facts = dict(dialogue.interview.log.facts)
    assert facts["purpose"] == "radio/tv"
    assert (facts["credit_amount"], facts["age"], facts["duration"]) == (2400, 35, 36)
    assert facts["checking_status"] == "<0"
    assert ASKED[language] in lines
    text = "\n".join(lines)
    assert ("Why we ask: " if language == "en" else "Warum wir fragen: ") in text
    assert (
        "Noted: amount of the loan: 2400 DM."
        if language == "en"
        else "Notiert: Höhe des Kredits: 2400 DM."
    ) in text


@pytest.mark.parametrize("language", phrases.LANGUAGES)
def test_every_level_that_is_printed_can_be_typed_by_its_key(language):
    feature, levels = surviving().schema["purpose"], surviving().fitted.encoder["purpose"].levels
    for key, level in zip(choice_keys(levels), levels, strict=True):
        dialogue, lines = hold(surviving().interview({}, language=language), key)
        assert dialogue.interview.log.facts["purpose"] == level
        assert f"  {key}) {words_of(feature, level, language)}" in lines


def test_help_undo_plans_and_enter():
    typed = ["?", "1", ":undo", "2", "", "35", ":plans", "", ":undo", ":stop"]
    dialogue, lines = hold(surviving().interview({}), *typed)
    assert dict(dialogue.interview.log.facts) == {"purpose": "domestic appliance", "age": 35}
    assert dialogue.interview.log.declined == ("credit_amount",), (
        "the second refusal was taken back"
    )
    assert [line for line in lines if ":undo takes the last answer back" in line]
    assert lines.count("What is the loan for?") == 2, "what is taken back is asked again"
    assert lines.count("Your last answer is taken back.") == 2
    assert lines.count("Noted: you would rather not say.") == 2
    assert (
        len(
            [
                line
                for line in lines
                if line.startswith("From what is known") or line.startswith("Good news")
            ]
        )
        >= 2
    )


def test_what_is_not_understood_is_said_and_asked_again():
    dialogue, lines = hold(
        surviving().interview({}), ":undo", "boat", "1", "12.000", "99999999", "-5", "2400"
    )
    assert dict(dialogue.interview.log.facts) == {"purpose": "business", "credit_amount": 2400}
    text = "\n".join(lines)
    assert "There is nothing to take back." in text
    assert "“boat” is none of the answers." in text
    assert "“12.000” could mean two numbers." in text
    assert text.count("This answer cannot be used. A number: 250 to") == 2
    assert "credit_amount" not in text, "no column names"


def test_a_number_at_the_edge_is_said_to_be_taken_so():
    _, lines = hold(surviving().interview({}), "1", "2400", "80")
    assert "age: 80 is above 75, the highest seen; taken as 75." in lines


@pytest.mark.parametrize("language", phrases.LANGUAGES)
def test_who_may_act_is_asked_whether_to_go_on_and_stops_by_default(language):
    person, act = early()
    held = surviving().interview(
        {n: person[n] for n in surviving().schema.start}, language=language
    )
    answers = [
        str(value) for name, value in act.log.facts.items() if name not in surviving().schema.start
    ]
    dialogue, lines = hold(held, *answers, "")
    assert dialogue.interview.standing.may_act
    assert dialogue.interview.question is not None
    assert dialogue.printed == ()
    text = "\n".join(lines)
    assert text.count("[y/N]" if language == "en" else "[j/N]") == 1
    assert held.guarantee in text
    assert (
        "You may act on the first plan now." if language == "en" else "Sie können jetzt nach dem"
    ) in text


@pytest.mark.parametrize(
    ("language", "yes"), [("en", "y"), ("en", "Yes"), ("de", "j"), ("de", "ja")]
)
def test_who_goes_on_keeps_the_promise_as_it_was_printed(language, yes):
    person, act = early()
    start = {n: person[n] for n in surviving().schema.start}
    held = surviving().interview(start, language=language)
    promised = surviving().interview(dict(act.log.facts), language=language)
    before = [str(value) for name, value in act.log.facts.items() if name not in start]
    dialogue, lines = hold(held, *before, yes)
    assert dialogue.printed[-1] == promised.guarantee or promised.guarantee in dialogue.printed
    end = lines[lines.index(phrases.say("dialogue.kept", language)) + 1 :]
    assert tuple(end) == dialogue.printed, "word by word, at the very end"


@pytest.mark.parametrize("language", phrases.LANGUAGES)
@pytest.mark.parametrize("name", ["granted", "act", "nothing"])
def test_who_is_told_an_ending_is_asked_whether_to_go_on(name, language):
    interview = held(always(name), name, language)
    said = InterviewRecord(interview).sentences()
    dialogue, lines = hold(interview, "")
    text = "\n".join(lines)
    assert dialogue.interview.question is not None, "by default nothing more is asked"
    assert interview.guarantee in lines
    for sentence in (*said["decision"], *said["standing"], *said["plans"][:1]):
        assert sentence in text
    key = "dialogue.go_on" if name == "act" else "dialogue.go_on_ending"
    assert phrases.say(key, language) in text
    yes = {"en": "y", "de": "j"}[language]
    _, on = hold(held(always(name), name, language), yes, ":stop")
    kept = "dialogue.kept" if name == "act" else "dialogue.kept_ending"
    end = on[on.index(phrases.say(kept, language)) + 1 :]
    assert end == [*said["plans"][:1], *said["standing"]], "word by word, at the very end"


@pytest.mark.parametrize("language", phrases.LANGUAGES)
@pytest.mark.parametrize("name", ["granted", "act", "nothing"])
def test_before_an_ending_no_verdict_is_told(name, language):
    interview = held(never(), name, language)
    words = phrases.table(language)
    _, lines = hold(interview, ":plans", ":stop")
    text = "\n".join(lines)
    assert words["decision.too_early.other"].partition(";")[0] in text
    for key in ("decision.favourable", "decision.refused"):
        assert words[key].partition("{")[0] not in text
    for key in ("standing.granted", "standing.nothing", "no_plan.already_there"):
        assert words[key] not in text


def test_what_is_known_already_is_not_asked_for():
    facts = {"age": 35, "purpose": "radio/tv", "credit_amount": 2400}
    dialogue, lines = hold(surviving().interview(facts), ":stop")
    assert ASKED["en"] in lines
    assert "First, what is known from the start." not in lines
    assert dict(dialogue.interview.log.facts) == facts


def test_what_must_never_be_asked_is_not():
    overlay = edfa.Overlay(never_ask=("age",))
    dialogue, lines = hold(surviving().interview({}, overlay=overlay), "1", "2400", ":stop")
    assert "How old are you?" not in lines
    assert dialogue.interview.question is not None
