"""Fixed-sequence testing against loops, and relations that must hold whatever the data are."""

import algorithm2
import numpy as np
import pandas as pd
import pytest
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import certified, random_records

from edfa.certification import Records, RecourseCertifier, certify, hb_ucb
from edfa.certification.bounds import BOUNDS
from edfa.certification.records import Runs
from edfa.certification.risk_curve import RiskTest, leading, trace
from edfa.certification.simulate import simulate_records


@settings(max_examples=some(40), deadline=None)
@given(random_records(most=12), st.integers(2, 30))
def test_paper_is_algorithm_2(data, grid):
    alpha, delta = 0.45, 0.3  # levels at which a handful of people can be certified at all
    tau, feasible, taus, risks = algorithm2.algorithm2(
        algorithm2.as_people(data), alpha, delta, grid
    )
    certificate = certified(data, alpha, delta, bound="paper", grid=grid)
    assert (certificate.certified, certificate.tau) == (feasible, tau)
    result = RecourseCertifier(alpha, delta, bound="paper", grid=grid).search(data)
    assert np.array_equal(result.thresholds, taus)
    assert np.allclose(np.maximum.accumulate(result.curve.risk[result.points]), risks)
    shown = {point.tau: point for point in certificate.curve}
    assert np.allclose(np.maximum.accumulate([shown[tau].risk for tau in taus]), risks)
    assert np.allclose(
        [shown[tau].bound for tau in taus],
        [hb_ucb(shown[tau].risk, certificate.n, delta) for tau in taus],
    )


def test_paper_is_algorithm_2_on_people_of_some_size():
    for seed in range(4):
        data = simulate_records(150, seed=seed, seeds=3)
        tau, feasible, _, _ = algorithm2.algorithm2(algorithm2.as_people(data), 0.2, 0.05, 100)
        certificate = certify(data, 0.2, bound="paper")
        assert (certificate.certified, certificate.tau) == (feasible, tau)
        assert feasible


@settings(max_examples=30, deadline=None)
@given(random_records(most=12, fractions=True), st.sampled_from(BOUNDS), st.floats(0.1, 0.9))
def test_running_maximum_and_first_failure_agree(data, bound, alpha):
    curve = trace(Runs.from_records(data))
    if bound == "cp" and not curve.binary:
        return
    points, test = np.arange(len(curve.tau)), RiskTest(bound, alpha, 0.3)
    p = test.p_values(curve, points)
    passed = test.count_passed(curve, points)
    assert passed == leading(p <= 0.3)
    if bound in ("hb", "hb_kl", "hoeffding"):
        bounds = hb_ucb(np.maximum.accumulate(curve.risk), curve.n, 0.3) if bound == "hb" else None
        assert bounds is None or passed == np.sum(bounds <= alpha)
    upper = test.upper(curve, points)
    clear = np.abs(upper - alpha) > 1e-9
    assert np.array_equal((upper <= alpha)[clear], (p <= 0.3)[clear])


