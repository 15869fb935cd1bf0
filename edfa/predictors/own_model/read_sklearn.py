"""Scikit-learn's trees, from ``tree_``: what is at most a threshold goes left, as 32-bit
numbers.
"""

from typing import Any

import numpy as np

from edfa.predictors.own_model.trees import Tree, TreeEnsemble, right_from

__all__ = ["read"]


def read(model: Any) -> TreeEnsemble | None:
    """The trees of a ``DecisionTreeClassifier``, ``RandomForestClassifier`` or
    ``ExtraTreesClassifier``; None where several outcomes are predicted at once.
    """
    if model.n_outputs_ > 1:
        return None
    members = getattr(model, "estimators_", [model])
    trees = [_tree(member.tree_) for member in members]
    return TreeEnsemble.of(
        trees, model.n_features_in_, "shares", np.zeros(len(model.classes_)), 1 / len(trees)
    )


def _tree(tree: Any) -> Tree:
    return Tree(
        left=tree.children_left,
        right=tree.children_right,
        column=tree.feature,
        threshold=right_from(tree.threshold, equal_goes_right=False, single=True),
        missing_right=tree.missing_go_to_left == 0,
        cover=tree.weighted_n_node_samples,
        value=tree.value[:, 0, :],
    )
