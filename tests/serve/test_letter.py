"""The letter to somebody who was refused: true reasons, nothing missing, nothing that must not be
said.
"""

import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from advisors import begin, german, surviving, walk, words
from webpage import checked

import edfa
from edfa.advice.assessment import Assessment
from edfa.advice.principal import find_reasons
from edfa.advice.receipt import Receipt
from edfa.errors import (
    DataError,
    MismatchError,
    SettingError,
    UnavailableError,
    UnknownNameError,
    UnreadableError,
)
from edfa.explanation.principal_reasons import PrincipalReasons
from edfa.text import narrate
from edfa_serve.letters.letter import letter_of_receipt, receipt_id, write_letter
from edfa_serve.letters.page import ECOA_NOTICE, visible_text
from edfa_serve.letters.settings import read_operator
from edfa_serve.letters.words import forbidden_phrase, sentences, write_date, write_reason

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "letter.toml"
EVIL = "<img src=x onerror=alert(1)>{{ 7 * 7 }}"
KINDS = [(template, language) for template in ("us", "eu") for language in ("en", "de")]
BUREAU = """
[bureau]
name = "Example Bureau"
address = "5 File Road"
phone = "(800) 555-0199"
score_used = true
score = 612
score_date = 2026-11-10
score_low = 300
score_high = 850
score_factors = ["late payments", "short history"]
score_from = "Example Scores"
"""
FEATURES = (
    edfa.Feature(
        "income",
        "continuous",
        start=True,
        cost=0,
        label="income",
        unit="EUR",
        monotone="up",
        change="up",
    ),
    edfa.Feature(
        "debt", "continuous", label="debts", unit="EUR", reason="what you owe", source="bureau"
    ),
    edfa.Feature("loans", "continuous", label="open loans", reason="what you owe", source="bureau"),
    edfa.Feature("job", "categorical", label="job"),
    edfa.Feature("sex", "categorical", sensitive=True, change="frozen", label="sex"),
)


def fit_small(features=FEATURES, weight_of_sex=0.0, words=None, threshold=None, loss="let_down"):
    """An advisor that decides by income, less debts and loans; and by sex, if that has a weight."""
    random = np.random.default_rng(1)
    n = 900
    income, debt, loans = (
        random.uniform(0, 4000, n),
        random.uniform(0, 3000, n),
        random.integers(0, 6, n),
    )
    sex = random.choice(["f", "m"], n)
    score = (
        income / 1000
        - debt / 1000
        - loans / 2
        + weight_of_sex * (sex == "f")
        + random.normal(0, 0.4, n)
        + 0.6
    )
    frame = pd.DataFrame(
        {
            "income": income.round(),
            "debt": debt.round(),
            "loans": loans,
            "job": random.choice(["a", "b"], n),
            "sex": sex,
            "y": np.where(score > 0, "yes", "no"),
        }
    )
    schema = edfa.Schema(features, "y", "yes", ("no", "yes"), words=words or {})
    blanket = edfa.Blanket(
        "y", dict.fromkeys(("income", "debt", "loans", *(("sex",) if weight_of_sex else ())), ())
    )
    model = edfa.SubsetXGB(n_estimators=30)
    return edfa.Advisor(
        predictor=model, blanket=blanket, searcher="nearest", threshold=threshold, loss=loss
    ).fit(edfa.Table.from_frame(frame, schema))


@cache
def small():
    return fit_small()


@cache
def sexist():
    return fit_small(weight_of_sex=3.0)


@cache
def strict():
    """Without any fact everybody is refused."""
    return fit_small(threshold=0.9)


def poor(advisor=None, language="en", **others):
    facts = {"income": 900, "debt": 2000, "loans": 4, **others}
    return (advisor or small()).interview({}, language=language).answer(facts)


def declare(tmp_path, text="", language="en", base=None):
    """The operator of the example, changed by a case."""
    case = tmp_path / f"case{hashlib.sha256(text.encode()).hexdigest()[:8]}.toml"
    case.write_text(text, encoding="utf-8")
    return read_operator(base or EXAMPLE, language, case)


@cache
def refused(advisor=None, n=30, language="en"):
    """Refused test people who have told everything."""
    advisor = advisor or german()
    people = []
    for person in words(edfa.load("german")):
        interview = begin(advisor, person, language=language)
        for _ in walk(interview, person):
            pass
        if interview.decision.refused:
            people.append(interview)
        if len(people) == n:
            break
    return people


# Reasons


