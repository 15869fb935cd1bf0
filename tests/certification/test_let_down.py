"""The loss a person means, against every reference: eight people of three facts, one decision at a
time.
"""

import numpy as np
import pytest
from eight_people import EVERYBODY, NAMES, Judges, make_plans, points
from worlds import certified

from edfa.certification import (
    NO_PLAN,
    Against,
    Certificate,
    Records,
    RecourseCertifier,
    certify,
    let_down,
    replay,
)
from edfa.certification.simulate import simulate_records
from edfa.errors import DataError, MismatchError, SettingError, UnknownNameError


def by_hand(plans, judge):
    """Loss and waste of every row from ``judge(person, facts)``, a class code."""
    lost, wasted = [], []
    for row, (person, step) in enumerate(zip(plans.people.person, plans.people.step, strict=True)):
        facts = dict(zip(NAMES, EVERYBODY[person], strict=True))
        wasted.append(judge(person, list(facts.values())) == 1)
        if row % 5 == 4:
            lost.append(np.nan)
            continue
        facts |= {"a": 1} if row % 2 == 0 else {"b": 0}
        lost.append(float(judge(person, list(facts.values())) != 1))
        assert step in (0, 1, 2)
    return np.array(lost), np.array(wasted)


OPTIONS = {"loss": "let_down", "advisor": "points"}
AGAINST = {
    "trajectory_end": (Against(), lambda person, facts: points(facts, "ab")),
    "all_features": (Against("all_features", EVERYBODY), lambda person, facts: points(facts)),
}


@pytest.mark.parametrize("reference", AGAINST)
def test_let_downs_one_plan_at_a_time(reference):
    plans, (against, judge) = make_plans(), AGAINST[reference]
    records = replay(plans, against=against, **OPTIONS)
    lost, wasted = by_hand(plans, judge)
    np.testing.assert_array_equal(records.loss, lost)
    np.testing.assert_array_equal(records.wasted, wasted)
    np.testing.assert_array_equal(records.legal, ~np.isnan(lost))
    assert 0 < np.nanmean(lost) < 1
    assert 0 < wasted.mean() < 1
    assert (records.loss_name, records.reference) == ("let_down", reference)
    granted = [points(np.nan_to_num(x), "ab") for x in plans.people.X]
    np.testing.assert_array_equal(records.refused, [not g for g in granted])


def test_what_the_blanket_leaves_out_lets_people_down():
    """Whoever has c is refused by the model that sees it, whatever they do about a and b; the
    blanket's is blind.
    """
    plans = make_plans()
    blanket, everything = (replay(plans, against=a, **OPTIONS) for a, _ in AGAINST.values())
    has_c = EVERYBODY[plans.people.person, 2] == 1
    assert (everything.loss[has_c & plans.legal] == 1).all()
    assert (blanket.loss[has_c & plans.legal] == 0).any()
    np.testing.assert_array_equal(everything.loss[~has_c], blanket.loss[~has_c])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_person_has_one_judge(seed):
    plans, judges = make_plans(), Judges()
    drawn = np.random.default_rng(seed).integers(2, size=8)
    assert 0 < drawn.mean() < 1
    lost, wasted = by_hand(
        plans, lambda person, facts: judges.decide(drawn[person], np.array([facts]))[0]
    )
    for whole in (EVERYBODY, None):  # everything is known at the end of these runs
        against = Against("retrained", whole, judges, seed)
        records = replay(plans, against=against, **OPTIONS)
        np.testing.assert_array_equal(records.loss, lost)
        np.testing.assert_array_equal(records.wasted, wasted)
    paper = replay(plans, against=against, advisor="points")
    changed = np.nan_to_num(lost) == 1
    steady = plans.people.decision == wasted
    np.testing.assert_array_equal(
        paper.loss[plans.legal], (changed | ~steady)[plans.legal].astype(float)
    )


def test_what_cannot_be_judged_is_refused():
    judges, short = Judges(), make_plans(steps=2)
    with pytest.raises(
        DataError, match="the judges need 'c', which the run of person 0 never asks; pass whole="
    ):
        replay(short, against=Against("retrained", judges=judges), **OPTIONS)
    assert len(replay(short, against=Against("retrained", EVERYBODY, judges), **OPTIONS)) == 16
    judges.columns = np.array([True, True, False])
    assert len(replay(short, against=Against("retrained", judges=judges), **OPTIONS)) == 16
    for options in ({"reference": "retrained"}, {"judges": judges}):
        with pytest.raises(SettingError, match="reference='retrained' and judges=, a committee"):
            Against(**options)
    with pytest.raises(DataError, match="whole must be complete and of shape"):
        replay(short, against=Against("retrained", EVERYBODY[:3], judges), **OPTIONS)
    with pytest.raises(UnknownNameError, match="did you mean 'let_down'"):
        replay(make_plans(), loss="letdown")


def test_a_let_down_needs_a_desired_class(german):
    with pytest.raises(SettingError, match="needs favourable="):
        replay(german.plans, loss="let_down")
    assert replay(german.plans, loss="let_down", favourable=1).loss_name == "let_down"
    with pytest.raises(DataError, match="must be class codes"):
        let_down([0.5], 1)
    assert np.isnan(let_down([NO_PLAN], 1)).all()


