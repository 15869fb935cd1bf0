"""A directed acyclic graph: blankets, units and d-separation, by definition rather than by test."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import numpy as np

from edfa.errors import SchemaError, UnknownNameError

__all__ = ["Graph"]


@dataclass(frozen=True)
class Graph:
    """Each node with its parents.

    Examples
    --------
    >>> collider = Graph({"y": (), "spouse": (), "child": ("y", "spouse")})
    >>> collider.units("y")
    {'child': ('spouse',)}
    >>> collider.separated("y", "spouse", ()), collider.separated("y", "spouse", ("child",))
    (True, False)
    """

    parents: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        for node, parents in self.parents.items():
            if stray := [p for p in parents if p not in self.parents]:
                raise UnknownNameError(f"parent of {node!r}", stray[0], self.parents)
        try:
            TopologicalSorter(self.parents).prepare()
        except CycleError as error:
            raise SchemaError(f"a graph must have no cycle: {' → '.join(error.args[1])}") from None

    @classmethod
    def random(cls, nodes: int, random: np.random.Generator, max_parents: int = 3) -> "Graph":
        """Nodes named x00, x01, … in random causal order, each with up to ``max_parents`` parents."""
        names = [f"x{i:02d}" for i in range(nodes)]
        order = random.permutation(names).tolist()
        parents = {}
        for i, node in enumerate(order):
            count = int(random.integers(0, min(i, max_parents) + 1))
            parents[node] = tuple(sorted(random.choice(order[:i], size=count, replace=False).tolist())) if count else ()
        return cls({name: parents[name] for name in names})

    @property
    def nodes(self) -> tuple[str, ...]:
        """In the order they were given."""
        return tuple(self.parents)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Parents before their children."""
        return tuple(TopologicalSorter(self.parents).static_order())

    def children(self, node: str) -> tuple[str, ...]:
        """The nodes it is a parent of."""
        return tuple(n for n in self.nodes if node in self.parents[n])

    def units(self, node: str) -> dict[str, tuple[str, ...]]:
        """Definition 4: each parent or child of ``node`` with its spouses, the other parents of a child."""
        near = set(self.parents[node]) | set(self.children(node))
        spouses = {n: self.parents[n] if node in self.parents[n] else () for n in self.nodes if n in near}
        return {n: tuple(s for s in sp if s != node and s not in near) for n, sp in spouses.items()}

    def blanket(self, node: str) -> tuple[str, ...]:
        """Definition 1: parents, children and the children's other parents."""
        units = self.units(node)
        members = {*units, *(s for spouses in units.values() for s in spouses)}
        return tuple(n for n in self.nodes if n in members)

    def ancestors(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """The nodes and everything they descend from."""
        found: set[str] = set()
        waiting = list(nodes)
        while waiting:
            if (node := waiting.pop()) not in found:
                found.add(node)
                waiting += self.parents[node]
        return tuple(n for n in self.nodes if n in found)

    def separated(self, a: str, b: str, given: Collection[str]) -> bool:
        """Definition 2, d-separation: no path in the moral graph of the ancestors once ``given`` is taken out."""
        kept = self.ancestors([a, b, *given])
        edges: dict[str, set[str]] = {n: set() for n in kept}
        for node in kept:
            family = (*self.parents[node], node)
            for member in family:
                edges[member].update(family)
        reached, waiting = set(given), [a]
        while waiting:
            if (node := waiting.pop()) not in reached:
                reached.add(node)
                waiting += edges[node]
        return b not in reached or b in given
