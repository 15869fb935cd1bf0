"""An advisor of 5,000 features: its memory, which must stay below 4 GiB, and its time on one processor."""

import json
import subprocess
import sys
from typing import Any

from report import table, write

SEED, FEATURES, ROWS, RELEVANT, GIBIBYTES = 0, 5_000, 2_000, 12, 4.0

CHILD = """
import json, re, resource, sys, time
from pathlib import Path
from tempfile import TemporaryDirectory
import numpy as np, pandas as pd
import edfa
from edfa import Feature, Schema, Table

features, rows, relevant, seed, searcher = *map(int, sys.argv[1:5]), sys.argv[5]
resource.setrlimit(resource.RLIMIT_DATA, (12 << 30,) * 2)  # a guard for the machine; the measure is what was resident
random = np.random.default_rng(seed)
numbers = random.normal(size=(rows, features)).astype(np.float32)
words = {i for i in range(relevant, features) if i % 10 == 0}
columns = {f"x{i}": random.choice(list("abcd"), rows) if i in words else numbers[:, i] for i in range(features)}
score = numbers[:, :relevant] @ random.choice([-1.0, 1.0], relevant)
columns["y"] = np.where(score + random.logistic(size=rows) > 0, "good", "bad")
kinds = ["categorical" if i in words else "continuous" for i in range(features)]
schema = Schema(tuple(Feature(f"x{i}", kind) for i, kind in enumerate(kinds)), "y", "good")
table = Table.from_frame(pd.DataFrame(columns), schema, seed=seed)
del columns, numbers
taken = {}

def timed(name, work):
    start = time.perf_counter()
    result = work()
    taken[name] = time.perf_counter() - start
    return result

advisor = timed("fit", lambda: edfa.Advisor(searcher=searcher, seed=seed).fit(table, n_jobs=1))
with TemporaryDirectory() as folder:
    timed("save", lambda: advisor.save(Path(folder) / "advisor"))
    loaded = timed("load", lambda: edfa.Advisor.load(Path(folder) / "advisor"))

def interview():
    row, person = table.test.frame.iloc[0], loaded.interview({})
    while person.question is not None:
        person.answer({person.question.feature: row[person.question.feature]})
    return person.plans(k=3)

timed("interview", interview)
blanket = advisor.fitted.blanket.features
right = sum(int(name[1:]) < relevant for name in blanket)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**20
print(json.dumps({"taken": taken, "peak": peak, "blanket": len(blanket), "right": right}))
"""


def measure(searcher: str) -> dict[str, Any]:
    words = [str(value) for value in (FEATURES, ROWS, RELEVANT, SEED)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *words, searcher], capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    rows = []
    for searcher in ("nearest", "survival"):
        one = measure(searcher)
        seconds = [f"{one['taken'][name]:.1f}" for name in ("fit", "save", "load", "interview")]
        held = "yes" if one["peak"] < GIBIBYTES else "no"
        rows.append(
            [searcher, *seconds, f"{one['peak']:.2f}", held, f"{one['right']} of {one['blanket']}"]
        )
    columns = [
        "searcher",
        "fit (s)",
        "save (s)",
        "load (s)",
        "interview (s)",
        "peak (GiB)",
        "below 4 GiB",
    ]
    write(
        "wide",
        "Many features",
        f"Seed {SEED}: {ROWS:,} rows of {FEATURES:,} features, a tenth of them words, of which {RELEVANT} decide. Each "
        "advisor is fitted, saved, loaded and asked in a process of its own with one thread; the peak is the largest "
        "resident memory of that process, libraries and table included. `survival` is the default.",
        table([*columns, "blanket: relevant"], rows),
    )


if __name__ == "__main__":
    main()
