"""BayesNet: a Bayesian network over the features that matter and the outcome; exact probabilities
for any evidence.

The paper could afford it on Adult alone. Learnt over a blanket (``features``) instead of all
columns it is feasible on every set. pyAgrum finds the structure (``edfa[bn]``); tables and
inference are this project's own, in batches.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from edfa.artifacts import (
    Folder,
    check_arrays,
    load_arrays,
    open_parts,
    save_arrays,
    write_parts,
)
from edfa.data.graph import Graph
from edfa.data.synthetic import Network
from edfa.errors import MissingExtraError, SettingError, UnreadableError
from edfa.predictors.base import (
    ClassWeight,
    Predictor,
    Progress,
    by_mask,
    distinct_cases,
    from_settings,
    sample_weights,
)
from edfa.predictors.conditional import Draw
from edfa.typing import AnyArray, BoolArray, Float32Array, Float64Array, Int64Array

MAX_LEVELS = 16  # a column of at most this many values keeps them; one of more is cut into bins
TARGET = "y"
NETWORK_FILE = "network.safetensors"


@dataclass(eq=False, repr=False)
class BayesNet(Predictor):
    """A discrete Bayesian network, structure by hill climbing on BIC, tables smoothed.

    Parameters
    ----------
    features
        Positions of the columns the network is over, such as a blanket's; None: all. Other columns
        are ignored.
    bins
        Largest number of bins into which a column of many values is cut, where the outcome changes
        most.
    max_parents
        Largest number of parents of a node.
    smoothing
        Number of imaginary rows spread over each row of a table, so that nothing is impossible.
    class_weight
        None: every row counts the same in the tables; ``"balanced"``: every class counts the same;
        a mapping: the weight of each class. The structure is learnt from the rows as they are.
    threshold, favourable
        The probability from which on one class is decided for, and the position of that class in
        ``classes_`` (None: the second of two); without a threshold, the likeliest class.

    Attributes
    ----------
    columns_
        Positions of the network's columns, ascending.
    edges_
        For each of these, the thresholds between its bins: bin b holds values from edge b - 1 up to
        below edge b.
    typical_
        For each of these, one value that stands for each bin: its median.
    network_
        Structure and tables; node ``x7`` is column 7, node ``y`` the outcome.

    Examples
    --------
    >>> from edfa.data.synthetic import credit_story
    >>> table = credit_story().table(2000)
    >>> model = BayesNet().fit(table.train.X, table.train.y)
    >>> round(float(model.predict_proba(np.full((1, 5), np.nan))[0, 1]), 1)
    0.6
    """

    learnt_attributes: ClassVar[tuple[str, ...]] = (
        *Predictor.learnt_attributes,
        "columns_",
        "edges_",
        "typical_",
    )

    features: tuple[int, ...] | None = None
    _: KW_ONLY
    bins: int = 8
    max_parents: int = 3
    smoothing: float = 1.0
    class_weight: ClassWeight = None
    threshold: float | None = None
    favourable: int | None = None

    def learnt_state(self) -> Mapping[str, Any]:
        """Classes, prior and bins, and under ``network_`` each node's parents and
        table.
        """
        if not hasattr(self, "network_"):
            return {}
        parents = {name: " ".join(above) for name, above in self.network_.graph.parents.items()}
        return {
            **super().learnt_state(),
            "network_": {"parents": parents, "tables": dict(self.network_.tables)},
        }

    def _fit(self, matrix: Float32Array, codes: Int64Array, progress: Progress | None) -> None:
        features = range(matrix.shape[1]) if self.features is None else self.features
        if not len(features) or any(not 0 <= i < matrix.shape[1] for i in features):
            raise SettingError(
                f"features must name columns from 0 to {matrix.shape[1] - 1}, not {self.features}"
            )
        if self.bins < 2 or self.max_parents < 1 or not self.smoothing > 0:
            raise SettingError("bins is at least 2, max_parents at least 1 and smoothing above 0")
        self.columns_ = np.array(sorted(features))
        self.edges_ = [_edges(matrix[:, j], codes, self.bins) for j in self.columns_]
        self.typical_ = [
            typical_values(matrix[:, j], edges)
            for j, edges in zip(self.columns_, self.edges_, strict=True)
        ]
        shown = matrix[:, self.columns_]
        complete = ~np.isnan(shown).any(axis=1)
        levels = bin_codes(shown[complete], self.edges_)
        frame = pd.DataFrame(levels, columns=[f"x{j}" for j in self.columns_])
        frame[TARGET] = codes[complete]
        self._fit_tables(self._learn_structure(frame), frame)
        if progress:
            progress(1, 1)

    def _learn_structure(self, frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
        """Learn which nodes each node depends on, by hill climbing with BIC.

        Parameters
        ----------
        frame
            The bins of complete training people, one column a node.

        Returns
        -------
        The names of the parents of each node, in alphabetical order.
        """
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
        return {name: tuple(sorted(above)) for name, above in parents.items()}

    def _fit_tables(self, parents: dict[str, tuple[str, ...]], frame: pd.DataFrame) -> None:
        """Set ``network_``: tables from smoothed counts.

        Parameters
        ----------
        parents
            The names of the parents of each node.
        frame
            The bins of complete training people, one column a node.
        """
        sizes, tables = self._sizes, {}
        weights = sample_weights(self.class_weight, self.classes_[frame[TARGET].to_numpy()])
        for name, above in parents.items():
            shape = tuple(sizes[v] for v in (*above, name))
            cell = np.ravel_multi_index([frame[v].to_numpy() for v in (*above, name)], shape)
            rows = np.bincount(cell, weights, minlength=int(np.prod(shape))).reshape(shape)
            counts = rows + self.smoothing / shape[-1]
            tables[name] = counts / counts.sum(axis=-1, keepdims=True)
        self._assemble(parents, tables)

    @property
    def _sizes(self) -> dict[str, int]:
        """The number of levels of each node."""
        columns = zip(self.columns_, self.edges_, strict=True)
        return {f"x{j}": len(edges) + 1 for j, edges in columns} | {TARGET: len(self.classes_)}

    def _assemble(
        self, parents: dict[str, tuple[str, ...]], tables: dict[str, Float64Array]
    ) -> None:
        """Set ``network_`` from the parents and the table of each node."""
        levels = {
            name: tuple(str(k) for k in range(table.shape[-1])) for name, table in tables.items()
        }
        self.network_ = Network(Graph(parents), levels, tables, TARGET)

    def _answer(self, mask: BoolArray, known: Float32Array) -> Float64Array:
        """The probabilities of the outcome."""
        return self._posterior(mask, known, TARGET)

    def conditional(self, X: Float32Array, feature: int) -> tuple[Float32Array, Float64Array]:  # noqa: N803
        """The distribution of a feature given what else is known of each person.

        Parameters
        ----------
        X
            Encoded people, (people, features); NaN where a value is not known. What is known of the
            feature itself is left out.
        feature
            The position of the feature, a column of the network.

        Returns
        -------
        values
            One value for each bin of the feature, its median, (bins,).
        probabilities
            The exact probability of each bin, (people, bins).

        Raises
        ------
        SettingError
            If the feature is no column of the network.
        """
        self._check_fitted()
        if feature not in self.columns_:
            raise SettingError(
                f"column {feature} is not in the network, which is over {self.columns_.tolist()}"
            )
        matrix = self._check_rows(X, self.n_features_in_).copy()
        matrix[:, feature] = np.nan
        values = self.typical_[int(np.searchsorted(self.columns_, feature))]
        probabilities = np.empty((len(matrix), len(values)))
        for mask, people in by_mask(matrix):
            known = matrix[np.ix_(people, np.flatnonzero(mask))]
            probabilities[people] = self._posterior(mask, known, f"x{feature}")
        return values, probabilities

    def given(self, X: Float32Array) -> Draw:  # noqa: N803
        """What unknown features may be, with exact probabilities (see ``Sampler``).

        Parameters
        ----------
        X
            Encoded people, (people, features); NaN where a value is not known.

        Returns
        -------
        A function from the position of a feature to one value for each of its bins and their
        probabilities, both (people, bins).
        """

        def draw(feature: int) -> tuple[Float32Array, Float64Array]:
            values, probabilities = self.conditional(X, feature)
            return np.tile(values, (len(X), 1)), probabilities

        return draw

    def _posterior(self, mask: BoolArray, known: Float32Array, node: str) -> Float64Array:
        """Probabilities of a node; each combination of bins is worked out once.

        Parameters
        ----------
        mask
            Which features are known, (features,); those outside the network are ignored.
        known
            Their values, (people, known features).
        node
            The name of the node.

        Returns
        -------
        Probabilities of its levels, (people, levels).
        """
        columns = np.flatnonzero(mask)
        inside = np.flatnonzero(np.isin(columns, self.columns_))
        which = np.searchsorted(self.columns_, columns[inside])
        levels, case = distinct_cases(bin_codes(known[:, inside], [self.edges_[i] for i in which]))
        evidence = np.full((len(levels), len(self.columns_)), np.nan)
        evidence[:, which] = levels
        return self.network_.posterior(evidence, node)[case]

    def to_folder(self, folder: str | Path) -> None:
        """Write structure, tables and bins, as JSON and safetensors; no pickle.

        Parameters
        ----------
        folder
            A new folder, or one that holds a ``BayesNet``, which is replaced.
        """
        self._check_savable()
        arrays = {
            "t": self.network_.tables,
            "e": self.edges_,
            "v": self.typical_,
            "varies": self.varies_.astype(np.uint8),
            "columns": self.columns_,
            "classes": self.classes_,
            "prior": self.prior_,
        }
        parents = {name: list(above) for name, above in self.network_.graph.parents.items()}
        settings = {"params": self._settings(), "parents": parents, "width": self.n_features_in_}
        write_parts(folder, "BayesNet", settings, {NETWORK_FILE: save_arrays(arrays)})

    @classmethod
    def from_folder(cls, folder: str | Path | Folder) -> Self:
        """Read what ``to_folder`` wrote; the part is checked against its hash.

        Parameters
        ----------
        folder
            A folder on disk, or one that was read into memory.

        Raises
        ------
        UnreadableError
            If it holds something else, or is damaged: every table must have the shape that the bins
            and the structure give it.
        """
        with open_parts(folder, "BayesNet") as (settings, parts):
            arrays, width = load_arrays(parts[NETWORK_FILE], NETWORK_FILE), settings["width"]
            model = from_settings(cls, settings["params"], folder)
            expected = {
                "columns": ("iu", None),
                "varies": ("u", width),
                "classes": ("iufb", None),
                "prior": ("f", len(arrays["classes"])),
            }
            check_arrays(arrays, expected, NETWORK_FILE)
            model.classes_, model.prior_ = arrays["classes"], arrays["prior"]
            model.n_features_in_ = width
            model.varies_ = arrays["varies"].astype(bool)
            model.columns_ = arrays["columns"]
            model.edges_, model.typical_ = _read_bins(arrays, width)
            parents = {name: tuple(above) for name, above in settings["parents"].items()}
            sizes = model._sizes
            if set(parents) != set(sizes):
                raise UnreadableError(
                    f"{NETWORK_FILE} is damaged: its nodes are not those of its columns"
                )
            tables = {name: arrays[f"t.{name}"] for name in parents}
            shapes = {
                name: ("f", *(sizes[node] for node in (*above, name)))
                for name, above in parents.items()
            }
            check_arrays(tables, shapes, NETWORK_FILE)
            if any((table < 0).any() for table in tables.values()):
                raise UnreadableError(f"{NETWORK_FILE} is damaged: a probability is below zero")
            model._assemble(parents, tables)
        return model


def _read_bins(
    arrays: Mapping[str, AnyArray], width: int
) -> tuple[list[Float32Array], list[Float32Array]]:
    """The bins in the arrays of a saved network.

    Parameters
    ----------
    arrays
        The arrays by name.
    width
        The number of features.

    Returns
    -------
    The edges of each column, and the values that stand for its bins.

    Raises
    ------
    UnreadableError
        If columns or edges are not in ascending order, or a bin has no value.
    """
    columns = arrays["columns"]
    count = len(columns)
    check_arrays(arrays, {f"e.{i}": ("f", None) for i in range(count)}, NETWORK_FILE)
    edges = [arrays[f"e.{i}"] for i in range(count)]
    check_arrays(arrays, {f"v.{i}": ("f", len(e) + 1) for i, e in enumerate(edges)}, NETWORK_FILE)
    ascending = (np.diff(columns) > 0).all() and all((np.diff(e) > 0).all() for e in edges)
    if not (count and ascending and columns[0] >= 0 and columns[-1] < width):
        raise UnreadableError(
            f"{NETWORK_FILE} is damaged: columns and edges are in ascending order"
        )
    return edges, [arrays[f"v.{i}"] for i in range(count)]


def _pyagrum() -> Any:
    """pyAgrum, imported late. Its extension warns while it loads, and crashes where warnings are
    errors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module("pyagrum")
        except ImportError:
            raise MissingExtraError("BayesNet", "bn") from None