def test_reasons_are_those_of_the_decision_in_the_card_s_words(tmp_path):
    letter = write_letter(poor(), declare(tmp_path, BUREAU))
    assert set(letter.reasons) == {
        "what you owe (debts: 2000 EUR; open loans: 4)",
        "income: 900 EUR (too low)",
    }
    values = letter.audit["method"]["contributions"]
    owed = values["debt"] + values["loans"]
    assert letter.reasons[0].startswith("what you owe" if owed < values["income"] else "income")
    assert [r["features"] for r in letter.audit["named"]] == [("debt", "loans"), ("income",)][
        :: 1 if owed < values["income"] else -1
    ]


def test_a_direction_is_said_only_where_the_card_has_one():
    months = edfa.Feature(
        "m", "continuous", label="time", unit="months", monotone="down", codes={"-9": "none"}
    )
    schooling = edfa.Feature("s", "ordinal", levels=("11th", "12th"), monotone="up")
    job = edfa.Feature(
        "j", "ordinal", levels=("<1", "1<=X<4"), unit="years", monotone="up", label="job"
    )
    assert write_reason([months], {"m": 48}, "en", directed=("m",)) == "time: 48 months (too long)"
    assert write_reason([months], {"m": 48}, "en") == "time: 48 months"
    assert write_reason([months], {"m": 48}, "en", shared=True) == "time: 48 months", (
        "its label says the same"
    )
    newest = replace(months, label="newest loan", reason="time")
    assert write_reason([newest], {"m": 48}, "en", directed=("m",), shared=True) == (
        "time (newest loan: 48 months, too long)"
    )
    share = edfa.Feature("u", "continuous", label="use of the limits")
    assert write_reason([share], {"u": 0.8186597}, "de") == "use of the limits: 0,819"
    hours = edfa.Feature("h", "continuous", label="work", unit="hours a week", monotone="up")
    assert (
        write_reason([hours], {"h": 20}, "en", directed=("h",))
        == "work: 20 hours a week (too short)"
    )
    assert write_reason([months], {"m": -9}, "en", directed=("m",)) == "time: “none”"
    assert write_reason([schooling], {"s": "11th"}, "en", directed=("s",)) == "s: “11th”"
    assert write_reason([job], {"j": "<1"}, "de", directed=("j",)) == "job: unter 1 Jahr (zu kurz)"


def test_near_identical_people_have_the_same_first_reason():
    random, fitted, same, total = np.random.default_rng(0), small().fitted, 0, 0
    for _ in range(60):
        income, debt, loans = (
            random.integers(100, 2000),
            random.integers(800, 3000),
            random.integers(1, 6),
        )
        pair = [
            fitted.encoder.encode_person(
                {"income": float(income + more), "debt": float(debt), "loans": int(loans)}
            )
            for more in (0, 1)
        ]
        if (fitted.predictor.predict_proba(np.stack(pair))[:, fitted.favourable] < 0.5).all():
            first, second = (
                find_reasons(Assessment.of(fitted, row[None]), {}).named[0].features for row in pair
            )
            same, total = same + (first == second), total + 1
    assert total > 40
    assert same == total


def test_what_a_plan_changes_of_a_reason_is_for_the_better(tmp_path):
    operator, checks = declare(tmp_path), 0
    for interview in refused(n=20):
        letter = write_letter(interview, operator)
        named = {name for reason in letter.audit["named"] for name in reason["features"]}
        for plan, text in zip(interview.plans(), letter.plans, strict=True):
            touched = [change for change in plan.changes if change.feature in named]
            assert ("not among the main reasons" in text) == (not touched)
            for change in touched:  # each alone, with all else as it is
                other = interview.what_if({change.feature: change.after})
                assert other.decision.probability > interview.decision.probability
                checks += 1
    assert checks > 10


def test_contributions_add_up_and_the_people_compared_with_are_on_record(tmp_path):
    for interview in (poor(), *refused(n=3)):
        method = write_letter(interview, declare(tmp_path, BUREAU)).audit["method"]
        whole = method["margin"] - method["baseline"]
        assert np.isclose(sum(method["contributions"].values()), whole, atol=1e-9)
        fitted = interview.fitted
        known = ~np.isnan(interview.log.row[0]) & fitted.predictor.varies_
        reasons = find_reasons(
            interview.assessment, dict.fromkeys(fitted.schema.sensitive, "a law")
        )
        rows = reasons.values.compared  # noqa: PD011
        p = fitted.predictor.predict_known(
            known, np.ascontiguousarray(fitted.train.X[rows][:, known])
        )
        wanted = p[:, fitted.favourable].astype(float)
        line = 0.5 if fitted.threshold is None else fitted.threshold
        assert np.isclose(
            np.mean(np.log(wanted / (1 - wanted)) - np.log(line / (1 - line))),
            method["baseline"],
            atol=1e-5,
        )
        assert method["people"] == len(rows)
        compared = np.ascontiguousarray(fitted.train.X[rows][:, known])
        assert method["baseline_sha256"] == hashlib.sha256(compared.tobytes()).hexdigest()


