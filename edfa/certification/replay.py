"""From plans to records: what the stop rule watches, and what became of each step's best plan at the end (Valid@K)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from edfa.certification.loss import NO_PLAN, recourse_loss
from edfa.certification.records import Records, Reference
from edfa.certification.signals import plan_uncertainty, uncertainty
from edfa.errors import DataError, SettingError, UnknownNameError
from edfa.fingerprint import digest, identify
from edfa.predictors.base import Predictor
from edfa.recourse.plans import Plans
from edfa.typing import AnyArray, Float32Array, Float64Array

__all__ = ["NAMED", "Options", "Signal", "Watched", "name_of", "records_of", "replay", "signal_of", "watch"]

Signal = Literal["uncertainty", "plan", "survival"] | Callable[[Plans], Float64Array] | Float64Array
NAMED = ("uncertainty", "plan", "survival")
REFERENCES: tuple[Reference, ...] = ("trajectory_end", "all_features")


class Watched(TypedDict, total=False):
    """How plans are watched while people are asked."""

    signal: Any  # "uncertainty", "plan", "survival", a function of the plans, or a number for every row of plans.people
    group: npt.ArrayLike  # a label for each different person, in order of their numbers
    advisor: str  # a name in place of the fingerprint of all that made the plans


class Options(Watched, total=False):
    """How plans are held against what is known at the end."""

    reference: Reference  # what is known at the last step of the same run, or "all_features"
    whole: Float32Array  # for "all_features": the complete facts of each different person, in order of their numbers
    favourable: int  # the class a plan must lead to; the one that the plans were found for, or any other than today's


def watch(plans: Plans, **options: Unpack[Watched]) -> Records:
    """Records without losses: all that a stop rule may see. They can be stopped, but not certified from."""
    return _watched(plans, _predictor(plans).predict_proba(plans.people.X), options)


def replay(plans: Plans, **options: Unpack[Options]) -> Records:
    """What became of every step's first plan, one record a person, seed and step; see ``Options``.

    The signal is the paper's ``"uncertainty"``, the larger of it and the plan's (``"plan"``), one less the estimated
    ``"survival"`` of the plan, or one of your own.
    """
    people, predictor = plans.people, _predictor(plans)
    reference = options.get("reference", REFERENCES[0])
    if reference not in REFERENCES:
        raise UnknownNameError("reference", reference, REFERENCES)
    end = _ends(plans) if reference == "trajectory_end" else _complete(plans, options.get("whole"))
    legal, n = plans.legal, len(people)
    to = plans.to[plans.first[legal]]
    followed = np.where(np.isnan(to), end[legal], to)
    # Today, at the end, and at the end with the plan followed: one model call for each set of known features.
    told = predictor.predict_proba(np.concatenate([people.X, end, followed]))
    chances, decided = told[:n], predictor.decide(told)
    changed = np.full(n, NO_PLAN)
    changed[legal] = decided[2 * n :]
    favourable = _place(predictor, options.get("favourable", plans.provenance.desired_class))
    return replace(
        _watched(plans, chances, options),
        loss=recourse_loss(decided[:n], decided[n : 2 * n], changed, favourable),
        refused=None if favourable is None else decided[:n] != favourable,
        reference=reference,
    )


def records_of(found: Records | Plans, **options: Unpack[Options]) -> Records:
    """Records as they are, plans replayed."""
    if isinstance(found, Plans):
        return replay(found, **options)
    if not isinstance(found, Records):
        kind = type(found).__name__
        raise DataError(
            f"certificates come from plans or records, not {kind}; find_recourse finds a trajectory's plans"
        )
    if options:
        raise SettingError(f"{next(iter(options))}= goes with plans; records say it themselves")
    return found


def name_of(signal: Any) -> str:
    """What a certificate calls a signal; of an object, with a word for what it has learnt."""
    if isinstance(signal, str):
        return signal
    if not callable(signal):
        return "given"
    return str(getattr(signal, "__name__", "")) or f"{type(signal).__name__} {digest(vars(signal))}"


def _predictor(plans: Plans) -> Predictor:
    if plans.people.predictor is None:
        raise DataError("these plans were read from a file and have no predictor; only one can say if they last")
    return plans.people.predictor


def _place(predictor: Predictor, favourable: int | None) -> int | None:
    """Where decisions have the favourable class."""
    if favourable is None:
        return None
    found = np.flatnonzero(np.asarray(predictor.classes_) == favourable)
    if not len(found):
        raise UnknownNameError("class", favourable, predictor.classes_)
    return int(found[0])


def _watched(plans: Plans, chances: Float64Array, options: Any) -> Records:
    people, signal = plans.people, options.get("signal", "uncertainty")
    return Records(
        person=np.asarray(people.person),
        seed=np.asarray(people.seed),
        step=np.asarray(people.step),
        spent=np.asarray(people.spent),
        signal=signal_of(plans, chances, signal),
        loss=None,
        legal=plans.legal,
        group=None if options.get("group") is None else _labels(plans, options["group"]),
        advisor=options.get("advisor") or identify(plans),
        signal_name=name_of(signal),
    )


def signal_of(plans: Plans, chances: Float64Array, signal: Any) -> Float64Array:
    if isinstance(signal, str) and signal not in NAMED:
        raise UnknownNameError("signal", signal, NAMED)
    if not isinstance(signal, str):
        given = np.asarray(signal(plans) if callable(signal) else signal, dtype=float)
        if given.shape != (len(plans.people),):
            raise DataError(f"a signal is one number for each of the {len(plans.people)} steps, not {given.shape}")
        return given
    if signal == "uncertainty":
        return uncertainty(chances)
    if signal == "survival":
        return _mortality(plans)
    reached = np.ones(len(plans.people))
    reached[plans.legal] = plans.probability_after[plans.first[plans.legal]]
    return plan_uncertainty(chances, np.column_stack([reached, 1 - reached]))


def _mortality(plans: Plans) -> Float64Array:
    """One less the survival of each step's first plan; 1 where there is none."""
    found = np.ones(len(plans.people))
    if not len(plans):
        return found
    if plans.survival is None:
        raise DataError(
            "these plans have no survival; make them with SurvivalSearch(train), or pass them to add_survival(plans)"
        )
    found[plans.legal] = 1 - plans.survival[plans.first[plans.legal]]
    return found


