"""Sentences: every key in both languages, every place filled, nothing promised or suggested that
must not be.
"""

import re
from dataclasses import fields, replace
from decimal import Decimal
from functools import cache
from itertools import product
from string import Formatter
from typing import get_args

import numpy as np
import pytest
from advisors import with_endings
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import Blanket, Feature, Overlay, Rules, Schema
from edfa.advice.assessment import Decision, Question, QuestionReason
from edfa.advice.interview import Interview
from edfa.advice.standing import DEVIATIONS, Standing, Status
from edfa.certification.certificate import Certificate
from edfa.certification.endings import LOSS_OF, EndingName
from edfa.certification.records import Reference
from edfa.certification.risk_curve import Target
from edfa.commands.dialogue import Dialogue
from edfa.data.encode import Flag, FlagKind
from edfa.errors import FactError, UnknownNameError
from edfa.explanation.necessity import Support, sweep
from edfa.explanation.partition import Person, explain
from edfa.explanation.statements import statements
from edfa.recourse.plans import Change, NoPlan, Plan
from edfa.recourse.plans import Reason as NoPlanReason
from edfa.text import narrate, phrases
from edfa.text.answers_in_words import parse_answer
from edfa.text.flags import flag_sentence
from edfa.text.interview_page import interview_html
from edfa.text.limits import in_words, is_among
from edfa.text.record import InterviewRecord

LANGUAGES = phrases.LANGUAGES
SCHEMA = edfa.load("german").schema
CERTIFICATE = Certificate(
    "certified", 0.2, 0.05, "cp", "all", 210, 200, tau=0.1, risk=0.1, bound=0.2
)
BARE = dict.fromkeys(f.name for f in fields(Plan)) | {
    "changes": (),
    "unknown": (),
    "valid": True,
    "months": 0.0,
}
PLAN = Plan(**BARE | {"reached": "good", "probability_before": 0.43, "probability_after": 0.61})


@cache
def small_advisor(loss="let_down"):
    model = edfa.SubsetXGB(n_estimators=20)
    return edfa.Advisor(
        blanket="eamb", predictor=model, threshold="balanced", reference="trajectory_end", loss=loss
    ).fit(edfa.load("german"))


SAFE = {"age": 60, "purpose": "used car", "credit_amount": 1000}
RISKY = {"age": 22, "purpose": "new car", "credit_amount": 12000}


def told(facts, language="en", overlay=None, **tau):
    """An interview that begins with these facts, with an advisor of three endings whose
    certificates are made up.
    """
    fitted = with_endings(small_advisor("in_vain").fitted, **tau)
    return Interview(fitted, language=language, overlay=overlay).begin(facts)


def interviews(advisor, language):
    """An interview that begins, one in which something was declined, and one at its end."""
    facts = {"age": 35, "purpose": "radio/tv", "credit_amount": 2400, "duration": 36}
    yield advisor.interview({}, language=language)
    yield advisor.interview(facts, language=language).decline("employment").answer(housing="own")
    rest = {
        "checking_status": "<0",
        "employment": "<1",
        "credit_history": "existing paid",
        "foreign_worker": "yes",
    }
    complete = advisor.interview(facts, language=language)
    while complete.question:
        complete.answer({complete.question.feature: rest[complete.question.feature]})
    yield complete


def places(entry):
    return sorted(name for _, name, _, _ in Formatter().parse(entry) if name)


def plan_of(*changes, **rest):
    return replace(PLAN, changes=changes, l0=len(changes), **rest)


# The string table


def partition(person, schema, language="en", **about):
    """All that is said of a partition."""
    alone = narrate.single_facts(person, schema, language, **about)
    return [*alone.values(), *narrate.together(person, schema, language)]


def test_both_languages_have_the_same_keys_and_places():
    english, german = (phrases.table(language) for language in LANGUAGES)
    assert english.keys() == german.keys()
    for key, entry in english.items():
        # One thing may be told without its number.
        if isinstance(entry, str) and not key.endswith(".one"):
            assert places(entry) == places(german[key]), key
        assert all(german[key]), key


def test_german_says_sie():
    for key, entry in phrases.table("de").items():
        assert not re.search(r"\b(du|dich|dir|dein\w*|euch|euer\w*)\b", str(entry), re.I), key


def test_an_unknown_language_is_an_error_that_knows_the_others():
    with pytest.raises(UnknownNameError, match="known: en, de"):
        narrate.standing(Standing("act"), "fr")


