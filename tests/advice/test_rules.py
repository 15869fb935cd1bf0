"""The operator's rules and people's own limits: they hold wherever plans are made or questions
asked.
"""

import json
from dataclasses import fields, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from advisors import begin, part_way, walk, words
from effort import some
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import edfa
from edfa import Advisor, Interview, Overlay, Rules, Table
from edfa.advice.batch import advise
from edfa.advice.promise import roll_out
from edfa.errors import SchemaError, SettingError, UnknownNameError

UNITS = {
    "checking_status": (),
    "duration": ("credit_amount",),
    "savings_status": ("age",),
    "purpose": (),
}
BLANKET = edfa.Blanket("class", UNITS)
RULES = Rules(
    locked=("purpose",), max_changes=1, min_probability=0.72, never_ask=("savings_status",)
)


FEATURES = ("duration", "checking_status", "purpose", "credit_amount", "savings_status")


@cache
def ruled(searcher="nearest", policy=None, rules=RULES):
    """An advisor of four questions, two of the start set, one never asked."""
    settings = {
        "predictor": edfa.SubsetXGB(n_estimators=20),
        "blanket": BLANKET,
        "threshold": "balanced",
        "alpha": 0.4,
    }
    return Advisor(**settings, searcher=searcher, policy=policy, rules=rules).fit(german())


@cache
def german():
    """German credit without any rule in its card."""
    table = edfa.load("german")
    return Table.from_frame(table.frame, replace(table.schema, rules=Rules()))


@cache
def free(searcher="nearest"):
    return ruled(searcher, rules=None)


def _keeps(plan, rules=RULES):
    changed = {change.feature for change in plan.changes}
    return (
        not changed & {*rules.locked, *rules.never_ask}
        and len(changed) <= (rules.max_changes or 99)
        and plan.probability_after >= rules.min_probability
    )


@pytest.mark.parametrize("searcher", ["nearest", "survival"])
def test_rules_hold_in_calibration_interviews_and_files_alike(searcher):
    advisor, table = ruled(searcher), german()
    fitted, never = advisor.fitted, table.schema.index("savings_status")
    assert fitted.operator_rules == RULES
    rollout = roll_out(fitted, table.test.X)
    assert (rollout.trajectory.when[:, never] < 0).all()
    assert len(rollout.plans) > 20
    assert (rollout.plans.l0 <= 1).all()
    assert (rollout.plans.probability_after >= 0.72).all()
    assert np.isnan(rollout.plans.to[:, table.schema.index("purpose")]).all()
    plans = 0
    for person in words(table)[:40]:
        asked = []
        for held in walk(begin(advisor, person), person):
            asked += [held.question.feature] if held.question else []
            plans += len(held.plans())
            assert all(map(_keeps, held.plans()))
        assert "savings_status" not in asked
        assert set(asked) == {"checking_status", "duration"}
    assert plans > 20
    told = advise(fitted, table.test.frame.drop(columns="savings_status"))
    changed = {
        change["feature"]
        for text in told["plans"]
        for plan in json.loads(text)
        for change in plan["changes"]
    }
    assert changed
    assert not changed & {"purpose", "savings_status"}
    assert told["question"].isna().all()  # nothing is left to ask of them


def test_plans_are_certified_and_measured_under_the_rules():
    assert ruled().certificate.n < free().certificate.n  # fewer have a plan at all
    assert ruled().evaluation_.coverage < free().evaluation_.coverage
    table, advisor = german(), ruled("survival")
    assert advisor.certificate.certified
    assert advisor.certificate.rules == RULES.describe()
    assert "under the operator's rules: locked: purpose" in advisor.certificate.sentence
    assert "Regeln des Betreibers" in advisor.certificate.words("de")
    assert free().certificate.rules == ()
    assert "rules" not in free().certificate.sentence
    assert (
        edfa.certification.Certificate.from_json(advisor.certificate.to_json())
        == advisor.certificate
    )
    guarantees = [
        held.guarantee
        for person in words(table)[:60]
        for held in walk(begin(advisor, person), person)
        if held.standing.may_act
    ]
    assert guarantees
    assert all("operator's rules" in guarantee for guarantee in guarantees)
    assert "locked: purpose" in advisor._repr_html_()


