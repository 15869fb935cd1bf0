"""Do all certificates hold: 10,000 calibration sets for every mode and every population, through the certifier itself.

Nothing is worked out beside it: each different draw becomes records, and what comes out is held against the exact risk
of the population. That draws which differ only in who is who give the same is tested in test_walk.py; for bets, whose
order counts, they are not taken as one.
"""

from dataclasses import replace

import numpy as np
import pytest
from kinds import draws, is_false, population
from scipy import stats
from worlds import World, as_records, rules_passed

from edfa.certification import RecourseCertifier, certify_jointly, certify_on_average
from edfa.certification import fixed_sequence as module
from edfa.certification.fixed_sequence import RiskTest

DRAWS, ALPHA, DELTA = 10_000, 0.45, 0.2
MOST = stats.binom.ppf(0.999, DRAWS, DELTA)  # more false certificates than this happen by chance in 0.1 % of cases
NAMES = ("monotone", "non-monotone", "half undefined")
BOUNDS = ("hb", "hb_kl", "cp", "hoeffding", "wsr")
MODES = [
    *(("all", undefined, bound) for undefined in ("drop", "alpha", "zero", "one") for bound in (*BOUNDS, "paper")),
    *(
        (target, undefined, bound)
        for target in ("early", "refused")
        for undefined in ("drop", "alpha")
        for bound in BOUNDS
    ),
]


def size(bound, people):
    """How many people: bets get few, so that the same orders come again; more where most are not spoken of."""
    spoken = people.share[people.legal.any(axis=(1, 2)) & people.refused.any(axis=(1, 2))].sum()
    return (6 if spoken > 0.4 else 9) if bound == "wsr" else 20


def walked(certifier, records):
    """What the walk lets through: its first and its last threshold, or None."""
    found = certifier.search(records)
    return (found.tried[0], found.tau) if found is not None and found.passed else None


def share_false(certifier, people, n, seed, ordered):
    """How many of 10,000 draws give a false certificate, and how many give one at all."""
    false = certified = 0
    told = {"target": certifier.target, "undefined": certifier.undefined}
    records = people.records(np.zeros(n, dtype=int))
    for kinds, times in zip(*draws(people, n, DRAWS, seed, ordered=ordered), strict=True):
        found = walked(certifier, people.refill(records, kinds))
        certified += times * (found is not None)
        false += times * (found is not None and is_false(people, certifier.alpha, found, **told))
    return false, certified


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("target", "undefined", "bound"), MODES)
def test_false_certificates_are_rarer_than_delta(target, undefined, bound, name):
    alpha = 0.7 if (name, undefined) == ("half undefined", "one") else ALPHA
    people = population(name, alpha, target=target, undefined=undefined)
    settings = {"anchor": 1.0} if target == "early" else {}
    certifier = RecourseCertifier(alpha, DELTA, bound=bound, target=target, undefined=undefined, **settings)
    false, certified = share_false(certifier, people, size(bound, people), 1, ordered=bound == "wsr")
    assert false <= MOST
    assert certified > 0, "and it is no certificate that never certifies"
    assert bound not in ("cp", "wsr") or false > 0, "nor one that is never put to the test"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bound", ["hb", "hb_kl", "hoeffding", "wsr", "paper"])
def test_with_two_seeds_a_person(bound, name):
    people = population(name, ALPHA, seeds=2)
    certifier = RecourseCertifier(ALPHA, DELTA, bound=bound)
    false, certified = share_false(certifier, people, 5 if bound == "wsr" else 12, 2, ordered=bound == "wsr")
    assert false <= MOST
    assert certified > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "walk", [{"walk": "fixed", "grid": [0.5, 1, 1.5, 2, 3]}, {"walk": "quantile", "grid": 20}], ids=str
)
def test_on_grids(walk, name):
    people = population(name, ALPHA)
    false, certified = share_false(RecourseCertifier(ALPHA, DELTA, bound="cp", **walk), people, 20, 3, ordered=False)
    assert 0 < false <= MOST
    assert certified > false


