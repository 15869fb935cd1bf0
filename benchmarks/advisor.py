"""An interview step beside the bare model call; a whole file of people beside one after the other; its memory."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from report import table, write
from threadpoolctl import threadpool_limits

import edfa
from edfa.advice.stream import advise_file

STEP, FILE = 8.0, 50.0
PEOPLE = 10_000
PARTS = (
    lambda held, told: held.answer(told),
    lambda held, told: held.decision,
    lambda held, told: held.partition,
    lambda held, told: held.question,
    lambda held, told: held.plans(),
)
clock = time.process_time


def people_of(data: Any, count: int) -> tuple[Any, Any]:
    """Encoded people that the advisor was not fitted on (again, where there are fewer), and their words."""
    everyone = np.concatenate([data.test.X, data.calibration.X])
    random = np.random.default_rng(0)
    chosen = random.permutation(len(everyone))[:count]
    if count > len(everyone):
        chosen = random.integers(0, len(everyone), count)
    return everyone[chosen], data.encoder.decode(everyone[chosen]).astype(object)


def part_way(advisor: Any, rows: Any, frame: pd.DataFrame) -> pd.DataFrame:
    """Everybody at a random step of the policy's order."""
    fitted = advisor.fitted
    run = edfa.acquire(rows, fitted.policy, fitted.model, "inf", reference=fitted.train, explain=False)
    step = np.random.default_rng(1).integers(0, run.when.max() + 1, len(rows))
    return frame.where((run.when >= 0) & (run.when <= step[:, None]), None).infer_objects()


def steps(advisor: Any, people: list[dict[str, Any]]) -> Any:
    """Of every answer: the whole step, the bare call on the same row, and the step's parts."""
    found, model = [], advisor.fitted.model
    for person in people:
        held = advisor.interview({name: person[name] for name in advisor.schema.start})
        while (asked := held.question) is not None:
            told, times = {asked.feature: person[asked.feature]}, [clock()]
            for part in PARTS:
                part(held, told)
                times.append(clock())
            row = held.look.X.copy()
            start = clock()
            model.predict_proba(row)
            found.append([times[-1] - times[0], clock() - start, *np.diff(times), held.decision.refused])
    return np.array(found)


def measure_steps(name: str, advisor: Any, data: Any) -> list[Any]:
    frame = data.encoder.decode(data.test.X[:100])
    people = [{k: None if v != v else v for k, v in p.items()} for p in frame.to_dict("records")]
    steps(advisor, people)  # every set of known features has been met
    found = np.concatenate([steps(advisor, people) for _ in range(3)])
    step, bare, *parts = np.median(found[:, :-1], axis=0)
    return [
        name,
        f"{len(found) // 3}",
        f"{found[:, -1].mean():.0%}",
        f"{bare * 1e3:.2f}",
        f"{step * 1e3:.2f}",
        *(f"{part * 1e3:.2f}" for part in parts),
        f"{step / bare:.1f}",
    ]


def one_by_one(advisor: Any, people: list[dict[str, Any]]) -> float:
    """Seconds a person: what a line of advice says, from an interview."""
    start = clock()
    for person in people:
        held = advisor.interview({k: v for k, v in person.items() if v is not None and v == v})
        question, standing = held.question, held.standing
        plans = [[(c.feature, c.before, c.after) for c in plan.changes] for plan in held.plans()]
        reason = held.no_plan.reason if not plans and held.decision.refused else None
        json.dumps([held.decision.probability, question and question.feature, standing.status, plans, reason])
    return (clock() - start) / len(people)


