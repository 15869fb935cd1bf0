"""Guides that are stories with real output: each block prints what stands under it, and their
commands run.
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.long
def test_every_block_prints_what_stands_under_it_and_the_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert play("guide.md") >= 12
    assert len((tmp_path / "advice.csv").read_text().splitlines()) == 1001


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # skl2onnx's own
def test_the_guide_to_models_of_ones_own(tmp_path, monkeypatch):
    pytest.importorskip("skl2onnx")
    monkeypatch.chdir(tmp_path)
    assert play("own-model.md") >= 9
    assert (tmp_path / "shell-advisor").is_dir()


def play(name):
    """Run every block of a guide; returns the number of outputs that were compared."""
    namespace, printed, shown = {}, "", 0
    guide = (DOCS / name).read_text(encoding="utf-8")
    for language, text in re.findall(r"```(\w+)\n(.*?)```", guide, flags=re.S):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, name, "exec"), namespace)  # noqa: S102
            printed = out.getvalue()
        elif language == "text":
            assert printed == text
            shown += 1
        else:
            run_in_a_shell(text)
    return shown


def run_in_a_shell(text):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-eu", "-c", text],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
