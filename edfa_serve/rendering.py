"""Pages from templates, and the files that pages load.

``render`` makes a page: everything in it is escaped, no cache keeps it, and nothing runs in it but
the files of ``edfa_serve/static``, which ``serve_asset`` sends.
"""

import functools
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from edfa.reading import RESOURCES
from edfa.text.phrases import LANGUAGES
from edfa_serve.forms import Field
from edfa_serve.limits import Control
from edfa_serve.service import Session
from edfa_serve.wording import Wording, sentences

KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FOR_GOOD = "public, max-age=31536000, immutable"
HEADERS = {  # beside those of every answer: see edfa_serve.security
    "Vary": "HX-Request, Cookie, Accept-Language",
    "Referrer-Policy": "same-origin",  # with none at all, browsers send forms without their origin
}
LETTER_HEADERS = HEADERS | {  # a letter is one file with its own style, and nothing in it runs
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    )
}


@dataclass(frozen=True)
class Asset:
    """One file.

    Parameters
    ----------
    content, compressed
        Its bytes, plain and as gzip.
    kind
        Its media type.
    digest
        The first 12 digits of its SHA-256.
    """

    content: bytes
    compressed: bytes
    kind: str
    digest: str


def assets() -> dict[str, Asset]:
    """All files of ``edfa_serve/static``, by name."""
    found: dict[str, Asset] = RESOURCES.get("static files", _read_assets)
    return found


def _read_assets() -> dict[str, Asset]:
    held = {}
    for file in (files("edfa_serve") / "static").iterdir():
        kind = KINDS.get(file.name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:12]
            held[file.name] = Asset(content, gzip.compress(content, mtime=0), kind, digest)
    return held


def asset_url(name: str) -> str:
    """The address of a file of ``edfa_serve/static``.

    It contains a digest, so that another content has another address and caches may keep each for
    good.
    """
    return f"/static/{assets()[name].digest}/{name}"


def serve_asset(request: Request) -> Response:
    """Send a file of ``edfa_serve/static``, compressed if the client accepts that.

    Parameters
    ----------
    request
        Its path has a digest and the name of a file. Under the present digest caches may keep the
        file for good; under another they must ask again.
    """
    asset = assets().get(request.path_params["name"])
    if asset is None:
        return Response(status_code=404)
    present, content = request.path_params["digest"] == asset.digest, asset.content
    headers = {
        "Cache-Control": FOR_GOOD if present else "no-cache",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"], content = "gzip", asset.compressed
    return Response(content, media_type=asset.kind, headers=headers)


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("edfa_serve"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["asset"] = asset_url
    environment.filters["as_json"] = functools.partial(json.dumps, ensure_ascii=False)
    return environment


def fill(name: str, status: int, context: Mapping[str, Any]) -> HTMLResponse:
    """Fill a template of ``edfa_serve/templates``; whatever is put into it is escaped.

    Parameters
    ----------
    name
        The file of the template.
    status
        The status of the response.
    context
        What the template shows, by name; a name it lacks is an error.
    """
    templates: jinja2.Environment = RESOURCES.get("page templates", _environment)
    return HTMLResponse(templates.get_template(name).render(context), status, headers=HEADERS)


def render(
    request: Request,
    name: str,
    wording: Wording,
    status: int = 200,
    *,
    checked: Iterable[Field | Control] = (),
    **context: Any,
) -> HTMLResponse:
    """Render a page for an applicant.

    Parameters
    ----------
    request
        The request that is answered.
    name
        The file of the template.
    wording
        The words of the page.
    status
        The status of the response.
    checked
        The fields of the page; errors in them are listed at its top.
    context
        What else the template shows.
    """
    shown = {
        "csrf": "",
        "seq": 0,
        "errors": [(field.id, field.error) for field in checked if field.error],
        "notice": "",
        "scripts": False,
        "letters": False,
        "here": request.url.path,
        "t": wording,
        "wording": wording,
        "languages": {code: sentences(code)["language"] for code in LANGUAGES},
        "settings": request.app.state.settings,
    }
    return fill(name, status, shown | context)


def writes_letters(request: Request) -> bool:
    """Whether the operator writes letters."""
    return request.app.state.write_letter is not None


def has_letter(request: Request, session: Session) -> bool:
    """Whether a letter can be written to the person of a session: it is declared what was decided
    about them.
    """
    return writes_letters(request) and bool(request.app.state.write_letter.can_write(session))


def redirect(where: str) -> RedirectResponse:
    """Send the browser on to a page with status 303, so that reloading it sends no form again."""
    return RedirectResponse(where, 303, headers=HEADERS)
