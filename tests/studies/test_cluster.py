"""A real Dask scheduler with workers on this machine: the same results, also when a worker or the
scheduler dies.
"""

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager

import pytest
from test_engine import ROOT, run, stored, wait_until
from toy_work import toy_cells, toy_tasks

from edfa.errors import UnavailableError
from edfa_studies import engine

pytest.importorskip("distributed")
LOCAL = ["--host", "127.0.0.1", "--port", "0"]


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    monkeypatch.setattr(engine, "_tasks", toy_tasks)


@contextmanager
def dask(program, *arguments, **variables):
    """A program of Dask, in a process that ends with the block."""
    command = [sys.executable, "-m", "dask", program, *arguments, "--no-dashboard"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "studies")]),
        **variables,
    }
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler and two workers with one thread each: its address, the processes. Tests end them
    in turn.
    """
    folder = tmp_path_factory.mktemp("dask")
    note = folder / "scheduler.json"
    with ExitStack() as processes:
        scheduler = processes.enter_context(
            dask("scheduler", *LOCAL, "--scheduler-file", str(note))
        )
        options = [
            "--scheduler-file",
            str(note),
            "--nthreads",
            "1",
            "--no-nanny",
            "--host",
            "127.0.0.1",
        ]
        options += ["--local-directory", str(folder)]
        workers = [processes.enter_context(dask("worker", *options)) for _ in range(2)]
        yield wait_for_workers(note), scheduler, workers


def wait_for_workers(note):
    from distributed import Client

    wait_until(note.exists)
    with Client(scheduler_file=str(note), set_as_default=False, timeout=600) as client:
        client.wait_for_workers(2, timeout=600)
        return client.scheduler.address


def test_a_cluster_gives_the_same_bytes(tmp_path, cluster):
    address, _, workers = cluster
    last, _ = run(tmp_path / "cluster", toy_cells(12), scheduler=address)
    assert (last.done, last.failed) == (12, 0)
    used = {int(path.name.rpartition("-")[2]) for path in (tmp_path / "cluster").glob("process-*")}
    assert used == {worker.pid for worker in workers}
    run(tmp_path / "local", toy_cells(12), jobs=1)
    assert stored(tmp_path / "cluster" / "study.sqlite") == stored(
        tmp_path / "local" / "study.sqlite"
    )


def test_a_worker_is_killed_in_the_middle_and_every_result_arrives(tmp_path, cluster):
    address, _, workers = cluster
    cells = toy_cells(10, "sleep", seconds=0.1)

    def kill_one(now):
        if now.done == 4 and workers[0].poll() is None:
            workers[0].kill()

    last, status = run(tmp_path / "cluster", cells, scheduler=address, progress=kill_one)
    assert workers[0].wait(10) < 0
    assert (last.done, last.failed) == (10, 0)
    assert (status["status"] == "done").all()
    run(tmp_path / "local", cells, jobs=1)
    assert stored(tmp_path / "cluster" / "study.sqlite") == stored(
        tmp_path / "local" / "study.sqlite"
    )


@pytest.mark.long
def test_a_scheduler_that_dies_ends_the_run_with_one_line(tmp_path, cluster, monkeypatch):
    address, scheduler, _ = cluster
    monkeypatch.setattr("edfa.workers.CONNECT_SECONDS", 1)
    cells = toy_cells(6, "sleep", seconds=0.05)

    def kill_scheduler(now):
        if now.done == 3:
            scheduler.kill()
            scheduler.wait(10)

    with pytest.raises(UnavailableError, match=f"no Dask scheduler answers at {address}"):
        run(tmp_path, cells, scheduler=address, progress=kill_scheduler)
    last, _ = run(tmp_path, cells, jobs=1)
    assert (last.done + last.skipped, last.failed) == (6, 0)
    assert last.skipped >= 3
