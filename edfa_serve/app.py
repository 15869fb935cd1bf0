"""The web application: the applicant's page, the operator's view and the JSON API over one
service.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse
from threadpoolctl import threadpool_limits

from edfa import __version__
from edfa.errors import EdfaError
from edfa_serve import api
from edfa_serve.decisions import letter_writer
from edfa_serve.metrics import CONTENT_TYPE, Metrics
from edfa_serve.operator import add_operator
from edfa_serve.operator_access import check_operator
from edfa_serve.pages import add_pages
from edfa_serve.problems import FieldProblem, Problem, handle_error, problem_of, respond, responses
from edfa_serve.security import Guard
from edfa_serve.service import Service
from edfa_serve.settings import WebSettings
from edfa_serve.store import InterviewStore

__all__ = ["create_app"]

LOG = logging.getLogger("edfa_serve")
SECONDS = 3600.0
THREADS = 4  # that work for requests at a time; more would only wait for each other
ABOUT = """What to ask a person next, what they can change, and when they may act.

An interview is opened by its token, which is handed out once: `Authorization: Bearer TOKEN`. Every action may name the
number of events that were seen (`seq`); if there are more, it is a conflict and nothing is done. Errors are
`application/problem+json`."""  # noqa: E501


@asynccontextmanager
async def forget_old(
    store: InterviewStore, settings: WebSettings, seconds: float = SECONDS
) -> AsyncIterator[None]:
    """While the block runs, delete interviews that are older than the settings keep them; at once,
    then every hour.

    Several processes do so at different times; that two do is harmless.
    """
    task = asyncio.create_task(_forget(store, settings, seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _forget(store: InterviewStore, settings: WebSettings, seconds: float) -> None:
    while True:
        try:
            gone = await run_in_threadpool(
                store.expire, settings.keep_unfinished, settings.keep_finished
            )
            if gone:
                LOG.info("expired=%d", gone)
        except EdfaError as error:  # the database is away; the next time it may be back
            LOG.warning("expiry failed: %s", type(error).__name__)
        await asyncio.sleep(seconds * random.uniform(0.9, 1.1))  # noqa: S311


def create_app(service: Service, settings: WebSettings | None = None) -> FastAPI:
    """An ASGI application; ``uvicorn`` or any other server runs it.

    Parameters
    ----------
    service
        The advisor and its interviews.
    settings
        See ``WebSettings``.
    """
    app = FastAPI(
        title="edfa",
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{api.PREFIX}/openapi.json",
        lifespan=_live,
    )
    app.state.service, app.state.settings = service, settings or WebSettings()
    app.state.metrics = Metrics()
    # Letters: a function of a session and the name of a template that gives the letter's HTML and
    # what is recorded of it; None: no letters are written.
    letter = app.state.settings.letter
    languages, usual = app.state.settings.languages, app.state.settings.letter_template
    app.state.write_letter = None if letter is None else letter_writer(letter, languages, usual)
    app.add_middleware(Guard, settings=app.state.settings, metrics=app.state.metrics)
    for error in (EdfaError, RequestValidationError, HTTPException):
        app.add_exception_handler(error, handle_error)
    app.include_router(api.router)
    add_operator(app)
    _add_checks(app)
    add_pages(app)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _live(app: FastAPI) -> AsyncIterator[None]:
    """While the application runs: one thread for each matrix product, and old interviews are
    deleted.
    """
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    with threadpool_limits(1):
        async with forget_old(app.state.service.store, app.state.settings):
            yield


def _add_checks(app: FastAPI) -> None:
    alone = anyio.CapacityLimiter(1)  # a thread of its own: it answers however busy the others are

    @app.get("/healthz", tags=["about"], response_model=dict[str, str], responses=responses())
    async def healthz(request: Request) -> Response:
        """Whether the service and its database answer."""
        try:
            await anyio.to_thread.run_sync(request.app.state.service.store.check, limiter=alone)
        except EdfaError:
            return respond(problem_of("unavailable"), request.scope.get("edfa.request", ""))
        return JSONResponse({"status": "ok", "version": __version__})

    @app.get("/metrics", include_in_schema=False)
    def metrics(request: Request) -> Response:
        check_operator(request)
        text = request.app.state.metrics.text(request.app.state.service.store.count())
        return PlainTextResponse(text, media_type=CONTENT_TYPE)


def _describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with what errors look like."""
    if app.openapi_schema is None:
        described = FastAPI.openapi(app)
        schemas = described.setdefault("components", {}).setdefault("schemas", {})
        for model in (FieldProblem, Problem):
            content = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas[model.__name__] = {
                key: value for key, value in content.items() if key != "$defs"
            }
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = described
    return app.openapi_schema
