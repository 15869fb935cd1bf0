"""The API: the interview that the library holds, errors that name the field, requests that may be
sent again.
"""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import advisors
import pytest
from web_service import (
    HERE,
    OPERATOR,
    SIGNING,
    bearer,
    begin,
    problem,
    refused_person,
    serving,
    start_facts,
    to_the_end,
)

from edfa.advice import promise
from edfa.advice.receipt import Receipt


@pytest.fixture
def client(tmp_path):
    with serving(tmp_path / "interviews.sqlite") as opened:
        yield opened


def act(client, headers, what, **body):
    return client.post(f"{HERE}/{what}", json=body, headers=headers)


def test_an_interview_over_the_api_is_the_interview(client):
    headers, state = begin(client)
    to_the_end(client, headers, state)
    state = settled(client, headers)
    *_, plain = advisors.walk(
        advisors.begin(advisors.surviving(), refused_person()), refused_person()
    )
    assert state["decision"]["probability"] == plain.decision.probability
    assert state["standing"]["status"] == plain.standing.status
    assert [plan["id"] for plan in state["plans"]] == [plan.id for plan in plain.plans()]
    assert state["facts"] == dict(plain.log.facts)
    assert "donor" not in json.dumps(state)
    assert client.get(HERE, headers=headers).json() == state


def settled(client, headers):
    """The state of an interview when everything has been worked out."""
    client.app.state.service.certify_later.finish()
    return client.get(HERE, headers=headers).json()


def test_a_post_runs_no_calibration_and_a_later_get_has_it(client, monkeypatch):
    go_on, certify = threading.Event(), promise._certify_state
    monkeypatch.setattr(promise, "_certify_state", lambda *parts: go_on.wait() and certify(*parts))
    promise.CERTIFICATES.forget()
    headers, state = begin(client)
    state = to_the_end(client, headers, state)
    state = act(client, headers, "overlay", overlay={"locked": ["own_telephone"]}).json()
    assert state["standing"]["status"] == "pending"
    assert state["standing"]["sentence"].startswith("We are still working out")
    assert not state["standing"]["may_act"]
    problem(client.post(f"{HERE}/receipt", headers=headers), 503, "pending")
    unchanged = client.get(HERE, headers=headers).json()
    assert (unchanged["standing"]["status"], unchanged["seq"]) == ("pending", state["seq"])
    go_on.set()
    assert settled(client, headers)["standing"]["status"] in ("act", "unsure", "off_path")
    assert client.post(f"{HERE}/receipt", headers=headers).status_code == 200


def test_words_come_in_the_language(client):
    headers, state = begin(client, language="de")
    assert (
        state["question"]["label"]
        == advisors.surviving().schema[state["question"]["feature"]].said("de").label
    )
    english = act(client, headers, "language", language="en").json()
    assert english["decision"]["sentence"] != state["decision"]["sentence"]
    schema = client.get("/api/v1/schema?language=de").json()
    said = [feature.said("de").label for feature in advisors.surviving().schema]
    assert [feature["label"] for feature in schema["features"]] == said
    problem(client.get("/api/v1/schema?language=fr"), 422, "unknown-name")


def test_every_action(client):
    headers, state = begin(client)
    asked = state["question"]["feature"]
    state = act(client, headers, "declines", seq=state["seq"], feature=asked).json()
    assert state["declined"] == [asked]
    state = act(client, headers, "undo", seq=state["seq"]).json()
    assert state["declined"] == []
    state = act(client, headers, "stop").json()
    assert state["stopped"]
    assert not state["asking"]
    state = act(client, headers, "go-on").json()
    state = to_the_end(client, headers, state)
    changed = state["plans"][0]["changes"][0]["feature"]
    locked = act(client, headers, "overlay", overlay={"locked": [changed]}).json()
    assert all(
        change["feature"] != changed for plan in locked["plans"] for change in plan["changes"]
    )
    assert locked["overlay"]["locked"] == [changed]
    state = act(client, headers, "overlay").json()
    plan = state["plans"][0]["id"]
    assert act(client, headers, "choice", plan=plan).json()["chosen"] == plan
    assert client.get(f"{HERE}/plans?k=1", headers=headers).json()["plans"] == state["plans"][:1]
    supposed = act(
        client, headers, "what-if", facts={changed: state["plans"][0]["changes"][0]["after"]}
    ).json()
    assert supposed["decision"]["favourable"]
    state = act(client, headers, "let-down").json()
    problem(act(client, headers, "letter"), 404, "no-letters")
    assert client.delete(HERE, headers=headers).status_code == 204
    problem(client.get(HERE, headers=headers), 401, "unknown-interview")


