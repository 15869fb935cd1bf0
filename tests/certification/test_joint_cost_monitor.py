"""Past the paper: several candidates at once, the cost, and audits of a deployed certificate."""

import numpy as np
import pytest
from worlds import ALPHA, DELTA, MOST, as_records

from edfa.certification import (
    CostCertificate,
    JointCertificate,
    Monitor,
    Records,
    RecourseCertifier,
    SurvivalScore,
    certify,
    certify_cost,
    certify_jointly,
    critical_losses,
    floor,
    hb_p_value,
)
from edfa.certification.examples import people
from edfa.certification.risk_curve import trace
from edfa.certification.runs import Runs
from edfa.errors import DataError, MismatchError, SettingError

# Several candidates


def sure(n, seed):
    data = people(n, seed=seed)
    return Records.from_frame(data.frame().assign(loss=0.0))


def test_a_walk_that_never_fails_hands_its_level_on():
    found = certify_jointly({"sure": sure(200, 1), "next": people(200, seed=2), "last": people(200, seed=3)})
    deltas = [c.delta for c in found.certificates.values()]
    assert deltas == pytest.approx([0.05 / 3, 0.1 / 3, 0.05 / 3])
    assert found.best == "sure", "it stops at the first plan and costs least"
    assert found.certificates["next"] == certify(people(200, seed=2), delta=deltas[1])
    assert JointCertificate.from_json(found.to_json()) == found
    assert "sure, next, last all hold together" in found.sentence
    none = certify_jointly({"few": people(5), "nobody": people(6)})
    assert none.best is None
    assert str(none) == "No certificate for any of: few, nobody."
    with pytest.raises(SettingError, match="at least one candidate"):
        certify_jointly({})


def test_all_candidates_hold_together():
    """Four candidates whose second rule is just bad: any false certificate among them counts."""
    random, draws, n, most = np.random.default_rng(0), 10_000, 100, {}
    false = np.zeros(draws, dtype=bool)
    for candidate in range(4):
        lost = random.binomial(n, 0.203, size=draws)
        most[candidate] = critical_losses(n, ALPHA, DELTA / 4, "cp")
        false |= lost <= most[candidate]
    assert 0.01 < false.mean() <= MOST / draws
    losses = np.zeros((n, 2), dtype=int)
    losses[: most[0], 1] = 1
    everyone = np.ones(n, dtype=bool)
    found = certify_jointly({name: as_records(losses, everyone) for name in "abcd"}, ALPHA, bound="cp")
    assert all(certificate.complete for certificate in found.certificates.values())
    losses[most[0], 1] = 1
    found = certify_jointly({name: as_records(losses, everyone) for name in "abcd"}, ALPHA, bound="cp")
    assert not any(certificate.complete for certificate in found.certificates.values())


def test_what_five_candidates_cost():
    assert floor(0.2, 0.01) == 26
    assert critical_losses([200, 500], 0.2, 0.01).tolist() == [25, 76]


# The cost


def test_the_cost_certificate_is_the_walk_from_the_other_end():
    data = people(400, seed=5)
    risk = certify(data, 0.2)
    curve = trace(Runs.of(data))
    levels = np.append(-np.inf, np.unique(curve.lows))
    for limit in (0.25, 0.35, 0.5, 0.9):
        found = certify_cost(data, risk, limit, budget=5.0)
        passed = [hb_p_value(c / 5, 400, limit, form="kl") <= 0.05 for c in curve.cost(levels)]
        loosest = len(passed) - next((i for i, ok in enumerate(passed[::-1]) if not ok), len(passed))
        assert found.lowest == (None if loosest == len(levels) else levels[loosest])
        assert found.holds == (found.lowest is not None and risk.tau >= found.lowest)
        assert found.share == pytest.approx(risk.cost / 5)
        assert CostCertificate.from_json(found.to_json()) == found
        assert found.holds == ("at most" in found.sentence)
    assert certify_cost(data, risk, 0.5, budget=5.0).holds
    assert not certify_cost(data, risk, 0.2, budget=5.0).holds


@pytest.mark.parametrize("form", ["quadratic", "kl"])
def test_false_cost_certificates_are_rarer_than_delta(form):
    """A rule costs 0 or the whole budget: those who pay stop at a signal of 1, the others at 2 for nothing.

    The mean cost is just above the limit at a threshold of 1, and nothing at 2. All 10,000 draws go through records.
    """
    n, limit = 100, 0.3
    paying, times = np.unique(np.random.default_rng(1).binomial(n, 0.303, size=10_000), return_counts=True)
    person, step, false = np.repeat(np.arange(n), 2), np.tile([0, 1], n), []
    for payers in paying:
        signal = np.where(step == 1, 0.5, np.where(person < payers, 2.0, 1.0))
        data = Records(person, 0 * step, step, 10.0 * step, signal, 0.0 * step, np.ones(2 * n, dtype=bool))
        found = certify_cost(data, certify(data, 0.2), limit, budget=10.0, form=form)
        assert found.lowest in (1.0, 2.0)
        assert (found.lowest == 1.0) == (hb_p_value(payers / n, n, limit, form=form) <= DELTA)
        false.append(found.lowest == 1.0)
    assert 10 < times @ np.array(false) <= MOST


