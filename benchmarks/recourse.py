"""Recourse: speed and quality against dice-ml and NICEx, on the same model, people and features that may change.

Peers run in an environment of their own, .venv-peers, through benchmarks/peers/recourse_peers.py, in a process that is
stopped after a deadline. All times are processor time on one thread.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from report import table, write
from threadpoolctl import threadpool_limits

import edfa
from edfa.people import Background, People
from edfa.predictors.base import Predictor
from edfa.recourse import (
    CVAE,
    NICE,
    PROBE,
    DiCE,
    Nearest,
    Plans,
    Rules,
    evaluate_plans,
    find_recourse,
)

ROOT = Path(__file__).parents[1]
PEERS = Path(os.environ.get("EDFA_PEERS", ROOT / ".venv-peers")) / "bin" / "python"
WORK = ROOT / "out" / "recourse"
DEADLINE = 240  # seconds for one peer on one table
ALLOWED = {
    "german": "checking_status duration purpose credit_amount savings_status employment installment_commitment housing",
    "adult": "workclass education education-num occupation capital-gain hours-per-week",
}
FIELD = {
    "dice-random": 20,
    "dice-genetic": 8,
    "nice-none": 100,
    "nice-sparsity": 100,
    "nice-proximity": 100,
}
BARS = {"dice-random": 400, "nice-sparsity": 4}
PLANS = 5


@dataclass(frozen=True, eq=False)
class Case:
    """People who were refused, and what they may change."""

    name: str
    data: edfa.Table
    model: Predictor
    people: People
    allowed: tuple[str, ...]
    desired_class: int

    @property
    def rules(self) -> Rules:
        return Rules(only=self.allowed, reading="paper")  # peers know no directions


def prepare(name: str) -> Case:
    data = edfa.load(name)
    model = edfa.SubsetXGB(n_estimators=100).fit(data.train.X, data.train.y)
    desired_class = data.schema.classes.index(data.schema.favourable)
    everybody = np.concatenate([data.calibration.X, data.test.X])
    refused = everybody[model.predict(everybody) != desired_class][:400]
    people = People(refused, Background.of(data.reference, model))
    return Case(name, data, model, people, tuple(ALLOWED[name].split()), desired_class)


def export(case: Case) -> Path:
    folder = WORK / case.name
    folder.mkdir(parents=True, exist_ok=True)
    schema = case.data.schema
    task = {
        "names": schema.names,
        "categorical": [f.name for f in schema if f.kind == "categorical"],
        "allowed": case.allowed,
        "wanted": case.desired_class,
    }
    (folder / "task.json").write_text(json.dumps(task))
    train = case.data.train
    np.savez(folder / "rows.npz", train=train.X, classes=train.y, people=case.people.X)
    case.model.booster(np.ones(len(schema), dtype=bool)).save_model(folder / "model.ubj")
    return folder


def peer(method: str, folder: Path, people: int) -> dict[str, Any]:
    """What a peer has done by the deadline."""
    out = folder / f"{method}.json"
    out.unlink(missing_ok=True)
    command = [PEERS, ROOT / "benchmarks" / "peers" / "recourse_peers.py", "--method", method]
    command += ["--data", folder, "--people", people, "--out", out]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        subprocess.run([str(c) for c in command], check=True, env=environment, timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        print(f"{method} on {folder.name}: stopped after {DEADLINE} s")
    results: dict[str, Any] = (
        json.loads(out.read_text()) if out.is_file() else {"seconds": [], "rows": [], "errors": []}
    )
    return results


def judge(case: Case, rows: list[list[list[float]]]) -> list[Any]:
    """Coverage, plans each, shares of valid plans and of plans that change something forbidden, changes."""
    width, of = len(case.data.schema), np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    plans = np.array([row for each in rows for row in each], dtype=np.float32).reshape(-1, width)
    own = case.people.X[of]
    # Peers turn codes into words and back; what differs by rounding is no change.
    changed = np.abs(plans - own) > 1e-4 * np.ptp(case.data.train.X, axis=0)
    free = np.isin(case.data.schema.names, case.allowed)
    valid = case.model.predict(plans) == case.desired_class if len(plans) else np.zeros(0)
    return [
        f"{len(set(of.tolist())) / max(1, len(rows)):.2f}",
        f"{len(plans) / max(1, len(rows)):.1f}",
        f"{np.mean(valid):.0%}" if len(plans) else "-",
        f"{np.mean((changed & ~free).any(axis=1)):.0%}" if len(plans) else "-",
        f"{changed.sum(axis=1).mean():.2f}" if len(plans) else "-",
    ]


def cpu(job: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest processor time of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def inside(case: Case, job: Callable[[], Any]) -> float:
    """The share of processor time that is spent in the model: what it says, and what it decides."""
    kind, taken = type(case.model), [0.0]
    plain = {name: getattr(kind, name) for name in ("predict_known", "decide_tries")}

    def timed(name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.process_time()
            answer = plain[name](*arguments)
            taken[0] += time.process_time() - start
            return answer

        return call

    for name in plain:
        setattr(kind, name, timed(name))
    try:
        shares = []
        for _ in range(5):
            taken[0], start = 0.0, time.process_time()
            job()
            shares.append(taken[0] / (time.process_time() - start))
        return float(np.median(shares))
    finally:
        for name, method in plain.items():
            setattr(kind, name, method)


def search(case: Case, searcher: Any, people: People | None = None) -> Plans:
    return find_recourse(
        people or case.people,
        searcher,
        rules=case.rules,
        desired_class=case.desired_class,
    )


def quality(case: Case, plans: Plans) -> list[Any]:
    rows = plans.rows()
    return judge(case, [rows[plans.of == i].tolist() for i in range(len(case.people))])


def agreement(case: Case, folder: Path) -> str:
    """Native NICE against NICEx, everything free: the share of people with the very same result."""
    free = tuple(replace(f, sensitive=False, change="free", range=None) for f in case.data.schema)
    schema = replace(case.data.schema, features=free)
    people = People(case.people.X[:100], Background(schema, case.people.encoder, case.model))
    train, same = replace(case.data.train, schema=schema), {}
    for reward in ("none", "sparsity", "proximity"):
        peers = json.loads((folder / f"nice-{reward}.json").read_text())["rows"]
        mine = find_recourse(
            people,
            NICE(train, reward, max_donors=len(train), literal=True),
            desired_class=case.desired_class,
        )
        theirs = np.array([rows[0] if rows else np.full(len(schema), np.nan) for rows in peers])
        ours = np.full_like(theirs, np.nan)
        ours[mine.of] = mine.rows()
        same[reward] = np.isclose(ours, theirs, atol=1e-4).all(axis=1).mean()
    return ", ".join(f"{reward} {share:.0%}" for reward, share in same.items())


def below(case: Case, method: str, taken: float, ours: tuple[float, float, float]) -> list[str]:
    """The bars that a peer's time shows to be missed."""
    bars = [*[BARS.get(method, 0)] * 2, 100 if method == "dice-random" else 0]
    names = ("Nearest batched", "Nearest with dominated plans batched", "Nearest alone")
    return [
        f"{case.name}: {name} is {taken / mine:.0f} x {method}; the bar is {bar}"
        for name, mine, bar in zip(names, ours, bars, strict=True)
        if bar and not taken / mine >= bar
    ]


