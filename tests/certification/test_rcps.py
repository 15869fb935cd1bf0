"""The certifier: its settings, calibration on records and plans, and whose certificate it makes."""

from dataclasses import replace

import numpy as np
import pytest
from worlds import as_lists, certified, three_people, without_plans

import edfa
from edfa import EDFA, MaskedMLP, Nearest, Rules, SubsetXGB
from edfa.acquisition import Greedy, RandomBlanket, Terms
from edfa.certification import (
    Against,
    Records,
    RecourseCertifier,
    certify,
    certify_cost,
    certify_expected_risk,
    certify_jointly,
    replay,
    watch,
)
from edfa.certification.simulate import simulate_records
from edfa.errors import DataError, MismatchError, SettingError, UnknownNameError
from edfa.fingerprint import digest, identify
from edfa.people import Background, People


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"alpha": 0.0}, "alpha lies between 0 and 1, the ends left out, not at 0"),
        ({"alpha": 1.0}, "alpha lies between"),
        ({"alpha": -1}, "alpha lies between 0 and 1, which -1.0 does not"),
        ({"delta": 0}, "delta lies between"),
        ({"delta": float("nan")}, "delta lies between"),
        ({"alpha": "much"}, "alpha is a number"),
        ({"bound": "hbkl"}, "bound is not 'hbkl'; did you mean 'hb_kl'"),
        ({"target": "denied"}, "target is not 'denied'; known: all, early, act, refused"),
        ({"groups": "sex"}, "groups is not 'sex'"),
        ({"target": "early"}, "needs anchor="),
        ({"target": "refused", "bound": "paper"}, "goes with target='all'"),
        ({"horizon": 100, "bound": "cp"}, "goes with bound='wsr'"),
        ({"horizon": 0}, "horizon= is a number of people"),
        ({"bound": "paper", "grid": 1}, "at least 2"),
    ],
)
def test_settings_are_checked_before_any_work(settings, match):
    with pytest.raises(SettingError, match=match):
        RecourseCertifier(**settings)


def test_other_refusals():
    with pytest.raises(DataError, match="needs the column 'refused'"):
        certify(three_people(), target="refused")


def test_a_step_without_a_plan_can_be_blamed():
    """Where stopping without a plan counts as a failure, such a step is legal and lost."""
    lenient = three_people(legal=[False, True] * 3, loss=[0.0] * 6)
    strict = three_people(legal=[True] * 6, loss=[1.0, 0.0] * 3)
    assert certify(lenient, 0.4, 0.4).curve[-1].risk == 0
    assert certify(strict, 0.4, 0.4).curve[-1].risk == 1


def test_whoever_never_has_a_plan_is_left_out():
    data = simulate_records(200, seed=1)
    frame = data.frame()
    half = Records.from_frame(frame.assign(legal=frame.legal & (frame.person % 2 == 0)))
    alone = Records.from_frame(frame[frame.person % 2 == 0])
    certificate = certify(half, 0.2)
    assert (certificate.n, certificate.left_out) == (100, 100)
    assert certificate.tau == certify(alone, 0.2).tau


def test_certifier_keeps_one_certificate_and_says_so():
    certifier = RecourseCertifier(delta=0.1)
    with pytest.raises(Exception, match="call calibrate"):
        certifier.stop(simulate_records(2))
    assert certifier.calibrate(simulate_records(100)) is certifier
    with pytest.warns(UserWarning, match="calibrating again replaces"):
        certifier.calibrate(simulate_records(120))
    assert certifier.certificate_.n == 120


def test_looking_while_people_arrive():
    data = simulate_records(400, seed=3)
    looks = [certified(data.take(data.person < n), 0.2, horizon=400) for n in range(20, 401, 20)]
    assert {look.method for look in looks} == {"wsr"}
    assert looks[-1].certified
    assert all("one look" not in warning for look in looks for warning in look.warnings)
    statuses = [look.certified for look in looks]
    assert statuses == sorted(statuses), (
        "what the bets have ruled out at the first threshold stays so"
    )


def test_evaluation_on_held_out_people():
    certifier = RecourseCertifier(alpha=0.2).calibrate(simulate_records(400, seed=1))
    held = simulate_records(5000, seed=2)
    measured = certifier.evaluate(held)
    stops = certifier.stop(held)
    frame = held.frame().set_index(["person", "step"])
    planned = stops.step >= 0
    losses = frame.loc[list(zip(stops.person[planned], stops.step[planned], strict=True)), "loss"]
    assert measured.risk == pytest.approx(losses.mean())
    assert measured.cost == pytest.approx(stops.spent[planned].mean())
    assert measured.triggered == pytest.approx(stops.triggered[planned].mean())
    assert (measured.n, measured.people) == (planned.sum(), 5000)
    assert measured.last < measured.risk <= 0.2 + 0.02
    assert measured.first > measured.risk
    assert certifier.evaluate(without_plans()) is None


