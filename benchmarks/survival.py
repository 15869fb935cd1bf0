"""Early advice that lasts: what it costs until people may act, by order of questions, plans and stop signal.

Each case (a set, a model, a seed and an order) is one process and one JSON file in out/survival; what is there is not done again.
`python benchmarks/survival.py run JOBS` fills the folder on a larger machine, and `./run bench survival` takes it up.
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

from edfa.acquisition.base import Policy, choose
from edfa.acquisition.edfa import EDFA
from edfa.acquisition.fixed import Fixed
from edfa.acquisition.greedy import Greedy
from edfa.acquisition.loop import acquire
from edfa.acquisition.survival import SurvivalPolicy
from edfa.blanket.discovery import discover
from edfa.blanket.units import Blanket
from edfa.certification import RecourseCertifier, replay
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.people import Background, People
from edfa.predictors.base import Predictor
from edfa.recourse import Nearest, Plans, Rules, SurvivalSearch, add_survival, find_recourse

FOLDER = Path(__file__).parents[1] / "out" / "survival"
SHARED = Path(os.environ.get("EDFA_DATA") or Path(__file__).parents[2] / "shared" / "data")
SETS = ("german", "adult", "heloc", "taiwan", "acs_income", "gmsc", "diabetes130")
MODELS, SEEDS, ALPHAS, DELTA = ("xgb", "mlp"), (0, 1, 2), (0.2, 0.3), 0.05
CAP, PEOPLE, LEARNERS = 40_000, 500, 256
PAPER = Rules(reading="paper")
ORDERS = ("paper", "surviving", "greedy", "DIME", "personal")
FEW = 8  # open features up to which the personal order is played too, with the model that needs no fit for each subset


def lay_out() -> None:
    """One CSV file and one card a set, at most CAP rows."""
    from edfa.data.catalog import load_schema

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        if (SHARED / f"{name}.parquet").is_file() and not (FOLDER / f"{name}.csv.gz").exists():
            whole = Table.from_parquet(SHARED / f"{name}.parquet", load_schema(name), cap=CAP)
            whole.frame.to_csv(FOLDER / f"{name}.csv.gz", index=False)
            plain = replace(whole.schema, merge={})  # the labels in the file are merged already
            (FOLDER / f"{name}.json").write_text(plain.to_json(), encoding="utf-8")


def read(name: str, seed: int) -> Table:
    import pandas as pd

    schema = Schema.from_json((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    words = {f.name: str for f in schema if f.words} | {schema.target: str}
    frame = pd.read_csv(
        FOLDER / f"{name}.csv.gz", dtype=words, keep_default_na=False, na_values=[""]
    )
    return Table.from_frame(frame, schema, name=name, seed=seed)


def train_model(kind: str, table: Table, seed: int) -> Predictor:
    """Rare classes never win an argmax: GMSC is decided at its base rate."""
    from edfa.predictors.mlp import MaskedMLP
    from edfa.predictors.xgb import SubsetXGB

    X, y = table.train.X, table.train.y
    model: Any = SubsetXGB(seed=seed) if kind == "xgb" else MaskedMLP(seed=seed, device="cpu")
    model.fit(X, y)
    if table.name == "gmsc":
        model.threshold = float((y == 1).mean())
    return model


def population(
    policy: Policy, blanket: Blanket, table: Table, model: Predictor, seed: int
) -> tuple[str, ...]:
    """The order in which a policy asks training people on average, inside the blanket."""
    schema, train = table.schema, table.train
    rows = train.X[np.random.default_rng(seed).permutation(len(train))[:LEARNERS]]
    inside = np.array([f.name in blanket for f in schema])
    known, order = np.array([f.start for f in schema]), []
    background = Background.of(train, model, blanket, aligned=True)
    while (inside & ~known).any():
        askable = np.tile(inside & ~known, (len(rows), 1))
        people = People(
            np.where(known, rows, np.float32(np.nan)), background, seed=seed, askable=askable
        )
        mean = np.where(inside & ~known, policy.score(people).mean(axis=0), np.nan)[None]
        best = int(choose(mean, people.costs[:1], policy.per_cost)[0])
        order.append(schema.names[best])
        known = known | (np.arange(len(known)) == best)
    return tuple(order)


class Inside(Fixed):
    """A fixed order inside a blanket; the model sees nothing else."""

    aligned = True

    def __init__(self, order: tuple[str, ...], blanket: Blanket) -> None:
        super().__init__(order)
        self.blanket = blanket


def orders(name: str, blanket: Blanket, table: Table, model: Predictor, seed: int) -> Policy:
    from edfa.acquisition.dime import DIME

    if name == "paper":
        return EDFA(blanket)
    if name == "personal":
        searcher = SurvivalSearch(n_completions=16, n_candidates=16)
        return SurvivalPolicy(blanket, searcher, PAPER, personal=True).fit(table.train, model)
    if name == "surviving":
        policy = SurvivalPolicy(blanket, SurvivalSearch(), PAPER, n_people=LEARNERS, seed=seed)
        return policy.fit(table.train, model)
    policy = Greedy(blanket) if name == "greedy" else DIME(seed=seed, device="cpu").fit(table.train)
    return Inside(population(policy, blanket, table, model, seed), blanket)


def some(table: Table, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Up to PEOPLE of a part: their facts and classes."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(table))[:PEOPLE])
    return table.X[rows], table.y[rows]


def play(name: str, kind: str, seed: int, order: str) -> str:
    """One case: both kinds of plans, both signals."""
    target = FOLDER / f"{name}-{kind}-{seed}-{order}.result.json"
    if target.exists():
        return f"{target.name} was there"
    start, table = time.process_time(), read(name, seed)
    blanket, model = discover(table.train), train_model(kind, table, seed)
    (cal, _), (test, truth) = some(table.calibration, seed), some(table.test, seed)
    asked = [name for name in blanket.features if not table.schema[name].start]
    results: dict[str, Any] = {"blanket": blanket.features, "cells": [], "curves": {}}
    if order != "personal" or len(asked) <= FEW:
        policy = orders(order, blanket, table, model, seed)
        run = acquire(
            np.concatenate([cal, test]),
            policy,
            model,
            "inf",
            seed,
            reference=table.train,
            explain=False,
        )
        for way, searcher in (
            ("nearest", Nearest(table.train)),
            ("lasting", SurvivalSearch(table.train)),
        ):
            plans = find_recourse(run, searcher, rules=PAPER)
            plans = add_survival(plans, table.train) if way == "nearest" else plans
            for signal in ("uncertainty", "survival"):
                cells = certify(plans, signal, len(cal), truth)
                results["cells"] += [
                    {"order": order, "plans": way, "signal": signal} | cell for cell in cells
                ]
            results["curves"][way] = curve(plans)
        results["reliability"] = reliable(plans, run.last)
    results |= {"calibration": len(cal), "test": len(test), "cpu": time.process_time() - start}
    target.write_text(json.dumps(results), encoding="utf-8")
    return f"{target.name}: {results['cpu']:.0f} s"


def certify(plans: Plans, signal: str, calibration: int, truth: np.ndarray) -> list[dict[str, Any]]:
    """Certified on the first people, measured on the rest: at the step where each of them may act."""
    records, cells = replay(plans, signal=signal), []
    fit, held = (
        records.take(part) for part in (records.person < calibration, records.person >= calibration)
    )
    rows = np.flatnonzero(records.person >= calibration)
    for alpha in ALPHAS:
        certifier = RecourseCertifier(alpha, DELTA, bound="hb").calibrate(fit)
        result = certifier.evaluate(held)
        stops = certifier.stop(held).frame().query("step >= 0")  # who never has a plan never stops
        position = {
            key: row
            for row, key in enumerate(zip(held.person.tolist(), held.step.tolist(), strict=True))
        }
        at = rows[[position[p, s] for p, s in zip(stops["person"], stops["step"], strict=True)]]
        ends = rows[np.append(held.person[1:] != held.person[:-1], True)]
        who = stops["person"].to_numpy() - calibration
        first = plans.first[at][plans.legal[at]]
        certified = certifier.certificate_.status == "certified"
        cells.append(
            {
                "alpha": alpha,
                "certified": certified,
                "cost": float(result.cost)
                if result and certified
                else float(records.spent[ends].mean()),
                "risk": float(result.risk) if result and certified else 0.0,
                "n": int(result.n) if result else 0,
                "early": float((records.spent[at] < records.spent[ends[who]]).mean())
                if certified
                else 0.0,
                "right": float((plans.decision[at] == truth[who]).mean()),
                "right_end": float((plans.decision[ends] == truth).mean()),
                "changes": float(plans.l0[first].mean()) if len(first) else float("nan"),
                "l2": float(plans.l2[first].mean()) if len(first) else float("nan"),
            }
        )
    return cells


def curve(plans: Plans) -> list[list[float]]:
    """By step: what was spent, the share of people with a plan, the share of these plans that are lost."""
    records, points = replay(plans), []
    for step in range(int(records.step.max()) + 1):
        at = records.step == step
        lost = records.loss[at & records.legal]
        points.append(
            [
                float(records.spent[at].mean()),
                len(lost) / at.sum(),
                float(np.nansum(lost)) / max(1, len(lost)),
            ]
        )
    return points


def reliable(plans: Plans, last: np.ndarray) -> list[list[float]]:
    """By tenths of the estimate, before the last step: how many, the sum of the estimates, how many did survive."""
    loss, early = replay(plans).loss, plans.legal.copy()
    early[last] = False
    survival = plans.survival[plans.first[early]]
    tenth = np.minimum((survival * 10).astype(int), 9)
    return [
        [
            int((tenth == t).sum()),
            float(survival[tenth == t].sum()),
            float((1 - loss[early])[tenth == t].sum()),
        ]
        for t in range(10)
    ]


def run(jobs: int = 1) -> None:
    """Every case that is missing, the longest first."""
    here = [name for name in SETS if (FOLDER / f"{name}.json").exists()]
    sizes = {name: (FOLDER / f"{name}.csv.gz").stat().st_size for name in here}
    cases = [
        (n, kind, seed, order)
        for n in sorted(here, key=lambda n: -sizes[n])
        for seed in SEEDS
        for kind in MODELS
        for order in (ORDERS if kind == "mlp" else ORDERS[:-1])
    ]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(play, *case) for case in cases]):
            print(done.exception() or done.result(), file=sys.stderr, flush=True)


def main() -> None:
    from survival_report import report

    lay_out()
    run()
    report(FOLDER)


if __name__ == "__main__":
    run(int(sys.argv[2])) if sys.argv[1:2] == ["run"] else main()