def test_what_is_not_known_or_declined_is_no_reason(tmp_path):
    interview = small().interview({"income": 300}).decline("debt")
    letter = write_letter(interview, declare(tmp_path))
    assert letter.reasons == ("income: 300 EUR (too low)",)
    text = visible_text(letter.html)
    assert (
        "You preferred not to tell us, and that did not count against you as a reason: debts."
        in text
    )
    assert "Not known to us, and so no reason either: open loans." in text


def test_of_many_small_reasons_the_first_is_named(monkeypatch):
    """If none is a twentieth of what is lacking, there is a reason all the same; of equal ones the
    card's first.
    """
    fitted, small_ones = small().fitted, np.array([-0.04, -0.02, -0.02, np.nan, np.nan])
    values = PrincipalReasons(
        small_ones,
        np.zeros(5),
        -1.0,
        0.5,
        np.arange(64),
        np.array([0, 1, 1, 3, 4]),
        np.ones(5, dtype=bool),
    )
    monkeypatch.setattr("edfa.advice.principal.principal_reasons", lambda *args, **options: values)
    row = fitted.encoder.encode_person({"income": 900, "debt": 2000, "loans": 4})
    assert [
        reason.features for reason in find_reasons(Assessment.of(fitted, row[None]), {}).named
    ] == [("income",)]


# What stops a letter


def test_a_sensitive_reason_is_an_error_that_names_it_and_the_cure(tmp_path):
    advisor = sexist()
    person = poor(advisor, sex="m")
    with pytest.raises(DataError, match=r"^sex is sensitive.*without sex.*\[nameable\]"):
        write_letter(person, declare(tmp_path, BUREAU))
    named = write_letter(person, declare(tmp_path, BUREAU + "[nameable]\nsex = 'Act 1, section 2'"))
    assert any("sex" in reason for reason in named.reasons)
    assert "Act 1, section 2" in visible_text(named.html)
    with pytest.raises(DataError, match=r"^sex is sensitive"):
        write_letter(person, declare(tmp_path, BUREAU + "[nameable]\nsex = ' '"))
    with pytest.raises(UnknownNameError, match="did you mean 'sex'"):
        write_letter(person, declare(tmp_path, BUREAU + "[nameable]\nsexx = 'x'"))


def test_no_letter_before_the_interview_has_ended(tmp_path):
    """Facts are open that would probably decide; once they are told or declined it is written."""
    operator = declare(tmp_path, BUREAU)
    interview = fit_small(loss="in_vain").interview({"income": 300})
    assert interview.decision.refused
    assert not interview.standing.ends
    with pytest.raises(DataError, match=r"^no refusal yet: .*ask on \(at most \d more\)") as caught:
        write_letter(interview, operator)
    assert "\n" not in str(caught.value)
    lacking = "[decision]\naction = 'incomplete'\nuntil = 2026-12-16"
    assert write_letter(interview, declare(tmp_path, lacking)).kind == "request"
    while interview.question is not None:
        interview.decline(interview.question.feature)
    assert write_letter(interview, operator).reasons == ("income: 300 EUR (too low)",)


def test_the_best_level_is_never_a_reason(tmp_path):
    """A card says which way is good; whoever is at that end did all that can be asked for."""
    random = np.random.default_rng(4)
    n = 900
    income = random.uniform(0, 4000, n).round()
    paid = random.choice(["late", "mostly", "in full"], n, p=[0.2, 0.3, 0.5])
    # in these records who paid in full is granted less often
    score = income / 1000 - 2 - 0.8 * (paid == "in full") + random.normal(0, 0.2, n)
    frame = pd.DataFrame({"income": income, "paid": paid, "y": np.where(score > 0, "yes", "no")})
    levels = ("late", "mostly", "in full")
    for monotone, named in (("up", False), (None, True)):
        features = (
            edfa.Feature("income", "continuous", label="income", unit="EUR", change="up"),
            edfa.Feature(
                "paid", "ordinal", levels=levels, monotone=monotone, change="up", label="credits"
            ),
        )
        table = edfa.Table.from_frame(frame, edfa.Schema(features, "y", "yes", ("no", "yes")))
        advisor = edfa.Advisor(
            blanket=edfa.Blanket("y", {"income": (), "paid": ()}),
            predictor=edfa.SubsetXGB(n_estimators=30),
            searcher="nearest",
            loss="let_down",
            obey_directions=False,
        ).fit(table)
        interview = advisor.interview({}).answer(income=1700, paid="in full")
        reasons = find_reasons(interview.assessment, {})
        assert reasons.values.contributions[1] < 0, "the model holds it against them"  # noqa: PD011
        assert any("paid" in reason.features for reason in reasons.named) == named
        letter = write_letter(interview, declare(tmp_path))
        assert any("in full" in text for text in letter.reasons) == named