@pytest.mark.parametrize(
    "policy",
    ["random-blanket", *(pytest.param(p, marks=pytest.mark.long) for p in ("greedy", "random"))],
)
def test_no_policy_asks_what_is_never_asked(policy):
    table = german()
    parts = {
        "predictor": edfa.SubsetXGB("nan", n_estimators=10),
        "blanket": BLANKET,
        "searcher": "nearest",
    }
    advisor = Advisor(**parts, policy=policy, budget=12, rules=RULES).fit(table)
    person = words(table)[0]
    asked = [
        held.question.feature for held in walk(begin(advisor, person), person) if held.question
    ]
    assert asked
    assert "savings_status" not in asked
    trajectory = roll_out(advisor.fitted, table.test.X[:50]).trajectory
    assert (trajectory.when[:, table.schema.index("savings_status")] < 0).all()


def test_what_is_never_asked_is_not_left_to_ask_and_heard_if_told():
    advisor, table = ruled(), german()
    held = begin(advisor, words(table)[0])
    assert held.question.left == 2
    assert begin(free(), words(table)[0]).question.left == 3
    before = held.decision.probability
    told = [
        held.what_if({"savings_status": level}) for level in table.encoder["savings_status"].levels
    ]
    assert {other.decision.probability for other in told} != {before}
    # A refusal of what nobody is asked for changes nothing.
    for person in words(table)[:40]:
        both = [begin(advisor, person), begin(advisor, person).decline("savings_status")]
        assert both[0].standing == both[1].standing


@pytest.mark.parametrize("never", [(), ("savings_status",)])
def test_nobody_is_told_that_it_would_help_to_know_what_is_never_asked(never):
    parts = {
        "predictor": edfa.SubsetXGB(n_estimators=10),
        "blanket": BLANKET,
        "searcher": "nearest",
    }
    strict = Advisor(**parts, threshold=0.99, rules=Rules(never_ask=never)).fit(german())
    none = strict.interview({"purpose": "radio/tv"}).no_plan
    assert none.reason == "more_information_needed"
    assert "duration" in none.unlock
    assert ("savings_status" in none.unlock) == (not never)


def test_the_order_of_questions_is_learnt_under_the_rules():
    fitted = ruled("survival").fitted
    assert fitted.policy.rules == RULES
    assert sorted(fitted.policy.order_) == ["checking_status", "duration"]
    assert "savings_status" in free("survival").fitted.policy.order_
    policy = edfa.SurvivalPolicy(BLANKET, edfa.SurvivalSearch(), Rules(max_changes=2), n_people=32)
    own = ruled("survival", policy).fitted.policy
    assert own.rules == RULES.tighten(Rules(max_changes=2))
    assert policy.rules == Rules(max_changes=2)


def test_the_cards_rules_hold_without_being_given(monkeypatch):
    plain = german()
    schema = replace(plain.schema, rules=Rules(never_ask=("duration",)))
    table = Table.from_frame(plain.frame, schema)
    made = Advisor(
        predictor=edfa.SubsetXGB(n_estimators=10), blanket=BLANKET, searcher="nearest"
    ).fit(table)
    assert made.fingerprint != clone(made).fit(plain).fingerprint
    person = words(table)[0]
    asked = [held.question.feature for held in walk(begin(made, person), person) if held.question]
    assert sorted(asked) == ["checking_status", "savings_status"]
    assert "never_ask: duration" in made.certificate.rules
    run = edfa.acquire(
        table.test, edfa.acquisition.RandomBlanket(BLANKET), made.fitted.model, "inf", explain=False
    )
    assert (run.when[:, schema.index("duration")] < 0).all()
    paper = clone(made).set_params(rules=Rules(reading="paper")).fit(table)
    asked = [held.question.feature for held in walk(begin(paper, person), person) if held.question]
    assert "duration" in asked
    assert paper.certificate.rules == ("reading = paper",)


