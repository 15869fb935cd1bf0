"""Hostile tables through the Parquet and Dask sources: what memory says of them, or a typed error
where it has one.
"""

import os

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import some
from hostile.wide_frames import frames
from hypothesis import HealthCheck, given, settings

from edfa import Feature, Schema, Table, discover
from edfa.blanket.sources import DaskRows, ParquetRows
from edfa.blanket.sources.open import open_source
from edfa.errors import (
    ColumnError,
    DataError,
    EdfaError,
    EmptyTableError,
    SettingError,
    TargetError,
    UnreadableError,
)

ROWS = 60


def plain(n=ROWS, **columns):
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"v": random.normal(size=n), "w": random.choice(list("abc"), n)}).assign(
        **columns
    )
    return frame.assign(y=np.resize(["good", "bad"], n))


def schema_of(frame, **kinds):
    kinds = {"w": "categorical"} | kinds
    return Schema(
        tuple(Feature(n, kinds.get(n, "continuous")) for n in frame.columns if n != "y"),
        "y",
        "good",
    )


def of_memory(frame, schema):
    return open_source(Table.from_frame(frame, schema), None, None, False)[0]


def outcome(make):
    """The source, or the kind of its refusal. What is no error of edfa is raised."""
    try:
        return make()
    except EdfaError as error:
        return "refused", str(error)


def assert_same(mine, theirs):
    assert theirs.columns == mine.columns
    assert theirs.n == mine.n
    if len(mine.columns) < 2:
        return
    np.testing.assert_allclose(theirs.correlation().matrix, mine.correlation().matrix, atol=1e-9)
    left, right = (
        s.contingency_table(0, 1, tuple(range(2, len(mine.columns))), 5) for s in (mine, theirs)
    )
    assert left.n == right.n
    np.testing.assert_array_equal(left.pooled(), right.pooled())


