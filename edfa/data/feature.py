"""A feature: one fact about a person, with its kind, its price, and how the person can change
it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from edfa.data.values import LARGEST
from edfa.errors import SchemaError, hint

__all__ = ["Change", "Direction", "Feature", "FeatureWords", "Kind", "months_of"]

Kind = Literal["continuous", "ordinal", "categorical"]
Change = Literal["frozen", "up", "down", "free"]
Direction = Literal["up", "down"]
KINDS: tuple[Kind, ...] = ("continuous", "ordinal", "categorical")
CHANGES: tuple[Change, ...] = ("frozen", "up", "down", "free")
DIRECTIONS: tuple[Direction, ...] = ("up", "down")
LANGUAGE = re.compile(r"[a-z]{2}")
MONTHS = {"day": 12 / 365.25, "week": 84 / 365.25, "month": 1.0, "year": 12.0}


@dataclass(frozen=True)
class FeatureWords:
    """What is said about a feature in one language; what is empty is said as the card says it
    otherwise.

    ``levels`` and ``codes`` are words for single levels and codes; ``reason``, ``ask`` and ``hint``
    are as in ``Feature``.
    """

    label: str = ""
    unit: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    ask: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Feature:
    """One fact about a person.

    Parameters
    ----------
    name, kind
        The column, and whether it is ``"continuous"``, ``"ordinal"`` (levels in order) or
        ``"categorical"``.
    cost, start
        The price of asking (zero or more), and whether the fact is known before the first question.
    sensitive
        Never offered as something to change; it may still inform a decision.
    change
        How a person can change it: ``"frozen"`` (not at all), only ``"up"``, only ``"down"``, or
        ``"free"``.
    range
        The lowest and highest value a plan may propose; ``inf`` leaves an end open, None both.
    effort
        What one unit of change costs the person (one level of an ordinal feature, one switch of a
        categorical one). If None, a continuous feature's effort is one per standard deviation (per
        year, if it grows by itself), any other's is one.
    label, unit
        Its name and unit for people; an empty label stands for the column's name.
    levels
        The values in order. Needed for an ordinal feature of words, optional otherwise.
    codes
        Numbers that are not measurements, with their meaning: ``{"-9": "no bureau record"}``.
    monotone
        The direction that is good for the person: ``"up"`` if more never lowers the chance of the
        favourable class, ``"down"`` if less never does; None says nothing. A model obeys it, and no
        plan goes the other way.
    per_year
        By how much a number grows by itself in a year: 1 for an age in years, 12 for a duration in
        months.
    takes
        How long a change takes, as in ``"24 months"``; of an ordinal feature, each level of it.
        Empty: no time.
    guessed
        Whether the draft of the card guessed something here that nobody has confirmed.
    reason
        What a letter says where this fact is a principal reason of a refusal; facts with the same
        words are one reason. Empty: its label.
    source
        Where the fact comes from, if not from the person: ``"bureau"``, a credit bureau, ``"bureau
        score"``, a score that it has made, or words of your own.
    ask, hint
        The question as it is put to a person, and a line of help below it; empty: its label, and
        nothing.
    translations
        What is said in other languages (or in nicer words in this one), by language: ``de.label =
        "Alter"`` in a card.

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
    levels: tuple[str | bool | int | float, ...] = ()
    codes: Mapping[str, str] = field(default_factory=dict)
    monotone: Direction | None = None
    per_year: float = 0.0
    takes: str = ""
    guessed: bool = False
    reason: str = ""
    source: str = ""
    ask: str = ""
    hint: str = ""
    translations: Mapping[str, FeatureWords] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"features.{self.name}"
        self._check_translations(where)
        for key, value, known in (("kind", self.kind, KINDS), ("change", self.change, CHANGES)):
            if value not in known:
                raise SchemaError(
                    f"{where}.{key}: {value!r} is not one of {', '.join(known)}{hint(value, known)}"
                )
        if not (math.isfinite(self.cost) and self.cost >= 0):
            raise SchemaError(f"{where}.cost: a price is zero or more, not {self.cost}")
        if self.effort is not None and not (math.isfinite(self.effort) and self.effort > 0):
            raise SchemaError(f"{where}.effort: effort is a positive number, not {self.effort}")
        if self.range is not None:
            self._check_range(where, *self.range)
        self._check_levels(where)
        if self.kind == "categorical" and self.change in ("up", "down"):
            raise SchemaError(
                f"{where}.change: {self.change!r} needs an order; make it ordinal, or say "
                "free or frozen"
            )
        self._check_codes(where)
        self._check_direction(where)
        if not math.isfinite(self.per_year) or (self.per_year and self.kind != "continuous"):
            raise SchemaError(
                f"{where}.per_year: a continuous feature grows by a number a year, not "
                f"{self.per_year}"
            )
        months_of(self.takes, f"{where}.takes")

    def _check_translations(self, where: str) -> None:
        """Raise unless translations are by language, of levels and codes that the feature has."""
        for language, words in self.translations.items():
            if not LANGUAGE.fullmatch(language):
                raise SchemaError(f"{where}.{language}: a language is two letters, such as de")
            for key, known in (
                ("levels", [str(level) for level in self.levels]),
                ("codes", [*self.codes]),
            ):
                strange = [name for name in getattr(words, key) if known and name not in known]
                if strange:
                    raise SchemaError(
                        f"{where}.{language}.{key}: no {key[:-1]} "
                        f"{strange[0]!r}{hint(strange[0], known)}"
                    )

    def _check_direction(self, where: str) -> None:
        """Raise unless the good direction is one that the feature has, and may be moved in."""
        if self.monotone is None:
            return
        if self.monotone not in DIRECTIONS:
            raise SchemaError(f"{where}.monotone: up or down, not {self.monotone!r}")
        if self.kind == "categorical":
            raise SchemaError(
                f"{where}.monotone: {self.monotone!r} needs an order; make it ordinal and "
                "list its levels"
            )
        if self.change in DIRECTIONS and self.change != self.monotone:
            raise SchemaError(
                f"{where}.monotone: {self.monotone!r} is good, but it may only change "
                f"{self.change!r}; "
                "no plan could use it, so say change = 'frozen'"
            )

    def _check_range(self, where: str, low: float, high: float) -> None:
        """Raise unless ``low`` to ``high`` is a range of numbers; ``where`` is the feature's path
        in the card.
        """
        if self.kind == "categorical":
            raise SchemaError(f"{where}.range: a categorical feature has levels, not a range")
        if self.words:
            raise SchemaError(
                f"{where}.range: its levels are words; list the levels a plan may use instead"
            )
        if not low < high:
            raise SchemaError(
                f"{where}.range: the first number must be below the second, not [{low}, {high}]"
            )
        if far := [end for end in (low, high) if math.isfinite(end) and abs(end) > LARGEST]:
            raise SchemaError(
                f"{where}.range: {far[0]:g} is no measurement; write inf for an open end"
            )

    def _check_levels(self, where: str) -> None:
        """Raise unless the levels differ, as texts if they are words, and numbers among them are
        measurements.
        """
        if truth := [level for level in self.levels if isinstance(level, bool)]:
            raise SchemaError(
                f"{where}.levels: write {str(truth[0]).lower()} as a text, as it stands "
                "in the table"
            )
        if any(
            isinstance(level, int | float) and not abs(level) <= LARGEST for level in self.levels
        ):
            raise SchemaError(f"{where}.levels: a number is beyond {LARGEST:g}")
        same = [str(level) if self.words else repr(float(level)) for level in self.levels]
        if len(set(same)) < len(same):
            twice = next(level for level in same if same.count(level) > 1)
            raise SchemaError(f"{where}.levels: {twice!r} is listed twice")
        if "" in same:
            raise SchemaError(f"{where}.levels: an empty text is no level, it means not recorded")

    def _check_codes(self, where: str) -> None:
        """Raise unless every code is a number and the feature's values are numbers too."""
        if self.codes and (self.kind == "categorical" or self.words):
            raise SchemaError(
                f"{where}.codes: only numbers can be codes; here every value is a level of its own"
            )
        for code in self.codes:
            try:
                number = float(code)
            except ValueError:
                raise SchemaError(f"{where}.codes: {code!r} is not a number") from None
            if not abs(number) <= LARGEST:
                raise SchemaError(f"{where}.codes: {code!r} is not a number within {LARGEST:g}")

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

    def said(self, language: str) -> FeatureWords:
        """All that is said about it in a language; what nobody has translated is said as the card
        says it.

        >>> age = Feature("age", "continuous", unit="years",
        ...     translations={"de": FeatureWords(label="Alter")})
        >>> age.said("de").label, age.said("de").unit, age.said("en").label
        ('Alter', 'years', 'age')
        """
        own = self.translations.get(language, FeatureWords())
        return FeatureWords(
            label=own.label or self.title,
            unit=own.unit or self.unit,
            levels=own.levels,
            codes={**self.codes, **own.codes},
            reason=own.reason or self.reason or own.label or self.title,
            ask=own.ask or self.ask,
            hint=own.hint or self.hint,
        )


def months_of(takes: str, where: str = "takes") -> float:
    """A duration in words as a number of months; 0 for an empty one.

    >>> months_of("24 months"), months_of("2 years"), months_of("")
    (24.0, 24.0, 0.0)
    """
    if not takes:
        return 0.0
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(day|week|month|year)s?\s*", takes)
    if match is None:
        raise SchemaError(
            f"{where}: a number of days, weeks, months or years, such as '24 months', not {takes!r}"
        )
    return float(match[1]) * MONTHS[match[2]]