def test_a_receipt_is_handed_out_again_and_verifies(client):
    headers, state = begin(client)
    problem(client.get(f"{HERE}/receipt", headers=headers), 404, "no-receipt")
    to_the_end(client, headers, state)
    settled(client, headers)
    receipt = client.post(f"{HERE}/receipt", headers=headers)
    assert receipt.status_code == 200
    act(client, headers, "undo")
    assert client.get(f"{HERE}/receipt", headers=headers).content == receipt.content
    assert Receipt.from_json(receipt.text).right(SIGNING)
    body = {"receipt": receipt.json()}
    open_to_all = client.post("/api/v1/verify", json=body).json()
    assert (open_to_all["holds"], open_to_all["signature"]) == (True, "not_checked")
    with_key = client.post("/api/v1/verify", json=body, headers=bearer(OPERATOR)).json()
    assert (with_key["holds"], with_key["signature"]) == (True, "right")
    body["receipt"]["decision"]["probability"] = 0.99
    forged = client.post("/api/v1/verify", json=body, headers=bearer(OPERATOR)).json()
    assert (forged["holds"], forged["signature"]) == (False, "wrong")
    assert [part["part"] for part in forged["differences"]] == ["decision"]


@pytest.mark.parametrize(
    "receipt",
    [
        {},
        {"version": 2},
        {"version": 2, "events": 3},
        {"version": 2, "events": [[1]]},
        {"version": [], "events": [{}] * 5},
    ],
)
def test_what_is_no_receipt_is_said_so(client, receipt):
    body = problem(client.post("/api/v1/verify", json={"receipt": receipt}), 422, "unusable")
    assert body["errors"][0]["pointer"] == "/receipt"


def test_a_receipt_whose_parts_are_swapped_never_breaks_the_service(client):
    headers, state = begin(client)
    to_the_end(client, headers, state)
    receipt = client.post(f"{HERE}/receipt", headers=headers).json()
    for name in receipt:
        for value in (
            None,
            7,
            "x",
            [],
            {},
            [7],
            {"x": 7},
            [{"kind": "start", "facts": 3}],
            -1,
            10**30,
        ):
            answer = client.post("/api/v1/verify", json={"receipt": receipt | {name: value}})
            assert answer.status_code in (200, 422), (name, value, answer.text)
    many = receipt | {"events": receipt["events"] * 200}
    assert problem(client.post("/api/v1/verify", json={"receipt": many}), 422, "unusable")


@pytest.mark.parametrize(
    ("what", "body", "kind", "pointer"),
    [
        ("answers", {"facts": {"duration": "soon"}}, "fact", "/facts/duration"),
        ("answers", {"facts": {"duraton": 12}}, "unknown-name", "/facts/duraton"),
        ("answers", {"facts": {"a/b~c": 12}}, "unknown-name", "/facts/a~1b~0c"),
        ("answers", {"facts": {}}, "invalid", "/facts"),
        ("answers", {"facts": {"duration": [1]}}, "invalid", None),
        ("answers", {"facts": {"duration": 12}, "sqe": 3}, "invalid", "/sqe"),
        ("answers", {"facts": {"duration": 12}, "seq": "3"}, "invalid", "/seq"),
        ("declines", {"feature": "nothing"}, "unknown-name", "/feature"),
        ("undo", {"feature": "nothing"}, "unknown-name", "/feature"),
        ("undo", {}, "unusable", None),
        ("choice", {"plan": "nothing"}, "unknown-name", "/plan"),
        ("language", {"language": "fr"}, "unknown-name", "/language"),
        ("overlay", {"overlay": {"locked": ["nothing"]}}, "unknown-name", "/overlay/locked"),
        ("overlay", {"overlay": {"lokced": []}}, "invalid", "/overlay/lokced"),
        (
            "overlay",
            {"overlay": {"difficulty": {"duration": 9}}},
            "invalid",
            "/overlay/difficulty/duration",
        ),
        ("overlay", {"overlay": {"ranges": {"duration": [9, 3]}}}, "unusable", None),
        ("what-if", {"facts": {"duration": "soon"}}, "fact", "/facts/duration"),
    ],
)
def test_an_error_names_its_field_and_changes_nothing(client, what, body, kind, pointer):
    headers, before = begin(client)
    error = problem(act(client, headers, what, **body), 422, kind)
    if pointer is not None:
        assert error["errors"][0]["pointer"] == pointer
    assert client.get(HERE, headers=headers).json() == before


