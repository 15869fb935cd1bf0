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
from joblib import cpu_count
from report import table, write
from threadpoolctl import threadpool_limits

import edfa
from edfa.advice.batch_file import advise_file

STEP, FILE = 8.0, 50.0
PEOPLE = 10_000
PARTS = (
    lambda interview, facts: interview.answer(facts),
    lambda interview, facts: interview.decision,
    lambda interview, facts: interview.partition,
    lambda interview, facts: interview.question,
    lambda interview, facts: interview.plans(),
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
    run = edfa.acquire(
        rows, fitted.policy, fitted.model, "inf", reference=fitted.train, explain=False
    )
    step = np.random.default_rng(1).integers(0, run.when.max() + 1, len(rows))
    return frame.where((run.when >= 0) & (run.when <= step[:, None]), None).infer_objects()


def steps(advisor: Any, people: list[dict[str, Any]]) -> Any:
    """Of every answer: the whole step, the bare call on the same row, and the step's parts."""
    taken, model = [], advisor.fitted.model
    for person in people:
        interview = advisor.interview({name: person[name] for name in advisor.schema.start})
        while (asked := interview.question) is not None:
            facts, times = {asked.feature: person[asked.feature]}, [clock()]
            for part in PARTS:
                part(interview, facts)
                times.append(clock())
            row = interview.assessment.X.copy()
            start = clock()
            model.predict_proba(row)
            taken.append(
                [times[-1] - times[0], clock() - start, *np.diff(times), interview.decision.refused]
            )
    return np.array(taken)


def measure_steps(name: str, advisor: Any, data: Any) -> list[Any]:
    frame = data.encoder.decode(data.test.X[:100])
    people = [{k: None if v != v else v for k, v in p.items()} for p in frame.to_dict("records")]
    steps(advisor, people)  # every set of known features has been met
    taken = np.concatenate([steps(advisor, people) for _ in range(3)])
    step, bare, *parts = np.median(taken[:, :-1], axis=0)
    return [
        name,
        f"{len(taken) // 3}",
        f"{taken[:, -1].mean():.0%}",
        f"{bare * 1e3:.2f}",
        f"{step * 1e3:.2f}",
        *(f"{part * 1e3:.2f}" for part in parts),
        f"{step / bare:.1f}",
    ]


def one_by_one(advisor: Any, people: list[dict[str, Any]]) -> float:
    """Seconds a person: what a line of advice says, from an interview."""
    start = time.perf_counter()
    for person in people:
        interview = advisor.interview({k: v for k, v in person.items() if v is not None and v == v})
        question, standing = interview.question, interview.standing
        plans = [
            [(c.feature, c.before, c.after) for c in plan.changes] for plan in interview.plans()
        ]
        reason = interview.no_plan.reason if not plans and interview.decision.refused else None
        json.dumps(
            [
                interview.decision.probability,
                question and question.feature,
                standing.status,
                plans,
                reason,
            ]
        )
    return (time.perf_counter() - start) / len(people)


CHILD = """
import re, sys
from pathlib import Path
import edfa
from edfa.advice.batch_file import advise_file
advisor = edfa.Advisor.load(sys.argv[1])
advise_file(advisor.fitted, sys.argv[2], sys.argv[3])
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])  # ru_maxrss would count the parent
"""


def measure_file(name: str, advisor: Any, data: Any, folder: Path) -> tuple[list[Any], float]:
    """Seconds of people's time: on one processor, and as the command does it, on all of them."""
    rows, words = people_of(data, PEOPLE)
    frame = part_way(advisor, rows, words)
    some = frame.head(200).to_dict("records")
    frame.to_parquet(folder / "people.parquet", index=False)

    def whole(n_jobs: int | None) -> float:
        start = time.perf_counter()
        counts = advise_file(
            advisor.fitted, folder / "people.parquet", folder / "out.csv", workers=n_jobs
        )
        assert counts["errors"] == 0
        return time.perf_counter() - start

    one_by_one(advisor, some), whole(-1)
    taken = [(one_by_one(advisor, some), whole(1), whole(-1)) for _ in range(5)]
    single, alone, shared = (min(part) for part in zip(*taken, strict=True))
    statuses = pd.read_csv(folder / "out.csv")["status"].value_counts()
    row = [
        name,
        f"{len(np.unique(rows, axis=0)):,}",
        f"{single * 1e3:.2f}",
        *(
            cell
            for taken in (alone, shared)
            for cell in (f"{taken:.2f}", f"{single * PEOPLE / taken:.0f}")
        ),
        ", ".join(f"{word} {count / PEOPLE:.0%}" for word, count in statuses.items()),
    ]
    return row, single * PEOPLE / shared


def measure_memory(advisor: Any, data: Any, folder: Path) -> list[list[Any]]:
    """The largest memory of a process that advises more and more people."""
    advisor.save(folder / "advisor")
    rows = []
    for count in (10_000, 40_000, 160_000):
        encoded, words = people_of(data, count)
        part_way(advisor, encoded, words).to_parquet(folder / "many.parquet", index=False)
        command = [
            sys.executable,
            "-c",
            CHILD,
            folder / "advisor",
            folder / "many.parquet",
            folder / "many.csv",
        ]
        peak = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        ).stdout
        rows.append([f"{count:,}", f"{int(peak) / 1024:.0f}"])
    return rows


