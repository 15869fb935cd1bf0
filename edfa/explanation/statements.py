"""The partition in sentences with values: what would turn the decision, what would not, what does
not matter.

``statements`` is the entry; the words are in ``edfa/text/sentences``.
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
from edfa.typing import Float32Array

Kind = Literal["counterfactual", "semifactual", "alterfactual"]
MOVES = {DOWN: "falls", UP: "rises"}
AGAINST = {("up", DOWN), ("down", UP)}


@dataclass(frozen=True)
class Statement:
    """One sentence about one feature.

    Parameters
    ----------
    kind
        The part of the partition that it explains.
    feature
        The name of the feature.
    text
        The sentence.
    values
        The values that it names, in people's words.
    """

    kind: Kind
    feature: str
    text: str
    values: tuple[Any, ...] = ()


def statements(
    swept: Sweep, partition: Partition, schema: Schema, encoder: Encoder, language: str = "en"
) -> list[tuple[Statement, ...]]:
    """What can be said about each person.

    Parameters
    ----------
    swept, partition
        Of the same people; all their known features must have been swept.
    schema, encoder
        The features, and how facts became numbers.
    language
        The language of the sentences.

    Returns
    -------
    list of tuple of Statement
        For each person the statements in the order of the schema.
    """
    reach, written = swept.reach(), {}
    for group in swept.groups:
        for row, case in zip(group.people.tolist(), group.case.tolist(), strict=True):
            writer = _StatementWriter(schema, encoder, language, group, row, case)
            written[row] = tuple(writer.write(partition, reach))
    return [written[row] for row in range(swept.shape[0])]


@dataclass(frozen=True)
class _StatementWriter:
    """Writes the statements of one person: ``row`` of the batch, ``case`` of the group."""

    schema: Schema
    encoder: Encoder
    language: str
    group: SweepGroup
    row: int
    case: int

    @property
    def today(self) -> int:
        """The code of the class that is decided for now."""
        return int(self.group.decision[self.case])

    def write(self, partition: Partition, reach: Reach) -> Iterator[Statement]:
        """All statements of the person."""
        person = partition.person(self.row)
        units = partition.blanket.units.items() if partition.blanket else ()
        for feature in self.schema:
            name = feature.name
            if name in person.counterfactual or name in person.violations:
                yield from self._with_values("counterfactual", feature, reach.value)
            elif name in person.alterfactual:
                yield Statement("alterfactual", name, self._say("no_matter", feature, self.today))
            elif person.semifactual[name] == "blocked":
                children = [self.schema[child] for child, spouses in units if name in spouses]
                heads = listed([label(c, self.language) for c in children], self.language, "or")
                text = self._say("blocked", feature, self.today, heads=heads)
                yield Statement("semifactual", name, text)
            elif person.semifactual[name] == "not_decisive":
                yield from self._with_values("semifactual", feature, reach.holds)

    def _with_values(
        self, kind: Kind, feature: Feature, reach: Float32Array
    ) -> Iterator[Statement]:
        """The nearest value in each direction that turns the decision, for a category every level
        that does; or the farthest values that anybody has, which do not turn it.
        """
        for decided, values, way in self._values(feature, reach):
            turns = decided != self.today
            if turns == (kind == "counterfactual"):
                key = self._verb(feature, way) if turns else f"still_{self._verb(feature, way)}"
                words = listed(
                    [value(feature, v, self.language) for v in values], self.language, "or"
                )
                text = self._say(key, feature, decided, values=words)
                yield Statement(kind, feature.name, text, tuple(values))

    def _verb(self, feature: Feature, way: int | None) -> str:
        """The sentence that fits: ``falls``, ``rises``, ``is`` (another), or ``weighs`` if nobody
        can change it so.
        """
        if not feature.actionable or (feature.change, way) in AGAINST:
            return "weighs"
        codes = [self.group.own_values(self.schema.index(feature.name))[self.case]]
        own = self.encoder.decode_cells(feature.name, codes)[0]
        measured = isinstance(own, int | float) and named(feature, own, self.language) is None
        return MOVES[way] if measured and way is not None else "is"

    def _say(self, key: str, feature: Feature, outcome: int, **words: str) -> str:
        """The sentence ``key`` about a feature; ``outcome`` is the code of a class."""
        words["outcome"] = plain(self.schema.outcome(self.schema.classes[outcome], self.language))
        return say(f"statement.{key}", self.language, label=label(feature, self.language), **words)

    def _values(
        self, feature: Feature, reach: Float32Array
    ) -> Iterator[tuple[int, list[Any], int | None]]:
        """Class codes, values that lead to each, and the direction (None for a category).

        For a category all levels that training people have; else the value in each direction from
        ``reach``, one of the arrays of a ``Reach``.
        """
        j = self.schema.index(feature.name)
        candidates, decisions = self.group.decisions_for(j)
        decided = decisions[self.case]
        if feature.kind != "categorical":
            for way in (DOWN, UP):
                if not np.isnan(code := reach[self.row, j, way]):
                    after = decided[candidates.index_of(np.array([code]))[0]]
                    yield int(after), self.encoder.decode_cells(feature.name, [code]), way
            return
        column: Any = self.encoder[feature.name]
        codes = np.arange(len(column.levels), dtype=np.float32)
        index = candidates.index_of(codes)
        others = codes != self.group.own_values(j)[self.case]
        usable = (index >= 0) & (candidates.weight[index] > 0) & others
        for after in np.unique(decided[index[usable]]):
            chosen = codes[usable & (decided[index] == after)]
            yield int(after), self.encoder.decode_cells(feature.name, chosen), None
