"""Toy cells for the engine: quick work, work that fails, kills its worker or takes a while. Workers
import it.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from edfa_studies.cells import Cell, Part
from edfa_studies.engine import Task
from edfa_studies.store import check_tables, plain

NAMES = ("german", "xgb", "hiton-mb", "edfa", "nearest")


def toy_cell(seed=0, do="count", **settings):
    return Cell(
        "toy", *(Part(name, name) for name in NAMES), seed=seed, settings={"do": do, **settings}
    )


def toy_cells(count, do="count", **settings):
    return [toy_cell(seed, do, **settings) for seed in range(count)]


def count(cell, folder):
    """Sums of many numbers, whose last bits would tell another number of threads."""
    random = np.random.default_rng(cell.seed)
    matrix = random.random((200, 200), dtype=np.float32)
    product = matrix @ matrix.T
    rows = [
        {"step": step, "sum": float(product[step].sum()), "tau": -np.inf, "gap": np.nan}
        for step in range(3)
    ]
    return {"step": rows, "end": [{"own": cell.seed, "all": product.sum(), "names": ("a", "é")}]}


def sleep(cell, folder):
    (folder / f"begun-{cell.seed}").touch()
    if not (folder / "hurry").exists():
        time.sleep(cell.settings["seconds"])
    return count(cell, folder)


def fail(cell, folder):
    if cell.settings.get("odd", True) or (folder / "repaired").exists():
        return count(cell, folder)
    raise ValueError(f"cell {cell.seed} does not work")


def die(cell, folder):
    """Kill the worker: always, or if this cell has not done so before."""
    mark = folder / f"died-{cell.seed}"
    if cell.settings["always"] or not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return count(cell, folder)


def leave(cell, folder):
    sys.exit("leaving")


def alien(cell, folder):
    return {"end": [{"thing": object()}]}


def label(cell, folder):
    return {"end": [{"policy": "mine"}]}


WORK = {
    "label": label,
    "count": count,
    "sleep": sleep,
    "fail": fail,
    "die": die,
    "leave": leave,
    "alien": alien,
}


def toy_measure(cell, cache):
    (Path(cache) / f"process-{os.getpid()}").touch()
    return check_tables(plain(WORK[cell.settings["do"]](cell, Path(cache))))


def toy_tasks(cells, cache):
    """Takes the place of the engine's: the same tasks, with toy work."""
    return [Task(cell.key, toy_measure, (cell, str(cache))) for cell in cells]


def spin(seconds):
    """Work for a processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def note(folder, name, needs=()):
    """Leave a file, if those needed are there."""
    missing = [need for need in needs if not (Path(folder) / need).exists()]
    if missing:
        raise FileNotFoundError(missing)
    (Path(folder) / name).touch()
    return name


def unsendable():
    return lambda: None


if (
    __name__ == "__main__"
):  # a study of cells that sleep, to be killed: toy_work.py FOLDER COUNT SECONDS JOBS
    place, number, seconds, jobs = (
        Path(sys.argv[1]),
        int(sys.argv[2]),
        float(sys.argv[3]),
        int(sys.argv[4]),
    )
    from edfa_studies import engine
    from edfa_studies.store import Store

    engine._tasks = toy_tasks
    with Store.open(place / "study.sqlite") as opened:
        last = engine.run_study(
            toy_cells(number, "sleep", seconds=seconds), opened, place, jobs=jobs
        )
    sys.stdout.write(f"{last.done} done, {last.skipped} skipped, {last.failed} failed\n")
