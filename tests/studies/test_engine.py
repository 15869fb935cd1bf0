"""The engine: the same results whoever does the work, and whatever ends, dies or fails on the
way.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import Future
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import toy_work
from toy_work import note, toy_cell, toy_cells, toy_tasks, unsendable

from edfa.errors import UnavailableError
from edfa.workers import SerialExecutor, Workers, open_workers
from edfa_studies import engine
from edfa_studies.engine import Progress, Task, run_study, run_tasks
from edfa_studies.store import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    monkeypatch.setattr(engine, "_tasks", toy_tasks)


def stored(path):
    """Every byte of the results in a store."""
    with sqlite3.connect(path) as direct:
        rows = direct.execute("SELECT * FROM study_result ORDER BY key, name").fetchall()
    direct.close()
    return rows


def run(path, cells, jobs=2, **options):
    """Run a study in a folder; its last progress, and what its store says about the cells."""
    path.mkdir(exist_ok=True)
    with Store.open(path / "study.sqlite") as store:
        last = run_study(cells, store, path, jobs=jobs, **options)
        return last, store.status().set_index("key")


def collect(tasks, jobs=1, **options):
    outcomes = run_tasks(tasks, lambda: open_workers(jobs), **options)
    return {outcome.key: outcome for outcome in outcomes}


def test_one_process_and_two_give_the_same_bytes(tmp_path):
    cells = toy_cells(12)
    for jobs in (1, 2):
        last, status = run(tmp_path / str(jobs), cells, jobs)
        assert (last.total, last.done, last.failed, last.left) == (12, 12, 0, 0)
        assert (status["status"] == "done").all()
    one, two = (stored(tmp_path / jobs / "study.sqlite") for jobs in "12")
    assert len(one) == 24
    assert one == two


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    run(tmp_path, toy_cells(3), jobs=1)
    before = stored(tmp_path / "study.sqlite")
    monkeypatch.setattr(toy_work, "WORK", {})  # nothing can be measured any more
    last, _ = run(tmp_path, toy_cells(3), jobs=1)
    assert (last.done, last.skipped, last.left) == (0, 3, 0)
    assert stored(tmp_path / "study.sqlite") == before


def test_progress_counts_cells(tmp_path):
    told = []
    run(tmp_path, toy_cells(1, "sleep", seconds=0), jobs=1)
    run(tmp_path, toy_cells(4, "sleep", seconds=0.02), jobs=1, progress=told.append)
    assert [now.done for now in told] == [0, 1, 2, 3, 4]
    assert told[0] == Progress(4)
    assert [now.left for now in told] == [4, 3, 2, 1, 0]


def test_a_failed_cell_is_a_row_and_is_tried_anew_when_asked(tmp_path):
    cells = [toy_cell(seed, "fail", odd=bool(seed % 2)) for seed in range(4)]
    last, status = run(tmp_path, cells, jobs=1)
    assert (last.done, last.failed, last.left) == (2, 2, 0)
    error = status.loc[cells[2].key, "error"]
    assert error.startswith("Traceback (most recent call last)")
    assert "ValueError: cell 2 does not work" in error
    (tmp_path / "repaired").touch()
    last, _ = run(tmp_path, cells, jobs=1)
    assert (last.done, last.failed, last.skipped) == (0, 2, 2)
    last, status = run(tmp_path, cells, jobs=1, retry_failed=True)
    assert (last.done, last.failed, last.skipped) == (2, 0, 2)
    assert status["error"].isna().all()
    assert status["attempts"].tolist() == [2, 1, 2, 1]


def test_leaving_and_results_that_are_no_json_are_failures_too(tmp_path):
    cells = [toy_cell(0, "leave"), toy_cell(1, "alien"), toy_cell(2, "label"), toy_cell(3)]
    last, status = run(tmp_path, cells, jobs=1)
    assert (last.done, last.failed) == (1, 3)
    assert "table 'end' of a result has a column 'policy'" in status.loc[cells[2].key, "error"]
    assert "SystemExit: leaving" in status.loc[cells[0].key, "error"]
    assert "DataError: a result holds something of type object" in status.loc[cells[1].key, "error"]
    (outcome,) = collect([Task("a", unsendable)], jobs=2).values()
    assert "pickle" in outcome.error


@pytest.mark.long
def test_a_killed_process_is_replaced_and_its_cells_tried_again(tmp_path):
    cells = [
        toy_cell(seed, "die", always=False) if seed == 3 else toy_cell(seed) for seed in range(8)
    ]
    last, status = run(tmp_path / "two", cells)
    assert (last.done, last.failed) == (8, 0)
    assert status.loc[cells[3].key, "attempts"] == 2
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "died-3").touch()
    run(tmp_path / "one", cells, jobs=1)
    assert stored(tmp_path / "one" / "study.sqlite") == stored(tmp_path / "two" / "study.sqlite")


@pytest.mark.long
def test_a_cell_that_always_kills_its_worker_fails_and_the_others_finish(tmp_path):
    # The neighbours are slow, so that the deaths do hit them.
    cells = [toy_cell(0, "sleep", seconds=0.1), toy_cell(1, "die", always=True)]
    cells += [toy_cell(seed, "sleep", seconds=0.1) for seed in range(2, 5)]
    last, status = run(tmp_path, cells)
    assert (last.done, last.failed) == (4, 1)
    assert status.loc[cells[1].key, "error"].startswith("the worker died 3 times during this task")
    assert status.loc[cells[1].key, "attempts"] == 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_needs_come_first_and_cells_as_early_as_they_can(tmp_path, jobs):
    place = str(tmp_path)
    tasks = []
    for unit in "abc":
        tasks.append(Task(f"model {unit}", note, (place, f"model {unit}"), ()))
        tasks.append(
            Task(
                f"path {unit}",
                note,
                (place, f"path {unit}", [f"model {unit}"]),
                (f"model {unit}",),
            )
        )
        needs = (f"path {unit}", f"model {unit}", "in the cache already")
        tasks.append(Task(f"cell {unit}", note, (place, f"cell {unit}", needs[:2]), needs))
    outcomes = collect(tasks, jobs)
    assert all(outcome.error is None for outcome in outcomes.values())
    assert outcomes["cell a"].result == "cell a"
    if jobs == 1:
        assert list(outcomes) == [task.key for task in tasks]


def test_what_needs_a_failed_task_is_done_all_the_same(tmp_path):
    tasks = [
        Task("bad", int, ("x",)),
        Task("cell", note, (str(tmp_path), "cell"), ("bad",)),
    ]
    outcomes = collect(tasks)
    assert "ValueError" in outcomes["bad"].error
    assert outcomes["cell"].error is None


# Named like Dask's, which says that a worker died with a task, and works on.
KilledWorker = type("KilledWorker", (Exception,), {})


class Unlucky(SerialExecutor):
    def submit(self, work, /, *args):
        future = super().submit(work, *args)
        if args[0].key == "bad":
            (future := Future()).set_exception(KilledWorker())
        return future


def test_a_cluster_that_gives_up_on_a_task_works_on_with_the_others():
    opened = []

    def workers():
        opened.append(Workers(Unlucky(), 2))
        return nullcontext(opened[-1])

    tasks = [Task(key, max, (1, 2)) for key in ("a", "bad", "b", "c", "d")]
    outcomes = {outcome.key: outcome for outcome in run_tasks(tasks, workers)}
    assert len(opened) == 1
    assert [outcomes[key].result for key in "abcd"] == [2] * 4
    assert outcomes["bad"].error.startswith("the worker died 3 times")


def test_a_limit_of_time_finishes_what_is_under_way_and_begins_no_more(tmp_path, monkeypatch):
    ticks = count()  # every look at the clock finds it a second later
    clock = SimpleNamespace(monotonic=lambda: next(ticks), perf_counter=time.perf_counter)
    with monkeypatch.context() as patched:
        patched.setattr(engine, "time", clock)
        last, _ = run(tmp_path, toy_cells(5), jobs=1, limit_seconds=4)
    assert (last.done, last.left) == (2, 3)
    last, _ = run(tmp_path, toy_cells(5), jobs=1, limit_seconds=0)
    assert (last.done, last.skipped, last.left) == (0, 2, 3)
    last, _ = run(tmp_path, toy_cells(5), jobs=1, limit_seconds=60)
    assert (last.done, last.left) == (3, 0)


def test_a_full_disk_ends_the_run_and_keeps_what_was_written(tmp_path, monkeypatch):
    cells = toy_cells(6)
    save = Store.save

    def until_full(self, cell, *rest):
        if cell.seed >= 3:
            raise UnavailableError("study.sqlite cannot be written: database or disk is full")
        save(self, cell, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", until_full)
        with pytest.raises(UnavailableError, match="disk is full"):
            run(tmp_path, cells, jobs=1)
    last, _ = run(tmp_path, cells, jobs=1)
    assert (last.done, last.skipped) == (3, 3)


def begin(folder, count=6, seconds=0.4):
    """A study in a process of its own, with two workers, when some of its cells are done and others
    under way.
    """
    command = [
        sys.executable,
        str(Path(toy_work.__file__)),
        str(folder),
        str(count),
        str(seconds),
        "2",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: (folder / "begun-2").exists() and len(stored(folder / "study.sqlite")) >= 2)
    return program


def wait_until(true, seconds=600):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.parametrize("way", ["ctrl-c", "kill -9"])
def test_a_run_that_is_ended_loses_no_more_than_the_running_cells(tmp_path, way):
    program = begin(tmp_path)
    children = psutil.Process(program.pid).children(recursive=True)
    assert len(children) >= 2
    if way == "ctrl-c":
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does: to all of them
    else:
        program.kill()
    _, errors = program.communicate(timeout=600)
    if way == "ctrl-c":
        assert errors.count("Traceback") <= 1, errors  # the workers say nothing
        assert "KeyboardInterrupt" in errors
    _, alive = psutil.wait_procs(children, timeout=600)
    assert not alive
    with Store.open(tmp_path / "study.sqlite") as store:
        finished = store.done()
        assert 1 <= len(finished) < 6
        assert set(store.frame("toy", "end")["cell"]) == finished
    (tmp_path / "hurry").touch()
    last, _ = run(tmp_path, toy_cells(6, "sleep", seconds=0.4), jobs=1)
    assert (last.done, last.skipped) == (6 - len(finished), len(finished))
