"""Frames for a model: the values of ``decode`` and ``astype``, whatever is remembered."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st

from edfa import Feature, Schema
from edfa.data import Encoder
from edfa.errors import ColumnError, DataError
from edfa.predictors.user_model import frames as module
from edfa.predictors.user_model.frames import FrameMaker, cast_frame

SCHEMA = Schema(
    (
        Feature("debt", "continuous", codes={"-9": "no record"}),
        Feature("age", "continuous"),
        Feature("rank", "ordinal"),
        Feature("grade", "ordinal", levels=("low", "mid", "high")),
        Feature("home", "categorical"),
    ),
    "y",
    "good",
)
PLAIN = {"debt": "float32", "age": "int64", "rank": "float64", "grade": object, "home": "str"}
CATEGORIES = {
    "grade": pd.CategoricalDtype(["low", "mid", "high"], ordered=True),
    "home": pd.CategoricalDtype(["rent", "boat", "own"]),
    "rank": pd.CategoricalDtype([3, 1, 2, 4]),
    "debt": object,
    "y": "str",
}


def gap_or(values):
    return st.one_of(st.none(), values)


people = st.lists(
    st.fixed_dictionaries(
        {
            "debt": gap_or(st.one_of(st.integers(0, 400).map(lambda i: i / 4), st.just(-9.0))),
            "age": st.integers(18, 90),
            "rank": gap_or(st.integers(1, 4)),
            "grade": gap_or(st.sampled_from(["low", "mid", "high"])),
            "home": gap_or(st.sampled_from(["rent", "own"])),
        }
    ),
    min_size=3,
    max_size=25,
)


def as_frame(rows):
    frame = pd.DataFrame(rows, columns=list(SCHEMA.names))
    types = {"debt": float, "age": "int64", "rank": float, "grade": "str", "home": "str"}
    known = {
        "rank": 1.0,
        "grade": "low",
        "home": "own",
    }  # each column says something in one row at least
    frame.loc[len(frame)] = {"debt": 1.0, "age": 20, **known}
    return frame.astype(types)


def expected(encoder, X, columns, dtypes):  # noqa: N803
    frame = encoder.decode(X)[list(columns)]
    return frame.astype({name: dtype for name, dtype in (dtypes or {}).items() if name in frame})


@pytest.mark.parametrize("dtypes", [None, PLAIN, CATEGORIES])
@given(rows=people, data=st.data())
@settings(max_examples=some(40), deadline=None)
def test_the_values_are_those_of_decode_and_astype(dtypes, rows, data):
    frame = as_frame(rows)
    encoder = Encoder.fit(frame, SCHEMA)
    X = encoder.encode(frame)  # noqa: N806
    columns = data.draw(st.permutations(SCHEMA.names))[: data.draw(st.integers(1, 5))]
    maker = FrameMaker(encoder, columns, dtypes)
    for _ in range(3):  # the second and third time partly from memory
        part = X[data.draw(st.lists(st.integers(0, len(X) - 1), max_size=12))]
        pd.testing.assert_frame_equal(
            maker.frame(part), expected(encoder, part, columns, dtypes), check_column_type=False
        )
    pd.testing.assert_frame_equal(
        maker.frame(X), expected(encoder, X, columns, dtypes), check_column_type=False
    )


@pytest.mark.parametrize("name", ["german", "adult", "heloc"])
def test_real_tables(name, load_real):
    table = load_real(name)
    X, names = table.train.X[:3000], table.encoder.names  # noqa: N806
    decoded = table.encoder.decode(X)
    as_categories = decoded.astype({n: "category" for n in names if decoded[n].dtype == "str"})
    pd.testing.assert_frame_equal(FrameMaker(table.encoder, names).frame(X), decoded)
    pd.testing.assert_frame_equal(
        FrameMaker(table.encoder, names, as_categories.dtypes).frame(X), as_categories
    )


def maker_of(values, feature, dtype, column="x"):
    encoder = Encoder.fit(pd.DataFrame({"x": values}), Schema((feature,), "y", "good"))
    return FrameMaker(encoder, (column,), None if dtype is None else {"x": dtype}), encoder


def ask(values, feature, dtype):
    maker, encoder = maker_of(values, feature, dtype)
    return maker.frame(encoder.encode(pd.DataFrame({"x": values})))["x"]


HOME, SIZE = Feature("x", "categorical"), Feature("x", "continuous")


def test_a_truly_missing_value_stays_missing():
    made = ask(["own", None, "rent"], HOME, pd.CategoricalDtype(["rent", "own"]))
    assert made.cat.codes.tolist() == [1, -1, 0]
    assert ask([1.0, None, 2.5], SIZE, "float32").isna().tolist() == [False, True, False]
    assert ask([1, None, 2], SIZE, "Int64").tolist() == [1, pd.NA, 2]


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_a_gap_where_the_data_type_has_none(dtype):
    with pytest.raises(
        DataError,
        match=f"'x' is missing in some row, and the model's data type {dtype} has no such",
    ):
        ask([1, None, 0], SIZE, dtype)


@pytest.mark.parametrize(
    ("values", "feature", "dtype", "shown"),
    [
        ([1, 300], SIZE, "int8", "300"),
        ([1, -2], SIZE, "uint16", "-2"),
        ([0, 2], SIZE, "bool", "2"),
        (["own", "rent"], HOME, "bool", "'own'"),
        (["own", "rent"], HOME, "float64", "'own'"),
    ],
)
def test_a_value_that_the_data_type_cannot_hold(values, feature, dtype, shown):
    with pytest.raises(
        DataError, match=f"column 'x': .*{shown}.* does not fit the model's data type {dtype}"
    ):
        ask(values, feature, dtype)


@pytest.mark.parametrize(
    ("raw", "dtype"),
    [
        ([True, False, True], "bool"),
        ([True, False, True], pd.CategoricalDtype([False, True])),
        ([3, 1, 2], pd.CategoricalDtype([1, 2, 3])),
        ([3.5, 1.0, 2.0], pd.CategoricalDtype([1.0, 2.0, 3.5])),
        ([3, 1, 2], "int64"),
    ],
)
def test_words_of_the_card_are_the_models_own_numbers_and_truth_values_again(raw, dtype):
    """A categorical column is read as words, whatever it held: the model gets what it was fitted
    on.
    """
    made = ask(
        pd.Series(raw).astype(object).map(str if isinstance(raw[0], bool) else "{:g}".format),
        HOME,
        dtype,
    )
    pd.testing.assert_series_equal(made, pd.Series(raw, name="x").astype(dtype))


def test_a_value_not_acquired_is_an_error_only_where_the_model_wants_it():
    frame = as_frame([{"debt": 1.0, "age": 30, "rank": 2, "grade": "low", "home": "own"}] * 3)
    encoder = Encoder.fit(frame, SCHEMA)
    X = encoder.encode(frame)  # noqa: N806
    X[0, SCHEMA.index("home")] = np.nan
    assert FrameMaker(encoder, ("age", "rank")).frame(X)["age"].tolist() == frame["age"].tolist()
    maker = FrameMaker(encoder, ("age", "home"))
    with pytest.raises(DataError, match="'home' was not acquired"):
        maker.frame(X)
    assert maker.frame(X[1:])["home"].tolist() == ["own"] * 3


def test_bad_columns_are_named():
    maker, encoder = maker_of([1, 2], SIZE, None)
    with pytest.raises(ColumnError, match="column 'x' more than once"):
        FrameMaker(encoder, ("x", "x"))
    with pytest.raises(ColumnError, match="column 'x': the categories of the model are needed"):
        FrameMaker(encoder, ("x",), {"x": "category"})
    with pytest.raises(DataError, match=r"a matrix of 1 columns is needed, not of shape \(2, 3\)"):
        maker.frame(np.zeros((2, 3), dtype=np.float32))


def test_memory_is_bounded_and_the_answers_are_the_same(monkeypatch):
    monkeypatch.setattr(module, "MOST_CODES", 20)
    values = np.arange(200) / 2
    maker, encoder = maker_of(values, SIZE, None)
    codes = encoder.encode(pd.DataFrame({"x": values}))
    for first, last in ((0, 15), (10, 28), (0, 200), (25, 30)):
        assert maker.frame(codes[first:last])["x"].tolist() == values[first:last].tolist()
        assert len(maker._lookups[0]._known[0]) <= 20


def test_threads_share_one_and_a_copy_is_empty():
    values = np.arange(3000) / 4
    maker, encoder = maker_of(values, SIZE, None)
    codes = encoder.encode(pd.DataFrame({"x": values}))
    starts = np.random.default_rng(0).integers(0, 2900, 200).tolist()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda i: maker.frame(codes[i : i + 100])["x"].tolist(), starts))
    assert answers == [values[i : i + 100].tolist() for i in starts]
    copy = pickle.loads(pickle.dumps(maker))  # noqa: S301 - our own, sent to a worker
    assert len(copy._lookups[0]._known[0]) == 0
    pd.testing.assert_frame_equal(copy.frame(codes), maker.frame(codes))


def test_a_level_that_the_model_never_met_is_missing_to_it_as_pandas_has_it():
    schema = Schema((Feature("x", "categorical", levels=("boat", "own", "rent")),), "y", "good")
    people = pd.DataFrame({"x": ["own", "rent", "boat"]})
    encoder = Encoder.fit(people, schema)
    dtype = pd.CategoricalDtype(["own", "rent"])
    made = FrameMaker(encoder, ("x",), {"x": dtype}).frame(encoder.encode(people))
    assert made["x"].tolist()[:2] == ["own", "rent"]
    assert made["x"].isna().tolist() == [False, False, True]
    assert made.dtypes["x"] == dtype


@settings(max_examples=some(40), deadline=None)
@given(people, st.sampled_from([PLAIN, CATEGORIES]))
def test_people_as_they_were_given_are_cast_as_encoded_ones(rows, dtypes):
    frame = as_frame(rows)
    encoder = Encoder.fit(frame, SCHEMA)
    wanted = {name: dtype for name, dtype in dtypes.items() if name in SCHEMA.names}
    maker = FrameMaker(encoder, SCHEMA.names, wanted)
    matrix = encoder.encode(frame)
    made = cast_frame(encoder.decode(matrix), wanted)
    pd.testing.assert_frame_equal(
        made[list(wanted)], maker.frame(matrix)[list(wanted)], check_exact=True
    )


def test_words_that_a_model_has_as_truth_values_or_numbers_keep_their_meaning():
    given = pd.DataFrame(
        {"car": ["False", "True", "False"], "size": ["1", "30", "7"], "home": ["own", None, "boat"]}
    )
    sizes, homes = pd.CategoricalDtype([30, 1]), pd.CategoricalDtype(["rent", "own"])
    made = cast_frame(given, {"car": bool, "size": sizes, "home": homes})
    assert made["car"].tolist() == [False, True, False]
    assert made["car"].dtype == bool
    assert made["size"].astype(object).where(made["size"].notna(), None).tolist() == [1, 30, None]
    assert made["size"].dtype == sizes
    assert made["home"].isna().tolist() == [False, True, True]
    assert cast_frame(given.astype("category"), {"car": bool})["car"].tolist() == [
        False,
        True,
        False,
    ]
    assert cast_frame(pd.DataFrame({"car": [True, False]}), {"car": bool})["car"].tolist() == [
        True,
        False,
    ]
    assert given["car"].tolist() == ["False", "True", "False"]
    for car, words in (
        (["False", None], "is missing in some row"),
        (["False", "no"], "'no' does not fit"),
    ):
        with pytest.raises(DataError, match=f"column 'car'.*{words}"):
            cast_frame(pd.DataFrame({"car": car}), {"car": bool})
