"""Measuring in one run, and writing the table under docs/results/ with what is needed to make it again."""

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import edfa

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def best(
    *jobs: Callable[[], Any], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """The shortest time of each job in seconds; the jobs take turns, so that a busy moment hits all of them."""
    times = [[float("inf")] for _ in jobs]
    for _ in range(repeats):
        for job, taken in zip(jobs, times, strict=True):
            start = clock()
            job()
            taken.append(clock() - start)
    return [min(taken) for taken in times]


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def write(name: str, title: str, *parts: str) -> None:
    """Print the parts and keep them in docs/results/NAME.md."""
    machine = f"Python {platform.python_version()}, {platform.machine()}"
    made = f"Made by `./run bench {name}` with edfa {edfa.__version__}, {machine}."
    text = "\n\n".join([f"# {title}", made, *parts]) + "\n"
    print(text)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
