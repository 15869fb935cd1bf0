"""Who an advisor is: one word for its model, blanket, policy, costs and searcher, with all that they have learnt."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from edfa.blanket.units import Blanket
from edfa.data.table import Table
from edfa.predictors.base import Predictor
from edfa.recourse.plans import Plans

__all__ = ["digest", "fingerprint", "identify"]

# Where and how something runs, which changes nothing of what it says.
ASIDE = ("progress", "device")
DEPTH = 12  # a part inside a part; deeper than anything here
FUNCTIONS = (FunctionType, MethodType, BuiltinFunctionType)


def fingerprint(**parts: str) -> str:
    """One word for all that makes an advisor: any change of model, blanket, policy, costs or searcher changes it.

    >>> fingerprint(model="xgb:1", searcher="nearest") == fingerprint(searcher="nearest", model="xgb:1")
    True
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def identify(plans: Plans) -> str:
    """The fingerprint of the advisor that made these plans; seeds are no part of it, for they vary by design.

    What nobody knows (the policy behind people who came without a trajectory) counts as nothing.
    """
    people, made = plans.people, plans.made
    searcher = [made.get(name) for name in ("searcher", "constraints", "wanted", "survival")]
    parts: dict[str, Any] = {"model": people.predictor, "blanket": people.blanket, "card": people.schema.to_json()}
    parts |= {"policy": made.get("policy"), "costs": made.get("costs"), "searcher": searcher}
    return fingerprint(**{name: digest(part) for name, part in parts.items()})


def digest(thing: Any) -> str:
    """A word for what an object is made of: its class and its public parts, inwards; of models all that was learnt.

    >>> digest({"a": np.arange(3), "b": None}) == digest({"b": None, "a": np.arange(3)})
    True
    >>> digest(np.arange(3)) == digest(np.arange(3.0))
    False
    """
    told = hashlib.sha256()
    for piece in _pieces(thing, DEPTH):
        told.update(len(piece).to_bytes(8, "little") + piece)
    return told.hexdigest()[:16]


def _pieces(thing: Any, depth: int) -> Iterator[bytes]:
    """The object as a sequence of bytes; a mapping and an object are their parts in order of names."""
    yield type(thing).__name__.encode()
    if not depth:
        return
    if thing is None or isinstance(thing, str | int | float | np.generic):
        yield str(thing).encode()
    elif isinstance(thing, np.ndarray):
        yield f"{thing.dtype} {thing.shape}".encode()
        yield repr(thing.tolist()).encode() if thing.dtype == object else np.ascontiguousarray(thing).tobytes()
    elif isinstance(thing, list | tuple | set | frozenset):
        for inner in sorted(thing, key=str) if isinstance(thing, set | frozenset) else thing:
            yield from _pieces(inner, depth - 1)
    else:
        parts = _parts(thing)
        for name in sorted(parts, key=str):
            yield str(name).encode()
            yield from _pieces(parts[name], depth - 1)


def _parts(thing: Any) -> Mapping[Any, Any]:
    if isinstance(thing, Mapping):
        return thing
    if isinstance(thing, Blanket):  # how it was found does not matter
        return {"target": thing.target, "units": thing.units, "unattached": thing.unattached}
    if isinstance(thing, Table):
        return {"X": thing.X, "y": thing.y, "schema": thing.schema.to_json()}
    if hasattr(thing, "state_dict"):  # a network
        return {name: values.cpu().numpy() for name, values in thing.state_dict().items()}
    if isinstance(thing, Predictor):
        settings = {name: part for name, part in thing.get_params(deep=False).items() if name not in ASIDE}
        return {"settings": settings, "learnt": thing.learnt_state()}
    return {name: part for name, part in _own(thing).items() if not name.startswith("_")}


def _own(thing: Any) -> dict[str, Any]:
    """The object's parts, without what it keeps to save work, and without functions."""
    derived = {name for kind in type(thing).__mro__ for name, v in vars(kind).items() if isinstance(v, cached_property)}
    parts = getattr(thing, "__dict__", {})
    aside = {*derived, *ASIDE, *(name for name, part in parts.items() if isinstance(part, FUNCTIONS))}
    return {name: part for name, part in parts.items() if name not in aside}
