"""The data sets that are not part of the package: fetched from OpenML once, and cached with a
checksum.

OpenML's copies differ from the cards in spelling: column names in another case, codes as numbers,
labels as 0 and 1, an income in dollars. ``_translate`` undoes that; a copy that still does not fit
its card is an error.
"""

import hashlib
import io
import os
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import pandas as pd
import pyarrow as pa

from edfa.data.schema import Schema
from edfa.data.table import validate_frame
from edfa.data.values import to_words
from edfa.errors import DataError, UnavailableError, UnreadableError, UnwritableError
from edfa.reading import MEGABYTE, first_line, read_bytes, read_text
from edfa.writing import atomic_file, locked, write_text

LARGEST_FILE = 512 * MEGABYTE  # far beyond each of the four
CHECKSUM_LIMIT = 1024
FETCH_SECONDS = 600.0  # that a second process waits for the first one's download


@dataclass(frozen=True)
class Source:
    """A data set at OpenML, and how its outcome is spelled there.

    Parameters
    ----------
    data_id
        OpenML's number of the data set.
    labels
        The card's class for each of OpenML's labels; empty: they are the same.
    above
        If the outcome is a number there, its class is 1 where it is larger than this; else None.
    """

    data_id: int
    labels: dict[str, str] = field(default_factory=dict)
    above: float | None = None


SOURCES = {
    "heloc": Source(45026, labels={"0": "Bad", "1": "Good"}),
    "acs_income": Source(43141, above=50_000),
    "gmsc": Source(45577),
    "diabetes130": Source(4541),
}


def cache_folder() -> Path:
    """The folder of fetched data sets: ``EDFA_CACHE``, or ``edfa`` in the user's cache folder."""
    if folder := os.environ.get("EDFA_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edfa"


def fetch(name: str, schema: Schema) -> pd.DataFrame:
    """Get the rows of a data set from the cache if its checksum is right, else from OpenML.

    Parameters
    ----------
    name
        A name in ``SOURCES``.
    schema
        The card that the rows must fit.

    Returns
    -------
    pandas.DataFrame
        One row a person, in the card's spelling. What is downloaded is checked and cached.

    Raises
    ------
    UnavailableError
        If OpenML cannot be reached.
    DataError
        If OpenML's copy is not the one that ``schema`` describes.
    """
    path = cache_folder() / f"{name}.parquet"
    if (frame := _cached(path)) is not None:
        return frame
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableError(
            f"cannot write {path.parent}: {error.strerror}; EDFA_CACHE names another"
        ) from None
    try:
        with locked(
            path.with_suffix(".fetch"), FETCH_SECONDS
        ):  # a second process waits, and finds it there
            if (frame := _cached(path)) is None:
                frame = _translate(_download(SOURCES[name].data_id), SOURCES[name], schema)
                validate_frame(frame, schema)
                _keep(frame, path)
    except Exception:
        with suppress(OSError):
            path.parent.rmdir()  # unless something is in it
        raise
    return frame


def _cached(path: Path) -> pd.DataFrame | None:
    """The rows of a cached file; None unless it is there, whole, and the one its checksum was
    written for.
    """
    try:
        expected = read_text(path.with_suffix(".sha256"), CHECKSUM_LIMIT).strip()
        content = read_bytes(path, LARGEST_FILE)
        if hashlib.sha256(content).hexdigest() != expected:
            return None
        return pd.read_parquet(io.BytesIO(content))
    except (UnreadableError, pa.ArrowException, OSError, ValueError):
        return None


def _keep(frame: pd.DataFrame, path: Path) -> None:
    """Cache a frame: the checksum of the new file first, so that a file without its own is never
    read.
    """
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    write_text(path.with_suffix(".sha256"), hashlib.sha256(content.getvalue()).hexdigest())
    with atomic_file(path) as partial:
        partial.write_bytes(content.getvalue())


def _download(data_id: int) -> pd.DataFrame:
    """OpenML's frame of a data set; UnavailableError if it cannot be fetched, is cut off, or is not
    what it should be.

    scikit-learn reads its archives as a stream of rows and unpacks no names from them; what
    OpenML's checksum does not confirm is an error.
    """
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # scikit-learn warns before it retries; the error below says how it ended
            frame: pd.DataFrame = fetch_openml(
                data_id=data_id, as_frame=True, parser="auto", n_retries=1, delay=0.2
            ).frame
    except (
        OSError,
        EOFError,
        zlib.error,
        ValueError,
        LookupError,
        TypeError,
        HTTPException,
    ) as error:
        reason = first_line(error)
        raise UnavailableError(f"OpenML {data_id} cannot be fetched ({reason})") from None
    if not isinstance(frame, pd.DataFrame) or not len(frame):
        raise UnavailableError(f"OpenML {data_id} cannot be fetched (it has no rows)")
    return frame


def _translate(frame: pd.DataFrame, source: Source, schema: Schema) -> pd.DataFrame:
    """OpenML's columns and labels in the card's spelling."""
    columns = {_normalise(str(column)): column for column in frame.columns}
    names = [*schema.names, schema.target]
    if absent := [n for n in names if _normalise(n) not in columns]:
        raise DataError(
            f"OpenML {source.data_id} has no column {absent[0]!r}; its copy is not the "
            "one the card describes"
        )
    renamed = pd.DataFrame({n: frame[columns[_normalise(n)]] for n in names})
    outcome = renamed[schema.target]
    if source.above is not None:
        renamed[schema.target] = (pd.to_numeric(outcome) > source.above).astype(int)
    elif source.labels:
        renamed[schema.target] = to_words(outcome).replace(source.labels)
    for name in schema.names:
        if isinstance(renamed[name].dtype, pd.CategoricalDtype):
            renamed[name] = renamed[name].astype(renamed[name].cat.categories.dtype)
        if schema[name].words and renamed[name].dtype.kind not in "iuf":
            renamed[name] = renamed[name].mask(renamed[name].isin(["?"]))
    return renamed


def _normalise(name: str) -> str:
    """A column's name in lower case, letters and digits only."""
    return "".join(c for c in name.lower() if c.isalnum())
