"""People of whom anything may be known: one masked model answers where a set has no model of its
own.
"""

import signal
import subprocess
import sys
from copy import deepcopy
from dataclasses import fields
from functools import cache

import numpy as np
import pandas as pd
import pytest
from advisors import german
from advisors import mixed as advisor
from sklearn.base import clone

import edfa
from edfa import SubsetXGB
from edfa.acquisition.loop import run_policy
from edfa.advice import batch_file
from edfa.advice.batch import COLUMNS, advise
from edfa.advice.batch_file import advise_file
from edfa.advice.factory import new_predictor
from edfa.errors import UnreadableError
from edfa.fingerprint import digest

TABLE = edfa.load("german")


@cache
def half_known():
    """Everybody of German credit, each feature beyond the start set known to one in two."""
    whole = TABLE.encoder.decode(TABLE.encoder.encode(TABLE.frame)).astype(object)
    hidden = np.random.default_rng(0).random(whole.shape) < 0.5
    return whole.mask(hidden & ~np.isin(whole.columns, TABLE.schema.start), None)


def test_an_advisor_by_name_keeps_the_sets_on_its_path():
    assert new_predictor("xgb", TABLE, None, 0).mode == "mixed"
    fitted = advisor().fitted
    model, background = fitted.model, fitted.background
    walked = run_policy(TABLE.calibration.X, fitted.policy, background, "inf").people()
    passed = np.unique(walked.known & background.visible, axis=0)
    kept = {mask.tobytes() for mask in model.kept_}
    assert {mask.tobytes() for mask in passed if mask.any()} <= kept
    assert {np.ones(20, dtype=bool).tobytes(), background.visible.tobytes()} <= kept
    assert len(kept) <= len(passed) + 3, "and no other"


def test_on_the_path_everything_is_as_with_a_model_for_each_set():
    exact, mixed = german(), advisor()
    assert mixed.fingerprint != exact.fingerprint
    plain = [
        {
            f.name: getattr(one.certificate, f.name)
            for f in fields(one.certificate)
            if f.name != "advisor"
        }
        for one in (exact, mixed)
    ]
    assert plain[0] == plain[1]
    assert mixed.evaluation_ == exact.evaluation_
    words = TABLE.encoder.decode(TABLE.test.X)
    pd.testing.assert_frame_equal(advise(mixed.fitted, words), advise(exact.fitted, words))


def test_a_policy_that_wanders_keeps_the_sets_most_people_pass(monkeypatch):
    monkeypatch.setattr("edfa.advice.factory.PATH_SETS", 5)
    monkeypatch.setattr("edfa.advice.factory.PATH_PEOPLE", 60)
    model = SubsetXGB("mixed", n_estimators=5)
    settings = {"policy": edfa.acquisition.Random(), "searcher": "nearest", "budget": 0.2}
    wandering = edfa.Advisor(predictor=model, **settings).fit(TABLE)
    assert 5 <= len(wandering.fitted.model.kept_) <= 5 + 3
    again = edfa.Advisor(predictor=model, **settings).fit(TABLE)
    assert again.fingerprint == wandering.fingerprint
    assert len(wandering.fitted.model._models) < 30, "no model for every set that anybody passes"


def test_nothing_is_trained_for_half_known_people_and_order_does_not_matter(monkeypatch, tmp_path):
    advisor().save(tmp_path / "advisor")
    train = SubsetXGB._train
    trained = []
    monkeypatch.setattr(
        SubsetXGB, "_train", lambda self, mask: trained.append(mask) or train(self, mask)
    )
    people = half_known().head(200)
    loaded = edfa.Advisor.load(tmp_path / "advisor")
    assert loaded.fingerprint == advisor().fingerprint
    assert digest(loaded.fitted.model) == digest(advisor().fitted.model)
    whole = advise(loaded.fitted, people)
    turned = advise(advisor().fitted, people[::-1].reset_index(drop=True))
    assert not trained
    pd.testing.assert_frame_equal(
        whole.drop(columns="row"),
        turned[::-1].reset_index(drop=True).drop(columns="row"),
        check_exact=True,
    )
    for row in (3, 77):
        facts = {k: v for k, v in people.iloc[row].items() if v is not None and v == v}
        interview = loaded.interview(facts)
        assert whole["probability"][row] == interview.decision.probability
        assert whole["status"][row] == interview.standing.status


