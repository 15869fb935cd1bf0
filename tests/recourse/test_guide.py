"""The examples of docs/recourse.md are run as they stand."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "docs" / "recourse.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_guide_runs_in_order(capsys):
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
    for text in blocks:
        exec(compile(text, "recourse.md", "exec"), namespace)  # noqa: S102
    assert len(blocks) == 10
    out = capsys.readouterr().out
    assert re.search(r"\w+: .+ → .+ \(\d+% → \d+% good\)", out)
    assert re.search(r"^\d+ rules \('", out, re.M), "a rule in the way is named"
    assert not {"True"} & set(out.split()), "a linked feature is never changed by itself"
    moved, linked = namespace["moved"], namespace["linked"].schema.index("instalment")
    rows = moved.rows()[:, linked]
    assert (rows != moved.people.X[moved.of, linked]).any(), "but it moves along"
    menu, most = namespace["menu"], namespace["menu"].number.argmax()
    ways = [
        {c.feature for c in menu[i].changes}
        for i in range(len(menu))
        if menu.of[i] == menu.of[most]
    ]
    assert len(ways) > 1
    assert ways[0] != ways[1]
