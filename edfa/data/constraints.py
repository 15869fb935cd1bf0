"""What may and may not be proposed: the operator's rules, and what one person will not or cannot
change.

Both are limits on top of the features of a card, which they only tighten. An operator's rules stand
in the card's ``[rules]`` table or in a file of their own; a person's are laid over these with
``tighten``.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from edfa.data.feature import Feature, months_of
from edfa.data.formula import Formula
from edfa.errors import SchemaError, SettingError, UnknownNameError, UnreadableError
from edfa.reading import parse, read_text

if TYPE_CHECKING:
    from edfa.data.schema import Schema

__all__ = ["ANY", "Constraints", "Reading"]

Reading = Literal["card", "paper"]
Value = str | int | float
VERSION = 1  # of the JSON
ANY = "*"  # in a forbidden move: whatever the value


@dataclass(frozen=True)
class Constraints:
    """What may not be proposed, and how hard the rest is. Values are in people's words, not
    encoded.

    A value outside its range is a ``SettingError``; constraints that contradict a card are a
    ``SchemaError`` once they are used with it.

    Parameters
    ----------
    locked, only
        Features that must stay as they are; or the only ones that may change (None: no such limit).
    difficulty, weights
        How hard a change of a feature is, from 1 (easy) over 3 (as the card says) to 5 (hard), each
        step twice as hard; or the factor on its effort itself, above 0.
    directions, ranges, levels
        By feature: the only direction it may move, ``"up"`` or ``"down"``; the least and largest
        number, or the levels, that may be proposed.
    max_changes, max_effort, max_months, min_probability
        The largest number of changes in a plan, its largest effort, the longest time that it may
        take (None: no limit), and the least probability of the class that it reaches.
    forbidden
        Moves that may not be proposed: ``("housing", "own", "rent")``; ``"*"`` stands for any
        value.
    together
        Pairs of features whose values after the change must occur together among training people;
        numbers count as together with others of the same tenth of training people.
    never_ask
        Features that are never asked for. Who tells them anyway is heard.
    linked
        Features that follow from others, by feature: ``{"instalment": "credit_amount /
        duration"}``. A plan that changes one of the others moves this one along; by itself it is
        never changed.
    per_year, takes
        By how much numbers grow in a year, and how long changes take, in place of what the card
        says.
    reading
        ``"card"`` obeys the card's directions, ranges and rules. ``"paper"`` lets everything change
        but what is sensitive (Assumption 5), and asks of plans nothing but that they turn the
        decision.

    Examples
    --------
    >>> mine = Constraints(locked=("purpose",), ranges={"credit_amount": (1000, 5000)},
    ...     max_changes=2)
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
    max_months: float | None = None
    min_probability: float = 0.0
    forbidden: tuple[tuple[str, Value, Value], ...] = ()
    together: tuple[tuple[str, str], ...] = ()
    never_ask: tuple[str, ...] = ()
    linked: Mapping[str, str] = field(default_factory=dict)
    per_year: Mapping[str, float] = field(default_factory=dict)
    takes: Mapping[str, str] = field(default_factory=dict)
    reading: Reading = "card"

    def __post_init__(self) -> None:
        self._check_weights()
        for name, way in self.directions.items():
            if way not in ("up", "down"):
                raise SettingError(f"directions.{name}: up or down, not {way!r}")
        for name, (low, high) in self.ranges.items():
            if not low <= high:
                raise SettingError(
                    f"ranges.{name}: the first number must not be above the second, not "
                    f"[{low}, {high}]"
                )
        self._check_limits()
        if self.reading not in ("card", "paper"):
            raise SettingError(f"reading: card or paper, not {self.reading!r}")
        for name, takes in self.takes.items():
            months_of(takes, f"takes.{name}")
        _check_links(
            {name: Formula.of(text, f"linked.{name}") for name, text in self.linked.items()}
        )

    def _check_limits(self) -> None:
        """The numbers that limit a plan are in their ranges."""
        if self.max_changes is not None and self.max_changes < 1:
            raise SettingError(f"max_changes: at least 1, not {self.max_changes}")
        if self.max_effort is not None and not self.max_effort > 0:
            raise SettingError(f"max_effort: above 0, not {self.max_effort}")
        if self.max_months is not None and not self.max_months >= 0:
            raise SettingError(f"max_months: 0 or more, not {self.max_months}")
        if not 0 <= self.min_probability < 1:
            raise SettingError(
                f"min_probability: from 0 up to, not including, 1; not {self.min_probability}"
            )

    def _check_weights(self) -> None:
        """Difficulties and weights are in their ranges, and no feature has both."""
        for name, grade in self.difficulty.items():
            if grade not in (1, 2, 3, 4, 5):
                raise SettingError(f"difficulty.{name}: from 1 (easy) to 5 (hard), not {grade}")
            if name in self.weights:
                raise SettingError(
                    f"weights.{name}: it has a difficulty already; give one of the two"
                )
        for name, weight in self.weights.items():
            if not 0 < weight < float("inf"):
                raise SettingError(f"weights.{name}: a weight is a positive number, not {weight}")

    def check(self, schema: "Schema") -> None:
        """Raise ``SchemaError`` or ``UnknownNameError`` unless they fit the card.

        All names must be features of the schema, and constraints may only tighten what the card
        allows.
        """
        moved = (*(self.only or ()), *self.directions)
        named = (*self.locked, *self.difficulty, *self.weights, *self.ranges, *self.levels)
        named += tuple(name for name, *_ in self.forbidden) + tuple(
            name for pair in self.together for name in pair
        )
        named += (*self.never_ask, *self.linked, *self.per_year, *self.takes)
        for name in (*moved, *named):
            schema.index(name)
        self._check_formulas(schema)
        for name in moved:
            if not self._actionable(schema[name]):
                why = "sensitive" if schema[name].sensitive else "frozen"
                raise SchemaError(
                    f"{name}: the card says {why}, and constraints only tighten what it allows"
                )
        for name, way in self.directions.items():
            self._check_direction(schema[name], way)
        if words := [name for name in self.ranges if schema[name].words]:
            raise SchemaError(
                f"ranges.{words[0]}: its values are words; list the levels a plan may use instead"
            )
        if numbers := [name for name in self.levels if schema[name].kind == "continuous"]:
            raise SchemaError(f"levels.{numbers[0]}: it is a number; give a range instead")

    def check_leaves_something(self, schema: "Schema") -> None:
        """Raise ``SchemaError``, which names the rule, if rules for everybody leave nobody anything
        to change.
        """
        actionable = [feature for feature in schema if self._actionable(feature)]
        if not actionable or any(self._leaves(feature) for feature in actionable):
            return
        keys = ("locked", "only", "levels", "ranges", "forbidden", "linked")
        used = [key for key in keys if getattr(self, key) != getattr(Constraints(), key)]
        needed = [
            key
            for key in used
            if any(_without(self, key)._leaves(feature) for feature in actionable)
        ]
        named = (needed or used)[0]
        value = getattr(self, named)
        raise SchemaError(
            f"{named} = {value if isinstance(value, Mapping) else list(value)}: leaves "
            "nothing to change"
        )

    def _leaves(self, feature: Feature) -> bool:
        """Whether a plan may propose some value of this feature to somebody."""
        low, high = self.ranges.get(feature.name, (0, 1))
        closed = feature.name in self.levels and not self.levels[feature.name]
        return (
            self.may_change(feature)
            and not closed
            and low < float("inf")
            and low <= high
            and (feature.name, ANY, ANY) not in self.forbidden
        )

    def _check_direction(self, feature: Feature, way: str) -> None:
        """The feature has an order, and the card allows this direction."""
        if feature.kind == "categorical":
            raise SchemaError(
                f"directions.{feature.name}: {way!r} needs an order; list the levels a "
                "plan may use instead"
            )
        if self.reading == "card" and feature.change not in (way, "free"):
            raise SchemaError(f"directions.{feature.name}: the card allows {feature.change!r} only")
        if self.reading == "card" and feature.monotone not in (way, None):
            raise SchemaError(
                f"directions.{feature.name}: only {way!r} is allowed, but the card says "
                f"that {feature.monotone!r} is "
                "good; lock it if it must not change"
            )

    def _check_formulas(self, schema: "Schema") -> None:
        """Formulas are about numbers and ordinal features of the schema; what grows is a number."""
        for name, text in self.linked.items():
            for part in (name, *Formula.of(text, f"linked.{name}").names):
                try:
                    kind = schema[part].kind
                except UnknownNameError as error:
                    raise SchemaError(f"linked.{name} = {text!r}: {error}") from None
                if kind == "categorical":
                    raise SchemaError(
                        f"linked.{name} = {text!r}: {part!r} is categorical; formulas are "
                        "about numbers"
                    )
        if fixed := [name for name in self.per_year if schema[name].kind != "continuous"]:
            raise SchemaError(
                f"per_year.{fixed[0]}: only a continuous feature grows by a number a year"
            )

    def _actionable(self, feature: Feature) -> bool:
        """Whether the card, in this reading, lets anybody change the feature."""
        return feature.actionable if self.reading == "card" else not feature.sensitive

    def may_change(self, feature: Feature) -> bool:
        """Whether a plan may change this feature at all."""
        chosen = self.only is None or feature.name in self.only
        fixed = feature.name in self.locked or feature.name in self.linked
        return self._actionable(feature) and chosen and not fixed

    def weight(self, name: str) -> float:
        """The factor on the effort of changing a feature."""
        return float(self.weights.get(name, 2.0 ** (self.difficulty.get(name, 3) - 3)))

    def tighten(self, other: "Constraints | None") -> "Constraints":
        """These and ``other`` together: what both allow.

        The other, a person's own limits, cannot loosen anything: a reading that these do not have,
        a link or a time that says something else, or a direction against these raises
        ``SettingError``.

        >>> rules = Constraints(locked=("age",), max_changes=3)
        >>> rules.tighten(Constraints(locked=("purpose",), max_changes=2)).max_changes
        2
        """
        if other is None or other == Constraints():
            return self
        if other.reading != self.reading and other.reading == "paper":
            raise SettingError(
                "reading: 'paper' would loosen the rules, which constraints only tighten"
            )
        return replace(
            other,
            locked=_union(self.locked, other.locked),
            only=other.only if self.only is None else _shared(self.only, other.only),
            difficulty={},
            weights=self._joint_weights(other),
            directions=_agreed("directions", self.directions, other.directions),
            ranges=_by_name(self.ranges, other.ranges, _narrowed),
            levels=_by_name(self.levels, other.levels, _shared),
            max_changes=_least(self.max_changes, other.max_changes),
            max_effort=_least(self.max_effort, other.max_effort),
            max_months=_least(self.max_months, other.max_months),
            min_probability=max(self.min_probability, other.min_probability),
            forbidden=_union(self.forbidden, other.forbidden),
            together=_union(self.together, other.together),
            never_ask=_union(self.never_ask, other.never_ask),
            linked=_agreed("linked", self.linked, other.linked),
            per_year=_agreed("per_year", self.per_year, other.per_year),
            takes=_agreed("takes", self.takes, other.takes),
            reading=self.reading,
        )

    def _joint_weights(self, other: "Constraints") -> dict[str, float]:
        """Both weights of a feature multiplied; under a limit of effort, the other one makes
        nothing easier.
        """
        least = 0.0 if self.max_effort is None else 1.0
        names = _union(*(_weighted(limits) for limits in (self, other)))
        return {name: self.weight(name) * max(other.weight(name), least) for name in names}

    def for_person(self, own: "Constraints | None") -> "Constraints":
        """These, tightened by a person's own limits.

        What is linked, what grows and how long changes take are facts for the operator to say: a
        person's limits that hold one raise ``SettingError``.
        """
        for key in ("linked", "per_year", "takes"):
            for name in getattr(own, key) if own is not None else ():
                raise SettingError(f"{key}.{name}: this is the operator's to say, not a person's")
        return self.tighten(own)

    @classmethod
    def read(cls, path: str | Path) -> "Constraints":
        """The rules in a TOML file: the keys of this class, at its top or in a ``[rules]`` table;
        or a JSON file.
        """
        text, where = read_text(path), Path(path).name
        try:
            if Path(path).suffix == ".json":
                return cls.from_json(text)
            values = tomllib.loads(text)
            return cls.parse(values["rules"] if set(values) == {"rules"} else values)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise UnreadableError(f"{where}: not a TOML file: {error}") from None
        except (SettingError, UnreadableError) as error:
            raise type(error)(f"{where}: {error}") from None

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str = "rules") -> "Constraints":
        """Constraints from a mapping, such as a card's ``[rules]`` table; ``where`` is its path,
        for error messages.
        """
        try:
            return parse(cls, values, where)
        except SchemaError as error:
            raise SettingError(str(error)) from None

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps({"version": VERSION} | asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Constraints":
        """Read what ``to_json`` wrote; fields that are left out have their defaults, but the
        version must be there.

        Without it (as in ``{}``) nothing says that the text is constraints at all, and reading it
        as "no limits" could drop a person's limits unnoticed. Raises ``UnreadableError`` for other
        text and other versions, ``SettingError`` for unknown fields and values that the constructor
        would not take.
        """
        try:
            values: dict[str, Any] = json.loads(text)
            version = values.pop("version")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise UnreadableError("this text is not constraints as to_json writes them") from None
        if version != VERSION:
            raise UnreadableError(
                f"these constraints are of version {version}; version {VERSION} can be read"
            )
        return cls.parse(values, "constraints")


def _check_links(formulas: Mapping[str, Formula]) -> None:
    """Raise if a feature follows, by way of others or not, from itself."""
    for name in formulas:
        seen, left = set(), [name]
        while left:
            formula = formulas.get(left.pop())
            for part in formula.names if formula else ():
                if part == name:
                    raise SettingError(
                        f"linked.{name} = {formulas[name].text!r}: {name!r} would follow "
                        "from itself"
                    )
                if part not in seen:
                    seen.add(part)
                    left.append(part)


def _without(limits: Constraints, key: str) -> Constraints:
    """Constraints with one of their keys as it is by default."""
    default: dict[str, Any] = {key: getattr(Constraints(), key)}
    return replace(limits, **default)


def _union(*parts: Iterable[Any]) -> tuple[Any, ...]:
    """All entries once, in order."""
    return tuple(dict.fromkeys(entry for part in parts for entry in part))


def _shared(mine: tuple[Any, ...], others: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """The entries that both have."""
    return mine if others is None else tuple(entry for entry in mine if entry in others)


def _weighted(limits: Constraints) -> tuple[str, ...]:
    return (*limits.weights, *limits.difficulty)


def _narrowed(mine: tuple[float, float], others: tuple[float, float]) -> tuple[float, float]:
    """What two ranges share; a range of no number where they share nothing."""
    low, high = max(mine[0], others[0]), min(mine[1], others[1])
    return (low, high) if low <= high else (float("inf"), float("inf"))


def _least(mine: Any, others: Any) -> Any:
    return min((limit for limit in (mine, others) if limit is not None), default=None)


def _by_name(mine: Mapping[str, Any], others: Mapping[str, Any], join: Any) -> dict[str, Any]:
    """The entries of two mappings, those under the same name joined."""
    return {
        **mine,
        **{
            name: join(mine[name], value) if name in mine else value
            for name, value in others.items()
        },
    }


def _agreed(key: str, mine: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of two mappings, which must not contradict each other."""
    if differ := [name for name in others if name in mine and mine[name] != others[name]]:
        name = differ[0]
        raise SettingError(
            f"{key}.{name}: the rules say {mine[name]!r}, which constraints cannot make "
            f"{others[name]!r}"
        )
    return {**mine, **others}
