"""Whatever a client sends that its own description allows, or forbids: no fault, and answers as described."""

import random

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance
from web_service import HERE, OPERATOR, bearer, begin, serving

EXAMPLES = 12  # of each operation
WORDS = ("age", "duration", "checking_status", "purpose", "credit_amount", "nothing")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("fuzz") / "interviews.sqlite") as opened:
        yield opened


def operations(client):
    return list(schemathesis.openapi.from_asgi("/api/v1/openapi.json", client.app).get_all_operations())


def test_requests_from_the_description_never_break_the_service(client):
    chance = random.Random(0)
    count = 0
    for result in operations(client):
        operation = result.ok()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def send(case):
            nonlocal count
            count += 1
            token = OPERATOR if case.path.endswith(("advise", "verify")) else begin(client)[0]["Authorization"][7:]
            if isinstance(case.body, dict) and isinstance(case.body.get("facts"), dict) and chance.random() < 0.7:
                case.body["facts"] = {chance.choice(WORDS): value for value in case.body["facts"].values()}
            case.headers = {**(case.headers or {}), **bearer(token)}
            response = case.call()
            # What is well-formed may still be no fact of the card, or no plan that is offered.
            case.validate_response(response, excluded_checks=[positive_data_acceptance])
            assert response.status_code < 500

        send()
    assert count >= 200


def test_every_action_is_described(client):
    described = client.get("/api/v1/openapi.json").json()
    actions = ("answers", "declines", "undo", "wishes", "choice", "stop", "go-on", "what-if", "receipt", "letter")
    for action in (*actions, "let-down", "language"):
        operation = described["paths"][f"{HERE}/{action}"]["post"]
        problems = {
            code
            for code, answer in operation["responses"].items()
            if "application/problem+json" in answer.get("content", {})
        }
        assert {"400", "401", "413", "422", "429"} <= problems
        assert operation["security"] == [{"interview": []}]
    assert "HTTPValidationError" not in described["components"]["schemas"]
    assert {"Problem", "FieldProblem", "InterviewState", "PlanState"} <= set(described["components"]["schemas"])