def test_the_papers_reading_is_a_setting_of_the_advisor():
    table = german()
    blanket = edfa.Blanket("class", {"credit_history": (), "duration": ()})
    assert table.schema["credit_history"].change == "frozen"
    settings = {
        "predictor": edfa.SubsetXGB(n_estimators=20),
        "blanket": blanket,
        "threshold": "balanced",
    }
    changed = {}
    for reading in ("card", "paper"):
        made = Advisor(**settings, searcher="nearest", rules=Rules(reading=reading)).fit(table)
        plans = roll_out(made.fitted, table.test.X).plans
        told = [json.loads(text) for text in advise(made.fitted, table.test.frame)["plans"]]
        changed[reading] = {
            change["feature"] for each in told for plan in each for change in plan["changes"]
        }
        assert ("credit_history" in set(plans.frame()["feature"])) == (reading == "paper")
    assert "credit_history" in changed["paper"]
    assert "credit_history" not in changed["card"]


def test_rules_are_saved_and_are_part_of_the_fingerprint(tmp_path):
    advisor = ruled()
    advisor.save(tmp_path / "advisor")
    loaded = Advisor.load(tmp_path / "advisor")
    assert loaded.rules == loaded.fitted.operator_rules == RULES
    assert loaded.fingerprint == advisor.fingerprint != free().fingerprint
    assert loaded.certificate == advisor.certificate
    for person in words(german())[:10]:
        receipts = [begin(each, person).receipt(time="then") for each in (loaded, advisor)]
        assert receipts[0] == receipts[1]
    (tmp_path / "advisor" / "rules.json").write_text(Rules().to_json())
    with pytest.raises(edfa.errors.UnreadableError, match=r"rules\.json has been changed"):
        Advisor.load(tmp_path / "advisor")


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        (Rules(locked=("purposes",)), UnknownNameError, "did you mean 'purpose'"),
        (Rules(never_ask=("durations",)), UnknownNameError, "did you mean 'duration'"),
        (Rules(only=("age",)), SchemaError, "age: the card says"),
        (
            Rules(levels={"housing": ("castle",)}),
            SettingError,
            "levels.housing: no level 'castle'",
        ),
        (
            Rules(forbidden=(("housing", "*", "castle"),)),
            SettingError,
            "forbidden.housing: no level 'castle'",
        ),
        (Rules(ranges={"housing": (1, 2)}), SchemaError, "ranges.housing"),
    ],
    ids=str,
)
def test_rules_that_do_not_fit_are_refused_before_any_work(rules, error, message, monkeypatch):
    monkeypatch.setattr(
        "edfa.advice.advisor.discover", lambda *a, **k: pytest.fail("work was spent")
    )
    with pytest.raises(error, match=message):
        Advisor(rules=rules).fit(german())
    with pytest.raises(error, match=message):
        free().interview({}, overlay=_overlay(rules))
    with pytest.raises(SettingError, match="rules"):
        Advisor(rules={"max_changes": 1})


def _overlay(rules):
    """The same limits, set by a person."""
    return Overlay(**{f.name: getattr(rules, f.name) for f in fields(Rules) if f.name in OWN})


OWN = {f.name for f in fields(Overlay)}
LIMITS = [
    Overlay(locked=("duration",)),
    Overlay(max_changes=1),
    Overlay(only=("duration",)),
    Overlay(min_probability=0.85),
    Overlay(never_ask=("checking_status",)),
    Overlay(locked=("credit_amount",), max_changes=1, never_ask=("duration",)),
    Overlay(),
]


