"""What a user holds: certificates, stops, evaluations; and what is refused."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from edfa.certification import (
    NO_PLAN,
    Certificate,
    GroupCertificates,
    Records,
    RecourseCertifier,
    certify,
    fingerprint,
    n_required,
    plan_uncertainty,
    recourse_loss,
    uncertainty,
)
from edfa.certification.examples import people
from edfa.errors import (
    ColumnError,
    DataError,
    EmptyTableError,
    MismatchError,
    SchemaError,
    SettingError,
    UnknownNameError,
    UnreadableError,
)

PROMISE = re.compile(r"at most|wrong with probability|guarantee", re.I)


def some(**columns):
    """Three people, two steps each; everything can be replaced."""
    base = {
        "person": ["a", "a", "b", "b", "c", "c"],
        "seed": [0] * 6,
        "step": [0, 1] * 3,
        "spent": [0.0, 2.0] * 3,
        "signal": [0.4, 0.1, 0.3, 0.2, 0.2, 0.3],
        "loss": [1.0, 0.0] * 3,
        "legal": [True] * 6,
    }
    return Records(**base | columns)


def without_plans(n=5):
    data = people(n)
    return data.take(slice(None)).__class__.from_frame(data.frame().assign(legal=False))


# Certificates


def test_a_certificate_says_what_it_is():
    data = people(300, seed=1, advisor="v1")
    found = certify(data, 0.2)
    assert (found.status, found.zone, found.method, found.n, found.people) == ("certified", "certified", "cp", 300, 300)
    assert found.risk < found.bound <= 0.2
    assert found.first.tau == found.curve[-1].tau > found.tau > found.last.tau == -np.inf
    assert found.first.risk > found.risk
    assert 0 < found.saved < 1
    assert found.speaks_for == 1
    assert "at most 0.2" in found.sentence
    assert "at most 0.05" in found.sentence
    assert str(found) == found.sentence
    at = [p for p in found.curve if p.tau == found.interval[0]]
    assert (at[0].risk, at[0].cost) == (found.risk, found.cost)
    after = found.curve[found.curve.index(at[0]) + 1]
    assert at[0].p <= 0.05 < after.p, "the first failure comes right after"
    assert len(found.curve) <= 202


@pytest.mark.parametrize("settings", [{}, {"bound": "paper"}, {"bound": "wsr"}, {"target": "early", "anchor": 0.1}])
@pytest.mark.parametrize("n", [5, 300])
def test_json_brings_it_back(settings, n):
    found = certify(people(n, seed=1), 0.2, **settings)
    told = json.loads(found.to_json())
    assert told["version"] == 1
    assert told["curve"][0]["tau"] == "-inf"
    assert Certificate.from_json(found.to_json()) == found


@pytest.mark.parametrize("settings", [{}, {"bound": "paper"}, {"bound": "wsr"}])
def test_every_point_of_the_curve_is_what_its_threshold_does(settings):
    data = people(150, seed=3)
    found = certify(data, 0.2, **settings)
    losses = data.frame().set_index(["person", "step"]).loss
    for point in found.curve:
        stops = replace(found, tau=point.tau).stop(data)
        lost = losses.loc[list(zip(stops.person, stops.step, strict=True))]
        assert point.risk == pytest.approx(lost.mean())
        assert point.triggered == pytest.approx(stops.triggered.mean())
        assert point.cost == pytest.approx(stops.spent.mean())
        assert point.risk < point.bound
        assert (point.p <= 0.05) == (point.bound <= 0.2)
    assert found.left_out == 0
    assert certify(without_plans(7)).left_out == 7


def test_what_cannot_be_read_is_said():
    for text in ("", "{", "[]", "{}"):
        with pytest.raises(UnreadableError, match="not a certificate as to_json writes it"):
            Certificate.from_json(text)
    with pytest.raises(UnreadableError, match="has version 2; this edfa reads version 1"):
        Certificate.from_json(certify(people(9)).to_json().replace('"version": 1', '"version": 2'))
    with pytest.raises(SchemaError, match=r"certificate.status: 'sure' is not one of"):
        Certificate.from_json(certify(people(9)).to_json().replace("data_limited", "sure"))


def test_a_step_without_a_plan_can_be_blamed():
    """Where stopping without a plan counts as a failure, such a step is legal and lost."""
    lenient = some(legal=[False, True] * 3, loss=[0.0] * 6)
    strict = some(legal=[True] * 6, loss=[1.0, 0.0] * 3)
    assert certify(lenient, 0.4, 0.4).first.risk == 0
    assert certify(strict, 0.4, 0.4).first.risk == 1


def test_a_certificate_cannot_be_changed():
    with pytest.raises(AttributeError):
        certify(people(50)).tau = 1.0


def test_all_thresholds_may_pass_and_then_one_stops_at_the_first_plan():
    data = people(200, seed=1)
    sure = Records.from_frame(data.frame().assign(loss=0.0))
    found = certify(sure, 0.2)
    assert found.complete
    assert found.tau == np.inf
    assert Certificate.from_json(found.to_json()).tau == np.inf
    steps = sure.frame()[sure.legal].groupby("person").step.min()
    assert np.array_equal(found.stop(sure).step, steps)


UNCERTIFIED = {
    "data_limited": lambda: certify(people(8), 0.1),
    "risk_limited": lambda: certify(some_risky(300), 0.1),
    "undefined": lambda: certify(without_plans()),
}


def some_risky(n):
    data = people(n)
    return Records.from_frame(data.frame().assign(loss=(data.person % 3 == 0).astype(float)))


@pytest.mark.parametrize("status", UNCERTIFIED)
def test_not_certified_means_no_promise_anywhere(status):
    found = UNCERTIFIED[status]()
    assert found.status == status
    assert not found.certified
    assert found.saved is None
    for text in (found.sentence, str(found), found._repr_html_(), found.stop(people(3)).sentence):
        assert not PROMISE.search(text), text
    assert found.sentence.startswith("No certificate")
    assert not found.stop(people(3)).triggered.any(), "the strictest rule never stops early"
    assert Certificate.from_json(found.to_json()) == found


def test_zones_of_certificates():
    few = certify(people(8), 0.1)
    assert few.n_more == n_required(0.1, 0.0, bound="cp").stable - 8 == 21
    assert any("below 29 people" in warning for warning in few.warnings)
    seven = np.arange(180) // 6 < 7  # 7 losses of 30: above alpha, but nothing is settled
    unsure = certify(Records.from_frame(people(30).frame().assign(loss=seven.astype(float), legal=True)), 0.2)
    assert (unsure.status, unsure.n_more, unsure.risk) == ("data_limited", None, 7 / 30)
    assert "too near" in unsure.sentence
    assert "more data cannot help" in UNCERTIFIED["risk_limited"]().sentence
    assert certify(people(300), 0.2).n_more is None


def test_one_person_is_data_limited():
    found = certify(people(1), 0.2)
    assert (found.status, found.n, found.n_more) == ("data_limited", 1, 13)


def test_whom_the_sentence_is_about():
    data = people(400, seed=2)
    early = certify(data, 0.25, target="early", anchor=0.1)
    assert early.sentence.startswith("Of people stopped early by this rule for whom some recourse exists")
    assert "refused where this rule stops" in certify(data, 0.25, target="refused").sentence
    assert "finds no recourse or" in certify(data, 0.25, undefined="one").sentence
    other = Records.from_frame(data.frame(), reference="all_features")
    assert "once all features are acquired" in certify(other, 0.25).sentence


def test_undefined_policies():
    data = people(200, seed=1)
    frame = data.frame()
    half = Records.from_frame(frame.assign(legal=frame.legal & (frame.person % 2 == 0)))
    found = {policy: certify(half, 0.2, undefined=policy) for policy in ("drop", "alpha", "zero", "one")}
    assert [found[p].n for p in found] == [100, 200, 200, 200]
    assert found["drop"].speaks_for == 0.5
    assert found["drop"].tau == found["alpha"].tau, "with single runs, alpha is the exact bound on the defined ones"
    assert found["zero"].tau > found["drop"].tau, "a joint risk is diluted"
    assert found["one"].status == "risk_limited", "half of the people find no recourse"
    assert certify(half, 0.2, undefined="alpha", bound="hb").tau <= certify(half, 0.2, bound="hb").tau


def test_certifier_keeps_one_certificate_and_says_so():
    certifier = RecourseCertifier(confidence_level=0.9)
    assert certifier.delta == 0.1
    with pytest.raises(Exception, match="call calibrate"):
        certifier.stop(people(2))
    assert certifier.calibrate(people(100)) is certifier
    with pytest.warns(UserWarning, match="calibrating again replaces"):
        certifier.calibrate(people(120))
    assert certifier.certificate_.n == 120


def test_walks_and_grids():
    data = people(300, seed=1)
    free = certify(data, 0.2)
    fixed = certify(data, 0.2, walk="fixed", grid=np.linspace(0, 0.5, 201))
    quantile = certify(data, 0.2, walk="quantile", grid=400)
    assert fixed.tau == pytest.approx(free.tau, abs=0.005)
    assert quantile.tau == pytest.approx(free.tau, abs=0.01)
    assert fixed.tau in np.linspace(0, 0.5, 201)
    coarse = certify(data, 0.2, walk="fixed", grid=[0.49])
    assert (coarse.certified, coarse.tau) == (True, -np.inf), "never stopping early is always the first hypothesis"


def test_looking_while_people_arrive():
    data = people(400, seed=3)
    looks = [certify(data.take(data.person < n), 0.2, horizon=400) for n in range(20, 401, 20)]
    assert {look.method for look in looks} == {"wsr"}
    assert looks[-1].certified
    assert all("one look" not in warning for look in looks for warning in look.warnings)
    statuses = [look.certified for look in looks]
    assert statuses == sorted(statuses), "what the bets have ruled out at the first threshold stays so"


# Stops and evaluations


def test_stopping_is_first_legal_step_below_else_the_last_legal_one():
    found = Certificate("certified", 0.2, 0.05, "cp", "grid_free", "all", "drop", 9, 9, 9, tau=0.25)
    stops = found.stop(some())
    assert stops.frame().to_dict("list") == {
        "person": ["a", "b", "c"],
        "seed": [0, 0, 0],
        "step": [1, 1, 0],
        "spent": [2.0, 2.0, 0.0],
        "triggered": [True, True, True],
    }
    assert stops.sentence == found.sentence
    assert found.stop(some(), "first").step.tolist() == [0, 0, 0]
    assert found.stop(some(), "last").step.tolist() == [1, 1, 1]
    assert found.stop(some(), "first").sentence == ""
    partly = found.stop(some(legal=[True, False, False, False, False, True], signal=[0.4, 0.1, 0.1, 0.1, 0.1, 0.2]))
    assert partly.step.tolist() == [0, -1, 1]
    assert partly.spent.tolist() == [2.0, 2.0, 2.0], "who never triggers has paid for everything"
    signals = [[0.4, 0.1, 0.1], [np.nan, 0.2, 0.1], [0.9, 0.9, np.nan], [np.nan] * 3]
    bare = found.stop(signals)
    assert bare.step.tolist() == [1, 1, 1, -1]
    assert bare.triggered.tolist() == [True, True, False, False]
    assert found.stop([0.9, 0.2]).step.tolist() == [1]
    with pytest.raises(SettingError, match="rule is not 'frist'; did you mean 'first'"):
        found.stop(some(), "frist")
    with pytest.raises(DataError, match="one row a run"):
        found.stop(np.zeros((2, 2, 2)))


def test_a_signal_equal_to_the_threshold_triggers():
    """The same <= in calibration and deployment; the paper's thresholds often are observed signals."""
    found = Certificate("certified", 0.2, 0.05, "paper", "quantile", "all", "drop", 9, 9, 9, tau=0.3)
    assert found.stop(some()).step.tolist() == [1, 0, 0]
    assert found.stop([[0.5, 0.3], [0.3, 0.1]]).step.tolist() == [1, 0]
    data = people(200, seed=6)
    ties = Records.from_frame(data.frame().assign(signal=np.round(data.signal, 1)))
    for settings in ({"bound": "paper"}, {"walk": "fixed", "grid": [0.1, 0.2, 0.3]}, {}):
        certifier = RecourseCertifier(0.2, **settings).calibrate(ties)
        stops, seen = certifier.stop(ties), certifier.certificate_
        losses = (
            ties.frame().set_index(["person", "step"]).loc[list(zip(stops.person, stops.step, strict=True)), "loss"]
        )
        assert losses.mean() == pytest.approx(seen.risk), "deployed on the same people, the rule has the observed risk"
        assert stops.spent.mean() == pytest.approx(seen.cost)


