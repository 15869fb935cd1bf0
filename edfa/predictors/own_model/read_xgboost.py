"""XGBoost's trees, from the JSON that it saves: what is less than a threshold goes left, a listed
category right.
"""

import json
from typing import Any

import numpy as np
from scipy.special import logit

from edfa.predictors.own_model.trees import Link, Tree, TreeEnsemble, right_from

__all__ = ["read"]

LINKS: dict[str, Link] = {
    "binary:logistic": "sigmoid",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
}
BOOSTERS = ("gbtree", "dart")


def read(model: Any) -> TreeEnsemble | None:
    """The trees of an ``XGBClassifier`` or a ``Booster``; None for other objectives, linear
    boosters, trees with several outputs, and models to which a number means "missing".
    """
    missing = getattr(model, "missing", None)
    if missing is not None and not np.isnan(missing):
        return None
    learner = json.loads(_used_rounds(model).save_raw("json"))["learner"]
    link, booster = LINKS.get(learner["objective"]["name"]), learner["gradient_booster"]
    if link is None or booster["name"] not in BOOSTERS:
        return None
    content = booster.get("gbtree", booster)["model"]
    weights = booster.get(
        "weight_drop", np.ones(len(content["trees"]))
    )  # of the trees of booster="dart"
    parameters = learner["learner_model_param"]
    classes, columns = int(parameters["num_class"]), int(parameters["num_feature"])
    if not content["trees"] or any(
        int(t["tree_param"]["size_leaf_vector"]) > 1 for t in content["trees"]
    ):
        return None
    trees = [
        _tree(*each) for each in zip(content["trees"], content["tree_info"], weights, strict=True)
    ]
    start = np.array([float(number) for number in parameters["base_score"].strip("[]").split(",")])
    base = np.broadcast_to(start if link == "softmax" else logit(start), max(1, classes))
    return TreeEnsemble.of(trees, columns, link, base)


def _used_rounds(model: Any) -> Any:
    """The booster with the rounds that the model answers from: up to the best one after an early
    stop.
    """
    if not hasattr(model, "get_booster"):
        return model
    booster = model.get_booster()
    best = getattr(model, "best_iteration", None)  # raises AttributeError without an early stop
    return booster if best is None else booster[: best + 1]


def _tree(tree: dict[str, Any], output: int, weight: float) -> Tree:
    left = np.array(tree["left_children"])
    numbers = np.array(tree["split_conditions"], dtype=np.float32)
    ends = zip(
        tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
    )
    return Tree(
        left=left,
        right=np.array(tree["right_children"]),
        column=np.array(tree["split_indices"]),
        threshold=right_from(numbers, equal_goes_right=True, single=True),
        missing_right=np.array(tree["default_left"]) == 0,
        cover=np.array(tree["sum_hessian"]),
        value=weight
        * numbers.astype(np.float64)[
            :, None
        ],  # XGBoost keeps the values of leaves with the thresholds
        categories={node: tree["categories"][first : first + size] for node, first, size in ends},
        output=output,
    )
