"""A real Dask scheduler with workers on this machine: the same results, also when a worker or the scheduler dies."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from test_engine import ROOT, run, stored, wait_until
from toy_work import toy_cell, toy_cells, toy_tasks

from edfa.errors import MismatchError, UnavailableError
from edfa.studies import engine
from edfa.workers import open_workers

pytest.importorskip("distributed")
LOCAL = ["--host", "127.0.0.1", "--port", "0"]


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    monkeypatch.setattr(engine, "_tasks", toy_tasks)


@contextmanager
def dask(program, *arguments, **variables):
    """A program of Dask, in a process that ends with the block."""
    command = [sys.executable, "-m", "dask", program, *arguments, "--no-dashboard"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "studies")]), **variables}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)


@contextmanager
def cluster(folder, workers=2, **variables):
    """A scheduler and its workers, one thread each: its address, its process and theirs."""
    note = folder / "scheduler.json"
    with ExitStack() as processes:
        scheduler = processes.enter_context(dask("scheduler", *LOCAL, "--scheduler-file", str(note)))
        options = ["--scheduler-file", str(note), "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1"]
        options += ["--local-directory", str(folder)]
        crew = [processes.enter_context(dask("worker", *options, **variables)) for _ in range(workers)]
        address = wait_for_workers(note, workers)
        yield address, scheduler, crew


def wait_for_workers(note, workers):
    from distributed import Client

    wait_until(note.exists)
    with Client(scheduler_file=str(note), set_as_default=False, timeout=20) as client:
        client.wait_for_workers(workers, timeout=30)
        return client.scheduler.address
