"""What is published: the wheel and the sdist, what they have inside, and the README's first block
from the wheel.
"""

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import edfa

ROOT = Path(__file__).parents[1]
README = re.findall(
    r"```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S
)


def load_tool(name):
    """A program of tools/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_release = load_tool("check_release")


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """A folder with the wheel and the sdist, made as `./run build` makes them."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """The programs of an environment with the wheel alone, which borrows the dependencies of this
    one.
    """
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    (wheel,) = dist.glob("*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
    ]
    subprocess.run([*pip, str(wheel)], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    # A line of a .pth file adds a folder, but not what that folder's own .pth files name: not this
    # checkout.
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return home / "bin"


def run_in(installed, folder, *command):
    """Run a program of that environment in a folder of its own, where nothing else leads to
    edfa.
    """
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment["PATH"] = os.pathsep.join([str(installed), os.environ["PATH"]])
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_the_packages_are_whole(dist):
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    assert wheel.name == f"edfa-{edfa.__version__}-py3-none-any.whl"
    assert check_release.check_wheel(wheel) == []
    assert check_release.check_sdist(sdist) == []


@pytest.mark.long
def test_a_wheel_that_is_not_whole_is_refused(dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(tmp_path / wheel.name, "w") as broken:
        for name in whole.namelist():
            if name not in ("edfa/py.typed", "edfa/data/cards/german.toml"):
                broken.writestr(name, whole.read(name))
        broken.writestr("tests/test_readme.py", "")
    assert check_release.check_wheel(tmp_path / wheel.name) == [
        "the wheel lacks edfa/data/cards/german.toml",
        "the wheel lacks edfa/py.typed",
        "the wheel has tests/test_readme.py, which is no part of the package",
        "the wheel has no a mark that it is typed",
    ]


@pytest.mark.long
def test_an_installed_edfa_is_the_wheels(installed, tmp_path):
    code = (
        "import edfa, importlib.metadata as m; print(edfa.__file__, "
        "m.version('edfa'), edfa.load('german').name)"
    )
    place, version, name = run_in(
        installed, tmp_path, str(installed / "python"), "-c", code
    ).split()
    assert Path(place).is_relative_to(installed.parent)
    assert (version, name) == (edfa.__version__, "german")


@pytest.mark.long
def test_the_readmes_first_commands_run_from_the_wheel(installed, tmp_path):
    """``./run demo`` is ``edfa demo`` there; installing has been done, and the tests stay with the
    checkout.
    """
    block = next(text for language, text in README if language in ("sh", "console"))
    commands = [
        line.removeprefix("$ ").replace("./run demo", "edfa demo") for line in block.splitlines()
    ]
    commands = [
        line for line in commands if line.startswith("edfa ") and not line.startswith("edfa serve")
    ]
    assert commands
    for command in commands:
        run_in(installed, tmp_path, "sh", "-eu", "-c", command)
    assert [*tmp_path.rglob("*.*")], "they write what they say"


@pytest.mark.long
def test_the_readmes_first_python_runs_from_the_wheel(installed, tmp_path):
    block = next(text for language, text in README if language == "python")
    run_in(installed, tmp_path, str(installed / "python"), "-c", block)


def test_versions_of_python_are_the_same_everywhere():
    """In the classifiers and in the workflow, and the lowest is the one that is asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classified = [re.search(r"Python :: (3\.\d+)$", line) for line in project["classifiers"]]
    versions = [match[1] for match in classified if match]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r'"(3\.\d+)"', workflow) == versions
    assert project["requires-python"] == f">={versions[0]}"
    assert "run: .ci/run" in workflow


def test_the_citation_has_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {edfa.__version__}\n" in text
