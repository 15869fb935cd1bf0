"""The partition in statements with values: what would turn the decision, even-if, and no-matter."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edfa.data.encode import Encoder
from edfa.data.schema import Feature, Schema
from edfa.explanation.necessity import DOWN, UP, Group, Reach, Sweep
from edfa.explanation.partition import Partition
from edfa.text.phrases import label, listed, plain, say, value

__all__ = ["Statement", "statements"]

Kind = Literal["counterfactual", "semifactual", "alterfactual"]
MOVES = {DOWN: "falls", UP: "rises"}
AGAINST = {("up", DOWN), ("down", UP)}


@dataclass(frozen=True)
class Statement:
    """One sentence about one feature; ``values`` are those it names, in people's words."""

    kind: Kind
    feature: str
    text: str
    values: tuple[Any, ...] = ()


def statements(
    found: Sweep, partition: Partition, schema: Schema, encoder: Encoder, language: str = "en"
) -> list[tuple[Statement, ...]]:
    """What can be said about everybody, a tuple a person in the order of the schema."""
    reach = found.reach()
    told: dict[int, tuple[Statement, ...]] = {}
    for group in found.groups:
        for i, case in zip(group.people.tolist(), group.case.tolist(), strict=True):
            told[i] = tuple(_Teller(schema, encoder, reach, group, i, case, language).tell(partition))
    return [told[i] for i in range(found.shape[0])]


@dataclass(frozen=True)
class _Teller:
    """One person: row ``i`` of the batch, one of the cases of a group."""

    schema: Schema
    encoder: Encoder
    reach: Reach
    group: Group
    i: int
    case: int
    language: str

    def tell(self, partition: Partition) -> Iterator[Statement]:
        """Everything there is to say."""
        person, still = partition.person(self.i), self._class(self.group.decision[self.case])
        for feature in self.schema:
            name = feature.name
            if name in person.counterfactual or name in person.violations:
                yield from self._turns(feature)
            elif name in person.alterfactual:
                yield Statement("alterfactual", name, self._say("no_matter", feature, outcome=still))
            elif person.semifactual[name] == "blocked":
                heads = [label(self.schema[head], self.language) for head in _heads(partition, name)]
                text = self._say("blocked", feature, outcome=still, heads=listed(heads, self.language, "or"))
                yield Statement("semifactual", name, text)
            elif person.semifactual[name] == "not_decisive":
                yield from self._holds(feature, still)

    def _turns(self, feature: Feature) -> Iterator[Statement]:
        """The nearest value in each direction that turns the decision; of a category, every level that does."""
        for code, values, way in self._values(feature, self.reach.value):
            if code != self.group.decision[self.case]:
                text = self._with(self._how(feature, way), feature, values, self._class(code))
                yield Statement("counterfactual", feature.name, text, tuple(values))

    def _holds(self, feature: Feature, still: str) -> Iterator[Statement]:
        """Even at the farthest value anybody has, nothing turns."""
        for _, values, way in self._values(feature, self.reach.holds):
            text = self._with(f"still_{self._how(feature, way)}", feature, values, still)
            yield Statement("semifactual", feature.name, text, tuple(values))

    def _how(self, feature: Feature, way: int | None) -> str:
        """Whether it rises, falls, or is another; where that is not the person's to do, what others would get."""
        if not feature.actionable or (feature.change, way) in AGAINST:
            return "weighs"
        own = self._own(feature)
        measured = isinstance(own, int | float) and own not in map(float, feature.codes)
        return MOVES[way] if measured and way is not None else "is"

    def _with(self, key: str, feature: Feature, values: list[Any], outcome: str) -> str:
        shown = [value(feature, v, self.language) for v in values]
        return self._say(key, feature, values=listed(shown, self.language, "or"), outcome=outcome)

    def _say(self, key: str, feature: Feature, **words: str) -> str:
        return say(f"statement.{key}", self.language, label=label(feature, self.language), **words)

    def _values(self, feature: Feature, far: Any) -> Iterator[tuple[int, list[Any], int | None]]:
        """A class, values that lead to it, and which way: all levels of a category, else one value each way."""
        j = self.schema.index(feature.name)
        tries, decisions = self.group.of(j)
        if feature.kind != "categorical":
            for way in (DOWN, UP):
                if not np.isnan(code := far[self.i, j, way]):
                    then = decisions[self.case, tries.place(np.array([code]))[0]]
                    yield int(then), self.encoder.decode_cells(feature.name, [code]), way
            return
        column: Any = self.encoder[feature.name]
        codes = np.arange(len(column.levels), dtype=np.float32)
        place = tries.place(codes)
        real = (place >= 0) & (tries.weight[place] > 0) & (codes != self.group.own(j)[self.case])
        for then in np.unique(decisions[self.case, place[real]]):
            chosen = codes[real & (decisions[self.case, place] == then)]
            yield int(then), self.encoder.decode_cells(feature.name, chosen), None

    def _own(self, feature: Feature) -> Any:
        own = self.group.own(self.schema.index(feature.name))[self.case]
        return self.encoder.decode_cells(feature.name, [own])[0]

    def _class(self, code: Any) -> str:
        return plain(self.schema.classes[int(code)])


def _heads(partition: Partition, name: str) -> list[str]:
    units = partition.blanket.units if partition.blanket else {}
    return [head for head, behind in units.items() if name in behind]
