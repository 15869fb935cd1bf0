"""Algorithm 2 as printed, loop by loop: what the fast walk is held against, for its answer and for
its time.

The one liberty is the ceil, which as printed misfires in floating point: k is nudged by 1e-9 first.
"""

import math

import numpy as np
from scipy.special import bdtr

BOTTOM = None


def hb_p_value(risk: float, n: int, mu: float) -> float:
    if mu <= risk:
        return 1.0
    k = math.ceil(n * risk - 1e-9)
    return float(min(math.e * bdtr(k, n, mu), math.exp(-2 * n * (mu - risk) ** 2)))


def hb_ucb(risk: float, n: int, delta: float, tol: float = 1e-12) -> float:
    if risk >= 1:
        return 1.0
    low, high = risk, 1.0
    while high - low > tol:
        mu = (low + high) / 2
        if hb_p_value(risk, n, mu) <= delta:
            high = mu
        else:
            low = mu
    return high


def stop(run, tau):
    """The first legal step with s <= tau, else the last legal one; a step is (signal, legal,
    loss).
    """
    last = BOTTOM
    for step in run:
        if step[1]:
            last = step
            if step[0] <= tau:
                return step
    return last


def algorithm2(people, alpha, delta, grid=100):
    """``people[i]`` holds the runs of one person; gives tau, feasible, the grid and its running
    maximum of the risk.
    """
    pool = [s for runs in people for run in runs for (s, legal, _) in run if legal]
    taus = np.unique(np.quantile(pool, np.linspace(0, 1, grid)))
    risks, n = [], 0
    for tau in taus:
        losses = []
        for runs in people:
            stops = [stop(run, tau) for run in runs]
            lost = [step[2] for step in stops if step is not BOTTOM]
            if lost:
                losses.append(sum(lost) / len(lost))
        n = len(losses)
        risks.append(sum(losses) / n)
    monotone = list(np.maximum.accumulate(risks))
    bounds = [hb_ucb(risk, n, delta) for risk in monotone]
    feasible = [j for j, bound in enumerate(bounds) if bound <= alpha]
    return (
        (taus[max(feasible)], True, taus, monotone)
        if feasible
        else (taus[0], False, taus, monotone)
    )


def as_people(records):
    """Records as nested lists."""
    people: dict[object, dict[int, list[tuple[float, bool, float]]]] = {}
    order = np.lexsort((records.step, records.seed, records.code))
    for row in order:
        runs = people.setdefault(records.person[row], {})
        runs.setdefault(int(records.seed[row]), []).append(
            (float(records.signal[row]), bool(records.legal[row]), float(records.loss[row]))
        )
    return [list(runs.values()) for runs in people.values()]
