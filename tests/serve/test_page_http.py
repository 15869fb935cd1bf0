"""The page without a browser: every form and its redirect, two windows, forgeries, escaping, what
is recorded.
"""

import json
import re
import threading
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest
from effort import some
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pages_at_work import START, TRIAL, form_of, read, send
from starlette.testclient import TestClient

import edfa
from edfa import Feature, Schema
from edfa.advice.assessment import Decision
from edfa.advice.interview import Interview
from edfa.advice.promise import CERTIFICATES
from edfa.advice.standing import Standing
from edfa.text import narrate
from edfa_serve.app import create_app
from edfa_serve.limits import changeable
from edfa_serve.service import Service
from edfa_serve.settings import WebSettings
from edfa_serve.store import InterviewStore
from edfa_serve.timeline import draw, show_steps
from edfa_serve.view import supposable
from edfa_serve.wording import Wording

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
EVIL = "<img src=x onerror=alert(1)>\"'{{7*191}}"


def token_of(client):
    return client.cookies["edfa"]


def events(service, client):
    return service.store.read(token_of(client)).events


def refused(client):
    """A person who is refused and may act, on the result page."""
    return send(client, client.get("/interview"), "answer", fact__duration="48")


def test_an_interview_to_a_receipt_that_verifies(begun, advisor):
    page = begun.get("/interview")
    assert "At most 2 questions are left, this one among them" in page.text
    result = send(begun, page, "answer", fact__duration="48")
    assert result.url.path == "/result"
    text = read(result).text
    assert "As far as we know: refused" in text
    assert "You may act on the first plan now" in text
    assert "at most 20 do what the plan says" in text
    chosen = send(begun, result, "choose")
    assert "You have chosen plan A" in chosen.text
    receipt = begun.get("/receipt.json")
    assert "attachment" in receipt.headers["content-disposition"]
    assert advisor.verify(receipt.text).holds
    assert json.loads(receipt.text)["chosen"] == advisor_plan(advisor)[0].id
    assert "48 months" in begun.get("/receipt").text


def advisor_plan(advisor):
    facts = {"purpose": "radio/tv", "credit_amount": 2400, "age": 35}
    return advisor.interview(facts).answer(duration=48).plans()


def test_plan_cards_say_what_the_plan_says(begun, advisor):
    plan = advisor_plan(advisor)[0]
    text = read(refused(begun)).text
    (change,) = plan.changes
    assert f"now: {change.before} months → then: {change.after} months or fewer" in text
    assert (
        f"{round(100 * plan.probability_after)} of 100 instead of "
        f"{round(100 * plan.probability_before)} of 100"
    ) in text
    assert f"{plan.support} people in our records" in text


def test_going_on_keeps_the_way_back_to_the_promise(begun):
    went_on = send(begun, refused(begun), "go_on")
    assert went_on.url.path == "/interview"
    assert "You may act already" in went_on.text
    last = send(begun, went_on, "answer", fact__checking_status="=0:<0")
    assert last.url.path == "/result"
    undone = send(begun, last, "undo")
    assert "You may act on the first plan now" in undone.text


def test_declining_plans_without_it(begun, advisor, service):
    page = send(begun, begun.get("/interview"), "decline")
    assert form_of(page, "answer")[1]["feature"] == "checking_status"
    assert "It tells us whether our advice will last" in page.text, (
        "the figures are of people who told the first too"
    )
    CERTIFICATES.forget()
    gate = threading.Event()
    service.certify_later(gate.wait)  # the thread has something else to do first
    result = send(begun, page, "answer", fact__checking_status="=0:<0")
    assert "We are still working out whether the first plan is certain" in read(result).text
    gate.set()
    service.certify_later.finish()
    result = begun.get("/result")
    expected = advisor.interview({"purpose": "radio/tv", "credit_amount": 2400, "age": 35}).decline(
        "duration"
    )
    expected.answer(checking_status="<0")
    status = {"act": "Yes", "ask": "Not yet", "no_plan": "No plan"}.get(
        expected.standing.status, "No promise"
    )
    assert f"May I act now? {status}" in read(result).text
    assert (
        f"{Wording(advisor.schema, 'en').label('duration')}: you would rather not say"
        in read(result).text
    )


