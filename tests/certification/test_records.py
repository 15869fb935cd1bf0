"""Records: what they hold, what they refuse, how they are read and joined."""

import numpy as np
import polars as pl
import pytest
from worlds import one_run, three_people

from edfa.acquisition import RandomBlanket
from edfa.certification import Records, certify, replay
from edfa.certification.simulate import simulate_records
from edfa.errors import ColumnError, DataError, EmptyTableError, MismatchError, SettingError


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        (
            {"loss": [1.5, 0, 0, 0, 0, 0]},
            DataError,
            "person 'a', seed 0, step 0: loss 1.5 lies outside",
        ),
        ({"loss": [-0.1, 0, 0, 0, 0, 0]}, DataError, r"outside \[0, 1\] at a legal step"),
        ({"loss": [np.nan, 0, 0, 0, 0, 0]}, DataError, "loss nan lies outside"),
        (
            {"signal": [0, 0, 0, np.nan, 0, 0]},
            DataError,
            "person 'b', seed 0, step 1: signal nan is no number",
        ),
        ({"signal": [0, 0, 0, np.inf, 0, 0]}, DataError, "is no number"),
        ({"spent": [0, -1, 0, 0, 0, 0]}, DataError, "is no cost"),
        ({"spent": [3, 1, 0, 0, 0, 0]}, DataError, "spent 1 is less than at the step before"),
        ({"step": [0, 0, 0, 1, 0, 1]}, DataError, "person 'a' has step 0 of seed 0 twice"),
        ({"person": ["a", "a", None, "b", "c", "c"]}, DataError, "row 2 names no person"),
        ({"seed": [0, 0]}, DataError, "seed has 2 rows, step has 6"),
        ({"legal": [1, 1, 1, 0, 0, 0]}, ColumnError, "legal holds int64 where bool is due"),
        ({"step": [0, 0.5, 0, 1, 0, 1]}, ColumnError, "step holds numbers that are not whole"),
        ({"signal": ["x"] * 6}, ColumnError, "signal holds"),
        ({"group": ["x", "y", "x", "x", "x", "x"]}, DataError, "person 'a' is in two groups"),
        ({"group": [None, None, "x", "x", "x", "x"]}, DataError, "person 'a' has no group"),
    ],
)
def test_bad_records_are_refused(columns, error, match):
    with pytest.raises(error, match=match):
        three_people(**columns)


def test_no_records():
    with pytest.raises(EmptyTableError, match="no records"):
        Records(*[[]] * 7)


def test_what_an_illegal_step_holds_is_not_read():
    empty = three_people(
        legal=[False, True] * 3,
        loss=[np.nan, 0, np.nan, 1, 9.0, 0],
        signal=[np.nan, 0.1, np.nan, 0.2, -1, 0.3],
    )
    filled = three_people(
        legal=[False, True] * 3, loss=[0, 0, 0, 1, 0, 0], signal=[0, 0.1, 0, 0.2, 0, 0.3]
    )
    assert certify(empty, 0.4, 0.4) == certify(filled, 0.4, 0.4)


def test_frames():
    data = simulate_records(4, seeds=2)
    again = Records.from_frame(pl.from_pandas(data.frame()))
    assert again.frame().equals(data.frame())
    assert certify(again) == certify(data)
    assert repr(data) == "Records(4 people, 8 runs, 48 steps)"
    single = one_run(simulate_records(50, seeds=4))
    assert repr(single) == "Records(50 people, 50 runs, 300 steps)"
    assert certify(single).method == "cp"
    with pytest.raises(SettingError, match="needs one run a person"):
        certify(simulate_records(50, seeds=4), bound="cp")


def test_string_and_integer_ids():
    data = simulate_records(200, seed=3, seeds=2)
    named = Records.from_frame(data.frame().assign(person=data.person.astype(str)))
    assert certify(named) == certify(data), "the order of bets is that of the written id"


def test_several_seeds_are_joined_and_strangers_are_not(german):
    policy = RandomBlanket(german.blanket)
    parts = [
        replay(german.find_plans(german.ask(german.table.calibration, policy, seed=seed)))
        for seed in range(3)
    ]
    assert len({part.advisor for part in parts}) == 1, "seeds vary by design"
    joined = Records.join(*parts)
    assert repr(joined).startswith("Records(200 people, 600 runs")
    assert certify(joined, 0.5).method == "wsr"
    assert certify(joined, 0.5).advisor == parts[0].advisor
    with pytest.raises(MismatchError, match=r"advisor is '.*' here and '.*' there"):
        Records.join(parts[0], replay(german.plans))
    with pytest.raises(MismatchError, match="signal_name is 'uncertainty' here and 'plan' there"):
        Records.join(replay(german.plans), replay(german.plans, signal="plan"))
    with pytest.raises(EmptyTableError, match="no records to join"):
        Records.join()
