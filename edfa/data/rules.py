"""Limits on what plans may propose: an operator's ``Rules`` and one person's ``Overlay``.

Both only tighten what the features of a card allow, and an overlay only tightens the rules:
``rules.tighten(overlay)`` gives the rules that hold for that person. An operator's rules stand in
the card's ``[rules]`` table or in a file of their own; an overlay also holds the person's prices.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from edfa.data.formula import Formula
from edfa.data.values import months_of
from edfa.errors import (
    EdfaError,
    FactError,
    SchemaError,
    SettingError,
    UnknownNameError,
    UnreadableError,
)
from edfa.reading import parse, parse_toml, read_text
from edfa.typing import Float64Array

if TYPE_CHECKING:
    from edfa.data.encode import Encoder
    from edfa.data.schema import Feature, Schema

Reading = Literal["card", "paper"]
Value = str | int | float
FORMAT_VERSION = 1
ANY_VALUE = "*"  # in a forbidden move
MAX_LISTED = 2  # moves or pairs that a description lists; more are only counted
OPERATOR_KEYS = ("linked", "per_year", "takes", "reading")


@dataclass(frozen=True)
class Limits:
    """The limits on plans and questions that ``Rules`` and ``Overlay`` share.

    The parameters are explained in ``Rules``. Values are in people's words, not encoded.

    Raises
    ------
    SettingError
        If a value is outside its range, or a feature has a difficulty and a weight.
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

    def __post_init__(self) -> None:
        self._check_entries()
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

    def _check_entries(self) -> None:
        """The entries by feature are in their ranges, and no feature has two weights."""
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
        for name, way in self.directions.items():
            if way not in ("up", "down"):
                raise SettingError(f"directions.{name}: up or down, not {way!r}")
        for name, (low, high) in self.ranges.items():
            if not low <= high:
                raise SettingError(
                    f"ranges.{name}: the first number must not be above the second, not "
                    f"[{low}, {high}]"
                )

    def weight(self, name: str) -> float:
        """The factor on the effort of changing a feature.

        Returns
        -------
        float
            Its weight, or 1/4 to 4 by its difficulty; 1 if it has neither.
        """
        return float(self.weights.get(name, 2.0 ** (self.difficulty.get(name, 3) - 3)))

    def tighten(self, other: "Limits | None") -> Self:
        """Join these limits with others, so that what either forbids is forbidden.

        Parameters
        ----------
        other
            Further limits; None: none.

        Returns
        -------
        Limits
            The joint limits, as an object of this class.

        Raises
        ------
        SettingError
            If a direction is against one of these limits: nothing can be loosened.

        Examples
        --------
        >>> rules = Rules(locked=("age",), max_changes=3)
        >>> rules.tighten(Overlay(locked=("purpose",), max_changes=2)).max_changes
        2
        """
        if other is None or all(
            getattr(other, f.name) == getattr(NO_LIMITS, f.name) for f in fields(Limits)
        ):
            return self
        return replace(
            self,
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
        )

    def _joint_weights(self, other: "Limits") -> dict[str, float]:
        """Product of both weights of each feature.

        Under a limit of effort the other weight makes nothing easier.
        """
        least = 0.0 if self.max_effort is None else 1.0
        names = _union(*((*limits.weights, *limits.difficulty) for limits in (self, other)))
        return {name: self.weight(name) * max(other.weight(name), least) for name in names}

    def describe(self) -> tuple[str, ...]:
        """Describe the limits in short texts.

        Returns
        -------
        tuple[str, ...]
            One text for every setting, or entry of a setting, that is not at its default. Of more
            than two moves or pairs only the number is named.

        Examples
        --------
        >>> Overlay(locked=("purpose",), max_changes=2, directions={"duration": "down"}).describe()
        ('locked: purpose', 'directions.duration = down', 'max_changes = 2')
        """
        default = type(self)()
        return tuple(
            line
            for name, value in vars(self).items()
            if value != getattr(default, name)
            for line in _lines(name, value)
        )

    def without(self, key: str) -> Self:
        """Copy with one setting at its default."""
        default: dict[str, Any] = {key: getattr(type(self)(), key)}
        return replace(self, **default)

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str = "rules") -> Self:
        """Read limits from a mapping of settings, such as a card's ``[rules]`` table.

        Parameters
        ----------
        values
            Settings by name; those that are left out have their defaults.
        where
            The path of ``values`` in its file, with which error messages begin.

        Raises
        ------
        SettingError
            If a setting is unknown, of the wrong type, or outside its range.
        """
        try:
            return parse(cls, values, where)
        except SchemaError as error:
            raise SettingError(str(error)) from None

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read limits from a file.

        Parameters
        ----------
        path
            A TOML file, with the settings at its top or in a ``[rules]`` table, or a ``.json`` file
            that ``to_json`` wrote.

        Raises
        ------
        UnreadableError
            If the file cannot be read, or is no TOML or JSON of limits.
        SettingError
            If a setting is unknown or wrong; the message names the file and the setting.
        """
        text, where = read_text(path), Path(path).name
        is_json = Path(path).suffix == ".json"
        values = {} if is_json else parse_toml(text, where, UnreadableError)
        try:
            if is_json:
                return cls.from_json(text)
            return cls.parse(values["rules"] if set(values) == {"rules"} else values)
        except (SettingError, UnreadableError) as error:
            raise type(error)(f"{where}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """As plain data with its version; ``from_dict`` reads it back, equal."""
        return {"version": FORMAT_VERSION} | asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Read what ``to_dict`` made; settings that are left out have their defaults.

        The version must be there: without it (as in ``{}``) nothing says that the mapping holds
        limits at all, and reading it as "no limits" could drop a person's limits unnoticed.

        Raises
        ------
        UnreadableError
            If the content is of another kind or version.
        SettingError
            If a setting is unknown, or has a value that the constructor does not take.
        """
        name = cls.__name__.lower()
        if not isinstance(content, Mapping) or "version" not in content:
            raise UnreadableError(f"{name}: this is not what to_json writes")
        if content["version"] != FORMAT_VERSION:
            raise UnreadableError(
                f"{name}: version {content['version']} cannot be read, only {FORMAT_VERSION}"
            )
        try:
            values = {key: value for key, value in content.items() if key != "version"}
            return cls.parse(values, name)
        except (RecursionError, MemoryError, OverflowError, ValueError) as error:
            if isinstance(error, EdfaError):
                raise
            raise UnreadableError(f"{name}: cannot be read: {type(error).__name__}") from None

    def to_json(self) -> str:
        """As JSON; ``from_json`` reads it back, equal."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote; see ``from_dict``."""
        try:
            content = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            content = None
        return cls.from_dict(content)


