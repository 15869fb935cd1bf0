"""The data sets that do not travel with the package, fetched from OpenML once and kept in a checked cache.

OpenML's copies differ from the cards in spelling: column names in another case, codes as numbers, labels as 0 and 1,
an income in dollars. ``_translate`` undoes that by the card; whatever still does not fit is an error, not a table.
"""

import hashlib
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from edfa.data.read import read_parquet
from edfa.data.schema import Schema
from edfa.data.validate import tidy, to_words
from edfa.errors import DataError, UnavailableError

__all__ = ["SOURCES", "Source", "cache_folder", "fetch"]


@dataclass(frozen=True)
class Source:
    """Where OpenML keeps a set, and how its outcome is spelled there."""

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
    """``EDFA_CACHE``, or ``edfa`` in the user's cache folder."""
    if chosen := os.environ.get("EDFA_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edfa"


def fetch(name: str, schema: Schema) -> pd.DataFrame:
    """The set from the cache if it is there and whole, else from OpenML, checked against its card and cached."""
    path = cache_folder() / f"{name}.parquet"
    seal = path.with_suffix(".sha256")
    if path.is_file() and seal.is_file() and _sha256(path) == seal.read_text(encoding="ascii").strip():
        return read_parquet(path)
    frame = _translate(_download(SOURCES[name].data_id), SOURCES[name], schema)
    tidy(frame, schema)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.tmp")
    frame.to_parquet(partial, index=False)
    seal.write_text(_sha256(partial), encoding="ascii")
    partial.replace(path)
    return frame


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _download(data_id: int) -> pd.DataFrame:
    from sklearn.datasets import fetch_openml

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the retry's own warning; its outcome is said below
            frame: pd.DataFrame = fetch_openml(
                data_id=data_id, as_frame=True, parser="auto", n_retries=1, delay=0.2
            ).frame
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnavailableError(f"OpenML {data_id} cannot be fetched ({reason})") from None
    return frame


def _translate(frame: pd.DataFrame, source: Source, schema: Schema) -> pd.DataFrame:
    """OpenML's columns and labels in the card's spelling."""
    plain = {_plain(str(column)): column for column in frame.columns}
    wanted = [*schema.names, schema.target]
    if absent := [n for n in wanted if _plain(n) not in plain]:
        raise DataError(
            f"OpenML {source.data_id} has no column {absent[0]!r}; its copy is not the one the card describes"
        )
    renamed = pd.DataFrame({n: frame[plain[_plain(n)]] for n in wanted})
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


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())
