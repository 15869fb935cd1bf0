"""CatBoost's trees, from the JSON that it saves: what is greater than a border goes right, as
32-bit numbers.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from edfa.predictors.own_model.read_nested import list_nodes
from edfa.predictors.own_model.trees import Link, Tree, TreeEnsemble, right_from

__all__ = ["read"]

LINKS: dict[str, Link] = {"Logloss": "sigmoid", "CrossEntropy": "sigmoid", "MultiClass": "softmax"}
NUMBER = "FloatFeature"


def read(model: Any) -> TreeEnsemble | None:
    """The trees of a ``CatBoostClassifier``; None for other losses, for models without the weights
    of their leaves, and where a tree looks at anything but numbers (CatBoost replaces categories by
    statistics of the training rows).
    """
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        dump = json.loads(path.read_text(encoding="utf-8"))
    link = LINKS.get(dump["model_info"]["params"]["loss_function"]["type"])
    roots = (
        [_nest(tree) for tree in dump["oblivious_trees"]]
        if "oblivious_trees" in dump
        else dump["trees"]
    )
    listed = [list_nodes(root, _children) for root in roots]
    if (
        link is None
        or not listed
        or any(_is_unreadable(node) for nodes, _, _ in listed for node in nodes)
    ):
        return None
    features = dump["features_info"]
    of_all_kinds = [
        feature
        for kind, several in features.items()
        if kind.endswith("_features")
        for feature in several
    ]
    numbers = {feature["feature_index"]: feature for feature in features["float_features"]}
    scale, base = dump["scale_and_bias"]
    columns = 1 + max(feature["flat_feature_index"] for feature in of_all_kinds)
    return TreeEnsemble.of([_tree(*lists, numbers) for lists in listed], columns, link, base, scale)


def _nest(tree: dict[str, Any], depth: int = 0, leaf: int = 0) -> dict[str, Any]:
    """A tree with one split for each level, as objects within objects.

    A split is one bit of the leaf's place, the first the lowest. The last split is the root, as in
    CatBoost's own TreeSHAP: which one it is makes no difference to predictions, but to what is
    averaged where a column is not known.
    """
    splits, weights = tree.get("splits") or [], tree.get("leaf_weights")
    if depth == len(splits):
        outputs = len(tree["leaf_values"]) >> len(splits)
        values = tree["leaf_values"][leaf * outputs : (leaf + 1) * outputs]
        return {"value": values, "weight": weights[leaf] if weights else None}
    left, right = _nest(tree, depth + 1, 2 * leaf), _nest(tree, depth + 1, 2 * leaf + 1)
    return {"split": splits[-1 - depth], "left": left, "right": right}


def _children(node: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    return (node["left"], node["right"]) if "split" in node else None


def _is_unreadable(node: dict[str, Any]) -> bool:
    return node["split"]["split_type"] != NUMBER if "split" in node else node.get("weight") is None


def _tree(
    nodes: list[dict[str, Any]], left: list[int], right: list[int], numbers: dict[int, Any]
) -> Tree:
    splits = [node.get("split", {"border": 0.0, "float_feature_index": 0}) for node in nodes]
    inputs = [numbers[split["float_feature_index"]] for split in splits]
    cover = np.array([node.get("weight", 0.0) for node in nodes], dtype=np.float64)
    for place in reversed(range(len(nodes))):  # children come after their parent
        if left[place] >= 0:
            cover[place] = cover[left[place]] + cover[right[place]]
    outputs = max(np.size(node.get("value", 0.0)) for node in nodes)
    return Tree(
        left=np.array(left),
        right=np.array(right),
        column=np.array([number["flat_feature_index"] for number in inputs]),
        threshold=right_from(
            np.array([split["border"] for split in splits], dtype=np.float32),
            equal_goes_right=False,
            single=True,
        ),
        missing_right=np.array([number["nan_value_treatment"] == "AsTrue" for number in inputs]),
        cover=cover,
        value=np.array([np.broadcast_to(node.get("value", 0.0), outputs) for node in nodes]),
    )
