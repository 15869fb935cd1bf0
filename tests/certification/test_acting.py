"""Promises to those who act: both walks against loops over every threshold, the ceiling, and where
tests begin.
"""

import numpy as np
import pytest
from effort import some
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from worlds import certified, one_run, random_records, three_people, without_plans

from edfa.certification import Records, RecourseCertifier, certify, choose_anchor
from edfa.certification.records import Runs
from edfa.certification.risk_curve import trace
from edfa.certification.simulate import simulate_records
from edfa.errors import DataError, SettingError

ALPHA, DELTA = 0.45, 0.4  # levels at which a handful of people can be certified at all


def acting(records, tau):
    """Whether each acting run is early, and its loss, by loops; each person has one run."""
    rows = []
    for person in range(len(records.people)):
        steps = sorted(np.flatnonzero(records.code == person), key=lambda row: records.step[row])
        low = [row for row in steps if records.legal[row] and records.signal[row] <= tau]
        if low:
            rows.append((low[0] != steps[-1], records.loss[low[0]]))
    return np.array(rows, dtype=float).reshape(-1, 2)


def p_values(records, tau):
    """Of the early ones, and of all who act."""
    early, loss = acting(records, tau).T
    groups = (loss[early == 1], loss)
    return [
        stats.binom.cdf(group.sum(), len(group), ALPHA) if len(group) else 1.0 for group in groups
    ]


def walk(records, anchor, ceiling, include_last_step):
    """All thresholds in rising order until the first that fails: the last that passed, or None."""
    signals = np.unique(records.signal[records.legal])
    passed = None
    for tau in [anchor, *signals[(signals > anchor) & (signals <= ceiling)]]:
        early, act = p_values(records, tau)
        if early > DELTA or (include_last_step and act > DELTA):
            break
        passed = tau
    return passed


@settings(max_examples=some(80), deadline=None)
@given(
    random_records(most=14),
    st.sampled_from([-1.0, 0.0, 0.1, 0.3]),
    st.sampled_from([0.3, 0.5, 2.0]),
    st.booleans(),
)
def test_both_walks_against_loops(records, anchor, ceiling, include_last_step):
    records = one_run(records)
    assume(records.legal.any())
    certifier = RecourseCertifier(
        ALPHA,
        DELTA,
        target="early",
        anchor=anchor,
        ceiling=ceiling,
        include_last_step=include_last_step,
        bound="cp",
    )
    certificate, expected = (
        certifier.certificate_for(records),
        walk(records, anchor, ceiling, include_last_step),
    )
    assert certificate.certified == (expected is not None)
    if expected is None:
        assert certificate.tau == -np.inf
        return
    assert certificate.tau <= ceiling
    np.testing.assert_array_equal(acting(records, certificate.tau), acting(records, expected))
    later = records.signal[records.legal & (records.signal > expected)]
    assert certificate.tau < later.min(
        initial=np.inf
    )  # a signal above an earlier one of its run stops nobody
    early, loss = acting(records, certificate.tau).T
    assert certificate.risk == pytest.approx(loss[early == 1].mean())
    assert not include_last_step or certificate.act_risk == pytest.approx(loss.mean())


@settings(max_examples=some(60), deadline=None)
@given(random_records(most=10), st.floats(-0.5, 1.5))
def test_who_acts(records, tau):
    records = one_run(records)
    assume(records.legal.any())
    curve = trace(Runs.from_records(records), "act")
    rows = acting(records, tau)
    point = curve.index(tau)
    assert curve.eligible[point] == len(rows)
    assert curve.lost[point] == rows[:, 1].sum()
    early = trace(Runs.from_records(records), "early")
    assert early.eligible[early.index(tau)] == rows[:, 0].sum()


def bad_at_the_end(n=400):
    """Early plans nearly always last, those of the last step never do; half of the people act at
    the last step only.
    """
    person, step = (axis.ravel() for axis in np.indices((n, 2)))
    late = person % 2 == 1
    signal = np.where(step == 0, np.where(late, 0.9, 0.1), 0.2)
    loss = np.where(step == 0, person % 40 == 0, late).astype(float)
    return Records(person, 0 * person, step, 1.0 * step, signal, loss, np.ones(2 * n, dtype=bool))


def test_the_last_step_is_promised_too():
    records = bad_at_the_end()
    early_only = certified(records, 0.2, target="early", anchor=0.1, include_last_step=False)
    assert early_only.tau > 0.2, "whoever acts at the last step is let down, and nobody looks"
    assert early_only.act_risk is None
    both = certify(records, 0.2, target="early", anchor=0.1)
    assert 0.1 <= both.tau < 0.2
    assert both.risk == both.act_risk == pytest.approx(0.05)
    assert both.tau == certify(records, 0.2, target="act", anchor=0.1).tau
    failing = certify(records, 0.2, target="early", anchor=0.3)
    assert failing.status == "risk_limited", (
        "the early ones pass, but of all who act half are surely let down"
    )
    assert failing.risk == pytest.approx(0.05)
    assert failing.act_risk == pytest.approx(0.525)
    assert "observed risk of 0.525" in failing.sentence
    assert failing.n_more is None
    few = certify(records.take(records.person < 16), 0.2, target="early", anchor=0.1)
    assert few.status == "data_limited"
    assert few.n_more > 0


