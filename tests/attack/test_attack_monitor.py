"""Certificates and their monitors under attack: audits at once, foreign and damaged files, people
who are no sample.
"""

import io
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from effort import some
from hostile.receipts import attempt, damaged, loans, people, small
from hypothesis import given, settings

import edfa
from edfa.certification import Monitor
from edfa.cli import app
from edfa.commands.certify import monitor
from edfa.errors import DataError, EmptyTableError, UnreadableError

TABLE = edfa.Table.from_frame


@pytest.fixture
def run(capsys, monkeypatch):
    """The command line in this process."""

    def call(*arguments):
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=ended.value.code or 0, out=out, err=err)

    return call


@pytest.fixture
def folder(tmp_path):
    """The small advisor, saved."""
    small().save(tmp_path / "advisor")
    return tmp_path / "advisor"


@pytest.fixture
def audits(tmp_path):
    """A file of four audits, one of them lost."""
    path = tmp_path / "audits.csv"
    path.write_text("loss\n0\n0\n1\n0\n")
    return path


def anew():
    """An advisor of its own, as the small one was fitted."""
    advisor = edfa.Advisor(**small().get_params(deep=False))
    advisor.fitted_ = small().fitted
    return advisor


def test_monitors_at_once_count_all_audits(folder, audits):
    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(monitor, folder, audits, None, quiet=True) for _ in range(12)]:
            done.result()
    state = Monitor.from_json((folder / "monitor.json").read_text())
    assert (state.audits, state.lost) == (48, 12)
    assert state.log_capital == pytest.approx(
        Monitor.of(small().certificate).audit([0, 0, 1, 0] * 12).log_capital
    )
    assert edfa.Advisor.load(folder).fingerprint == small().fingerprint, (
        "no lock is left in the way"
    )


def test_a_monitor_names_what_it_watches_and_is_refused_elsewhere(folder, audits, run):
    assert run("monitor", folder, audits).code == 0
    path = folder / "monitor.json"
    state = json.loads(path.read_text())
    assert state["advisor"] == small().fingerprint
    assert state["certificate"] == small().certificate.digest
    for change, message in (
        ({"advisor": "another"}, "watches advisor 'another'"),
        ({"certificate": "another"}, "watches certificate another"),
        ({"certificate": ""}, "watches certificate an unnamed one"),
    ):
        path.write_text(json.dumps(state | change))
        for more in ((), (audits,)):
            done = run("monitor", folder, *more)
            assert done.code == 2
            assert message in done.err
            assert json.loads(path.read_text()) == state | change, "and it is left alone"


DAMAGED = ["", "{", "[]", "{}", "null", '{"version": 1}', "[" * 100_000]


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_monitor_is_no_new_one(text, folder, audits, run):
    (folder / "monitor.json").write_text(text)
    for more in ((), (audits,)):
        done = run("monitor", folder, *more)
        assert (done.code, len(done.err.strip().splitlines())) == (2, 1)
        assert "move it away" in done.err
    assert (folder / "monitor.json").read_text() == text


@settings(max_examples=some(150), deadline=None)
@given(damaged(Monitor.of(small().certificate).audit([0, 1, 0]).to_json()))
def test_a_monitor_is_read_as_it_was_written_or_not_at_all(text):
    state, refused = attempt(lambda: Monitor.from_json(text), UnreadableError)
    if refused:
        return
    assert 0 <= state.lost <= state.audits
    assert state.alarm == (state.p_value <= state.delta * (1 + 1e-6))
    assert Monitor.from_json(state.to_json()) == state
    assert state.audit([0, 1]).audits == state.audits + 2


def test_an_alarm_cannot_be_written_away(folder, tmp_path, run):
    (tmp_path / "bad.csv").write_text("loss\n" + "1\n" * 60)
    assert run("monitor", folder, tmp_path / "bad.csv").code == 3
    path = folder / "monitor.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"alarm_at": None}))
    assert run("monitor", folder).code == 2


def test_the_level_of_a_monitor_is_fixed_at_the_first_audit(folder, audits, run):
    assert run("monitor", folder, audits, "--delta", "0.01").code == 0
    assert json.loads(run("monitor", folder, "--json").out)["delta"] == 0.01
    done = run("monitor", folder, audits, "--delta", "0.2")
    assert done.code == 2
    assert "fixed at the first audit, which was held at 0.01, not 0.2" in done.err


