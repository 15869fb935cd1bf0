"""The terminal: examples in every command's help, names that a shell completes, and the time that
is left.
"""

import io
import os
import shlex
import subprocess
import sys

import pandas as pd
import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from edfa.advice.advisor import STAGES
from edfa.blanket.discovery import METHODS
from edfa.cli import cli
from edfa.commands import common, completion
from edfa.commands.advise import _estimate_people
from edfa.commands.common import Output, show_progress
from edfa.commands.examples import EXAMPLES
from edfa.data.catalog import NAMES
from edfa_studies.config import SHIPPED


def every_command(command, name=""):
    """Each command of a group, and of the groups in it, by the words that call it."""
    yield name, command
    for word, child in getattr(command, "commands", {}).items():
        yield from every_command(child, f"{name} {word}".strip())


COMMANDS = dict(every_command(typer.main.get_command(cli)))
LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines.values()]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_its_examples(name):
    shown = CliRunner().invoke(cli, [*name.split(), "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    _, _, examples = shown.output.partition("Examples")
    assert EXAMPLES[name]
    for what, line in EXAMPLES[name].items():
        assert f"# {what}" in examples
        assert line in examples, "a line to type is shown as it is"


def test_there_are_examples_of_nothing_else():
    assert set(EXAMPLES) == set(COMMANDS)


@pytest.mark.parametrize(("name", "line"), LINES, ids=[line for _, line in LINES])
def test_every_example_is_one_that_its_command_understands(name, line):
    program, *words = shlex.split(line)
    assert program == "edfa"
    if words == ["--install-completion"]:
        assert "--install-completion" in {
            option for one in COMMANDS[""].params for option in one.opts
        }
        return
    path = name.split()
    if name in ("", "study"):  # a group's examples are of the commands in it
        path = max(
            (known.split() for known in COMMANDS if words[: len(known.split())] == known.split()),
            key=len,
        )
    assert words[: len(path)] == path
    command = COMMANDS[" ".join(path)]
    context = command.make_context(line, words[len(path) :])  # parses, and runs nothing
    assert context.params.get("method") in (None, *METHODS)
    table = context.params.get("table") or context.params.get("name")
    assert table is None or "." in str(table) or table in NAMES
    study = words[0] == "study" and context.params.get("config")
    assert not study or study in SHIPPED


def test_an_example_that_is_wrong_would_be_noticed():
    for words in (
        ["german", "--outt", "advisor"],
        ["german"],
        ["german", "--out", "a", "--cap", "many"],
        ["a", "b"],
    ):
        with pytest.raises(
            Exception, match=r"(?i)no such option|missing|invalid|a valid integer|unexpected"
        ) as caught:
            COMMANDS["fit"].make_context("edfa fit", words)
        assert type(caught.value).__name__ in {
            "NoSuchOption",
            "MissingParameter",
            "BadParameter",
            "UsageError",
        }


def offered(*words):
    """What bash offers for the last word, which may be empty."""
    variables = {
        "_EDFA_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [sys.executable, "-m", "edfa"]
    done = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_completes_commands_and_names():
    assert offered("edfa", "ce") == ["certify"]
    assert offered("edfa", "fit", "g") == ["german", "gmsc"]
    assert offered("edfa", "blanket", "german", "--method", "h") == ["hiton-mb"]
    assert offered("edfa", "study", "run", "") == sorted(SHIPPED)
    assert offered("edfa", "fit", "people") == [], "then the shell offers files"


def test_what_is_offered_is_what_there_is():
    assert set(completion.data_sets("")) == set(NAMES)
    assert completion.METHODS == METHODS


def test_completing_loads_nothing_heavy():
    code = (
        "import sys; from edfa.commands import completion as c; from edfa_studies import command; "
        "c.data_sets(''); "
        "command._complete_studies(''); "
        "print([m for m in ('torch', 'sklearn', 'pandas', 'scipy', 'xgboost', 'pyarrow') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_completion_can_be_installed(tmp_path):
    """Into the settings of the user's shell; bash then has a completer of edfa."""
    code = (
        "import shellingham; shellingham.detect_shell = lambda: ('bash', "
        "'/bin/bash'); from edfa.cli import app; app()"
    )
    environment = os.environ | {"HOME": str(tmp_path)}
    command = [sys.executable, "-c", code, "--install-completion"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    scripts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(
        "complete -o default -F" in script and "_EDFA_COMPLETE" in script for script in scripts
    )


def shown_progress(monkeypatch, *steps, seconds=10.0):
    """The bars after steps (stage, done, total) that are ``seconds`` apart, as a terminal of 120
    columns shows them.
    """
    clock, screen = iter(seconds * i for i in range(10_000)), io.StringIO()
    now = [next(clock)]
    bars = []
    import rich.progress

    class Bar(rich.progress.Progress):
        def __init__(self, *columns, **options):
            super().__init__(*columns, **options, get_time=lambda: now[0], auto_refresh=False)
            bars.append(self)

    monkeypatch.setattr(rich.progress, "Progress", Bar)
    monkeypatch.setattr(
        common, "Console", lambda **options: Console(file=screen, width=120, force_terminal=True)
    )
    with show_progress(Output()) as progress:
        for step in steps:
            progress(*step)
            now[0] = next(clock)
        console = Console(width=120, file=io.StringIO())
        console.print(bars[0].get_renderable())
        return [line.split() for line in console.file.getvalue().splitlines() if line.strip()]


def test_a_bar_tells_the_time_so_far_and_the_time_left(monkeypatch):
    steps = [("model", 0, 1), *(("calibration", 10 * i, 100) for i in range(6))]
    model, calibration = shown_progress(monkeypatch, *steps)
    assert calibration[0] == "calibration"
    assert calibration[-3:] == ["0:01:00", "0:00:50", "left"], "10 in 10 s: 50 are left"
    assert model[0] == "model"
    assert model[-1] == "0:00:10", "a new stage ends the one before"


def test_a_stage_without_steps_promises_no_time(monkeypatch):
    (line,) = shown_progress(monkeypatch, ("model", 0, 1))
    assert line[-1] == "0:00:10"
    assert "model" in STAGES


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_number_of_people_is_about_right(tmp_path, suffix):
    frame = pd.DataFrame({"age": range(18, 5018), "purpose": ["new car", "radio/tv"] * 2500})
    path = tmp_path / f"people.{suffix}"
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet}.get(suffix)
    if write:
        write(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    assert abs(_estimate_people(path) - 5000) <= 1


def test_a_file_that_cannot_be_counted_is_no_error(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"no parquet")
    (tmp_path / "empty.csv").touch()
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "pipe.parquet")
    (tmp_path / "folder").mkdir()
    for name in (
        "broken.parquet",
        "empty.csv",
        "pipe.csv",
        "pipe.parquet",
        "folder",
        "nowhere.csv",
        "nowhere.parquet",
    ):
        assert _estimate_people(tmp_path / name) == 0
    big = tmp_path / "big.csv"
    big.write_text("a,b\n" + "1,2\n" * 600_000)
    assert abs(_estimate_people(big) - 600_001) <= 6