def everything(language):
    """Every function over every choice it has."""
    for favourable, threshold in product((True, False), (None, 0.5)):
        yield narrate.decision(Decision(0.4996, "bad", favourable, threshold), SCHEMA, language)
    yield narrate.decision(Decision(0.7, "bad", False, 0.7), SCHEMA, language)
    yield narrate.decision(Decision(0.25, "bad", False, cases=32), SCHEMA, language)
    for why, left in product(get_args(QuestionReason), (1, 4)):
        question = Question(
            "duration",
            2.0,
            4.0,
            why,
            "checking_status",
            ("savings_status",),
            0.31,
            0.58,
            left,
            low=4,
            high=72,
        )
        yield narrate.question(question, SCHEMA, language)
        yield narrate.answers(question, SCHEMA, language)
    yield narrate.question(Question("age", 0.0, 0.0, "survival"), SCHEMA, language)
    first = Question("age", 0.0, 0.0, "survival", survival_now=0.0, survival_then=0.4)
    yield narrate.question(first, SCHEMA, language)
    yield narrate.answers(
        Question("employment", 1, 0, "head", choices=SCHEMA["employment"].levels), SCHEMA, language
    )
    one = Change("duration", 24, 12, 8, 14)
    two = Change("savings_status", "<100", ">=1000")
    yield narrate.plan(plan_of(one), SCHEMA, language)
    yield narrate.plan(LASTING, SCHEMA, language)
    yield narrate.plan(
        plan_of(one, two, unknown=("age",), survival=0.9, survival_error=0.05), SCHEMA, language
    )
    yield narrate.plan(
        plan_of(one, two, unknown=("age",), inlier=False, invalidation=0.3, valid=False),
        SCHEMA,
        language,
    )
    yield narrate.plan(plan_of(two, unknown=("age", "housing")), SCHEMA, language)
    yield narrate.plan(plan_of(two, Change("age", 30, None)), SCHEMA, language)
    yield from every_plan(language)
    parts = {
        "housing": "not_known",
        "job": "blocked",
        "employment": "not_decisive",
        "existing_credits": "not_decisive",
    }
    person = Person(
        {"duration": 0.3, "age": 0.9}, parts, ("own_telephone", "purpose"), {"purpose": 0.1}
    )
    yield from partition(person, SCHEMA, language)
    yield from partition(person, SCHEMA, language, planned=("duration",))
    two = replace(person, alterfactual=("own_telephone", "residence_since"))
    yield from partition(two, SCHEMA, language, blanket=Blanket("class", {"duration": ("job",)}))
    for certificate in (*certificates(), *promises()):
        yield narrate.certificate(certificate, language)
        yield certificate.words(language)
    for early in (
        replace(CERTIFICATE, asked=False),
        replace(CERTIFICATE, risk=0.0, bound=1.0, loss="let_down"),
        replace(CERTIFICATE, risk=0.0, bound=1.0, loss="missed"),
    ):
        yield replace(early, target="early", status="data_limited", tau=None).words(language)
    yield from (
        narrate.certificate(CERTIFICATE, language, made_for=whom) for whom in ("known", "wishes")
    )
    ruled = replace(CERTIFICATE, rules=("max_changes = 1", "locked: purpose"))
    yield from (narrate.certificate(ruled, language), ruled.words(language))
    yield replace(CERTIFICATE, model="HistGradientBoostingClassifier, distilled").words(language)
    flags = [Flag("age", kind, 80, 75) for kind in get_args(FlagKind)]
    yield from (flag_sentence(flag, SCHEMA, language) + "." for flag in flags)
    yield from (flag_sentence(flag, SCHEMA, language, as_given=True) + "." for flag in flags)
    for status, more in (
        ("undefined", None),
        ("risk_limited", None),
        ("data_limited", None),
        ("data_limited", 7),
    ):
        yield replace(CERTIFICATE, status=status, n_more=more, tau=None).words(language)
    yield from (
        narrate.standing(Standing(status, since=2, deviations=DEVIATIONS), language)
        for status in get_args(Status)
    )
    yield narrate.standing(Standing("off_path", deviations=("order",)), language)
    yield from endings(language)
    yield from partition(
        Person({"duration": 0.3}, {"job": "not_decisive"}, (), {}),
        SCHEMA,
        language,
        favourable=True,
    )
    for unit, amount in product(
        ("years", "months", "weeks", "days", "hours", "hours a week", "people"), (1, 2)
    ):
        yield phrases.value(Feature("x", "continuous", unit=unit), amount, language) + "."
    for level in ("<1", "<=1", ">1", ">=1", "1<=X<2"):
        yield phrases.value(Feature("x", "categorical"), level, language) + "."
    yield narrate.ask("x", Schema((Feature("x", "continuous"),), "y", "good"), language)
    yield from typed_in_vain(language)
    yield from a_dialogue(language)
    burden = Feature("x", "ordinal", levels=(0, 1, 2), codes={"1": "some"}, monotone="down")
    yield phrases.bounded(burden, 1, -1, language) + "."
    yield from (phrases.say(f"page.{name}", language) + "." for name in ("needed", "asked"))
    for shares in ((0.2,), (0.002,)):
        yield phrases.cases(language, *shares)[0] + "."
    yield from (phrases.percent(p, language) + "." for p in (1e-9, 1 - 1e-9))
    yield (
        phrases.listed(list("abcdef"), language)
        + "."
        + phrases.listed(list("abcdefg"), language, "or", 7)
        + "."
    )
    yield phrases.listed(list("abcdef"), language, max_listed=6) + "."
    yield from german_statements(language)


def endings(language):
    """Whatever is said of the three endings only."""
    decision = Decision(0.4, "bad", favourable=False, threshold=0.5)
    for left in (1, 4):
        yield narrate.too_early(decision, left, SCHEMA, language)
        yield from narrate.conditions(("age",), ("age",), left, SCHEMA, language)
        yield from narrate.conditions((), ("age", "housing"), left, SCHEMA, language)
        yield from narrate.conditions((), (), left, SCHEMA, language)
    for status, ending, left in product(get_args(Status), get_args(EndingName), (0, 1, 4)):
        standing = Standing(status, ending, promised=status == ending, deviations=DEVIATIONS)
        yield narrate.standing(standing, language, left=left)
    for contact in ("", "Ms Example, 555 0100"):
        yield from narrate.come_again(("age",), SCHEMA, language, contact)
    for loss, target, reference in product(LOSS_OF.values(), ("early", "act"), get_args(Reference)):
        made = replace(
            CERTIFICATE,
            loss=loss,
            target=target,
            reference=reference,
            family_delta=0.1,
            include_last_step=target == "early",
        )
        yield narrate.certificate(made, language)
        yield made.words(language)
        yield replace(made, status="undefined", tau=None).words(language)
    granted = told(SAFE, language, granted=1.0)
    replies, lines = iter(["y", ":stop"]), []
    Dialogue(granted, lambda prompt: next(replies), lambda line, style: lines.append(line)).run()
    yield from (re.sub(r"[?:]$", ".", line) for line in lines if line and not line.startswith("  "))


def typed_in_vain(language):
    """Whatever an answer that is not understood is told."""
    amount, home = (
        Feature("x", "continuous", unit="EUR"),
        Feature("y", "categorical", levels=("aa", "ab")),
    )
    grouped = {"en": "12.000", "de": "12,000"}[language]
    for feature, text in (
        (amount, "many"),
        (amount, grouped),
        (amount, "1e99"),
        (home, "a"),
        (home, "c"),
    ):
        with pytest.raises(FactError) as caught:
            parse_answer(text, feature, language)
        yield str(caught.value)
    with pytest.raises(FactError) as caught:
        parse_answer("45 %", replace(amount, unit=""), language)
    yield str(caught.value)


def a_dialogue(language):
    """The dialogue's sentences: asked for help, taken back, answered wrongly, gone on although one
    may act.
    """
    typed = [":undo", "?", "7", ":undo", "7", "-5", "2400", "35", ":plans", "36", "y", "", ":stop"]
    lines, replies = [], iter(typed)
    held = small_advisor().interview({}, language=language)
    dialogue = Dialogue(held, lambda prompt: next(replies), lambda line, style: lines.append(line))
    dialogue.run()
    dialogue.printed = ("So.",)
    dialogue.summarise()
    dialogue._ask = lambda prompt: "n"
    assert not dialogue._goes_on()
    yield from (re.sub(r"[?:]$", ".", line) for line in lines if line and not line.startswith("  "))


