"""Cost certificates."""

import numpy as np
import pytest
from worlds import DELTA, MOST

from edfa.certification import CostCertificate, Records, certify, certify_cost
from edfa.certification.bounds import p_value
from edfa.certification.records import Runs
from edfa.certification.risk_curve import trace
from edfa.certification.simulate import simulate_records
from edfa.errors import DataError, MismatchError, SettingError


def test_the_cost_is_tested_from_the_loosest_threshold_down():
    data = simulate_records(400, seed=5)
    risk = certify(data, 0.2)
    curve = trace(Runs.from_records(data))
    levels = np.append(-np.inf, np.unique(curve.trigger_signal))
    for limit in (0.25, 0.35, 0.5, 0.9):
        certificate = certify_cost(data, risk, limit, budget=5.0)
        passed = [p_value("hb_kl", limit, 400, risk=c / 5) <= 0.05 for c in curve.cost(levels)]
        loosest = len(passed) - next(
            (i for i, ok in enumerate(passed[::-1]) if not ok), len(passed)
        )
        assert certificate.lowest == (None if loosest == len(levels) else levels[loosest])
        assert certificate.holds == (
            certificate.lowest is not None and risk.tau >= certificate.lowest
        )
        assert certificate.share == pytest.approx(risk.cost / 5)
        assert CostCertificate.from_json(certificate.to_json()) == certificate
        assert certificate.holds == ("at most" in certificate.sentence)
    assert certify_cost(data, risk, 0.5, budget=5.0).holds
    assert not certify_cost(data, risk, 0.2, budget=5.0).holds


def test_false_cost_certificates_are_rarer_than_delta():
    """A rule costs 0 or the whole budget: those who pay stop at a signal of 1, the others at 2 for
    nothing.

    The mean cost is just above the limit at a threshold of 1, and nothing at 2. All 10,000 draws go
    through records.
    """
    n, limit = 100, 0.3
    paying, times = np.unique(
        np.random.default_rng(1).binomial(n, 0.303, size=10_000), return_counts=True
    )
    person, step, false = np.repeat(np.arange(n), 2), np.tile([0, 1], n), []
    for payers in paying:
        signal = np.where(step == 1, 0.5, np.where(person < payers, 2.0, 1.0))
        data = Records(
            person, 0 * step, step, 10.0 * step, signal, 0.0 * step, np.ones(2 * n, dtype=bool)
        )
        certificate = certify_cost(data, certify(data, 0.2), limit, budget=10.0)
        assert certificate.lowest in (1.0, 2.0)
        assert (certificate.lowest == 1.0) == (p_value("hb_kl", limit, n, risk=payers / n) <= DELTA)
        false.append(certificate.lowest == 1.0)
    assert 10 < times @ np.array(false) <= MOST


def test_cost_refusals():
    data = simulate_records(50, advisor="a")
    risk = certify(data)
    with pytest.raises(
        DataError, match=r"budget= is the most a run can cost, at least 5 here, not 3"
    ):
        certify_cost(data, risk, 0.5, budget=3)
    with pytest.raises(MismatchError, match="made for advisor 'a'"):
        certify_cost(simulate_records(50, advisor="b"), risk, 0.5, budget=5)
    with pytest.raises(SettingError, match="limit lies between"):
        certify_cost(data, risk, 1.5, budget=5)
    nobody = Records.from_frame(data.frame().assign(legal=False), advisor="a")
    with pytest.raises(SettingError, match="nobody has a plan"):
        certify_cost(nobody, risk, 0.5, budget=5)
