"""From plans to records: the signal that the stop rule watches, and whether each step's first plan lasts (Valid@K).

A signal is any number known at the step, fixed before calibration, and small where one is sure. The certificate holds
for every signal; a better one lets more people stop earlier.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from edfa.certification.records import Records, Reference
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.fingerprint import digest, identify
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, Float32Array, Float64Array

__all__ = [
    "NO_PLAN",
    "SIGNALS",
    "Signal",
    "SurvivalScore",
    "as_records",
    "is_trajectory",
    "plan_uncertainty",
    "recourse_loss",
    "replay",
    "signal_name",
    "signal_of",
    "step_features",
    "uncertainty",
    "watch",
]

Signal = str | Callable[[Plans], Float64Array] | Float64Array
"""One of ``SIGNALS``, a function of the plans, or a number for each row of ``plans.people``."""
SIGNALS = ("uncertainty", "plan", "survival")
REFERENCES: tuple[Reference, ...] = ("trajectory_end", "all_features")
NO_PLAN = -1


def watch(
    plans: Plans, *, signal: Signal = "uncertainty", group: npt.ArrayLike | None = None, advisor: str | None = None
) -> Records:
    """Records without losses: all that a stop rule may see. They can be stopped, but not certified from.

    Parameters
    ----------
    plans
        The plans of every step, as ``find_recourse`` finds them.
    signal
        What the rule watches: the paper's "uncertainty", the larger of it and the plan's ("plan"), one minus the
        estimated "survival" of the plan, a function of the plans such as a fitted ``SurvivalScore``, or a number for
        each row of ``plans.people``.
    group
        A label for each distinct person, in order of their numbers.
    advisor
        A name in place of the fingerprint of everything that made the plans.
    """
    return _watch(plans, plans.people.predictor.predict_proba(plans.people.X), signal, group, advisor)


def replay(
    plans: Plans,
    *,
    signal: Signal = "uncertainty",
    group: npt.ArrayLike | None = None,
    advisor: str | None = None,
    reference: Reference = "trajectory_end",
    whole: Float32Array | None = None,
    favourable: int | None = None,
) -> Records:
    """Records with losses: whether the first plan of every step lasts, one record per person, seed and step.

    Parameters
    ----------
    plans, signal, group, advisor
        As in ``watch``.
    reference
        What plans are held against: everything known at the last step of the same run, or "all_features".
    whole
        For "all_features": the complete facts of each distinct person in order of their numbers, (people, features).
    favourable
        Code of the class a plan must lead to. None: the class the plans were found for, or else any class other than
        the one decided at the end.
    """
    people, predictor = plans.people, plans.people.predictor
    if reference not in REFERENCES:
        raise UnknownNameError("reference", reference, REFERENCES)
    end = _known_at_end(plans) if reference == "trajectory_end" else _complete_facts(plans, whole)
    legal, n = plans.legal, len(people)
    followed = plans.make_changes(plans.first[legal], end[legal])
    # Now, at the end, and at the end with the plan followed: one model call for each set of known features.
    probabilities = predictor.predict_proba(np.concatenate([people.X, end, followed]))
    decided = predictor.decide(probabilities)
    changed = np.full(n, NO_PLAN)
    changed[legal] = decided[2 * n :]
    desired = people.background.class_code(plans.provenance.desired_class if favourable is None else favourable)
    return replace(
        _watch(plans, probabilities[:n], signal, group, advisor),
        loss=recourse_loss(decided[:n], decided[n : 2 * n], changed, desired),
        refused=None if desired is None else decided[:n] != desired,
        reference=reference,
    )


def as_records(
    runs: Records | Plans,
    *,
    signal: Signal | None = None,
    group: npt.ArrayLike | None = None,
    advisor: str | None = None,
    reference: Reference | None = None,
    whole: Float32Array | None = None,
    favourable: int | None = None,
) -> Records:
    """Replay plans; return records unchanged, and refuse them together with any of ``replay``'s options."""
    options: dict[str, Any] = {"signal": signal, "group": group, "advisor": advisor}
    options |= {"reference": reference, "whole": whole, "favourable": favourable}
    options = {name: value for name, value in options.items() if value is not None}
    if isinstance(runs, Plans):
        return replay(runs, **options)
    if not isinstance(runs, Records):
        kind = type(runs).__name__
        raise DataError(
            f"certificates come from plans or records, not {kind}; find_recourse finds a trajectory's plans"
        )
    if options:
        raise SettingError(f"{next(iter(options))}= goes with plans; records say it themselves")
    return runs


