"""Random populations with a known truth, which tests and benchmarks compare with what is learnt.

- ``random_network``: discrete; exact posterior for *any* evidence.
- ``random_mechanisms``: half of the columns categorical, half continuous, with smooth nonlinear
  causes; exact posterior given the blanket.
- ``Cube``: eight classes, twenty features, three informative ones a class; exact posterior for any
  evidence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import log_softmax, softmax

from edfa.data.graph import Graph
from edfa.data.schema import Feature, Schema
from edfa.data.synthetic import Network
from edfa.data.table import Table
from edfa.errors import DataError, SettingError
from edfa.typing import Float64Array, IntArray

LEVEL_NAMES = "abcdefghijklmnop"
SHAPES: dict[str, Any] = {
    "line": lambda x: x,
    "bend": lambda x: np.tanh(2 * x),
    "hump": lambda x: (x**2 - 1) / np.sqrt(2),
    "wave": lambda x: np.sin(2 * x),
}
SIGNAL, NOISE = 0.8, 0.6  # so that a continuous node with parents has variance one
SHARPNESS = 1.5  # of a categorical node's softmax
CLASSES, FEATURES, BITS = 8, 20, 3  # of CUBE
OTHER = 0.3  # the noise of CUBE's uninformative features


def random_graph(nodes: int, random: np.random.Generator, max_parents: int = 3) -> Graph:
    """A random graph of nodes x00, x01, …, in random causal order, each with up to
    ``max_parents`` parents.
    """
    if nodes < 1:
        raise SettingError(f"a graph has at least one node, not {nodes}")
    if max_parents < 0:
        raise SettingError(f"max_parents is zero or more, not {max_parents}")
    names = [f"x{i:02d}" for i in range(nodes)]
    order = random.permutation(names).tolist()
    parents = {}
    for i, node in enumerate(order):
        count = int(random.integers(0, min(i, max_parents) + 1))
        parents[node] = (
            tuple(sorted(random.choice(order[:i], size=count, replace=False).tolist()))
            if count
            else ()
        )
    return Graph({name: parents[name] for name in names})


def _check_size(nodes: int, max_levels: int) -> None:
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
    strength
        The concentration of the Dirichlet distribution that tables are drawn from: the smaller, the
        stronger the dependences.
    """
    _check_size(nodes, max_levels)
    if not strength > 0:
        raise SettingError(f"strength is a number above 0, not {strength}")
    random = np.random.default_rng(seed)
    graph = random_graph(nodes, random, max_parents)
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
    return Network(graph, levels, tables, target)


