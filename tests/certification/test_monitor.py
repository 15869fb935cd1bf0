"""Audits of a deployed certificate."""

import numpy as np
import pytest
from worlds import MOST

from edfa.certification import Monitor, certify
from edfa.certification.simulate import simulate_records
from edfa.errors import MismatchError, SettingError


def first_alarm(risk, draws, audits, seed):
    """The audit of the alarm in each of some draws; inf without one."""
    random = np.random.default_rng(seed)
    alarms = [Monitor(0.2).audit(random.random(audits) < risk).alarm_at for _ in range(draws)]
    return np.array([np.inf if at is None else at for at in alarms])


@pytest.mark.long
def test_false_alarms_are_rarer_than_delta_however_long_one_watches():
    alarms = first_alarm(0.2, 10_000, 1500, seed=0)
    assert 0.005 < np.isfinite(alarms).mean() <= MOST / 10_000


@pytest.mark.parametrize(("risk", "median"), [(0.25, 488), (0.3, 121), (0.4, 34)])
def test_a_broken_certificate_is_noticed(risk, median):
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
    """Exactly: the mean of each factor over a loss of 1 with probability alpha is one, and less
    below alpha.
    """
    for risk, sign in ((0.2, 0.0), (0.1, -1.0), (0.4, 1.0)):
        lost, won = (np.exp(np.array(Monitor(0.2).audit([loss]).log_capital)) for loss in (1, 0))
        mean = risk * lost + (1 - risk) * won - 1
        assert np.allclose(mean, 0) if sign == 0 else np.all(np.sign(mean) == sign)


def test_monitor_words_and_refusals():
    monitor = Monitor.of(certify(simulate_records(300, advisor="a"), 0.2), delta=0.01)
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
        Monitor.of(certify(simulate_records(3)))