def test_a_tie_that_is_refused_says_that_more_is_needed(advisor):
    wording = Wording(advisor.schema, "en")
    refused = Decision(0.70, "bad", favourable=False, threshold=0.70)
    told = narrate.estimate(refused, wording.schema)
    assert told == "Our estimate for “granted” is 70 of 100; more than that is needed."
    granted = Decision(0.70, "good", favourable=True, threshold=0.70)
    told = narrate.estimate(granted, wording.schema)
    assert told == "Our estimate for “granted” is 70 of 100; 70 are needed."


def test_stopping_and_going_on(begun):
    result = send(begun, begun.get("/interview"), "stop")
    assert result.url.path == "/result"
    assert send(begun, result, "go_on").url.path == "/interview"


def test_the_result_can_ask_too(begun):
    result = begun.get("/result")
    answered = send(begun, result, "answer", fact__duration="12")
    assert answered.url.path == "/result"
    wrong = send(begun, answered, "answer")
    assert wrong.status_code == 422
    assert read(wrong).text.startswith("Error:")


@pytest.mark.parametrize(("language", "error"), [("en", "Error:"), ("de", "Fehler:")])
def test_what_was_entered_is_kept_when_it_is_wrong(client, language, error):
    page = client.post("/begin", data=START | {"fact.age": '"><b>old', "language": language})
    assert page.status_code == 422
    text = read(page).text
    assert text.startswith(error)
    fields = read(page).forms[0]["fields"]
    assert fields["fact.age"] == '"><b>old'
    assert fields["fact.credit_amount"] == "2400"
    assert fields["fact.purpose"] == "=6:radio/tv"
    assert '<a href="#f12">' in page.text
    assert 'aria-describedby="f12-range f12-error"' in page.text
    assert "set-cookie" not in page.headers


def test_every_field_has_a_label_and_every_id_is_one(begun):
    result = refused(begun)
    pages = [
        begun.get(path)
        for path in ("/", "/interview", "/result", "/what-if", "/receipt", "/delete")
    ]
    for page in [result, *pages]:
        reader = read(page)
        assert len(reader.ids) == len(set(reader.ids))
        assert set(reader.inputs) <= reader.labelled
        assert re.search(r"\sstyle=|<style|<script(?! src)|\son\w+=", page.text) is None


def test_headers_and_cookie(begun, service):
    for path in (
        "/",
        "/interview",
        "/result",
        "/what-if",
        "/receipt",
        "/receipt.json",
        "/delete",
        "/deleted",
    ):
        headers = begun.get(path).headers
        assert headers["content-security-policy"] == POLICY
        assert headers["cache-control"] == "no-store"
        assert "HX-Request" in headers["vary"]
        assert token_of(begun) not in begun.get(path).text
    plain = begun.post("/begin", data=START, follow_redirects=False)
    assert plain.status_code == 303
    assert plain.headers["location"] == "/interview"
    assert {part.strip().lower() for part in plain.headers["set-cookie"].split(";")[1:]} == {
        "httponly",
        "path=/",
        "samesite=lax",
    }
    secure = TestClient(create_app(service, WebSettings()), base_url="https://testserver")
    cookie = secure.post("/begin", data=START, follow_redirects=False).headers["set-cookie"]
    assert cookie.startswith("__Host-edfa=")
    assert "secure" in cookie.lower()


def test_two_windows(begun, service):
    first, second = begun.get("/interview"), begun.get("/result")
    assert send(begun, first, "answer", fact__duration="48").status_code == 200
    stale = send(begun, second, "answer", fact__duration="12")
    assert stale.status_code == 409
    assert "You answered this in another window" in stale.text
    assert "refused" in stale.text
    assert service.find(token_of(begun)).interview.log.facts["duration"] == 48


def test_looking_in_another_window_makes_no_form_stale(begun):
    form = begun.get("/interview")
    for path in ("/result", "/what-if", "/receipt", "/receipt.json", "/delete"):
        begun.get(path)
    begun.post("/language", data=form_of(form, "answer")[1] | {"language": "de"})
    assert send(begun, form, "answer", fact__duration="48").status_code == 200


@pytest.mark.parametrize("seq", ["", "-1", "99", "x", "1" * 400, "²"])
def test_a_form_that_has_seen_what_is_not_there_is_stale(begun, seq):
    assert (
        send(begun, begun.get("/interview"), "answer", fact__duration="48", seq=seq).status_code
        == 409
    )


