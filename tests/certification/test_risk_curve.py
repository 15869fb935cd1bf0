"""The curve against plain loops."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import random_records

from edfa.certification import Records
from edfa.certification.risk_curve import trace
from edfa.certification.stopping import Runs


@st.composite
def records(draw, most=8, fractions=False):
    """Small, ragged, full of ties and illegal steps; always a legal step somewhere."""
    rows = []
    for person in range(draw(st.integers(1, most))):
        for seed in range(draw(st.integers(1, 3))):
            rows += [(person, seed, step) for step in range(draw(st.integers(1, 4)))]
    losses = st.sampled_from([0.0, 0.25, 0.5, 1.0] if fractions else [0.0, 1.0])
    cells = [(draw(st.integers(0, 4)) / 4, draw(losses), draw(st.booleans()), draw(st.booleans())) for _ in rows]
    signal, loss, legal, refused = (np.array(column) for column in zip(*cells, strict=True))
    legal[draw(st.integers(0, len(rows) - 1))] = True
    person, seed, step = (np.array(column) for column in zip(*rows, strict=True))
    shuffled = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(rows))
    columns = [person, seed, step, 2.0 * step, signal, loss, legal]
    return Records(*(column[shuffled] for column in columns), refused=refused[shuffled])


def by_hand(data, tau, target, undefined):
    """People's (lost, eligible) means, the mean cost and the share triggered, run by run in plain loops."""
    frame = data.frame().sort_values(["person", "seed", "step"])
    told = []
    for _, runs in frame.groupby("person"):
        each = []
        for _, run in runs.groupby("seed"):
            legal = run[run.legal]
            if legal.empty:
                if undefined != "drop":
                    each.append(
                        (float(undefined == "one"), float(undefined in ("zero", "one")), run.spent.iloc[-1], 0.0)
                    )
                continue
            low = legal[legal.signal <= tau]
            stop = low.iloc[0] if len(low) else legal.iloc[-1]
            spent = stop.spent if len(low) else run.spent.iloc[-1]
            early = bool(len(low)) and stop.step < run.step.iloc[-1]
            spoken = float({"all": True, "early": early, "refused": stop.refused}[target])
            each.append((spoken * stop.loss, spoken, spent, float(len(low) > 0)))
        if each:
            told.append(np.mean(each, axis=0))
    return np.array(told)


@settings(max_examples=60, deadline=None)
@given(random_records(fractions=True), st.sampled_from(["all", "early", "refused"]), st.sampled_from(["drop", "alpha"]))
def test_the_curve_is_what_the_loops_say(data, target, undefined):
    curve = trace(Runs.from_records(data), target, undefined)
    points = np.arange(len(curve.tau))
    hits, eligible = curve.people_at(points)
    for point, tau in enumerate(curve.tau):
        told = by_hand(data, tau, target, undefined)
        assert curve.n == len(told)
        assert np.allclose(np.sort(hits[point]), np.sort(told[:, 0]))
        assert np.allclose(np.sort(eligible[point]), np.sort(told[:, 1]))
        assert np.isclose(curve.lost[point], told[:, 0].sum())
    between = np.arange(-1, 5) / 4 + 0.01
    triggered, cost = curve.triggered_and_cost(between)
    for i, tau in enumerate(between):
        told = by_hand(data, tau, target, undefined)
        assert np.allclose([cost[i], triggered[i]], told[:, 2:].mean(axis=0))
        assert np.isclose(curve.lost[curve.index(tau)], told[:, 0].sum()), "nothing happens between breakpoints"
        assert np.isclose(curve.eligible[curve.index(tau)], told[:, 1].sum())


@settings(max_examples=40, deadline=None)
@given(random_records(), st.sampled_from(["zero", "one", "drop"]))
def test_counts_are_exact(data, undefined):
    curve = trace(Runs.from_records(data), "all", undefined)
    assert curve.lost_count is not None
    assert np.allclose(curve.lost_count / curve.unit, curve.lost)
    assert np.isclose(curve.lost[-1], by_hand(data, 9.0, "all", undefined)[:, 0].sum())
