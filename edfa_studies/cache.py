"""Shared work on disk, under the digest of everything that it was made from: made once, for any
number of processes.

An entry is a folder that is whole or not there; what is in it is written with hashes, and made anew
where they do not fit. Nothing in the cache is a result: whoever deletes it loses time alone.
"""

import errno
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cache"]

UNFINISHED = ".unfinished"
TAKEN = (errno.EEXIST, errno.ENOTEMPTY)


@dataclass(frozen=True)
class Cache:
    """A folder of entries, ``root/KIND/KEY``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = Cache(Path(folder))
    ...     with cache.fill("blanket", "0123") as entry:
    ...         _ = (entry / "blanket.json").write_text("{}", encoding="utf-8")
    ...     cache.has("blanket", "0123"), cache.has("blanket", "4567")
    (True, False)
    """

    root: Path

    def folder(self, kind: str, key: str) -> Path:
        """Where an entry is, or would be."""
        return self.root / kind / key

    def has(self, kind: str, key: str) -> bool:
        """Whether an entry is there."""
        return self.folder(kind, key).is_dir()

    @contextmanager
    def fill(self, kind: str, key: str) -> Iterator[Path]:
        """Yield a new folder to write into, which becomes the entry when the block ends without an
        error.

        If somebody else has made the entry meanwhile, theirs stays: both are made from the same
        things.
        """
        partial, place = self.root / UNFINISHED / uuid.uuid4().hex, self.folder(kind, key)
        partial.mkdir(parents=True)
        try:
            yield partial
            place.parent.mkdir(parents=True, exist_ok=True)
            while True:
                try:
                    partial.rename(place)
                except OSError as error:
                    if error.errno not in TAKEN:
                        raise
                    if not place.is_dir():  # made by somebody and dropped again since
                        continue
                break
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def drop(self, kind: str, key: str) -> None:
        """Remove an entry, as one that turned out to be damaged; nobody sees half of it."""
        gone = self.root / UNFINISHED / uuid.uuid4().hex
        gone.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.folder(kind, key).rename(gone)
        except FileNotFoundError:  # somebody else has found out, too
            return
        shutil.rmtree(gone, ignore_errors=True)