@dataclass(frozen=True)
class Rules(Limits):
    """An operator's rules: what may not be proposed to anybody, and how hard the rest is.

    Values are in people's words, not encoded. A value outside its range is a ``SettingError``;
    rules that contradict a card are a ``SchemaError`` once they are used with it.

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
        Features that are never asked for. An answer to them that comes unasked is used.
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
    >>> rules = Rules(locked=("purpose",), ranges={"credit_amount": (1000, 5000)}, max_changes=2)
    >>> Rules.from_json(rules.to_json()) == rules
    True
    >>> Rules(difficulty={"duration": 7})
    Traceback (most recent call last):
        ...
    edfa.errors.SettingError: difficulty.duration: from 1 (easy) to 5 (hard), not 7
    """

    linked: Mapping[str, str] = field(default_factory=dict)
    per_year: Mapping[str, float] = field(default_factory=dict)
    takes: Mapping[str, str] = field(default_factory=dict)
    reading: Reading = "card"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reading not in ("card", "paper"):
            raise SettingError(f"reading: card or paper, not {self.reading!r}")
        for name, takes in self.takes.items():
            months_of(takes, f"takes.{name}")
        formulas = {name: Formula.of(text, f"linked.{name}") for name, text in self.linked.items()}
        try:
            TopologicalSorter({name: parts.names for name, parts in formulas.items()}).prepare()
        except CycleError as error:
            name = next(name for name in formulas if name in error.args[1])
            raise SettingError(
                f"linked.{name} = {self.linked[name]!r}: {name!r} would follow from itself"
            ) from None

    def tighten(self, other: Limits | None) -> "Rules":
        """Join these rules with further rules or an overlay: what both allow is allowed.

        Parameters
        ----------
        other
            Further rules, or a person's overlay; None: none.

        Raises
        ------
        SettingError
            If ``other`` would loosen anything: by the paper's reading where these rules do not have
            it, a link or a time that says something else, or a direction against these.
        """
        if not isinstance(other, Rules):
            return super().tighten(other)
        if other.reading != self.reading and other.reading == "paper":
            raise SettingError("reading: 'paper' would loosen the rules, which is not allowed")
        return replace(
            super().tighten(other),
            linked=_agreed("linked", self.linked, other.linked),
            per_year=_agreed("per_year", self.per_year, other.per_year),
            takes=_agreed("takes", self.takes, other.takes),
        )

    def check(self, schema: "Schema", encoder: "Encoder | None" = None) -> None:
        """Check that the rules fit a card: they may only tighten what it allows.

        Parameters
        ----------
        schema
            The card, of which all named features must be.
        encoder
            The encoding of its features; with it, every value that the rules name must be one that
            training people may have.

        Raises
        ------
        UnknownNameError
            If there is no feature of a name.
        SchemaError
            If a rule contradicts the card, or does not go with a feature's kind.
        SettingError
            If a value is none that training people may have.
        """
        moved = (*(self.only or ()), *self.directions)
        by_feature = (self.difficulty, self.weights, self.ranges, self.levels)
        forbidden = (name for name, *_ in self.forbidden)
        others = (*self.together, self.never_ask, self.linked, self.per_year, self.takes)
        for name in chain(moved, self.locked, *by_feature, forbidden, *others):
            schema.index(name)
        self._check_formulas(schema)
        for name in moved:
            if not self._actionable(schema[name]):
                why = "sensitive" if schema[name].sensitive else "frozen"
                raise SchemaError(
                    f"{name}: the card says {why}, and rules only tighten what it allows"
                )
        for name, way in self.directions.items():
            self._check_direction(schema[name], way)
        if words := [name for name in self.ranges if schema[name].words]:
            raise SchemaError(
                f"ranges.{words[0]}: its values are words; list the levels a plan may use instead"
            )
        if numbers := [name for name in self.levels if schema[name].kind == "continuous"]:
            raise SchemaError(f"levels.{numbers[0]}: it is a number; give a range instead")
        if encoder is not None:
            self._check_values(encoder)

    def _check_values(self, encoder: "Encoder") -> None:
        """Every level and every end of a forbidden move can be encoded."""
        named = [
            (f"levels.{name}", name, level)
            for name, levels in self.levels.items()
            for level in levels
        ]
        named += [
            (f"forbidden.{name}", name, end)
            for name, *ends in self.forbidden
            for end in ends
            if end != ANY_VALUE
        ]
        for where, name, value in named:
            try:
                encoder[name].encode_one(value)
            except FactError as error:
                raise SettingError(f"{where}: {str(error).removeprefix(f'{name}: ')}") from None
            except OverflowError:  # an integer beyond all floats
                raise SettingError(f"{where}: no number is as large") from None

    def check_leaves_something(self, schema: "Schema") -> None:
        """Check that the rules for everybody leave something to change.

        Parameters
        ----------
        schema
            The card. If nothing can change by the card alone, no rule is to blame.

        Raises
        ------
        SchemaError
            If they leave nothing; the message names the rule.
        """
        actionable = [feature for feature in schema if self._actionable(feature)]
        if not actionable or any(self._leaves(feature) for feature in actionable):
            return
        keys = ("locked", "only", "levels", "ranges", "forbidden", "linked")
        used = [key for key in keys if getattr(self, key) != getattr(NO_RULES, key)]
        needed = [
            key for key in used if any(self.without(key)._leaves(feature) for feature in actionable)
        ]
        named = (needed or used)[0]
        value = getattr(self, named)
        raise SchemaError(
            f"{named} = {value if isinstance(value, Mapping) else list(value)}: leaves "
            "nothing to change"
        )

    def _leaves(self, feature: "Feature") -> bool:
        """Whether a plan may propose some value of this feature to somebody."""
        low, _ = self.ranges.get(feature.name, (0, 1))  # infinite where two ranges share nothing
        closed = feature.name in self.levels and not self.levels[feature.name]
        return (
            self.may_change(feature)
            and not closed
            and low < float("inf")
            and (feature.name, ANY_VALUE, ANY_VALUE) not in self.forbidden
        )

    def _check_direction(self, feature: "Feature", way: str) -> None:
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

    def _actionable(self, feature: "Feature") -> bool:
        """Whether the card, in this reading, lets anybody change the feature."""
        return feature.actionable if self.reading == "card" else not feature.sensitive

    def may_change(self, feature: "Feature") -> bool:
        """Whether a plan may change this feature at all."""
        chosen = self.only is None or feature.name in self.only
        fixed = feature.name in self.locked or feature.name in self.linked
        return self._actionable(feature) and chosen and not fixed


