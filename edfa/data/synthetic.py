"""Worlds whose truth is known: Bayesian networks with their blanket, its units and exact posteriors.

They are the oracle of the tests: what a part finds on a sample is held against what the network says.

- ``random_network``: discrete, or mixed by showing some columns as numbers; exact posterior for *any* evidence.
- ``credit_story``: six facts about a borrower, one of them a spouse that wakes up when its child is known.

``edfa.data.mechanisms`` has mixed worlds with smooth nonlinear causes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.data.graph import Graph
from edfa.data.schema import Feature, Schema
from edfa.data.table import Table
from edfa.errors import DataError, FactError, SchemaError
from edfa.typing import Float64Array, IntArray

__all__ = ["Network", "credit_story", "random_network"]


@dataclass(frozen=True, eq=False)
class Network:
    """A discrete Bayesian network: a graph, and P(node | parents) as one array a node, the node's own axis last.

    Columns named in ``shown`` appear as numbers: level k becomes k plus noise of its own in (-0.5, 0.5), so the number
    tells the level and nothing else, and every posterior stays exact.

    Examples
    --------
    >>> story = credit_story()
    >>> story.graph.units("repays")
    {'savings': (), 'late_payment': ('wage_came_late',)}
    >>> nothing_known = np.full((1, 5), np.nan)
    >>> story.posterior(nothing_known).round(2)
    array([[0.39, 0.61]])
    """

    graph: Graph
    levels: Mapping[str, tuple[str, ...]]
    tables: Mapping[str, Float64Array]
    target: str
    shown: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for node, table in self.tables.items():
            shape = tuple(len(self.levels[v]) for v in (*self.graph.parents[node], node))
            if table.shape != shape or not np.allclose(table.sum(axis=-1), 1):
                raise SchemaError(f"the table of {node!r} must be probabilities of shape {shape}, not {table.shape}")

    @property
    def features(self) -> tuple[str, ...]:
        """Every node but the target, in the order of the graph's nodes."""
        return tuple(n for n in self.graph.nodes if n != self.target)

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """People drawn from the network, in words (numbers where shown as such)."""
        random = np.random.default_rng(seed)
        codes: dict[str, IntArray] = {}
        for node in self.graph.order:
            chances = self.tables[node][tuple(codes[p] for p in self.graph.parents[node])]
            chances = np.broadcast_to(chances, (n, chances.shape[-1]))
            codes[node] = (random.random((n, 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
        columns: dict[str, Any] = {}
        for node in self.graph.nodes:
            if node in self.shown:
                columns[node] = codes[node] + random.uniform(-0.499, 0.499, n)
            else:
                columns[node] = np.array(self.levels[node])[codes[node]]
        return pd.DataFrame(columns)

    def schema(self) -> Schema:
        """A card for its samples: every cost 1, nothing sensitive, the last class favourable."""
        features = tuple(
            Feature(n, "continuous") if n in self.shown else Feature(n, "categorical", levels=self.levels[n])
            for n in self.features
        )
        classes = self.levels[self.target]
        return Schema(features, self.target, classes[-1], classes=classes)

    def table(self, n: int, seed: int = 0) -> Table:
        """A sample as a Table; without shown columns, ``table.X`` equals ``codes(table.frame)``."""
        return Table.from_frame(self.sample(n, seed), self.schema(), name="network", seed=seed)

    def codes(self, frame: pd.DataFrame) -> Float64Array:
        """The matrix ``posterior`` takes, from a sample's words; a gap becomes NaN, not known."""
        columns = []
        for name in self.features:
            numbers = pd.Index(self.levels[name]).get_indexer(pd.Index(frame[name])).astype(float)
            columns.append(
                frame[name].to_numpy(float) if name in self.shown else np.where(numbers < 0, np.nan, numbers)
            )
        return np.stack(columns, axis=1)

    def posterior(self, known: npt.ArrayLike, target: str | None = None) -> Float64Array:
        """P(target | what is known), exactly, one row a person.

        ``known`` has one column for each of ``features``: level codes, shown numbers, NaN for not known. With another
        ``target`` than the network's own, its column is ignored and nothing is known of the network's target.
        """
        matrix = np.atleast_2d(np.asarray(known, dtype=float))
        if matrix.shape[1] != len(self.features):
            raise DataError(f"a matrix of {len(self.features)} columns is needed, not of shape {matrix.shape}")
        asked = target or self.target
        result = np.empty((len(matrix), len(self.levels[asked])))
        masks = ~np.isnan(matrix) & np.array([f != asked for f in self.features])
        for mask in np.unique(masks, axis=0):
            rows = (masks == mask).all(axis=1)
            evidence = {f: self._codes(f, matrix[rows, i]) for i, f in enumerate(self.features) if mask[i]}
            result[rows] = self._eliminate(asked, evidence, int(rows.sum()))
        return result

    def _codes(self, node: str, values: Float64Array) -> IntArray:
        codes = np.rint(values).astype(np.intp)
        if ((codes < 0) | (codes >= len(self.levels[node]))).any():
            raise FactError(f"{node}: {values.max():g} is no level of {len(self.levels[node])}")
        return codes

    def _eliminate(self, asked: str, evidence: Mapping[str, IntArray], n: int) -> Float64Array:
        """One einsum: every table, sliced at each person's evidence, multiplied and summed over what is unknown."""
        needed = self.graph.ancestors([asked, *evidence])
        letter = {node: i + 1 for i, node in enumerate(needed)}
        operands: list[Any] = [np.ones(n), [0]]
        for node in needed:
            family = (*self.graph.parents[node], node)
            known = [v for v in family if v in evidence]
            free = [v for v in family if v not in evidence]
            table = np.moveaxis(self.tables[node], [family.index(v) for v in known], range(len(known)))
            sliced = table[tuple(evidence[v] for v in known)] if known else table
            operands += [sliced, [0, *(letter[v] for v in free)] if known else [letter[v] for v in free]]
        joint = np.einsum(*operands, [0, letter[asked]], optimize="greedy")
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def random_network(
    nodes: int = 10,
    *,
    seed: int = 0,
    max_parents: int = 3,
    max_levels: int = 3,
    shown: int = 0,
    strength: float = 0.5,
) -> Network:
    """A random discrete network; its target is the node with the largest blanket.

    ``strength`` is the concentration of the Dirichlet its tables are drawn from: the smaller, the stronger the
    dependences. ``shown`` features appear as numbers.
    """
    random = np.random.default_rng(seed)
    graph = Graph.random(nodes, random, max_parents)
    target = max(graph.nodes, key=lambda n: (len(graph.blanket(n)), n))
    levels = {
        n: tuple("abcdefghijklmnop"[: 2 if n == target else int(random.integers(2, max_levels + 1))])
        for n in graph.nodes
    }
    tables = {}
    for node in graph.nodes:
        shape = tuple(len(levels[p]) for p in graph.parents[node])
        drawn = random.dirichlet(np.full(len(levels[node]), strength), size=shape)
        tables[node] = 0.98 * drawn + 0.02 / len(levels[node])  # no level impossible: any evidence can occur
    others = [n for n in graph.nodes if n != target]
    return Network(graph, levels, tables, target, frozenset(random.permutation(others)[:shown].tolist()))


def credit_story() -> Network:
    """A borrower. A late payment counts against them, unless their wage came late: then it explains itself.

    ``employment → savings → repays → late_payment ← wage_came_late``, and a telephone that has nothing to do with it.
    ``wage_came_late`` is a pure spouse of ``repays``: alone it says nothing, once ``late_payment`` is known it
    can turn the decision (Proposition 1). ``employment`` is outside the blanket although it is correlated.
    """
    yes_no = ("no", "yes")
    parents: dict[str, tuple[str, ...]] = {
        "employment": (),
        "savings": ("employment",),
        "repays": ("savings",),
        "wage_came_late": (),
        "late_payment": ("repays", "wage_came_late"),
        "telephone": (),
    }
    chance_of_yes: dict[str, Any] = {
        "employment": 0.7,
        "savings": [0.2, 0.7],
        "repays": [0.35, 0.82],
        "wage_came_late": 0.15,
        "late_payment": [[0.7, 0.75], [0.1, 0.7]],
        "telephone": 0.5,
    }
    tables = {n: np.stack([1 - np.asarray(p), np.asarray(p)], axis=-1) for n, p in chance_of_yes.items()}
    return Network(Graph(parents), dict.fromkeys(parents, yes_no), tables, target="repays")