@pytest.mark.parametrize(
    "own",
    [*LIMITS[:2], *(pytest.param(own, marks=pytest.mark.long) for own in LIMITS[2:-1]), LIMITS[-1]],
    ids=lambda c: "; ".join(c.describe()) or "nothing",
)
def test_a_persons_own_limits_hold_for_the_whole_interview(own):
    advisor, table = ruled("survival"), german()
    seen = set()
    for person in words(table)[: some(25)]:
        plain = [(h.standing, h.plans(), h.question) for h in walk(begin(advisor, person), person)]
        held = begin(advisor, person, overlay=own)
        for step, state in enumerate(walk(held, person)):
            assert state.question is None or state.question.feature not in own.never_ask
            for plan in state.plans():
                assert _keeps(plan)
                assert _keeps(plan, own)
                assert own.only is None or {change.feature for change in plan.changes} <= {
                    *own.only
                }
            assert bool(state.plans()) == (state.no_plan is None)
            if own in (
                Overlay(),
                Overlay(max_changes=1),
            ):  # the operator's rules say that already
                assert (state.standing, state.plans(), state.question) == plain[step]
            else:
                assert state.standing.for_wishes or state.standing.ending != "act"
                assert state.standing.for_wishes or not state.standing.promised
                seen |= set(state.standing.deviations)
                assert state.certificate is None or state.certificate is not advisor.certificate
            receipt = state.receipt(time="then")
            assert advisor.verify(receipt).holds
            again = Interview.from_json(state.to_json(), advisor)
            assert again.overlay == own
            assert again.receipt(time="then") == receipt
            assert state.what_if({}).plans() == state.plans()
    if own.never_ask:
        assert "declined" in seen
    assert ("limits" in seen) == (
        replace(own, never_ask=()) not in (Overlay(), Overlay(max_changes=1))
    )


def test_a_receipt_of_other_limits_does_not_hold():
    advisor, own = free(), Overlay(locked=FEATURES)
    held = next(
        interview
        for person in words(german())
        if (interview := advisor.interview(person)).plans()
        and not advisor.interview(person, overlay=own).plans()
    )
    limited = advisor.interview(dict(held.log.facts), overlay=own)
    receipt = limited.receipt()
    assert receipt.plans == ()
    assert receipt.no_plan["reason"] != "already_there"
    assert receipt.overlay["locked"] == list(own.locked)
    assert advisor.verify(receipt).holds
    assert {d.part for d in advisor.verify(replace(receipt, overlay=None)).differences} >= {
        "plans",
        "no_plan",
    }


def test_limits_only_tighten():
    advisor = ruled.__wrapped__(rules=Rules(directions={"duration": "down"}, max_changes=2))
    for own in (Rules(reading="paper"), Overlay(directions={"duration": "up"})):
        with pytest.raises(SettingError, match=r"Overlay\(|the rules say"):
            advisor.interview({}, overlay=own)
        with pytest.raises(SettingError, match=r"Overlay\(|the rules say"):
            advisor.interview({}).plans(overlay=own)
    with pytest.raises(SettingError, match="operator's to say"):
        Overlay.parse({"reading": "paper"})
    with pytest.raises(SettingError, match="prices"):
        advisor.interview({}).plans(overlay=Overlay(prices={"duration": 3.0}))
    for person in words(german())[:30]:
        held = advisor.interview(person, overlay=Overlay(max_changes=3))
        assert all(len(plan.changes) <= 2 for plan in held.plans(overlay=Overlay(max_changes=4)))


def test_there_is_always_a_word_on_why_there_is_no_plan():
    advisor, none = free(), Overlay(locked=FEATURES)
    refused = 0
    for person in words(german())[:40]:
        held = advisor.interview(person)
        assert held.plans(overlay=none) == ()
        assert held.why_no_plan(none) is not None
        assert (held.why_no_plan() is None) == bool(held.plans())
        refused += held.why_no_plan(none).reason != "already_there"
    assert refused > 3


own_limits = st.builds(
    Overlay,
    locked=st.lists(st.sampled_from(FEATURES), max_size=2, unique=True).map(tuple),
    max_changes=st.sampled_from([None, 1, 2]),
    min_probability=st.sampled_from([0.0, 0.8]),
    never_ask=st.lists(st.sampled_from(FEATURES[:2]), max_size=1).map(tuple),
    ranges=st.sampled_from([{}, {"duration": (6, 30)}]),
)


