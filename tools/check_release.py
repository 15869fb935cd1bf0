"""Check the wheel and the sdist that ``./run build`` has made: names, metadata, and what is inside.

    python tools/check_release.py [FOLDER]

The wheel has every file of the three packages and nothing else; the sdist has what the tests need, too.
Where twine is installed, ``twine check --strict`` looks at how the description renders.
"""

import ast
import importlib.util
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("edfa", "edfa_serve", "edfa_studies")
KINDS = {  # what the package reads at run time; each kind must be there at all
    "a mark that it is typed": "edfa/py.typed",
    "lazy stubs": "edfa/*.pyi",
    "cards": "edfa/data/cards/*.toml",
    "data sets": "edfa/data/bundled/*.parquet",
    "studies": "edfa_studies/configs/*.toml",
    "sentences": "edfa/text/sentences/*.toml",
    "letters": "edfa_serve/letters/templates/*.jinja",
    "sentences of the page": "edfa_serve/sentences/*.toml",
    "templates of the page": "edfa_serve/templates/*.html",
    "static files": "edfa_serve/static/*",
}
BESIDE = (
    "LICENSE",
    "NOTICE",
    "README.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "SECURITY.md",
    "pyproject.toml",
    "run",
)


def package_files() -> set[str]:
    """Every file of the three packages as it lies here, but for byte code."""
    files = (
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    return {path.relative_to(ROOT).as_posix() for path in files}


def version() -> str:
    """The version, as the package says it."""
    for node in ast.parse((ROOT / "edfa" / "__init__.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__version__":
            return str(ast.literal_eval(node.value))
    raise SystemExit("edfa/__init__.py has no __version__")


def check_wheel(path: Path) -> list[str]:
    """What is wrong with a wheel, in one line each."""
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        metadata = wheel.read(f"edfa-{version()}.dist-info/METADATA").decode()
    inside = {name for name in names if ".dist-info/" not in name}
    wrong = [f"the wheel lacks {name}" for name in sorted(package_files() - inside)]
    wrong += [
        f"the wheel has {name}, which is no part of the package"
        for name in sorted(inside - package_files())
    ]
    wrong += [
        f"the wheel has no {kind}"
        for kind, like in KINDS.items()
        if not any(Path(n).match(like) for n in names)
    ]
    licences = {Path(name).name for name in names if "/licenses/" in name}
    wrong += [f"the wheel lacks {name}" for name in sorted({"LICENSE", "NOTICE"} - licences)]
    return wrong + check_metadata(metadata)


def check_metadata(text: str) -> list[str]:
    """What is wrong with the metadata: the extras, the versions of Python, what comes without an
    extra.
    """
    metadata = HeaderParser().parsestr(text)
    wrong = (
        []
        if metadata["Version"] == version()
        else [f"the metadata says version {metadata['Version']}"]
    )
    if metadata["Requires-Python"] != ">=3.11":
        wrong.append(f"the metadata asks for Python {metadata['Requires-Python']}")
    core = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    wrong += [f"{line} is no extra" for line in core if line.startswith(("torch", "matplotlib"))]
    extras = set(metadata.get_all("Provides-Extra", []))
    return wrong + [
        f"there is no extra {name}" for name in ("neural", "plots", "web") if name not in extras
    ]


def check_sdist(path: Path) -> list[str]:
    """What is wrong with an sdist, in one line each."""
    top = f"edfa-{version()}"
    with tarfile.open(path) as sdist:
        names = {name.removeprefix(f"{top}/") for name in sdist.getnames()}
    wanted = package_files() | set(BESIDE) | {"tests/test_readme.py", "docs/guide.md"}
    stray = [
        name
        for name in names
        if Path(name).parts[:1] in ((".venv",), (".git",), ("out",), ("dist",))
    ]
    return [f"the sdist lacks {name}" for name in sorted(wanted - names)] + [
        f"the sdist has {n}" for n in stray
    ]


def main(folder: Path) -> None:
    """Check what is in a folder; a line for each thing that is wrong, and exit code 1."""
    wheel, sdist = (
        folder / f"edfa-{version()}-py3-none-any.whl",
        folder / f"edfa-{version()}.tar.gz",
    )
    wrong = [
        f"there is no {path.name} in {folder}" for path in (wheel, sdist) if not path.is_file()
    ]
    wrong = wrong or [*check_wheel(wheel), *check_sdist(sdist)]
    if wrong:
        raise SystemExit("\n".join(wrong))
    if importlib.util.find_spec("twine"):
        subprocess.run(
            [sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)], check=True
        )
    for path in (wheel, sdist):
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist")
