"""Synthetic data with a known truth: Bayesian networks with their Markov blanket, its units and
exact posteriors.

Tests compare what is learnt from a sample with what the network says.

- ``random_network``: discrete, or mixed by writing some columns as numbers; exact posterior for
  *any* evidence.
- ``credit_story``: six facts about a borrower, one of them a spouse that matters only once its
  child is known.

``edfa.data.mechanisms`` has mixed data with smooth nonlinear causes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from edfa.data.feature import Feature
from edfa.data.graph import Graph
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, FactError, SettingError
from edfa.typing import Float64Array, IntArray

__all__ = ["Network", "credit_story", "random_network"]

LEVEL_NAMES = "abcdefghijklmnop"


@dataclass(frozen=True, eq=False)
class Network:
    """A discrete Bayesian network.

    Parameters
    ----------
    graph
        The parents of each node.
    levels
        The values of each node, in the order of their codes.
    tables
        P(node | parents) of each node, one axis for each parent in order and the node's own axis
        last.
    target
        The node that is the outcome; all others are features.
    numeric
        Features that are written as numbers: level k becomes k plus independent noise in (-0.5,
        0.5), so the number says which level it is and nothing else, and every posterior stays
        exact.

    Raises
    ------
    SettingError
        If a table has the wrong shape, or does not hold probabilities.

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
    numeric: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for node, table in self.tables.items():
            shape = tuple(len(self.levels[v]) for v in (*self.graph.parents[node], node))
            if table.shape != shape or not np.allclose(table.sum(axis=-1), 1):
                raise SettingError(
                    f"the table of {node!r} must be probabilities of shape {shape}, not "
                    f"{table.shape}"
                )

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all nodes but the target, in the order of the graph's nodes."""
        return tuple(n for n in self.graph.nodes if n != self.target)

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """``n`` people drawn from the network: a column a node, strings, or numbers for numeric
        features.
        """
        random = np.random.default_rng(seed)
        codes: dict[str, IntArray] = {}
        for node in self.graph.order:
            probabilities = self.tables[node][tuple(codes[p] for p in self.graph.parents[node])]
            probabilities = np.broadcast_to(probabilities, (n, probabilities.shape[-1]))
            codes[node] = (random.random((n, 1)) > probabilities.cumsum(axis=1)[:, :-1]).sum(axis=1)
        columns: dict[str, Any] = {}
        for node in self.graph.nodes:
            if node in self.numeric:
                columns[node] = codes[node] + random.uniform(-0.499, 0.499, n)
            else:
                columns[node] = np.array(self.levels[node])[codes[node]]
        return pd.DataFrame(columns)

    def schema(self) -> Schema:
        """The schema of its samples: every cost is 1, nothing is sensitive, the target's last level
        is favourable.
        """
        features = tuple(
            Feature(n, "continuous")
            if n in self.numeric
            else Feature(n, "categorical", levels=self.levels[n])
            for n in self.features
        )
        classes = self.levels[self.target]
        return Schema(features, self.target, classes[-1], classes=classes)

    def table(self, n: int, seed: int = 0) -> Table:
        """A sample of ``n`` people as a Table; without numeric features ``table.X`` equals
        ``codes(table.frame)``.
        """
        return Table.from_frame(self.sample(n, seed), self.schema(), name="network", seed=seed)

    def codes(self, frame: pd.DataFrame) -> Float64Array:
        """The evidence of a sample as ``posterior`` takes it, (people, features); null becomes NaN,
        not known.
        """
        columns = []
        for name in self.features:
            numbers = pd.Index(self.levels[name]).get_indexer(pd.Index(frame[name])).astype(float)
            columns.append(
                frame[name].to_numpy(float)
                if name in self.numeric
                else np.where(numbers < 0, np.nan, numbers)
            )
        return np.stack(columns, axis=1)

    def posterior(self, known: npt.ArrayLike, target: str | None = None) -> Float64Array:
        """Exact probabilities of the target's levels given what is known, (people, levels).

        Parameters
        ----------
        known
            (people, features) in the order of ``features``: codes of levels, numbers of numeric
            features, NaN where not known.
        target
            The node that is asked for, the network's own if None. The column of another one is
            ignored, and nothing is known of the network's target then.
        """
        matrix = np.atleast_2d(np.asarray(known, dtype=float))
        if matrix.shape[1] != len(self.features):
            raise DataError(
                f"a matrix of {len(self.features)} columns is needed, not of shape {matrix.shape}"
            )
        query = target or self.target
        result = np.empty((len(matrix), len(self.levels[query])))
        masks = ~np.isnan(matrix) & np.array([f != query for f in self.features])
        for mask in np.unique(masks, axis=0):
            rows = (masks == mask).all(axis=1)
            evidence = {
                f: self._codes(f, matrix[rows, i]) for i, f in enumerate(self.features) if mask[i]
            }
            result[rows] = self._eliminate(query, evidence, int(rows.sum()))
        return result

    def _codes(self, node: str, values: Float64Array) -> IntArray:
        """The codes of a node's evidence, (people,); FactError for a number that is no level."""
        codes = np.rint(values).astype(np.intp)
        if ((codes < 0) | (codes >= len(self.levels[node]))).any():
            raise FactError(f"{node}: {values.max():g} is no level of {len(self.levels[node])}")
        return codes

    def _eliminate(self, query: str, evidence: Mapping[str, IntArray], n: int) -> Float64Array:
        """P(query | evidence), (n, levels), for ``n`` people of whom the same nodes are known.

        One einsum: every table, sliced at each person's evidence, multiplied and summed over what
        is unknown.
        """
        nodes = self.graph.ancestors([query, *evidence])
        axis = {node: i + 1 for i, node in enumerate(nodes)}  # axis 0 is the person
        operands: list[Any] = [np.ones(n), [0]]
        for node in nodes:
            family = (*self.graph.parents[node], node)
            known = [v for v in family if v in evidence]
            unknown = [v for v in family if v not in evidence]
            table = np.moveaxis(
                self.tables[node], [family.index(v) for v in known], range(len(known))
            )
            sliced = table[tuple(evidence[v] for v in known)] if known else table
            operands += [
                sliced,
                [0, *(axis[v] for v in unknown)] if known else [axis[v] for v in unknown],
            ]
        joint = np.einsum(*operands, [0, axis[query]], optimize="greedy")
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def check_size(nodes: int, max_levels: int) -> None:
    """Raise SettingError unless a random network can have this number of nodes and levels."""
    if nodes < 2:
        raise SettingError(f"a network has a target and at least one feature, not {nodes} nodes")
    if not 2 <= max_levels <= len(LEVEL_NAMES):
        raise SettingError(f"max_levels is between 2 and {len(LEVEL_NAMES)}, not {max_levels}")