def every_plan(language):
    """Plans with all that can be known of one, and every reason for none."""
    for change, months in product((*OPEN_CHANGES, *WAITING), (0, 24)):
        yield narrate.plan(plan_of(change, months=months), SCHEMA, language)
    for changes in FARTHER:
        yield narrate.plan(plan_of(*changes, months=24, survival=0.9), SCHEMA, language)
    for known in (plan_of(OPEN_CHANGES[0]), plan_of(OPEN_CHANGES[0], OPEN_CHANGES[3])):
        yield narrate.plan(replace(known, survival=1.0), SCHEMA, language)
        yield narrate.plan(replace(known, survival=0.3), SCHEMA, language)
    for months, support, share in ((0.1, 0, None), (1, 1, 1.0), (30, 120, 0.85)):
        plan = plan_of(OPEN_CHANGES[0], months=months, support=support, support_share=share)
        yield narrate.plan(plan, SCHEMA, language)
    for reason in get_args(NoPlanReason):
        yield narrate.no_plan(NoPlan(0, 0, 0, reason, ("age", "housing")), SCHEMA, language)
    for rule in RULES:
        no_plan = NoPlan(0, 0, 0, "rules", rules=(rule, rule), loosening="max_changes = 2")
        yield narrate.no_plan(no_plan, SCHEMA, language, operator=Rules())
        no_plan = replace(no_plan, rules=(rule,))
        yield narrate.no_plan(no_plan, SCHEMA, language, operator=Rules())
    yield InterviewRecord(Menu(language, 1)).sentences()["plans"][0]


def german_statements(language):
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    names = (
        "checking_status",
        "duration",
        "credit_amount",
        "age",
        "employment",
        "purpose",
        "residence_since",
    )
    blanket = Blanket("class", dict.fromkeys(names, ()) | {"housing": ("job",)})
    rows = np.where(
        [n not in ("housing", "savings_status") for n in table.schema.names],
        table.test.X[:60],
        np.nan,
    )
    rows = rows.astype(np.float32)
    aligned, support = (
        edfa.predictors.align(model, [table.schema.index(n) for n in blanket.features]),
        Support.of(table.train.X),
    )
    partition = explain(rows, aligned, support, table.schema.names, blanket)
    for person in statements(
        sweep(rows, aligned, support), partition, table.schema, table.encoder, language
    ):
        yield from (statement.text for statement in person)


def certificates():
    for target, reference, group in product(get_args(Target), get_args(Reference), (None, "small")):
        yield replace(CERTIFICATE, target=target, reference=reference, group=group)


def promises():
    limits = ((None, "survival"), (0.5, "survival"), (0.4, "plan"))
    for target, reference, alpha, (ceiling, signal) in product(
        get_args(Target), get_args(Reference), (0.2, 0.15), limits
    ):
        yield replace(
            CERTIFICATE,
            target=target,
            reference=reference,
            alpha=alpha,
            ceiling=ceiling,
            signal=signal,
            include_last_step=target == "early",
            loss="let_down",
            wasted=0.3,
            rules=("x",),
        )


OPEN_CHANGES = (
    Change("duration", 48, 36, None, 36),
    Change("credit_amount", 5000, 2100.5, None, 2300.5),
    Change("residence_since", 1, 3, 2, None),
    Change("employment", "<1", "1<=X<4", "1<=X<4", None),
    Change("employment", ">=7", "1<=X<4", None, "4<=X<7"),
)
FARTHER = (
    (Change("duration", 36, 12, None, 24, 24),),
    (
        Change("duration", 36, 12, enough_now=24),
        Change("credit_amount", 4000, 3000, None, None, 4000),
    ),
    (Change("residence_since", 1, 3, enough_now=2),),
    (Change("checking_status", "<0", ">=200", enough_now="0<=X<200"),),
)
WAITING = (Change("residence_since", 1, 3, 3, None), Change("residence_since", 1, 3))
RULES = (
    "max_changes = 1",
    "max_changes = 2",
    "max_effort = 1.5",
    "max_months = 12",
    "min_probability = 0.7",
    "locked: purpose",
    'forbidden: ["housing", "rent", "own"]',
    'together: ["housing", "job"]',
    "ranges.duration = [4, 12]",
    'levels.employment = ["<1"]',
    'directions.duration = "down"',
    'only = ["duration"]',
    "a rule of another kind",
)


class Menu:
    """An interview with so many plans, all of them its first."""

    def __init__(self, language, count):
        *_, self.interview = interviews(small_advisor(), language)
        self.count = count

    def __getattr__(self, name):
        return getattr(self.interview, name)

    def plans(self, k):
        return self.interview.plans(1) * min(self.count, k)


class Recording(dict):
    """A table of sentences that records which keys are read."""

    def __init__(self, entries):
        super().__init__(entries)
        self.read = set()

    def __getitem__(self, key):
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key, default=None):
        self.read.add(key)
        return super().get(key, default)


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything_that_can_be_said_is_whole_and_nothing_in_the_table_is_never_said(
    language, monkeypatch
):
    recording = {name: Recording(phrases.table(name)) for name in LANGUAGES}
    monkeypatch.setattr(phrases, "table", recording.__getitem__)
    sentences = [text for text in everything(language) if text]
    for interview in interviews(small_advisor(), language):
        sentences += [
            text for section in InterviewRecord(interview).sentences().values() for text in section
        ]
        interview_html(interview)
    for text in sentences:
        assert text.endswith("."), text
        assert not re.search(r"[{}]|\bNone\b(?! of)|\bnan\b|  |\n|\.\.", text), text
    assert len(sentences) > 200
    assert recording[language].keys() - recording[language].read == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_objects_give_the_same_sentences(language):
    first = [
        narrate.plan(plan_of(Change("duration", 24, 12, 8, 14)), SCHEMA, language) for _ in range(2)
    ]
    assert first[0] == first[1]


# What they say


def test_a_decision():
    text = narrate.decision(Decision(0.4996, "bad", False, 0.5), SCHEMA)
    assert "the decision is “refused”. Our estimate for “granted” is" in text, (
        "the card's words, not its classes"
    )
    assert "bad" not in text
    assert text.endswith("49.96 of 100; 50 are needed."), (
        "rounded it would be the 50 that are needed"
    )
    shared = narrate.decision(Decision(0.25, "bad", False, cases=32), SCHEMA)
    assert shared.endswith("from 32 people like you: for 8 of them the decision is “granted”.")
    tie = narrate.decision(Decision(0.7, "bad", False, 0.7), SCHEMA)
    assert tie.endswith("Our estimate for “granted” is 70 of 100; more than that is needed.")
    assert narrate.decision(Decision(0.8, "good", True), SCHEMA).startswith("Good news")
    german = narrate.decision(Decision(0.8, "good", True), SCHEMA, "de")
    assert "„bewilligt“ liegt bei 80 von 100." in german
    assert "granted" not in german


def test_a_question_with_its_reason_and_price():
    text = narrate.question(
        Question("duration", 2.0, 4.0, "survival", survival_now=0.31, survival_then=0.58), SCHEMA
    )
    assert text.startswith("How many months should the loan run? ")
    assert "holds in 58 of 100 cases, not in 31." in text
    assert "This question costs 2; 4 has been spent so far." in text
    assert "last question" in text
    worse = narrate.question(
        Question("duration", 2.0, 4.0, "survival", survival_now=0.6, survival_then=0.5), SCHEMA
    )
    assert "not in" not in worse
    nameless = Schema((Feature("duration", "continuous", label="length"),), "class", "good")
    assert narrate.ask("duration", nameless) == "Please tell us next: “length”."
    spouse = Question(
        "savings_status", 2.0, 0.0, "spouse", "checking_status", ("employment",), left=3
    )
    assert "Together with “balance of the checking account”" in narrate.question(spouse, SCHEMA)
    assert "“years in the present job” may begin to count" in narrate.question(spouse, SCHEMA)
    assert "Es bleiben höchstens 3 Fragen" in narrate.question(spouse, SCHEMA, "de")
    assert "need not tell" in narrate.question(
        Question("personal_status", 5.0, 0.0, "head"), SCHEMA
    )
    assert "need not tell" not in narrate.question(spouse, SCHEMA)


