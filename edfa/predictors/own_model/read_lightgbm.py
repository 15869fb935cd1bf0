"""LightGBM's trees, from ``dump_model``: what is at most a threshold goes left, and so does a
listed category.
"""

from typing import Any

import numpy as np

from edfa.predictors.own_model.read_nested import list_nodes
from edfa.predictors.own_model.trees import Link, Tree, TreeEnsemble, right_from
from edfa.typing import Float64Array

__all__ = ["read"]

LINKS: dict[str, Link] = {"binary": "sigmoid", "multiclass": "softmax"}
ZERO = float(np.float32(1e-35))  # numbers up to this size are zero to LightGBM, and it cuts there


def read(model: Any) -> TreeEnsemble | None:
    """The trees of an ``LGBMClassifier`` or a ``Booster``, up to the best round after an early
    stop; None for other objectives, linear models in leaves, and models to which zero means
    "missing".
    """
    dump = getattr(model, "booster_", model).dump_model()
    name, *settings = dump.get("objective", "").split() or [""]
    listed = [list_nodes(tree["tree_structure"], _children) for tree in dump["tree_info"]]
    if (
        name not in LINKS
        or not listed
        or any(_is_unreadable(node) for nodes, _, _ in listed for node in nodes)
    ):
        return None
    outputs = int(dump["num_tree_per_iteration"])
    trees = [_tree(*lists, output=number % outputs) for number, lists in enumerate(listed)]
    steepness = float(dict(part.split(":") for part in settings if ":" in part).get("sigmoid", 1.0))
    rounds = len(trees) // outputs if dump["average_output"] else 1
    return TreeEnsemble.of(
        trees, int(dump["max_feature_idx"]) + 1, LINKS[name], np.zeros(outputs), steepness / rounds
    )


def _children(node: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Left and right child of a node. A listed category goes left in LightGBM, but right in
    ``Tree``: exchanged.
    """
    if "leaf_value" in node:
        return None
    pair = node["left_child"], node["right_child"]
    return pair[::-1] if node["decision_type"] == "==" else pair


def _is_unreadable(node: dict[str, Any]) -> bool:
    return bool(node.get("leaf_coeff")) or node.get("missing_type") == "Zero"


def _tree(nodes: list[dict[str, Any]], left: list[int], right: list[int], output: int) -> Tree:
    is_category = [node.get("decision_type") == "==" for node in nodes]
    number = [
        0.0 if c else float(node.get("threshold", 0))
        for node, c in zip(nodes, is_category, strict=True)
    ]
    categories = {
        place: [int(code) for code in node["threshold"].split("||")]
        for place, node in enumerate(nodes)
        if is_category[place]
    }
    return Tree(
        left=np.array(left),
        right=np.array(right),
        column=np.array([node.get("split_feature", 0) for node in nodes]),
        threshold=_first_to_the_right(np.array(number)),
        missing_right=np.array([_missing_goes_right(node) for node in nodes]),
        cover=np.array([node.get("internal_count", node.get("leaf_count", 0)) for node in nodes]),
        value=np.array([[node.get("leaf_value", 0.0)] for node in nodes]),
        categories=categories,
        output=output,
    )


def _first_to_the_right(threshold: Float64Array) -> Float64Array:
    """The smallest numbers that go right. Those near zero do so together, or not at all."""
    beyond_zero = np.where(threshold < 0, -ZERO, np.nextafter(ZERO, 1))
    ordinary = right_from(threshold, equal_goes_right=False, single=False)
    return np.where(np.abs(threshold) <= ZERO, beyond_zero, ordinary)


def _missing_goes_right(node: dict[str, Any]) -> bool:
    """Which way a missing value goes; where none was seen in training, LightGBM takes it for
    zero.
    """
    if "leaf_value" in node or node["decision_type"] == "==":
        return False
    return (
        not node["default_left"] if node["missing_type"] == "NaN" else bool(node["threshold"] < 0)
    )
