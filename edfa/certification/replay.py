"""From plans to records: the signal that the stop rule watches, and whether each step's first plan
lasts (Valid@K).

A signal is any number known at the step, fixed before calibration, and small where one is sure. The
certificate holds for every signal; a better one lets more people stop earlier.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from edfa.certification.loss import let_down, recourse_loss
from edfa.certification.records import LOSSES, Loss, Records
from edfa.certification.reference import Against, decide_at_end
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.fingerprint import digest, identify
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, Float64Array

__all__ = [
    "SIGNALS",
    "ReplayOptions",
    "Signal",
    "as_records",
    "is_trajectory",
    "plan_uncertainty",
    "replay",
    "signal_name",
    "signal_of",
    "uncertainty",
    "watch",
]

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


class ReplayOptions(TypedDict, total=False):
    """The keyword arguments of ``replay`` but the signal; None: as there."""

    group: npt.ArrayLike | None
    advisor: str | None
    against: Against | None
    favourable: int | None
    loss: Loss | None


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


def as_records(
    runs: Records | Plans, *, signal: Signal | None = None, **options: Unpack[ReplayOptions]
) -> Records:
    """Replay plans; return records unchanged, and refuse them together with any of ``replay``'s
    options.
    """
    for name in options:
        if name not in ReplayOptions.__annotations__:
            raise UnknownNameError("option", name, ReplayOptions.__annotations__)
    given = {
        name: value for name, value in {"signal": signal, **options}.items() if value is not None
    }
    if isinstance(runs, Plans):
        return replay(runs, **given)  # type: ignore[arg-type]
    if not isinstance(runs, Records):
        kind = type(runs).__name__
        raise DataError(
            f"certificates come from plans or records, not {kind}; find_recourse finds a "
            "trajectory's plans"
        )
    if given:
        raise SettingError(f"{next(iter(given))}= goes with plans; records say it themselves")
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
