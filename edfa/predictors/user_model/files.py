"""User models in files, read so that a stranger's file does no harm, and opened by name.

``write_model`` makes a file of a model: XGBoost's, LightGBM's and ONNX files as their libraries
have them, and skops files for scikit-learn. ``read_model`` reads one, ``open_model`` a file that
somebody names. No format here holds code. What a library would follow out of its memory is looked
at before it does (``check_user_booster``, ``check_nodes``), or the file is read in a process of its
own first (``try_in_child``).
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from edfa.data.read import open_parquet, read_parquet
from edfa.errors import EdfaError, MissingExtraError, ModelError, UnreadableError
from edfa.predictors.booster_file import check_user_booster
from edfa.predictors.user_model.ask import FittedModel, Kind
from edfa.predictors.user_model.check_nodes import check_lightgbm
from edfa.predictors.user_model.onnx import OnnxModel
from edfa.predictors.user_model.skops_file import needs_trial, pack, unpack
from edfa.predictors.user_model.trial import try_in_child
from edfa.reading import MEGABYTE, existing, first_line, read_bytes
from edfa.typing import Float64Array

MODEL_LIMIT = 1024 * MEGABYTE
ENDINGS = {
    ".ubj": "XGBoost",
    ".json": "XGBoost",
    ".txt": "LightGBM",
    ".onnx": "ONNX",
    ".skops": "skops",
}
PICKLED = (".pkl", ".pickle", ".joblib", ".dill", ".pt", ".pth", ".sav")
PROTOCOLS = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))  # how pickles begin


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
        raise UnreadableError(f"{name} is damaged: {first_line(error)[:300]}") from None
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


def read_model(
    name: str, content: bytes, kind: Kind = "estimator", rows: pd.DataFrame | None = None
) -> Any:
    """The model in a file that ``write_model`` made, or that its library did.

    Parameters
    ----------
    name, content
        The file; the end of its name tells the format. Where the library that reads it may crash,
        it is read in a process of its own first.
    kind
        That of the ``FittedModel`` that was written: "booster" for XGBoost's and LightGBM's own
        class.
    rows
        What that process asks the model about, if there is one.

    Raises
    ------
    UnreadableError
        If the file is damaged, too large, or asks for a type that is not trusted.
    MissingExtraError
        If the library that reads it is not installed.
    """
    if name.endswith((".onnx", ".txt")) or (name.endswith(".skops") and needs_trial(content, name)):
        try_in_child(name, content, rows)
    return parse_model(name, content, kind)


def open_model(path: str | Path) -> Any:
    """The model in a file that somebody names, for ``FittedModel.of``.

    Raises
    ------
    UnreadableError
        If there is no such file, its ending is none of .ubj, .json, .txt, .onnx and .skops, or it
        cannot be read safely. A pickle never can.
    ModelError
        If the model answers no probabilities.
    MissingExtraError
        If the library that reads it is not installed.
    """
    path = existing(path)
    ending = path.suffix.lower()
    if ending not in (*ENDINGS, *PICKLED):
        known = ", ".join(f"{end} ({library})" for end, library in ENDINGS.items())
        raise UnreadableError(f"{path.name} has the ending of no model's file; known: {known}")
    content = read_bytes(path, MODEL_LIMIT)
    if ending in PICKLED or content.startswith(PROTOCOLS):
        raise UnreadableError(
            f"{path.name} is a pickle: reading one runs whatever code is in it; where the model "
            "is, save it with skops.io.dump(model, 'model.skops'), or as an XGBoost, LightGBM or "
            "ONNX file"
        )
    return read_model(path.stem + ending, content, "booster" if ending == ".txt" else "estimator")


def read_like(path: str | Path) -> pd.DataFrame:
    """Some rows of the frame that a model was fitted on, from a Parquet file, which keeps their
    data types.

    Raises
    ------
    UnreadableError
        If it is no Parquet file, or the frame had categories that are no words: Parquet does not
        keep those.
    """
    path = existing(path)
    if path.suffix.lower() not in (".parquet", ".pq"):
        raise UnreadableError(
            f"{path.name} has no data types; write the rows to a Parquet file: "
            "frame.head().to_parquet('like.parquet')"
        )
    frame = read_parquet(path)
    with open_parquet(path) as file:
        described = file.schema_arrow.pandas_metadata or {}
        for column in described.get("columns", []):
            name = column["field_name"]
            if column["pandas_type"] == "categorical" and not _has_categories(
                frame.dtypes[name], column["metadata"]["num_categories"]
            ):
                raise UnreadableError(
                    f"{path.name}: the categories of column {name!r} are no words, and a Parquet "
                    "file does not keep such; wrap the model in Python: "
                    "edfa.wrap(model, like=frame)"
                )
        index = [name for name in described.get("index_columns", []) if isinstance(name, str)]
    return frame.drop(columns=index, errors="ignore")


def _has_categories(dtype: Any, count: int) -> bool:
    return isinstance(dtype, pd.CategoricalDtype) and len(dtype.categories) == count


def compare_answers(one: FittedModel, other: FittedModel, people: Any) -> float:
    """The share of people about whom two models decide otherwise: what a conversion changed, for
    example.

    ``people``: a frame that holds the columns of both, or a matrix if both are of a table's X.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [20, 40, 60, 80]})
    >>> old = FittedModel.of(lambda people: people["age"] / 100, columns=["age"])
    >>> new = FittedModel.of(lambda people: people["age"] / 130, columns=["age"])
    >>> compare_answers(old, new, frame)
    0.25
    """
    first, second = (own.ask(_asked(own, people)) for own in (one, other))
    if one.classes is not None and other.classes is not None:
        second = second[:, other.order(one.classes)]
    if first.shape != second.shape:
        raise ModelError(f"{one.name} has {first.shape[1]} classes, {other.name} {second.shape[1]}")
    return float(np.mean(first.argmax(axis=1) != second.argmax(axis=1))) if len(first) else 0.0


def _asked(own: FittedModel, people: Any) -> Any:
    return people if isinstance(own.columns, str) else people[list(own.columns)]