def test_every_wrong_fact_is_named_at_once(client):
    body = {"facts": {"age": "old", "credit_amount": "much", "purpose": "radio/tv"}}
    error = problem(client.post("/api/v1/interviews", json=body), 422, "fact")
    assert [part["pointer"] for part in error["errors"]] == ["/facts/age", "/facts/credit_amount"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[" * 60_000, b'{"facts": {"age": NaN}}']
)
def test_what_is_no_json_is_a_bad_request(client, content):
    answer = client.post(
        "/api/v1/interviews", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_numbers_that_are_none_are_refused(client):
    headers, _ = begin(client)
    for number in ("1e999", "1" + "0" * 400, "-Infinity"):
        content = f'{{"facts": {{"duration": {number}}}}}'
        kind = {"content-type": "application/json"}
        answer = client.post(f"{HERE}/answers", content=content, headers=headers | kind)
        assert answer.status_code == 422, answer.text


def test_who_has_not_seen_the_last_event_does_nothing(client):
    headers, state = begin(client)
    asked = state["question"]["feature"]
    after = act(
        client, headers, "answers", seq=state["seq"], facts={asked: refused_person()[asked]}
    ).json()
    problem(act(client, headers, "declines", seq=state["seq"], feature=asked), 409, "conflict")
    assert client.get(HERE, headers=headers).json() == after


def test_the_same_request_again_is_the_same_answer(client):
    headers, state = begin(client)
    asked = state["question"]["feature"]
    once = headers | {"Idempotency-Key": "first-answer"}
    body = {"seq": state["seq"], "facts": {asked: refused_person()[asked]}}
    first = client.post(f"{HERE}/answers", json=body, headers=once)
    go_on = act(client, headers, "stop").json()
    again = client.post(f"{HERE}/answers", json=body, headers=once)
    assert (again.status_code, again.json()) == (200, first.json())
    assert client.get(HERE, headers=headers).json()["seq"] == go_on["seq"]
    other = client.post(f"{HERE}/answers", json=body | {"seq": go_on["seq"]}, headers=once)
    problem(other, 422, "repeated-key")
    problem(client.post(f"{HERE}/stop", json={}, headers=once), 422, "repeated-key")


def test_a_request_that_failed_may_be_sent_again(client):
    headers, state = begin(client)
    asked = state["question"]["feature"]
    once = headers | {"Idempotency-Key": "once-only"}
    problem(
        client.post(f"{HERE}/answers", json={"facts": {asked: {}}}, headers=once), 422, "invalid"
    )
    problem(client.post(f"{HERE}/undo", json={}, headers=once), 422, "unusable")
    body = {"facts": {asked: refused_person()[asked]}}
    assert client.post(f"{HERE}/answers", json=body, headers=once).status_code == 200


def test_a_key_is_the_interviews_own(client):
    key = {"Idempotency-Key": "the-same-word"}
    for _ in range(2):
        headers, state = begin(client)
        body = {
            "facts": {state["question"]["feature"]: refused_person()[state["question"]["feature"]]}
        }
        assert client.post(f"{HERE}/answers", json=body, headers=headers | key).status_code == 200


@pytest.mark.parametrize("token", [None, "", "x", "x" * 22, "ü".encode(), OPERATOR])
def test_without_a_token_there_is_nothing(client, token):
    begin(client)
    headers = (
        {}
        if token is None
        else {"Authorization": b"Bearer " + (token if isinstance(token, bytes) else token.encode())}
    )
    for method, what in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/plans"),
        ("POST", "/stop"),
        ("GET", "/receipt"),
    ):
        answer = client.request(
            method, f"{HERE}{what}", headers=headers, json={} if method == "POST" else None
        )
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert set(answer.json()) == {"type", "title", "status", "detail", "instance", "errors"}


def test_one_person_never_sees_another(client):
    mine, _ = begin(client, dict(refused_person()) | {"age": 61})
    other, state = begin(client)
    to_the_end(client, other, state)
    assert client.get(HERE, headers=mine).json()["facts"]["age"] == 61
    assert client.get(HERE, headers=other).json()["facts"]["age"] == refused_person()["age"]


def test_batches_are_the_operators_and_the_same_as_interviews(client):
    people = [start_facts(refused_person()), refused_person(), {"age": "old"}, {}]
    body = {"people": people}
    problem(client.post("/api/v1/advise", json=body), 401, "no-operator")
    problem(
        client.post("/api/v1/advise", json=body, headers=bearer(OPERATOR + "x")), 401, "no-operator"
    )
    answer = client.post("/api/v1/advise", json=body, headers=bearer(OPERATOR))
    assert answer.status_code == 200, answer.text
    rows = answer.json()["people"]
    for row, facts in zip(rows, people, strict=True):
        if row["error"] is None:
            interview = advisors.surviving().interview(facts)
            assert row["probability"] == pytest.approx(interview.decision.probability, abs=1e-6)
            assert row["question"] == (interview.question and interview.question.feature)
            assert len(row["plans"]) == len(interview.plans())
    unknown = {"people": [{"nothing": 1}]}
    assert problem(
        client.post("/api/v1/advise", json=unknown, headers=bearer(OPERATOR)), 422, "unknown-name"
    )
    many = {"people": [{}] * 101}
    problem(client.post("/api/v1/advise", json=many, headers=bearer(OPERATOR)), 422, "invalid")


def test_without_a_key_the_operators_part_is_closed(tmp_path):
    with serving(tmp_path / "a.sqlite", operator_key=None) as client:
        for key in ("", "None", OPERATOR):
            problem(
                client.post("/api/v1/advise", json={"people": [{}]}, headers=bearer(key)),
                403,
                "closed",
            )
            problem(client.get("/metrics", headers=bearer(key)), 403, "closed")
            assert client.get("/operator", headers=bearer(key)).status_code == 403


def test_what_was_shown_is_recorded_with_the_answer(client):
    headers, state = begin(client)
    to_the_end(client, headers, state)
    service = client.app.state.service
    events = service.store.read(headers["Authorization"].split()[1]).events
    shown = [event.content for event in events if event.kind == "shown"]
    assert [event.kind for event in events[:3]] == ["language", "start", "shown"]
    assert sum(bool(content.get("refusal_shown")) for content in shown) == 1
    assert shown[-1]["status"] == client.get(HERE, headers=headers).json()["standing"]["status"]


def test_health_says_when_the_database_is_away(client, monkeypatch):
    assert client.get("/healthz").json()["status"] == "ok"
    from edfa.errors import UnavailableError

    def away(*arguments):
        raise UnavailableError("/secret/place cannot be read")

    monkeypatch.setattr(client.app.state.service.store, "check", away)
    monkeypatch.setattr(client.app.state.service.store, "read", away)
    assert client.get("/healthz").status_code == 503
    answer = client.get(HERE, headers=bearer("x" * 22))
    assert "secret" not in answer.text
    problem(answer, 503, "unavailable")


def test_who_is_refused_from_the_start_is_shown_so_once(client, monkeypatch):
    monkeypatch.setattr("edfa.advice.assessment.Decision.refused", True)
    headers, _ = begin(client)
    client.post(f"{HERE}/stop", json={}, headers=headers)
    events = client.app.state.service.store.read(headers["Authorization"].split()[1]).events
    assert [bool(e.content.get("refusal_shown")) for e in events if e.kind == "shown"] == [
        True,
        False,
    ]


def test_the_same_request_sent_many_times_at_once_is_done_once(client):
    headers, state = begin(client)
    asked = state["question"]["feature"]
    body, once = (
        {"facts": {asked: refused_person()[asked]}},
        headers | {"Idempotency-Key": "all-at-once"},
    )
    with ThreadPoolExecutor(6) as pool:
        answers = list(
            pool.map(lambda _: client.post(f"{HERE}/answers", json=body, headers=once), range(6))
        )
    assert [answer.status_code for answer in answers] == [200] * 6
    assert len({answer.text for answer in answers}) == 1


def test_many_windows_of_one_person_never_break_anything(client):
    headers, state = begin(client)
    asked = state["question"]["feature"]
    requests = [
        ("answers", {"facts": {asked: refused_person()[asked]}}),
        ("undo", {}),
        ("stop", {}),
        ("go-on", {}),
    ] * 8

    def send(request):
        return client.post(f"{HERE}/{request[0]}", json=request[1], headers=headers).status_code

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(send, requests)} <= {200, 409, 422}
    state = client.get(HERE, headers=headers).json()
    service = client.app.state.service
    events = service.store.read(headers["Authorization"].split()[1]).events
    assert [event.seq for event in events] == list(range(1, state["seq"] + 1))
    service._held.forget()
    assert client.get(HERE, headers=headers).json() == state
