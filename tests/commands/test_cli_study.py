"""``edfa study``, with an engine and a store that only remember what they are asked, and once in
earnest.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from typer.testing import CliRunner

from edfa.cli import app, cli
from edfa_studies.config import expand, read_study

STUDY = """
title = "Mine"
seeds = 2
people = 5

[[grid]]
title = "Growth"
measure = "growth"
data = ["german"]
policy = ["edfa", "dime"]

[[grid]]
title = "Sets"
measure = "sets"
data = ["german"]
"""


@dataclass(frozen=True)
class FakeProgress:
    total: int
    done: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def left(self):
        return self.total - self.done - self.failed - self.skipped


class FakeStore:
    """Remembers notes; ``rows`` are the cells that it is taken to know."""

    rows = ()
    notes = None

    @classmethod
    def open(cls, place):
        if "://" not in str(place):
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            Path(place).touch()
        cls.place = place
        return cls()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def note(self, name, value):
        type(self).notes[name] = value

    def status(self):
        columns = [
            "key",
            "measure",
            "data",
            "predictor",
            "policy",
            "searcher",
            "status",
            "seconds",
            "attempts",
            "error",
        ]
        return pd.DataFrame(self.rows, columns=columns)


@pytest.fixture
def fakes(monkeypatch, tmp_path):
    """An engine, a store and a report that do nothing; ``calls`` are what they were asked."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(STUDY)
    engine, store, report = (
        ModuleType(f"edfa_studies.{name}") for name in ("engine", "store", "report")
    )
    engine.ends = {}
    engine.calls = []

    def run_study(cells, opened, cache, **options):
        engine.calls.append({"cells": cells, "cache": cache, **options})
        end = FakeProgress(len(cells), **({"done": len(cells)} | engine.ends))
        options["progress"](end)
        return end

    def write_report(opened, config, folder):
        engine.calls.append({"config": config, "folder": folder})
        return [folder / "report.html"]

    engine.run_study = run_study
    store.Store = FakeStore
    report.write_report = write_report
    monkeypatch.setattr(FakeStore, "rows", [])
    monkeypatch.setattr(FakeStore, "notes", {})
    for module in (engine, store, report):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return engine


def invoke(*words):
    return CliRunner().invoke(cli, ["study", *map(str, words)], catch_exceptions=False)


def row(cell, status="done", error=None):
    labels = {key: value for key, value in cell.labels.items() if key != "blanket"}
    return {
        "key": cell.key,
        "measure": cell.measure,
        **labels,
        "status": status,
        "seconds": 50.0,
    } | {
        "attempts": 1,
        "error": error,
    }


def test_help_lists_the_commands():
    done = invoke("--help")
    for command in ("plan", "run", "status", "report", "list"):
        assert command in done.stdout


def test_the_shipped_studies_are_listed():
    done = invoke("list")
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [
        "smoke",
        "demo",
        "paper",
        "full",
    ]
    studies = json.loads(invoke("list", "--json").stdout)["studies"]
    assert [s["name"] for s in studies] == ["smoke", "demo", "paper", "full"]
    assert all(s["cells"] > 10 for s in studies)


def test_plan_shows_cells_and_time_and_writes_nothing(fakes, tmp_path):
    done = invoke("plan", "mine.toml")
    assert done.exit_code == 0
    for words in (
        "Mine",
        "Growth",
        "Sets",
        "4 growth, 1 sets",
        "shared work, done once:",
        "in all: 5 cells",
    ):
        assert words in done.stdout
    assert "An estimate, from times measured once" in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.toml"]
    assert fakes.calls == []


def test_plan_as_json_adds_up(fakes):
    result = json.loads(invoke("plan", "mine.toml", "--json").stdout)
    assert (result["study"], result["title"], result["cells"], result["done"]) == (
        "mine",
        "Mine",
        5,
        0,
    )
    assert [grid["cells"] for grid in result["grids"]] == [4, 1]
    assert result["seconds"] == pytest.approx(sum(grid["seconds"] for grid in result["grids"]))
    kinds = {shared["kind"]: shared["count"] for shared in result["shared"]}
    assert (kinds["blanket"], kinds["predictor"], kinds["trajectory"]) == (1, 1, 4)