def outcomes(certificates, people):
    """Whether each certificate is false."""
    return [c.certified and is_false(people, ALPHA, (-np.inf, c.tau)) for c in certificates]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("groups", ["separate", "joint"])
def test_groups(groups, name):
    """Two groups: each holds with chance 1 - delta; jointly made, both together do."""
    people = population(name, ALPHA)
    both, times = _pairs_of_draws(people, n := 6, seed=4)
    false = np.zeros((len(both), 2), dtype=bool)
    for i, kinds in enumerate(both):
        records = people.records(kinds, np.repeat(["a", "b"], n))
        found = RecourseCertifier(ALPHA, DELTA, bound="cp", groups=groups).calibrate(records).certificate_
        assert list(found) == ["a", "b"]
        false[i] = outcomes(found.values(), people)
    each, together = times @ false, times @ false.any(axis=1)
    assert 0 < each.min() <= each.max() <= MOST
    assert groups == "separate" or together <= MOST


@pytest.mark.parametrize("name", NAMES)
def test_candidates(name):
    """A sure candidate hands its share on; two bad ones that follow are false together in less than delta of draws."""
    people = population(name, ALPHA)
    both, times = _pairs_of_draws(people, n := 7, seed=5)
    best = as_records(np.zeros((n, 3), dtype=int), np.ones(n, dtype=bool))
    false, shares = np.zeros(len(both), dtype=bool), set()
    for i, kinds in enumerate(both):
        candidates = {"sure": best, "a": people.records(kinds[:n]), "b": people.records(kinds[n:])}
        found = certify_jointly(candidates, ALPHA, DELTA, bound="cp").certificates
        shares.add(round(found["a"].delta, 9))
        assert found["b"].delta == pytest.approx(DELTA / 3 + found["a"].delta * found["a"].complete)
        false[i] = any(outcomes([found["a"], found["b"]], people))
    assert shares == {round(2 * DELTA / 3, 9)}
    assert 0 < times @ false <= MOST


def _pairs_of_draws(people, n, seed):
    """10,000 draws of two parts of n people each."""
    random = np.random.default_rng(seed)
    counts = random.multinomial(n, people.share, (DRAWS, 2)).reshape(DRAWS, -1)
    counts, times = np.unique(counts, axis=0, return_counts=True)
    kinds = np.tile(np.arange(len(people.share)), 2)
    return np.array([np.repeat(kinds, row) for row in counts]), times


@pytest.mark.parametrize("name", NAMES)
def test_looking_after_every_person(name):
    """With a horizon any number of looks is as good as one."""
    people, n, false = population(name, ALPHA), 6, 0
    certifier = RecourseCertifier(ALPHA, DELTA, horizon=n)
    for kinds, times in zip(*draws(people, n, DRAWS, 6, ordered=True), strict=True):
        looks = (walked(certifier, people.records(kinds[:look])) for look in range(2, n + 1))
        false += times * any(found is not None and is_false(people, ALPHA, found) for found in looks)
    assert 0 < false <= MOST


@pytest.mark.parametrize("name", NAMES)
def test_on_average(name):
    """Without a confidence level: the mean over draws of the risk, zero where nothing is issued, is at most alpha."""
    people = population(name, ALPHA)
    levels, risks = people.risks("all", "drop")
    told, issued = [], 0
    kinds, times = draws(people, 12, DRAWS, 8, ordered=False)
    for row in kinds:
        tau = certify_on_average(people.records(row), ALPHA).tau
        told.append(0.0 if tau is None else risks[np.searchsorted(levels, tau, side="right") - 1])
        issued += tau is not None
    mean = np.average(told, weights=times)
    error = np.sqrt(np.average((np.array(told) - mean) ** 2, weights=times) / DRAWS)
    assert mean <= ALPHA + 3.1 * error
    assert issued > len(told) / 2