def is_trajectory(runs: Any) -> bool:
    """Whether ``runs`` are people without plans, such as a trajectory, rather than plans, records or signals."""
    return hasattr(runs, "people") and callable(runs.people)


def recourse_loss(at_step: Any, at_end: Any, changed_at_end: Any, favourable: int | None = None) -> AnyArray:
    """The loss of the paper's equation (prob1), from predictions alone; arrays of one shape.

    It is 1 where the decision or the plan does not last, 0 where both do, and NaN where there is no plan.

    Parameters
    ----------
    at_step, at_end
        Class codes predicted at the step, and when the rest is known.
    changed_at_end
        Class codes predicted for the plan's values put over everything known at the end; ``NO_PLAN`` without a plan.
    favourable
        The class the plan must lead to. None: any class other than ``at_end``.

    Examples
    --------
    >>> recourse_loss(at_step=[0, 0, 1, 0], at_end=[0, 0, 0, 0], changed_at_end=[1, 0, 1, NO_PLAN])
    array([ 0.,  1.,  1., nan])
    """
    early, late, changed = (np.asarray(codes) for codes in (at_step, at_end, changed_at_end))
    for name, codes in (("at_step", early), ("at_end", late), ("changed_at_end", changed)):
        if codes.dtype.kind not in "iub" or codes.shape != early.shape:
            raise DataError(f"{name} must be class codes of shape {early.shape}, not {codes.dtype} of {codes.shape}")
    lasts = changed != late if favourable is None else changed == favourable
    lost = (early != late) | ~lasts
    return np.where(changed == NO_PLAN, np.nan, lost.astype(np.float64))


def uncertainty(probabilities: Any) -> Float64Array:
    """The paper's signal: one minus the largest class probability; (..., classes) to (...).

    >>> uncertainty([[0.9, 0.1], [0.4, 0.6]]).round(2)
    array([0.1, 0.4])
    """
    return np.asarray(1 - np.asarray(probabilities, dtype=np.float64).max(axis=-1))


def plan_uncertainty(probabilities: Any, changed: Any) -> Float64Array:
    """The larger of the uncertainties about the person as they are and with the plan; both (..., classes) to (...).

    The paper's signal watches the prediction alone, but half of the loss comes from the plan.

    >>> plan_uncertainty([[0.9, 0.1]], [[0.45, 0.55]]).round(2)
    array([0.45])
    """
    return np.maximum(uncertainty(probabilities), uncertainty(changed))


