"""The partition in statements with values: what would turn the decision, even-if, and no-matter."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from edfa.data.encode import Encoder
from edfa.data.feature import Feature
from edfa.data.schema import Schema
from edfa.explanation.necessity import DOWN, UP, Group, Reach, Sweep
from edfa.explanation.partition import Partition

__all__ = ["Statement", "statements"]

Kind = Literal["counterfactual", "semifactual", "alterfactual"]
MOVES = {DOWN: "fell", UP: "rose"}
MANY = 5  # levels that are listed one by one


@dataclass(frozen=True)
class Statement:
    """One sentence about one feature; ``values`` are those it names, in people's words."""

    kind: Kind
    feature: str
    text: str
    values: tuple[Any, ...] = ()


def statements(found: Sweep, partition: Partition, schema: Schema, encoder: Encoder) -> list[tuple[Statement, ...]]:
    """What can be said about everybody, a tuple a person in the order of the schema."""
    reach = found.reach()
    told: dict[int, tuple[Statement, ...]] = {}
    for group in found.groups:
        for i, case in zip(group.people.tolist(), group.case.tolist(), strict=True):
            told[i] = tuple(_Teller(schema, encoder, reach, group, i, case).tell(partition))
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

    def tell(self, partition: Partition) -> Iterator[Statement]:
        """Everything there is to say."""
        person, still = partition.person(self.i), self._class(self.group.decision[self.case])
        for feature in self.schema:
            name, title = feature.name, feature.title
            if name in person.counterfactual or name in person.violations:
                yield from self._turns(feature)
            elif name in person.alterfactual:
                yield Statement("alterfactual", name, f"whatever your {title}, the same: {still}")
            elif person.semifactual[name] == "blocked":
                heads = _or([self.schema[head].title for head in _heads(partition, name)])
                text = f"whatever your {title}, still {still}, as long as your {heads} is not known"
                yield Statement("semifactual", name, text)
            elif person.semifactual[name] == "not decisive":
                yield from self._holds(feature, still)

    def _turns(self, feature: Feature) -> Iterator[Statement]:
        """The nearest value in each direction that turns the decision; of a category, every level that does."""
        for code, values in self._values(feature, self.reach.value):
            if code != self.group.decision[self.case]:
                how = _how(feature, values, self._own(feature))
                text = f"if your {feature.title} {how}: {self._class(code)}"
                yield Statement("counterfactual", feature.name, text, tuple(values))

    def _holds(self, feature: Feature, still: str) -> Iterator[Statement]:
        """Even at the farthest value anybody has, nothing turns."""
        for _, values in self._values(feature, self.reach.holds):
            text = f"even if your {feature.title} {_how(feature, values, self._own(feature))}, still {still}"
            yield Statement("semifactual", feature.name, text, tuple(values))

    def _values(self, feature: Feature, far: Any) -> Iterator[tuple[int, list[Any]]]:
        """A class and values that lead to it: those of each class for a category, else one in each direction."""
        j = self.schema.index(feature.name)
        tries, decisions = self.group.of(j)
        if feature.kind != "categorical":
            for way in MOVES:
                if not np.isnan(code := far[self.i, j, way]):
                    then = decisions[self.case, tries.place(np.array([code]))[0]]
                    yield int(then), self.encoder.decode_cells(feature.name, [code])
            return
        column: Any = self.encoder[feature.name]
        codes = np.arange(len(column.levels), dtype=np.float32)
        place = tries.place(codes)
        real = (place >= 0) & (tries.weight[place] > 0) & (codes != self.group.own(j)[self.case])
        for then in np.unique(decisions[self.case, place[real]]):
            chosen = codes[real & (decisions[self.case, place] == then)]
            yield int(then), self.encoder.decode_cells(feature.name, chosen)

    def _own(self, feature: Feature) -> Any:
        own = self.group.own(self.schema.index(feature.name))[self.case]
        return self.encoder.decode_cells(feature.name, [own])[0]

    def _class(self, code: Any) -> str:
        return self.schema.classes[int(code)]


def _heads(partition: Partition, name: str) -> list[str]:
    units = partition.blanket.units if partition.blanket else {}
    return [head for head, behind in units.items() if name in behind]


def _how(feature: Feature, values: list[Any], own: Any) -> str:
    """Rose to, fell to, or were."""
    value = values[0]
    if isinstance(value, int | float) and isinstance(own, int | float):
        return f"{MOVES[UP] if value > own else MOVES[DOWN]} to {value:,.6g} {feature.unit}".strip()
    return f"were {_or([str(v) for v in values])}"


def _or(words: list[str]) -> str:
    """A list in words; of a long one the first few."""
    shown = words[:MANY] + ([f"{len(words) - MANY} others"] if len(words) > MANY else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