def _edges(column: Float32Array, codes: Int64Array, bins: int) -> Float32Array:
    """The thresholds between the bins of a column.

    Parameters
    ----------
    column
        Values, (rows,); NaN where one is not known.
    codes
        The class of each row, (rows,).
    bins
        The largest number of bins of a column with many values.

    Returns
    -------
    Ascending thresholds: between all values of a column of at most 16, else where a small decision
    tree splits it.
    """
    known = ~np.isnan(column)
    values = np.unique(column[known])
    if len(values) <= MAX_LEVELS:
        return values[1:]
    leaf = max(1, min(50, int(known.sum()) // (2 * bins)))
    tree = DecisionTreeClassifier(
        criterion="entropy", max_leaf_nodes=bins, min_samples_leaf=leaf, random_state=0
    )
    nodes = tree.fit(column[known, None], codes[known]).tree_
    return np.unique(nodes.threshold[nodes.feature >= 0]).astype(np.float32)


def bin_codes(rows: AnyArray, edges: Sequence[Float32Array]) -> Int64Array:
    """The bins of values.

    Parameters
    ----------
    rows
        Values, (rows, columns).
    edges
        For each column the thresholds between its bins, ascending: bin b holds values from edge
        b - 1 up to below edge b.

    Returns
    -------
    The position of the bin of each value in its column, (rows, columns); that of NaN has no
    meaning.

    Examples
    --------
    >>> bin_codes(np.array([[1.0, 9.0], [5.0, 2.0]]), [np.array([5.0]), np.array([3.0, 7.0])])
    array([[0, 2],
           [1, 0]])
    """
    codes = np.empty(rows.shape, dtype=np.int64)
    for column, thresholds in enumerate(edges):
        codes[:, column] = np.searchsorted(thresholds, rows[:, column], side="right")
    return codes


def typical_values(column: Float32Array, edges: Float32Array) -> Float32Array:
    """A value for each bin of a column, which stands for all values in it.

    Parameters
    ----------
    column
        Values, (rows,); NaN where one is not known.
    edges
        The thresholds between bins, ascending: bin b holds values from edge b - 1 up to below edge
        b.

    Returns
    -------
    The median of each bin, the upper one of two, (edges + 1,); of an empty bin, its lower edge.

    Examples
    --------
    >>> typical_values(np.array([1, 2, 3, 8, 9], "float32"), np.array([5, 20], "float32"))
    array([ 2.,  9., 20.], dtype=float32)
    """
    known = np.sort(column[~np.isnan(column)])
    bins = np.searchsorted(edges, known, side="right")
    members = [known[bins == b] for b in range(len(edges) + 1)]
    medians = [v[len(v) // 2] if len(v) else edges[max(b - 1, 0)] for b, v in enumerate(members)]
    return np.array(medians, dtype=np.float32)
