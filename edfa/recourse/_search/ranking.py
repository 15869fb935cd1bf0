"""How far a plan goes: the number of changes, two distances, the effort; and an order of plans, near or diverse."""

from typing import NamedTuple

import numpy as np

from edfa.recourse.action_set import ActionSet
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Lengths", "apart", "diverse", "effort", "lengths", "menu"]


class Lengths(NamedTuple):
    """Of each plan: changed features; the distance on label codes (the paper's), and with a category's change counted
    as one (HEOM), both as a root of squares in units of the training range; the effort."""

    l0: IntArray
    l2: Float64Array
    heom: Float64Array
    effort: Float64Array


def lengths(actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array) -> Lengths:
    """Of change sets (a row each, NaN: unchanged), the columns being the known features."""
    changed, share = _moved(actions, mask, facts, to)
    mixed = np.where(actions.ordered[mask], share, changed)
    l2, heom = (np.sqrt((part * part).sum(axis=1)) for part in (share, mixed))
    return Lengths(changed.sum(axis=1), l2, heom, _effort(actions, mask, changed, share))


def effort(actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array) -> Float64Array:
    """What the changes cost the person."""
    return _effort(actions, mask, *_moved(actions, mask, facts, to))


def _moved(
    actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array
) -> tuple[BoolArray, Float64Array]:
    """What is changed, and by what share of its range; away from a value that is no measurement: by all of it."""
    changed = ~np.isnan(to)
    share = np.where(changed, np.abs(to - facts), 0) / actions.value_range[mask]
    for feature in actions.with_special_values:
        if mask[feature] and changed[:, (column := int(np.count_nonzero(mask[:feature])))].any():
            share[changed[:, column] & np.isin(facts[:, column], actions.special_values[feature]), column] = 1
    return changed, share


def _effort(actions: ActionSet, mask: BoolArray, changed: BoolArray, share: Float64Array) -> Float64Array:
    units = np.where(actions.ordered[mask], share * actions.value_range[mask], changed)
    return np.asarray(units @ actions.effort[mask])


def diverse(of: IntArray, places: Float64Array, k: int) -> IntArray:
    """At most k rows of each ``of``: the first one, then always the one farthest from those taken.

    Rows of one ``of`` stand together, best first; ``places`` says where each lies. The answer keeps their order.

    >>> diverse(np.array([0, 0, 0, 1]), np.array([[0.0], [0.1], [5.0], [0.0]]), 2)
    array([0, 2, 3])
    """
    new = np.ones(len(of), dtype=bool)
    new[1:] = of[1:] != of[:-1]
    starts, block = np.flatnonzero(new), np.cumsum(new) - 1
    taken, nearest, latest = np.zeros(len(of), dtype=bool), np.full(len(of), np.inf), starts
    for _ in range(min(k, int(np.bincount(block).max())) if len(of) else 0):
        taken[latest] = True
        which = np.full(len(starts), -1)
        which[block[latest]] = latest
        alive = which[block] >= 0
        # Rounded, so that equal distances are equal whatever the batch; then the better plan is taken.
        gap = np.round(((places[alive] - places[which[block[alive]]]) ** 2).sum(axis=1), 9)
        nearest[alive] = np.minimum(nearest[alive], gap)
        order = np.lexsort((np.arange(len(of)), np.where(taken, 1.0, -nearest), block))
        best = order[starts]
        latest = best[~taken[best]]
    return np.flatnonzero(taken)


def apart(actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array) -> Float64Array:
    """Where plans lie for ``diverse``: which features they change, and by how much or to which level."""
    changed, ordered = ~np.isnan(to), actions.ordered[mask]
    moved = np.where(changed, to - facts, 0) / actions.value_range[mask]
    levels = [
        (to[:, [c]] == actions.support.values[f]) / np.sqrt(2)
        for c, f in enumerate(np.flatnonzero(mask))
        if not actions.ordered[f] and changed[:, c].any()
    ]
    return np.concatenate([changed / np.sqrt(2), moved[:, ordered], *levels], axis=1)


def menu(of: IntArray, survival: Float64Array, keys: tuple[Float64Array | IntArray, ...]) -> IntArray:
    """Rows of each ``of``, the best surviving first, then the nearest (the last key decides); none that has no merit.

    After the first, only those that take less effort (the last key) than all before them. NaN: it survives no better
    than one that takes no more.

    >>> menu(np.array([0, 0, 0]), np.array([0.5, 0.9, 0.4]), (np.array([1.0, 2.0, 3.0]),))
    array([1, 0])
    """
    order = np.lexsort((*keys, -np.round(survival, 9), of))
    owner = of[order].astype(np.int64)
    effort = np.unique(keys[-1], return_inverse=True)[1].reshape(-1)[order]
    # The least so far within each owner is a plain running minimum once every owner lies below the one before.
    below = effort - owner * (int(effort.max(initial=0)) + 1)
    least = np.minimum.accumulate(below)
    kept = np.r_[True, below[1:] < least[:-1]] if len(order) else np.zeros(0, dtype=bool)
    return order[kept & ~np.isnan(survival[order])]
