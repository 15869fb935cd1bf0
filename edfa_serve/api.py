"""The JSON API under ``/api/v1``: every action of the page, for programs.

The token of an interview is in the ``Authorization`` header and nowhere else; there are no cookies,
so that no other site can act for somebody. ``POST`` with an ``Idempotency-Key`` may be sent again
after a lost answer.
"""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import pandas as pd
from fastapi import APIRouter, Depends, Header, Query, Request, Response, status
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

from edfa.advice.batch import advise
from edfa.advice.interview import AnswerLog
from edfa.advice.receipt import Receipt, now
from edfa.advice.verify import verify as verify_receipt
from edfa.errors import EdfaError, FactError, UnknownNameError, UnreadableError
from edfa.text import phrases
from edfa_serve import models, states
from edfa_serve.decisions import decide, read_taken
from edfa_serve.problems import FieldsError, ProblemError, pointer, responses
from edfa_serve.rendering import writes_letters
from edfa_serve.security import check_operator, has_key
from edfa_serve.service import AUDIT, Service, Session
from edfa_serve.turns import TURNS


class TurnRoute(APIRoute):
    """A route whose function, if it works in a thread, waits for its turn there and writes the
    model it returns to JSON. Coroutines are called as they are.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **settings: Any) -> None:
        status = settings.get("status_code") or 200
        if not inspect.iscoroutinefunction(endpoint):
            endpoint = _in_turn(inspect.unwrap(endpoint), status)
        super().__init__(path, endpoint, **settings)


def _in_turn(work: Callable[..., Any], status: int) -> Callable[..., Any]:
    @functools.wraps(work)
    def worked(*arguments: Any, **named: Any) -> Any:
        with TURNS.take():
            answer = work(*arguments, **named)
            return (
                _json(answer.model_dump_json(), status) if isinstance(answer, BaseModel) else answer
            )

    return worked


def _json(text: str, status: int = 200) -> Response:
    """JSON that was written already."""
    return Response(text, status, media_type="application/json")


PREFIX = "/api/v1"
HERE = f"{PREFIX}/interviews/current"
router = APIRouter(route_class=TurnRoute)
_person = HTTPBearer(
    auto_error=False, scheme_name="interview", description="The token of an interview."
)
_operator = HTTPBearer(auto_error=False, scheme_name="operator", description="The operator's key.")
Result = TypeVar("Result")
Credentials = HTTPAuthorizationCredentials | None


# What only looks something up is ``async``: it would cost a change of threads otherwise.
async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _token(given: Annotated[Credentials, Depends(_person)]) -> str:
    if given is None or not given.credentials:
        raise ProblemError("no-token", "send Authorization: Bearer TOKEN")
    return given.credentials


# the parameter is for the description alone
async def _check_operator(request: Request, _: Annotated[Credentials, Depends(_operator)]) -> None:
    check_operator(request, by_cookie=False)


Token = Annotated[str, Depends(_token)]
Serving = Annotated[Service, Depends(_service)]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=8,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Any word of yours, new for each action: if it is sent again "
        "with the same body, nothing is done "
        "and the answer is the same; with another body it is an error.",
    ),
]
ACTS = responses(
    "no-token", "unknown-interview", "conflict", "other-advisor", "fact", "unknown-name", "unusable"
)
READS = responses("no-token", "unknown-interview", "other-advisor")
reading = APIRouter(prefix=HERE, tags=["interview"], responses=READS, route_class=TurnRoute)
acting = APIRouter(prefix=HERE, tags=["interview"], responses=ACTS, route_class=TurnRoute)


@dataclass(frozen=True)
class Action:
    """One action in the interview of a request, which may be sent again.

    Parameters
    ----------
    token
        What opens the interview.
    service
        The service of the application.
    key
        The client's ``Idempotency-Key``, if any.
    path
        The path of the request, a part of what the key stands for.
    """

    token: str
    service: Service
    key: str | None
    path: str

    def do(self, given: models.Step, kind: str, content: Mapping[str, Any]) -> Session:
        """Do it, unless the same was done before, and record what is shown of it.

        Parameters
        ----------
        given
            The body of the request.
        kind, content
            What to do, as for ``Service.act``.

        Returns
        -------
        Session
            The interview after it.
        """
        body = self.path.encode() + given.model_dump_json().encode()
        return self.service.act(
            self.token,
            given.seq,
            kind,
            content,
            page=None if kind in AUDIT else "api",
            request=None if self.key is None else (self.key, body),
        )

    def state(
        self, given: models.Step, kind: str, content: Mapping[str, Any]
    ) -> models.InterviewState:
        """Do it as ``do`` does, and describe the interview as it stands then."""
        return states.interview_state(self.do(given, kind, content))


async def _action(request: Request, token: Token, service: Serving, key: Key = None) -> Action:
    return Action(token, service, key, request.url.path)


Acting = Annotated[Action, Depends(_action)]


def _check_facts(service: Service, facts: Mapping[str, Any]) -> None:
    """Raise FieldsError with a pointer to every fact that cannot be understood."""
    fitted = service.advisor.fitted
    log, wrong = AnswerLog(fitted.schema, fitted.encoder, relevant=fitted.relevant), []
    for name, value in facts.items():
        try:
            fitted.schema.index(name)
            log.check_value(name, value)
        except (FactError, UnknownNameError) as error:
            wrong.append((pointer("facts", name), error))
    if wrong:
        raise FieldsError(wrong)


def _at(place: str, work: Callable[..., Result], *arguments: Any) -> Result:
    """Call ``work`` and return what it returns; an error of it has this JSON pointer."""
    try:
        return work(*arguments)
    except (FactError, UnknownNameError) as error:
        raise FieldsError([(place, error)]) from None


@router.get(f"{PREFIX}/schema", tags=["about"], responses=responses("unknown-name"))
def schema(
    service: Serving, language: Annotated[str, Query(max_length=10)] = "en"
) -> models.SchemaState:
    """What is asked, in a language."""
    _at("/language", phrases.table, language)
    return states.schema_state(service.advisor.fitted, language)


@router.post(
    f"{PREFIX}/interviews",
    tags=["interview"],
    status_code=status.HTTP_201_CREATED,
    responses=responses("fact", "unknown-name"),
)
def begin(service: Serving, given: models.Begin) -> models.Begun:
    """Begin an interview. Its token is in this answer and never again."""
    _at("/language", phrases.table, given.language)
    _check_facts(service, given.facts)
    token, session = service.begin(given.facts, given.language, page="api")
    return models.Begun(token=token, interview=states.interview_state(session))


@reading.get("")
def current(service: Serving, token: Token) -> models.InterviewState:
    """The interview as it stands."""
    return states.interview_state(service.find(token))


@reading.delete("", status_code=status.HTTP_204_NO_CONTENT)
def delete(service: Serving, token: Token) -> Response:
    """Forget everything that was said. That there was an interview, and when, stays."""
    service.delete(token)
    return Response(status_code=status.HTTP_204_NO_CONTENT)


@acting.post("/answers")
def answers(action: Acting, given: models.Answers) -> models.InterviewState:
    """Tell one or more facts, asked for or not."""
    _check_facts(action.service, given.facts)
    return action.state(given, "answer", {"facts": given.facts})


@acting.post("/declines")
def declines(action: Acting, given: models.Decline) -> models.InterviewState:
    """Rather not tell a fact: it is not asked again, and what comes next is planned without it."""
    _at("/feature", action.service.advisor.schema.index, given.feature)
    return action.state(given, "decline", {"name": given.feature})


@acting.post("/undo")
def undo(action: Acting, given: models.Undo) -> models.InterviewState:
    """Take back the last answer or refusal, or the one about a feature."""
    if given.feature is not None:
        _at("/feature", action.service.advisor.schema.index, given.feature)
    return action.state(given, "undo", {"name": given.feature})


@acting.post("/overlay")
def overlay(action: Acting, given: models.SetOverlay) -> models.InterviewState:
    """Plan again with what is hard or impossible for the person."""
    schema, limits = action.service.advisor.schema, given.overlay
    for field in ("locked", "difficulty", "ranges", "levels", "never_ask"):
        for name in getattr(limits, field):
            _at(f"/overlay/{field}", schema.index, name)
    return action.state(
        given, "overlay", {"overlay": limits.model_dump(exclude_defaults=True, mode="json")}
    )


@acting.post("/language")
def speak(action: Acting, given: models.Speak) -> models.InterviewState:
    """Go on in another language."""
    _at("/language", phrases.table, given.language)
    return action.state(given, "language", {"language": given.language})


@acting.post("/choice")
def choice(action: Acting, given: models.Choice) -> models.InterviewState:
    """Choose a plan that is offered."""
    return _at("/plan", action.state, given, "choose", {"plan": given.plan})


@acting.post("/stop")
def stop(action: Acting, given: models.Step) -> models.InterviewState:
    """Want no more questions."""
    return action.state(given, "stop", {})


@acting.post("/go-on")
def go_on(action: Acting, given: models.Step) -> models.InterviewState:
    """Want to be asked on, although one may act or has stopped."""
    return action.state(given, "go_on", {})


@acting.post("/let-down")
def let_down(action: Acting, given: models.LetDown) -> models.InterviewState:
    """Report that the plan was done and did not lead where it should. The operator sees it, with
    the plan.
    """
    session = action.service.find(action.token)
    content = {"plan": given.plan or session.chosen, "may_act": session.record.standing.may_act}
    return action.state(given, "let_down", content)


@reading.get("/plans")
def plans(
    service: Serving, token: Token, k: Annotated[int, Query(ge=1, le=5)] = 3
) -> models.Offered:
    """At most ``k`` plans, the best first; or why there is none."""
    return states.offered(service.find(token), k)


@acting.post("/what-if")
def what_if(service: Serving, token: Token, given: models.Suppose) -> models.Supposed:
    """What would be if some facts were otherwise; nothing is kept."""
    _check_facts(service, given.facts)
    return states.supposed_state(service.find(token), given.facts)


@router.post(f"{HERE}/receipt", tags=["receipt"], response_model=models.ReceiptBody, responses=ACTS)
def hand_out_receipt(action: Acting, given: models.Step | None = None) -> Response:
    """A receipt of the interview as it stands, to keep; signed if the operator has a key. That it
    was is recorded.
    """
    # What cannot be made yet is not recorded as handed out.
    action.service.find(action.token).interview.receipt()
    session = action.do(given or models.Step(), "receipt", {"time": now()})
    return _again(action.service, action.token, session.seq)


@router.get(
    f"{HERE}/receipt",
    tags=["receipt"],
    response_model=models.ReceiptBody,
    responses=responses("no-token", "unknown-interview", "no-receipt", "other-advisor"),
)
def receipt(service: Serving, token: Token) -> Response:
    """The receipt that was handed out last, again."""
    return _again(service, token)


def _again(service: Service, token: str, seq: int | None = None) -> Response:
    last = service.last_receipt(token, seq)
    if last is None:
        raise ProblemError("no-receipt", "POST hands one out")
    return _json(last.to_json())


@router.post(
    f"{HERE}/letter",
    tags=["receipt"],
    responses=responses(
        "no-token", "unknown-interview", "no-letters", "conflict", "other-advisor", "unusable"
    ),
)
def letter(request: Request, action: Acting, given: models.LetterWanted) -> models.LetterState:
    """The letter that a lender may send to somebody who was refused."""
    if not writes_letters(request):
        raise ProblemError("no-letters", "the operator has declared no letter.toml")
    session = action.service.find(action.token)
    text, audit = request.app.state.write_letter(session, given.template)
    return models.LetterState(seq=action.do(given, "letter", audit).seq, html=text)


@router.put(
    f"{PREFIX}/decisions",
    tags=["operator"],
    dependencies=[Depends(_check_operator)],
    responses=responses(
        "no-operator", "closed", "unknown-interview", "conflict", "other-advisor", "unusable"
    ),
)
def decisions(service: Serving, given: models.DecisionMade) -> models.DecisionRecorded:
    """What was decided about a person, by whom and when: recorded, and told in their letter. For
    the operator.
    """
    declared = given.model_dump(exclude={"interview", "seq"}, exclude_none=True)
    record = decide(service, given.interview, read_taken(declared), given.seq)
    return models.DecisionRecorded(interview=record.id, seq=record.seq)


@router.post(f"{PREFIX}/verify", tags=["receipt"], responses=responses("unusable"))
def verify(
    request: Request,
    service: Serving,
    given: models.Verify,
    _: Annotated[Credentials, Depends(_operator)],
) -> models.Verified:
    """Replay a receipt's interview and say what differs; with the operator's key, whether its
    signature is right.
    """
    events = given.receipt.get("events")
    if isinstance(events, list) and len(events) > models.MOST_EVENTS:
        raise FieldsError([("/receipt/events", EdfaError(f"at most {models.MOST_EVENTS} events"))])
    try:
        handed_out = Receipt.from_json(json.dumps(given.receipt))
        secret = service.key if has_key(request) else None
        return states.verified_state(
            verify_receipt(service.advisor.fitted, handed_out, secret, service.certify_later)
        )
    except EdfaError as error:
        raise FieldsError([("/receipt", error)]) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        unreadable = UnreadableError("this is not a receipt of edfa")
        raise FieldsError([("/receipt", unreadable)]) from None


@router.post(
    f"{PREFIX}/advise",
    tags=["operator"],
    dependencies=[Depends(_check_operator)],
    responses=responses("no-operator", "closed"),
)
def advise_people(service: Serving, given: models.People) -> models.Advised:
    """Advice for many people at once; whoever's facts are wrong has an error in their row. For the
    operator.
    """
    fitted = service.advisor.fitted
    names = {name for person in given.people for name in person}
    for name in names:
        _at("/people", fitted.schema.index, name)
    columns, index = [n for n in fitted.schema.names if n in names], range(len(given.people))
    frame = pd.DataFrame(given.people, index=index, columns=columns, dtype=object)
    rows = advise(fitted, frame, given.k, certify_later=service.certify_later).astype(object)
    rows = rows.where(rows.notna(), None)
    people = [row | {"plans": json.loads(row["plans"] or "[]")} for row in rows.to_dict("records")]
    return models.Advised.model_validate({"advisor": fitted.fingerprint, "people": people})


router.include_router(reading)
router.include_router(acting)
