"""What the stop rules watch: how sure one is of each ending, for people on their way.

``find_signals`` is the entry; interviews, files and calibrations all use it.
"""

import numpy as np

from edfa.advice.fitted import EXCESS, NEVER_ACTS, FittedAdvisor
from edfa.certification.endings import EndingName
from edfa.certification.replay import signal_of
from edfa.recourse.outlook import effort_when_complete
from edfa.recourse.plans import Plans
from edfa.typing import BoolArray, Float64Array, IntArray


def find_signals(fitted: FittedAdvisor, plans: Plans) -> dict[EndingName, Float64Array]:
    """The signal of every ending of the advisor's promise.

    Parameters
    ----------
    fitted
        The advisor.
    plans
        The plans of people as they are known.

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
            signal[rows] = _of_plans(fitted, plans, ending.signal)[rows]
        elif name == "granted":
            signal[rows] = 1 - fitted.chance(plans.people.take(rows))
        elif fitted.outlook is not None:
            signal[rows] = 1 - fitted.outlook.no_way(plans.people.X[rows])
    return signals


def _of_plans(fitted: FittedAdvisor, plans: Plans, watched: str) -> Float64Array:
    """The signal of everybody's first plan, (people,)."""
    signal = signal_of(plans, watched)
    if watched == "help":
        rows = np.flatnonzero(plans.legal & (signal <= fitted.promise.ceiling))
        signal[rows[is_worth_waiting(fitted, plans, rows)]] = NEVER_ACTS
    return signal


def is_worth_waiting(fitted: FittedAdvisor, plans: Plans, rows: IntArray) -> BoolArray:
    """Whether people should not act yet because of the effort of their plan, (rows,).

    That is where the questions left are expected to save more effort than they cost, at the card's
    price of effort; or where the plan is too likely to take far more effort than the one in the
    end. Both are worked out from the plans that the person would have in some completions.

    Parameters
    ----------
    fitted
        The advisor.
    plans
        The plans of people as they are known.
    rows
        Which of them, all with a plan.
    """
    people, price = plans.people, fitted.schema.effort_per_price
    asked = people.askable[rows] & fitted.asked
    left = (people.costs[rows] * asked).sum(axis=1)
    waits = np.zeros(len(rows), dtype=bool)
    some = np.flatnonzero(left > 0) if price else np.zeros(0, dtype=np.intp)
    if not len(some):
        return waits
    now = plans.effort[plans.first[rows[some]]][:, None]
    then = effort_when_complete(
        people.take(rows[some]),
        fitted.completions.neighbours,
        fitted.searcher,
        fitted.asked,
        fitted.operator_rules,
        fitted.favourable,
    )
    saved = np.where(np.isinf(then), 0.0, now - then).mean(axis=1)
    planned = (then > 0) & ~np.isinf(then)
    excess = (planned & (now > EXCESS * then)).sum(axis=1)
    waits[some] = price * saved > left[some]
    waits[some] |= excess > fitted.promise.max_excess * planned.sum(axis=1)
    return waits
