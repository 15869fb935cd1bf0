"""What advisors are built on: shared sweeps, paths that end where nobody answers, strict batches,
single cells.
"""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from advisors import german, part_way
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa.advice.assessment import Assessment
from edfa.advice.standing import follow_policy
from edfa.data.partial import encode_partial
from edfa.errors import ColumnError, DataError, FactError
from edfa.explanation.necessity import sweep
from edfa.recourse import SEARCHERS


@pytest.fixture(scope="module")
def people():
    table = edfa.load("german")
    return part_way(german(), table.test.X)


def test_a_part_of_a_sweep_is_the_sweep_of_the_part(people):
    fitted = german().fitted
    whole = sweep(people, fitted.predictor, fitted.searcher.support_, fitted.background.visible)
    rows = np.flatnonzero(np.arange(len(people)) % 3 > 0)
    some = fitted.background.visible & (
        np.arange(people.shape[1]) != fitted.schema.index("duration")
    )
    for features in (fitted.background.visible, some, some & False):
        taken, made = (
            whole.take(rows, features),
            sweep(people[rows], fitted.predictor, fitted.searcher.support_, features),
        )
        assert np.array_equal(taken.necessity, made.necessity, equal_nan=True)
        assert np.array_equal(taken.decision, made.decision)
        assert np.array_equal(taken.probabilities, made.probabilities)
        for ours, theirs in zip(taken.groups, made.groups, strict=True):
            assert np.array_equal(ours.people, theirs.people)
            assert np.array_equal(ours.facts, theirs.facts)
            assert np.array_equal(ours.probabilities, theirs.probabilities)
    with pytest.raises(DataError, match="was not swept"):
        made.take(np.arange(len(rows)), fitted.background.visible)


@pytest.mark.parametrize("searcher", ["nearest", "nice", "dice"])
def test_people_who_were_swept_get_the_same_plans(searcher, people):
    fitted = german().fitted
    looking = SEARCHERS[searcher](fitted.train)
    background = edfa.Background.of(
        fitted.train, fitted.model, fitted.blanket, aligned=True, support=looking.support_
    )
    persons = edfa.People(people, background)
    for desired_class in (None, 1):
        plain = edfa.find_recourse(persons, looking, desired_class=desired_class)
        shared = edfa.find_recourse(persons.with_sweep(), looking, desired_class=desired_class)
        assert len(plain) > 0
        assert plain.frame().equals(shared.frame())
        assert dict(plain.reasons) == dict(shared.reasons)


def test_a_path_ends_where_nobody_answers():
    table, fitted = edfa.load("german"), german().fitted
    whole = edfa.acquire(table.test, fitted.policy, fitted.model, "inf")
    cut = table.test.X.copy()
    for i in range(len(cut)):
        cut[i, fitted.schema.index(whole.order(i)[1])] = np.nan
    relevant = np.where(fitted.relevant, cut, np.float32(np.nan))
    assess = partial(Assessment.of, fitted)
    path = follow_policy(assess(relevant), np.arange(len(cut)), assess)
    assert not path.missing_start.any()
    for i in range(len(cut)):
        known = ~np.isnan(path.X[path.person == i])
        assert known.sum(axis=1).tolist() == [
            fitted.background.start.sum(),
            fitted.background.start.sum() + 1,
        ]
        assert known[1, fitted.schema.index(whole.order(i)[0])]
        assert path.other_order[i] == (len(whole.order(i)) > 2)


def test_a_strict_batch_is_one_strict_person_after_the_other():
    table = edfa.load("adult", cap=600)
    frame = table.test.frame.astype(object).drop(columns="class")
    random = np.random.default_rng(0)
    frame = frame.where(random.random(frame.shape) < 0.7, None)
    frame.loc[3, "age"], frame.loc[5, "education"], frame.loc[8, "age"] = "old", "self-taught", 400
    for part in (frame, frame.infer_objects()):
        told = encode_partial(part, table.encoder, table.schema)
        for i, person in enumerate(part.to_dict("records")):
            facts = {k: v for k, v in person.items() if v is not None and v == v}
            if i in told.errors:
                with pytest.raises(FactError) as strict:
                    table.encoder.encode_person(facts)
                assert told.errors[i] == str(strict.value)
                assert np.isnan(told.X[i]).all()
            else:
                assert np.array_equal(told.X[i], table.encoder.encode_person(facts), equal_nan=True)
        assert set(told.errors) >= {3, 5, 8}
    with pytest.raises(ColumnError, match="none of the columns"):
        encode_partial(pd.DataFrame({"height": [1]}), table.encoder, table.schema)


@settings(deadline=None, max_examples=some(100))
@given(st.data())
def test_one_cell_is_decoded_as_in_a_column(data):
    name = data.draw(st.sampled_from(["german", "adult", "taiwan"]))
    table = _tables(name)
    column = data.draw(st.sampled_from(table.encoder.columns))
    codes = table.X[:, table.schema.index(column.name)]
    chosen = data.draw(st.lists(st.integers(0, len(codes) - 1), min_size=2, max_size=5))
    values = column.decode(codes[chosen])
    for code, value in zip(codes[chosen], values.tolist(), strict=True):
        one = table.encoder.decode_cells(column.name, [code])[0]
        assert one == value or (one is None and pd.isna(value))
        if one is not None:
            assert column.encode_one(one) == code


_KEPT = {}


def _tables(name):
    return _KEPT.setdefault(name, edfa.load(name, cap=500))
