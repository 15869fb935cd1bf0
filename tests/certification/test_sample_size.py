"""How many people: against scans of the definition, and figures worked out beforehand."""

import numpy as np
import pytest
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edfa.certification import (
    critical_losses,
    floor,
    hb_ucb,
    n_for_power,
    n_required,
    power,
    zones,
)
from edfa.certification.bounds import upper_bound
from edfa.errors import ColumnError, SettingError

# alpha, r0: closed form; first and stable of hb; first and stable of cp (delta 0.05; worked out
# independently)
ANCHORS = {
    (0.05, 0.0): (600, 78, 78, 59, 59),
    (0.1, 0.0): (150, 38, 38, 29, 29),
    (0.1, 0.05): (600, 160, 186, 116, 142),
    (0.2, 0.0): (38, 18, 18, 14, 14),
    (0.2, 0.05): (67, 36, 43, 30, 30),
    (0.2, 0.1): (150, 78, 84, 50, 63),
    (0.2, 0.15): (600, 293, 315, 193, 215),
    (0.2, 0.19): (14979, 7021, 7196, 4400, 4580),
    (0.3, 0.0): (17, 12, 12, 9, 9),
    (0.3, 0.05): (24, 18, 23, 14, 14),
    (0.3, 0.1): (38, 28, 33, 19, 24),
    (0.3, 0.15): (67, 46, 55, 33, 37),
    (0.3, 0.19): (124, 84, 96, 57, 65),
    (0.3, 0.25): (600, 380, 406, 244, 270),
}
MOST_LOSSES = {
    ("hb", 0.1): (-1, 0, 3, 11, 35, 80),
    ("cp", 0.1): (0, 1, 4, 12, 38, 84),
    ("hoeffding", 0.1): (-1, -1, -1, 2, 22, 61),
    ("hb", 0.2): (1, 3, 11, 28, 81, 173),
    ("cp", 0.2): (2, 5, 13, 30, 84, 178),
    ("hoeffding", 0.2): (-1, 1, 7, 22, 72, 161),
    ("hb", 0.3): (3, 8, 20, 46, 128, 269),
    ("cp", 0.3): (4, 9, 22, 48, 132, 275),
    ("hoeffding", 0.3): (2, 6, 17, 42, 122, 261),
}


@pytest.mark.parametrize(("alpha", "r0"), ANCHORS)
def test_required_people(alpha, r0):
    hb, cp = n_required(alpha, r0), n_required(alpha, r0, bound="cp")
    assert (hb.closed_form, hb.first, hb.stable, cp.first, cp.stable) == ANCHORS[alpha, r0]
    assert cp.closed_form == hb.closed_form


@settings(max_examples=some(40), deadline=None)
@given(st.integers(5, 60), st.integers(0, 50), st.sampled_from([0.01, 0.05, 0.2]))
def test_required_people_by_scanning_the_bound(a, r, delta):
    alpha, r0 = a / 100, r / 100
    needed = n_required(alpha, r0, delta)
    if r0 >= alpha:
        assert needed.closed_form is None
        assert needed.first is None
        return
    if alpha - r0 < 0.03:
        return
    sizes = np.arange(1, needed.closed_form + 400)
    passes = hb_ucb(r0, sizes, delta) <= alpha
    assert needed.first == sizes[passes][0]
    assert needed.stable == sizes[~passes][-1] + 1
    assert upper_bound("hoeffding", delta, needed.closed_form, risk=r0) <= alpha + 1e-12
    assert needed.floor <= needed.first <= needed.stable <= needed.closed_form


def test_the_paper_formula_asks_for_more_than_the_bound_needs():
    for (alpha, r0), (closed, _, stable, *_) in ANCHORS.items():
        assert closed >= stable, (alpha, r0)


@pytest.mark.parametrize(("bound", "alpha"), MOST_LOSSES)
def test_most_losses(bound, alpha):
    assert (
        tuple(critical_losses([30, 50, 100, 200, 500, 1000], alpha, 0.05, bound))
        == MOST_LOSSES[bound, alpha]
    )


def test_several_runs_cost_hb_nothing_and_are_counted_exactly():
    assert critical_losses(100, 0.2, m=10) == 110, "eleven people's worth, in tenths"


def test_power():
    assert n_for_power(0.2, 0.05) == (36, 51, 58)
    assert n_for_power(0.2, 0.1) == (78, 128, 159)
    assert n_for_power(0.2, 0.15) == (293, 533, 691)
    assert n_for_power(0.3, 0.25) == (384, 724, 943)
    assert n_for_power(0.1, 0.05) == (160, 274, 347)
    assert n_for_power(0.2, 0.15, bound="cp") == (193, 398, 528)
    assert n_for_power(0.2, 0.25) == (None, None, None)
    random = np.random.default_rng(0)
    lost = random.binomial(128, 0.1, size=20_000)
    simulated = (hb_ucb(n=128, losses=lost) <= 0.2).mean()
    assert power(128, 0.2, 0.1) == pytest.approx(simulated, abs=0.01)
    assert power(10, 0.2, 0.1) == 0.0


def test_floors():
    assert floor(0.001, bound="cp") == 2995
    assert [floor(alpha, bound="cp") for alpha in (0.05, 0.1, 0.2, 0.3)] == [59, 29, 14, 9]
    assert [floor(alpha, bound="hoeffding") for alpha in (0.05, 0.1, 0.2, 0.3)] == [
        600,
        150,
        38,
        17,
    ]
    assert floor(0.2, bound="hb_kl") == 14, "the KL form saves the factor e"


def test_zones():
    frame = zones(
        {"set": list("abcde"), "n": [200, 60, 30, 300, 10], "risk": [0.1, 0.1, 7 / 30, 0.3, 0.0]},
        0.2,
    )
    assert frame["zone"].tolist() == [
        "certified",
        "data_limited",
        "data_limited",
        "risk_limited",
        "data_limited",
    ]
    assert frame["n_more"].fillna(-1).tolist() == [0, 24, -1, -1, 8]
    assert 1 - stats.beta.ppf(0.95, 24, 7) == pytest.approx(0.115, abs=5e-4), (
        "7 of 30 settle nothing"
    )
    curve = zones({"n": 1, "risk": np.linspace(0, 0.19, 20)}, 0.2)
    assert curve["risk"].iloc[0] == 0
    assert curve["stable"].iloc[0] == floor(0.2) == 18
    assert (curve["closed_form"] >= curve["first"]).all()
    with pytest.raises(ColumnError, match="zones need a column 'risk'"):
        zones({"n": [1], "rsk": [0.1]}, 0.2)


def test_levels_are_checked():
    for call in (lambda: n_required(0, 0), lambda: floor(1.0), lambda: n_required(0.2, 0.1, 2)):
        with pytest.raises(SettingError, match="between 0 and 1"):
            call()
    with pytest.raises(SettingError, match="bound is not 'wrs'; known: hb"):
        n_required(0.2, 0.1, bound="wrs")
    assert n_required(0.2, 0.19999).first is None, "past the scan only the formula is given"
    assert n_required(0.2, 0.19999).closed_form > 10**9
