"""Advice for many people at once: what an interview would say of each, worked out together.

``advise`` is the entry for a frame in memory; ``edfa.advice.batch_file`` reads files of any size.
People are grouped by their overlay and by the numbers that they gave beyond what was seen in
training; each group is one ``Assessment``.
"""

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
from edfa.advice.standing import find_standings
from edfa.data.encode import Flag
from edfa.data.partial import encode_partial
from edfa.data.rules import Overlay
from edfa.predictors.user_model.given import Given, numbers_given
from edfa.recourse.reasons import NoPlanReasons
from edfa.text.flags import flag_sentence
from edfa.typing import NAN, Float32Array, ObjectArray

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


def advise(
    fitted: FittedAdvisor,
    frame: pd.DataFrame,
    k: int = 3,
    overlays: pd.Series | None = None,
    certify_later: CertifyLater | None = None,
) -> pd.DataFrame:
    """Advise every person of a frame.

    Parameters
    ----------
    fitted
        The advisor.
    frame
        One row per person with whatever is known of them; an empty cell is not known. Other
        columns than the card's features are ignored.
    k
        The largest number of plans for each person.
    overlays
        A cell per person, (people,): empty, or JSON such as ``{"max_changes": 1}``. None: nobody
        has an overlay.
    certify_later
        Runs the calibrations that people's own states take; until one is done, the status of
        these people is ``"pending"``. None: they are run at once.

    Returns
    -------
    pandas.DataFrame
        A row per person in the order of ``frame`` with the columns ``COLUMNS``: decision, next
        question, whether they may act, plans. A row whose facts or overlay cannot be understood
        has its ``row`` and an ``error`` alone.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> advisor = edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(table)
    >>> advice = advise(advisor.fitted, table.test.frame[["age", "purpose"]].head(2))
    >>> advice["question"].tolist()
    ['checking_status', 'checking_status']
    """
    encoded, errors, flags = encode_partial(frame, fitted.encoder, fitted.schema, fitted.relevant)
    people, facts = len(encoded), np.where(fitted.relevant, encoded, NAN)
    group = fitted.group_of(encoded)
    own = Overlays.of(pd.Series([""] * people) if overlays is None else overlays, fitted)
    errors = own.errors | errors
    given: dict[int, tuple[Given, ...]] = {}
    if fitted.model.reads_given:
        given = {row: numbers_given(some, fitted.encoder) for row, some in flags.items()}
    # People of one kind are worked on together; whoever gave numbers beyond what was seen, alone.
    kind, alone = own.which.copy(), [row for row, numbers in given.items() if numbers]
    kind[alone] = len(own.distinct) + np.arange(len(alone))
    columns = {name: np.full(people, None, dtype=object) for name in COLUMNS}
    columns["row"] = np.arange(people)
    fine = np.setdiff1d(columns["row"], list(errors))
    for code in np.unique(kind[fine]):
        rows = fine[kind[fine] == code]
        first = int(rows[0])
        advice = _advise(
            fitted,
            facts[rows],
            group[rows],
            k,
            own.distinct[own.which[first]],
            given.get(first, ()),
            certify_later,
        )
        for name, values in advice.items():
            columns[name][rows] = values
    for row, some in _flag_sentences(fitted, flags).items():
        columns["flags"][row] = None if row in errors else some
    for row, error in errors.items():
        columns["error"][row] = error
    return pd.DataFrame(columns).astype({"probability": float, "cost": float})


def _flag_sentences(fitted: FittedAdvisor, flags: dict[int, tuple[Flag, ...]]) -> dict[int, str]:
    """What was not taken as told, one text per flagged row.

    Parameters
    ----------
    fitted
        The advisor.
    flags
        The flags of people by row; each distinct one is worded once.
    """
    words = {
        flag: flag_sentence(flag, fitted.schema, as_given=fitted.model.reads_given)
        for flag in {flag for some in flags.values() for flag in some}
    }
    return {row: "; ".join(words[flag] for flag in some) for row, some in flags.items()}


def _advise(
    fitted: FittedAdvisor,
    X: Float32Array,  # noqa: N803
    group: ObjectArray,
    k: int,
    overlay: Overlay,
    given: tuple[Given, ...],
    certify_later: CertifyLater | None,
) -> dict[str, Any]:
    """Advice for people who share an overlay and the numbers that they gave beyond what was seen.

    Parameters
    ----------
    fitted, k, overlay, certify_later
        The advisor, the number of plans, the people's limits, and where certificates are made.
    X
        Their encoded facts, (people, features).
    group
        Their groups, (people,); None: not known.
    given
        The numbers beyond what was seen in training that all of them gave.

    Returns
    -------
    dict
        Columns of advice, (people,) each.
    """
    assess = partial(Assessment.of, fitted, given=given)
    assessment = assess(X, overlay=overlay)
    plans, question = assessment.plans(k), assessment.next
    names = np.array([*fitted.schema.names, None], dtype=object)
    prices = assessment.people.costs[np.arange(len(assessment)), question]
    own, first = plans.to_dicts(), np.searchsorted(plans.of, np.arange(len(X) + 1)).tolist()
    reason, without = np.full(len(X), None, dtype=object), assessment.refused & ~plans.legal
    if without.any() and isinstance(plans.reasons, NoPlanReasons):
        reason[without] = plans.reasons.reasons[without]
    return {
        "outcome": np.array(fitted.schema.classes, dtype=object)[assessment.decision],
        "probability": assessment.chance,
        "refused": assessment.refused,
        "question": names[question],
        "cost": np.where(question >= 0, prices, np.nan),
        "status": find_standings(assessment, k, assess, group, later=certify_later).status,
        "plans": [json.dumps(own[start:end], ensure_ascii=False) for start, end in pairwise(first)],
        "reason": reason,
    }