def test_forged_forms_change_nothing(begun, service):
    action, fields = form_of(begun.get("/interview"), "answer")
    before = len(events(service, begun))
    fields |= {"fact.duration": "48"}
    forged = [
        begun.post(action, data=fields | {"csrf": ""}),
        begun.post(action, data=fields | {"csrf": "0" * 32}),
        begun.post(action, data=fields, headers={"Origin": "https://evil.example"}),
        begun.post(action, data=fields, headers={"Origin": "null"}),
        begun.post(action, data=fields, headers={"Sec-Fetch-Site": "cross-site"}),
        begun.post("/delete", data={}),
        begun.post("/overlay", data={}),
        begun.post("/language", data={"language": "de"}),
        begun.post("/what-if", data={}),
        begun.post("/begin", data=START, headers={"Origin": "http://testserver.evil.example"}),
    ]
    assert [page.status_code for page in forged] == [403] * len(forged)
    assert len(events(service, begun)) == before
    same = begun.post(
        action,
        data=fields,
        headers={"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"},
    )
    assert same.status_code == 200


def test_one_persons_form_does_not_serve_another(begun, service):
    other = TestClient(create_app(service, TRIAL))
    other.post("/begin", data=START)
    action, fields = form_of(other.get("/interview"), "answer")
    assert begun.post(action, data=fields | {"fact.duration": "48"}).status_code == 403


def test_two_processes_serve_one_interview(begun, advisor, store):
    other = TestClient(
        create_app(Service(advisor, store), TRIAL), cookies={"edfa": token_of(begun)}
    )
    form = begun.get("/interview")
    result = send(other, form, "answer", fact__duration="48")
    assert result.status_code == 200
    assert read(begun.get("/result")).text == read(other.get("/result")).text


def test_without_an_interview(client):
    for path in ("/interview", "/result", "/receipt", "/receipt.json", "/what-if", "/delete"):
        page = client.get(path)
        assert page.status_code == 404
        assert "We cannot find your interview" in page.text
    client.cookies["edfa"] = "nobody's"
    assert client.get("/interview").status_code == 404
    assert client.post("/interview", data={"do": "answer"}).status_code == 404


@pytest.mark.parametrize("do", ["shown", "overlay", "language", "start", "nonsense", "receipt"])
def test_forms_do_only_what_they_offer(begun, service, do):
    before = [event.kind for event in events(service, begun)]
    action, fields = form_of(begun.get("/interview"), "answer")
    assert begun.post(action, data=fields | {"do": do}).status_code == 422
    assert [e.kind for e in events(service, begun) if e.kind != "shown"] == [
        k for k in before if k != "shown"
    ]


def test_what_is_shown_is_recorded_once(begun, service):
    for _ in range(3):
        begun.get("/interview")
        begun.get("/result")
    refused(begun)
    begun.get("/result")
    shown = [event.content for event in events(service, begun) if event.kind == "shown"]
    assert [(c["page"], c["outcome"], c.get("refusal_shown", False)) for c in shown] == [
        ("question", "good", False),
        ("result", "good", False),
        ("result", "bad", True),
    ]
    assert shown[-1]["status"] == "act"
    assert shown[-1]["plans"] == [
        plan.id for plan in service.find(token_of(begun)).interview.plans()
    ]
    assert shown[0]["question"] == "duration"
    assert "48" not in json.dumps(shown)


def test_a_second_refusal_is_not_the_first(begun, service):
    result = refused(begun)
    send(begun, send(begun, result, "go_on"), "answer", fact__checking_status="=0:<0")
    flags = [
        e.content.get("refusal_shown", False) for e in events(service, begun) if e.kind == "shown"
    ]
    assert sum(flags) == 1


