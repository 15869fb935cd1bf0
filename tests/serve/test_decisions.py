"""What the operator decided about one person: declared by form or API, appended, and what the
letter then says.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from web_service import HERE, OPERATOR, bearer, begin, problem, serving, to_the_end

from edfa_serve.letters.page import visible_text

LETTER = next(Path(__file__).parents[2].glob("docs/**/letter.toml"))
KEY = bearer(OPERATOR)
TODAY = datetime.now(UTC).date()
OFFICER = {
    "action": "refused",
    "date": str(TODAY),
    "decided_by": "officer",
    "officer": "Ms Rivera, loan officer",
}
REASON = "Length of employment: below 1 year"


@pytest.fixture
def undeclared(tmp_path):
    """The operator's letter.toml, without a decision."""
    text = re.sub(r"\[decision\].*?\n\n", "", LETTER.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert "[decision]" not in text
    (tmp_path / "letter.toml").write_text(text, encoding="utf-8")
    return tmp_path / "letter.toml"


@pytest.fixture
def client(tmp_path, undeclared):
    with serving(tmp_path / "a.sqlite", letter=undeclared) as opened:
        yield opened


def refused(client):
    headers, state = begin(client)
    return headers, to_the_end(client, headers, state)


def put(client, state, headers=KEY, **more):
    return client.put("/api/v1/decisions", json={"interview": state["id"]} | more, headers=headers)


def kinds(client, state):
    return [event.kind for event in client.app.state.service.store.find(state["id"]).events]


def fields_of(text):
    """The hidden fields of the form for a decision."""
    form = text[text.index('action="/operator/decision"') :]
    return dict(
        re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")])
    )


def test_without_a_decision_there_is_no_letter_and_with_one_it_says_it(client):
    headers, state = refused(client)
    body = problem(client.post(f"{HERE}/letter", json={}, headers=headers), 422, "unusable")
    assert "decision.action" in body["detail"]
    recorded = put(
        client,
        state,
        action="refused",
        date=str(TODAY),
        decided_by="system_and_officer",
        officer="Mr Stone",
    )
    assert recorded.status_code == 200, recorded.text
    text = visible_text(client.post(f"{HERE}/letter", json={}, headers=headers).json()["html"])
    assert "Mr Stone" in text
    assert f"{TODAY:%B} {TODAY.day}, {TODAY.year}" in text
    assert kinds(client, state)[-2:] == ["decided", "letter"]


def test_an_officer_s_reasons_take_the_place_of_the_model_s(client):
    headers, state = refused(client)
    assert put(client, state, **OFFICER, reasons=[REASON]).status_code == 200
    answer = client.post(f"{HERE}/letter", json={}, headers=headers).json()
    assert REASON in visible_text(answer["html"])
    assert client.app.state.service.store.find(state["id"]).events[-1].content["audit"][
        "reasons"
    ] == [REASON]


def test_declaring_again_appends_and_the_last_counts_but_the_same_appends_nothing(client):
    headers, state = refused(client)
    decided = {"action": "refused", "date": str(TODAY), "decided_by": "system"}
    first = put(client, state, **decided).json()
    assert put(client, state, **decided).json() == first
    assert put(client, state, **OFFICER, reasons=[REASON]).json()["seq"] == first["seq"] + 1
    assert kinds(client, state)[-2:] == ["decided", "decided"]
    assert REASON in client.post(f"{HERE}/letter", json={}, headers=headers).json()["html"]


def test_the_letter_is_about_the_interview_as_it_was_decided(client):
    headers, state = begin(client)
    feature = state["question"]["feature"]
    before = to_the_end(client, headers, state)
    assert (
        put(client, before, action="refused", date=str(TODAY), decided_by="system").status_code
        == 200
    )
    then = client.post(f"{HERE}/letter", json={}, headers=headers).json()["html"]
    assert (
        client.post(f"{HERE}/undo", json={"feature": feature}, headers=headers).status_code == 200
    )
    assert client.post(f"{HERE}/letter", json={}, headers=headers).json()["html"] == then
    client.post(f"{HERE}/language", json={"language": "de"}, headers=headers)
    assert 'lang="de"' in client.post(f"{HERE}/letter", json={}, headers=headers).json()["html"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"decided_by": None}, "decided_by"),
        ({"officer": " "}, "officer"),
        ({"reasons": []}, "reasons"),
        ({"reasons": ["Your score is too low"]}, "no specific reason"),
        ({"date": str(TODAY + timedelta(days=3))}, "still to come"),
        ({"date": "2001-01-01"}, "began later"),
        ({"action": "incomplete"}, "until"),
        ({"decided_by": "system"}, "leave them out"),
    ],
)
def test_what_a_letter_could_not_say_is_an_error_that_names_it(client, change, named):
    _, state = refused(client)
    before = kinds(client, state)
    body = problem(
        put(client, state, **(OFFICER | {"reasons": [REASON]} | change)), 422, "unusable"
    )
    assert named in body["detail"]
    assert kinds(client, state) == before


