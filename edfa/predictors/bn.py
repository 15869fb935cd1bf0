"""BayesNet: a Bayesian network over the features that matter and the outcome; exact chances for any evidence.

The paper could afford it on Adult alone. Learnt over a blanket (``features``) instead of all columns it is feasible
on every set. pyAgrum finds the structure (``edfa[bn]``); tables and inference are this project's own, in batches.
"""

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load, save
from sklearn.tree import DecisionTreeClassifier

from edfa.data.graph import Graph
from edfa.data.synthetic import Network
from edfa.errors import MissingExtraError, SchemaError
from edfa.predictors.base import Predictor, by_mask, class_weights, fit_temperature, inner_split, soften
from edfa.artifacts import read_parts, write_parts
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array, IntArray

__all__ = ["BayesNet"]

MAX_LEVELS = 16  # a column of at most so many values is taken as it is; a longer one is cut into bins
TARGET = "y"


class BayesNet(Predictor):
    """A discrete Bayesian network, structure by hill climbing on BIC, tables smoothed.

    Parameters
    ----------
    features
        The columns the network is over, such as a blanket's; all of them when left out. Others are ignored.
    bins
        Into at most how many bins a column of many values is cut, where the outcome changes most.
    max_parents
        How many parents a node may have.
    smoothing
        Imaginary rows spread over each row of a table, so that nothing is impossible.
    balanced
        Whether all classes count the same in the tables; the structure is learnt from the rows as they are.
    calibrate
        Whether chances of the outcome are softened by a temperature fitted on an inner split.

    Examples
    --------
    >>> from edfa.data.synthetic import credit_story
    >>> table = credit_story().table(2000)
    >>> model = BayesNet().fit(table.train.X, table.train.y)
    >>> round(float(model.predict_proba(np.full((1, 5), np.nan))[0, 1]), 1)
    0.6
    """

    def __init__(
        self,
        features: tuple[int, ...] | None = None,
        *,
        bins: int = 8,
        max_parents: int = 3,
        smoothing: float = 1.0,
        balanced: bool = False,
        calibrate: bool = False,
        threshold: float | None = None,
    ) -> None:
        self.features = features
        self.bins = bins
        self.max_parents = max_parents
        self.smoothing = smoothing
        self.balanced = balanced
        self.calibrate = calibrate
        self.threshold = threshold

    def _fit(self, matrix: Float32Array, codes: Int64Array) -> None:
        chosen = range(matrix.shape[1]) if self.features is None else self.features
        if not len(chosen) or any(not 0 <= i < matrix.shape[1] for i in chosen):
            raise SchemaError(f"features must name columns from 0 to {matrix.shape[1] - 1}, not {self.features}")
        if self.bins < 2 or self.max_parents < 1 or not self.smoothing > 0:
            raise SchemaError("bins is at least 2, max_parents at least 1 and smoothing above 0")
        self._columns = np.array(sorted(chosen))
        self._edges = [_edges(matrix[:, j], codes, self.bins) for j in self._columns]
        self._typical = [_typical(matrix[:, j], edges) for j, edges in zip(self._columns, self._edges, strict=True)]
        known = ~np.isnan(matrix[:, self._columns]).any(axis=1)
        levels = self._levels(matrix[np.ix_(np.flatnonzero(known), self._columns)], np.arange(len(self._columns)))
        frame = pd.DataFrame(levels, columns=[f"x{j}" for j in self._columns]).assign(**{TARGET: codes[known]})
        everybody = np.arange(len(frame))
        train, held = inner_split(codes[known], 0) if self.calibrate else (everybody, everybody[:0])
        self._temperature = 1.0
        self._build(self._learn_structure(frame.iloc[train]), frame.iloc[train])
        if len(held):
            told = self.network_.posterior(levels[held])
            self._temperature = fit_temperature(told, codes[known][held])

    def _levels(self, known: Float32Array, which: IntArray) -> Int64Array:
        """The bin of each value; ``which`` of the network's columns they are."""
        parts = [np.searchsorted(self._edges[i], known[:, k], side="right") for k, i in enumerate(which)]
        return np.stack(parts, axis=1).astype(np.int64) if parts else np.zeros((len(known), 0), dtype=np.int64)

    def _learn_structure(self, frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        learner = _pyagrum().BNLearner(frame.astype(str))
        learner.useScoreBIC()
        learner.useSmoothingPrior(self.smoothing)
        learner.useGreedyHillClimbing()
        learner.setMaxIndegree(self.max_parents)
        learner.setNumberOfThreads(1)
        network = learner.learnBN()
        parents: dict[str, list[str]] = {str(name): [] for name in frame.columns}
        for tail, head in network.arcs():
            parents[network.variable(head).name()].append(network.variable(tail).name())
        return {name: tuple(sorted(found)) for name, found in parents.items()}

    def _build(self, parents: dict[str, tuple[str, ...]], frame: pd.DataFrame) -> None:
        """Tables from counts, given the structure."""
        sizes = {f"x{j}": len(self._edges[i]) + 1 for i, j in enumerate(self._columns)} | {TARGET: len(self.classes_)}
        tables, weights = {}, class_weights(frame[TARGET].to_numpy(), len(self.classes_), self.balanced)
        for name, above in parents.items():
            shape = tuple(sizes[v] for v in (*above, name))
            place = np.ravel_multi_index([frame[v].to_numpy() for v in (*above, name)], shape)
            seen = np.bincount(place, weights, minlength=int(np.prod(shape))).reshape(shape)
            counts = seen + self.smoothing / shape[-1]
            tables[name] = counts / counts.sum(axis=-1, keepdims=True)
        self._assemble(parents, tables)

    def _assemble(self, parents: dict[str, tuple[str, ...]], tables: dict[str, Float64Array]) -> None:
        levels = {name: tuple(str(k) for k in range(table.shape[-1])) for name, table in tables.items()}
        self.network_ = Network(Graph(parents), levels, tables, TARGET)

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """The same for people whose facts fall into the same bins, so each combination is worked out once."""
        told = self._ask(mask, known, TARGET)
        return soften(told, self._temperature) if self.calibrate else told

    def conditional(self, X: Float32Array, feature: int) -> tuple[Float32Array, Float64Array]:  # noqa: N803
        """What a feature may be given what is known: one value a level (its bin's median), and their exact chances."""
        self._check_fitted()
        if feature not in self._columns:
            raise SchemaError(f"column {feature} is not in the network, which is over {self._columns.tolist()}")
        matrix = self._check_rows(X, self.n_features_in_).copy()
        matrix[:, feature] = np.nan
        values = self._typical[int(np.searchsorted(self._columns, feature))]
        chances = np.empty((len(matrix), len(values)))
        for mask, rows in by_mask(matrix):
            chances[rows] = self._ask(mask, matrix[np.ix_(rows, np.flatnonzero(mask))], f"x{feature}")
        return values, chances

    def _ask(self, mask: BoolArray, known: Float32Array, node: str) -> Float64Array:
        columns = np.flatnonzero(mask)
        inside = np.flatnonzero(np.isin(columns, self._columns))
        which = np.searchsorted(self._columns, columns[inside])
        levels, place = np.unique(self._levels(known[:, inside], which), axis=0, return_inverse=True)
        evidence = np.full((len(levels), len(self._columns)), np.nan)
        evidence[:, which] = levels
        return self.network_.posterior(evidence, node)[place.ravel()]

    def to_folder(self, folder: str | Path) -> None:
        """Write structure, tables and bins; no pickle."""
        self._check_fitted()
        arrays: dict[str, AnyArray] = {f"t.{name}": table for name, table in self.network_.tables.items()}
        arrays |= {f"e.{i}": edges for i, edges in enumerate(self._edges)}
        arrays |= {f"v.{i}": values for i, values in enumerate(self._typical)}
        arrays |= {"varies": self.varies_.astype(np.uint8), "temperature": np.array([self._temperature])}
        arrays |= {"columns": self._columns, "classes": np.asarray(self.classes_), "prior": self.prior_}
        parents = {name: list(above) for name, above in self.network_.graph.parents.items()}
        settings = {"params": self.get_params(), "parents": parents, "width": self.n_features_in_}
        write_parts(folder, "BayesNet", settings, {"network.safetensors": save(arrays)})

    @classmethod
    def from_folder(cls, folder: str | Path) -> "BayesNet":
        """Read what ``to_folder`` wrote; the part is checked against its hash."""
        settings, parts = read_parts(folder, "BayesNet")
        arrays = load(parts["network.safetensors"])
        params: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in settings["params"].items()}
        model = cls(**params)
        model.classes_, model.prior_, model.n_features_in_ = arrays["classes"], arrays["prior"], settings["width"]
        model.varies_ = arrays["varies"].astype(bool)
        model._temperature = float(arrays["temperature"][0])
        model._columns = arrays["columns"]
        model._edges = [arrays[f"e.{i}"] for i in range(len(model._columns))]
        model._typical = [arrays[f"v.{i}"] for i in range(len(model._columns))]
        parents = {name: tuple(above) for name, above in settings["parents"].items()}
        model._assemble(parents, {name: arrays[f"t.{name}"] for name in parents})
        return model


