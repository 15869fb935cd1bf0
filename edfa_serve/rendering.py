"""Pages from templates: escaped, never kept by a cache, with a policy that lets nothing run but our
own files.
"""

from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from edfa.reading import RESOURCES
from edfa_serve.assets import asset_url
from edfa_serve.service import Session
from edfa_serve.wording import Wording, sentences

__all__ = ["HEADERS", "LETTER_HEADERS", "has_letter", "redirect", "render", "writes_letters"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Vary": "HX-Request, Cookie, Accept-Language",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms without their origin
    "X-Content-Type-Options": "nosniff",
}

LETTER_HEADERS = HEADERS | {  # a letter is one file with its own style, and nothing in it runs
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    )
}


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("edfa_serve"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = asset_url
    return environment


def render(
    request: Request, name: str, wording: Wording, status: int = 200, **context: Any
) -> HTMLResponse:
    """A page; ``context`` is what its template shows. An ``error`` is said in the title too."""
    languages = {code: sentences(code)["language"] for code in request.app.state.wordings}
    defaults = {
        "csrf": "",
        "seq": 0,
        "errors": (),
        "notice": "",
        "scripts": False,
        "letters": False,
        "here": request.url.path,
    }
    settings = request.app.state.settings
    text = (
        RESOURCES.get("page templates", _environment)
        .get_template(name)
        .render(
            **(defaults | context),
            t=wording,
            wording=wording,
            languages=languages,
            settings=settings,
        )
    )
    return HTMLResponse(text, status, headers=HEADERS)


def writes_letters(request: Request) -> bool:
    """Whether the operator writes letters: the application then has a ``state.write_letter``."""
    return getattr(request.app.state, "write_letter", None) is not None


def has_letter(request: Request, session: Session) -> bool:
    """Whether a letter can be written to the person of a session: somebody has declared what was
    decided.
    """
    return writes_letters(request) and bool(request.app.state.write_letter.can_write(session))


def redirect(where: str) -> RedirectResponse:
    """Send the browser on to a page, so that reloading it sends no form again."""
    return RedirectResponse(where, 303, headers=HEADERS)