def _draw_levels(probabilities: Float64Array, random: np.random.Generator) -> IntArray:
    """A level for each row of ``probabilities``, (people, levels); shape (people,)."""
    shares = probabilities.cumsum(axis=1)[:, :-1]
    return np.asarray((random.random((len(probabilities), 1)) > shares).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Mechanism:
    """The distribution of one node given its parents.

    Parameters
    ----------
    parents
        The names of the parents.
    levels
        The values of a categorical node in the order of their codes; empty for a continuous one.
    scores
        What turns each parent's value into a number: for a categorical parent an array with one
        number a level, for a continuous one a name in ``SHAPES``.
    weights
        (parents, outputs): the weight of each parent's number in each output. A categorical node
        has one output a level, a continuous one a single output.
    product
        (outputs,): the weight of the product of the first two parents' numbers.
    centre, spread
        (outputs,) and (1,): what is subtracted from the weighted sum, and what it is divided by.
    """

    parents: tuple[str, ...]
    levels: tuple[str, ...]
    scores: tuple[Float64Array | str, ...]
    weights: Float64Array
    product: Float64Array
    centre: Float64Array
    spread: Float64Array

    def signal(self, values: Mapping[str, Float64Array]) -> Float64Array:
        """The standardised signal, (people, outputs), with mean 0 and a mean variance of 1.

        ``values`` has an array (people,) for each parent: codes of levels, or numbers.
        """
        return (self.unscaled_signal(values) - self.centre) / self.spread

    def unscaled_signal(self, values: Mapping[str, Float64Array]) -> Float64Array:
        """The weighted sum over the parents before it is standardised, (people, outputs)."""
        numbers = [
            SHAPES[score](values[p]) if isinstance(score, str) else score[values[p].astype(int)]
            for p, score in zip(self.parents, self.scores, strict=True)
        ]
        matrix = np.stack(numbers, axis=1)
        joint = matrix[:, :1] * matrix[:, 1:2] if len(numbers) > 1 else np.zeros((len(matrix), 1))
        return np.asarray(matrix @ self.weights + joint * self.product)

    def draw(
        self, values: Mapping[str, Float64Array], n: int, random: np.random.Generator
    ) -> Float64Array:
        """Draw the node's value for each of ``n`` people, (n,), given the parents' values."""
        signal = self.signal(values) if self.parents else np.zeros((n, max(1, len(self.levels))))
        if not self.levels:
            noise = random.standard_normal(n)
            return SIGNAL * signal[:, 0] + NOISE * noise if self.parents else noise
        probabilities = np.exp(log_softmax(SHARPNESS * signal, axis=1))
        return _draw_levels(probabilities, random).astype(float)

    def log_density(self, own: Float64Array, values: Mapping[str, Float64Array]) -> Float64Array:
        """log p(own | parents), (people,), up to a constant; ``own`` holds the node's values,
        (people,).
        """
        if not self.parents:
            return np.zeros(len(own))
        signal = self.signal(values)
        if not self.levels:
            return np.asarray(-0.5 * ((own - SIGNAL * signal[:, 0]) / NOISE) ** 2)
        logs = log_softmax(SHARPNESS * signal, axis=1)
        return np.asarray(np.take_along_axis(logs, own.astype(int)[:, None], axis=1)[:, 0])


@dataclass(frozen=True, eq=False)
class Mechanisms:
    """A network of categorical and continuous nodes.

    ``graph`` knows the target's blanket and its units, ``mechanisms`` has the distribution of each
    node. The signal of a node is a weighted sum over its parents: a table entry for a categorical
    parent, a line, bend, hump or wave of a continuous one, and, with ``interactions``, a product of
    two. A continuous node adds Gaussian noise to it; a categorical one draws its level from a
    softmax of it. The posterior of the target given its blanket follows from the densities.

    Examples
    --------
    >>> network = random_mechanisms(nodes=8, seed=3)
    >>> frame = network.sample(5)
    >>> network.posterior(frame).sum(axis=1).round(9).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    graph: Graph
    mechanisms: Mapping[str, Mechanism]
    target: str

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all nodes but the target, in the order of the graph's nodes."""
        return tuple(n for n in self.graph.nodes if n != self.target)

    def schema(self) -> Schema:
        """The schema of its samples: every cost is 1, nothing is sensitive, the target's last level
        is favourable.
        """
        levels = {n: self.mechanisms[n].levels for n in self.features}
        classes = self.mechanisms[self.target].levels
        features = tuple(
            Feature(n, "categorical" if lv else "continuous", levels=lv) for n, lv in levels.items()
        )
        return Schema(features, self.target, classes[-1], classes=classes)

    def table(self, n: int, seed: int = 0) -> Table:
        """A sample of ``n`` people as a Table."""
        return Table.from_frame(self.sample(n, seed), self.schema(), name="mechanisms", seed=seed)

    def sample(self, n: int, seed: int = 0) -> pd.DataFrame:
        """``n`` people drawn from the network: a column a node, strings or numbers."""
        values = _draw(self.graph, self.mechanisms, n, np.random.default_rng(seed))
        columns: dict[str, Any] = {}
        for node in self.graph.nodes:
            levels = self.mechanisms[node].levels
            columns[node] = np.array(levels)[values[node].astype(int)] if levels else values[node]
        return pd.DataFrame(columns)

    def posterior(self, frame: pd.DataFrame) -> Float64Array:
        """Exact probabilities of the target's levels given its blanket, (people, levels).

        ``frame`` is a sample; every member of the blanket must be known in it, nothing else is
        read.
        """
        blanket = self.graph.blanket(self.target)
        if absent := [n for n in blanket if n not in frame or frame[n].isna().any()]:
            raise DataError(
                f"the exact posterior needs the whole blanket; {absent[0]!r} is not known "
                "for everybody"
            )
        values = {n: self._codes(frame[n], n) for n in blanket}
        scores = []
        for code in range(len(self.mechanisms[self.target].levels)):
            supposed = {**values, self.target: np.full(len(frame), float(code))}
            family = [self.target, *self.graph.children(self.target)]
            densities = (self.mechanisms[n].log_density(supposed[n], supposed) for n in family)
            scores.append(sum(densities, np.zeros(len(frame))))
        return np.asarray(softmax(np.stack(scores, axis=1), axis=1))

    def _codes(self, values: pd.Series, node: str) -> Float64Array:
        """A column of a sample as codes of levels, or numbers, (people,)."""
        levels = self.mechanisms[node].levels
        return (
            pd.Index(levels).get_indexer(pd.Index(values)).astype(float)
            if levels
            else values.to_numpy(float)
        )


def _draw(
    graph: Graph, mechanisms: Mapping[str, Mechanism], n: int, random: np.random.Generator
) -> dict[str, Float64Array]:
    """Values of every node for ``n`` people, (n,) each, drawn in causal order."""
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
    """A random network of categorical and continuous nodes.

    Parameters
    ----------
    nodes, max_parents, max_levels
        The number of nodes, and the largest number of parents and of levels (2 to 16) of one.
    seed
        Decides everything that is random.
    interactions
        The share, 0 to 1, of nodes with several parents that also get the product of two.
    target
        A categorical node; if None, the one with the largest blanket.
    """
    _check_size(nodes, max_levels)
    if not 0 <= interactions <= 1:
        raise SettingError(f"interactions is a share between 0 and 1, not {interactions}")
    random = np.random.default_rng(seed)
    graph = random_graph(nodes, random, max_parents)
    categorical = set(random.permutation(graph.nodes)[: (nodes + 1) // 2].tolist())
    sizes = {
        n: int(random.integers(2, max_levels + 1)) if n in categorical else 0 for n in graph.nodes
    }
    mechanisms: dict[str, Mechanism] = {}
    for node in graph.order:
        joint = len(graph.parents[node]) > 1 and random.random() < interactions
        mechanisms[node] = _mechanism(node, graph, sizes, joint, random)
        mechanisms[node] = _standardised(node, graph, mechanisms, seed)
    chosen = target or max(categorical, key=lambda n: (len(graph.blanket(n)), n))
    if chosen not in categorical:
        raise SettingError(
            f"the target must be categorical, one of {', '.join(sorted(categorical))}, "
            f"not {chosen!r}"
        )
    return Mechanisms(graph, mechanisms, chosen)


def _mechanism(
    node: str, graph: Graph, sizes: Mapping[str, int], joint: bool, random: np.random.Generator
) -> Mechanism:
    """A random mechanism for a node, not yet standardised; ``sizes`` are numbers of levels, 0:
    continuous.
    """
    parents, outputs = graph.parents[node], max(1, sizes[node])

    def weights() -> Float64Array:
        """One weight for each output, evenly spread: a softmax does not see what all levels have in
        common.
        """
        size = random.uniform(0.7, 1.3)
        even = np.linspace(-1.0, 1.0, outputs) if sizes[node] else np.ones(1)
        return np.asarray(size * random.choice([-1.0, 1.0]) * random.permutation(even))

    return Mechanism(
        parents=parents,
        levels=tuple(LEVEL_NAMES[: sizes[node]]),
        scores=tuple(
            random.permutation(np.linspace(-1.5, 1.5, sizes[p]))
            if sizes[p]
            else str(random.choice(list(SHAPES)))
            for p in parents
        ),
        weights=np.stack([weights() for _ in parents]) if parents else np.zeros((0, outputs)),
        product=weights() if joint else np.zeros(outputs),
        centre=np.zeros(outputs),
        spread=np.ones(1),
    )


def _standardised(
    node: str, graph: Graph, mechanisms: Mapping[str, Mechanism], seed: int
) -> Mechanism:
    """A node's mechanism with the centre and spread of its signal measured on a sample of 4,000
    people.
    """
    mechanism = mechanisms[node]
    if not mechanism.parents:
        return mechanism
    ancestors = graph.ancestors(mechanism.parents)
    part = Graph({n: graph.parents[n] for n in ancestors})
    raw = mechanism.unscaled_signal(_draw(part, mechanisms, 4000, np.random.default_rng(seed)))
    return replace(
        mechanism, centre=raw.mean(axis=0), spread=np.sqrt(raw.var(axis=0).mean(keepdims=True))
    )


@dataclass(frozen=True)
class Cube:
    """The CUBE distribution; ``sigma`` is the standard deviation of the noise on informative
    features.

    In class y the features y, y + 1 and y + 2 are the bits of y, the lowest first, plus noise; all
    others are noise around a half. The posterior is known for any subset of features, so any order
    of asking can be compared with the best greedy one.

    Examples
    --------
    >>> cube = Cube(0.1)
    >>> cube.posterior(np.full((1, 20), np.nan))
    array([[0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125]])
    """

    sigma: float = 0.1

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise SettingError(f"sigma is a standard deviation above 0, not {self.sigma}")

    def moments(self) -> tuple[Float64Array, Float64Array]:
        """Mean and standard deviation of every feature in every class, both (classes, features)."""
        mean, spread = np.full((CLASSES, FEATURES), 0.5), np.full((CLASSES, FEATURES), OTHER)
        for y in range(CLASSES):
            mean[y, y : y + BITS] = [(y >> bit) & 1 for bit in range(BITS)]
            spread[y, y : y + BITS] = self.sigma
        return mean, spread

    def table(
        self, n: int, seed: int = 0, shares: tuple[float, float, float] = (0.6, 0.2, 0.2)
    ) -> Table:
        """A sample of ``n`` people as a Table; every cost is 1 and nothing is known at the
        start.
        """
        random = np.random.default_rng(seed)
        y = random.integers(0, CLASSES, n)
        mean, spread = self.moments()
        values = random.normal(mean[y], spread[y])
        frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(FEATURES)]).assign(
            y=y.astype(str)
        )
        schema = Schema(
            tuple(Feature(f"x{i}", "continuous") for i in range(FEATURES)),
            "y",
            "0",
            classes=tuple(str(c) for c in range(CLASSES)),
        )
        return Table.from_frame(frame, schema, name="cube", seed=seed, shares=shares)

    def posterior(self, values: npt.ArrayLike) -> Float64Array:
        """Exact class probabilities, (people, classes), from values as drawn, (people, features),
        NaN: not known.
        """
        known = np.asarray(values, dtype=float)[:, None, :]
        mean, spread = self.moments()
        logs = -0.5 * ((known - mean) / spread) ** 2 - np.log(spread)
        joint = np.nansum(logs, axis=2)
        return np.asarray(softmax(joint, axis=1))
