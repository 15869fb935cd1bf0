"""Card and constraints as arrays: which value of which feature may be proposed to whom, and at what effort."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edfa.data.encode import Encoder, Measure
from edfa.data.schema import Feature
from edfa.explanation.support import Support
from edfa.people import Background
from edfa.predictors.cache import ModelCache
from edfa.recourse.constraints import Constraints
from edfa.typing import BoolArray, Float32Array, Float64Array, Int8Array, Int64Array, IntArray

__all__ = ["ActionSet"]

WAYS: Mapping[str, int] = {"up": 1, "down": -1}


@dataclass(frozen=True, eq=False)
class ActionSet:
    """Card and constraints for encoded rows. Only values that training people have are ever proposed.

    ``free`` says which features may change at all, ``values`` which values of each may be proposed, ``direction`` in which
    direction (0: either), ``ordered`` which are no categories, ``continuous`` which are continuous. ``effort`` is what
    one encoded unit (one switch of a category) costs the person, ``value_range`` the distance between the extremes among
    training people. ``special_values`` are the numbers that stand for no measurement.
    """

    constraints: Constraints
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
    joint_values: tuple[tuple[int, int, Int64Array], ...]
    cache: ModelCache = field(repr=False)

    @classmethod
    def of(
        cls,
        constraints: Constraints | None,
        background: Background,
        rows: Float32Array,
        support: Support | None = None,
    ) -> "ActionSet":
        """Checked against the card first; ``rows`` are the encoded training rows, ``support`` theirs."""
        given, schema = constraints or Constraints(), background.schema
        encoder, blanket = background.encoder, background.blanket
        given.check(schema)
        support = support or Support.of(rows)
        inside = np.array([blanket is None or f.name in blanket for f in schema])
        places = {f.name: j for j, f in enumerate(schema)}
        return cls(
            constraints=given,
            support=support,
            free=inside & np.array([given.open(f) for f in schema]),
            values=tuple(_proposed(f, given, encoder, support.values[j]) for j, f in enumerate(schema)),
            direction=np.array([_direction(f, given) for f in schema], dtype=np.int8),
            ordered=np.array([f.kind != "categorical" for f in schema]),
            continuous=np.array([f.kind == "continuous" for f in schema]),
            effort=np.array([_effort(f, encoder) * given.weight(f.name) for f in schema]),
            value_range=np.array(
                [_value_range(support.values[j], encoder.columns[j].slots) for j in range(len(schema))]
            ),
            special_values=tuple(column.slots for column in encoder.columns),
            forbidden=tuple(
                (places[name], encoder[name].encode_one(old), encoder[name].encode_one(new))
                for name, old, new in given.forbidden
            ),
            joint_values=tuple(_joint_values(support, rows, places[a], places[b]) for a, b in given.together),
            cache=support.cache,
        )

    @cached_property
    def floor(self) -> Float32Array:
        """Of each feature with a direction, the largest number that stands for no measurement."""
        return np.array(
            [s.max() if len(s) and o else -np.inf for s, o in zip(self.special_values, self.ordered, strict=True)]
        )

    @cached_property
    def with_special_values(self) -> tuple[int, ...]:
        """The features with numbers that stand for no measurement."""
        return tuple(j for j, special_values in enumerate(self.special_values) if len(special_values))

    @cached_property
    def max_changes(self) -> int:
        """The largest number of changes."""
        return self.constraints.max_changes or len(self.free)

    def permits(self, feature: int, own: Float32Array, value: Float32Array) -> BoolArray:
        """Whether a value may be proposed instead of one's own; the two are broadcast, and NaN is no proposal."""
        values = self.values[feature]
        own, value = np.broadcast_arrays(own, value)
        if not self.free[feature] or not len(values):
            return np.zeros(value.shape, dtype=bool)
        place = np.minimum(np.searchsorted(values, value), len(values) - 1)
        return np.asarray((values[place] == value) & self.permits_value(np.array([feature]), own, value))

    def permits_value(self, feature: IntArray, own: Float32Array, value: Float32Array) -> BoolArray:
        """The same for values that may be proposed to somebody, of a feature for each last column (or one for all)."""
        direction, fine = self.direction[feature], value != own
        if direction.any():
            # What has no measurement is neither above nor below one; all such numbers are below the least measurement.
            fine &= (direction == 0) | (((value - own) * direction > 0) & (own > self.floor[feature]))
        for j, old, new in self.forbidden:
            fine &= ~((feature == j) & (own == np.float32(old)) & (value == np.float32(new)))
        return np.asarray(fine)

    def snap(self, feature: int, to: npt.ArrayLike) -> Float32Array:
        """The nearest values that may be proposed to somebody; NaN where there are none."""
        values, sought = self.values[feature], np.asarray(to, dtype=np.float32)
        if not len(values):
            return np.full(sought.shape, np.nan, dtype=np.float32)
        right = np.minimum(np.searchsorted(values, sought), len(values) - 1)
        left = np.maximum(right - 1, 0)
        return np.where(np.abs(values[left] - sought) <= np.abs(values[right] - sought), values[left], values[right])

    def allows(self, mask: BoolArray, facts: Float32Array, to: Float32Array) -> BoolArray:
        """Which change sets (a row each, NaN: unchanged; columns are the known features) break no rule of values."""
        changed = ~np.isnan(to)
        fine = np.asarray(changed.any(axis=1))
        for column, feature in enumerate(np.flatnonzero(mask)):
            rows = np.flatnonzero(changed[:, column])
            fine[rows] &= self.permits(int(feature), facts[rows, column], to[rows, column])
        return np.asarray(fine & self.seen_together(mask, facts, to))

    def seen_together(self, mask: BoolArray, facts: Float32Array, to: Float32Array) -> BoolArray:
        """Whether pairs of values that must have been seen together were, wherever one of the two is changed."""
        fine = np.ones(len(facts), dtype=bool)
        for a, b, known in self.joint_values:
            if mask[a] and mask[b]:
                columns = [int(np.count_nonzero(mask[:j])) for j in (a, b)]
                touched = ~np.isnan(to[:, columns]).all(axis=1)
                after = np.where(np.isnan(to[:, columns]), facts[:, columns], to[:, columns])
                codes, there = _pair(self.support, a, b, after)
                fine &= ~touched | (there & np.isin(codes, known))
        return fine


