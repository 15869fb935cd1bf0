"""Card and rules as arrays: which value of which feature may be proposed to whom, and at what
effort.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edfa.data.encode import Encoder, Measure
from edfa.data.rules import ANY_VALUE, Rules
from edfa.data.schema import Feature
from edfa.explanation.necessity import Support
from edfa.people import Background
from edfa.predictors.base import ModelCache
from edfa.recourse.consequences import Consequences
from edfa.typing import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array, IntArray

__all__ = ["ActionSet", "JointValues"]

WAYS: Mapping[str, int] = {"up": 1, "down": -1}
TENTHS = 10  # groups of training people by which numbers count as seen together


@dataclass(frozen=True, eq=False)
class ActionSet:
    """Card and rules as arrays over the features, in encoded units. Only values of training
    people are proposed.

    Parameters
    ----------
    rules
        What was asked for.
    support
        The values of training people.
    free
        Which features may change at all, (features,).
    values
        For each feature the values that may be proposed, ascending.
    direction
        1: only up, -1: only down, 0: either way, (features,).
    ordered, continuous
        Which features are not categorical, and which are continuous, (features,).
    effort
        What one encoded unit, or one switch of a category, costs the person, (features,).
    value_range
        The distance between the least and the largest training measurement, 1 if there is none,
        (features,).
    special_values
        For each feature the codes that stand for no measurement, such as "not recorded".
    forbidden
        Moves that may not be proposed: feature index, old value, new value; NaN stands for any
        value.
    joint_values
        Pairs of features whose values must have been seen together.
    consequences
        How long changes take, what grows meanwhile, and what is linked.
    cache
        Results that are worked out once for a model and a set of known features.
    """

    rules: Rules
    support: Support
    free: BoolArray
    values: tuple[Float32Array, ...]
    direction: Int8Array
    ordered: BoolArray
    continuous: BoolArray
    effort: Float64Array
    value_range: Float64Array
    special_values: tuple[Float32Array, ...]
    forbidden: tuple[tuple[int, float, float], ...]
    joint_values: tuple["JointValues", ...]
    consequences: Consequences
    cache: ModelCache = field(repr=False)

    @classmethod
    def of(
        cls,
        rules: Rules | None,
        background: Background,
        rows: Float32Array,
        support: Support | None = None,
        *,
        towards: int | None = None,
    ) -> "ActionSet":
        """What the card, its rules and these rules allow; ``SchemaError`` if they contradict
        each other.

        ``rows`` are encoded training rows, (training people, features), ``support`` is theirs;
        worked out if None. ``towards`` is the code of the class that plans lead to: towards the
        favourable one, no plan goes against the card's directions.
        """
        schema, encoder, blanket = background.schema, background.encoder, background.blanket
        limits = schema.rules_with(rules)
        limits.check(schema)
        favourable = towards is not None and schema.classes[towards] == schema.favourable
        support = support or Support.of(rows)
        inside = np.array([blanket is None or f.name in blanket for f in schema])
        index = {f.name: j for j, f in enumerate(schema)}
        return cls(
            rules=limits,
            support=support,
            free=inside & np.array([limits.may_change(f) for f in schema]),
            values=tuple(
                _proposed(f, limits, encoder, support.values[j]) for j, f in enumerate(schema)
            ),
            direction=np.array([_direction(f, limits, favourable) for f in schema], dtype=np.int8),
            ordered=np.array([f.kind != "categorical" for f in schema]),
            continuous=np.array([f.kind == "continuous" for f in schema]),
            effort=np.array([_effort(f, encoder, limits) * limits.weight(f.name) for f in schema]),
            value_range=np.array(
                [
                    _value_range(support.values[j], encoder.columns[j].slots)
                    for j in range(len(schema))
                ]
            ),
            special_values=tuple(column.slots for column in encoder.columns),
            forbidden=tuple(
                (index[name], _code(encoder, name, old), _code(encoder, name, new))
                for name, old, new in limits.forbidden
            ),
            joint_values=tuple(
                JointValues.of(support, rows, index[a], index[b]) for a, b in limits.together
            ),
            consequences=Consequences.of(schema, encoder, limits),
            cache=support.cache,
        )

    @cached_property
    def floor(self) -> Float32Array:
        """The largest special value of each ordered feature, -inf if it has none, (features,)."""
        return np.array(
            [
                s.max() if len(s) and o else -np.inf
                for s, o in zip(self.special_values, self.ordered, strict=True)
            ]
        )

    @cached_property
    def ends(self) -> Float32Array:
        """The least and the largest training measurement of each feature, (2, features); NaN if
        there is none.

        What nobody may be told to do is no end of a way: a value that every move to is forbidden is
        left out.
        """
        ends = np.full((2, len(self.free)), np.nan, dtype=np.float32)
        for j, (values, special) in enumerate(
            zip(self.support.values, self.special_values, strict=True)
        ):
            closed = [new for feature, old, new in self.forbidden if feature == j and np.isnan(old)]
            measured = values[~np.isin(values, [*special, *closed])]
            if len(measured):
                ends[:, j] = measured[0], measured[-1]
        return ends

    @cached_property
    def with_special_values(self) -> tuple[int, ...]:
        """The indices of the features that have special values."""
        return tuple(
            j for j, special_values in enumerate(self.special_values) if len(special_values)
        )

    @cached_property
    def max_changes(self) -> int:
        """The largest number of changes in a plan."""
        return self.rules.max_changes or len(self.free)

    def permits(self, feature: int, own: Float32Array, value: Float32Array) -> BoolArray:
        """Whether ``value`` may be proposed to people with the value ``own`` of a feature.

        The two are broadcast to the shape of the result; NaN is never permitted.
        """
        values = self.values[feature]
        own, value = np.broadcast_arrays(own, value)
        if not self.free[feature] or not len(values):
            return np.zeros(value.shape, dtype=bool)
        position = np.minimum(np.searchsorted(values, value), len(values) - 1)
        return np.asarray(
            (values[position] == value) & self.permits_value(np.array([feature]), own, value)
        )

    def permits_value(self, feature: IntArray, own: Float32Array, value: Float32Array) -> BoolArray:
        """Like ``permits``, for values that are already known to be in ``values``.

        ``feature`` is one index per last-axis column of ``own`` and ``value``, or a single index
        for all.
        """
        direction, permitted = self.direction[feature], value != own
        if direction.any():
            # What has no measurement is neither above nor below one; all such codes are below the
            # least measurement.
            permitted &= (direction == 0) | (
                ((value - own) * direction > 0) & (own > self.floor[feature])
            )
        for j, old, new in self.forbidden:
            moves = (np.isnan(old) | (own == np.float32(old))) & (
                np.isnan(new) | (value == np.float32(new))
            )
            permitted &= ~((feature == j) & moves)
        if self.rules.max_months is not None:
            permitted &= self._months(feature, own, value) <= self.rules.max_months + 1e-6
        return np.asarray(permitted)

    def _months(self, feature: IntArray, own: Float32Array, value: Float32Array) -> Float64Array:
        """How long changes take, in the shape of ``value``; the arguments are those of
        ``permits_value``.
        """
        own, value = np.broadcast_arrays(own, value)
        column = np.broadcast_to(feature, value.shape[-1:] if np.size(feature) > 1 else value.shape)
        months = np.zeros(value.shape)
        for j in np.unique(feature).tolist():
            if self.consequences.takes[j] or self.consequences.per_month[j]:
                here = np.broadcast_to(column == j, value.shape)
                months[here] = self.consequences.months_of_change(j, own[here], value[here])
        return months

    def whole(self, features: IntArray, values: Float32Array) -> Float32Array:
        """Values (rows, features) at the nearest level or, of features that are counted in whole
        numbers, number.
        """
        rounded = values.copy()
        for column, feature in enumerate(features.tolist()):
            encoding = self.consequences.encoder.columns[feature]
            if not isinstance(encoding, Measure):
                rounded[:, column] = np.round(values[:, column])
            elif encoding.whole:
                numbers = np.round(values[:, column].astype(float) * encoding.scale + encoding.mean)
                rounded[:, column] = (numbers - encoding.mean) / encoding.scale
        return rounded

    def snap(self, feature: int, to: npt.ArrayLike) -> Float32Array:
        """The values nearest to ``to``, in its shape, that may be proposed to somebody; NaN if
        there are none.
        """
        values, target = self.values[feature], np.asarray(to, dtype=np.float32)
        if not len(values):
            return np.full(target.shape, np.nan, dtype=np.float32)
        right = np.minimum(np.searchsorted(values, target), len(values) - 1)
        left = np.maximum(right - 1, 0)
        return np.where(
            np.abs(values[left] - target) <= np.abs(values[right] - target),
            values[left],
            values[right],
        )

    def allows(self, mask: BoolArray, facts: Float32Array, to: Float32Array) -> BoolArray:
        """Which change sets change something and break no rule about values, (rows,).

        ``mask`` (features,) marks the known features; ``facts`` and ``to`` (NaN: unchanged) are
        (rows, known features).
        """
        changed = ~np.isnan(to)
        allowed = np.asarray(changed.any(axis=1))
        for column, feature in enumerate(np.flatnonzero(mask)):
            rows = np.flatnonzero(changed[:, column])
            allowed[rows] &= self.permits(int(feature), facts[rows, column], to[rows, column])
        return np.asarray(allowed & self.fit_together(mask, facts, to))

    def fit_together(self, mask: BoolArray, facts: Float32Array, to: Float32Array) -> BoolArray:
        """Which change sets are possible as a whole, (rows,).

        They leave only pairs of values that training people have (of pairs in ``joint_values``, if
        both are known and at least one is changed), their times do not contradict each other, and
        what follows from them can be worked out. The arguments are those of ``allows``.
        """
        allowed = np.ones(len(facts), dtype=bool)
        for pair in self.joint_values:
            if mask[pair.first] and mask[pair.second]:
                columns = [int(np.count_nonzero(mask[:j])) for j in (pair.first, pair.second)]
                touched = ~np.isnan(to[:, columns]).all(axis=1)
                after = np.where(np.isnan(to[:, columns]), facts[:, columns], to[:, columns])
                allowed &= ~touched | pair.seen(after)
        if not self.consequences.nothing:
            allowed &= self.consequences.apply(np.flatnonzero(mask), facts, to)[1]
        return allowed


@dataclass(frozen=True, eq=False)
class JointValues:
    """Two features, and which of their values training people have together.

    Numbers count by tenths of training people: values of the same tenth are as good as equal.

    Parameters
    ----------
    first, second
        The indices of the features.
    borders
        For each of the two, the values at which another tenth begins; of a category or a level,
        every value.
    codes
        The codes of the pairs of tenths or values that were seen, ascending.
    """

    first: int
    second: int
    borders: tuple[Float32Array, Float32Array]
    codes: Int64Array

    @classmethod
    def of(cls, support: Support, rows: Float32Array, first: int, second: int) -> "JointValues":
        """The values of two features that the training people ``rows`` (training people, features)
        have together.
        """
        borders = (_borders(support, first), _borders(support, second))
        empty = cls(first, second, borders, np.zeros(0, dtype=np.int64))
        return replace(empty, codes=np.unique(empty._codes(rows[:, [first, second]])))

    def seen(self, pairs: Float32Array) -> BoolArray:
        """Whether training people have each of ``pairs`` (pairs, 2) together, (pairs,)."""
        return np.isin(self._codes(pairs), self.codes)

    def _codes(self, pairs: Float32Array) -> Int64Array:
        positions = [
            np.searchsorted(b, pairs[:, i], side="right") for i, b in enumerate(self.borders)
        ]
        return np.asarray(positions[0] * (len(self.borders[1]) + 1) + positions[1], dtype=np.int64)


def _borders(support: Support, feature: int) -> Float32Array:
    """Where another tenth of training people begins; every value of a category, or of what has few
    values.
    """
    values, shares = support.values[feature], support.shares[feature]
    if feature in support.unordered or len(values) <= TENTHS:
        return values
    below = np.cumsum(shares) - shares
    tenth = np.floor(below * TENTHS + 1e-9)
    return values[np.r_[True, tenth[1:] != tenth[:-1]]]


def _proposed(
    feature: Feature, limits: Rules, encoder: Encoder, values: Float32Array
) -> Float32Array:
    """The training values that may be proposed: no special value, in every range, among every list
    of levels.
    """
    column = encoder[feature.name]
    values = values[~np.isin(values, column.slots)]
    ranges = [limits.ranges.get(feature.name), feature.range if limits.reading == "card" else None]
    for low, high in (r for r in ranges if r is not None):
        numbers = column.decode(values).to_numpy(float) if len(values) else np.zeros(0)
        values = values[(numbers >= low) & (numbers <= high)]
    if feature.name in limits.levels:
        codes = [column.encode_one(level) for level in limits.levels[feature.name]]
        values = values[np.isin(values, np.array(codes, dtype=np.float32))]
    return values


def _code(encoder: Encoder, name: str, value: str | float) -> float:
    """The code of a feature's value in a forbidden move; NaN for any value."""
    return float("nan") if value == ANY_VALUE else encoder[name].encode_one(value)


