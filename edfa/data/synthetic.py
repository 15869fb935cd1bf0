"""A synthetic population with a known truth: ``credit_story``, a Bayesian network of a few facts,
with its Markov blanket, the units of it, and exact posteriors for any evidence.
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
from edfa.errors import DataError, FactError, SettingError
from edfa.typing import Float64Array, IntArray


@dataclass(frozen=True, eq=False)
class Network:
    """A discrete Bayesian network that people can be drawn from.

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

    def schema(self) -> Schema:
        """The schema of its samples: every cost is 1, nothing is sensitive, the target's last level
        is favourable.
        """
        features = tuple(Feature(n, "categorical", levels=self.levels[n]) for n in self.features)
        classes = self.levels[self.target]
        return Schema(features, self.target, classes[-1], classes=classes)

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """Draw people from the network.

        Parameters
        ----------
        n
            How many.
        seed
            The same seed draws the same people.

        Returns
        -------
        pandas.DataFrame
            One row a person, with a column of words for each node, the target included.
        """
        random = np.random.default_rng(seed)
        codes: dict[str, IntArray] = {}
        for node in self.graph.order:
            probabilities = self.tables[node][tuple(codes[p] for p in self.graph.parents[node])]
            shares = np.broadcast_to(probabilities.cumsum(axis=-1), (n, probabilities.shape[-1]))
            codes[node] = np.asarray((random.random((n, 1)) > shares[:, :-1]).sum(axis=1))
        return pd.DataFrame({n: np.array(self.levels[n])[codes[n]] for n in self.graph.nodes})

    def table(self, n: int, seed: int = 0) -> Table:
        """A sample of ``n`` people as a Table, whose ``X`` equals ``codes(table.frame)``."""
        return Table.from_frame(self.sample(n, seed), self.schema(), name="network", seed=seed)

    def codes(self, frame: pd.DataFrame) -> Float64Array:
        """The evidence of a sample as ``posterior`` takes it, (people, features); null becomes NaN,
        not known.
        """
        found = [pd.Index(self.levels[f]).get_indexer(pd.Index(frame[f])) for f in self.features]
        codes = np.stack(found, axis=1).astype(float)
        return np.where(codes < 0, np.nan, codes)

    def posterior(self, known: npt.ArrayLike, target: str | None = None) -> Float64Array:
        """Exact probabilities of the target's levels given what is known, (people, levels).

        Parameters
        ----------
        known
            (people, features) in the order of ``features``: codes of levels, NaN where not known.
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
