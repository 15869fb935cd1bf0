"""A small advisor with a certificate and a start set, its people, and hostile receipts and kept
interviews.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import edfa

KEY = b"an operator's key of 32 bytes..."

CARD = """

[target]
name = "outcome"
classes = ["no", "yes"]
favourable = "yes"
[features.age]
kind = "continuous"
start = true
cost = 0
change = "frozen"
[features.sum]
kind = "continuous"
start = true
cost = 0
change = "free"
[features.home]
kind = "categorical"
levels = ["own", "rent", "fré"]
cost = 1
change = "free"
[features.income]
kind = "continuous"
cost = 2
change = "free"
[features.debt]
kind = "continuous"
cost = 2
change = "free"
[features.shoe]
kind = "categorical"
levels = ["38", "40", "42"]
cost = 1
change = "free"
"""


def people(rows: int, seed: int) -> pd.DataFrame:
    """People without an outcome, no two of them alike."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.integers(18, 80, rows),
            "sum": random.normal(10, 3, rows).round(3),
            "home": random.choice(["own", "rent", "fré"], rows),
            "income": random.normal(30, 8, rows).round(3),
            "debt": random.normal(8, 3, rows).round(3),
            "shoe": random.choice(["38", "40", "42"], rows),
        }
    )


@cache
def loans() -> edfa.Table:
    """People who pay back if their income carries their debt, mostly."""
    frame = people(1200, seed=0)
    score = (
        0.2 * (frame["income"] - 30)
        - 0.5 * (frame["debt"] - 8)
        - 0.2 * (frame["sum"] - 10)
        + (frame["home"] == "own")
    )
    noise = np.random.default_rng(1).normal(0, 0.4, len(frame))
    frame["outcome"] = np.where(score + noise > 0.3, "yes", "no")
    return edfa.Table.from_frame(frame, edfa.Schema.from_toml(CARD), name="loans")


@cache
def small() -> edfa.Advisor:
    """An advisor of ``loans``, with a certificate."""
    model = edfa.SubsetXGB("nan", n_estimators=15)
    made = edfa.Advisor(
        predictor=model,
        searcher="nearest",
        reference="trajectory_end",
        loss="let_down",
        target="all",
        alpha=0.4,
        committee=0,
    )
    return made.fit(loans())


@cache
def someone() -> edfa.Interview:
    """Somebody who is refused and has plans, whose words are not all ASCII, with wishes of every
    kind.
    """
    limits = edfa.Overlay(prices={"debt": 2.5}, max_changes=2, locked=("home", "shoe"))
    held = small().interview({"age": 40, "sum": 14.25}, overlay=limits)
    return held.answer(home="fré").answer(income=24.125).decline("shoe").answer(debt=12.0)


def attempt(act: Callable[[], Any], *refusals: type[Exception]) -> tuple[Any, str]:
    """What ``act()`` returns, and how it was refused: an empty text if it was not, else one line.
    Others are raised.
    """
    try:
        return act(), ""
    except refusals as refusal:
        message = str(refusal)
    if not message or len(message) > 1000 or not message.isprintable():
        raise ValueError(f"this is no message for a person: {message!r}")
    return None, message


def nested(depth: int, opening: str = "[") -> str:
    """JSON text of lists in lists, or of objects in objects."""
    return "[" * depth + "]" * depth if opening == "[" else '{"a":' * depth + "1" + "}" * depth


NUMBERS = st.one_of(
    st.integers(-(10**3), 10**3),
    st.sampled_from([0, -1, 2**63, -(2**63) - 1, 10**18, 10**299, 10**4000]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e308, -1e308, 5e-324, -0.0]),
)
WORDS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            "",
            "own",
            "fré",
            "fre\u0301",
            "\ud800",
            "\x00",
            "age",
            "de",
            "en",
            "start",
            "\u202e",
            "x" * 300,
        ]
    ),
)
PLAIN = st.one_of(st.none(), st.booleans(), NUMBERS, WORDS)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
"""Whatever JSON can hold."""


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """The text of a JSON object, with one or more of its parts dropped, replaced, added or made
    something else.
    """
    content = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        place, key = _place(draw, content)
        kind = draw(st.sampled_from(["drop", "replace", "add"]))
        if kind == "replace" or (kind == "drop" and isinstance(place, list)):
            place[key] = draw(VALUES)
        elif kind == "drop":
            del place[key]
        elif isinstance(place, dict):
            place[draw(WORDS)] = draw(VALUES)
        else:
            place.insert(0, draw(VALUES))
        if not content:
            break
    return json.dumps(content, ensure_ascii=draw(st.booleans()))


def _place(draw, content):
    """A part somewhere in the content, as its container and its key or position."""
    place, key = content, draw(st.sampled_from(sorted(content)))
    while isinstance(place[key], dict | list) and place[key] and draw(st.booleans()):
        place = place[key]
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
    return place, key