def _ends(plans: Plans) -> Float32Array:
    """What is known at the last step of each row's run."""
    people = plans.people
    person, seed, step = (np.asarray(part) for part in (people.person, people.seed, people.step))
    order = np.lexsort([step, seed, person])
    run = np.zeros(len(people), dtype=np.intp)
    differs = (person[order][1:] != person[order][:-1]) | (seed[order][1:] != seed[order][:-1])
    run[order[1:]] = np.cumsum(differs)
    last = np.zeros(int(run.max(initial=-1)) + 1, dtype=np.intp)
    last[run[order]] = order  # in order of steps, so that the last one stays
    return people.X[last[run]]


def _complete(plans: Plans, whole: Float32Array | None) -> Float32Array:
    if whole is None:
        raise DataError("all_features asks about everything; pass whole=, the complete facts of each person")
    numbers, place = np.unique(np.asarray(plans.people.person), return_inverse=True)
    facts = np.asarray(whole, dtype=np.float32)
    if facts.shape != (len(numbers), plans.people.X.shape[1]) or np.isnan(facts).any():
        raise DataError(f"whole must be complete and of shape {(len(numbers), plans.people.X.shape[1])}")
    return facts[place]


def _labels(plans: Plans, group: npt.ArrayLike) -> AnyArray:
    numbers, place = np.unique(np.asarray(plans.people.person), return_inverse=True)
    labels = np.asarray(group)
    if labels.shape != (len(numbers),):
        raise DataError(f"group has one label for each of the {len(numbers)} people, not the shape {labels.shape}")
    return np.asarray(labels[place])
