"""No dishonest certificate: none from training people, none about nothing, and none refused for
what nobody asks.
"""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from advisors import surviving
from scipy.stats import binom

import edfa
from edfa import Rules
from edfa.advice import promise
from edfa.advice.calibration_people import _by_chance, check_disjoint_from_training, encode_complete
from edfa.advice.fitted import Ending, Promise
from edfa.advice.promise import choose_certifier, draw_judges
from edfa.certification.records import Records
from edfa.errors import ColumnError, DataError
from edfa.predictors.committee import fold_of

TABLE = edfa.load("german")
OTHERS = TABLE.calibration.frame.drop(columns="class")
TRAINING = TABLE.train.frame.drop(columns="class")
MODEL = {"predictor": edfa.SubsetXGB(n_estimators=20), "threshold": "balanced"}


@cache
def advisor():
    return edfa.Advisor(**MODEL, reference="trajectory_end").fit(TABLE)


def test_training_people_are_refused_whatever_they_come_as():
    with pytest.raises(
        DataError, match=r"^these are the people the advisor was fitted on; certify on others$"
    ):
        advisor().certify(TABLE.train)
    everybody = "600 of 1000 people are among those the advisor was fitted on; certify on others"
    for people in (TABLE, TABLE.frame):
        with pytest.raises(DataError, match=everybody):
            advisor().certify(people)
    with pytest.raises(DataError, match="600 of 600 people are among"):
        advisor().certify(TABLE.train.X)
    mixed = pd.concat([OTHERS.head(28), TRAINING.head(12)]).sample(frac=1, random_state=0)
    with pytest.raises(
        DataError, match="12 of 40 people are among those the advisor was fitted on"
    ):
        advisor().certify(mixed)


def test_no_work_is_spent_on_people_who_are_refused(monkeypatch):
    monkeypatch.setattr("edfa.advice.advisor.dry_run", lambda *a: pytest.fail("work was spent"))
    with pytest.raises(DataError, match="among those"):
        advisor().certify(TRAINING)


def test_a_few_with_the_facts_of_training_people_are_a_warning():
    fitted = advisor().fitted
    strangers = np.concatenate([TABLE.calibration.X, TABLE.test.X])
    assert check_disjoint_from_training(strangers, strangers, fitted) == ()
    one = np.concatenate([TABLE.calibration.X, TABLE.train.X[:1]])
    assert check_disjoint_from_training(one, one, fitted) == (
        "1 of 201 people have exactly the facts of a training person",
    )
    made = edfa.Advisor(**MODEL, reference="trajectory_end")
    made.fitted_ = fitted
    assert (
        "1 of 201 people have exactly the facts of a training person" in made.certify(one).warnings
    )
    assert not any("training person" in warning for warning in advisor().certificate.warnings)


def coarse(share):
    """A table of which all facts are two numbers from 1 to ``share``: strangers with equal facts
    are common.
    """
    random = np.random.default_rng(0)
    facts = random.integers(1, share + 1, (1000, 2))
    frame = pd.DataFrame(facts, columns=["a", "b"]).assign(
        y=np.where(random.random(1000) < 0.5, "no", "yes")
    )
    features = tuple(edfa.Feature(name, "continuous") for name in ("a", "b"))
    return edfa.Table.from_frame(frame, edfa.Schema(features, "y", "yes"))


@pytest.mark.parametrize("share", [10, 40, 200])
def test_strangers_with_the_same_facts_are_no_training_people(share):
    """As many twins as chance brings are let through, whether that is everybody, a third, or a
    few.
    """
    table = coarse(share)
    fitted = SimpleNamespace(train=table.train, calibration=table.calibration.X)
    known = {*map(tuple, table.train.X.tolist())}
    twins = sum(tuple(row) in known for row in table.test.X.tolist())
    messages = check_disjoint_from_training(table.test, table.test.X, fitted)
    assert twins in {10: range(195, 201), 40: range(40, 80), 200: range(1, 10)}[share]
    assert messages == (f"{twins} of 200 people have exactly the facts of a training person",)
    if (
        share > 10
    ):  # where nearly every stranger has a twin, nobody can tell them from training people
        half = np.concatenate([table.test.X[:100], table.train.X[:100]])
        with pytest.raises(DataError, match="of 200 people are among those"):
            check_disjoint_from_training(half, half, fitted)


