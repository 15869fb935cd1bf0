"""Advice for many people at once: what an interview would say of each, worked out together."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from edfa.advice.answers import Status
from edfa.advice.assessment import Assessment, Fitted
from edfa.advice.policy_path import Courses
from edfa.data.partial import encode_partial
from edfa.parallel import map_parallel
from edfa.recourse.plans import Plans
from edfa.typing import BoolArray, Float32Array, ObjectArray

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

PARTS, LEAST = 2, 1_000  # of the work for each job, who is done early takes another; and of people in a part
EMPTY: dict[str, tuple[Any, type]] = {"double": (np.nan, float), "bool": (None, object), "string": (None, object)}


def advise(fitted: Fitted, frame: pd.DataFrame, k: int = 3, first: int = 0, n_jobs: int = 1) -> pd.DataFrame:
    """A row a person: decision, next question, whether they may act, plans; or what is wrong with their facts.

    ``frame`` has whatever is known of them; an empty cell is not known. ``first`` is the number of the first row, and
    so many ``n_jobs`` share the work.
    """
    told, errors = encode_partial(frame, fitted.encoder, fitted.schema)
    facts = np.where(fitted.heeded, told, np.float32(np.nan))
    fine = np.setdiff1d(np.arange(len(told)), list(errors))
    # Who knows the same stays together, as far as that goes: they are asked about together.
    same = fine[np.lexsort(np.packbits(np.isnan(facts[fine]), axis=1).T)]
    parts = np.array_split(same, 1 if n_jobs == 1 else min(PARTS * n_jobs, len(same) // LEAST) or 1)
    columns: dict[str, Any] = {"row": first + np.arange(len(told))}
    columns |= {name: np.full(len(told), *EMPTY[kind]) for name, kind in COLUMNS.items() if name != "row"}
    for part, found in zip(
        parts, map_parallel(lambda part: _advise(fitted, facts[part], k), parts, n_jobs), strict=True
    ):
        for name, values in found.items():
            columns[name][part] = values
    columns["error"] = np.array([errors.get(i) for i in range(len(told))], dtype=object)
    return pd.DataFrame(columns)


def _advise(fitted: Fitted, X: Float32Array, k: int) -> dict[str, Any]:  # noqa: N803
    """The columns of people whose facts are right."""
    look = Assessment.of(fitted, X)
    plans = look.plans(k)
    names = np.array([*fitted.schema.names, None], dtype=object)
    return {
        "outcome": np.array(fitted.schema.classes, dtype=object)[look.decision],
        "probability": look.probability,
        "refused": look.refused,
        "question": names[look.next],
        "cost": np.where(look.next >= 0, look.costs[np.arange(len(look)), look.next], np.nan),
        "status": statuses(look, k),
        "plans": _texts(plans),
        "reason": _reasons(plans, look.refused),
    }


def statuses(look: Assessment, k: int) -> ObjectArray:
    """Whether each may act now, in the words of ``Standing.status``."""
    found, tau = _words(len(look), "granted"), look.fitted.tau
    signal = look.signal(k)
    found[look.refused] = "no_plan"
    planned = np.flatnonzero(look.refused & ~np.isnan(signal))
    if tau is None or not len(planned):
        found[planned] = "not_certified"
        return found
    course = Courses.of(look.fitted, look.X[planned])
    end, low = look.next[planned] < 0, signal[planned] <= tau
    passed = course.passed(tau, k, asked=course.on & ~end)
    found[planned] = np.where(passed, "passed", np.where(end | low, "act", "ask"))
    found[planned[~course.on]] = "off_path"
    return found


def _words(count: int, word: Status) -> ObjectArray:
    return np.full(count, word, dtype=object)


def _texts(plans: Plans) -> ObjectArray:
    """Everybody's plans as one JSON list. Many people are offered the same change: each is put into words once."""
    number, feature = np.nonzero(~np.isnan(plans.to))
    own = plans.people.X[plans.of[number], feature]
    cells = (own, plans.to[number, feature], plans.low[number], plans.high[number])
    words = (plans.words(feature, codes).tolist() for codes in cells)
    names = [plans.people.schema.names[j] for j in feature.tolist()]
    seen: dict[tuple[Any, ...], str] = {}
    changes = []
    for change in zip(names, *words, strict=True):
        if (text := seen.get(change)) is None:
            text = seen[change] = _change(*change)
        changes.append(text)
    first = np.searchsorted(number, np.arange(len(plans) + 1)).tolist()
    ends = zip(pairwise(first), plans.after.tolist(), plans.effort.tolist(), strict=True)
    texts = [
        f'{{"changes": [{", ".join(changes[start:end])}], "probability": {chance!r}, "effort": {effort!r}}}'
        for (start, end), chance, effort in ends
    ]
    first = np.searchsorted(plans.of, np.arange(len(plans.people) + 1)).tolist()
    return np.array([f"[{', '.join(texts[start:end])}]" for start, end in pairwise(first)], dtype=object)


def _change(feature: str, before: Any, after: Any, low: Any, high: Any) -> str:
    change = {"feature": feature, "from": before, "to": after}
    return json.dumps(change if low is None else change | {"low": low, "high": high}, ensure_ascii=False)


def _reasons(plans: Plans, refused: BoolArray) -> ObjectArray:
    """Why refused people have no plan."""
    found = np.full(len(refused), None, dtype=object)
    for row in np.flatnonzero(refused & ~plans.legal).tolist():
        found[row] = plans.reasons[row].reason
    return found
