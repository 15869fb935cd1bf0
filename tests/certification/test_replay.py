import numpy as np
import pytest

import edfa
from edfa import EDFA, Blanket, Constraints, Nearest, SubsetXGB, acquire, certify, find_recourse
from edfa.certification.replay import replay
from edfa.errors import DataError, UnknownNameError

TABLE = edfa.load("german")
BLANKET = Blanket(
    "class", {"checking_status": ("savings_status",), "duration": ("credit_amount",), "credit_history": ()}
)
MODEL = SubsetXGB(n_estimators=40).fit(TABLE.train.X, TABLE.train.y)
TRAJECTORY = acquire(TABLE.calibration, EDFA(BLANKET), MODEL, budget=0.9)
PLANS = find_recourse(TRAJECTORY, Nearest(TABLE.train), constraints=Constraints(reading="paper"))


def by_hand(plans, end_of, favourable=None):
    """The loss of every step, one person and one model call at a time."""
    people, predictor = plans.people, plans.people.predictor

    def decide(row):
        return int(predictor.decide(predictor.predict_proba(row[None]))[0])

    losses = []
    for i in range(len(people)):
        if not plans.legal[i]:
            losses.append(np.nan)
            continue
        end = end_of(i)
        to = plans.to[plans.first[i]]
        changed = decide(np.where(np.isnan(to), end, to))
        lasts = changed != decide(end) if favourable is None else changed == favourable
        losses.append(float(decide(people.X[i]) != decide(end) or not lasts))
    return np.array(losses)


def last_known(i):
    people = PLANS.people
    mine = np.flatnonzero((people.person == people.person[i]) & (people.seed == people.seed[i]))
    return people.X[mine[np.argmax(people.step[mine])]]


def test_losses_are_those_of_one_plan_at_a_time():
    records = replay(PLANS)
    np.testing.assert_array_equal(records.loss, by_hand(PLANS, last_known))
    assert 0 < np.nanmean(records.loss) < 1
    np.testing.assert_array_equal(records.legal, PLANS.legal)
    np.testing.assert_allclose(records.signal, 1 - TRAJECTORY.chances.max(axis=1), atol=1e-9)
    np.testing.assert_array_equal(records.spent, TRAJECTORY.spent)
    np.testing.assert_array_equal(records.step, TRAJECTORY.step)


def test_one_model_call_for_each_set(monkeypatch):
    """However many people and plans: every set of known features is asked about once."""
    asked, answer = [], SubsetXGB._answer

    def count(self, mask, known):
        asked.append(mask.tobytes())
        return answer(self, mask, known)

    monkeypatch.setattr(SubsetXGB, "_answer", count)
    replay(PLANS)
    assert len(asked) == len(set(asked))
    visible = np.isin(TABLE.schema.names, BLANKET.features)
    sets = {(row & visible).tobytes() for row in ~np.isnan(PLANS.people.X)}
    assert 1 < len(set(asked)) <= len(sets)


def test_a_plan_at_the_last_step_lasts():
    records = replay(PLANS)
    last = TRAJECTORY.last
    assert (records.loss[last][records.legal[last]] == 0).all()


def test_the_order_of_rows_does_not_matter():
    from dataclasses import replace

    order = np.random.default_rng(0).permutation(len(PLANS.people))
    people = PLANS.people
    turned = replace(
        people,
        X=people.X[order],
        person=people.person[order],
        seed=people.seed[order],
        step=people.step[order],
        spent=people.spent[order],
    )
    plans = find_recourse(turned, Nearest(TABLE.train), constraints=Constraints(reading="paper"))
    np.testing.assert_array_equal(replay(plans).loss, replay(PLANS).loss[order])


def test_against_everything():
    whole = TABLE.calibration.X
    records = replay(PLANS, reference="all_features", whole=whole)
    np.testing.assert_array_equal(records.loss, by_hand(PLANS, lambda i: whole[PLANS.people.person[i]]))
    assert records.reference == "all_features"
    with pytest.raises(DataError, match="pass whole="):
        replay(PLANS, reference="all_features")
    with pytest.raises(DataError, match="must be complete and of shape"):
        replay(PLANS, reference="all_features", whole=whole[:5])
    with pytest.raises(UnknownNameError, match="did you mean 'all_features'"):
        replay(PLANS, reference="all_feature")


def test_towards_the_favourable_class():
    plans = find_recourse(TRAJECTORY, Nearest(TABLE.train), wanted=1, constraints=Constraints(reading="paper"))
    records = replay(plans, favourable=1)
    np.testing.assert_array_equal(records.loss, by_hand(plans, last_known, favourable=1))
    np.testing.assert_array_equal(records.refused, TRAJECTORY.decision != 1)


def test_signals():
    plan = replay(PLANS, signal="plan")
    assert (plan.signal >= replay(PLANS).signal - 1e-12).all()
    given = replay(PLANS, signal=np.arange(len(PLANS.people), dtype=float))
    assert given.signal_name == "given"
    with pytest.raises(DataError, match="one number for each"):
        replay(PLANS, signal=np.zeros(3))
    with pytest.raises(UnknownNameError, match="did you mean 'plan'"):
        replay(PLANS, signal="plans")


def test_certificates_from_plans_are_those_from_their_records():
    for settings in ({"alpha": 0.2}, {"alpha": 0.5}, {"alpha": 0.3, "signal": "plan"}):
        direct = certify(PLANS, **settings)
        signal = settings.pop("signal", "uncertainty")
        assert direct == certify(replay(PLANS, signal=signal), **settings)
    assert certify(PLANS, alpha=0.6).status == "certified"
