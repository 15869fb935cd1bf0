"""A service to send requests to, and people to send them about."""

import json
from contextlib import contextmanager
from functools import cache

import advisors
from starlette.testclient import TestClient

import edfa
from edfa_serve.app import create_app
from edfa_serve.service import Service
from edfa_serve.settings import WebSettings
from edfa_serve.store import InterviewStore

OPERATOR = "operator-key-for-tests"
SIGNING = b"signing-key-for-tests"
HERE = "/api/v1/interviews/current"


@contextmanager
def serving(place, advisor=None, client="1.2.3.4", **settings):
    """A client of an application whose interviews are at ``place``; it follows no redirects and
    raises nothing.
    """
    options = {"secure": False, "operator_key": OPERATOR, "requests_a_minute": 100_000} | settings
    with InterviewStore.open(place) as store:
        app = create_app(
            Service(advisor or advisors.surviving(), store, SIGNING), WebSettings(**options)
        )
        address = {
            "client": (client, 1234),
            "raise_server_exceptions": False,
            "follow_redirects": False,
        }
        with TestClient(app, **address) as opened:
            yield opened


@cache
def refused_person():
    """A person who is refused and has a plan."""
    for person in advisors.words(edfa.load("german")):
        *_, last = advisors.walk(advisors.begin(advisors.surviving(), person), person)
        if last.decision.refused and last.plans():
            return person
    raise AssertionError


def start_facts(person):
    return {name: person[name] for name in advisors.surviving().schema.start}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def begin(client, person=None, language="en"):
    """A new interview: its headers and state."""
    body = {"facts": start_facts(person or refused_person()), "language": language}
    answer = client.post("/api/v1/interviews", json=body)
    assert answer.status_code == 201, answer.text
    return bearer(answer.json()["token"]), answer.json()["interview"]


def to_the_end(client, headers, state, person=None):
    """Answer every question."""
    person = person or refused_person()
    while (question := state["question"]) is not None:
        facts = {question["feature"]: person[question["feature"]]}
        answer = client.post(
            f"{HERE}/answers", json={"seq": state["seq"], "facts": facts}, headers=headers
        )
        assert answer.status_code == 200, answer.text
        state = answer.json()
    return state


def problem(answer, status, kind):
    """The body of an error, which is of this status and kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = json.loads(answer.content)
    assert body["type"] == f"urn:edfa:problem:{kind}"
    assert body["status"] == status
    assert body["instance"].endswith(answer.headers["x-request-id"])
    return body
