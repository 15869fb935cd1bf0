"""The field's acquisition policies against random and against the exact limit: accuracy by number of features, and speed.

Each case (a set and a seed) is one process and one JSON file in out/policies; what is there is not done again. Where a
GPU is at hand, `python benchmarks/policies.py run JOBS` there fills the folder, and this takes it up.
"""

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score

from edfa.acquisition.base import Policy
from edfa.acquisition.dime import DIME
from edfa.acquisition.eddi import EDDI
from edfa.acquisition.greedy import Greedy
from edfa.acquisition.gsmrl import GSMRL
from edfa.acquisition.loop import acquire
from edfa.acquisition.random import Random
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.people import Background, People
from edfa.predictors.mlp import MaskedMLP

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from random_worlds import Cube

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


def policies(seed: int, device: str = "cpu") -> dict[str, Policy]:
    return {
        "random": Random(),
        "greedy": Greedy(),
        "DIME": DIME(seed=seed, device=device),
        "GSMRL": GSMRL(seed=seed, device=device),
        "EDDI latent": EDDI(seed=seed, device=device),
        "EDDI label": EDDI(seed=seed, reward="label", device=device),
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
        plain = replace(whole.schema, merge={})  # the labels in the file are merged already
        (FOLDER / f"{name}.json").write_text(plain.to_json(), encoding="utf-8")


def read(name: str, seed: int) -> Table:
    if name in CUBES:
        return Cube(CUBES[name]).table(
            12_000, seed=seed, shares=(10 / 12, 1 / 120, 1 - 10 / 12 - 1 / 120)
        )
    import pandas as pd

    schema = Schema.from_json((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    words = {f.name: str for f in schema if f.words} | {schema.target: str}
    frame = pd.read_csv(
        FOLDER / f"{name}.csv.gz", dtype=words, keep_default_na=False, na_values=[""]
    )
    return Table.from_frame(frame, schema, name=name, seed=seed)


def external(name: str, seed: int) -> MaskedMLP:
    """The model that every curve is read off, trained once a case."""
    folder = FOLDER / f"{name}-{seed}-model".replace(" ", "_")
    if not folder.exists():
        data = read(name, seed)
        MaskedMLP(seed=seed, device="cpu").fit(data.train.X, data.train.y).to_folder(folder)
    return MaskedMLP.from_folder(folder)


def play(name: str, seed: int, policy: str) -> str:
    """Train one policy on one case and read its curve off an external model."""
    target = FOLDER / f"{name}-{seed}-{policy}.result.json".replace(" ", "_")
    if not target.exists():
        data, model, chosen = read(name, seed), external(name, seed), policies(seed)[policy]
        chosen.fit(data.train)
        rows, truth = data.test.X[:PEOPLE], data.test.y[:PEOPLE]
        trajectory = acquire(
            rows, chosen, model, FEATURES + 0.5, seed, reference=data.train, explain=False
        )
        steps = [trajectory.probabilities[trajectory.at(k)] for k in range(1, FEATURES + 1)]
        curve = [float((after.argmax(axis=1) == truth).mean()) for after in steps]
        area = (
            [100 * float(roc_auc_score(truth, after[:, 1])) for after in steps]
            if steps[0].shape[1] == 2
            else []
        )
        target.write_text(json.dumps({"accuracy": curve, "auroc": area}), encoding="utf-8")
    return target.name


def run(jobs: int = 1) -> None:
    """Everything that is missing; then, where there is a GPU, how long learning takes on it."""
    sets = [*CUBES, *sorted(p.name.removesuffix(".csv.gz") for p in FOLDER.glob("*.csv.gz"))]
    cases = [(name, seed) for name in sets for seed in SEEDS]
    order = ("DIME", "GSMRL", "greedy", "EDDI label", "EDDI latent", "random")
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        list(pool.map(external, *zip(*cases, strict=True)))
        todo = [pool.submit(play, name, seed, policy) for policy in order for name, seed in cases]
        for done in as_completed(todo):
            print(done.exception() or done.result(), file=sys.stderr, flush=True)
    if torch.cuda.is_available() and not (FOLDER / "gpu.json").exists():
        data, taken = read("cube 0.1", 0), {"device": torch.cuda.get_device_name()}
        for name, policy in policies(0, "cuda").items():
            if name not in ("random", "greedy"):  # which learn nothing
                start = time.perf_counter()
                policy.fit(data.train)
                taken[name] = time.perf_counter() - start
        (FOLDER / "gpu.json").write_text(json.dumps(taken), encoding="utf-8")


def gather(name: str, policy: str) -> list[dict[str, Any]]:
    paths = [FOLDER / f"{name}-{seed}-{policy}.result.json".replace(" ", "_") for seed in SEEDS]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def speed() -> list[list[Any]]:
    """CPU milliseconds to score 1,000 people once, a person, and seconds to learn from 10,000 x 20."""
    data = read("cube 0.1", 0)
    model = MaskedMLP(epochs=2).fit(data.train.X, data.train.y)
    rows = np.where(
        np.random.default_rng(0).random((1000, 20)) < 0.3, data.test.X[:1000], np.float32(np.nan)
    )
    lines = []
    for name, policy in policies(0).items():
        start = time.process_time()
        policy.fit(data.train)
        seconds = time.process_time() - start
        people = People(rows, Background.of(data.train, model), costs=np.ones(rows.shape))
        policy.score(people)
        start = time.process_time()
        for _ in range(repeats := 2 if name in ("greedy", "EDDI label") else 5):
            policy.score(people)
        lines.append([name, f"{seconds:.0f}", f"{(time.process_time() - start) / repeats:.4f}"])
    return lines


def main() -> None:
    from report import table, write

    lay_out()
    run()
    sets = sorted(p.name.removesuffix(".csv.gz") for p in FOLDER.glob("*.csv.gz"))
    misses, cubes, areas = [], [], []
    for name, exact in EXACT.items():
        cubes.append([name, "exact greedy", *(f"{value:.3f}" for value in exact)])
        for policy in NAMES:
            accuracy = [np.mean([r["accuracy"][k - 1] for r in gather(name, policy)]) for k in AT]
            cubes.append([name, policy, *(f"{value:.3f}" for value in accuracy)])
            if policy in ("DIME", "greedy"):
                misses += [
                    f"{name}: {policy} {t:.3f} at {k}, the exact greedy {e:.3f}"
                    for k, t, e in zip(AT, accuracy, exact, strict=True)
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
            misses += [
                f"heloc: {p} {means[p]:.1f}, the bar {bar}"
                for p, bar in HELOC.items()
                if means[p] < bar
            ]
    pace = speed()
    bars = {"DIME": 0.02, "GSMRL": 0.05, "EDDI latent": 5.0}
    misses += [
        f"{p}: {ms} ms to score, the bar {bars[p]}"
        for p, _, ms in pace
        if p in bars and float(ms) > bars[p]
    ]
    misses += [
        f"{p}: {s} s to learn, the bar 90"
        for p, s, _ in pace
        if p in ("DIME", "GSMRL") and float(s) > 90
    ]
    if (FOLDER / "gpu.json").exists():
        gpu = json.loads((FOLDER / "gpu.json").read_text(encoding="utf-8"))
        pace = [
            [*row, f"{gpu[row[0]]:.0f} ({gpu['device']})" if row[0] in gpu else ""] for row in pace
        ]
    else:
        pace = [[*row, "no GPU at hand"] for row in pace]
    write(
        "policies",
        "Acquisition policies: DIME, EDDI, GSMRL, greedy, random",
        f"Cold start, every feature at cost 1, {FEATURES} features, up to {PEOPLE:,} test people, means over seeds {SEEDS}; curves are read "
        f"off an external MaskedMLP of the same settings and seed. Sets are capped at {CAP:,} rows (60 % to learn from).",
        "## CUBE\n\nAccuracy after 3, 5 and 10 features; learnt from 10,000 rows. The bar for DIME and greedy: at most 0.05 below the exact.",
        table(["world", "policy", *(str(k) for k in AT)], cubes),
        "## Real sets\n\nMean AUROC (per cent) over 1 to 10 features.",
        table(["set", *NAMES], areas),
        "## Speed\n\nOne CPU core: seconds to learn from 10,000 rows of 20 features, milliseconds a person to score 1,000 people at once.",
        table(["policy", "seconds to learn", "ms a person", "seconds to learn on a GPU"], pace),
        "## Bars\n\n" + ("\n".join(f"- missed: {miss}" for miss in misses) or "All met."),
    )


if __name__ == "__main__":
    run(int(sys.argv[2])) if sys.argv[1:2] == ["run"] else main()
