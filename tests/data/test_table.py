import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import Feature, Schema, Table

SCHEMA = Schema((Feature("x", "continuous"), Feature("c", "categorical")), "y", "good")


def frame_of(good, bad):
    n = good + bad
    return pd.DataFrame(
        {
            "x": np.arange(n, dtype=float),
            "c": ["a", "b"] * (n // 2) + ["a"] * (n % 2),
            "y": ["good"] * good + ["bad"] * bad,
        }
    )


@given(good=st.integers(3, 60), bad=st.integers(3, 60), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=some(60))
def test_the_split_is_stratified_complete_and_disjoint(good, bad, seed):
    table = Table.from_frame(frame_of(good, bad), SCHEMA, seed=seed)
    parts = [table.train, table.calibration, table.test]
    assert sorted(x for part in parts for x in part.frame["x"]) == list(range(good + bad))
    for part, share in zip(parts, table.shares, strict=True):
        for label, count in (("good", good), ("bad", bad)):
            rows = (part.frame["y"] == label).sum()
            assert rows >= 1
            assert abs(rows - share * count) <= 1 or count < 5


def test_the_split_depends_on_the_seed_and_nothing_else():
    one, again, other = (edfa.load("german", seed=s) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one.test.frame, again.test.frame)
    assert not one.test.frame.equals(other.test.frame)
    pd.testing.assert_frame_equal(one.split(2).test.frame, other.test.frame)


def test_a_cap_keeps_the_classes_in_proportion():
    table = edfa.load("adult", cap=5000)
    whole = edfa.load("adult")
    assert len(table) == 5000
    assert (table.y == 1).sum() == round(5000 * (whole.y == 1).mean())
    assert len(edfa.load("german", cap=50_000)) == 1000


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_polars_and_pyarrow_frames_are_welcome(convert):
    frame = frame_of(8, 6)
    frame.loc[2, "c"] = None
    ours = Table.from_frame(convert(frame), SCHEMA)
    pd.testing.assert_frame_equal(ours.frame, Table.from_frame(frame, SCHEMA).frame)


def test_csv_and_parquet_give_the_same_table(tmp_path):
    table = edfa.load("german")
    table.frame.to_csv(tmp_path / "g.csv", index=False)
    table.frame.to_parquet(tmp_path / "g.parquet")
    from_csv = Table.from_csv(tmp_path / "g.csv", table.schema)
    from_parquet = Table.from_parquet(tmp_path / "g.parquet", table.schema)
    assert from_csv.name == from_parquet.name == "g"
    pd.testing.assert_frame_equal(from_csv.frame, from_parquet.frame)
    pd.testing.assert_frame_equal(from_csv.frame, table.frame)


def test_none_in_a_csv_is_a_word_not_a_gap(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text(
        "x,c,y\n"
        + "".join(
            f"{i},{'None' if i % 2 else 'NA'},{'good' if i % 3 else 'bad'}\n" for i in range(12)
        )
    )
    assert set(Table.from_csv(path, SCHEMA).frame["c"]) == {"None", "NA"}


def test_codes_follow_the_cards_classes():
    table = Table.from_frame(frame_of(4, 4), SCHEMA)
    assert table.schema.classes == ("bad", "good")
    assert table.y.tolist() == [1] * 4 + [0] * 4
    turned = Schema(SCHEMA.features, "y", "good", classes=("good", "bad"))
    assert Table.from_frame(frame_of(4, 4), turned).y.tolist() == [0] * 4 + [1] * 4


def test_whole_numbers_are_the_same_word_however_they_are_stored():
    frame = frame_of(6, 6).assign(c=[1, 2] * 6)
    as_float = frame.assign(c=frame["c"].astype(float))
    as_float.loc[0, "c"] = np.nan
    assert set(Table.from_frame(frame, SCHEMA).frame["c"]) == {"1", "2"}
    assert set(Table.from_frame(as_float, SCHEMA).frame["c"].dropna()) == {"1", "2"}
    assert Table.from_frame(as_float, SCHEMA).frame["c"].isna().tolist() == [True] + [False] * 11
    as_bool = frame.assign(c=[True, False] * 6)
    assert set(Table.from_frame(as_bool, SCHEMA).frame["c"]) == {"True", "False"}


def test_the_encoder_is_fitted_on_the_training_part_alone():
    frame = frame_of(40, 40)
    table = Table.from_frame(frame, SCHEMA)
    held_out = table.test.frame["x"].to_numpy(int)
    poisoned = frame.copy()
    poisoned.loc[held_out, "x"] = 1e9
    poisoned.loc[held_out, "c"] = "never seen"
    again = Table.from_frame(poisoned, SCHEMA)
    assert again.encoder == table.encoder
    np.testing.assert_array_equal(again.train.X, table.train.X)
    assert np.isfinite(again.test.X).all()


def test_parts_share_one_encoder_and_have_no_nan(load_real):
    table = load_real("heloc")
    for part in (table.train, table.calibration, table.test):
        assert part.encoder is table.encoder
        assert part.X.dtype == np.float32
        assert np.isfinite(part.X).all()
        assert part.X.shape == (len(part), 22)


def test_the_callers_frame_is_left_alone():
    frame = frame_of(5, 5)
    before = frame.copy()
    _ = Table.from_frame(frame, SCHEMA).train.X
    pd.testing.assert_frame_equal(frame, before)


def test_it_describes_itself():
    table = edfa.load("german")
    assert repr(table.test) == "<Table german (test): 200 rows, 20 features, target 'class'>"
    described = table.describe()
    assert described.loc["age", "values"] == "19 to 75"
    assert described.loc["own_telephone", "distinct"] == 2
    assert "checking_status" in table._repr_html_()
