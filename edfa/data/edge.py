"""Flags: what was told and is not taken as it was told, because it lies beyond what training people
showed.
"""

from dataclasses import dataclass
from typing import Any, Literal

from edfa.data.column import Levels, Measure
from edfa.data.values import as_number

__all__ = ["Flag", "FlagKind", "find_flag"]

FlagKind = Literal["above", "below", "between", "left_out"]


@dataclass(frozen=True)
class Flag:
    """One fact that is not taken as it was told.

    ``kind`` is ``"above"`` or ``"below"`` (of all that was seen), ``"between"`` (levels that were
    seen), or ``"left_out"`` (it cannot be understood, and does not matter to the decision).
    ``told`` is what the person said, ``taken`` the value that stands for it; None if it was left
    out.
    """

    feature: str
    kind: FlagKind
    told: Any
    taken: Any = None


def find_flag(column: Measure | Levels, value: Any) -> Flag | None:
    """The flag of one answer; None if it is taken as told. FactError for an answer that cannot be
    understood.

    >>> import edfa
    >>> find_flag(edfa.load("german").encoder["age"], 80)
    Flag(feature='age', kind='above', told=80, taken=75)
    """
    taken = column.at_edge(value)
    if taken is None or (number := as_number(value, column.name)) is None:  # a gap is never moved
        return None
    ends = (
        (column.low, column.high)
        if isinstance(column, Measure)
        else (min(column.levels), max(column.levels))
    )
    kind: FlagKind = (
        "above" if number > float(ends[1]) else "below" if number < float(ends[0]) else "between"
    )
    return Flag(column.name, kind, value, taken)
