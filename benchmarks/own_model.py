"""Advice about a model that somebody already has: who is let down by that model itself, and what asking it costs.

Each cell (a data set, a model, a seed) is a line of JSON in out/own_model/cells.jsonl; each pair of data set and model
that is timed is one in timing.jsonl. What is there is not done again. `./run bench own_model` does everything that is
missing and writes the tables; on a larger machine:

    python benchmarks/own_model.py --measure --jobs 16 [--cells 'adult/*'] [--out FOLDER]
    python benchmarks/own_model.py --timing --jobs 16    (fits side by side; then --at-once processes, 1, are measured)
    python benchmarks/own_model.py --render
"""

import argparse
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from xgboost import XGBClassifier

import edfa
from edfa.advice.batch_file import advise_file
from edfa.advice.evaluation import fidelity_of
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.promise import Rollout, State, certify, dry_run, roll_out
from edfa.errors import ModelError
from edfa.predictors.user_model.model import PARTIAL, wrap

FOLDER = Path(__file__).parents[1] / "out" / "own_model"
SETS = {"german": None, "adult": 8_000, "acs_income": 8_000}  # with the largest number of rows
MODELS = ("hgb", "forest", "logistic", "xgboost")
SEEDS, ALPHAS, DELTA = (0, 1, 2), (0.2, 0.1), 0.05
MOST_LEVELS = 255  # that HistGradientBoosting takes as categories
Cell = tuple[str, str, int]
"""A data set, a model and a seed."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured; smaller in a trial. ``people`` are those of the file, ``warm`` are met before timing.

    ``at_once`` processes are timed at the same time, each on one thread; 1 unless the machine has many processors.
    """

    copies: int = 3
    interviews: int = 30
    warm: int = 5
    people: int = 10_000
    at_once: int = 1


@dataclass(frozen=True, eq=False)
class Own:
    """A model as its owner has it: fitted on a raw frame ``X`` of training people and their outcomes ``y``.

    ``classes`` are the card's, in the order of the model's probabilities, and ``like`` whether dtypes matter to it.
    """

    model: Any
    X: pd.DataFrame
    y: Any
    classes: tuple[str, ...]
    like: bool

    @property
    def options(self) -> dict[str, Any]:
        """How ``wrap`` is told about it."""
        return ({"like": self.X} if self.like else {}) | {"classes": self.classes}

    def grants(self, model: Any, people: pd.DataFrame, favourable: str) -> Any:
        """Whether this model or a copy of it decides for the favourable class by argmax, (people,); without edfa."""
        if not len(people):
            return np.zeros(0, dtype=bool)
        words = {
            name: dtype
            for name, dtype in self.X.dtypes.items()
            if isinstance(dtype, pd.CategoricalDtype)
        }
        chances = model.predict_proba(people[list(self.X.columns)].astype(words))
        return np.array(self.classes, dtype=object)[np.argmax(chances, axis=1)] == favourable

    def copy(self, seed: int) -> Any:
        """A copy that has learnt from a bootstrap sample of the same training people."""
        rows = np.random.default_rng(seed).integers(0, len(self.X), len(self.X))
        return clone(self.model).fit(self.X.iloc[rows], np.asarray(self.y)[rows])


def make_model(name: str, train: edfa.Table, seed: int = 0) -> Own:
    """A model of this kind, fitted on the raw training people as its owner would fit it."""
    schema = train.schema
    frame, y = train.frame[list(schema.names)], train.frame[schema.target]
    words = [column for column in frame if frame[column].dtype.kind not in "if"]
    numbers = [column for column in frame if column not in words]
    levels = {column: pd.CategoricalDtype(list(train.encoder[column].levels)) for column in words}
    categories = frame.astype(levels)
    if name == "xgboost":
        settings: dict[str, Any] = {
            "n_estimators": 200,
            "max_depth": 4,
            "learning_rate": 0.1,
            "n_jobs": 1,
        }
        model = XGBClassifier(enable_categorical=True, random_state=seed, **settings)
        return Own(model.fit(categories, train.y), categories, train.y, schema.classes, like=True)
    if name == "hgb":
        if max(len(dtype.categories) for dtype in levels.values()) <= MOST_LEVELS:
            model = HistGradientBoostingClassifier(
                categorical_features="from_dtype", random_state=seed
            )
            model.fit(categories, y)
            return Own(model, categories, y, tuple(model.classes_), like=True)
        coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        last, first = HistGradientBoostingClassifier(random_state=seed), (coded, words)
        model = make_pipeline(make_column_transformer(first, remainder="passthrough"), last)
    else:
        columns = make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers)
        )
        last = {
            "forest": RandomForestClassifier(200, n_jobs=1, random_state=seed),
            "logistic": LogisticRegression(max_iter=2_000),
        }[name]
        model = make_pipeline(columns, last)
    model.fit(frame, y)
    return Own(model, frame, y, tuple(model.classes_), like=False)


