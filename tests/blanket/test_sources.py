"""DuckDB and Dask give what memory gives, on the same rows."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import edfa
from edfa import Feature, Schema, Table, discover
from edfa.blanket.contingency import g2, x2mm
from edfa.blanket.sources import DaskRows, ParquetRows
from edfa.blanket.sources.open import open_source
from edfa.errors import ColumnError, DataError, EmptyTableError, TargetError, UnreadableError


def odd_table(n=1200):
    """Gaps, codes, ordinal words, awkward names, zeros, booleans, merged classes."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a 'quoted\" name": random.choice(["x", "y's", 'z"'], n),
            "ordinal": random.choice(list("abcdefgh"), n),
            "short": random.integers(1, 4, n),
            "amount": np.where(random.random(n) < 0.5, 0.0, random.lognormal(3, 1, n)),
            "flag": random.random(n) < 0.3,
            "coded": random.choice([-9, -8, 0, 1, 2, 3, 4, 5, 6, 7, 8], n).astype(float),
            "outcome": random.choice(["NO", ">30", "<30"], n),
        }
    )
    frame.loc[::7, "amount"] = np.nan
    frame.loc[::11, "a 'quoted\" name"] = None
    schema = Schema(
        (
            Feature("a 'quoted\" name", "categorical"),
            Feature("ordinal", "ordinal", levels=tuple("abcdefgh")),
            Feature("short", "ordinal"),
            Feature("amount", "continuous"),
            Feature("flag", "categorical"),
            Feature("coded", "continuous", codes={"-9": "none", "-8": "other"}),
        ),
        "outcome",
        "back",
        merge={"NO": "away", ">30": "back", "<30": "back"},
    )
    return frame, schema


def sources(frame, schema, tmp_path):
    path = tmp_path / "it's rows.parquet"
    frame.to_parquet(path)
    memory = open_source(Table.from_frame(frame, schema), None, None, False)[0]
    return memory, ParquetRows(path, schema), DaskRows(dd.from_pandas(frame, npartitions=3), schema)


@pytest.mark.parametrize("name", ["odd", "german", "heloc"])
def test_columns_cells_and_correlations_are_the_same(name, tmp_path, load_real):
    if name == "odd":
        frame, schema = odd_table()
    else:
        table = load_real(name, cap=900)
        frame, schema = table.frame, table.schema
    memory, *others = sources(frame, schema, tmp_path)
    random = np.random.default_rng(1)
    questions = [
        tuple(random.permutation(len(memory.columns))[: random.integers(2, 6)].tolist())
        for _ in range(12)
    ]
    for other in others:
        assert other.columns == memory.columns
        assert other.n == memory.n
        np.testing.assert_allclose(
            other.correlation().matrix, memory.correlation().matrix, atol=1e-10
        )
        for x, y, *given in questions:
            for bins in (5, 8):
                mine, theirs = (
                    s.contingency_table(x, y, tuple(given), bins) for s in (memory, other)
                )
                assert theirs.n == mine.n
                assert theirs.possible_cells == pytest.approx(mine.possible_cells)
                for test in (g2, x2mm):
                    left, right = test(mine), test(theirs)
                    numbers = [left.p, left.statistic, left.dof, left.effect]
                    assert [right.p, right.statistic, right.dof, right.effect] == pytest.approx(
                        numbers, rel=1e-9, abs=1e-9
                    )
                    assert right.reliable == left.reliable


@pytest.mark.parametrize("name", ["german", "gmsc"])
def test_the_same_blanket_from_everywhere(name, tmp_path, load_real):
    table = load_real(name, cap=1000)
    memory, parquet, cluster = sources(table.frame, table.schema, tmp_path)
    expected = discover(table)
    for source in (memory, parquet, cluster):
        blanket = discover(source, target=table.schema.target)
        assert blanket.units == expected.units
        assert blanket.n == expected.n


def test_several_files_are_one_table(tmp_path):
    table = edfa.load("german")
    for i in range(4):
        table.frame.iloc[i::4].to_parquet(tmp_path / f"part-{i}.parquet")
    blanket = discover(ParquetRows(tmp_path / "part-*.parquet", table.schema))
    assert blanket.n == 1000
    assert blanket.units == discover(table).units


def test_too_little_memory_is_said(tmp_path):
    rows = 400_000
    frame = pd.DataFrame(
        {"x": np.random.default_rng(0).random(rows), "y": np.resize(["good", "bad"], rows)}
    )
    frame.to_parquet(tmp_path / "wide.parquet")
    schema = Schema((Feature("x", "continuous"),), "y", "good")
    with pytest.raises(DataError, match=r"needs more than 2MB for this table; pass memory='2GB'"):
        ParquetRows(tmp_path / "wide.parquet", schema, memory="2MB")


def test_bad_sources(tmp_path):
    frame, schema = odd_table(60)
    with pytest.raises(UnreadableError, match="there is no file"):
        ParquetRows(tmp_path / "none.parquet", schema)
    frame.drop(columns="amount").to_parquet(tmp_path / "less.parquet")
    with pytest.raises(ColumnError, match="has no column 'amount'"):
        ParquetRows(tmp_path / "less.parquet", schema)
    with pytest.raises(ColumnError, match="has no column 'amount'"):
        DaskRows(dd.from_pandas(frame.drop(columns="amount"), npartitions=2), schema)
    frame.to_parquet(tmp_path / "all.parquet")
    with pytest.raises(TargetError, match="'amount' is continuous"):
        discover(ParquetRows(tmp_path / "all.parquet", schema), target="amount")


def test_what_is_wrong_with_a_table_is_wrong_with_it_elsewhere(tmp_path):
    frame, schema = odd_table(60)

    def everywhere(rows):
        rows.to_parquet(tmp_path / "rows.parquet")
        return ParquetRows(tmp_path / "rows.parquet", schema), DaskRows(
            dd.from_pandas(rows, npartitions=2), schema
        )

    frame.assign(outcome="NO").to_parquet(tmp_path / "constant.parquet")
    with pytest.raises(TargetError, match="'outcome' is constant"):
        ParquetRows(tmp_path / "constant.parquet", schema)
    with pytest.raises(TargetError, match="'outcome' is constant"):
        DaskRows(dd.from_pandas(frame.assign(outcome="NO"), npartitions=2), schema)
    for source in everywhere(frame.iloc[:29]):
        with pytest.raises(EmptyTableError, match=r"29 rows are too few .* 30 are needed"):
            discover(source)
    for source in everywhere(frame.assign(amount=1.0, short=2)):
        assert discover(source).left_out == ("amount", "short")
