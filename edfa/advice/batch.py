"""Advice for many people at once: what an interview would say of each, worked out together."""

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.advice.course import Courses
from edfa.advice.outlook import Fitted, Outlook
from edfa.answers import Status
from edfa.data.partial import encode_partial
from edfa.predictors.base import Mask
from edfa.recourse.plans import Plans

__all__ = ["COLUMNS", "advise", "statuses"]

COLUMNS = {
    "row": "int64",
    "outcome": "string",
    "probability": "double",
    "refused": "bool",
    "question": "string",
    "cost": "double",
    "status": "string",
    "plans": "string",
    "reason": "string",
    "error": "string",
}
"""The columns of advice, with their Arrow types. ``plans`` is JSON, the best plan first."""

Words = npt.NDArray[np.object_]


def advise(fitted: Fitted, frame: pd.DataFrame, k: int = 3, first: int = 0) -> pd.DataFrame:
    """A row a person: decision, next question, whether they may act, plans; or what is wrong with their facts.

    ``frame`` has whatever is known of them; an empty cell is not known. ``first`` is the number of the first row.
    """
    told, errors = encode_partial(frame, fitted.encoder, fitted.schema)
    fine = np.setdiff1d(np.arange(len(told)), list(errors))
    look = Outlook.of(fitted, np.where(fitted.heeded, told[fine], np.float32(np.nan)))
    plans = look.plans(k)
    names = np.array([*fitted.schema.names, None], dtype=object)
    found: dict[str, Any] = {
        "outcome": np.array(fitted.schema.classes, dtype=object)[look.decision],
        "probability": look.probability,
        "refused": look.refused,
        "question": names[look.next],
        "cost": np.where(look.next >= 0, look.costs[np.arange(len(look)), look.next], np.nan),
        "status": statuses(look, k),
        "plans": _texts(plans),
        "reason": _reasons(plans, look.refused),
    }
    columns: dict[str, Any] = {"row": first + np.arange(len(told))}
    for name, values in found.items():
        empty = {"bool": None, "double": np.nan}.get(COLUMNS[name])
        whole = np.full(len(told), empty, dtype=float if COLUMNS[name] == "double" else object)
        whole[fine] = values
        columns[name] = whole
    columns["error"] = np.array([errors.get(i) for i in range(len(told))], dtype=object)
    return pd.DataFrame(columns)


def statuses(look: Outlook, k: int) -> Words:
    """Whether each may act now, in the words of ``Standing.status``."""
    found, tau = _words(len(look), "granted"), look.fitted.tau
    signal = look.signal(k)
    found[look.refused] = "no plan"
    planned = np.flatnonzero(look.refused & ~np.isnan(signal))
    if tau is None or not len(planned):
        found[planned] = "not certified"
        return found
    course = Courses.of(look.fitted, look.X[planned])
    on = planned[course.on]
    found[planned[~course.on]] = "off course"
    passed = course.passed(tau, k)[course.on]
    end, low = look.next[on] < 0, signal[on] <= tau
    found[on] = np.where(end | (low & ~passed), "act", np.where(passed, "passed", "ask"))
    return found


def _words(count: int, word: Status) -> Words:
    return np.full(count, word, dtype=object)


def _texts(plans: Plans) -> Words:
    """Everybody's plans as one JSON list. Many people are offered the same change: each is put into words once."""
    number, feature = np.nonzero(~np.isnan(plans.to))
    own = plans.people.X[plans.of[number], feature]
    cells = (own, plans.to[number, feature], plans.low[number], plans.high[number])
    words = (plans.words(feature, codes).tolist() for codes in cells)
    names = [plans.people.schema.names[j] for j in feature.tolist()]
    seen: dict[tuple[Any, ...], str] = {}
    changes: list[list[str]] = [[] for _ in range(len(plans))]
    for i, *change in zip(number.tolist(), names, *words, strict=True):
        key = tuple(change)
        changes[i].append(seen[key] if key in seen else seen.setdefault(key, _change(*change)))
    told: dict[int, list[str]] = {}
    columns = (plans.of.tolist(), changes, plans.after.tolist(), plans.effort.tolist())
    for person, made, chance, effort in zip(*columns, strict=True):
        text = f'{{"changes": [{", ".join(made)}], "probability": {chance!r}, "effort": {effort!r}}}'
        told.setdefault(person, []).append(text)
    found = np.full(len(plans.people), "[]", dtype=object)
    for person, texts in told.items():
        found[person] = f"[{', '.join(texts)}]"
    return found


def _change(feature: str, before: Any, after: Any, low: Any, high: Any) -> str:
    change = {"feature": feature, "from": before, "to": after}
    return json.dumps(change if low is None else change | {"low": low, "high": high}, ensure_ascii=False)


def _reasons(plans: Plans, refused: Mask) -> Words:
    """Why refused people have no plan."""
    found = np.full(len(refused), None, dtype=object)
    for row in np.flatnonzero(refused & ~plans.legal).tolist():
        found[row] = plans.reasons[row].reason
    return found
