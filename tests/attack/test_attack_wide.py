"""More features than anything was written for: fitted, saved, loaded, asked; and the ways of
counting that differ.
"""

import gc
import weakref

import numpy as np
import pandas as pd
import pytest

import edfa
from edfa import Feature, Schema, Table, discover
from edfa.blanket.discovery import Search
from edfa.blanket.sources import correlation, memory
from edfa.blanket.sources.open import open_source
from edfa.recourse.plan_filter import TrainingSupport

FEATURES, ROWS, RELEVANT = 1_100, 500, 4


def wide(features=FEATURES, rows=ROWS):
    """Noise, every tenth column of words, and a few columns that decide."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(rows, features)).astype(np.float32)
    words = {i for i in range(features) if i >= RELEVANT and i % 10 == 0}
    columns = {
        f"x{i}": random.choice(list("abcd"), rows) if i in words else numbers[:, i]
        for i in range(features)
    }
    columns["y"] = np.where(
        numbers[:, :RELEVANT].sum(axis=1) + random.logistic(size=rows) / 2 > 0, "good", "bad"
    )
    kinds = [("categorical" if i in words else "continuous") for i in range(features)]
    schema = Schema(tuple(Feature(f"x{i}", kind) for i, kind in enumerate(kinds)), "y", "good")
    return Table.from_frame(pd.DataFrame(columns), schema)


@pytest.mark.long
@pytest.mark.parametrize("searcher", ["nearest", "survival"])
def test_more_than_a_thousand_features_from_table_to_plan(searcher, tmp_path):
    table = wide()
    model = edfa.SubsetXGB("mixed", n_estimators=10)
    advisor = edfa.Advisor(
        predictor=model, searcher=searcher, committee=2, reference="trajectory_end"
    ).fit(table)
    assert set(advisor.fitted.blanket.features) >= {"x0", "x1"}
    advisor.save(tmp_path / "advisor")
    loaded = edfa.Advisor.load(tmp_path / "advisor")
    assert loaded.fingerprint == advisor.fingerprint
    refused = 0
    for row in table.test.frame.head(8).to_dict("records"):
        both = [one.interview({}) for one in (advisor, loaded)]
        while (question := both[0].question) is not None:
            for interview in both:
                interview.answer({question.feature: row[question.feature]})
        assert both[0].decision == both[1].decision
        refused += both[0].decision.refused
        assert [str(p) for p in both[0].plans(k=3)] == [str(p) for p in both[1].plans(k=3)]
    assert refused


def test_pairwise_correlations_are_those_of_the_whole_matrix(monkeypatch):
    frame = edfa.load("german").frame
    frame = frame.assign(
        odd=np.where(np.arange(len(frame)) % 9, np.arange(len(frame)) % 31, np.nan)
    )
    source = open_source(frame, "class", None, False)[0]
    whole = source.correlation()
    pairs = correlation.PairwiseCorrelation(source.columns, source._values)
    terms = np.random.default_rng(0).permutation(len(whole.matrix))
    np.testing.assert_allclose(
        pairs.between(terms[:40], terms[20:]), whole.between(terms[:40], terms[20:]), atol=1e-9
    )
    assert pairs.between(terms[:0], terms[:3]).shape == (0, 3)
    expected = discover(frame, target="class")
    monkeypatch.setattr(memory, "MOST_TERMS", 0)
    assert discover(frame, target="class").units == expected.units


def test_a_wide_table_holds_no_matrix_of_all_terms():
    source = open_source(wide(900, 60), None, None, False)[0]
    assert sum(column.n_terms for column in source.columns) > correlation.MOST_TERMS
    assert isinstance(source.correlation(), correlation.PairwiseCorrelation)


def test_a_search_leaves_nothing_behind():
    source = open_source(wide(30, 200), None, None, False)[0]
    search = Search()
    tester = search.tester(source)
    search.find(tester, tester.names.index("y"))
    gone = weakref.ref(tester)
    gc.disable()
    try:
        del tester
        assert gone() is None, (
            "it waits for the garbage collector, with hundreds of megabytes of caches"
        )
    finally:
        gc.enable()


def test_a_crowd_is_counted_by_the_columns_that_matter():
    random = np.random.default_rng(0)
    crowd = TrainingSupport(
        random.integers(0, 5, (200, 30)).astype(np.float32), random.random(200) < 0.5
    )
    features = np.array([3, 7, 20, 29])
    low = random.integers(0, 4, (50, 4)).astype(np.float32)
    low[random.random(low.shape) < 0.5] = np.nan
    high = low + 2
    counted = crowd.count(low, high, features)
    for i in range(len(low)):
        limited = ~np.isnan(low[i])
        values = crowd.rows[:, features[limited]]
        inside = ((values >= low[i, limited]) & (values <= high[i, limited])).all(axis=1)
        assert counted.people[i] == inside.sum()
        assert counted.favourable[i] == (inside & crowd.favourable).sum()
