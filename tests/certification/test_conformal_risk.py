"""Conformal risk control: the expected risk over calibration samples, which is all it promises."""

import numpy as np
import pytest
from worlds import World, as_records, records_of_draws

from edfa.certification import ConformalRiskCertificate, Records, certify_expected_risk
from edfa.certification.conformal_risk import _sum_of_running_maxima
from edfa.certification.records import Runs
from edfa.certification.risk_curve import trace
from edfa.certification.simulate import simulate_records
from edfa.errors import MismatchError, SettingError


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_bound_adds_up_each_persons_running_maximum(seeds):
    for seed in range(5):
        data = simulate_records(25, seed=seed, seeds=seeds)
        rounded = Records.from_frame(data.frame().assign(signal=np.round(data.signal, 1)))
        for records in (data, rounded):
            curve = trace(Runs.from_records(records))
            losses, _ = curve.people_at(np.arange(len(curve.tau)))
            assert np.allclose(
                _sum_of_running_maxima(curve), np.maximum.accumulate(losses, axis=0).sum(axis=1)
            )


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("n", [4, 12, 40])
def test_the_mean_risk_is_below_alpha(n, tied):
    world, times = World((0.02, 0.12, 0.25, 0.15, 0.5), tied=tied), 1500
    losses, defined = world.draw(n, times, seed=n)
    kinds = np.sort(
        losses @ 2 ** np.arange(5), axis=1
    )  # draws that differ only in who is who are one
    _, first, counts = np.unique(kinds, axis=0, return_index=True, return_counts=True)
    taus = [
        certify_expected_risk(records, 0.2).tau
        for records in records_of_draws(losses[first], defined)
    ]
    risks = [
        0.0 if tau is None else world.risks[int((np.arange(1, 5) <= tau).sum())] for tau in taus
    ]
    mean, error = (
        np.average(risks, weights=counts),
        np.std(np.repeat(risks, counts)) / np.sqrt(times),
    )
    assert mean <= 0.2 + 3.1 * error
    assert mean > 0.01


def test_who_is_who_changes_nothing():
    data = simulate_records(40, seed=5, seeds=2)
    renamed = Records.from_frame(
        data.frame().assign(person=np.array([f"p{997 * i % 1009}" for i in data.person]))
    )
    mixed = renamed.take(np.random.default_rng(0).permutation(len(renamed)))
    assert certify_expected_risk(mixed) == certify_expected_risk(data)


def test_how_few_suffice():
    for alpha, least in ((0.2, 4), (0.1, 9), (0.05, 19)):
        for n in (least - 1, least):
            sure = as_records(np.zeros((n, 3), dtype=int), np.ones(n, dtype=bool))
            certificate = certify_expected_risk(sure, alpha)
            assert certificate.certified == (n >= least)
            assert certificate.tau == (np.inf if n >= least else None)


def test_words_and_stops():
    certificate = certify_expected_risk(simulate_records(40, seed=1, advisor="a"), 0.2)
    assert "on average over calibration samples" in str(certificate)
    assert ConformalRiskCertificate.from_json(certificate.to_json()) == certificate
    assert certificate.risk < certificate.bound <= 0.2
    assert certificate.stop(simulate_records(20, advisor="a")).triggered.any()
    none = certify_expected_risk(simulate_records(2), 0.2)
    assert none.sentence.startswith("No certificate")
    assert "at most" not in none._repr_html_()
    assert none.stop(simulate_records(5)).step.tolist() == [-1] * 5, (
        "the strictest rule issues nothing"
    )
    assert none.stop([[0.0, 0.1]]).sentence == ""
    nobody = Records.from_frame(simulate_records(5).frame().assign(legal=False))
    assert not certify_expected_risk(nobody).certified
    with pytest.raises(MismatchError, match="made for advisor 'a', not for 'b'"):
        certificate.stop(simulate_records(3, advisor="b"))
    with pytest.raises(SettingError, match="alpha lies between"):
        certify_expected_risk(simulate_records(3), 1.0)
