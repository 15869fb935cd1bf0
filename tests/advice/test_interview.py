"""Interviews: what was told, what follows, taking back, wishes, bad input, receipts."""

import json
import math
from collections import Counter
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from advisors import begin, german, promising, surviving, walk, words
from hypothesis import given, settings
from hypothesis import strategies as st

import edfa
from edfa import Interview, Overlay, Receipt
from edfa.advice.receipt import read_key
from edfa.errors import (
    DataError,
    FactError,
    MismatchError,
    SettingError,
    UnknownNameError,
    UnreadableError,
)

START = {"age": 35, "purpose": "radio/tv", "credit_amount": 2400}
REFUSED = {"checking_status": "<0", "duration": 48}


@pytest.fixture
def interview():
    """Somebody who knows the start set."""
    return german().interview(START)


def test_an_interview_from_start_to_plan(interview):
    first = interview.question
    assert first.feature == "checking_status"
    assert (first.why, first.unit, first.cost, first.spent) == ("head", "checking_status", 2.0, 0.0)
    assert set(first.choices) == {"<0", "0<=X<200", ">=200", "no checking"}
    assert first.left == 2
    assert interview.answer(checking_status="<0") is interview
    second = interview.question
    assert (second.feature, second.spent, second.left) == ("duration", 2.0, 1)
    assert (second.low, second.high, second.choices) == (4.0, 72.0, ())
    interview.answer(duration=48)
    assert interview.question is None
    assert interview.decision.refused
    assert set(interview.partition.counterfactual) | set(interview.partition.semifactual) == set(
        REFUSED
    )
    for plan in interview.plans():
        changed = {c.feature: c.after for c in plan.changes}
        assert not interview.what_if(changed).decision.refused
        assert interview.what_if(changed).decision.probability == plan.probability_after
    assert interview.standing.status == "not_certified"
    assert (interview.certificate, interview.guarantee) == (None, None)


def held_against(reference):
    """The surviving advisor, as if its promise were about another reference."""
    advisor = copy(surviving())
    certificate = replace(advisor.certificate, reference=reference)
    ending = {"certificate": certificate}
    advisor.fitted_ = promising(advisor.fitted, ending=ending, reference=reference)
    return advisor


@pytest.mark.parametrize("reference", ["retrained", "trajectory_end"])
def test_on_the_path_the_certificate_is_the_advisors_up_to_the_first_time_it_says_act(reference):
    advisor, seen = held_against(reference), Counter()
    for person in words(edfa.load("german"))[:60]:
        first = None
        for step, held in enumerate(walk(begin(advisor, person), person)):
            standing = held.standing
            if first is not None and standing.signal is not None:
                assert (standing.for_wishes, standing.since, standing.deviations) == (
                    True,
                    first,
                    ("passed",),
                )
                assert (standing.status, standing.promised) == ("off_path", False)
                assert (held.certificate, held.guarantee) == (None, None)
            elif standing.signal is not None:
                # a hard case, which needs nearly all models
                hard = held.question is None and step > 0 and reference == "retrained"
                low = standing.signal <= (0.05 if hard else advisor.certificate.tau)
                assert (standing.ending, standing.promised) == ("act", low)
                assert (standing.for_wishes, standing.deviations) == (False, ())
                assert standing.status == ("act" if low else "ask" if held.question else "unsure")
                assert held.certificate is (advisor.certificate if low else None)
                assert (held.guarantee or "at most 20 will").count("at most 20 will") == 1
                first = step if low else None
            seen[standing.status, standing.for_wishes] += 1
    assert min(seen["act", False], seen["off_path", True]) > 5
    assert not seen["act", True]


def test_decisions_are_the_models_own():
    advisor, table = german(), edfa.load("german")
    for person in words(table)[:30]:
        for held in walk(begin(advisor, person), person):
            told = {
                n: held.log.facts[n] for n in advisor.fitted.blanket.features if n in held.log.facts
            }
            probabilities = advisor.fitted.model.predict_proba(
                advisor.fitted.encoder.encode_person(told)[None]
            )[0]
            assert held.decision.probability == probabilities[1]


def test_what_is_not_certified_is_never_promised():
    fitted = german().fitted
    not_certified = replace(fitted.promise.certificate, status="data_limited", tau=-math.inf)
    for certificate, status in ((not_certified, "not_certified"), (None, "not_certified")):
        held = Interview(promising(fitted, ending={"certificate": certificate})).begin(
            {**START, **REFUSED}
        )
        assert held.standing.status == status
        assert held.certificate is None
        assert held.receipt().certificate == ""