def test_the_range_of_an_answer_has_no_needless_digits():
    question = Question("burden", 1.0, 0.0, "head", low=0.00012345, high=50708.0)
    assert narrate.answers(question, BURDEN) == "A number: 0.000123 to 50,708."


def test_a_plan_with_intervals_and_units():
    plan = plan_of(
        Change("duration", 24, 12.5, 8, 14),
        Change("employment", "<1", "1<=X<4"),
        unknown=("age", "job"),
    )
    assert narrate.plan(plan, SCHEMA) == (
        "These 2 steps together would be enough, and each of them is needed: “duration of "
        "the loan” at 12.5 months "
        "(now 24 months; any value from 8 to 14 months will do) and “years in the present "
        "job” at 1 to below 4 years "
        "(now below 1 year). The decision would then be “granted”; our estimate for it "
        "would be 61 of 100, not 43. 2 "
        "facts about you are not known yet; they could still overturn this."
    )
    german = narrate.plan(plan, SCHEMA, "de")
    assert "neu: 12,5 Monate (bisher 24 Monate; es genügt jeder Wert: 8 bis 14 Monate)" in german
    assert "2 Angaben zu Ihnen sind noch nicht bekannt" in german


def test_a_plan_without_an_interval_names_none():
    assert "any value" not in narrate.plan(plan_of(Change("duration", 24, 12)), SCHEMA)
    assert "any value" not in narrate.plan(plan_of(Change("duration", 24, 12, 12, 12)), SCHEMA)


@pytest.mark.parametrize(
    ("change", "english", "german"),
    [
        (
            OPEN_CHANGES[0],
            "at 36 months or fewer (now 48 months).",
            "neu: höchstens 36 Monate (bisher 48",
        ),
        (
            OPEN_CHANGES[1],
            "at 2300 DM or less, such as 2100 DM (now 5000",
            "neu: höchstens 2300 DM, etwa 2100 DM",
        ),
        (
            OPEN_CHANGES[2],
            "at 2 years or more, such as 3 years (now 1 year)",
            "neu: mindestens 2 Jahre, etwa 3 Jahre",
        ),
        (
            OPEN_CHANGES[3],
            "at 1 to below 4 years or higher (now",
            "neu: 1 bis unter 4 Jahre oder darüber (bisher",
        ),
        (
            OPEN_CHANGES[4],
            "at 4 to below 7 years or lower, such as",
            "neu: 4 bis unter 7 Jahre oder darunter, etwa",
        ),
        (
            Change("employment", "<1", ">=7", ">=7", None),
            "at 7 years or more (now",
            "neu: 7 Jahre oder mehr (bisher",
        ),
        (
            Change("existing_credits", 3, 1, None, 1),
            "at 1 or fewer (now 3).",
            "neu: höchstens 1 (bisher 3)",
        ),
    ],
)
def test_an_open_end_is_told_as_it_is(change, english, german):
    assert english in narrate.plan(plan_of(change), SCHEMA)
    assert german in narrate.plan(plan_of(change), SCHEMA, "de")


@pytest.mark.parametrize(
    ("months", "english", "german"),
    [
        (0.23, "about 7 days.", "etwa 7 Tage."),
        (1, "about 1 month.", "etwa 1 Monat."),
        (18, "about 18 months.", "etwa 18 Monate."),
        (24, "about 2 years.", "etwa 2 Jahre."),
        (44, "about 3.5 years.", "etwa 3,5 Jahre."),
    ],
)
def test_a_plan_says_how_long_it_takes(months, english, german):
    plan = plan_of(Change("duration", 24, 12), months=months)
    assert f"This takes {english}" in narrate.plan(plan, SCHEMA)
    assert f"Das dauert {german}" in narrate.plan(plan, SCHEMA, "de")
    assert "takes" not in narrate.plan(replace(plan, months=0.0), SCHEMA)


def test_what_grows_by_itself_is_waited_for():
    for change in WAITING:
        text = narrate.plan(plan_of(change, months=24), SCHEMA)
        assert (
            "wait until “years at the present address” is 3 years (now 1 year; about 2 years)."
            in text
        )
        assert "takes" not in text, "the time is told once"
        german = narrate.plan(plan_of(change, months=24), SCHEMA, "de")
        assert (
            "warten, bis für „Jahre an der jetzigen Adresse“ gilt: 3 Jahre (bisher 1 "
            "Jahr; etwa 2 Jahre)"
        ) in german
    both = narrate.plan(plan_of(WAITING[0], Change("duration", 24, 12), months=24), SCHEMA)
    assert "wait until" in both
    assert "This takes about 2 years." in both, "of the whole plan"
    assert "wait" not in narrate.plan(plan_of(Change("residence_since", 3, 1), months=1), SCHEMA), (
        "time runs one way"
    )
    assert "wait" not in narrate.plan(plan_of(Change("duration", 24, 36), months=1), SCHEMA)
    grows = Rules(per_year={"duration": 12})
    assert "wait until" in narrate.plan(
        plan_of(Change("duration", 24, 36), months=12), SCHEMA, operator=grows
    )


def test_the_reserve_of_a_plan_is_not_told_as_too_much():
    """30 months would do today; but only the 11 of the plan are what was found to last."""
    plan = plan_of(
        Change("duration", 48, 11, None, 30), survival=0.7, unknown=("employment", "housing")
    )
    assert "at 11 months or fewer (now 48 months)" in narrate.plan(plan, SCHEMA)
    known = narrate.plan(plan, SCHEMA, blanket=Blanket("class", {"duration": ()}))
    assert "at 30 months or fewer, such as 11 months (now 48 months)" in known, (
        "nothing is left that could overturn it"
    )


BURDEN = Schema(
    (Feature("burden", "continuous", range=(0, 0.9)),), "class", "good", ("bad", "good")
)


