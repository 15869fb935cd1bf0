"""Copies of an interview: the same was told in each, and each goes on alone."""

import advisors
import pytest

from edfa.advice.interview import Interview
from edfa.cache import Cache
from edfa.data.rules import Overlay
from edfa.errors import UnknownNameError

FACTS = {"purpose": "radio/tv", "credit_amount": 2400, "age": 35}


def held(**options):
    return Interview(advisors.surviving().fitted, **options).begin(FACTS).answer(duration=48)


def test_a_copy_goes_on_alone():
    interview = held(overlay=Overlay(prices={"housing": 2.0}, locked=("housing",)))
    kept, other = interview.to_json(), interview.copy()
    assert other.to_json() == kept
    other.answer(checking_status="<0").decline("housing")
    assert interview.to_json() == kept
    interview.undo()
    assert other.log.facts["duration"] == 48


def test_a_copy_in_another_language_says_the_same():
    interview = held()
    other = interview.copy(language="de")
    assert (other.language, interview.language) == ("de", "en")
    assert other.decision == interview.decision
    assert other.plans() == interview.plans()
    assert other.guarantee != interview.guarantee
    with pytest.raises(UnknownNameError):
        interview.copy(language="fr")


def test_a_copy_under_other_limits_is_the_interview_that_was_held_under_them():
    interview, limits = held(), Overlay(locked=("duration",))
    other = interview.copy(overlay=limits)
    assert other.to_json() == held(overlay=limits).to_json()
    assert other.plans() == held(overlay=limits).plans() != interview.plans()
    assert other.copy(overlay=Overlay()).plans() == interview.plans()


def test_interviews_share_what_was_worked_out():
    states = Cache("interviews", 8)
    first = held(states=states)
    assert len(states) == 2
    assert held(states=states).assessment is first.assessment
    assert (
        first.copy().answer(checking_status="<0").assessment
        is held(states=states).answer(checking_status="<0").assessment
    )
    states.forget()  # forgotten: worked out again, the same
    assert held(states=states).decision == first.decision


def test_what_was_supposed_stays_so_in_a_copy():
    assert held().what_if({"duration": 6}).copy().supposed
