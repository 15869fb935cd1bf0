"""The web application: the applicant's page, the operator's view and the JSON API over one service."""

from fastapi import FastAPI

from edfa import __version__
from edfa.web.pages import add_pages
from edfa.web.service import Service
from edfa.web.settings import WebSettings

__all__ = ["create_app"]


def create_app(service: Service, settings: WebSettings | None = None) -> FastAPI:
    """An ASGI application; ``uvicorn`` or any other server runs it.

    Parameters
    ----------
    service
        The advisor and its interviews.
    settings
        See ``WebSettings``.
    """
    app = FastAPI(title="edfa", version=__version__, docs_url=None, redoc_url=None, openapi_url="/api/v1/openapi.json")
    app.state.service, app.state.settings = service, settings or WebSettings()
    add_pages(app)
    return app
