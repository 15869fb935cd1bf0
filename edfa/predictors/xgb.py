"""SubsetXGB: one XGBoost for each set of known features, fitted when first needed and kept.

The paper's tree model. A model of its own for every subset is the best calibrated on small subsets; policies that visit
thousands of subsets use ``mode="nan"``, one model that has learnt from masked copies of the rows.
"""

import hashlib
import json
import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import xgboost as xgb
from safetensors.numpy import load, save

from edfa.errors import SchemaError, UnknownNameError
from edfa.predictors.base import Predictor, class_weights, fit_temperature, inner_split, soften
from edfa.predictors.forest import Forest
from edfa.artifacts import read_parts, write_parts
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["SubsetXGB"]

Mode = Literal["per_subset", "nan"]
DERIVED = ("_lock", "_making", "_forests", "_checked")  # is not sent to another process
COPIES = 10
CHECKED = 64  # people whose leaves are compared with what the trees say, before they are relied on


class SubsetXGB(Predictor):
    """XGBoost that answers from any subset of features.

    Parameters
    ----------
    mode
        ``"per_subset"``: one model a subset; ``"nan"``: one model for all, trained on masked copies.
    n_estimators, max_depth, learning_rate
        At most so many trees of that depth at that learning rate; an inner split stops earlier.
    balanced
        Whether all classes count the same.
    calibrate
        Whether each model's chances are softened by a temperature fitted on its inner split.
    keep
        How many models are held in memory; ``folder`` also keeps them on disk, for other processes and later runs.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = SubsetXGB(seed=0).fit(table.train.X, table.train.y)
    >>> nothing_known = np.full((1, 20), np.nan)
    >>> model.predict_proba(nothing_known)
    array([[0.3, 0.7]])
    """

    def __init__(
        self,
        mode: Mode = "per_subset",
        *,
        seed: int = 0,
        n_estimators: int = 300,
        max_depth: int = 4,
        learning_rate: float = 0.1,
        balanced: bool = False,
        calibrate: bool = False,
        threshold: float | None = None,
        keep: int = 512,
        folder: str | None = None,
    ) -> None:
        self.mode = mode
        self.seed = seed
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.learning_rate = learning_rate
        self.balanced = balanced
        self.calibrate = calibrate
        self.threshold = threshold
        self.keep = keep
        self.folder = folder

    def _fit(self, matrix: Float32Array, codes: Int64Array) -> None:
        if self.mode not in ("per_subset", "nan"):
            raise UnknownNameError("mode", self.mode, ("per_subset", "nan"))
        if self.n_estimators < 1 or self.max_depth < 1 or not self.learning_rate > 0 or self.keep < 1:
            raise SchemaError("n_estimators, max_depth and keep are at least 1 and learning_rate is above 0")
        self._matrix, self._codes = matrix, codes
        self._inner = inner_split(codes, self.seed)
        self._boosters: OrderedDict[bytes, xgb.Booster] = OrderedDict()
        self._forests: WeakKeyDictionary[xgb.Booster, Forest] = WeakKeyDictionary()
        self._checked: WeakKeyDictionary[xgb.Booster, bool] = WeakKeyDictionary()
        self._lock = threading.RLock()
        self._making: dict[bytes, threading.Lock] = {}
        self.fingerprint_ = self._fingerprint()

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        booster = self.booster(mask)
        if self.mode == "nan":
            full = np.full((len(known), len(mask)), np.nan, dtype=np.float32)
            full[:, mask] = known
            known = full
        chances = _chances(booster.inplace_predict(np.ascontiguousarray(known)))
        temperature = booster.attr("temperature")
        return soften(chances, float(temperature)) if temperature else chances

    def booster(self, mask: BoolArray) -> xgb.Booster:
        """The model for a set of known features: from memory, from disk, or fitted now."""
        self._check_fitted()
        mask = mask & self.varies_
        key = np.packbits(np.ones_like(mask) if self.mode == "nan" else mask).tobytes()
        with self._lock:
            if key in self._boosters:
                self._boosters.move_to_end(key)
                return self._boosters[key]
            making = self._making.setdefault(key, threading.Lock())
        with making:  # who needs the same model waits for it; others do not
            with self._lock:
                if (booster := self._boosters.get(key)) is not None:
                    return booster
            booster = self._read(key) or self._write(key, self._train(mask))
            with self._lock:
                self._boosters[key] = booster
                if len(self._boosters) > self.keep:
                    self._boosters.popitem(last=False)
                self._making.pop(key, None)
            return booster

    def cells(self, mask: BoolArray, feature: int) -> Float32Array:
        """The thresholds at which the model for ``mask`` can tell two values of a feature apart, in order.

        Two values between the same two neighbours are the same to it: a value x belongs to the cell
        ``searchsorted(thresholds, x, side="right")``.
        """
        mask = mask & self.varies_
        if not mask[feature]:
            return np.zeros(0, dtype=np.float32)
        column = feature if self.mode == "nan" else int(np.count_nonzero(mask[:feature]))
        return self._forest(self.booster(mask)).cuts[column]

    def _decide_tries(
        self, mask: BoolArray, known: Float32Array, column: IntArray, value: Float32Array
    ) -> IntArray | None:
        """From the leaves; the trees are asked about what is too near to the border."""
        sure = self.threshold is None or 0 < self.threshold < 1
        if self.mode == "nan" or len(self.classes_) > 2 or not sure:
            return None
        booster, border = self.booster(mask), 0.5 if self.threshold is None else self.threshold
        forest = self._forest(booster)
        if not self._faithful(booster, forest, mask):
            return None
        odds = float(booster.attr("temperature") or 1) * np.log(border / (1 - border))
        past = forest.lean(known, column, value) - np.float32(odds)
        found = (past > 0).astype(np.intp)
        # Chances are rounded too, the more in terms of log odds the nearer they are to 0 or 1.
        rounding = 16 * np.finfo(np.float32).eps * (2 + 2 * np.cosh(odds))
        person, tried = np.nonzero(np.abs(past) <= forest.slack + rounding)
        rows = known[person]
        rows[np.arange(len(person)), column[tried]] = value[tried]
        found[person, tried] = self.decide(self._answer(mask, rows)) if len(person) else 0
        return found

    def _forest(self, booster: xgb.Booster) -> Forest:
        """The leaves of a model, read once."""
        with self._lock:
            if (found := self._forests.get(booster)) is None:
                found = self._forests[booster] = Forest.of(booster.save_raw("json"))
        return found

    def _faithful(self, booster: xgb.Booster, forest: Forest, mask: BoolArray) -> bool:
        """Whether the leaves tell of some training people what the trees do: XGBoost may change what it writes."""
        with self._lock:
            if (found := self._checked.get(booster)) is None:
                rows = np.ascontiguousarray(self._matrix[:CHECKED, mask])
                rows[:, 0] = rows[0, 0]
                told = forest.lean(rows, np.zeros(1, dtype=np.intp), rows[0, :1])[:, 0]
                apart = np.abs(told - booster.inplace_predict(rows, predict_type="margin"))
                found = self._checked[booster] = bool(apart.max() <= forest.slack)
        return found

    def to_folder(self, folder: str | Path) -> None:
        """Write what was learnt: the training rows and every model fitted so far, as UBJSON."""
        self._check_fitted()
        classes: AnyArray = np.asarray(self.classes_)
        if classes.dtype.kind not in "iufb":
            raise SchemaError("classes must be numbers to be saved; use a Table's y")
        arrays: dict[str, AnyArray] = {"matrix": self._matrix, "codes": self._codes, "classes": classes}
        parts = {f"{key.hex()}.ubj": bytes(b.save_raw("ubj")) for key, b in self._boosters.items()}
        write_parts(folder, "SubsetXGB", self.get_params(), {"train.safetensors": save(arrays)} | parts)

    @classmethod
    def from_folder(cls, folder: str | Path) -> "SubsetXGB":
        """Read what ``to_folder`` wrote; every part is checked against its hash."""
        settings, parts = read_parts(folder, "SubsetXGB")
        arrays = load(parts.pop("train.safetensors"))
        model = cls(**settings).fit(arrays["matrix"], arrays["classes"][arrays["codes"]])
        for name, content in parts.items():
            booster = xgb.Booster({"nthread": 1})
            booster.load_model(bytearray(content))
            model._boosters[bytes.fromhex(Path(name).stem)] = booster
        return model

    def __getstate__(self) -> dict[str, Any]:
        """For sending to another process: everything but the lock and what is derived."""
        return {k: v for k, v in super().__getstate__().items() if k not in DERIVED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forests, self._checked = WeakKeyDictionary(), WeakKeyDictionary()
        self._lock, self._making = threading.RLock(), {}

    def _train(self, mask: BoolArray) -> xgb.Booster:
        train, check = self._inner
        parameters: dict[str, Any] = {
            "tree_method": "hist",
            "max_depth": self.max_depth,
            "eta": self.learning_rate,
            "subsample": 0.9,
            "seed": self.seed,
            "nthread": 1,
            "verbosity": 0,
        }
        classes = len(self.classes_)
        parameters |= {"objective": "binary:logistic", "eval_metric": "logloss"}
        if classes > 2:
            parameters |= {"objective": "multi:softprob", "eval_metric": "mlogloss", "num_class": classes}
        learnt = self._data(train, mask)
        if not len(check):
            return xgb.train(parameters, learnt, num_boost_round=min(self.n_estimators, 50), verbose_eval=False)
        booster = xgb.train(
            parameters,
            learnt,
            num_boost_round=self.n_estimators,
            evals=[(self._data(check, mask), "check")],
            early_stopping_rounds=20,
            verbose_eval=False,
        )
        best = booster[: booster.best_iteration + 1]
        if self.calibrate:
            held = self._data(check, mask)
            found = fit_temperature(_chances(best.predict(held)), held.get_label().astype(np.int64))
            best.set_attr(temperature=repr(found))
        return best

    def _data(self, rows: IntArray, mask: BoolArray) -> xgb.DMatrix:
        matrix, codes = self._matrix[rows], self._codes[rows]
        if self.mode == "nan":
            matrix, codes = _masked_copies(matrix, codes, self.seed)
        else:
            matrix = matrix[:, mask]
        weights = class_weights(codes, len(self.classes_), self.balanced)
        return xgb.DMatrix(np.ascontiguousarray(matrix), label=codes, weight=weights, nthread=1)

    def _fingerprint(self) -> str:
        """What a model on disk must have been made from."""
        told = hashlib.sha256(np.ascontiguousarray(self._matrix).tobytes())
        told.update(self._codes.tobytes())
        settings = {k: v for k, v in self.get_params().items() if k not in ("threshold", "keep", "folder")}
        told.update(json.dumps([settings, xgb.__version__]).encode())
        return told.hexdigest()[:16]

    def _path(self, key: bytes) -> Path | None:
        return Path(self.folder) / self.fingerprint_ / f"{key.hex()}.ubj" if self.folder else None

    def _read(self, key: bytes) -> xgb.Booster | None:
        path = self._path(key)
        if path is None or not path.is_file():
            return None
        booster = xgb.Booster({"nthread": 1})
        try:
            booster.load_model(path)
        except xgb.core.XGBoostError:
            return None  # cut off or of another version: it is fitted anew and written over
        return booster

    def _write(self, key: bytes, booster: xgb.Booster) -> xgb.Booster:
        if path := self._path(key):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.ubj")
            booster.save_model(partial)
            partial.replace(path)
        return booster


def _chances(told: Any) -> Float64Array:
    """One column a class, adding up to one."""
    found = np.asarray(told)
    if found.ndim == 2:
        return np.asarray(found / found.sum(axis=1, keepdims=True, dtype=float))
    chances = np.empty((len(found), 2))
    chances[:, 1] = found
    np.subtract(1, chances[:, 1], out=chances[:, 0])
    return chances


def _masked_copies(matrix: Float32Array, codes: Int64Array, seed: int) -> tuple[Float32Array, Int64Array]:
    """Each row several times, with a uniform number of its features known."""
    random = np.random.default_rng(seed)
    copies = np.tile(matrix, (COPIES, 1))
    rate = random.random((len(copies), 1))
    copies[random.random(copies.shape) < rate] = np.nan
    return copies, np.tile(codes, COPIES)
