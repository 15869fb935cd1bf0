"""How far plans go and how to order them: number of changes, distances and effort; best surviving
first, or diverse.

Change sets are rows of ``to`` (plans, known features), NaN: unchanged; ``facts`` are the people's
own values in the same shape, and ``mask`` (features,) says which features are known.
"""

from typing import NamedTuple

import numpy as np

from edfa.recourse.action_set import ActionSet
from edfa.typing import BoolArray, Float32Array, Float64Array, IntArray

__all__ = ["Lengths", "apart", "different", "diverse", "effort", "lengths", "menu", "ways"]


class Lengths(NamedTuple):
    """How far each plan goes, (plans,) each.

    ``l0`` is the number of changed features. ``l2`` and ``heom`` are roots of squares in units of
    the training range: ``l2`` on label codes (the paper's), ``heom`` with a changed category
    counted as one. ``effort`` is what it takes the person.
    """

    l0: IntArray
    l2: Float64Array
    heom: Float64Array
    effort: Float64Array


def lengths(actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array) -> Lengths:
    """How far change sets go."""
    changed, share = _moved(actions, mask, facts, to)
    mixed = np.where(actions.ordered[mask], share, changed)
    l2, heom = (np.sqrt((part * part).sum(axis=1)) for part in (share, mixed))
    return Lengths(changed.sum(axis=1), l2, heom, _effort(actions, mask, changed, share))


def effort(
    actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array
) -> Float64Array:
    """What change sets take the person, (plans,)."""
    return _effort(actions, mask, *_moved(actions, mask, facts, to))


def _moved(
    actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array
) -> tuple[BoolArray, Float64Array]:
    """What is changed, and by what share of its training range, (plans, known features) each.

    Leaving a missing or special code counts as the full range.
    """
    changed = ~np.isnan(to)
    share = np.where(changed, np.abs(to - facts), 0) / actions.value_range[mask]
    for feature in actions.with_special_values:
        if mask[feature] and changed[:, (column := int(np.count_nonzero(mask[:feature])))].any():
            share[
                changed[:, column] & np.isin(facts[:, column], actions.special_values[feature]),
                column,
            ] = 1
    return changed, share


def _effort(
    actions: ActionSet, mask: BoolArray, changed: BoolArray, share: Float64Array
) -> Float64Array:
    """The effort of what ``_moved`` gives."""
    units = np.where(actions.ordered[mask], share * actions.value_range[mask], changed)
    return np.asarray(units @ actions.effort[mask])


def menu(
    of: IntArray, survival: Float64Array, keys: tuple[Float64Array | IntArray, ...]
) -> IntArray:
    """The rows worth offering to each person, the best surviving first; among equals the nearest.

    ``of`` (rows,) is the person of each row. ``keys`` (each (rows,)) rank equals, the last key
    first; the last key is the effort. After the first row of a person, only those follow that take
    less effort than all before them. Rows with NaN survival are left out: they survive no better
    than one that takes no more.

    >>> menu(np.array([0, 0, 0]), np.array([0.5, 0.9, 0.4]), (np.array([1.0, 2.0, 3.0]),))
    array([1, 0])
    """
    order = np.lexsort((*keys, -np.round(survival, 9), of))
    person = of[order].astype(np.int64)
    effort = np.unique(keys[-1], return_inverse=True)[1].reshape(-1)[order]
    # The least so far of each person is a plain running minimum once every person lies below the
    # one before.
    below = effort - person * (int(effort.max(initial=0)) + 1)
    least = np.minimum.accumulate(below)
    kept = np.r_[True, below[1:] < least[:-1]] if len(order) else np.zeros(0, dtype=bool)
    return order[kept & ~np.isnan(survival[order])]


