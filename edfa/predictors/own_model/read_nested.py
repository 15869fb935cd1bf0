"""Trees that are written as objects within objects, as lists of nodes."""

from collections.abc import Callable
from typing import Any

__all__ = ["list_nodes"]


def list_nodes(
    root: dict[str, Any],
    children: Callable[[dict[str, Any]], tuple[dict[str, Any], dict[str, Any]] | None],
) -> tuple[list[dict[str, Any]], list[int], list[int]]:
    """All nodes of a tree, the root first, and the places of each one's left and right child; -1 at
    a leaf.

    >>> tree = {"at": "root", "below": ({"at": "left"}, {"at": "right"})}
    >>> nodes, left, right = list_nodes(tree, lambda node: node.get("below"))
    >>> [node["at"] for node in nodes], left, right
    (['root', 'left', 'right'], [1, -1, -1], [2, -1, -1])
    """
    nodes, left, right = [root], [], []
    for node in nodes:  # grows meanwhile
        pair = children(node)
        left.append(len(nodes) if pair else -1)
        right.append(len(nodes) + 1 if pair else -1)
        nodes.extend(pair or ())
    return nodes, left, right
