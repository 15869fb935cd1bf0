"""What other programs propose to people who were refused, and the processor time it takes them.

It runs in an environment made from benchmarks/peers.txt and knows nothing of edfa:

    python recourse_peers.py --method dice-random --data FOLDER --people 20 --out FILE.json

FOLDER holds `task.json` (names, which are categories, which may change, the class wanted), `rows.npz` (`train`,
`classes`, `people`, as label codes and standard units) and `model.ubj` (XGBoost). The file is replaced whole after every
person, so a caller may stop the program at any time and keep what is there: `seconds` has the processor time of each
person, `rows` what was proposed, `errors` what was raised. Loading and setting up are not counted.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost as xgb
from quiet import silence

Rows = np.ndarray


class Model:
    """The booster as a scikit-learn classifier, for rows of codes or for DiCE's frames of words."""

    _estimator_type = "classifier"
    classes_ = np.array([0, 1])

    def __init__(self, path: Path) -> None:
        self.booster = xgb.Booster({"nthread": 1})
        self.booster.load_model(path)

    def predict_proba(self, rows: Any) -> Rows:
        matrix = rows.to_numpy(dtype=object) if isinstance(rows, pd.DataFrame) else rows
        chance = self.booster.inplace_predict(np.ascontiguousarray(matrix.astype(np.float32)))
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, rows: Any) -> Rows:
        return self.predict_proba(rows).argmax(axis=1)


def dice(
    method: str, count: int, task: dict[str, Any], data: dict[str, Rows], model: Model
) -> Callable[[Rows], Rows]:
    import dice_ml

    names, words = task["names"], set(task["categorical"])

    def frame(rows: Rows) -> pd.DataFrame:
        columns = {
            n: rows[:, j].astype(int).astype(str) if n in words else rows[:, j]
            for j, n in enumerate(names)
        }
        return pd.DataFrame(columns).astype(dict.fromkeys(words, object))

    told = frame(data["train"]).assign(outcome=data["classes"])
    numbers = [n for n in names if n not in words]
    table = dice_ml.Data(dataframe=told, continuous_features=numbers, outcome_name="outcome")
    explainer = dice_ml.Dice(table, dice_ml.Model(model=model, backend="sklearn"), method=method)

    def explain(row: Rows) -> Rows:
        found = explainer.generate_counterfactuals(
            frame(row[None]),
            total_CFs=count,
            desired_class=task["wanted"],
            features_to_vary=task["allowed"],
        )
        plans = found.cf_examples_list[0].final_cfs_df
        return (
            np.zeros((0, len(names)))
            if plans is None
            else plans[names].to_numpy(dtype=object).astype(float)
        )

    return explain


def nice(
    reward: str, task: dict[str, Any], data: dict[str, Rows], model: Model
) -> Callable[[Rows], Rows]:
    from nice import NICE

    words = [j for j, n in enumerate(task["names"]) if n in task["categorical"]]
    numbers = [j for j in range(len(task["names"])) if j not in words]
    train = data["train"].astype(float)
    explainer = NICE(
        model.predict_proba, train, words, numbers, y_train=data["classes"], optimization=reward
    )
    return lambda row: explainer.explain(row[None].astype(float).copy())


METHODS: dict[str, Callable[[dict[str, Any], dict[str, Rows], Model], Callable[[Rows], Rows]]] = {
    "dice-random": lambda *given: dice("random", 4, *given),
    "dice-genetic": lambda *given: dice("genetic", 4, *given),
    "nice-none": lambda *given: nice("none", *given),
    "nice-sparsity": lambda *given: nice("sparsity", *given),
    "nice-proximity": lambda *given: nice("proximity", *given),
}


def run(method: str, folder: Path, people: int, out: Path) -> None:
    task = json.loads((folder / "task.json").read_text())
    data = dict(np.load(folder / "rows.npz"))
    content: dict[str, Any] = {"seconds": [], "rows": [], "errors": []}
    with silence():
        explain = METHODS[method](task, data, Model(folder / "model.ubj"))
        explain(data["people"][0])  # the first one pays for imports
    for row in data["people"][:people]:
        start, found, error = time.process_time(), np.zeros((0, len(row))), ""
        try:
            with silence():
                found = explain(row)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        content["seconds"].append(time.process_time() - start)
        content["rows"].append(np.asarray(found, dtype=float).tolist())
        content["errors"].append(error)
        beside = out.with_suffix(".tmp")
        beside.write_text(json.dumps(content))
        beside.replace(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--method", choices=METHODS, required=True)
    parser.add_argument("--data", type=Path, required=True, help="a folder")
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True, help="a .json")
    given = parser.parse_args()
    run(given.method, given.data, given.people, given.out)


if __name__ == "__main__":
    main()