def _pyagrum() -> Any:
    """The library, imported late. Its extension warns while it loads, and crashes where warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module("pyagrum")
        except ImportError:
            raise MissingExtraError("BayesNet", "bn") from None


def _edges(column: Float32Array, codes: Int64Array, bins: int) -> Float32Array:
    """Between which values a column is cut: between all of a few, where a small tree for the outcome cuts many."""
    known = ~np.isnan(column)
    values = np.unique(column[known])
    if len(values) <= MAX_LEVELS:
        return values[1:]
    leaf = max(1, min(50, int(known.sum()) // (2 * bins)))
    tree = DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=bins, min_samples_leaf=leaf, random_state=0)
    cuts = tree.fit(column[known, None], codes[known]).tree_
    return np.unique(cuts.threshold[cuts.feature >= 0]).astype(np.float32)


def _typical(column: Float32Array, edges: Float32Array) -> Float32Array:
    """The median value of each bin; between its edges where it is empty."""
    known = np.sort(column[~np.isnan(column)])
    bins = np.searchsorted(edges, known, side="right")
    found = [known[bins == b] for b in range(len(edges) + 1)]
    return np.array([v[len(v) // 2] if len(v) else edges[max(b - 1, 0)] for b, v in enumerate(found)], dtype=np.float32)
