"""Card and rules as arrays: which value of which feature may be proposed to whom, at what effort,
and what follows from it.

What follows from a plan by itself are numbers that grow while it takes its time, and features
linked by a formula. A person who finishes a degree in two years is two years older then, and a loan
over fewer months has a higher instalment. Code that makes a plan's changes to a row, to judge it
now or when more is known, makes these with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from edfa.data.encode import Encoder, Levels, Measure
from edfa.data.formula import Formula
from edfa.data.rules import ANY_VALUE, Rules
from edfa.data.schema import Feature, Schema
from edfa.data.values import months_of
from edfa.explanation.necessity import Support
from edfa.explanation.partition import members
from edfa.people import Background
from edfa.typing import NAN, BoolArray, Float32Array, Float64Array, Int8Array, Int64Array, IntArray

"""Unchanged, not known, or no such value, in encoded units."""
WAYS: Mapping[str, int] = {"up": 1, "down": -1}
TENTHS = 10  # groups of training people by which numbers count as seen together


class Link(NamedTuple):
    """A feature that follows from others: its index, the indices of the others, and the formula."""

    target: int
    parts: tuple[int, ...]
    formula: Formula


@dataclass(frozen=True, eq=False)
class Consequences:
    """How long changes take, what grows meanwhile, and what is linked by a formula.

    Parameters
    ----------
    encoder
        How values are encoded.
    takes
        The months that a change of each feature takes, of an ordinal feature one level,
        (features,).
    per_month
        By how much each feature grows in a month, in the feature's own unit, (features,).
    per_unit
        The months that each unit of a change takes on top of that, (features,).
    links
        The linked features, in an order in which every formula has what it needs.
    """

    encoder: Encoder
    takes: Float64Array
    per_month: Float64Array
    per_unit: Float64Array
    links: tuple[Link, ...] = ()

    @classmethod
    def of(cls, schema: Schema, encoder: Encoder, limits: Rules) -> "Consequences":
        """What card and rules say; nothing follows from anything in the paper's reading."""
        if limits.reading == "paper":
            return cls(encoder, *np.zeros((3, len(schema))))
        takes = [months_of(limits.takes.get(f.name, f.takes)) for f in schema]
        per_year = [float(limits.per_year.get(f.name, f.per_year)) for f in schema]
        per_unit = [months_of(f.takes_per_unit) for f in schema]
        formulas = {name: Formula.of(text) for name, text in limits.linked.items()}
        needed = {name: formula.names for name, formula in formulas.items()}
        links = tuple(
            Link(schema.index(name), tuple(map(schema.index, needed[name])), formulas[name])
            for name in TopologicalSorter(needed).static_order()
            if name in formulas
        )
        return cls(encoder, np.array(takes), np.array(per_year) / 12, np.array(per_unit), links)

    @cached_property
    def following(self) -> BoolArray:
        """Which features may move although a plan does not change them, (features,)."""
        following: BoolArray = self.per_month != 0
        following[[link.target for link in self.links]] = True
        return following

    @cached_property
    def inputs(self) -> BoolArray:
        """Which features a linked one follows from, (features,)."""
        inputs = np.zeros(len(self.takes), dtype=bool)
        inputs[[part for link in self.links for part in link.parts]] = True
        return inputs

    @cached_property
    def nothing(self) -> bool:
        """Whether nothing ever follows from a change."""
        return not self.following.any()

    @cached_property
    def timed(self) -> BoolArray:
        """Which features take time to change, (features,)."""
        return np.asarray((self.takes > 0) | (self.per_unit > 0) | (self.per_month != 0))

    def moves_others(self, features: IntArray) -> BoolArray:
        """Which of ``features`` (n,), when changed, may move another one of them, (n,)."""
        grows = self.per_month[features] != 0
        timed = self.timed[features]
        inputs = {part for link in self.links if link.target in features for part in link.parts}
        return np.asarray((timed & (grows.sum() > grows)) | np.isin(features, list(inputs)))

    def months(self, features: IntArray, facts: Float32Array, to: Float32Array) -> Float64Array:
        """How long change sets take, in months, (rows,): changes are made at the same time, so the
        longest counts.

        Parameters
        ----------
        features
            The feature of each column, (columns,).
        facts, to
            The facts and the change sets (NaN: unchanged), (rows, columns) each.
        """
        timed = np.flatnonzero(self.timed[features])
        needed = self.months_of_each(features[timed], facts[:, timed], to[:, timed])
        needed[np.isnan(to[:, timed])] = 0.0
        return np.asarray(needed.max(axis=1, initial=0.0))

    def months_of_each(
        self, features: IntArray, own: Float32Array, value: Float32Array
    ) -> Float64Array:
        """How long single changes take, in months.

        Parameters
        ----------
        features
            One index for each column of the last axis of ``own``, or a single one for all.
        own, value
            The value before and after each change, in the same shape as the result.
        """
        levelled, whole, scale, _ = self._kinds[:, features]
        moved = (value - own).astype(float)
        distance = np.where(whole > 0, np.round(moved * scale), moved * scale)
        needed = self.takes[features] * np.where(levelled > 0, np.abs(moved), 1.0)
        if self.per_unit.any():
            needed = needed + self.per_unit[features] * np.abs(np.nan_to_num(distance))
        per_month = self.per_month[features]  # what grows by itself is reached by waiting
        waited = distance / np.where(per_month == 0, np.nan, per_month)
        return np.asarray(np.where(waited > 0, waited, needed))

    @cached_property
    def _kinds(self) -> Float64Array:
        """Whether each feature is of ordered levels, whether it is counted in whole numbers, and
        the scale and the mean of one that is measured, NaN for all others; (4, features).
        """
        kinds = [
            (False, column.whole, column.scale, column.mean)
            if isinstance(column, Measure)
            else (column.ordered, column.whole, np.nan, np.nan)
            for column in self.encoder.columns
        ]
        return np.array(kinds, dtype=float).T

    def amounts(self, features: IntArray, codes: Float32Array) -> Float64Array:
        """Codes, with a column for each feature, as measurements; a level as its position."""
        _, whole, scale, mean = self._kinds[:, features]
        numbers = codes * scale + mean
        numbers = np.where(whole > 0, np.round(numbers), numbers)
        return np.where(np.isnan(scale), codes, numbers)

    def apply(
        self, features: IntArray, facts: Float32Array, to: Float32Array, *, growth: bool = True
    ) -> tuple[Float32Array, BoolArray]:
        """Rows with the changes and all that follows from them made.

        Parameters
        ----------
        features
            The feature of each column, (columns,).
        facts, to
            The facts (NaN: not known) and the change sets (NaN: unchanged), (rows, columns) each.
        growth
            Whether time passes: without it nothing grows.

        Returns
        -------
        tuple
            The rows, (rows, columns), and which of them are possible, (rows,). Impossible is that a
            linked feature is known and a feature of its formula is not, and that one change waits
            longer than another that grows meanwhile.
        """
        rows, fine = np.where(np.isnan(to), facts, to), np.ones(len(to), dtype=bool)
        if self.nothing or not len(to):
            return rows, fine
        months = self.months(features, facts, to)
        growing = np.flatnonzero(self.per_month[features])
        if len(growing):
            fine = self._wait_as_long(features[growing], facts[:, growing], to[:, growing], months)
        for column in growing if growth and months.any() else ():
            stays = np.isnan(to[:, column])
            rows[stays, column] = self._grown(
                int(features[column]), rows[stays, column], months[stays]
            )
        position = {feature: column for column, feature in enumerate(features.tolist())}
        for link in self.links:
            if link.target in position:
                fine &= self._link(link, position, facts, rows)
        return rows, fine

    def _wait_as_long(
        self, features: IntArray, facts: Float32Array, to: Float32Array, months: Float64Array
    ) -> BoolArray:
        """Whether all that is reached by waiting takes as long as the whole plan, but for one unit,
        (rows,); ``features`` are those that grow.
        """
        grows = self.per_month[features]
        waits = (to - facts) * np.sign(grows) > 0
        enough = self.months_of_each(features, facts, to) > months[:, None] - 1 / np.abs(grows)
        return np.asarray((~waits | enough).all(axis=1))

    def _grown(self, feature: int, codes: Float32Array, months: Float64Array) -> Float32Array:
        """Values (n,) of a feature after ``months`` (n,); whole numbers grow by whole numbers,
        states not at all.
        """
        column = self.encoder.columns[feature]
        if not isinstance(column, Measure):
            return codes
        growth = self.per_month[feature] * months
        if column.whole:
            growth = np.trunc(growth + 1e-9)
        grown = self._codes(feature, self._numbers(feature, codes) + growth)
        return np.where(np.isnan(grown) | (growth == 0), codes, grown)

    def _link(
        self, link: Link, position: Mapping[int, int], facts: Float32Array, rows: Float32Array
    ) -> BoolArray:
        """Move one linked column of ``rows`` where a part of its formula moved; whether that could
        be done, (rows,).

        ``position`` is the column of each feature that is there.
        """
        fine, target = np.ones(len(rows), dtype=bool), position[link.target]
        here = [position[part] for part in link.parts if part in position]
        moved = (rows[:, here] != facts[:, here]) & ~np.isnan(rows[:, here])
        which = np.flatnonzero(moved.any(axis=1) & ~np.isnan(rows[:, target]))
        fine[which] = len(here) == len(link.parts)
        if fine.all() and len(which):
            numbers = map(self._numbers, link.parts, rows[which[:, None], here].T)
            result = link.formula(dict(zip(link.formula.names, numbers, strict=True)))
            codes = self._codes(link.target, result)
            fine[which] = ~np.isnan(codes)
            rows[which, target] = np.where(np.isnan(codes), rows[which, target], codes)
        return fine

    def _numbers(self, feature: int, codes: Float32Array) -> Float64Array:
        """Codes as the numbers of a formula: measurements, levels that are numbers, or positions
        from 1; else NaN.
        """
        column = self.encoder.columns[feature]
        special = np.isnan(codes) | np.isin(codes, column.slots)
        if isinstance(column, Measure):
            numbers = _decode(column, codes)
        else:
            numbers = _numbers_of_levels(column)[np.where(special, 0, codes).astype(np.intp)]
        return np.where(special, np.nan, numbers)

    def _codes(self, feature: int, numbers: Float64Array) -> Float32Array:
        """Numbers as codes: the nearest that the feature can have; NaN for NaN."""
        column = self.encoder.columns[feature]
        if isinstance(column, Measure):
            inside = np.clip(
                np.round(numbers) if column.whole else numbers, column.low, column.high
            )
            return ((inside - column.mean) / column.scale).astype(np.float32)
        levels = _numbers_of_levels(column)
        nearest = np.abs(levels - np.nan_to_num(numbers)[:, None]).argmin(axis=1)
        return np.where(np.isnan(numbers), np.nan, nearest).astype(np.float32)


