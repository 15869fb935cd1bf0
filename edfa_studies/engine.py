"""The engine of a study: measures the cells that the store lacks, on this machine or a cluster.

If a run ends early (Ctrl-C, a crash, a full disk), only the cells that were being measured are
lost; the next run measures them. A task that fails has its traceback for an outcome. A worker that
dies is replaced and its tasks are tried again. Results depend neither on the number of workers nor
on the order in which they end.
"""

import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from edfa.workers import Workers, hand_out, open_workers, worker_died
from edfa_studies.cells import Cell
from edfa_studies.store import Store, check_tables, plain

DIED = "the worker died {} times during this task: it was killed, ran out of memory, or crashed"


@dataclass(frozen=True)
class Task:
    """A piece of work.

    Parameters
    ----------
    key
        Its identity.
    work, args
        A function that a worker can import, and what it is called with.
    needs
        The keys of tasks that come before it; those that are not among the tasks are taken to be
        done.
    """

    key: str
    work: Callable[..., Any]
    args: tuple[Any, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a task.

    Parameters
    ----------
    key
        That of the task.
    result
        What its work returned.
    error
        The text of a traceback if it failed; else None.
    seconds
        The time it took, on its worker.
    attempts
        How often it was begun; more than once if a worker died.
    """

    key: str
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    attempts: int = 1


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Parameters
    ----------
    total
        All cells of the study.
    done
        Cells measured in this run.
    failed
        Cells that failed, in this run or in an earlier one and were not tried again.
    skipped
        Cells that were done before this run.

    Examples
    --------
    >>> Progress(total=10, done=3, failed=1, skipped=2).left
    4
    """

    total: int
    done: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def left(self) -> int:
        """Cells that are neither done nor failed."""
        return self.total - self.done - self.failed - self.skipped


def run_study(
    cells: Iterable[Cell],
    store: Store,
    cache: str | Path,
    *,
    jobs: int | None = -1,
    scheduler: str | None = None,
    retry_failed: bool = False,
    limit_seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Measure the cells that the store lacks, and write each as soon as it is measured.

    Parameters
    ----------
    cells
        The study.
    store
        What is done already is there, and what is done now goes there.
    cache
        The folder of what cells share; on a cluster, one that all workers see under this path.
    jobs, scheduler
        Where the work is done, see ``edfa.workers.open_workers``.
    retry_failed
        Also try cells that failed in an earlier run.
    limit_seconds
        Begin nothing after this time; what is under way is finished.
    progress
        Called at the start and after each piece of work.

    Returns
    -------
    Progress
        How far the study is at the end.

    Raises
    ------
    UnavailableError
        If the store cannot be written or there are no workers; what was written before stays.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from edfa_studies.config import expand, read_study, select
    >>> cells = select(expand(read_study("smoke")), "measure=sets,data=german,blanket=eamb")
    >>> with TemporaryDirectory() as folder, Store.open(Path(folder) / "study.sqlite") as store:
    ...     run_study(cells, store, Path(folder) / "cache", jobs=1)
    ...     store.frame("sets", "blanket")[["data", "blanket", "size"]]
    Progress(total=1, done=1, failed=0, skipped=0)
         data blanket  size
    0  german    eamb     6
    """
    study = {cell.key: cell for cell in cells}
    store.add(study.values())
    done = store.done() & study.keys()
    failed = set() if retry_failed else store.failed() & study.keys()
    now = Progress(len(study), failed=len(failed), skipped=len(done))
    show = progress or (lambda now: None)
    tasks = _tasks([cell for key, cell in study.items() if key not in done | failed], Path(cache))
    show(now)
    end = math.inf if limit_seconds is None else time.monotonic() + limit_seconds
    opened = partial(open_workers, jobs, scheduler)
    for outcome in run_tasks(tasks, opened, stop=lambda: time.monotonic() >= end):
        if (cell := study.get(outcome.key)) is not None:  # else it is shared work
            if outcome.error is None:
                store.save(cell, outcome.result, outcome.seconds, outcome.attempts)
                now = replace(now, done=now.done + 1)
            else:
                store.fail(cell, outcome.error, outcome.seconds, outcome.attempts)
                now = replace(now, failed=now.failed + 1)
        show(now)
    return now


def _tasks(cells: Sequence[Cell], cache: Path) -> list[Task]:
    """The cells, each after those of its products that the cache lacks."""
    if not cells:
        return []
    # What measures is not needed, nor is the time to import it, where everything is measured.
    from edfa_studies.products import Hashes, ProductFolder, make, products

    tasks: dict[str, Task] = {}
    folder, hashes = ProductFolder(cache), Hashes()
    for cell in cells:
        # those of products that are there are no tasks, and so are taken to be done
        needed = {f"product {one.key}": one for one in products(cell, hashes)}
        for key, one in needed.items():
            if key not in tasks and not folder.has(one.kind, one.key):
                needs = tuple(f"product {need}" for need in one.needs)
                tasks[key] = Task(key, make, (one, str(cache)), needs)
        tasks[cell.key] = Task(cell.key, _measure, (cell, str(cache)), tuple(needed))
    return list(tasks.values())


def _measure(cell: Cell, cache: str) -> Any:
    """Measure a cell, on a worker; what the store would refuse is refused here, as an error of the
    cell.
    """
    from edfa_studies.measures import measure

    return check_tables(plain(measure(cell, cache)))


def run_tasks(
    tasks: Sequence[Task],
    opened: Callable[[], AbstractContextManager[Workers]],
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Outcome]:
    """Do all tasks, each after those it needs, and yield each outcome as soon as it is there.

    A task that fails does not keep back those that need it.

    Parameters
    ----------
    tasks
        Of those that may begin, the first in this order does.
    opened
        Opens the workers; again, if these are gone.
    stop
        When it returns true, no new task is handed out; those that were are finished.

    Examples
    --------
    >>> from edfa.workers import open_workers
    >>> tasks = [Task("a", max, (1, 2)), Task("b", int, ("one",))]
    >>> [(outcome.key, outcome.result) for outcome in run_tasks(tasks, lambda: open_workers(1))]
    [('a', 2), ('b', None)]
    """
    places = {task.key: place for place, task in enumerate(tasks)}
    needs = {task.key: [key for key in task.needs if key in places] for task in tasks}
    sorter = TopologicalSorter(needs)
    sorter.prepare()
    ready: list[int] = []

    def take(most: int) -> list[Task]:
        for key in sorter.get_ready():
            heappush(ready, places[key])
        return [tasks[heappop(ready)] for _ in range(min(most, len(ready)))]

    def more() -> bool:
        return sorter.is_active() and not stop()

    for task, future, attempts in hand_out(opened, take, _attempt, more):
        yield _outcome(task.key, future, attempts)
        sorter.done(task.key)


def _outcome(key: str, done: Future[Outcome], attempts: int) -> Outcome:
    """What became of a task, also where its worker died or what it has made could not be sent."""
    try:
        return replace(done.result(), attempts=attempts)
    except Exception as error:
        text = DIED.format(attempts) if worker_died(error) else traceback.format_exc()
        return Outcome(key, error=text, attempts=attempts)


def _attempt(task: Task) -> Outcome:
    """Do a task, on a worker, with one thread: sums of many threads differ in their last bits."""
    begun, result, error = time.perf_counter(), None, None
    try:
        with threadpool_limits(1):
            result = task.work(*task.args)
    except (Exception, SystemExit):  # whatever it raises is its outcome
        error = traceback.format_exc()
    seconds = time.perf_counter() - begun
    return Outcome(task.key, result, error, seconds)