def with_changes(table: edfa.Table, own: Any, followed: Any) -> pd.DataFrame:
    """The raw rows of a table's people with the cells in which ``followed`` is unlike ``own``; both encoded, complete."""
    raw, decoded = table.frame[list(table.schema.names)].copy(), table.encoder.decode(followed)
    for j, name in enumerate(table.schema.names):
        changed = own[:, j] != followed[:, j]
        if changed.any():
            raw[name] = (
                raw[name].astype(object).mask(changed, decoded[name].astype(object)).infer_objects()
            )
    return raw


def who_acts(
    made: Any,
    rollout: Rollout,
    test: edfa.Table,
    own: Own,
    copies: list[Any],
    fitted: FittedAdvisor,
) -> dict[str, Any]:
    """What becomes of test people under a certificate, as the full model and copies of it decide about raw rows."""
    favourable, last = test.schema.favourable, rollout.trajectory.last
    raw = test.frame[list(test.schema.names)]
    refused = ~own.grants(own.model, raw, favourable)
    spent, end = rollout.trajectory.spent[last].copy(), rollout.trajectory.spent[last]
    planned = np.add.reduceat(rollout.plans.legal, np.append(0, last[:-1] + 1)) > 0
    acts, row = np.zeros(len(test), dtype=bool), last.copy()
    if made.certified:
        stops = made.stop(rollout.records)
        acts = stops.triggered
        row = np.where(acts, rollout.trajectory.at(0) + np.maximum(stops.step, 0), last)
    spent[acts] = rollout.trajectory.spent[row[acts]]
    followed = test.X.copy()
    followed[acts] = rollout.plans.make_changes(rollout.plans.first[row[acts]], test.X[acts])
    after, early = with_changes(test, test.X, followed), acts & (row < last)
    fails = ~own.grants(own.model, after, favourable)
    again = (
        [float((~own.grants(copy, after[early], favourable)).mean()) for copy in copies]
        if early.any()
        else []
    )
    total = float(fitted.schema.costs.sum())
    return {
        "early": int(early.sum()),
        "late": int((acts & ~early).sum()),
        "let_down": _mean(fails[early]),
        "let_down_all": _mean(fails[acts]),
        "copies": _mean(again),
        "wasted": _mean(~refused[early]),
        "refused": int(refused.sum()),
        "reached": _mean(early[refused]),
        "cost": float(spent.mean()) / total,
        "cost_planned": _mean(spent[planned] / total),
        "cost_end": float(end.mean()) / total,
        # People about whom the advisor's own books say something else; encoding cannot express every raw row.
        "differs": int(
            (np.asarray(rollout.records.loss)[row[acts]].astype(bool) != fails[acts]).sum()
        ),
    }


def fidelities(
    own: Own, fitted: FittedAdvisor, data: edfa.Table, rollout: Rollout
) -> dict[str, Any]:
    """How near each view comes to the model at random masks, and on the advisor's path; None: it cannot be had."""
    views: dict[str, Any] = {}
    for partial in PARTIAL:
        start = time.process_time()
        try:
            model = fitted.model
            if partial != fitted.model.partial:
                model = wrap(own.model, partial, **own.options).fit_table(data.train)
                model.favourable = fitted.model.favourable
            measured = fidelity_of(model, data.test.X, rollout.trajectory)
        except ModelError as error:
            views[partial] = {"error": str(error)}
            continue
        assert measured is not None
        views[partial] = {
            name: getattr(measured, name) for name in ("rmse", "same", "path_rmse", "path_same")
        }
        views[partial]["seconds"] = time.process_time() - start
    return views


