"""Cleaning on request: drop columns that nothing can be learnt from, and summarise repeated
measurements.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from edfa.data.values import check_columns, to_pandas
from edfa.errors import DataError, SettingError

__all__ = ["CleaningReport", "Dropped", "clean", "summarise"]

_ID_WORDS = frozenset(("id", "nbr", "no", "nr", "key", "uuid", "guid", "ssn", "index", "number"))


@dataclass(frozen=True)
class Dropped:
    """A column that was dropped, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class CleaningReport:
    """The columns that ``clean`` dropped, with reasons, and the names of those it kept."""

    dropped: tuple[Dropped, ...]
    kept: tuple[str, ...]

    def frame(self) -> pd.DataFrame:
        """A data frame with one row a dropped column: ``column`` and ``reason``."""
        return pd.DataFrame(
            [(d.name, d.reason) for d in self.dropped], columns=["column", "reason"]
        )

    def __str__(self) -> str:
        lines = [f"kept {len(self.kept)} columns, dropped {len(self.dropped)}"]
        return "\n".join([*lines, *(f"  {d.name}: {d.reason}" for d in self.dropped)])

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False))


def clean(
    frame: Any,
    *,
    keep: Collection[str] = (),
    max_missing: float = 1 / 3,
    max_levels: int = 600,
) -> tuple[pd.DataFrame, CleaningReport]:
    """Drop columns that are mostly missing, constant, an identifier, or strings of too many levels.

    The defaults make the paper's choices on Diabetes130 (payer_code, 40 % missing, and the
    diagnoses, over 700 codes, go) and keep all of ACS Income (529 occupations).

    Parameters
    ----------
    frame
        A pandas, polars or pyarrow frame, one row a person.
    keep
        Columns that stay in any case, such as the target.
    max_missing
        The largest share of missing values, 0 to 1, a column may have.
    max_levels
        The largest number of different values a column of strings may have.

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
    if not 0 <= max_missing <= 1:
        raise SettingError(f"max_missing is a share between 0 and 1, not {max_missing}")
    table = to_pandas(frame)
    check_columns(table, list(keep))
    reasons = {
        c: _reason_to_drop(table[c], str(c), max_missing, max_levels)
        for c in table.columns
        if c not in keep
    }
    dropped = tuple(Dropped(str(c), reason) for c, reason in reasons.items() if reason)
    rest = table.drop(columns=[c for c, reason in reasons.items() if reason])
    return rest, CleaningReport(dropped, tuple(map(str, rest.columns)))


def _reason_to_drop(values: pd.Series, name: str, max_missing: float, max_levels: int) -> str:
    """Why nothing can be learnt from a column; empty if something can."""
    missing = float(values.isna().mean())
    if missing > max_missing:
        return f"{missing:.0%} of its values are missing (more than {max_missing:.0%})"
    distinct = int(values.nunique())
    if distinct < 2:
        return "constant"
    if _looks_like_id(values, name, distinct):
        return f"looks like an identifier ({distinct:,} different values in {len(values):,} rows)"
    if values.dtype.kind not in "iufb" and distinct > max_levels:
        return f"{distinct:,} levels (more than {max_levels:,})"
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
