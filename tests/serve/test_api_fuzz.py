"""Whatever a client sends that the API's own description allows, or forbids: no fault, and answers
as described.
"""

import random
from contextlib import suppress
from itertools import product

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    negative_data_rejection,
    positive_data_acceptance,
)
from web_service import HERE, OPERATOR, bearer, begin, serving

BOUNDED = settings(
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
WORDS = ("age", "duration", "checking_status", "purpose", "credit_amount", "nothing")
# The tests put in a token in place of an invented one, and what is well-formed need not be a fact
# of the card.
NOT_CHECKED = [positive_data_acceptance, ignored_auth, negative_data_rejection]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("fuzz") / "interviews.sqlite") as opened:
        yield opened


@pytest.mark.long
def test_requests_from_the_description_never_break_the_service(client):
    chance, statuses = random.Random(0), []  # noqa: S311

    def check(case):
        token = (
            OPERATOR
            if case.path.endswith(("advise", "verify"))
            else begin(client)[0]["Authorization"][7:]
        )
        if (
            isinstance(case.body, dict)
            and isinstance(case.body.get("facts"), dict)
            and chance.random() < 0.7
        ):
            case.body["facts"] = {
                chance.choice(WORDS): value for value in case.body["facts"].values()
            }
        case.headers = {**(case.headers or {}), **bearer(token)}
        response = case.call()
        statuses.append(response.status_code)
        assert response.status_code < 500
        case.validate_response(response, excluded_checks=NOT_CHECKED)

    operations = list(
        schemathesis.openapi.from_asgi("/api/v1/openapi.json", client.app).get_all_operations()
    )
    for operation, mode in product(operations, (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)):
        with suppress(Unsatisfiable):  # where nothing is taken, nothing wrong can be sent
            BOUNDED(given(case=operation.ok().as_strategy(generation_mode=mode))(check))()
    assert len(statuses) >= 200
    assert {200, 201, 204, 422} <= {*statuses}


def test_every_action_is_described(client):
    described = client.get("/api/v1/openapi.json").json()
    actions = (
        "answers",
        "declines",
        "undo",
        "overlay",
        "choice",
        "stop",
        "go-on",
        "what-if",
        "receipt",
        "letter",
    )
    for action in (*actions, "let-down", "language"):
        operation = described["paths"][f"{HERE}/{action}"]["post"]
        answers = operation["responses"].items()
        problems = {
            code
            for code, answer in answers
            if "application/problem+json" in answer.get("content", {})
        }
        assert {"400", "401", "413", "422", "429"} <= problems
        assert operation["security"] == [{"interview": []}]
    assert "HTTPValidationError" not in described["components"]["schemas"]
    assert {"Problem", "FieldProblem", "InterviewState", "PlanState"} <= set(
        described["components"]["schemas"]
    )
