"""What a user model answers before everything is known: each way of doing so (`partial`), for six kinds of model.

    ./run bench partial_views

Each cell (a data set, a kind of model, a view) is an advisor fitted around the same model; it is a line of JSON in
out/partial_views/cells.jsonl, and what is there is not done again. The view that followed a model's trees
(`partial="tree"`) was taken away after this was measured; an older checkout still has it:

    PYTHONPATH=OLD:OLD/benchmarks python benchmarks/partial_views.py --measure tree
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
from lightgbm import LGBMClassifier
from report import table, write
from sklearn.compose import make_column_transformer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import edfa
from edfa.errors import EdfaError

CELLS = Path(__file__).parents[1] / "out" / "partial_views" / "cells.jsonl"
SETS = {"german": None, "adult": 4_000, "acs_income": 4_000}  # with the largest number of rows
KINDS = {
    "hgb": "HistGradientBoosting",
    "forest": "random forest",
    "logistic": "logistic Pipeline",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "network": "neural network (MLPClassifier)",
}
VIEWS = ("distilled", "completed", "tree")
INTERVIEWS = 12


def make_model(kind: str, train: Any) -> tuple[Any, dict[str, Any]]:
    """A model of this kind fitted on raw training people, and how ``wrap`` is told about it."""
    if kind not in ("lightgbm", "network"):
        from own_model import make_model as make

        own = make(kind, train)
        return own.model, own.options
    names = list(train.schema.names)
    frame, y = train.frame[names], train.frame[train.schema.target]
    words = [column for column in frame if frame[column].dtype.kind not in "if"]
    numbers = [column for column in frame if column not in words]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        (StandardScaler(), numbers),
    )
    last = (
        LGBMClassifier(n_estimators=100, n_jobs=1, verbose=-1, random_state=0)
        if kind == "lightgbm"
        else MLPClassifier((32,), max_iter=400, random_state=0)
    )
    model = make_pipeline(columns, last).fit(frame, y)
    return model, {"classes": tuple(model.classes_)}


def hold(advisor: Any, people: list[dict[str, Any]]) -> int:
    """Interviews to the end; the number of steps."""
    start, steps = [f.name for f in advisor.schema if f.start], 0
    for facts in people:
        interview = advisor.interview({name: facts[name] for name in start if name in facts})
        while (question := interview.question) is not None and question.feature in facts:
            _ = interview.decision, interview.standing, interview.plans(3)
            interview.answer({question.feature: facts[question.feature]})
            steps += 1
    return steps


def measure(data: Any, model: Any, options: dict[str, Any], view: str) -> dict[str, Any]:
    """One advisor: its fidelity, what becomes of test people, and processor seconds."""
    start = time.process_time()
    advisor = edfa.Advisor(predictor=edfa.wrap(model, partial=view, **options)).fit(data, n_jobs=1)
    fitted = time.process_time() - start
    result, fidelity = advisor.evaluation_, advisor.fidelity_
    frame = data.test.frame[list(data.schema.names)].head(INTERVIEWS)
    people = [{k: v for k, v in row.items() if not pd.isna(v)} for row in frame.to_dict("records")]
    hold(advisor, people[:2])
    start = time.process_time()
    steps = hold(advisor, people[2:])
    return {
        "rmse": fidelity.rmse,
        "same": fidelity.same,
        "path_rmse": fidelity.path_rmse,
        "path_same": fidelity.path_same,
        "status": advisor.certificate.status,
        "told": result.n,
        "let_down": result.risk,
        "cost": result.cost / result.cost_all,
        "fit": fitted,
        "step": 1000 * (time.process_time() - start) / max(steps, 1),
    }


def measure_missing(views: list[str]) -> None:
    """Every cell of these views that is not there."""
    CELLS.parent.mkdir(parents=True, exist_ok=True)
    there = {(line["set"], line["kind"], line["view"]) for line in read()}
    for name, cap in SETS.items():
        data = edfa.load(name, cap=cap)
        for kind in KINDS:
            due = [view for view in views if (name, kind, view) not in there]
            model, options = make_model(kind, data.train) if due else (None, {})
            for view in due:
                line: dict[str, Any] = {"set": name, "kind": kind, "view": view}
                try:
                    line |= measure(data, model, options, view)
                except EdfaError as error:
                    line["error"] = str(error)
                with CELLS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, file=sys.stderr, flush=True)


def read() -> list[dict[str, Any]]:
    """What has been measured."""
    return [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.is_file() else []


def render(lines: list[dict[str, Any]]) -> None:
    """The table, and how often each view is the nearest, lets down fewest and costs least."""
    fine = [line for line in lines if "error" not in line]
    best = {
        "nearest to the model on the way of questions (RMSE)": ("path_rmse", 0.005),
        "nearest at random (RMSE)": ("rmse", 0.005),
        "fewest let down": ("let_down", 0.02),
        "cheapest": ("cost", 0.01),
        "shortest step": ("step", 5.0),
    }
    pairs = {(line["set"], line["kind"]): [] for line in fine}
    for line in fine:
        pairs[line["set"], line["kind"]].append(line)
    rows = []
    for words, (key, noise) in best.items():
        cells = []
        for view in VIEWS:
            wins = [
                all(
                    line[key] + noise < other[key]
                    for other in some
                    if other["view"] != view and other[key] is not None
                )
                for some in pairs.values()
                for line in some
                if line["view"] == view and line[key] is not None and len(some) > 1
            ]
            cells.append(f"{sum(wins)} of {len(wins)}")
        rows.append([words, noise, *cells])
    body = [
        [
            line["set"],
            KINDS[line["kind"]],
            line["view"],
            f"{line['rmse']:.3f} / {line['path_rmse']:.3f}",
            f"{line['same']:.0%} / {line['path_same']:.0%}",
            line["status"],
            line["told"],
            "none" if line["let_down"] is None else f"{line['let_down']:.1%}",
            f"{line['cost']:.0%}",
            f"{line['fit']:.0f}",
            f"{line['step']:.0f}",
        ]
        for line in sorted(
            fine, key=lambda line: ([*SETS].index(line["set"]), [*KINDS].index(line["kind"]))
        )
    ]
    write(
        "partial_views",
        "What a user model answers before everything is known",
        "Three ways (`wrap(model, partial=...)`): *distilled*, a `SubsetXGB` learnt from the model's "
        "probabilities; *completed*, the mean of the model's answers over completions; *tree*, the "
        "paths of the model's own trees, which only forests and XGBoost have (taken away since; measured with the last "
        "commit that had it). German with all rows, the others with 4,000; seed 0; alpha 0.2, default settings. "
        "*RMSE* and *same decision*: against the model's full answer, at random masks / on the way of questions. "
        "*Let down*: of the test people told to act, those whom the model refuses with the plan made. *Cost*: of all "
        "features, over all test people. *Fit* in processor seconds, *step* (decision, standing, plans, question, "
        f"answer) in processor milliseconds over {INTERVIEWS - 2} interviews to the end.",
        "## Best by more than noise",
        "In how many pairs of data set and kind, of those that have the view, it is better than every other by more "
        "than *noise*.",
        table(["", "noise", *VIEWS], rows),
        "## All cells",
        table(
            [
                "set",
                "model",
                "view",
                "RMSE",
                "same decision",
                "certificate",
                "told to act",
                "let down",
                "cost",
                "fit, s",
                "step, ms",
            ],
            body,
        ),
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure_missing(sys.argv[2:])
    else:
        measure_missing(list(VIEWS[:2]))
        render(read())
