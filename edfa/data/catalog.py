"""The seven data sets of the paper, by name.

German, Adult and Taiwan are part of the package. The other four are read from Parquet files in the
folder that the environment variable ``EDFA_DATA`` names, or else fetched from OpenML.
"""

import os
from importlib.resources import files
from pathlib import Path

import pandas as pd

from edfa.data.openml import fetch
from edfa.data.read import read_parquet
from edfa.data.schema import Schema
from edfa.data.table import SHARES, Shares, Table
from edfa.errors import UnavailableError, UnreadableError, check_known
from edfa.reading import read_resource, sha256_of

NAMES = ("german", "adult", "heloc", "taiwan", "acs_income", "gmsc", "diabetes130")
BUNDLED = {  # the SHA-256 of each file
    "german": "a1f51f061c879674020453ceab00fc31b56ea05d4f31f48f18e3d683fd3f41f2",
    "adult": "1758a16ad3fcc1d82d964cb30e0343a0eaed5fed6723f3467877adeb2fe783c7",
    "taiwan": "433c3662ce30f7ce02d83fbb27f58f847927cfb01aea30e024a58f8b950e6bae",
}


def load(
    name: str,
    *,
    seed: int = 0,
    shares: Shares = SHARES,
    cap: int | None = None,
) -> Table:
    """A data set of the paper as a Table.

    Parameters
    ----------
    name
        One of ``edfa.data.catalog.NAMES``.
    seed, shares, cap
        How it is split, and how many rows are used, as in ``Table.from_frame``.

    Raises
    ------
    UnavailableError
        If the data set is not on this machine and OpenML cannot be reached.

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
    return Table.from_frame(
        _frame(name, schema), schema, name=name, seed=seed, shares=shares, cap=cap
    )


def load_schema(name: str) -> Schema:
    """The schema of a data set of the paper, from the card in the package.

    Parameters
    ----------
    name
        One of ``edfa.data.catalog.NAMES``.

    Raises
    ------
    UnknownNameError
        If there is no such data set.
    """
    check_known("data set", name, NAMES)
    return Schema.from_toml(read_resource("edfa.data", f"cards/{name}.toml"), where=f"{name}.toml")


def where(name: str) -> str:
    """Where ``load`` takes a data set from: ``"in the package"``, the path of a file, or
    ``"OpenML"``.
    """
    if name in BUNDLED:
        return "in the package"
    return str(path) if (path := _local(name)) else "OpenML"


def _local(name: str) -> Path | None:
    """The data set's file in the folder named by ``EDFA_DATA``; None if there is none."""
    folder = os.environ.get("EDFA_DATA")
    path = Path(folder) / f"{name}.parquet" if folder else None
    return path if path and path.is_file() else None


def _frame(name: str, schema: Schema) -> pd.DataFrame:
    """The rows of a data set, from wherever ``where`` says."""
    if name in BUNDLED:
        path = Path(str(files("edfa.data") / "bundled" / f"{name}.parquet"))
        if not path.is_file() or sha256_of(path) != BUNDLED[name]:
            raise UnreadableError(f"{path.name} inside the package is damaged; install edfa again")
        return read_parquet(path)
    if local := _local(name):
        return read_parquet(local)
    try:
        return fetch(name, schema)
    except UnavailableError as error:
        raise UnavailableError(
            f"{name} does not travel with edfa: put {name}.parquet into a folder and name "
            "it in EDFA_DATA, "
            f"or go online so that it comes from OpenML ({error})"
        ) from None