@pytest.mark.parametrize(
    ("change", "support", "told"),
    [
        (
            Change("burden", 0.923145, 0.5457365, None, 0.5457365),
            None,
            "at 0.545 or less (now 0.923)",
        ),
        (
            Change("burden", 0.123456, 0.5457365, 0.5457365, None),
            None,
            "at 0.546 or more (now 0.123)",
        ),
        (Change("burden", 0.123456, 0.8999, 0.8999, None), None, "at 0.9 or more"),
        (
            Change("burden", 0.923145, 0.5457365, 0.3210987, 0.6000001),
            None,
            "at 0.545 (now 0.923; any value from 0.322 to 0.6 w",
        ),
        (
            Change("burden", 0.923145, 0.5457365, 0.5457362, 0.5457365),
            None,
            "any value from 0.5457362 to 0.5457365 wi",
        ),
        (Change("burden", 0.923145, 0.5457365), None, "at 0.5457365 (now 0.923)"),
        (Change("burden", 0.923145, 0.5457365), 40, "at 0.545 (now 0.923)"),
    ],
)
def test_numbers_are_short_and_rounded_the_way_the_plan_goes(change, support, told):
    assert told in narrate.plan(plan_of(change, support=support, support_share=0.5), BURDEN)


@given(st.floats(1e-9, 1e9), st.sampled_from([-1, 0, 1]))
def test_a_short_number_is_near_and_on_the_right_side(number, way):
    short = phrases.short(number, way)
    assert abs(short - number) <= 0.01 * number * (1 + 1e-9)
    assert (short - number) * way >= 0
    assert phrases.short(short, way) == short
    assert phrases.short(-number, -way) == -short


def test_a_plan_that_will_probably_not_hold_is_not_told_as_enough():
    likely, doubtful = (
        narrate.plan(plan_of(OPEN_CHANGES[0], survival=survival), SCHEMA)
        for survival in (0.5, 0.49)
    )
    assert likely.startswith("One step would be enough")
    assert doubtful.startswith("One step would turn the decision today, but probably not for good")


def test_a_plan_tells_two_numbers_where_it_goes_farther_than_today_needs():
    """What turns today's decision, and what should hold later; never that the farther one would be
    enough.
    """
    one, two, wait, level = (
        narrate.plan(plan_of(*changes, months=24, survival=0.9), SCHEMA) for changes in FARTHER
    )
    assert (
        "One step would turn the decision and should last: “duration of the loan”: 24 months would "
        "turn it today; 12 months or fewer should also hold later (now 36 months)." in one
    )
    assert "with the other steps, 24 months would turn it today; 12 months should also" in two
    assert (
        "(now 4000 DM; not needed today with the other steps in full, but so that all should hold later)"
        in two
    )
    assert "wait until “years at the present address” is 3 years, which should also hold" in wait
    assert "as is decided today, 2 years would turn it" in wait
    assert "0 to below 200 DM would turn it today; 200 DM or more should also hold" in level
    for text in (one, two, wait, level):
        assert "enough" not in text
        assert len(re.findall("should also hold later|should hold later", text)) >= 1
    for changes in FARTHER:
        german = narrate.plan(plan_of(*changes, months=24, survival=0.9), SCHEMA, "de")
        assert "würde genügen" not in german
        assert "würden genügen" not in german
        assert "auch später" in german
    same = plan_of(Change("duration", 36, 12, None, 12, 12), survival=0.9)
    assert "12 months or fewer" in narrate.plan(same, SCHEMA)
    assert "today" not in narrate.plan(same, SCHEMA), "it goes no farther"


def test_a_plan_says_who_is_where_it_leads():
    plan = plan_of(Change("duration", 24, 12), support=1234, support_share=0.853)
    text = narrate.plan(plan, SCHEMA)
    assert (
        "In our records 1234 people are much like you with this done; it turned out well for "
        "1053 of them." in text
    )
    assert "bei 1053 von ihnen ging es gut aus" in narrate.plan(plan, SCHEMA, "de")
    assert "Nobody in our records" in narrate.plan(
        replace(plan, support=0, support_share=None), SCHEMA
    )
    assert "records" not in narrate.plan(replace(plan, support=None, support_share=None), SCHEMA), (
        "nobody counted"
    )


def test_a_single_plan_is_said_to_be_the_only_one():
    alone = InterviewRecord(Menu("en", 1)).sentences()["plans"]
    assert len(alone) == 1
    assert alone[0].endswith("We know of no other way that we could stand behind.")
    assert "no other way" not in " ".join(InterviewRecord(Menu("en", 2)).sentences()["plans"])
    assert "no other way" not in " ".join(InterviewRecord(Menu("en", 2), 1).sentences()["plans"]), (
        "only one was asked for"
    )


def test_the_person_s_own_limits_are_named_and_the_operator_s_are_not():
    own = NoPlan(
        0,
        0,
        0,
        "rules",
        rules=("locked: purpose", "max_changes = 1"),
        loosening="max_changes = 2: more",
    )
    assert narrate.no_plan(own, SCHEMA).endswith(
        "These limits stand in the way: “purpose of the loan” stays as it is and no more "
        "than 1 change. "
        "Without these limits there would be a plan."
    )
    number = NoPlan(
        0,
        0,
        0,
        "rules",
        rules=("max_months = 6",),
        loosening="max_months = 36: employment: <1 → 1<=X<4",
    )
    assert narrate.no_plan(number, SCHEMA).endswith(
        "These limits stand in the way: no more than 6 months. There would be a plan with "
        "no more than 3 years."
    )
    assert "höchstens 3 Jahre" in narrate.no_plan(number, SCHEMA, "de")
    operator = Rules(locked=("purpose",), max_changes=1)
    assert narrate.no_plan(own, SCHEMA, operator=operator) == narrate.no_plan(
        NoPlan(0, 0, 0, "rules"), SCHEMA
    )
    mixed = narrate.no_plan(own, SCHEMA, operator=Rules(locked=("purpose",)))
    assert mixed.endswith("These limits stand in the way: no more than 1 change."), (
        "the rest is not theirs to loosen"
    )
    cards = NoPlan(
        0,
        0,
        0,
        "rules",
        rules=('forbidden: ["checking_status", "*", "no checking"]',),
        loosening="close it",
    )
    assert "checking" not in narrate.no_plan(cards, SCHEMA)
    assert "close it" not in narrate.no_plan(cards, SCHEMA)


@pytest.mark.parametrize("rule", RULES[:-1])
def test_a_rule_is_found_among_those_it_is_one_of(rule):
    rules = Rules(
        locked=("purpose",),
        only=("duration",),
        directions={"duration": "down"},
        ranges={"duration": (4, 12)},
        levels={"employment": ("<1",)},
        max_changes=2 if "2" in rule else 1,
        max_effort=1.5,
        max_months=12,
        min_probability=0.7,
        forbidden=(("housing", "rent", "own"),),
        together=(("housing", "job"),),
    )
    assert is_among(rule, rules)
    assert not is_among(rule, Rules())
    assert in_words(rule, SCHEMA, "en") != phrases.quoted(rule, "en")


LASTING = plan_of(
    Change("duration", 24, 12), survival=0.58, survival_error=0.02, unknown=("housing",)
)


