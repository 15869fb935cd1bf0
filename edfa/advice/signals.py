"""What the stop rules watch: how sure one is of each ending, for people on their way.

``find_signals`` is the entry; interviews, files and calibrations all use it.
"""

import numpy as np

from edfa.advice.fitted import NEVER_ACTS, FittedAdvisor
from edfa.certification.endings import EndingName
from edfa.certification.replay import signal_of
from edfa.recourse.plans import Plans
from edfa.typing import BoolArray, Float64Array


def find_signals(
    fitted: FittedAdvisor, plans: Plans, at_last: BoolArray | None = None
) -> dict[EndingName, Float64Array]:
    """The signal of every ending of the advisor's promise.

    Parameters
    ----------
    fitted
        The advisor.
    plans
        The plans of people as they are known.
    at_last
        Who has been asked the last of several questions, (people,); None: that is not known, and
        nothing more is asked of their plans.

    Returns
    -------
    dict
        By the name of the ending, (people,): small where one is sure, NaN where it is not
        possible. A person is granted as far as is known, refused with a plan, or refused without.
        Of who may not be told to act on their plan it is ``NEVER_ACTS``.
    """
    granted = plans.decision == fitted.favourable
    possible = {"granted": granted, "act": plans.legal, "nothing": ~granted & ~plans.legal}
    signals: dict[EndingName, Float64Array] = {}
    for ending in fitted.promise.endings:
        name = ending.name
        rows = np.flatnonzero(possible[name])
        signals[name] = signal = np.full(len(plans.people), np.nan)
        if not len(rows):
            continue
        if name == "act":
            signal[rows] = _of_plans(fitted, plans, ending.signal, at_last)[rows]
        elif name == "granted":
            signal[rows] = 1 - fitted.chance(plans.people.take(rows))
        elif fitted.outlook is not None:
            signal[rows] = 1 - fitted.outlook.no_way(plans.people.X[rows])
    return signals


def _of_plans(
    fitted: FittedAdvisor, plans: Plans, watched: str, at_last: BoolArray | None
) -> Float64Array:
    """The signal of everybody's first plan, (people,)."""
    signal = signal_of(plans, watched)
    if at_last is None or plans.survival is None:
        return signal
    survival = np.ones(len(signal))
    survival[plans.legal] = plans.survival[plans.first[plans.legal]]
    return np.where(fitted.promise.lacks_final_survival(survival, at_last), NEVER_ACTS, signal)
