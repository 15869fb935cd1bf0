"""Conformal risk control: the mean risk over calibration samples, which is all it promises."""

import numpy as np
import pytest
from edfa.certification.examples import people
from edfa.certification.runs import Runs
from worlds import World, as_records

from edfa.certification import AverageCertificate, Records, certify_on_average
from edfa.certification.conformal_risk import _worst_so_far
from edfa.certification.risk_curve import trace
from edfa.errors import MismatchError, SettingError


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_worst_so_far_is_each_persons_running_maximum(seeds):
    for seed in range(5):
        data = people(25, seed=seed, seeds=seeds)
        rounded = Records.from_frame(data.frame().assign(signal=np.round(data.signal, 1)))
        for runs in (Runs.of(data), Runs.of(rounded)):
            curve = trace(runs)
            losses, _ = curve.people_at(np.arange(len(curve.tau)))
            assert np.allclose(_worst_so_far(curve), np.maximum.accumulate(losses, axis=0).sum(axis=1))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("n", [4, 12, 40])
def test_the_mean_risk_is_below_alpha(n, tied):
    world = World((0.02, 0.12, 0.25, 0.15, 0.5), tied=tied)
    losses, defined = world.draw(n, 1500, seed=n)
    risks = []
    for one, legal in zip(losses, defined, strict=True):
        found = certify_on_average(as_records(one, legal), 0.2)
        rule = None if found.tau is None else int((np.arange(1, 5) <= found.tau).sum())
        risks.append(0.0 if rule is None else world.risks[rule])
    error = np.std(risks) / np.sqrt(len(risks))
    assert np.mean(risks) <= 0.2 + 3.1 * error
    assert np.mean(risks) > 0.01


def test_how_few_suffice():
    for alpha, least in ((0.2, 4), (0.1, 9), (0.05, 19)):
        for n in (least - 1, least):
            sure = as_records(np.zeros((n, 3), dtype=int), np.ones(n, dtype=bool))
            found = certify_on_average(sure, alpha)
            assert found.certified == (n >= least)
            assert found.tau == (np.inf if n >= least else None)


def test_words_and_stops():
    found = certify_on_average(people(40, seed=1, advisor="a"), 0.2)
    assert "on average over calibration samples" in str(found)
    assert AverageCertificate.from_json(found.to_json()) == found
    assert found.risk < found.bound <= 0.2
    assert found.stop(people(20, advisor="a")).triggered.any()
    none = certify_on_average(people(2), 0.2)
    assert none.sentence.startswith("No certificate")
    assert "at most" not in none._repr_html_()
    assert none.stop(people(5)).step.tolist() == [-1] * 5, "the strictest rule issues nothing"
    assert none.stop([[0.0, 0.1]]).sentence == ""
    nobody = Records.from_frame(people(5).frame().assign(legal=False))
    assert not certify_on_average(nobody).certified
    with pytest.raises(MismatchError, match="made for advisor 'a', not for 'b'"):
        found.stop(people(3, advisor="b"))
    with pytest.raises(SettingError, match="alpha lies between"):
        certify_on_average(people(3), 1.0)
