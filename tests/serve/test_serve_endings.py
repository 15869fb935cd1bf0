"""The three endings of an interview on the page, over the API, on receipts and in the operator's
view: no verdict before one is reached, its headline when it is, and nothing more asked.
"""

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from advisors import always, held, made_up_endings, never
from pages_at_work import KEY, LETTERS, TRIAL, read, send
from starlette.testclient import TestClient

from edfa_serve.app import create_app
from edfa_serve.service import Service
from edfa_serve.states import interview_state
from edfa_serve.statistics import summarise
from edfa_serve.store import InterviewStore, utc_now

ENDINGS = ("granted", "act", "nothing")
HEADLINES = {
    "granted": ("In all probability: granted", "Aller Voraussicht nach: bewilligt"),
    "act": ("You may act now", "Sie können jetzt handeln"),
    "nothing": (
        "At present nothing you could change would help",
        "Zurzeit würde nichts helfen, was Sie ändern könnten",
    ),
}
EARLY = ("It cannot be said yet", "Das lässt sich noch nicht sagen")


@pytest.fixture
def site(tmp_path):
    """Makes a client of a page with an advisor, and its service."""
    stores = []

    def made(advisor, settings=TRIAL):
        stores.append(InterviewStore.open(tmp_path / f"{len(stores)}.sqlite"))
        service = Service(advisor, stores[-1])
        return TestClient(create_app(service, settings)), service

    yield made
    for store in stores:
        store.close()


def enter(client, service, name, language="en"):
    """Hold an interview with this person in a browser, up to what they know."""
    interview = held(service.advisor, name)
    start, *answers = interview.log.events
    token, session = service.begin(start.facts, language)
    for event in answers:
        session = service.act(token, None, "answer", {"facts": dict(event.facts)})
    client.cookies.set("edfa", token)
    return token, session


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ENDINGS)
def test_the_page_shows_the_ending_as_its_headline_and_asks_no_more(site, name, language):
    client, service = site(always(name))
    token, session = enter(client, service, name, language)
    page = client.get("/result")
    headline = HEADLINES[name][language == "de"]
    assert f"<h1>{headline}" in page.text
    decided = service.advisor.schema.outcome("bad", language)
    assert (decided in read(page).text.split("?")[0]) == (name != "granted")
    assert session.record.question is not None
    assert not session.asking
    assert 'value="answer"' not in page.text
    for sentence in session.record.say_standing(session.record.standing):
        assert sentence in read(page).text
    assert session.interview.guarantee in read(page).text
    if name == "nothing":
        helps = {"en": "Changing this would help", "de": "Das zu ändern würde helfen"}[language]
        assert helps not in page.text
    on = send(client, page, "go_on")
    assert on.url.path == "/interview"
    assert 'value="answer"' in on.text
    assert service.find(token).went_on


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ENDINGS)
def test_before_an_ending_the_page_has_no_verdict_and_nothing_green(site, name, language):
    client, service = site(never())
    enter(client, service, name, language)
    for path in ("/result", "/interview"):
        page = client.get(path).text
        assert EARLY[language == "de"] in page
        assert 'class="part open"' in page
        assert not re.search(r'class="part (good|bad)"', page)
        assert not re.search(r'class="standing (yes|granted|nothing)"', page)
    told = read(client.get("/result")).text
    for headlines in HEADLINES.values():
        assert headlines[language == "de"] not in told
    assert service.advisor.schema.outcome("bad", language) not in told
    supposed = client.get("/what-if")
    assert supposed.status_code == 200


def test_without_a_certificate_one_is_asked_on_all_the_same(site):
    client, service = site(made_up_endings())
    _, session = enter(client, service, "act")
    assert session.record.standing.status == "not_certified"
    page = client.get("/result").text
    assert 'class="standing wait"' in page
    assert "Please go on before you act" in page
    assert "there is no certificate" not in page


