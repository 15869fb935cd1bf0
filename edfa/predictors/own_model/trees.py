"""The trees of a fitted model, as flat arrays: where they split, what they answer, and what they
answer from few facts.

Each library writes its trees in another way; ``read_trees`` brings them to one form, from public
dumps alone. A reading is a second opinion about the model, never its answer: the caller compares it
with the model on some rows (``TreeEnsemble.agrees``) before relying on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, Literal

import numpy as np
from scipy.special import expit, softmax

from edfa.errors import ColumnError
from edfa.typing import AnyArray, BoolArray, Float64Array, Int64Array, IntArray

__all__ = ["Link", "Tree", "TreeEnsemble", "read_trees", "right_from"]

Link = Literal["sigmoid", "softmax", "shares"]
"""How sums over trees become probabilities: log odds of the second class, one log chance a class,
or shares already.
"""

READERS = {
    ("xgboost", "XGBClassifier"): "read_xgboost",
    ("xgboost", "Booster"): "read_xgboost",
    ("lightgbm", "LGBMClassifier"): "read_lightgbm",
    ("lightgbm", "Booster"): "read_lightgbm",
    ("sklearn", "DecisionTreeClassifier"): "read_sklearn",
    ("sklearn", "RandomForestClassifier"): "read_sklearn",
    ("sklearn", "ExtraTreesClassifier"): "read_sklearn",
    ("catboost", "CatBoostClassifier"): "read_catboost",
}
"""Which module beside this one reads a class of a library; its function is called ``read``."""

BLOCK = 1_000_000  # nodes times people at once: a few megabytes
OVERFLOW = 2.0**128  # what would follow the largest 32-bit number


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree, as the readers hand it over. Node 0 is the root.

    Parameters
    ----------
    left, right
        (nodes,) the children of each node; -1 at a leaf.
    column
        (nodes,) the input column that a node looks at.
    threshold
        (nodes,) a number goes right if it is at least this one.
    missing_right
        (nodes,) whether a missing value goes right.
    cover
        (nodes,) how many training rows reached a node, by their weights; the libraries differ in
        which.
    value
        (nodes, outputs) what a leaf answers; at other nodes without meaning.
    categories
        For nodes that look at a category: the codes that go right. All others, unseen ones too, go
        left.
    output
        The class that a tree with one output speaks of.
    """

    left: AnyArray
    right: AnyArray
    column: AnyArray
    threshold: AnyArray
    missing_right: AnyArray
    cover: AnyArray
    value: AnyArray
    categories: Mapping[int, Sequence[int]] = field(default_factory=dict)
    output: int = 0


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """The trees of one model. Nodes of all trees stand in one row; a leaf is its own left and right
    child.

    Parameters
    ----------
    left, right, column, threshold, missing_right, cover, value
        As in ``Tree``, with children counted over all trees.
    category_set
        (nodes,) the row of ``listed`` that a node looks up; -1 where it compares a number.
    listed
        (sets, codes + 1) whether a code goes right; the last column stands for all codes beyond and
        is False.
    root, output
        (trees,) the first node of each tree, and the class it speaks of (0 if each leaf has an
        answer for all classes).
    columns
        How many columns the model's input has.
    link, base, scale
        Probabilities are ``link(base + scale * sum over trees)``; ``base`` has one number for each
        output.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> rows = np.array([[0.0, 5.0], [0.0, 6.0], [1.0, 5.0], [1.0, 6.0]])
    >>> trees = read_trees(DecisionTreeClassifier().fit(rows, [0, 0, 0, 1]))
    >>> trees.predict_proba(np.array([[1.0, 6.0]])).tolist()
    [[0.0, 1.0]]
    >>> trees.marginalise(np.array([False, True]), np.array([[6.0], [5.0]])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """

    left: IntArray
    right: IntArray
    column: IntArray
    threshold: Float64Array
    missing_right: BoolArray
    category_set: IntArray
    listed: BoolArray
    cover: Float64Array
    value: Float64Array
    root: IntArray
    output: IntArray
    columns: int
    link: Link
    base: Float64Array
    scale: float = 1.0

    @classmethod
    def of(
        cls, trees: Sequence[Tree], columns: int, link: Link, base: Any, scale: float = 1.0
    ) -> "TreeEnsemble":
        """Put trees, at least one, into one row of nodes."""
        size = np.array([len(tree.left) for tree in trees])
        root = np.cumsum(size) - size
        own = np.arange(size.sum())
        left, right = (_join(trees, name, np.intp) for name in ("left", "right"))
        leaf, first = left < 0, np.repeat(root, size)
        category_set, listed = _category_sets(trees, root, len(own))
        return cls(
            left=np.where(leaf, own, left + first),
            right=np.where(leaf, own, right + first),
            column=np.where(leaf, 0, _join(trees, "column", np.intp)),
            threshold=_join(trees, "threshold", np.float64),
            missing_right=_join(trees, "missing_right", np.bool_),
            category_set=category_set,
            listed=listed,
            cover=_join(trees, "cover", np.float64),
            value=_join(trees, "value", np.float64),
            root=root,
            output=np.array([tree.output for tree in trees], dtype=np.intp),
            columns=columns,
            link=link,
            base=np.atleast_1d(np.asarray(base, dtype=np.float64)),
            scale=scale,
        )

    @cached_property
    def levels(self) -> tuple[IntArray, ...]:
        """The nodes that split, by their distance from the root: (1st, 2nd, ...) arrays of
        nodes.
        """
        levels, level = [], self.root
        while len(level := level[self.left[level] != level]):
            levels.append(level)
            level = np.concatenate([self.left[level], self.right[level]])
        return tuple(levels)

    @cached_property
    def right_share(self) -> Float64Array:
        """(nodes,) the share of a node's training rows that went right; one half where there were
        none.
        """
        right, both = self.cover[self.right], self.cover[self.left] + self.cover[self.right]
        return np.where(both > 0, right / np.where(both > 0, both, 1), 0.5)

    @cached_property
    def mean_value(self) -> Float64Array:
        """(nodes, outputs) the mean of the leaves below each node, weighted by their share of
        training rows.
        """
        mean = self.value.copy()
        for level in reversed(self.levels):
            mean[level] = _mix(
                mean[self.left[level]], mean[self.right[level]], self.right_share[level]
            )
        return mean

    @cached_property
    def categorical(self) -> frozenset[int]:
        """The input columns that at least one tree looks at as a category."""
        return frozenset(self.column[self.category_set >= 0].tolist())

    def thresholds(self, column: int) -> Float64Array:
        """The values at which some tree splits an input column, ascending and distinct.

        A number ``x`` lies in the cell ``np.searchsorted(thresholds, x, side="right")``; numbers in
        one cell are the same to every tree. A missing value lies in none of these cells; splits
        that only part it from numbers are left out. A column of categories has no thresholds:
        ``ColumnError`` (see ``categorical``).
        """
        if not 0 <= column < self.columns:
            raise ColumnError(f"the model has {self.columns} input columns, no column {column}")
        if column in self.categorical:
            raise ColumnError(
                f"input column {column} of the model holds categories, which have no thresholds"
            )
        inner = np.concatenate([np.empty(0, dtype=np.intp), *self.levels])
        cuts = np.unique(self.threshold[inner[self.column[inner] == column]])
        return np.asarray(cuts[np.isfinite(cuts)])

    def predict_proba(self, matrix: Float64Array) -> Float64Array:
        """Probabilities (people, classes) from the model's own input.

        Parameters
        ----------
        matrix
            (people, columns) numbers as they are, categories as their codes, NaN where a value is
            truly missing.
        """
        matrix = self._checked(matrix, self.columns)
        step = max(1, BLOCK // len(self.root))
        parts = [self._walk(matrix[i : i + step]) for i in range(0, len(matrix), step)]
        return self._probabilities(parts)

    def marginalise(self, mask: BoolArray, known: Float64Array) -> Float64Array:
        """Probabilities (people, classes) where only some columns are known: path-dependent, as
        TreeSHAP calls it.

        At a split on a column that is not known both ways are followed, weighted by the training
        rows that went each way. This is no conditional mean: what is known tells nothing about what
        is not. Boosted trees average log odds.

        Parameters
        ----------
        mask
            (columns,) which columns are known.
        known
            (people, known columns) their values, as in ``predict_proba``; NaN is a value that is
            known to be missing.
        """
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != (self.columns,):
            raise ColumnError(
                f"a mask of the model's {self.columns} input columns is due, not one of "
                f"shape {mask.shape}"
            )
        known = self._checked(known, int(mask.sum()))
        if mask.all():
            return self.predict_proba(known)  # the same bits, sooner
        collapsed, column = self._collapse(mask), (np.cumsum(mask) - 1)[self.column]
        step, values = max(1, BLOCK // collapsed.rows), np.ascontiguousarray(known.T)
        parts = [
            self._climb(collapsed, column, values[:, i : i + step])
            for i in range(0, len(known), step)
        ]
        return self._probabilities(parts)

    def agrees(self, matrix: Float64Array, probabilities: Float64Array) -> float:
        """The largest difference between this reading and the model's own answers.

        Infinite if there is nothing to compare, or if the numbers of people or classes differ.

        Parameters
        ----------
        matrix, probabilities
            (people, columns) what the model was asked, and (people, classes) what it answered.
        """
        own, given = self.predict_proba(matrix), np.asarray(probabilities)
        return float(np.abs(own - given).max()) if own.size and own.shape == given.shape else np.inf

    def _checked(self, matrix: Float64Array, columns: int) -> Float64Array:
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != columns:
            raise ColumnError(
                f"a matrix of {columns} columns is due, not one of shape {matrix.shape}"
            )
        return matrix

    def _goes_right(self, node: IntArray, value: Float64Array) -> BoolArray:
        """Which way ``value`` (nodes, people) goes at each ``node`` (nodes,)."""
        right: BoolArray = value >= self.threshold[node][:, None]
        which = np.flatnonzero(self.category_set[node] >= 0)
        if len(which):
            beyond = self.listed.shape[1] - 1
            codes = np.where(
                (value[which] >= 0) & (value[which] < beyond), value[which], beyond
            ).astype(np.intp)
            right[which] = self.listed[self.category_set[node[which]][:, None], codes]
        missing = np.isnan(value)
        return (
            np.where(missing, self.missing_right[node][:, None], right) if missing.any() else right
        )

    def _walk(self, matrix: Float64Array) -> Float64Array:
        """Sums over trees (outputs, people): all people go down all trees at once, one level at a
        time.
        """
        people = len(matrix)
        node = np.repeat(self.root, people)
        person = np.tile(np.arange(people), len(self.root))
        going = np.arange(len(node))
        while len(going := going[self.left[node[going]] != node[going]]):
            here = node[going]
            right = self._goes_right(here, matrix[person[going], self.column[here]][:, None])[:, 0]
            node[going] = np.where(right, self.right[here], self.left[here])
        leaf = node.reshape(len(self.root), people)
        return self._sum([self.value[:, k][leaf] for k in range(self.value.shape[1])])

    def _collapse(self, mask: BoolArray) -> "_Collapsed":
        """What is left of the trees when only the columns in ``mask`` (columns,) can decide a
        split.
        """
        live = mask[self.column] & (
            self.left != np.arange(len(self.left))
        )  # a known split at the node or below it
        for level in reversed(self.levels):
            live[level] |= live[self.left[level]] | live[self.right[level]]
        kept = live.copy()
        kept[self.root] = kept[self.left[live]] = kept[self.right[live]] = True
        levels = [level[live[level]] for level in self.levels]
        known = [mask[self.column[level]] for level in levels]
        return _Collapsed(
            row=np.cumsum(kept) - 1,
            fixed=np.flatnonzero(kept & ~live),
            levels=tuple(
                (level[k], level[~k]) for level, k in zip(levels, known, strict=True) if len(level)
            ),
            rows=int(kept.sum()),
        )

    def _climb(
        self, collapsed: "_Collapsed", column: IntArray, known: Float64Array
    ) -> Float64Array:
        """Sums over trees (outputs, people): what each node answers each person, from the leaves up
        to the roots.

        ``known`` is (known columns, people), ``column`` (nodes,) the row of it that a node looks
        at.
        """
        row, left, right = collapsed.row, collapsed.row[self.left], collapsed.row[self.right]
        answers = [np.empty((collapsed.rows, known.shape[1])) for _ in range(self.value.shape[1])]
        for k, answer in enumerate(answers):
            answer[row[collapsed.fixed]] = self.mean_value[collapsed.fixed, k, None]
        for decided, averaged in reversed(collapsed.levels):
            goes_right = self._goes_right(decided, known[column[decided]])
            for a in answers:
                a[row[decided]] = np.where(goes_right, a[right[decided]], a[left[decided]])
                a[row[averaged]] = _mix(
                    a[left[averaged]], a[right[averaged]], self.right_share[averaged]
                )
        return self._sum([answer[row[self.root]] for answer in answers])

    def _sum(self, values: Sequence[Float64Array]) -> Float64Array:
        """Sums over trees (outputs, people) of ``values``: for each output of a leaf, (trees,
        people).

        Trees are added one after the other, as the libraries do, so that a person's bits do not
        depend on the batch.
        """
        sums = np.zeros((len(self.base), values[0].shape[1]))
        if len(values) > 1:
            for output, answers in enumerate(values):
                for answer in answers:
                    sums[output] += answer
        else:
            for output, answer in zip(self.output.tolist(), values[0], strict=True):
                sums[output] += answer
        return sums

    def _probabilities(self, sums: Sequence[Float64Array]) -> Float64Array:
        """Probabilities (people, classes) from parts of the sums over trees, each (outputs, people
        of the part).
        """
        total = np.concatenate([np.empty((len(self.base), 0)), *sums], axis=1).T
        margins = self.base + self.scale * total
        if self.link == "sigmoid":
            return np.concatenate([expit(-margins), expit(margins)], axis=1)
        return np.asarray(softmax(margins, axis=1)) if self.link == "softmax" else margins


@dataclass(frozen=True, eq=False)
class _Collapsed:
    """The nodes that matter for one mask.

    Parameters
    ----------
    row
        (nodes,) where the answers of a node that is kept are written; without meaning for the
        others.
    fixed
        Kept nodes that answer everybody the same: no known split is at or below them.
    levels
        By distance from the root: nodes whose split is decided by a known column, and nodes that
        average both ways.
    rows
        How many nodes are kept.
    """

    row: IntArray
    fixed: IntArray
    levels: tuple[tuple[IntArray, IntArray], ...]
    rows: int


def read_trees(model: Any) -> TreeEnsemble | None:
    """The trees of a fitted classifier, or None if they cannot be read from what its library
    publishes.

    Read are XGBoost's ``XGBClassifier`` and ``Booster``, LightGBM's ``LGBMClassifier`` and
    ``Booster``, scikit-learn's ``DecisionTreeClassifier``, ``RandomForestClassifier`` and
    ``ExtraTreesClassifier``, and CatBoost's ``CatBoostClassifier`` where no category is used. Not
    read are a Pipeline (hand over its last step), models that treat a number as missing, linear
    models in leaves, and whatever is not made to classify.
    """
    for kind in type(model).__mro__:
        reader = READERS.get((kind.__module__.partition(".")[0], kind.__name__))
        if reader:
            trees: TreeEnsemble | None = import_module(f"edfa.predictors.own_model.{reader}").read(
                model
            )
            return trees
    return None


def right_from(threshold: AnyArray, *, equal_goes_right: bool, single: bool) -> Float64Array:
    """The smallest 64-bit numbers that a library sends right, for its own thresholds.

    Parameters
    ----------
    threshold
        (nodes,) the library's thresholds.
    equal_goes_right
        Whether the library sends right what equals the threshold (``<`` goes left), or left (``<=``
        goes left).
    single
        Whether the library rounds values to 32 bits before it compares them.

    Examples
    --------
    >>> first = right_from(np.array([0.5]), equal_goes_right=True, single=True)[0]
    >>> np.float32(first) >= 0.5, np.float32(np.nextafter(first, -1)) >= 0.5, first < 0.5
    (np.True_, np.False_, np.True_)
    """
    limit = np.asarray(threshold, dtype=np.float64)
    if not single:
        return limit if equal_goes_right else np.nextafter(limit, np.inf)
    with np.errstate(over="ignore"):
        first = limit.astype(np.float32)  # below: the smallest 32-bit number that goes right
        too_small = first < limit if equal_goes_right else first <= limit
        first = np.where(too_small, np.nextafter(first, np.float32(np.inf)), first)
        below = np.nextafter(first, np.float32(-np.inf))
        middle = (
            np.clip(first, -OVERFLOW, OVERFLOW, dtype=float)
            + np.clip(below, -OVERFLOW, OVERFLOW, dtype=float)
        ) / 2
        rounded = np.where(middle.astype(np.float32) >= first, middle, np.nextafter(middle, np.inf))
    return np.where(np.isfinite(limit), rounded, limit)


def _join(trees: Sequence[Tree], name: str, kind: Any) -> AnyArray:
    """One array of all trees' nodes."""
    return np.concatenate([np.asarray(getattr(tree, name), dtype=kind) for tree in trees])


def _category_sets(
    trees: Sequence[Tree], root: Int64Array, nodes: int
) -> tuple[IntArray, BoolArray]:
    """``category_set`` and ``listed`` of ``TreeEnsemble``."""
    sets = [
        (first + node, codes)
        for tree, first in zip(trees, root, strict=True)
        for node, codes in tree.categories.items()
    ]
    category_set = np.full(nodes, -1, dtype=np.intp)
    listed = np.zeros(
        (len(sets), 2 + max((max(codes, default=-1) for _, codes in sets), default=-1)), dtype=bool
    )
    for number, (node, codes) in enumerate(sets):
        category_set[node] = number
        listed[number, np.asarray(codes, dtype=np.intp)] = True
    return category_set, listed


def _mix(left: Float64Array, right: Float64Array, share: Float64Array) -> Float64Array:
    """The mean of two rows of answers (nodes, any), where ``share`` (nodes,) is the weight of the
    right one.
    """
    return np.asarray(left * (1 - share[:, None]) + right * share[:, None])
