"""The commands around a saved advisor: what they print, what they write, how they end."""

import json
import shutil
import signal
import subprocess
import sys

import pandas as pd
import pytest
from advisors import config, german, surviving, words

import edfa
from edfa import Advisor, Overlay, Rules
from edfa.cli import app
from edfa.text import narrate

ANSWERS = {
    "age": 35,
    "purpose": "radio/tv",
    "credit_amount": 2400,
    "checking_status": "<0",
    "duration": 48,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A saved advisor that tests only read."""
    path = tmp_path_factory.mktemp("cli") / "advisor"
    german().save(path)
    return path


@pytest.fixture(scope="module")
def promising(tmp_path_factory):
    """A saved advisor with a certificate."""
    path = tmp_path_factory.mktemp("cli") / "promising"
    surviving().save(path)
    return path


def told_to_act(**answers):
    """The interview with the advisor that has a certificate, answered until they may act."""
    interview = surviving().interview({name: answers[name] for name in surviving().schema.start})
    while not interview.standing.may_act:
        interview.answer({interview.question.feature: answers[interview.question.feature]})
    return interview


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(ANSWERS))
    return path


def test_help_loads_nothing_heavy_and_names_every_command_and_exit_code(run):
    code = (
        "import atexit, sys; from edfa.cli import app; heavy = ('numpy', 'pandas', 'torch'); "
        "atexit.register(lambda: print('loaded:', [m for m in heavy if m in sys.modules])); "
        "app(['--help'])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout
    for word in (
        "demo",
        "schema",
        "blanket",
        "fit",
        "interview",
        "advise",
        "certify",
        "monitor",
        "Exit codes",
    ):
        assert word in done.stdout
    for command in (
        "schema",
        "data",
        "blanket",
        "demo",
        "fit",
        "interview",
        "advise",
        "certify",
        "monitor",
        "verify",
    ):
        text = run(command, "--help").stdout
        assert "--json" in text
        assert "--quiet" in text


def test_fit_saves_a_certified_advisor_and_replaces_none_unasked(tmp_path, run):
    assert run("data", "german", "--out", tmp_path / "g.csv").returncode == 0
    edfa.load("german").schema.write(tmp_path / "card.toml")
    out = tmp_path / "advisor"
    arguments = (
        "fit",
        tmp_path / "g.csv",
        "--schema",
        tmp_path / "card.toml",
        "--out",
        out,
        "--threshold",
        "balanced",
    )
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    loaded = Advisor.load(out)
    assert result["advisor"] == loaded.fingerprint
    assert result["certificate"]["status"] == loaded.certificate.status
    assert result["evaluation"]["people"] == 200
    again = run(*arguments, "--quiet")
    assert again.returncode == 2
    assert "--force" in again.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("mine")
    assert run("fit", "german", "--out", tmp_path / "other", "--force").returncode == 2
    assert (tmp_path / "other" / "file").read_text() == "mine"


SLOWLY = """
import sys, time
import edfa.advice.advisor, edfa.cli
def never(*arguments, **options):
    print("calibrating", flush=True)
    time.sleep(60)
edfa.advice.advisor.roll_out = never
edfa.cli.app(["fit", "german", "--out", sys.argv[1], "--quiet", *sys.argv[2:]])
"""


@pytest.mark.long
@pytest.mark.parametrize("exists", [False, True])
def test_fit_that_is_killed_leaves_nothing_or_what_was_there(exists, tmp_path, folder):
    out = tmp_path / "advisor"
    if exists:
        shutil.copytree(folder, out)
    command = [sys.executable, "-c", SLOWLY, out, "--force"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "calibrating\n"
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert [p.name for p in tmp_path.iterdir()] == (["advisor"] if exists else [])
    if exists:
        assert Advisor.load(out).fingerprint == german().fingerprint


def test_an_interview_from_a_file_with_a_receipt_that_holds(promising, answers, tmp_path, run):
    folder = promising
    (tmp_path / "key").write_text("the operator's key, long enough")
    extra = (
        "--receipt",
        tmp_path / "r.json",
        "--key",
        tmp_path / "key",
        "--keep",
        tmp_path / "i.json",
    )
    done = run("interview", folder, "--answers", answers, *extra)
    assert done.returncode == 0, done.stderr
    interview = told_to_act(**ANSWERS)
    while interview.question is not None:  # a file is read to the end
        interview.answer({interview.question.feature: ANSWERS[interview.question.feature]})
    assert narrate.standing(interview.standing) in done.stdout
    early = {name: interview.log.facts[name] for name in told_to_act(**ANSWERS).log.facts}
    (tmp_path / "early.json").write_text(json.dumps(early))
    acting = run("interview", folder, "--answers", tmp_path / "early.json")
    assert told_to_act(**ANSWERS).guarantee in acting.stdout
    assert (
        json.loads((tmp_path / "r.json").read_text())["decision"]["outcome"]
        == interview.decision.outcome
    )
    verified = run("verify", folder, tmp_path / "r.json", "--key", tmp_path / "key")
    assert verified.returncode == 0
    assert "The signature is right" in verified.stdout
    forged = json.loads((tmp_path / "r.json").read_text()) | {"spent": 0.0}
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    refused = run("verify", folder, tmp_path / "forged.json", "--key", tmp_path / "key", "--json")
    assert refused.returncode == 3
    assert json.loads(refused.stdout)["signature"] == "wrong"
    resumed = run(
        "interview", folder, "--resume", tmp_path / "i.json", "--answers", answers, "--json"
    )
    assert (
        json.loads(resumed.stdout)["decision"]
        == json.loads((tmp_path / "r.json").read_text())["decision"]
    )


def test_the_decision_is_that_of_all_facts_in_the_file(folder, tmp_path, run):
    """Also of facts that the policy would not ask for, before a question without an answer."""
    (tmp_path / "a.toml").write_text('age = 35\nhousing = "own"\nchecking_status = "<0"\n')
    receipt = json.loads(
        run("interview", folder, "--answers", tmp_path / "a.toml", "--json").stdout
    )
    assert set(receipt["facts"]) == {"age", "checking_status", "housing"}
    assert receipt["next"]["feature"] == "duration"
    (tmp_path / "b.json").write_text('{"checking_status": null, "housing": null, "duration": 48}')
    receipt = json.loads(
        run("interview", folder, "--answers", tmp_path / "b.json", "--json").stdout
    )
    assert receipt["declined"] == ["checking_status", "housing"]
    assert receipt["facts"] == {"duration": 48}


def test_answers_of_a_file_decide_as_the_same_facts_do_in_python(folder, tmp_path, run):
    """An unknown answer to the first question does not take the others away."""
    turned = 0
    for person in words(edfa.load("german"))[:12]:
        facts = {n: v for n, v in person.items() if n != "checking_status"}
        (tmp_path / "a.json").write_text(json.dumps(facts))
        receipt = json.loads(
            run("interview", folder, "--answers", tmp_path / "a.json", "--json").stdout
        )
        assert receipt["facts"] == facts
        decided = german().interview(facts).decision
        assert receipt["decision"]["outcome"] == decided.outcome
        turned += decided.outcome != german().interview({}).decision.outcome
    assert turned, "somebody's facts must decide otherwise than nothing does"


def test_answers_of_a_file_are_features_and_agree_with_what_is_known(folder, tmp_path, run):
    (tmp_path / "wrong.json").write_text('{"hosing": "own"}')
    done = run("interview", folder, "--answers", tmp_path / "wrong.json", "--json")
    assert done.returncode == 2
    assert "hosing" in done.stderr
    assert "housing" in done.stderr
    (tmp_path / "a.json").write_text('{"age": 35, "duration": 24, "housing": null}')
    kept = ("--keep", tmp_path / "kept.json")
    assert run("interview", folder, "--answers", tmp_path / "a.json", *kept).returncode == 0
    again = ("--resume", tmp_path / "kept.json", "--answers")
    assert run("interview", folder, *again, tmp_path / "a.json").returncode == 0
    (tmp_path / "b.json").write_text('{"age": 36}')
    done = run("interview", folder, *again, tmp_path / "b.json")
    assert done.returncode == 2
    assert "age is known already (35)" in done.stderr


def test_an_interview_in_the_terminal(promising, folder, run):
    asked = [name for moment in told_to_act(**ANSWERS).timeline[1:] for name in moment.facts]
    truth = [str(ANSWERS[name]) for name in asked]
    typed = ["radio/tv", "2400", "35", "a lot", truth[0], ":undo", truth[0], ":plans", *truth[1:]]
    done = run("interview", promising, typed="\n".join(typed) + "\n")
    assert done.returncode == 0, done.stderr
    assert "a lot" in done.stdout
    assert told_to_act(**ANSWERS).guarantee in done.stdout
    stopped = run("interview", folder, typed="radio/tv\n:stop\n")
    assert stopped.returncode == 0
    assert run("interview", folder, typed="").returncode == 0  # the end of the input is a stop


def test_advise_writes_what_interviews_say(folder, tmp_path, run):
    people = words(edfa.load("german"))[:30]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(person) for person in people))
    done = run(
        "advise",
        folder,
        tmp_path / "rows.jsonl",
        "--out",
        tmp_path / "out.jsonl",
        "--json",
        "--plans",
        2,
    )
    assert done.returncode == 0, done.stderr
    counts = {"people": 30, "errors": 0, "flagged": 0, "resumed": 0}
    assert json.loads(done.stdout) == {"out": str(tmp_path / "out.jsonl")} | counts
    for line, person in zip((tmp_path / "out.jsonl").read_text().splitlines(), people, strict=True):
        row, interview = json.loads(line), german().interview(person)
        assert row["outcome"] == interview.decision.outcome
        assert row["status"] == interview.standing.status
        assert len(row["plans"]) == len(interview.plans(k=2))


def test_advise_takes_rules_of_each_person(folder, tmp_path, run):
    people, own = words(edfa.load("german"))[:30], {"locked": ["duration", "checking_status"]}
    rows = [person | {"mine": json.dumps(own) if i % 2 else ""} for i, person in enumerate(people)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "own.jsonl").write_text(
        "\n".join(json.dumps({"row": i} | own) for i in range(1, 30, 2))
    )
    found = []
    for option in (("--rules-column", "mine"), ("--person-rules", tmp_path / "own.jsonl")):
        done = run(
            "advise", folder, tmp_path / "rows.jsonl", "--out", tmp_path / "out.jsonl", *option
        )
        assert done.returncode == 0, done.stderr
        found.append(
            [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        )
    both = ("--rules-column", "mine", "--person-rules", tmp_path / "own.jsonl")
    done = run("advise", folder, tmp_path / "rows.jsonl", "--out", tmp_path / "b.csv", *both)
    assert done.returncode == 2
    assert "give one of the two" in done.stderr
    assert found[0] == found[1]
    for i, (row, person) in enumerate(zip(found[0], people, strict=True)):
        interview = german().interview(person, overlay=Overlay.parse(own) if i % 2 else None)
        assert row["status"] == interview.standing.status
        assert len(row["plans"]) == len(interview.plans())
    assert not any(row["plans"] for row in found[0][1::2])
    assert any(row["plans"] for row in found[0][::2])


def test_advise_ends_with_an_error_where_nobody_was_understood(folder, tmp_path, run):
    (tmp_path / "rows.csv").write_text("duration,age\nlong,35\n-4,35\n")
    for out in ("out.csv", "out.jsonl", "out.parquet"):
        done = run("advise", folder, tmp_path / "rows.csv", "--out", tmp_path / out, "--json")
        assert done.returncode == 2
        assert json.loads(done.stdout)["errors"] == 2
        message = (
            "none of the 2 rows was understood; the first: duration: a number is needed, not 'long'"
        )
        assert done.stderr.strip() == f"error: {message}"
        assert (tmp_path / out).is_file()
    (tmp_path / "rows.csv").write_text("duration,age\nlong,35\n24,35\n")
    assert (
        run("advise", folder, tmp_path / "rows.csv", "--out", tmp_path / "out.csv").returncode == 0
    )


def test_facts_at_the_edge_are_told(folder, tmp_path, run):
    (tmp_path / "rows.csv").write_text("duration,age\n90,35\n24,80\n24,35\n")
    done = run("advise", folder, tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
    assert "2 with facts beyond what was seen" in done.stdout
    typed = ["radio/tv", "2400", "80", "<0", "90"]
    done = run("interview", folder, typed="\n".join(typed) + "\n")
    assert (
        done.stdout.count("80 is above 75, the highest seen; taken as 75") == 2
    )  # when told, and at the end
    german().save(tmp_path / "advisor")
    people = edfa.load("german").calibration.frame.drop(columns="class").assign(age=80)
    people.to_csv(tmp_path / "people.csv", index=False)
    done = run("certify", tmp_path / "advisor", tmp_path / "people.csv", "--no-keep")
    assert "200 of 200 people have a number that nobody had in training" in done.stdout


def test_an_operators_rules_come_from_a_file(tmp_path, run):
    (tmp_path / "rules.toml").write_text(
        '[rules]\nlocked = ["duration"]\nnever_ask = ["checking_status"]\n'
    )
    file = config(tmp_path, searcher="nearest", rules="rules.toml")
    arguments = ("fit", "german", "--config", file, "--threshold", "balanced", "--quiet")
    done = run(*arguments, "--out", tmp_path / "advisor")
    assert done.returncode == 0, done.stderr
    rules = Rules(locked=("duration",), never_ask=("checking_status",))
    assert Advisor.load(tmp_path / "advisor").fitted.operator_rules == rules
    told = {name: value for name, value in ANSWERS.items() if name != "checking_status"}
    (tmp_path / "answers.json").write_text(json.dumps(told))
    (tmp_path / "mine.toml").write_text("max_changes = 1\n")
    extra = ("--answers", tmp_path / "answers.json", "--rules", tmp_path / "mine.toml", "--json")
    receipt = json.loads(run("interview", tmp_path / "advisor", *extra).stdout)
    assert receipt["next"] is None  # the one question of this advisor that is left is never asked
    assert receipt["overlay"]["max_changes"] == 1
    assert receipt["plans"] == []
    assert receipt["no_plan"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("absent.toml", None, "absent.toml"),
        ("r.toml", "locked = [", "r.toml: not a TOML file"),
        (
            "r.toml",
            "max_change = 1",
            "r.toml: rules.max_change: no such key; did you mean 'max_changes'?",
        ),
        ("r.toml", "max_changes = 0", "r.toml: max_changes: at least 1, not 0"),
        (
            "r.toml",
            'locked = ["durations"]',
            "advisor.toml: no feature named 'durations'; did you mean 'duration'?",
        ),
        ("r.toml", 'only = ["age"]', "advisor.toml: age: the card says sensitive"),
        (
            "r.toml",
            'levels = { housing = ["castle"] }',
            "advisor.toml: levels.housing: no level 'castle'",
        ),
        ("r.json", '{"max_changes": 1', "r.json: rules: this is not what to_json writes"),
    ],
)
def test_rules_that_are_wrong_name_their_file(name, text, message, tmp_path, run, monkeypatch):
    monkeypatch.setattr(
        "edfa.advice.advisor.discover", lambda *a, **k: pytest.fail("work was spent")
    )
    if text is not None:
        (tmp_path / name).write_text(text)
    file = config(tmp_path, rules=name)
    done = run("fit", "german", "--config", file, "--out", tmp_path / "advisor")
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "advisor").exists()


def test_certify_and_monitor_end_with_a_no(tmp_path, run):
    surviving().save(tmp_path / "advisor")
    table = edfa.load("german")
    rows = tmp_path / "rows.csv"
    table.calibration.frame.drop(columns="class").to_csv(rows, index=False)
    done = run("certify", tmp_path / "advisor", rows, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "certified"
    assert Advisor.load(tmp_path / "advisor").certificate == surviving().certificate
    (tmp_path / "audits.csv").write_text("loss\n0\n0\n1\n0\n")
    done = run("monitor", tmp_path / "advisor", tmp_path / "audits.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["audits"] == 4
    assert json.loads(run("monitor", tmp_path / "advisor", "--json").stdout)["audits"] == 4
    state = json.loads(run("monitor", tmp_path / "advisor", rows, "--json").stdout)
    promised = surviving().certificate
    acting = promised.triggered * promised.n  # of whom the promise is
    assert acting > 50
    assert state["audits"] == pytest.approx(4 + acting)
    assert state["lost"] == pytest.approx(1 + promised.act_risk * acting)
    (tmp_path / "bad.csv").write_text("loss\n" + "1\n" * 400)
    alarmed = run("monitor", tmp_path / "advisor", tmp_path / "bad.csv")
    assert alarmed.returncode == 3
    assert "Alarm" in alarmed.stdout
    table.calibration.frame.head(5).to_csv(tmp_path / "few.csv", index=False)
    few = run("certify", tmp_path / "advisor", tmp_path / "few.csv", "--quiet", "--no-keep")
    assert (few.returncode, few.stdout) == (3, "")
    assert Advisor.load(tmp_path / "advisor").certificate.certified


def test_certify_refuses_training_people_and_says_how_many(tmp_path, run):
    surviving().save(tmp_path / "advisor")
    table = edfa.load("german")
    pd.concat([table.calibration.frame, table.train.frame]).to_csv(
        tmp_path / "all.csv", index=False
    )
    done = run("certify", tmp_path / "advisor", tmp_path / "all.csv")
    assert done.returncode == 2
    message = "600 of 800 people are among those the advisor was fitted on; certify on others"
    assert done.stderr.strip() == f"error: {message}"
    assert Advisor.load(tmp_path / "advisor").certificate == surviving().certificate


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["interview", "nowhere"], "there is no folder nowhere"),
        (["interview", "{folder}", "--json"], "--answers FILE"),
        (["interview", "{folder}", "--answers", "{bad}"], "duration: 7000 is outside 4 to 72"),
        (["advise", "{folder}", "nowhere.csv", "--out", "o.csv"], "there is no file nowhere.csv"),
        (["fit", "mine.csv", "--out", "o"], "--schema CARD"),
        (["fit", "german", "--out", "o", "--groups", "jbo"], "did you mean 'job'"),
        (["fit", "german", "--out", "o", "--alpha", "7"], "alpha"),
    ],
)
def test_an_error_is_one_line_unless_debug(arguments, message, folder, tmp_path, run, monkeypatch):
    (tmp_path / "bad.json").write_text(json.dumps({"checking_status": "<0", "duration": 7000}))
    command = [a.format(folder=folder, bad=tmp_path / "bad.json") for a in arguments]
    monkeypatch.chdir(tmp_path)
    done = run(*command)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    with pytest.raises(edfa.errors.EdfaError):  # which Python shows with its traceback
        app([*command, "--debug"])