def test_whoever_leaves_the_path_is_told_nothing_of_the_advisors_certificate():
    advisor = surviving()
    wishes = {
        ("start",): advisor.interview({"age": 35, **REFUSED}),
        ("prices",): advisor.interview(
            {**START, **REFUSED}, overlay=Overlay(prices={"duration": 3})
        ),
        ("limits",): advisor.interview({**START, **REFUSED}, overlay=Overlay(locked=("purpose",))),
        ("at_once",): advisor.interview({**START, **REFUSED}),
        ("declined",): advisor.interview({**START, "duration": 48}).decline("checking_status"),
        ("order",): advisor.interview(START).answer(checking_status="<0"),
    }
    for off, held in wishes.items():
        assert held.standing.for_wishes
        assert held.standing.deviations == off
        assert held.certificate is not advisor.certificate
        assert (
            (held.standing.status == "act")
            == (held.certificate is not None)
            == (held.guarantee is not None)
        )
    assert {held.standing.status for held in wishes.values()} >= {"act", "off_path"}


def test_what_is_outside_the_blanket_changes_nothing_and_is_kept(interview):
    other = german().interview({**START, "housing": "own", "job": "skilled"})
    assert other.log.facts["housing"] == "own"
    assert other.decision == interview.decision
    assert other.question == interview.question
    both = [held.answer(REFUSED) for held in (interview, other)]
    assert both[0].plans() == both[1].plans()
    assert both[0].standing == both[1].standing


def test_a_declined_question_is_never_asked_again(interview):
    interview.decline("checking_status")
    asked = []
    while (question := interview.question) is not None:
        asked.append(question.feature)
        interview.decline(question.feature)
    assert asked == ["duration"]
    assert interview.log.declined == ("checking_status", "duration")
    interview.answer(duration=24)  # a change of mind is welcome
    assert interview.log.declined == ("checking_status",)
    assert interview.question is None


def test_undo_is_as_if_it_had_not_been_said(interview):
    before = interview.to_json(), interview.decision, interview.question, interview.standing
    interview.answer(checking_status="<0").decline("duration").undo().undo()
    assert (
        interview.to_json(),
        interview.decision,
        interview.question,
        interview.standing,
    ) == before
    with pytest.raises(DataError, match="nothing to undo"):
        interview.undo()
    interview.answer(checking_status="<0").answer(duration=48).undo("checking_status")
    assert set(interview.log.facts) == {*START, "duration"}
    assert interview.decision == german().interview(START).answer(duration=48).decision
    with pytest.raises(UnknownNameError, match="did you mean 'duration'"):
        interview.undo("durations")


def test_prices_of_ones_own_change_the_order_and_the_sum():
    dear = german().interview(START, overlay=Overlay(prices={"checking_status": 50}))
    assert dear.question.feature == "duration"
    assert dear.answer(duration=12).question.cost == 50
    assert dear.answer(checking_status="<0").timeline[-1].spent == 52
    for costs, message in (
        ({"duraton": 1}, "did you mean 'duration'"),
        ({"duration": -1}, "prices.duration"),
        ({"duration": 0}, "above zero"),
        ({"duration": "cheap"}, "prices.duration"),
        ({"duration": math.nan}, "prices.duration"),
    ):
        with pytest.raises((SettingError, UnknownNameError), match=message):
            german().interview(START, overlay=Overlay(prices=costs))


def test_what_is_locked_is_in_no_plan():
    table = edfa.load("german")
    for person in words(table)[:60]:
        held = german().interview(person, overlay=Overlay(locked=("duration",)))
        assert all(c.feature != "duration" for plan in held.plans() for c in plan.changes)
        assert all(
            c.feature != "duration"
            for p in held.plans(overlay=Overlay(max_changes=1))
            for c in p.changes
        )
    held = german().interview(
        {**START, **REFUSED}, overlay=Overlay(locked=("duration", "checking_status"))
    )
    assert held.plans() == ()
    assert held.no_plan.reason == "rules"
    assert set(held.no_plan.rules) <= {"locked: duration", "locked: checking_status"}
    assert held.no_plan.loosening
    with pytest.raises(UnknownNameError, match="did you mean 'duration'"):
        german().interview(START, overlay=Overlay(locked=("durations",)))


def test_what_if_leaves_the_interview_alone(interview):
    interview.answer(REFUSED)
    before = interview.to_json()
    other = interview.what_if({"duration": 12})
    assert other.log.facts["duration"] == 12
    assert other.decision.probability != interview.decision.probability
    assert interview.to_json() == before
    for refused in (other.receipt, other.to_json):
        with pytest.raises(DataError, match="supposed"):
            refused()
    with pytest.raises(FactError):
        interview.what_if({"duration": "long"})


