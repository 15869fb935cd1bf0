"""Does the promise hold when the model is learnt again: advisors from samples A, next models from
many samples B.

Certificates hold for the judges by construction: people are drawn, and so are judges. Whether they
hold for the next model depends on whether judges differ from the advisor's model as the next model
will. Judges are learnt again from the advisor's own training people, around whose peculiarities its
plans are made; those learnt from half as many people are too kind for that, and those learnt from a
seventh are not.
"""

import numpy as np
import pytest
from retraining import SHARES, advise
from scipy import stats

from edfa.certification import RecourseCertifier

ALPHA, DELTA, N, ANCHOR, CEILING = 0.2, 0.05, 300, 0.05, 0.5
HALF, SMALL = SHARES
TARGETS = ("early", "act")
FIRST = 1000  # the shares were settled in worlds 0 to 43; these are others


def calibrate(advised, share, times, seed):
    """The thresholds that ``times`` calibrations by judges of this share certify; NaN: none."""
    certifier = RecourseCertifier(ALPHA, DELTA, target="early", anchor=ANCHOR, ceiling=CEILING)
    random = np.random.default_rng(seed)
    taus = []
    for _ in range(times):
        people = random.choice(len(advised.records.people), N)
        result = certifier.search(advised.calibration(share, people, random))
        taus.append(result.tau if result.passed else np.nan)
    return np.array(taus)


def false_share(advised, failed, taus):
    """The share of calibrations whose threshold has a risk above alpha, of the early ones or of all
    who act.
    """
    kept = taus[~np.isnan(taus)]
    worst = np.max([advised.risk(failed, target, kept) for target in TARGETS], axis=0)
    return (worst > ALPHA).sum() / len(taus)


def count(worlds, times, **settings):
    """For each share of the judges: false against them, false against the next models, and
    certified, as shares; and how much larger the risk is before the next models than before the
    judges, for the early ones and all who act.
    """
    rows = {share: [] for share in SHARES}
    for seed in range(FIRST, FIRST + worlds):
        advised = advise(seed, **settings)
        levels = np.array([0.05, 0.1, 0.2, 0.3])
        for share, row in rows.items():
            taus, judged = calibrate(advised, share, times, seed), advised.judged[share]
            counts = [
                false_share(advised, failed, taus) for failed in (judged, advised.next_models)
            ]
            optimism = [
                np.mean(
                    advised.risk(advised.next_models, t, levels) - advised.risk(judged, t, levels)
                )
                for t in TARGETS
            ]
            row.append([*counts, np.mean(~np.isnan(taus)), *optimism])
    return {share: np.array(row) for share, row in rows.items()}


def check(counted, times):
    small, half = counted[SMALL], counted[HALF]
    most = stats.binom.ppf(0.999, times * len(small), DELTA) / (times * len(small))
    for row in (small, half):
        assert row[:, 0].mean() <= most, "for the judges themselves every certificate holds"
    assert small[:, 1].mean() <= most, "and judges of few people speak for the next model"
    assert small[:, 2].mean() > 0.1, "it is no promise that is never made"
    assert (half - small)[:, 3:].mean() > 0.01, "judges of more people are kinder"


@pytest.mark.long
def test_the_promise_holds_for_models_that_were_learnt_again():
    check(count(worlds=4, times=50, next_models=8), times=50)


@pytest.mark.long
@pytest.mark.parametrize("size", [1200, 3000])
def test_the_promise_holds_for_models_that_were_learnt_again_in_many_worlds(size):
    counted = count(worlds=20, times=100, size=size, next_models=15)
    check(counted, times=100)
    # With more training people the difference fades: at 3,000 it is 0.001 and 0.010, with errors of
    # 0.005.
    assert size > 1200 or counted[HALF][:, 3:].mean() > 0.01, (
        "judges of half of the people are too kind"
    )
