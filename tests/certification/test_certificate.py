"""Certificates: what they say, their JSON, and certificates of groups."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from worlds import without_plans

from edfa.certification import (
    Certificate,
    GroupCertificates,
    Records,
    RecourseCertifier,
    certify,
    n_required,
)
from edfa.certification.simulate import simulate_records
from edfa.errors import DataError, UnknownNameError, UnreadableError

PROMISE = re.compile(r"at most|wrong with probability|guarantee", re.I)


def test_a_certificate_says_what_it_is():
    data = simulate_records(300, seed=1, advisor="v1")
    certificate = certify(data, 0.2)
    assert (
        certificate.status,
        certificate.zone,
        certificate.method,
        certificate.n,
        certificate.people,
    ) == (
        "certified",
        "certified",
        "cp",
        300,
        300,
    )
    assert certificate.risk < certificate.bound <= 0.2
    assert (
        certificate.curve[-1].tau
        == certificate.curve[-1].tau
        > certificate.tau
        > certificate.curve[0].tau
        == -np.inf
    )
    assert certificate.curve[-1].risk > certificate.risk
    assert 0 < certificate.saved < 1
    assert certificate.left_out == 0
    assert "at most 0.2" in certificate.sentence
    assert "at most 0.05" in certificate.sentence
    assert str(certificate) == certificate.sentence
    at = [p for p in certificate.curve if p.tau == certificate.interval[0]]
    assert (at[0].risk, at[0].cost) == (certificate.risk, certificate.cost)
    after = certificate.curve[certificate.curve.index(at[0]) + 1]
    assert at[0].p <= 0.05 < after.p, "the first failure comes right after"
    assert len(certificate.curve) <= 202


@pytest.mark.parametrize(
    "settings", [{}, {"bound": "paper"}, {"bound": "wsr"}, {"target": "early", "anchor": 0.1}]
)
@pytest.mark.parametrize("n", [5, 300])
def test_json_brings_it_back(settings, n):
    certificate = certify(simulate_records(n, seed=1), 0.2, **settings)
    values = json.loads(certificate.to_json())
    assert values["version"] == 1
    assert values["curve"][0]["tau"] == "-inf"
    assert Certificate.from_json(certificate.to_json()) == certificate


@pytest.mark.parametrize("settings", [{}, {"bound": "paper"}, {"bound": "wsr"}])
def test_every_point_of_the_curve_is_what_its_threshold_does(settings):
    data = simulate_records(150, seed=3)
    certificate = certify(data, 0.2, **settings)
    losses = data.frame().set_index(["person", "step"]).loss
    for point in certificate.curve:
        stops = replace(certificate, tau=point.tau).stop(data)
        lost = losses.loc[list(zip(stops.person, stops.step, strict=True))]
        assert point.risk == pytest.approx(lost.mean())
        assert point.triggered == pytest.approx(stops.triggered.mean())
        assert point.cost == pytest.approx(stops.spent.mean())
        assert point.risk < point.bound
        assert (point.p <= 0.05) == (point.bound <= 0.2)
    assert certificate.left_out == 0
    assert certify(without_plans(7)).left_out == 7


def test_what_cannot_be_read_is_said():
    for text in ("", "{", "[]", "{}"):
        with pytest.raises(UnreadableError, match="not a certificate as to_json writes it"):
            Certificate.from_json(text)
    with pytest.raises(UnreadableError, match="has version 2; this edfa reads version 1"):
        Certificate.from_json(
            certify(simulate_records(9)).to_json().replace('"version": 1', '"version": 2')
        )
    with pytest.raises(UnreadableError, match=r"certificate.status: 'sure' is not one of"):
        Certificate.from_json(
            certify(simulate_records(9)).to_json().replace("data_limited", "sure")
        )


def test_a_certificate_cannot_be_changed():
    with pytest.raises(AttributeError):
        certify(simulate_records(50)).tau = 1.0


def test_all_thresholds_may_pass_and_then_one_stops_at_the_first_plan():
    data = simulate_records(200, seed=1)
    sure = Records.from_frame(data.frame().assign(loss=0.0))
    certificate = certify(sure, 0.2)
    assert certificate.complete
    assert certificate.tau == np.inf
    assert Certificate.from_json(certificate.to_json()).tau == np.inf
    steps = sure.frame()[sure.legal].groupby("person").step.min()
    assert np.array_equal(certificate.stop(sure).step, steps)


def a_third_lost(n):
    data = simulate_records(n)
    return Records.from_frame(data.frame().assign(loss=(data.person % 3 == 0).astype(float)))


UNCERTIFIED = {
    "data_limited": lambda: certify(simulate_records(8), 0.1),
    "risk_limited": lambda: certify(a_third_lost(300), 0.1),
    "undefined": lambda: certify(without_plans()),
}


@pytest.mark.parametrize("status", UNCERTIFIED)
def test_not_certified_means_no_promise_anywhere(status):
    certificate = UNCERTIFIED[status]()
    assert certificate.status == certificate.zone == status
    assert not certificate.certified
    assert certificate.saved is None
    for text in (
        certificate.sentence,
        str(certificate),
        certificate._repr_html_(),
        certificate.stop(simulate_records(3)).sentence,
    ):
        assert not PROMISE.search(text), text
    assert certificate.sentence.startswith("No certificate")
    assert not certificate.stop(simulate_records(3)).triggered.any(), (
        "the strictest rule never stops early"
    )
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_zones_of_certificates():
    few = certify(simulate_records(8), 0.1)
    assert few.n_more == n_required(0.1, 0.0, bound="cp").stable - 8 == 21
    assert any("below 29 people" in warning for warning in few.warnings)
    seven = np.arange(180) // 6 < 7  # 7 losses of 30: above alpha, but nothing is settled
    unsure = certify(
        Records.from_frame(
            simulate_records(30).frame().assign(loss=seven.astype(float), legal=True)
        ),
        0.2,
    )
    assert (unsure.status, unsure.n_more, unsure.risk) == ("data_limited", None, 7 / 30)
    assert "too near" in unsure.sentence
    assert "more data cannot help" in UNCERTIFIED["risk_limited"]().sentence
    assert certify(simulate_records(300), 0.2).n_more is None


def test_one_person_is_data_limited():
    certificate = certify(simulate_records(1), 0.2)
    assert (certificate.status, certificate.n, certificate.n_more) == ("data_limited", 1, 13)


def test_whom_the_sentence_is_about():
    data = simulate_records(400, seed=2)
    early = certify(data, 0.25, target="early", anchor=0.1)
    assert early.sentence.startswith(
        "Of people stopped early by this rule for whom some recourse exists"
    )
    assert "refused where this rule stops" in certify(data, 0.25, target="refused").sentence
    other = Records.from_frame(data.frame(), reference="all_features")
    assert "once all features are acquired" in certify(other, 0.25).sentence


def grouped(n=300, small=10):
    data = simulate_records(n, seed=4)
    frame = data.frame().assign(group=np.where(data.person < n - small, "large", "small"))
    return Records.from_frame(frame)


def test_groups_stand_alone():
    data = grouped()
    certifier = RecourseCertifier(alpha=0.2, groups="separate").calibrate(data)
    certificates = certifier.certificate_
    assert list(certificates) == ["large", "small"]
    assert certificates["large"].certified
    assert not certificates["small"].certified, (
        "below the floor, and never that of all people together"
    )
    assert certificates["small"].sentence.startswith("No certificate in group 'small'")
    assert not PROMISE.search(certificates["small"].sentence)
    alone = certify(data.take(data.group == "large"), 0.2)
    assert (certificates["large"].tau, certificates["large"].n) == (alone.tau, alone.n)
    stops = certifier.stop(data)
    assert not stops["small"].triggered.any()
    assert stops["large"].triggered.any()
    assert certifier.evaluate(data)["large"].risk == certificates["large"].risk
    assert GroupCertificates.from_json(certificates.to_json()) == certificates
    joint = RecourseCertifier(alpha=0.2, groups="joint").calibrate(data).certificate_
    assert joint["large"].delta == 0.025
    with pytest.raises(UnknownNameError, match="no group named 'larg'; did you mean 'large'"):
        certificates["larg"]
    with pytest.raises(DataError, match="need the column 'group'"):
        RecourseCertifier(groups="joint").calibrate(simulate_records(5))


def test_a_hostile_label_shows_as_text():
    data = simulate_records(20)
    evil = "<script>x</script>"
    frame = pd.DataFrame(data.frame()).assign(group=evil)
    certificates = (
        RecourseCertifier(groups="joint").calibrate(Records.from_frame(frame)).certificate_
    )
    assert "<script>" not in certificates._repr_html_()
