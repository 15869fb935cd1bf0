"""Runs an advisor on threads of this process, or on the workers of a Dask cluster.

A worker loads the advisor from its folder if it finds the same one there; otherwise the advisor is
sent to it, once. Results do not depend on which worker made them.
"""

import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from edfa.advice import persist
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.promise import ask_and_judge, draw_judges
from edfa.advice.receipt import versions
from edfa.certification.records import Records
from edfa.errors import EdfaError, MismatchError
from edfa.fingerprint import fingerprint
from edfa.parallel import count_jobs
from edfa.typing import Float32Array
from edfa.workers import SerialExecutor, open_workers, worker_died

__all__ = ["Crew", "open_crew", "roll_out_away"]

Task = TypeVar("Task")
PEOPLE = 200  # calibration people a worker is handed at a time
ATTEMPTS = 3  # at a task whose worker dies
AHEAD = 2  # tasks for each worker that are handed out before the first is done
Work = Callable[..., Any]
"""Called with the advisor and a task's arguments; it returns something other than None."""


@dataclass(frozen=True, eq=False)
class Crew:
    """Workers who know one advisor; ``away`` in other processes, which may have a ``folder`` with
    it.
    """

    fitted: FittedAdvisor
    executor: Executor
    count: int
    away: bool = False
    folder: Path | None = None

    def results(
        self, work: Work, tasks: Iterator[Task], args: Callable[[Task], tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield each task with its result, in the order in which they finish.

        ``tasks`` are taken as workers become free; ``args`` makes of each what ``work`` is called
        with.
        """
        running: dict[Future[Any], tuple[Task, int]] = {}
        try:
            for task in tasks:
                running[self._submit(work, args(task))] = task, 1
                if len(running) >= AHEAD * self.count:
                    yield from self._done(running, work, args)
            while running:
                yield from self._done(running, work, args)
        finally:
            for future in running:
                future.cancel()

    def _done(
        self, running: dict[Future[Any], tuple[Task, int]], work: Work, args: Any
    ) -> Iterator[Any]:
        """Wait for the first results. A task whose worker died, or had no advisor, is handed out
        again.
        """
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task, attempts = running.pop(future)
            if attempts < ATTEMPTS and (future.cancelled() or worker_died(future.exception())):
                running[self._submit(work, args(task))] = task, attempts + 1
            elif (result := future.result()) is None:
                running[self._submit(work, args(task), self.fitted)] = task, attempts
            else:
                yield task, result

    def _submit(
        self, work: Work, args: tuple[Any, ...], sent: FittedAdvisor | None = None
    ) -> Future[Any]:
        if not self.away:
            return self.executor.submit(work, self.fitted, *args)
        folder = None if self.folder is None else str(self.folder.resolve())
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "Sending large graph"
            )  # an advisor may be: it is sent once a worker
            return self.executor.submit(
                _work_away, self._key, str(versions()), folder, sent, work, args
            )

    @cached_property
    def _key(self) -> str:
        return _key(self.fitted)


def roll_out_away(
    crew: Crew,
    X: Float32Array,  # noqa: N803
    progress: Callable[[int, int], None] | None = None,
) -> Records:
    """The records that ``roll_out`` makes of complete encoded rows X, by workers who share the
    people.

    ``progress`` is called with the numbers of people who are done, and of all.
    """
    parts: dict[int, Records] = {}
    firsts = iter(range(0, len(X), PEOPLE))
    judge = draw_judges(crew.fitted, X)
    some = lambda first: (X[first : first + PEOPLE], judge[first : first + PEOPLE])  # noqa: E731
    for first, records in crew.results(ask_and_judge, firsts, some):
        parts[first] = replace(records, person=records.person + first)
        if progress:
            progress(sum(len(part.people) for part in parts.values()), len(X))
    return Records.join(*(parts[first] for first in sorted(parts)))


@contextmanager
def open_crew(
    fitted: FittedAdvisor,
    jobs: int | None = -1,
    scheduler: str | None = None,
    folder: str | Path | None = None,
) -> Iterator[Crew]:
    """Threads of this process, or with the address of a ``scheduler`` the workers of its
    cluster.
    """
    if scheduler is not None:
        with open_workers(scheduler=scheduler) as workers:
            yield Crew(
                fitted,
                workers.executor,
                workers.count,
                True,
                None if folder is None else Path(folder),
            )
        return
    count = count_jobs(jobs)
    if count == 1:
        yield Crew(fitted, SerialExecutor(), 1)
        return
    # Each job has a processor of its own: what multiplies matrices on all of them would only be in
    # the others' way.
    with threadpool_limits(1), ThreadPoolExecutor(count) as pool:
        yield Crew(fitted, pool, count)


_held: dict[str, FittedAdvisor] = {}  # on a worker: the advisor it works with
_lock = threading.Lock()


def _key(fitted: FittedAdvisor) -> str:
    """One word for an advisor with its certificate."""
    return fingerprint(advisor=fitted.fingerprint, certificate=fitted.promise.certificate_id)


def _work_away(
    key: str, made_with: str, folder: str | None, sent: FittedAdvisor | None, work: Work, args: Any
) -> Any:
    """On a worker: do the work with the advisor ``key``; None if there is none."""
    if str(versions()) != made_with:
        raise MismatchError(
            f"a worker has {versions()}, the advisor is used with {made_with}: answers could differ"
        )
    with _lock:
        if key not in _held:
            advisor = sent or _load(folder, key)
            if advisor is None:
                return None
            _held.clear()
            _held[key] = advisor
        fitted = _held[key]
    return work(fitted, *args)


def _load(folder: str | None, key: str) -> FittedAdvisor | None:
    """The advisor in a folder, if it can be read here and is the one that is meant."""
    try:
        fitted = None if folder is None else persist.load(folder)[0]
    except (EdfaError, OSError):
        return None
    return fitted if fitted is not None and _key(fitted) == key else None
