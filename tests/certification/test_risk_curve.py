"""The curve against plain loops."""

from typing import NamedTuple

import numpy as np
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import random_records

from edfa.certification.records import Runs
from edfa.certification.risk_curve import trace


class Step(NamedTuple):
    person: int
    seed: int
    step: int
    spent: float
    signal: float
    loss: float
    legal: bool
    refused: bool


def by_hand(data, tau, target):
    """Loss, eligible share, cost and share triggered of each person with a defined loss, (people,
    4), by loops.
    """
    runs = {}
    for row in sorted(
        Step(*row)
        for row in zip(*(getattr(data, name).tolist() for name in Step._fields), strict=True)
    ):
        runs.setdefault(row.person, {}).setdefault(row.seed, []).append(row)
    people = []
    for seeds in runs.values():
        results = [result for run in seeds.values() if (result := by_hand_of_run(run, tau, target))]
        if results:
            people.append(np.mean(results, axis=0))
    return np.array(people)


def by_hand_of_run(run, tau, target):
    """``by_hand`` for one run, a list of steps; None if it is left out."""
    legal = [step for step in run if step.legal]
    if not legal:
        return None
    low = [step for step in legal if step.signal <= tau]
    stop = low[0] if low else legal[-1]
    early = bool(low) and stop.step < run[-1].step
    eligible = float({"all": True, "early": early, "refused": stop.refused}[target])
    return eligible * stop.loss, eligible, stop.spent if low else run[-1].spent, float(bool(low))


@settings(max_examples=some(60), deadline=None)
@given(
    random_records(fractions=True),
    st.sampled_from(["all", "early", "refused"]),
)
def test_the_curve_is_what_the_loops_say(data, target):
    curve = trace(Runs.from_records(data), target)
    points = np.arange(len(curve.tau))
    lost, eligible = curve.people_at(points)
    for point, tau in enumerate(curve.tau):
        expected = by_hand(data, tau, target)
        assert curve.n == len(expected)
        assert np.allclose(np.sort(lost[point]), np.sort(expected[:, 0]))
        assert np.allclose(np.sort(eligible[point]), np.sort(expected[:, 1]))
        assert np.isclose(curve.lost[point], expected[:, 0].sum())
    between = np.arange(-1, 5) / 4 + 0.01
    triggered, cost = curve.triggered_and_cost(between)
    for i, tau in enumerate(between):
        expected = by_hand(data, tau, target)
        assert np.allclose([cost[i], triggered[i]], expected[:, 2:].mean(axis=0))
        assert np.isclose(curve.lost[curve.index(tau)], expected[:, 0].sum()), (
            "nothing happens between breakpoints"
        )
        assert np.isclose(curve.eligible[curve.index(tau)], expected[:, 1].sum())


@settings(max_examples=some(40), deadline=None)
@given(random_records())
def test_counts_are_exact(data):
    curve = trace(Runs.from_records(data), "all")
    assert curve.lost_count is not None
    assert np.allclose(curve.lost_count / curve.unit, curve.lost)
    assert np.isclose(curve.lost[-1], by_hand(data, 9.0, "all")[:, 0].sum())
