"""One booster: trained with early stopping, read from a file and written to one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xgboost as xgb

from edfa.predictors.base import fit_temperature
from edfa.predictors.forest import class_probabilities
from edfa.writing import atomic_file

__all__ = ["load_booster", "read_booster", "train_booster", "write_booster"]

FIXED = {"tree_method": "hist", "subsample": 0.9, "nthread": 1, "verbosity": 0}  # parameters of every booster
PATIENCE = 20  # trees that may follow the best one
UNCHECKED = 50  # trees at most, where no row is held out to stop by


def train_booster(
    data: xgb.DMatrix,
    check: xgb.DMatrix | None,
    classes: int,
    *,
    trees: int,
    depth: int,
    rate: float,
    seed: int,
    signs: Sequence[int] | None,
    calibrate: bool,
    columns: float = 1.0,
) -> xgb.Booster:
    """Boosted trees for ``data``, at most ``trees``, up to the one after which ``check`` is predicted best.

    ``signs`` are the directions of the columns, ``columns`` is the share of them that each tree may use. With
    ``calibrate`` the booster has the attribute ``temperature``.
    """
    parameters: dict[str, Any] = {"max_depth": depth, "eta": rate, "seed": seed} | FIXED
    parameters |= {"objective": "binary:logistic", "eval_metric": "logloss"}
    if classes > 2:
        parameters |= {"objective": "multi:softprob", "eval_metric": "mlogloss", "num_class": classes}
    if columns < 1:
        parameters["colsample_bytree"] = columns
    if signs is not None:
        parameters["monotone_constraints"] = f"({','.join(map(str, signs))})"
    if check is None:
        return xgb.train(parameters, data, num_boost_round=min(trees, UNCHECKED), verbose_eval=False)
    booster = xgb.train(
        parameters,
        data,
        num_boost_round=trees,
        evals=[(check, "check")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    best = booster[: booster.best_iteration + 1]
    if calibrate:
        probabilities = class_probabilities(best.predict(check))
        best.set_attr(temperature=repr(fit_temperature(probabilities, check.get_label().astype(np.int64))))
    return best


def load_booster(model: Path | bytearray) -> xgb.Booster:
    """The booster that XGBoost wrote, with one thread."""
    booster = xgb.Booster({"nthread": 1})
    booster.load_model(model)
    return booster


def read_booster(path: Path) -> xgb.Booster | None:
    """The booster in a file; None if there is none, or one that is cut off or of another version."""
    try:
        return load_booster(path) if path.is_file() else None
    except xgb.core.XGBoostError:
        return None  # it is trained anew and written over


def write_booster(path: Path, booster: xgb.Booster) -> None:
    """Write a booster to a file that is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as partial:
        booster.save_model(partial)
