"""Mixed worlds with smooth causes: half of the columns categorical, half continuous, every dependence known.

Each node adds up what its parents contribute: a table entry of a categorical parent, a line, bend, hump or wave of
a continuous one, and, with ``interactions``, a product of two. A continuous node adds Gaussian noise; a categorical
one draws its level from a softmax. The posterior of the target given its blanket follows from the densities.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from edfa.data.feature import Feature
from edfa.data.graph import Graph
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError
from edfa.typing import Float64Array

__all__ = ["Mechanism", "Mechanisms", "random_mechanisms"]

SHAPES: dict[str, Any] = {
    "line": lambda x: x,
    "bend": lambda x: np.tanh(2 * x),
    "hump": lambda x: (x**2 - 1) / np.sqrt(2),
    "wave": lambda x: np.sin(2 * x),
}
SIGNAL, NOISE = 0.8, 0.6  # so that a continuous node with parents has variance one
SHARPNESS = 1.5  # of a categorical node's softmax


@dataclass(frozen=True, eq=False)
class Mechanism:
    """How one node comes about. ``scores`` turns each parent into a number: a table of levels, or a shape's name."""

    parents: tuple[str, ...]
    levels: tuple[str, ...]
    scores: tuple[Float64Array | str, ...]
    weights: Float64Array
    product: Float64Array
    centre: Float64Array
    spread: Float64Array

    def pull(self, values: Mapping[str, Float64Array]) -> Float64Array:
        """What the parents say, one column for each level (or the one number), with mean 0 and a mean variance of 1."""
        raw = self.raw(values)
        return (raw - self.centre) / self.spread

    def raw(self, values: Mapping[str, Float64Array]) -> Float64Array:
        """The same before standardisation."""
        told = [
            SHAPES[score](values[p]) if isinstance(score, str) else score[values[p].astype(int)]
            for p, score in zip(self.parents, self.scores, strict=True)
        ]
        matrix = np.stack(told, axis=1)
        joint = matrix[:, :1] * matrix[:, 1:2] if len(told) > 1 else np.zeros((len(matrix), 1))
        return np.asarray(matrix @ self.weights + joint * self.product)

    def draw(self, values: Mapping[str, Float64Array], n: int, random: np.random.Generator) -> Float64Array:
        """One value a person, given the parents' values."""
        pull = self.pull(values) if self.parents else np.zeros((n, max(1, len(self.levels))))
        if not self.levels:
            noise = random.standard_normal(n)
            return SIGNAL * pull[:, 0] + NOISE * noise if self.parents else noise
        chances = np.exp(self._log_chances(pull))
        return np.asarray((random.random((n, 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1), dtype=float)

    def log_density(self, own: Float64Array, values: Mapping[str, Float64Array]) -> Float64Array:
        """log p(own | parents), up to a constant, one number a person."""
        if not self.parents:
            return np.zeros(len(own))
        pull = self.pull(values)
        if not self.levels:
            return np.asarray(-0.5 * ((own - SIGNAL * pull[:, 0]) / NOISE) ** 2)
        return np.asarray(np.take_along_axis(self._log_chances(pull), own.astype(int)[:, None], axis=1)[:, 0])

    @staticmethod
    def _log_chances(pull: Float64Array) -> Float64Array:
        logits = SHARPNESS * pull
        top = logits.max(axis=1, keepdims=True)
        return np.asarray(logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class Mechanisms:
    """A mixed network. ``graph`` knows the blanket and its units; categorical columns hold words.

    Examples
    --------
    >>> world = random_mechanisms(nodes=8, seed=3)
    >>> frame = world.sample(5)
    >>> world.posterior(frame).sum(axis=1).round(9).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    graph: Graph
    mechanisms: Mapping[str, Mechanism]
    target: str

    @property
    def features(self) -> tuple[str, ...]:
        """Every node but the target."""
        return tuple(n for n in self.graph.nodes if n != self.target)

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """People drawn from the network."""
        values = _draw(self.graph, self.mechanisms, n, np.random.default_rng(seed))
        columns: dict[str, Any] = {}
        for node in self.graph.nodes:
            levels = self.mechanisms[node].levels
            columns[node] = np.array(levels)[values[node].astype(int)] if levels else values[node]
        return pd.DataFrame(columns)

    def schema(self) -> Schema:
        """A card for its samples: every cost 1, nothing sensitive, the last class favourable."""
        kinds = {n: self.mechanisms[n].levels for n in self.features}
        features = tuple(Feature(n, "categorical" if lv else "continuous", levels=lv) for n, lv in kinds.items())
        classes = self.mechanisms[self.target].levels
        return Schema(features, self.target, classes[-1], classes=classes)

    def table(self, n: int, seed: int = 0) -> Table:
        """A sample as a Table."""
        return Table.from_frame(self.sample(n, seed), self.schema(), name="mechanisms", seed=seed)

    def posterior(self, frame: pd.DataFrame) -> Float64Array:
        """P(target | its blanket), exactly. Every member of the blanket must be known; nothing else is read."""
        blanket = self.graph.blanket(self.target)
        if absent := [n for n in blanket if n not in frame or frame[n].isna().any()]:
            raise DataError(f"the exact posterior needs the whole blanket; {absent[0]!r} is not known for everybody")
        values = {n: self._codes(frame[n], n) for n in blanket}
        scores = []
        for code in range(len(self.mechanisms[self.target].levels)):
            guess = {**values, self.target: np.full(len(frame), float(code))}
            family = [self.target, *self.graph.children(self.target)]
            scores.append(sum((self.mechanisms[n].log_density(guess[n], guess) for n in family), np.zeros(len(frame))))
        logs = np.stack(scores, axis=1)
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def _codes(self, values: pd.Series, node: str) -> Float64Array:
        levels = self.mechanisms[node].levels
        return pd.Index(levels).get_indexer(pd.Index(values)).astype(float) if levels else values.to_numpy(float)


def _draw(
    graph: Graph, mechanisms: Mapping[str, Mechanism], n: int, random: np.random.Generator
) -> dict[str, Float64Array]:
    values: dict[str, Float64Array] = {}
    for node in graph.order:
        values[node] = mechanisms[node].draw(values, n, random)
    return values


def random_mechanisms(
    nodes: int = 20,
    *,
    seed: int = 0,
    interactions: float = 0.0,
    max_parents: int = 3,
    max_levels: int = 6,
    target: str | None = None,
) -> Mechanisms:
    """A random mixed network; ``interactions`` is the share of many-parent nodes that also get a product term.

    The target is the categorical node with the largest blanket unless another categorical one is named.
    """
    random = np.random.default_rng(seed)
    graph = Graph.random(nodes, random, max_parents)
    categorical = set(random.permutation(graph.nodes)[: (nodes + 1) // 2].tolist())
    sizes = {n: int(random.integers(2, max_levels + 1)) if n in categorical else 0 for n in graph.nodes}
    mechanisms: dict[str, Mechanism] = {}
    for node in graph.order:
        joint = len(graph.parents[node]) > 1 and random.random() < interactions
        mechanisms[node] = _mechanism(node, graph, sizes, joint, random)
        mechanisms[node] = _standardised(node, graph, mechanisms, seed)
    chosen = target or max(categorical, key=lambda n: (len(graph.blanket(n)), n))
    if chosen not in categorical:
        raise DataError(f"the target must be categorical, one of {', '.join(sorted(categorical))}, not {chosen!r}")
    return Mechanisms(graph, mechanisms, chosen)


def _mechanism(
    node: str, graph: Graph, sizes: Mapping[str, int], joint: bool, random: np.random.Generator
) -> Mechanism:
    parents, outputs = graph.parents[node], max(1, sizes[node])

    def weights() -> Float64Array:
        """One weight a level, spread out: a softmax does not see what all levels have in common."""
        size = random.uniform(0.7, 1.3)
        even = np.linspace(-1.0, 1.0, outputs) if sizes[node] else np.ones(1)
        return np.asarray(size * random.choice([-1.0, 1.0]) * random.permutation(even))

    return Mechanism(
        parents=parents,
        levels=tuple("abcdefghijklmnop"[: sizes[node]]),
        scores=tuple(
            random.permutation(np.linspace(-1.5, 1.5, sizes[p])) if sizes[p] else str(random.choice(list(SHAPES)))
            for p in parents
        ),
        weights=np.stack([weights() for _ in parents]) if parents else np.zeros((0, outputs)),
        product=weights() if joint else np.zeros(outputs),
        centre=np.zeros(outputs),
        spread=np.ones(1),
    )


def _standardised(node: str, graph: Graph, mechanisms: Mapping[str, Mechanism], seed: int) -> Mechanism:
    """The same mechanism with mean and spread of its pull measured once, on a pilot sample."""
    mechanism = mechanisms[node]
    if not mechanism.parents:
        return mechanism
    before = graph.ancestors(mechanism.parents)
    part = Graph({n: graph.parents[n] for n in before})
    raw = mechanism.raw(_draw(part, mechanisms, 4000, np.random.default_rng(seed)))
    return replace(mechanism, centre=raw.mean(axis=0), spread=np.sqrt(raw.var(axis=0).mean(keepdims=True)))
