"""A PostgreSQL server for tests, from the programs of the package pgserver or of the system."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def postgres_programs() -> Path | None:
    """The folder of a PostgreSQL server's programs: of the package pgserver, or of the system."""
    package = importlib.util.find_spec("pgserver")
    places = [
        Path(place) / "pginstall" / "bin"
        for place in (package.submodule_search_locations if package else ())
    ]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    places += [Path(program).parent for program in [shutil.which("initdb")] if program]
    return next((place for place in places if (place / "initdb").is_file()), None)


@contextmanager
def run_server(programs: Path) -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, on a socket in a folder that goes with it."""
    # The server refuses to run as root.
    other = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory(prefix="edfa-pg-") as folder:
        if other:
            shutil.chown(folder, "nobody", "nogroup")
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **other}
        data = [
            str(programs / "initdb"),
            "-D",
            f"{folder}/data",
            "-U",
            "edfa",
            "--auth=trust",
            "--no-sync",
            "-E",
            "utf8",
        ]
        subprocess.run(data, check=True, timeout=600, **quiet)
        settings = [
            f"{programs}/postgres",
            "-D",
            f"{folder}/data",
            "-k",
            folder,
            "-c",
            "listen_addresses=",
            "-F",
        ]
        server = subprocess.Popen(settings, **quiet)
        try:
            wait_for_server(server, url := f"postgresql://edfa@/postgres?host={folder}")
            yield url
        finally:
            server.terminate()
            server.wait(600)


def wait_for_server(server, url, seconds=600):
    import psycopg

    end = time.monotonic() + seconds
    while True:
        assert server.poll() is None, "the PostgreSQL server ended"
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < end, "the PostgreSQL server does not answer"
            time.sleep(0.05)
