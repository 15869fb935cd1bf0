"""What libraries index by without looking, in models that came from a file.

A tree's nodes are followed wherever they lead, and so are the counts of a support vector machine
and the labels of neighbours: a number out of range reads outside the memory of the process.
``check_nodes`` looks through an object that skops has built, ``check_lightgbm`` through the text of
a LightGBM model. XGBoost's format is checked in ``edfa.predictors.booster_file``.
"""

from typing import Any

import numpy as np

from edfa.errors import UnreadableError
from edfa.predictors.booster_file import check_user_booster
from edfa.typing import AnyArray

LEAF = -1
KERNELS = ("linear", "poly", "rbf", "sigmoid")


def check_nodes(model: Any) -> None:
    """Look through a model and all of its parts before it is asked about anybody.

    Parameters
    ----------
    model
        Whatever was read from a file. Containers, arrays of objects and attributes are followed,
        each object once; what holds nothing that native code indexes by passes.

    Raises
    ------
    UnreadableError
        If a part leads to a node, a column, a row or a class that is not there.
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
    """Check one part of a model by the library and the class that it is of."""
    module, kind = type(part).__module__, type(part).__name__
    if module.startswith("xgboost") and kind == "Booster":
        check_user_booster(bytes(part.save_raw("json")), "its booster")
    elif module.startswith("lightgbm") and kind == "Booster":
        check_lightgbm(part.model_to_string(num_iteration=-1), "its booster")
    elif hasattr(part, "_predictors"):
        _check_histograms(part)
    elif module.startswith("sklearn.svm") and hasattr(part, "_n_support"):
        _check_support_vectors(part)
    elif module.startswith("sklearn.neighbors") and hasattr(part, "_y"):
        known = np.isin(part._y, np.arange(len(part.classes_)))
        _require(known.shape == (len(part._fit_X),) and known.all(), "a neighbour has no class")
    elif module.startswith("sklearn"):
        _check_trees(part)


def _check_trees(part: Any) -> None:
    """Check a decision tree, or the trees of a forest.

    A forest hands rows to all its trees after only the first of them has looked at them, so that
    all trees must be of the forest's columns and answer in the same shape.
    """
    tree: Any = getattr(part, "tree_", None)
    if _is_tree(tree):
        _require(
            tree.n_features == part.n_features_in_, "a tree is of other columns than its model"
        )
        _require(tree.node_count > 0, "a tree is empty")
        _check_children(tree.children_left, tree.children_right, tree.children_left != LEAF)
        _check_range(tree.feature[tree.children_left != LEAF], tree.n_features, "column")
    members = getattr(part, "estimators_", None)
    if members is None or not type(part).__module__.startswith(
        ("sklearn.ensemble._forest", "sklearn.ensemble._gb")
    ):
        return
    trees = np.ravel(np.array(members, dtype=object))
    _require(len(trees) > 0, "a forest has no trees")
    _require(all(_is_tree(tree.tree_) for tree in trees), "a tree is none of scikit-learn's")
    _require(
        all(tree.n_features_in_ == part.n_features_in_ for tree in trees),
        "a tree is of other columns",
    )
    outputs = {tree.tree_.value.shape[1:] for tree in trees}
    scores = len(part.classes_)
    if type(part).__module__.startswith("sklearn.ensemble._gb"):
        each = (1 if scores == 2 else scores,)
        _require(np.shape(members)[1:] == each, "it has not a tree for each class")
        scores = 1
    _require(outputs == {(1, scores)}, "its trees answer in other shapes")


def _is_tree(tree: Any) -> bool:
    """Whether this is the object that native code takes it for, whatever it is."""
    return (type(tree).__module__, type(tree).__name__) == ("sklearn.tree._tree", "Tree")


def _check_children(left: AnyArray, right: AnyArray, inner: AnyArray) -> None:
    """Check that children come after their parent, as scikit-learn writes them.

    Then every way down ends.

    Parameters
    ----------
    left, right
        The children of each node, (nodes,).
    inner
        Which nodes have children, (nodes,).
    """
    for children in (left[inner].astype(np.int64), right[inner].astype(np.int64)):
        _check_range(children, len(inner), "node")
        _require((children > np.flatnonzero(inner)).all(), "a tree leads upwards")


def _check_histograms(part: Any) -> None:
    """The trees of a HistGradientBoostingClassifier."""
    features = part.n_features_in_
    binned = np.shape(part._bin_mapper.is_categorical_)
    _require(binned == (features,), "its trees are of other columns than its model")
    for tree in (tree for trees in part._predictors for tree in trees):
        nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
        inner = nodes["is_leaf"] == 0
        _require(len(nodes) > 0, "a tree is empty")
        _check_children(nodes["left"], nodes["right"], inner)
        _check_range(nodes["feature_idx"][inner].astype(np.int64), features, "column")
        categorical = inner & (nodes["is_categorical"] != 0)
        _check_range(nodes["bitset_idx"][categorical].astype(np.int64), len(sets), "set")
        _require(sets.shape[1:] == (8,), "a tree's sets of categories have another size")


def _check_support_vectors(part: Any) -> None:
    """A support vector machine of libsvm, which reads as far as its counts say."""
    vectors, counts, classes = part.support_vectors_, part._n_support, len(part.classes_)
    pairs = (classes * (classes - 1) // 2,)
    shapes = {
        "_n_support": (classes,),
        "support_": (len(vectors),),
        "support_vectors_": (len(vectors), part.n_features_in_),
        "_dual_coef_": (classes - 1, len(vectors)),
        "_intercept_": pairs,
    }
    if len(part._probA) or len(part._probB):
        shapes |= {"_probA": pairs, "_probB": pairs}
    _require(part._sparse is False and part.kernel in KERNELS, "its kernel is none that is read")
    _require(
        (counts >= 0).all()
        and counts.sum() == len(vectors)
        and all(np.shape(getattr(part, name)) == shape for name, shape in shapes.items()),
        "its support vectors are others than it says",
    )


def check_lightgbm(text: str, name: str) -> None:
    """Check the text of a LightGBM model before LightGBM reads it.

    LightGBM jumps from tree to tree by sizes that the text states, and follows nodes, columns and
    sets of categories without looking.

    Parameters
    ----------
    text
        The model, as ``Booster.model_to_string`` writes it.
    name
        What errors call it.

    Raises
    ------
    UnreadableError
        If LightGBM cannot have written it.
    """
    try:
        start, end = text.index("\nTree=0\n") + 1, text.index("\nend of trees\n") + 1
        head, body = _entries(text[:start]), text[start:end].encode()
        _require("\nparameters:\n" in text and "\nend of parameters\n" in text, "it is cut off")
        features, classes = int(head["max_feature_idx"]) + 1, int(head["num_tree_per_iteration"])
        ends = np.cumsum(_numbers(head, "tree_sizes"))  # LightGBM jumps from tree to tree by these
        _require(
            int(head["num_class"]) == classes > 0 == len(ends) % classes,
            "it has not a tree for each class",
        )
        _require(
            ends[-1] == len(body) and (np.diff(ends) > 0).all(),
            "its trees are of other sizes than it says",
        )
        for number, tree_bytes in enumerate(np.split(np.frombuffer(body, np.uint8), ends[:-1])):
            tree = tree_bytes.tobytes().decode()
            _require(
                tree.startswith(f"Tree={number}\n"), "its trees are of other sizes than it says"
            )
            _check_lightgbm_tree(_entries(tree), features)
    except UnreadableError as error:
        raise UnreadableError(f"{name} is no model as LightGBM writes it: {error}") from None
    except (LookupError, ValueError, OverflowError):
        raise UnreadableError(f"{name} is no model as LightGBM writes it") from None


def _check_lightgbm_tree(tree: dict[str, str], features: int) -> None:
    """Check one tree: every inner node and every leaf is led to once.

    A child below 0 is a leaf: -1 is the first one.

    Parameters
    ----------
    tree
        The entries of the tree, as text by name.
    features
        The number of columns of the model.
    """
    leaves, sets = int(tree["num_leaves"]), int(tree["num_cat"])
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
    columns, kinds = _numbers(tree, "split_feature"), _numbers(tree, "decision_type")
    thresholds = _numbers(tree, "threshold", float)
    _require(
        len(columns) == len(kinds) == len(thresholds) == leaves - 1,
        "a tree has other nodes than it says",
    )
    _check_range(columns, features, "column")
    _check_range(thresholds[(kinds & 1) != 0].astype(np.int64), sets, "set of categories")
    if sets:
        bounds = _numbers(tree, "cat_boundaries")
        _require(
            len(bounds) == sets + 1
            and bounds[0] == 0
            and (np.diff(bounds) >= 0).all()
            and len(_numbers(tree, "cat_threshold")) == bounds[-1],
            "a tree's categories are damaged",
        )


def _entries(section: str) -> dict[str, str]:
    """The lines of the form ``name=value`` in a part of a LightGBM model."""
    return dict(line.split("=", 1) for line in section.splitlines() if "=" in line)


def _numbers(tree: dict[str, str], name: str, kind: Any = np.int64) -> AnyArray:
    """The numbers of an entry, which are separated by spaces, (numbers,)."""
    return np.array(tree[name].split(), dtype=kind)


def _check_range(numbers: AnyArray, count: int, what: str) -> None:
    """Raise UnreadableError unless all numbers are positions among ``count`` things; ``what`` is
    what the message calls one of them.
    """
    _require(
        ((numbers >= 0) & (numbers < count)).all(),
        f"a tree leads to a {what} that is not there",
    )


def _require(holds: Any, damage: str) -> None:
    """Raise UnreadableError with these words unless a condition holds."""
    if not holds:
        raise UnreadableError(damage)