NEAREST = {"policy": "edfa", "searcher": "nearest", "signal": "uncertainty"}
SURVIVAL = {"policy": "survival", "searcher": "survival", "signal": "survival"}
CASES = (  # set, how it decides, what it uses
    ("german", "balanced", NEAREST),
    ("german", "balanced", SURVIVAL),
    ("adult", None, NEAREST),
    ("adult", None, SURVIVAL),
)


def main() -> None:
    stepped, filed, misses, beside, notes, memory = [], [], [], [], [], []
    with TemporaryDirectory() as name_:
        folder = Path(name_)
        for name, threshold, chosen in CASES:
            data = edfa.load(name)
            start = time.process_time()
            advisor = edfa.Advisor(threshold=threshold, **chosen).fit(data)
            seconds, label = time.process_time() - start, f"{name}, {chosen['searcher']}"
            notes.append(
                f"- {label}: {len(data):,} people, {len(advisor.fitted.blanket)} features in the blanket, fitted in {seconds:.1f} s; "
                f"{advisor.certificate.zone}. On the test part: {advisor.evaluation_}"
            )
            stepped.append(measure_steps(label, advisor, data))
            row, ratio = measure_file(label, advisor, data, folder)
            filed.append(row)
            notable = misses if chosen is NEAREST else beside
            notable += (
                [f"{label}: a step is {stepped[-1][-1]} bare calls"]
                if float(stepped[-1][-1]) > STEP
                else []
            )
            notable += [f"{label}: a file is {ratio:.0f} times one by one"] if ratio < FILE else []
            memory = (
                measure_memory(advisor, data, folder)
                if (name, chosen) == ("adult", NEAREST)
                else memory
            )
    processors = cpu_count()
    write(
        "advisor",
        "The advisor: what an interview and a file of people cost",
        "SubsetXGB; policy `edfa` with searcher `nearest` and signal `uncertainty` (the paper's recipe), or policy `survival` with searcher `survival` and "
        "signal `survival` (the default). All in one run.",
        "\n".join(notes),
        "## One interview step\n\nAfter an answer: decision, partition, next question and three plans, all looked at. The bare call is one `predict_proba` of "
        "the same model on the same row, straight after the step; medians over all steps of 100 test people (three times), sets of known features met before. "
        f"Milliseconds of processor time; bar {STEP:g}.",
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
        f"## A file of {PEOPLE:,} people\n\nEverybody at a random step of the policy's order; Parquet in, CSV out, by the clock on the wall: with one job, and as "
        f"`edfa advise` does it, with one a processor ({processors} here). One by one: an interview of each with the same answers. `distinct` are different "
        f"people. Bar {FILE:g}.",
        table(
            [
                "set",
                "distinct",
                "one by one, ms",
                "one job, s",
                "ratio",
                f"{processors} jobs, s",
                "ratio",
                "what they are told",
            ],
            filed,
        ),
        "## Memory\n\nPeak of the whole process, with everything that is imported, by the number of people in the file (Adult, nearest, chunks of 10,000).",
        table(["people", "MiB"], memory),
        f"## Bars\n\nSet for the paper's recipe: a step takes at most {STEP:g} bare calls, and a file is {FILE:g} times one by one.",
        "\n".join(f"- missed: {miss}" for miss in misses) or "All met.",
        "`survival` asks the model, beyond that, about 32 completions of each person with every plan that may be offered; against the same bars:",
        "\n".join(f"- {miss}" for miss in beside) or "All met.",
    )
    if misses:
        sys.exit("; ".join(misses))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
