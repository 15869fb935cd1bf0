"""The demo: its applicant is real, its plan is what the model says, and its report needs nothing
else.
"""

import json
import re
from html import unescape

import numpy as np
import pytest
from webpage import checked

import edfa
from edfa import demo
from edfa.advice.promise import roll_out


@pytest.fixture(scope="module")
def result():
    return demo.run_demo()


def test_the_applicant_is_a_test_person_who_was_asked_until_they_may_act(result):
    frame = result.table.test.frame[list(result.table.schema.names)]
    assert (frame == list(result.facts.values())).all(axis=1).any()
    assert result.advisor.certificate.certified
    assert result.interview.standing.may_act
    assert len(result.turns) >= 2
    assert result.interview.question is not None, "and something was left to ask"
    assert result.interview.log.facts.items() <= dict(result.facts).items()


def test_the_plans_are_what_a_loan_officer_would_say(result):
    """Of what a person can change, the good way, nothing that card or lender rule out, among
    people, within a year.
    """
    schema, plans = result.table.schema, result.interview.plans()
    assert len(plans) >= 2, "there is a choice"
    for plan in plans:
        assert plan.months <= demo.RULES.max_months
        assert plan.support >= 6, "a hundredth of the training people"
        for change in plan.changes:
            feature = schema[change.feature]
            assert feature.actionable
            rank = feature.levels.index if feature.levels else float
            assert (rank(change.after) > rank(change.before)) == (feature.monotone == "up")
            assert (change.feature, "*", change.after) not in schema.rules.forbidden


def test_what_became_of_the_plan_is_what_the_model_says(result):
    """Worked out again from the model that sees every feature: all true facts, the first plan's
    values over them.
    """
    model, encoder = result.advisor.fitted.model, result.table.encoder
    then = dict(result.facts) | {change.feature: change.after for change in result.plan.changes}
    assert result.lasts == (model.predict(encoder.encode_person(then)[None])[0] == 1)


@pytest.mark.long
def test_those_who_may_act_early_are_those_whom_interviews_let_go(result):
    """Everybody of the test part is interviewed one by one, and their plan is put over all their
    facts.
    """
    lasted = []
    for facts in result.table.encoder.decode(result.table.test.X).to_dict("records"):
        person = demo._interview(result.advisor, result.table, facts, "en")
        if person.interview.standing.may_act and person.interview.question is not None:
            lasted.append(person.lasts)
    test = roll_out(result.advisor.fitted, result.table.test.X)
    stops = result.advisor.certificate.stop(test.records)
    early = stops.triggered & (stops.step < test.trajectory.step[test.trajectory.last])
    failed = np.asarray(test.records.loss)[(test.trajectory.at(0) + stops.step)[early]]
    assert (early.sum(), failed.sum()) == (len(lasted), lasted.count(False))
    assert 0 < lasted.count(False) < len(lasted)


def test_the_report_is_whole_and_says_what_was_found(result, tmp_path):
    path = demo.write_report(result, tmp_path / "deep" / "folder")
    page = path.read_text(encoding="utf-8")
    text = checked(page.partition(">")[2])
    assert page.count("<svg") == 2, "timeline, risk"
    for name in result.advisor.fitted.blanket.features:
        assert result.table.schema[name].title in text
    assert result.advisor.certificate.sentence in text
    for turn in result.turns:
        assert turn.question in text
        assert turn.answer in text
    receipt = re.search(r"<pre>(.*)</pre>", page, re.S).group(1)
    assert '"' not in receipt, "it is escaped"
    assert json.loads(unescape(receipt))["advisor"] == result.advisor.fingerprint
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert list(path.parent.iterdir()) == [path], "nothing is left beside it"


@pytest.fixture(scope="module")
def german(result):
    """The same applicant, interviewed in German."""
    return demo._interview(result.advisor, result.table, result.facts, "de")


def test_the_demo_speaks_german(german):
    story = str(demo.story(german))
    assert "Nach allem, was bisher bekannt ist" in story
    assert "Wie hoch ist der Stand Ihres Girokontos?" in story
    assert "What is the balance" not in story


def test_an_unknown_language_is_an_error_before_any_work():
    with pytest.raises(edfa.errors.EdfaError, match="fr"):
        demo.run_demo("fr", progress=pytest.fail)


def test_the_german_report_is_german_throughout(german):
    page = demo.report(german)
    assert '<html lang="de">' in page
    told = checked(
        re.sub(r"<details.*?</details>|<style.*?</style>", "", page.partition(">")[2], flags=re.S)
    )
    for word in (
        "the",
        "people",
        "applicant",
        "plan may",
        "would",
        "cost",
        "known",
        "months",
        "years",
    ):
        assert not re.search(rf"\b{word}\b", told), word
    for part in (
        "Was der Person gesagt wird",
        "Welche Angaben zählen",
        "in der Prüfung gesehen",
        "Der Beleg",
    ):
        assert part in told or part in page


def test_the_report_begins_with_the_applicant_and_speaks_no_dialect(result):
    page = demo.report(result)
    told = checked(
        re.sub(r"<details.*?</details>|<style.*?</style>", "", page.partition(">")[2], flags=re.S)
    )
    order = [
        "What the applicant is told",
        "May I act now?",
        "What would change the decision",
        "Which facts count",
    ]
    places = [told.index(heading) for heading in order]
    assert places == sorted(places)
    for word in ("tau", "cp", "zone", "alpha", "hb", "data_limited"):
        assert not re.search(rf"\b{word}\b", told), word
    shown_as_themselves = {
        name for name in result.table.schema.names if result.table.schema[name].title == name
    }
    for name in (
        {*result.table.schema.names}
        - shown_as_themselves
        - {"duration", "purpose", "employment", "job"}
    ):
        assert not re.search(rf"\b{name}\b", told), f"{name} is a column, not a label"


@pytest.mark.long
@pytest.mark.parametrize("width", [420, 360])
def test_a_phone_needs_no_sideways_scrolling(result, chromium, width):
    page = chromium.new_page(viewport={"width": width, "height": 800})
    page.set_content(demo.report(result))
    page.click("summary")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


@pytest.fixture
def told(result, run, monkeypatch, tmp_path):
    """Runs the command, for which the demo above is at hand, in a folder of its own."""

    def tell(*arguments, language="en"):
        def at_hand(asked, progress):
            assert asked == language
            progress("blanket", 1, 1)
            return result

        monkeypatch.setattr(demo, "run_demo", at_hand)
        monkeypatch.chdir(tmp_path)
        done = run("demo", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return tell


def test_the_command_tells_the_story(told, result, tmp_path):
    text = told()
    assert (tmp_path / "out" / "demo" / "report.html").is_file()
    assert "1,000 people" in text
    for feature in result.table.schema:
        assert feature.name in text
    assert text.count("\n? ") == len(result.turns)
    assert text.index("One applicant") < text.index("Which facts count"), "first the applicant"
    assert "You may act on the first plan now" in text


def test_the_command_for_machines_and_in_silence(told, result, tmp_path):
    summary = json.loads(told("--json"))
    assert summary["asked"] == [
        name for moment in result.interview.timeline[1:] for name in moment.facts
    ]
    assert summary["lasts"] == result.lasts
    assert summary["report"] == "out/demo/report.html"
    assert told("--quiet", "--language", "de", "--out", "other", language="de") == ""
    assert (tmp_path / "other" / "report.html").is_file()
