"""Processes on this machine, or the workers of a Dask cluster, as one
``concurrent.futures.Executor``.

A study's cells and the chunks of a file of people are handed to whichever it is; what they return
does not depend on it. Each worker has one thread. ``open_workers`` opens them, and ``hand_out``
gives them tasks, which are tried again if a worker dies.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, TypeVar, cast

from edfa.errors import MismatchError, MissingExtraError, SettingError, UnavailableError
from edfa.parallel import ONE_THREAD, count_jobs

Task = TypeVar("Task")
ATTEMPTS = 3  # at a task whose worker dies; an error of the task itself is final
HANDED_OUT = 2  # tasks a worker has at a time: one it does, and one to go on with at once
CONNECT_SECONDS = 10
DASK_LOST = ("KilledWorker", "ClosedClientError")  # by name: Dask may not be installed


@dataclass(frozen=True, eq=False)
class Workers:
    """Workers of ``open_workers``.

    Parameters
    ----------
    executor
        Takes work by ``submit``, as in ``concurrent.futures``.
    count
        The number of workers.
    """

    executor: Executor
    count: int


class SerialExecutor(Executor):
    """Does the work at once, in this process: for one job, and for debuggers.

    >>> SerialExecutor().submit(max, 1, 2).result()
    2
    """

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do the work and return a future that is done."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args, **kwargs))
        except Exception as error:  # whatever the work raises is its result
            future.set_exception(error)
        return future


@contextmanager
def open_workers(jobs: int | None = -1, scheduler: str | None = None) -> Iterator[Workers]:
    """Workers to hand work to; they are gone when the block ends, and so is what they had not
    begun.

    Parameters
    ----------
    jobs
        The number of processes on this machine, as scikit-learn counts them (-1: one a processor);
        with 1, the work is done in this process.
    scheduler
        The address of a Dask scheduler, such as ``"tcp://127.0.0.1:8786"``: its workers are used
        instead. What is sent to them is pickled, so both sides need the same version of edfa, and a
        scheduler one trusts. Should all workers die, the work waits until new ones have come.

    Raises
    ------
    SettingError
        If the address is none, or needs certificates that Dask's configuration does not name.
    UnavailableError
        If processes cannot be started; if nothing answers at the address, or it has no workers.
    MismatchError
        If the workers of a cluster have another version of edfa, or none.
    MissingExtraError
        If Dask is not installed.

    Examples
    --------
    >>> with open_workers(1) as workers:
    ...     workers.executor.submit(sum, [1, 2, 3]).result(), workers.count
    (6, 1)
    """
    if scheduler is not None:
        with _cluster(scheduler) as workers:
            yield workers
        return
    count = count_jobs(jobs)
    if count == 1:
        yield Workers(SerialExecutor(), 1)
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
        try:
            _start(pool, count)
            yield Workers(pool, count)
        finally:
            _stop(pool)


def hand_out(
    opened: Callable[[], AbstractContextManager[Workers]],
    take: Callable[[int], Iterable[Task]],
    work: Callable[[Task], Any],
    more: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[Task, Future[Any], int]]:
    """Hand tasks to workers and yield each when it is done, in the order in which they finish.

    It is not known which of the tasks that had been handed out killed a worker. They are tried
    again one at a time: a task that always kills its worker is identified, and no other task fails
    because of it.

    Parameters
    ----------
    opened
        Opens the workers; again, if these are gone.
    take
        Called with a number: at most so many new tasks that may begin now. The end has come when
        there is none, and none is being done.
    work
        What a worker does with a task; both are pickled for workers in other processes.
    more
        Whether anything is left to be handed out; what was handed out is finished in any case.

    Yields
    ------
    tuple
        The task; a future that is done, with the result or the error of the work, or with one that
        says that the worker died (``worker_died``) if it did at each of ``ATTEMPTS`` attempts; and
        the number of attempts.

    Examples
    --------
    >>> from functools import partial
    >>> from itertools import islice
    >>> open_one = partial(open_workers, 1)
    >>> numbers = iter([2, 3])
    >>> squares = hand_out(open_one, lambda most: islice(numbers, most), lambda n: n * n)
    >>> [(number, future.result()) for number, future, _ in squares]
    [(2, 4), (3, 9)]
    """
    lost: list[tuple[Task, int]] = []  # tasks whose worker died, with how often
    gone = True
    while gone and more():
        gone, running = False, dict[Future[Any], tuple[Task, int]]()
        with opened() as workers:
            # In this process a task is done as it is handed out: one at a time, or the first
            # result waits for the second.
            most = 1 if workers.count == 1 else HANDED_OUT * workers.count
            while not gone:
                begin: list[tuple[Task, int]] = []
                if more():
                    if lost and not running:
                        begin = [lost.pop(0)]
                    elif not lost and not any(deaths for _, deaths in running.values()):
                        begin = [(task, 0) for task in take(most - len(running))]
                for task, deaths in begin:
                    running[_submit(workers.executor, work, task)] = task, deaths
                if not running:
                    break
                alone = len(running) == 1
                done, gone = _wait(running)
                for future in done:
                    task, deaths = running.pop(future)
                    if worker_died(_error(future)) and not (alone and deaths + 1 >= ATTEMPTS):
                        lost.append((task, deaths + 1))
                    else:
                        yield task, future, deaths + 1


def _submit(executor: Executor, work: Callable[[Task], Any], task: Task) -> Future[Any]:
    """Hand a task to the executor; if its workers are gone, the future says so."""
    try:
        return executor.submit(work, task)
    except Exception as error:
        if not worker_died(error):
            raise
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


def _wait(running: Iterable[Future[Any]]) -> tuple[set[Future[Any]], bool]:
    """Wait for a future: those that are done, and whether the workers are gone.

    Then all are lost together, but for what was done already.
    """
    done = wait_for(running, return_when=FIRST_COMPLETED).done
    gone = any(isinstance(_error(future), BrokenExecutor | CancelledError) for future in done)
    return (wait_for(running).done if gone else done), gone


def _error(future: Future[Any]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def worker_died(error: BaseException | None) -> bool:
    """Whether work has this for a result because its worker is gone, and may well succeed on
    another one.
    """
    return isinstance(error, BrokenExecutor | CancelledError) or type(error).__name__ in DASK_LOST


def _start(pool: ProcessPoolExecutor, count: int) -> None:
    """Start all processes at once, and see that they do start."""
    try:
        wait_for([pool.submit(os.getpid) for _ in range(count)])[0].pop().result()
    except BrokenExecutor:
        reason = (
            "the worker processes end as they start; a script that starts "
            "them needs if __name__ == '__main__':"
        )
        raise UnavailableError(reason) from None


def _stop(pool: ProcessPoolExecutor) -> None:
    """End the processes now; what they were doing is lost."""
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
    for process in processes:
        process.join()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that are started in this block have one thread for matrix products."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _begin() -> None:
    """Set up a worker process: Ctrl-C is the parent's business, and without the parent there is
    nothing to do.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """End this process when the parent has, even if it was killed."""
    wait([sentinel])
    os._exit(1)


