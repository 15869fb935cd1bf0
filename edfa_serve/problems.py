"""Errors as RFC 9457 describes them: ``application/problem+json``, a ``type`` for each, the field
as a JSON pointer.

``handle_error`` answers a request that ended in an exception. The detail is for the client who sent
the request and may quote what they sent; it goes into no log. What is wrong with the server is said
in general words alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from edfa.errors import (
    EdfaError,
    FactError,
    MismatchError,
    MissingExtraError,
    PendingError,
    UnavailableError,
    UnknownNameError,
    UnwritableError,
)
from edfa_serve.store import ConflictError, RepeatedKeyError, UnknownInterviewError

MEDIA = "application/problem+json"
TYPE = "urn:edfa:problem:"
BUSY = "the service cannot reach its database now; nothing was changed, try again later"


class FieldProblem(BaseModel):
    """What is wrong with one part of the body."""

    pointer: str = Field(
        description="JSON pointer into the body; empty: the body as a whole.",
        examples=["/facts/age"],
    )
    detail: str = Field(examples=["age: 'old' is not a number"])


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = Field(
        description="One for each kind of error; docs/api.md lists them.", examples=[f"{TYPE}fact"]
    )
    title: str = Field(examples=["A fact cannot be understood"])
    status: int = Field(examples=[422])
    detail: str = Field(default="", description="What is wrong, in one line.")
    instance: str = Field(default="", description="The id of the request, as in the service's log.")
    errors: list[FieldProblem] = Field(
        default_factory=list, description="What is wrong where in the body."
    )


TITLES = {
    "bad-request": (400, "The request cannot be read"),
    "no-token": (401, "A token is needed"),
    "no-operator": (401, "The operator's key is needed"),
    "closed": (403, "This service has no operator's key, so that this is closed"),
    "not-found": (404, "There is nothing here"),
    "unknown-interview": (401, "The token opens no interview"),
    "no-letters": (404, "This service writes no letters"),
    "no-receipt": (404, "No receipt was handed out yet"),
    "not-allowed": (405, "This is not possible here"),
    "conflict": (409, "The interview has gone on meanwhile"),
    "other-advisor": (409, "The interview was held with another advisor"),
    "too-large": (413, "The body is too large"),
    "media-type": (415, "A body is JSON"),
    "invalid": (422, "The body is not what is asked for"),
    "fact": (422, "A fact cannot be understood"),
    "unknown-name": (422, "An unknown name"),
    "unusable": (422, "This cannot be done"),
    "repeated-key": (422, "The Idempotency-Key belongs to another request"),
    "too-many": (429, "Too many requests"),
    "fault": (500, "A fault in the service"),
    "pending": (503, "The answer is still being worked out"),
    "unavailable": (503, "The service is not available"),
}
# what any route may answer
ALWAYS = (
    "bad-request",
    "too-large",
    "media-type",
    "invalid",
    "too-many",
    "pending",
    "unavailable",
)
_KINDS: tuple[tuple[type[EdfaError], str], ...] = (
    (UnknownInterviewError, "unknown-interview"),
    (ConflictError, "conflict"),
    (MismatchError, "other-advisor"),
    (RepeatedKeyError, "repeated-key"),
    (FactError, "fact"),
    (UnknownNameError, "unknown-name"),
    (PendingError, "pending"),
    (UnavailableError, "unavailable"),
    (UnwritableError, "unavailable"),
    (MissingExtraError, "unavailable"),
)


class ProblemError(EdfaError):
    """An error of the API itself.

    Parameters
    ----------
    kind
        Its name in ``TITLES``.
    detail
        What is wrong, in one line.
    errors
        What is wrong where in the body.
    """

    def __init__(self, kind: str, detail: str = "", errors: Iterable[FieldProblem] = ()) -> None:
        super().__init__(detail)
        self.kind, self.errors = kind, errors


class ForgedError(ProblemError):
    """A form that did not come from this page."""

    def __init__(self) -> None:
        super().__init__("bad-request", "this form did not come from this page; open it again")


class FieldsError(ProblemError):
    """Parts of a body that are wrong.

    Parameters
    ----------
    errors
        JSON pointers and the errors there, at least one; the kind of the problem is that of the
        first.
    """

    def __init__(self, errors: Sequence[tuple[str, Exception]]) -> None:
        wrong = [FieldProblem(pointer=pointer, detail=str(error)) for pointer, error in errors]
        super().__init__(_kind(errors[0][1]), wrong[0].detail, wrong)


def _kind(error: Exception) -> str:
    return next((kind for cls, kind in _KINDS if isinstance(error, cls)), "unusable")


def problem_of(kind: str, detail: str = "", errors: Iterable[FieldProblem] = ()) -> Problem:
    """Make a problem.

    Parameters
    ----------
    kind
        Its name in ``TITLES``.
    detail
        What is wrong, in one line.
    errors
        What is wrong where in the body.
    """
    status, title = TITLES[kind]
    return Problem(type=TYPE + kind, title=title, status=status, detail=detail, errors=list(errors))


def respond(
    problem: Problem, request_id: str = "", headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Make the response that says a problem.

    Parameters
    ----------
    problem
        The problem.
    request_id
        The id of the request, as in the log; empty: it has none.
    headers
        Further headers.
    """
    instance = f"urn:edfa:request:{request_id}" if request_id else ""
    content = problem.model_dump() | {"instance": instance}
    return JSONResponse(content, problem.status, headers, MEDIA)


