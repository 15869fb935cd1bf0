"""Pages from templates: escaped, never kept by a cache, with a policy that lets nothing run but our own files."""

from functools import cache
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse

from edfa.web.assets import asset_url
from edfa.web.wording import Wording, sentences

__all__ = ["HEADERS", "redirect", "render"]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Vary": "HX-Request, Cookie, Accept-Language",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms without their origin
    "X-Content-Type-Options": "nosniff",
}


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("edfa.web"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = asset_url
    return environment


def render(request: Request, name: str, wording: Wording, status: int = 200, **context: Any) -> HTMLResponse:
    """A page; ``context`` is what its template shows. An ``error`` is said in the title too."""
    languages = {code: sentences(code)["language"] for code in request.app.state.wordings}
    defaults = {"csrf": "", "seq": 0, "errors": (), "notice": "", "scripts": False, "here": request.url.path}
    settings = request.app.state.settings
    text = (
        _environment()
        .get_template(name)
        .render(**(defaults | context), t=wording, wording=wording, languages=languages, settings=settings)
    )
    return HTMLResponse(text, status, headers=HEADERS)


def redirect(where: str) -> RedirectResponse:
    """Send the browser on to a page, so that reloading it sends no form again."""
    return RedirectResponse(where, 303, headers=HEADERS)
