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

A loss is the paper's (``recourse_loss``), or one that a person means: that the plan was followed
and they are still refused (``let_down``), or that it was followed in vain: they are still refused,
or would have been granted without it (``in_vain``). The other endings of an interview have losses
of their own: ``edfa.certification.endings``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edfa.certification.records import PLAN_LOSSES, REFERENCES, Loss, Records, Reference
from edfa.errors import DataError, SettingError, check_known
from edfa.fingerprint import digest, identify
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, IntArray

if TYPE_CHECKING:
    from edfa.predictors.committee import Committee

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


def in_vain(decided: "Decisions", today: "Decisions", favourable: int) -> Float64Array:
    """Who followed the plan in vain; (rows,), NaN without a plan.

    It is 1 for those who are refused with the plan made, by the reference or by the model that they
    meet, and for those whom the model that they meet would grant without it; 0 for whom it helps.

    Parameters
    ----------
    decided, today
        What the reference decides at the end, and what today's model does; (rows,) each.
    favourable
        The class that the plan should lead to.
    """
    fails = (decided.followed != favourable) | (today.followed != favourable)
    lost = fails | (today.at_end == favourable)
    return np.where(today.followed == NO_PLAN, np.nan, lost.astype(np.float64))


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
        check_known("reference", self.reference, REFERENCES)
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
    people, predictor, legal = plans.people, plans.people.predictor, plans.legal
    end = _facts_at_end(plans, against)
    rows = np.concatenate([end, plans.make_changes(plans.first[legal], end[legal])])
    n = len(people)
    if against.reference == "trajectory_end":  # one model call for each set of known features
        probabilities = predictor.predict_proba(np.concatenate([people.X, rows]))
        decided = predictor.decide(probabilities)
    else:
        probabilities = predictor.predict_proba(people.X)
        decided = np.append(predictor.decide(probabilities), _judge(plans, against, rows))
    at_step, at_end, followed = np.split(decided, [n, 2 * n])
    codes = np.full(n, NO_PLAN)
    codes[legal] = followed
    return Decisions(probabilities[:n], at_step, at_end, codes)


def decide_today(plans: Plans, decided: Decisions, against: Against) -> Decisions:
    """What today's model decides at the end of everybody's run: ``decided`` itself if that is what
    plans are held ``against``.
    """
    return decided if against.reference == "trajectory_end" else decide_at_end(plans, Against())


def _judge(plans: Plans, against: Against, rows: Float32Array) -> IntArray:
    """Class codes that a reference other than "trajectory_end" decides for complete facts.

    ``rows`` are the facts of all rows of ``plans.people``, then those of its rows with a plan as
    they are changed by it, (rows + rows with a plan, features). The result has one code a row.
    """
    judges = against.judges
    if judges is None:
        model = plans.people.background.unaligned.predictor
        return model.decide(model.predict_proba(rows))
    if getattr(plans.provenance.searcher, "committee", None) is judges:
        raise SettingError(
            "these judges chose the plans; learn another committee, with another seed, to "
            "judge them"
        )
    judge = _judge_of_rows(plans, len(judges), against.judge)
    judge = np.append(judge, judge[plans.legal])
    decided = np.zeros(len(rows), dtype=np.intp)
    for member in np.unique(judge):
        theirs = judge == member
        decided[theirs] = judges.decide(int(member), rows[theirs])
    return decided


def _facts_at_end(plans: Plans, against: Against) -> Float32Array:
    """The facts that the reference decides from, for each row's person, shape (rows, features).

    Raises
    ------
    DataError
        If facts that the reference needs are neither asked in the run nor given as
        ``against.whole``.
    """
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
    runs = pd.DataFrame({"person": people.person, "seed": people.seed, "step": people.step})
    return people.X[runs.groupby(["person", "seed"])["step"].transform("idxmax")]


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


Signal = str | Callable[[Plans], Float64Array] | Float64Array
"""One of ``SIGNALS``, a function of the plans, or a number for each row of ``plans.people``."""
OF_PEOPLE = ("uncertainty", "plan")  # signals that are made of the model's probabilities
OF_PLANS = ("survival", "help")  # those that a searcher estimates for every plan
SIGNALS = OF_PEOPLE + OF_PLANS


