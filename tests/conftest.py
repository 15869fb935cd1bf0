"""What the tests share: where the real data are, and a browser where there is one."""

import os
import shutil
from pathlib import Path

import advisors
import effort
import pytest

import edfa
from edfa.data.catalog import BUNDLED

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("EDFA_DATA") or ROOT.parent / "shared" / "data")
_MISSING: dict[str, str] = {}
collect_ignore_glob = ["conftest.py", "*/conftest.py"]  # they hold fixtures, no doctests


def pytest_addoption(parser) -> None:
    parser.addoption("--all", action="store_true", help="run the tests marked long too")


def pytest_configure(config) -> None:
    effort.ALL = config.getoption("--all")


def pytest_collection_modifyitems(config, items) -> None:
    """Leave out the tests marked long, unless --all is given or they are named one by one."""
    if config.getoption("--all") or any("::" in word for word in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture(scope="session", autouse=True)
def _shared_advisors(tmp_path_factory) -> None:
    """Advisors are saved where all processes of this run of the tests find them."""
    base = tmp_path_factory.getbasetemp()
    advisors.FOLDER = base if "PYTEST_XDIST_WORKER" not in os.environ else base.parent


def _absent(what: str, why: str) -> None:
    """Skip, and say so loudly at the end."""
    _MISSING[what] = why
    pytest.skip(why)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the seven real data sets."""
    if not (SHARED / "heloc.parquet").is_file():
        _absent(
            "the four data sets that do not travel",
            "no folder of Parquet files; name one in EDFA_DATA",
        )
    return SHARED


@pytest.fixture
def load_real(request, monkeypatch):
    """``edfa.load`` for all seven sets: those inside the package always, the others where the
    folder is.
    """

    def load(name, **options):
        if name not in BUNDLED:
            monkeypatch.setenv("EDFA_DATA", str(request.getfixturevalue("shared_data")))
        return edfa.load(name, **options)

    return load


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium; without one the test skips loudly, under CI it fails."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the browser tests need chromium, and CI must run them")
        _absent("the browser tests", "no chromium on this machine")
    from playwright.sync_api import sync_playwright

    quiet = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
    ]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=quiet)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL server of our own; without one the test skips loudly, under CI it
    fails.
    """
    from postgres_server import postgres_programs, run_server

    programs = postgres_programs()
    if programs is None:
        if os.environ.get("CI") == "true":
            pytest.fail("the tests of databases need a PostgreSQL server, and CI must run them")
        _absent("PostgreSQL", "no server: neither the package pgserver nor one of the system")
    with run_server(programs) as url:
        yield url


def pytest_terminal_summary(terminalreporter) -> None:
    for what, why in _MISSING.items():
        terminalreporter.section("NOT TESTED HERE", sep="!", red=True, bold=True)
        terminalreporter.write_line(f"{what}: {why}")
