import numpy as np
import pandas as pd
import pytest
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import Feature, Schema
from edfa.data import Encoder
from edfa.errors import DataError, FactError, UnknownNameError

NAMES_EXACT = ["german", "adult", "heloc", "taiwan", "acs_income", "diabetes130"]


def encoder_of(values, feature):
    return Encoder.fit(pd.DataFrame({feature.name: values}), Schema((feature,), "y", "good"))


def encode(encoder, values):
    return encoder.encode(pd.DataFrame({encoder.names[0]: values}))[:, 0]


@pytest.mark.parametrize("name", NAMES_EXACT)
def test_back_exactly_to_the_persons_own_words(name, load_real):
    table = load_real(name)
    names = list(table.schema.names)
    pd.testing.assert_frame_equal(table.encoder.decode(table.train.X), table.train.frame[names])


def test_nine_digits_with_a_long_tail_come_back_to_six(load_real):
    """GMSC's two ratios ask for more digits than float32 has: close, and stable, but not exact."""
    train = load_real("gmsc").train
    back = train.encoder.decode(train.X)
    for name in ("RevolvingUtilizationOfUnsecuredLines", "DebtRatio"):
        column = train.encoder[name]
        tolerance = (
            np.spacing(np.abs(train.X[:, train.schema.index(name)])).astype(float) * column.scale
        )
        assert (np.abs(back[name] - train.frame[name]) <= tolerance).all()
    exact = [
        n
        for n in train.schema.names
        if n not in ("RevolvingUtilizationOfUnsecuredLines", "DebtRatio")
    ]
    pd.testing.assert_frame_equal(back[exact], train.frame[exact])


decimals = st.integers(-(10**6), 10**6).flatmap(
    lambda i: st.integers(0, 3).map(lambda d: i / 10**d)
)


@given(
    st.lists(decimals, min_size=2, max_size=30), st.lists(st.floats(-5, 5, width=32), max_size=20)
)
@settings(max_examples=some(100))
def test_decoding_is_the_inverse_bit_for_bit(values, codes):
    encoder = encoder_of(values, Feature("x", "continuous"))
    column = encoder["x"]
    known = encode(encoder, values)
    np.testing.assert_array_equal(encode(encoder, column.decode(known)), known)
    # any float32 between the ends, up to float64's own grain around the mean
    free = np.clip(np.array(codes, dtype=np.float32), known.min(), known.max())
    grain = 4 * np.spacing(max(map(abs, values))) / column.scale
    np.testing.assert_allclose(encode(encoder, column.decode(free)), free, rtol=0, atol=grain)


def test_standardised_ordered_and_labelled():
    values = [1.0, 2.0, 3.0, 6.0]
    codes = encode(encoder_of(values, Feature("x", "continuous")), values)
    np.testing.assert_allclose([codes.mean(), codes.std()], [0, 1], atol=1e-6)
    ordinal = Feature("x", "ordinal", levels=("low", "mid", "high"))
    assert encode(encoder_of(["high", "low"], ordinal), ["low", "mid", "high"]).tolist() == [
        0,
        1,
        2,
    ]
    assert encode(
        encoder_of(["b", "a", "c"], Feature("x", "categorical")), ["c", "a", "b"]
    ).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("feature", "values"),
    [
        (
            Feature("x", "continuous", codes={"-9": "none", "-8": "other"}),
            [3.0, np.nan, -9, 10.5, -8, 4.0],
        ),
        (
            Feature("x", "ordinal", codes={"-9": "none", "-8": "other"}),
            [3.0, np.nan, -9, 10, -8, 4.0],
        ),
        (Feature("x", "categorical"), ["a", None, "b", "c", "a", None]),
        (Feature("x", "ordinal", levels=("a", "b", "c")), ["a", None, "b", "c", "a", None]),
    ],
)
def test_gaps_and_codes_are_states_of_their_own(feature, values):
    encoder = encoder_of(values, feature)
    codes = encode(encoder, values)
    assert np.isfinite(codes).all(), "NaN is reserved for not acquired"
    states = {
        code
        for code, value in zip(codes, values, strict=True)
        if pd.isna(value) or value in (-9, -8)
    }
    others = set(codes.tolist()) - states
    assert len(states) == (3 if feature.codes else 1)
    outside = (
        [s < min(others) for s in states]
        if feature.kind != "categorical"
        else [s > max(others) for s in states]
    )
    assert all(outside)
    pd.testing.assert_series_equal(encoder["x"].decode(codes), pd.Series(values), check_dtype=False)


def test_codes_do_not_shift_the_scale():
    plain = encoder_of([1.0, 2, 3], Feature("x", "continuous"))["x"]
    coded = encoder_of([1.0, 2, 3, 98, 98], Feature("x", "continuous", codes={"98": "?"}))["x"]
    assert (plain.mean, plain.scale, plain.low, plain.high) == (
        coded.mean,
        coded.scale,
        coded.low,
        coded.high,
    )