def test_what_a_plan_says_of_its_survival():
    assert "will hold in 58 of 100 cases" in narrate.plan(LASTING, SCHEMA)
    shares = replace(
        LASTING, probability_after=LASTING.survival
    )  # as a model of the user's own decides completions
    assert "would be 58 of 100" in narrate.plan(shares, SCHEMA)
    assert "will hold" not in narrate.plan(shares, SCHEMA), "which says the same again"
    assert "hält der Plan in 58 von 100 Fällen" in narrate.plan(LASTING, SCHEMA, "de")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("status", ["data_limited", "risk_limited", "undefined"])
def test_nothing_is_promised_where_nothing_is_certified(status, language):
    none = replace(CERTIFICATE, status=status, tau=None)
    assert narrate.certificate(none, language) == ""
    assert not re.search("at most|höchstens", none.words(language))


def test_a_certificate_promises_alpha_and_delta_and_says_to_whom():
    assert narrate.certificate(CERTIFICATE) == (
        "This rule has been tested: of 100 people it guides who have a plan at all, at "
        "most 20 will find that "
        "the decision or their plan does not hold once the rest that we may ask is known. "
        "It counts everybody, "
        "also those who are asked to the end; of those who act before, a larger share may "
        "find so. The test rests on "
        "200 people; the chance that it misled us is at most 5 of 100."
    )
    assert "It counts everybody" not in narrate.certificate(replace(CERTIFICATE, target="early"))
    german = narrate.certificate(replace(CERTIFICATE, alpha=0.125, delta=0.001), "de")
    assert "Von 1000 Menschen" in german
    assert "höchstens 125, dass" in german
    assert "höchstens 1 von 1000 Fällen" in german
    assert len({narrate.certificate(c) for c in certificates()}) == 4 * 3 * 2


def test_the_promise_to_those_who_act_says_whom_by_whom_and_what_was_for_nothing():
    promise = replace(
        CERTIFICATE,
        target="early",
        loss="let_down",
        reference="retrained",
        group="men",
        wasted=0.31,
        rules=("x",),
    )
    assert narrate.certificate(promise) == (
        "This has been tested: of 100 people in the group “men” who are told to act at "
        "this point, at most 20 will do "
        "what the plan says and still be refused by a model that was learnt again from "
        "other people. About 31 of 100 "
        "of them would be granted without doing anything. It is about plans that keep to "
        "the operator's rules. It says "
        "nothing about you alone, and it does not promise the decision that you wish for. "
        "The test rests on 200 "
        "people; the chance that it misled us is at most 5 of 100."
    )
    assert "at most 15 will do" in narrate.certificate(replace(promise, alpha=0.15))
    assert (
        "Von 100 Menschen in der Gruppe „men“, denen an dieser Stelle geraten wird zu "
        "handeln, tun höchstens 10,"
    ) in narrate.certificate(replace(promise, alpha=0.1), "de")
    assert "without doing" not in narrate.certificate(replace(promise, wasted=None))
    said = {
        narrate.certificate(replace(promise, target=target, reference=reference), language)
        for target, reference, language in product(get_args(Target), get_args(Reference), LANGUAGES)
    }
    assert len(said) == 3 * 3 * 2, "early and act are both told to act at this point"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reason", get_args(NoPlanReason))
def test_each_reason_for_no_plan_has_a_sentence_of_its_own(reason, language):
    texts = {
        r: narrate.no_plan(NoPlan(0, 0, 0, r, ("housing",)), SCHEMA, language)
        for r in get_args(NoPlanReason)
    }
    assert len(set(texts.values())) == len(texts)
    label = SCHEMA["housing"].said(language).label
    assert (label in texts[reason]) == (reason == "more_information_needed")


def test_a_partition_by_what_a_person_can_do():
    parts = {"housing": "not_known", "job": "blocked", "employment": "not_decisive"}
    person = Person(
        {"duration": 0.3, "age": 0.9}, parts, ("own_telephone", "purpose"), {"purpose": 0.1}
    )
    blanket = Blanket("class", {"duration": (), "housing": ("job",)})
    sentences = partition(person, SCHEMA, blanket=blanket, planned=("duration",))
    assert sentences == [
        "“duration of the loan” can turn the decision by itself, and it is in your hands, "
        "as the plans say: 30 of 100 "
        "people we learnt from have a value that would.",
        (
            "“purpose of the loan” turns the decision although it should not matter; the "
            "model leans on it."
        ),
        "“age” bears on the decision by itself, but it is never part of a plan.",
        "“qualification of the job” makes no difference as long as “housing” is not known.",
        (
            "This does not turn the decision by itself, whatever its value: “years in the "
            "present job”."
        ),
        "Not known yet, and it may matter: “housing”.",
        "This made no difference here: “telephone in the own name”.",
    ]


def test_what_no_plan_changes_by_itself_is_not_said_to_be_in_anybody_s_hands():
    """Only a closed account would turn the decision by itself, and the card forbids to advise
    that.
    """
    advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20), threshold="balanced").fit(
        edfa.load("german")
    )
    facts = {
        "age": 25,
        "purpose": "business",
        "credit_amount": 8072,
        "checking_status": "<0",
        "duration": 48,
    }
    interview = advisor.interview(facts)
    assert interview.partition.counterfactual["checking_status"] > 0
    alone = {plan.changes[0].feature for plan in interview.plans() if plan.l0 == 1}
    assert "checking_status" not in alone
    told = [
        text
        for text in InterviewRecord(interview).sentences()["partition"]
        if "checking account" in text
    ]
    assert "can turn the decision by itself" in told[0]
    assert not ACTION["en"].search(told[0])


# Never a step that is not the person's to take


ACTION = {
    "en": re.compile(r"step|in your hands|would be enough|\bIf “"),
    "de": re.compile(r"Schritt|in Ihrer Hand|genügen|^Würde|^Mit der Angabe"),
}
CLOSED = [f.name for f in SCHEMA if not f.actionable]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [*CLOSED, "other_parties"])
def test_what_cannot_be_changed_is_never_told_as_a_step(name, language):
    locked = ("other_parties",)
    change = Change(name, 1, 2) if SCHEMA[name].kind == "continuous" else Change(name, "a", "b")
    texts = [
        narrate.plan(
            plan_of(change, Change("duration", 24, 12, 8, 14)), SCHEMA, language, locked=locked
        )
    ]
    texts += partition(Person({name: 0.5}, {}, (), {}), SCHEMA, language, locked=locked)
    for text in texts:
        assert SCHEMA[name].said(language).label in text
        assert not ACTION[language].search(text), text
    if name == "other_parties":
        assert ACTION[language].search(narrate.plan(plan_of(change), SCHEMA, language)), (
            "not locked, it is a step"
        )