@pytest.mark.parametrize("settings", [{}, {"bound": "paper"}, {"walk": "fixed", "grid": [0.05, 0.1, 0.15, 0.2, 0.3]}])
def test_all_thresholds_of_the_interval_do_the_same(settings):
    data = people(300, seed=7)
    found = certify(data, 0.2, **settings)
    low, high = found.interval
    assert low <= found.tau < high
    expected = found.stop(data).step
    for tau in (low, (low + high) / 2, np.nextafter(high, low)):
        assert np.array_equal(replace(found, tau=tau).stop(data).step, expected)
    for tau in (np.nextafter(low, -1), high):
        assert not np.array_equal(replace(found, tau=tau).stop(data).step, expected)


def test_another_advisor_or_signal_is_refused():
    made = certify(people(300, advisor=fingerprint(model="a", searcher="nearest")))
    other = people(3, advisor=fingerprint(model="b", searcher="nearest"))
    with pytest.raises(MismatchError, match="made for advisor"):
        made.stop(other)
    with pytest.raises(MismatchError, match="made for advisor"):
        made.stop([[0.1, 0.2]])
    assert made.stop([[0.0, 0.2]], advisor=made.advisor).triggered.all()
    certifier = RecourseCertifier().calibrate(people(300))
    with pytest.raises(MismatchError, match="made for advisor"):
        certifier.evaluate(other)
    with pytest.raises(MismatchError, match="about the signal 'uncertainty', not 'survival'"):
        certifier.stop(Records.from_frame(people(3).frame(), signal_name="survival"))
    with pytest.raises(MismatchError, match="records carry the signal 'uncertainty'"):
        RecourseCertifier(signal="survival").calibrate(people(10))


