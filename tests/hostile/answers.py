"""Answers that a person, a program or a file could give: any value of Python's, and those that
files can hold.
"""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import strategies as st

__all__ = ["any_value", "file_values", "texts"]

NUMBERS_AS_TEXT = [
    "1",
    "01",
    "1.0",
    "1.10",
    "1.1",
    "-0",
    "1e3",
    "+5",
    " 7 ",
    "€1,430",
    "1,5",
    "0x1F",
    "1_000",
    "nan",
    "inf",
]
NUMBERS_AS_TEXT += [
    "1e308",
    "1e400",
    "9223372036854775813",
    "9007199254740993",
    "٣",
    "5.",
    ".5",
    "TRUE",
    "true",
    "True",
    "9" * 400,
]

texts = st.one_of(
    st.sampled_from(NUMBERS_AS_TEXT), st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
)
integers = st.one_of(
    st.integers(-5, 105),
    st.integers(),
    st.sampled_from([2**53 + 1, 2**63 - 1, 2**63 + 5, -(2**63), 10**400]),
)
floats = st.one_of(
    st.floats(-5, 105),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e15, 1e16, 1e200, -1e308]),
)

file_values = st.one_of(st.booleans(), integers, floats, texts)
"""What a cell of a file can hold that says something: CSV as its text, JSON lines and Parquet as it
is.
"""

scalars = st.one_of(
    file_values,
    st.none(),
    st.just(float("nan")),
    st.sampled_from(
        [
            float("inf"),
            -float("inf"),
            pd.NA,
            pd.NaT,
            "\ud800",
            b"1",
            1j,
            Path("1"),
            object,
            Ellipsis,
        ]
    ),
    st.decimals(),
    st.fractions(),
    st.dates(),
    st.datetimes(),
    st.sampled_from(
        [Decimal("1.10"), Decimal("sNaN"), Decimal("1e999"), Fraction(10**400, 3), Fraction(1, 3)]
    ),
    st.sampled_from(
        [
            np.bool_(True),
            np.float32(0.1),
            np.int8(5),
            np.longdouble(2),
            np.str_("own"),
            np.datetime64("2020-01-01", "ns"),
        ]
    ),
)
any_value = st.one_of(
    scalars,
    scalars.map(lambda value: np.array(value, dtype=object)),
    st.sampled_from(
        [np.array(5), np.array(5.5), np.array([5]), np.array([]), pd.Series([1, 2]), pd.DataFrame()]
    ),
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
        ),
    ),
)
"""Anything: what it is not understood as must be said, not raised as an error of another kind."""
