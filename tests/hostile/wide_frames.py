"""Hostile frames for the sources of a blanket: odd names, odd values, odd types, small enough for
many examples.
"""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from edfa.data.schema import Feature, Schema

ROWS = 40
NAMES = [
    "v",
    "n",
    "raw",
    "c0",
    "r0",
    "A",
    "a",
    "it's",
    'say "x"',
    "a b",
    "x\ny",
    "select",
    "é",
    "名",
    "*",
    "1",
    "--",
    ";",
]
WORDS = [
    "x",
    "X",
    "it's",
    'q"q',
    "01",
    "1",
    "1.0",
    "NA",
    "?",
    "inf",
    "nan",
    "",
    "é",
    "a\nb",
    "True",
    "NULL",
]
NUMBERS = [0.0, 1.0, 2.0, 2.5, 1e-9, -3.25, 7.0, 1e14, 5e-324]
BAD_NUMBERS = [float("inf"), -float("inf"), 1e308, 1e16]
NUMBER_TEXTS = ["1", "2", "2.5", " 3 ", "€1,430", "45%", "1e3", "0x10", "1_000", "-4"]
KINDS = (
    "float",
    "hostile float",
    "float32",
    "integer",
    "flag",
    "word",
    "number text",
    "wrong text",
    "whole float",
    "gap",
)


def draw_column(draw, kind):
    """Values of one kind, (ROWS,), some of them missing."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "integer":
        return pd.Series(
            random.choice([0, 1, 2, 3, 10**9, 2**53 + 1] if draw(st.booleans()) else range(9), ROWS)
        )
    if kind == "flag":
        return pd.Series(random.random(ROWS) < 0.5)
    if kind == "gap":
        return pd.Series([None] * ROWS, dtype=object)
    if kind in ("word", "number text", "wrong text"):
        pool = {"word": WORDS, "number text": NUMBER_TEXTS, "wrong text": [*NUMBER_TEXTS, "many"]}[
            kind
        ]
        return pd.Series(
            random.choice(draw(st.lists(st.sampled_from(pool), min_size=1)), ROWS)
        ).mask(pd.Series(random.random(ROWS) < draw(st.sampled_from([0.0, 0.2]))))
    pool = {"hostile float": NUMBERS + BAD_NUMBERS, "whole float": [0.0, 1.0, 2.0, 7.0]}.get(
        kind, NUMBERS
    )
    values = random.choice(draw(st.lists(st.sampled_from(pool), min_size=1)), ROWS)
    if kind == "float":
        values = values + random.normal(size=ROWS)
    values[random.random(ROWS) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    return pd.Series(values.astype(np.float32 if kind == "float32" else np.float64))


@st.composite
def frames(draw):
    """A frame of up to four columns and its schema; not always one that a table accepts."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True))
    columns, features = {}, []
    for name in names[1:]:
        columns[name] = values = draw_column(draw, draw(st.sampled_from(KINDS)))
        kind = draw(st.sampled_from(["continuous", "ordinal", "categorical"]))
        words = kind == "ordinal" and values.dtype.kind not in "iufb"
        levels = tuple(sorted({str(v) for v in values.dropna()} - {""})) if words else ()
        features.append(Feature(name, kind, levels=levels if len(levels) > 1 else ()))
    target = (
        np.random.default_rng(draw(st.integers(0, 99))).choice(["good", "bad"], ROWS).astype(object)
    )
    if draw(st.integers(0, 9)) == 0:
        target[3] = draw(st.sampled_from([None, "other", "?"]))
    columns[names[0]] = pd.Series(target)
    return pd.DataFrame(columns), Schema(tuple(features), names[0], "good", missing=("?",))