def test_evaluation_on_held_out_people():
    certifier = RecourseCertifier(alpha=0.2).calibrate(people(400, seed=1))
    held = people(5000, seed=2)
    seen = certifier.evaluate(held)
    stops = certifier.stop(held)
    frame = held.frame().set_index(["person", "step"])
    kept = stops.step >= 0
    losses = frame.loc[list(zip(stops.person[kept], stops.step[kept], strict=True)), "loss"]
    assert seen.risk == pytest.approx(losses.mean())
    assert seen.cost == pytest.approx(stops.spent[kept].mean())
    assert seen.triggered == pytest.approx(stops.triggered[kept].mean())
    assert (seen.n, seen.people) == (kept.sum(), 5000)
    assert seen.last < seen.risk <= 0.2 + 0.02
    assert seen.first > seen.risk
    assert certifier.evaluate(without_plans()) is None


# Groups


def grouped(n=300, small=10):
    data = people(n, seed=4)
    frame = data.frame().assign(group=np.where(data.person < n - small, "large", "small"))
    return Records.from_frame(frame)


def test_groups_stand_alone():
    data = grouped()
    certifier = RecourseCertifier(alpha=0.2, groups="separate").calibrate(data)
    found = certifier.certificate_
    assert list(found) == ["large", "small"]
    assert found["large"].certified
    assert not found["small"].certified, "below the floor, and never that of all people together"
    assert found["small"].sentence.startswith("No certificate in group 'small'")
    assert not PROMISE.search(found["small"].sentence)
    alone = certify(data.take(data.group == "large"), 0.2)
    assert (found["large"].tau, found["large"].n) == (alone.tau, alone.n)
    stops = certifier.stop(data)
    assert not stops["small"].triggered.any()
    assert stops["large"].triggered.any()
    assert certifier.evaluate(data)["large"].risk == found["large"].risk
    assert GroupCertificates.from_json(found.to_json()) == found
    joint = RecourseCertifier(alpha=0.2, groups="joint").calibrate(data).certificate_
    assert joint["large"].delta == 0.025
    with pytest.raises(UnknownNameError, match="no group named 'larg'; did you mean 'large'"):
        found["larg"]
    with pytest.raises(DataError, match="need the column 'group'"):
        RecourseCertifier(groups="joint").calibrate(people(5))