def test_the_probability_of_twins_by_chance_is_the_binomial_tail():
    for count, n, seen, of in [
        (0, 40, 0, 200),
        (1, 40, 0, 200),
        (12, 40, 3, 200),
        (40, 40, 10, 20),
        (5, 200, 9, 500),
    ]:
        expected = binom.sf(count - 1, n, (seen + 1) / (of + 2))
        assert _by_chance(count, n, seen, of) == pytest.approx(expected, rel=1e-9)


def test_one_person_twice_is_told():
    fitted, people = advisor().fitted, TABLE.calibration.X
    twice = np.concatenate([people, people[:10]])
    (message,) = check_disjoint_from_training(twice, twice, fitted)
    assert message.startswith(
        "10 of 210 people have exactly the facts of another of them, more than chance explains"
    )
    table = coarse(10)  # where it is chance, nothing is said of it
    known = SimpleNamespace(train=table.train, calibration=table.calibration.X)
    assert not any(
        "another of them" in told
        for told in check_disjoint_from_training(table.test, table.test.X, known)
    )
    many = np.tile(people, (4, 1))  # more than there are training people
    assert any(
        "600 of 800 people" in told for told in check_disjoint_from_training(many, many, fitted)
    )


AT_ONCE = {
    "blanket": edfa.Blanket("class", {"checking_status": (), "credit_amount": (), "purpose": ()}),
    "budget": 1.5,
}
"""Only the start set is known: what matters and is not known costs 2."""


@pytest.mark.parametrize(
    ("loss", "target"), [("in_vain", "early"), ("let_down", "early"), ("let_down", "all")]
)
def test_nothing_asked_is_nothing_promised(loss, target):
    settings = {"reference": "trajectory_end", "loss": loss, "target": target}
    made = edfa.Advisor(**MODEL, **AT_ONCE, **settings).fit(TABLE)
    certificate = made.certificate
    assert certificate.n > 30  # people with a plan, none of whom can fail at their only step
    assert not certificate.certified
    assert not certificate.asked
    assert certificate.sentence == (
        "No certificate: nothing is asked, so there is nothing to promise about acting early."
    )
    assert "es wird nichts gefragt" in certificate.words("de")
    assert (made.evaluation_.n, made.fitted.certificate_for(None)) == (0, None)
    assert not any(each.certified or each.asked for each in made.endings.values())
    assert {told.n for told in made.evaluation_.endings.values()} == {0}
    assert advisor().certificate.asked


def at_once(n, lost, reference):
    """People who act at the only step there is, the first ``lost`` of them in vain."""
    return Records(
        person=np.arange(n),
        seed=np.zeros(n, dtype=int),
        step=np.zeros(n, dtype=int),
        spent=np.zeros(n),
        signal=np.linspace(0.1, 0.3, n),
        loss=(np.arange(n) >= n - lost).astype(float),
        legal=np.ones(n, dtype=bool),
        reference=reference,
        loss_name="let_down",
    )


@pytest.mark.parametrize("reference", ["retrained", "all_features"])
@pytest.mark.parametrize("target", ["early", "all"])
def test_people_who_act_at_once_are_promised_what_can_be_broken(reference, target):
    ending = Ending(signal="survival", target=target)
    promise = Promise((ending,), reference=reference)
    fitted = SimpleNamespace(promise=promise)
    certifier = choose_certifier(fitted, ending, at_once(300, 15, reference), 200, promise.ceiling)
    assert certifier.target == "act"
    certified = certifier.certificate_for(at_once(200, 10, reference))
    assert certified.certified
    assert (certified.risk, certified.tau) == (0.05, 0.5)
    assert not certifier.certificate_for(at_once(200, 60, reference)).complete
    same_end = SimpleNamespace(promise=replace(promise, reference="trajectory_end"))
    vacuous = choose_certifier(same_end, ending, at_once(300, 0, "trajectory_end"), 200)
    assert vacuous.target == "early"
    assert not vacuous.certificate_for(at_once(200, 0, "trajectory_end")).certified


def test_where_nobody_of_the_training_people_acts_the_loosest_rule_alone_is_tested():
    silent = replace(at_once(100, 0, "trajectory_end"), signal=np.full(100, 0.9))
    for signal, anchor in (("survival", 0.5), ("uncertainty", np.inf)):
        promise = Promise((Ending(signal=signal),))
        fitted = SimpleNamespace(promise=promise)
        certifier = choose_certifier(fitted, promise.ending, silent, 100, promise.ceiling)
        assert (certifier.target, certifier.anchor) == ("early", anchor)
        certificate = certifier.certificate_for(silent)
        assert not certificate.certified
        nobody = (
            "nobody whom this rule tells to act before everything is asked "
            "among the 100 people with a plan"
        )
        assert nobody in certificate.sentence