@settings(deadline=None, max_examples=some(12))
@given(st.lists(own_limits, min_size=1, max_size=4), st.integers(0, 10_000))
def test_a_file_with_rules_says_what_interviews_with_rules_say(limits, seed):
    advisor, table = ruled(), german()
    everybody = table.test.X[np.random.default_rng(seed).permutation(len(table.test))[: some(24)]]
    rows = part_way(advisor, everybody, seed)
    frame = table.encoder.decode(everybody).astype(object).where(~np.isnan(rows), None)
    whose = [limits[i % len(limits)] for i in range(len(frame))]
    told = advise(advisor.fitted, frame, overlays=pd.Series([own.to_json() for own in whose]))
    assert told["error"].isna().all()
    for row, person, own in zip(
        told.to_dict("records"), frame.to_dict("records"), whose, strict=True
    ):
        held = advisor.interview(
            {k: v for k, v in person.items() if v is not None and v == v}, overlay=own
        )
        assert row["status"] in (held.standing.status, "off_path")
        assert row["status"] == held.standing.status or {"start", "order"} & {
            *held.standing.deviations
        }
        assert (row["question"] if row["question"] == row["question"] else None) == (
            held.question.feature if held.question else None
        )
        assert row["probability"] == held.decision.probability
        assert [
            {c["feature"]: c["after"] for c in plan["changes"]} for plan in json.loads(row["plans"])
        ] == [{c.feature: c.after for c in plan.changes} for plan in held.plans()]
        if row["status"] == "no_plan":
            assert row["reason"] == held.no_plan.reason


def test_people_with_equal_rules_are_handled_together(monkeypatch):
    from edfa.advice import batch

    table, calls = german(), []
    each = batch._advise
    monkeypatch.setattr(batch, "_advise", lambda *a: calls.append(a) or each(*a))
    cells = [
        '{"max_changes": 1}',
        '{ "max_changes" : 1 }',
        "",
        None,
        {"max_changes": 1, "only": None},
        float("nan"),
    ]
    whose = pd.Series([cells[i % len(cells)] for i in range(200)], dtype=object)
    told = advise(free().fitted, table.test.frame, overlays=whose)
    assert told["error"].isna().all()
    assert sorted(len(a[1]) for a in calls) == [99, 101]
    assert (told["status"][whose.map(bool) & whose.notna()] != "act").all()


def test_rules_that_cannot_be_understood_are_their_rows_error_alone():
    table = german()
    cells = {
        1: ("{", "overlay: not JSON"),
        2: ('["purpose"]', "an object of keys and values"),
        3: ('{"lockd": ["purpose"]}', "overlay: lockd: no such key; did you mean 'locked'?"),
        4: ('{"locked": ["purposes"]}', "did you mean 'purpose'"),
        5: ('{"reading": "paper"}', "operator's to say"),
        6: ('{"max_changes": 0}', "max_changes: at least 1"),
        7: ('{"levels": {"housing": ["castle"]}}', "levels.housing: no level 'castle'"),
        8: ("7", "an object of keys and values"),
    }
    whose = pd.Series([cells.get(i, ("",))[0] for i in range(12)])
    told = advise(ruled().fitted, table.test.frame.head(12), overlays=whose)
    assert set(np.flatnonzero(told["error"].notna())) == set(cells)
    for row, (_, message) in cells.items():
        assert message in told["error"][row]
        assert "\n" not in told["error"][row]
        assert told.loc[row, ["outcome", "question", "plans", "status"]].isna().all()
    others = [i for i in range(12) if i not in cells]
    plain = advise(ruled().fitted, table.test.frame.head(12))
    for name in ("outcome", "probability", "status", "plans"):
        assert told.loc[others, name].tolist() == plain.loc[others, name].tolist()