def _scale(column: Levels | Measure) -> float | None:
    """The size of one encoded unit of a measurement; None for levels."""
    return column.scale if isinstance(column, Measure) else None


def _decode(column: Measure, codes: Float32Array) -> Float64Array:
    """Codes as measurements, whole ones to the nearest whole number."""
    numbers = codes.astype(float) * column.scale + column.mean
    return np.round(numbers) if column.whole else numbers


def _numbers_of_levels(column: Levels) -> Float64Array:
    """The number that stands for each level in a formula: itself, or its position from 1."""
    positions = np.arange(1.0, len(column.levels) + 1)
    return positions if column.words else np.array(column.levels, dtype=float)


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
    max_step, max_ratio
        By how much a plan may change each feature, in its units or levels, and the number by which
        it may multiply or divide it; infinite: no limit, (features,).
    forbidden
        Moves that may not be proposed: feature index, old value, new value; NaN stands for any
        value.
    joint_values
        Pairs of features whose values must have been seen together.
    consequences
        How long changes take, what grows meanwhile, and what is linked.
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
    max_step: Float64Array
    max_ratio: Float64Array
    forbidden: tuple[tuple[int, float, float], ...]
    joint_values: tuple["JointValues", ...]
    consequences: Consequences

    @classmethod
    def of(
        cls,
        rules: Rules | None,
        background: Background,
        rows: Float32Array,
        support: Support,
        *,
        towards: int | None = None,
    ) -> "ActionSet":
        """What the card, its rules and these rules allow; ``SchemaError`` if they contradict
        each other.

        Parameters
        ----------
        rules
            What is forbidden beyond the card; None: nothing.
        background
            The card, its encoding, and the blanket, outside which nothing changes.
        rows, support
            Encoded training rows, (training people, features), and their values.
        towards
            The code of the class that plans lead to: towards the favourable one, no plan goes
            against the card's directions. None: any class.
        """
        schema, encoder, blanket = background.schema, background.encoder, background.blanket
        limits = schema.rules_with(rules)
        limits.check(schema)
        favourable = towards is not None and schema.classes[towards] == schema.favourable
        parts = [
            (feature, column, values[~np.isin(values, column.slots)])
            for feature, column, values in zip(schema, encoder.columns, support.values, strict=True)
        ]
        return cls(
            rules=limits,
            support=support,
            free=members(schema.names, blanket) & np.array([limits.may_change(f) for f in schema]),
            values=tuple(_proposed(f, limits, column, values) for f, column, values in parts),
            direction=np.array([_direction(f, limits, favourable) for f in schema], dtype=np.int8),
            ordered=~schema.categorical,
            continuous=np.array([f.kind == "continuous" for f in schema]),
            effort=np.array(
                [_effort(f, column, limits) * limits.weight(f.name) for f, column, _ in parts]
            ),
            value_range=np.array(
                [(float(np.ptp(part)) if len(part) else 0.0) or 1.0 for _, _, part in parts]
            ),
            special_values=tuple(column.slots for column in encoder.columns),
            max_step=_caps([f.max_step for f in schema], limits),
            max_ratio=_caps([f.max_ratio for f in schema], limits),
            forbidden=tuple(
                (schema.index(name), _code(encoder, name, old), _code(encoder, name, new))
                for name, old, new in limits.forbidden
            ),
            joint_values=tuple(
                JointValues(support, rows, (schema.index(a), schema.index(b)))
                for a, b in limits.together
            ),
            consequences=Consequences.of(schema, encoder, limits),
        )

    @cached_property
    def floor(self) -> Float32Array:
        """The largest special value of each ordered feature, -inf if it has none, (features,)."""
        largest = [values.max(initial=-np.inf) for values in self.special_values]
        return np.where(self.ordered, largest, -np.inf)

    @cached_property
    def ends(self) -> Float32Array:
        """The least and the largest training measurement of each feature, (2, features); NaN if
        there is none.

        Values to which every change is forbidden are left out.
        """
        ends = np.full((2, len(self.free)), NAN)
        closed = [(feature, new) for feature, old, new in self.forbidden if np.isnan(old)]
        for j, values in enumerate(self.support.values):
            never = [new for feature, new in closed if feature == j]
            measured = values[~np.isin(values, [*self.special_values[j], *never])]
            if len(measured):
                ends[:, j] = measured[0], measured[-1]
        return ends

    def towards(self, features: IntArray, own: Float32Array, to: Float32Array) -> Float32Array:
        """The end of what training people have, the way that each change of a number goes; NaN for
        categories and what is unchanged.

        ``own`` and ``to`` are facts and change sets, and the result is like them, (rows, columns),
        with a column for each of ``features``.
        """
        least, largest = self.ends[:, features]
        end = np.where(to > own, np.maximum(largest, to), np.minimum(least, to))
        return np.where(self.ordered[features] & ~np.isnan(to), end, NAN)

    @cached_property
    def has_special_values(self) -> BoolArray:
        """Which features have special values, (features,)."""
        return np.array([len(values) > 0 for values in self.special_values])

    @cached_property
    def max_changes(self) -> int:
        """The largest number of changes in a plan."""
        return self.rules.max_changes or len(self.free)

    def permits(self, feature: int, own: Float32Array, value: Float32Array) -> BoolArray:
        """Whether a value may be proposed.

        Parameters
        ----------
        feature
            The index of the feature.
        own, value
            The people's own values and the proposed ones; they are broadcast to the shape of the
            result. NaN is never permitted.
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

        Parameters
        ----------
        feature
            One index for each column of the last axis of ``own`` and ``value``, or a single one for
            all.
        own, value
            The people's own values and the proposed ones.
        """
        direction, permitted = self.direction[feature], value != own
        if direction.any():
            # What has no measurement is neither above nor below one; all such codes are below the
            # least measurement.
            permitted &= (direction == 0) | (
                ((value - own) * direction > 0) & (own > self.floor[feature])
            )
        if np.isfinite([self.max_step[feature], self.max_ratio[feature]]).any():
            permitted &= self._near_enough(feature, own, value)
        for j, old, new in self.forbidden:
            moves = (np.isnan(old) | (own == np.float32(old))) & (
                np.isnan(new) | (value == np.float32(new))
            )
            permitted &= ~((feature == j) & moves)
        if self.rules.max_months is not None:
            months = self.consequences.months_of_each(feature, own, value)
            permitted &= months <= self.rules.max_months + 1e-6
        return np.asarray(permitted)

    def _near_enough(self, feature: IntArray, own: Float32Array, value: Float32Array) -> BoolArray:
        """Whether a value is within the largest step and ratio that the card allows; from what has
        no measurement nothing is. The parameters are those of ``permits_value``.
        """
        step, ratio = self.max_step[feature], self.max_ratio[feature]
        old, new = (self.consequences.amounts(feature, codes) for codes in (own, value))
        slack = 1e-6 * (1 + np.abs(old) + np.abs(new))  # codes are float32
        # Most ratios are infinite: then the numbers need not be above 0.
        above = np.isinf(ratio) | ((old > 0) & (new > 0))
        least, most = (end(np.abs(old), np.abs(new)) for end in (np.minimum, np.maximum))
        within = above & (most / ratio <= least + slack)
        fine = (np.abs(new - old) <= step + slack) & within & (own > self.floor[feature])
        return np.asarray((np.isinf(step) & np.isinf(ratio)) | fine)

    def whole(self, features: IntArray, values: Float32Array) -> Float32Array:
        """Values (rows, features) at the nearest level or, of features that are counted in whole
        numbers, number.
        """
        rounded = values.copy()
        for column, feature in zip(rounded.T, features.tolist(), strict=True):
            encoding = self.consequences.encoder.columns[feature]
            if not isinstance(encoding, Measure):
                column[:] = np.round(column)
            elif encoding.whole:
                column[:] = (_decode(encoding, column) - encoding.mean) / encoding.scale
        return rounded

    def snap(self, feature: int, to: npt.ArrayLike) -> Float32Array:
        """The values nearest to ``to``, in its shape, that may be proposed to somebody; NaN if
        there are none.
        """
        values, target = self.values[feature], np.asarray(to, dtype=np.float32)
        if not len(values):
            return np.full(target.shape, NAN)
        right = np.minimum(np.searchsorted(values, target), len(values) - 1)
        left = np.maximum(right - 1, 0)
        nearer = np.abs(values[left] - target) <= np.abs(values[right] - target)
        return np.where(nearer, values[left], values[right])

    def allows(self, mask: BoolArray, facts: Float32Array, to: Float32Array) -> BoolArray:
        """Which change sets change something and break no rule about values.

        Parameters
        ----------
        mask
            Which features are known, (features,).
        facts, to
            The facts and the change sets (NaN: unchanged), (rows, known features) each.

        Returns
        -------
        numpy.ndarray
            (rows,) booleans. Limits on the number of changes and on effort are not asked here.
        """
        permitted = self.permitted(np.flatnonzero(mask), facts, to)
        changed = ~np.isnan(to)
        allowed = changed.any(axis=1) & (np.isnan(permitted) != changed).all(axis=1)
        return np.asarray(allowed & self.fit_together(mask, facts, to))

    def permitted(
        self, features: IntArray, facts: Float32Array, values: Float32Array
    ) -> Float32Array:
        """``values`` where they may be proposed to people with ``facts``, and NaN elsewhere.

        Both are (rows, features), with one column for each of ``features``, as is the result.
        """
        to = np.full_like(values, np.nan)
        for column, feature in enumerate(features.tolist()):
            rows = np.flatnonzero(~np.isnan(values[:, column]))
            value = values[rows, column]
            fine = self.permits(feature, facts[rows, column], value)
            to[rows[fine], column] = value[fine]
        return to

    def fit_together(self, mask: BoolArray, facts: Float32Array, to: Float32Array) -> BoolArray:
        """Which change sets are possible as a whole, (rows,).

        They leave only pairs of values that training people have (of pairs in ``joint_values``, if
        both are known and at least one is changed), their times do not contradict each other, and
        what follows from them can be worked out: a linked feature no farther than the card's
        largest step and ratio. The arguments are those of ``allows``.
        """
        allowed = np.ones(len(facts), dtype=bool)
        for pair in self.joint_values:
            if mask[list(pair.features)].all():
                columns = [int(np.count_nonzero(mask[:feature])) for feature in pair.features]
                new = to[:, columns]
                after = np.where(np.isnan(new), facts[:, columns], new)
                allowed &= np.isnan(new).all(axis=1) | pair.seen(after)
        if not self.consequences.nothing:
            features = np.flatnonzero(mask)
            rows, possible = self.consequences.apply(features, facts, to)
            allowed &= possible
            linked = np.isin(features, [link.target for link in self.consequences.links])
            if linked.any():
                own, after = facts[:, linked], rows[:, linked]
                near = self._near_enough(features[linked], own, after)
                allowed &= (near | (own == after) | np.isnan(own)).all(axis=1)
        return allowed