def _proposed(feature: Feature, given: Constraints, encoder: Encoder, values: Float32Array) -> Float32Array:
    """The values that may be proposed: no gap, no code, in every range, among every list of levels."""
    column = encoder[feature.name]
    values = values[~np.isin(values, column.slots)]
    ranges = [given.ranges.get(feature.name), feature.range if given.reading == "card" else None]
    for low, high in (r for r in ranges if r is not None):
        numbers = column.decode(values).to_numpy(float) if len(values) else np.zeros(0)
        values = values[(numbers >= low) & (numbers <= high)]
    if feature.name in given.levels:
        codes = [column.encode_one(level) for level in given.levels[feature.name]]
        values = values[np.isin(values, np.array(codes, dtype=np.float32))]
    return values


def _direction(feature: Feature, given: Constraints) -> int:
    said = WAYS.get(feature.change, 0) if given.reading == "card" else 0
    return said or WAYS.get(given.directions.get(feature.name, ""), 0)


def _effort(feature: Feature, encoder: Encoder) -> float:
    """Of one encoded unit: a standard deviation of a number, a level, a switch."""
    column = encoder[feature.name]
    if feature.effort is None:
        return 1.0
    return feature.effort * (column.scale if isinstance(column, Measure) else 1.0)


def _value_range(values: Float32Array, slots: Float32Array) -> float:
    measured = values[~np.isin(values, slots)]
    return float(np.ptp(measured)) or 1.0 if len(measured) else 1.0


def _joint_values(support: Support, rows: Float32Array, a: int, b: int) -> tuple[int, int, Int64Array]:
    codes, _ = _pair(support, a, b, rows[:, [a, b]])
    return a, b, np.unique(codes)


def _pair(support: Support, a: int, b: int, pairs: Float32Array) -> tuple[Int64Array, BoolArray]:
    """One number for each pair of values, and whether both are values of training people."""
    codes, there = np.zeros(len(pairs), dtype=np.int64), np.ones(len(pairs), dtype=bool)
    for column, feature in enumerate((a, b)):
        values = support.values[feature]
        place = np.minimum(np.searchsorted(values, pairs[:, column]), len(values) - 1)
        there &= values[place] == pairs[:, column]
        codes = codes * len(values) + place
    return codes, there
