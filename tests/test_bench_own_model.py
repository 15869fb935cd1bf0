"""The benchmark of wrapped models on a small table: its figures are right, and its tables can be
made of them.
"""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edfa
from edfa.data.schema import Feature, Schema

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
pytestmark = pytest.mark.skipif(
    not BENCHMARKS.is_dir(), reason="benchmarks are not part of a source distribution"
)
FEATURES = (
    Feature("savings", "continuous", change="free", cost=1),
    Feature("debt", "continuous", change="free", cost=2),
    Feature("job", "categorical", change="free", cost=1),
    Feature("age", "continuous", start=True, cost=0),
)


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("own_model")
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in ("own_model", "own_model_report", "report"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    n = 600
    savings, debt, age = random.normal(size=(3, n)).round(1)
    job = random.choice(["none", "some", "good"], n)
    score = savings - debt + np.where(job == "good", 1.0, 0.0) + random.normal(scale=0.5, size=n)
    outcome = np.where(score > 0.3, "paid", "lost")
    frame = pd.DataFrame({"savings": savings, "debt": debt, "job": job, "age": age, "y": outcome})
    return edfa.Table.from_frame(frame, Schema(FEATURES, "y", "paid"), name="small")


@pytest.fixture(scope="module")
def sizes(bench):
    return bench.Sizes(copies=1, interviews=3, warm=1, people=40)


@pytest.fixture(scope="module")
def promise(bench, data, sizes):
    return bench.measure_promise(data, "logistic", sizes)


@pytest.mark.long
def test_let_downs_are_those_of_the_model_itself(promise, data):
    assert promise["uses"] <= promise["features"] == 4
    for row in promise["promises"]:
        assert (
            row["differs"] == 0
        )  # the advisor's records, made of encoded rows, agree with the model on raw rows
        assert 0 < row["refused"] < len(data.test)
        assert row["cost"] <= row["cost_end"] <= 1
        assert row["early"] > 0
        wasted, needed = row["wasted"] * row["early"], row["reached"] * row["refused"]
        assert wasted + needed == pytest.approx(
            row["early"]
        )  # who acts early is granted anyway, or is refused
    assert promise["promises"][0]["status"] == promise["status"]  # as a user's own advisor has it
    assert "rmse" in promise["fidelity"]["distilled"]
    assert "rmse" in promise["fidelity"]["completed"]


def test_only_changed_cells_of_raw_rows_change(bench, data):
    own = data.test.X
    followed = own.copy()
    followed[3, 0] = data.train.X[:, 0].max()
    raw, after = (
        data.test.frame[list(data.schema.names)],
        bench.with_changes(data.test, own, followed),
    )
    assert after.loc[3, "savings"] == data.train.frame["savings"].max()
    after.loc[3, "savings"] = raw.loc[3, "savings"]
    pd.testing.assert_frame_equal(after, raw)


@pytest.mark.parametrize("name", ["hgb", "forest", "logistic", "xgboost"])
def test_every_model_grants_by_its_own_argmax(bench, data, name):
    own = bench.make_model(name, data.train)
    granted = own.grants(own.model, data.train.frame, "paid")
    assert (granted == (data.train.frame["y"] == "paid")).mean() > 0.8
    wrapped = bench.wrap(own.model, **own.options).fit_table(data.train)
    assert np.array_equal(
        wrapped.predict(data.train.X) == data.schema.classes.index("paid"), granted
    )
    assert own.copy(0) is not own.model


@pytest.mark.long
@pytest.mark.long
def test_tables_are_made_of_lines(bench, data, sizes, promise, tmp_path, monkeypatch, capsys):
    speed = bench.measure_speed(bench.fit_advisors(data, "logistic"), data, sizes)
    assert speed["steps"]["own"]["rows"] > 0
    assert speed["steps"]["default"]["rows"] == 0
    assert all(speed["file"][kind]["errors"] == 0 for kind in ("own", "default", "same questions"))
    broken = bench.describe(("small", "forest", 0), {"error": "ModelError: it fails"})
    lines = {"cells": [bench.describe(("small", "logistic", 0), promise), broken]}
    lines["timing"] = [bench.describe(("small", "logistic", 0), speed)]
    for name, some in lines.items():
        text = "".join(json.dumps(line) + "\n" for line in some)
        (tmp_path / f"{name}.jsonl").write_text(text + '{"set": "cut o')
    assert bench.missing(
        [("small", m, 0) for m in ("logistic", "forest")], tmp_path / "cells.jsonl", ["*"]
    ) == [("small", "forest", 0)]
    monkeypatch.setattr(importlib.import_module("report"), "RESULTS", tmp_path)
    bench.main(["--render", "--out", str(tmp_path)])
    text = (tmp_path / "own_model.md").read_text()
    assert capsys.readouterr().out.strip() == text.strip()
    assert "held in" in text
    assert "- small, forest, seed 0: ModelError: it fails" in text
    assert (
        len({line.count("|") for line in text.splitlines() if line.startswith("| small")}) == 3
    )  # one row in each table