def unclean(case: Case, name: str, plans: Plans) -> list[str]:
    """Whether a plan does not reach what was wanted, asked anew, or changes what it may not."""
    wrong = (case.model.predict(plans.rows()) != case.desired_class).any()
    wrong |= evaluate_plans(plans, case.data.train, rules=case.rules).violations > 0
    return [f"{case.name}: {name} has plans that are not valid or not clean"] if wrong else []


def measure(case: Case) -> tuple[list[list[Any]], list[str], list[str]]:
    folder, count = export(case), len(case.people)
    nearest = Nearest(case.data.train)
    alone = [People(case.people.X[[i]], case.people.background) for i in range(min(40, count))]
    every = Nearest(case.data.train, keep_dominated=True)
    search(case, nearest)
    search(case, every)
    batched = cpu(lambda: search(case, nearest)) / count
    farther = cpu(lambda: search(case, every)) / count
    single = cpu(lambda: [search(case, nearest, one) for one in alone], 20) / len(alone)
    share = inside(case, lambda: search(case, nearest))
    rows, notes, missed = [], [], []
    for method, people in FIELD.items():
        results = peer(method, folder, min(people, count))
        taken = float(np.median(results["seconds"])) if results["seconds"] else float("nan")
        again = cpu(lambda: search(case, nearest), 3) / count  # in turn with the peer
        batched = min(batched, again)
        farther = min(farther, cpu(lambda: search(case, every), 3) / count)
        if method == "dice-random":
            single = min(
                single, cpu(lambda: [search(case, nearest, one) for one in alone], 20) / len(alone)
            )
        rows.append(
            [
                method,
                len(results["seconds"]),
                f"{taken * 1e3:.2f}",
                f"{taken / batched:,.0f}",
                f"{taken / single:,.1f}",
                *judge(case, results["rows"]),
            ]
        )
        if errors := [e for e in results["errors"] if e]:
            notes.append(
                f"{method}: {len(errors)} of {len(results['errors'])} people ended in an error, the first: {errors[0][:120]}"
            )
        missed += below(case, method, taken, (batched, farther, single))
    if not share >= 0.5:
        missed.append(
            f"{case.name}: {share:.0%} of Nearest's batched time is in the model call; the bar is 50 %"
        )
    if (each := search(case, every).count.mean()) < PLANS:
        missed.append(
            f"{case.name}: Nearest gives {each:.1f} minimal plans each; the bar is about {PLANS}"
        )
    mine = [
        [
            "Nearest, batched",
            count,
            f"{batched * 1e3:.2f}",
            "1",
            f"{batched / single:,.2f}",
            *quality(case, search(case, nearest)),
        ]
    ]
    mine += [
        [
            "Nearest, one at a time",
            len(alone),
            f"{single * 1e3:.2f}",
            f"{single / batched:,.1f}",
            "1",
            *mine[0][5:],
        ]
    ]
    mine += [
        [
            "Nearest, batched, dominated plans too",
            count,
            f"{farther * 1e3:.2f}",
            f"{farther / batched:,.1f}",
            f"{farther / single:,.2f}",
            *quality(case, search(case, every)),
        ]
    ]
    missed += [line for s in (nearest, every) for line in unclean(case, "Nearest", search(case, s))]
    native = {
        "NICE none (native)": NICE(case.data.train, "none", literal=True),
        "NICE sparsity (native)": NICE(case.data.train, literal=True),
        "NICE proximity (native)": NICE(case.data.train, "proximity", literal=True),
        "DiCE random (native)": DiCE(case.data.train),
        "DiCE genetic (native)": DiCE(case.data.train, "genetic"),
        "PROBE": PROBE(case.data.train),
        "CVAE": CVAE(case.data.train),
    }
    for name, searcher in native.items():
        plans = search(case, searcher)
        taken = cpu(lambda s=searcher: search(case, s), 2) / count
        mine.append(
            [
                name,
                count,
                f"{taken * 1e3:.2f}",
                f"{taken / batched:,.1f}",
                f"{taken / single:,.2f}",
                *quality(case, plans),
            ]
        )
        missed += unclean(case, name, plans)
    notes.append(f"{share:.0%} of Nearest's batched time is in the model call.")
    notes.append(
        f"Native NICE and NICEx, everything free to change, give the same row: {agreement(case, folder)} of people."
    )
    return mine + rows, notes, missed


