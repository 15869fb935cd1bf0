"""Bounds against 50-digit arithmetic, against each other, and against what a careless version
does.
"""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edfa.certification import (
    cp_p_value,
    cp_ucb,
    hb_p_value,
    hb_ucb,
    wsr_p_value,
    wsr_ucb,
)
from edfa.certification.bounds import p_value, upper_bound
from edfa.errors import SettingError

with (Path(__file__).parent / "bounds_50_digits.csv").open(encoding="utf-8") as file:
    TABLE = [
        row | {name: int(row[name]) for name in ("n", "m", "losses")}
        for row in csv.DictReader(file)
    ]
BOUNDS = ("hb", "hb_kl", "cp")


def ours(bound, what, level, **seen):
    """One of our functions by its name in the table; cp takes no number of runs."""
    return {"p": p_value, "ucb": upper_bound}[what](bound, level, **seen)


def off(row):
    """How far we are from the table, relative to it."""
    seen = {"n": row["n"], "losses": row["losses"], "m": row["m"]}
    value, true = (
        float(ours(row["bound"], row["what"], float(row["at"]), **seen)),
        float(row["value"]),
    )
    return abs(value - true) / max(true, 1e-300)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("what", ["p", "ucb"])
def test_fifty_digits(bound, what):
    rows = [row for row in TABLE if (row["bound"], row["what"]) == (bound, what)]
    assert len(rows) > 50
    assert max(map(off, rows)) < 2e-12


def test_the_table_reaches_far_and_both_terms_bind():
    p = [float(row["value"]) for row in TABLE if row["what"] == "p"]
    assert min(p) < 1e-280
    ours_hb = {
        (r["n"], r["m"], r["losses"], r["at"]): float(r["value"])
        for r in TABLE
        if r["bound"] == "hb"
    }
    kl = {
        (r["n"], r["m"], r["losses"], r["at"]): float(r["value"])
        for r in TABLE
        if r["bound"] == "hb_kl"
    }
    assert any(kl[key] < 0.9 * value for key, value in ours_hb.items())


@given(st.integers(1, 400), st.integers(1, 9), st.data())
def test_a_mean_and_the_exact_count_are_the_same(n, m, data):
    lost = data.draw(st.integers(0, n * m))
    mu = data.draw(st.floats(0.01, 0.99))
    for bound in ("hb", "hb_kl"):
        exact = p_value(bound, mu, n, losses=lost, m=m)
        assert math.isclose(p_value(bound, mu, n, risk=lost / (n * m)), exact, rel_tol=1e-9)
        assert math.isclose(
            upper_bound(bound, 0.05, n, risk=lost / (n * m)),
            upper_bound(bound, 0.05, n, losses=lost, m=m),
            rel_tol=1e-9,
        )


def test_no_float_ceil_for_any_count_up_to_a_thousand():
    n = np.repeat(np.arange(1, 1001), np.arange(2, 1002))
    k = np.concatenate([np.arange(size + 1) for size in range(1, 1001)])
    naive = np.ceil(k / n * n)
    assert (naive != k).mean() > 0.03, "the trap is there"
    assert np.array_equal(cp_ucb(k / n, n), cp_ucb(n=n, losses=k))
    assert np.isclose(hb_ucb(0.07, 100), 0.1437298, atol=1e-7)
    assert not np.isclose(hb_ucb(0.07, 100), hb_ucb(0.08, 100), atol=0.01), (
        "one loss more would show"
    )


@pytest.mark.parametrize("n", [7, 100, 5000])
def test_a_risk_within_a_billionth_is_the_whole_count(n):
    """n times the risk may be off by 1e-9 n; what is farther above a count belongs to the next
    one.
    """
    lost, mu = n // 3, 0.45
    for off in (-9e-10, 9e-10):
        assert cp_ucb(lost / n + off, n) == cp_ucb(n=n, losses=lost)
        assert hb_p_value(lost / n + off, n, mu) == pytest.approx(
            hb_p_value(n=n, losses=lost, mu=mu), rel=1e-5
        )
    above = lost / n + 2e-9
    exact = min(math.e * stats.binom.cdf(lost + 1, n, mu), math.exp(-2 * n * (mu - above) ** 2))
    assert hb_p_value(above, n, mu) == pytest.approx(exact, rel=1e-9)
    assert hb_p_value(above, n, mu) > hb_p_value(n=n, losses=lost, mu=mu) * (1 + 1e-3) or n == 7


@given(st.integers(1, 500), st.floats(0.001, 0.999), st.floats(1e-6, 0.9), st.data())
def test_the_p_value_and_the_bound_say_the_same(n, mu, delta, data):
    lost = data.draw(st.integers(0, n))
    for bound in BOUNDS:
        p, upper = (
            ours(bound, "p", mu, n=n, losses=lost),
            ours(bound, "ucb", delta, n=n, losses=lost),
        )
        if not math.isclose(p, delta, rel_tol=1e-9) and not math.isclose(upper, mu, rel_tol=1e-9):
            assert (p <= delta) == (upper <= mu)


