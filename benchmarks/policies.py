"""The field's acquisition policies against random and against the exact limit: accuracy by number of features, and speed.

Each case (a set and a seed) is one process and one JSON file in out/policies; what is there is not done again. Where a
GPU is at hand, `python benchmarks/policies.py run JOBS` there fills the folder, and this takes it up.
"""

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from edfa.acquisition.base import Background, Policy, State
from edfa.acquisition.dime import DIME
from edfa.acquisition.eddi import EDDI
from edfa.acquisition.greedy import Greedy
from edfa.acquisition.gsmrl import GSMRL
from edfa.acquisition.loop import acquire
from edfa.acquisition.random import Random
from edfa.data.cube import Cube
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.predictors.mlp import MaskedMLP

FOLDER = Path(__file__).parents[1] / "out" / "policies"
SHARED = Path(os.environ.get("EDFA_DATA") or Path(__file__).parents[2] / "shared" / "data")
SEEDS, CAP, PEOPLE, FEATURES = (0, 1, 2), 20_000, 2_000, 10
CUBES = {"cube 0.1": 0.1, "cube 0.3": 0.3}
EXACT = {
    "cube 0.1": (0.833, 0.960, 0.978),
    "cube 0.3": (0.614, 0.753, 0.872),
}  # accuracy at 3, 5, 10 of the exact greedy
AT = (3, 5, 10)
HELOC = {"DIME": 78.0, "GSMRL": 77.5, "EDDI latent": 75.0}
NAMES = ("random", "greedy", "DIME", "GSMRL", "EDDI latent", "EDDI label")


def policies(seed: int) -> dict[str, Policy]:
    return {
        "random": Random(),
        "greedy": Greedy(),
        "DIME": DIME(seed=seed),
        "GSMRL": GSMRL(seed=seed),
        "EDDI latent": EDDI(seed=seed),
        "EDDI label": EDDI(seed=seed, reward="label"),
    }


def lay_out() -> None:
    """One CSV file and one card a set, everything at cost 1 and nothing known at the start."""
    from edfa.data.catalog import NAMES as SETS
    from edfa.data.catalog import load_schema

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        if not (SHARED / f"{name}.parquet").is_file() or (FOLDER / f"{name}.csv.gz").exists():
            continue
        card = load_schema(name)
        cold = replace(card, features=tuple(replace(f, start=False, cost=1.0) for f in card))
        whole = Table.from_parquet(SHARED / f"{name}.parquet", cold, cap=CAP)
        whole.frame.to_csv(FOLDER / f"{name}.csv.gz", index=False)
        (FOLDER / f"{name}.json").write_text(whole.schema.to_json(), encoding="utf-8")


