"""What follows from a plan by itself: numbers that grow while it takes its time, and features
linked by a formula.

A person who finishes a degree in two years is two years older then, and a loan over fewer months
has a higher instalment. Whoever makes a plan's changes to a row, to judge it now or when more is
known, makes these with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from typing import NamedTuple

import numpy as np

from edfa.data.encode import Encoder, Levels, Measure
from edfa.data.formula import Formula
from edfa.data.rules import Rules
from edfa.data.schema import Schema
from edfa.data.values import months_of
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Consequences", "Link"]


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
    links
        The linked features, in an order in which every formula has what it needs.
    """

    encoder: Encoder
    takes: Float64Array
    per_month: Float64Array
    links: tuple[Link, ...] = ()

    @classmethod
    def of(cls, schema: Schema, encoder: Encoder, limits: Rules) -> "Consequences":
        """What card and rules say; nothing follows from anything in the paper's reading."""
        if limits.reading == "paper":
            return cls(encoder, np.zeros(len(schema)), np.zeros(len(schema)))
        takes = [months_of(limits.takes.get(f.name, f.takes)) for f in schema]
        per_year = [float(limits.per_year.get(f.name, f.per_year)) for f in schema]
        formulas = {name: Formula.of(text) for name, text in limits.linked.items()}
        order = TopologicalSorter(
            {name: formula.names for name, formula in formulas.items()}
        ).static_order()
        links = [
            Link(
                schema.index(name),
                tuple(schema.index(part) for part in formulas[name].names),
                formulas[name],
            )
            for name in order
            if name in formulas
        ]
        return cls(encoder, np.array(takes), np.array(per_year) / 12, tuple(links))

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
    def involved(self) -> BoolArray:
        """Which features may move by themselves, or move others by a formula, (features,)."""
        return self.following | self.inputs

    @cached_property
    def nothing(self) -> bool:
        """Whether nothing ever follows from a change."""
        return not self.following.any()

    def moves_others(self, features: IntArray) -> BoolArray:
        """Which of ``features`` (n,), when changed, may move another one of them, (n,)."""
        growing = int((self.per_month[features] != 0).sum())
        timed = (self.takes[features] > 0) | (self.per_month[features] != 0)
        others = growing - (self.per_month[features] != 0)
        present = set(features.tolist())
        inputs = {part for link in self.links if link.target in present for part in link.parts}
        return np.asarray((timed & (others > 0)) | np.isin(features, list(inputs)))

    def months(self, features: IntArray, facts: Float32Array, to: Float32Array) -> Float64Array:
        """How long change sets take, (rows,): changes are made at the same time, so the longest
        counts.

        ``facts`` and ``to`` (NaN: unchanged) are (rows, features), with one column for each of
        ``features``.
        """
        months = np.zeros(len(to))
        for column, feature in enumerate(features.tolist()):
            if self.takes[feature] or self.per_month[feature]:
                rows = np.flatnonzero(~np.isnan(to[:, column]))
                needed = self.months_of_change(feature, facts[rows, column], to[rows, column])
                months[rows] = np.maximum(months[rows], needed)
        return months

    def months_of_change(
        self, feature: int, own: Float32Array, value: Float32Array
    ) -> Float64Array:
        """How long a change of one feature from ``own`` to ``value`` takes; both of the shape of
        the result.
        """
        takes, grows, kind = (
            self.takes[feature],
            self.per_month[feature],
            self.encoder.columns[feature],
        )
        moved = (value - own).astype(float)
        needed = takes * (
            np.abs(moved) if isinstance(kind, Levels) and kind.ordered else np.ones_like(moved)
        )
        if grows and isinstance(kind, Measure):  # what grows by itself is reached by waiting
            distance = moved * kind.scale
            waited = (np.round(distance) if kind.whole else distance) / grows
            needed = np.where(waited > 0, waited, needed)
        return np.asarray(needed)

    def apply(
        self, features: IntArray, facts: Float32Array, to: Float32Array, *, growth: bool = True
    ) -> tuple[Float32Array, BoolArray]:
        """Rows with the changes and all that follows from them made, and which of them are
        possible, (rows,).

        ``facts`` (NaN: not known) and ``to`` (NaN: unchanged) are (rows, features), with one column
        for each of ``features``. Impossible is that a linked feature is known and a feature of its
        formula is not, and that one change waits longer than another that grows meanwhile. Without
        ``growth`` no time passes.
        """
        rows, fine = np.where(np.isnan(to), facts, to), np.ones(len(to), dtype=bool)
        if self.nothing or not len(to):
            return rows, fine
        months = self.months(features, facts, to)
        fine &= self._waits_as_long(features, facts, to, months)
        position = {feature: column for column, feature in enumerate(features.tolist())}
        for feature in np.flatnonzero(self.per_month).tolist():
            if growth and feature in position and months.any():
                column = position[feature]
                stays = np.isnan(to[:, column])
                rows[stays, column] = self._grown(feature, rows[stays, column], months[stays])
        for link in self.links:
            if link.target in position:
                fine &= self._link(link, position, facts, rows)
        return rows, fine

    def waits(self, features: IntArray, facts: Float32Array, to: Float32Array) -> BoolArray:
        """Which changes are made by waiting alone, (rows, features); the arguments are those of
        ``apply``.
        """
        grows = self.per_month[features]
        return np.asarray(np.nan_to_num(to - facts) * np.sign(grows) > 0)

    def _waits_as_long(
        self, features: IntArray, facts: Float32Array, to: Float32Array, months: Float64Array
    ) -> BoolArray:
        """Whether all that is reached by waiting takes as long as the whole plan, but for one unit,
        (rows,).
        """
        fine, waits = np.ones(len(to), dtype=bool), self.waits(features, facts, to)
        for column, feature in enumerate(features.tolist()):
            if self.per_month[feature]:
                rows = np.flatnonzero(waits[:, column])
                waited = self.months_of_change(feature, facts[rows, column], to[rows, column])
                fine[rows] &= waited > months[rows] - 1 / abs(self.per_month[feature])
        return fine

    def _grown(self, feature: int, codes: Float32Array, months: Float64Array) -> Float32Array:
        """Values (n,) of a feature after ``months`` (n,); whole numbers grow by whole numbers,
        states not at all.
        """
        column = self.encoder.columns[feature]
        if not isinstance(column, Measure):
            return codes
        growth = self.per_month[feature] * months
        numbers = codes.astype(float) * column.scale + column.mean
        if column.whole:
            numbers, growth = np.round(numbers), np.trunc(growth + 1e-9)
        grown = (
            (np.clip(numbers + growth, column.low, column.high) - column.mean) / column.scale
        ).astype(np.float32)
        stays = np.isnan(codes) | (growth == 0) | np.isin(codes, column.slots)
        return np.where(stays, codes, grown)

    def _link(
        self, link: Link, position: Mapping[int, int], facts: Float32Array, rows: Float32Array
    ) -> BoolArray:
        """Move one linked column of ``rows`` where a part of its formula moved; whether that could
        be done, (rows,).

        ``position`` is the column of each feature that is there.
        """
        fine = np.ones(len(rows), dtype=bool)
        target, here = (
            position[link.target],
            [position[part] for part in link.parts if part in position],
        )
        moved = (rows[:, here] != facts[:, here]) & ~np.isnan(rows[:, here])
        which = np.flatnonzero(moved.any(axis=1) & ~np.isnan(rows[:, target]))
        if len(here) < len(link.parts):
            fine[which] = False
        elif len(which):
            numbers = [self._numbers(part, rows[which, position[part]]) for part in link.parts]
            codes = self._codes(
                link.target, link.formula(dict(zip(link.formula.names, numbers, strict=True)))
            )
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
            numbers = codes.astype(float) * column.scale + column.mean
            return np.where(special, np.nan, np.round(numbers) if column.whole else numbers)
        position = np.where(special, 0, codes).astype(np.intp)
        numbers = (
            np.arange(1.0, len(column.levels) + 1)
            if column.words
            else np.array(column.levels, dtype=float)
        )
        return np.where(special, np.nan, numbers[position])

    def _codes(self, feature: int, numbers: Float64Array) -> Float32Array:
        """Numbers as codes: the nearest that the feature can have; NaN for NaN."""
        column = self.encoder.columns[feature]
        if isinstance(column, Measure):
            near = np.clip(np.round(numbers) if column.whole else numbers, column.low, column.high)
            return ((near - column.mean) / column.scale).astype(np.float32)
        levels = (
            np.arange(1.0, len(column.levels) + 1)
            if column.words
            else np.array(column.levels, dtype=float)
        )
        nearest = np.abs(levels - np.nan_to_num(numbers)[:, None]).argmin(axis=1)
        return np.where(np.isnan(numbers), np.nan, nearest).astype(np.float32)