def test_the_timeline_says_what_each_answer_did(interview):
    interview.answer(housing="own").answer(checking_status="<0").decline("job").answer(duration=48)
    moments = interview.timeline
    assert [m.kind for m in moments] == ["start", "answer", "answer", "decline", "answer"]
    assert [m.asked for m in moments] == [False, False, True, False, True]
    assert [m.cost for m in moments] == [0, 0, 2, 0, 2]
    assert moments[-1].spent == 4
    assert moments[-1].decision == interview.decision
    assert set(moments[-1].counterfactual) == set(interview.partition.counterfactual)


BAD = [
    (
        {"chekcing_status": "<0"},
        UnknownNameError,
        "no feature named 'chekcing_status'; did you mean 'checking_status'?",
    ),
    ({"checking_status": "< 0"}, FactError, "checking_status: no level '< 0'"),
    ({"checking_status": 3}, FactError, "checking_status: no level '3'"),
    ({"checking_status": None}, FactError, "checking_status: a value is needed"),
    (
        {"duration": "24 months"},
        FactError,
        "duration: a number is needed, not '24 months'; it is counted in months",
    ),
    ({"duration": "long"}, FactError, "duration: a number is needed"),
    ({"duration": True}, FactError, "duration: a number is needed, not True"),
    ({"duration": [24]}, FactError, "duration: a number is needed"),
    ({"duration": {"months": 24}}, FactError, "duration: a number is needed"),
    ({"duration": -2}, FactError, "duration: -2 is outside 4 to 72"),
    ({"duration": 141}, FactError, "duration: 141 is outside 4 to 72"),
    (
        {"duration": 7200},
        FactError,
        "duration: 7200 is outside 4 to 72, the values learnt from; it is counted in months",
    ),
    ({"duration": math.inf}, FactError, "duration: a finite number is needed"),
    ({"duration": math.nan}, FactError, "duration: a value is needed"),
    ({"duration": np.float64("nan")}, FactError, "duration: a value is needed"),
    ({"duration": ""}, FactError, "duration: a value is needed"),
    ({"age": 36}, FactError, "age is known already (35); undo('age') takes it back"),
    ({"age": 35}, FactError, "age is known already (35)"),
    (
        {"duration": 24, "checking_status": "castle"},
        FactError,
        "checking_status: no level 'castle'",
    ),
    ({}, FactError, "an answer names a feature and its value"),
]


@pytest.mark.parametrize(("facts", "error", "message"), BAD, ids=[str(facts) for facts, *_ in BAD])
def test_a_bad_answer_is_one_error_and_leaves_no_trace(facts, error, message, interview):
    before = interview.to_json()
    with pytest.raises(error) as raised:
        interview.answer(facts)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert interview.to_json() == before
    assert interview.question.feature == "checking_status"


def test_other_things_one_can_get_wrong(interview):
    with pytest.raises(UnknownNameError, match="did you mean 'housing'"):
        interview.decline("housin")
    with pytest.raises(FactError, match="known already"):
        interview.decline("age")
    interview.decline("housing")
    with pytest.raises(FactError, match="declined before"):
        interview.decline("housing")
    with pytest.raises(SettingError, match="k:"):
        interview.plans(k=0)
    with pytest.raises(UnknownNameError, match="language"):
        german().interview(START, language="fr")
    with pytest.raises(UnknownNameError, match="no plan named 'x'"):
        interview.receipt(chosen="x")


def test_an_answer_that_was_not_asked_for_is_recorded_as_such(interview):
    interview.answer(duration=24)
    assert not interview.log.events[-1].asked
    assert interview.answer(checking_status="<0").log.events[-1].asked
    assert interview.question is None


def test_an_empty_interview_knows_the_prior_and_asks():
    held = german().interview()
    assert held.decision.probability == pytest.approx((edfa.load("german").train.y == 1).mean())
    assert held.question.feature in german().fitted.blanket.features
    assert held.partition.counterfactual == {}
    assert held.standing.status == "granted"  # at the base rate, the prior is just enough
    assert held.receipt().facts == {}
    assert Interview.from_json(held.to_json(), german()).question == held.question


def test_numpy_values_are_plain_in_the_log(interview):
    interview.answer(duration=np.int64(24), checking_status=np.str_("<0"))
    assert json.loads(interview.to_json())["events"][-1]["facts"] == {
        "duration": 24,
        "checking_status": "<0",
    }


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from(["answer", "decline", "undo", "other"]), st.integers(0, 199)),
        max_size=8,
    )
)
def test_whatever_was_said_it_goes_on_from_json_where_it_was(moves):
    people = words(edfa.load("german"))
    held = german().interview(START)
    for move, i in moves:
        question = held.question
        try:
            if move == "undo":
                held.undo()
            elif move == "other":
                held.answer(housing=people[i]["housing"])
            elif question is not None and move == "decline":
                held.decline(question.feature)
            elif question is not None:
                held.answer({question.feature: people[i][question.feature]})
        except (FactError, DataError):
            continue
        assert held.question is None or held.question.feature not in {
            *held.log.facts,
            *held.log.declined,
        }
    again = Interview.from_json(held.to_json(), german())
    assert again.receipt(time="then") == held.receipt(time="then")
    assert again.timeline == held.timeline
    fresh = german().interview(dict(held.log.facts))
    assert fresh.decision == held.decision