@dataclass(frozen=True)
class Overlay(Limits):
    """One person's prices, and what they will not or cannot change; it only tightens the rules.

    Parameters
    ----------
    locked, only, difficulty, weights, directions, ranges, levels, max_changes, max_effort, \
max_months, min_probability, forbidden, together
        Limits on plans, as in ``Rules``.
    never_ask
        Features that this person is not asked for.
    prices
        What it costs this person to answer, by feature, in place of the card's price.

    Examples
    --------
    >>> overlay = Overlay(prices={"housing": 3.0}, locked=("purpose",), max_changes=2)
    >>> Overlay.from_json(overlay.to_json()) == overlay
    True
    """

    prices: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, price in self.prices.items():
            if not isinstance(price, int | float) or not 0 <= price < float("inf"):
                raise SettingError(
                    f"prices.{name}: a price is a number, zero or more, not {price!r}"
                )

    @classmethod
    def parse(cls, values: Mapping[str, Any], where: str = "overlay") -> Self:
        """Read an overlay from a mapping of settings.

        Raises
        ------
        SettingError
            If a setting is the operator's alone (``linked``, ``per_year``, ``takes``, ``reading``),
            or for the reasons that ``Limits.parse`` has.
        """
        for key in OPERATOR_KEYS if isinstance(values, Mapping) else ():
            if key in values:
                raise SettingError(f"{key}: this is the operator's to say, not a person's")
        return super().parse(values, where)

    def tighten(self, other: Limits | None) -> Self:
        """Join this overlay with the further limits of another one, which has no prices.

        Raises
        ------
        SettingError
            If ``other`` is no overlay, has prices, or a direction against this one.
        """
        if not isinstance(other, Overlay | None):
            raise SettingError(f"overlay: Overlay(...) or None, not {other!r}")
        if other is not None and other.prices:
            raise SettingError("prices: they are set once, for a whole interview")
        return super().tighten(other)

    def check(self, rules: Rules, schema: "Schema", encoder: "Encoder") -> None:
        """Check an overlay against the card, the rules of everybody, and training people.

        Parameters
        ----------
        rules
            The rules that hold for everybody.
        schema, encoder
            The features, and their encoding.

        Raises
        ------
        SchemaError, UnknownNameError, SettingError
            As in ``Rules.check``, for the rules and this overlay together; if it contradicts the
            rules; if a feature that is not known from the start would cost nothing.
        """
        rules.tighten(self).check(schema, encoder)
        for name, price in self.prices.items():
            feature = schema[name]
            if price == 0 and not feature.start:
                raise SettingError(
                    f"prices.{name}: what costs nothing is told at the start; give a price above "
                    "zero"
                )

    def prices_in(self, schema: "Schema") -> Float64Array:
        """The prices that this person has.

        Parameters
        ----------
        schema
            The card with everybody's prices.

        Returns
        -------
        Float64Array
            The price of each feature, (features,): this person's where the overlay has one.
        """
        prices = schema.costs
        for name, price in self.prices.items():
            prices[schema.index(name)] = price
        return prices