def test_where_nothing_is_unfavourable_somebody_has_to_look(tmp_path, monkeypatch):
    nothing = PrincipalReasons(
        *(np.zeros(5), np.zeros(5), -1.0, 0.5, np.arange(64), np.arange(5)),
        np.zeros(5, dtype=bool),
    )
    monkeypatch.setattr("edfa.advice.principal.principal_reasons", lambda *a, **options: nothing)
    with pytest.raises(DataError, match=r"unfavourable by itself.*decision\.decided_by"):
        write_letter(poor(), declare(tmp_path, BUREAU))


def test_no_letter_without_a_refusal(tmp_path):
    operator = declare(tmp_path, BUREAU)
    with pytest.raises(DataError, match="granted what they ask for"):
        write_letter(poor(income=4000, debt=0, loans=0), operator)
    with pytest.raises(DataError, match="not for what was supposed"):
        write_letter(poor().what_if({"job": "a"}), operator)
    with pytest.raises(UnknownNameError, match="template"):
        write_letter(poor(), operator, "uk")


US = (
    "creditor.name creditor.address decision.action decision.date "
    "decision.decided_by us.agency us.agency_address"
)
EU = (
    "creditor.name creditor.address decision.action decision.date decision.decided_by "
    "eu.consequences review.to "
    "review.how review.until review.correction eu.authority eu.authority_address "
    "bureau.name bureau.address"
)
SCORE = (
    "bureau.name bureau.address bureau.phone bureau.score_used bureau.score "
    "bureau.score_date bureau.score_low "
    "bureau.score_high bureau.score_factors bureau.score_from"
)


