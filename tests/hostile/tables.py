"""Hostile tables: frames with strange names, data types and values, and files that are no tables at
all.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
from hostile.answers import any_value, file_values, texts
from hypothesis import strategies as st

__all__ = ["broken_bytes", "columns", "frames", "names"]

STRANGE_NAMES = [
    "a\nb",
    'x"]\n[target]\nname = "z',
    "a.b",
    "a]b",
    "'",
    '"',
    "\\",
    "#",
    "=",
    "a\tb",
    "\x00",
    "\u2028",
    "\x7f",
    "[/good]",
    "self",
    "index",
]
names = st.one_of(
    st.sampled_from(STRANGE_NAMES),
    st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=6),
)

ARROW = [
    pa.int64(),
    pa.uint64(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.decimal128(30, 2),
    pa.date32(),
]


@st.composite
def columns(draw, rows):
    """A column of ``rows`` cells of any data type that pandas has, often with gaps."""
    gaps = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    kind = draw(
        st.sampled_from(
            [
                "object",
                "int",
                "Int64",
                "UInt64",
                "Float64",
                "boolean",
                "bool",
                "float32",
                "category",
                "arrow",
                "decimal",
                "date",
                "complex",
            ]
        )
    )
    many = lambda values: draw(st.lists(values, min_size=rows, max_size=rows))  # noqa: E731
    small, wide = st.integers(-5, 105), st.integers(-(2**63), 2**63 - 1)
    holed = lambda values: [None if gap else value for gap, value in zip(gaps, values, strict=True)]  # noqa: E731
    if kind == "object":
        cells = np.empty(rows, dtype=object)
        for i, value in enumerate(many(any_value)):
            cells[i] = value
        return pd.Series(cells, dtype=object)
    if kind == "arrow":
        arrow = draw(st.sampled_from(ARROW))
        array = pa.array(holed(many(st.integers(0, 105))), pa.int64()).cast(
            arrow if arrow != pa.date32() else pa.int32()
        )
        return pd.Series(pd.array(array.cast(arrow), dtype=pd.ArrowDtype(arrow)))
    plain = {
        "int": lambda: pd.Series(many(wide), dtype="int64"),
        "Int64": lambda: pd.array(holed(many(wide)), dtype="Int64"),
        "UInt64": lambda: pd.array(holed(many(st.integers(0, 2**64 - 1))), dtype="UInt64"),
        "Float64": lambda: pd.array(holed(many(st.floats())), dtype="Float64"),
        "boolean": lambda: pd.array(holed(many(st.booleans())), dtype="boolean"),
        "bool": lambda: pd.Series(many(st.booleans())),
        "float32": lambda: pd.Series(many(st.floats(width=32)), dtype="float32"),
        "category": lambda: pd.Categorical(holed(many(st.one_of(small, texts)))),
        "decimal": lambda: [
            None if gap else Decimal(value) / 100
            for gap, value in zip(gaps, many(small), strict=True)
        ],
        "date": lambda: pd.date_range("2020", periods=rows),
        "complex": lambda: np.array(many(small), dtype=complex),
    }
    return pd.Series(plain[kind]())


@st.composite
def frames(draw, features):
    """A frame of one to five rows with any of ``features``, in any data type, and sometimes a
    strange column more.
    """
    rows = draw(st.integers(1, 5))
    chosen = draw(st.lists(st.sampled_from(features), unique=True, min_size=1))
    extra = draw(st.lists(names, max_size=1, unique=True))
    return pd.DataFrame({name: draw(columns(rows)) for name in [*chosen, *extra]})


@st.composite
def broken_bytes(draw, whole):
    """The bytes of a file that was whole: cut, with some changed, doubled or followed by others; or
    any others.
    """
    content = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        change = draw(st.sampled_from(["flip", "insert", "cut", "drop"]))
        if change == "flip" and content:
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif change == "insert":
            content[at:at] = draw(
                st.one_of(
                    st.binary(max_size=6),
                    st.sampled_from([b'"', b",", b"\n", b"\r", b"\x00", b"{", b"]"]),
                )
            )
        elif change == "cut":
            del content[at:]
        else:
            del content[at : at + 3]
    return bytes(content)


rows_of_values = st.lists(file_values, min_size=1, max_size=6)