def test_cost_refusals():
    data = people(50, advisor="a")
    risk = certify(data)
    with pytest.raises(DataError, match=r"budget= is the most a run can cost, at least 5 here, not 3"):
        certify_cost(data, risk, 0.5, budget=3)
    with pytest.raises(MismatchError, match="made for advisor 'a'"):
        certify_cost(people(50, advisor="b"), risk, 0.5, budget=5)
    with pytest.raises(SettingError, match="limit lies between"):
        certify_cost(data, risk, 1.5, budget=5)
    nobody = Records.from_frame(data.frame().assign(legal=False), advisor="a")
    with pytest.raises(SettingError, match="nobody has a plan"):
        certify_cost(nobody, risk, 0.5, budget=5)


# Audits


def first_alarm(risk, draws, audits, seed):
    random = np.random.default_rng(seed)
    runs = [Monitor(0.2).audit(random.random(audits) < risk).alarm_at for _ in range(draws)]
    return np.array([np.inf if at is None else at for at in runs])


def test_false_alarms_are_rarer_than_delta_however_long_one_watches():
    alarms = first_alarm(0.2, 10_000, 1500, seed=0)
    assert 0.005 < np.isfinite(alarms).mean() <= MOST / 10_000


@pytest.mark.parametrize(("risk", "median"), [(0.25, 488), (0.3, 121), (0.4, 34)])
def test_a_broken_certificate_is_found(risk, median):
    """No later than the bets of the design note, whose medians these are."""
    assert np.median(first_alarm(risk, 400, 3000, seed=1)) <= median


def test_audits_may_come_in_any_portions():
    losses = (np.random.default_rng(2).random(300) < 0.35).astype(float)
    whole = Monitor(0.2).audit(losses)
    parts = Monitor(0.2)
    for part in np.array_split(losses, 37):
        parts = Monitor.from_json(parts.audit(part).to_json())
    assert parts.alarm_at == whole.alarm_at
    assert parts.audits == 300
    assert parts.log_capital == pytest.approx(whole.log_capital)
    calm = whole.audit(np.zeros(500))
    assert calm.alarm, "an alarm stays"
    assert calm.alarm_at == whole.alarm_at
    assert calm.p_value == whole.p_value


def test_the_capital_is_fair_at_alpha():
    """Exactly: the mean of each factor over a loss of 1 with chance alpha is one, and below alpha less."""
    for risk, sign in ((0.2, 0.0), (0.1, -1.0), (0.4, 1.0)):
        lost, kept = (np.exp(np.array(Monitor(0.2).audit([loss]).log_capital)) for loss in (1, 0))
        mean = risk * lost + (1 - risk) * kept - 1
        assert np.allclose(mean, 0) if sign == 0 else np.all(np.sign(mean) == sign)


def test_monitor_words_and_refusals():
    made = certify(people(300, advisor="a"), 0.2)
    monitor = Monitor.of(made, delta=0.01)
    assert (monitor.alpha, monitor.delta, monitor.advisor) == (0.2, 0.01, "a")
    assert monitor.audit([]) == monitor
    assert "No alarm in 3 audits, 1 of them lost" in str(monitor.audit([0, 1, 0], advisor="a"))
    with pytest.raises(MismatchError, match="watches advisor 'a', not 'b'"):
        monitor.audit([0], advisor="b")
    with pytest.raises(SettingError, match="a loss lies between 0 and 1, which 2"):
        monitor.audit([0, 2])
    with pytest.raises(SettingError, match="list of losses"):
        monitor.audit(np.zeros((2, 2)))
    with pytest.raises(SettingError, match="promises nothing"):
        Monitor.of(certify(people(3)))


# Signals


def test_a_better_signal_saves_more_and_stays_valid():
    """A score that knows the margin of the plan stops earlier than the uncertainty alone, and is certified alike."""
    random = np.random.default_rng(3)
    n, steps = 3000, 6
    score = np.cumsum(random.normal(size=(n, steps)) * 0.6 ** np.arange(steps), axis=1)
    margin = random.exponential(0.8, size=(n, steps))
    side = np.sign(score)
    lost = (side != side[:, -1:]) | (side * (score[:, -1:] - score) > margin)
    person, step = (axis.ravel() for axis in np.indices(score.shape))
    facts = np.column_stack([np.abs(score).ravel(), margin.ravel(), step])
    learn, rest = person < 1000, person >= 1000
    fitted = SurvivalScore().fit(facts[learn], lost.ravel()[learn])
    saved = {}
    for name, signal in (("uncertainty", -np.abs(score).ravel()), ("survival", fitted(facts))):
        columns = [person, 0 * person, step, 1.0 * step, signal, lost.ravel().astype(float), np.ones(n * steps, bool)]
        data = Records(*(column[rest] for column in columns), signal_name=name)
        certifier = RecourseCertifier(0.2, signal=name).calibrate(data.take(data.person < 2000))
        saved[name] = certifier.certificate_.saved
        assert certifier.evaluate(data.take(data.person >= 2000)).risk < 0.23
    assert saved["survival"] > saved["uncertainty"] + 0.02
    with pytest.raises(DataError, match="plans that lasted and plans that failed"):
        SurvivalScore().fit(facts, np.zeros(len(facts)))
    with pytest.raises(DataError, match="learnt nothing yet"):
        SurvivalScore()(facts)