def main() -> None:
    parts, missed = [], []
    for name in ALLOWED:
        case = prepare(name)
        rows, notes, some = measure(case)
        head = [
            "method",
            "people",
            "ms each",
            "x Nearest batched",
            "x Nearest alone",
            "coverage",
            "plans each",
            "valid",
            "forbidden",
            "changes",
        ]
        trees = case.model.booster(np.ones(len(case.data.schema), dtype=bool)).num_boosted_rounds()
        summary = f"{len(case.data.train):,} training people, {len(case.people)} refused, {len(case.allowed)} of {len(case.data.schema)} features may change, XGBoost of {trees} trees of depth 4."
        parts += [
            f"## {name}",
            summary,
            table(head, rows),
            "\n".join(f"- {note}" for note in notes),
        ]
        missed += some
    write(
        "recourse",
        "Recourse: speed and quality",
        "Processor time on one thread, in one run; peers by the median person, ours by the mean of a batch (shortest of "
        "some runs, in turn with the peers). dice-ml 0.12 with 4 counterfactuals, NICEx 0.2.3; `forbidden` is the share of "
        "plans that change a feature which may not change: NICEx has no such option. All find plans for refused people, "
        "all features known. Nearest leaves out a minimal plan that moves the same features in the same directions as "
        "another, and none of them less; `keep_dominated=True` keeps those that a neighbour has.",
        *parts,
        "## Bars",
        "\n".join(f"- missed: {m}" for m in missed)
        or "All met: Nearest batched is at least 400 times DiCE random and 4 times NICEx sparsity, with about 5 minimal plans each or more where those that are dominated by another are counted; alone it is at least 100 times DiCE random; half of its time is in the model; all native plans are valid and clean.",
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
