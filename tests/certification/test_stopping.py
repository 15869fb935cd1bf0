"""Where a rule stops runs, and what it may read to do so."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import as_lists, three_people

from edfa.certification import (
    Certificate,
    Records,
    RecourseCertifier,
    certify,
    replay,
    watch,
)
from edfa.certification.simulate import simulate_records
from edfa.errors import DataError, MismatchError
from edfa.fingerprint import fingerprint


def test_stopping_is_first_legal_step_below_else_the_last_legal_one():
    certificate = Certificate("certified", 0.2, 0.05, "cp", "all", 9, 9, tau=0.25)
    stops = certificate.stop(three_people())
    assert stops.frame().to_dict("list") == {
        "person": ["a", "b", "c"],
        "seed": [0, 0, 0],
        "step": [1, 1, 0],
        "spent": [2.0, 2.0, 0.0],
        "triggered": [True, True, True],
    }
    assert stops.sentence == certificate.sentence
    for tau, steps in ((np.inf, [0, 0, 0]), (-np.inf, [1, 1, 1])):
        assert replace(certificate, tau=tau).stop(three_people()).step.tolist() == steps
    partly = certificate.stop(
        three_people(
            legal=[True, False, False, False, False, True], signal=[0.4, 0.1, 0.1, 0.1, 0.1, 0.2]
        )
    )
    assert partly.step.tolist() == [0, -1, 1]
    assert partly.spent.tolist() == [2.0, 2.0, 2.0], "who never triggers has paid for everything"
    signals = [[0.4, 0.1, 0.1], [np.nan, 0.2, 0.1], [0.9, 0.9, np.nan], [np.nan] * 3]
    bare = certificate.stop(signals)
    assert bare.step.tolist() == [1, 1, 1, -1]
    assert bare.triggered.tolist() == [True, True, False, False]
    assert certificate.stop([0.9, 0.2]).step.tolist() == [1]
    with pytest.raises(DataError, match="one row a run"):
        certificate.stop(np.zeros((2, 2, 2)))


def test_a_signal_equal_to_the_threshold_triggers():
    """The same <= in calibration and deployment; the paper's thresholds often are observed
    signals.
    """
    certificate = Certificate("certified", 0.2, 0.05, "paper", "all", 9, 9, tau=0.3)
    assert certificate.stop(three_people()).step.tolist() == [1, 0, 0]
    assert certificate.stop([[0.5, 0.3], [0.3, 0.1]]).step.tolist() == [1, 0]
    data = simulate_records(200, seed=6)
    ties = Records.from_frame(data.frame().assign(signal=np.round(data.signal, 1)))
    for settings in ({"bound": "paper"}, {}):
        certifier = RecourseCertifier(0.2, **settings).calibrate(ties)
        stops, certificate = certifier.stop(ties), certifier.certificate_
        losses = (
            ties.frame()
            .set_index(["person", "step"])
            .loss.loc[list(zip(stops.person, stops.step, strict=True))]
        )
        assert losses.mean() == pytest.approx(certificate.risk), (
            "on the same people the rule has the observed risk"
        )
        assert stops.spent.mean() == pytest.approx(certificate.cost)


@pytest.mark.parametrize("settings", [{}, {"bound": "paper"}])
def test_all_thresholds_of_the_interval_do_the_same(settings):
    data = simulate_records(300, seed=7)
    certificate = certify(data, 0.2, **settings)
    low, high = certificate.interval
    assert low <= certificate.tau < high
    expected = certificate.stop(data).step
    for tau in (low, (low + high) / 2, np.nextafter(high, low)):
        assert np.array_equal(replace(certificate, tau=tau).stop(data).step, expected)
    for tau in (np.nextafter(low, -1), high):
        assert not np.array_equal(replace(certificate, tau=tau).stop(data).step, expected)


def test_another_advisor_or_signal_is_refused():
    certificate = certify(simulate_records(300, advisor=fingerprint(model="a", searcher="nearest")))
    other = simulate_records(3, advisor=fingerprint(model="b", searcher="nearest"))
    with pytest.raises(MismatchError, match="made for advisor"):
        certificate.stop(other)
    with pytest.raises(MismatchError, match="made for advisor"):
        certificate.stop([[0.1, 0.2]])
    assert certificate.stop([[0.0, 0.2]], advisor=certificate.advisor).triggered.all()
    certifier = RecourseCertifier().calibrate(simulate_records(300))
    with pytest.raises(MismatchError, match="made for advisor"):
        certifier.evaluate(other)
    with pytest.raises(MismatchError, match="about the signal 'uncertainty', not 'survival'"):
        certifier.stop(Records.from_frame(simulate_records(3).frame(), signal_name="survival"))
    with pytest.raises(MismatchError, match="records carry the signal 'uncertainty'"):
        RecourseCertifier(signal="survival").calibrate(simulate_records(10))


def test_a_stop_reads_no_loss(german):
    records = replay(german.test_plans)
    for poison in (0.0, 1.0):
        poisoned = replace(records, loss=np.full(len(records), poison))
        assert as_lists(german.certifier.stop(poisoned)) == as_lists(
            german.certifier.stop(german.test_plans)
        )


def test_a_stop_reads_nothing_after_it(german):
    """Every value learnt after the stop, every later signal and every later plan is another; the
    stop is the same.
    """
    stops = german.certifier.stop(german.test_plans)
    test, train = german.test, german.table.train
    at = np.where(stops.triggered, stops.step, 10**6)[test.who]
    later = (test.when > at[np.searchsorted(test.who, np.arange(len(test.person)))][:, None]) & (
        test.when >= 0
    )
    assert later.any()
    poisoned = test.values.copy()
    random = np.random.default_rng(0).integers(0, len(train), len(poisoned))
    poisoned[later] = train.X[random][later]
    assert (poisoned != test.values)[later].any()
    again = german.certifier.stop(replace(test, values=poisoned))
    hit = stops.triggered
    for name in ("step", "spent", "triggered"):
        np.testing.assert_array_equal(getattr(again, name)[hit], getattr(stops, name)[hit])

    records = watch(german.test_plans)
    wild = np.where(
        records.step > at, np.random.default_rng(1).random(len(records)), records.signal
    )
    legal = np.where(
        records.step > at, np.random.default_rng(2).random(len(records)) < 0.5, records.legal
    )
    again = german.certifier.stop(replace(records, signal=wild, legal=legal))
    np.testing.assert_array_equal(again.step[hit], stops.step[hit])


def test_a_run_that_is_still_going_stops_where_the_whole_run_does(german):
    """Deployment sees prefixes: once a prefix triggers, no later step changes that; before, it does
    not trigger.
    """
    stops, records = german.certifier.stop(german.test_plans), watch(german.test_plans)
    for length in range(int(records.step.max()) + 1):
        prefix = german.certifier.stop(records.take(records.step <= length))
        by_now = stops.triggered & (stops.step <= length)
        np.testing.assert_array_equal(prefix.triggered, by_now)
        np.testing.assert_array_equal(prefix.step[by_now], stops.step[by_now])