def different(of: IntArray, way: Float64Array, k: int) -> IntArray:
    """At most k rows of each person that are clearly different ways, the first one always among
    them.

    First those that share no feature with one taken already, then those that do not hold all
    features of one, then those that change the same features in another direction or to another
    level. The same way only a little farther is not another way.

    ``of`` (rows,) is the person of each row; a person's rows stand together, best first. ``way``
    (rows, features) is 0 where nothing changes, and otherwise says the direction or the level. The
    result is in the order of the rows.

    >>> way = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1], [-1, 0, 0]])
    >>> different(np.zeros(5, dtype=int), way, 3)
    array([0, 3, 4])
    """
    if not len(of):
        return of
    starts = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
    block = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(of)]))
    taken, changed = np.zeros(len(of), dtype=bool), way != 0
    taken[starts] = True
    chosen, count = [starts], np.ones(len(starts), dtype=np.intp)
    for clash in (_shares, _holds_all, _same_way):
        open_ = ~taken
        for earlier in chosen:
            open_ &= (earlier < 0)[block] | ~clash(
                changed, changed[earlier[block]], way == way[earlier[block]]
            )
        while True:
            open_ &= (count < k)[block]
            rows = np.flatnonzero(open_)
            first = rows[np.r_[True, block[rows][1:] != block[rows][:-1]]] if len(rows) else rows
            if not len(first):
                break
            latest = np.full(len(starts), -1, dtype=np.intp)
            latest[block[first]] = first
            taken[first], open_[first] = True, False
            count[block[first]] += 1
            chosen.append(latest)
            open_ &= (latest < 0)[block] | ~clash(
                changed, changed[latest[block]], way == way[latest[block]]
            )
    return np.flatnonzero(taken)


def _shares(changed: BoolArray, earlier: BoolArray, same: BoolArray) -> BoolArray:
    """Whether rows change a feature that the earlier one changes too, (rows,)."""
    return np.asarray((changed & earlier).any(axis=1))


def _holds_all(changed: BoolArray, earlier: BoolArray, same: BoolArray) -> BoolArray:
    """Whether rows change everything that the earlier one changes, (rows,)."""
    return np.asarray((changed | ~earlier).all(axis=1))


def _same_way(changed: BoolArray, earlier: BoolArray, same: BoolArray) -> BoolArray:
    """Whether rows do all that the earlier one does in the same way, (rows,)."""
    return np.asarray((~earlier | (changed & same)).all(axis=1))


def ways(
    actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array
) -> Float64Array:
    """The way of every change for ``different``, (plans, known features): 1 up, -1 down, 2 or more
    a level, 0 none.

    All that is reached by waiting is one way.
    """
    way = np.nan_to_num(np.where(actions.ordered[mask], np.sign(to - facts), to + 2))
    grows = actions.consequences.per_month[mask]
    waits = (way * np.sign(grows) > 0) & (grows != 0)
    if waits.any():
        way[waits] = 0
        way[waits.any(axis=1), int(np.flatnonzero(grows)[0])] = 1
    return np.asarray(way)


def diverse(of: IntArray, coordinates: Float64Array, k: int) -> IntArray:
    """At most k rows of each person: the first one, then always the one farthest from those taken.

    ``of`` (rows,) is the person of each row; a person's rows stand together, best first.
    ``coordinates`` (rows, axes) say where each row lies. The result is in the order of the rows.

    >>> diverse(np.array([0, 0, 0, 1]), np.array([[0.0], [0.1], [5.0], [0.0]]), 2)
    array([0, 2, 3])
    """
    new = np.ones(len(of), dtype=bool)
    new[1:] = of[1:] != of[:-1]
    starts, block = np.flatnonzero(new), np.cumsum(new) - 1
    taken, distance, latest = np.zeros(len(of), dtype=bool), np.full(len(of), np.inf), starts
    for _ in range(min(k, int(np.bincount(block).max())) if len(of) else 0):
        taken[latest] = True
        latest_of_block = np.full(len(starts), -1)
        latest_of_block[block[latest]] = latest
        active = latest_of_block[block] >= 0
        # Rounded, so that equal distances are equal whatever the batch; then the better plan is
        # taken.
        gap = np.round(
            ((coordinates[active] - coordinates[latest_of_block[block[active]]]) ** 2).sum(axis=1),
            9,
        )
        distance[active] = np.minimum(distance[active], gap)
        order = np.lexsort((np.arange(len(of)), np.where(taken, 1.0, -distance), block))
        farthest = order[starts]
        latest = farthest[~taken[farthest]]
    return np.flatnonzero(taken)


def apart(
    actions: ActionSet, mask: BoolArray, facts: Float32Array, to: Float32Array
) -> Float64Array:
    """Coordinates of plans for ``diverse``, (plans, axes): which features change, by how much or to
    which level.
    """
    changed, ordered = ~np.isnan(to), actions.ordered[mask]
    moved = np.where(changed, to - facts, 0) / actions.value_range[mask]
    levels = [
        (to[:, [c]] == actions.support.values[f]) / np.sqrt(2)
        for c, f in enumerate(np.flatnonzero(mask))
        if not actions.ordered[f] and changed[:, c].any()
    ]
    return np.concatenate([changed / np.sqrt(2), moved[:, ordered], *levels], axis=1)
