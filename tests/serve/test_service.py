"""The service: every action is on disk before it is answered, errors change nothing, any process
goes on.
"""

import threading
import time
from contextlib import suppress

import advisors
import pytest

from edfa import Overlay
from edfa.advice import promise
from edfa.errors import (
    EdfaError,
    FactError,
    MismatchError,
    PendingError,
    SettingError,
    UnavailableError,
    UnknownNameError,
)
from edfa_serve import service as module
from edfa_serve.service import Service
from edfa_serve.store import ConflictError, InterviewStore, UnknownInterviewError
from edfa_serve.turns import TURNS


@pytest.fixture(scope="module")
def advisor():
    return advisors.surviving()


@pytest.fixture
def store(tmp_path):
    with InterviewStore.open(tmp_path / "interviews.sqlite") as opened:
        yield opened


@pytest.fixture
def service(advisor, store):
    return Service(advisor, store)


@pytest.fixture(scope="module")
def refused(advisor):
    """A person who is refused and has a plan."""
    import edfa

    for person in advisors.words(edfa.load("german")):
        interview = advisors.begin(advisor, person)
        *_, last = advisors.walk(interview, person)
        if last.decision.refused and last.plans():
            return person
    raise AssertionError


def begun(service, person, language="en"):
    return service.begin({name: person[name] for name in service.advisor.schema.start}, language)


def to_the_end(service, token, session, person):
    while (question := session.interview.question) is not None:
        session = service.act(
            token, session.seq, "answer", {"facts": {question.feature: person[question.feature]}}
        )
    return session


def test_an_interview_over_the_service_is_the_interview(service, refused, advisor):
    token, session = begun(service, refused)
    session = to_the_end(service, token, session, refused)
    *_, plain = advisors.walk(advisors.begin(advisor, refused), refused)
    assert session.interview.to_json() == plain.to_json()
    assert session.interview.decision == plain.decision
    assert session.interview.plans() == plain.plans()


def test_an_action_runs_no_calibration_and_a_later_look_finds_it_done(
    service, refused, monkeypatch
):
    made, go_on = [], threading.Event()
    certify = promise._certify_state

    def slowly(*parts):
        go_on.wait()
        made.append(threading.current_thread().name)
        return certify(*parts)

    monkeypatch.setattr(promise, "_certify_state", slowly)
    promise.CERTIFICATES.forget()
    token, session = begun(service, refused)
    session = to_the_end(service, token, session, refused)
    session = service.act(token, session.seq, "overlay", {"overlay": {"locked": ["own_telephone"]}})
    assert session.record.standing.status == "pending"
    assert not made, "the action waits for no calibration"
    with pytest.raises(PendingError, match="still being worked out"):
        service.receipt(token)
    go_on.set()
    service.certify_later.finish()
    standing = service.find(token).record.standing
    assert standing.for_wishes
    assert standing.status in ("act", "unsure", "off_path")
    assert made == ["certify"], "one calibration, beside the requests"
    plain = service.advisor.interview(
        dict(session.interview.log.facts), overlay=Overlay(locked=("own_telephone",))
    )
    assert plain.standing.status == standing.status
    assert service.receipt(token)[1].standing["status"] == standing.status


def test_too_many_calibrations_are_asked_for_again_later(monkeypatch):
    monkeypatch.setattr(module, "CALIBRATIONS", 2)
    thread, go_on, done = module.CalibrationThread(), threading.Event(), []

    def task():
        go_on.wait()
        done.append(1)

    assert thread(task)
    while thread._tasks.qsize():  # until the thread has taken it
        time.sleep(0.001)
    assert [thread(task) for _ in range(3)] == [True, True, False]
    go_on.set()
    thread.finish()
    assert len(done) == 3


def test_another_process_goes_on_where_this_one_was(service, refused, advisor, store):
    token, session = begun(service, refused, "de")
    question = session.interview.question.feature
    other = Service(advisor, store)
    assert other.find(token).interview.language == "de"
    after = other.act(token, session.seq, "answer", {"facts": {question: refused[question]}})
    assert service.find(token).seq == after.seq
    assert service.find(token).interview.log.facts == after.interview.log.facts
    ended = to_the_end(service, token, service.find(token), refused)
    assert other.find(token).interview.to_json() == ended.interview.to_json()


def test_two_windows_cannot_answer_the_same_question(service, refused):
    token, session = begun(service, refused)
    question = session.interview.question.feature
    service.act(token, session.seq, "answer", {"facts": {question: refused[question]}})
    with pytest.raises(ConflictError):
        service.act(token, session.seq, "decline", {"name": question})
    assert service.find(token).seq == session.seq + 1


