"""One booster of XGBoost: trained with early stopping, read from a file and written to one.

``train_booster`` trains it, ``load_boosters`` reads what was written, ``cached_booster`` does
whichever is due, and ``merge_boosters`` makes one of several. ``SubsetXGB`` and ``Committee`` are
made of these. ``Forest`` has the leaves of trees, for many decisions at once.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xgboost as xgb
from sklearn.utils import gen_batches

from edfa.artifacts import readable
from edfa.errors import UnreadableError
from edfa.predictors.base import sample_weights
from edfa.predictors.booster_file import (
    OBJECTIVES,
    BoosterFile,
    base_scores,
    check_boosters,
    decode,
    join_trees,
    trees_of,
)
from edfa.reading import MEGABYTE, read_bytes
from edfa.typing import BoolArray, Float32Array, Int64Array, IntArray
from edfa.writing import atomic_file

FIXED = {
    "tree_method": "hist",
    "subsample": 0.9,
    "nthread": 1,
    "verbosity": 0,
}  # parameters of every booster
PATIENCE = 20  # trees that may follow the best one
CACHED_LIMIT = 1024 * MEGABYTE
HASH_SIZE = 32  # bytes of a SHA-256
UNCHECKED = 50  # trees at most, where no row is held out to stop by
# rows on which merged boosters are compared with themselves apart, and leaves with their trees
COMPARED_ROWS = 64
# people times leaves at once: few enough to stay in a processor's cache
LEAF_PATHS_AT_ONCE = 500_000


class TreeSettings(NamedTuple):
    """How trees are learnt.

    Parameters
    ----------
    trees
        The largest number of trees.
    depth
        The largest depth of a tree.
    rate
        The learning rate.
    seed
        Of XGBoost's own draws.
    signs
        The direction of each column, one of -1, 0 and 1; empty: all are free.
    columns
        The share of the columns that each tree may use.
    """

    trees: int = 300
    depth: int = 4
    rate: float = 0.1
    seed: int = 0
    signs: Sequence[int] = ()
    columns: float = 1.0


@dataclass(frozen=True, eq=False)
class Forest:
    """The leaves of trees with one output: what the trees decide when one value changes at a time,
    from sums over leaves instead of walks down the trees.

    A leaf is reached by everybody whose values all lie between its bounds. When one column changes,
    whether the others lie between theirs stays as it is: that is worked out once for each person,
    and every candidate value of the column costs one product of matrices, several times less than a
    prediction by the trees. Sums come out in another order than the trees', so that what lies too
    near to the decision threshold must be left to them.

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
        step = max(1, LEAF_PATHS_AT_ONCE // len(self.value))
        for part in gen_batches(len(known), step):
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


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees that are trained, and never changed again.

    Parameters
    ----------
    booster
        The trees, as XGBoost asks them.
    read
        The UBJSON that they were read from; None: they were trained here.
    """

    booster: xgb.Booster
    read: bytes | None = None

    @property
    def content(self) -> bytes:
        """As UBJSON: what they were read from, whichever XGBoost wrote that, else what this one
        writes.
        """
        return self.read or bytes(self.booster.save_raw("ubj"))

    @cached_property
    def forest(self) -> Forest:
        """The leaves, read once; for trees with one output."""
        return Forest.of(self.booster.save_raw("json"))

    @cached_property
    def forest_agrees(self) -> bool:
        """Whether the forest gives the booster's margins: XGBoost may change what it writes.

        It is tried on rows of values at which the trees split, so that many leaves are reached.
        """
        random = np.random.default_rng(0)
        columns = [
            random.choice(t, COMPARED_ROWS) if len(t) else np.zeros(COMPARED_ROWS)
            for t in self.forest.thresholds
        ]
        rows, column = np.stack(columns, axis=1).astype(np.float32), np.zeros(1, dtype=np.intp)
        rows[:, 0] = rows[0, 0]
        margins = self.forest.margins(rows, column, rows[0, :1])[:, 0]
        difference = np.abs(margins - self.booster.inplace_predict(rows, predict_type="margin"))
        return bool(difference.max() <= self.forest.tolerance)

    def __reduce__(self) -> tuple[Any, ...]:
        """What is sent to another process reads the leaves again."""
        return type(self), (self.booster, self.read)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of ``content``, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


def weighted_rows(model: Any, shown: Float32Array, codes: Int64Array) -> xgb.DMatrix:
    """Rows for ``train_booster``, weighted as a model weighs its classes.

    Parameters
    ----------
    model
        A fitted model; without a setting ``class_weight`` all rows count the same.
    shown
        The columns to learn from, (rows, columns).
    codes
        The position of each row's class in the model's ``classes_``, (rows,).
    """
    weights = sample_weights(getattr(model, "class_weight", None), model.classes_[codes])
    return xgb.DMatrix(np.ascontiguousarray(shown), codes, weight=weights, nthread=1)


def train_booster(
    data: xgb.DMatrix, check: xgb.DMatrix | None, classes: int, settings: TreeSettings
) -> xgb.Booster:
    """Boosted trees, up to the one after which the held-out rows are predicted best.

    Parameters
    ----------
    data
        The rows to learn from, with their labels (class codes, or probabilities of the second
        class).
    check
        Rows to stop by, with their labels; None: the number of trees is 50, or less if the settings
        say so.
    classes
        The number of classes: two have one output, more have one each.
    settings
        How the trees are learnt.

    Returns
    -------
    The booster, without the trees after the best one.
    """
    several = classes > 2
    parameters: dict[str, Any] = FIXED | {
        "max_depth": settings.depth,
        "eta": settings.rate,
        "seed": settings.seed,
        "objective": OBJECTIVES[several],
        "eval_metric": "mlogloss" if several else "logloss",
    }
    if several:
        parameters["num_class"] = classes
    if settings.columns < 1:
        parameters["colsample_bytree"] = settings.columns
    if settings.signs:
        parameters["monotone_constraints"] = f"({','.join(map(str, settings.signs))})"
    if check is None:
        rounds = min(settings.trees, UNCHECKED)
        return xgb.train(parameters, data, num_boost_round=rounds, verbose_eval=False)
    booster = xgb.train(
        parameters,
        data,
        num_boost_round=settings.trees,
        evals=[(check, "check")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    return booster[: booster.best_iteration + 1]


def load_boosters(files: Sequence[BoosterFile]) -> list[Trees]:
    """Read boosters that this package wrote.

    Parameters
    ----------
    files
        The boosters, each with the numbers of features and classes that it must have.

    Returns
    -------
    The trees, each asked with one thread.

    Raises
    ------
    UnreadableError
        For a file that XGBoost cannot have written for such a model; XGBoost reads none of them
        then.
    """
    check_boosters(files)
    loaded = []
    for file in files:
        booster = xgb.Booster({"nthread": 1})
        with readable(file.name):
            booster.load_model(bytearray(file.content))
        loaded.append(Trees(booster, file.content))
    return loaded


def merge_boosters(boosters: Sequence[xgb.Booster]) -> xgb.Booster | None:
    """One booster that answers what several boosters of two classes answer: it saves calls.

    The trees of each become those of one of its outputs, and the answers are the same to the bit,
    which is tried on some random rows.

    Parameters
    ----------
    boosters
        Boosters of the same columns.

    Returns
    -------
    A booster that answers (n, boosters). None where the answers are not the same, the boosters are
    of several classes, or XGBoost is too old to read it.
    """
    written = [json.loads(booster.save_raw("json")) for booster in boosters]
    learners = [part["learner"] for part in written]
    if any(learner["objective"]["name"] != "binary:logistic" for learner in learners):
        return None
    models = [trees_of(learner) for learner in learners]
    trees = [tree for model in models for tree in model["trees"]]
    sizes = [len(model["trees"]) for model in models]
    models[0] |= {
        "trees": [tree | {"id": number} for number, tree in enumerate(trees)],
        "tree_info": np.repeat(np.arange(len(models)), sizes).tolist(),
        "iteration_indptr": [0, len(trees)],
        "gbtree_model_param": models[0]["gbtree_model_param"] | {"num_trees": str(len(trees))},
    }
    parameters = [learner["learner_model_param"] for learner in learners]
    scores = [part["base_score"].strip("[]") for part in parameters]
    parameters[0] |= {"num_target": str(len(models)), "base_score": f"[{','.join(scores)}]"}
    merged = xgb.Booster({"nthread": 1})
    try:
        merged.load_model(bytearray(json.dumps(written[0]).encode()))
    except xgb.core.XGBoostError:
        return None
    size = COMPARED_ROWS, boosters[0].num_features()
    rows = np.random.default_rng(0).normal(scale=2, size=size).astype(np.float32)
    apart = np.stack([booster.inplace_predict(rows) for booster in boosters], axis=1)
    return merged if np.array_equal(merged.inplace_predict(rows), apart) else None


def cached_booster(
    path: Path, key: bytes, shape: tuple[int, int], train: Callable[[], xgb.Booster]
) -> xgb.Booster:
    """The booster in a file of a cache, or one that is trained now and written there.

    A file begins with a hash of the key and of the booster that follows. Where something that is no
    file has the name, nothing is written: a cache is only there to save time.

    Parameters
    ----------
    path
        The file.
    key
        What decides the booster; a file for another key is written over.
    shape
        The numbers of its features and classes.
    train
        Trains the booster, where there is no whole file.
    """
    try:
        content = read_bytes(path, CACHED_LIMIT)
        written = content[HASH_SIZE:]
        if content[:HASH_SIZE] == _seal(key, written):
            return load_boosters([BoosterFile(path.name, written, *shape)])[0].booster
    except UnreadableError:
        pass  # it is trained anew and written over
    booster = train()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() or not path.exists():
        content = Trees(booster).content
        with atomic_file(path) as partial:
            partial.write_bytes(_seal(key, content) + content)
    return booster


def _seal(key: bytes, content: bytes) -> bytes:
    """The hash that a file of the cache begins with."""
    return hashlib.sha256(hashlib.sha256(key).digest() + content).digest()
