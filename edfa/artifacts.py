"""Files and folders that are whole or not there: written beside their place, flushed to disk, moved in by renaming.

``atomic_file`` writes one file, ``replace_folder`` a folder of files, ``write_parts`` a folder with a manifest of
hashes, which ``read_parts`` checks. Reading runs no code from what is read.
"""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edfa.errors import UnreadableError

__all__ = [
    "atomic_file",
    "list_files",
    "read_parts",
    "replace_folder",
    "restore_interrupted",
    "sha256_of",
    "write_parts",
    "write_text",
]

FORMAT = 1
MANIFEST = "manifest.json"


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` to write to; on success it is flushed to disk and renamed to ``path``.

    The temporary file ends like ``path`` does, for writers that choose a format by the ending. If the block raises, it
    is removed and what was at ``path`` stays. Processes and threads that write the same file do not disturb each other:
    the last one wins.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "result.csv") as partial:
    ...         _ = partial.write_text("a,b", encoding="utf-8")
    ...     list_files(Path(folder))
    ['result.csv']
    """
    path = Path(path).absolute()
    partial = path.with_name(f".{path.stem}.{uuid.uuid4().hex}.new{path.suffix}")
    try:
        yield partial
        _flush(partial)
        partial.replace(path)
        _flush(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file through ``atomic_file``."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder to write into, which takes the place of ``folder`` when the block ends.

    The old folder is set aside for the moment between two renames; if the process dies just there,
    ``restore_interrupted`` puts it back. If the block raises, the old folder stays as it was.
    """
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside, partial = _aside(folder), folder.with_name(f".{folder.name}.{os.getpid()}.new")
    for leftover in folder.parent.glob(f".{folder.name}.*.new"):  # of runs that were killed
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        for path in (*(partial / name for name in list_files(partial)), *_folders(partial)):
            _flush(path)
        restore_interrupted(folder)
        shutil.rmtree(aside, ignore_errors=True)
        if folder.exists():
            folder.rename(aside)
        partial.rename(folder)
        _flush(folder.parent)
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        restore_interrupted(folder)
        shutil.rmtree(partial, ignore_errors=True)


def restore_interrupted(folder: Path) -> None:
    """Put the old folder back if a ``replace_folder`` died between its two renames; otherwise do nothing."""
    aside = _aside(folder.absolute())
    if not folder.exists() and aside.is_dir():
        aside.rename(folder)


def list_files(folder: Path) -> list[str]:
    """All files in a folder and its subfolders, as sorted POSIX paths relative to it."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_parts(folder: str | Path, kind: str, settings: Mapping[str, Any], parts: Mapping[str, bytes]) -> None:
    """Write a fitted model: its parts (file name to content) and a manifest with its kind, settings and hashes.

    ``kind`` is the class name that ``read_parts`` must be asked for; ``settings`` must be JSON. An existing folder is
    replaced only when the new one is complete (``replace_folder``).
    """
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in parts.items()}
    manifest = {"format": FORMAT, "kind": kind, "settings": dict(settings), "sha256": hashes}
    with replace_folder(Path(folder)) as partial:
        for name, content in parts.items():
            (partial / name).write_bytes(content)
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def read_parts(folder: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read what ``write_parts`` wrote: the settings, and the parts by file name, each checked against its hash."""
    folder = Path(folder)
    restore_interrupted(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        written, written_kind = manifest["format"], manifest["kind"]
        settings, hashes = dict(manifest["settings"]), dict(manifest["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UnreadableError(f"{folder} is not a saved model: its {MANIFEST} is missing or damaged") from None
    if written > FORMAT:
        raise UnreadableError(f"{folder} was written by a newer edfa (format {written}, this one reads {FORMAT})")
    if written_kind != kind:
        raise UnreadableError(f"{folder} holds a {written_kind}, not a {kind}")
    parts = {}
    for name, expected in hashes.items():
        path = folder / Path(name).name  # a part lies in the folder itself, whatever the manifest says
        content = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(content).hexdigest() != expected:
            raise UnreadableError(f"{folder}: the part {name} is missing or has been changed")
        parts[name] = content
    return settings, parts


def _aside(folder: Path) -> Path:
    """Where ``replace_folder`` keeps the old folder between its two renames."""
    return folder.with_name(f".{folder.name}.old")


def _folders(folder: Path) -> list[Path]:
    return [folder, *(path for path in folder.rglob("*") if path.is_dir())]


def _flush(path: Path) -> None:
    """Force a file's content, or a folder's list of names, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