# Records and losses


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ({"loss": [1.5, 0, 0, 0, 0, 0]}, DataError, "person 'a', seed 0, step 0: loss 1.5 lies outside"),
        ({"loss": [-0.1, 0, 0, 0, 0, 0]}, DataError, r"outside \[0, 1\] at a legal step"),
        ({"loss": [np.nan, 0, 0, 0, 0, 0]}, DataError, "loss nan lies outside"),
        ({"signal": [0, 0, 0, np.nan, 0, 0]}, DataError, "person 'b', seed 0, step 1: signal nan is no number"),
        ({"signal": [0, 0, 0, np.inf, 0, 0]}, DataError, "is no number"),
        ({"spent": [0, -1, 0, 0, 0, 0]}, DataError, "is no cost"),
        ({"spent": [3, 1, 0, 0, 0, 0]}, DataError, "spent 1 is less than at the step before"),
        ({"step": [0, 0, 0, 1, 0, 1]}, DataError, "person 'a' has step 0 of seed 0 twice"),
        ({"person": ["a", "a", None, "b", "c", "c"]}, DataError, "row 2 names no person"),
        ({"seed": [0, 0]}, DataError, "seed has 2 rows, step has 6"),
        ({"legal": [1, 1, 1, 0, 0, 0]}, ColumnError, "legal holds int64 where bool is due"),
        ({"step": [0, 0.5, 0, 1, 0, 1]}, ColumnError, "step holds numbers that are not whole"),
        ({"signal": ["x"] * 6}, ColumnError, "signal holds"),
        ({"group": ["x", "y", "x", "x", "x", "x"]}, DataError, "person 'a' is in two groups"),
        ({"group": [None, None, "x", "x", "x", "x"]}, DataError, "person 'a' has no group"),
    ],
)
def test_bad_records_are_refused(columns, error, match):
    with pytest.raises(error, match=match):
        some(**columns)


