"""The examples of docs/certification.md are run as they stand."""

import ast
import re
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "certification.md"


def test_the_guide_runs_and_says_what_it_claims():
    namespace: dict[str, object] = {}
    claims = 0
    for text in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.S):
        lines = text.splitlines()
        for statement in ast.parse(text).body:
            code = ast.unparse(statement)
            _, _, claim = lines[statement.end_lineno - 1].partition("# -> ")
            if claim:
                assert eval(code, namespace) == eval(claim.split("; ")[0], {}), code  # noqa: S307
                claims += 1
            else:
                exec(code, namespace)  # noqa: S102
    assert claims == 25
