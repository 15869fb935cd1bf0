"""The partition in sentences with values: what would turn the decision, what would not, what does
not matter.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edfa.data.encode import Encoder
from edfa.data.schema import Feature, Schema
from edfa.explanation.necessity import DOWN, UP, Reach, Sweep, SweepGroup
from edfa.explanation.partition import Partition
from edfa.text.phrases import label, listed, named, plain, say, value

__all__ = ["Statement", "statements"]

Kind = Literal["counterfactual", "semifactual", "alterfactual"]
MOVES = {DOWN: "falls", UP: "rises"}
AGAINST = {("up", DOWN), ("down", UP)}


@dataclass(frozen=True)
class Statement:
    """One sentence about one feature.

    ``kind`` is the part of the partition that it explains, ``values`` are the values that it names,
    in people's words.
    """

    kind: Kind
    feature: str
    text: str
    values: tuple[Any, ...] = ()


def statements(
    swept: Sweep, partition: Partition, schema: Schema, encoder: Encoder, language: str = "en"
) -> list[tuple[Statement, ...]]:
    """What can be said about each person, as a tuple of statements in the order of the schema.

    ``swept`` and ``partition`` are of the same people; all their known features must have been
    swept.
    """
    reach = swept.reach()
    by_row: dict[int, tuple[Statement, ...]] = {}
    for group in swept.groups:
        for row, case in zip(group.people.tolist(), group.case.tolist(), strict=True):
            by_row[row] = tuple(
                _StatementWriter(schema, encoder, reach, group, row, case, language).write(
                    partition
                )
            )
    return [by_row[row] for row in range(swept.shape[0])]


@dataclass(frozen=True)
class _StatementWriter:
    """Writes the statements of one person: ``row`` of the batch, ``case`` of the group."""

    schema: Schema
    encoder: Encoder
    reach: Reach
    group: SweepGroup
    row: int
    case: int
    language: str

    def write(self, partition: Partition) -> Iterator[Statement]:
        """All statements of the person."""
        person, today = partition.person(self.row), self._class(self.group.decision[self.case])
        for feature in self.schema:
            name = feature.name
            if name in person.counterfactual or name in person.violations:
                yield from self._turns(feature)
            elif name in person.alterfactual:
                yield Statement(
                    "alterfactual", name, self._say("no_matter", feature, outcome=today)
                )
            elif person.semifactual[name] == "blocked":
                children = [
                    label(self.schema[child], self.language) for child in _children(partition, name)
                ]
                text = self._say(
                    "blocked", feature, outcome=today, heads=listed(children, self.language, "or")
                )
                yield Statement("semifactual", name, text)
            elif person.semifactual[name] == "not_decisive":
                yield from self._holds(feature, today)

    def _turns(self, feature: Feature) -> Iterator[Statement]:
        """The nearest value in each direction that turns the decision; for a category, every level
        that does.
        """
        for decided, values, way in self._values(feature, self.reach.value):
            if decided != self.group.decision[self.case]:
                text = self._sentence(
                    self._verb(feature, way), feature, values, self._class(decided)
                )
                yield Statement("counterfactual", feature.name, text, tuple(values))

    def _holds(self, feature: Feature, today: str) -> Iterator[Statement]:
        """The farthest values that anybody has, which do not turn the decision."""
        for _, values, way in self._values(feature, self.reach.holds):
            text = self._sentence(f"still_{self._verb(feature, way)}", feature, values, today)
            yield Statement("semifactual", feature.name, text, tuple(values))

    def _verb(self, feature: Feature, way: int | None) -> str:
        """The sentence that fits: ``falls``, ``rises``, ``is`` (another), or ``weighs`` if nobody
        can change it so.
        """
        if not feature.actionable or (feature.change, way) in AGAINST:
            return "weighs"
        own = self._own_value(feature)
        measured = isinstance(own, int | float) and named(feature, own, self.language) is None
        return MOVES[way] if measured and way is not None else "is"

    def _sentence(self, key: str, feature: Feature, values: list[Any], outcome: str) -> str:
        """The sentence ``key`` about a feature with these values."""
        words = [value(feature, v, self.language) for v in values]
        return self._say(key, feature, values=listed(words, self.language, "or"), outcome=outcome)

    def _say(self, key: str, feature: Feature, **words: str) -> str:
        return say(f"statement.{key}", self.language, label=label(feature, self.language), **words)

    def _values(self, feature: Feature, reach: Any) -> Iterator[tuple[int, list[Any], int | None]]:
        """Class codes, values that lead to each, and the direction (None for a category).

        For a category all levels that training people have; else the value in each direction from
        ``reach``, one of the arrays of a ``Reach``.
        """
        j = self.schema.index(feature.name)
        candidates, decisions = self.group.decisions_for(j)
        if feature.kind != "categorical":
            for way in (DOWN, UP):
                if not np.isnan(code := reach[self.row, j, way]):
                    decided = decisions[self.case, candidates.index_of(np.array([code]))[0]]
                    yield int(decided), self.encoder.decode_cells(feature.name, [code]), way
            return
        column: Any = self.encoder[feature.name]
        codes = np.arange(len(column.levels), dtype=np.float32)
        index = candidates.index_of(codes)
        usable = (
            (index >= 0)
            & (candidates.weight[index] > 0)
            & (codes != self.group.own_values(j)[self.case])
        )
        for decided in np.unique(decisions[self.case, index[usable]]):
            chosen = codes[usable & (decisions[self.case, index] == decided)]
            yield int(decided), self.encoder.decode_cells(feature.name, chosen), None

    def _own_value(self, feature: Feature) -> Any:
        """The person's own value, in people's words."""
        own = self.group.own_values(self.schema.index(feature.name))[self.case]
        return self.encoder.decode_cells(feature.name, [own])[0]

    def _class(self, code: Any) -> str:
        """What people are told that a class means."""
        return plain(self.schema.outcome(self.schema.classes[int(code)], self.language))


def _children(partition: Partition, name: str) -> list[str]:
    """The children in the blanket that a spouse is attached to."""
    units = partition.blanket.units if partition.blanket else {}
    return [child for child, spouses in units.items() if name in spouses]