def _union(*parts: Iterable[Any]) -> tuple[Any, ...]:
    """All entries once, in order."""
    return tuple(dict.fromkeys(entry for part in parts for entry in part))


def _shared(mine: tuple[Any, ...], others: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """The entries that both have."""
    return mine if others is None else tuple(entry for entry in mine if entry in others)


def _narrowed(mine: tuple[float, float], others: tuple[float, float]) -> tuple[float, float]:
    """What two ranges share; a range of no number where they share nothing."""
    low, high = max(mine[0], others[0]), min(mine[1], others[1])
    return (low, high) if low <= high else (float("inf"), float("inf"))


def _least(mine: Any, others: Any) -> Any:
    return min((limit for limit in (mine, others) if limit is not None), default=None)


def _by_name(mine: Mapping[str, Any], others: Mapping[str, Any], join: Any) -> dict[str, Any]:
    """The entries of two mappings, those under the same name joined."""
    joint = {name: join(mine[name], others[name]) for name in mine if name in others}
    return {**mine, **others, **joint}


def _agreed(key: str, mine: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of two mappings, which must not contradict each other."""
    if differ := [name for name in others if name in mine and mine[name] != others[name]]:
        name = differ[0]
        raise SettingError(
            f"{key}.{name}: the rules say {mine[name]!r}, which cannot be made {others[name]!r}"
        )
    return {**mine, **others}


def _lines(name: str, value: Any) -> Iterator[str]:
    """One setting in lines: each entry of a mapping, or all names of a list together."""
    if isinstance(value, Mapping):
        yield from (f"{name}.{key} = {_text(entry)}" for key, entry in value.items())
    elif isinstance(value, tuple) and len(value) > MAX_LISTED and isinstance(value[0], tuple):
        yield f"{name}: {len(value)} of them"
    elif isinstance(value, tuple):
        yield f"{name}: {_text(value) or 'nothing'}"
    else:
        yield f"{name} = {_text(value)}"


def _text(value: Any) -> str:
    """A value, a list of names, or a list of moves and pairs."""
    if not isinstance(value, tuple):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return ", ".join(
        f"({_text(part)})" if isinstance(part, tuple) else _text(part) for part in value
    )


NO_LIMITS, NO_RULES, NO_OVERLAY = Limits(), Rules(), Overlay()
