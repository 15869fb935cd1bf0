"""A batch of plans as JSON and back. The model is not part of it: such plans can be told, not searched for."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from edfa.blanket.units import Blanket
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.errors import UnreadableError
from edfa.parsing import parse
from edfa.people import Background, People
from edfa.recourse.plan import NoPlan

if TYPE_CHECKING:
    from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, Float32Array

__all__ = ["dump", "load"]

VERSION = 1
WHOLE = ("of", "reached", "l0", "donor")
REAL = ("probability_before", "probability_after", "l2", "heom", "effort")
GIVEN = ("inlier", "inlier_base", "invalidation", "survival", "survival_error")


def dump(plans: "Plans") -> str:
    """Everything but the model, as JSON; ``load`` reads it back."""
    people = plans.people
    numbers = {name: np.asarray(getattr(people, name)).tolist() for name in ("person", "seed", "step", "spent")}
    content: dict[str, Any] = {
        "version": VERSION,
        "schema": json.loads(people.schema.to_json()),
        "encoder": json.loads(people.encoder.to_json()),
        "blanket": json.loads(people.blanket.to_json()) if people.blanket else None,
        "people": numbers | {"X": [_cells(row) for row in people.X], "decision": plans.decision.tolist()},
        "plans": {name: getattr(plans, name).tolist() for name in (*WHOLE, *REAL, "valid")},
        "reasons": [asdict(reason) | {"row": row} for row, reason in plans.reasons.items()],
    }
    content["plans"] |= {name: _cells(getattr(plans, name)) for name in ("low", "high")}
    content["plans"]["changes"] = [{str(j): float(row[j]) for j in np.flatnonzero(~np.isnan(row))} for row in plans.to]
    for name in GIVEN:
        found = getattr(plans, name)
        content["plans"][name] = None if found is None else _cells(found)
    return json.dumps(content, ensure_ascii=False)


def load(text: str) -> dict[str, Any]:
    """The fields of the ``Plans`` that ``dump`` wrote."""
    content = json.loads(text)
    if content.get("version") != VERSION:
        raise UnreadableError(f"these plans are of version {content.get('version')}; version {VERSION} can be read")
    told, found = content["people"], content["plans"]
    schema = Schema.from_json(json.dumps(content["schema"]))
    blanket = Blanket.from_json(json.dumps(content["blanket"])) if content["blanket"] else None
    background = Background(schema, Encoder.from_json(json.dumps(content["encoder"])), blanket=blanket)
    people = People(
        _floats(told["X"]).reshape(-1, len(schema)),
        background,
        person=np.array(told["person"], dtype=np.int64),
        seed=np.array(told["seed"], dtype=np.int64),
        step=np.array(told["step"], dtype=np.int64),
        spent=np.array(told["spent"], dtype=float),
    )
    to = np.full((len(found["of"]), len(schema)), np.nan, dtype=np.float32)
    for row, changes in zip(to, found["changes"], strict=True):
        row[[int(j) for j in changes]] = list(changes.values())
    reasons = {entry.pop("row"): parse(NoPlan, entry, "reasons") for entry in content["reasons"]}
    columns: dict[str, Any] = {name: np.array(found[name], dtype=np.int64) for name in WHOLE}
    columns |= {name: np.array(found[name], dtype=float) for name in REAL}
    columns |= {name: _floats(found[name]) for name in ("low", "high")}
    told_more = {name: found[name] for name in GIVEN if found.get(name) is not None}
    columns |= {name: np.array(values, dtype=float) for name, values in told_more.items()}
    decision, valid = np.array(told["decision"], dtype=np.int64), np.array(found["valid"], dtype=bool)
    return {"people": people, "decision": decision, "to": to, "valid": valid, "reasons": reasons, **columns}


def _cells(values: AnyArray) -> list[float | None]:
    return [None if np.isnan(v) else v for v in values.tolist()]


def _floats(values: list[Any]) -> Float32Array:
    return np.array(values, dtype=float).astype(np.float32)