@contextmanager
def _cluster(address: str) -> Iterator[Workers]:
    """The workers of the Dask scheduler at ``address``."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("a cluster", "cluster") from None
    _check_encryption(address)
    try:
        client: Any = cast(Any, distributed).Client(
            address, timeout=CONNECT_SECONDS, set_as_default=False
        )
    except ValueError as error:
        raise SettingError(f"{address!r} is no address of a scheduler: {error}") from None
    except OSError:
        raise UnavailableError(f"no Dask scheduler answers at {address}") from None
    import dask

    # What is sent may be large, such as an advisor.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}), client:
        count = _check_versions(client, address)
        executor = client.get_executor(pure=False, retries=0)
        try:
            yield Workers(executor, count)
        finally:
            with suppress(Exception):  # without a scheduler there is nothing left to cancel
                executor.shutdown(wait=False)


def _check_encryption(address: str) -> None:
    """Refuse an address that does not go with the certificates of Dask's configuration, before a
    client is made.

    A client that fails for this reason is left half open, and the program waits for it at its end.
    """
    import dask
    from distributed.security import Security

    if dask.config.get(
        "distributed.client.security-loader", None
    ):  # the certificates are not in the configuration
        return
    try:
        settings = cast(Any, Security)().get_connection_args("client")
    except OSError as error:
        raise SettingError(
            f"the certificates in Dask's configuration cannot be used: {error}"
        ) from None
    if address.startswith("tls://") and settings["ssl_context"] is None:
        keys = "ca-file, client.cert and client.key of distributed.comm.tls"
        raise SettingError(
            f"{address} needs certificates; name them in Dask's configuration: {keys}"
        )
    if settings["require_encryption"] and not address.startswith(("tls://", "wss://")):
        raise SettingError(
            f"Dask's configuration requires encryption; {address} has none, one with tls:// does"
        )


def _check_versions(client: Any, address: str) -> int:
    """The number of workers, which have the same edfa as this process."""
    try:
        versions = client.run(_version)
    except ImportError as error:
        raise MismatchError(f"the workers of {address} cannot import edfa: {error}") from None
    if not versions:
        raise UnavailableError(
            f"the scheduler at {address} has no workers; start some: dask worker {address}"
        )
    if others := sorted({str(version) for version in versions.values()} - {_version()}):
        raise MismatchError(
            f"the workers of {address} have edfa {', '.join(others)}, this machine {_version()}"
        )
    return len(versions)


def _version() -> str:
    from edfa import __version__

    return __version__