@pytest.mark.parametrize("out", ["out.csv", "out.jsonl", "out.parquet"])
def test_bytes_do_not_depend_on_chunks_or_jobs(out, tmp_path, monkeypatch):
    monkeypatch.setattr(batch_file, "ROWS_PER_BLOCK", 50)  # three blocks
    half_known().head(120).to_csv(tmp_path / "rows.csv", index=False)
    results = []
    for chunk, jobs in ((None, 2), (17, 1), (1000, 3)):
        advise_file(
            advisor().fitted, tmp_path / "rows.csv", tmp_path / out, chunk=chunk, workers=jobs
        )
        results.append((tmp_path / out).read_bytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize(("rate", "expected"), [(10, [200, *[50] * 16]), (120, [200, 600, 200])])
def test_parts_are_as_large_as_five_seconds_allow(rate, expected, tmp_path, monkeypatch):
    """So many people a second; with one job, a part is done before the next is handed out."""
    half_known().to_csv(tmp_path / "rows.csv", index=False)
    sizes = []

    def timed(fitted, frame, cells, k):
        sizes.append(len(frame))
        return pd.DataFrame({name: [None] * len(frame) for name in COLUMNS}), len(frame) / rate

    monkeypatch.setattr(batch_file, "_advise", timed)
    advise_file(advisor().fitted, tmp_path / "rows.csv", tmp_path / "out.csv", workers=1)
    assert sizes == expected


SLOWLY = """
import sys, time
import edfa, edfa.advice.batch_file
advisor = edfa.Advisor.load(sys.argv[1])
each = edfa.advice.batch_file.advise
def slowly(*arguments, **options):
    time.sleep(0.1)
    return each(*arguments, **options)
edfa.advice.batch_file.advise = slowly
edfa.advice.batch_file.FIRST = edfa.advice.batch_file.CHUNK = 40
tell = lambda *done: print(done, flush=True)
edfa.advice.batch_file.advise_file(advisor.fitted, sys.argv[2], sys.argv[3], progress=tell)
"""


@pytest.mark.long
def test_a_killed_run_keeps_its_parts_and_may_go_on_with_others(tmp_path):
    """Everybody is in one block; what was finished is kept all the same, and the rest may be parted
    anew.
    """
    advisor().save(tmp_path / "advisor")
    rows, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    half_known().head(500).to_csv(rows, index=False)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOWLY, tmp_path / "advisor", rows, out],
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(4):
        process.stdout.readline()
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert not out.exists()
    finished = len(list((tmp_path / ".out.csv.parts").glob("[0-9]*.parquet")))
    assert 4 <= finished < 13
    counts = advise_file(advisor().fitted, rows, out, chunk=133)
    assert counts == {"people": 500, "errors": 0, "flagged": 0, "resumed": finished}
    advise_file(advisor().fitted, rows, tmp_path / "whole.csv")
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_folder_of_parquet_files_is_read_in_order(tmp_path):
    people = half_known().head(90)
    (tmp_path / "rows").mkdir()
    for name, some in (("b", people[40:]), ("a", people[:40])):
        some.infer_objects().to_parquet(tmp_path / "rows" / f"{name}.parquet")
    advise_file(advisor().fitted, tmp_path / "rows", tmp_path / "out.parquet")
    told = pd.read_parquet(tmp_path / "out.parquet")
    assert told["row"].tolist() == list(range(90))
    assert told["probability"].tolist() == advise(advisor().fitted, people)["probability"].tolist()
    (tmp_path / "none").mkdir()
    with pytest.raises(UnreadableError, match=r"has no \.parquet file"):
        advise_file(advisor().fitted, tmp_path / "none", tmp_path / "out.csv")


def test_an_advisor_that_is_copied_or_fitted_again():
    fitted = advisor().fitted
    people = half_known().head(60)
    pd.testing.assert_frame_equal(advise(deepcopy(fitted), people), advise(fitted, people))
    fresh = clone(fitted.model)
    assert fresh.mode == "mixed"
    assert not hasattr(fresh, "kept_")