@settings(
    max_examples=some(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(frames())
def test_hostile_frames_mean_the_same_or_are_refused_everywhere(tmp_path, drawn):
    frame, schema = drawn
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    memory = outcome(lambda: of_memory(pd.read_parquet(path), schema))
    for other in (
        outcome(lambda: ParquetRows(path, schema)),
        outcome(lambda: DaskRows(dd.from_pandas(pd.read_parquet(path), npartitions=2), schema)),
    ):
        if isinstance(memory, tuple) or isinstance(other, tuple):
            assert isinstance(other, tuple), memory[1]
            assert isinstance(memory, tuple), other[1]
        else:
            assert_same(memory, other)


@pytest.mark.parametrize(
    "name", ["v", "n", "raw", "count", "c0", "r1", 'a"b', "it's", "x;--", "*", "A\nB"]
)
def test_no_name_of_a_column_means_anything_to_the_database(name, tmp_path):
    frame = plain().rename(columns={"v": name, "w": "V" if name == "v" else "w2"})
    schema = schema_of(frame, **dict.fromkeys(("V", "w2"), "categorical"))
    frame.to_parquet(tmp_path / "rows.parquet")
    assert_same(of_memory(frame, schema), ParquetRows(tmp_path / "rows.parquet", schema))


@pytest.mark.parametrize(
    ("column", "error"),
    [
        ([np.inf, *[1.0] * (ROWS - 1)], "is infinite"),
        ([1e300, *[1.0] * (ROWS - 1)], "beyond 1e"),
        (["many", *["1"] * (ROWS - 1)], "'many'"),
        ([np.nan] * ROWS, "has no value in any row"),
        (pd.date_range("2020-01-01", periods=ROWS), "neither numbers nor words"),
        ([[1, 2]] * ROWS, "neither numbers nor words"),
        ([b"bytes"] * ROWS, "neither numbers nor words"),
    ],
)
def test_values_that_are_no_numbers_are_refused(column, error, tmp_path):
    frame = plain(v=column)
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ColumnError, match=error):
        ParquetRows(tmp_path / "rows.parquet", schema_of(frame))


def test_numbers_written_as_people_do_are_read_as_in_memory(tmp_path):
    frame = plain(v=np.resize(["€1,430", "45%", "2", "(200)", "1e3"], ROWS))
    frame.to_parquet(tmp_path / "rows.parquet")
    assert_same(
        of_memory(frame, schema_of(frame)), ParquetRows(tmp_path / "rows.parquet", schema_of(frame))
    )


@pytest.mark.parametrize(
    "name", ["a*.parquet", "a?.parquet", "[ab].parquet", "[.parquet", "it's.parquet", "{a}.parquet"]
)
def test_a_file_that_is_there_is_no_pattern(name, tmp_path):
    frame = plain()
    frame.to_parquet(tmp_path / name)
    for other in ("a.parquet", "ab.parquet", "axx.parquet", "b.parquet"):
        frame.to_parquet(tmp_path / other)
    assert ParquetRows(tmp_path / name, schema_of(frame)).n == ROWS


def test_a_folder_and_a_pattern_are_all_their_files(tmp_path):
    frame = plain()
    folder = tmp_path / "y=1"  # no column is made of a folder's name
    folder.mkdir()
    for i in range(3):
        frame.iloc[i::3].to_parquet(folder / f"part-{i}.parquet")
    (folder / "notes.txt").write_text("no table")
    memory = of_memory(frame, schema_of(frame))
    for path in (folder, folder / "part-*.parquet"):
        assert_same(memory, ParquetRows(path, schema_of(frame)))


def test_what_is_no_file_is_refused(tmp_path):
    frame, schema = plain(), schema_of(plain())
    frame.to_parquet(tmp_path / "rows.parquet")
    (tmp_path / "none").mkdir()
    whole = (tmp_path / "rows.parquet").read_bytes()
    for name, content in {
        "empty": b"",
        "junk": os.urandom(3000),
        "half": whole[: len(whole) // 2],
    }.items():
        (tmp_path / f"{name}.parquet").write_bytes(content)
        with pytest.raises(UnreadableError, match=r"not a whole Parquet file"):
            ParquetRows(tmp_path / f"{name}.parquet", schema)
    with pytest.raises(UnreadableError, match=r"did you mean 'rows.parquet'"):
        ParquetRows(tmp_path / "row.parquet", schema)
    for path in (
        tmp_path / "none",
        tmp_path / "x*.parquet",
        "http://localhost/x.parquet",
        "a\0b",
        "x" * 5000,
    ):
        with pytest.raises(UnreadableError):
            ParquetRows(path, schema)
    with pytest.raises(SettingError, match="memory"):
        ParquetRows(tmp_path / "rows.parquet", schema, memory="much")


def test_flipped_bits_in_a_file_never_end_in_another_error(tmp_path):
    frame, schema = plain(), schema_of(plain())
    frame.to_parquet(tmp_path / "rows.parquet")
    whole, random = (tmp_path / "rows.parquet").read_bytes(), np.random.default_rng(0)
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[random.integers(len(damaged))] ^= 1 << random.integers(8)
        (tmp_path / "bad.parquet").write_bytes(bytes(damaged))
        outcome(lambda: ParquetRows(tmp_path / "bad.parquet", schema).correlation())


def test_files_that_do_not_fit_each_other_are_refused(tmp_path):
    frame, schema = plain(), schema_of(plain())
    frame.to_parquet(tmp_path / "a.parquet")
    frame.assign(v=["word"] * ROWS).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError):
        ParquetRows(tmp_path, schema).correlation()


def test_doubled_columns_and_no_rows_are_refused(tmp_path):
    frame = plain()
    arrays = [
        pa.array(frame["v"]),
        pa.array(frame["v"]),
        pa.array(frame["w"]),
        pa.array(frame["y"]),
    ]
    pq.write_table(
        pa.Table.from_arrays(arrays, names=["v", "v", "w", "y"]), tmp_path / "twice.parquet"
    )
    with pytest.raises(ColumnError, match="'v' appears 2 times"):
        ParquetRows(tmp_path / "twice.parquet", schema_of(frame))
    frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    with pytest.raises(EmptyTableError):
        ParquetRows(tmp_path / "none.parquet", schema_of(frame))
    with pytest.raises(SettingError, match="a Dask frame is needed"):
        DaskRows(frame, schema_of(frame))


@pytest.mark.parametrize("label", [None, "other"])
def test_the_outcome_is_checked_as_in_memory(label, tmp_path):
    frame = plain()
    frame.loc[5, "y"] = label
    frame.to_parquet(tmp_path / "rows.parquet")
    for make in (
        lambda: of_memory(frame, schema_of(frame)),
        lambda: ParquetRows(tmp_path / "rows.parquet", schema_of(frame)),
        lambda: DaskRows(dd.from_pandas(frame, npartitions=2), schema_of(frame)),
    ):
        with pytest.raises(TargetError, match="'y'"):
            make()


def test_partitions_that_hold_other_values_mean_the_same():
    codes = np.repeat(
        [1.0, 2.0, 2.5], ROWS // 3
    )  # whole in the first partitions: no "1" there and "1.0" elsewhere
    frame = plain(w=codes)
    schema = schema_of(frame)
    assert_same(
        of_memory(frame, schema), DaskRows(dd.from_pandas(frame, npartitions=3, sort=False), schema)
    )


def test_more_terms_than_fit_are_refused_by_number(tmp_path):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(40, 900)), columns=[f"x{i}" for i in range(900)])
    frame["y"] = np.resize(["good", "bad"], 40)
    frame.to_parquet(tmp_path / "rows.parquet")
    source = DaskRows(dd.from_pandas(frame, npartitions=1), schema_of(frame))
    with pytest.raises(
        DataError, match=r"901 columns have 7,\d+ terms .* 6,000 fit: about 7\d\d columns"
    ):
        discover(source)