def test_two_processes_cannot_answer_the_same_question(service, refused, advisor, store):
    token, session = begun(service, refused)
    other = Service(advisor, store)
    other.find(token)
    question = session.interview.question.feature
    service.act(token, session.seq, "answer", {"facts": {question: refused[question]}})
    with pytest.raises(ConflictError):
        other.act(token, session.seq, "decline", {"name": question})
    assert other.find(token).interview.log.declined == ()


@pytest.mark.parametrize(
    ("kind", "content", "error"),
    [
        ("answer", {"facts": {"duration": "soon"}}, FactError),
        ("answer", {"facts": {"nothing": 1}}, UnknownNameError),
        ("decline", {"name": "nothing"}, UnknownNameError),
        ("choose", {"plan": "nothing"}, UnknownNameError),
        ("overlay", {"overlay": {"lokced": ["duration"]}}, SettingError),
        ("overlay", {"overlay": {"locked": ["nothing"]}}, UnknownNameError),
        ("language", {"language": "fr"}, UnknownNameError),
        ("undo", {"name": None}, EdfaError),
        ("dance", {}, UnknownNameError),
    ],
)
def test_what_cannot_be_changes_nothing(service, refused, kind, content, error):
    token, session = begun(service, refused)
    before = session.interview.to_json()
    with pytest.raises(error):
        service.act(token, session.seq, kind, content)
    after = service.find(token)
    assert (after.seq, after.interview.to_json()) == (session.seq, before)


def test_what_could_not_be_written_did_not_happen(service, refused, store, monkeypatch):
    token, session = begun(service, refused)
    question, before = session.interview.question.feature, session.interview.to_json()

    def full(*arguments, **options):
        raise UnavailableError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(store, "append", full)
        with pytest.raises(UnavailableError):
            service.act(token, session.seq, "answer", {"facts": {question: refused[question]}})
    after = service.find(token)
    assert (after.seq, after.interview.to_json()) == (session.seq, before)


def test_a_start_that_cannot_be_begins_nothing(service, store):
    with pytest.raises(FactError):
        service.begin({"age": "old"})
    assert list(store.records()) == []


def test_wishes_plan_anew_and_are_obeyed_by_another_process(service, refused, advisor, store):
    token, session = begun(service, refused)
    session = to_the_end(service, token, session, refused)
    changed = session.interview.plans()[0].changes[0].feature
    session = service.act(token, session.seq, "overlay", {"overlay": {"locked": [changed]}})
    assert all(
        change.feature != changed for plan in session.interview.plans() for change in plan.changes
    )
    assert Service(advisor, store).find(token).interview.plans() == session.interview.plans()
    back = service.act(token, session.seq, "overlay", {"overlay": {}})
    assert back.interview.plans()[0].changes[0].feature == changed


def test_undo_stop_go_on_and_choose(service, refused):
    token, session = begun(service, refused)
    question = session.interview.question.feature
    session = service.act(token, None, "decline", {"name": question})
    session = service.act(token, None, "undo", {"name": None})
    assert session.interview.question.feature == question
    session = service.act(token, None, "stop", {})
    assert not session.asking
    session = service.act(token, None, "go_on", {})
    assert session.asking
    session = to_the_end(service, token, session, refused)
    plan = session.interview.plans()[0].id
    assert service.act(token, None, "choose", {"plan": plan}).chosen == plan
    _, receipt = service.receipt(token)
    assert receipt.chosen == plan
    assert service.advisor.verify(receipt).holds


def test_who_had_only_stopped_has_not_gone_on_although_they_may_act(service):
    token, session = service.begin({"purpose": "radio/tv", "credit_amount": 2400, "age": 35})
    assert not session.record.standing.may_act
    service.act(token, None, "stop", {})
    back = service.act(token, None, "go_on", {})
    assert (back.asking, back.went_on) == (True, False)
    acting = service.act(token, None, "answer", {"facts": {"duration": 48}})
    assert acting.record.standing.may_act
    assert acting.interview.question is not None
    assert (
        not acting.asking
    )  # the page stops and shows the plan, as it does for those who never stopped
    service.act(token, None, "go_on", {})
    service.act(token, None, "stop", {})
    on = service.act(token, None, "go_on", {})
    assert (on.asking, on.went_on) == (True, True)


