"""What plans, receipts and advisors show of themselves: escaped, whole, and with every fact in
it.
"""

import json
import re
from dataclasses import replace
from typing import get_args

import pytest
from webpage import checked

import edfa
from edfa.advice.receipt import Receipt
from edfa.advice.standing import Status
from edfa.recourse.plans import Change, Plan, Reason
from edfa.text import phrases
from edfa.text.summaries import advisor_html, plan_html, receipt_html

EVIL = "<img src=x onerror=document.title='owned'>"
PLAN = Plan(
    id="a1b2",
    person=0,
    seed=0,
    step=1,
    number=0,
    changes=(Change("duration", 24, 12.5, 8, 14), Change("employment", "<1", "1<=X<4")),
    reached="good",
    probability_before=0.43,
    probability_after=0.61,
    l0=2,
    l2=1.0,
    heom=1.0,
    effort=1.25,
    valid=True,
    inlier=None,
    inlier_base=None,
    invalidation=None,
    survival=None,
    survival_error=None,
    unknown=(),
)


@pytest.fixture(scope="module")
def receipt():
    """A receipt with everything in it that a receipt may have."""
    change = {"feature": EVIL, "before": "<1", "after": EVIL, "low": None, "high": None}
    plan = {
        "id": EVIL,
        "changes": [change],
        "reached": EVIL,
        "probability_before": 0.2,
        "probability_after": 0.7,
    }
    return Receipt(
        time="2026-01-01T00:00:00+00:00",
        advisor=EVIL,
        versions={},
        language="en",
        facts={EVIL: EVIL, "age": 35},
        unknown=("housing",),
        declined=(EVIL,),
        spent=2.5,
        events=(),
        overlay={"locked": [EVIL]},
        flags=(EVIL,),
        decision={"outcome": EVIL, "probability": 0.31, "favourable": False, "threshold": None},
        question=EVIL,
        plans=(plan,),
        no_plan={"reason": "nothing_flips"},
        k=3,
        chosen=EVIL,
        standing={"status": "not_certified"},
        certificate=EVIL,
    )


def test_a_plan_shows_its_changes_and_what_is_known_about_it():
    text = checked(plan_html(PLAN))
    assert "duration" in text
    assert "8 to 14" in text
    assert "43% → 61%" in text
    assert "1.25" in text
    assert "everything is known" not in text, "its survival is not known"
    measured = replace(
        PLAN,
        survival=0.9,
        survival_error=0.05,
        invalidation=0.2,
        inlier=False,
        valid=False,
        unknown=("age", "job"),
    )
    more = checked(plan_html(measured))
    for part in ("90% ± 5%", "20%", "hardly any", "no", "age, job"):
        assert part in more


def test_a_plan_shows_open_ends_time_and_people():
    changes = (Change("duration", 48, 36, None, 36), Change("residence_since", 1, 3, 2, None))
    plan = replace(PLAN, changes=changes, months=30.0, support=1234, support_share=0.853)
    text = checked(plan_html(plan))
    for part in ("36 or fewer", "2 or more", "2.5 years", "1234", "85%", "good"):
        assert part in text
    assert "training people" not in checked(plan_html(PLAN)), "nobody counted"
    assert "takes" not in checked(plan_html(PLAN))


def test_both_languages_have_the_same_keys_and_places():
    english, german = (phrases.table(language, "summary") for language in ("en", "de"))
    assert english.keys() == german.keys()
    for key, entry in english.items():
        assert sorted(re.findall(r"{\w+}", entry)) == sorted(re.findall(r"{\w+}", german[key])), key
    assert {f"reason.{name}" for name in get_args(Reason)} | {
        f"status.{name}" for name in get_args(Status)
    } <= {*english}


def test_a_plan_and_a_receipt_in_german(receipt):
    plan = replace(
        PLAN, months=30.0, support=1234, support_share=0.853, survival=0.9, survival_error=0.051
    )
    text = checked(plan_html(plan, "de"))
    for part in (
        "12.5",
        "8 bis 14",
        "1234",
        "85\u00a0%",
        "± 5,1\u00a0%",
        "2,5 Jahre",
    ):
        assert part in text
    told = replace(receipt, facts={"duration": 48}, spent=2.5)
    text = checked(receipt_html(told, "de"))
    for part in (
        "nicht unterschrieben",
        "Was bekannt war",
        "48",
        "kein Zertifikat",
        "nichts ändert",
        "2,5",
    ):
        assert part in text
    english = [
        entry
        for entry in phrases.table("en", "summary").values()
        if len(entry) > 12 and "{" not in entry
    ]
    assert [entry for entry in english if entry in text] == []
    assert replace(told, language="de")._repr_html_() == receipt_html(told, language="de")
    assert replace(told, language="xx")._repr_html_() == receipt_html(told)


def test_a_plan_is_escaped():
    hostile = replace(
        PLAN, id=EVIL, reached=EVIL, changes=(Change(EVIL, EVIL, EVIL, EVIL, "b"),), unknown=(EVIL,)
    )
    shown = plan_html(hostile)
    assert EVIL not in shown
    assert checked(shown).count(EVIL) == 7


def test_a_receipt_shows_all_of_it_escaped(receipt):
    shown = receipt_html(receipt)
    assert EVIL not in shown
    text = checked(shown)
    assert text.count(EVIL) == 14
    for part in ("not signed", "31%", "not certified", "2.5", "35", "nothing flips", "20% → 70%"):
        assert part in text
    assert "Signed with HMAC" in checked(receipt_html(receipt.sign(b"a key of the operator")))


def test_a_receipt_from_a_file_shows_itself_whatever_its_parts_lack(receipt):
    parts = json.loads(receipt.to_json()) | {
        "decision": {},
        "standing": {},
        "plans": [{}],
        "no_plan": None,
    }
    assert "What was known" in checked(receipt_html(Receipt.from_json(json.dumps(parts))))
    empty = replace(receipt, plans=(), facts={}, chosen=None)
    assert "<caption>" not in receipt_html(empty)


def test_an_advisor_before_and_after_it_is_fitted():
    settings = {"blanket": EVIL, "alpha": 0.2}
    assert "Not fitted yet" in checked(advisor_html(settings))
    shown = advisor_html(
        settings, fingerprint=EVIL, certificate=EVIL, evaluation=EVIL, blanket=f"y\n└── {EVIL}"
    )
    assert EVIL not in shown
    text = checked(shown)
    assert text.count(EVIL) == 5
    assert "└──" in text
    assert "Not fitted yet" not in text


def test_a_real_interview_s_receipt_and_plans_show_themselves():
    model = edfa.SubsetXGB(n_estimators=10)
    advisor = edfa.Advisor(predictor=model, threshold="balanced", searcher="nearest").fit(
        edfa.load("german")
    )
    interview = advisor.interview({"age": 35, "checking_status": "<0", "duration": 48})
    text = checked(receipt_html(interview.receipt()))
    assert interview.decision.outcome in text
    assert advisor.fingerprint in text
    assert interview.plans()
    for plan in interview.plans():
        assert plan.id in text
        assert plan.id in checked(plan_html(plan))