def test_what_nobody_asks_may_be_empty_wrong_or_missing():
    fitted = advisor().fitted
    asked = [name for name, counts in zip(TABLE.schema.names, fitted.asked, strict=True) if counts]
    unasked = [name for name in TABLE.schema.names if name not in asked]
    assert {"checking_status", "duration"} <= set(asked)
    assert len(unasked) > 10
    made = edfa.Advisor(**MODEL, reference="trajectory_end")
    made.fitted_ = fitted
    whole = made.certify(OTHERS)
    assert made.certify(OTHERS[asked]) == whole
    spoilt = OTHERS.assign(housing=None, job="astronaut", residence_since="long")
    assert made.certify(spoilt) == whole
    assert np.isnan(encode_complete(spoilt, fitted).X[:, TABLE.schema.index("job")]).all()
    with pytest.raises(
        DataError, match="row 0: duration is empty; a certificate is made on complete people"
    ):
        made.certify(OTHERS.assign(duration=None))
    with pytest.raises(ColumnError, match="no column 'duration'"):
        made.certify(OTHERS.drop(columns="duration"))


@pytest.mark.parametrize("reference", ["trajectory_end", "retrained"])
def test_a_feature_of_the_blanket_that_is_never_asked_may_be_empty(reference):
    rules = Rules(never_ask=("savings_status",))
    blanket = edfa.Blanket("class", {"checking_status": (), "duration": (), "savings_status": ()})
    made = edfa.Advisor(**MODEL, blanket=blanket, rules=rules, reference=reference).fit(TABLE)
    assert made.fitted.relevant[TABLE.schema.index("savings_status")]
    first = made.certificate
    empty = made.certify(OTHERS.assign(savings_status=None))
    assert (empty.people, empty.n) == (first.people, first.n)
    if reference == "trajectory_end":  # which knows as little about it as the advisor
        assert (empty.tau, empty.risk) == (first.tau, first.risk)


def test_a_promise_against_all_features_needs_all_of_them():
    made = edfa.Advisor(**MODEL, reference="all_features").fit(TABLE)
    first = made.certificate
    assert made.certify(OTHERS) == first
    assert not made.fitted.asked[TABLE.schema.index("housing")]
    with pytest.raises(
        DataError, match="row 0: housing is empty; the reference 'all_features' needs every feature"
    ):
        made.certify(OTHERS.assign(housing=None))
    with pytest.raises(
        ColumnError,
        match=r"no column 'housing'.*; the reference 'all_features' needs every feature",
    ):
        made.certify(OTHERS.drop(columns="housing"))


def test_who_judges_learnt_from_is_known_again_by_what_is_known():
    """Rows without the features nobody asks get a judge that has left the person out, as complete
    rows do.
    """
    fitted, people = surviving().fitted, TABLE.calibration.X
    partly = np.where(fitted.asked, people, np.float32(np.nan))
    assert np.isnan(partly).any(axis=1).all()
    whole = draw_judges(fitted, people)
    assert np.array_equal(fold_of(whole), fold_of(np.arange(len(people))))
    equal = pd.DataFrame(partly).duplicated(keep=False).to_numpy()
    assert not equal.all()
    assert np.array_equal(draw_judges(fitted, partly)[~equal], whole[~equal])
    assert np.array_equal(
        fold_of(draw_judges(fitted, partly)), fold_of(np.arange(len(people)))
    )  # in the same order
    others = draw_judges(fitted, TABLE.test.X)
    assert len(np.unique(fold_of(others))) == 4


def test_plans_are_replayed_once_for_each_promise(monkeypatch):
    calls = []
    once = promise.replay_endings
    monkeypatch.setattr(
        promise,
        "replay_endings",
        lambda *a, **k: calls.append(k["against"].reference) or once(*a, **k),
    )
    edfa.Advisor(**MODEL, reference="retrained").fit(TABLE)
    assert calls == ["retrained"] * 3  # training people, calibration people, test people
    calls.clear()
    made = edfa.Advisor(**MODEL).fit(TABLE)
    assert sorted(calls[:3]) == ["all_features", "retrained", "trajectory_end"]
    assert set(calls[3:]) == {made.fitted.promise.reference}
    calls.clear()
    made.certify(OTHERS)
    assert len(calls) == 2
