"""The engine of a study: measures the cells that the store lacks, on this machine or a cluster.

If a run ends early (Ctrl-C, a crash, a full disk), only the cells that were being measured are
lost; the next run measures them.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from edfa.workers import Workers, open_workers
from edfa_studies.cells import Cell
from edfa_studies.payload import measure_plainly
from edfa_studies.store import Store
from edfa_studies.tasks import Outcome, Task, run_tasks

__all__ = ["Progress", "run_study"]


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
    end = math.inf if limit_seconds is None else time.monotonic() + limit_seconds
    run_tasks(tasks, opened, keep, stop=lambda: time.monotonic() >= end)
    return tally.tell()


def _tasks(cells: Sequence[Cell], cache: Path) -> list[Task]:
    """The cells, each after those of its products that the cache lacks."""
    if not cells:
        return []
    # What measures is not needed, nor is the time to import it, where everything is measured.
    from edfa_studies.cache import Cache
    from edfa_studies.products import make, products

    tasks: dict[str, Task] = {}
    shelf = Cache(cache)
    for cell in cells:
        needed = [product for product in products(cell) if not shelf.has(product.kind, product.key)]
        for product in needed:
            needs = tuple(_name(key) for key in product.needs)
            task = Task(_name(product.key), make, (product, str(cache)), needs, shared=True)
            tasks.setdefault(task.key, task)
        names = tuple(_name(product.key) for product in needed)
        tasks[cell.key] = Task(cell.key, measure_plainly, (cell, str(cache)), names)
    return list(tasks.values())


def _name(product: str) -> str:
    """The key of a product's task; no cell has it."""
    return f"product {product}"


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
        now = replace(
            self.now, done=self.now.done + done, failed=self.now.failed + failed, rate=rate
        )
        seconds = now.left / rate if rate else None if now.left else 0.0
        self.now = replace(now, running=min(self.workers, now.left), seconds_left=seconds)
        if self.progress:
            self.progress(self.now)
        return self.now