def test_limits_plan_again(begun, service):
    result = refused(begun)
    assert "limits of your own can end a promise" in read(result).text.lower()
    locked = send(begun, result, "apply", hard__duration="locked")
    assert "Planned again: no plan." in read(locked).text
    assert service.find(token_of(begun)).interview.overlay.locked == ("duration",)
    free = send(begun, locked, "remove")
    assert "Planned again" not in free.text
    narrow = send(begun, free, "apply", low__duration="5", high__duration="6", hard__duration="5")
    overlay = service.find(token_of(begun)).interview.overlay
    assert overlay.ranges == {"duration": (5, 6)}
    assert overlay.difficulty == {"duration": 5}
    fields = form_of(narrow, "apply")[1]
    assert (fields["low.duration"], fields["high.duration"], fields["hard.duration"]) == (
        "5",
        "6",
        "5",
    )
    for plan in service.find(token_of(begun)).interview.plans():
        assert all(
            5 <= change.after <= 6 for change in plan.changes if change.feature == "duration"
        )
    service.certify_later.finish()
    assert "from 5 to 6" in read(begun.get("/receipt")).text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"low__duration": "9", "high__duration": "5"}, "must not be above"),
        ({"low__duration": "many"}, "enter a number"),
        ({"high__duration": "1e999"}, "enter a number"),
        ({"hard__duration": "7"}, "choose one"),
    ],
)
def test_limits_that_cannot_be_are_said(begun, service, fields, message):
    page = send(begun, refused(begun), "apply", **fields)
    assert page.status_code == 422
    assert message in read(page).text
    assert not any(event.kind == "overlay" for event in events(service, begun))
    kept = form_of(page, "apply")[1]
    for name, value in fields.items():
        if not name.startswith("hard"):
            assert kept[name.replace("__", ".")] == value


def test_what_if_keeps_nothing(begun, service):
    refused(begun)
    action, fields = "/what-if", read(begun.get("/what-if")).forms[1]["fields"]
    before = events(service, begun)
    page = begun.post(action, data=fields | {"fact.duration": "6"})
    assert page.url.query == b""
    assert "The decision would be “granted”." in read(page).text
    assert "It would make no difference." in read(begun.post(action, data=fields)).text
    wrong = begun.post(action, data=fields | {"fact.duration": "soon"})
    assert wrong.status_code == 422
    assert events(service, begun) == before


def test_nothing_sensitive_can_be_changed_or_supposed(advisor, begun):
    names = {*changeable(advisor.fitted), *supposable(advisor.fitted)}
    assert names
    assert not any(advisor.schema[name].sensitive for name in names)
    assert all(advisor.schema[name].actionable for name in changeable(advisor.fitted))
    fields = {name for form in read(refused(begun)).forms for name in form["fields"]}
    assert not any(
        f"{kind}.{name}" in fields
        for kind in ("hard", "low", "fact")
        for name in advisor.schema.sensitive
    )


def test_what_is_sensitive_has_no_control_although_it_counts(evil_advisor):
    fitted = evil_advisor.fitted
    assert fitted.background.visible[fitted.schema.index("sex")]
    assert changeable(fitted) == ("debt", "home")
    assert supposable(fitted) == ("debt", "home")


@pytest.mark.parametrize("do", ["stop", "decline", "undo"])
def test_old_windows_do_nothing(begun, service, do):
    went_on = send(begun, refused(begun), "go_on")
    old = begun.get("/interview")
    send(begun, went_on, "answer", fact__checking_status="=0:<0")
    before = events(service, begun)
    assert send(begun, old, do).status_code == 409
    assert [e for e in events(service, begun) if e.kind != "shown"] == [
        e for e in before if e.kind != "shown"
    ]


def test_changing_one_answer(begun, service):
    result = refused(begun)
    action, fields = next(
        (form["action"], form["fields"])
        for form in read(result).forms
        if form["fields"].get("feature") == "duration" and ("do", "undo") in form["buttons"]
    )
    page = begun.post(action, data=fields | {"do": "undo"})
    assert page.url.path == "/interview"
    assert "duration" not in service.find(token_of(begun)).interview.log.facts


def test_deleting(begun, service):
    token = token_of(begun)
    page = begun.post("/delete", data=read(begun.get("/delete")).forms[-1]["fields"])
    assert page.url.path == "/deleted"
    assert "edfa" not in begun.cookies
    begun.cookies["edfa"] = token
    assert begun.get("/result").status_code == 404


def test_german_and_back(begun, service):
    german = begun.post(
        "/language",
        data=form_of(begun.get("/result"), "answer")[1] | {"language": "de", "to": "/result"},
    )
    assert german.url.path == "/result"
    assert '<html lang="de">' in german.text
    assert "Kann ich jetzt handeln?" in german.text
    assert service.find(token_of(begun)).interview.language == "de"
    away = form_of(german, "answer")[1] | {"language": "xx", "to": "https://evil.example/"}
    assert (
        begun.post("/language", data=away, follow_redirects=False).headers["location"]
        == "/interview"
    )


