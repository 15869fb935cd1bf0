"""From plans and trajectories to stops: whose certificate it is, what a stop may read, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import edfa
from edfa import EDFA, Blanket, Constraints, MaskedMLP, Nearest, People, SubsetXGB, acquire, certify, find_recourse
from edfa.acquisition import Greedy, RandomBlanket
from edfa.certification import (
    Records,
    RecourseCertifier,
    SurvivalScore,
    certify_cost,
    certify_jointly,
    certify_on_average,
    digest,
    identify,
    replay,
    watch,
)
from edfa.errors import DataError, EmptyTableError, MismatchError, SettingError, UnknownNameError

TABLE = edfa.load("german")
BLANKET = Blanket(
    "class", {"checking_status": ("savings_status",), "duration": ("credit_amount",), "credit_history": ()}
)
OTHER = Blanket("class", {"checking_status": (), "duration": ("credit_amount",), "credit_history": ("savings_status",)})
MODEL = SubsetXGB(n_estimators=40).fit(TABLE.train.X, TABLE.train.y)
SEARCHER = Nearest(TABLE.train)
PAPER = Constraints(reading="paper")


def some(table, rows):
    return replace(table, frame=table.frame.iloc[:rows])


def asked(table, policy=None, model=MODEL, seed=0, **rules):
    return acquire(table, policy or EDFA(BLANKET), model, **{"budget": 0.9, "seed": seed} | rules)


def planned(trajectory, searcher=SEARCHER, constraints=PAPER, **settings):
    return find_recourse(trajectory, searcher, constraints=constraints, **settings)


CALIBRATION, TEST = asked(TABLE.calibration), asked(TABLE.test)
PLANS, TESTED = planned(CALIBRATION), planned(TEST)
CERTIFIER = RecourseCertifier(alpha=0.5).calibrate(PLANS)


def steps(stops):
    return stops.step.tolist(), stops.triggered.tolist(), stops.spent.tolist(), stops.sentence


# Plans, trajectories, records


def test_plans_trajectories_and_records_stop_alike():
    certificate = CERTIFIER.certificate_
    assert certificate.certified
    assert certificate == certify(PLANS, 0.5) == certify(replay(PLANS), 0.5)
    stops = CERTIFIER.stop(TEST)
    assert stops.triggered.any()
    assert not stops.triggered.all()
    for same in (TESTED, watch(TESTED), replay(TESTED)):
        assert steps(CERTIFIER.stop(same)) == steps(certificate.stop(same)) == steps(stops)
    assert stops.sentence == certificate.sentence
    assert CERTIFIER.evaluate(TEST) == CERTIFIER.evaluate(TESTED) == CERTIFIER.evaluate(replay(TESTED))


def test_a_trajectory_needs_somebody_who_knows_the_searcher():
    from_records = RecourseCertifier(alpha=0.5).calibrate(replay(PLANS))
    for call in (from_records.stop, from_records.evaluate, from_records.certificate_.stop):
        with pytest.raises(DataError, match=r"a trajectory has no plans.*find_recourse\(trajectory, searcher\)"):
            call(TEST)
    with pytest.raises(DataError, match="from plans or records, not Trajectory; find_recourse"):
        RecourseCertifier().calibrate(TEST)
    with pytest.raises(SettingError, match="reference= goes with plans"):
        RecourseCertifier().calibrate(replay(PLANS), reference="all_features")
    with pytest.raises(DataError, match="have no losses: they can be stopped"):
        certify(watch(PLANS))
    again = edfa.recourse.Plans.from_json(PLANS.to_json())
    with pytest.raises(DataError, match="read from a file and have no predictor"):
        CERTIFIER.stop(again)


def test_the_same_way_is_used_to_find_a_trajectorys_plans():
    wanted = planned(CALIBRATION, wanted=1)
    certifier = RecourseCertifier(alpha=0.6, target="refused", bound="hb").calibrate(wanted)
    assert certifier.certificate_.target == "refused"
    assert steps(certifier.stop(TEST)) == steps(certifier.stop(planned(TEST, wanted=1)))
    assert certifier.evaluate(TEST) == certifier.evaluate(planned(TEST, wanted=1))
    records = replay(wanted)
    np.testing.assert_array_equal(records.refused, CALIBRATION.decision != 1)
    np.testing.assert_array_equal(records.loss, replay(wanted, favourable=1).loss)
    with pytest.raises(UnknownNameError, match="no class named '7'"):
        replay(wanted, favourable=7)


def test_against_all_features_to_the_end():
    certifier = RecourseCertifier(alpha=0.6).calibrate(PLANS, reference="all_features", whole=TABLE.calibration.X)
    assert "once all features are acquired" in certifier.certificate_.sentence
    seen = certifier.evaluate(TEST, whole=TABLE.test.X)
    assert seen == certifier.evaluate(replay(TESTED, reference="all_features", whole=TABLE.test.X))
    with pytest.raises(DataError, match="pass whole="):
        certifier.evaluate(TEST)


def test_groups_of_plans():
    sex = np.array(["f" if "female" in str(v) else "m" for v in TABLE.calibration.frame["personal_status"]])
    certifier = RecourseCertifier(alpha=0.6, groups="separate").calibrate(PLANS, group=sex)
    assert sorted(certifier.certificate_) == ["f", "m"]
    theirs = np.array(["f" if "female" in str(v) else "m" for v in TABLE.test.frame["personal_status"]])
    stops = certifier.stop(TEST, group=theirs)
    assert [len(stops[g].step) for g in ("f", "m")] == [(theirs == g).sum() for g in ("f", "m")]
    assert certifier.evaluate(TEST, group=theirs)["m"].people == (theirs == "m").sum()
    with pytest.raises(DataError, match="or group= with plans"):
        certifier.stop(TEST)
    with pytest.raises(DataError, match="one label for each of the 200 people"):
        certifier.stop(TEST, group=theirs[:5])


def test_several_seeds_are_joined_and_strangers_are_not():
    policy = RandomBlanket(BLANKET)
    parts = [replay(planned(asked(TABLE.calibration, policy, seed=seed))) for seed in range(3)]
    assert len({part.advisor for part in parts}) == 1, "seeds vary by design"
    joined = Records.join(*parts)
    assert repr(joined).startswith("Records(200 people, 600 runs")
    assert certify(joined, 0.5).method == "wsr"
    assert certify(joined, 0.5).advisor == parts[0].advisor
    with pytest.raises(MismatchError, match=r"advisor is '.*' here and '.*' there"):
        Records.join(parts[0], replay(PLANS))
    with pytest.raises(MismatchError, match="signal_name is 'uncertainty' here and 'plan' there"):
        Records.join(replay(PLANS), replay(PLANS, signal="plan"))
    with pytest.raises(EmptyTableError, match="no records to join"):
        Records.join()


def test_the_other_certificates_take_plans_too():
    average = certify_on_average(PLANS, 0.5)
    assert average == certify_on_average(replay(PLANS), 0.5)
    assert average.stop(TESTED).step.tolist() == average.stop(replay(TESTED)).step.tolist()
    bill = {"limit": 0.9, "budget": float(CALIBRATION.spent.max())}
    assert certify_cost(PLANS, CERTIFIER.certificate_, **bill) == certify_cost(
        replay(PLANS), CERTIFIER.certificate_, **bill
    )
    joint = certify_jointly({"plan": PLANS, "other": planned(CALIBRATION, Nearest(TABLE.train, changes=1))}, 0.6)
    assert joint.certificates["plan"] == certify(PLANS, 0.6, 0.025)
    assert joint.certificates["plan"].advisor != joint.certificates["other"].advisor


# What a stop reads


def test_a_stop_reads_no_loss():
    records = replay(TESTED)
    for poison in (0.0, 1.0):
        told = replace(records, loss=np.full(len(records), poison))
        assert steps(CERTIFIER.stop(told)) == steps(CERTIFIER.stop(TESTED))


def test_a_stop_reads_nothing_after_it():
    """Every value learnt after the stop, every later signal and every later plan is another; the stop is the same."""
    stops = CERTIFIER.stop(TESTED)
    at = np.where(stops.triggered, stops.step, 10**6)[TEST.who]
    later = (TEST.when > at[np.searchsorted(TEST.who, np.arange(len(TEST.person)))][:, None]) & (TEST.when >= 0)
    assert later.any()
    poisoned = TEST.values.copy()
    random = np.random.default_rng(0).integers(0, len(TABLE.train), len(poisoned))
    poisoned[later] = TABLE.train.X[random][later]
    assert (poisoned != TEST.values)[later].any()
    found = CERTIFIER.stop(replace(TEST, values=poisoned))
    hit = stops.triggered
    for name in ("step", "spent", "triggered"):
        np.testing.assert_array_equal(getattr(found, name)[hit], getattr(stops, name)[hit])

    records = watch(TESTED)
    wild = np.where(records.step > at, np.random.default_rng(1).random(len(records)), records.signal)
    legal = np.where(records.step > at, np.random.default_rng(2).random(len(records)) < 0.5, records.legal)
    found = CERTIFIER.stop(replace(records, signal=wild, legal=legal))
    np.testing.assert_array_equal(found.step[hit], stops.step[hit])


def test_a_run_that_is_still_going_stops_where_the_whole_run_does():
    """Deployment sees prefixes: once a prefix triggers, no later step changes that; before, it does not trigger."""
    stops, records = CERTIFIER.stop(TESTED), watch(TESTED)
    for length in range(int(records.step.max()) + 1):
        prefix = CERTIFIER.stop(records.take(records.step <= length))
        by_now = stops.triggered & (stops.step <= length)
        np.testing.assert_array_equal(prefix.triggered, by_now)
        np.testing.assert_array_equal(prefix.step[by_now], stops.step[by_now])


# Whose certificate it is


def changed_model():
    return planned(asked(TABLE.test, model=SubsetXGB(n_estimators=40).fit(TABLE.train.X[:-1], TABLE.train.y[:-1])))


def changed_threshold():
    model = SubsetXGB(n_estimators=40, threshold=0.6).fit(TABLE.train.X, TABLE.train.y)
    return planned(asked(TABLE.test, model=model))


def dearer():
    return planned(asked(TABLE.test, costs=TABLE.schema.costs * 2, budget=0.9))


STRANGERS = {
    "model: one training person less": changed_model,
    "model: another threshold": changed_threshold,
    "blanket: other units": lambda: planned(replace(TEST, blanket=OTHER)),
    "policy: another": lambda: planned(asked(TABLE.test, RandomBlanket(BLANKET))),
    "policy: another setting": lambda: planned(asked(TABLE.test, EDFA(BLANKET, rank="cost"))),
    "costs: other prices": dearer,
    "costs: another budget": lambda: planned(asked(TABLE.test, budget=0.8)),
    "costs: something forbidden": lambda: planned(asked(TABLE.test, forbidden=["housing"])),
    "searcher: another": lambda: planned(TEST, edfa.recourse.NICE(TABLE.train)),
    "searcher: another setting": lambda: planned(TEST, Nearest(TABLE.train, neighbours=9)),
    "searcher: other training people": lambda: planned(TEST, Nearest(some(TABLE.train, 500))),
    "searcher: other constraints": lambda: planned(TEST, constraints=Constraints(reading="paper", max_changes=1)),
    "searcher: another aim": lambda: planned(TEST, wanted=1),
    "no policy at all": lambda: planned(
        People(TEST.X, Background.of(TABLE.reference, TEST.predictor, BLANKET), step=np.arange(len(TEST)))
    ),
}


@pytest.mark.parametrize("what", STRANGERS)
def test_another_advisor_is_refused(what):
    stranger = STRANGERS[what]()
    for call in (CERTIFIER.stop, CERTIFIER.certificate_.stop, CERTIFIER.evaluate):
        with pytest.raises(MismatchError, match="was made for advisor"):
            call(stranger)


def test_a_trajectory_of_another_advisor_is_refused():
    for stranger in (asked(TABLE.test, budget=0.8), asked(TABLE.test, RandomBlanket(BLANKET))):
        with pytest.raises(MismatchError, match="was made for advisor"):
            CERTIFIER.stop(stranger)


def test_the_same_advisor_made_again_is_the_same(tmp_path):
    """Fitted anew, read from a file, used before or not, asked with another seed, of other people."""
    MODEL.to_folder(tmp_path / "model")
    again = SubsetXGB(n_estimators=40).cache_in(max_models=9).fit(TABLE.train.X, TABLE.train.y)
    loaded = SubsetXGB.from_folder(tmp_path / "model")
    for model in (again, loaded):
        mine = find_recourse(
            asked(TABLE.test, EDFA(replace(BLANKET)), model, seed=5), Nearest(TABLE.train), constraints=PAPER, seed=3
        )
        assert identify(mine) == CERTIFIER.certificate_.advisor
    named = RecourseCertifier(alpha=0.5).calibrate(PLANS, advisor="release 7")
    assert named.certificate_.advisor == "release 7"
    assert named.stop(TESTED, advisor="release 7").triggered.any()
    with pytest.raises(MismatchError, match="'release 7', not for 'release 8'"):
        named.stop(TESTED, advisor="release 8")


def test_what_networks_have_learnt_is_part_of_them():
    rows, classes = TABLE.train.X[:200], TABLE.train.y[:200]
    first, same = (MaskedMLP(epochs=1, seed=0).fit(rows, classes) for _ in range(2))
    assert digest(first) == digest(same)
    assert digest(first) != digest(MaskedMLP(epochs=1, seed=0).fit(rows[1:], classes[1:]))
    assert digest(first) != digest(MaskedMLP(epochs=1, seed=1).fit(rows, classes))
    before = digest(SEARCHER)
    planned(TEST)
    assert digest(SEARCHER) == before, "what is kept to save work is no part of anybody"
    assert digest(Greedy()) != digest(Greedy(sampler="bins"))
    assert digest({1, 2}) == digest({2, 1})


# Signals


def test_every_signal_from_calibration_to_the_stop():
    learn = planned(asked(some(TABLE.train, 200)))
    score = SurvivalScore().fit(learn, replay(learn).loss)
    names = {}
    for signal in ("uncertainty", "plan", score):
        certifier = RecourseCertifier(alpha=0.5, signal=signal).calibrate(PLANS)
        names[certifier.certificate_.signal] = certifier
        stops = certifier.stop(TEST)
        tau = certifier.certificate_.tau
        seen = watch(TESTED, signal=signal)
        first = seen.frame()[seen.legal & (seen.signal <= tau)].groupby("person").step.min()
        assert stops.step[stops.triggered].tolist() == first.tolist()
    assert list(names)[:2] == ["uncertainty", "plan"]
    assert list(names)[2].startswith("SurvivalScore ")
    other = SurvivalScore().fit(learn, 1 - replay(learn).loss)
    with pytest.raises(MismatchError, match=r"about the signal 'SurvivalScore .*', not 'SurvivalScore"):
        names[list(names)[2]].stop(TEST, signal=other)
    with pytest.raises(MismatchError, match="about the signal 'plan', not 'uncertainty'"):
        names["plan"].certificate_.stop(watch(TESTED))
    with pytest.raises(UnknownNameError, match="did you mean 'plan'"):
        RecourseCertifier(signal="plans").calibrate(PLANS)


def test_the_survival_of_lasting_plans_is_a_signal():
    searcher = edfa.SurvivalSearch(TABLE.train, completions=8, plans=8)
    calibration, test = planned(CALIBRATION, searcher), planned(TEST, searcher)
    certifier = RecourseCertifier(alpha=0.5, signal="survival").calibrate(calibration)
    assert certifier.certificate_.signal == "survival"
    assert steps(certifier.stop(TEST)) == steps(certifier.stop(test))
    with pytest.raises(MismatchError, match="was made for advisor"):
        certifier.stop(planned(TEST, edfa.SurvivalSearch(TABLE.train, completions=9, plans=8)))
    with pytest.raises(DataError, match="these plans have no survival"):
        RecourseCertifier(signal="survival").calibrate(PLANS)


def test_no_signal_peeks():
    """From the rows of one step alone, without a later one at hand, every signal is the same bit for bit."""
    score = SurvivalScore().fit(PLANS, replay(PLANS).loss)
    half = TEST.step == 1
    shown = replace(
        TESTED.people,
        X=TESTED.people.X[half],
        person=TESTED.people.person[half],
        seed=TESTED.people.seed[half],
        step=TESTED.people.step[half],
        spent=TESTED.people.spent[half],
    )
    alone = planned(shown)
    for signal in ("uncertainty", "plan", score):
        np.testing.assert_array_equal(watch(TESTED, signal=signal).signal[half], watch(alone, signal=signal).signal)
