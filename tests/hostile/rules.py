"""Hostile rules: a person's own limits as plain data, from sensible to absurd."""

from hypothesis import strategies as st

from hostile.receipts import NUMBERS, VALUES, WORDS

NAMES = st.one_of(st.sampled_from(["age", "sum", "home", "income", "debt", "shoe"]), WORDS)
ENDS = st.one_of(st.sampled_from(["*", "own", "rent", "fré"]), NUMBERS, WORDS)
FORMULAS = st.sampled_from(
    ["income", "income / 2", "1 / 0", "income ** 9", "__import__('os')", "(" * 300 + "1" + ")" * 300, "", "`a b`", "x = 1"]
)
SENSIBLE = {
    "locked": st.lists(NAMES, max_size=3),
    "never_ask": st.lists(NAMES, max_size=3),
    "max_changes": st.one_of(st.integers(-1, 5), NUMBERS),
    "max_effort": NUMBERS,
    "max_months": NUMBERS,
    "directions": st.dictionaries(NAMES, st.sampled_from(["up", "down", "free", "frozen", "sideways"]), max_size=2),
    "ranges": st.dictionaries(NAMES, st.lists(NUMBERS, max_size=3), max_size=2),
    "levels": st.dictionaries(NAMES, st.lists(ENDS, max_size=3), max_size=2),
    "forbidden": st.lists(st.tuples(NAMES, ENDS, ENDS).map(list) | st.lists(NAMES, max_size=2), max_size=2),
    "together": st.lists(st.lists(NAMES, max_size=3), max_size=2),
    "linked": st.dictionaries(NAMES, FORMULAS, max_size=2),
    "efforts": st.dictionaries(NAMES, NUMBERS, max_size=2),
    "reading": st.sampled_from(["card", "paper", "tea leaves"]),
    "version": st.sampled_from([1, 2, 3, 99, None, "1"]),
}


@st.composite
def overlays(draw: st.DrawFn) -> dict:
    """Keys of rules with values of about their kind, and sometimes of none."""
    keys = draw(st.lists(st.sampled_from(sorted(SENSIBLE)), max_size=4, unique=True))
    return {key: draw(st.one_of(SENSIBLE[key], SENSIBLE[key], VALUES)) for key in keys} | {"version": 1}