def test_plan_takes_times_from_cells_that_are_done(fakes, tmp_path, monkeypatch):
    cells = expand(read_study(tmp_path / "mine.toml"))
    monkeypatch.setattr(FakeStore, "rows", [row(cells[0])])
    FakeStore.open(tmp_path / "mine-study" / "study.sqlite")
    result = json.loads(invoke("plan", "mine.toml", "--json").stdout)
    assert (result["done"], result["measured"]) == (1, 1)
    assert "1 of 4 open cells from cells like them" in result["basis"]
    assert "5 cells, 1 of them done" in invoke("plan", "mine.toml").stdout


def test_run_hands_everything_to_the_engine(fakes, tmp_path):
    options = [
        "--jobs",
        3,
        "--scheduler",
        "tcp://127.0.0.1:1",
        "--retry-failed",
        "--limit-minutes",
        2,
    ]
    done = invoke("run", "mine.toml", *options)
    assert done.exit_code == 0
    assert "5 of 5 cells measured" in done.stdout
    (call,) = fakes.calls
    assert [cell.key for cell in call["cells"]] == [
        cell.key for cell in expand(read_study(tmp_path / "mine.toml"))
    ]
    assert (call["jobs"], call["scheduler"], call["retry_failed"]) == (3, "tcp://127.0.0.1:1", True)
    assert call["limit_seconds"] == 120
    assert call["cache"] == tmp_path / "mine-study" / "cache"
    assert FakeStore.place == Path("mine-study/study.sqlite")
    assert FakeStore.notes["title"] == "Mine"
    assert FakeStore.notes["config"] == STUDY


def test_run_somewhere_else_and_some_cells_alone(fakes, tmp_path):
    places = [
        "--out",
        tmp_path / "out",
        "--store",
        "postgresql+psycopg://h/d",
        "--cache",
        tmp_path / "c",
    ]
    done = invoke("run", "mine.toml", *places, "--only", "policy=dime,seed=1")
    assert done.exit_code == 0
    (call,) = fakes.calls
    assert [(cell.policy.name, cell.seed) for cell in call["cells"]] == [("dime", 1)]
    assert (call["cache"], call["limit_seconds"]) == (tmp_path / "c", None)
    assert FakeStore.place == "postgresql+psycopg://h/d"


def test_run_says_what_is_left(fakes):
    fakes.ends = {"done": 2, "skipped": 1}
    done = invoke("run", "mine.toml", "--limit-minutes", 1)
    assert done.exit_code == 0
    assert "2 of 5 cells measured" in done.stdout
    assert "1 were done before" in done.stdout
    assert "2 are left; run the same command again to go on" in done.stdout


def test_run_ends_with_3_where_cells_failed(fakes):
    fakes.ends = {"done": 4, "failed": 1}
    done = invoke("run", "mine.toml")
    assert done.exit_code == 3
    assert (
        "1 failed; edfa study status mine.toml shows why, --retry-failed tries them again"
        in done.stdout
    )
    quiet = invoke("run", "mine.toml", "--quiet")
    assert (quiet.exit_code, quiet.stdout) == (3, "")
    result = json.loads(invoke("run", "mine.toml", "--json").stdout)
    assert {key: result[key] for key in ("total", "done", "before", "failed", "left")} == {
        "total": 5,
        "done": 4,
        "before": 0,
        "failed": 1,
        "left": 0,
    }


