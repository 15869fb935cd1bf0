"""One writer for everything: files and folders that are whole or not there, and that two writers
never mix.

``atomic_file`` writes one file and ``replace_folder`` a folder of files: beside their place, under
a lock, flushed to disk, and moved in by renaming. A writer that is killed meanwhile leaves what was
there before; the next writer tidies up. Names of temporary files cannot be guessed and are created
by the writer, so that no link planted there is followed. A link at the place itself is the user's:
what it points to is written. ``check_writable`` asks whether a place can be written, before work is
spent.
"""

import os
import re
import shutil
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from edfa.errors import BusyError, EdfaError, UnreadableError, UnwritableError

try:
    import fcntl
except (
    ImportError
):  # no POSIX system: writing stays atomic, and two writers do not wait for each other
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
PATIENCE = 60.0  # seconds that a writer waits for another one of the same place
NAP = 0.02  # seconds between two attempts
NEW = ".new"
TRIAL_BYTES = 1 << 16  # that ``check_writable`` finds room for
ATTEMPTS = 10  # at reading a folder that is replaced again and again


@contextmanager
def locked(path: str | Path, wait: float = PATIENCE) -> Iterator[None]:
    """Hold the right to write ``path``, for the length of the block; threads and processes alike
    respect it.

    The lock is a file beside ``path`` that goes when the block ends. The system gives up the lock
    of a process that dies.

    Parameters
    ----------
    path
        A file or folder, which need not be there.
    wait
        Seconds to wait for another holder.

    Raises
    ------
    BusyError
        If somebody else still holds it then.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with locked(Path(folder) / "out.csv"), locked(Path(folder) / "out.csv", wait=0):
    ...         pass
    Traceback (most recent call last):
        ...
    edfa.errors.BusyError: another run is writing out.csv; wait until it is done, or choose another place
    """  # noqa: E501
    place = Path(path).absolute()
    file = place.with_name(f".{place.name}.lock")
    with _typed(place):
        handle = _acquire(file, place, time.monotonic() + wait)
    try:
        yield
    finally:
        try:
            file.unlink(
                missing_ok=True
            )  # while it is held: who waits for it finds that it is gone, and makes another
        finally:
            os.close(handle)


def _acquire(file: Path, place: Path, deadline: float) -> int:
    """A handle of the lock file that holds its lock."""
    while True:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), file.lstat()):
                return handle
        except FileNotFoundError:  # its holder has just removed it
            pass
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(handle)
                raise BusyError(place) from None
            time.sleep(NAP)
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Write a file that is whole or not there.

    Processes and threads that write the same file wait for each other, and the last one wins. If
    the block raises, the temporary file is removed and what was at ``path`` stays.

    Parameters
    ----------
    path
        The file. A link is followed; the mode of a file that is there already is kept.

    Yields
    ------
    Path
        A temporary file beside ``path`` to write to. It ends like ``path`` does, for writers that
        choose a format by the ending. After the block it is flushed to disk and renamed to
        ``path``.

    Raises
    ------
    UnwritableError
        If the place cannot be written, or holds something other than a plain file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "result.csv") as partial:
    ...         _ = partial.write_text("a,b", encoding="utf-8")
    ...     list_files(Path(folder))
    ['result.csv']
    """
    path = _resolved(path)
    if (
        path.exists() and not path.is_file()
    ):  # a folder, a pipe or a device is not replaced by a file
        raise UnwritableError(f"cannot write {path}: it is there, and no plain file")
    partial = path.with_name(f".{path.stem}.{uuid.uuid4().hex}{NEW}{path.suffix}")
    with _typed(path), locked(path):
        for leftover in _leftovers(path.parent, path.stem, path.suffix):
            leftover.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        try:
            yield partial
            _flush(partial)
            if path.exists():
                partial.chmod(stat.S_IMODE(path.stat().st_mode))
            partial.replace(path)
            _flush(path.parent)
        finally:
            partial.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a UTF-8 text file that is whole or not there.

    Parameters
    ----------
    path
        The file; see ``atomic_file``.
    text
        Its content; ends of lines are written as they are.
    """
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="")


