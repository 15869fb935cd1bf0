"""The data sets that are not part of the package: fetched from OpenML once, and cached with a checksum.

OpenML's copies differ from the cards in spelling: column names in another case, codes as numbers, labels as 0 and 1,
an income in dollars. ``_translate`` undoes that; a copy that still does not fit its card is an error.
"""

import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from edfa.data.read import read_parquet
from edfa.data.schema import Schema
from edfa.data.validate import to_words, validate_frame
from edfa.errors import DataError, UnavailableError
from edfa.reading import sha256_of
from edfa.writing import write_text

__all__ = ["SOURCES", "Source", "cache_folder", "fetch"]


@dataclass(frozen=True)
class Source:
    """A data set at OpenML, and how its outcome is spelled there.

    ``labels`` maps OpenML's labels to the card's classes; with ``above`` the outcome is a number, and its class is 1
    where the number is larger.
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
    """The rows of a data set: from the cache if its checksum is right, else from OpenML, validated and cached.

    Raises
    ------
    UnavailableError
        If OpenML cannot be reached.
    DataError
        If OpenML's copy is not the one that ``schema`` describes.
    """
    path = cache_folder() / f"{name}.parquet"
    checksum = path.with_suffix(".sha256")
    if path.is_file() and checksum.is_file() and sha256_of(path) == checksum.read_text(encoding="utf-8").strip():
        return read_parquet(path)
    frame = _translate(_download(SOURCES[name].data_id), SOURCES[name], schema)
    validate_frame(frame, schema)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    frame.to_parquet(partial, index=False)
    write_text(checksum, sha256_of(partial))
    partial.replace(path)
    return frame


def _download(data_id: int) -> pd.DataFrame:
    """OpenML's frame of a data set; UnavailableError if it cannot be fetched."""
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn warns before it retries; the error below says how it ended
            frame: pd.DataFrame = fetch_openml(
                data_id=data_id, as_frame=True, parser="auto", n_retries=1, delay=0.2
            ).frame
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnavailableError(f"OpenML {data_id} cannot be fetched ({reason})") from None
    return frame


def _translate(frame: pd.DataFrame, source: Source, schema: Schema) -> pd.DataFrame:
    """OpenML's columns and labels in the card's spelling."""
    columns = {_normalise(str(column)): column for column in frame.columns}
    names = [*schema.names, schema.target]
    if absent := [n for n in names if _normalise(n) not in columns]:
        raise DataError(
            f"OpenML {source.data_id} has no column {absent[0]!r}; its copy is not the one the card describes"
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