def test_run_refuses_before_anything_begins(fakes, tmp_path, capsys, monkeypatch):
    def fails(*words):
        with pytest.raises(SystemExit) as end:
            app(["study", *words])
        assert end.value.code == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.count("\n") == 1
        return error

    assert "no study named 'smoek'; did you mean 'smoke'" in fails("run", "smoek")
    assert "no policy in this study named 'dimee'" in fails(
        "run", "mine.toml", "--only", "policy=dimee"
    )
    (tmp_path / "bad.toml").write_text(STUDY.replace("people", "pepole"))
    assert "bad.toml: pepole: no such key; did you mean 'people'" in fails("run", "bad.toml")
    (tmp_path / "bn.toml").write_text(
        STUDY + '[[grid]]\nmeasure = "growth"\ndata = "german"\npredictor = "bn"'
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'edfa[bn]'" in fails("run", "bn.toml")
    assert fakes.calls == []
    assert not (tmp_path / "mine-study").exists()


def test_sets_that_are_not_here_are_named(fakes, tmp_path, monkeypatch):
    monkeypatch.delenv("EDFA_DATA", raising=False)
    (tmp_path / "heloc.toml").write_text(STUDY.replace("german", "heloc"))
    for command in ("plan", "run"):
        done = invoke(command, "heloc.toml")
        assert "not on this machine, to be fetched from OpenML: heloc" in done.stdout


def test_status_counts_and_gives_reasons(fakes, tmp_path, monkeypatch):
    assert "0 done, 5 open, 0 failed" in invoke("status", "mine.toml").stdout
    assert not (tmp_path / "mine-study").exists()
    cells = expand(read_study(tmp_path / "mine.toml"))
    error = "Traceback (most recent call last):\n  a line\nValueError: [the] reason\n"
    other = row(cells[0]) | {"key": "of another study"}
    monkeypatch.setattr(FakeStore, "rows", [row(cells[0]), row(cells[1], "failed", error), other])
    FakeStore.open(tmp_path / "mine-study" / "study.sqlite")
    done = invoke("status", "mine.toml")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "1 done, 3 open, 1 failed",
        repr(cells[1]),
        "  ValueError: [the] reason",
    ]
    assert error in invoke("status", "mine.toml", "--errors").stdout
    result = json.loads(invoke("status", "mine.toml", "--json").stdout)
    assert (result["done"], result["open"], result["failed"], result["total"]) == (1, 3, 1, 5)
    assert result["failures"] == [
        {"cell": repr(cells[1]), "key": cells[1].key, "attempts": 1, "error": error}
    ]


def test_report_is_written_into_the_folder(fakes, tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        app(["study", "report", "mine.toml"])
    assert end.value.code == 2
    assert "run the study first: edfa study run mine.toml" in capsys.readouterr().err
    FakeStore.open(tmp_path / "out" / "study.sqlite")
    result = json.loads(invoke("report", "mine.toml", "--out", tmp_path / "out", "--json").stdout)
    assert result["files"] == [str(tmp_path / "out" / "report" / "report.html")]
    (call,) = fakes.calls
    assert call["config"].title == "Mine"


def test_a_small_study_in_earnest(tmp_path, monkeypatch):
    """Planned, run in two parts, again with nothing to do, followed."""
    pytest.importorskip("edfa_studies.engine")
    pytest.importorskip("edfa_studies.measures")
    monkeypatch.chdir(tmp_path)
    small = STUDY.replace('["edfa", "dime"]', '["edfa"]') + "[predictors.xgb]\nn_estimators = 5\n"
    (tmp_path / "mine.toml").write_text(small)
    first = json.loads(
        invoke("run", "mine.toml", "--jobs", 1, "--only", "measure=sets", "--json").stdout
    )
    assert (first["done"], first["total"]) == (1, 1)
    second = json.loads(invoke("run", "mine.toml", "--jobs", 1, "--json").stdout)
    assert (second["done"], second["before"], second["failed"]) == (2, 1, 0)
    third = json.loads(invoke("run", "mine.toml", "--jobs", 1, "--json").stdout)
    assert (third["done"], third["before"], third["left"]) == (0, 3, 0)
    assert "3 done, 0 open, 0 failed" in invoke("status", "mine.toml").stdout
    assert json.loads(invoke("plan", "mine.toml", "--json").stdout)["seconds"] == 0
    assert {path.name for path in (tmp_path / "mine-study").iterdir()} >= {"study.sqlite", "cache"}
