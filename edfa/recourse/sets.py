"""Subsets of a plan's changes."""

import numpy as np

from edfa.predictors.base import Floats
from edfa.recourse.base import Codes

__all__ = ["EXACT", "proper_subsets", "without_one"]

EXACT = 6  # changes up to which every subset is looked at; above, those without one of them


def proper_subsets(to: Floats) -> tuple[Codes, Floats]:
    """Every non-empty proper subset of each row's changes, with the row it is of.

    >>> row, smaller = proper_subsets(np.array([[1, np.nan, 2], [3, np.nan, np.nan]], dtype=np.float32))
    >>> row, smaller
    (array([0, 0]), array([[ 1., nan, nan],
           [nan, nan,  2.]], dtype=float32))
    """
    rows, parts = [], []
    size = (~np.isnan(to)).sum(axis=1)
    for count in np.unique(size[size > 1]):
        some = np.flatnonzero(size == count)
        places = np.nonzero(~np.isnan(to[some]))[1].reshape(len(some), count)
        table = ~np.eye(count, dtype=bool)
        if count <= EXACT:
            table = (np.arange(1, 2**count - 1)[:, None] >> np.arange(count) & 1).astype(bool)
        keep = np.zeros((len(some), len(table), to.shape[1]), dtype=bool)
        np.put_along_axis(keep, np.broadcast_to(places[:, None], (len(some), *table.shape)), table[None], axis=2)
        rows.append(np.repeat(some, len(table)))
        parts.append(np.where(keep, to[some][:, None], np.float32(np.nan)).reshape(-1, to.shape[1]))
    if not rows:
        return np.zeros(0, dtype=np.intp), to[:0]
    return np.concatenate(rows), np.concatenate(parts)


def without_one(to: Floats) -> tuple[Codes, Floats]:
    """Each row of two changes or more without one of them, with the row it is of."""
    changed = ~np.isnan(to)
    row, column = np.nonzero(changed & (changed.sum(axis=1) > 1)[:, None])
    smaller = to[row]
    smaller[np.arange(len(row)), column] = np.nan
    return row, smaller
