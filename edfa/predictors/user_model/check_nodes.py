"""The nodes of trees that came from a file: libraries follow them without looking, wherever they
lead.

A few rows that a model is tried on need not come by a damaged node; here all of them are looked at.
Whatever holds no trees of scikit-learn, XGBoost or LightGBM passes.
"""

import json
from typing import Any

import numpy as np

from edfa.errors import UnreadableError
from edfa.typing import AnyArray

__all__ = ["check_lightgbm", "check_nodes"]

NO_PARENT = 2**31 - 1  # XGBoost's parent of a root
LEAF = -1


def check_nodes(model: Any) -> None:
    """Raise UnreadableError if a tree anywhere in ``model`` leads to a node or a column that is not
    there.
    """
    seen: set[int] = set()
    left = [model]
    while left:
        part = left.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | bool | type(None)):
            continue
        seen.add(id(part))
        _check(part)
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, list | tuple | set):
            left += part
        elif isinstance(part, np.ndarray):
            left += part.ravel().tolist() if part.dtype == object else []
        elif hasattr(part, "__dict__") and not isinstance(part, type):
            left += vars(part).values()


def _check(part: Any) -> None:
    module, kind = type(part).__module__, type(part).__name__
    if module.startswith("xgboost") and kind == "Booster":
        _check_xgboost(part)
    elif module.startswith("lightgbm") and kind == "Booster":
        check_lightgbm(part.model_to_string(num_iteration=-1), "the model")
    elif module == "sklearn.ensemble._hist_gradient_boosting.gradient_boosting":
        for trees in getattr(part, "_predictors", []):
            for tree in trees:
                _check_histogram_tree(tree, part.n_features_in_)
    elif module.startswith("sklearn"):
        _check_scikit_learn(part)


def _check_scikit_learn(part: Any) -> None:
    """A decision tree; or a forest, whose trees get rows that only the first of them has looked
    at.
    """
    if type(getattr(part, "tree_", None)).__name__ == "Tree":
        tree = part.tree_
        _require(
            tree.n_features == part.n_features_in_, "a tree is of other columns than its model"
        )
        _check_children(tree.children_left, tree.children_right, tree.node_count)
        inner = tree.children_left != LEAF
        _check_range(tree.feature[inner], tree.n_features, "column")
    members = getattr(part, "estimators_", None)
    if members is None or not type(part).__module__.startswith(
        ("sklearn.ensemble._forest", "sklearn.ensemble._gb")
    ):
        return
    trees = np.ravel(np.array(members, dtype=object))
    _require(len(trees) > 0, "a forest has no trees")
    _require(
        all(tree.n_features_in_ == part.n_features_in_ for tree in trees),
        "a tree is of other columns",
    )
    outputs = {tree.tree_.value.shape[1:] for tree in trees}
    _require(len(outputs) == 1, "its trees answer in different shapes")
    if type(part).__module__.startswith("sklearn.ensemble._gb"):
        _require(outputs == {(1, 1)}, "its trees answer more than a number")
        scores = 1 if len(part.classes_) == 2 else len(part.classes_)
        _require(np.shape(members)[1:] == (scores,), "it has not a tree for each class")
    else:
        _require(outputs == {(1, len(part.classes_))}, "its trees are of other classes")


def _check_children(left: AnyArray, right: AnyArray, count: int) -> None:
    """Children come after their parent, as scikit-learn writes them, so that every way down
    ends.
    """
    _require(count > 0, "a tree is empty")
    inner = np.flatnonzero(left != LEAF)
    for children in (left[inner], right[inner]):
        _check_range(children, count, "node")
        _require(bool((children > inner).all()), "a tree leads upwards")


def _check_histogram_tree(tree: Any, features: int) -> None:
    nodes = tree.nodes
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    _require(len(nodes) > 0, "a tree is empty")
    for side in ("left", "right"):
        children = nodes[side][inner].astype(np.int64)
        _check_range(children, len(nodes), "node")
        _require(bool((children > inner).all()), "a tree leads upwards")
    _check_range(nodes["feature_idx"][inner].astype(np.int64), features, "column")
    categorical = nodes["bitset_idx"][inner][nodes["is_categorical"][inner] != 0].astype(np.int64)
    sets = tree.raw_left_cat_bitsets
    _check_range(categorical, len(sets), "set of categories")
    _require(
        sets.ndim == 2 and sets.shape[1:] == (8,), "a tree's sets of categories have another size"
    )


