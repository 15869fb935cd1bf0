"""From plans to records: each step's best plan, put over everything known at the end, and asked again (Valid@K)."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edfa.certification.certificate import Certificate
from edfa.certification.loss import NO_PLAN, recourse_loss
from edfa.certification.rcps import certify as certify_records
from edfa.certification.records import Records, Reference, fingerprint
from edfa.certification.signals import plan_uncertainty, uncertainty
from edfa.errors import DataError, UnknownNameError
from edfa.predictors.base import Floats, Predictor
from edfa.recourse.plans import Plans

__all__ = ["certify", "replay"]

Signal = Literal["uncertainty", "plan", "survival"]
REFERENCES: tuple[Reference, ...] = ("trajectory_end", "all_features")


def replay(
    plans: Plans,
    *,
    reference: Reference = "trajectory_end",
    whole: Floats | None = None,
    favourable: int | None = None,
    signal: Signal | npt.NDArray[np.float64] = "uncertainty",
    advisor: str = "",
) -> Records:
    """What became of every step's first plan, one record a person, seed and step.

    Parameters
    ----------
    reference
        Against what is known at the last step of the same run, or ``"all_features"``: then ``whole`` has the complete
        facts, a row for each different person in order of their numbers.
    favourable
        The code of the class a plan must lead to; without one, any other decision than the last counts.
    signal
        The paper's ``"uncertainty"``, the larger of it and the plan's (``"plan"``), one less the estimated
        ``"survival"`` of the plan, or a number of your own for every row of ``plans.people``.
    """
    people = plans.people
    if people.predictor is None:
        raise DataError("these plans were read from a file and have no predictor; only one can say if they last")
    if reference not in REFERENCES:
        raise UnknownNameError("reference", reference, REFERENCES)
    end = _ends(plans) if reference == "trajectory_end" else _complete(plans, whole)
    chances = people.predictor.predict_proba(people.X)
    now, later = people.predictor.decide(chances), _decide(people.predictor, end)
    legal, first = plans.legal, plans.first
    changed = np.full(len(people), NO_PLAN)
    followed = plans.to[first[legal]]
    changed[legal] = _decide(people.predictor, np.where(np.isnan(followed), end[legal], followed))
    return Records(
        person=np.asarray(people.person),
        seed=np.asarray(people.seed),
        step=np.asarray(people.step),
        spent=np.asarray(people.spent),
        signal=_signal(plans, chances, signal),
        loss=recourse_loss(now, later, changed, favourable),
        legal=legal,
        refused=None if favourable is None else now != favourable,
        advisor=advisor or _fingerprint(people.predictor, people.blanket),
        signal_name=signal if isinstance(signal, str) else "given",
        reference=reference,
    )


def certify(found: Plans | Records, alpha: float = 0.2, delta: float = 0.05, **settings: Any) -> Certificate:
    """A certificate from plans (replayed here) or from records; settings are those of ``RecourseCertifier``.

    With plans, the settings of ``replay`` go in as well.
    """
    if isinstance(found, Records):
        return certify_records(found, alpha, delta, **settings)
    names = ("reference", "whole", "favourable", "signal", "advisor")
    options = {name: settings.pop(name) for name in names if name in settings}
    return certify_records(replay(found, **options), alpha, delta, **settings)


def _ends(plans: Plans) -> Floats:
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


def _complete(plans: Plans, whole: Floats | None) -> Floats:
    numbers, place = np.unique(np.asarray(plans.people.person), return_inverse=True)
    if whole is None:
        raise DataError("all_features asks about everything; pass whole=, the complete facts of each person")
    facts = np.asarray(whole, dtype=np.float32)
    if facts.shape != (len(numbers), plans.people.X.shape[1]) or np.isnan(facts).any():
        raise DataError(f"whole must be complete and of shape {(len(numbers), plans.people.X.shape[1])}")
    return facts[place]


def _decide(predictor: Predictor, rows: Floats) -> npt.NDArray[np.intp]:
    return predictor.decide(predictor.predict_proba(rows))


def _signal(plans: Plans, chances: npt.NDArray[np.float64], signal: Any) -> npt.NDArray[np.float64]:
    if not isinstance(signal, str):
        given = np.asarray(signal, dtype=float)
        if given.shape != (len(plans.people),):
            raise DataError(f"a signal is one number for each of the {len(plans.people)} steps, not {given.shape}")
        return given
    if signal == "uncertainty":
        return uncertainty(chances)
    if signal == "survival":
        return _mortality(plans)
    if signal != "plan":
        raise UnknownNameError("signal", signal, ("uncertainty", "plan", "survival"))
    reached = np.ones(len(plans.people))
    reached[plans.legal] = plans.after[plans.first[plans.legal]]
    return plan_uncertainty(chances, np.column_stack([reached, 1 - reached]))


def _mortality(plans: Plans) -> npt.NDArray[np.float64]:
    """One less the survival of each step's first plan; 1 where there is none."""
    if plans.survival is None:
        raise DataError("these plans have no survival; make them with Lasting(train), or pass them to survive(plans)")
    found = np.ones(len(plans.people))
    found[plans.legal] = 1 - plans.survival[plans.first[plans.legal]]
    return found


def _fingerprint(predictor: Predictor, blanket: Any) -> str:
    """Of the model and the blanket; who knows policy, costs and searcher passes ``advisor``."""
    return fingerprint(model=repr(predictor), blanket=blanket.to_json() if blanket else "")
