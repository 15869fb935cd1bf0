"""Safety: headers on everything, limits that hold, nothing of a person in logs and metrics, keys
that open.
"""

import json
import logging
import re
import threading
import time
from datetime import timedelta
from threading import get_ident

import pytest
from sqlalchemy import event
from web_service import (
    HERE,
    OPERATOR,
    bearer,
    begin,
    refused_person,
    serving,
    start_facts,
    to_the_end,
)

from edfa.advice.assessment import Assessment
from edfa_serve.security import RateLimiter
from edfa_serve.store import UnknownInterviewError

SENTINEL = "zq-sentinel-9917"
SAFE = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


@pytest.fixture
def client(tmp_path):
    with serving(tmp_path / "interviews.sqlite") as opened:
        yield opened


def routes(client):
    """Method and path of every route of the application."""
    described = client.get("/api/v1/openapi.json").json()["paths"]
    listed = [(method.upper(), path) for path, methods in described.items() for method in methods]
    more = [
        ("GET", "/metrics"),
        ("GET", "/operator"),
        ("POST", "/operator/login"),
        ("POST", "/operator/audit"),
    ]
    more += [("POST", "/operator/decision"), ("POST", "/operator/letter")]
    return [
        *listed,
        *more,
        ("POST", "/operator/logout"),
        ("GET", "/nowhere"),
    ]


def test_every_answer_is_safe_to_show(tmp_path):
    with serving(tmp_path / "a.sqlite", secure=True) as client:
        for method, path in [*routes(client), ("BREW", "/healthz"), ("GET", "/%2e%2e/etc/passwd")]:
            answer = client.request(method, path, json={} if method == "POST" else None)
            assert answer.status_code < 500, (method, path)
            assert SAFE.items() <= dict(answer.headers).items(), (method, path)
            assert answer.headers["content-security-policy"].startswith(
                "default-src 'none'; script-src 'self';"
            )
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert answer.headers["referrer-policy"] in ("no-referrer", "same-origin")
            assert "max-age=" in answer.headers["strict-transport-security"]
            assert "geolocation=()" in answer.headers["permissions-policy"]
            assert "Traceback" not in answer.text


def test_over_plain_http_browsers_are_not_told_to_insist_on_https(client):
    assert "strict-transport-security" not in client.get("/healthz").headers


def test_nothing_a_client_sends_is_in_a_log_or_metric(client, caplog):
    caplog.set_level(logging.DEBUG)
    headers, state = begin(client, dict(refused_person()))
    secret = headers["Authorization"].split()[1]
    to_the_end(client, headers, state)
    bodies = [
        {},
        {"facts": {"age": SENTINEL, SENTINEL: 1}, "language": SENTINEL},
        {"feature": SENTINEL, "plan": SENTINEL, "language": SENTINEL},
        {"seq": 1, "facts": {"duration": SENTINEL}},
        {"plan": SENTINEL},
        {"receipt": {"version": 2, SENTINEL: SENTINEL}},
        {"people": [{SENTINEL: SENTINEL}, {"age": SENTINEL}]},
        {"overlay": {"locked": [SENTINEL]}},
    ]
    wrong = [headers, bearer(SENTINEL), bearer(OPERATOR), headers | {"Idempotency-Key": SENTINEL}]
    deleting = [("DELETE", HERE)]
    for method, path in [route for route in routes(client) if route not in deleting] + deleting:
        for who in wrong:
            for body in bodies if method == "POST" else bodies[:1]:
                url, more = (
                    f"{path}?x={SENTINEL}",
                    {"X-Whatever": SENTINEL, "Cookie": f"edfa={SENTINEL}"},
                )
                answer = client.request(
                    method, url, json=body if method == "POST" else None, headers=who | more
                )
                assert answer.status_code < 500, (method, path, body)
    client.post("/operator/login", data={"key": SENTINEL})
    client.post("/operator/login", data={"key": OPERATOR})
    client.get(f"/{SENTINEL}/{SENTINEL}")
    client.request(SENTINEL.upper(), "/healthz")
    metrics = client.get("/metrics", headers=bearer(OPERATOR)).text
    logged = "\n".join(
        record.getMessage() + str(record.exc_info)
        for record in caplog.records
        if record.name != "httpx2"
    )
    assert "route=/api/v1/interviews/current/answers status=200" in logged
    for text in (logged, metrics):
        for word in (SENTINEL, SENTINEL.upper(), secret, OPERATOR):
            assert word not in text