@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_call_for_nothing_that_the_card_forbids(language):
    table = edfa.load("german")
    model = edfa.SubsetXGB(n_estimators=40).fit(table.train.X, table.train.y)
    rows, support = table.test.X[:60], Support.of(table.train.X)
    partition = explain(rows, model, support, table.schema.names)
    people = statements(
        sweep(rows, model, support), partition, table.schema, table.encoder, language
    )
    calls = {True: 0, False: 0}
    for i, person in enumerate(people):
        own = table.encoder.decode(rows[i : i + 1]).iloc[0]
        for statement in (s for s in person if s.kind == "counterfactual"):
            feature, to = table.schema[statement.feature], statement.values[0]
            forbidden = not feature.actionable
            if feature.kind != "categorical":
                rank = feature.levels.index if feature.levels else float
                forbidden |= feature.change == (
                    "down" if rank(to) > rank(own[statement.feature]) else "up"
                )
            calls[bool(ACTION[language].search(statement.text))] += 1
            assert bool(ACTION[language].search(statement.text)) != forbidden, statement.text
    assert min(calls.values()) > 10


def test_a_page_says_what_the_interview_says():
    first, declined, complete = interviews(small_advisor(), "en")
    assert (
        "Nothing is promised" in " ".join(InterviewRecord(declined).sentences()["standing"])
        or not declined.plans()
    )
    start = {name: complete.log.facts[name] for name in (*SCHEMA.start, "duration")}
    acting = small_advisor().interview(start)
    assert acting.standing.may_act
    assert InterviewRecord(acting).sentences()["question"] == []
    wishing = InterviewRecord(
        small_advisor().interview(complete.log.facts, overlay=Overlay(locked=("housing",)))
    ).sentences()
    assert wishing["question"] == []
    assert wishing["standing"][-1].endswith(
        "The test takes people with your wishes to be like everybody else otherwise."
    )
    assert len(InterviewRecord(complete).sentences()["plans"]) == len(complete.plans()) > 0
    assert not [
        text for text in InterviewRecord(complete).sentences()["plans"] if "not known yet" in text
    ], "all that the model sees is known"
    assert [
        text
        for plan in complete.plans()
        for text in [narrate.plan(plan, SCHEMA)]
        if "not known yet" in text
    ]
    page = interview_html(declined)
    assert "years in the present job: kept to yourself" in page
    assert "housing: “own home”" in page
    assert "<svg" in page
    assert "<svg" not in interview_html(first), "one moment is no line"
    locked = small_advisor().interview(
        complete.log.facts,
        overlay=Overlay(locked=tuple(f.name for f in SCHEMA if f.actionable)),
    )
    assert InterviewRecord(locked).sentences()["question"] == ["There are no more questions."]
    assert not ACTION["en"].search(
        " ".join(text for part in InterviewRecord(locked).sentences().values() for text in part)
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("facts", [SAFE, RISKY])
def test_before_an_ending_there_is_no_verdict(facts, language):
    """Neither the decision nor that nothing need be done is told; the estimate is."""
    held = told(facts, language, granted=-1.0, act=-1.0, nothing=-1.0)
    while not held.standing.ends:
        record, left = InterviewRecord(held), held.question.left
        said = record.sentences()
        assert record.too_early
        count = {"en": "one", "de": "eine"}[language] if left == 1 else str(left)
        for section in ("decision", "standing"):
            assert count in said[section][0], said[section]
        assert narrate.estimate(held.decision, SCHEMA, language) in said["decision"][0]
        whole = " ".join(text for part in said.values() for text in part)
        assert narrate.decision(held.decision, SCHEMA, language) not in whole
        told_at_the_end = ("decision.favourable", "standing.granted", "no_plan.already_there")
        for key in told_at_the_end:
            entry = phrases.table(language)[key].partition(":")[0]
            assert entry not in whole, key
        assert said["question"], "and one is asked on"
        held.answer({held.question.feature: some_answer(held.question)})
    record = InterviewRecord(held)
    assert record.sentences()["decision"][0] == narrate.decision(held.decision, SCHEMA, language)
    assert not record.too_early


def some_answer(question):
    return question.choices[0] if question.choices else question.low


def test_a_plan_that_is_promised_alone_is_told_with_the_decision_as_ever():
    """With one ending nothing waits: the decision stands in the first sentence at every step."""
    held = small_advisor().interview(SAFE)
    while (question := held.question) is not None:
        record = InterviewRecord(held)
        assert not record.too_early
        assert record.decision_text == narrate.decision(held.decision, SCHEMA)
        held.answer({question.feature: some_answer(question)})


def test_a_yes_that_is_told_early_says_what_it_rests_on_and_what_could_overturn_it():
    held = told(SAFE, granted=1.0)
    record = InterviewRecord(held)
    said = record.sentences()
    assert (held.standing.status, held.standing.ends) == ("granted", True)
    assert held.question is not None
    assert said["question"] == [], "nothing more is asked"
    turning = [*held.partition.counterfactual]
    assert turning
    for name in turning:
        assert f"“{SCHEMA[name].title}”" in said["standing"][0]
    assert f"by the {held.question.left} facts that we have not asked for" in said["standing"][0]
    assert said["standing"][1] == held.guarantee
    assert "at most 5 are refused after all" in held.guarantee
    assert "You need no plan" in said["plans"][0]
    nothing = " ".join(narrate.conditions((), (), 2, SCHEMA, "en"))
    assert "nothing is known yet" in nothing
    assert "one of these" not in nothing
    told_all = narrate.conditions((), ("age", "purpose"), 1, SCHEMA, "en")
    assert "“age” and “purpose of the loan”" in told_all[0]


def nobody_can(facts, **tau):
    """An interview of a refused person who can change nothing."""
    locked = tuple(feature.name for feature in SCHEMA if feature.actionable)
    return told(facts, overlay=Overlay(locked=locked), **tau)


def test_nothing_to_do_is_said_kindly_with_why_when_and_whom():
    standing = Standing("nothing", "nothing", promised=True, tau=1.0, signal=0.1)
    record = InterviewRecord(nobody_can(RISKY))
    assert record.decision.refused
    lines = record.say_standing(standing)
    assert lines[0].startswith("We are sorry")
    assert "somebody who has a say" in lines[-1]
    assert "Ms Example" in record.say_standing(standing, "Ms Example, 555 0100")[-1]
    growing = record.interview.assessment.helped_by_time
    assert any("Time may help" in line for line in lines) == bool(growing)


def test_what_helps_with_time_is_what_grows_and_raises_the_estimate():
    blanket = Blanket("class", {"age": (), "duration": ()})
    model = edfa.SubsetXGB(n_estimators=20)
    advisor = edfa.Advisor(blanket=blanket, predictor=model, loss="let_down")
    advisor.fit(edfa.load("german"))
    chances = {
        age: advisor.interview({"age": age, "duration": 24}).decision.probability
        for age in range(20, 75)
    }
    seen = set()
    for age in range(20, 73):
        held = advisor.interview({"age": age, "duration": 24})
        helped = held.assessment.helped_by_time
        assert helped == (("age",) if chances[age + 2] >= chances[age] + 0.01 else ())
        seen.add(helped)
    assert seen == {(), ("age",)}, "neither always nor never"
    assert advisor.interview({"duration": 24}).assessment.helped_by_time == (), "it is not known"


def test_a_plan_without_a_certificate_waits_for_the_questions_that_are_left():
    uncertain = Standing("not_certified", "act")
    assert narrate.standing(uncertain, left=2) == narrate.standing(Standing("ask", "act"), left=2)
    last = phrases.table("en")["standing.not_certified"]
    assert narrate.standing(replace(uncertain, complete=True), left=0) == last
    assert narrate.standing(uncertain) == last, "with one ending it is told at every step"


def test_where_nothing_is_promised_no_plan_was_found_and_no_more():
    held = nobody_can(RISKY)
    while held.question is not None:
        held.answer({held.question.feature: some_answer(held.question)})
    said = InterviewRecord(held).sentences()["standing"]
    if held.standing.status == "no_plan":
        assert said == ["We found no plan for you. That does not mean that nothing would help."]
    every = narrate.standing(Standing("no_plan", "nothing", complete=True), left=0)
    assert every.startswith("We found no plan")
    assert "nothing helps" not in every
    one = narrate.standing(Standing("no_plan", complete=True))
    assert one == phrases.table("en")["standing.no_plan"]


def test_a_promise_that_nothing_helps_is_not_followed_by_what_may_help():
    """Where more would hardly change it, the person is not told that it would help to know more."""
    held = told(RISKY, nothing=1.0, granted=1.0, act=1.0)
    more = NoPlan(0, 0, 0, "more_information_needed", ("housing",))
    record = InterviewRecord(held)
    vars(record)["no_plan"] = more
    assert held.standing.promised
    assert "knowing more may open one" not in record.no_plan_text
    early = InterviewRecord(told(RISKY))
    vars(early)["no_plan"] = more
    assert "knowing more may open one" in early.no_plan_text


def test_nobody_is_told_to_turn_a_good_decision():
    person = Person({"duration": 0.3, "age": 0.5}, {}, (), {})
    assert ACTION["en"].search(" ".join(partition(person, SCHEMA, planned=("duration",))))
    assert not ACTION["en"].search(" ".join(partition(person, SCHEMA)))
    good = partition(person, SCHEMA, favourable=True, planned=("duration",))
    assert not ACTION["en"].search(" ".join(good))


# Odd names, units and numbers


NAMES = st.text(min_size=1, max_size=20) | st.sampled_from(
    [
        "{label}",
        "{0}",
        "%s",
        "<script>alert(1)</script>",
        "a\nb",
        "\x1b[31mred",
        "“”",
        "$x$",
        "[bold]",
        "\u202eabc",
        "{",
    ]
)


@st.composite
def schemas(draw):
    names = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    features = [
        Feature(
            name,
            draw(st.sampled_from(["continuous", "categorical"])),
            unit=draw(NAMES | st.just("")),
            label=draw(NAMES | st.just("")),
            sensitive=draw(st.booleans()),
        )
        for name in names
    ]
    return Schema(tuple(features), "the target", draw(NAMES))


def visible(text):
    return "".join(text.split())


@settings(max_examples=some(150), deadline=None)
@given(schemas(), st.sampled_from(LANGUAGES), st.data())
def test_odd_names_stay_whole_in_one_printable_line(schema, language, data):
    first, second = schema.names[:2]
    values = {
        f.name: data.draw(st.floats(-1e6, 1e6) if f.kind == "continuous" else NAMES) for f in schema
    }
    changes = tuple(
        Change(f.name, values[f.name], values[f.name], *(1.0, 2.0)[: 2 * (not f.words)])
        for f in schema
    )
    person = Person({first: 0.3}, {second: "blocked"}, schema.names[2:], {})
    texts = [
        narrate.decision(Decision(0.3, schema.favourable, True), schema, language),
        narrate.question(Question(first, 1.0, 0.5, "spouse", second, (second,)), schema, language),
        narrate.plan(plan_of(*changes), schema, language),
        narrate.no_plan(
            NoPlan(0, 0, 0, "more_information_needed", (first, second)), schema, language
        ),
        *partition(person, schema, language, blanket=Blanket("the target", {first: (second,)})),
    ]
    for text in texts:
        assert all(c.isprintable() or c in phrases.JOINERS or c == "\u00a0" for c in text)
    for text in texts[1:4]:
        assert visible(phrases.plain(schema[first].title)) in visible(text)
    for feature, change in zip(schema, changes, strict=True):
        if feature.words:
            assert visible(phrases.plain(change.after)) in visible(
                texts[2]
            ) or phrases.BOUNDS.keys() & set(change.after)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(), st.sampled_from(LANGUAGES))
