"""Hostile rules: a person's own limits as plain data, from sensible to absurd."""

from hostile.receipts import NUMBERS, VALUES, WORDS
from hypothesis import strategies as st

NAMES = st.one_of(st.sampled_from(["age", "sum", "home", "income", "debt", "shoe"]), WORDS)
ENDS = st.one_of(st.sampled_from(["*", "own", "rent", "fré"]), NUMBERS, WORDS)
FORMULAS = st.sampled_from(
    [
        "income",
        "income / 2",
        "1 / 0",
        "income ** 9",
        "__import__('os')",
        "(" * 300 + "1" + ")" * 300,
        "",
        "`a b`",
        "x = 1",
    ]
)
SENSIBLE = {
    "locked": st.lists(NAMES, max_size=3),
    "only": st.none() | st.lists(NAMES, max_size=3),
    "difficulty": st.dictionaries(NAMES, st.integers(0, 6), max_size=2),
    "weights": st.dictionaries(NAMES, NUMBERS, max_size=2),
    "directions": st.dictionaries(NAMES, st.sampled_from(["up", "down", "sideways"]), max_size=2),
    "ranges": st.dictionaries(
        NAMES, st.lists(NUMBERS, min_size=1, max_size=3).map(sorted), max_size=2
    ),
    "levels": st.dictionaries(NAMES, st.lists(ENDS, max_size=3), max_size=2),
    "max_changes": st.integers(-1, 5) | NUMBERS,
    "max_effort": NUMBERS,
    "max_months": NUMBERS,
    "min_probability": st.floats(0, 1) | NUMBERS,
    "forbidden": st.lists(
        st.tuples(NAMES, ENDS, ENDS).map(list) | st.lists(NAMES, max_size=2), max_size=2
    ),
    "together": st.lists(st.lists(NAMES, min_size=1, max_size=3), max_size=2),
    "never_ask": st.lists(NAMES, max_size=3),
    "linked": st.dictionaries(NAMES, FORMULAS, max_size=2),
    "per_year": st.dictionaries(NAMES, NUMBERS, max_size=2),
    "takes": st.dictionaries(
        NAMES, st.sampled_from(["3 months", "1 year", "-1 days", "soon", ""]), max_size=2
    ),
    "reading": st.sampled_from(["card", "paper", "tea leaves"]),
}


@st.composite
def overlays(draw: st.DrawFn) -> dict:
    """Keys of rules with values of about their kind, and sometimes of none; of the version that is
    read, mostly.
    """
    keys = draw(st.lists(st.sampled_from(sorted(SENSIBLE)), max_size=3, unique=True))
    version = draw(st.sampled_from([1, 1, 1, 1, 1, 2, None, "1", [1]]))
    return {key: draw(st.one_of(SENSIBLE[key], SENSIBLE[key], VALUES)) for key in keys} | {
        "version": version
    }
