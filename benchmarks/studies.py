"""The engine of studies: two workers beside one, what handing out costs, the smoke study, and the same run again."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from report import table, write

from edfa.workers import Workers, open_workers
from edfa_studies.cells import Cell, Part
from edfa_studies.engine import Task, run_tasks
from edfa_studies.store import Store

SPEEDUP, OVERHEAD, SMOKE, RERUN = 1.7, 0.05, 120.0, 50.0
CELLS, SECONDS = 24, 0.5  # of the comparison of two workers with one
LONG_CELLS, LONG_SECONDS = 16, 2.0  # of the overhead
ROWS = 40


def spin(seconds: float, clock: Callable[[], float]) -> dict[str, list[dict[str, float]]]:
    """Work for a processor, and a result as large as those of real cells."""
    end, sum_ = clock() + seconds, 0.0
    while clock() < end:
        sum_ += 1.0
    return {
        "step": [
            {name: row + sum_ / place for place, name in enumerate("abcdefgh", 7)}
            for row in range(ROWS)
        ]
    }


def toy(seed: int) -> Cell:
    return Cell(
        "growth",
        *(Part(name, name) for name in ("german", "xgb", "hiton-mb", "edfa", "nearest")),
        seed=seed,
    )


def timed(
    workers: Workers, cells: int, seconds: float, clock: Callable[[], float]
) -> tuple[float, float]:
    """The time that cells take with workers that are ready, all results written; and the sum of the work itself."""
    study = {cell.key: cell for cell in map(toy, range(cells))}
    tasks = [Task(key, spin, (seconds, clock)) for key in study]
    work = 0.0
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "study.sqlite") as store:
        store.add(study.values())
        opened: Callable[[], AbstractContextManager[Workers]] = lambda: nullcontext(workers)  # noqa: E731
        begun = time.perf_counter()
        for outcome in run_tasks(tasks, opened):
            assert outcome.error is None, outcome.error
            store.save(study[outcome.key], outcome.result, outcome.seconds)
            work += outcome.seconds
        taken = time.perf_counter() - begun
        assert len(store.done()) == cells
    return taken, work


def two_beside_one() -> tuple[list[Any], float]:
    """The same work of the processor with one worker and with two; in turn, the best of two."""
    times: dict[int, list[float]] = {1: [], 2: []}
    with open_workers(2) as two, open_workers(1) as one:
        timed(two, 4, 0.05, time.process_time)  # has imported what it needs
        for _ in range(2):
            times[1].append(timed(one, CELLS, SECONDS, time.process_time)[0])
            times[2].append(timed(two, CELLS, SECONDS, time.process_time)[0])
    first, second = min(times[1]), min(times[2])
    ratio = first / second
    row = (
        f"{CELLS} cells of {SECONDS} s",
        f"{first:.1f} s with one worker, {second:.1f} s with two",
        f"{ratio:.2f} times",
    )
    return [*row, f"≥ {SPEEDUP}"], ratio


def overhead() -> tuple[list[Any], float]:
    """The time of the workers that did not go into the work, as a share of the work."""
    with open_workers(2) as two:
        timed(two, 4, 0.05, time.perf_counter)
        taken, work = timed(two, LONG_CELLS, LONG_SECONDS, time.perf_counter)
    share = (taken * 2 - work) / work
    row = (
        f"{LONG_CELLS} cells of {LONG_SECONDS:.0f} s",
        f"{taken:.2f} s with two workers, {work:.2f} s of work",
    )
    return [*row, f"{share:.2%}", f"≤ {OVERHEAD:.0%}"], share


def smoke() -> tuple[list[list[Any]], float, float]:
    """The smoke study as a user runs it, and the same command once more."""
    with TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "edfa",
            "study",
            "run",
            "smoke",
            "--jobs",
            "2",
            "--json",
            "--out",
            folder,
        ]
        times, own = [], []
        for _ in range(2):
            begun = time.perf_counter()
            done = subprocess.run(command, check=True, timeout=1800, stdout=subprocess.PIPE)
            times.append(time.perf_counter() - begun)
            own.append(json.loads(done.stdout)["seconds"])
        with Store.open(Path(folder) / "study.sqlite") as store:
            cells = len(store.done())
            assert not store.failed()
    first, again = times
    rows = [
        [
            f"smoke, {cells} cells",
            "2 processes, nothing made before",
            f"{first:.0f} s",
            f"< {SMOKE:.0f} s",
        ],
        [
            "the same run again",
            f"{own[1]:.3f} s",
            f"{own[0] / own[1]:.0f} times faster",
            f"≥ {RERUN:.0f}",
        ],
        ["the same command again", f"{again:.2f} s", f"{first / again:.0f} times faster", ""],
    ]
    return rows, first, own[0] / own[1]


def main() -> None:
    speed, ratio = two_beside_one()
    cost, share = overhead()
    real, seconds, again = smoke()
    write(
        "studies",
        "Studies: what workers gain and what the engine costs",
        table(["what", "measured", "reached", "bar"], [speed, cost, *real]),
        "Toy cells count until their time is over: of the processor in the first row, of the clock in the second. Their results "
        f"({ROWS} rows of 8 numbers) go into an SQLite store as those of real cells do. The workers are there already. The overhead is "
        "time times workers less work, as a share of the work. *The same run again* is the time that the run says itself; *the same command again* "
        "also starts Python and checks the study file, which no cache saves.",
    )
    assert ratio >= SPEEDUP, (
        f"two workers do {ratio:.2f} times the work of one; the bar is {SPEEDUP}"
    )
    assert share <= OVERHEAD, f"the engine costs {share:.2%} of the work; the bar is {OVERHEAD:.0%}"
    assert seconds < SMOKE, f"the smoke study took {seconds:.0f} s; the bar is {SMOKE:.0f}"
    assert again >= RERUN, f"the same run again is {again:.0f} times faster; the bar is {RERUN:.0f}"


if __name__ == "__main__":
    main()
