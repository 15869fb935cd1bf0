"""Measure what ``pip install edfa`` puts on a disk, with extras and without; writes
docs/results/install.md.

    python tools/install_size.py

It builds the wheel, installs it into a new environment in a temporary folder, with pip's own
settings, and then adds one extra after the other. Packages are fetched from wherever pip fetches
them.
"""

import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
STEPS = ("", "plots", "neural", "web", "scale", "own", "bn")
SHOWN = 12  # the largest packages that are listed
OWN = ("pip", "setuptools")  # an empty environment has them
MEASURE = f"""
import json
from importlib.metadata import distributions

def size(part):
    paths = (file.locate() for file in part.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())

print(json.dumps({{f"{{d.name}} {{d.version}}": size(d) for d in distributions() if d.name not in {OWN!r}}}))
"""


def main() -> None:
    """Measure every step, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
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
        python = home / "environment" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", str(home / "environment")], check=True)
        sizes, seconds = [], []
        for extra in STEPS:
            start = time.perf_counter()
            install(python, f"{wheel}[{extra}]" if extra else str(wheel))
            seconds.append(time.perf_counter() - start)
            sizes.append(measure(python))
        write(sizes, seconds, wheel.stat().st_size)


def install(python: Path, what: str) -> None:
    """Install into an environment; what is there already stays."""
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", what], check=True)


def measure(python: Path) -> dict[str, int]:
    """Bytes of each package of an environment, byte code included."""
    done = subprocess.run([str(python), "-c", MEASURE], check=True, capture_output=True, text=True)
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def write(sizes: list[dict[str, int]], seconds: list[float], wheel: int) -> None:
    """Write docs/results/install.md."""
    rows = []
    for i, extra in enumerate(STEPS):
        before = sizes[i - 1] if i else {}
        new = sorted(set(sizes[i]) - set(before), key=lambda name: -sizes[i][name])
        added = sum(sizes[i].values()) - sum(before.values())
        largest = ", ".join(f"{name} {mega(sizes[i][name])}" for name in new[:3])
        rows.append(
            [
                f"`edfa[{extra}]`" if extra else "`edfa`",
                mega(added),
                len(new),
                f"{seconds[i]:.0f}",
                largest,
            ]
        )
    core, all_three = sum(sizes[0].values()), sum(sizes[2].values())
    largest = sorted(sizes[0].items(), key=lambda item: -item[1])[:SHOWN]
    version = next(name.split()[1] for name in sizes[0] if name.startswith("edfa "))
    arrow = next(size for name, size in sizes[0].items() if name.startswith("pyarrow "))
    sqlalchemy = next(size for name, size in sizes[0].items() if name.startswith("SQLAlchemy "))
    text = [
        "# What an installation takes",
        f"Made by `python tools/install_size.py` with edfa {version}, Python "
        f"{platform.python_version()}, "
        f"{platform.system()} {platform.machine()}. MB are 2^20 bytes on the disk, byte "
        "code included, without pip.",
        f"The wheel itself has {mega(wheel)} MB. `pip install edfa` takes **{mega(core)} "
        "MB**; with PyTorch and "
        f"matplotlib, which it needed until they became extras, it took {mega(all_three)} MB: "
        f"{all_three / core:.1f} times as much.",
        "## Each extra on top of those above it",
        table(["installed", "MB added", "packages", "seconds", "the largest (MB)"], rows),
        (
            "On Linux the PyTorch of PyPI comes with CUDA, which is gigabytes more than a "
            "build without (`+cpu`)."
        ),
        f"## The {SHOWN} largest of the core",
        table(["package", "MB"], [[name, mega(size)] for name, size in largest]),
        f"pyarrow ({mega(arrow)} MB) stays: the data sets inside the package, the "
        "training rows of a saved advisor and "
        "tables of people are Parquet. SQLAlchemy is imported by studies and the service "
        "alone; it stays, since "
        f"without it the core would be {sqlalchemy / core:.0%} smaller and no study would "
        "run. Everything else "
        "in the core is imported by a default advisor, its letter or the command line.",
    ]
    (ROOT / "docs" / "results" / "install.md").write_text(
        "\n\n".join(text) + "\n", encoding="utf-8"
    )


def mega(size: int) -> str:
    """Bytes in MB of 2^20, with one place where they are few."""
    count = size / 2**20
    return f"{count:.1f}" if count < 10 else f"{count:.0f}"


def table(columns: list[str], rows: list[list[object]] | list[list[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    main()
