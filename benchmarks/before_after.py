"""This tree against another one: the same work in both, in turns, in one run.

    EDFA_BEFORE=/path/to/another/checkout ./run bench before_after

Each piece of work runs in a process of its own with that tree's packages first on the path, in turns
(before, after, before, …). A process warms up once and reports the shortest of some repetitions;
the table has the median over processes, and the ratio of the two. What three advisors say in both
trees (``tools/advice_snapshot.py``) is compared to the byte.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from report import table, write

ROOT = Path(__file__).parents[1]
TURNS = int(os.environ.get("EDFA_TURNS", "3"))
NOISE = 1.10  # a ratio that two runs of the same tree may show here
RENAMED = {"also_last": "include_last_step"}  # in certificates
DROPPED = {"required", "runs", "undefined", "walk"}  # options that are gone, with their one value

COMMON = """
import json, sys, tempfile, time, warnings
from pathlib import Path
import numpy as np
import edfa
warnings.simplefilter("ignore")
def best(job, repeats):
    job()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter(); job(); taken.append(time.perf_counter() - start)
    return min(taken)
def words(table, n=None):
    names = list(table.schema.names)
    rows = table.test.frame[names].head(n or 10**9).to_dict("records")
    return [{k: v for k, v in r.items() if v == v and v is not None} for r in rows]
def hold(advisor, people):
    start = [f.name for f in advisor.schema if f.start]
    for facts in people:
        i = advisor.interview({k: facts[k] for k in start if k in facts})
        while True:
            _ = i.decision, i.standing, i.plans(3)
            q = i.question
            if q is None or q.feature not in facts: break
            i.answer({q.feature: facts[q.feature]})
def load(name, advisor, repeats):
    # what a tree cannot load has no time
    with tempfile.TemporaryDirectory() as f:
        advisor.save(Path(f) / "a")
        try: say(**{name: best(lambda: edfa.Advisor.load(Path(f) / "a"), repeats)})
        except edfa.errors.EdfaError as error: print(name, error, file=sys.stderr)
def say(**numbers): print("RESULT" + json.dumps(numbers))
"""

WORK = {
    "advisor": """
german = edfa.load("german")
say(**{"fit (german)": best(lambda: edfa.Advisor(threshold="balanced").fit(german, n_jobs=1), 2)})
advisor = edfa.Advisor(threshold="balanced").fit(german, n_jobs=1)
people = words(german, 25)
say(**{"25 interviews to the end (german)": best(lambda: hold(advisor, people), 3)})
load("load", advisor, 5)
from edfa.advice.batch import advise
adult = edfa.load("adult", cap=10000)
wide = edfa.Advisor(threshold="balanced").fit(adult, n_jobs=1)
frame = adult.test.frame[list(adult.schema.names)]
half = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.3)
say(**{"a file of 2,000, complete (adult)": best(lambda: advise(wide.fitted, frame), 2)})
say(**{"a file of 2,000, half known (adult)": best(lambda: advise(wide.fitted, half), 1)})
""",
    "plans": """
from edfa.recourse.searchers.nearest import Nearest
from edfa.recourse.searchers.survival import SurvivalSearch
german = edfa.load("german")
blanket = edfa.discover(german.train)
model = edfa.SubsetXGB(seed=0).fit(german.train.X, german.train.y)
way = edfa.acquire(german.test, edfa.EDFA(blanket), model, budget=0.9, seed=0)
for name, searcher in {"nearest": Nearest(), "survival": SurvivalSearch()}.items():
    fitted = searcher.fit(german.train)
    say(**{f"plans at every step, {name} (german)": best(lambda: edfa.find_recourse(way, fitted), 3)})
""",
    "user model": """
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
import pandas as pd
from edfa.advice.batch import advise
german = edfa.load("german")
frame = german.train.frame[list(german.schema.names)]
text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
parts = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), [c for c in frame if c not in text]))
model = make_pipeline(parts, LogisticRegression(max_iter=2000)).fit(frame, german.train.frame[german.schema.target])
fit = lambda: edfa.Advisor(predictor=edfa.wrap(model)).fit(german, n_jobs=1)
say(**{"user model: fit (german)": best(fit, 1)})
advisor = fit()
people = words(german, 10)
say(**{"user model: 10 interviews": best(lambda: hold(advisor, people), 2)})
say(**{"user model: a file of 200": best(lambda: advise(advisor.fitted, german.test.frame[list(german.schema.names)]), 2)})
load("user model: load", advisor, 2)
""",
    "web": """
