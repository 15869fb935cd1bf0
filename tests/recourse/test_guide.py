"""The examples of docs/recourse.md are run as they stand."""

import re
from pathlib import Path

TEXT = (Path(__file__).parents[2] / "docs" / "recourse.md").read_text(encoding="utf-8")


def test_the_guide_runs_in_order(capsys):
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, flags=re.S)
    for text in blocks:
        exec(compile(text, "recourse.md", "exec"), namespace)  # noqa: S102
    assert len(blocks) == 4
    assert re.search(r"\w+: .+ → .+ \(\d+% → \d+% good\)", capsys.readouterr().out)
