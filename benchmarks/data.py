"""Reading, encoding and splitting a table against pandas and scikit-learn doing their part; and the cost of import."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
from report import best, table, write
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from edfa.data.catalog import NAMES, load_schema
from edfa.data.table import Table

SHARED = Path(os.environ.get("EDFA_DATA") or Path(__file__).parents[2] / "shared" / "data")
LIMIT = 3.0
IMPORT = (
    "import time, sys, json; t = time.process_time(); import edfa; t = time.process_time() - t; "
    "print(json.dumps([t, [m for m in ('torch', 'sklearn', 'pandas', 'scipy.stats') if m in sys.modules]]))"
)


def peers(path: Path, numbers: list[str], words: list[str]) -> None:
    frame = pd.read_parquet(path)
    if numbers:
        StandardScaler().fit_transform(frame[numbers])
    if words:
        OrdinalEncoder().fit_transform(frame[words])


def ours(path: Path, schema: object) -> None:
    whole = Table.from_parquet(path, schema)
    for part in (whole.train, whole.calibration, whole.test):
        _ = part.X, part.y


def main() -> None:
    rows, ratios = [], {}
    for name in NAMES:
        path, schema = SHARED / f"{name}.parquet", load_schema(name)
        if not path.is_file():
            rows.append([name, "not here", "", "", ""])
            continue
        words = [f.name for f in schema if f.words]
        numbers = [f.name for f in schema if not f.words]
        mine, theirs = best(
            lambda p=path, s=schema: ours(p, s), lambda p=path, n=numbers, w=words: peers(p, n, w)
        )
        size, ratios[name] = len(pd.read_parquet(path)), mine / theirs
        rows.append(
            [name, f"{size:,}", f"{mine * 1e3:.0f}", f"{theirs * 1e3:.0f}", f"{ratios[name]:.2f}"]
        )
    command = [sys.executable, "-c", IMPORT]
    runs = [
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    heavy = ", ".join(runs[0][1]) or "none of torch, scikit-learn, pandas, scipy.stats"
    write(
        "data",
        "Data: reading, encoding, splitting",
        "Read from Parquet, check against the card, split in three, fit the encoder on the training part and encode "
        "all three parts, against `pandas.read_parquet` plus scikit-learn's `StandardScaler` on the numbers and "
        "`OrdinalEncoder` on the words of the same rows (no check, no split). Milliseconds, best of 7 in turn; the "
        f"bar on gmsc is {LIMIT:g}.",
        table(["set", "rows", "edfa", "pandas + scikit-learn", "ratio"], rows),
        f"`import edfa`: {min(t for t, _ in runs):.3f} s of CPU (best of 5; the bar is 0.2); loaded with it: {heavy}.",
    )
    if ratios.get("gmsc", 0) > LIMIT:
        sys.exit(f"gmsc costs {ratios['gmsc']:.2f} times its peers; the bar is {LIMIT:g}")


if __name__ == "__main__":
    main()
