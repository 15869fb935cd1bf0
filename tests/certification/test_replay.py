"""Losses of plans, one at a time by hand; and every signal."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from worlds import as_lists

import edfa
from edfa import SubsetXGB
from edfa.certification import (
    NO_PLAN,
    Against,
    Records,
    RecourseCertifier,
    certify,
    plan_uncertainty,
    recourse_loss,
    replay,
    uncertainty,
    watch,
)
from edfa.errors import DataError, MismatchError, UnknownNameError


def by_hand(plans, end_of, favourable=None, judge=None):
    """The loss of every step, one person and one model call at a time; the model ``judge`` decides
    at the end.
    """
    people, predictor = plans.people, plans.people.predictor

    def decide(row, model=judge or predictor):
        return int(model.decide(model.predict_proba(row[None]))[0])

    losses = []
    for i in range(len(people)):
        if not plans.legal[i]:
            losses.append(np.nan)
            continue
        end = end_of(i)
        to = plans.to[plans.first[i]]
        changed = decide(np.where(np.isnan(to), end, to))
        lasts = changed != decide(end) if favourable is None else changed == favourable
        losses.append(float(decide(people.X[i], predictor) != decide(end) or not lasts))
    return np.array(losses)


def last_known(plans):
    """What is known at the last step of the run of row i, as a function of i."""
    people = plans.people

    def end_of(i):
        mine = np.flatnonzero((people.person == people.person[i]) & (people.seed == people.seed[i]))
        return people.X[mine[np.argmax(people.step[mine])]]

    return end_of


def test_losses_are_those_of_one_plan_at_a_time(german):
    records = replay(german.plans)
    np.testing.assert_array_equal(records.loss, by_hand(german.plans, last_known(german.plans)))
    assert 0 < np.nanmean(records.loss) < 1
    np.testing.assert_array_equal(records.legal, german.plans.legal)
    np.testing.assert_allclose(
        records.signal, 1 - german.calibration.probabilities.max(axis=1), atol=1e-9
    )
    np.testing.assert_array_equal(records.spent, german.calibration.spent)
    np.testing.assert_array_equal(records.step, german.calibration.step)


def test_one_model_call_for_each_set(german, monkeypatch):
    """However many people and plans: every set of known features is asked about once."""
    asked, answer = [], SubsetXGB._answer

    def count(self, mask, known):
        asked.append(mask.tobytes())
        return answer(self, mask, known)

    monkeypatch.setattr(SubsetXGB, "_answer", count)
    replay(german.plans)
    assert len(asked) == len(set(asked))
    visible = np.isin(german.table.schema.names, german.blanket.features)
    sets = {(row & visible).tobytes() for row in ~np.isnan(german.plans.people.X)}
    assert 1 < len(set(asked)) <= len(sets)


def test_a_plan_at_the_last_step_lasts(german):
    records = replay(german.plans)
    last = german.calibration.last
    assert (records.loss[last][records.legal[last]] == 0).all()


def test_the_order_of_rows_does_not_matter(german):
    order = np.random.default_rng(0).permutation(len(german.plans.people))
    plans = german.find_plans(german.plans.people.take(order))
    np.testing.assert_array_equal(replay(plans).loss, replay(german.plans).loss[order])


def test_against_everything(german):
    whole = german.table.calibration.X
    records = replay(german.plans, against=Against("all_features", whole))
    everything = by_hand(
        german.plans, lambda i: whole[german.plans.people.person[i]], judge=german.model
    )
    np.testing.assert_array_equal(records.loss, everything)
    assert np.nanmean(records.loss != replay(german.plans).loss) > 0.2, (
        "the blanket's model decides otherwise"
    )
    assert records.reference == "all_features"
    with pytest.raises(DataError, match="pass whole="):
        replay(german.plans, against=Against("all_features"))
    with pytest.raises(DataError, match="must be complete and of shape"):
        replay(german.plans, against=Against("all_features", whole[:5]))
    with pytest.raises(UnknownNameError, match="did you mean 'all_features'"):
        Against("all_feature")


def test_towards_the_favourable_class(german):
    plans = german.find_plans(german.calibration, desired_class=1)
    records = replay(plans, favourable=1)
    np.testing.assert_array_equal(records.loss, by_hand(plans, last_known(plans), favourable=1))
    np.testing.assert_array_equal(records.refused, german.calibration.decision != 1)


def test_signals(german):
    plan = replay(german.plans, signal="plan")
    assert (plan.signal >= replay(german.plans).signal - 1e-12).all()
    numbers = replay(german.plans, signal=np.arange(len(german.plans.people), dtype=float))
    assert numbers.signal_name == "given"
    with pytest.raises(DataError, match="one number for each"):
        replay(german.plans, signal=np.zeros(3))
    with pytest.raises(UnknownNameError, match="did you mean 'plan'"):
        replay(german.plans, signal="plans")


def test_certificates_from_plans_are_those_from_their_records(german):
    for settings in ({"alpha": 0.2}, {"alpha": 0.5}, {"alpha": 0.3, "signal": "plan"}):
        direct = certify(german.plans, **settings)
        signal = settings.pop("signal", "uncertainty")
        assert direct == certify(replay(german.plans, signal=signal), **settings)
    assert certify(german.plans, alpha=0.6).status == "certified"


def test_losses_from_predictions():
    lost = recourse_loss([0, 1, 0], [0, 0, 0], [1, 1, NO_PLAN])
    assert lost[:2].tolist() == [0, 1]
    assert np.isnan(lost[2])
    assert recourse_loss([0, 0], [0, 0], [1, 2], favourable=2).tolist() == [1, 0]
    with pytest.raises(DataError, match="changed_at_end must be class codes of shape"):
        recourse_loss([0, 1], [0, 1], [0.5, 1.0])
    now, changed = np.array([[0.7, 0.3]]), np.array([[0.4, 0.6]])
    assert plan_uncertainty(now, changed) == pytest.approx(0.4)
    assert uncertainty(now) == pytest.approx(0.3)


class Weighted:
    """A signal of one's own: the uncertainty, weighted."""

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, plans):
        return self.weight * uncertainty(plans.people.predictor.predict_proba(plans.people.X))


