"""Bad input is a typed error in one line, before any work is spent."""

import numpy as np
import pandas as pd
import pytest

from edfa import Feature, Schema, Table
from edfa.data.read import read_frame
from edfa.errors import (
    ColumnError,
    DataError,
    EmptyTableError,
    SchemaError,
    SettingError,
    TargetError,
    UnreadableError,
)

SCHEMA = Schema((Feature("age", "continuous"), Feature("home", "categorical")), "class", "good")


def people(n=12, **columns):
    base = {
        "age": np.arange(20, 20 + n),
        "home": ["own", "rent", "free"] * (n // 3),
        "class": ["good", "bad"] * (n // 2),
    }
    return pd.DataFrame(base | columns)


def one_line(caught):
    assert "\n" not in str(caught.value)


BAD_FRAMES = [
    ("no rows", people().iloc[:0], EmptyTableError, "no rows"),
    (
        "constant target",
        people(**{"class": "good"}),
        TargetError,
        "'class' is constant: every row is 'good'",
    ),
    (
        "three classes",
        people(**{"class": ["good", "bad", "odd"] * 4}),
        TargetError,
        "3 classes .* where two are needed",
    ),
    (
        "target with gaps",
        people(**{"class": ["good", "bad", None] * 4}),
        TargetError,
        "missing in 4 of 12 rows",
    ),
    (
        "one row of a class",
        people(**{"class": ["bad"] + ["good"] * 11}),
        TargetError,
        "class 'bad' .* three rows .* not 1",
    ),
    ("favourable never", people(**{"class": ["fine", "bad"] * 6}), TargetError, "never is 'good'"),
    ("column of lists", people(home=[["own"]] * 12), ColumnError, "'home' holds a list in row 0"),
    ("column of dicts", people(home=[{}] * 12), ColumnError, "'home' holds a dict"),
    (
        "absent column",
        people().rename(columns={"home": "hmoe"}),
        ColumnError,
        "no column 'home'; did you mean 'hmoe'",
    ),
    (
        "absent target",
        people().rename(columns={"class": "klass"}),
        ColumnError,
        "did you mean 'klass'",
    ),
    (
        "word among numbers",
        people(age=["20"] * 11 + ["old"]),
        ColumnError,
        "'age' is continuous, but row 11 says 'old'",
    ),
    ("infinite", people(age=[1.0] * 11 + [np.inf]), ColumnError, "'age' is infinite in row 11"),
    ("nothing known", people(home=None), ColumnError, "'home' has no value in any row"),
    ("dates", people(age=pd.date_range("2020", periods=12)), ColumnError, "'age' holds dates"),
    ("not a frame", {"age": [1]}, DataError, "a data frame is needed .* not dict"),
]


@pytest.mark.parametrize(
    ("frame", "error", "message"), [b[1:] for b in BAD_FRAMES], ids=[b[0] for b in BAD_FRAMES]
)
def test_a_bad_frame(frame, error, message):
    with pytest.raises(error, match=message) as caught:
        Table.from_frame(frame, SCHEMA)
    one_line(caught)


def test_duplicate_columns():
    frame = people()
    frame.insert(0, "home", "own", allow_duplicates=True)
    with pytest.raises(ColumnError, match="column 'home' appears 2 times"):
        Table.from_frame(frame, SCHEMA)


def test_levels_the_card_does_not_know():
    schema = Schema((Feature("home", "categorical", levels=("own", "rent")),), "class", "good")
    with pytest.raises(ColumnError, match=r"'home': the card knows no level 'free' \(row 2\)"):
        Table.from_frame(people(), schema)


def test_classes_and_merges_the_card_does_not_know():
    named = Schema(SCHEMA.features, "class", "good", classes=("good", "bad"))
    with pytest.raises(TargetError, match="the card knows no class 'odd'"):
        Table.from_frame(people(**{"class": ["good", "bad", "odd"] * 4}), named)
    merged = Schema(SCHEMA.features, "class", "good", merge={"good": "good", "ok": "good"})
    with pytest.raises(TargetError, match="the card merges no label 'bad'"):
        Table.from_frame(people(), merged)


def test_three_classes_are_fine_once_the_card_lists_them():
    frame = people(**{"class": ["good", "bad", "odd"] * 4})
    schema = Schema(SCHEMA.features, "class", "good", classes=("odd", "bad", "good"))
    assert Table.from_frame(frame, schema).y[:3].tolist() == [2, 1, 0]


def test_a_word_for_missing_is_missing_once_the_card_says_so():
    frame = people(age=["NA", *map(str, range(11))])
    schema = Schema(SCHEMA.features, "class", "good", missing=("NA",))
    table = Table.from_frame(frame, schema)
    assert table.frame["age"].isna().tolist() == [True] + [False] * 11


BAD_FILES = [
    ("empty.csv", b"", EmptyTableError, "empty.csv is empty"),
    ("header.csv", b"age,home,class\n", EmptyTableError, "no rows"),
    (
        "twice.csv",
        b"age,age,class\n1,2,good\n",
        ColumnError,
        "twice.csv line 1: column 'age' appears 2 times",
    ),
    (
        "latin.csv",
        "age,home,class\n1,öwn,good\n".encode("latin-1"),
        UnreadableError,
        "not UTF-8 .*encoding='latin-1'",
    ),
    (
        "ragged.csv",
        b"age,home,class\n1,own,good\n1,own,good,5,6\n",
        UnreadableError,
        "line 3: 5 fields",
    ),
    ("semicolon.csv", b"age;home;class\n1;own;good\n", UnreadableError, "separator=';'"),
    ("torn.csv.gz", b"\x1f\x8b\x08\x00garbage", UnreadableError, "cannot be read as CSV"),
    ("text.parquet", b"PAR1 this is no parquet", UnreadableError, "not a whole Parquet file"),
    ("empty.parquet", b"", UnreadableError, "not a whole Parquet file"),
    ("table.xlsx", b"PK", UnreadableError, "a table is a .csv or a .parquet file"),
]


@pytest.mark.parametrize(
    ("name", "content", "error", "message"), BAD_FILES, ids=[b[0] for b in BAD_FILES]
)
def test_a_bad_file(tmp_path, name, content, error, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        Table.from_frame(read_frame(tmp_path / name), SCHEMA)
    one_line(caught)


def test_a_parquet_that_is_cut_off(tmp_path):
    path = tmp_path / "cut.parquet"
    people(300).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UnreadableError, match=r"cut.parquet is not a whole Parquet file"):
        Table.from_parquet(path, SCHEMA)


def test_a_file_that_is_not_there_is_answered_with_the_nearest(tmp_path):
    (tmp_path / "people.csv").write_text("a\n1\n")
    with pytest.raises(UnreadableError, match=r"did you mean 'people.csv'"):
        read_frame(tmp_path / "peple.csv")


def test_another_encoding_and_separator_can_be_named(tmp_path):
    path = tmp_path / "people.csv"
    people(home=["öwn", "rent"] * 6).to_csv(path, sep=";", index=False, encoding="latin-1")
    table = Table.from_csv(path, SCHEMA, encoding="latin-1", separator=";")
    assert set(table.frame["home"]) == {"öwn", "rent"}


@pytest.mark.parametrize(
    "shares", [(0.5, 0.5, 0.5), (1.2, -0.1, -0.1), (0.0, 0.5, 0.5), (0.5, 0.5)]
)
def test_shares_that_are_none(shares):
    with pytest.raises(SettingError, match="shares must be three parts of 1"):
        Table.from_frame(people(), SCHEMA, shares=shares)


def test_a_part_without_rows_says_why():
    table = Table.from_frame(people(), SCHEMA, shares=(0.5, 0.0, 0.5))
    with pytest.raises(
        EmptyTableError, match="calibration part of 'table' is empty; its share is 0"
    ):
        _ = table.calibration
    with pytest.raises(DataError, match=r"this is the train part .* already"):
        _ = table.train.test


def test_a_cap_too_small_for_the_classes():
    with pytest.raises(
        SettingError, match="a cap of 5 rows cannot hold three of each of the 2 classes"
    ):
        Table.from_frame(people(), SCHEMA, cap=5)


def test_a_card_can_be_named_by_its_path(tmp_path):
    SCHEMA.write(tmp_path / "card.toml")
    assert len(Table.from_frame(people(), tmp_path / "card.toml")) == 12
    (tmp_path / "card.toml").write_text("[target]\nname = 1\n")
    with pytest.raises(SchemaError, match=r"card.toml: target"):
        Table.from_frame(people(), tmp_path / "card.toml")