# Plans, trajectories, records


def test_plans_trajectories_and_records_stop_alike(german):
    certifier, plans = german.certifier, german.test_plans
    certificate = certifier.certificate_
    assert certificate.certified
    assert certificate == certify(german.plans, 0.5) == certify(replay(german.plans), 0.5)
    stops = certifier.stop(german.test)
    assert stops.triggered.any()
    assert not stops.triggered.all()
    for same in (plans, watch(plans), replay(plans)):
        assert as_lists(certifier.stop(same)) == as_lists(certificate.stop(same)) == as_lists(stops)
    assert stops.sentence == certificate.sentence


def test_a_trajectory_needs_somebody_who_knows_the_searcher(german):
    from_records = RecourseCertifier(alpha=0.5).calibrate(replay(german.plans))
    for call in (from_records.stop, from_records.certificate_.stop):
        with pytest.raises(
            DataError, match=r"a trajectory has no plans.*find_recourse\(trajectory, searcher\)"
        ):
            call(german.test)
    with pytest.raises(DataError, match="from plans or records, not Trajectory; find_recourse"):
        RecourseCertifier().calibrate(german.test)
    with pytest.raises(DataError, match="have no losses: they can be stopped"):
        certify(watch(german.plans))
    again = edfa.recourse.Plans.from_json(german.plans.to_json())
    with pytest.raises(DataError, match="have no model; they were read from a file"):
        german.certifier.stop(again)


def test_the_same_way_is_used_to_find_a_trajectorys_plans(german):
    plans, same = (
        german.find_plans(part, desired_class=1) for part in (german.calibration, german.test)
    )
    certifier = RecourseCertifier(alpha=0.6, target="refused", bound="hb").calibrate(plans)
    assert certifier.certificate_.target == "refused"
    assert as_lists(certifier.stop(german.test)) == as_lists(certifier.stop(same))
    records = replay(plans)
    np.testing.assert_array_equal(records.refused, german.calibration.decision != 1)
    np.testing.assert_array_equal(records.loss, replay(plans, favourable=1).loss)
    with pytest.raises(UnknownNameError, match="no class named '7'"):
        replay(plans, favourable=7)


def test_against_all_features_to_the_end(german):
    certifier = RecourseCertifier(alpha=0.9).calibrate(
        replay(german.plans, against=Against("all_features", german.table.calibration.X))
    )
    assert "once all features are acquired" in certifier.certificate_.sentence
    whole = Against("all_features", german.table.test.X)
    assert certifier.evaluate(replay(german.test_plans, against=whole)).people == 200
    with pytest.raises(DataError, match="pass whole="):
        replay(german.test_plans, against=Against("all_features"))


def test_groups_of_plans(german):
    sex = np.array(
        [
            "f" if "female" in str(v) else "m"
            for v in german.table.calibration.frame["personal_status"]
        ]
    )

    def grouped(records, labels):
        return replace(records, group=labels[records.person])

    certifier = RecourseCertifier(alpha=0.6, groups="separate").calibrate(
        grouped(replay(german.plans), sex)
    )
    assert sorted(certifier.certificate_) == ["f", "m"]
    theirs = np.array(
        ["f" if "female" in str(v) else "m" for v in german.table.test.frame["personal_status"]]
    )
    stops = certifier.stop(grouped(watch(german.test_plans), theirs))
    assert [len(stops[g].step) for g in ("f", "m")] == [(theirs == g).sum() for g in ("f", "m")]
    assert (
        certifier.evaluate(grouped(replay(german.test_plans), theirs))["m"].people
        == (theirs == "m").sum()
    )
    with pytest.raises(DataError, match="need the column 'group'"):
        certifier.stop(german.test_plans)


def test_the_other_certificates_take_plans_too(german):
    plans, records, certificate = german.plans, replay(german.plans), german.certifier.certificate_
    expected = certify_expected_risk(plans, 0.5)
    assert expected == certify_expected_risk(records, 0.5)
    assert (
        expected.stop(german.test_plans).step.tolist()
        == expected.stop(replay(german.test_plans)).step.tolist()
    )
    limits = {"limit": 0.9, "budget": float(german.calibration.spent.max())}
    assert certify_cost(plans, certificate, **limits) == certify_cost(
        records, certificate, **limits
    )
    others = german.find_plans(german.calibration, Nearest(german.table.train, max_changes=1))
    joint = certify_jointly({"plan": plans, "other": others}, RecourseCertifier(0.6))
    assert joint.certificates["plan"] == certify(plans, 0.6, 0.025)
    assert joint.certificates["plan"].advisor != joint.certificates["other"].advisor


