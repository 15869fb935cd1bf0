"""How a user model is asked, in a folder: the model's own file where there is a safe one, its
columns and their data types, and how people are encoded.

A model without such a file (a function, a torch module) is passed again when the folder is read.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.encode import Encoder
from edfa.errors import ColumnError, ModelError, UnreadableError
from edfa.predictors.user_model.ask import FittedModel
from edfa.predictors.user_model.files import read_model, write_model
from edfa.predictors.user_model.frames import FrameMaker
from edfa.predictors.user_model.source import Source
from edfa.reading import parse_json
from edfa.typing import Float32Array

__all__ = ["read_source", "write_source"]

OWN, ENCODER = "own.json", "encoder.json"
PLAIN = "biufOU"  # kinds of numpy's data types whose values JSON has


def write_source(source: Source) -> tuple[dict[str, bytes], bool]:
    """The parts of a folder, file name to content, and whether the model itself is among them.

    ColumnError for a column of a data type that cannot be kept.
    """
    own, file = source.own, write_model(source.own)
    facts = {
        "kind": own.kind,
        "columns": own.columns,
        "classes": own.classes,
        "dtypes": {name: _dtype_to_json(name, dtype) for name, dtype in own.dtypes.items()},
        "order": source.order.tolist(),
        "reads": source.reads.tolist(),
        "categorical": source.categorical,
        "file": None if file is None else file[0],
    }
    parts = {OWN: json.dumps(facts).encode()}
    if source.frames is not None:
        parts[ENCODER] = source.frames.encoder.to_json().encode()
    return (parts, False) if file is None else (parts | {file[0]: file[1]}, True)


def read_source(parts: Mapping[str, bytes], model: Any, tried: Float32Array) -> Source:
    """What ``write_source`` wrote.

    Parameters
    ----------
    parts
        The parts of the folder.
    model
        The model, where it is in no file, else None.
    tried
        Encoded people (n, features) whom the model is asked about before its answers are relied on.

    Raises
    ------
    ModelError
        If the model is in no file, and none is passed.
    UnreadableError
        If a part is damaged.
    """
    facts = parse_json(parts[OWN].decode("utf-8"), OWN)
    columns = facts["columns"] if isinstance(facts["columns"], str) else tuple(facts["columns"])
    classes = None if facts["classes"] is None else tuple(facts["classes"])
    dtypes = {name: _dtype_from_json(dtype) for name, dtype in facts["dtypes"].items()}
    order, reads = np.array(facts["order"]), np.array(facts["reads"])
    if sorted(facts["order"]) != list(range(len(order))):
        raise UnreadableError("the order of the classes is damaged")
    if reads.dtype != bool or reads.shape != tried.shape[1:]:
        raise UnreadableError("the features that the model reads are damaged")
    frames, rows = None, pd.DataFrame(tried)
    if not isinstance(columns, str):
        encoder = Encoder.from_json(parts[ENCODER].decode("utf-8"))
        frames = FrameMaker(encoder, columns, dtypes)
        rows = frames.frame(tried)
    if model is not None:
        like = rows if dtypes else None
        own = FittedModel.of(model, columns=columns, classes=classes, like=like)
    elif facts["file"] is None:
        raise ModelError(
            "the model of this advisor is in no file; pass the same one again: "
            "Advisor.load(folder, model=...)"
        )
    else:
        kind = str(facts["kind"])
        read = read_model(facts["file"], parts[facts["file"]], kind, rows)
        own = FittedModel(read, kind, columns, dtypes, classes)
    return Source(own, order, reads, tuple(facts["categorical"]), frames)


def _dtype_to_json(name: str, dtype: Any) -> Any:
    """A column's data type: its name, or its categories and theirs."""
    if not isinstance(dtype, pd.CategoricalDtype):
        return str(dtype)
    inner = dtype.categories.dtype
    if isinstance(inner, np.dtype) and inner.kind not in PLAIN:
        raise ColumnError(f"{name!r} has categories of {inner}, whose values cannot be kept")
    return {
        "categories": dtype.categories.tolist(),
        "of": str(inner),
        "ordered": bool(dtype.ordered),
    }


def _dtype_from_json(written: Any) -> Any:
    if isinstance(written, str):
        return pd.api.types.pandas_dtype(written)
    categories = pd.Index(written["categories"], dtype=written["of"])
    return pd.CategoricalDtype(categories, written["ordered"])
