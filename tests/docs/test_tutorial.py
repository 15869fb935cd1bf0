"""The tutorial is run by its own text: each block prints what stands under it."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")


def words(text: str) -> str:
    """The text without its line breaks: a terminal breaks lines elsewhere than a page."""
    return " ".join(text.split())


def output_of(language: str, block: str, namespace: dict) -> str:
    if language == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(block, "tutorial.md", "exec"), namespace)  # noqa: S102
        return out.getvalue()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-eu", "-c", block],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_every_block_prints_what_stands_under_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, printed, shown = {}, "", 0
    for language, block in re.findall(r"```(\w+)\n(.*?)```", TUTORIAL, flags=re.S):
        if language in ("python", "sh"):
            printed = output_of(language, block, namespace)
        elif language == "text":
            assert words(printed) == words(block)
            shown += 1
    assert shown == 6
    letter = (tmp_path / "letter.html").read_text(encoding="utf-8")
    assert "36 months (too long)" in letter