def _direction(feature: Feature, limits: Rules, favourable: bool) -> int:
    """1: only up, -1: only down, 0: either way; towards the favourable class only the good way."""
    by_rules = WAYS.get(limits.directions.get(feature.name, ""), 0)
    if limits.reading == "paper":
        return by_rules
    return (
        WAYS.get(feature.change, 0)
        or by_rules
        or (WAYS.get(feature.monotone or "", 0) if favourable else 0)
    )


def _effort(feature: Feature, encoder: Encoder, limits: Rules) -> float:
    """The effort of one encoded unit: a standard deviation of a number, one level, one switch of a
    category.

    What grows by itself takes an effort of one a year.
    """
    column = encoder[feature.name]
    if feature.effort is None:
        per_year = (
            limits.per_year.get(feature.name, feature.per_year) if limits.reading == "card" else 0
        )
        return column.scale / abs(per_year) if per_year and isinstance(column, Measure) else 1.0
    return feature.effort * (column.scale if isinstance(column, Measure) else 1.0)


def _value_range(values: Float32Array, slots: Float32Array) -> float:
    """The distance between the least and the largest value that is not in ``slots``; 1 if there is
    none.
    """
    measured = values[~np.isin(values, slots)]
    return float(np.ptp(measured)) or 1.0 if len(measured) else 1.0