def test_a_new_certificate_begins_without_audits_and_says_so(folder, audits, tmp_path, run):
    assert run("monitor", folder, audits).code == 0
    people(400, seed=5).to_csv(tmp_path / "others.csv", index=False)
    done = run("certify", folder, tmp_path / "others.csv")
    assert done.code == 0, done.err
    assert "The audits so far were of the old certificate, and are gone with it." in done.out
    assert json.loads(run("monitor", folder, "--json").out)["audits"] == 0
    assert run("monitor", folder, audits).code == 0
    again = run("certify", folder, tmp_path / "others.csv")
    assert "gone" not in again.out, "the same certificate is the same"
    assert json.loads(run("monitor", folder, "--json").out)["audits"] == 4


def test_a_certificate_is_not_lost_to_one_that_promises_nothing(folder, tmp_path, run):
    people(1, seed=5).to_csv(tmp_path / "one.csv", index=False)
    done = run("certify", folder, tmp_path / "one.csv")
    assert done.code == 3
    assert "The old certificate stays" in done.out
    assert edfa.Advisor.load(folder).certificate == small().certificate
    answer = run("certify", folder, tmp_path / "one.csv", "--json")
    assert (answer.code, json.loads(answer.out)["saved"]) == (3, False)
    assert run("certify", folder, tmp_path / "one.csv", "--replace").code == 3
    assert not edfa.Advisor.load(folder).certificate.certified


def test_copies_of_people_are_no_sample():
    frame, advisor = people(250, seed=5), anew()
    one, twice = pd.concat([frame.head(1)] * 500), pd.concat([frame, frame])
    for copies, message in ((one, "499 of 500 people repeat"), (twice, "250 of 500 people repeat")):
        with pytest.raises(DataError, match=message):
            advisor.certify(copies)
        assert advisor.certificate == small().certificate
    few = pd.concat([frame, frame.head(12)])
    assert "12 of 262 people have exactly the facts of another of them" in " ".join(
        advisor.certify(few).warnings
    )
    for empty in (frame.head(0), loans().test.X[:0]):
        with pytest.raises(EmptyTableError):
            advisor.certify(empty)


def test_strangers_who_happen_to_be_alike_are_a_sample():
    """Of two facts with three levels each, nearly everybody repeats somebody, in training as
    well.
    """
    card = """
[target]
name = "y"
classes = ["no", "yes"]
favourable = "yes"
[features.a]
kind = "categorical"
levels = ["p", "q", "r"]
cost = 1
change = "free"
[features.b]
kind = "categorical"
levels = ["p", "q", "r"]
cost = 1
change = "free"
"""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({name: random.choice(["p", "q", "r"], 900) for name in "ab"})
    frame["y"] = np.where((frame["a"] == "p") ^ (random.random(900) < 0.1), "yes", "no")
    table = TABLE(frame, edfa.Schema.from_toml(card), name="alike")
    options = {
        "predictor": edfa.SubsetXGB("nan", n_estimators=5),
        "searcher": "nearest",
        "reference": "trajectory_end",
    }
    advisor = edfa.Advisor(**options, committee=0).fit(table)
    strangers = pd.DataFrame({name: random.choice(["p", "q", "r"], 300) for name in "ab"})
    assert advisor.certify(strangers).people == 300


def test_training_people_in_a_file_are_refused(folder, tmp_path, run):
    loans().train.frame.drop(columns="outcome").to_csv(tmp_path / "train.csv", index=False)
    done = run("certify", folder, tmp_path / "train.csv")
    assert done.code == 2
    assert "the advisor was fitted on" in done.err
    assert edfa.Advisor.load(folder).certificate == small().certificate


def test_digests_tell_certificates_apart():
    first = small().certificate
    assert first.digest == edfa.certification.Certificate.from_json(first.to_json()).digest
    assert first.digest == replace(first, moved=first.moved).digest
    assert replace(first, alpha=1).digest == replace(first, alpha=1.0).digest
    assert (
        len(
            {
                first.digest,
                replace(first, tau=0.1).digest,
                replace(first, people=first.people + 1).digest,
            }
        )
        == 3
    )