def test_who_chose_the_plans_does_not_judge_them():
    judges = Judges()

    class Searcher:
        committee = judges

    against = Against("retrained", judges=judges)
    with pytest.raises(SettingError, match="these judges chose the plans"):
        replay(make_plans(searcher=Searcher()), against=against, **OPTIONS)


def test_a_plan_at_the_last_step_is_not_let_down_by_its_own_model(german):
    plans = german.find_plans(german.calibration, desired_class=1)
    last = german.calibration.last
    records = replay(plans, loss="let_down")
    assert (records.loss[last][records.legal[last]] == 0).all()
    paper = replay(plans)
    assert (records.loss[records.legal] <= paper.loss[records.legal]).all(), (
        "the paper's loss counts more as lost"
    )
    assert (records.loss[records.legal] < paper.loss[records.legal]).any()


# Through the certifier


def test_options_go_all_the_way(german):
    plans, test = (
        german.find_plans(part, desired_class=1) for part in (german.calibration, german.test)
    )
    options, whole = (
        {"against": Against("all_features", part.X), "loss": "let_down"}
        for part in (german.table.calibration, german.table.test)
    )
    certifier = RecourseCertifier(alpha=0.9).calibrate(replay(plans, **options))
    certificate = certifier.certificate_
    assert (certificate.loss, certificate.reference) == ("let_down", "all_features")
    held = certifier.evaluate(replay(test, **whole))
    assert held != certifier.evaluate(replay(test, **whole | {"loss": "recourse"}))


def test_records_keep_the_names_and_the_waste():
    plans = make_plans()
    records = replay(plans, **OPTIONS)
    again = Records.from_frame(records.frame(), advisor="points", loss_name="let_down")
    np.testing.assert_array_equal(again.wasted, records.wasted)
    assert (
        Records.join(records.take(slice(0, 12)), records.take(slice(12, None))).loss_name
        == "let_down"
    )
    with pytest.raises(MismatchError, match="loss_name is 'let_down' here and 'recourse' there"):
        Records.join(records, replay(plans, advisor="points"))


def test_waste_is_told_beside_the_risk():
    """Of the 300, those who act at a signal of at most tau before their last step, and are granted
    anyhow.
    """
    records = let_down_records(300, wasted=np.random.default_rng(0).random(1800) < 0.3)
    certifier = RecourseCertifier(0.25, target="early", anchor=0.1).calibrate(records)
    certificate, stops = certifier.certificate_, certifier.stop(records)
    early = stops.triggered & (stops.step < 5)
    rows = records.frame().set_index(["person", "step"])
    acting = rows.loc[list(zip(stops.person[early], stops.step[early], strict=True))]
    assert certificate.wasted == pytest.approx(acting.wasted.mean())
    assert certificate.risk == pytest.approx(acting.loss.mean())
    assert certify(simulate_records(50), 0.25).wasted is None


# In words


def let_down_records(n=400, **columns):
    frame = simulate_records(n, seed=2).frame().assign(**columns)
    return Records.from_frame(frame, loss_name="let_down", signal_name="survival")


LATER = {
    "trajectory_end": (
        "once everything that this advisor asks is known",
        "wonach dieser Berater fragt",
    ),
    "all_features": (
        "by the model that sees every feature, once all of them are known",
        "das jedes Merkmal sieht",
    ),
    "retrained": (
        "by a model of the same kind that was learnt again from other people",
        "neu gelernt wurde",
    ),
}


@pytest.mark.parametrize("reference", LATER)
def test_the_sentence_says_to_whom_and_against_what(reference):
    records = Records.from_frame(
        let_down_records().frame(),
        loss_name="let_down",
        signal_name="survival",
        reference=reference,
    )
    certificate = certified(records, 0.25, target="early", anchor=0.1, ceiling=0.5)
    english, german = LATER[reference]
    assert certificate.sentence == (
        "Of people whom this rule tells to act before everything is asked, a share of at "
        "most 0.25 would do the plan "
        f"and still be refused {english}, and so would at most the same share of all whom "
        "it tells to act, after the "
        "last question too; this statement is wrong with probability at most 0.05 over "
        "the calibration sample. Nobody "
        "is told to act on a plan whose own survival is estimated below 0.5."
    )
    assert german in certificate.words("de")
    assert "dennoch abgelehnt" in certificate.words("de")
    alone = certified(records, 0.25, target="early", anchor=0.1, include_last_step=False)
    assert "last question" not in alone.sentence
    assert "Nobody" not in alone.sentence
    act = certify(records, 0.25, target="act", anchor=0.1)
    assert act.sentence.startswith("Of people whom this rule tells to act, a share")
    paper = Records.from_frame(records.frame(), reference=reference)
    for target in ("early", "act"):
        assert (
            "see the prediction or the recourse fail"
            in certify(paper, 0.25, target=target, anchor=0.1).sentence
        )
    assert "where the signal is above 0.4" in certified(paper, 0.25, ceiling=0.4).sentence


def test_a_certificate_is_read_back_equal():
    made = certified(let_down_records(), 0.25, target="early", anchor=0.1, ceiling=0.5)
    assert Certificate.from_json(made.to_json()) == made
