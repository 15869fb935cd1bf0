"""Reading of CSV and Parquet files; the error for a file that cannot be read says what to do."""

from pathlib import Path

import pandas as pd

from edfa.errors import ColumnError, EmptyTableError, UnreadableError
from edfa.reading import existing

__all__ = ["read_csv", "read_frame", "read_parquet"]


def read_frame(path: str | Path) -> pd.DataFrame:
    """The rows of a CSV (also compressed) or Parquet file, which of them is decided by the file's name."""
    suffixes = [s.lower() for s in Path(path).suffixes]
    if ".csv" in suffixes:
        return read_csv(path)
    if suffixes and suffixes[-1] in (".parquet", ".pq"):
        return read_parquet(path)
    raise UnreadableError(f"{Path(path).name}: a table is a .csv or a .parquet file")


def read_csv(path: str | Path, encoding: str = "utf-8-sig", separator: str = ",") -> pd.DataFrame:
    """The rows of a CSV file.

    Only empty cells become null: ``NA`` or ``None`` may be a level, a card's ``missing`` lists what is not.
    """
    path = existing(path)
    try:
        header = pd.read_csv(
            path, header=None, nrows=1, dtype=str, encoding=encoding, sep=separator, keep_default_na=False
        )
        frame = pd.read_csv(
            path, encoding=encoding, sep=separator, keep_default_na=False, na_values=[""], low_memory=False
        )
    except pd.errors.EmptyDataError:
        raise EmptyTableError(f"{path.name} is empty") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise UnreadableError(
            f"{path.name} is not UTF-8 (byte 0x{byte:02x}); save it as UTF-8 or pass encoding='latin-1'"
        ) from None
    except (pd.errors.ParserError, OSError, EOFError) as error:
        raise UnreadableError(f"{path.name} cannot be read as CSV: {str(error).splitlines()[0]}") from None
    names = header.iloc[0].tolist()
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ColumnError(f"{path.name}: column {twice[0]!r} appears {names.count(twice[0])} times")
    if len(names) == 1 and ";" in names[0]:
        raise UnreadableError(f"{path.name} has one column with semicolons in it; pass separator=';'")
    return frame


def read_parquet(path: str | Path) -> pd.DataFrame:
    """The rows of a Parquet file."""
    import pyarrow as pa

    path = existing(path)
    try:
        return pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UnreadableError(f"{path.name} is not a whole Parquet file: {str(error).splitlines()[0]}") from None
