"""What plans are held against: who decides when the rest is known, and from which facts.

- "trajectory_end": the model that people meet, from what is known at the last step of the same run.
- "all_features": the same model shown every feature, from complete facts; it may see what the
  blanket leaves out.
- "retrained": models of the same kind learnt again from other people, none of which took part in
  choosing the plans.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edfa.certification.loss import NO_PLAN
from edfa.certification.records import REFERENCES, Reference
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.recourse.plans import Plans
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    from edfa.predictors.committee import Committee

__all__ = ["Against", "Decisions", "decide_at_end"]


@dataclass(frozen=True, eq=False)
class Against:
    """What plans are held against.

    Parameters
    ----------
    reference
        Who decides: see this module.
    whole
        Complete facts of each distinct person, in order of their numbers, (people, features).
        "all_features" needs them; "retrained" takes what is known at the end of the run without
        them, which must be all that judges see.
    judges
        For "retrained": a committee that took no part in choosing the plans.
    judge
        Each person is judged by one member: a seed that draws it, or the position of everybody's,
        (people,), in order of their numbers.
    """

    reference: Reference = "trajectory_end"
    whole: Float32Array | None = None
    judges: "Committee | None" = None
    judge: int | IntArray = 0

    def __post_init__(self) -> None:
        if self.reference not in REFERENCES:
            raise UnknownNameError("reference", self.reference, REFERENCES)
        if (self.judges is not None) != (self.reference == "retrained"):
            raise SettingError(
                "reference='retrained' and judges=, a committee that chose no plan, go together"
            )


@dataclass(frozen=True, eq=False)
class Decisions:
    """What is decided about each row of ``plans.people``; class codes of shape (rows,).

    ``at_step`` is decided at the step by the model that people meet, from its ``probabilities``
    (rows, classes); ``at_end`` by the reference when the rest is known; ``followed`` by the
    reference if the step's first plan was followed, ``NO_PLAN`` where there is none.
    """

    probabilities: Float64Array
    at_step: IntArray
    at_end: IntArray
    followed: IntArray


def decide_at_end(plans: Plans, against: Against) -> Decisions:
    """Ask the reference about everybody at the end of their run, with and without the first plan of
    every step.
    """
    people, predictor = plans.people, plans.people.predictor
    n, legal = len(people), plans.legal
    end = _facts_at_end(plans, against)
    changed = plans.make_changes(plans.first[legal], end[legal])
    if against.reference == "trajectory_end":  # one model call for each set of known features
        probabilities = predictor.predict_proba(np.concatenate([people.X, end, changed]))
        decided = predictor.decide(probabilities)
        at_step, at_end, followed = decided[:n], decided[n : 2 * n], decided[2 * n :]
    else:
        probabilities = predictor.predict_proba(people.X)
        at_step = predictor.decide(probabilities)
        if against.judges is None:
            model = people.background.unaligned.predictor
            decided = model.decide(model.predict_proba(np.concatenate([end, changed])))
        else:
            _check_independent(plans, against.judges)
            by = _judge_of_rows(plans, len(against.judges), against.judge)
            decided = _decide_by(
                against.judges, np.concatenate([by, by[legal]]), np.concatenate([end, changed])
            )
        at_end, followed = decided[:n], decided[n:]
    codes = np.full(n, NO_PLAN)
    codes[legal] = followed
    return Decisions(probabilities[:n], at_step, at_end, codes)


def _facts_at_end(plans: Plans, against: Against) -> Float32Array:
    """The facts that the reference decides from, for each row's person, shape (rows, features)."""
    judges, whole = against.judges, against.whole
    if against.reference == "trajectory_end":
        return _known_at_end(plans)
    if judges is None:
        return _complete_facts(plans, whole, np.ones(plans.people.X.shape[1], dtype=bool))
    if whole is not None:  # what no run ever asks may be unknown to the judges, too
        return _complete_facts(plans, whole, judges.columns & plans.people.known.any(axis=0))
    end = _known_at_end(plans)
    missing = np.argwhere(np.isnan(end) & judges.columns)
    if len(missing):
        row, feature = missing[0]
        name, person = plans.people.schema.names[feature], int(np.asarray(plans.people.person)[row])
        raise DataError(
            f"the judges need {name!r}, which the run of person {person} never asks; pass whole="
        )
    return end


def _known_at_end(plans: Plans) -> Float32Array:
    """The facts known at the last step of each row's run, shape (rows, features)."""
    people = plans.people
    person, seed, step = (np.asarray(part) for part in (people.person, people.seed, people.step))
    order = np.lexsort([step, seed, person])
    run = np.zeros(len(people), dtype=np.intp)
    differs = (person[order][1:] != person[order][:-1]) | (seed[order][1:] != seed[order][:-1])
    run[order[1:]] = np.cumsum(differs)
    last = np.zeros(int(run.max(initial=-1)) + 1, dtype=np.intp)
    last[run[order]] = order  # in order of steps, so that the last one stays
    return people.X[last[run]]


def _complete_facts(plans: Plans, whole: Float32Array | None, needed: BoolArray) -> Float32Array:
    """The facts ``whole`` of each row's person, shape (rows, features), complete in the features
    that are needed.
    """
    if whole is None:
        raise DataError(
            "all_features asks about everything; pass whole=, the complete facts of each person"
        )
    numbers, position = np.unique(np.asarray(plans.people.person), return_inverse=True)
    facts = np.asarray(whole, dtype=np.float32)
    if facts.shape != (len(numbers), plans.people.X.shape[1]) or np.isnan(facts[:, needed]).any():
        raise DataError(
            f"whole must be complete and of shape {(len(numbers), plans.people.X.shape[1])}"
        )
    return facts[position]


def _check_independent(plans: Plans, judges: Any) -> None:
    """Refuse judges that took part in choosing: plans are made to please those."""
    if getattr(plans.provenance.searcher, "committee", None) is judges:
        raise SettingError(
            "these judges chose the plans; learn another committee, with another seed, to "
            "judge them"
        )


def _judge_of_rows(plans: Plans, n_judges: int, judge: int | IntArray) -> IntArray:
    """The judge of each row's person, shape (rows,): one for each person, as given or drawn at
    random.

    A mean over all judges would be a loss between 0 and 1. With one judge it is 0 or 1, so that the
    exact bound holds, for the same risk: that of a random person before a random judge.
    """
    numbers, position = np.unique(np.asarray(plans.people.person), return_inverse=True)
    if isinstance(judge, int):
        return np.random.default_rng(judge).integers(n_judges, size=len(numbers))[position]
    if judge.shape != numbers.shape or not ((judge >= 0) & (judge < n_judges)).all():
        raise DataError(
            f"judge has one of the {n_judges} judges for each of the {len(numbers)} people"
        )
    return np.asarray(judge[position])


def _decide_by(judges: "Committee", judge: IntArray, rows: Float32Array) -> IntArray:
    """What each row's judge decides, (n,), from judges (n,) and complete rows (n, features)."""
    decided = np.zeros(len(rows), dtype=np.intp)
    for member in np.unique(judge):
        theirs = judge == member
        decided[theirs] = judges.decide(int(member), rows[theirs])
    return decided