@contextmanager
def replace_folder(folder: str | Path) -> Iterator[Path]:
    """Write a folder that is whole or not there.

    The old folder is set aside for the moment between two renames; if the process dies just there,
    ``restore_interrupted`` puts it back. If the block raises, the old folder stays as it was.

    Parameters
    ----------
    folder
        The folder. Those above it are made if need be.

    Yields
    ------
    Path
        A new folder to write into, which takes the place of ``folder`` when the block ends.

    Raises
    ------
    UnwritableError
        If the place cannot be written.
    BusyError
        If another writer holds it for a minute.
    """
    folder = _resolved(folder)
    aside, partial = _aside(folder), folder.with_name(f".{folder.name}.{uuid.uuid4().hex}{NEW}")
    with _typed(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            _tidy(folder)
            partial.mkdir()
            try:
                yield partial
                for path in (*partial.rglob("*"), partial):
                    _flush(path)
                if folder.exists():
                    folder.rename(aside)
                partial.rename(folder)
                _flush(folder.parent)
                shutil.rmtree(aside, ignore_errors=True)
            finally:
                _restore(folder)
                shutil.rmtree(partial, ignore_errors=True)


def restore_interrupted(folder: str | Path) -> None:
    """Put the old folder back if a ``replace_folder`` died between its two renames; otherwise do
    nothing.
    """
    folder = _resolved(folder)
    if _is_interrupted(folder):
        with locked(folder):  # a writer that lives is waited for
            _restore(folder)


def tidy(folder: str | Path) -> None:
    """Remove what killed writers of a folder have left beside it, and put back what they had set
    aside.
    """
    folder = _resolved(folder)
    with _typed(folder), locked(folder):
        _tidy(folder)


def read_settled(folder: str | Path, read: Callable[[], T]) -> T:
    """Read a folder that others may replace meanwhile.

    Parameters
    ----------
    folder
        The folder.
    read
        Reads it. It is called again if ``replace_folder`` replaced the folder while it ran.

    Returns
    -------
    T
        What ``read`` returns of a folder that stayed the same.

    Raises
    ------
    UnreadableError
        If ``read`` raises it of a folder that stayed the same.
    BusyError
        If the folder was replaced each of ten times.
    """
    for attempt in range(ATTEMPTS):
        restore_interrupted(folder)
        before = _which(Path(folder))
        try:
            result = read()
        except UnreadableError:
            if attempt == ATTEMPTS - 1 or _which(Path(folder)) == before:
                raise
        else:
            if _which(Path(folder)) == before:
                return result
    raise BusyError(Path(folder))


def list_files(folder: Path) -> list[str]:
    """All files in a folder and its subfolders, as sorted POSIX paths relative to it."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def check_writable(path: str | Path, *, made: bool = False) -> Path:
    """Check that something could be written at ``path`` now.

    A few bytes are written, under no name, to the folder that it would be in, and are gone at once:
    this notices a folder that is missing or protected, and a disk that is read-only or full.

    Parameters
    ----------
    path
        A file, or a folder that is replaced as a whole.
    made
        Whether the folder that it is in is made if need be; otherwise it must be there.

    Returns
    -------
    Path
        The path with links resolved.

    Raises
    ------
    UnwritableError
        If nothing can be written there; the message says why.

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
        trial.write(bytes(TRIAL_BYTES))
        trial.flush()
        os.fsync(trial.fileno())
    return ""


@contextmanager
def _typed(place: Path) -> Iterator[None]:
    """What the system refuses (no such folder, no right, no room) as an error that names the
    place.
    """
    try:
        yield
    except EdfaError:
        raise
    except OSError as error:
        name = None if error.filename is None else Path(str(error.filename)).absolute()
        if name is not None and not name.is_relative_to(place.parent):
            raise  # of something else that the block does
        raise UnwritableError(f"cannot write {place}: {error.strerror or error}") from None


def _resolved(path: str | Path) -> Path:
    """The place behind any links, as an absolute path."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError):  # links that lead in a circle
        raise UnwritableError(f"cannot write {path}: its links lead in a circle") from None


def _tidy(folder: Path) -> None:
    """As ``tidy``, for a caller that holds the lock."""
    _restore(folder)
    for leftover in (_aside(folder), *_leftovers(folder.parent, folder.name)):
        shutil.rmtree(leftover, ignore_errors=True)


def _restore(folder: Path) -> None:
    if _is_interrupted(folder):
        _aside(folder).rename(folder)


def _is_interrupted(folder: Path) -> bool:
    """Whether a ``replace_folder`` died between its two renames: then the new folder waits beside
    the old one.

    An old folder alone is what is left of a replacement that was done, or was put there by somebody
    else. It does not come back.
    """
    aside = _aside(folder)
    if folder.exists() or aside.is_symlink() or not aside.is_dir():
        return False
    return bool(_leftovers(folder.parent, folder.name))


def _aside(folder: Path) -> Path:
    """Where ``replace_folder`` keeps the old folder between its two renames."""
    return folder.with_name(f".{folder.name}.old")


def _which(folder: Path) -> tuple[int, int] | None:
    """Which folder is there: one that replaces it is another."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def _leftovers(folder: Path, stem: str, suffix: str = "") -> list[Path]:
    """The temporary files, or folders, of writers of one place. A caller that holds its lock knows
    that they were killed.
    """
    name = re.compile(rf"\.{re.escape(stem)}\.[0-9a-f]{{32}}{re.escape(NEW + suffix)}")
    return [path for path in folder.iterdir() if name.fullmatch(path.name)]


def _flush(path: Path) -> None:
    """Force a file's content, or a folder's list of names, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
