"""Cleaning on request: drop columns that nothing can be learnt from, and summarise repeated
measurements.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from edfa.data.values import check_columns, to_pandas
from edfa.errors import DataError

MAX_MISSING = 1 / 3
MAX_LEVELS = 600
_ID_WORDS = frozenset(("id", "nbr", "no", "nr", "key", "uuid", "guid", "ssn", "index", "number"))


@dataclass(frozen=True)
class CleaningReport:
    """What ``clean`` did to a table.

    Parameters
    ----------
    dropped
        For each dropped column, by name, the reason in words.
    kept
        The names of the other columns, in order.
    """

    dropped: Mapping[str, str]
    kept: tuple[str, ...]

    def frame(self) -> pd.DataFrame:
        """A data frame with one row a dropped column: ``column`` and ``reason``."""
        return pd.DataFrame(self.dropped.items(), columns=["column", "reason"])

    def __str__(self) -> str:
        lines = [f"kept {len(self.kept)} columns, dropped {len(self.dropped)}"]
        return "\n".join([*lines, *(f"  {name}: {why}" for name, why in self.dropped.items())])

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False))


def clean(frame: Any, *, keep: Collection[str] = ()) -> tuple[pd.DataFrame, CleaningReport]:
    """Drop columns that are mostly missing, constant, an identifier, or strings of too many levels.

    Mostly missing is a column where more than a third of the values are missing, and too many
    levels are more than 600. So the paper's choices are made on Diabetes130 (payer_code, 40 %
    missing, and the diagnoses, over 700 codes, go), and all of ACS Income stays (529 occupations).

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow frame, one row a person.
    keep
        Columns that stay in any case, such as the target.

    Returns
    -------
    tuple[pandas.DataFrame, CleaningReport]
        The frame without the dropped columns, and what was dropped and why.

    Examples
    --------
    >>> frame = pd.DataFrame({"id": range(9), "same": 1, "x": [1, 2, 3] * 3, "y": list("aab" * 3)})
    >>> rest, report = clean(frame, keep=["y"])
    >>> list(rest), str(report).splitlines()[1]
    (['x', 'y'], '  id: looks like an identifier (9 different values in 9 rows)')
    """
    table = to_pandas(frame)
    check_columns(table, list(keep))
    dropped = {
        name: reason
        for name in table.columns
        if name not in keep and (reason := _reason_to_drop(table[name], name))
    }
    rest = table.drop(columns=list(dropped))
    return rest, CleaningReport(dropped, tuple(rest.columns))


def _reason_to_drop(values: pd.Series, name: str) -> str:
    """Why nothing can be learnt from a column; empty if something can."""
    missing = float(values.isna().mean())
    if missing > MAX_MISSING:
        return f"{missing:.0%} of its values are missing (more than {MAX_MISSING:.0%})"
    distinct = int(values.nunique())
    if distinct < 2:
        return "constant"
    if _looks_like_id(values, name, distinct):
        return f"looks like an identifier ({distinct:,} different values in {len(values):,} rows)"
    if values.dtype.kind not in "iufb" and distinct > MAX_LEVELS:
        return f"{distinct:,} levels (more than {MAX_LEVELS:,})"
    return ""


def _looks_like_id(values: pd.Series, name: str, distinct: int) -> bool:
    """Whether a column is named like an identifier and its values mostly differ, or is text that
    hardly repeats.
    """
    if values.dtype.kind in "fb":
        return False
    share = distinct / len(values)
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
    named = not _ID_WORDS.isdisjoint(re.split(r"[^a-z]+", parts))
    words = values.dtype.kind not in "iu"
    return (named and share > 0.5) or (words and share > 0.95 and len(values) > 20)


def summarise(frame: Any, person: str, time: str, values: Sequence[str] = ()) -> pd.DataFrame:
    """Make one row a person from repeated measurements: mean, min, max and last of each.

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow frame, one row a measurement.
    person, time
        The columns that say whose measurement it is, and when it was taken.
    values
        The columns to summarise. If empty, every other numeric column.

    Returns
    -------
    pandas.DataFrame
        One row a person, sorted by ``person``, with columns such as ``pulse_mean``; "last" is the
        latest value that is not missing.

    Examples
    --------
    >>> visits = pd.DataFrame({"who": [1, 1, 2], "day": [3, 1, 2], "pulse": [70, 80, 60]})
    >>> summarise(visits, person="who", time="day")
       who  pulse_mean  pulse_min  pulse_max  pulse_last
    0    1        75.0         70         80          70
    1    2        60.0         60         60          60
    """
    table = to_pandas(frame)
    check_columns(table, [person, time, *values])
    if gaps := int(table[[person, time]].isna().any(axis=1).sum()):
        raise DataError(f"{gaps} measurements have no {person!r} or no {time!r}")
    columns = list(values) or [
        str(c) for c in table.select_dtypes("number") if c not in (person, time)
    ]
    if not columns:
        raise DataError("there is no numeric column to summarise; name them in values")
    groups = table.sort_values(time, kind="stable").groupby(person, sort=True)[columns]
    wide = groups.agg(["mean", "min", "max", "last"])
    wide.columns = ["_".join(pair) for pair in wide.columns]
    return wide.reset_index()
