"""Directed acyclic graphs: Markov blankets, units and d-separation read off the edges, not tested
on data.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from edfa.errors import SettingError, UnknownNameError


@dataclass(frozen=True)
class Graph:
    """A directed acyclic graph.

    Parameters
    ----------
    parents
        The parents of each node, by node.

    Raises
    ------
    UnknownNameError
        If a parent is not a node.
    SettingError
        If there is a cycle.

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
            raise SettingError(f"a graph must have no cycle: {' → '.join(error.args[1])}") from None

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, in the order of ``parents``."""
        return tuple(self.parents)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The nodes in causal order: parents before their children."""
        return tuple(TopologicalSorter(self.parents).static_order())

    def children(self, node: str) -> tuple[str, ...]:
        """The nodes that ``node`` is a parent of."""
        return tuple(n for n in self.nodes if node in self.parents[n])

    def units(self, node: str) -> dict[str, tuple[str, ...]]:
        """The units of a node's Markov blanket (Definition 4).

        Returns
        -------
        dict[str, tuple[str, ...]]
            For each parent or child of ``node`` its spouses: the other parents of a child that are
            neither parents nor children of ``node`` themselves.
        """
        near = set(self.parents[node]) | set(self.children(node))
        spouses = {
            n: self.parents[n] if node in self.parents[n] else () for n in self.nodes if n in near
        }
        return {n: tuple(s for s in sp if s != node and s not in near) for n, sp in spouses.items()}

    def blanket(self, node: str) -> tuple[str, ...]:
        """Definition 1: parents, children and the children's other parents."""
        units = self.units(node)
        members = {*units, *(s for spouses in units.values() for s in spouses)}
        return tuple(n for n in self.nodes if n in members)

    def ancestors(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """``nodes`` themselves and everything they descend from, in the order of ``self.nodes``."""
        visited: set[str] = set()
        waiting = list(nodes)
        while waiting:
            if (node := waiting.pop()) not in visited:
                visited.add(node)
                waiting += self.parents[node]
        return tuple(n for n in self.nodes if n in visited)

    def separated(self, a: str, b: str, given: Collection[str]) -> bool:
        """Whether ``given`` d-separates ``a`` and ``b`` (Definition 2).

        It does if the moral graph of their ancestors has no path from ``a`` to ``b`` outside
        ``given``.

        Parameters
        ----------
        a, b
            Two nodes.
        given
            The nodes that are known.
        """
        ancestors = self.ancestors([a, b, *given])
        edges: dict[str, set[str]] = {n: set() for n in ancestors}
        for node in ancestors:
            family = (*self.parents[node], node)
            for member in family:
                edges[member].update(family)
        reached, waiting = set(given), [a]
        while waiting:
            if (node := waiting.pop()) not in reached:
                reached.add(node)
                waiting += edges[node]
        return b not in reached or b in given