@pytest.mark.parametrize("name", NAMES)
def test_the_populations_are_what_they_say(name):
    """The exact risks, against records of very many people; and the bad rules are bad for each target and policy."""
    for target, undefined, _ in {(t, u, "") for t, u, _ in MODES}:
        alpha = 0.7 if (name, undefined) == ("half undefined", "one") else ALPHA
        people = population(name, alpha, target=target, undefined=undefined)
        assert people.share.sum() == pytest.approx(1)
        _, risks = people.risks(target, undefined)
        assert np.any(np.isclose(risks, alpha + 0.003)), (target, undefined)
        assert risks[0] < alpha or undefined == "one"
        if name == "non-monotone":
            assert np.any(np.diff(risks[: people.loss.shape[2]]) < 0)
        kinds = np.random.default_rng(7).choice(len(people.share), 20_000, p=people.share)
        certifier = RecourseCertifier(alpha, bound="hb", target=target, undefined=undefined, anchor=1.0)
        found = certifier.search(people.records(kinds))
        exact = risks[np.searchsorted(people.risks(target, undefined)[0], found.curve.tau, side="right") - 1]
        assert np.allclose(found.curve.risk, exact, atol=0.02)


# Deliberate bugs, put into the certifier itself: each must be caught by the same count of false certificates


def first_failing(patch):
    """Certifying the threshold that failed."""
    walk = RiskTest.walk
    patch.setattr(RiskTest, "walk", lambda self, curve, points: min(walk(self, curve, points) + 1, len(points)))


def no_running_maximum(patch):
    """Equation (bound1) as printed: the largest threshold that passes, whatever happened before it."""

    def walk(self, curve, points):
        passed = np.flatnonzero(self.p_values(curve, points) <= self.delta)
        return int(passed[-1]) + 1 if len(passed) else 0

    patch.setattr(RiskTest, "walk", walk)


def all_people_for_the_defined(patch):
    """The mean over the defined, with the number of all: 100 here."""
    most = module._most
    patch.setattr(module, "_most", lambda n, *levels: most(100, *levels) * n // 100)


def two_sided_bets(patch):
    """A capital that also wins when the losses are high."""
    one = module.log_capital

    def both(losses, mu, delta, horizon=None):
        return np.logaddexp(
            one(losses, mu, delta, horizon), one(1 - losses, 1 - np.asarray(mu), delta, horizon)
        ) - np.log(2)

    patch.setattr(module, "log_capital", both)


BUGS = {
    first_failing: ("cp", "monotone"),
    no_running_maximum: ("cp", "non-monotone"),
    all_people_for_the_defined: ("cp", "half undefined"),
    two_sided_bets: ("wsr", "monotone"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_deliberate_bug_is_caught(bug, monkeypatch):
    bound, name = BUGS[bug]
    people, n = population(name, ALPHA), 100 if bug is all_people_for_the_defined else 20
    if bug is two_sided_bets:  # a rule far above alpha is what a two-sided bet lets through
        people, n = replace(people, share=np.array([0.9, 0.1])), 8
    certifier = RecourseCertifier(ALPHA, DELTA, bound=bound)
    assert share_false(certifier, people, n, 9, ordered=bound == "wsr")[0] <= MOST
    bug(monkeypatch)
    assert share_false(certifier, people, n, 9, ordered=bound == "wsr")[0] > MOST


def test_seeds_counted_as_people_are_caught(monkeypatch):
    """Ten seeds that mostly agree are not ten people; a thousand draws are plenty to see it."""
    world, times = World((0.0, 0.203, 1.0), seeds=10, noise=0.2), 1000
    losses, defined = world.draw(100, times, seed=6)
    certifier = RecourseCertifier(0.2, 0.05, bound="hb")

    def false():
        found = (certifier.search(as_records(*draw, 10)) for draw in zip(losses, defined, strict=True))
        return sum(world.violated(rules_passed(one, 3)) for one in found)

    assert false() <= stats.binom.ppf(0.999, times, 0.05)
    most = module._most
    monkeypatch.setattr(module, "_most", lambda n, alpha, delta, bound, unit: most(n * unit, alpha, delta, bound, 1))
    assert false() > 1.5 * stats.binom.ppf(0.999, times, 0.05)