def test_a_fault_is_one_line_without_its_message(client, caplog, monkeypatch):
    def broken(*arguments):
        raise RuntimeError(SENTINEL)

    monkeypatch.setattr(client.app.state.service, "find", broken)
    answer = client.get(HERE, headers=bearer("x" * 22))
    assert answer.status_code == 500
    assert SENTINEL not in answer.text
    logged = "\n".join(record.getMessage() + str(record.exc_text) for record in caplog.records)
    assert "fault=RuntimeError at=test_security.py:" in logged
    assert SENTINEL not in logged
    assert re.search(
        r'edfa_errors_total\{process="\d+"\} 1\n',
        client.get("/metrics", headers=bearer(OPERATOR)).text,
    )


def test_a_line_in_the_log_says_what_happened(client, caplog):
    caplog.set_level(logging.INFO, "edfa_serve")
    headers, state = begin(client)
    asked = state["question"]["feature"]
    answer = client.post(f"{HERE}/declines", json={"feature": asked}, headers=headers)
    line = next(
        r.getMessage() for r in caplog.records if answer.headers["x-request-id"] in r.getMessage()
    )
    assert re.fullmatch(
        r"request=[0-9a-f]{16} method=POST route=/api/v1/interviews/current/declines status=200 ms=\d+ event=decline",
        line,
    )


