"""From plans to records: the signal that the stop rule watches, and whether each step's first plan
lasts (Valid@K).

A signal is any number known at the step, fixed before calibration, and small where one is sure. The
certificate holds for every signal; a better one lets more people stop earlier.

A plan is held against a reference (``Against``), which says who decides when the rest is known, and
from which facts:

- "trajectory_end": the model that people meet, from what is known at the last step of the same run.
- "all_features": the same model shown every feature, from complete facts; it may see what the
  blanket leaves out.
- "retrained": models of the same kind learnt again from other people, none of which took part in
  choosing the plans.

A loss is the paper's (``recourse_loss``) or the one that a person means (``let_down``).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from edfa.certification.records import LOSSES, REFERENCES, Loss, Records, Reference
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.fingerprint import digest, identify
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    from edfa.predictors.committee import Committee

__all__ = [
    "NO_PLAN",
    "SIGNALS",
    "Against",
    "Decisions",
    "Signal",
    "as_records",
    "decide_at_end",
    "is_trajectory",
    "let_down",
    "plan_uncertainty",
    "recourse_loss",
    "replay",
    "signal_name",
    "signal_of",
    "uncertainty",
    "watch",
]

NO_PLAN = -1


def recourse_loss(
    at_step: Any, at_end: Any, changed_at_end: Any, favourable: int | None = None
) -> AnyArray:
    """The loss of the paper's equation (prob1), from predictions alone; arrays of one shape.

    It is 1 where the decision or the plan does not last, 0 where both do, and NaN where there is no
    plan.

    Parameters
    ----------
    at_step, at_end
        Class codes predicted at the step, and when the rest is known.
    changed_at_end
        Class codes predicted for the plan's values put over everything known at the end;
        ``NO_PLAN`` without a plan.
    favourable
        The class the plan must lead to. None: any class other than ``at_end``.

    Examples
    --------
    >>> recourse_loss(at_step=[0, 0, 1, 0], at_end=[0, 0, 0, 0], changed_at_end=[1, 0, 1, NO_PLAN])
    array([ 0.,  1.,  1., nan])
    """
    early, late, changed = (np.asarray(codes) for codes in (at_step, at_end, changed_at_end))
    for name, codes in (("at_step", early), ("at_end", late), ("changed_at_end", changed)):
        _check_codes(name, codes, early.shape)
    lasts = changed != late if favourable is None else changed == favourable
    lost = (early != late) | ~lasts
    return np.where(changed == NO_PLAN, np.nan, lost.astype(np.float64))


def let_down(changed_at_end: Any, favourable: int) -> Float64Array:
    """Who did the plan and is still not given the desired class when the rest is known; an array of
    the same shape.

    It is 1 for those, 0 for whoever is given it, and NaN where there is no plan: nothing was
    promised there. What would have been decided without the plan does not matter; a plan that was
    not needed is wasted, not broken.

    Parameters
    ----------
    changed_at_end
        Class codes predicted for the plan's values put over everything known at the end;
        ``NO_PLAN`` without a plan.
    favourable
        The class that the plan should lead to.

    Examples
    --------
    >>> let_down([1, 0, 2, NO_PLAN], favourable=1)
    array([ 0.,  1.,  1., nan])
    """
    changed = np.asarray(changed_at_end)
    _check_codes("changed_at_end", changed, changed.shape)
    return np.where(changed == NO_PLAN, np.nan, (changed != favourable).astype(np.float64))


def _check_codes(name: str, codes: AnyArray, shape: tuple[int, ...]) -> None:
    if codes.dtype.kind not in "iub" or codes.shape != shape:
        raise DataError(
            f"{name} must be class codes of shape {shape}, not {codes.dtype} of {codes.shape}"
        )


@dataclass(frozen=True, eq=False)
class Against:
    """What plans are held against.

    Parameters
    ----------
    reference
        Who decides: "trajectory_end", "all_features" or "retrained", as explained above.
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


Signal = str | Callable[[Plans], Float64Array] | Float64Array
"""One of ``SIGNALS``, a function of the plans, or a number for each row of ``plans.people``."""
SIGNALS = ("uncertainty", "plan", "survival")


def watch(
    plans: Plans,
    *,
    signal: Signal = "uncertainty",
    group: npt.ArrayLike | None = None,
    advisor: str | None = None,
) -> Records:
    """Records without losses: all that a stop rule may see. They can be stopped, but not certified
    from.

    Parameters
    ----------
    plans
        The plans of every step, as ``find_recourse`` finds them.
    signal
        What the rule watches: the paper's "uncertainty", the larger of it and the plan's ("plan"),
        one minus the estimated "survival" of the plan, a function of the plans, or a number for
        each row of ``plans.people``.
    group
        A label for each distinct person, in order of their numbers.
    advisor
        A name in place of the fingerprint of everything that made the plans.
    """
    return _watch(
        plans, plans.people.predictor.predict_proba(plans.people.X), signal, group, advisor
    )