class JointValues:
    """Two features, and which of their values training people have together.

    Numbers count by tenths of training people: values of the same tenth are as good as equal.

    Parameters
    ----------
    support, rows
        The values of the training people, and their encoded facts, (training people, features).
    features
        The indices of the two.
    """

    def __init__(self, support: Support, rows: Float32Array, features: tuple[int, int]) -> None:
        self.features = features
        self._borders = [_borders(support, feature) for feature in features]
        self._known = np.unique(self._codes(rows[:, features]))

    def seen(self, pairs: Float32Array) -> BoolArray:
        """Whether training people have each of ``pairs`` (pairs, 2) together, (pairs,)."""
        return np.isin(self._codes(pairs), self._known)

    def _codes(self, pairs: Float32Array) -> Int64Array:
        """A number for each pair (pairs, 2), equal if both values are as good as equal."""
        first, second = (
            np.searchsorted(borders, values, side="right")
            for borders, values in zip(self._borders, pairs.T, strict=True)
        )
        return np.asarray(first * (len(self._borders[1]) + 1) + second, dtype=np.int64)


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
    feature: Feature, limits: Rules, column: Levels | Measure, values: Float32Array
) -> Float32Array:
    """Those of the training measurements ``values`` that may be proposed: in every range, among
    every list of levels.
    """
    ranges = [limits.ranges.get(feature.name), feature.range if limits.reading == "card" else None]
    for low, high in filter(None, ranges):
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
    ways: list[str | None] = [limits.directions.get(feature.name)]
    if limits.reading == "card":
        ways = [feature.change, *ways, feature.monotone if favourable else None]
    return next(filter(None, (WAYS.get(way or "") for way in ways)), 0)


def _caps(values: list[float | None], limits: Rules) -> Float64Array:
    """Limits of a card by feature, (features,); infinite where it has none, and in the paper's
    reading.
    """
    obeyed = limits.reading == "card"
    return np.array([value if value and obeyed else np.inf for value in values])


def _effort(feature: Feature, column: Levels | Measure, limits: Rules) -> float:
    """The effort of one encoded unit: a standard deviation of a number, one level, one switch of a
    category.

    It is the card's, 1 if the card has none. What grows by itself takes an effort of one a year.
    """
    scale = _scale(column)
    if feature.effort is not None:
        return feature.effort * (scale or 1.0)
    per_year = limits.per_year.get(feature.name, feature.per_year)
    return scale / abs(per_year) if scale and per_year and limits.reading == "card" else 1.0