def test_where_last_plans_last_both_promises_are_one():
    """The paper's reference: a plan of the last step holds there, so that the second test never
    stands in the way.
    """
    for seed in range(6):
        records = simulate_records(250, seed=seed)
        assert not records.loss[(records.step == 5) & records.legal].any()
        one, two = (
            certified(records, 0.2, target="early", anchor=0.01, include_last_step=also)
            for also in (False, True)
        )
        assert (one.tau, one.interval, one.risk) == (two.tau, two.interval, two.risk)


def test_no_threshold_above_the_ceiling():
    sure = Records.from_frame(simulate_records(300, seed=1).frame().assign(loss=0.0))
    for target, anchor in (("early", 0.1), ("act", 0.1), ("all", None), ("refused", None)):
        certificate = certified(sure, 0.2, target=target, anchor=anchor, ceiling=0.25)
        assert (certificate.tau, certificate.interval[1]) == (0.25, 0.25)
        signals = sure.signal[sure.legal]
        assert certificate.interval[0] == signals[signals <= 0.25].max()
        assert certificate.complete
        assert certify(sure, 0.2, target=target, anchor=anchor).tau == np.inf
    exact = certified(sure, 0.2, ceiling=float(sure.signal[sure.legal].min()))
    assert exact.interval == (exact.ceiling, exact.ceiling), (
        "a signal at the ceiling itself may act"
    )
    data = simulate_records(300, seed=1)
    assert certified(data, 0.2, ceiling=0.9).tau == certify(data, 0.2).tau, (
        "a ceiling out of reach changes nothing"
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target": "act"}, "target='act' needs anchor="),
        ({"target": "early", "anchor": 0.6, "ceiling": 0.5}, "at least anchor="),
        ({"ceiling": float("nan")}, "ceiling= is the largest threshold"),
        ({"ceiling": 0.5, "bound": "paper"}, "without ceiling="),
    ],
)
def test_settings_that_contradict_each_other(options, match):
    with pytest.raises(SettingError, match=match):
        RecourseCertifier(**options)


def test_a_negative_anchor_is_an_anchor():
    assert (
        certified(simulate_records(300), 0.3, target="early", anchor=0.0, ceiling=0.4).anchor == 0.0
    )
    with pytest.raises(SettingError, match="at least anchor="):
        RecourseCertifier(target="early", anchor=0.0, ceiling=-0.5)


# Where the tests begin


def likeliest(records, n, alpha, ceiling, target):
    """By loops: the smallest of the larger expected p-values, from numbers of people rounded to
    hundredths.
    """
    best = (np.inf, None)
    for tau in np.unique(records.signal[records.legal]):
        early, loss = acting(records, tau).T
        groups = [loss] if target == "act" else [loss[early == 1], loss]
        if tau > ceiling or not len(groups[0]):
            continue
        worst = 0.0
        for group in groups:
            m = n * len(group) / len(records.people)
            k = m * (group.sum() + 1) / (len(group) + 2)
            worst = max(worst, stats.beta.cdf(1 - alpha, m - k, k + 1))
        best = min(best, (worst, tau))
    return best[1]


@pytest.mark.parametrize("target", ["early", "act"])
@pytest.mark.parametrize("ceiling", [0.05, 0.3, np.inf])
def test_the_anchor_against_loops(target, ceiling):
    for seed in range(3):
        records = simulate_records(60, seed=seed)
        records = Records.from_frame(records.frame().assign(signal=np.round(records.signal, 3)))
        limit = None if np.isinf(ceiling) else ceiling
        anchor = choose_anchor(records, 120, 0.2, ceiling=limit, target=target)
        assert anchor == likeliest(records, 120, 0.2, ceiling, target)


def test_an_anchor_of_training_people_certifies_others():
    anchor = choose_anchor(simulate_records(400, seed=1), 150, 0.15)
    others = [simulate_records(150, seed=seed) for seed in range(2, 22)]
    certified = [
        certify(records, 0.15, target="early", anchor=anchor).certified for records in others
    ]
    nobody = [certify(records, 0.15, target="early", anchor=0.0).certified for records in others]
    assert sum(certified) == 20
    assert sum(nobody) == 0


def test_nobody_to_choose_by():
    with pytest.raises(DataError, match="none of these people acts before the last step, so that"):
        choose_anchor(three_people(legal=[False, True] * 3), 100, 0.2)
    with pytest.raises(DataError, match=r"with a signal of at most 0\.15"):
        choose_anchor(three_people(), 100, 0.2, ceiling=0.15)
    with pytest.raises(DataError, match="none of these people"):
        choose_anchor(without_plans(), 100, 0.2)
    with pytest.raises(SettingError, match="target is not 'all'"):
        choose_anchor(three_people(), 100, 0.2, target="all")
    with pytest.raises(SettingError, match="n is a number of people"):
        choose_anchor(three_people(), 0, 0.2)
