"""A feature: one fact about a person, with its kind, its price, and how the person can change it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from edfa.errors import SchemaError, hint

__all__ = ["Change", "Feature", "Kind"]

Kind = Literal["continuous", "ordinal", "categorical"]
Change = Literal["frozen", "up", "down", "free"]
KINDS: tuple[Kind, ...] = ("continuous", "ordinal", "categorical")
CHANGES: tuple[Change, ...] = ("frozen", "up", "down", "free")


@dataclass(frozen=True)
class Feature:
    """One fact about a person.

    Parameters
    ----------
    name, kind
        The column, and whether it is ``"continuous"``, ``"ordinal"`` (levels in order) or ``"categorical"``.
    cost, start
        The price of asking (zero or more), and whether the fact is known before the first question.
    sensitive
        Never offered as something to change; it may still inform a decision.
    change
        How a person can change it: ``"frozen"`` (not at all), only ``"up"``, only ``"down"``, or ``"free"``.
    range
        The lowest and highest value a plan may propose; ``inf`` leaves an end open, None both.
    effort
        What one unit of change costs the person (one level of an ordinal feature, one switch of a categorical one).
        If None, a continuous feature's effort is one per standard deviation, any other's is one.
    label, unit
        Its name and unit for people; an empty label stands for the column's name.
    levels
        The values in order. Needed for an ordinal feature of words, optional otherwise.
    codes
        Numbers that are not measurements, with their meaning: ``{"-9": "no bureau record"}``.

    Raises
    ------
    SchemaError
        If two of these contradict each other, or one is outside its range.

    Examples
    --------
    >>> Feature("savings", "continuous", cost=2, change="up", unit="EUR").actionable
    True
    """

    name: str
    kind: Kind
    cost: float = 1.0
    start: bool = False
    sensitive: bool = False
    change: Change = "free"
    range: tuple[float, float] | None = None
    effort: float | None = None
    label: str = ""
    unit: str = ""
    levels: tuple[str | int | float, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"features.{self.name}"
        for key, value, known in (("kind", self.kind, KINDS), ("change", self.change, CHANGES)):
            if value not in known:
                raise SchemaError(f"{where}.{key}: {value!r} is not one of {', '.join(known)}{hint(value, known)}")
        if not (math.isfinite(self.cost) and self.cost >= 0):
            raise SchemaError(f"{where}.cost: a price is zero or more, not {self.cost}")
        if self.effort is not None and not (math.isfinite(self.effort) and self.effort > 0):
            raise SchemaError(f"{where}.effort: effort is a positive number, not {self.effort}")
        if self.range is not None:
            self._check_range(where, *self.range)
        if len(set(self.levels)) != len(self.levels):
            raise SchemaError(f"{where}.levels: a level is listed twice")
        if self.kind == "categorical" and self.change in ("up", "down"):
            raise SchemaError(f"{where}.change: {self.change!r} needs an order; make it ordinal, or say free or frozen")
        self._check_codes(where)

    def _check_range(self, where: str, low: float, high: float) -> None:
        """Raise unless ``low`` to ``high`` is a range of numbers; ``where`` is the feature's path in the card."""
        if self.kind == "categorical":
            raise SchemaError(f"{where}.range: a categorical feature has levels, not a range")
        if self.words:
            raise SchemaError(f"{where}.range: its levels are words; list the levels a plan may use instead")
        if not low < high:
            raise SchemaError(f"{where}.range: the first number must be below the second, not [{low}, {high}]")

    def _check_codes(self, where: str) -> None:
        """Raise unless every code is a number and the feature's values are numbers too."""
        if self.codes and (self.kind == "categorical" or self.words):
            raise SchemaError(f"{where}.codes: only numbers can be codes; here every value is a level of its own")
        for code in self.codes:
            try:
                float(code)
            except ValueError:
                raise SchemaError(f"{where}.codes: {code!r} is not a number") from None

    @property
    def words(self) -> bool:
        """Whether its values are strings rather than numbers."""
        return self.kind == "categorical" or any(isinstance(level, str) for level in self.levels)

    @property
    def actionable(self) -> bool:
        """Whether a plan may ever change it."""
        return self.change != "frozen" and not self.sensitive

    @property
    def title(self) -> str:
        """Its name for people: the label, else the column's name with spaces."""
        return self.label or self.name.replace("_", " ").replace("-", " ")
