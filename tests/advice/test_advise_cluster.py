"""Advice and certificates from the workers of a real Dask cluster on loopback: the same, to the
byte, as from here.
"""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import BrokenExecutor, Future
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from advisors import mixed as german
from advisors import part_way

import edfa
from edfa.advice import on_workers
from edfa.advice.batch_file import advise_file
from edfa.advice.on_workers import Cluster, results
from edfa.cli import app
from edfa.errors import MismatchError, UnavailableError
from edfa.workers import SerialExecutor, Workers

pytest.importorskip("distributed")
HERE = Workers(SerialExecutor(), 1)
SECONDS = 600  # until a cluster counts as not coming


def _start(*arguments):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)], **quiet, start_new_session=True
    )


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler with two workers, which end with the tests."""
    file = tmp_path_factory.mktemp("cluster") / "scheduler.json"
    host = ("--host", "127.0.0.1", "--no-dashboard")
    started = [
        _start("distributed.cli.dask_scheduler", *host, "--port", 0, "--scheduler-file", file)
    ]
    try:
        until = time.monotonic() + SECONDS
        worker = (
            "distributed.cli.dask_worker",
            *host,
            "--scheduler-file",
            file,
            "--nthreads",
            1,
            "--no-nanny",
        )
        started += [_start(*worker, "--local-directory", file.parent) for _ in range(2)]
        while not (file.is_file() and file.stat().st_size) and time.monotonic() < until:
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        _wait_for_workers(address, until)
        yield address
    finally:
        for process in started[::-1]:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for_workers(address, until):
    from distributed import Client

    with Client(address, timeout=SECONDS, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=max(1, until - time.monotonic()))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved advisor, and two Parquet files of people part way through."""
    root = tmp_path_factory.mktemp("saved")
    german().save(root / "advisor")
    table = edfa.load("german")
    rows = part_way(german(), table.encoder.encode(table.frame))
    whole = table.encoder.decode(table.encoder.encode(table.frame))
    people = whole.astype(object).where(~np.isnan(rows), None).infer_objects()
    (root / "people").mkdir()
    people[:180].to_parquet(root / "people" / "a.parquet")
    people[180:300].to_parquet(root / "people" / "b.parquet")
    return root


@pytest.mark.parametrize("sent", [pytest.param(False, marks=pytest.mark.long), True])
def test_advice_is_the_same_to_the_byte(sent, scheduler, saved, tmp_path):
    advise_file(german().fitted, saved / "people", tmp_path / "here.csv")
    folder = tmp_path / "where_nobody_is" if sent else saved / "advisor"
    done = []
    counts = advise_file(
        replace(german().fitted, fingerprint="another")
        if sent
        else german().fitted,  # no worker has it yet
        saved / "people",
        tmp_path / "there.csv",
        chunk=70,
        workers=Cluster(scheduler, folder),
        progress=lambda people, parts: done.append((people, parts)),
    )
    assert counts == {"people": 300, "errors": 0, "flagged": 0, "resumed": 0}
    assert done[-1] == (300, 5)
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()


@pytest.mark.long
def test_the_commands_take_a_scheduler(scheduler, saved, tmp_path, capsys):
    def run(*arguments, code=0):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([str(a) for a in arguments])
        assert (ended.value.code or 0) == code, capsys.readouterr().err
        return capsys.readouterr().out

    out = tmp_path / "out.jsonl"
    advise = ("advise", saved / "advisor", saved / "people", "--out", out, "--quiet")
    run(*advise, "--scheduler", scheduler)
    there = out.read_bytes()
    run(*advise, "--jobs", 1)
    assert out.read_bytes() == there
    edfa.load("german").calibration.frame.drop(columns="class").to_parquet(
        tmp_path / "people.parquet"
    )
    certify = ("certify", saved / "advisor", tmp_path / "people.parquet", "--no-keep", "--json")
    none = 0 if german().certificate.certified else 3  # the answer is no
    assert json.loads(run(*certify, "--scheduler", scheduler, code=none)) == json.loads(
        run(*certify, code=none)
    )


def test_a_certificate_is_the_same(scheduler, saved, monkeypatch):
    monkeypatch.setattr(on_workers, "PEOPLE_PER_TASK", 37)
    advisor = edfa.Advisor.load(saved / "advisor")
    people = edfa.load("german").calibration
    assert (
        advisor.certify(people, scheduler=scheduler, folder=saved / "advisor")
        == german().certificate
    )


def test_nothing_answers(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("edfa.workers.CONNECT_SECONDS", 0.3)
    with pytest.raises(UnavailableError, match="no Dask scheduler answers"):
        advise_file(
            german().fitted,
            saved / "people",
            tmp_path / "o.csv",
            workers=Cluster("tcp://127.0.0.1:1"),
        )
    assert not (tmp_path / "o.csv").exists()


def test_workers_of_another_version_are_refused(monkeypatch):
    monkeypatch.setattr(on_workers, "open_workers", lambda scheduler: nullcontext(HERE))
    away = results(german().fitted, _fingerprint, [(1, ())], Cluster(""))
    assert [result for _, result in away] == [german().fingerprint]
    made_with, job = str(on_workers.versions()), on_workers._Job(1, ())
    with pytest.raises(MismatchError, match="answers could differ"):
        on_workers._work_away("key", made_with + " of old", None, _fingerprint, job)
    assert on_workers._work_away("a key nobody has", made_with, None, _fingerprint, job) is None


def _fingerprint(fitted):
    return fitted.fingerprint


class Dying(SerialExecutor):
    """Workers of whom so many die at work."""

    def __init__(self, deaths):
        self.deaths = deaths

    def submit(self, work, /, *args, **kwargs):
        self.deaths -= 1
        if self.deaths < 0:
            return super().submit(work, *args, **kwargs)
        lost = Future()
        lost.set_exception(BrokenExecutor("a worker died"))
        return lost


@pytest.mark.long
def test_work_of_a_worker_that_dies_is_done_by_another(monkeypatch):
    def doubled(deaths):
        dying = Workers(Dying(deaths), 1)
        monkeypatch.setattr(on_workers, "_open_threads", lambda n_jobs: nullcontext(dying))
        tasks = [(n, (n,)) for n in (1, 2, 3)]
        return sorted(result for _, result in results(german().fitted, _twice, tasks))

    assert doubled(2) == [2, 4, 6]
    with pytest.raises(BrokenExecutor):
        doubled(9)


def _twice(fitted, number):
    return 2 * number