def test_a_receipt_is_signed_if_there_is_a_key(advisor, store, refused):
    service = Service(advisor, store, key=b"k" * 32)
    token, _ = begun(service, refused)
    _, receipt = service.receipt(token)
    assert advisor.verify(receipt, key=b"k" * 32).signature == "right"


def test_what_is_supposed_is_not_kept(service, refused):
    token, session = begun(service, refused)
    before = session.interview.to_json()
    supposed = service.find(token).interview.what_if({"duration": 6})
    assert supposed.log.facts["duration"] == 6
    assert service.find(token).interview.to_json() == before


def test_deleted_is_deleted(service, refused):
    token, _ = begun(service, refused)
    service.delete(token)
    with pytest.raises(UnknownInterviewError):
        service.find(token)
    with pytest.raises(UnknownInterviewError):
        service.act(token, None, "stop", {})


def test_an_interview_with_another_advisor_is_refused(service, refused, store):
    token = store.begin("another", [("start", {"facts": {}})])
    with pytest.raises(MismatchError, match="another advisor"):
        service.find(token)


def test_only_so_many_interviews_are_held_in_memory(service, refused):
    service._held.bound(3)
    tokens = [begun(service, refused)[0] for _ in range(8)]
    assert len(service._held) == 3
    assert {len(service.find(token).interview.log.events) for token in tokens} == {1}
    assert len(service._held) == 3
    assert len(service._locks) == module.LOCKS, "however many interviews there are"


def test_one_person_never_sees_another(service, refused):
    first, _ = begun(service, refused)
    second, _ = service.begin({"age": 61})
    assert service.find(second).interview.log.facts == {"age": 61}
    assert service.find(first).interview.log.facts["age"] == refused["age"]


def test_people_with_the_same_facts_share_what_was_worked_out(service, refused, monkeypatch):
    token, session = begun(service, refused)
    to_the_end(service, token, session, refused)
    made = []
    find = module.Interview._assess.__globals__["Assessment"].of
    monkeypatch.setattr(
        module.Assessment,
        "of",
        classmethod(lambda cls, *given, **named: made.append(1) or find(*given, **named)),
    )
    token, session = begun(service, refused)
    to_the_end(service, token, session, refused)
    assert not made


def test_what_is_only_noted_is_not_worked_out_again(service, refused, monkeypatch):
    token, session = begun(service, refused)
    said = session.record.standing, session.record.decision, session.record.question
    session = service.act(token, session.seq, "shown", {"page": "page", "status": "ask"})
    monkeypatch.setattr("edfa.advice.interview.find_standing", lambda *parts: 1 / 0)
    for name in ("decision", "question"):
        monkeypatch.setattr(module.Interview, name, property(lambda interview: 1 / 0))
    noted = service.find(token)
    assert (noted.record.standing, noted.record.decision, noted.record.question) == (
        session.record.standing,
        session.record.decision,
        session.record.question,
    )
    assert (noted.record.standing, noted.record.decision, noted.record.question) == said
    assert noted.asking == (noted.record.question is not None and not noted.record.standing.may_act)


def test_a_request_that_was_done_between_two_looks_is_answered_as_it_was_done(
    service, refused, monkeypatch
):
    token, session = begun(service, refused)
    asked, request, reply = (
        session.interview.question.feature,
        ("key", b"body"),
        service.store.reply,
    )

    def done_just_now(interview, key):
        monkeypatch.setattr(service.store, "reply", reply)
        done = service.act(
            token, None, "answer", {"facts": {asked: refused[asked]}}, request=request
        )
        assert done.seq == session.seq + 1
        return reply(interview, key)

    monkeypatch.setattr(service.store, "reply", done_just_now)
    again = service.repeated(token, request)
    assert again.seq == session.seq + 1
    assert again.interview.log.facts[asked] == refused[asked]


def test_requests_of_one_interview_at_once_do_not_wait_for_each_other_in_a_circle(
    service, refused, monkeypatch
):
    monkeypatch.setattr(TURNS, "longest", 600.0)  # so long a circle would last
    token, _ = begun(service, refused)
    seen, turns = [], []

    def note():
        for _ in range(20):
            with TURNS.take() as mine, suppress(ConflictError):  # with what another noted meanwhile
                turns.append(mine)
                seen.append(service.act(token, None, "let_down", {"plan": None}).seq)

    threads = [threading.Thread(target=note) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert turns == [True] * 60, "nobody waited until they went on without their turn"
    assert sorted(seen) == list(range(3, 3 + len(seen))), "one after the other, and none is lost"
    assert service.store.read(token).seq == max(seen)
