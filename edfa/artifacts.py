"""A folder of parts with a manifest: what kind of thing it is, its settings, and the hash of every part.

``write_parts`` writes a fitted model, ``read_parts`` reads it and checks every hash. Reading runs no code from what is
read, and takes no more memory than ``LIMIT``.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from edfa.errors import UnreadableError, UnwritableError
from edfa.reading import MEGABYTE, parse_json, read_bytes, read_json
from edfa.writing import read_settled, replace_folder

__all__ = ["LIMIT", "check_replaceable", "kind_of", "read_parts", "write_parts"]

FORMAT = 1
MANIFEST = "manifest.json"
LIMIT = 4096 * MEGABYTE
"""The largest size of all parts of a folder together, in bytes."""


def write_parts(folder: str | Path, kind: str, settings: Mapping[str, Any], parts: Mapping[str, bytes]) -> None:
    """Write a fitted model: its parts (file name to content) and a manifest with its kind, settings and hashes.

    ``kind`` is the class name that ``read_parts`` must be asked for; ``settings`` must be JSON. An existing folder is
    replaced only when the new one is complete (``replace_folder``), and only if it holds something of the same kind.
    """
    check_replaceable(folder, kind)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    manifest = {"format": FORMAT, "kind": kind, "settings": dict(settings), "sha256": hashes}
    with replace_folder(Path(folder)) as partial:
        for name, content in parts.items():
            (partial / name).write_bytes(content)
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def check_replaceable(folder: str | Path, kind: str) -> None:
    """Raise UnwritableError if writing to ``folder`` would delete anything but a saved thing of this ``kind``."""
    place = Path(folder)
    if not place.exists() or kind_of(place) == kind or (place.is_dir() and not any(place.iterdir())):
        return
    raise UnwritableError(f"{place} is there already and holds no {kind}; choose another folder")


def kind_of(folder: Path) -> str | None:
    """The kind of thing that a folder holds, by its manifest; None if it has none."""
    try:
        manifest = parse_json(read_bytes(folder / MANIFEST, LIMIT).decode("utf-8"), MANIFEST)
    except (UnreadableError, UnicodeDecodeError):
        return None
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    return kind if isinstance(kind, str) else None


def read_parts(folder: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read what ``write_parts`` wrote: the settings, and the parts by file name, each checked against its hash."""
    return read_settled(folder, lambda: _read_parts(Path(folder), kind))


def _read_parts(folder: Path, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    try:
        manifest = read_json(folder / MANIFEST)
        written, written_kind = manifest["format"], manifest["kind"]
        settings, hashes = dict(manifest["settings"]), dict(manifest["sha256"])
    except (UnreadableError, ValueError, KeyError, TypeError):
        raise UnreadableError(f"{folder} is not a saved model: its {MANIFEST} is missing or damaged") from None
    if not isinstance(written, int) or written > FORMAT:
        raise UnreadableError(f"{folder} was written by a newer edfa (format {written}, this one reads {FORMAT})")
    if written_kind != kind:
        raise UnreadableError(f"{folder} holds a {written_kind}, not a {kind}")
    parts, left = {}, LIMIT
    for name, expected in hashes.items():
        if PurePosixPath(name).name != name:  # a part lies in the folder itself, whatever the manifest says
            raise UnreadableError(f"{folder}: {name!r} is no name of a part")
        try:
            content = read_bytes(folder / name, left)
        except UnreadableError as error:
            raise UnreadableError(f"{folder}: the part {name} is missing or has been changed ({error})") from None
        if hashlib.sha256(content).hexdigest() != expected:
            raise UnreadableError(f"{folder}: the part {name} is missing or has been changed")
        parts[name], left = content, left - len(content)
    return settings, parts
