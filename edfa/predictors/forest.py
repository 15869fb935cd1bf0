"""What boosted trees decide when one thing changes at a time, from their leaves instead of through the trees.

A leaf is reached by everybody whose values all lie between its bounds. When one column changes, whether the others lie
between theirs stays as it is: that is worked out once a person, and every value tried of the column costs one product
of matrices, several times less than asking the trees. Sums come out in another order than the trees', so that what
lies too near to the border is left to them.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from edfa.typing import AnyArray, BoolArray, Float32Array, IntArray

__all__ = ["Forest"]

BLOCK = 500_000  # people times leaves at once: few enough to stay in a processor's cache


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of one output as their leaves: ``value``, and of every column the bounds ``low`` (in) and ``high`` (out).

    ``tree`` is the tree that each leaf is of, ``base`` what all sums begin with, ``cuts`` every bound of each column in
    order.

    Examples
    --------
    >>> import xgboost as xgb
    >>> rows = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    >>> booster = xgb.train({"objective": "binary:logistic"}, xgb.DMatrix(rows, rows.sum(axis=1) > 0), 5)
    >>> told = Forest.of(booster.save_raw("json")).lean(rows[:3], np.array([1, 1]), np.array([-2.0, 2.0], "float32"))
    >>> told.shape, bool((told[:, 0] < told[:, 1]).all())
    ((3, 2), True)
    """

    value: Float32Array
    low: Float32Array
    high: Float32Array
    tree: IntArray
    base: float
    cuts: tuple[Float32Array, ...]

    @classmethod
    def of(cls, model: bytes | bytearray) -> "Forest":
        """From a model as XGBoost writes it (JSON)."""
        learner = json.loads(model)["learner"]
        about, trees = learner["learner_model_param"], learner["gradient_booster"]["model"]["trees"]
        size = np.array([len(tree["left_children"]) for tree in trees])
        root = np.cumsum(size) - size
        tree = np.repeat(np.arange(len(trees)), size)
        left, right = (_join(trees, name, np.intp) for name in ("left_children", "right_children"))
        column, cut = _join(trees, "split_indices", np.intp), _join(trees, "split_conditions", np.float32)
        inner = left >= 0
        low = np.full((int(about["num_feature"]), len(left)), -np.inf, dtype=np.float32)
        high, level = -low, root
        while len(level := level[inner[level]]):
            below, above = left[level] + root[tree[level]], right[level] + root[tree[level]]
            for child in (below, above):
                low[:, child], high[:, child] = low[:, level], high[:, level]
            high[column[level], below] = np.minimum(high[column[level], below], cut[level])
            low[column[level], above] = np.maximum(low[column[level], above], cut[level])
            level = np.concatenate([below, above])
        cuts = tuple(np.unique(cut[inner & (column == j)]) for j in range(len(low)))
        # A leaf keeps its value where others keep their cut.
        return cls(cut[~inner], low[:, ~inner], high[:, ~inner], tree[~inner], _base(about), cuts)

    @cached_property
    def slack(self) -> float:
        """How far apart two sums of the same leaves can be for being added up in another order, at most."""
        largest = np.zeros(int(self.tree.max(initial=-1)) + 1)
        np.maximum.at(largest, self.tree, np.abs(self.value))
        return float(4 * len(largest) * np.finfo(np.float32).eps * (largest.sum() + abs(self.base) + 1))

    def lean(self, known: Float32Array, column: IntArray, value: Float32Array) -> Float32Array:
        """The sum of every person's leaves (log odds), with one column given one value, for every such try in turn."""
        found = np.empty((len(known), len(column)), dtype=np.float32)
        outside = [self._outside(j, known[:, j]) for j in range(known.shape[1])]
        tries = [(j, np.flatnonzero(column == j)) for j in np.unique(column).tolist()]
        worth = [(self._inside(j, value[of]) * self.value).T for j, of in tries]
        step = max(1, BLOCK // len(self.value))
        for first in range(0, len(known), step):
            part = slice(first, first + step)
            wrong = np.zeros((len(known[part]), len(self.value)), dtype=np.uint8)  # columns that keep one out of a leaf
            for out, place in outside:
                wrong += out[place[part]]
            for (j, of), gained in zip(tries, worth, strict=True):
                out, place = outside[j]
                elsewhere = (wrong == out[place[part]]).astype(np.float32)  # nothing keeps them out but this column
                found[part, of] = elsewhere @ gained
        return found + np.float32(self.base)

    def _outside(self, column: int, values: Float32Array) -> tuple[npt.NDArray[np.uint8], IntArray]:
        """Which leaves the distinct values of a column are kept out of, and which of these each value is."""
        distinct, place = np.unique(values, return_inverse=True)
        return (~self._inside(column, distinct)).view(np.uint8), place.reshape(-1)

    def _inside(self, column: int, values: Float32Array) -> BoolArray:
        """Which values lie between a leaf's bounds (values, leaves)."""
        return np.asarray((values[:, None] >= self.low[column]) & (values[:, None] < self.high[column]))


def _join(trees: list[Any], name: str, kind: type) -> AnyArray:
    return np.concatenate([np.asarray(tree[name], dtype=kind) for tree in trees])


def _base(about: dict[str, str]) -> float:
    """The log odds that everybody begins with: of a number alone or, in newer models, of a list with one an output."""
    chance = np.clip(float(about["base_score"].strip("[]").split(",")[0]), 1e-9, 1 - 1e-9)
    return float(np.log(chance / (1 - chance)))