def measure_promise(data: edfa.Table, name: str, sizes: Sizes) -> dict[str, Any]:
    """One model on one split: certificates at each alpha, who is let down on test people, and how near the views come."""
    own = make_model(name, data.train)
    start = time.process_time()
    advisor = edfa.Advisor(
        predictor=wrap(own.model, **own.options), alpha=ALPHAS[0], delta=DELTA, loss="let_down"
    ).fit(data, n_jobs=1)
    fitted, seconds = advisor.fitted, time.process_time() - start
    rows = fitted.model.asked_.rows
    dry = dry_run(fitted, advisor.seed, 1, ["all_features"])["all_features"]
    calibration, test = (
        roll_out(fitted, part.X, n_jobs=1) for part in (data.calibration, data.test)
    )
    copies = [own.copy(number) for number in range(sizes.copies)]
    promises = []
    for alpha in ALPHAS:
        ending = replace(fitted.promise.ending, alpha=alpha)
        held = replace(fitted, promise=replace(fitted.promise, endings=(ending,)))
        made: Any = certify(held, State(), calibration.endings, dry)["act"]
        row = {
            "alpha": alpha,
            "status": made.status,
            "target": made.target,
            "n": made.n,
            "bound": made.bound,
        }
        promises.append(row | who_acts(made, test, data.test, own, copies, fitted))
    granted = own.grants(own.model, data.test.frame, data.schema.favourable)
    return {
        "rows": len(data),
        "test": len(data.test),
        "accuracy": float(
            (granted == (data.test.frame[data.schema.target] == data.schema.favourable)).mean()
        ),
        "uses": int(fitted.model.usage_.used.sum()),
        "features": len(data.schema),
        "fit_seconds": seconds,
        "fit_rows": rows,
        "status": advisor.certificate.status,  # at the first alpha, as a user sees it
        "promises": promises,
        "fidelity": fidelities(own, fitted, data, test),
    }


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


# Speed: three advisors take turns in one process.


def fit_advisors(data: edfa.Table, name: str) -> tuple[Own, dict[str, Any], dict[str, float]]:
    """The wrapped model's advisor, the default one, and one of ``SubsetXGB`` that asks the same; and seconds of each."""
    own = make_model(name, data.train)
    advisors: dict[str, Any] = {
        "own": edfa.Advisor(predictor=wrap(own.model, **own.options)),
        "default": edfa.Advisor(),
    }
    seconds = {}
    for kind in ("own", "default", "same questions"):
        if kind == "same questions":
            asked = advisors["own"].fitted.policy.blanket
            advisors[kind] = edfa.Advisor(blanket=asked, reference="all_features")
        start = time.process_time()
        advisors[kind].fit(data, n_jobs=1)
        seconds[kind] = time.process_time() - start
    return own, advisors, seconds


def interview_steps(advisor: Any, person: dict[str, Any]) -> list[list[float]]:
    """Of every answer of one person: milliseconds of the step, calls of the own model and rows asked."""
    taken, asked = [], getattr(advisor.fitted.model, "asked_", None)
    interview = advisor.interview({name: person[name] for name in advisor.schema.start})
    question = interview.question
    while question is not None:
        before = (asked.calls, asked.rows) if asked else (0, 0)
        start = time.process_time()
        interview.answer({question.feature: person[question.feature]})
        _ = interview.standing, interview.plans()
        question = interview.question
        spent = 1e3 * (time.process_time() - start)
        after = (asked.calls, asked.rows) if asked else (0, 0)
        taken.append([spent, after[0] - before[0], after[1] - before[1]])
    return taken


def people_of(table: edfa.Table, rows: Any) -> list[dict[str, Any]]:
    """Some people of a table as they would tell it; a gap is None."""
    frame = table.encoder.decode(table.X[rows])
    return [
        {k: None if v != v else v for k, v in person.items()} for person in frame.to_dict("records")
    ]


