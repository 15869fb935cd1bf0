"""What one person can and cannot change: limits on top of the card, which they may only tighten."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.errors import SchemaError, SettingError, UnreadableError
from edfa.parsing import parse

__all__ = ["Constraints", "Reading"]

Reading = Literal["card", "paper"]
Value = str | int | float
VERSION = 1  # of the JSON


@dataclass(frozen=True)
class Constraints:
    """What a person will not or cannot change, and how hard the rest is. Values are in people's words, not encoded.

    A value outside its range is a ``SettingError``; constraints that contradict a card are a ``SchemaError`` once they
    are used with it.

    Parameters
    ----------
    locked, only
        Features that must stay as they are; or the only ones that may change (None: no such limit).
    difficulty, weights
        How hard a change of a feature is, from 1 (easy) over 3 (as the card says) to 5 (hard), each step twice as hard;
        or the factor on its effort itself, above 0.
    directions, ranges, levels
        By feature: the only direction it may move, ``"up"`` or ``"down"``; the least and largest number, or the levels,
        that may be proposed.
    max_changes, max_effort, min_probability
        The largest number of changes in a plan, its largest effort (None: no limit), and the least probability of the
        class that it reaches.
    forbidden
        Transitions that may not be proposed: ``("housing", "own", "rent")``.
    together
        Pairs of features whose values after the change must occur together among training people.
    reading
        ``"card"`` obeys the card's directions and ranges. ``"paper"`` lets everything change but what is sensitive
        (Assumption 5).

    Examples
    --------
    >>> mine = Constraints(locked=("purpose",), ranges={"credit_amount": (1000, 5000)}, max_changes=2)
    >>> Constraints.from_json(mine.to_json()) == mine
    True
    >>> Constraints(difficulty={"duration": 7})
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: difficulty.duration: from 1 (easy) to 5 (hard), not 7
    """

    locked: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    difficulty: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    directions: Mapping[str, Literal["up", "down"]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    levels: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    max_changes: int | None = None
    max_effort: float | None = None
    min_probability: float = 0.0
    forbidden: tuple[tuple[str, Value, Value], ...] = ()
    together: tuple[tuple[str, str], ...] = ()
    reading: Reading = "card"

    def __post_init__(self) -> None:
        self._check_weights()
        for name, way in self.directions.items():
            if way not in ("up", "down"):
                raise SettingError(f"directions.{name}: up or down, not {way!r}")
        for name, (low, high) in self.ranges.items():
            if not low <= high:
                raise SettingError(f"ranges.{name}: the first number must not be above the second, not [{low}, {high}]")
        if self.max_changes is not None and self.max_changes < 1:
            raise SettingError(f"max_changes: at least 1, not {self.max_changes}")
        if self.max_effort is not None and not self.max_effort > 0:
            raise SettingError(f"max_effort: above 0, not {self.max_effort}")
        if not 0 <= self.min_probability < 1:
            raise SettingError(f"min_probability: from 0 up to, not including, 1; not {self.min_probability}")
        if self.reading not in ("card", "paper"):
            raise SettingError(f"reading: card or paper, not {self.reading!r}")

    def _check_weights(self) -> None:
        """Difficulties and weights are in their ranges, and no feature has both."""
        for name, grade in self.difficulty.items():
            if grade not in (1, 2, 3, 4, 5):
                raise SettingError(f"difficulty.{name}: from 1 (easy) to 5 (hard), not {grade}")
            if name in self.weights:
                raise SettingError(f"weights.{name}: it has a difficulty already; give one of the two")
        for name, weight in self.weights.items():
            if not 0 < weight < float("inf"):
                raise SettingError(f"weights.{name}: a weight is a positive number, not {weight}")

    def check(self, schema: Schema) -> None:
        """Raise ``SchemaError`` or ``UnknownNameError`` unless they fit the card.

        All names must be features of the schema, and constraints may only tighten what the card allows.
        """
        moved = (*(self.only or ()), *self.directions)
        named = (*self.locked, *self.difficulty, *self.weights, *self.ranges, *self.levels)
        named += tuple(name for name, *_ in self.forbidden) + tuple(name for pair in self.together for name in pair)
        for name in (*moved, *named):
            schema.index(name)
        for name in moved:
            if not self._actionable(schema[name]):
                why = "sensitive" if schema[name].sensitive else "frozen"
                raise SchemaError(f"{name}: the card says {why}, and constraints only tighten what it allows")
        for name, way in self.directions.items():
            self._check_direction(schema[name], way)
        if words := [name for name in self.ranges if schema[name].words]:
            raise SchemaError(f"ranges.{words[0]}: its values are words; list the levels a plan may use instead")
        if numbers := [name for name in self.levels if schema[name].kind == "continuous"]:
            raise SchemaError(f"levels.{numbers[0]}: it is a number; give a range instead")

    def _check_direction(self, feature: Feature, way: str) -> None:
        """The feature has an order, and the card allows this direction."""
        if feature.kind == "categorical":
            raise SchemaError(
                f"directions.{feature.name}: {way!r} needs an order; list the levels a plan may use instead"
            )
        if self.reading == "card" and feature.change not in (way, "free"):
            raise SchemaError(f"directions.{feature.name}: the card allows {feature.change!r} only")

    def _actionable(self, feature: Feature) -> bool:
        """Whether the card, in this reading, lets anybody change the feature."""
        return feature.actionable if self.reading == "card" else not feature.sensitive

    def may_change(self, feature: Feature) -> bool:
        """Whether a plan may change this feature at all."""
        chosen = self.only is None or feature.name in self.only
        return self._actionable(feature) and chosen and feature.name not in self.locked

    def weight(self, name: str) -> float:
        """The factor on the effort of changing a feature."""
        return float(self.weights.get(name, 2.0 ** (self.difficulty.get(name, 3) - 3)))

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps({"version": VERSION} | asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Constraints":
        """Read what ``to_json`` wrote; fields that are left out have their defaults, but the version must be there.

        Without it (as in ``{}``) nothing says that the text is constraints at all, and reading it as "no limits" could
        drop a person's limits unnoticed. Raises ``UnreadableError`` for other text and other versions, ``SettingError``
        for unknown fields and values that the constructor would not take.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            version = values.pop("version")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise UnreadableError("this text is not constraints as to_json writes them") from None
        if version != VERSION:
            raise UnreadableError(f"these constraints are of version {version}; version {VERSION} can be read")
        try:
            return parse(cls, values, "constraints")
        except SchemaError as error:
            raise SettingError(str(error)) from None