@pytest.mark.parametrize(
    ("template", "key"),
    [("us", key) for key in f"{US} {SCORE}".split()] + [("eu", key) for key in EU.split()],
)
def test_each_mandatory_field_that_is_missing_is_named(tmp_path, template, key):
    operator = declare(tmp_path, BUREAU)
    write_letter(poor(), operator, template)
    section, name = key.split(".")
    empty = type(getattr(operator, section))()  # as if the operator had not written the key
    part = replace(getattr(operator, section), **{name: getattr(empty, name)})
    with pytest.raises(SettingError, match=rf"^letter.toml: {re.escape(key)} is missing: .+"):
        write_letter(poor(), replace(operator, **{section: part}), template)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[decision]\ndecided_by = 'officer'", "decision.officer is missing"),
        ("[decision]\ndecided_by = 'rule'", "decision.reasons is missing"),
        ("[decision]\nreasons = ['too young']", "decision.reasons: decided_by = 'system'"),
        (
            "[decision]\ndecided_by = 'rule'\nreasons = ['a', 'b', 'c', 'd', 'e']",
            "at most 4, not 5",
        ),
        (
            "[decision]\ndecided_by = 'rule'\nreasons = ['Your score was too low']",
            "score was too low.*no specific reason",
        ),
        ("[decision]\ndecided_by = 'rule'\nreasons = ['Our policy']", "our policy"),
        ("[decision]\ndecided_by = 'boss'", "decision.decided_by: 'boss' is not one of"),
        ("[decision]\naction = 'refuse'", "did you mean 'refused'"),
        ("[decison]\naction = 'refused'", "no such section.*did you mean 'decision'"),
        ("[creditor]\nnam = 'x'", "creditor.nam: no such key.*name"),
        ("templates = 'nowhere'", "no folder"),
        (BUREAU.replace("]\nscore_from", ", 'c', 'd', 'e']\nscore_from"), "at most 4, not 5"),
    ],
)
def test_contradictions_and_misspellings_are_named(tmp_path, text, says):
    with pytest.raises((SettingError, UnreadableError), match=f"(?i){says}"):
        write_letter(refused(n=1)[0], declare(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path):
    bad = tmp_path / "letter.toml"
    bad.write_bytes(b"[creditor\n")
    with pytest.raises(UnreadableError, match=r"letter\.toml is not a TOML file"):
        read_operator(bad, "en")
    with pytest.raises(UnreadableError, match="there is no file"):
        read_operator(tmp_path / "none.toml", "en")
    bad.write_text("[review]\nto = {en = 'x'}", encoding="utf-8")
    assert read_operator(bad, "en").review.to == "x"
    with pytest.raises(
        SettingError, match=r"review.to: is not given in the language of the letter, 'de'"
    ):
        read_operator(bad, "de")


# Whoever else decided; facts that lack


def test_reasons_of_a_rule_are_the_operator_s_own_and_nothing_of_the_model_s_is_told(tmp_path):
    text = BUREAU + "[decision]\ndecided_by = 'rule'\nreasons = ['You live outside our area']"
    for person in (poor(), poor(income=4000, debt=0, loans=0)):
        letter = write_letter(person, declare(tmp_path, text))
        assert letter.reasons == ("You live outside our area",)
        assert letter.plans == ()
        assert letter.audit["method"] == {}
        shown = visible_text(letter.html)
        assert "too low" not in shown
        assert "at least" not in shown
        assert "A fixed rule made this decision" in shown


def test_an_officer_who_follows_the_system_gives_its_reasons(tmp_path):
    text = BUREAU + "[decision]\ndecided_by = 'system_and_officer'\nofficer = 'Ms Rivera'"
    letter = write_letter(poor(), declare(tmp_path, text), "eu")
    assert letter.reasons == write_letter(poor(), declare(tmp_path, BUREAU), "eu").reasons
    assert "proposed this decision to Ms Rivera" in visible_text(letter.html)


@pytest.mark.parametrize(("template", "language"), KINDS)
def test_a_request_for_lacking_facts_decides_nothing(tmp_path, template, language):
    text = "[decision]\naction = 'incomplete'\nuntil = 2026-12-16"
    advisor = sexist()
    half = advisor.interview({"income": 300}, language=language)
    letter = write_letter(half, declare(tmp_path, text, language), template)
    shown = visible_text(letter.html)
    assert letter.kind == "request"
    assert letter.reasons == ()
    assert "debts" in shown
    assert "open loans" in shown
    assert "sex" not in shown.split()  # no decision waits for a sensitive fact
    assert write_date(declare(tmp_path, text).decision.until, template, language) in shown
    assert (
        "noch nichts entschieden" if language == "de" else "Nothing has been decided yet"
    ) in shown
    with pytest.raises(SettingError, match=r"decision.until is missing"):
        write_letter(
            half, declare(tmp_path, "[decision]\naction = 'incomplete'", language), template
        )
    with pytest.raises(DataError, match="no fact that may be asked for is lacking"):
        write_letter(
            poor(advisor, language=language, sex="m"), declare(tmp_path, text, language), template
        )


# What is in it


@pytest.mark.parametrize(("template", "language"), KINDS)
def test_every_letter_is_whole_and_says_nothing_forbidden(tmp_path, template, language):
    letters = [
        write_letter(poor(language=language), declare(tmp_path, BUREAU, language), template),
        *(
            write_letter(p, declare(tmp_path, "", language), template)
            for p in refused(n=4, language=language)
        ),
    ]
    for letter in letters:
        text = checked(letter.html)
        assert f'<html lang="{language}">' in letter.html
        assert forbidden_phrase(visible_text(letter.html), language, certified=False) is None
        assert ("keine Kreditzusage" if language == "de" else "not a promise of credit") in text
        assert receipt_id(letter.receipt) in text
        assert letter.receipt.advisor in text
        assert (ECOA_NOTICE in visible_text(letter.html)) == (template == "us")
        assert "no legal advice" in letter.html
        assert "None" not in visible_text(letter.html)


def test_the_elements_of_each_letter(tmp_path):
    operator = declare(tmp_path, BUREAU)
    american, european = (
        visible_text(write_letter(poor(), operator, kind).html) for kind in ("us", "eu")
    )
    for part in (
        "1700 G Street",
        "612",
        "from a low of 300 to a high of 850",
        "late payments; short history",
        "60 days",
    ):
        assert part in american
    for part in (
        "review@example.com",
        "Within 60 days",
        "data@example.com",
        "dpo@example.com",
        "10115 Berlin",
        "not paid out",
    ):
        assert part in european
    for text in (american, european):
        for part in (
            "Example Savings Bank",
            "2026",
            "income 900 EUR you told us",
            "debts 2000 EUR a report of Example Bureau",
        ):
            assert part in text
        assert "5 File Road" in text
    assert "consumer reporting" not in visible_text(write_letter(refused(n=1)[0], operator).html)


def test_another_outside_source_gives_the_right_to_ask(tmp_path):
    features = tuple(
        replace(f, source="the register of companies") if f.source else f for f in FEATURES
    )
    text = visible_text(write_letter(poor(fit_small(features)), declare(tmp_path)).html)
    assert "outside source other than a consumer reporting agency" in text
    assert "another source: the register of companies" in text


def test_told_and_not_used_made_no_difference_here(tmp_path):
    text = visible_text(write_letter(poor(job="a"), declare(tmp_path, BUREAU)).html)
    assert "On our records and not used; it made no difference here: job." in text


def test_the_certificate_is_told_only_to_whom_it_speaks(tmp_path):
    operator, seen = declare(tmp_path), set()
    for person in words(edfa.load("german"))[:6]:
        interview = begin(surviving(), person)
        for _ in walk(interview, person):
            if interview.decision.refused:
                text = visible_text(write_letter(interview, operator).html)
                may_act = interview.standing.may_act
                sentence = f"{narrate.standing(interview.standing)} {interview.guarantee}"
                assert (sentence in text) == may_act
                assert bool(re.search("you may act", text, re.IGNORECASE)) == may_act
                seen.add(may_act)
    assert seen == {True, False}


def test_why_there_is_no_plan(tmp_path):
    interview = (
        small()
        .interview({"income": 900}, overlay=edfa.Overlay(locked=("income", "debt", "loans")))
        .answer(debt=2000, loans=4)
    )
    assert not interview.plans()
    letter = write_letter(interview, declare(tmp_path, BUREAU), "eu")
    assert letter.plans == ()
    assert "not a promise of credit" in visible_text(letter.html)
    assert narrate.no_plan(
        interview.no_plan, small().schema, operator=small().fitted.rules
    ) in visible_text(letter.html)


def test_the_words_of_a_card_in_german(tmp_path):
    translated = edfa.data.schema.FeatureWords(label="Einkommen", reason="Höhe des Einkommens")
    features = (replace(FEATURES[0], translations={"de": translated}), *FEATURES[1:])
    advisor = fit_small(features)
    german_letter = write_letter(
        poor(advisor, language="de"), declare(tmp_path, BUREAU, "de"), "eu"
    )
    english_letter = write_letter(poor(advisor), declare(tmp_path, BUREAU), "eu")
    assert "Höhe des Einkommens: 900 EUR (zu niedrig)" in german_letter.reasons
    assert german_letter.audit["named"] == english_letter.audit["named"]


def test_a_bureau_s_score_that_was_used_is_disclosed_in_the_united_states(tmp_path):
    features = tuple(replace(f, source="bureau score") if f.name == "debt" else f for f in FEATURES)
    person = poor(fit_small(features))
    agency = "[bureau]\nname = 'B'\naddress = 'A'\nphone = '1'\n"
    with pytest.raises(SettingError, match=r"bureau\.score_used.*a bureau's score"):
        write_letter(person, declare(tmp_path, agency + "score_used = false"))
    with pytest.raises(SettingError, match=r"bureau\.score is missing"):
        write_letter(person, declare(tmp_path, agency + "score_used = true"))
    assert "a report of B" in visible_text(
        write_letter(person, declare(tmp_path, agency), "eu").html
    )


# What no letter may say


FORBIDDEN = {
    "en": [
        "These never matter for the decision.",
        "It makes no difference, whatever it is.",
        "Your score was too low.",
        "You did not reach the qualifying score.",
        "It follows from our policy.",
        "Your application is incomplete.",
        "We promise you the loan.",
        "Then it will be approved.",
        "Your chance of success is 80%.",
        "Because of your age you will not repay.",
        "You may act on this plan now.",
    ],
    "de": [
        "Das spielt nie eine Rolle.",
        "Gleich, welches Alter Sie haben.",
        "Ihr Score ist zu niedrig.",
        "Das folgt aus unseren Richtlinien.",
        "Ihr Antrag ist unvollständig.",
        "Wir versprechen Ihnen den Kredit.",
        "Ihre Chance beträgt 80 %.",
        "Weil Sie jung sind, werden Sie den Kredit nicht zurückzahlen.",
        "Sie können jetzt nach dem ersten Plan handeln.",
    ],
}


@pytest.mark.parametrize(
    ("language", "text"), [(lang, text) for lang, texts in FORBIDDEN.items() for text in texts]
)
def test_forbidden_phrases_are_recognised(language, text):
    assert forbidden_phrase(f"Guten Tag. {text} Hello.", language)
    assert (forbidden_phrase(text, language, certified=True) is None) == (
        text.startswith(("You may", "Sie können jetzt"))
    )


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_sentence_and_no_template_says_what_is_forbidden(language):
    def texts(part):
        return (
            [part]
            if isinstance(part, str)
            else [t for p in (part.values() if isinstance(part, dict) else part) for t in texts(p)]
        )

    folder = files("edfa_serve.letters") / "templates"
    templates = [
        entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if f".{language}." in entry.name
    ]
    assert len(templates) == 3
    for text in (
        *texts(sentences(language)),
        *(re.sub(r"\{[%#{].*?[%#}]\}", " ", t, flags=re.DOTALL) for t in templates),
    ):
        assert forbidden_phrase(visible_text(text), language) is None, text


def test_both_languages_have_the_same_sentences():
    def keys(part, prefix=""):
        return {
            k
            for n, p in part.items()
            for k in (
                keys(p, f"{prefix}{n}.")
                if isinstance(p, dict)
                else {(prefix + n, tuple(sorted(re.findall(r"\{\w+\}", str(p)))))}
            )
        }

    assert keys(sentences("en")) == keys(sentences("de"))


# Bytes, receipts, files


def test_the_same_receipt_and_the_same_declarations_give_the_same_bytes(tmp_path):
    interview, key = refused(n=1)[0], b"k" * 16
    receipt = interview.receipt(key=key)
    letters = [
        letter_of_receipt(german().fitted, same, declare(tmp_path), key=key)
        for same in (receipt, Receipt.from_json(receipt.to_json()))
    ]
    assert letters[0].html == letters[1].html
    assert letters[0].audit == letters[1].audit
    assert letters[0].audit["letter_sha256"] == hashlib.sha256(letters[0].html.encode()).hexdigest()
    json.dumps(letters[0].audit)
    other = letter_of_receipt(
        german().fitted, receipt, declare(tmp_path, "[person]\nname = 'Kim'"), key=key
    )
    assert other.html != letters[0].html
    assert other.audit["operator_sha256"] != letters[0].audit["operator_sha256"]
    again = write_letter(interview, declare(tmp_path))
    assert (
        again.html == write_letter(interview, declare(tmp_path)).html
    )  # no time of writing either


def test_no_letter_for_a_receipt_that_does_not_hold(tmp_path):
    receipt = refused(n=1)[0].receipt()
    raised = json.loads(receipt.to_json())
    raised["decision"]["probability"] += 0.01
    for wrong, key in (
        (Receipt.from_json(json.dumps(raised)), None),
        (receipt, b"k" * 16),
        (replace(receipt, advisor="another"), None),
    ):
        with pytest.raises(
            MismatchError, match="no letter is written for a receipt that does not hold"
        ):
            letter_of_receipt(german().fitted, wrong, declare(tmp_path), key=key)
    with pytest.raises(MismatchError, match="not of this interview"):
        write_letter(poor(), declare(tmp_path, BUREAU), receipt=receipt)


def test_a_receipt_s_letter_in_another_language(tmp_path):
    interview = refused(n=1)[0]
    letter = letter_of_receipt(
        german().fitted, interview.receipt(), declare(tmp_path, "", "de"), "eu", language="de"
    )
    assert letter.language == "de"
    direct = write_letter(interview.copy(language="de"), declare(tmp_path, "", "de"), "eu")
    assert direct.reasons == letter.reasons
    assert "Monate" in visible_text(letter.html)


def test_hostile_words_stay_words(tmp_path):
    features = tuple(
        replace(f, label=f"{EVIL} {f.name}", reason="", unit=EVIL if f.unit else "")
        for f in FEATURES
    )
    advisor = fit_small(features, words={"yes": EVIL, "no": EVIL})
    evil = json.dumps(EVIL)
    text = (
        BUREAU.replace('"Example Bureau"', evil).replace('"late payments"', evil)
        + f"""
[creditor]
name = {evil}
address = {evil}
[person]
name = {evil}
[decision]
credit = {evil}
counter_offer = {evil}
[us]
agency = {evil}
[eu]
consequences = {evil}
"""
    )
    for template in ("us", "eu"):
        letter = write_letter(poor(advisor, job="a"), declare(tmp_path, text), template)
        shown = checked(letter.html)
        assert "<img src=x onerror=alert(1)>{{ 7 * 7 }}" in shown
        assert "49" not in shown.replace(receipt_id(letter.receipt), "").replace(
            advisor.fingerprint, ""
        )


def own_template(tmp_path, change):
    """An operator whose folder has the American letter, changed."""
    folder = tmp_path / "own"
    folder.mkdir()
    source = (files("edfa_serve.letters") / "templates" / "us.en.html.jinja").read_text(
        encoding="utf-8"
    )
    (folder / "us.en.html.jinja").write_text(change(source), encoding="utf-8")
    return replace(declare(tmp_path, BUREAU), templates=str(folder))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "{{ ecoa_notice }}",
            "We treat everybody alike.",
            "has lost the notice that 12 CFR 1002.9",
        ),
        ("{{ us.agency }}", "{{ us.agancy }}", "agancy"),
        ("{{ us.agency }}", "{{ nobody }}", "'nobody' is undefined"),
        ("{{ us.agency }}", "{{ us.__class__.__mro__ }}", "__class__"),
        ("{{ us.agency }}", "{% if %}", "us.en.html.jinja, line"),
        ("{{ us.agency }}", "{% include 'other.html' %}", "other.html"),
        ("{{ us.agency }}", "{% include '../letter.toml' %}", "letter.toml"),
        ("{{ us.agency }}", "{{ us.agency }} Your score was too low.", "score was too low"),
        ("{{ us.agency }}", "{{ us.agency }} You may act now.", "You may act"),
        ("{{ us.agency }}", "{{ 1 / 0 }}", "division by zero"),
    ],
)
def test_what_is_wrong_with_an_own_template_is_said(tmp_path, old, new, says):
    with pytest.raises(SettingError, match=re.escape(says)):
        write_letter(poor(), own_template(tmp_path, lambda source: source.replace(old, new)))


