"""Workers: one executor for processes and clusters, with one thread each; what is wrong is said at
once.
"""

import os
import socket
import subprocess
import sys
import time
from concurrent.futures import CancelledError, ProcessPoolExecutor

import psutil
import pytest

import edfa
from edfa.errors import MismatchError, SettingError, UnavailableError
from edfa.workers import (
    SerialExecutor,
    _check_encryption,
    _check_versions,
    open_workers,
    worker_died,
)


def test_one_job_is_done_here_and_errors_are_kept():
    with open_workers(1) as workers:
        assert isinstance(workers.executor, SerialExecutor)
        assert workers.count == 1
        assert workers.executor.submit(os.getpid).result() == os.getpid()
        with pytest.raises(ValueError, match="invalid literal"):
            workers.executor.submit(int, "x").result()


def failed(future):
    """Whether it was cancelled, before or while this waits, or ended with an error."""
    try:
        return future.exception(timeout=600) is not None
    except CancelledError:
        return True


def test_processes_have_one_thread_and_are_gone_afterwards():
    before = dict(os.environ)
    with open_workers(2) as workers:
        assert isinstance(workers.executor, ProcessPoolExecutor)
        assert workers.count == 2
        children = [psutil.Process(pid) for pid in workers.executor._processes]
        assert len(children) == 2  # all have been started
        assert workers.executor.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
        busy = workers.executor.submit(time.sleep, 60)
        waiting = [workers.executor.submit(time.sleep, 60) for _ in range(5)]
    assert not any(child.is_running() for child in children)
    assert dict(os.environ) == before
    # Nobody waited for what was under way: it would have ended without an error.
    assert all(failed(future) for future in (busy, *waiting))


def test_processes_that_cannot_start_are_said_to(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from edfa.workers import open_workers\n"
        "with open_workers(2) as workers:\n"
        "    workers.executor.submit(max, 1, 2).result()\n"
    )
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 1
    said = (
        ended.stderr.splitlines()
    )  # multiprocessing may add a warning about what the processes left behind
    assert any(line.endswith("needs if __name__ == '__main__':") for line in said)


def test_an_address_without_a_scheduler(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("edfa.workers.CONNECT_SECONDS", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(UnavailableError, match=f"no Dask scheduler answers at {address}"),
            open_workers(1, address),
        ):
            pass
    with (
        pytest.raises(SettingError, match="'nonsense://x' is no address of a scheduler"),
        open_workers(1, "nonsense://x"),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "settings", "message"),
    [
        ("tls://127.0.0.1:1", {}, "needs certificates; name them in Dask's configuration: ca-file"),
        (
            "tls://127.0.0.1:1",
            {"tls.ca-file": "no.pem", "tls.client.cert": "no.pem"},
            "cannot be used: .*No such file",
        ),
        (
            "tcp://127.0.0.1:1",
            {"require-encryption": True},
            "requires encryption; tcp://127.0.0.1:1 has none",
        ),
    ],
)
def test_certificates_are_looked_at_before_a_client_is_made(
    address, settings, message, monkeypatch
):
    distributed = pytest.importorskip("distributed")
    dask = pytest.importorskip("dask")
    monkeypatch.delattr(
        distributed, "Client"
    )  # one that fails for this reason is waited for at the program's end
    with (
        dask.config.set({f"distributed.comm.{key}": value for key, value in settings.items()}),
        pytest.raises(SettingError, match=message),
        open_workers(1, address),
    ):
        pass


@pytest.mark.parametrize(
    "settings", [{}, {"distributed.client.security-loader": "some.module.load"}]
)
def test_what_goes_with_the_certificates_is_not_refused(settings):
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")
    with dask.config.set(settings):
        _check_encryption("tls://127.0.0.1:1" if settings else "tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        ({}, UnavailableError, "has no workers; start some: dask worker tcp://here"),
        ({"a": edfa.__version__, "b": "0.0.1"}, MismatchError, "have edfa 0.0.1, this machine"),
        (ModuleNotFoundError("No module named 'edfa'"), MismatchError, "cannot import edfa"),
    ],
)
def test_workers_of_a_cluster_have_the_same_edfa(answers, error, message):
    class Client:
        def run(self, work):
            if isinstance(answers, Exception):
                raise answers
            return answers

    with pytest.raises(error, match=message):
        _check_versions(Client(), "tcp://here")


def test_a_dead_worker_is_told_from_an_error():
    with open_workers(2) as workers:
        error = workers.executor.submit(os._exit, 1).exception()
    assert worker_died(error)
    assert not worker_died(ValueError())
    assert not worker_died(None)