def test_no_records():
    with pytest.raises(EmptyTableError, match="no records"):
        Records(*[[]] * 7)


def test_what_an_illegal_step_holds_is_not_read():
    empty = some(
        legal=[False, True] * 3, loss=[np.nan, 0, np.nan, 1, 9.0, 0], signal=[np.nan, 0.1, np.nan, 0.2, -1, 0.3]
    )
    filled = some(legal=[False, True] * 3, loss=[0, 0, 0, 1, 0, 0], signal=[0, 0.1, 0, 0.2, 0, 0.3])
    assert certify(empty, 0.4, 0.4) == certify(filled, 0.4, 0.4)


def test_frames():
    data = people(4, seeds=2)
    again = Records.from_frame(pl.from_pandas(data.frame()))
    assert again.frame().equals(data.frame())
    assert certify(again) == certify(data)
    assert repr(data) == "Records(4 people, 8 runs, 48 steps)"
    single = people(50, seeds=4).one_seed(seed=3)
    assert repr(single) == "Records(50 people, 50 runs, 300 steps)"
    assert len(set(single.seed)) == 4
    assert certify(single).method == "cp"
    with pytest.raises(SettingError, match="draw one with records"):
        certify(people(50, seeds=4), bound="cp")


def test_string_and_integer_ids():
    data = people(200, seed=3, seeds=2)
    named = Records.from_frame(data.frame().assign(person=data.person.astype(str)))
    assert certify(named) == certify(data), "the order of bets is that of the written id"


