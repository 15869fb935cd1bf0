"""Time the ten-minute tutorial by its own text in a new environment; writes
docs/results/tutorial.md.

    python tools/time_tutorial.py

It builds the wheel, installs it with the extra ``web`` into an empty environment, with pip's own
settings, and runs every block of docs/tutorial.md there, in order. Packages are fetched from
wherever pip fetches them.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results" / "tutorial.md"
Row = tuple[str, float]


def main() -> None:
    """Install, run every block, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        wheel = build(home)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "venv", str(home / "environment")], check=True)
        python = home / "environment" / "bin" / "python"
        pip = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            f"{wheel}[web]",
        ]
        subprocess.run(pip, check=True)
        rows: list[Row] = [
            ("`pip install 'edfa[web]'` into an empty environment", time.perf_counter() - start)
        ]
        rows += run_blocks(home / "work", python)
    PAGE.write_text(written(rows), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def build(home: Path) -> Path:
    """The wheel of this repository."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(home),
        str(ROOT),
    ]
    subprocess.run(pip, check=True)
    (wheel,) = home.glob("edfa-*.whl")
    return wheel


def run_blocks(folder: Path, python: Path) -> list[Row]:
    """Run the shell and Python blocks of the tutorial in order; what each is and how many seconds
    it took.
    """
    folder.mkdir()
    environment = os.environ | {"PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])}
    environment.pop("PYTHONPATH", None)
    rows = []
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    for language, block in re.findall(r"```(sh|python)\n(.*?)```", text, flags=re.S):
        command = ["sh", "-eu", "-c", block] if language == "sh" else [str(python), "-c", block]
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        rows.append((named(language, block), time.perf_counter() - start))
    return rows


def named(language: str, block: str) -> str:
    """What a block is called in the table: its commands of edfa."""
    commands = re.findall(r"^edfa [\w-]+", block, flags=re.M)
    return (
        "the card, edited by a program"
        if language == "python"
        else ", ".join(f"`{c}`" for c in commands)
    )


def written(rows: list[Row]) -> str:
    """The page."""
    until_fit = next(i for i, (name, _) in enumerate(rows) if "edfa fit" in name) + 1
    fitted = sum(seconds for _, seconds in rows[:until_fit])
    head = [
        "# The tutorial against the clock",
        "",
        f"Made by `python tools/time_tutorial.py` with edfa {version('edfa')}, Python "
        f"{platform.python_version()}, "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors.",
        "",
        f"From `pip install` to a certified advisor on a CSV file: **{fitted / 60:.1f} "
        "minutes** of computing; to the "
        f"letter: {sum(seconds for _, seconds in rows) / 60:.1f}. Reading, and going "
        "through a card of one's own, come "
        "on top: nobody has timed a person.",
        "",
        "| step of [the tutorial](../tutorial.md) | seconds |",
        "|---|---|",
    ]
    return "\n".join([*head, *(f"| {name} | {seconds:.1f} |" for name, seconds in rows)]) + "\n"


if __name__ == "__main__":
    main()