# Whose certificate it is


def changed_model(german):
    train = german.table.train
    return german.ask(
        german.table.test, model=SubsetXGB(n_estimators=40).fit(train.X[:-1], train.y[:-1])
    )


def changed_threshold(german):
    train = german.table.train
    return german.ask(
        german.table.test, model=SubsetXGB(n_estimators=40, threshold=0.6).fit(train.X, train.y)
    )


def changed_units(german):
    return replace(
        german.test, background=replace(german.test.background, blanket=german.other_blanket)
    )


def without_policy(german):
    background = Background.of(german.table.reference, german.test.predictor, german.blanket)
    return People(german.test.X, background, step=np.arange(len(german.test)))


OTHER_TRAJECTORIES = {
    "model: one training person less": changed_model,
    "model: another threshold": changed_threshold,
    "blanket: other units": changed_units,
    "policy: another": lambda german: german.ask(german.table.test, RandomBlanket(german.blanket)),
    "policy: another setting": lambda german: german.ask(
        german.table.test, EDFA(german.blanket, rank="cost")
    ),
    "costs: other prices": lambda german: german.ask(
        german.table.test, terms=Terms(costs=german.table.schema.costs * 2)
    ),
    "costs: another budget": lambda german: german.ask(german.table.test, budget=0.8),
    "costs: something forbidden": lambda german: german.ask(
        german.table.test, terms=Terms(forbidden=["housing"])
    ),
    "no policy at all": without_policy,
}
OTHER_SEARCHES = {
    "searcher: another": lambda german: {"searcher": edfa.recourse.NICE(german.table.train)},
    "searcher: another setting": lambda german: {
        "searcher": Nearest(german.table.train, neighbours=9)
    },
    "searcher: other training people": lambda german: {
        "searcher": Nearest(german.first_rows(german.table.train, 500))
    },
    "searcher: other rules": lambda german: {"rules": Rules(reading="paper", max_changes=1)},
    "searcher: another aim": lambda german: {"desired_class": 1},
}


@pytest.mark.parametrize("what", [*OTHER_TRAJECTORIES, *OTHER_SEARCHES])
def test_another_advisor_is_refused(german, what):
    trajectory = OTHER_TRAJECTORIES[what](german) if what in OTHER_TRAJECTORIES else german.test
    stranger = german.find_plans(
        trajectory, **(OTHER_SEARCHES[what](german) if what in OTHER_SEARCHES else {})
    )
    for call in (
        german.certifier.stop,
        german.certifier.certificate_.stop,
        german.certifier.evaluate,
    ):
        with pytest.raises(MismatchError, match="was made for advisor"):
            call(stranger)


def test_a_trajectory_of_another_advisor_is_refused(german):
    for what in ("costs: another budget", "policy: another"):
        stranger = OTHER_TRAJECTORIES[what](german)
        with pytest.raises(MismatchError, match="was made for advisor"):
            german.certifier.stop(stranger)


def test_the_same_advisor_made_again_is_the_same(german, tmp_path):
    """Fitted anew, read from a file, used before or not, asked with another seed, of other
    people.
    """
    german.model.to_folder(tmp_path / "model")
    again = (
        SubsetXGB(n_estimators=40)
        .cache_in(max_models=9)
        .fit(german.table.train.X, german.table.train.y)
    )
    loaded = SubsetXGB.from_folder(tmp_path / "model")
    for model in (again, loaded):
        trajectory = german.ask(german.table.test, EDFA(replace(german.blanket)), model, seed=5)
        plans = german.find_plans(trajectory, Nearest(german.table.train), seed=3)
        assert identify(plans) == german.certifier.certificate_.advisor
    named = RecourseCertifier(alpha=0.5).calibrate(replay(german.plans, advisor="release 7"))
    assert named.certificate_.advisor == "release 7"
    assert named.stop(german.test_plans, advisor="release 7").triggered.any()
    with pytest.raises(MismatchError, match="'release 7', not for 'release 8'"):
        named.stop(german.test_plans, advisor="release 8")


def test_what_networks_have_learnt_is_part_of_them(german):
    rows, classes = german.table.train.X[:200], german.table.train.y[:200]
    first, same = (MaskedMLP(epochs=1, seed=0).fit(rows, classes) for _ in range(2))
    assert digest(first) == digest(same)
    assert digest(first) != digest(MaskedMLP(epochs=1, seed=0).fit(rows[1:], classes[1:]))
    assert digest(first) != digest(MaskedMLP(epochs=1, seed=1).fit(rows, classes))
    before = digest(german.searcher)
    german.find_plans(german.test)
    assert digest(german.searcher) == before, "what is kept to save work is no part of anybody"
    assert digest(Greedy()) != digest(Greedy(sampler="bins"))
