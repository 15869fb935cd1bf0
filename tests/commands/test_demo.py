"""The demo: one real test person for each ending, told what the model says, and a report that needs
nothing else.
"""

import json
import re
from html import unescape

import pytest
from webpage import checked

import edfa
from edfa import demo
from edfa.advice.promise import roll_out
from edfa.certification.endings import ENDINGS, stop_endings
from edfa.text.record import InterviewRecord


@pytest.fixture(scope="module")
def result():
    return demo.run_demo()


def test_there_is_a_test_person_for_each_ending_who_was_asked_until_it(result):
    frame = result.table.test.frame[list(result.table.schema.names)]
    assert tuple(result.applicants) == ENDINGS
    for name, one in result.applicants.items():
        assert (frame == list(one.facts.values())).all(axis=1).any()
        assert result.advisor.endings[name].certified
        standing = one.interview.standing
        assert (standing.status, standing.promised, standing.complete) == (name, True, False)
        assert len(one.turns) >= demo.ENOUGH_QUESTIONS
        assert one.interview.log.facts.items() <= dict(one.facts).items()
        for turn in one.turns[:-1]:
            assert turn.decision.startswith("It cannot be said yet"), "no verdict on the way"
    assert len({id(one) for one in result.applicants.values()}) == len(ENDINGS)


def test_the_operator_s_rules_are_kept(result):
    for one in result.applicants.values():
        assert not {*demo.RULES.never_ask} & {*one.interview.log.facts}
        for plan in one.interview.plans():
            assert plan.months <= result.table.schema.rules.max_months
            for change in plan.changes:
                assert result.table.schema[change.feature].actionable


def test_whether_it_was_kept_is_what_the_model_says_of_all_answers(result):
    """Worked out again from the model: all that may be asked known, the plan's values over it."""
    fitted = result.advisor.fitted

    def granted(facts):
        asked = {n: v for n, v in facts.items() if n not in demo.RULES.never_ask}
        row = fitted.encoder.encode_person(asked)
        return bool(fitted.predictor.predict(row[None])[0] == fitted.favourable)

    applicants = result.applicants
    assert applicants["granted"].kept == granted(applicants["granted"].facts)
    acting = applicants["act"]
    plan = acting.interview.plans()[0]
    after = {change.feature: change.after for change in plan.changes}
    grown = {"age": acting.facts["age"] + plan.months / 12}
    with_plan = acting.facts | grown | after
    assert acting.kept == (granted(with_plan) and not granted(acting.facts))
    assert not applicants["nothing"].kept or not granted(applicants["nothing"].facts)


@pytest.mark.long
def test_what_is_kept_of_single_people_is_what_was_measured(result):
    """People of the test part are interviewed one by one, and are told and let down as the advisor
    measured of all of them.
    """
    fitted, table = result.advisor.fitted, result.table
    rows = table.test.X[:120]
    rollout = roll_out(fitted, rows)
    taus = {name: certificate.tau for name, certificate in result.advisor.endings.items()}
    ends = stop_endings(rollout.endings, taus)
    broken = 0
    for i, facts in enumerate(table.encoder.decode(rows).to_dict("records")):
        facts = {name: None if value != value else value for name, value in facts.items()}
        one = demo.interview_person(result.advisor, facts, "en")
        early = one.interview.question is not None
        assert (one.interview.standing.status if early else None) == (
            ends.ending[i] if ends.row[i] < rollout.trajectory.last[i] else None
        )
        if early:
            lost = bool(rollout.endings[ends.ending[i]].loss[ends.row[i]])
            assert one.kept == (not lost)
            broken += lost
    assert broken > 0


def test_the_report_is_whole_and_says_what_was_found(result, tmp_path):
    path = demo.write_report(result, tmp_path / "deep" / "folder")
    page = path.read_text(encoding="utf-8")
    text = checked(page.partition(">")[2])
    assert page.count("<svg") == len(ENDINGS) + 1, "a timeline each, and the risk"
    for name in result.advisor.fitted.blanket.features:
        assert result.table.schema[name].title in text
    for certificate in result.advisor.endings.values():
        assert certificate.sentence in text
    receipts = re.findall(r"<pre>(.*?)</pre>", page, re.S)
    for one, receipt in zip(result.applicants.values(), receipts, strict=True):
        assert one.interview.guarantee in text
        for turn in one.turns:
            assert turn.question in text
            assert turn.answer in text
        assert '"' not in receipt, "it is escaped"
        assert json.loads(unescape(receipt))["advisor"] == result.advisor.fingerprint
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert list(path.parent.iterdir()) == [path], "nothing is left beside it"


