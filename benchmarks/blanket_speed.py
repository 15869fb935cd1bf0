"""Markov blankets: whole targets with cold caches against pyCausalFS, both measured in this run, one after the other.

Needs the samples that benchmarks/blanket.py exports, and .venv-peers.
"""

import shutil
import time

import numpy as np
import pandas as pd
from blanket import FEW, NETWORKS, OURS, WORK, peer
from report import table, write

from edfa.blanket.sources.open import open_source

BAR = 100
REPEATS = (
    5  # of edfa's milliseconds, each with cold caches; pyCausalFS takes seconds and is asked once
)


def measure(method: str, rival: str, name: str) -> np.ndarray:
    """Mean seconds a target: edfa's search, the same with reading the frame, pyCausalFS."""
    path = (
        WORK / "speed" / f"{name}-5000-0.parquet"
    )  # a folder of its own, where no earlier times are kept
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(WORK / path.name, path)
    frame = pd.read_parquet(path)
    (path.parent / "peers" / f"{path.stem}-pycausalfs-{rival}.json").unlink(missing_ok=True)
    theirs = peer(f"pycausalfs-{rival}", path, list(frame)[:FEW])["seconds"]
    rows = [
        [*np.median([once(method, frame, target) for _ in range(REPEATS)], axis=0), theirs[target]]
        for target in theirs
    ]
    return np.mean(rows, axis=0)


def once(method: str, frame: pd.DataFrame, target: str) -> tuple[float, float]:
    """Seconds of one search with a new tester, and of the same with reading the frame."""
    start = time.process_time()
    tester = OURS[method].tester(open_source(frame, target, None, False)[0])
    middle = time.process_time()
    OURS[method].find(tester, tester.names.index(target))
    end = time.process_time()
    return end - middle, end - start


def row(method: str, name: str, times: np.ndarray) -> list[str]:
    mine, read, other = times
    return [
        method,
        name,
        *(f"{v * 1e3:.1f}" for v in times),
        f"{other / mine:.0f}",
        f"{other / read:.0f}",
    ]


def main() -> None:
    rows, missed = [], []
    for method, rival in (("iamb", "iamb"), ("hiton-mb", "hiton"), ("bamb", "bamb")):
        found = {name: measure(method, rival, name) for name in NETWORKS}
        rows += [row(method, name, times) for name, times in found.items()]
        if method != "iamb":
            missed += [
                f"{method} on {name}: {t[2] / t[0]:.0f} times faster, not {BAR}"
                for name, t in found.items()
                if t[2] / t[0] < BAR
            ]
    columns = [
        "method",
        "network",
        "edfa",
        "with reading",
        "pyCausalFS",
        "ratio",
        "ratio with reading",
    ]
    write(
        "blanket_speed",
        "Markov blankets: speed against pyCausalFS",
        f"5,000 rows (first sample, seed 0), mean milliseconds of CPU time a target over the first {FEW} columns of each network, cold caches, "
        f"one thread, both measured in this run (edfa: the median of {REPEATS}). pyCausalFS gets an array of integers; `with reading` adds edfa's own reading and "
        f"coding of the data frame. The bar is {BAR} on each network for HITON-MB and BAMB.",
        table(columns, rows),
        "\n".join(f"- missed: {m}" for m in missed) or "All met.",
    )


if __name__ == "__main__":
    main()