def _of_error(error: EdfaError) -> Problem:
    """The problem of an error of edfa."""
    if isinstance(error, ProblemError):
        return problem_of(error.kind, str(error), error.errors)
    kind = _kind(error)
    # The message of a database that does not answer names its place, which is no
    # business of the client.
    return problem_of(kind, BUSY if kind == "unavailable" else str(error))


def _of_validation(error: RequestValidationError) -> Problem:
    """What the models refuse; without the values, which may be long."""
    parts: list[FieldProblem] = []
    for part in error.errors():
        place, *where = map(str, part["loc"])
        if part["type"] == "json_invalid":
            return problem_of("bad-request", "the body is not JSON")
        if place == "body":
            parts.append(FieldProblem(pointer=pointer(*where), detail=part["msg"]))
        else:
            detail = f"{' '.join([place, *where])}: {part['msg']}"
            parts.append(FieldProblem(pointer="", detail=detail))
    return problem_of("invalid", parts[0].detail if parts else "", parts[:20])


def pointer(*steps: str) -> str:
    """The JSON pointer to a part of a body.

    >>> pointer("facts", "a/b")
    '/facts/a~1b'
    """
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


_BY_STATUS = {
    400: "bad-request",
    401: "no-token",
    404: "not-found",
    405: "not-allowed",
    413: "too-large",
}


def handle_error(request: Request, error: Exception) -> Response:
    """Answer a request that ended in an exception.

    Parameters
    ----------
    request
        The request. Outside the API, health and metrics the answer is plain text.
    error
        What was raised. What is no error of edfa, of FastAPI or Starlette is a fault, of which only
        that is said.
    """
    headers = dict(getattr(error, "headers", None) or {})
    if isinstance(error, RequestValidationError):
        problem = _of_validation(error)
    elif isinstance(error, EdfaError):
        problem = _of_error(error)
    elif isinstance(error, HTTPException):
        problem = problem_of(_BY_STATUS.get(error.status_code, "bad-request"))
    else:
        unchanged = "nothing was changed by this request unless it was said before"
        problem = problem_of("fault", unchanged)
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if not request.url.path.startswith(("/api/", "/healthz", "/metrics")):
        return PlainTextResponse(f"{problem.title}.", problem.status, headers)
    return respond(problem, request.scope.get("edfa.request", ""), headers)


def responses(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Describe for OpenAPI what a route may answer besides success.

    Parameters
    ----------
    kinds
        Names in ``TITLES``; those of ``ALWAYS`` are described of every route.

    Returns
    -------
    dict
        Responses by their status, as FastAPI takes them.
    """
    described: dict[int | str, dict[str, Any]] = {}
    for kind in (*kinds, *ALWAYS):
        status, title = TITLES[kind]
        content = {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}
        response = {"description": HTTPStatus(status).phrase, "content": {MEDIA: content}}
        examples = described.setdefault(status, response)["content"][MEDIA]["examples"]
        example = problem_of(kind).model_dump(exclude={"instance", "errors"})
        examples[kind] = {"summary": title, "value": example}
    return described