def measure_steps(
    own: Own, advisors: dict[str, Any], data: edfa.Table, sizes: Sizes
) -> dict[str, Any]:
    """Interview steps of test people whom the own model and the default advisor's model refuse; nobody is met twice."""
    test, favourable = data.test, data.schema.favourable
    plain = advisors["default"].fitted
    refused = ~own.grants(own.model, test.frame, favourable) & (
        plain.model.predict(test.X) != plain.favourable
    )
    people = people_of(test, np.flatnonzero(refused)[: sizes.interviews])
    for person in people_of(data.calibration, np.arange(sizes.warm)):
        for advisor in advisors.values():
            interview_steps(advisor, person)
    steps: dict[str, list[list[float]]] = {kind: [] for kind in advisors}
    for person in people:
        for kind, advisor in advisors.items():
            steps[kind] += interview_steps(advisor, person)
    return {"people": len(people)} | {
        kind: {
            "steps": len(taken) / max(len(people), 1),
            "ms": _mean([step[0] for step in taken]),
            "median_ms": float(np.median([step[0] for step in taken])) if taken else None,
            "calls": _mean([step[1] for step in taken]),
            "rows": _mean([step[2] for step in taken]),
        }
        for kind, taken in steps.items()
    }


def measure_file(advisors: dict[str, Any], data: edfa.Table, sizes: Sizes) -> dict[str, Any]:
    """Processor seconds of a file of half-known test people, drawn with repetition; one thread."""
    random, names = np.random.default_rng(0), data.schema.names
    people = data.encoder.decode(
        data.test.X[random.integers(0, len(data.test), sizes.people)]
    ).astype(object)
    hidden = (random.random(people.shape) < 0.5) & ~np.isin(names, data.schema.start)
    measured = {}
    with TemporaryDirectory() as temporary:
        path = Path(temporary) / "people.parquet"
        people.mask(hidden, None).infer_objects().to_parquet(path, index=False)
        for kind, advisor in advisors.items():
            asked = getattr(advisor.fitted.model, "asked_", None)
            before, start = asked.rows if asked else 0, time.process_time()
            counts = advise_file(advisor.fitted, path, Path(temporary) / f"{kind}.csv", workers=1)
            seconds = time.process_time() - start
            rows = (asked.rows if asked else 0) - before
            measured[kind] = {
                "seconds": seconds,
                "errors": counts["errors"],
                "rows": rows / sizes.people,
            }
    return measured


def measure_speed(ready: Any, data: edfa.Table, sizes: Sizes) -> dict[str, Any]:
    """Steps and a file, of advisors as ``fit_advisors`` gives them."""
    own, advisors, seconds = ready
    steps = measure_steps(own, advisors, data, sizes)
    return {
        "at_once": sizes.at_once,
        "shares": True,  # people in the file are told the decision of most completions; older lines say nothing
        "fit": seconds,
        "steps": steps,
        "file": measure_file(advisors, data, sizes) | {"people": sizes.people},
    }


# Cells: each by itself in a process.


def load(name: str, seed: int) -> edfa.Table:
    return edfa.load(name, cap=SETS[name]).split(seed)


def describe(cell: Cell, made: dict[str, Any]) -> dict[str, Any]:
    """A line of results: the cell, what made it, and what was measured."""
    versions = {"edfa": edfa.__version__, "sklearn": version("scikit-learn")}
    versions |= {"xgboost": __import__("xgboost").__version__, "python": sys.version.split()[0]}
    return {"set": cell[0], "model": cell[1], "seed": cell[2], "versions": versions} | made


