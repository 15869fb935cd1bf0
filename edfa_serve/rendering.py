"""Pages from templates: escaped, never kept by a cache, with a policy that lets nothing run but our
own files.
"""

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from edfa.reading import RESOURCES
from edfa_serve.service import Session
from edfa_serve.wording import Wording, sentences

__all__ = [
    "HEADERS",
    "LETTER_HEADERS",
    "assets",
    "has_letter",
    "redirect",
    "render",
    "serve_asset",
    "writes_letters",
]

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
    """One file: its bytes, plain and compressed, its kind, and a digest of it."""

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
    """Where a page finds a file; another content has another address."""
    return f"/static/{assets()[name].digest}/{name}"


def serve_asset(request: Request) -> Response:
    """A file, compressed for who understands it; the digest in the address need not be the present
    one.
    """
    asset = assets().get(request.path_params["name"])
    if asset is None:
        return Response(status_code=404)
    zipped = "gzip" in request.headers.get("accept-encoding", "")
    headers = {
        "Cache-Control": FOR_GOOD,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if request.path_params["digest"] != asset.digest:
        headers["Cache-Control"] = "no-cache"
    if zipped:
        headers["Content-Encoding"] = "gzip"
    return Response(
        asset.compressed if zipped else asset.content, media_type=asset.kind, headers=headers
    )


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
