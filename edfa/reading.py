"""One reader for everything that comes from outside: sizes are bounded before memory is taken,
damage is one error.

No reader here runs code from what it reads.
"""

import hashlib
import json
import math
import os
import stat
from pathlib import Path
from typing import Any

from edfa.errors import UnreadableError, did_you_mean

__all__ = [
    "MEGABYTE",
    "existing",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_text",
    "sha256_of",
]

MEGABYTE = 1 << 20
TEXT_LIMIT = 64 * MEGABYTE


def existing(path: str | Path) -> Path:
    """``path`` if there is such a file; else UnreadableError with the most similar name in its
    folder.
    """
    path = Path(path)
    try:
        if path.is_file():
            return path
        beside = (
            [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
        )
    except (OSError, ValueError) as error:  # a name that is too long, or has a zero byte
        raise UnreadableError(
            f"cannot look for {str(path)[:80]!r}: {getattr(error, 'strerror', error)}"
        ) from None
    if path.exists():
        raise UnreadableError(f"{path} is not a file")
    raise UnreadableError(f"there is no file {path}{did_you_mean(path.name, beside)}")


def read_bytes(path: str | Path, limit: int) -> bytes:
    """The content of a file of at most ``limit`` bytes; what is larger, or no plain file, is not
    read at all.
    """
    path = existing(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableError(f"{path} is not a plain file")
            content = b"" if status.st_size > limit else file.read(status.st_size + 1)
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror}") from None
    size = max(status.st_size, len(content))
    if size > limit:
        raise UnreadableError(f"{path} has {size:,} bytes; at most {limit:,} are read")
    if len(content) > status.st_size:
        raise UnreadableError(f"{path} was written to while it was read")
    return content


def read_text(path: str | Path, limit: int = TEXT_LIMIT) -> str:
    """The content of a UTF-8 text file of at most ``limit`` bytes, without a byte order mark."""
    try:
        return read_bytes(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UnreadableError(
            f"{Path(path).name} is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8"
        ) from None


def read_json(path: str | Path, limit: int = TEXT_LIMIT) -> Any:
    """The content of a JSON file of at most ``limit`` bytes."""
    return parse_json(read_text(path, limit), Path(path).name)


def parse_json(text: str, name: str) -> Any:
    """The content of a JSON text; UnreadableError that begins with ``name`` if it is none.

    A key that is written twice is an error: which of the two counts would depend on the reader. So
    is ``NaN``, which is no JSON.

    >>> parse_json('{"age": 3, "age": 4}', "answers.json")
    Traceback (most recent call last):
        ...
    edfa.errors.UnreadableError: answers.json: the key 'age' is there twice
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=lambda pairs: _unique(pairs, name),
            parse_constant=_no_number,
            parse_float=_finite,
        )
    except UnreadableError:
        raise
    except RecursionError:
        raise UnreadableError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise UnreadableError(f"{name} is not JSON: {error}") from None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unique(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise UnreadableError(
            f"{name}: the key {next(k for k in keys if keys.count(k) > 1)!r} is there twice"
        )
    return content


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")
