"""A batch of plans as JSON and back. The model is not written: plans that were read can be shown,
not searched for.
"""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from edfa.blanket.units import Blanket
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.errors import DataError, EdfaError, UnreadableError, hint
from edfa.people import Background, People
from edfa.reading import parse
from edfa.recourse.plan import NoPlan
from edfa.typing import AnyArray, Float32Array, Int64Array

if TYPE_CHECKING:
    from edfa.recourse.plans import Plans

__all__ = ["dump", "load"]

VERSION = 4
DROPPED = ("donor",)  # columns of version 3: the training rows that values came from
INTEGERS = ("of", "reached", "l0")
REALS = ("probability_before", "probability_after", "l2", "heom", "effort")
OPTIONAL = (
    "inlier",
    "inlier_base",
    "invalidation",
    "survival",
    "survival_error",
    "support",
    "support_share",
    "months",
)


def dump(plans: "Plans") -> str:
    """Everything but the model, the provenance and the training rows that values came from;
    ``load`` reads it back.
    """
    people = plans.people
    numbers = {
        name: np.asarray(getattr(people, name)).tolist()
        for name in ("person", "seed", "step", "spent")
    }
    content: dict[str, Any] = {
        "version": VERSION,
        "schema": json.loads(people.schema.to_json()),
        "encoder": json.loads(people.encoder.to_json()),
        "blanket": json.loads(people.blanket.to_json()) if people.blanket else None,
        "people": numbers
        | {"X": [_cells(row) for row in people.X], "decision": plans.decision.tolist()},
        "plans": {name: getattr(plans, name).tolist() for name in (*INTEGERS, *REALS, "valid")},
        "reasons": [asdict(reason) | {"row": row} for row, reason in plans.reasons.items()],
    }
    content["plans"] |= {name: _cells(getattr(plans, name)) for name in ("low", "high")}
    content["plans"]["changes"] = [
        {str(j): float(row[j]) for j in np.flatnonzero(~np.isnan(row))} for row in plans.to
    ]
    for name in OPTIONAL:
        column = getattr(plans, name)
        content["plans"][name] = None if column is None else _cells(column)
    return json.dumps(content, ensure_ascii=False)


def load(text: str) -> dict[str, Any]:
    """The fields of the ``Plans`` that ``dump`` wrote; ``UnreadableError`` for any other text."""
    try:
        content = json.loads(text)
        version = content["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UnreadableError("this text is not plans as to_json writes them") from None
    if version not in (3, VERSION):
        raise UnreadableError(
            f"these plans are of version {version}; versions 3 and {VERSION} can be read"
        )
    try:
        people = _people(content)
        decision = _codes(
            content["people"], "people.decision", len(people), len(people.schema.classes)
        )
        fields = {
            "people": people,
            "decision": decision,
            "reasons": _reasons(content["reasons"], len(people)),
        }
        dropped = DROPPED if version == 3 else ()
        return fields | _columns(
            {n: column for n, column in content["plans"].items() if n not in dropped}, people
        )
    except KeyError as error:
        raise UnreadableError(f"these plans are damaged: {error} is missing") from None
    except (EdfaError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise UnreadableError(f"these plans are damaged: {' '.join(str(error).split())}") from None


def _people(content: dict[str, Any]) -> People:
    """The people that the plans are for, without a model."""
    schema = Schema.from_json(json.dumps(content["schema"]))
    blanket = Blanket.from_json(json.dumps(content["blanket"])) if content["blanket"] else None
    background = Background(
        schema, Encoder.from_json(json.dumps(content["encoder"])), blanket=blanket
    )
    numbers = content["people"]
    return People(
        _floats(numbers["X"]).reshape(-1, len(schema)),
        background,
        person=np.array(numbers["person"], dtype=np.int64),
        seed=np.array(numbers["seed"], dtype=np.int64),
        step=np.array(numbers["step"], dtype=np.int64),
        spent=np.array(numbers["spent"], dtype=float),
    )


def _columns(entries: dict[str, Any], people: People) -> dict[str, Any]:
    """The columns of the plans, each checked to have one entry a plan."""
    known = {*INTEGERS, *REALS, *OPTIONAL, "low", "high", "valid", "changes"}
    if unknown := set(entries) - known:
        raise DataError(f"plans.{min(unknown)}: no such column{hint(min(unknown), known)}")
    plans, width = len(entries["of"]), len(people.schema)
    columns: dict[str, Any] = {name: np.array(entries[name], dtype=np.int64) for name in INTEGERS}
    columns |= {name: np.array(entries[name], dtype=float) for name in REALS}
    columns |= {name: _floats(entries[name]) for name in ("low", "high")}
    columns["valid"] = np.array(entries["valid"], dtype=bool)
    present = {name: entries[name] for name in OPTIONAL if entries.get(name) is not None}
    columns |= {
        name: np.array(values, np.int64 if name == "support" else float)
        for name, values in present.items()
    }
    for name, column in columns.items():
        if column.shape != (plans,):
            raise DataError(f"plans.{name} has the shape {column.shape}, not ({plans},)")
    columns["donor"] = np.full(plans, -1, dtype=np.int64)
    columns["of"] = _codes(entries, "plans.of", plans, len(people))
    columns["reached"] = _codes(entries, "plans.reached", plans, len(people.schema.classes))
    columns["to"] = np.full((plans, width), np.nan, dtype=np.float32)
    for row, changes in zip(columns["to"], entries["changes"], strict=True):
        features = [int(j) for j in changes]
        if not all(0 <= j < width for j in features):
            raise DataError(
                f"plans.changes: features are numbered from 0 to {width - 1}, not {features}"
            )
        row[features] = list(changes.values())
    return columns


def _codes(entries: dict[str, Any], name: str, count: int, limit: int) -> Int64Array:
    """The column ``name`` (after its dot) of ``entries``: ``count`` whole numbers from 0 to
    ``limit`` - 1.
    """
    codes = np.array(entries[name.split(".")[1]], dtype=np.int64)
    if codes.shape != (count,) or (codes < 0).any() or (codes >= limit).any():
        raise DataError(f"{name}: {count} whole numbers from 0 to {limit - 1} are expected")
    return codes


def _reasons(entries: list[dict[str, Any]], people: int) -> dict[int, NoPlan]:
    """Why people have no plan, by row."""
    reasons: dict[int, NoPlan] = {}
    for entry in entries:
        row = entry.pop("row")
        if not (isinstance(row, int) and 0 <= row < people):
            raise DataError(f"reasons: there are {people} people, and row {row} is none of them")
        reasons[row] = parse(NoPlan, entry, "reasons")
    return reasons


def _cells(values: AnyArray) -> list[float | None]:
    """Numbers for JSON, which has no NaN: None instead."""
    return [None if np.isnan(v) else v for v in values.tolist()]


def _floats(values: list[Any]) -> Float32Array:
    """The numbers that ``_cells`` wrote."""
    return np.array(values, dtype=float).astype(np.float32)