CHILD = """
import resource, sys
import edfa
from edfa.advice.stream import advise_file
advisor = edfa.Advisor.load(sys.argv[1])
advise_file(advisor.fitted, sys.argv[2], sys.argv[3])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure_file(name: str, advisor: Any, data: Any, folder: Path) -> tuple[list[Any], float]:
    rows, words = people_of(data, PEOPLE)
    frame = part_way(advisor, rows, words)
    some = frame.head(200).to_dict("records")
    frame.to_parquet(folder / "people.parquet", index=False)
    advisor.save(folder / "advisor")
    one_by_one(advisor, some)
    counts = advise_file(advisor.fitted, folder / "people.parquet", folder / "out.csv")
    assert counts["errors"] == 0
    taken = []
    for _ in range(3):
        single = one_by_one(advisor, some)
        start = clock()
        advise_file(advisor.fitted, folder / "people.parquet", folder / "out.csv")
        taken.append((single, clock() - start))
    single, whole = (min(part) for part in zip(*taken, strict=True))
    told = pd.read_csv(folder / "out.csv")["status"].value_counts()
    ratio = single * PEOPLE / whole
    shares = ", ".join(f"{word} {count / PEOPLE:.0%}" for word, count in told.items())
    distinct = len(np.unique(rows, axis=0))
    row = [
        name,
        f"{distinct:,}",
        f"{single * 1e3:.2f}",
        f"{whole:.2f}",
        f"{whole / PEOPLE * 1e6:.0f}",
        f"{ratio:.0f}",
        shares,
    ]
    return row, ratio


def measure_memory(advisor: Any, data: Any, folder: Path) -> list[list[Any]]:
    """The largest memory of a process that advises more and more people."""
    advisor.save(folder / "advisor")
    rows = []
    for count in (5_000, 20_000, 80_000):
        encoded, words = people_of(data, count)
        part_way(advisor, encoded, words).to_parquet(folder / "many.parquet", index=False)
        command = [sys.executable, "-c", CHILD, folder / "advisor", folder / "many.parquet", folder / "many.csv"]
        peak = subprocess.run(
            command, capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        ).stdout
        rows.append([f"{count:,}", f"{int(peak) / 1024:.0f}"])
    return rows


NEAREST = {"policy": "edfa", "searcher": "nearest", "signal": "uncertainty"}
LASTING = {"policy": "surviving", "searcher": "lasting", "signal": "survival"}
CASES = (  # set, rows, how it decides, what it uses, whether a whole file is measured too
    ("german", None, "balanced", NEAREST, True),
    ("german", None, "balanced", LASTING, True),
    ("adult", None, None, NEAREST, True),
    ("adult", 5_000, None, LASTING, True),
)


def main() -> None:
    stepped, filed, misses, notes, memory = [], [], [], [], []
    with TemporaryDirectory() as name_:
        folder = Path(name_)
        for name, cap, threshold, chosen, whole in CASES:
            data = edfa.load(name, cap=cap)
            start = time.process_time()
            advisor = edfa.Advisor(threshold=threshold, **chosen).fit(data)
            seconds, label = time.process_time() - start, f"{name}, {chosen['searcher']}"
            notes.append(
                f"- {label}: {len(data):,} people, {len(advisor.fitted.blanket)} features in the blanket, fitted in {seconds:.1f} s; "
                f"{advisor.certificate.zone}. On the test part: {advisor.checkup_}"
            )
            stepped.append(measure_steps(label, advisor, data))
            if float(stepped[-1][-1]) > STEP:
                misses.append(f"{label}: a step is {stepped[-1][-1]} bare calls; the bar is {STEP:g}")
            if whole:
                row, ratio = measure_file(label, advisor, data, folder)
                filed.append(row)
                misses += (
                    [f"{label}: a file is {ratio:.0f} times one by one; the bar is {FILE:g}"] if ratio < FILE else []
                )
                memory = measure_memory(advisor, data, folder) if name == "adult" and cap is None else memory
    write(
        "advisor",
        "The advisor: what an interview and a file of people cost",
        "SubsetXGB; policy `edfa` with searcher `nearest` and signal `uncertainty`, or policy `surviving` with searcher `lasting` and signal `survival`. "
        "Processor time on one thread, in one run.",
        "\n".join(notes),
        "## One interview step\n\nAfter an answer: decision, partition, next question and three plans, all looked at. The bare call is one `predict_proba` of "
        "the same model on the same row, straight after the step; medians over all steps of 100 test people (three times), sets of known features met before. "
        f"Milliseconds; bar {STEP:g}.",
        table(
            [
                "set",
                "steps",
                "refused",
                "bare call",
                "step",
                "answer",
                "decision",
                "partition",
                "question",
                "plans",
                "ratio",
            ],
            stepped,
        ),
        f"## A file of {PEOPLE:,} people\n\nEverybody at a random step of the policy's order; Parquet in, CSV out, chunks of 5,000. One by one: an interview of each "
        f"with the same answers. `distinct` are different people. Bar {FILE:g}.",
        table(["set", "distinct", "one by one, ms", "file, s", "µs a person", "ratio", "what they are told"], filed),
        "## Memory\n\nPeak of the whole process, with everything that is imported, by the number of people in the file (Adult, chunks of 5,000).",
        table(["people", "MiB"], memory),
        "## Bars\n\n" + ("\n".join(f"- missed: {miss}" for miss in misses) or "All met."),
    )
    if misses:
        sys.exit("; ".join(misses))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
