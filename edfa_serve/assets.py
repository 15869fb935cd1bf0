"""The files that the page loads: held in memory, named by what is in them, so that a browser keeps
them for good.
"""

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from edfa.reading import RESOURCES

__all__ = ["Asset", "asset_url", "assets", "serve_asset"]

KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FOR_GOOD = "public, max-age=31536000, immutable"


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
