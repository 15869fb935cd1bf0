"""Whether something can be written to a place, asked before work is spent on it."""

import os
import tempfile
from pathlib import Path

from edfa.errors import UnwritableError

__all__ = ["check_writable"]

ROOM = 1 << 16  # bytes that there must be room for


def check_writable(path: str | Path, *, made: bool = False) -> Path:
    """Raise UnwritableError unless something could be written at ``path`` now; return it with links
    resolved.

    A few bytes are written, under no name, to the folder that it would be in, and are gone at once:
    this notices a folder that is missing or protected, and a disk that is read-only or full.

    Parameters
    ----------
    path
        A file, or a folder that is replaced as a whole.
    made
        Whether the folder that it is in is made if need be; otherwise it must be there.

    Examples
    --------
    >>> check_writable("no_such_folder/out.csv")
    Traceback (most recent call last):
        ...
    edfa.errors.UnwritableError: cannot write no_such_folder/out.csv: there is no folder no_such_folder
    """  # noqa: E501
    try:
        place = Path(path).resolve()
        why = _obstacle(place, made)
    except OSError as error:
        why = error.strerror or str(error)
    except (RuntimeError, ValueError) as error:  # links in a circle, or a zero byte in the name
        why = str(error)
    if why:
        raise UnwritableError(f"cannot write {path}: {why}")
    return place


def _obstacle(place: Path, made: bool) -> str:
    """What stands in the way, in words; an OSError if the system says it; empty if nothing does."""
    folder = place.parent
    while made and not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        return (
            f"{folder} is no folder"
            if os.path.lexists(folder)
            else f"there is no folder {folder.name}"
        )
    if place.is_dir() and not made:
        return "it is a folder"
    with tempfile.TemporaryFile(dir=folder) as trial:
        trial.write(bytes(ROOM))
        trial.flush()
        os.fsync(trial.fileno())
    return ""
