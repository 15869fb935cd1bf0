"""Joint certificates of several candidates."""

import numpy as np
import pytest
from worlds import ALPHA, DELTA, MOST, as_records

from edfa.certification import (
    JointCertificate,
    Records,
    RecourseCertifier,
    certify,
    certify_jointly,
    critical_losses,
    floor,
)
from edfa.certification.simulate import simulate_records
from edfa.errors import SettingError


def never_lost(n, seed):
    data = simulate_records(n, seed=seed)
    return Records.from_frame(data.frame().assign(loss=0.0))


def test_a_candidate_that_never_fails_hands_its_level_on():
    joint = certify_jointly(
        {
            "sure": never_lost(200, 1),
            "next": simulate_records(200, seed=2),
            "last": simulate_records(200, seed=3),
        }
    )
    deltas = [c.delta for c in joint.certificates.values()]
    assert deltas == pytest.approx([0.05 / 3, 0.1 / 3, 0.05 / 3])
    assert joint.best == "sure", "it stops at the first plan and costs least"
    assert joint.certificates["next"] == certify(simulate_records(200, seed=2), delta=deltas[1])
    assert JointCertificate.from_json(joint.to_json()) == joint
    assert "sure, next, last all hold together" in joint.sentence
    none = certify_jointly({"few": simulate_records(5), "nobody": simulate_records(6)})
    assert none.best is None
    assert str(none) == "No certificate for any of: few, nobody."
    with pytest.raises(SettingError, match="at least one candidate"):
        certify_jointly({})


def test_all_candidates_hold_together():
    """Four candidates whose second rule is just bad: any false certificate among them counts."""
    draws, n = 10_000, 100
    allowed = critical_losses(n, ALPHA, DELTA / 4, "cp")
    false = (np.random.default_rng(0).binomial(n, 0.203, size=(4, draws)) <= allowed).any(axis=0)
    assert 0.01 < false.mean() <= MOST / draws
    losses = np.zeros((n, 2), dtype=int)
    losses[:allowed, 1] = 1
    everyone = np.ones(n, dtype=bool)
    joint = certify_jointly(
        {name: as_records(losses, everyone) for name in "abcd"},
        RecourseCertifier(ALPHA, bound="cp"),
    )
    assert all(certificate.complete for certificate in joint.certificates.values())
    losses[allowed, 1] = 1
    joint = certify_jointly(
        {name: as_records(losses, everyone) for name in "abcd"},
        RecourseCertifier(ALPHA, bound="cp"),
    )
    assert not any(certificate.complete for certificate in joint.certificates.values())


def test_what_five_candidates_cost():
    assert floor(0.2, 0.01) == 26
    assert critical_losses([200, 500], 0.2, 0.01).tolist() == [25, 76]
