"""Cleaning on request: drop the columns nobody could learn from, say why, and make one row of many measurements."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from edfa.data.validate import check_columns, to_pandas
from edfa.errors import DataError

__all__ = ["CleaningReport", "Dropped", "clean", "summarise"]

_ID_WORDS = frozenset(("id", "nbr", "no", "nr", "key", "uuid", "guid", "ssn", "index", "number"))


@dataclass(frozen=True)
class Dropped:
    """One column that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class CleaningReport:
    """What ``clean`` left out."""

    dropped: tuple[Dropped, ...]
    kept: tuple[str, ...]

    def frame(self) -> pd.DataFrame:
        """One row a dropped column."""
        return pd.DataFrame([(d.name, d.reason) for d in self.dropped], columns=["column", "reason"])

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
    """Drop columns that are mostly missing, constant, an identifier, or words of too many levels.

    The defaults make the paper's choices on Diabetes130 (payer_code, 40 % missing, and the diagnoses, over 700
    codes, go) and keep all of ACS Income (529 occupations). Columns in ``keep``, such as the target, stay.

    Examples
    --------
    >>> frame = pd.DataFrame({"id": range(9), "same": 1, "x": [1, 2, 3] * 3, "y": list("aab" * 3)})
    >>> rest, report = clean(frame, keep=["y"])
    >>> list(rest), str(report).splitlines()[1]
    (['x', 'y'], '  id: looks like an identifier (9 different values in 9 rows)')
    """
    if not 0 <= max_missing <= 1:
        raise DataError(f"max_missing is a share between 0 and 1, not {max_missing}")
    table = to_pandas(frame)
    check_columns(table, list(keep))
    found = {c: _fault(table[c], str(c), max_missing, max_levels) for c in table.columns if c not in keep}
    dropped = tuple(Dropped(str(c), why) for c, why in found.items() if why)
    rest = table.drop(columns=[c for c, why in found.items() if why])
    return rest, CleaningReport(dropped, tuple(map(str, rest.columns)))


def _fault(values: pd.Series, name: str, max_missing: float, max_levels: int) -> str:
    """Why a column is of no use, or nothing."""
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
    """Whole numbers or words that mostly differ: named like an identifier, or a different word in each row."""
    if values.dtype.kind in "fb":
        return False
    share = distinct / len(values)
    parts = re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()
    named = not _ID_WORDS.isdisjoint(re.split(r"[^a-z]+", parts))
    words = values.dtype.kind not in "iu"
    return (named and share > 0.5) or (words and share > 0.95 and len(values) > 20)


def summarise(frame: Any, person: str, time: str, values: Sequence[str] = ()) -> pd.DataFrame:
    """One row a person from many measurements: mean, min, max and last of each value.

    ``values`` defaults to every other numeric column; "last" is the latest that was recorded.

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
    chosen = list(values) or [str(c) for c in table.select_dtypes("number") if c not in (person, time)]
    if not chosen:
        raise DataError("there is no numeric column to summarise; name them in values")
    groups = table.sort_values(time, kind="stable").groupby(person, sort=True)[chosen]
    wide = groups.agg(["mean", "min", "max", "last"])
    wide.columns = ["_".join(pair) for pair in wide.columns]
    return wide.reset_index()
