"""The seven data sets of the paper by name.

German, Adult and Taiwan travel inside the package. The other four come from the folder named by ``EDFA_DATA`` (Parquet
files), else from OpenML.
"""

import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from edfa.data.openml import fetch
from edfa.data.read import read_parquet
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import UnavailableError, UnknownNameError, UnreadableError

__all__ = ["BUNDLED", "NAMES", "load", "load_schema", "where"]

NAMES = ("german", "adult", "heloc", "taiwan", "acs_income", "gmsc", "diabetes130")
BUNDLED = {
    "german": "a1f51f061c879674020453ceab00fc31b56ea05d4f31f48f18e3d683fd3f41f2",
    "adult": "1758a16ad3fcc1d82d964cb30e0343a0eaed5fed6723f3467877adeb2fe783c7",
    "taiwan": "433c3662ce30f7ce02d83fbb27f58f847927cfb01aea30e024a58f8b950e6bae",
}


def load(name: str, **options: Any) -> Table:
    """A data set of the paper as a Table; options as in ``Table.from_frame`` (``seed``, ``cap``, ``shares``).

    Examples
    --------
    >>> load("german", cap=500)
    <Table german: 500 rows, 20 features, target 'class'>
    >>> load("germany")
    Traceback (most recent call last):
        ...
    edfa.errors.UnknownNameError: no data set named 'germany'; did you mean 'german'?
    """
    schema = load_schema(name)
    return Table.from_frame(_frame(name, schema), schema, **{"name": name, **options})


def load_schema(name: str) -> Schema:
    """The card of a data set of the paper."""
    if name not in NAMES:
        raise UnknownNameError("data set", name, NAMES)
    card = files("edfa.data") / "cards" / f"{name}.toml"
    return Schema.from_toml(card.read_text(encoding="utf-8"), where=f"{name}.toml")


def where(name: str) -> str:
    """Where ``load`` would find a set: ``"in the package"``, a path, or ``"OpenML"``."""
    if name in BUNDLED:
        return "in the package"
    return str(path) if (path := _local(name)) else "OpenML"


def _local(name: str) -> Path | None:
    folder = os.environ.get("EDFA_DATA")
    path = Path(folder) / f"{name}.parquet" if folder else None
    return path if path and path.is_file() else None


def _frame(name: str, schema: Schema) -> pd.DataFrame:
    if name in BUNDLED:
        path = Path(str(files("edfa.data") / "bundled" / f"{name}.parquet"))
        if hashlib.sha256(path.read_bytes()).hexdigest() != BUNDLED[name]:
            raise UnreadableError(f"{path.name} inside the package is damaged; install edfa again")
        return read_parquet(path)
    if local := _local(name):
        return read_parquet(local)
    try:
        return fetch(name, schema)
    except UnavailableError as error:
        raise UnavailableError(
            f"{name} does not travel with edfa: put {name}.parquet into a folder and name it in EDFA_DATA, "
            f"or go online so that it comes from OpenML ({error})"
        ) from None