def test_an_own_template_is_used_and_on_record(tmp_path):
    plain = write_letter(poor(), declare(tmp_path, BUREAU))
    own = write_letter(
        poor(), own_template(tmp_path, lambda source: source.replace("What you can do", "Next"))
    )
    assert "<h2>Next</h2>" in own.html
    assert own.audit["templates_sha256"] != plain.audit["templates_sha256"]


def test_a_folder_of_templates_is_looked_for_beside_the_file(tmp_path):
    (tmp_path / "ours").mkdir()
    (tmp_path / "letter.toml").write_text("templates = 'ours'", encoding="utf-8")
    assert (
        Path(read_operator(tmp_path / "letter.toml", "en").templates)
        == (tmp_path / "ours").resolve()
    )


def test_a_letter_is_html_or_pdf_and_needs_a_browser_for_the_latter(tmp_path, monkeypatch):
    letter = write_letter(poor(), declare(tmp_path, BUREAU))
    letter.write(tmp_path / "letter.html")
    assert (tmp_path / "letter.html").read_text(encoding="utf-8") == letter.html
    with pytest.raises(SettingError, match=r"\.html or \.pdf"):
        letter.write(tmp_path / "letter.doc")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"write \.html and print that"):
        letter.write(tmp_path / "letter.pdf")
    assert not (tmp_path / "letter.pdf").exists()


@pytest.mark.long
@pytest.mark.browser
def test_a_pdf_has_the_same_bytes_and_fits_a_narrow_screen(tmp_path, chromium):
    letter = write_letter(poor(), declare(tmp_path, BUREAU))
    for name in ("one.pdf", "two.pdf"):
        letter.write(tmp_path / name)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.pdf", "two.pdf"))
    assert one.startswith(b"%PDF")
    assert one == two
    assert b"D:20261116000000" in one
    page = chromium.new_page(viewport={"width": 360, "height": 800})
    page.set_content(letter.html)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()


def test_the_example_has_everything_for_both_templates(tmp_path):
    for template, language in KINDS:
        interview = refused(n=1, language=language)[0]
        assert write_letter(interview, read_operator(EXAMPLE, language), template).reasons


@pytest.mark.parametrize("facts", [{}, {"job": "a"}])
def test_nothing_known_is_an_error(tmp_path, facts):
    interview = strict().interview(facts)
    assert interview.decision.refused
    with pytest.raises(DataError, match="nothing is known"):
        write_letter(interview, declare(tmp_path))
