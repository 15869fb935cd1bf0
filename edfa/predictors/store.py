"""A fitted model as a folder of plain parts with their hashes. Reading one runs no code from it."""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edfa.errors import UnreadableError

__all__ = ["read_parts", "write_parts"]

FORMAT = 1
MANIFEST = "manifest.json"


def write_parts(folder: str | Path, kind: str, settings: Mapping[str, Any], parts: Mapping[str, bytes]) -> None:
    """Write all parts and a manifest; a folder that is there is replaced only when the new one is whole."""
    folder = Path(folder)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, content in parts.items():
        (partial / name).write_bytes(content)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    manifest = {"format": FORMAT, "kind": kind, "settings": dict(settings), "sha256": hashes}
    (partial / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def read_parts(folder: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The settings and parts of a folder, each part checked against its hash."""
    folder = Path(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        written, found, hashes = manifest["format"], manifest["kind"], manifest["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UnreadableError(f"{folder} is not a saved model: its {MANIFEST} is missing or damaged") from None
    if written > FORMAT:
        raise UnreadableError(f"{folder} was written by a newer edfa (format {written}, this one reads {FORMAT})")
    if found != kind:
        raise UnreadableError(f"{folder} holds a {found}, not a {kind}")
    parts = {}
    for name, expected in hashes.items():
        path = folder / Path(name).name  # a part lies in the folder itself, whatever the manifest says
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != expected:
            raise UnreadableError(f"{folder}: the part {name} is missing or has been changed")
        parts[name] = content
    return manifest["settings"], parts
