"""The one batch: checked when it is made, everything about it worked out once, and the same with or
without a sweep.
"""

from dataclasses import replace

import numpy as np
import pytest

import edfa
from edfa.errors import DataError, MismatchError, UnknownNameError
from edfa.people import Background, People

TABLE = edfa.load("german")
MODEL = edfa.SubsetXGB(n_estimators=15).fit(TABLE.train.X, TABLE.train.y)
BLANKET = edfa.Blanket("class", {"checking_status": (), "duration": ("credit_amount",)})


@pytest.fixture(scope="module")
def people():
    """Fifty people, a third of whose facts are not known."""
    hidden = np.random.default_rng(0).random((50, len(TABLE.schema))) < 0.33
    rows = np.where(hidden, np.float32(np.nan), TABLE.test.X[:50])
    return People(rows, Background.of(TABLE.train, MODEL, BLANKET, aligned=True))


def test_a_sweep_says_what_the_model_says(people):
    swept = people.with_sweep()
    assert swept.swept is not None
    assert np.array_equal(people.probabilities, swept.probabilities)
    assert np.array_equal(people.decision, swept.decision)
    assert np.array_equal(people.partition.counterfactual, swept.partition.counterfactual)
    assert swept.with_sweep() is swept


def test_what_is_not_seen_changes_nothing(people):
    other = people.X.copy()
    other[:, ~people.background.visible] = np.nan
    assert np.array_equal(People(other, people.background).probabilities, people.probabilities)


def test_some_of_the_people_are_the_same_people(people):
    rows = np.array([7, 3, 40])
    swept = people.with_sweep().take(rows)
    assert np.array_equal(swept.X, people.X[rows], equal_nan=True)
    assert np.array_equal(swept.person, rows)
    assert np.array_equal(swept.decision, people.decision[rows])
    assert np.array_equal(swept.sweep.necessity, people.sweep.necessity[rows], equal_nan=True)


def test_what_may_be_asked_is_what_is_not_known_unless_said(people):
    assert np.array_equal(people.askable, np.isnan(people.X))
    assert np.array_equal(people.costs, np.broadcast_to(TABLE.schema.costs, people.X.shape))
    closed = replace(people, askable=np.zeros_like(people.askable))
    assert (edfa.EDFA(BLANKET).next(closed) == -1).all()
    assert not (replace(people, askable=np.ones_like(people.askable)).askable & people.known).any()


def test_a_class_is_a_name_or_a_code_at_the_edge_and_a_code_inside(people):
    background = people.background
    assert [background.class_code(name) for name in ("bad", "good", 0, 1, None)] == [
        0,
        1,
        0,
        1,
        None,
    ]
    with pytest.raises(UnknownNameError, match="no class named 'god'; did you mean 'good'"):
        background.class_code("god")
    with pytest.raises(UnknownNameError, match="no class named '2'"):
        background.class_code(2)
    plans = [
        edfa.find_recourse(people, edfa.Nearest(TABLE.train), desired_class=c) for c in ("good", 1)
    ]
    assert plans[0].frame().equals(plans[1].frame())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"X": np.zeros((2, 3))}, "rows of 20 features; X has the shape"),
        ({"X": np.full((2, 20), np.inf)}, "infinite"),
        ({"person": np.arange(3)}, "person has 3 numbers for 2 people"),
        ({"spent": np.arange(3.0)}, "spent has 3 numbers for 2 people"),
        ({"askable": np.ones(3)}, "askable must be of shape"),
    ],
)
def test_what_does_not_fit_is_refused(wrong, message):
    right = {"X": TABLE.test.X[:2], "background": Background.of(TABLE.train, MODEL)}
    with pytest.raises(DataError, match=message):
        People(**right | wrong)


def test_a_model_of_other_classes_is_refused():
    labels = np.where(TABLE.train.y == 1, 7, 3)
    other = edfa.SubsetXGB(n_estimators=5).fit(TABLE.train.X, labels)
    with pytest.raises(MismatchError, match=r"knows the classes \[3, 7\]"):
        Background.of(TABLE.train, other)


def test_a_background_without_training_rows_says_so():
    bare = Background(TABLE.schema, TABLE.encoder)
    with pytest.raises(DataError, match="have no model"):
        _ = People(TABLE.test.X[:2], bare).probabilities
    with pytest.raises(DataError, match="without training rows"):
        _ = Background(TABLE.schema, TABLE.encoder, MODEL).support
