"""The web application: page, operator's view and JSON API over one service.

``create_app`` makes it. The applicant's page is in ``pages``, the operator's view in ``operator``,
the API in ``api``; what every request passes is in ``security``.
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
from pydantic.json_schema import models_json_schema
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse
from threadpoolctl import threadpool_limits

from edfa import __version__
from edfa.errors import EdfaError
from edfa_serve import api
from edfa_serve.decisions import LetterWriter
from edfa_serve.metrics import CONTENT_TYPE, Metrics
from edfa_serve.operator import add_operator
from edfa_serve.pages import add_pages
from edfa_serve.problems import FieldProblem, Problem, handle_error, problem_of, respond, responses
from edfa_serve.security import Guard, check_operator
from edfa_serve.service import Service
from edfa_serve.settings import WebSettings
from edfa_serve.store import InterviewStore

LOG = logging.getLogger("edfa_serve")
SECONDS_BETWEEN_EXPIRIES = 3600.0
THREADS = 4  # that work for requests at a time; more would only wait for each other
ABOUT = """What to ask a person next, what they can change, and when they may act.

An interview is opened by its token, which is handed out once: `Authorization: Bearer TOKEN`. Every action may name the
number of events that were seen (`seq`); if there are more, it is a conflict and nothing is done. Errors are
`application/problem+json`."""  # noqa: E501


async def _forget_old(store: InterviewStore, settings: WebSettings) -> None:
    """Delete interviews that are older than the settings allow, now and then every hour.

    Several processes do so at different times; that two do is harmless.
    """
    while True:
        try:
            gone = await run_in_threadpool(
                store.expire, settings.keep_unfinished, settings.keep_finished
            )
            if gone:
                LOG.info("expired=%d", gone)
        except EdfaError as error:  # the database is away; the next time it may be back
            LOG.warning("expiry failed: %s", type(error).__name__)
        await asyncio.sleep(SECONDS_BETWEEN_EXPIRIES * random.uniform(0.9, 1.1))  # noqa: S311


def create_app(service: Service, settings: WebSettings | None = None) -> FastAPI:
    """Make the web application; ``uvicorn`` or any other ASGI server runs it.

    Parameters
    ----------
    service
        The advisor and its interviews.
    settings
        How it is served; by default ``WebSettings()``.

    Returns
    -------
    FastAPI
        The application. Its ``state`` has ``service``, ``settings``, ``metrics`` and
        ``write_letter``: the writer of letters, None if no letters are written.

    Raises
    ------
    SettingError
        If something is wrong with the operator's ``letter.toml``.

    Examples
    --------
    >>> from edfa_serve.store import InterviewStore
    >>> store = InterviewStore.open("interviews.sqlite")  # doctest: +SKIP
    >>> app = create_app(Service(advisor, store), WebSettings())  # doctest: +SKIP
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
    settings = settings or WebSettings()
    app.state.service, app.state.settings, app.state.metrics = service, settings, Metrics()
    app.state.write_letter = None if settings.letter is None else LetterWriter.of(settings)
    app.add_middleware(Guard, settings=settings, metrics=app.state.metrics)
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
    """While the application runs, delete old interviews, and use one thread for a matrix product:
    requests have a thread each already.
    """
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    task = asyncio.create_task(_forget_old(app.state.service.store, app.state.settings))
    try:
        with threadpool_limits(1):
            yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


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
        _, models = models_json_schema(
            [(FieldProblem, "validation"), (Problem, "validation")],
            ref_template="#/components/schemas/{model}",
        )
        schemas |= models["$defs"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        app.openapi_schema = described
    return app.openapi_schema
