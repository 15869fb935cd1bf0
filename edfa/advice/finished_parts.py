"""Finished parts of a run over a file, in a folder beside its result: one is used only if it is
just what was written.

``open_parts`` is the entry; a ``FinishedParts`` stores and reads the parts. The name of a part has
the SHA-256 of all that it stands for: the run (advisor, certificate, settings, versions), the
people of its block as they were read, and its own content. What is cut off, edited, renamed or of
another run has another hash; it is removed, and its people are advised again. One run at a time has
the folder.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from edfa.advice.people_files import decode_part, encode_part
from edfa.errors import BusyError, UnreadableError, UnwritableError
from edfa.reading import MEGABYTE, read_bytes
from edfa.typing import IntArray
from edfa.writing import atomic_file, locked

# of a part: its block, its first row, its hash
NAME = re.compile(r"(\d{8,})\.(\d{12,})\.([0-9a-f]{64})\.parquet")
MAX_PART_BYTES = 1024 * MEGABYTE  # of a part


class Block(NamedTuple):
    """A block of people: its number, the row of its first person in the file, how many there are,
    and their hash.
    """

    number: int
    first: int
    people: int
    content: str

    @classmethod
    def of(cls, number: int, first: int, frame: pd.DataFrame, cells: pd.Series | None) -> "Block":
        """The block of these people and of their overlays, as they were read.

        Parameters
        ----------
        number
            Its position among the blocks.
        first
            The row of its first person in the file.
        frame
            What is known of its people, a row each.
        cells
            Their overlays, (people,); None: nobody has one.
        """
        columns = [column for _, column in frame.items()]
        columns += [] if cells is None else [cells]
        text = repr([(str(column.name), str(column.dtype), column.tolist()) for column in columns])
        content = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
        return cls(number, first, len(frame), content)


class FinishedParts:
    """The finished parts in a folder that are of one run; ``open_parts`` opens it.

    Parameters
    ----------
    folder
        Where the parts are. Anything else that is there, such as the temporary files of a run that
        was killed, is removed.
    run
        What the advice of the run depends on beside the people, as JSON.

    Attributes
    ----------
    blocks
        The files of finished parts by the block that their people are in.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self.folder, self.run = folder, run
        self.blocks: dict[Block, list[Path]] = {}
        self._there: dict[int, list[Path]] = {}
        for path in sorted(folder.iterdir()):
            name = NAME.fullmatch(path.name)
            if name and path.is_file() and not path.is_symlink():
                self._there.setdefault(int(name[1]), []).append(path)
            elif path.is_symlink() or not path.is_dir():
                path.unlink()

    def take(self, block: Block) -> list[Any]:
        """The finished parts of a block as Arrow tables, no two with the same row; others of this
        number are removed.
        """
        tables: list[Any] = []
        rows: set[int] = set()
        usable = self.blocks.setdefault(block, [])
        for path in self._there.pop(block.number, []):
            with suppress(UnreadableError):
                table = self._read(path, block)
                own = set(table.column("row").to_pylist())
                if len(own) == table.num_rows and rows.isdisjoint(own):
                    rows |= own
                    tables.append(table)
                    usable.append(path)
                    continue
            path.unlink()
        return tables

    def store(self, block: Block, rows: IntArray, advice: pd.DataFrame) -> None:
        """Write the advice of some people of a block.

        Parameters
        ----------
        block
            The block.
        rows
            The rows of these people in the file, (people,); the first one is part of the file's
            name.
        advice
            Their advice, a row each.
        """
        content = encode_part(advice.assign(row=rows))
        digest = self._digest(block, int(rows[0]), content)
        path = self.folder / f"{block.number:08d}.{rows[0]:012d}.{digest}.parquet"
        with atomic_file(path) as partial:
            partial.write_bytes(content)
        self.blocks[block].append(path)

    def tables(self) -> Iterator[Any]:
        """Everybody's advice, one Arrow table a block, sorted by row.

        Raises
        ------
        UnreadableError
            Unless every person of every block is there once, in a part that is as it was written.
        """
        for block, paths in self.blocks.items():
            table = pa.concat_tables([self._read(path, block) for path in paths]).sort_by("row")
            if not np.array_equal(
                table.column("row").to_numpy(), block.first + np.arange(block.people)
            ):
                raise UnreadableError(
                    f"{self.folder.name} was changed meanwhile; run the same command again"
                )
            yield table

    def remove(self) -> None:
        """Remove the folder: its parts are in the result."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read(self, path: Path, block: Block) -> Any:
        """The table of a part; UnreadableError unless the part is what was written under its
        name.
        """
        name = NAME.fullmatch(path.name)
        content = read_bytes(path, MAX_PART_BYTES)
        if name is None or name[3] != self._digest(block, int(name[2]), content):
            raise UnreadableError(f"{path} is no part of this run, or was changed")
        return decode_part(content)

    def _digest(self, block: Block, first: int, content: bytes) -> str:
        digest = hashlib.sha256(json.dumps([self.run, *block, first]).encode())
        digest.update(content)
        return digest.hexdigest()


@contextmanager
def open_parts(result: Path, run: dict[str, Any]) -> Iterator[FinishedParts]:
    """The parts of a run that are in the folder beside its result.

    Parameters
    ----------
    result
        The file that the advice goes to.
    run
        What the advice depends on, beside the people: parts of another run are not used.

    Raises
    ------
    BusyError
        At once, if another run has the folder: nobody else gets it until the block ends.
    UnwritableError
        If the folder cannot be made, or a link or a file is in its place.
    """
    folder = result.with_name(f".{result.name}.parts")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder, wait=0))
        except BusyError:
            raise BusyError(result) from None
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise UnwritableError(
                f"{folder} is no folder of finished parts; remove it, or choose another place"
            )
        try:
            folder.mkdir(exist_ok=True)
            parts = FinishedParts(folder, json.dumps(run, sort_keys=True))
        except OSError as error:
            raise UnwritableError(f"cannot write {folder}: {error.strerror or error}") from None
        try:
            yield parts
        finally:
            with suppress(OSError):
                folder.rmdir()  # if there is nothing in it
