"""kill -9 of every command that writes, at operations on files all along: the old is there or the
new, and whole.
"""

import random
import re
import shutil
import signal
from pathlib import Path

import pandas as pd
import pytest
from advisors import config
from hostile.killing import IN_PLACE, Victims, leftovers, snapshot

import edfa
from edfa.data.synthetic import credit_story
from edfa.writing import restore_interrupted
from edfa_studies.store import Store

STUDY = (
    'title = "Tiny"\ndata = ["german"]\nseeds = 1\n[[grid]]\nmeasure = '
    '"sets"\nblanket = ["iamb", "hiton-mb"]\n'
)
FIT = (
    "--schema",
    "{inputs}/card.toml",
    "--config",
    "{inputs}/advisor.toml",
    "--force",
)
SCHEMA = ("--target", "repays", "--favourable", "yes", "--force")
LETTER = (
    "--operator",
    str(Path(__file__).parents[2] / "docs" / "examples" / "letter.toml"),
    "--template",
    "us",
)
ADVISE = ("--jobs", 1, "--chunk", 40)
WRITING = {
    "advise csv": (
        "advise",
        "{inputs}/one",
        "{inputs}/rows.csv",
        "--out",
        "{work}/out.csv",
        *ADVISE,
    ),
    "advise parquet": (
        "advise",
        "{inputs}/one",
        "{inputs}/rows.csv",
        "--out",
        "{work}/out.parquet",
        *ADVISE,
    ),
    "fit": ("fit", "{inputs}/table.csv", "--out", "{work}/advisor", *FIT),
    "certify": ("certify", "{work}/advisor", "{inputs}/rows.csv", "--alpha", 0.6),
    "monitor": ("monitor", "{work}/advisor", "{inputs}/audits.csv"),
    "keep": (
        "interview",
        "{inputs}/one",
        "--answers",
        "{inputs}/answers.json",
        "--keep",
        "{work}/keep.json",
    ),
    "receipt": (
        "interview",
        "{inputs}/one",
        "--answers",
        "{inputs}/answers.json",
        "--receipt",
        "{work}/receipt.json",
    ),
    "letter": (
        "letter",
        "{inputs}/one",
        "--receipt",
        "{inputs}/refused.json",
        *LETTER,
        "--out",
        "{work}/letter.html",
    ),
    "schema": ("schema", "{inputs}/table.csv", *SCHEMA, "--out", "{work}/card.toml"),
    "data csv": (
        "data",
        "{inputs}/table.csv",
        "--schema",
        "{inputs}/card.toml",
        "--out",
        "{work}/rows.csv",
    ),
    "data parquet": (
        "data",
        "{inputs}/table.csv",
        "--schema",
        "{inputs}/card.toml",
        "--out",
        "{work}/rows.parquet",
    ),
    "study run": ("study", "run", "{inputs}/tiny.toml", "--out", "{work}/study", "--jobs", 1),
    "study report": ("study", "report", "{inputs}/tiny.toml", "--out", "{work}/study"),
    "demo": ("demo", "--out", "{work}/demo"),
}
OLD = {  # what is there before; the other commands find an advisor, a study or a report
    "advise csv": "out.csv",
    "advise parquet": "out.parquet",
    "keep": "keep.json",
    "receipt": "receipt.json",
    "letter": "letter.html",
    "schema": "card.toml",
    "data csv": "rows.csv",
    "data parquet": "rows.parquet",
    "demo": "demo/report.html",
}


@pytest.fixture(scope="module")
def victims():
    with Victims() as victims:
        yield victims


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, victims):
    """What the commands read: people, a card, answers, audits, a study, a saved advisor."""
    folder = tmp_path_factory.mktemp("inputs")
    table = credit_story().table(500, seed=0)
    table.frame.to_csv(folder / "table.csv", index=False)
    table.schema.write(folder / "card.toml")
    credit_story().table(200, seed=5).frame.drop(columns="repays").to_csv(
        folder / "rows.csv", index=False
    )
    (folder / "audits.csv").write_text("loss\n0\n1\n0\n")
    (folder / "answers.json").write_text('{"savings": null}')
    (folder / "tiny.toml").write_text(STUDY)
    config(folder, searcher="nearest", committee=0, jobs=1)
    settings = {"threshold": "balanced", "searcher": "nearest", "committee": 0, "alpha": 0.5}
    advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=5), **settings).fit(
        table, n_jobs=1
    )
    advisor.save(folder / "one")
    people = table.encoder.decode(table.test.X).to_dict("records")
    interviews = (
        advisor.interview({k: v for k, v in person.items() if v == v}) for person in people
    )
    refused = next(interview for interview in interviews if interview.decision.refused)
    (folder / "refused.json").write_text(refused.receipt().to_json())
    return folder


