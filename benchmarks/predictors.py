"""How well and how fast the predictors answer from subsets, on the seven real sets, against plain XGBoost.

The networks are trained by benchmarks/networks.py, here or where a GPU is; what is in out/predictors is not done again.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import networks
import numpy as np
import torch
import xgboost as xgb
from networks import FOLDER, SIZES, SUBSETS, epoch_seconds, score
from report import best, table, write

from edfa.data.catalog import NAMES, load_schema
from edfa.data.table import Table
from edfa.predictors.base import inner_split
from edfa.predictors.ftt import FTTransformer
from edfa.predictors.xgb import SubsetXGB

SHARED = Path(os.environ.get("EDFA_DATA") or Path(__file__).parents[2] / "shared" / "data")
SEEDS, CAP, LARGE = (0, 1, 2), 50_000, 10_000
MODELS = ("XGBoost", "SubsetXGB", "SubsetXGB nan", "MaskedMLP", "FTTransformer")


def lay_out() -> list[str]:
    """One file a set and seed: encoded training and test rows, and the random subsets."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    here = [name for name in NAMES if (SHARED / f"{name}.parquet").is_file()]
    for name in here:
        for seed in SEEDS:
            path = FOLDER / f"{name}-{seed}.npz"
            if path.exists():
                continue
            whole = Table.from_parquet(
                SHARED / f"{name}.parquet", load_schema(name), seed=seed, cap=CAP
            )
            random, d = np.random.default_rng(seed), whole.train.X.shape[1]
            masks = np.zeros((len(SIZES) * SUBSETS, d), dtype=bool)
            for row, size in enumerate(np.repeat(SIZES, SUBSETS)):
                masks[row, random.choice(d, size, replace=False)] = True
            arrays = {
                "X_train": whole.train.X,
                "y_train": whole.train.y,
                "X_test": whole.test.X,
                "y_test": whole.test.y,
            }
            np.savez_compressed(path, **arrays, masks=masks, seed=seed, rows=len(whole))
    return here


class Plain:
    """XGBoost as anyone would call it, same settings and same early stopping, on all features."""

    def __init__(self, like: SubsetXGB, case: dict[str, Any]) -> None:
        settings = {
            "max_depth": like.max_depth,
            "learning_rate": like.learning_rate,
            "n_estimators": like.n_estimators,
            "n_jobs": 1,
        }
        stop = {
            "early_stopping_rounds": 20,
            "eval_metric": "logloss",
            "subsample": 0.9,
            "random_state": like.seed,
        }
        train, held = inner_split(case["y_train"].astype(np.int64), like.seed)
        self.model = xgb.XGBClassifier(**settings, **stop)
        X, y = case["X_train"], case["y_train"]
        self.model.fit(X[train], y[train], eval_set=[(X[held], y[held])], verbose=False)

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)


def trees(path: Path) -> dict[str, dict[str, Any]]:
    """Plain XGBoost, one a subset, and one for all, on one case."""
    target = path.with_name(f"{path.stem}-trees.json")
    if not target.exists():
        case = dict(np.load(path))
        rows, seed = (case["X_train"], case["y_train"]), int(case["seed"])
        dedicated = SubsetXGB(seed=seed).fit(*rows)
        found = {
            "XGBoost": score(Plain(dedicated, case), case | {"masks": case["masks"] | True}),
            "SubsetXGB": score(dedicated, case),
            "SubsetXGB nan": score(SubsetXGB("nan", seed=seed).fit(*rows), case),
        }
        target.write_text(json.dumps(found), encoding="utf-8")
        print(target.name, file=sys.stderr, flush=True)
    return json.loads(target.read_text(encoding="utf-8"))


def gather(name: str) -> dict[str, list[dict[str, Any]]]:
    """All scores of a set: a list over seeds for each model."""
    found: dict[str, list[dict[str, Any]]] = {model: [] for model in MODELS}
    for seed in SEEDS:
        path = FOLDER / f"{name}-{seed}.npz"
        told = trees(path)
        for model in networks.MODELS:
            told[model] = json.loads(
                path.with_name(f"{path.stem}-{model}.json").read_text(encoding="utf-8")
            )
        for model in MODELS:
            found[model].append(told[model])
    return found


def mean(scores: list[dict[str, Any]], key: str, size: int | None = None) -> float:
    return float(np.mean([s[key] if size is None else s[key][str(size)] for s in scores]))


