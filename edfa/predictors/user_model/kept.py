"""A wrapped model in a folder: the model's own file where there is a safe one, and what was learnt
beside it.

A model without such a file (a function, a torch module) is passed again when the folder is read.
Either way some people and what the model said of them are kept: a model that answers otherwise is
another one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from edfa.artifacts import check_arrays, load_arrays, save_arrays
from edfa.data.encode import Encoder
from edfa.errors import ModelError, UnreadableError
from edfa.predictors.conditional import Neighbours
from edfa.predictors.user_model.ask import ENCODED, FittedModel
from edfa.predictors.user_model.completed import Completed
from edfa.predictors.user_model.files import (
    read_model,
    rows_from_json,
    rows_to_json,
    try_in_child,
    write_model,
)
from edfa.predictors.user_model.frames import FrameMaker
from edfa.predictors.user_model.source import Source
from edfa.predictors.user_model.usage import Usage
from edfa.reading import parse_json
from edfa.typing import AnyArray, Float32Array, Float64Array

__all__ = ["KeptModel", "holds_model", "read_kept", "write_kept"]

ARRAYS, ENCODER, OWN, ROWS = "arrays.safetensors", "encoder.json", "own.json", "rows.json"
USAGE = "usage.json"
SAME = 1e-6  # how far apart two answers of one model may be


@dataclass(frozen=True, eq=False)
class KeptModel:
    """What is kept of a wrapped model: how it is asked, what was tried, what it uses, and what
    completes people.

    ``tried`` (people, features), ``answers`` (people, classes), ``needed`` and ``fill``
    (features,), ``prior`` and ``classes`` (classes,) and ``cover`` (n, features) are as in
    ``UserModel``; ``view`` is there for completions alone.
    """

    source: Source
    tried: Float32Array
    answers: Float64Array
    needed: AnyArray
    fill: Float32Array
    prior: Float64Array
    classes: AnyArray
    usage: Usage
    cover: Float32Array
    view: Completed | None = None


def write_kept(kept: KeptModel) -> dict[str, bytes]:
    """The parts of a folder: file name to content; ModelError if the model has changed since people
    were tried.
    """
    source, own = kept.source, kept.source.own
    _check_same(source, kept.tried, kept.answers, "has changed since the advisor was fitted")
    arrays: dict[str, AnyArray] = {
        "tried": kept.tried,
        "answers": kept.answers,
        "needed": kept.needed.astype(np.uint8),
        "fill": kept.fill,
        "cover": kept.cover,
        "prior": kept.prior,
        "classes": kept.classes,
        "order": source.order.astype(np.int64),
        "reads": source.reads.astype(np.uint8),
        "categorical": np.array(source.categorical, dtype=np.int64),
    }
    if kept.view is not None:
        arrays["near"] = kept.view.near.rows
    facts = {
        "kind": own.kind,
        "columns": own.columns,
        "classes": own.classes,
        "dtypes": bool(own.dtypes),
    }
    file = write_model(own)
    facts["file"] = None if file is None else file[0]
    parts = {ARRAYS: save_arrays(arrays)}
    parts |= {OWN: json.dumps(facts).encode(), ROWS: rows_to_json(_asked(source, kept.tried))}
    parts[USAGE] = kept.usage.to_json().encode()
    if source.frames is not None:
        parts[ENCODER] = source.frames.encoder.to_json().encode()
    return parts if file is None else parts | {file[0]: file[1]}


def holds_model(parts: Mapping[str, bytes]) -> bool:
    """Whether the parts that ``write_kept`` made have the model itself in a file."""
    return parse_json(parts[OWN].decode("utf-8"), OWN)["file"] is not None


def read_kept(parts: Mapping[str, bytes], model: Any, k: int) -> KeptModel:
    """What ``write_kept`` wrote.

    ``model`` is passed again where it is in no file, else None; there are ``k`` completions a
    person. ModelError if a model that is passed is another one, or none is and there is no file;
    UnreadableError if the one in the file is another one.
    """
    facts = parse_json(parts[OWN].decode("utf-8"), OWN)
    arrays = load_arrays(parts[ARRAYS], ARRAYS)
    people, width = arrays["tried"].shape
    shapes = {
        "answers": ("f", people, None),
        "needed": ("u", width),
        "fill": ("f", width),
        "reads": ("u", width),
    }
    shapes |= {"order": ("i", None), "categorical": ("i", None), "cover": ("f", None, width)}
    classes = arrays["answers"].shape[-1]
    check_arrays(arrays, shapes | {"prior": ("f", classes), "classes": ("iufb", classes)}, ARRAYS)
    if sorted(arrays["order"].tolist()) != list(range(classes)):
        raise UnreadableError("the order of the classes is damaged")
    rows = rows_from_json(parts[ROWS], ROWS)
    own = _open(facts, parts, rows, _in_own_order(arrays), model)
    frames = None
    if own.columns != ENCODED:
        frames = FrameMaker(
            Encoder.from_json(parts[ENCODER].decode("utf-8")), own.columns, own.dtypes, lenient=True
        )
    categorical = tuple(arrays["categorical"].tolist())
    source = Source(own, arrays["order"], arrays["reads"].astype(bool), categorical, frames)
    if model is not None:
        _check_same(source, arrays["tried"], arrays["answers"], "that was passed is another one")
    names = ("tried", "answers", "fill", "prior", "classes", "cover")
    return KeptModel(
        source.with_prepared(np.concatenate([arrays["cover"], arrays["tried"]])),
        **{name: arrays[name] for name in names},
        needed=arrays["needed"].astype(bool),
        usage=Usage.from_json(parts[USAGE].decode("utf-8")),
        view=_completed(arrays, source, k) if "near" in arrays else None,
    )


def _open(
    facts: Mapping[str, Any],
    parts: Mapping[str, bytes],
    rows: pd.DataFrame,
    answers: Float64Array,
    model: Any,
) -> FittedModel:
    """The model that was passed, or the one in the file, which is tried in a process of its own
    first.
    """
    columns = facts["columns"] if isinstance(facts["columns"], str) else tuple(facts["columns"])
    dtypes = (
        {name: rows.dtypes[name] for name in columns}
        if facts["dtypes"] and not isinstance(columns, str)
        else {}
    )
    classes = None if facts["classes"] is None else tuple(facts["classes"])
    if model is not None:
        return FittedModel.of(
            model, columns=columns, classes=classes, like=rows if dtypes else None
        )
    if facts["file"] is None:
        raise ModelError(
            "the model of this advisor is in no file; pass the same one again: "
            "Advisor.load(folder, model=...)"
        )
    content, kind = parts[facts["file"]], str(facts["kind"])
    try_in_child(facts["file"], content, rows, answers, kind=kind, columns=columns)
    return FittedModel(read_model(facts["file"], content, kind), kind, columns, dtypes, classes)


def _check_same(source: Source, tried: Float32Array, answers: Float64Array, otherwise: str) -> None:
    """Raise ModelError, which says what is ``otherwise``, if a model does not answer as it did."""
    apart = float(np.abs(source.ask(tried) - answers).max(initial=0.0))
    if not apart <= SAME:
        raise ModelError(
            f"the model {source.own.name} {otherwise}: its answers about {len(tried)} "
            f"people are up to {apart:.2g} "
            "away from those that were kept"
        )


def _in_own_order(arrays: Mapping[str, AnyArray]) -> Float64Array:
    """The answers (people, classes) in the order in which the model itself gave them."""
    answers = np.empty_like(arrays["answers"])
    answers[:, arrays["order"]] = arrays["answers"]
    return answers


def _asked(source: Source, rows: Float32Array) -> pd.DataFrame:
    """What the model is asked about encoded rows (n, features), as a frame."""
    return pd.DataFrame(rows) if source.frames is None else source.frames.frame(rows)


def _completed(arrays: Mapping[str, AnyArray], source: Source, k: int) -> Completed:
    width = len(source.reads)
    check_arrays(arrays, {"near": ("f", None, width)}, ARRAYS)
    return Completed(Neighbours.among(arrays["near"], source.categorical, k), source.reads)
