"""What explaining and asking cost beside the model calls they cannot do without; and how the cost grows with people."""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from report import best, table, write
from threadpoolctl import threadpool_limits

import edfa
from edfa import EDFA, SubsetXGB
from edfa.acquisition import Greedy
from edfa.explanation.necessity import Support, sweep
from edfa.predictors.xgb import SubsetXGB as Model

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from random_worlds import Cube

SWEEP, RUN = 2.0, 3.0
EXACT = {3: 0.833, 5: 0.960, 10: 0.978}  # accuracy of the exact greedy order on CUBE, sigma 0.1


class Recorder:
    """The bare booster calls of whatever runs inside, kept to be made again: about every try, no shorter way taken."""

    def __init__(self, model: Model) -> None:
        self.model, self.calls = model, []

    def __enter__(self) -> "Recorder":
        answer = self.model._answer

        def noted(mask: Any, known: Any) -> Any:
            self.calls.append((self.model.booster(mask), np.ascontiguousarray(known)))
            return answer(mask, known)

        self.model._answer = noted
        self.model._decide_tries = lambda *_: None
        return self

    def __exit__(self, *_: object) -> None:
        del self.model._answer, self.model._decide_tries

    def replay(self) -> None:
        for booster, rows in self.calls:
            booster.inplace_predict(rows)


def measure_sweep(data: Any, model: Model) -> list[list[Any]]:
    """The sweep of 400 people who know the same, against the bare call on the same rows."""
    support, rows = Support.of(data.train.X), []
    for known in (4, 8, 13):
        mask = np.arange(13) < known
        people = np.where(mask, data.test.X[:400], np.float32(np.nan))
        sweep(people, model, support)
        with Recorder(model) as seen:
            sweep(people, model, support)
        ours, bare = best(
            lambda p=people: sweep(p, model, support).necessity,
            seen.replay,
            repeats=9,
            clock=time.process_time,
        )
        rows.append(
            [
                f"{known} of 13",
                f"{sum(len(r) for _, r in seen.calls):,}",
                f"{ours * 1e3:.1f}",
                f"{bare * 1e3:.1f}",
                f"{ours / bare:.2f}",
            ]
        )
    return rows


def measure_runs(data: Any, model: Model, blanket: Any) -> tuple[list[list[Any]], list[float]]:
    """Whole trajectories of more and more people, against their bare calls."""
    rows, ratios = [], []
    everyone = np.concatenate([data.test.X, data.calibration.X])
    for n in (1, 10, 100, 1_000, 2_000, 4_000, 8_000):
        people = everyone[:n]

        def run(people: Any = people) -> None:
            edfa.acquire(people, EDFA(blanket), model, 0.9, reference=data.train)

        run()
        with Recorder(model) as seen:
            run()
        ours, bare = best(run, seen.replay, repeats=5 if n <= 1_000 else 2, clock=time.process_time)
        ratios.append(ours / bare)
        rows.append(
            [
                f"{n:,}",
                f"{ours * 1e3:.0f}",
                f"{ours / n * 1e3:.2f}",
                f"{bare * 1e3:.0f}",
                f"{ours / bare:.2f}",
            ]
        )
    return rows, ratios


def measure_cube() -> list[list[Any]]:
    """Greedy information with the project's own model and sampler, cold start, unit cost."""
    data = Cube(0.1).table(10_500, seed=5, shares=(0.95, 0.01, 0.04))
    model = edfa.MaskedMLP().fit(data.train.X, data.train.y)
    rows = []
    for sampler in ("knn", "bins"):
        start = time.perf_counter()
        run = edfa.acquire(data.test, Greedy(sampler=sampler), model, 10, explain=False)
        seconds = time.perf_counter() - start
        accuracy = [(run.decision[run.at(k)] == data.test.y).mean() for k in EXACT]
        rows.append(
            [sampler, *(f"{share:.3f}" for share in accuracy), f"{seconds / len(run) * 1e3:.1f}"]
        )
    return [*rows, ["exact", *(f"{v:.3f}" for v in EXACT.values()), ""]]


def main() -> None:
    data = edfa.load("adult")
    blanket = edfa.discover(data.train, "hiton-mb")
    model = SubsetXGB(seed=0).cache_in(max_models=4096).fit(data.train.X, data.train.y)
    sweeps = measure_sweep(data, model)
    runs, ratios = measure_runs(data, model, blanket)
    worst = max(float(row[-1]) for row in sweeps)
    misses = [f"a sweep costs {worst:.2f} times its model call"] if worst > SWEEP else []
    misses += (
        [f"1,000 people cost {ratios[3]:.2f} times their model calls"] if ratios[3] > RUN else []
    )
    per_person = [float(row[2]) for row in runs]
    misses += (
        ["cost per person does not fall with the batch"]
        if per_person[:4] != sorted(per_person[:4])[::-1]
        else []
    )
    growth = per_person[-1] / per_person[3]
    misses += (
        [f"beyond 1,000 people each costs {growth:.2f} times as much"] if growth > 1.25 else []
    )
    write(
        "acquisition",
        "Explanation and acquisition: what they cost",
        f"Adult, {len(data.train):,} training rows, SubsetXGB already fitted on every set that is visited, one thread. The bare calls are "
        "the booster's own about everything that is tried, made again; both take turns. A ratio below one: what is decided about many comes from the leaves. CPU time.",
        f"## A sweep\n\nEvery value of every known feature of 400 people who know the same ones (bar {SWEEP:g}).",
        table(["known", "rows", "ms", "bare ms", "ratio"], sweeps),
        f"## A run\n\nEDFA over {len(blanket)} features in {len(blanket.units)} units, budget 0.9, partitions at every step (bar {RUN:g} at 1,000 people).",
        table(["people", "ms", "ms a person", "bare ms", "ratio"], runs),
        "## Greedy information on CUBE\n\nMaskedMLP learnt from 10,000 rows (noise 0.1); accuracy after k features, and milliseconds a person and step.",
        table(["sampler", *(str(k) for k in EXACT), "ms"], measure_cube()),
        "## Bars\n\n" + ("\n".join(f"- missed: {miss}" for miss in misses) or "All met."),
    )
    if misses:
        sys.exit("; ".join(misses))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