class SurvivalScore(BaseEstimator):  # type: ignore[misc]
    """A signal that is learnt: the probability that a plan fails, fitted on runs of people outside the calibration.

    It is a logistic regression on numbers known at the step, such as both uncertainties and the share of features left;
    for plans, those of ``step_features``. Pass a fitted score as ``signal`` to whatever certifies from plans.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> facts = random.random((200, 2))
    >>> score = SurvivalScore().fit(facts, facts[:, 0] > 0.5)
    >>> bool(score([[0.9, 0.5]])[0] > score([[0.1, 0.5]])[0])
    True
    """

    def fit(self, facts: Any, loss: Any) -> "SurvivalScore":
        """Learn from steps: ``facts`` are numbers (steps, facts) or plans, ``loss`` (steps,) is NaN without a plan."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        lost = np.asarray(loss, dtype=np.float64)
        legal = ~np.isnan(lost)
        if len(np.unique(lost[legal])) < 2:
            raise DataError("a survival score needs plans that lasted and plans that failed")
        model = make_pipeline(StandardScaler(), LogisticRegression())
        self.model_ = model.fit(_as_matrix(facts)[legal], lost[legal].astype(np.int64))
        return self

    def __call__(self, facts: Any) -> Float64Array:
        """The signal, shape (steps,): the probability of failing, from facts (steps, facts) or plans."""
        if not hasattr(self, "model_"):
            raise DataError("this score has learnt nothing yet; call fit(facts, loss) first")
        return np.asarray(self.model_.predict_proba(_as_matrix(facts))[:, 1], dtype=np.float64)

    def learnt_state(self) -> dict[str, AnyArray]:
        """What was learnt, as arrays; with the settings (there are none) it is what certificates know the signal by."""
        if not hasattr(self, "model_"):
            return {}
        scaler, regression = (step for _, step in self.model_.steps)
        state = {"mean": scaler.mean_, "scale": scaler.scale_}
        return state | {"coef": regression.coef_, "intercept": regression.intercept_}


def step_features(plans: Plans) -> Float64Array:
    """What is known of the first plan at each step, shape (rows, 6).

    The columns: the person's uncertainty, the share of features not known, the plan's uncertainty, its number of
    changes, its L2 length and its effort; the last four are 1 where there is no plan.
    """
    legal, first = plans.legal, plans.first[plans.legal]
    own = uncertainty(plans.people.predictor.predict_proba(plans.people.X))
    plan = np.ones((len(own), 4))
    plan[legal] = np.column_stack(
        [1 - plans.probability_after[first], plans.l0[first], plans.l2[first], plans.effort[first]]
    )
    return np.column_stack([own, np.isnan(plans.people.X).mean(axis=1), plan])


def signal_of(plans: Plans, probabilities: Float64Array, signal: Any) -> Float64Array:
    """The signal at each row of ``plans.people``, shape (rows,).

    ``probabilities`` are those of the classes as predicted now, (rows, classes); ``signal`` as in ``watch``.
    """
    if isinstance(signal, str) and signal not in SIGNALS:
        raise UnknownNameError("signal", signal, SIGNALS)
    if not isinstance(signal, str):
        values = np.asarray(signal(plans) if callable(signal) else signal, dtype=float)
        if values.shape != (len(plans.people),):
            raise DataError(f"a signal is one number for each of the {len(plans.people)} steps, not {values.shape}")
        return values
    if signal == "uncertainty":
        return uncertainty(probabilities)
    if signal == "survival":
        return _failure_probability(plans)
    reached = np.ones(len(plans.people))
    reached[plans.legal] = plans.probability_after[plans.first[plans.legal]]
    return plan_uncertainty(probabilities, np.column_stack([reached, 1 - reached]))


def signal_name(signal: Any) -> str:
    """What certificates call a signal; for an object, its class and a digest of its learnt state or attributes."""
    if isinstance(signal, str):
        return signal
    if not callable(signal):
        return "given"
    if getattr(signal, "__name__", ""):
        return str(signal.__name__)
    return f"{type(signal).__name__} {digest(signal if hasattr(signal, 'learnt_state') else vars(signal))}"


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
            "these plans have no survival; make them with SurvivalSearch(train), or pass them to add_survival(plans)"
        )
    failure[plans.legal] = 1 - plans.survival[plans.first[plans.legal]]
    return failure


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


def _complete_facts(plans: Plans, whole: Float32Array | None) -> Float32Array:
    """The complete facts of each row's person, shape (rows, features)."""
    if whole is None:
        raise DataError("all_features asks about everything; pass whole=, the complete facts of each person")
    numbers, position = np.unique(np.asarray(plans.people.person), return_inverse=True)
    facts = np.asarray(whole, dtype=np.float32)
    if facts.shape != (len(numbers), plans.people.X.shape[1]) or np.isnan(facts).any():
        raise DataError(f"whole must be complete and of shape {(len(numbers), plans.people.X.shape[1])}")
    return facts[position]


def _group_of_rows(plans: Plans, group: npt.ArrayLike) -> AnyArray:
    """The label of each row's person, shape (rows,)."""
    numbers, position = np.unique(np.asarray(plans.people.person), return_inverse=True)
    labels = np.asarray(group)
    if labels.shape != (len(numbers),):
        raise DataError(f"group has one label for each of the {len(numbers)} people, not the shape {labels.shape}")
    return np.asarray(labels[position])


def _as_matrix(facts: Any) -> Float64Array:
    """Facts of steps as numbers (steps, facts), from numbers or plans."""
    return step_features(facts) if isinstance(facts, Plans) else np.asarray(facts, dtype=np.float64)