@pytest.mark.parametrize(
    "change",
    [
        {"action": "granted"},
        {"date": "tomorrow"},
        {"decided_by": "me"},
        {"reasons": ["x"] * 5},
        {"officer": "x" * 201},
        {"nothing": 1},
        {"date": None},
    ],
)
def test_a_body_that_is_no_decision_is_refused(client, change):
    _, state = refused(client)
    problem(put(client, state, **(OFFICER | {"reasons": [REASON]} | change)), 422, "invalid")


def test_nobody_else_decides(client):
    headers, state = refused(client)
    decided = {"action": "refused", "date": str(TODAY), "decided_by": "system"}
    for wrong in ({}, headers, bearer(OPERATOR + "x")):
        problem(put(client, state, headers=wrong, **decided), 401, "no-operator")
    problem(put(client, {"id": "nobody"}, **decided), 401, "unknown-interview")
    assert "decided" not in kinds(client, state)


def test_who_is_granted_is_not_refused_by_the_system(client):
    person = {
        "purpose": "radio/tv",
        "credit_amount": 1000,
        "age": 40,
        "duration": 6,
        "checking_status": "no checking",
    }
    answer = client.post("/api/v1/interviews", json={"facts": person}).json()
    assert answer["interview"]["decision"]["favourable"]
    body = put(client, answer["interview"], action="refused", date=str(TODAY), decided_by="system")
    assert "grants this person" in problem(body, 422, "unusable")["detail"]
    assert put(client, answer["interview"], **OFFICER, reasons=[REASON]).status_code == 200


def test_who_decided_before_something_was_told_looks_again(client):
    headers, state = begin(client)
    seen = state["seq"]
    to_the_end(client, headers, state)
    decided = {"action": "refused", "date": str(TODAY), "decided_by": "system"}
    problem(put(client, state, seq=seen, **decided), 409, "conflict")
    problem(put(client, state, seq=10_000, **decided), 409, "conflict")


def test_the_form_records_and_shows_what_was_recorded(client):
    _, state = refused(client)
    client.post("/operator/login", data={"key": OPERATOR})
    page = client.post("/operator/audit", data={"interview": state["id"]})
    hidden = fields_of(page.text)
    sent = hidden | OFFICER | {"reasons": f"{REASON}\r\n\r\nCollateral: none"}
    wrong = client.post("/operator/decision", data=sent | {"officer": "<b>", "reasons": ""})
    assert wrong.status_code == 422
    assert "reasons is missing" in wrong.text
    assert "&lt;b&gt;" in wrong.text
    done = client.post("/operator/decision", data=sent)
    assert (done.status_code, "The decision is recorded." in done.text) == (200, True)
    assert f"{REASON}\nCollateral: none</textarea>" in done.text
    content = client.app.state.service.store.find(state["id"]).events[-1].content
    assert content == OFFICER | {"reasons": [REASON, "Collateral: none"]}
    letter = client.post("/operator/letter", data=fields_of(done.text))
    assert letter.status_code == 200
    assert "Collateral: none" in letter.text
    assert kinds(client, state)[-1] == "letter"


def test_the_form_needs_its_own_field_and_is_stale_when_the_interview_went_on(client):
    headers, state = begin(client)
    client.post("/operator/login", data={"key": OPERATOR})
    hidden = fields_of(client.post("/operator/audit", data={"interview": state["id"]}).text)
    decided = hidden | {"action": "refused", "date": str(TODAY), "decided_by": "system"}
    for forged in ({"csrf": ""}, {"csrf": "0" * 32}):
        assert client.post("/operator/decision", data=decided | forged).status_code == 400
        assert client.post("/operator/letter", data=decided | forged).status_code == 400
    to_the_end(client, headers, state)
    stale = client.post("/operator/decision", data=decided)
    assert (stale.status_code, "has gone on" in stale.text) == (409, True)
    assert client.post("/operator/decision", data=decided | {"seq": "x"}).status_code == 409
    assert (
        client.post("/operator/decision", data=decided | {"interview": "nobody"}).status_code == 404
    )
    assert "decided" not in kinds(client, state)


def test_the_page_offers_a_letter_once_it_is_decided(client):
    headers, state = refused(client)
    token = headers["Authorization"].split()[1]
    client.cookies.set("edfa", token)
    assert 'href="/letter"' not in client.get("/result").text
    put(client, state, action="refused", date=str(TODAY), decided_by="system")
    assert 'href="/letter"' in client.get("/result").text
    assert client.get("/letter").status_code == 200


def test_due_letters_say_whether_it_is_decided(client, monkeypatch):
    _, state = refused(client)
    assert "not yet" in client.get("/operator", headers=KEY).text
    put(client, state, action="refused", date=str(TODAY), decided_by="system")
    assert "not yet" in client.get("/operator", headers=KEY).text  # counts are some seconds old
    monkeypatch.setattr("edfa_serve.operator.FRESH", 0.0)
    client.app.state.counted._until = 0.0
    assert f'<td class="n">{TODAY}</td>' in client.get("/operator", headers=KEY).text
