"""The guide is a story with real output: each block prints what stands under it, and its commands run."""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

GUIDE = (Path(__file__).parents[1] / "docs" / "guide.md").read_text(encoding="utf-8")


def test_every_block_prints_what_stands_under_it_and_the_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, printed, shown = {}, "", 0
    for language, text in re.findall(r"```(\w+)\n(.*?)```", GUIDE, flags=re.S):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, "guide.md", "exec"), namespace)  # noqa: S102
            printed = out.getvalue()
        elif language == "text":
            assert printed == text
            shown += 1
        else:
            run_in_a_shell(text)
    assert shown >= 12
    assert len((tmp_path / "advice.csv").read_text().splitlines()) == 1001


def run_in_a_shell(text):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-eu", "-c", text], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
