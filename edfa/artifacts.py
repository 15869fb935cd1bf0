"""Folders that are whole or not there: written beside their place, flushed to disk, and moved in by renaming."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["digest", "parts", "put_back", "swapped", "write_text"]


@contextmanager
def swapped(folder: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of ``folder`` when all is written.

    The old one is set aside for the moment between two renames; ``put_back`` finds it if that is where all ended.
    """
    folder = folder.absolute()
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside, partial = _aside(folder), folder.with_name(f".{folder.name}.{os.getpid()}.new")
    for left in folder.parent.glob(f".{folder.name}.*.new"):  # of runs that were killed
        shutil.rmtree(left, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        for path in (*(partial / part for part in parts(partial)), *_folders(partial)):
            _flush(path)
        put_back(folder)
        shutil.rmtree(aside, ignore_errors=True)
        if folder.exists():
            folder.rename(aside)
        partial.rename(folder)
        _flush(folder.parent)
        shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def put_back(folder: Path) -> None:
    """Where a swap was cut off between its two renames, the old folder takes its place again."""
    aside = _aside(folder.absolute())
    if not folder.exists() and aside.is_dir():
        aside.rename(folder)


def parts(folder: Path) -> list[str]:
    """Every file in a folder, by its path in it, in order."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not there."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.new")
    partial.write_text(text, encoding="utf-8")
    _flush(partial)
    partial.replace(path)
    _flush(path.parent)


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _folders(folder: Path) -> list[Path]:
    return [folder, *(path for path in folder.rglob("*") if path.is_dir())]


def _flush(path: Path) -> None:
    """To the disk: of a file its content, of a folder its names."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