def random_network(
    nodes: int = 10,
    *,
    seed: int = 0,
    max_parents: int = 3,
    max_levels: int = 3,
    numeric: int = 0,
    strength: float = 0.5,
) -> Network:
    """A random discrete network; its target, which has two levels, is the node with the largest
    blanket.

    Parameters
    ----------
    nodes, max_parents, max_levels
        The number of nodes, and the largest number of parents and of levels (2 to 16) of one.
    seed
        Decides everything that is random.
    numeric
        The number of features that are written as numbers.
    strength
        The concentration of the Dirichlet distribution that tables are drawn from: the smaller, the
        stronger the dependences.
    """
    check_size(nodes, max_levels)
    if not strength > 0:
        raise SettingError(f"strength is a number above 0, not {strength}")
    if not 0 <= numeric < nodes:
        raise SettingError(f"numeric is a number of features, 0 to {nodes - 1}, not {numeric}")
    random = np.random.default_rng(seed)
    graph = Graph.random(nodes, random, max_parents)
    target = max(graph.nodes, key=lambda n: (len(graph.blanket(n)), n))
    levels = {
        n: tuple(LEVEL_NAMES[: 2 if n == target else int(random.integers(2, max_levels + 1))])
        for n in graph.nodes
    }
    tables = {}
    for node in graph.nodes:
        shape = tuple(len(levels[p]) for p in graph.parents[node])
        table = random.dirichlet(np.full(len(levels[node]), strength), size=shape)
        tables[node] = 0.98 * table + 0.02 / len(
            levels[node]
        )  # no level impossible: any evidence can occur
    others = [n for n in graph.nodes if n != target]
    return Network(
        graph, levels, tables, target, frozenset(random.permutation(others)[:numeric].tolist())
    )


def credit_story() -> Network:
    """A network of six facts about a borrower, with the target ``repays``.

    ``employment → savings → repays → late_payment ← wage_came_late``, and a telephone that is
    independent of all. A late payment counts against a borrower unless the wage came late, which
    explains it. So ``wage_came_late`` is a pure spouse of ``repays``: alone it says nothing, once
    ``late_payment`` is known it can turn the decision (Proposition 1). ``employment`` is outside
    the blanket although it is correlated.
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
    probability_of_yes: dict[str, Any] = {
        "employment": 0.7,
        "savings": [0.2, 0.7],
        "repays": [0.35, 0.82],
        "wage_came_late": 0.15,
        "late_payment": [[0.7, 0.75], [0.1, 0.7]],
        "telephone": 0.5,
    }
    tables = {
        n: np.stack([1 - np.asarray(p), np.asarray(p)], axis=-1)
        for n, p in probability_of_yes.items()
    }
    return Network(Graph(parents), dict.fromkeys(parents, yes_no), tables, target="repays")
