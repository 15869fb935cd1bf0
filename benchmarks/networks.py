"""Train the masked networks on what `benchmarks/predictors.py` has laid out, and score them; one JSON file a network.

Needs torch, scikit-learn and this project, no more: it can be run alone where a GPU is at hand, and what it leaves in
the folder is taken up by `./run bench predictors`.
"""

import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import log_loss, roc_auc_score

from edfa.predictors.ftt import FTTransformer
from edfa.predictors.mlp import MaskedMLP

FOLDER = Path(__file__).parents[1] / "out" / "predictors"
MODELS = {"MaskedMLP": MaskedMLP, "FTTransformer": FTTransformer}
SIZES, SUBSETS, BINS = (1, 3, 5), 20, 15


def score(model: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Accuracy, AUROC, calibration error on everything; log loss on each of the random subsets."""
    X, y = case["X_test"], case["y_test"]
    told = model.predict_proba(X)
    subsets = [
        log_loss(y, model.predict_proba(np.where(mask, X, np.float32(np.nan))))
        for mask in case["masks"]
    ]
    by_size = np.array(subsets).reshape(len(SIZES), SUBSETS).mean(axis=1)
    return {
        "accuracy": float((told.argmax(axis=1) == y).mean()),
        "auroc": float(roc_auc_score(y, told[:, 1])),
        "ece": calibration_error(told, y),
        "log_loss": {str(size): float(loss) for size, loss in zip(SIZES, by_size, strict=True)},
    }


def calibration_error(told: Any, y: Any) -> float:
    """How far the chance of the told class is from how often it is right, over bins of equal width."""
    sure, right = told.max(axis=1), told.argmax(axis=1) == y
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=right - sure, minlength=BINS)
    return float(np.abs(gaps).sum() / len(y))


def train(path: Path, name: str) -> str:
    """Fit one network on one case, unless that was done before."""
    target = path.with_name(f"{path.stem}-{name}.json")
    if not target.exists():
        case = dict(np.load(path))
        start = time.perf_counter()
        model = MODELS[name](seed=int(case["seed"])).fit(case["X_train"], case["y_train"])
        seconds = time.perf_counter() - start
        where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
        target.write_text(
            json.dumps(score(model, case) | {"seconds": seconds, "device": where}), encoding="utf-8"
        )
    return target.name


def epoch_seconds(path: Path, device: str) -> float:
    """Seconds of an epoch of the default FT-Transformer, after a first that warms up."""
    case = dict(np.load(path))
    ticks: list[float] = []
    model = FTTransformer(epochs=4, device=device)
    model.fit(
        case["X_train"], case["y_train"], progress=lambda *_: ticks.append(time.perf_counter())
    )
    return min(np.diff(ticks).tolist())


def main(jobs: int = 1) -> None:
    """Train whatever is missing; the longest first."""
    cases = sorted(FOLDER.glob("*.npz"), key=lambda path: -path.stat().st_size)
    todo = [(path, name) for name in ("FTTransformer", "MaskedMLP") for path in cases]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done in pool.map(train, *zip(*todo, strict=True)):
            print(done, file=sys.stderr, flush=True)
    if torch.cuda.is_available() and cases:
        timed = {
            "case": cases[0].stem,
            "device": torch.cuda.get_device_name(),
            "cuda": epoch_seconds(cases[0], "cuda"),
        }
        (FOLDER / "epoch.json").write_text(json.dumps(timed), encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