def test_a_number_loses_no_digit(number, language):
    shown = phrases.number(number, language)
    if language == "de" and "e" not in shown:
        shown = shown.translate(str.maketrans(",.", ".,"))
    assert Decimal(shown.replace(",", "")) == Decimal(str(number))


@given(st.floats(0, 1), st.sampled_from(LANGUAGES), st.integers(0, 3))
def test_a_percentage_is_right_and_never_too_sure(share, language, digits):
    shown = phrases.percent(share, language, digits).replace(",", ".")
    percentage = float(re.search(r"\d+(\.\d+)?", shown).group())
    assert abs(percentage - 100 * share) <= 10**-digits * (1 + 1e-9)
    assert (percentage in (0, 100)) <= (share in (0, 1))


@given(st.floats(0, 1), st.floats(0, 1))
def test_cases_keep_the_order_or_say_nothing(now, then):
    shown = phrases.cases("en", now, then)
    if shown is None:
        assert abs(now - then) <= 0.001 or min(now, then, 1 - now, 1 - then) < 0.001
        return
    (few, of), (many, of_too) = (map(int, re.findall(r"\d+", text)) for text in shown)
    assert of == of_too
    assert (few < many) == (now < then)
    assert abs(few / of - now) <= 0.5 / of + 1e-9


def test_units_and_gaps_in_both_languages():
    months = Feature("m", "continuous", unit="months", codes={"-9": "no bureau record"})
    assert [phrases.value(months, v, "en") for v in (1, 2.5, None, -9)] == [
        "1 month",
        "2.5 months",
        "not recorded",
        "“no bureau record”",
    ]
    assert [phrases.value(months, v, "de") for v in (1, 12345.5)] == ["1 Monat", "12.345,5 Monate"]
    assert phrases.value(Feature("m", "continuous", unit="furlongs"), 1, "de") == "1 furlongs"
    assert phrases.listed([], "en") == ""
    assert phrases.listed(list("abcdefg"), "en") == "a, b, c, d and 3 others"