def replay(
    plans: Plans,
    *,
    signal: Signal = "uncertainty",
    group: npt.ArrayLike | None = None,
    advisor: str | None = None,
    against: Against | None = None,
    favourable: int | None = None,
    loss: Loss = "recourse",
) -> Records:
    """Records with losses: whether the first plan of every step lasts, one record per person, seed
    and step.

    Parameters
    ----------
    plans, signal, group, advisor
        As in ``watch``.
    against
        What plans are held against; by default everything known at the last step of the same run.
    favourable
        Code of the class a plan must lead to. None: the class the plans were found for, or else any
        class other than the one decided at the end.
    loss
        "recourse" is the paper's: the decision or the plan does not last. "let_down": the plan was
        followed and the desired class is still not given; whether it would be given without the
        plan goes into the column ``wasted``.
    """
    if loss not in LOSSES:
        raise UnknownNameError("loss", loss, LOSSES)
    held = against or Against()
    desired = plans.people.background.class_code(
        plans.provenance.desired_class if favourable is None else favourable
    )
    decided = decide_at_end(plans, held)
    records = _watch(plans, decided.probabilities, signal, group, advisor)
    refused = None if desired is None else decided.at_step != desired
    if loss == "recourse":
        lost = recourse_loss(decided.at_step, decided.at_end, decided.followed, desired)
        return replace(records, loss=lost, refused=refused, reference=held.reference)
    if desired is None:
        raise SettingError("loss='let_down' needs favourable=, the class that plans should lead to")
    return replace(
        records,
        loss=let_down(decided.followed, desired),
        refused=refused,
        wasted=decided.at_end == desired,
        reference=held.reference,
        loss_name=loss,
    )


def as_records(runs: Records | Plans, signal: Signal | None = None) -> Records:
    """Replay plans, watching ``signal`` or the uncertainty; return records unchanged."""
    if isinstance(runs, Plans):
        return replay(runs, signal="uncertainty" if signal is None else signal)
    if not isinstance(runs, Records):
        kind = type(runs).__name__
        raise DataError(
            f"certificates come from plans or records, not {kind}; find_recourse finds a "
            "trajectory's plans"
        )
    return runs


def is_trajectory(runs: Any) -> bool:
    """Whether ``runs`` are people without plans, such as a trajectory, rather than plans, records
    or signals.
    """
    return hasattr(runs, "people") and callable(runs.people)


def uncertainty(probabilities: Any) -> Float64Array:
    """The paper's signal: one minus the largest class probability; (..., classes) to (...).

    >>> uncertainty([[0.9, 0.1], [0.4, 0.6]]).round(2)
    array([0.1, 0.4])
    """
    return np.asarray(1 - np.asarray(probabilities, dtype=np.float64).max(axis=-1))


def plan_uncertainty(probabilities: Any, changed: Any) -> Float64Array:
    """The larger of the uncertainties about the person as they are and with the plan; both (...,
    classes) to (...).

    The paper's signal watches the prediction alone, but half of the loss comes from the plan.

    >>> plan_uncertainty([[0.9, 0.1]], [[0.45, 0.55]]).round(2)
    array([0.45])
    """
    return np.maximum(uncertainty(probabilities), uncertainty(changed))


def signal_of(plans: Plans, probabilities: Float64Array, signal: Any) -> Float64Array:
    """The signal at each row of ``plans.people``, shape (rows,).

    ``probabilities`` are those of the classes as predicted now, (rows, classes); ``signal`` as in
    ``watch``.
    """
    if isinstance(signal, str) and signal not in SIGNALS:
        raise UnknownNameError("signal", signal, SIGNALS)
    if not isinstance(signal, str):
        values = np.asarray(signal(plans) if callable(signal) else signal, dtype=float)
        if values.shape != (len(plans.people),):
            raise DataError(
                f"a signal is one number for each of the {len(plans.people)} steps, not "
                f"{values.shape}"
            )
        return values
    if signal == "uncertainty":
        return uncertainty(probabilities)
    if signal == "survival":
        return _failure_probability(plans)
    reached = np.ones(len(plans.people))
    reached[plans.legal] = plans.probability_after[plans.first[plans.legal]]
    return plan_uncertainty(probabilities, np.column_stack([reached, 1 - reached]))


def signal_name(signal: Any) -> str:
    """What certificates call a signal; for an object, its class and a digest of its learnt state or
    attributes.
    """
    if isinstance(signal, str):
        return signal
    if not callable(signal):
        return "given"
    if getattr(signal, "__name__", ""):
        return str(signal.__name__)
    return (
        f"{type(signal).__name__} "
        f"{digest(signal if hasattr(signal, 'learnt_state') else vars(signal))}"
    )


def _watch(
    plans: Plans,
    probabilities: Float64Array,
    signal: Signal,
    group: npt.ArrayLike | None,
    advisor: str | None,
) -> Records:
    """``watch``, with the class probabilities (rows, classes) predicted already."""
    people = plans.people
    return Records(
        person=np.asarray(people.person),
        seed=np.asarray(people.seed),
        step=np.asarray(people.step),
        spent=np.asarray(people.spent),
        signal=signal_of(plans, probabilities, signal),
        loss=None,
        legal=plans.legal,
        group=None if group is None else _group_of_rows(plans, group),
        advisor=advisor or identify(plans),
        signal_name=signal_name(signal),
    )


def _failure_probability(plans: Plans) -> Float64Array:
    """One minus the survival of each step's first plan, shape (rows,); 1 where there is none."""
    failure = np.ones(len(plans.people))
    if not len(plans):
        return failure
    if plans.survival is None:
        raise DataError(
            "these plans have no survival; make them with SurvivalSearch(train), or pass "
            "them to add_survival(plans)"
        )
    failure[plans.legal] = 1 - plans.survival[plans.first[plans.legal]]
    return failure


def _group_of_rows(plans: Plans, group: npt.ArrayLike) -> AnyArray:
    """The label of each row's person, shape (rows,)."""
    numbers, position = np.unique(np.asarray(plans.people.person), return_inverse=True)
    labels = np.asarray(group)
    if labels.shape != (len(numbers),):
        raise DataError(
            f"group has one label for each of the {len(numbers)} people, not the shape "
            f"{labels.shape}"
        )
    return np.asarray(labels[position])