def test_an_interview_goes_on_only_with_its_own_advisor(interview):
    told = json.loads(interview.to_json())
    for change, error in (
        ({"advisor": "another"}, MismatchError),
        ({"version": 99}, UnreadableError),
    ):
        with pytest.raises(error):
            Interview.from_json(json.dumps(told | change), german())
    for text in ("", "[]", "{}", "nothing"):
        with pytest.raises(UnreadableError):
            Interview.from_json(text, german())


def test_a_receipt_holds_and_says_when_it_does_not(interview, tmp_path):
    interview.answer(REFUSED)
    chosen = interview.plans()[0].id
    receipt = interview.receipt(chosen=chosen)
    assert receipt == Receipt.from_json(receipt.to_json())
    assert set(receipt.facts) == {*START, *REFUSED}
    assert set(receipt.unknown) == set(german().schema.names) - set(receipt.facts)
    assert receipt.advisor == german().fingerprint
    assert not receipt.signed
    assert "not signed" in receipt.sentence
    found = german().verify(receipt.to_json())
    assert found.holds
    assert found.signature == "none"

    forged = replace(receipt, decision={**receipt.decision, "outcome": "good"})
    assert [d.part for d in german().verify(forged).differences] == ["decision"]
    events = [*receipt.events[:-1], {**receipt.events[-1], "facts": {**REFUSED, "duration": 12}}]
    parts = {d.part for d in german().verify(replace(receipt, events=tuple(events))).differences}
    assert parts >= {"facts", "decision"}
    assert not german().verify(replace(receipt, advisor="another")).holds
    assert (
        not german()
        .verify(replace(receipt, events=({"kind": "start", "facts": {"age": "old"}},)))
        .holds
    )
    assert not german().verify(replace(receipt, chosen="none of them")).holds
    for text in ("{}", "[]", "receipt"):
        with pytest.raises(UnreadableError):
            german().verify(text)


def test_a_signature_shows_every_change(interview, tmp_path):
    (tmp_path / "key").write_bytes(b"an operator's key of some length\n")
    key = read_key(tmp_path / "key")
    signed = interview.receipt(key=key)
    assert german().verify(signed, key).signature == "right"
    assert german().verify(signed).signature == "not_checked"
    assert german().verify(signed, b"another key of enough bytes").signature == "wrong"
    told = json.loads(signed.to_json())
    for name in set(told) - {"version", "signature"}:
        other = {**told, name: _other(told[name])}
        if other[name] is None:  # an empty list: of names, or of plans
            other[name] = [{}] if name == "plans" else ["x"]
        if name in ("question", "chosen") and told[name] is None:
            other[name] = "x"
        assert german().verify(json.dumps(other), key).signature == "wrong", name
        assert not german().verify(json.dumps(other), key).holds
    (tmp_path / "short").write_bytes(b"short")
    with pytest.raises(SettingError, match="at least 16"):
        read_key(tmp_path / "short")
    with pytest.raises(UnreadableError):
        read_key(tmp_path / "absent")


def test_a_receipt_whose_signature_was_taken_off_does_not_hold(interview):
    """Without this, whoever takes the signature off may change what no replay shows: the time."""
    key = b"the operator's own key"
    content = json.loads(interview.receipt(key=key).to_json())
    assert german().verify(json.dumps(content), key).holds
    bare = json.dumps(content | {"signature": "", "key": "", "time": "2001-01-01T00:00:00+00:00"})
    verified = german().verify(bare, key)
    assert (verified.signature, verified.holds) == ("missing", False)
    assert "The signature is missing" in str(verified)
    assert german().verify(bare).holds, "nobody with the key has looked"
    strange = json.dumps(content | {"signature": "ünsigned"})
    assert german().verify(strange, key).signature == "wrong"


def _other(value):
    """Something else of the same kind."""
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, bool | int | float):
        return value + 1
    if isinstance(value, list):
        return value[:-1] if value else None
    return {**(value or {}), "x": "1"}


def test_an_interview_that_has_not_begun_knows_nothing_and_says_so():
    """Whatever is looked at first: nothing has been told, and nothing is promised."""
    empty = german().interview()
    for look in (
        "standing",
        "decision",
        "question",
        "partition",
        "no_plan",
        "timeline",
        "certificate",
        "guarantee",
    ):
        assert getattr(Interview(german().fitted), look) == getattr(empty, look)
    assert Interview(german().fitted).plans() == empty.plans()
