"""Runs an advisor on threads of this process, or on the workers of a Dask cluster.

A worker loads the advisor from its folder if it finds the same one there; otherwise the advisor is
sent to it, once. Results do not depend on which worker made them.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from edfa.advice import persist
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.promise import ask_and_judge, draw_judges
from edfa.advice.receipt import versions
from edfa.certification.endings import EndingName
from edfa.certification.records import Records
from edfa.errors import EdfaError, MismatchError
from edfa.fingerprint import fingerprint
from edfa.parallel import count_jobs
from edfa.reading import RESOURCES
from edfa.typing import Float32Array
from edfa.workers import SerialExecutor, Workers, hand_out, open_workers

Task = TypeVar("Task")
Args = tuple[Any, ...]
PEOPLE_PER_TASK = 200  # calibration people a worker is handed at a time
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


class _Job(NamedTuple):
    """A task with the arguments of its work, and the advisor if that is sent along."""

    task: Any
    args: Args
    sent: FittedAdvisor | None = None


def results(
    fitted: FittedAdvisor,
    work: Work,
    tasks: Iterable[tuple[Task, Args]],
    workers: int | Cluster | None = -1,
) -> Iterator[tuple[Task, Any]]:
    """Yield each task with its result, in the order in which they finish.

    Parameters
    ----------
    fitted
        The advisor.
    work
        A function of a module, called with the advisor and a task's arguments. A result is never
        None.
    tasks
        Tasks with their arguments; they are taken as workers become free.
    workers
        The number of threads of this process (-1: one a processor), or a cluster.

    Raises
    ------
    MismatchError
        If workers of a cluster have other versions of edfa or libraries.
    """
    waiting = (_Job(task, args) for task, args in tasks)
    without: list[_Job] = []  # jobs whose worker has no advisor

    def take(most: int) -> list[_Job]:
        again = [without.pop() for _ in range(min(most, len(without)))]
        return [*again, *islice(waiting, most - len(again))]

    def work_here(job: _Job) -> Any:
        return work(fitted, *job.args)

    if isinstance(workers, Cluster):
        folder = None if workers.folder is None else str(Path(workers.folder).resolve())
        away = partial(_work_away, _key(fitted), str(versions()), folder, work)
        done = hand_out(partial(open_workers, scheduler=workers.scheduler), take, away)
    else:
        done = hand_out(partial(_open_threads, workers), take, work_here)
    for job, future, _ in done:
        if (result := future.result()) is None:
            without.append(job._replace(sent=fitted))
        else:
            yield job.task, result


def roll_out_remote(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    workers: Cluster,
    progress: Callable[[int, int], None] | None = None,
) -> dict[EndingName, Records]:
    """The records of each ending that ``roll_out`` makes, by workers who share the people.

    Parameters
    ----------
    fitted
        The advisor.
    X
        Complete encoded rows, (people, features).
    workers
        The cluster.
    progress
        Called with the numbers of people who are done, and of all.
    """
    parts: dict[int, dict[EndingName, Records]] = {}
    judge = draw_judges(fitted, X)
    tasks = (
        (first, (X[first : first + PEOPLE_PER_TASK], judge[first : first + PEOPLE_PER_TASK]))
        for first in range(0, len(X), PEOPLE_PER_TASK)
    )
    for first, records in results(fitted, ask_and_judge, tasks, workers):
        parts[first] = {n: replace(r, person=r.person + first) for n, r in records.items()}
        if progress:
            progress(sum(len(part["act"].people) for part in parts.values()), len(X))
    return {
        ending.name: Records.join(*(parts[first][ending.name] for first in sorted(parts)))
        for ending in fitted.promise.endings
    }


@contextmanager
def _open_threads(n_jobs: int | None) -> Iterator[Workers]:
    """Threads of this process, or with one job none but the caller's."""
    count = count_jobs(n_jobs)
    if count == 1:
        yield Workers(SerialExecutor(), 1)
        return
    # Each job has a processor of its own: what multiplies matrices on all of them would only be in
    # the others' way.
    with threadpool_limits(1), ThreadPoolExecutor(count) as pool:
        try:
            yield Workers(pool, count)
        finally:
            pool.shutdown(cancel_futures=True)


WORKS_WITH = "a worker's advisor"  # of RESOURCES, with its key
_lock = threading.Lock()


def _key(fitted: FittedAdvisor) -> str:
    """One word for an advisor with its certificate."""
    return fingerprint(advisor=fitted.fingerprint, certificate=fitted.promise.certificate_id)


def _work_away(key: str, made_with: str, folder: str | None, work: Work, job: _Job) -> Any:
    """On a worker of a cluster: do the work with an advisor, which stays for the next task.

    Parameters
    ----------
    key
        Which advisor, by ``_key``.
    made_with
        The versions that the advisor is used with; MismatchError if this worker has others.
    folder
        Where the advisor may be loaded from.
    work, job
        What is called with the advisor and the arguments of the job.

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
            fitted = job.sent or _load(folder, key)
            if fitted is None:
                return None
            RESOURCES.keep({WORKS_WITH: (key, fitted)})
    return work(fitted, *job.args)


def _load(folder: str | None, key: str) -> FittedAdvisor | None:
    """The advisor in a folder, if it can be read here and is the one that is meant."""
    with suppress(EdfaError, OSError):
        if folder is not None and _key(fitted := persist.load(folder)[0]) == key:
            return fitted
    return None