def test_the_browsers_language(client):
    assert (
        'lang="de"'
        in client.get("/", headers={"Accept-Language": "fr-FR,de;q=0.8,en;q=0.5"}).text[:60]
    )
    assert 'lang="en"' in client.get("/", headers={"Accept-Language": "fr"}).text[:60]
    assert 'lang="de"' in client.get("/?language=de").text[:60]
    assert (
        'lang="en"'
        in client.get("/?language=%3Cscript%3E", headers={"Accept-Language": ""}).text[:60]
    )


def test_the_lists_never_say_never(begun):
    text = read(refused(begun)).text
    assert "Made no difference here" in text
    assert "never matter" not in text
    assert "whatever" not in text


def test_the_timeline_counts_options(advisor):
    interview = advisor.interview({"purpose": "radio/tv", "credit_amount": 2400, "age": 35})
    interview.answer(duration=48).answer(checking_status="<0")
    steps = show_steps(interview, Wording(advisor.schema, "en"))
    may = [name for name in advisor.schema.names if advisor.schema[name].actionable]
    expected = [
        sum(name in may for name in m.counterfactual) * m.decision.refused
        for m in interview.timeline
    ]
    assert [step.options for step in steps] == expected
    assert [step.price for step in steps] == [0, 2, 4]
    assert [step.stop for step in steps] == ["", "here you may act", ""]
    assert len(draw(steps).points) == 3


def test_the_timeline_is_drawn_without_styles(begun):
    text = refused(begun).text
    drawing = text[text.index('<svg class="timeline"') :].partition("</svg>")[0]
    assert "style=" not in drawing
    assert drawing.count("<circle") + drawing.count('<path class="stop"') > 1


def test_the_first_page_is_light(client):
    page = client.get("/", headers={"Accept-Encoding": "identity"})
    addresses = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    files = [client.get(address, headers={"Accept-Encoding": "identity"}) for address in addresses]
    assert len(addresses) <= 2
    assert sum(len(answer.content) for answer in [page, *files]) <= 30 * 1024
    assert all("immutable" in answer.headers["cache-control"] for answer in files)


def test_files_of_the_page(client):
    address = re.search(r'"(/static/[^"]+css)"', client.get("/").text)[1]
    plain = client.get(address, headers={"Accept-Encoding": "identity"})
    zipped = client.get(address, headers={"Accept-Encoding": "gzip"})
    assert plain.content == zipped.content
    assert zipped.headers["content-encoding"] == "gzip"
    assert client.get("/static/0/style.css").headers["cache-control"] == "no-cache"
    for name in ("nothing.css", "..%2fpages.py", "__init__.py"):
        assert client.get(f"/static/0/{name}").status_code == 404


@pytest.fixture(scope="module")
def evil_advisor():
    """An advisor whose card is full of markup."""
    random = np.random.default_rng(0)
    n = 1_200
    debt, home = random.uniform(0, 10, n), random.choice([EVIL, "rent", "</script><b>"], n)
    sex = random.choice(["f", "m"], n)
    good = (debt - 3 * (home == "rent") - 4 * (sex == "f") + random.normal(0, 1, n)) < 3
    frame = pd.DataFrame(
        {"debt": debt, "home": home, "sex": sex, "y": np.where(good, EVIL, "</title>no")}
    )
    schema = Schema(
        features=(
            Feature(
                "debt",
                "continuous",
                change="down",
                label=f"debt {EVIL}",
                unit=EVIL,
                ask=EVIL,
                hint=EVIL,
            ),
            Feature("home", "categorical", cost=0, start=True, change="free", label=f"home {EVIL}"),
            Feature("sex", "categorical", cost=0, start=True, sensitive=True, change="frozen"),
        ),
        target="y",
        favourable=EVIL,
        title=EVIL,
    )
    return edfa.Advisor(predictor=edfa.SubsetXGB(n_estimators=20)).fit(
        edfa.Table.from_frame(frame, schema)
    )


def test_a_card_full_of_markup_is_escaped(evil_advisor, store):
    client = TestClient(create_app(Service(evil_advisor, store), TRIAL))
    pages = [client.get("/"), client.post("/begin", data={"fact.home": f"=1:{EVIL}"})]
    pages.append(send(client, pages[-1], "answer", fact__debt=EVIL))
    assert pages[-1].status_code == 422
    pages.append(send(client, pages[-1], "answer", fact__debt="9"))
    pages += [client.get(path) for path in ("/result", "/what-if", "/receipt")]
    known = service_facts(client, evil_advisor, store)
    assert known == {"home": EVIL, "debt": 9.0}
    for page in pages:
        assert "<img" not in page.text
        assert "<b>" not in page.text
        assert page.text.count("</title>") == page.text.count("<title")
        assert "1337" not in read(page).text
        assert EVIL in read(page).text