def _check_xgboost(booster: Any) -> None:
    """Every node but the root has the parent that leads to it, so that every way down ends."""
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    boosted = learner["gradient_booster"]
    model = (boosted.get("gbtree") or boosted).get("model", {})
    features = int(learner["learner_model_param"]["num_feature"])
    for tree in model.get("trees", []):
        names = ("left_children", "right_children", "parents", "split_indices")
        left, right, parents, columns = (np.array(tree[name], dtype=np.int64) for name in names)
        _require(
            len(left) > 0 and len({len(left), len(right), len(parents), len(columns)}) == 1,
            "a tree is damaged",
        )
        _require(len(tree["split_conditions"]) == len(left), "a tree is damaged")
        inner = np.flatnonzero(left != LEAF)
        _require(parents[0] == NO_PARENT, "a tree's root has a parent")
        for children in (left[inner], right[inner]):
            _check_range(children, len(left), "node")
            _require(
                bool((parents[children] == inner).all()),
                "a node has another parent than the one above it",
            )
        _check_range(columns[inner], features, "column")
        _check_categories(tree)


def _check_categories(tree: Any) -> None:
    """Each of a tree's sets of categories lies within the list of all of them."""
    total, nodes = len(tree["categories"]), np.array(tree["categories_nodes"], dtype=np.int64)
    starts, sizes = (
        np.array(tree[f"categories_{name}"], dtype=np.int64) for name in ("segments", "sizes")
    )
    _require(len(nodes) == len(starts) == len(sizes), "a tree's categories are damaged")
    _check_range(nodes, len(tree["left_children"]), "node")
    _require(
        bool((starts >= 0).all() and (sizes >= 0).all() and (starts + sizes <= total).all()),
        "a set is cut off",
    )


def check_lightgbm(text: str, name: str) -> None:
    """Raise UnreadableError that begins with ``name`` if the text of a LightGBM model has a tree
    that is damaged.
    """
    try:
        start = text.index("\nTree=0\n") + 1
        head, body = (
            _entries(text[:start]),
            text[start : text.index("\nend of trees\n") + 1].encode(),
        )
        _require("\nparameters:\n" in text and "\nend of parameters\n" in text, "it is cut off")
        features, classes = int(head["max_feature_idx"]) + 1, int(head["num_tree_per_iteration"])
        ends = np.cumsum(_numbers(head, "tree_sizes"))  # LightGBM jumps from tree to tree by these
        _require(
            int(head["num_class"]) == classes > 0 == len(ends) % classes,
            "it has not a tree for each class",
        )
        _require(
            ends[-1] == len(body) and bool((np.diff(ends) > 0).all()),
            "its trees are of other sizes than it says",
        )
        for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            tree = body[begin:end].decode()
            _require(
                tree.startswith(f"Tree={number}\n"), "its trees are of other sizes than it says"
            )
            _check_lightgbm_tree(_entries(tree), features)
    except UnreadableError as error:
        raise UnreadableError(f"{name} is no model as LightGBM writes it: {error}") from None
    except (LookupError, ValueError, OverflowError):
        raise UnreadableError(f"{name} is no model as LightGBM writes it") from None


def _check_lightgbm_tree(tree: dict[str, str], features: int) -> None:
    """Every inner node and every leaf is led to once; a child below 0 is a leaf."""
    leaves = int(tree["num_leaves"])
    _require(
        leaves > 0 and len(_numbers(tree, "leaf_value", float)) == leaves,
        "a tree has other leaves than it says",
    )
    if leaves == 1:
        return
    children = np.concatenate([_numbers(tree, "left_child"), _numbers(tree, "right_child")])
    expected = np.concatenate([np.arange(-leaves, 0), np.arange(1, leaves - 1)])
    _require(
        np.array_equal(np.sort(children), expected), "a tree leads to a node that is not there"
    )
    inner = leaves - 1
    columns, kinds = _numbers(tree, "split_feature"), _numbers(tree, "decision_type")
    thresholds = _numbers(tree, "threshold", float)
    _require(
        len(columns) == len(kinds) == len(thresholds) == inner,
        "a tree has other nodes than it says",
    )
    _check_range(columns, features, "column")
    sets = thresholds[(kinds & 1) != 0].astype(np.int64)
    _check_range(sets, int(tree["num_cat"]), "set of categories")
    if int(tree["num_cat"]):
        bounds = _numbers(tree, "cat_boundaries")
        _require(
            len(bounds) == int(tree["num_cat"]) + 1 and bounds[0] == 0,
            "a tree's categories are damaged",
        )
        _require(bool((np.diff(bounds) >= 0).all()), "a tree's categories are damaged")
        _require(
            len(_numbers(tree, "cat_threshold")) == bounds[-1], "a tree's categories are cut off"
        )


def _entries(section: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in section.splitlines() if "=" in line)


def _numbers(tree: dict[str, str], name: str, kind: Any = np.int64) -> AnyArray:
    return np.array(tree[name].split(), dtype=kind)


def _check_range(numbers: AnyArray, count: int, what: str) -> None:
    _require(
        bool(((numbers >= 0) & (numbers < count)).all()),
        f"a tree leads to a {what} that is not there",
    )


def _require(holds: bool, damage: str) -> None:
    if not holds:
        raise UnreadableError(damage)
