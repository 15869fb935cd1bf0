"""Advice for many people at once: what an interview would say of each, worked out together."""

import json
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from edfa.advice.assessment import Assessment
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.overlays import Overlays
from edfa.advice.promise import CertifyLater
from edfa.advice.standing import Certifying, find_standings
from edfa.data.encode import Flag
from edfa.data.partial import encode_partial
from edfa.data.rules import Overlay
from edfa.parallel import count_jobs, map_parallel
from edfa.predictors.user_model.given import Given, numbers_given
from edfa.recourse.plans import Plans
from edfa.recourse.reasons import NoPlanReasons
from edfa.text.flags import flag_sentence
from edfa.typing import BoolArray, Float32Array, IntArray, ObjectArray

__all__ = ["COLUMNS", "advise"]

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
    "flags": "string",
    "error": "string",
}
"""The columns of advice, with their Arrow types. ``plans`` is a JSON list of ``Plan.to_dict``,
the best first; ``flags`` says what was not taken as told.
"""

PARTS, LEAST = (
    2,
    1_000,
)  # of the work for each job, who is done early takes another; and of people in a part
EMPTY: dict[str, tuple[Any, type]] = {
    "double": (np.nan, float),
    "bool": (None, object),
    "string": (None, object),
}


def advise(
    fitted: FittedAdvisor,
    frame: pd.DataFrame,
    k: int = 3,
    first: int = 0,
    n_jobs: int | None = None,
    overlays: pd.Series | None = None,
    certify_later: CertifyLater | None = None,
) -> pd.DataFrame:
    """A row a person: decision, next question, whether they may act, plans; or what is wrong with
    their facts or overlay.

    ``frame`` has whatever is known of them; an empty cell is not known. ``overlays`` (people,) are
    a cell each: empty, or JSON such as ``{"max_changes": 1}``. ``first`` is the number of the first
    row; ``n_jobs`` threads share the people. With ``certify_later``, calibrations that people's
    states take are run there; until then their status is "pending".
    """
    encoded, errors, flags = encode_partial(frame, fitted.encoder, fitted.schema, fitted.relevant)
    facts, threads = np.where(fitted.relevant, encoded, np.float32(np.nan)), count_jobs(n_jobs)
    group = fitted.group_of(encoded)
    own = Overlays.none(len(facts)) if overlays is None else Overlays.of(overlays, fitted)
    errors = own.errors | errors
    fine = np.setdiff1d(np.arange(len(facts)), list(errors))
    # Who knows the same stays together, as far as that goes: they are asked about together.
    ordered = fine[np.lexsort(np.packbits(np.isnan(facts[fine]), axis=1).T)]
    kinds, which = _given(fitted, flags, len(facts))
    parts = _parts(ordered, own.which * len(kinds) + which, threads)
    columns: dict[str, Any] = {"row": first + np.arange(len(facts))}
    columns |= {
        name: np.full(len(facts), *EMPTY[kind]) for name, kind in COLUMNS.items() if name != "row"
    }
    done = map_parallel(
        lambda part: _advise(
            fitted,
            facts[part],
            group[part],
            k,
            own.distinct[own.which[part[0]]],
            kinds[which[part[0]]],
            Certifying(later=certify_later),
        ),
        parts,
        threads,
    )
    for part, advice in zip(parts, done, strict=True):
        for name, values in advice.items():
            columns[name][part] = values
    columns["flags"] = _flags(fitted, flags, errors, len(facts))
    columns["error"] = np.array([errors.get(i) for i in range(len(facts))], dtype=object)
    return pd.DataFrame(columns)


def _parts(ordered: IntArray, which: IntArray, threads: int) -> list[IntArray]:
    """The rows ``ordered`` in parts for the threads: in each, everybody is of the same kind
    (``which`` by row).
    """
    groups = [ordered[which[ordered] == code] for code in np.unique(which[ordered])]
    counts = [
        1 if threads == 1 else min(PARTS * threads, len(group) // LEAST) or 1 for group in groups
    ]
    return [
        part
        for group, count in zip(groups, counts, strict=True)
        for part in np.array_split(group, count)
    ]


def _given(
    fitted: FittedAdvisor, flags: dict[int, tuple[Flag, ...]], people: int
) -> tuple[list[tuple[Given, ...]], IntArray]:
    """Numbers beyond what was seen that people gave, and which of these everybody gave, (people,).

    Most gave none, which is the first; whoever gave one is worked on alone. Only a model of the
    user's own is asked about them.
    """
    kinds: list[tuple[Given, ...]] = [()]
    which = np.zeros(people, dtype=np.intp)
    for row, some in (flags if fitted.model.reads_given else {}).items():
        if numbers := numbers_given(some, fitted.encoder):
            which[row] = len(kinds)
            kinds.append(numbers)
    return kinds, which


def _flags(
    fitted: FittedAdvisor, flags: dict[int, tuple[Flag, ...]], errors: dict[int, str], people: int
) -> ObjectArray:
    """What was not taken as told, one text a person, (people,); None for everybody else. Each flag
    is worded once.
    """
    distinct, as_given = (
        {flag for some in flags.values() for flag in some},
        fitted.model.reads_given,
    )
    worded = {flag: flag_sentence(flag, fitted.schema, as_given=as_given) for flag in distinct}
    texts = np.full(people, None, dtype=object)
    for row, some in flags.items():
        if row not in errors:
            texts[row] = "; ".join(worded[flag] for flag in some)
    return texts


def _advise(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    group: ObjectArray,
    k: int,
    overlay: Overlay,
    given: tuple[Given, ...],
    certifying: Certifying,
) -> dict[str, Any]:
    """The columns of people, of these groups (people,), whose facts are right and whose overlay is
    the same.

    ``given`` are numbers beyond what was seen, the same of all of them.
    """
    assessment = Assessment.of(fitted, X, overlay=overlay, given=given)
    plans, question = assessment.plans(k), assessment.next
    names = np.array([*fitted.schema.names, None], dtype=object)
    prices = assessment.people.costs[np.arange(len(assessment)), question]
    return {
        "outcome": np.array(fitted.schema.classes, dtype=object)[assessment.decision],
        "probability": assessment.chance,
        "refused": assessment.refused,
        "question": names[question],
        "cost": np.where(question >= 0, prices, np.nan),
        "status": find_standings(
            assessment, k, partial(Assessment.of, fitted, given=given), group, certifying
        ).status,
        "plans": _texts(plans),
        "reason": _reasons(plans, assessment.refused),
    }


def _texts(plans: Plans) -> ObjectArray:
    """Everybody's plans as one JSON list of ``Plan.to_dict``, (people,)."""
    rows = plans.to_dicts()
    first = np.searchsorted(plans.of, np.arange(len(plans.people) + 1)).tolist()
    return np.array(
        [json.dumps(rows[start:end], ensure_ascii=False) for start, end in pairwise(first)],
        dtype=object,
    )


def _reasons(plans: Plans, refused: BoolArray) -> ObjectArray:
    """Why refused people have no plan, (people,); None for everybody else."""
    reasons = np.full(len(refused), None, dtype=object)
    rows = np.flatnonzero(refused & ~plans.legal)
    if len(rows) and isinstance(plans.reasons, NoPlanReasons):
        reasons[rows] = plans.reasons.reasons[rows]
    return reasons