@pytest.fixture
def prepare(inputs, tmp_path, victims):
    """Makes a folder in which a command finds something old, and the command's words."""

    def make(name):
        work = tmp_path / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        words = [str(word).format(inputs=inputs, work=work) for word in WRITING[name]]
        if name in OLD:
            (work / OLD[name]).parent.mkdir(exist_ok=True)
            (work / OLD[name]).write_text("old " * 999)
        elif "study" in name:
            if name == "study report":
                once = tmp_path / "study"
                if not once.exists():
                    run = WRITING["study run"]
                    victims.run(
                        [str(w).format(inputs=inputs, work=tmp_path) for w in run], tmp_path
                    )
                    victims.run(
                        [str(w).format(inputs=inputs, work=tmp_path) for w in WRITING[name]],
                        tmp_path,
                    )
                    (once / "report" / "report.md").write_text("old")
                shutil.copytree(once, work / "study")
        else:
            shutil.copytree(inputs / "one", work / "advisor")
        return work, words

    return make


def settled(work):
    """The files in a folder, once what was set aside between two renames is put back, as any reader
    or writer does.
    """
    for aside in work.rglob(".*.old"):
        restore_interrupted(aside.with_name(aside.name[1 : -len(".old")]))
    files = {name: content for name, content in snapshot(work).items() if "/." not in f"/{name}"}
    return {name: _plain(name, content) for name, content in files.items() if "sqlite" not in name}


def _plain(name, content):
    """A file without what differs from run to run: times."""
    return (
        re.sub(rb'"time": *"[^"]*"', b'"time": ""', content) if name.endswith(".json") else content
    )


def moments(operations, count, seed):
    """Some operations to be killed at: of all, and of the last, where things are put in their
    place.
    """
    assert operations, "nothing is written by edfa's own writer"
    chosen = random.Random(seed)  # noqa: S311
    late = range(max(0, operations - 14), operations)
    return sorted(
        {
            *chosen.choices(range(operations), k=count // 2),
            *chosen.sample(late, min(count // 2, len(late))),
        }
    )


def check_killed(name, prepare, victims, count):
    work, words = prepare(name)
    old = settled(work)
    code, operations = victims.run(words, work)
    assert code != IN_PLACE, "a file is written in its place, where a kill leaves half of it"
    assert code in (0, 3), f"{words} ends with {code}"
    new = settled(work)
    assert new != old or name == "study run"
    assert leftovers(work) == []
    assert victims.run(words, work)[0] == code
    twice = settled(work)  # the same, but for a monitor: it has counted its audits twice
    assert twice == new or name == "monitor"
    for moment in moments(operations, count, name):
        work, words = prepare(name)
        assert victims.run(words, work, moment)[0] == -signal.SIGKILL
        left = settled(work)
        if name != "study run":  # its cache grows, an entry at a time
            assert left in (old, new), f"killed at operation {moment} of {operations}"
        assert victims.run(words, work)[0] == code, (
            f"after a kill at operation {moment} of {operations}"
        )
        assert settled(work) == (twice if left == new else new)
        assert leftovers(work) == []
        if name == "study run":
            with Store.open(work / "study" / "study.sqlite") as store:
                assert store.status()["status"].tolist() == ["done", "done"]


@pytest.mark.long
@pytest.mark.parametrize("name", WRITING)
def test_a_killed_command_leaves_the_old_or_the_new(name, prepare, victims):
    check_killed(name, prepare, victims, 6)


@pytest.mark.long
@pytest.mark.parametrize("name", WRITING)
def test_a_command_killed_anywhere_leaves_the_old_or_the_new(name, prepare, victims):
    check_killed(name, prepare, victims, 60)


@pytest.mark.long
def test_people_are_advised_once_after_a_kill(prepare, victims):
    """Of a run killed late, everything that was finished is kept; the result is that of a run that
    was not.
    """
    work, words = prepare("advise csv")
    _, operations = victims.run(words, work)
    whole = (work / "out.csv").read_bytes()
    work, words = prepare("advise csv")
    assert victims.run(words, work, operations - 12)[0] == -signal.SIGKILL
    parts = [path.stat().st_mtime_ns for path in work.glob(".out.csv.parts/*.parquet")]
    assert parts
    assert victims.run(words, work)[0] == 0
    assert (work / "out.csv").read_bytes() == whole
    assert len(pd.read_csv(work / "out.csv")) == 200