def test_losses_from_predictions():
    lost = recourse_loss([0, 1, 0], [0, 0, 0], [1, 1, NO_PLAN])
    assert lost[:2].tolist() == [0, 1]
    assert np.isnan(lost[2])
    assert recourse_loss([0, 0], [0, 0], [1, 2], favourable=2).tolist() == [1, 0]
    with pytest.raises(DataError, match="changed_at_end must be class codes of shape"):
        recourse_loss([0, 1], [0, 1], [0.5, 1.0])
    chances, changed = np.array([[0.7, 0.3]]), np.array([[0.4, 0.6]])
    assert plan_uncertainty(chances, changed) == pytest.approx(0.4)
    assert uncertainty(chances) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"alpha": 0.0}, "alpha lies between 0 and 1, the ends left out, not at 0"),
        ({"alpha": 1.0}, "alpha lies between"),
        ({"alpha": -1}, "alpha lies between 0 and 1, which -1.0 does not"),
        ({"delta": 0}, "delta lies between"),
        ({"delta": float("nan")}, "delta lies between"),
        ({"alpha": "much"}, "alpha is a number"),
        ({"confidence_level": 95}, "confidence_level lies between"),
        ({"bound": "hbkl"}, "bound is not 'hbkl'; did you mean 'hb_kl'"),
        ({"walk": "gridfree"}, "did you mean 'grid_free'"),
        ({"target": "denied"}, "target is not 'denied'; known: all, early, refused"),
        ({"undefined": "nan"}, "undefined is not 'nan'"),
        ({"groups": "sex"}, "groups is not 'sex'"),
        ({"target": "early"}, "needs anchor="),
        ({"target": "refused", "undefined": "one"}, "goes with undefined="),
        ({"target": "refused", "bound": "paper"}, "not with bound='paper'"),
        ({"horizon": 100, "bound": "cp"}, "goes with bound='wsr'"),
        ({"horizon": 0}, "horizon= is a number of people"),
        ({"walk": "fixed"}, "a list of rising thresholds"),
        ({"walk": "fixed", "grid": [0.2, 0.1]}, "a list of rising thresholds"),
        ({"bound": "paper", "grid": 1}, "at least 2"),
    ],
)
def test_settings_are_checked_before_any_work(settings, match):
    with pytest.raises(SettingError, match=match):
        RecourseCertifier(**settings)


def test_other_refusals():
    with pytest.raises(DataError, match="needs the column 'refused'"):
        certify(some(), target="refused")
    with pytest.raises(SettingError, match="use RecourseCertifier"):
        certify(some(), groups="joint")


def test_a_hostile_label_shows_as_text():
    data = people(20)
    evil = "<script>x</script>"
    frame = pd.DataFrame(data.frame()).assign(group=evil)
    found = RecourseCertifier(groups="joint").calibrate(Records.from_frame(frame)).certificate_
    assert "<script>" not in found._repr_html_()
