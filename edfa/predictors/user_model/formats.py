"""A user model as the content of a file, and back: XGBoost's, LightGBM's and ONNX files, and skops.

No format here holds code. What a library would follow out of its memory is looked at before it does
(``check_user_booster``, ``check_nodes``), or the file is read in a process of its own first
(``try_in_child``).
"""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from edfa.errors import EdfaError, MissingExtraError, UnreadableError
from edfa.predictors.booster_file import check_user_booster
from edfa.predictors.user_model.ask import FittedModel, Kind
from edfa.predictors.user_model.check_nodes import check_lightgbm
from edfa.predictors.user_model.onnx import OnnxModel
from edfa.predictors.user_model.skops_file import pack, unpack
from edfa.reading import MEGABYTE
from edfa.typing import Float64Array

__all__ = ["MODEL_LIMIT", "LoadedLightGBM", "parse_model", "write_model"]

MODEL_LIMIT = 1024 * MEGABYTE


class LoadedLightGBM:
    """An ``LGBMClassifier`` that was read from its text: the same trees, asked in the same way.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        What decides.
    feature_names_in_ : ndarray
        The names of its columns.
    """

    __name__ = "LGBMClassifier"  # what messages and fingerprints call it

    def __init__(self, booster: Any) -> None:
        self.booster_ = booster
        self.feature_names_in_ = np.array(booster.feature_name(), dtype=object)

    def predict_proba(self, people: Any) -> Float64Array:
        """Probabilities (people, classes)."""
        answer = np.asarray(self.booster_.predict(people), dtype=float)
        return np.stack([1 - answer, answer], axis=1) if answer.ndim == 1 else answer


def write_model(own: FittedModel) -> tuple[str, bytes] | None:
    """The name and the content of a file that keeps a model; None if it has to be passed again when
    it is read.

    Kept are XGBoost's and LightGBM's classifiers and boosters, ONNX files as they were given, and
    whatever of scikit-learn is made of types in ``TRUSTED``. Not kept are functions, torch modules,
    and models with functions or classes of the user's own in them.

    Raises
    ------
    MissingExtraError
        If skops is needed and not installed.
    """
    model = own.model
    if isinstance(model, OnnxModel):
        return "model.onnx", model.content
    library = f"{type(model).__module__.partition('.')[0]}.{type(model).__name__}"
    if library in ("xgboost.Booster", "xgboost.XGBClassifier"):
        if not np.isnan(getattr(model, "missing", np.nan)):
            return None  # the file does not say which number stands for a gap
        booster = model if library == "xgboost.Booster" else model.get_booster()
        return "model.ubj", bytes(booster.save_raw("ubj"))
    if library == "lightgbm.LGBMClassifier" or isinstance(model, LoadedLightGBM):
        return "model.lgb.txt", model.booster_.model_to_string().encode()
    if library == "lightgbm.Booster":
        return "model.lgb.txt", model.model_to_string().encode()
    content = pack(model) if isinstance(model, BaseEstimator) else None
    return None if content is None else ("model.skops", content)


def parse_model(name: str, content: bytes, kind: Kind = "estimator") -> Any:
    """The model in a file, read in this process; ``read_model`` says what goes in, and what is
    raised.
    """
    if len(content) > MODEL_LIMIT:
        raise UnreadableError(
            f"{name} has {len(content):,} bytes; at most {MODEL_LIMIT:,} are read"
        )
    try:
        if name.endswith((".ubj", ".json")):
            return _read_xgboost(name, content, kind)
        if name.endswith(".txt"):
            return _read_lightgbm(name, content, kind)
        if name.endswith(".onnx"):
            return OnnxModel(content, name)
        if name.endswith(".skops"):
            return unpack(content, name)
    except EdfaError:
        raise
    except Exception as error:  # what a library stumbles over in a damaged file
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise UnreadableError(f"{name} is damaged: {reason}") from None
    raise UnreadableError(
        f"{name} is in no format of a model; known: .ubj, .json, .txt, .onnx, .skops"
    )


def _read_xgboost(name: str, content: bytes, kind: Kind) -> Any:
    import xgboost as xgb

    if not content.startswith(b"{"):
        raise UnreadableError(f"{name} is no model as XGBoost writes it")
    check_user_booster(content, name)
    model: Any = (
        xgb.Booster({"nthread": 1})
        if kind == "booster"
        else xgb.XGBClassifier(n_jobs=1, enable_categorical=True)
    )
    model.load_model(bytearray(content))
    return model


def _read_lightgbm(name: str, content: bytes, kind: Kind) -> Any:
    try:
        import lightgbm
    except ImportError:
        raise MissingExtraError("a LightGBM model", "own") from None
    text = content.decode("utf-8")
    check_lightgbm(text, name)
    booster = lightgbm.Booster(model_str=text)
    return booster if kind == "booster" else LoadedLightGBM(booster)
