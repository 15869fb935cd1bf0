"""What boosted trees decide when one value changes at a time, from sums over leaves instead of
walks down the trees.

A leaf is reached by everybody whose values all lie between its bounds. When one column changes,
whether the others lie between theirs stays as it is: that is worked out once for each person, and
every candidate value of the column costs one product of matrices, several times less than a
prediction by the trees. Sums come out in another order than the trees', so that what lies too near
to the decision threshold must be left to them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edfa.predictors.booster_file import base_scores, decode, join_trees, trees_of
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Forest", "class_probabilities"]

BLOCK = 500_000  # people times leaves at once: few enough to stay in a processor's cache


@dataclass(frozen=True, eq=False)
class Forest:
    """The leaves of trees with one output.

    Parameters
    ----------
    value
        (leaves,) what each leaf adds to the log odds.
    low, high
        (columns, leaves) the values that reach a leaf: from ``low`` (included) to ``high`` (not
        included).
    tree
        (leaves,) the tree of each leaf.
    base
        The log odds that all sums begin with.
    thresholds
        For each column, all values at which a tree splits it, in ascending order.

    Examples
    --------
    >>> import xgboost as xgb
    >>> rows = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    >>> booster = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(rows,
    ...     rows.sum(axis=1) > 0), 5)
    >>> forest = Forest.of(booster.save_raw("json"))
    >>> margins = forest.margins(rows[:3], np.array([1, 1]), np.array([-2.0, 2.0], "float32"))
    >>> margins.shape, bool((margins[:, 0] < margins[:, 1]).all())
    ((3, 2), True)
    """

    value: Float32Array
    low: Float32Array
    high: Float32Array
    tree: IntArray
    base: float
    thresholds: tuple[Float32Array, ...]

    @classmethod
    def of(cls, model: bytes | bytearray) -> "Forest":
        """Read the leaves of a booster with one output, as XGBoost wrote it (JSON or UBJSON)."""
        learner = decode(bytes(model))["learner"]
        trees = trees_of(learner)["trees"]
        features = int(learner["learner_model_param"]["num_feature"])
        probability = np.clip(base_scores(learner)[0], 1e-9, 1 - 1e-9)
        size = np.array([len(tree["left_children"]) for tree in trees])
        root = np.cumsum(size) - size
        tree = np.repeat(np.arange(len(trees)), size)
        left, right, column = (
            join_trees(trees, name).astype(np.intp)
            for name in ("left_children", "right_children", "split_indices")
        )
        split = join_trees(trees, "split_conditions")
        inner = left >= 0
        low = np.full((features, len(left)), -np.inf, dtype=np.float32)
        high, level = -low, root
        while len(level := level[inner[level]]):
            below, above = left[level] + root[tree[level]], right[level] + root[tree[level]]
            for child in (below, above):
                low[:, child], high[:, child] = low[:, level], high[:, level]
            high[column[level], below] = np.minimum(high[column[level], below], split[level])
            low[column[level], above] = np.maximum(low[column[level], above], split[level])
            level = np.concatenate([below, above])
        finite = inner & np.isfinite(split)  # an infinite split parts known from unknown values
        thresholds = tuple(np.unique(split[finite & (column == j)]) for j in range(len(low)))
        # XGBoost stores leaf values in the array of split conditions.
        return cls(
            split[~inner],
            low[:, ~inner],
            high[:, ~inner],
            tree[~inner],
            float(np.log(probability / (1 - probability))),
            thresholds,
        )

    @cached_property
    def tolerance(self) -> float:
        """The largest difference between two sums of the same leaves in different orders."""
        largest = np.zeros(int(self.tree.max(initial=-1)) + 1)
        np.maximum.at(largest, self.tree, np.abs(self.value))
        return float(
            4 * len(largest) * np.finfo(np.float32).eps * (largest.sum() + abs(self.base) + 1)
        )

    def margins(self, known: Float32Array, column: IntArray, value: Float32Array) -> Float32Array:
        """The log odds of each person with one value replaced, for each of several candidate
        values.

        Parameters
        ----------
        known
            (people, columns) the values of each person.
        column, value
            (candidates,) which column is replaced, and by which value.

        Returns
        -------
        (people, candidates).
        """
        margins = np.empty((len(known), len(column)), dtype=np.float32)
        outside = [self._outside(j, known[:, j]) for j in range(known.shape[1])]
        candidates = [(j, np.flatnonzero(column == j)) for j in np.unique(column).tolist()]
        leaf_values = [(self._inside(j, value[which]) * self.value).T for j, which in candidates]
        step = max(1, BLOCK // len(self.value))
        for first in range(0, len(known), step):
            part = slice(first, first + step)
            misses = np.zeros(
                (len(known[part]), len(self.value)), dtype=np.uint8
            )  # columns that keep one out of a leaf
            for out, row in outside:
                misses += out[row[part]]
            for (j, which), values in zip(candidates, leaf_values, strict=True):
                out, row = outside[j]
                reachable = (misses == out[row[part]]).astype(
                    np.float32
                )  # nothing keeps them out but this column
                margins[part, which] = reachable @ values
        return margins + np.float32(self.base)

    def _outside(self, column: int, values: Float32Array) -> tuple[npt.NDArray[np.uint8], IntArray]:
        """Which leaves the distinct values of a column do not reach (distinct, leaves), and which
        of these each is.
        """
        distinct, row = np.unique(values, return_inverse=True)
        return (~self._inside(column, distinct)).view(np.uint8), row.reshape(-1)

    def _inside(self, column: int, values: Float32Array) -> BoolArray:
        """Which values lie between a leaf's bounds (values, leaves)."""
        return np.asarray(
            (values[:, None] >= self.low[column]) & (values[:, None] < self.high[column])
        )


def class_probabilities(predictions: Any) -> Float64Array:
    """XGBoost's predictions as probabilities (people, classes) that add up to one."""
    predicted = np.asarray(predictions)
    if predicted.ndim == 2:
        return np.asarray(predicted / predicted.sum(axis=1, keepdims=True, dtype=float))
    probabilities = np.empty((len(predicted), 2))
    probabilities[:, 1] = predicted
    np.subtract(1, probabilities[:, 1], out=probabilities[:, 0])
    return probabilities
