"""The demo: its applicant is real, its plan is what the model says, and its report needs nothing else."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from webpage import checked

import edfa
from edfa import demo


@pytest.fixture(scope="module")
def shown():
    return demo.show()


def test_the_applicant_is_a_test_person_who_was_asked_until_they_may_act(shown):
    frame = shown.table.test.frame[list(shown.table.schema.names)]
    assert (frame == list(shown.facts.values())).all(axis=1).any()
    assert shown.advisor.certificate.certified
    assert shown.interview.standing.may_act
    assert len(shown.turns) >= 2
    assert shown.interview.question is not None, "and something was left to ask"
    assert shown.interview.log.facts.items() <= dict(shown.facts).items()


def test_no_plan_touches_what_a_lender_would_freeze(shown):
    for plan in shown.interview.plans():
        for change in plan.changes:
            assert shown.table.schema[change.feature].actionable
            assert change.feature not in demo.FIXED


def test_what_became_of_the_plan_is_what_the_model_says(shown):
    """Worked out again from the model alone: all true facts, then the first plan's values over them."""
    model, encoder, schema = shown.advisor.fitted.predictor, shown.table.encoder, shown.table.schema
    row = encoder.encode_person(shown.facts)
    then = row.copy()
    for change in shown.plan.changes:
        then[schema.index(change.feature)] = encoder.encode_person({change.feature: change.after})[
            schema.index(change.feature)
        ]
    now, after = model.decide(model.predict_proba(np.stack([row, then])))
    assert shown.lasts == (now == 0 and after == 1)


def test_those_who_may_act_early_are_those_whom_interviews_let_go(shown):
    """Everybody of the test part is interviewed one by one, and their plan is put over all their facts."""
    lasted = []
    for facts in shown.table.encoder.decode(shown.table.test.X).to_dict("records"):
        held = demo._hold(shown.advisor, shown.table, facts, "en")
        if held.interview.standing.may_act and held.interview.question is not None:
            lasted.append(held.lasts)
    assert shown.early == (len(lasted), lasted.count(False))
    assert 0 < lasted.count(False) < len(lasted)


def test_a_promise_to_those_who_act_early_cannot_be_had_here(shown):
    settings = {"blanket": demo.METHOD, "threshold": "balanced", "alpha": demo.ALPHA}
    assert not edfa.Advisor(**settings, target="early").fit(shown.table).certificate.certified


def test_the_report_is_whole_and_says_what_was_found(shown, tmp_path):
    path = demo.write(shown, tmp_path / "deep" / "folder")
    page = path.read_text(encoding="utf-8")
    told = checked(page.partition(">")[2])
    assert page.count("<svg") == 4, "units, risk, timeline, plans"
    for name in shown.advisor.fitted.blanket.features:
        assert name in told
    assert shown.advisor.certificate.sentence in told
    for turn in shown.turns:
        assert turn.question in told
        assert turn.answer in told
    receipt = re.search(r"<pre>(.*)</pre>", page, re.S).group(1)
    assert "&quot;advisor&quot;" in receipt
    assert "://" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert list(path.parent.iterdir()) == [path], "nothing is left beside it"


def test_the_demo_speaks_german():
    told = demo.tell(demo.show("de"))
    assert "Bitte nennen Sie uns als Nächstes" in str(told)
    assert "Please tell us" not in str(told)


def run(folder, *arguments):
    command = [sys.executable, "-m", "edfa", "demo", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=None)
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "demo" / "report.html").is_file()
    return done.stdout


def test_the_command_tells_the_story(tmp_path, shown):
    told = run(tmp_path)
    assert "1,000 people" in told
    for feature in edfa.load("german").schema:
        assert feature.name in told
    assert "└── duration" in told
    assert told.count("\n? ") == len(shown.turns)
    assert "You may act on the first plan now" in told


def test_the_command_for_machines_and_in_silence(tmp_path, shown):
    found = json.loads(run(tmp_path, "--json"))
    assert found["asked"] == [name for moment in shown.interview.timeline[1:] for name in moment.facts]
    assert found["lasts"] == shown.lasts
    assert found["report"] == "out/demo/report.html"
    assert run(tmp_path, "--quiet") == ""
