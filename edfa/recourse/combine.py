"""Several values of one donor at once: the smallest sets of them that are recourse."""

from functools import cache
from itertools import combinations
from math import comb

import numpy as np

from edfa.recourse.base import Codes, Found
from edfa.recourse.options import Options, nearest_try
from edfa.recourse.rules import Bools

__all__ = ["combine", "differences"]

WIDTH = 8  # of a donor's differences, those that help most by themselves are combined


def differences(options: Options, case: Codes, donors: np.ndarray) -> tuple[Codes, Bools]:
    """The option that each donor's value is, and whether it may be proposed: (cases, donors, free features).

    ``donors`` has their known values, (cases, donors, columns).
    """
    task = options.task
    option = np.zeros((*donors.shape[:2], len(task.free)), dtype=np.intp)
    usable = np.zeros(option.shape, dtype=bool)
    for k, feature in enumerate(task.group.features):
        first, end = options.first[k], options.first[k + 1]
        values = donors[:, :, task.free[k]]
        if end == first:
            continue
        if task.rules.ordered[feature]:
            known = options.try_[first:end] - (task.group.ends[k - 1] if k else 0)
            sought = nearest_try(task.group.tries[k], values)
        else:
            known, sought = options.least[first:end], values
        place = np.minimum(np.searchsorted(known, sought), end - first - 1)
        option[:, :, k] = first + place
        usable[:, :, k] = (known[place] == sought) & ~np.isnan(options.to[case[:, None], first + place])
    return option, usable


def combine(
    options: Options, case: Codes, option: Codes, usable: Bools, most: int, *, every: bool = False
) -> list[tuple[Found, Codes]]:
    """Sets of two up to ``most`` (three) of a donor's values, none of which holds a smaller one that is recourse.

    Each with the place of the donor it comes from among those of its case. With ``every``, those that hold a smaller
    one as well.
    """
    if not every:
        usable = usable & ~options.turns[case[:, None, None], option]
    if option.shape[2] > WIDTH:
        option, usable = _most_helpful(options, case, option, usable)
    works, found = np.zeros((*option.shape[:2], comb(option.shape[2], 2)), dtype=bool), []
    for count in range(2, min(most, option.shape[2]) + 1):
        table = _sets_of(option.shape[2], count)
        open_ = usable[:, :, table[:, 0]]
        for column in range(1, count):
            open_ &= usable[:, :, table[:, column]]
        if count == 3 and not every:
            for pair in _pairs_in(option.shape[2]).T:
                open_ &= ~works[:, :, pair]
        place = np.nonzero(open_)
        chosen = option[place[0][:, None], place[1][:, None], table[place[2]]]
        plans, first, fine = _ask(options, case, place[0], chosen)
        if count == 2:
            works[place] = fine
        found.append((plans, place[1][first]))
    return found


@cache
def _sets_of(size: int, count: int) -> Codes:
    """Every set of so many places."""
    return np.array(list(combinations(range(size), count)))


@cache
def _pairs_in(size: int) -> Codes:
    """The three pairs in each set of three, by their places among all pairs."""
    pairs = {pair: place for place, pair in enumerate(combinations(range(size), 2))}
    return np.array([[pairs[pair] for pair in combinations(three, 2)] for three in combinations(range(size), 3)])


def _most_helpful(options: Options, case: Codes, option: Codes, usable: Bools) -> tuple[Codes, Bools]:
    """Of each donor's differences those that bring a case nearest to recourse by themselves, in their old order."""
    score = np.where(usable, options.score[case[:, None, None], option], -1.0)
    best = np.sort(np.argsort(-score, axis=2, kind="stable")[:, :, :WIDTH], axis=2)
    return np.take_along_axis(option, best, axis=2), np.take_along_axis(usable, best, axis=2)


def _ask(options: Options, case: Codes, owner: Codes, chosen: Codes) -> tuple[Found, Codes, Bools]:
    """What comes of each set of options: the plans, where each was met first, and which of all sets work."""
    task, key = options.task, owner.astype(np.int64)
    for column in chosen.T:
        key = key * len(options) + column
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    who, picked = case[owner[first]], chosen[first]
    to = np.full((len(first), len(task.features)), np.nan, dtype=np.float32)
    to[np.arange(len(first))[:, None], options.column[picked]] = options.to[who[:, None], picked]
    chances = task.ask(task.changed(who, to))
    fine = task.reaches(who, chances) & task.rules.together(task.mask, task.facts[who], to)
    good = np.flatnonzero(fine)
    plans = Found(who, to, np.full(len(who), -1, dtype=np.intp), chances).take(good)
    return plans, first[good], fine[back.ravel()]
