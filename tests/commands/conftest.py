"""The command line in this process, for all tests of commands."""

import io
from types import SimpleNamespace

import pytest

from edfa.cli import app


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs a command with what is ``typed``; starting a new process each time would take most of
    the time.
    """

    def call(*arguments, typed=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=out, stderr=err)

    return call
