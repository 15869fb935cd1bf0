"""The `run` script: POSIX sh, from anywhere, in a path with a space, and it repairs a half-made
environment.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHELLS = [shell for shell in ("dash", "sh") if shutil.which(shell)]


@pytest.fixture
def clone(tmp_path):
    """A copy of what `run` needs, in a folder with a space, with a stand-in for pip's slow work."""
    folder = tmp_path / "my projects" / "edfa"
    (folder / "benchmarks").mkdir(parents=True)
    for name in ("run", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    (folder / "benchmarks" / "one.py").write_text("print('benchmark one')\n")
    # A python whose venv and pip only write down what they were asked for.
    fake = tmp_path / "python"
    fake.write_text(
        f"""#!/bin/sh
case "$*" in
-c*version_info*) exit 0 ;;
"-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; echo venv >>"{tmp_path}/log" ;;
"-m pip --version") exit 0 ;;
"-m pip install "*) echo "pip ${{PIP_FIND_LINKS:-}} $*" >>"{tmp_path}/log"; exit ${{PIP_FAILS:-0}} ;;
"-c import edfa") exit 0 ;;
*) echo "python $* in $(pwd)" ;;
esac
"""
    )
    fake.chmod(0o755)
    return folder, fake, tmp_path / "log"


def call(shell, folder, fake, *arguments, cwd="/", **environment):
    return subprocess.run(
        [shell, str(folder / "run"), *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHON": str(fake), "PIP_FIND_LINKS": "/a/wheel/folder"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_set_up_happens_once_from_anywhere_and_passes_pips_variables(shell, clone):
    folder, fake, log = clone
    first = call(shell, folder, fake, "setup")
    assert first.returncode == 0, first.stderr
    (made, installed) = log.read_text().splitlines()
    assert made == "venv"
    assert "pip /a/wheel/folder" in installed
    assert ".[test]" in installed
    assert "index" not in installed
    assert call(shell, folder, fake, "setup").returncode == 0
    assert len(log.read_text().splitlines()) == 2, "the second call starts at once"
    with (folder / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    call(shell, folder, fake, "setup")
    assert len(log.read_text().splitlines()) == 3, "a changed pyproject is installed anew"


def test_peers_are_installed_once_and_some_of_them_alone(clone):
    folder, fake, log = clone
    for name in ("peers.txt", "peers-alone.txt"):
        (folder / "benchmarks" / name).write_text("one==1\n")
    (folder / "benchmarks" / "one.py").write_text("# needs .venv-peers\n")
    call("sh", folder, fake, "setup")
    for _ in range(2):
        assert call("sh", folder, fake, "bench", "one").returncode == 0
    installed = [line for line in log.read_text().splitlines() if "peers" in line]
    assert ["--no-deps" in line for line in installed] == [False, True]
    assert installed[1].endswith("-r benchmarks/peers-alone.txt")
    (folder / "benchmarks" / "peers-alone.txt").write_text("one==2\n")
    call("sh", folder, fake, "bench", "one")
    assert log.read_text().count("--no-deps") == 2, "a changed list is installed anew"


def test_a_failed_installation_is_not_stamped(clone):
    folder, fake, log = clone
    assert call("sh", folder, fake, "setup", PIP_FAILS="1").returncode != 0
    assert call("sh", folder, fake, "setup").returncode == 0
    assert log.read_text().count("pip install") == 2


def test_a_half_made_environment_is_made_anew(clone):
    folder, fake, log = clone
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    (folder / ".venv" / "bin" / "python").chmod(0o755)
    (folder / ".venv" / "left-over").touch()
    assert call("sh", folder, fake, "setup").returncode == 0
    assert log.read_text().splitlines()[0] == "venv"
    assert not (folder / ".venv" / "left-over").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_each_command_starts_its_program(shell, clone, tmp_path, monkeypatch):
    monkeypatch.delenv("EDFA_TEST_JOBS", raising=False)
    folder, fake, _ = clone
    demo = call(shell, folder, fake, "demo", cwd=tmp_path)
    assert demo.stdout == f"python -m edfa demo in {tmp_path}\n"
    tests = call(shell, folder, fake, "test", "-k", "one thing")
    assert tests.stdout == f"python -m pytest -n auto --dist worksteal -k one thing in {folder}\n"
    assert "-n 3 " in call(shell, folder, fake, "test", EDFA_TEST_JOBS="3").stdout
    docs = call(shell, folder, fake, "docs")
    assert docs.stdout == f"python -m mkdocs build --strict --quiet in {folder}\n"
    assert "one.py" in call(shell, folder, fake, "bench").stdout
    assert "one.py" in call(shell, folder, fake, "bench", "one").stdout
    built = call(shell, folder, fake, "build").stdout.splitlines()
    assert [line.partition(" in ")[0] for line in built] == [
        "python -m build --no-isolation --outdir dist .",
        "python tools/check_release.py dist",
    ]
    wrong = call(shell, folder, fake, "tset")
    assert wrong.returncode == 2
    assert "usage" in wrong.stderr


def test_without_a_python_it_says_what_is_needed(clone):
    folder, _, _ = clone
    bare = folder / "bin"
    bare.mkdir()
    for tool in ("dirname", "cksum", "cat", "rm", "id", "env"):
        (bare / tool).symlink_to(shutil.which(tool))
    done = subprocess.run(
        [shutil.which("sh"), str(folder / "run"), "setup"],
        env={"PATH": str(bare)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Python 3.11 or newer" in done.stderr


def test_chromium_is_installed_when_browser_tests_need_it(clone, tmp_path):
    folder, fake, _ = clone
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("dirname", "cksum", "cat", "rm", "mkdir", "cp", "grep", "sh"):
        (bare / tool).symlink_to(shutil.which(tool))
    (bare / "id").write_text("#!/bin/sh\necho ${FAKE_UID:-0}\n")
    (bare / "apt-get").write_text(f'#!/bin/sh\necho "$*" >>"{tmp_path}/apt"\n')
    for program in ("id", "apt-get"):
        (bare / program).chmod(0o755)
    apt = tmp_path / "apt"
    assert call("sh", folder, fake, "test", PATH=str(bare)).returncode == 0
    assert not apt.exists(), "no browser tests, no chromium"
    (folder / "tests").mkdir()
    (folder / "tests" / "test_page.py").write_text("pytestmark = pytest.mark.browser\n")
    call("sh", folder, fake, "test", PATH=str(bare), FAKE_UID="1000")
    assert not apt.exists(), "only root installs"
    assert call("sh", folder, fake, "test", PATH=str(bare)).returncode == 0
    assert "install -y -qq --no-install-recommends chromium" in apt.read_text()
    (bare / "chromium").symlink_to(shutil.which("true"))
    apt.unlink()
    call("sh", folder, fake, "test", PATH=str(bare))
    assert not apt.exists(), "it is there already"


@pytest.mark.long
@pytest.mark.parametrize(
    ("ci", "status", "words"), [("", 0, "NOT TESTED HERE"), ("true", 1, "CI must run them")]
)
def test_without_chromium_browser_tests_skip_loudly_and_fail_in_ci(ci, status, words, tmp_path):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--all",  # its browser tests are long
        "tests/text/test_html.py",
    ]
    environment = os.environ | {"PATH": str(tmp_path), "CI": ci}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert words in done.stdout


def test_no_bashisms():
    text = (ROOT / "run").read_text()
    assert text.startswith("#!/bin/sh\n")
    for word in ("[[", "function ", "local ", "source ", "$'", "<<<", "&>", "=="):
        assert word not in text, word
    for shell in SHELLS:
        subprocess.run([shell, "-n", str(ROOT / "run")], check=True)