def speed() -> tuple[str, dict[str, float]]:
    """Ratios of two things timed in turn."""
    case = dict(np.load(next(iter(sorted(FOLDER.glob("diabetes130-0.npz"))))))
    random, X = np.random.default_rng(0), case["X_test"][:10_000]
    model = SubsetXGB(seed=0).fit(case["X_train"], case["y_train"])
    masks = random.random((20, X.shape[1])) < 0.4
    group = random.integers(0, len(masks), len(X))
    partial = np.where(masks[group], X, np.float32(np.nan))
    model.predict_proba(partial)
    parts = [
        (model.booster(m), np.ascontiguousarray(X[group == g][:, m]))
        for g, m in enumerate(masks & model.varies_)
    ]
    ours, bare = best(
        lambda: model.predict_proba(partial),
        lambda: [b.inplace_predict(p) for b, p in parts],
        repeats=20,
    )
    columns = random.choice(X.shape[1], 20, replace=False)
    network = FTTransformer(epochs=1).fit(case["X_train"][:2000, columns], case["y_train"][:2000])
    mask = np.isin(np.arange(20), random.choice(20, 7, replace=False))
    few = np.where(mask, X[:4000, columns], np.float32(np.nan))
    places = torch.from_numpy(network._encode(few, np.arange(20)))
    known = torch.from_numpy(np.broadcast_to(mask, few.shape).copy())
    torch.set_num_threads(1)
    with torch.no_grad():
        everything = torch.arange(20)
        packed, unpacked = best(
            lambda: network.predict_proba(few),
            lambda: network.network_(places, everything, known).softmax(dim=1),
        )
    ratios = {"SubsetXGB": ours / bare, "packed": unpacked / packed}
    rows = [
        [
            "SubsetXGB, warm, 10,000 people over 20 sets / the 20 bare booster calls",
            f"{ratios['SubsetXGB']:.2f}",
            "at most 1.3",
        ],
        [
            "FTTransformer, 7 of 20 features known: all columns masked / packed",
            f"{ratios['packed']:.1f}",
            "at least 2.5",
        ],
    ]
    return table(["", "ratio", "bar"], rows), ratios


def training_time(names: list[str]) -> str:
    """How long the networks took, and an epoch on a GPU beside one here."""
    rows = []
    for name in names:
        found = gather(name)
        for model in networks.MODELS:
            devices = ", ".join(sorted({s["device"] for s in found[model]}))
            rows.append([name, model, f"{mean(found[model], 'seconds'):.0f}", devices])
    text = "Seconds to train a network, mean over seeds (several were trained at once):\n\n"
    text += table(["set", "model", "seconds", "on"], rows)
    if (FOLDER / "epoch.json").exists():
        timed = json.loads((FOLDER / "epoch.json").read_text(encoding="utf-8"))
        here = epoch_seconds(FOLDER / f"{timed['case']}.npz", "cpu")
        text += (
            f"\n\nAn epoch of the default FT-Transformer on {timed['case'].split('-')[0]}, nothing else running: "
            f"{timed['cuda']:.2f} s on {timed['device']}, {here:.1f} s on one core of a CPU ({here / timed['cuda']:.0f} x)."
        )
    return text


def main() -> None:
    names = lay_out()
    if not names:
        sys.exit("none of the real sets is here; say where with EDFA_DATA=FOLDER")
    networks.main()
    quality, subsets, misses = [], [], []
    for name in names:
        found = gather(name)
        rows = int(np.load(FOLDER / f"{name}-0.npz")["rows"])
        for model in MODELS:
            scores = found[model]
            told = [
                100 * mean(scores, "accuracy"),
                100 * mean(scores, "auroc"),
                100 * mean(scores, "ece"),
            ]
            quality.append([name, f"{rows:,}", model, *(f"{value:.1f}" for value in told)])
        for key in ("accuracy", "auroc"):
            gap = 100 * (mean(found["SubsetXGB"], key) - mean(found["XGBoost"], key))
            if gap < -0.3:
                misses.append(
                    f"{name}: SubsetXGB's {key} {gap:+.2f} points from plain XGBoost's (bar -0.3)"
                )
        gap = 100 * (mean(found["FTTransformer"], "auroc") - mean(found["XGBoost"], "auroc"))
        if rows >= LARGE and gap < -2:
            misses.append(
                f"{name}: FTTransformer's AUROC {gap:+.2f} points from plain XGBoost's (bar -2)"
            )
        for size in SIZES:
            base = mean(found["SubsetXGB"], "log_loss", size)
            ratios = {m: mean(found[m], "log_loss", size) / base for m in MODELS[2:]}
            subsets.append(
                [name, size, f"{base:.4f}", *(f"{ratio:.3f}" for ratio in ratios.values())]
            )
            misses += [
                f"{name}: {m} at {size} features {r:.3f} (bar 1.1)"
                for m, r in ratios.items()
                if r > 1.1
            ]
    pace, ratios = speed()
    misses += (
        [f"SubsetXGB's ratio is {ratios['SubsetXGB']:.2f}"] if ratios["SubsetXGB"] > 1.3 else []
    )
    misses += [f"packing gains {ratios['packed']:.1f} x"] if ratios["packed"] < 2.5 else []
    write(
        "predictors",
        "Predictors: accuracy, calibration, subsets, speed",
        f"Rows capped at {CAP:,}, split 60/20/20 by each of the seeds {', '.join(map(str, SEEDS))}; means over seeds. "
        "XGBoost is the plain classifier with SubsetXGB's settings. Networks learn once, from rows with random masks.",
        "## Everything known\n\nIn per cent; ECE is the calibration error over 15 bins.",
        table(["set", "rows", "model", "accuracy", "AUROC", "ECE"], quality),
        f"## Random subsets\n\nLog loss on {SUBSETS} random subsets of each size, of one XGBoost made for the subset "
        "(SubsetXGB), and of the models that learnt once as a ratio to it (bar 1.1).",
        table(["set", "features known", "one a subset", *MODELS[2:]], subsets),
        "## Speed\n\n" + pace,
        training_time(names),
        "## Bars\n\n" + ("\n".join(f"- missed: {miss}" for miss in misses) or "All met."),
    )


if __name__ == "__main__":
    main()