def read(name: str, seed: int) -> Table:
    if name in CUBES:
        return Cube(CUBES[name]).table(12_000, seed=seed, shares=(10 / 12, 1 / 120, 1 - 10 / 12 - 1 / 120))
    import pandas as pd

    schema = Schema.from_json((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    words = {f.name: str for f in schema if f.words} | {schema.target: str}
    frame = pd.read_csv(FOLDER / f"{name}.csv.gz", dtype=words, keep_default_na=False, na_values=[""])
    return Table.from_frame(frame, schema, name=name, seed=seed)


def play(name: str, seed: int, policy: str) -> str:
    """Train one policy on one case and read its curve off an external model."""
    target = FOLDER / f"{name}-{seed}-{policy}.result.json".replace(" ", "_")
    if not target.exists():
        torch.set_num_threads(1)
        data = read(name, seed)
        model = MaskedMLP(seed=seed).fit(data.train.X, data.train.y)
        chosen, start = policies(seed)[policy], time.perf_counter()
        cpu = time.process_time()
        if hasattr(chosen, "fit"):
            chosen.fit(data.train)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        rows, truth = data.test.X[:PEOPLE], data.test.y[:PEOPLE]
        found = acquire(rows, chosen, model, FEATURES + 0.5, seed, reference=data.train, explain=False)
        told = [found.chances[found.at(k)] for k in range(1, FEATURES + 1)]
        curve = [float((t.argmax(axis=1) == truth).mean()) for t in told]
        area = [100 * float(roc_auc_score(truth, t[:, 1])) for t in told] if told[0].shape[1] == 2 else []
        where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        entry = {"accuracy": curve, "auroc": area, "seconds": seconds, "cpu": cpu, "device": where}
        target.write_text(json.dumps(entry), encoding="utf-8")
    return target.name


def run(jobs: int = 1) -> None:
    """Everything that is missing, the longest first."""
    sets = [*CUBES, *sorted(p.name.removesuffix(".csv.gz") for p in FOLDER.glob("*.csv.gz"))]
    order = ("DIME", "GSMRL", "greedy", "EDDI label", "EDDI latent", "random")
    todo = [(name, seed, policy) for policy in order for name in sets[::-1] for seed in SEEDS]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in pool.map(play, *zip(*todo, strict=True)):
            print(done, file=sys.stderr, flush=True)


def gather(name: str, policy: str) -> list[dict[str, Any]]:
    paths = [FOLDER / f"{name}-{seed}-{policy}.result.json".replace(" ", "_") for seed in SEEDS]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def speed() -> list[list[Any]]:
    """CPU milliseconds to score 1,000 people once, a person, and seconds to learn from 10,000 x 20."""
    data = read("cube 0.1", 0)
    model = MaskedMLP(epochs=2).fit(data.train.X, data.train.y)
    rows = np.where(np.random.default_rng(0).random((1000, 20)) < 0.3, data.test.X[:1000], np.float32(np.nan))
    found = []
    for name, policy in policies(0).items():
        seconds = 0.0
        if hasattr(policy, "fit"):
            start = time.process_time()
            policy.device = "cpu"
            policy.fit(data.train)
            seconds = time.process_time() - start
        state = State(
            Background(data.schema, model, data.train.X), rows, np.isnan(rows), np.ones(rows.shape), np.arange(1000)
        )
        policy.score(state)
        start = time.process_time()
        for _ in range(repeats := 2 if name in ("greedy", "EDDI label") else 5):
            policy.score(state)
        found.append([name, f"{seconds:.0f}", f"{(time.process_time() - start) / repeats:.4f}"])
    return found


def main() -> None:
    from report import table, write

    lay_out()
    run()
    sets = sorted(p.name.removesuffix(".csv.gz") for p in FOLDER.glob("*.csv.gz"))
    misses, cubes, areas, times = [], [], [], []
    for name, exact in EXACT.items():
        cubes.append([name, "exact greedy", *(f"{value:.3f}" for value in exact)])
        for policy in NAMES:
            told = [np.mean([r["accuracy"][k - 1] for r in gather(name, policy)]) for k in AT]
            cubes.append([name, policy, *(f"{value:.3f}" for value in told)])
            if policy in ("DIME", "greedy"):
                misses += [
                    f"{name}: {policy} {t:.3f} at {k}, the exact greedy {e:.3f}"
                    for k, t, e in zip(AT, told, exact, strict=True)
                    if t < e - 0.05
                ]
    for name in sets:
        means = {policy: np.mean([r["auroc"] for r in gather(name, policy)]) for policy in NAMES}
        areas.append([name, *(f"{means[policy]:.1f}" for policy in NAMES)])
        misses += [
            f"{name}: {p} {means[p]:.1f}, random {means['random']:.1f}"
            for p in NAMES[1:]
            if means[p] <= means["random"]
        ]
        if name == "heloc":
            misses += [f"heloc: {p} {means[p]:.1f}, the bar {bar}" for p, bar in HELOC.items() if means[p] < bar]
    pace = speed()
    bars = {"DIME": 0.02, "GSMRL": 0.05, "EDDI latent": 5.0}
    misses += [f"{p}: {ms} ms to score, the bar {bars[p]}" for p, _, ms in pace if p in bars and float(ms) > bars[p]]
    misses += [f"{p}: {s} s to learn, the bar 90" for p, s, _ in pace if p in ("DIME", "GSMRL") and float(s) > 90]
    for policy in NAMES[2:5]:
        for name in (*CUBES, *sets):
            results = gather(name, policy)
            where = ", ".join(sorted({r["device"] for r in results}))
            times.append([policy, name, f"{np.mean([r['seconds'] for r in results]):.0f}", where])
    write(
        "policies",
        "Acquisition policies: DIME, EDDI, GSMRL, greedy, random",
        f"Cold start, every feature at cost 1, {FEATURES} features, up to {PEOPLE:,} test people, means over seeds {SEEDS}; all curves are "
        f"read off the same external MaskedMLP. Sets are capped at {CAP:,} rows (60 % to learn from).",
        "## CUBE\n\nAccuracy after 3, 5 and 10 features; learnt from 10,000 rows. The bar for DIME and greedy: at most 0.05 below the exact.",
        table(["world", "policy", *(str(k) for k in AT)], cubes),
        "## Real sets\n\nMean AUROC (per cent) over 1 to 10 features.",
        table(["set", *NAMES], areas),
        "## Speed\n\nOne CPU core: seconds to learn from 10,000 rows of 20 features, milliseconds a person to score 1,000 people at once.",
        table(["policy", "seconds to learn", "ms a person"], pace),
        "Seconds to learn where a GPU was at hand (ten policies at once):",
        table(["policy", "set", "seconds", "on"], times),
        "## Bars\n\n" + ("\n".join(f"- missed: {miss}" for miss in misses) or "All met."),
    )


if __name__ == "__main__":
    run(int(sys.argv[2])) if sys.argv[1:2] == ["run"] else main()