def test_what_is_supposed_before_an_ending_has_no_verdict_either(site):
    client, service = site(never())
    enter(client, service, "nothing")
    page = client.get("/what-if")
    form = next(form for form in read(page).forms if form["action"] == "/what-if")
    then = client.post("/what-if", data=form["fields"] | {"w.age": "60"})
    assert then.status_code == 200
    assert "The decision would" not in then.text
    assert "cannot be said yet" in then.text or "would make no difference" in then.text


@pytest.mark.parametrize("name", ENDINGS)
def test_the_api_says_which_ending_it_is(site, name):
    client, service = site(always(name))
    token, session = enter(client, service, name)
    state = interview_state(session)
    told = state.standing
    assert (told.status, told.ending, told.promised, told.ends) == (name, name, True, True)
    assert told.may_act == (name == "act")
    assert told.guarantee == session.interview.guarantee
    assert not state.asking
    assert interview_state(service.act(token, None, "go_on", {})).asking


def test_the_api_says_that_it_is_too_early(site):
    client, service = site(never())
    _, session = enter(client, service, "granted")
    state = interview_state(session)
    assert (state.standing.status, state.standing.ending) == ("ask", "granted")
    assert (state.standing.promised, state.standing.ends, state.asking) == (False, False, True)
    assert state.standing.guarantee is None
    assert state.decision.sentence.startswith("It cannot be said yet")


@pytest.mark.parametrize("name", ENDINGS)
def test_a_receipt_names_the_ending_and_is_compared_in_all_of_it(name):
    advisor = always(name)
    interview = held(advisor, name)
    receipt = interview.receipt()
    said = (receipt.standing["status"], receipt.standing["ending"], receipt.standing["promised"])
    assert said == (name, name, True)
    assert receipt.certificate == interview.guarantee != ""
    assert receipt.certificate_id == advisor.fitted.promise.certificate_id
    assert advisor.verify(receipt).holds
    for change in (
        {"standing": {**receipt.standing, "promised": False}},
        {"standing": {**receipt.standing, "ending": "act" if name != "act" else "granted"}},
        {"certificate": ""},
    ):
        forged = advisor.verify(replace(receipt, **change))
        assert not forged.holds
        assert any(part.part.startswith(next(iter(change))) for part in forged.differences)
    other = made_up_endings(granted=0.1, act=0.1, nothing=0.1)
    assert not other.verify(receipt).holds, "another certificate, another promise"


@pytest.mark.parametrize("language", ["en", "de"])
def test_whom_to_talk_to_is_named_where_the_operator_says_it(site, language):
    silent, service = site(always("nothing"))
    enter(silent, service, "nothing", language)
    client, service = site(always("nothing"), LETTERS)
    enter(client, service, "nothing", language)
    contact = client.app.state.write_letter.contacts[language]
    assert contact
    assert contact in read(client.get("/result")).text
    assert contact not in read(silent.get("/result")).text
    enter(client, service, "act", language)
    assert contact not in read(client.get("/result")).text


def test_a_refusal_counts_as_shown_only_where_it_is_told(site):
    client, service = site(never())
    token, session = enter(client, service, "nothing")
    assert session.record.decision.refused
    client.get("/result")
    client.get("/interview")
    assert not service.find(token).refusal_shown
    client, service = site(always("nothing"))
    token, _ = enter(client, service, "nothing")
    client.get("/result")
    assert service.find(token).refusal_shown


def test_the_operator_sees_each_certificate_and_how_interviews_end(site):
    client, service = site(always("act"), replace(TRIAL, operator_key=KEY))
    for name in ("act", "nothing"):
        enter(client, service, name)
        client.get("/result")
    records = service.store.records(utc_now() - timedelta(days=1))
    steps = summarise(records, (), ()).steps
    assert {end for _, end in steps} == {"act", "nothing"}
    page = client.get("/operator", headers={"Authorization": f"Bearer {KEY}"})
    for name, certificate in service.advisor.endings.items():
        assert f"<p>{name}: {certificate.sentence}" in page.text
    columns = re.search(r"How many questions were put</caption>(.*?)</thead>", page.text, re.S)[1]
    assert re.findall(r">([a-z ]+)</th>", columns) == [
        *("questions", "granted", "may act", "nothing helps", "stopped", "open")
    ]
