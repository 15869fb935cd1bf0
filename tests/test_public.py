import json
import subprocess
import sys

import pytest

import edfa

HEAVY = (
    "torch",
    "sklearn",
    "pandas",
    "scipy.stats",
    "xgboost",
    "matplotlib",
    "pydantic",
    "pyarrow",
)


def in_a_fresh_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_importing_loads_nothing_heavy():
    """What makes it cheap; how cheap is measured in benchmarks/data.py."""
    modules = in_a_fresh_process(
        "import sys, json; import edfa; print(json.dumps(list(sys.modules)))"
    )
    assert not [m for m in HEAVY if m in modules]


def test_asking_for_help_loads_nothing_heavy():
    code = (
        "import sys, json, io, contextlib; from edfa.cli import cli; from typer.testing "
        "import CliRunner; "
        "r = CliRunner().invoke(cli, ['--help']); print(json.dumps([r.exit_code, "
        "list(sys.modules)]))"
    )
    status, modules = in_a_fresh_process(code)
    assert status == 0
    assert not [m for m in HEAVY if m in modules]


def test_public_names_are_few_and_folders_are_reached_without_importing_them():
    assert len(edfa.__all__) <= 28
    code = "import edfa, json; print(json.dumps([edfa.plots.__name__, edfa.acquisition.__name__]))"
    assert in_a_fresh_process(code) == ["edfa.plots", "edfa.acquisition"]


def test_every_public_name_is_there():
    for name in edfa.__all__:
        assert getattr(edfa, name) is not None
        assert name in dir(edfa)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="no attribute 'Tabel'; did you mean 'Table'"):
        _ = edfa.Tabel
    assert not hasattr(edfa, "__wrapped__")
