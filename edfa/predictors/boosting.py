"""One booster: trained with early stopping, read from a file and written to one."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xgboost as xgb

from edfa.artifacts import readable
from edfa.errors import UnreadableError
from edfa.predictors.base import class_probabilities, fit_temperature
from edfa.predictors.booster_file import BoosterFile, check_boosters
from edfa.reading import MEGABYTE, read_bytes
from edfa.writing import atomic_file

__all__ = [
    "booster_bytes",
    "booster_hash",
    "load_boosters",
    "merge_boosters",
    "read_cached",
    "train_booster",
    "write_cached",
]

FIXED = {
    "tree_method": "hist",
    "subsample": 0.9,
    "nthread": 1,
    "verbosity": 0,
}  # parameters of every booster
PATIENCE = 20  # trees that may follow the best one
CACHED_LIMIT = 1024 * MEGABYTE
HASH_SIZE = 32  # bytes of a SHA-256
UNCHECKED = 50  # trees at most, where no row is held out to stop by
COMPARED = 64  # random rows on which merged boosters are compared with themselves apart


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
    """Boosted trees for ``data``, at most ``trees``, up to the one after which ``check`` is
    predicted best.

    ``signs`` are the directions of the columns, ``columns`` is the share of them that each tree may
    use. With ``calibrate`` the booster has the attribute ``temperature``.
    """
    parameters: dict[str, Any] = {"max_depth": depth, "eta": rate, "seed": seed} | FIXED
    parameters |= {"objective": "binary:logistic", "eval_metric": "logloss"}
    if classes > 2:
        parameters |= {
            "objective": "multi:softprob",
            "eval_metric": "mlogloss",
            "num_class": classes,
        }
    if columns < 1:
        parameters["colsample_bytree"] = columns
    if signs is not None:
        parameters["monotone_constraints"] = f"({','.join(map(str, signs))})"
    if check is None:
        return xgb.train(
            parameters, data, num_boost_round=min(trees, UNCHECKED), verbose_eval=False
        )
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
        best.set_attr(
            temperature=repr(fit_temperature(probabilities, check.get_label().astype(np.int64)))
        )
    return best


def load_boosters(files: Sequence[BoosterFile]) -> list[xgb.Booster]:
    """The boosters that XGBoost wrote, with one thread; UnreadableError for one that it cannot have
    written.
    """
    boosters = []
    for file, version in zip(files, check_boosters(files), strict=True):
        booster = xgb.Booster({"nthread": 1})
        with readable(file.name):
            booster.load_model(bytearray(file.content))
        _HASHES[booster] = hashlib.sha256(file.content).hexdigest()
        if ".".join(map(str, version)) != xgb.__version__:
            _WRITTEN[booster] = file.content
        boosters.append(booster)
    return boosters


def merge_boosters(boosters: Sequence[xgb.Booster]) -> xgb.Booster | None:
    """One booster that answers what several boosters of two classes answer, (n, boosters): it saves
    calls.

    The trees of each are those of one of its outputs. The answers are the same to the bit: that is
    tried on some rows, and where it is not so, or boosters are of several classes, or XGBoost is
    too old for it, the result is None.
    """
    written = [json.loads(booster.save_raw("json")) for booster in boosters]
    contents, features = [part["learner"] for part in written], boosters[0].num_features()
    learner = contents[0]
    if any(content["objective"]["name"] != "binary:logistic" for content in contents):
        return None
    models = [content["gradient_booster"]["model"] for content in contents]
    trees = [tree for model in models for tree in model["trees"]]
    learner["gradient_booster"]["model"] = models[0] | {
        "trees": [tree | {"id": number} for number, tree in enumerate(trees)],
        "tree_info": np.repeat(
            np.arange(len(models)), [len(model["trees"]) for model in models]
        ).tolist(),
        "iteration_indptr": [0, len(trees)],
        "gbtree_model_param": models[0]["gbtree_model_param"] | {"num_trees": str(len(trees))},
    }
    scores = [content["learner_model_param"]["base_score"].strip("[]") for content in contents]
    learner["learner_model_param"] |= {
        "num_target": str(len(models)),
        "base_score": f"[{','.join(scores)}]",
    }
    merged = xgb.Booster({"nthread": 1})
    try:
        merged.load_model(bytearray(json.dumps(written[0]).encode()))
    except xgb.core.XGBoostError:
        return None
    rows = np.random.default_rng(0).normal(scale=2, size=(COMPARED, features)).astype(np.float32)
    apart = np.stack([booster.inplace_predict(rows) for booster in boosters], axis=1)
    return merged if np.array_equal(merged.inplace_predict(rows), apart) else None


def booster_bytes(booster: xgb.Booster) -> bytes:
    """A booster as UBJSON: what it was read from, if another XGBoost wrote that, else what this
    XGBoost writes.
    """
    return _WRITTEN.get(booster) or bytes(booster.save_raw("ubj"))


def booster_hash(booster: xgb.Booster) -> str:
    """The SHA-256 of ``booster_bytes``; a booster is never changed once it is trained."""
    if (known := _HASHES.get(booster)) is None:
        known = _HASHES[booster] = hashlib.sha256(booster_bytes(booster)).hexdigest()
    return known


_WRITTEN: WeakKeyDictionary[xgb.Booster, bytes] = WeakKeyDictionary()
_HASHES: WeakKeyDictionary[xgb.Booster, str] = WeakKeyDictionary()


def read_cached(path: Path, key: bytes, features: int, classes: int) -> xgb.Booster | None:
    """The booster that ``write_cached`` wrote for this key; None if there is none that is whole."""
    try:
        content = read_bytes(path, CACHED_LIMIT)
        booster = content[HASH_SIZE:]
        if content[:HASH_SIZE] != _seal(key, booster):
            return None
        return load_boosters([BoosterFile(path.name, booster, features, classes)])[0]
    except UnreadableError:
        return None  # it is trained anew and written over


def write_cached(path: Path, key: bytes, booster: xgb.Booster) -> None:
    """Write a booster to a file that is whole or not there, after the hash of the key and of what
    follows.

    Where something that is no file has the name, nothing is written: a cache is only there to save
    time.
    """
    content = booster_bytes(booster)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        return
    with atomic_file(path) as partial:
        partial.write_bytes(_seal(key, content) + content)


def _seal(key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key).digest() + content).digest()