@pytest.mark.parametrize("target", ["all", "early", "refused"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_bound_is_the_p_value_turned_round_for_every_target(bound, target):
    data = simulate_records(120, seed=3, seeds=1 if bound == "cp" else 3)
    curve = trace(Runs.from_records(data), target)
    points = np.arange(0, len(curve.tau), 7)
    test = RiskTest(bound, 0.15, 0.05)
    assert np.array_equal(test.upper(curve, points) <= 0.15, test.p_values(curve, points) <= 0.05)


def test_betting_over_a_prefix_changes_nothing():
    """Long enough for the prefix of people to be doubled several times."""
    for seed, alpha in ((0, 0.3), (1, 0.15), (2, 0.08), (3, 0.02)):
        curve = trace(Runs.from_records(simulate_records(700, seed=seed, seeds=2)))
        order = np.random.default_rng(seed).permutation(curve.n)
        test = RiskTest("wsr", alpha, 0.05, order)
        points = np.arange(len(curve.tau))[:: 1 + seed]
        p = np.concatenate([test.p_values(curve, part) for part in np.array_split(points, 8)])
        assert test.count_passed(curve, points) == leading(p <= 0.05)


# Metamorphic relations


def changed(data, **columns):
    frame = data.frame().assign(**columns)
    return Records.from_frame(frame)


def together(*parts):
    return Records.from_frame(pd.concat([part.frame() for part in parts]))


def rounded(certificate):
    """What must not change, with numbers that are summed in another order rounded."""
    shown = (certificate.status, certificate.tau, certificate.interval, certificate.n)
    return (*shown, round(certificate.risk, 12), round(certificate.bound, 10))


WAYS = [{"bound": bound} for bound in ("auto", "paper", "hb", "hb_kl", "wsr", "hoeffding")]
ONE_RUN = [*WAYS, {"bound": "cp"}, {"target": "refused"}, {"target": "early", "anchor": 0.1}]


@pytest.mark.parametrize("way", ONE_RUN, ids=str)
def test_copying_every_run_changes_nothing(way):
    for seeds in (1, 3) if way in WAYS else (1,):
        data = simulate_records(150, seed=8, seeds=seeds)
        twice = together(data, changed(data, seed=data.seed + seeds))
        first, second = certify(data, **way), certify(twice, **way)
        if way == {"bound": "paper"}:  # interpolated quantiles of a doubled pool are others
            assert (first.status, first.n) == (second.status, second.n)
            assert first.bound == pytest.approx(second.bound, abs=0.01)
        else:
            assert rounded(first) == rounded(second)


@pytest.mark.parametrize("way", ONE_RUN, ids=str)
def test_people_without_a_plan_change_nothing(way):
    data = simulate_records(150, seed=9)
    nobody = changed(
        simulate_records(70, seed=1), person=1000 + simulate_records(70).person, legal=False
    )
    more = certify(together(data, nobody), **way)
    assert rounded(more) == rounded(certify(data, **way))
    assert (more.people, more.n) == (220, 150)
    assert any("70 of 220 people have no plan" in warning for warning in more.warnings)


@pytest.mark.parametrize("way", ONE_RUN, ids=str)
def test_the_order_of_rows_changes_nothing(way):
    """Nor for the bets, whose order is a hash of the person."""
    data = simulate_records(150, seed=10)
    mixed = data.take(np.random.default_rng(0).permutation(len(data)))
    assert rounded(certify(mixed, **way)) == rounded(certify(data, **way))


@pytest.mark.parametrize(
    "way", [{"bound": bound} for bound in ("hb", "hb_kl", "cp", "hoeffding")], ids=str
)
def test_who_is_who_changes_nothing(way):
    data = simulate_records(150, seed=11)
    renamed = changed(data, person=np.array([f"p{997 * i % 1009}" for i in data.person]))
    assert rounded(certify(renamed, **way)) == rounded(certify(data, **way))


@pytest.mark.parametrize("way", [w for w in ONE_RUN if w.get("bound") != "paper"], ids=str)
def test_only_the_order_of_signals_matters(way):
    data = simulate_records(300, seed=12)
    stretched = changed(data, signal=np.exp(3 * data.signal))
    anchor = {"anchor": float(np.exp(0.3))} if "anchor" in way else {}
    first, second = certify(data, **way), certify(stretched, **way | anchor)
    assert (first.status, first.risk, first.cost) == (second.status, second.risk, second.cost)
    assert second.interval[0] == pytest.approx(np.exp(3 * first.interval[0]))


def test_a_stricter_demand_never_stops_earlier():
    data = simulate_records(300, seed=13, seeds=2)
    for bound in ("hb", "wsr"):
        taus = [certify(data, alpha, bound=bound).tau for alpha in (0.05, 0.1, 0.2, 0.3)]
        assert taus == sorted(taus)
    taus = [certify(data, 0.2, delta, bound="hb").tau for delta in (0.001, 0.05, 0.3)]
    assert taus == sorted(taus)


def test_the_threshold_stands_half_way_so_that_rounding_cannot_flip_it():
    data = simulate_records(300, seed=14)
    certificate = certify(data, 0.2)
    low, high = certificate.interval
    assert low < certificate.tau < high
    single = changed(data, signal=data.signal.astype(np.float32).astype(np.float64))
    assert np.array_equal(certificate.stop(single).step, certificate.stop(data).step)
    assert low in data.signal
    assert high in data.signal
