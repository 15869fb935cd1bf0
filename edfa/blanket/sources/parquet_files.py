"""Which Parquet files a path means, and what their columns are called."""

import glob
from pathlib import Path
from typing import Any

from edfa.errors import ColumnError, UnreadableError
from edfa.reading import existing

__all__ = ["column_names", "list_parquet"]

ENDINGS = (".parquet", ".pq")


def list_parquet(path: str | Path) -> list[Path]:
    """The files that a path means: itself, all Parquet files of a folder, or those that fit a
    pattern; never none.

    A file that is there is taken by its name, whatever signs are in it; only else is ``*``, ``?``
    or ``[`` a pattern.

    Raises
    ------
    UnreadableError
        If there is no such file; the message has the most similar name.
    """
    path = Path(path)
    try:
        if path.is_file():
            return [path]
        if path.is_dir():
            files = sorted(
                file for file in path.iterdir() if file.suffix.lower() in ENDINGS and file.is_file()
            )
            if not files:
                raise UnreadableError(f"there is no Parquet file in the folder {path}")
            return files
        matching = (
            sorted(Path(name) for name in glob.glob(str(path))) if glob.has_magic(str(path)) else []  # noqa: PTH207
        )
    except (OSError, ValueError) as error:  # a name that is too long, or has a zero byte
        raise UnreadableError(
            f"cannot look for {str(path)[:80]!r}: {getattr(error, 'strerror', error)}"
        ) from None
    return [file for file in matching if file.is_file()] or [existing(path)]


def column_names(path: Path) -> list[str]:
    """The names of a file's columns in order, spelled as they are there: a database may rename
    ``a`` beside ``A``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet: Any = pq
    try:
        names = [str(name) for name in parquet.read_schema(path).names]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(
            f"{path.name} is not a whole Parquet file: {_first_line(error)}"
        ) from None
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ColumnError(f"{path.name}: column {twice[0]!r} appears {names.count(twice[0])} times")
    return names


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
