"""Hostile cards: TOML that is right, with values of the wrong kind or size in it."""

from hypothesis import strategies as st

__all__ = ["cards"]

VALUES = [
    "nan",
    "inf",
    "-inf",
    "1e308",
    "1" + "0" * 400,
    "true",
    '""',
    '"\\u0000"',
    "[]",
    "[[1]]",
    "{}",
    "1979-05-27",
    "-1",
    '"a"',
    "[true, false]",
]
VALUES += [
    '[1, "1"]',
    "[inf, 1]",
    "[nan, nan]",
    "[1e200, 2]",
    "[0, 1e16]",
    '{"nan" = "x"}',
    '{"1e400" = "x"}',
    '["a", "a"]',
    '["a", ""]',
]
KEYS = [
    "kind",
    "cost",
    "start",
    "range",
    "effort",
    "levels",
    "codes",
    "monotone",
    "per_year",
    "takes",
    "takes_per_unit",
    "max_step",
    "max_ratio",
    "change",
    "unit",
    "label",
]


@st.composite
def cards(draw):
    """The text of a card of one or two features, some of whose keys are hostile."""
    text = '[target]\nname = "y"\nfavourable = "good"\n'
    for name in draw(st.sampled_from([("x",), ("x", "w"), ('"a\\nb"',)])):
        kind = draw(st.sampled_from(["continuous", "ordinal", "categorical"]))
        keys = draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2))
        body = {"kind": f'"{kind}"'} | keys
        text += f"[features.{name}]\n" + "".join(
            f"{key} = {value}\n" for key, value in body.items()
        )
    return text