import contextlib, importlib
# the service of this tree, not one that is installed
service = "edfa_serve" if (Path(edfa.__file__).parents[1] / "edfa_serve").is_dir() else "edfa.web"
def module(name): return importlib.import_module(service + "." + name)
from starlette.testclient import TestClient
german = edfa.load("german")
advisor = edfa.Advisor(threshold="balanced").fit(german, n_jobs=1)
people, start = words(german, 25), [f.name for f in german.schema if f.start]
with tempfile.TemporaryDirectory() as f, module("store").InterviewStore.open(Path(f) / "i.sqlite") as store:
    app = module("app").create_app(module("service").Service(advisor, store, b"0123456789abcdef"), module("settings").WebSettings(secure=False, requests_a_minute=10**9))
    with TestClient(app) as client:
        def interviews():
            for facts in people:
                begun = client.post("/api/v1/interviews", json={"facts": {k: facts[k] for k in start if k in facts}}).json()
                state, headers = begun["interview"], {"Authorization": "Bearer " + begun["token"]}
                while (q := state["question"]) is not None and q["feature"] in facts:
                    body = {"seq": state["seq"], "facts": {q["feature"]: facts[q["feature"]]}}
                    answer = client.post("/api/v1/interviews/current/answers", json=body, headers=headers)
                    assert answer.status_code == 200, answer.text
                    state = answer.json()
        say(**{"25 interviews over the API": best(interviews, 3)})
""",
}


def measure(tree: Path, work: str) -> dict[str, float]:
    """Seconds by name of what one process of this tree reports."""
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", COMMON + WORK[work]]
    done = subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    numbers: dict[str, float] = {}
    for line in done.stdout.splitlines():
        if line.startswith("RESULT"):
            numbers |= json.loads(line.removeprefix("RESULT"))
    return numbers


def say(tree: Path, folder: Path) -> dict[str, str]:
    """What this tree's three advisors say: the text of each file by its name."""
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    snapshot = [sys.executable, str(ROOT / "tools" / "advice_snapshot.py"), str(folder)]
    subprocess.run(snapshot, env=environment, cwd="/", check=True)
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}


def in_words_of_today(content: Any) -> Any:
    """A certificate with names as they are now, without settings that are gone; keys in order."""
    if isinstance(content, list):
        return [in_words_of_today(part) for part in content]
    if not isinstance(content, dict):
        return content
    parts = {RENAMED.get(name, name): part for name, part in content.items()}
    return {name: in_words_of_today(parts[name]) for name in sorted(parts.keys() - DROPPED)}


def compare_words(before: Path) -> list[list[str]]:
    """For each file of both snapshots: its name, its size and what differs."""
    with tempfile.TemporaryDirectory() as place:
        old, new = say(before, Path(place) / "before"), say(ROOT, Path(place) / "after")
    rows = []
    for name in sorted(old | new):
        texts = old.get(name, ""), new.get(name, "")
        verdict = "equal to the byte" if texts[0] == texts[1] else "differs"
        if verdict == "differs" and all(texts):
            same = in_words_of_today(json.loads(texts[0])) == in_words_of_today(
                json.loads(texts[1])
            )
            verdict = "equal but for renamed and dropped settings" if same else verdict
        rows.append([name, f"{len(texts[1].encode()):,}", verdict])
    return rows


def main() -> None:
    before = Path(os.environ["EDFA_BEFORE"]).resolve()
    taken: dict[str, tuple[list[float], list[float]]] = {}
    for work in WORK:
        for _ in range(TURNS):
            for side, tree in enumerate((before, ROOT)):
                for name, seconds in measure(tree, work).items():
                    taken.setdefault(name, ([], []))[side].append(seconds)
    rows = []
    for name, (old, new) in taken.items():
        if not old or not new:
            seconds = f"{statistics.median(old or new):.3f}"
            cells = ["cannot", seconds] if new else [seconds, "cannot"]
            rows.append([name, *cells, "", "one of the two trees fails"])
            continue
        ratio = statistics.median(new) / statistics.median(old)
        verdict = "slower" if ratio > NOISE else "faster" if ratio < 1 / NOISE else "as before"
        rows.append(
            [
                name,
                f"{statistics.median(old):.3f}",
                f"{statistics.median(new):.3f}",
                f"{ratio:.2f}",
                verdict,
            ]
        )
    commit = subprocess.run(
        ["git", "-C", before, "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    )
    write(
        "before_after",
        "The same work before and after the redesign",
        f"Before: commit {commit.stdout.strip()}. Seconds, the median of {TURNS} processes each, which took turns on {os.cpu_count()} processors; a ratio within {NOISE:.2f} is noise here.",
        table(["work", "before, s", "after, s", "ratio", ""], rows),
        "## What is said",
        "Three advisors (German credit by default, Adult with a certificate for each sex, a user model): "
        "certificates, a file of up to 300 half-known people, twelve interviews step by step. Settings of certificates "
        f"that were renamed: {', '.join(f'`{old}` is `{new}`' for old, new in RENAMED.items())}; gone: "
        f"{', '.join(f'`{name}`' for name in sorted(DROPPED))}.",
        table(["file", "bytes", ""], compare_words(before)),
    )


if __name__ == "__main__":
    main()