def test_the_batch_policy_for_what_training_never_showed():
    continuous = encoder_of([1.0, 2, 3, 4, 50], Feature("x", "continuous"))
    np.testing.assert_array_equal(
        encode(continuous, [-100.0, 1e9, np.nan]), encode(continuous, [1.0, 50, 3])
    )
    widened = encoder_of([1.0, 2, 3], Feature("x", "continuous", range=(0, 10)))
    np.testing.assert_array_equal(encode(widened, [-5.0, 99]), encode(widened, [0.0, 10]))
    words = encoder_of(["a", "b", "b", "c"], Feature("x", "categorical"))
    np.testing.assert_array_equal(encode(words, ["zzz", None]), encode(words, ["b", "b"]))
    steps = encoder_of([1, 2, 2, 8], Feature("x", "ordinal"))
    np.testing.assert_array_equal(encode(steps, [6, 100, 1]), encode(steps, [8, 8, 1]))
    np.testing.assert_array_equal(encode(steps, [np.nan]), encode(steps, [2]))
    listed = encoder_of(["a"], Feature("x", "categorical", levels=("a", "b")))
    assert encode(listed, ["b"]).tolist() == [1], "a level the card lists has a code, seen or not"


def test_the_strict_border_of_an_interview():
    encoder = edfa.load("german").encoder
    row = encoder.encode_person({"age": "35", "employment": ">=7", "credit_amount": 2400})
    assert np.isnan(row).sum() == 17
    assert encoder.decode_cells("age", row[encoder.names.index("age")]) == [35]
    assert encoder.decode_cells("employment", row[encoder.names.index("employment")]) == [">=7"]


@pytest.mark.parametrize(
    ("facts", "error", "message"),
    [
        ({"agge": 35}, UnknownNameError, "no feature named 'agge'; did you mean 'age'"),
        ({"age": 350}, FactError, "age: 350 is outside 19 to 75"),
        ({"age": "old"}, FactError, "age: a number is needed, not 'old'"),
        ({"age": None}, FactError, "age: a value is needed"),
        ({"age": float("nan")}, FactError, "age: a value is needed"),
        ({"age": float("inf")}, FactError, "age: a finite number is needed"),
        ({"age": [35]}, FactError, "age: a number is needed"),
        ({"housing": "rented"}, FactError, "housing: no level 'rented'; did you mean 'rent'"),
        ({"housing": None}, FactError, "housing: a value is needed"),
        ({"housing": ""}, FactError, "housing: a value is needed"),
        ({"employment": "≥7"}, FactError, "employment: no level '≥7'"),
    ],
)
def test_an_answer_that_cannot_be_understood(facts, error, message):
    with pytest.raises(error, match=message) as caught:
        edfa.load("german").encoder.encode_person(facts)
    assert "\n" not in str(caught.value)


def test_a_gap_is_an_answer_where_training_had_gaps():
    encoder = edfa.load("adult").encoder
    row = encoder.encode_person({"occupation": None, "education-num": 9.0})
    column = encoder.names.index("occupation")
    assert np.isfinite(row[column])
    assert encoder.decode_cells("occupation", row[column]) == [None]


def test_one_person_and_a_batch_agree():
    table = edfa.load("taiwan", cap=300)
    facts = table.test.frame[list(table.schema.names)].to_dict("records")
    inside = [i for i, f in enumerate(facts) if _inside(table.encoder, f)]
    assert len(inside) > 20
    one_by_one = np.stack([table.encoder.encode_person(facts[i]) for i in inside])
    np.testing.assert_array_equal(one_by_one, table.test.X[inside])


def _inside(encoder, facts):
    try:
        encoder.encode_person(facts)
    except FactError:
        return False
    return True


def test_json_round_trip_is_equal():
    for name in ("german", "adult"):
        encoder = edfa.load(name).encoder
        assert Encoder.from_json(encoder.to_json()) == encoder


def test_decode_refuses_what_is_no_code():
    encoder = edfa.load("german").encoder
    with pytest.raises(DataError, match="a matrix of 20 columns is needed"):
        encoder.decode(np.zeros((2, 3), np.float32))
    with pytest.raises(DataError, match="not acquired"):
        encoder.decode(np.full((1, 20), np.nan, np.float32))
    with pytest.raises(DataError, match=r"housing: 7.0 is not the code of any level"):
        encoder.decode_cells("housing", 7)


def test_a_constant_column_and_a_column_of_codes_only():
    assert encode(encoder_of([5.0, 5.0], Feature("x", "continuous")), [5.0]).tolist() == [0]
    only_codes = encoder_of([-9.0, -9.0], Feature("x", "continuous", codes={"-9": "none"}))
    assert only_codes["x"].decode(encode(only_codes, [-9.0])).tolist() == [-9]
    levels = encoder_of([-9.0, -9.0], Feature("x", "ordinal", codes={"-9": "none"}))
    assert levels["x"].decode(encode(levels, [-9.0])).tolist() == [-9]
