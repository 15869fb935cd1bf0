"""Hostile strategies for files: rules of people, words that spreadsheets run, damage to what a run
has kept.
"""

import json
import shutil

from hypothesis import strategies as st

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'=1",
    "''@x",
    '=HYPERLINK("x")',
]
"""Words that a spreadsheet would run, or that look as if they had been made safe."""

words = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(FORMULAS)
numbers = (
    st.integers(-(10**30), 10**30) | st.floats() | st.sampled_from([1e308, -0.0, 5e-324, 2**63])
)
KEYS = [
    "locked",
    "only",
    "difficulty",
    "weights",
    "directions",
    "ranges",
    "levels",
    "max_changes",
    "max_effort",
]
KEYS += [
    "max_months",
    "min_probability",
    "forbidden",
    "together",
    "never_ask",
    "linked",
    "per_year",
    "takes",
]
KEYS += ["reading", "version", "rules", "row", "lockd"]
values = st.recursive(
    st.none()
    | st.booleans()
    | numbers
    | words
    | st.sampled_from(["savings", "up", "card", "1 year"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(words | st.sampled_from(["savings"]), inner, max_size=3)
    ),
    max_leaves=6,
)
rules = st.dictionaries(st.sampled_from(KEYS), values, max_size=4)
"""Rules of a person: keys that there are, with values of any kind."""

BROKEN = [
    '{"max_changes": 1, "max_changes": 2}',
    '{"max_effort": NaN}',
    '{"weights": {"savings": 1e999}}',
    '{"ranges": {"savings": [NaN, 1]}}',
    "[" * 100_000,
    '{"a":' * 100_000,
    "[]",
    "null",
    "1" * 5_000,
    '"\\ud800"',
    '{"locked": ["\\ud800"]}',
    "\x00",
    "{",
]
cells = rules.map(json.dumps) | st.sampled_from(BROKEN) | words
"""Cells of rules: JSON that says something else than it should, or no JSON at all."""


@st.composite
def rule_files(draw):
    """The lines of a file of people's rules in JSON lines, some of them wrong in any way."""
    row = st.integers(-2, 6) | numbers | st.none() | words
    whole = st.builds(lambda row, own: json.dumps({"row": row} | own), row, rules)
    return "\n".join(draw(st.lists(whole | cells, max_size=4)))


def _cut(parts, at):
    content = parts[at].read_bytes()
    parts[at].write_bytes(content[: len(content) // 2])


def _flip(parts, at):
    content = bytearray(parts[at].read_bytes())
    content[len(content) // 3] ^= 4
    parts[at].write_bytes(bytes(content))


def _swap(parts, at):
    first, second = parts[at].read_bytes(), parts[0].read_bytes()
    parts[at].write_bytes(second)
    parts[0].write_bytes(first)


def _rename(parts, at):
    block, row, *rest = parts[at].name.split(".")
    parts[at].rename(parts[at].with_name(".".join([block, f"{int(row) + 1:012d}", *rest])))


def _link(parts, at):
    elsewhere = parts[at].parent.parent / "elsewhere"
    elsewhere.write_bytes(parts[at].read_bytes())
    parts[at].unlink()
    parts[at].symlink_to(elsewhere)


def _another_block(parts, at):
    copy = parts[at].with_name(f"00000007{parts[at].name[8:]}")
    if copy != parts[at]:  # else it was one of these already
        shutil.copy(parts[at], copy)


def _strangers(parts, at):
    folder = parts[at].parent
    (folder / "journal.json").write_text("{}")
    (folder / "00000000.parquet").write_bytes(b"left by another run")
    (folder / f"00000000.{0:012d}.{'0' * 64}.parquet").write_bytes(b"PAR1")
    (folder / "a folder").mkdir(exist_ok=True)


DAMAGE = {
    "cut off": _cut,
    "a bit flipped": _flip,
    "swapped": _swap,
    "renamed": _rename,
    "a link": _link,
    "copied to another block": _another_block,
    "strangers": _strangers,
    "emptied": lambda parts, at: parts[at].write_bytes(b""),
    "removed": lambda parts, at: parts[at].unlink(),
    "not there": lambda parts, at: None,
}
"""What can happen to kept parts: functions of their paths, and of the number of one of them."""