@given(st.integers(1, 300), st.floats(0.01, 0.99))
def test_order_among_the_bounds(n, mu):
    lost = np.arange(n + 1)
    hb, kl = hb_p_value(n=n, mu=mu, losses=lost), p_value("hb_kl", mu, n, losses=lost)
    assert np.all(kl <= hb * (1 + 1e-12)), "the KL form is never looser"
    assert np.all(hb <= p_value("hoeffding", mu, n, losses=lost))
    assert np.all(np.diff(hb) >= -1e-15), "more losses never help"
    assert np.all(np.diff(hb_ucb(n=n, losses=lost)) >= -1e-12)
    assert np.allclose(
        cp_p_value(n=n, mu=mu, losses=lost), stats.binom.cdf(lost, n, mu), rtol=1e-9, atol=1e-250
    )


def test_the_ends():
    assert hb_ucb(1.0, 7) == cp_ucb(1.0, 7) == upper_bound("hoeffding", 0.05, 7, risk=1.0) == 1.0
    assert hb_p_value(0.0, 5, 1.0) == 0.0
    assert hb_p_value(0.3, 5, 0.3) == hb_p_value(0.4, 5, 0.3) == 1.0
    assert p_value("hb_kl", 0.2, 30, risk=0.0) == pytest.approx(0.8**30), (
        "0 log 0 is 0, and the factor e is saved"
    )
    assert cp_p_value(0.0, 5, 0.0) == 1.0


def test_arrays_of_everything():
    table = hb_ucb(np.array([0, 0.1])[:, None], [50, 100], 0.05)
    assert table.shape == (2, 2)
    assert table[1, 1] == hb_ucb(0.1, 100, 0.05)
    assert hb_p_value([0.1, 0.2], 100, [0.2, 0.3]).shape == (2,)


def test_a_careless_ceil_or_factor_is_caught():
    """Each of these has been shipped by somebody; the table must tell them from the truth."""

    def factor_missing(n, lost, m, mu):
        return cp_p_value(n=n, mu=mu, losses=-(-lost // m))

    def floor_for_ceil(n, lost, m, mu):
        return min(
            math.e * stats.binom.cdf(lost // m, n, mu),
            math.exp(-2 * n * max(mu - lost / n / m, 0) ** 2),
        )

    def hoeffding_at_the_mean(n, lost, m, mu):
        return min(math.e * stats.binom.cdf(-(-lost // m), n, mu), 1.0)

    rows = [row for row in TABLE if (row["bound"], row["what"]) == ("hb", "p")]
    for mutant in (factor_missing, floor_for_ceil, hoeffding_at_the_mean):
        worst = max(
            abs(
                mutant(r["n"], r["losses"], r["m"], float(r["at"])) / max(float(r["value"]), 1e-300)
                - 1
            )
            for r in rows
        )
        assert worst > 0.01, mutant.__name__


def test_betting_agrees_with_a_loop():
    losses = np.random.default_rng(0).choice([0, 0.3, 1], size=50, p=[0.8, 0.1, 0.1])
    capital, most, total, spread, var = 1.0, 1.0, 0.5, 0.25, 0.25
    for i, loss in enumerate(losses, start=1):
        capital *= 1 - min(1.0, np.sqrt(2 * np.log(20) / (50 * var))) * (loss - 0.3)
        most = max(most, capital)
        total += loss
        spread += (loss - total / (i + 1)) ** 2
        var = spread / (i + 1)
    assert wsr_p_value(losses, 0.3) == pytest.approx(1 / most)
    assert (
        wsr_p_value(losses, wsr_ucb(losses) + 1e-9)
        <= 0.05
        < wsr_p_value(losses, wsr_ucb(losses) - 1e-9)
    )


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: hb_p_value(1.2, 10, 0.2), "risk lies between 0 and 1, which 1.2 does not"),
        (lambda: hb_p_value(float("nan"), 10, 0.2), "risk lies between"),
        (lambda: hb_p_value("x", 10, 0.2), "risk is a number between 0 and 1, not 'x'"),
        (lambda: hb_p_value(0.1, 0, 0.2), "n is a whole number of people, at least 1, not 0"),
        (lambda: hb_p_value(0.1, 10.5, 0.2), "n is a whole number"),
        (lambda: hb_p_value(0.1, None, 0.2), "n is a whole number"),
        (lambda: hb_ucb(0.1, 10, 0), "delta lies between 0 and 1, the ends left out"),
        (lambda: hb_ucb(0.1, 10, 1.0), "the ends left out"),
        (lambda: hb_ucb(0.1, 10, losses=1), "either risk= or losses="),
        (lambda: hb_ucb(n=10), "either risk= or losses="),
        (lambda: hb_ucb(n=10, losses=11), "between 0 and n \\* m, which 11 is not"),
        (lambda: cp_ucb(n=10, losses=2.5), "whole number of lost runs"),
        (lambda: upper_bound("hb", 0.05, 10, losses=2, m=0), "m is a whole number of runs"),
    ],
)
def test_what_no_sample_can_give_is_refused(call, match):
    with pytest.raises(SettingError, match=match):
        call()