def watch(
    plans: Plans,
    *,
    signal: Signal = "uncertainty",
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
        one minus the estimated "survival" or "help" of the plan, a function of the plans, or a
        number for each row of ``plans.people``.
    advisor
        A name in place of the fingerprint of everything that made the plans.
    """
    people = plans.people
    return Records(
        person=np.asarray(people.person),
        seed=np.asarray(people.seed),
        step=np.asarray(people.step),
        spent=np.asarray(people.spent),
        signal=signal_of(plans, signal),
        loss=None,
        legal=plans.legal,
        advisor=advisor or identify(plans),
        signal_name=signal_name(signal),
    )


def replay(
    plans: Plans,
    *,
    signal: Signal = "uncertainty",
    advisor: str | None = None,
    against: Against | None = None,
    favourable: int | None = None,
    loss: Loss = "recourse",
) -> Records:
    """Records with losses: whether the first plan of every step lasts.

    Parameters
    ----------
    plans, signal, advisor
        As in ``watch``.
    against
        What plans are held against; by default everything known at the last step of the same
        run.
    favourable
        Code of the class a plan must lead to. None: the class the plans were found for, or else
        any class other than the one decided at the end.
    loss
        "recourse" is the paper's: the decision or the plan does not last. "let_down": the plan
        was followed and the desired class is still not given. "in_vain": it is not given, or
        would be given without the plan, which is what the column ``wasted`` says.

    Returns
    -------
    Records
        One row per person, seed and step.

    Raises
    ------
    SettingError
        If the loss needs a desired class and there is none.
    """
    check_known("loss", loss, PLAN_LOSSES)
    held = against or Against()
    desired = plans.people.background.class_code(
        plans.provenance.desired_class if favourable is None else favourable
    )
    if loss != "recourse" and desired is None:
        raise SettingError(f"loss={loss!r} needs favourable=, the class that plans should lead to")
    decided = decide_at_end(plans, held)
    watched = signal_of(plans, signal, decided.probabilities)
    records = replace(
        watch(plans, signal=watched, advisor=advisor),
        signal_name=signal_name(signal),
        reference=held.reference,
        loss_name=loss,
        refused=None if desired is None else decided.at_step != desired,
    )
    if desired is None or loss == "recourse":
        lost = recourse_loss(decided.at_step, decided.at_end, decided.followed, desired)
        return replace(records, loss=lost)
    if loss == "let_down":
        lost, wasted = let_down(decided.followed, desired), decided.at_end == desired
        return replace(records, loss=lost, wasted=wasted)
    today = decide_today(plans, decided, held)
    lost, wasted = in_vain(decided, today, desired), today.at_end == desired
    return replace(records, loss=lost, wasted=wasted)


def as_records(runs: Records | Plans, signal: Signal | None = None) -> Records:
    """Plans replayed; records unchanged.

    Parameters
    ----------
    runs
        Plans of every step, or records.
    signal
        What is watched in plans; None: the uncertainty.

    Raises
    ------
    DataError
        If they are anything else, such as a trajectory.
    """
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


def signal_of(
    plans: Plans, signal: Signal, probabilities: Float64Array | None = None
) -> Float64Array:
    """The signal at each row of ``plans.people``, shape (rows,).

    Parameters
    ----------
    plans
        The plans of every step.
    signal
        As in ``watch``. "survival" is one minus the survival of the first plan, 1 where there is
        none; "help" likewise.
    probabilities
        Those of the classes as predicted now, (rows, classes); None: the model is asked if the
        signal needs them.

    Raises
    ------
    UnknownNameError
        If the signal is a name that is not known.
    DataError
        If a signal of one's own has another shape, or plans without survival are watched for it.
    """
    people = plans.people
    if not isinstance(signal, str):
        values = np.asarray(signal(plans) if callable(signal) else signal, dtype=float)
        if values.shape != (len(people),):
            raise DataError(
                f"a signal is one number for each of the {len(people)} steps, not {values.shape}"
            )
        return values
    check_known("signal", signal, OF_PEOPLE + OF_PLANS)
    if signal in OF_PLANS:
        return 1 - _of_first_plans(plans, getattr(plans, signal), without=0.0)
    if probabilities is None:
        probabilities = people.predictor.predict_proba(people.X)
    if signal == "uncertainty":
        return uncertainty(probabilities)
    reached = _of_first_plans(plans, plans.probability_after, without=1.0)
    return plan_uncertainty(probabilities, np.column_stack([reached, 1 - reached]))


def _of_first_plans(plans: Plans, values: Float64Array | None, without: float) -> Float64Array:
    """The value of each row's first plan, shape (rows,), from ``values`` of shape (plans,).

    A row that has no plan gets the number ``without``. ``values`` is None if survival was never
    estimated.
    """
    first = np.full(len(plans.people), without)
    if values is not None:
        first[plans.legal] = values[plans.first[plans.legal]]
    elif len(plans):
        raise DataError(
            "these plans have no survival; make them with SurvivalSearch(train), or pass "
            "them to add_survival(plans)"
        )
    return first


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
