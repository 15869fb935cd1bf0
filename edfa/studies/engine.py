"""The engine of a study: hands work to processes or a cluster, in an order that respects what needs what.

Work that fails is a row with its traceback. A worker that dies is replaced and its work tried again. Results depend
neither on the number of workers nor on the order in which they end.
"""

import os
import platform
import time
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from edfa.studies.cells import Cell
from edfa.studies.store import Store, plain
from edfa.workers import Workers, open_workers, worker_died

__all__ = ["Outcome", "Progress", "Task", "run_study", "run_tasks"]

ATTEMPTS = 3
HANDED_OUT = 2  # tasks a worker has at a time: one it does, and one to go on with at once
DIED = "the worker died {} times while it did this: it was killed, ran out of memory, or crashed"


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
        The keys of tasks that come before it; those that are not among the tasks are taken to be done.
    shared
        It is done for the sake of others: what it returns is not sent back.
    """

    key: str
    work: Callable[..., Any]
    args: tuple[Any, ...] = ()
    needs: tuple[str, ...] = ()
    shared: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a task: its result, or else its error as the text of a traceback; the time it took, and where."""

    key: str
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    worker: str = ""
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
    running
        Workers that are busy.
    rate, seconds_left
        Cells a second in this run, and the time to go at that rate; 0 and None before the first.

    Examples
    --------
    >>> Progress(total=10, done=3, failed=1, skipped=2).left
    4
    """

    total: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    running: int = 0
    rate: float = 0.0
    seconds_left: float | None = None

    @property
    def left(self) -> int:
        """Cells that are neither done nor failed."""
        return self.total - self.done - self.failed - self.skipped


def run_tasks(
    tasks: Sequence[Task],
    opened: Callable[[], AbstractContextManager[Workers]],
    on_outcome: Callable[[Outcome], None],
    *,
    attempts: int = ATTEMPTS,
) -> None:
    """Do all tasks, each after those it needs, and pass each outcome on as soon as it is there.

    A task that fails does not keep back those that need it.

    Parameters
    ----------
    tasks
        Of those that may begin, the first in this order does.
    opened
        Opens the workers; again, if these are gone.
    on_outcome
        Is called in this process, with one outcome at a time. What it raises ends the run.
    attempts
        How often a task is tried whose worker dies. An error of the task itself is final.

    Examples
    --------
    >>> tasks = [Task("a", max, (1, 2)), Task("b", int, ("one",))]
    >>> run_tasks(tasks, lambda: open_workers(1), lambda outcome: print(outcome.key, outcome.result))
    a 2
    b None
    """
    agenda = _Agenda(tasks, attempts)
    while agenda.unfinished:
        with opened() as workers:
            _hand_out(agenda, workers, on_outcome)


class _Agenda:
    """Which tasks may begin, and which had been handed out when a worker died."""

    def __init__(self, tasks: Sequence[Task], attempts: int) -> None:
        self.tasks, self.attempts = {task.key: task for task in tasks}, attempts
        self.places = {key: place for place, key in enumerate(self.tasks)}
        needs = {task.key: [key for key in task.needs if key in self.tasks] for task in tasks}
        self.sorter = TopologicalSorter(needs)
        self.sorter.prepare()
        self.ready: list[tuple[int, str]] = []
        self.suspects: list[str] = []
        self.deaths: Counter[str] = Counter()

    @property
    def unfinished(self) -> bool:
        """Whether a task is left, be it under way."""
        return self.sorter.is_active()

    def begin(self, running: Collection[Task], most: int) -> Task | None:
        """The next task, or None if it has to wait.

        Nobody knows which of the tasks that had been handed out killed a worker. They are tried again one at a time:
        a task that always does so is found out, and no other fails for it.
        """
        if self.suspects or any(task.key in self.deaths for task in running):
            return None if running else self.tasks[self.suspects.pop()]
        for key in self.sorter.get_ready():
            self.put_back(key)
        return self.tasks[heappop(self.ready)[1]] if self.ready and len(running) < most else None

    def put_back(self, key: str) -> None:
        """Let a task begin when it is its turn."""
        if key in self.deaths:
            self.suspects.append(key)
        else:
            heappush(self.ready, (self.places[key], key))

    def suspect(self, keys: Sequence[str], alone: bool) -> Outcome | None:
        """Note that a worker died with these tasks; the outcome of a task that has failed for it."""
        self.deaths.update(keys)
        if alone and (deaths := self.deaths[keys[0]]) >= self.attempts:
            return Outcome(keys[0], error=DIED.format(deaths), attempts=deaths)
        self.suspects.extend(reversed(keys))
        return None


def _hand_out(agenda: _Agenda, workers: Workers, on_outcome: Callable[[Outcome], None]) -> None:
    """Hand out tasks and take in outcomes, until all are done or the workers are gone."""
    running: dict[Future[Outcome], Task] = {}
    # In this process a task is done as it is handed out: one at a time, or the first outcome waits for the second.
    most = 1 if workers.count == 1 else HANDED_OUT * workers.count
    while agenda.unfinished:
        gone = not _submit(agenda, workers, running, most)
        alone = len(running) == 1
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        if gone or any(isinstance(_error(future), BrokenExecutor | CancelledError) for future in finished):
            gone, (finished, _) = True, wait(running)  # they are lost all together, but for what was done already
        lost = []
        for future in finished:
            task, error = running.pop(future), _error(future)
            if worker_died(error):
                lost.append(task.key)
            else:
                _finish(agenda, on_outcome, _outcome(task, future, agenda.deaths[task.key] + 1))
        if lost and (failed := agenda.suspect(lost, alone)):
            _finish(agenda, on_outcome, failed)
        if gone:
            return


def _submit(agenda: _Agenda, workers: Workers, running: dict[Future[Outcome], Task], most: int) -> bool:
    """Hand out what may begin; False if the workers are gone."""
    while task := agenda.begin(running.values(), most):
        try:
            running[workers.executor.submit(_attempt, task)] = task
        except BrokenExecutor:
            agenda.put_back(task.key)
            return False
    return True


def _attempt(task: Task) -> Outcome:
    """Do a task, on a worker, with one thread: sums of many threads differ in their last bits."""
    begun, result, error = time.perf_counter(), None, None
    try:
        with threadpool_limits(1):
            result = task.work(*task.args)
    except (Exception, SystemExit):  # whatever it raises is its outcome
        error = traceback.format_exc()
    where = f"{platform.node()}:{os.getpid()}"
    return Outcome(task.key, None if task.shared else result, error, time.perf_counter() - begun, where)


def _error(future: Future[Outcome]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _outcome(task: Task, future: Future[Outcome], attempts: int) -> Outcome:
    """What a worker has sent, or why it could not be sent."""
    if (error := _error(future)) is not None:
        return Outcome(task.key, error="".join(traceback.format_exception(error)), attempts=attempts)
    return replace(future.result(), attempts=attempts)


def _finish(agenda: _Agenda, on_outcome: Callable[[Outcome], None], outcome: Outcome) -> None:
    on_outcome(outcome)
    agenda.sorter.done(outcome.key)


def run_study(
    cells: Iterable[Cell],
    store: Store,
    cache: str | Path,
    *,
    jobs: int | None = -1,
    scheduler: str | None = None,
    retry_failed: bool = False,
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
        Try cells anew that failed in an earlier run.
    progress
        Is called at the start and after each piece of work.
    """
    study = {cell.key: cell for cell in cells}
    store.add(study.values())
    done, failed = store.done() & study.keys(), store.failed() & study.keys()
    if retry_failed:
        failed = set()
    tasks = _tasks([cell for key, cell in study.items() if key not in done | failed], Path(cache))
    tally = _Tally(Progress(len(study), failed=len(failed), skipped=len(done)), progress)

    @contextmanager
    def opened() -> Iterator[Workers]:
        with open_workers(jobs, scheduler) as workers:
            tally.workers = workers.count
            yield workers

    def keep(outcome: Outcome) -> None:
        if (cell := study.get(outcome.key)) is None:
            tally.tell()
        elif outcome.error is None:
            store.save(cell, outcome.result, outcome.seconds, outcome.worker, outcome.attempts)
            tally.tell(done=1)
        else:
            store.fail(cell, outcome.error, outcome.seconds, outcome.attempts)
            tally.tell(failed=1)

    tally.tell()
    run_tasks(tasks, opened, keep)
    return tally.tell()


