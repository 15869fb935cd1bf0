"""Runs an advisor on threads of this process, or on the workers of a Dask cluster.

A worker loads the advisor from its folder if it finds the same one there; otherwise the advisor is
sent to it, once. Results do not depend on which worker made them.
"""

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from edfa.advice import persist
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.promise import ask_and_judge, draw_judges
from edfa.advice.receipt import versions
from edfa.certification.records import Records
from edfa.errors import EdfaError, MismatchError
from edfa.fingerprint import fingerprint
from edfa.parallel import count_jobs
from edfa.reading import RESOURCES
from edfa.typing import Float32Array
from edfa.workers import SerialExecutor, open_workers, worker_died

__all__ = ["Cluster", "WorkerPool", "open_pool", "roll_out_remote"]

Task = TypeVar("Task")
Args = tuple[Any, ...]
PEOPLE = 200  # calibration people a worker is handed at a time
ATTEMPTS = 3  # at a task whose worker dies
AHEAD = 2  # tasks for each worker that are handed out before the first is done
Work = Callable[..., Any]
"""Called with the advisor and a task's arguments; it returns something other than None."""


class Cluster(NamedTuple):
    """A Dask cluster.

    Attributes
    ----------
    scheduler
        The address of its scheduler, such as ``"tcp://10.0.0.5:8786"``.
    folder
        The folder of the advisor: workers that can read it load the advisor from there. None: it is
        sent to every worker.
    """

    scheduler: str
    folder: str | Path | None = None


@dataclass(frozen=True, eq=False)
class WorkerPool:
    """Workers who know one advisor; ``open_pool`` makes them.

    Parameters
    ----------
    fitted
        The advisor.
    executor
        The threads of this process, or the workers of a cluster.
    count
        Their number.
    cluster
        The cluster, if they are a cluster's.
    """

    fitted: FittedAdvisor
    executor: Executor
    count: int
    cluster: Cluster | None = None

    def results(self, work: Work, tasks: Iterable[tuple[Task, Args]]) -> Iterator[tuple[Task, Any]]:
        """Yield each task with its result, in the order in which they finish.

        Parameters
        ----------
        work
            A function of a module, called with the advisor and a task's arguments. A result is
            never None.
        tasks
            Tasks with their arguments; they are taken as workers become free.

        Raises
        ------
        MismatchError
            If workers of a cluster have other versions of edfa or libraries.
        """
        waiting = iter(tasks)
        running: dict[Future[Any], tuple[Task, Args, int]] = {}
        try:
            while True:
                for task, args in islice(waiting, AHEAD * self.count - len(running)):
                    running[self._submit(work, args)] = task, args, 1
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task, args, attempts = running.pop(future)
                    if attempts < ATTEMPTS and (
                        future.cancelled() or worker_died(future.exception())
                    ):
                        running[self._submit(work, args)] = task, args, attempts + 1
                    elif (result := future.result()) is None:  # the worker has no advisor
                        running[self._submit(work, args, self.fitted)] = task, args, attempts
                    else:
                        yield task, result
        finally:
            for future in running:
                future.cancel()

    def _submit(self, work: Work, args: Args, sent: FittedAdvisor | None = None) -> Future[Any]:
        """Hand out a task; to a worker of a cluster with the advisor, if it is ``sent``."""
        if self.cluster is None:
            return self.executor.submit(work, self.fitted, *args)
        given = self.cluster.folder
        folder = None if given is None else str(Path(given).resolve())
        with warnings.catch_warnings():  # an advisor may be large: it is sent once a worker
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.executor.submit(
                _work_away, _key(self.fitted), str(versions()), folder, sent, work, args
            )


def roll_out_remote(
    pool: WorkerPool,
    X: Float32Array,  # noqa: N803
    progress: Callable[[int, int], None] | None = None,
) -> Records:
    """The records that ``roll_out`` makes, by workers who share the people.

    Parameters
    ----------
    pool
        The workers, with the advisor.
    X
        Complete encoded rows, (people, features).
    progress
        Called with the numbers of people who are done, and of all.
    """
    parts: dict[int, Records] = {}
    judge = draw_judges(pool.fitted, X)
    tasks = (
        (first, (X[first : first + PEOPLE], judge[first : first + PEOPLE]))
        for first in range(0, len(X), PEOPLE)
    )
    for first, records in pool.results(ask_and_judge, tasks):
        parts[first] = replace(records, person=records.person + first)
        if progress:
            progress(sum(len(part.people) for part in parts.values()), len(X))
    return Records.join(*(parts[first] for first in sorted(parts)))


@contextmanager
def open_pool(fitted: FittedAdvisor, workers: int | Cluster | None = -1) -> Iterator[WorkerPool]:
    """Open a pool of workers, which is gone when the block ends.

    Parameters
    ----------
    fitted
        The advisor.
    workers
        The number of threads of this process (-1: one a processor), or a cluster.
    """
    if isinstance(workers, Cluster):
        with open_workers(scheduler=workers.scheduler) as away:
            yield WorkerPool(fitted, away.executor, away.count, workers)
        return
    count = count_jobs(workers)
    if count == 1:
        yield WorkerPool(fitted, SerialExecutor(), 1)
        return
    # Each job has a processor of its own: what multiplies matrices on all of them would only be in
    # the others' way.
    with threadpool_limits(1), ThreadPoolExecutor(count) as pool:
        yield WorkerPool(fitted, pool, count)


WORKS_WITH = "a worker's advisor"  # of RESOURCES, with its key
_lock = threading.Lock()


def _key(fitted: FittedAdvisor) -> str:
    """One word for an advisor with its certificate."""
    return fingerprint(advisor=fitted.fingerprint, certificate=fitted.promise.certificate_id)


def _work_away(
    key: str, made_with: str, folder: str | None, sent: FittedAdvisor | None, work: Work, args: Args
) -> Any:
    """On a worker of a cluster: do the work with an advisor, which stays for the next task.

    Parameters
    ----------
    key
        Which advisor, by ``_key``.
    made_with
        The versions that the advisor is used with; MismatchError if this worker has others.
    folder, sent
        Where the advisor may be loaded from, and the advisor itself if it was sent.
    work, args
        What is called with the advisor and these arguments.

    Returns
    -------
    Any
        What the work returns; None if the advisor is neither here, nor in the folder, nor sent.
    """
    if str(versions()) != made_with:
        raise MismatchError(
            f"a worker has {versions()}, the advisor is used with {made_with}: answers could differ"
        )
    with _lock:
        held, fitted = RESOURCES.find([WORKS_WITH]).get(WORKS_WITH, (None, None))
        if held != key:
            fitted = sent or _load(folder, key)
            if fitted is None:
                return None
            RESOURCES.keep({WORKS_WITH: (key, fitted)})
    return work(fitted, *args)


def _load(folder: str | None, key: str) -> FittedAdvisor | None:
    """The advisor in a folder, if it can be read here and is the one that is meant."""
    with suppress(EdfaError, OSError):
        if folder is not None and _key(fitted := persist.load(folder)[0]) == key:
            return fitted
    return None