@pytest.fixture(scope="module")
def german(result):
    """The same people, interviewed in German."""
    again = {
        name: demo.interview_person(result.advisor, one.facts, "de")
        for name, one in result.applicants.items()
    }
    return demo.Demo(result.table, result.advisor, again)


def test_the_demo_speaks_german(german):
    story = str(demo.story(german))
    assert "Nach allem, was bisher bekannt ist" in story
    assert "lässt sich noch nicht sagen" in story
    assert "Es tut uns leid" in story
    assert "Welches ist Ihr höchster Bildungsabschluss?" in story
    assert "What is your highest schooling" not in story


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("language", ["en", "de"])
def test_what_became_of_each_is_told_either_way(result, german, monkeypatch, language, kept):
    monkeypatch.setattr(demo.Applicant, "kept", property(lambda one: kept))
    told = {"en": result, "de": german}[language]
    words = {"en": ("certificate allows", "other answers"), "de": ("rechnet das", "übrige")}
    for name, (_, lines) in zip(told.applicants, demo.story(told), strict=False):
        assert words[language][1] in lines[-1]
        assert (words[language][0] in lines[-1]) != kept, name


def test_an_unknown_language_is_an_error_before_any_work():
    with pytest.raises(edfa.errors.EdfaError, match="fr"):
        demo.run_demo("fr", progress=pytest.fail)


def told_text(page):
    """What a reader sees of a report without opening anything."""
    whole = re.sub(
        r"<details.*?</details>|<style.*?</style>", "", page.partition(">")[2], flags=re.S
    )
    return checked(whole)


def test_the_german_report_is_german_throughout(german):
    page = demo.report(german)
    assert '<html lang="de">' in page
    told = told_text(page)
    english = ("the", "people", "applicant", "plan may", "would", "cost", "known", "months")
    for word in english:
        assert not re.search(rf"\b{word}\b", told), word
    for part in (
        "Ein Mensch, der früh angenommen ist",
        "Welche Angaben zählen",
        "in der Prüfung gesehen",
        "Der Beleg",
    ):
        assert part in told or part in page


def test_the_report_begins_with_the_people_and_speaks_no_dialect(result):
    told = told_text(demo.report(result))
    order = ["granted early", "who may act", "whom nothing helps", "Which facts count"]
    places = [told.index(heading) for heading in order]
    assert places == sorted(places)
    for word in ("tau", "cp", "zone", "alpha", "hb", "data_limited"):
        assert not re.search(rf"\b{word}\b", told), word
    for feature in result.table.schema:
        rules = {"education", "race", "sex", "education-num"}  # are named in the exact sentence
        if feature.title != feature.name and feature.name not in rules:
            assert not re.search(rf"\b{feature.name}\b(?! )", told), f"{feature.name} is a column"


@pytest.mark.long
@pytest.mark.parametrize("width", [420, 360])
def test_a_phone_needs_no_sideways_scrolling(result, chromium, width):
    page = chromium.new_page(viewport={"width": width, "height": 800})
    page.set_content(demo.report(result))
    page.click("summary >> nth=0")
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
    assert f"{len(result.table):,} people" in text
    for feature in result.table.schema:
        assert feature.name in text
    turns = [turn for one in result.applicants.values() for turn in one.turns]
    assert text.count("\n? ") == len(turns)
    assert text.index("granted early") < text.index("Which facts count"), "first the people"
    for one in result.applicants.values():
        for sentence in InterviewRecord(one.interview).sentences()["standing"]:
            assert sentence in text


def test_the_command_for_machines_and_in_silence(told, result, tmp_path):
    summary = json.loads(told("--json"))
    for name, one in result.applicants.items():
        said = summary["applicants"][name]
        assert said["asked"] == [n for moment in one.interview.timeline[1:] for n in moment.facts]
        assert (said["status"], said["kept"]) == (name, one.kept)
    assert set(summary["endings"]) == {*ENDINGS}
    assert summary["report"] == "out/demo/report.html"
    assert told("--quiet", "--language", "de", "--out", "other", language="de") == ""
    assert (tmp_path / "other" / "report.html").is_file()
