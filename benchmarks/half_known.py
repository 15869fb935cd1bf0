"""A file of half-known people beside one of complete ones; and what the masked model that answers costs in log loss."""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from joblib import cpu_count
from report import table, write
from sklearn.metrics import log_loss

import edfa
from edfa.advice import batch_file
from edfa.advice.batch_file import advise_file
from edfa.predictors.monotone import signs

TIMES, LOSS = (
    3.0,
    1.03,
)  # bars: half-known beside complete people, the log loss of mixed beside exact models
FITTED, PEOPLE, SETS, REPEATS = 5_000, 10_000, 20, 3
SPLITS = (0, 1, 2)
CHILD = "import sys; from edfa import Advisor; from edfa.advice.batch_file import advise_file; " + (
    "advise_file(Advisor.load(sys.argv[1]).fitted, sys.argv[2], sys.argv[3])"
)


def fit() -> tuple[Any, pd.DataFrame]:
    """A default advisor on some of Adult, and others of whom everything is known."""
    data = edfa.load("adult")
    some = data.frame.sample(FITTED, random_state=0)
    advisor = edfa.Advisor().fit(
        edfa.Table.from_frame(some.reset_index(drop=True), data.schema, name="adult")
    )
    others = data.frame.drop(index=some.index).sample(PEOPLE, random_state=1)
    encoder = advisor.fitted.encoder
    return advisor, encoder.decode(encoder.encode(others)).astype(object)


def half_known(advisor: Any, people: pd.DataFrame) -> pd.DataFrame:
    """Each feature beyond the start set known with probability a half."""
    hidden = np.random.default_rng(0).random(people.shape) < 0.5
    return people.mask(hidden & ~np.isin(people.columns, advisor.schema.start), None)


def measure_files(
    advisor: Any, files: dict[str, Path], out: Path
) -> tuple[dict[str, tuple[float, float]], list[int]]:
    """The shortest wall-clock and processor seconds of each file, which take turns; and the sizes of the parts."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in files}
    sizes: list[int] = []
    each = batch_file._advise
    batch_file._advise = lambda fitted, frame, *more: (
        sizes.append(len(frame)) or each(fitted, frame, *more)
    )
    for _ in range(REPEATS):
        for name, path in files.items():
            wall, processor = time.perf_counter(), time.process_time()
            advise_file(advisor.fitted, path, out)
            taken[name].append((time.perf_counter() - wall, time.process_time() - processor))
    batch_file._advise = each
    return {
        name: (min(t[0] for t in times), min(t[1] for t in times)) for name, times in taken.items()
    }, sizes


def measure_kill(advisor: Any, path: Path, folder: Path) -> tuple[int, int]:
    """How many people's advice is kept of a run that is killed when some is there; and that it goes on."""
    advisor.save(folder / "advisor")
    out, parts = folder / "killed.csv", folder / ".killed.csv.parts"
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, folder / "advisor", path, out], env=dict(os.environ)
    )
    while process.poll() is None and len(list(parts.glob("[0-9]*.parquet"))) < 3:
        time.sleep(0.01)
    process.kill()
    process.wait()
    kept = sum(len(pd.read_parquet(part, columns=["row"])) for part in parts.glob("[0-9]*.parquet"))
    return kept, advise_file(advisor.fitted, path, out)["resumed"]


def measure_loss(name: str) -> list[Any]:
    """Log loss of test people at random sets of known features, of exact models and of mixed ones; by split."""
    losses, sizes = [], ()
    for seed in SPLITS:
        data = edfa.load(name, seed=seed)
        train, test = data.train, data.test
        settings = {"seed": 0, "monotone": signs(data.schema) if any(signs(data.schema)) else None}
        exact, mixed = (
            edfa.SubsetXGB(mode, **settings).fit(train.X, train.y)
            for mode in ("per_subset", "mixed")
        )
        start = np.array([feature.start for feature in data.schema])
        mixed = mixed.keeping(
            [start, np.ones_like(start)]
        )  # random sets are not on the path: nearly all are masked
        random, sizes = np.random.default_rng(seed), (len(train), len(test))
        masks = [start | (random.random(len(start)) < 0.5) for _ in range(SETS)]
        losses.append([[_loss(model, mask, test) for mask in masks] for model in (exact, mixed)])
    by_split = np.mean(losses, axis=2)
    means = by_split.mean(axis=0)
    each = ", ".join(f"{split[1] / split[0]:.3f}" for split in by_split)
    return [
        name,
        *(f"{n:,}" for n in sizes),
        *(f"{loss:.4f}" for loss in means),
        each,
        f"{means[1] / means[0]:.3f}",
    ]


def _loss(model: Any, mask: Any, test: Any) -> float:
    return float(log_loss(test.y, model.predict_known(mask, np.ascontiguousarray(test.X[:, mask]))))


def main() -> None:
    advisor, people = fit()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = {"complete": folder / "complete.parquet", "half known": folder / "half.parquet"}
        for path, frame in zip(files.values(), (people, half_known(advisor, people)), strict=True):
            frame.infer_objects().to_parquet(path, index=False)
        seconds, sizes = measure_files(advisor, files, folder / "out.csv")
        kept, resumed = measure_kill(advisor, files["half known"], folder)
    ratio = [seconds["half known"][i] / seconds["complete"][i] for i in (0, 1)]
    losses = [measure_loss(name) for name in ("german", "adult")]
    bars = [
        [
            "half-known people's time / complete people's",
            f"{ratio[0]:.2f}",
            f"at most {TIMES:g}",
            _met(ratio[0], TIMES),
        ],
        *(
            [
                f"log loss on {row[0]}, mixed / a model for each set",
                row[-1],
                f"at most {LOSS}",
                _met(float(row[-1]), LOSS),
            ]
            for row in losses
        ),
        ["largest part, people", f"{max(sizes):,}", "at most 1,000", _met(max(sizes), 1000)],
    ]
    write(
        "half_known",
        "Files of half-known people",
        f"Adult, the default advisor fitted on a table of {FITTED:,} rows (60 % of them train), {PEOPLE:,} other people in a "
        "Parquet file: complete, and with each feature beyond the start set known with probability 1/2. As `edfa advise` does "
        f"it, on {cpu_count()} processors; the files take turns, and the shortest of {REPEATS} is given. *Before*: a model for every "
        "set of known features, one chunk of 10,000, an advisor fitted on all of Adult; as it was found.",
        table(
            ["file", "seconds", "processor seconds", "before, seconds"],
            [
                ["complete", *(f"{s:.1f}" for s in seconds["complete"]), "12"],
                ["half known", *(f"{s:.1f}" for s in seconds["half known"]), "not done after 290"],
                ["ratio", *(f"{r:.2f}" for r in ratio), "above 24"],
            ],
        ),
        f"A run that was killed early on kept the advice of {kept:,} people ({resumed} parts), where it kept nothing before.",
        "## Log loss",
        f"Of test people at {SETS} random sets of known features (the start set, others with probability 1/2), means over "
        f"{len(SPLITS)} splits as in [predictors.md](predictors.md), whose ratios are given too: a model for each set, "
        "and mode `mixed` with the start set and everything kept, so that nearly all sets are answered by the masked model. "
        "Directions as the card says.",
        table(
            [
                "set",
                "training rows",
                "test people",
                "a model for each set",
                "mixed",
                "ratio by split",
                "ratio",
            ],
            losses,
        ),
        "## Bars",
        table(["", "measured", "bar", ""], bars),
    )


def _met(measured: float, bar: float) -> str:
    return "met" if measured <= bar else "**missed**"


if __name__ == "__main__":
    main()