def do_cell(cell: Cell, sizes: Sizes) -> dict[str, Any]:
    """A line of cells.jsonl; what went wrong is a line, too."""
    try:
        return describe(cell, measure_promise(load(cell[0], cell[2]), cell[1], sizes))
    except Exception as error:
        return describe(
            cell, {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        )


_SHARED: list[
    Any
] = []  # of processes that are timed: where they wait for each other's fits, and the turns to measure


def _share(*parts: Any) -> None:
    _SHARED[:] = parts


def do_timing(cell: Cell, sizes: Sizes) -> dict[str, Any]:
    """A line of timing.jsonl: fit beside others, then wait until all are fitted, and measure in turn."""
    waits, turn = _SHARED
    ready: Any = None
    try:
        try:
            data = load(cell[0], cell[2])
            ready = fit_advisors(data, cell[1])
        finally:
            waits.wait(1_800)
        with turn:
            return describe(cell, measure_speed(ready, data, sizes))
    except Exception as error:
        return describe(
            cell, {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The latest line of each cell; a line that was cut off is left out."""
    lines: dict[Cell, dict[str, Any]] = {}
    for text in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        lines[line["set"], line["model"], line["seed"]] = line
    return list(lines.values())


def missing(cells: Iterable[Cell], path: Path, patterns: list[str]) -> list[Cell]:
    """The cells that match one of the patterns and are not in a file without an error."""
    done = {
        (line["set"], line["model"], line["seed"])
        for line in read_lines(path)
        if "error" not in line
    }
    return [
        cell
        for cell in cells
        if cell not in done and any(fnmatch("/".join(map(str, cell)), p) for p in patterns)
    ]


def run(
    work: Callable[[Cell, Sizes], dict[str, Any]],
    cells: list[Cell],
    path: Path,
    jobs: int,
    sizes: Sizes,
    shared: tuple[Any, ...] = (),
) -> None:
    """Do cells, some at a time, each in a process of one thread, and add a line for each as soon as it is done."""
    if not cells:
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    path.parent.mkdir(parents=True, exist_ok=True)
    context, start = get_context("spawn"), time.perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_share, initargs=shared) as pool:
        for done in as_completed([pool.submit(work, cell, sizes) for cell in cells]):
            line = done.result()
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            name = f"{line['set']}/{line['model']}/{line['seed']}"
            print(
                f"{time.perf_counter() - start:6.0f} s  {name}  {line.get('error', '')}",
                file=sys.stderr,
                flush=True,
            )


def run_timing(cells: list[Cell], path: Path, jobs: int, sizes: Sizes) -> None:
    """As many cells as ``jobs`` are fitted side by side; then they are measured in turn, and nothing else runs."""
    context = get_context("spawn")
    for first in range(0, len(cells), jobs):
        wave = cells[first : first + jobs]
        run(
            do_timing,
            wave,
            path,
            len(wave),
            sizes,
            (context.Barrier(len(wave)), context.Semaphore(sizes.at_once)),
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--measure",
        action="store_true",
        help="promises and fidelity of the cells that are not there",
    )
    parser.add_argument(
        "--timing", action="store_true", help="speed of the pairs that are not there"
    )
    parser.add_argument("--render", action="store_true", help="write docs/results/own_model.md")
    parser.add_argument(
        "--cells", nargs="+", default=["*"], help="patterns of set/model/seed, such as 'adult/*'"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--people", type=int, default=Sizes.people, help="in the file that is timed"
    )
    parser.add_argument(
        "--at-once", type=int, default=1, help="processes that are timed at the same time"
    )
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = parser.parse_args(arguments)
    everything, sizes = (
        not (given.measure or given.timing or given.render),
        Sizes(people=given.people, at_once=given.at_once),
    )
    pairs = [
        (name, model)
        for name in reversed(SETS)
        for model in ("forest", "hgb", "xgboost", "logistic")
    ]  # long first
    if given.measure or everything:
        path = given.out / "cells.jsonl"
        cells = missing([(*pair, seed) for pair in pairs for seed in SEEDS], path, given.cells)
        run(do_cell, cells, path, given.jobs, sizes)
    if given.timing or everything:
        path = given.out / "timing.jsonl"
        run_timing(
            missing([(*pair, SEEDS[0]) for pair in pairs], path, given.cells),
            path,
            given.jobs,
            sizes,
        )
    if given.render or everything:
        from own_model_report import report

        lines = [read_lines(given.out / f"{name}.jsonl") for name in ("cells", "timing")]
        report(*lines)


if __name__ == "__main__":
    main()