def test_every_signal_from_calibration_to_the_stop(german):
    score = Weighted(0.5)
    names = {}
    for signal in ("uncertainty", "plan", score):
        certifier = RecourseCertifier(alpha=0.5, signal=signal).calibrate(german.plans)
        names[certifier.certificate_.signal] = certifier
        stops = certifier.stop(german.test)
        tau = certifier.certificate_.tau
        records = watch(german.test_plans, signal=signal)
        first = (
            records.frame()[records.legal & (records.signal <= tau)].groupby("person").step.min()
        )
        assert stops.step[stops.triggered].tolist() == first.tolist()
    assert list(names)[:2] == ["uncertainty", "plan"]
    assert list(names)[2].startswith("Weighted ")
    with pytest.raises(MismatchError, match=r"about the signal 'Weighted .*', not 'Weighted"):
        names[list(names)[2]].stop(watch(german.test_plans, signal=Weighted(0.4)))
    with pytest.raises(MismatchError, match="about the signal 'plan', not 'uncertainty'"):
        names["plan"].certificate_.stop(watch(german.test_plans))
    with pytest.raises(UnknownNameError, match="did you mean 'plan'"):
        RecourseCertifier(signal="plans").calibrate(german.plans)


def test_the_survival_of_lasting_plans_is_a_signal(german):
    searcher = edfa.SurvivalSearch(german.table.train, n_completions=8, n_candidates=8)
    other = edfa.SurvivalSearch(german.table.train, n_completions=9, n_candidates=8)
    calibration, test = (
        german.find_plans(german.calibration, searcher),
        german.find_plans(german.test, searcher),
    )
    certifier = RecourseCertifier(alpha=0.5, signal="survival").calibrate(calibration)
    assert certifier.certificate_.signal == "survival"
    assert as_lists(certifier.stop(german.test)) == as_lists(certifier.stop(test))
    with pytest.raises(MismatchError, match="was made for advisor"):
        certifier.stop(german.find_plans(german.test, other))
    with pytest.raises(DataError, match="these plans have no survival"):
        RecourseCertifier(signal="survival").calibrate(german.plans)


def test_no_signal_peeks(german):
    """From the rows of one step alone, without a later one at hand, every signal is the same bit
    for bit.
    """
    score = Weighted(0.5)
    half = german.test.step == 1
    alone = german.find_plans(german.test_plans.people.take(np.flatnonzero(half)))
    for signal in ("uncertainty", "plan", score):
        np.testing.assert_array_equal(
            watch(german.test_plans, signal=signal).signal[half], watch(alone, signal=signal).signal
        )


def test_a_better_signal_saves_more_and_stays_valid():
    """A score that knows the margin of the plan stops earlier than the uncertainty alone, and is
    certified alike.
    """
    random = np.random.default_rng(3)
    n, steps = 3000, 6
    score = np.cumsum(random.normal(size=(n, steps)) * 0.6 ** np.arange(steps), axis=1)
    margin = random.exponential(0.8, size=(n, steps))
    side = np.sign(score)
    lost = (side != side[:, -1:]) | (side * (score[:, -1:] - score) > margin)
    person, step = (axis.ravel() for axis in np.indices(score.shape))
    facts = np.column_stack([np.abs(score).ravel(), margin.ravel(), step])
    learn, rest = person < 1000, person >= 1000
    model = make_pipeline(StandardScaler(), LogisticRegression())
    failing = model.fit(facts[learn], lost.ravel()[learn]).predict_proba(facts)[:, 1]
    saved = {}
    for name, signal in (("uncertainty", -np.abs(score).ravel()), ("survival", failing)):
        columns = [
            person,
            0 * person,
            step,
            1.0 * step,
            signal,
            lost.ravel().astype(float),
            np.ones(n * steps, bool),
        ]
        data = Records(*(column[rest] for column in columns), signal_name=name)
        certifier = RecourseCertifier(0.2, signal=name).calibrate(data.take(data.person < 2000))
        saved[name] = certifier.certificate_.saved
        assert certifier.evaluate(data.take(data.person >= 2000)).risk < 0.23
    assert saved["survival"] > saved["uncertainty"] + 0.02