def _tasks(cells: Sequence[Cell], cache: Path) -> list[Task]:
    """The cells, each after those of its products that the cache lacks."""
    if not cells:
        return []
    # What measures is not needed, nor is the time to import it, where everything is measured.
    from edfa.studies.cache import Cache
    from edfa.studies.products import make, products

    tasks: dict[str, Task] = {}
    shelf = Cache(cache)
    for cell in cells:
        needed = [product for product in products(cell) if not shelf.has(product.kind, product.key)]
        for product in needed:
            needs = tuple(_name(key) for key in product.needs)
            task = Task(_name(product.key), make, (product, str(cache)), needs, shared=True)
            tasks.setdefault(task.key, task)
        names = tuple(_name(product.key) for product in needed)
        tasks[cell.key] = Task(cell.key, _measure, (cell, str(cache)), names)
    return list(tasks.values())


def _name(product: str) -> str:
    """The key of a product's task; no cell has it."""
    return f"product {product}"


def _measure(cell: Cell, cache: str) -> Any:
    from edfa.studies.measures import measure

    return plain(measure(cell, cache))


@dataclass
class _Tally:
    """Counts cells, and says how far the study is."""

    now: Progress
    progress: Callable[[Progress], None] | None
    workers: int = 0
    finished: int = 0
    begun: float = field(default_factory=time.monotonic)

    def tell(self, done: int = 0, failed: int = 0) -> Progress:
        """Count a cell, and pass on how far the study is."""
        self.finished += done + failed
        rate = self.finished / max(time.monotonic() - self.begun, 1e-9)
        now = replace(self.now, done=self.now.done + done, failed=self.now.failed + failed, rate=rate)
        seconds = now.left / rate if rate else None if now.left else 0.0
        self.now = replace(now, running=min(self.workers, now.left), seconds_left=seconds)
        if self.progress:
            self.progress(self.now)
        return self.now