def test_a_body_past_the_limit_is_refused_whether_it_says_so_or_not(client):
    body = json.dumps({"facts": {"age": "9" * 70_000}}).encode()
    assert client.post("/api/v1/interviews", content=body).status_code == 413
    taken = 0

    def pieces():
        nonlocal taken
        for _ in range(100_000):  # 100 MB
            taken += 1
            yield b" " * 1_000

    answer = client.post(
        "/api/v1/interviews", content=pieces(), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 413
    assert (
        client.post("/operator/login", content=iter([b"key=" + b"x" * 70_000])).status_code == 413
    )


def test_who_asks_too_often_has_to_wait(tmp_path):
    with serving(tmp_path / "a.sqlite", requests_a_minute=20) as client:
        headers, _ = begin(client)
        answers = [client.get(HERE, headers=headers) for _ in range(25)]
        codes = [answer.status_code for answer in answers]
        assert codes == [200] * 20 + [429] * 5
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 4
        assert answers[-1].json()["type"].endswith("too-many")
        other, _ = begin(client)
        assert (
            client.get(HERE, headers=other).status_code == 200
        )  # somebody else at the same address
        for _ in range(100):
            client.get(HERE, headers=bearer("made-up"))
        assert client.get("/api/v1/schema").status_code == 429  # but not any number of them
        assert client.get("/healthz").status_code == 200


def test_what_if_counts_more(tmp_path):
    with serving(tmp_path / "a.sqlite", requests_a_minute=20) as client:
        headers, _ = begin(client)
        body = {"facts": {"duration": 6}}
        codes = [
            client.post(f"{HERE}/what-if", json=body, headers=headers).status_code for _ in range(6)
        ]
        assert codes == [200] * 5 + [429]


def test_a_limiter_forgets_and_refills():
    limiter = RateLimiter(60, clients=50)
    assert [limiter.wait("a", now=0.0) for _ in range(60)] == [0.0] * 60
    assert limiter.wait("a", now=0.0) == pytest.approx(1.0)
    assert limiter.wait("a", now=0.5) == pytest.approx(0.5)
    assert limiter.wait("a", now=1.0) == 0.0
    for number in range(10_000):
        limiter.wait(str(number), now=2.0)
    assert len(limiter._left) == 50
    assert limiter.wait("late", cost=1_000, now=3.0) == 0.0  # the whole bucket, never more


def test_the_limit_holds_under_threads():
    limiter, granted = RateLimiter(100), []

    def ask():
        granted.extend(limiter.wait("a", now=0.0) == 0.0 for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(granted) == 100


def test_a_token_opens_from_the_header_alone(client):
    headers, _ = begin(client)
    token = headers["Authorization"].split()[1]
    assert client.get(f"{HERE}?token={token}&access_token={token}").status_code == 401
    assert (
        client.get(HERE, headers={"Cookie": f"edfa={token}; __Host-edfa={token}"}).status_code
        == 401
    )
    assert client.get(HERE, headers={"Authorization": f"Basic {token}"}).status_code == 401


def test_the_key_opens_the_view_for_an_hour(client, monkeypatch):
    assert client.get("/operator").status_code == 401
    assert client.get("/metrics").status_code == 401
    for wrong in ("", "x", OPERATOR[:-1], OPERATOR + "x", OPERATOR.upper()):
        assert client.post("/operator/login", data={"key": wrong}).status_code == 401
    answer = client.post("/operator/login", data={"key": OPERATOR})
    assert (answer.status_code, answer.headers["location"]) == (303, "/operator")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=3600"} <= {
        part.strip() for part in cookie.split(";")
    }
    assert OPERATOR not in cookie
    assert client.get("/operator").status_code == 200
    value = client.cookies["edfa-operator"]
    until, signature = value.split(".")
    for forged in (
        f"{int(until) + 9999}.{signature}",
        f"{until}.{'0' * 64}",
        until,
        "x",
        f"{until}.ü".encode("latin-1"),
    ):
        assert (
            client.get(
                "/operator",
                headers={
                    "Cookie": b"edfa-operator="
                    + (forged if isinstance(forged, bytes) else forged.encode())
                },
            ).status_code
            == 401
        )
    now = time.time()
    monkeypatch.setattr("edfa_serve.security.time.time", lambda: now + 3700)
    assert client.get("/operator").status_code == 401


def test_a_form_of_another_site_is_not_taken(client):
    client.post("/operator/login", data={"key": OPERATOR})
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        for path in ("login", "logout", "audit", "decision", "letter"):
            answer = client.post(
                f"/operator/{path}", data={"key": OPERATOR, "interview": "x"}, headers=headers
            )
            assert answer.status_code == 400
    own = client.post(
        "/operator/logout", headers={"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    )
    assert own.status_code == 303


def test_over_https_the_cookie_is_bound_to_it(tmp_path):
    with serving(tmp_path / "a.sqlite", secure=True) as client:
        cookie = client.post("/operator/login", data={"key": OPERATOR}).headers["set-cookie"]
    assert cookie.startswith("__Host-edfa-operator=")
    assert "Secure" in cookie


def test_what_was_deleted_is_nowhere(client, tmp_path):
    person = start_facts(refused_person())
    answer = client.post("/api/v1/interviews", json={"facts": person | {"own_telephone": SENTINEL}})
    headers = bearer(answer.json()["token"])
    client.post(f"{HERE}/receipt", headers=headers | {"Idempotency-Key": "some-key"})
    assert client.delete(HERE, headers=headers).status_code == 204
    assert not [path for path in tmp_path.iterdir() if SENTINEL.encode() in path.read_bytes()]
    assert SENTINEL not in repr(client.app.state.service._held.held())


def test_a_long_request_holds_up_nobody_else(client, monkeypatch):
    headers, _ = begin(client)
    begun, answered = threading.Semaphore(0), threading.Event()

    def slow(token):
        begun.release()
        answered.wait(60)
        raise UnknownInterviewError

    monkeypatch.setattr(client.app.state.service, "find", slow)
    threads = [
        threading.Thread(target=client.get, args=(HERE,), kwargs={"headers": headers})
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    assert begun.acquire(timeout=600)
    assert client.get("/healthz").status_code == 200
    assert all(thread.is_alive() for thread in threads), "it waited for none of them"
    answered.set()
    for thread in threads:
        thread.join()


def test_no_transaction_is_open_while_the_model_is_asked(client, monkeypatch):
    pool, asked, held = (
        client.app.state.service.store.engine.pool,
        [],
        {},
    )  # connections, and the threads they are in
    event.listen(pool, "checkout", lambda _, record, __: held.update({record: get_ident()}))
    event.listen(
        pool, "checkin", lambda _, record: held.pop(record, None)
    )  # others may tidy meanwhile
    before = Assessment.of

    def of(*arguments, **options):
        asked.append(list(held.values()).count(get_ident()))
        return before(*arguments, **options)

    monkeypatch.setattr(Assessment, "of", of)
    headers, state = begin(client)
    to_the_end(client, headers, state)
    for what, body in (
        ("undo", {}),
        ("overlay", {"overlay": {"max_changes": 1}}),
        ("what-if", {"facts": {"duration": 6}}),
        ("receipt", {}),
        ("stop", {}),
    ):
        assert client.post(f"{HERE}/{what}", json=body, headers=headers).status_code == 200
    assert len(asked) > 5
    assert set(asked) == {0}


def test_old_interviews_are_forgotten_while_the_service_runs(tmp_path):
    with serving(tmp_path / "a.sqlite") as client:
        headers, _ = begin(client)
    with serving(tmp_path / "a.sqlite", keep_unfinished=timedelta(0)) as client:
        while client.get(HERE, headers=headers).status_code == 200:
            time.sleep(0.05)
        assert client.get(HERE, headers=headers).status_code == 401