def service_facts(client, advisor, store):
    return dict(Service(advisor, store).find(token_of(client)).interview.log.facts)


def test_another_advisor_ends_the_interview(begun, evil_advisor, store):
    other = TestClient(
        create_app(Service(evil_advisor, store), TRIAL), cookies={"edfa": token_of(begun)}
    )
    page = other.get("/interview")
    assert page.status_code == 410
    assert "earlier version" in page.text


def test_the_letter_is_offered_where_letters_are_written(begun, service):
    assert 'href="/letter"' not in refused(begun).text
    assert begun.get("/letter").status_code == 422

    class Writer:
        decided, contacts = False, {"en": "", "de": ""}

        def can_write(self, session):
            return self.decided

        def __call__(self, session, template):
            return f"<p>{session.interview.decision.outcome}", {"kind": "eu"}

    begun.app.state.write_letter = writer = Writer()
    assert 'href="/letter"' not in begun.get("/result").text  # nobody has decided yet
    writer.decided = True
    assert 'href="/letter"' in begun.get("/result").text
    assert 'href="/letter"' in begun.get("/receipt").text
    letter = begun.get("/letter")
    assert letter.text == "<p>bad"
    assert "script-src" not in letter.headers["content-security-policy"]
    assert "default-src 'none'" in letter.headers["content-security-policy"]
    assert (events(service, begun)[-1].kind, events(service, begun)[-1].content) == (
        "letter",
        {"kind": "eu"},
    )


def test_a_store_that_is_opened_again_has_the_interview(begun, advisor, store, tmp_path):
    refused(begun)
    with InterviewStore.open(tmp_path / "interviews.sqlite") as again:
        other = TestClient(
            create_app(Service(advisor, again), TRIAL), cookies={"edfa": token_of(begun)}
        )
        assert "refused" in other.get("/result").text


@pytest.mark.parametrize(("status", "said"), [("off_path", True), ("unsure", True), ("act", False)])
def test_what_was_promised_before_is_not_taken_back(begun, monkeypatch, status, said):
    refused(begun)
    passed = Standing(
        status, promised=status == "act", since=1, deviations=("passed",), for_wishes=True
    )
    monkeypatch.setattr(Interview, "standing", property(lambda interview: passed))
    assert (
        "What you were promised after step 1 is not taken back" in begun.get("/result").text
    ) == said


@settings(
    max_examples=some(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    path=st.sampled_from(
        [
            "/begin",
            "/interview",
            "/overlay",
            "/what-if",
            "/language",
            "/delete?",
            "/result",
            "/nowhere",
        ]
    ),
    fields=st.dictionaries(
        st.sampled_from(
            [
                "do",
                "feature",
                "plan",
                "seq",
                "from",
                "to",
                "language",
                "hard.duration",
                "low.duration",
            ]
        )
        | st.sampled_from(
            ["fact.duration", "fact.age", "fact.checking_status", "fact.duration~", "high.duration"]
        ),
        st.sampled_from(
            [
                "answer",
                "undo",
                "decline",
                "duration",
                "48",
                "=0:<0",
                "locked",
                "de",
                "-",
                "",
                "1e400",
                "\x00",
            ]
        )
        | st.text(max_size=30),
    ),
    raw=st.binary(max_size=20),
)
def test_whatever_is_sent_nothing_breaks(begun, path, fields, raw):
    if "edfa" not in begun.cookies or begun.get("/interview").status_code != 200:
        begun.post("/begin", data=START)
    known = form_of_any(begun)
    body = urlencode(
        {name: text.encode("utf-8", "replace") for name, text in (known | fields).items()}
    ).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = begun.post(path, content=body + b"&" + raw, headers=headers)
    assert answer.status_code < 500
    if "html" in answer.headers["content-type"]:
        assert "<script>" not in answer.text


def form_of_any(client):
    """What any form of the present page carries."""
    page = client.get("/interview")
    fields = next(form["fields"] for form in read(page).forms if "seq" in form["fields"])
    return {name: fields[name] for name in ("csrf", "seq")}
