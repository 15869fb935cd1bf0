"""Several values of one donor at once: the smallest sets of them that are recourse."""

from functools import cache
from itertools import combinations

import numpy as np

from edfa.recourse.base import Codes, Found
from edfa.recourse.options import Options
from edfa.recourse.rules import Bools

__all__ = ["combine"]

WIDTH = 8  # of a donor's differences, those that help most by themselves are combined


def combine(
    options: Options, case: Codes, option: Codes, usable: Bools, most: int, *, every: bool = False
) -> tuple[Found, Codes]:
    """Sets of two up to ``most`` (three) of a donor's values, none of which holds a smaller one that is recourse.

    With the place of the donor that each comes from among those of its case. With ``every``, those that hold a smaller
    one as well. All are asked about in one call: sets that hold a smaller one are so few that they cost less than a
    second call.
    """
    task = options.task
    if not every:
        usable = usable & ~options.turns[case[:, None, None], option]
    if option.shape[2] > WIDTH:
        option, usable = _most_helpful(options, case, option, usable)
    sets, pairs = _sets_of(option.shape[2], most)
    one, two, three = (usable.take(place, axis=2) for place in sets.T)
    owner, donor, set_ = np.nonzero(one & two & three)
    if not len(owner):
        return Found.none(task), owner
    chosen = option[owner[:, None], donor[:, None], sets[set_]]
    key = (pairs[set_, 0] >= 0) * len(case) + owner  # pairs first
    for column in chosen.T:
        key = key * len(options) + column
    _, first, back = np.unique(key, return_index=True, return_inverse=True)
    who, picked = case[owner[first]], chosen[first]
    to = np.full((len(first), len(task.features)), np.nan, dtype=np.float32)
    to[np.arange(len(first))[:, None], options.column[picked]] = options.to[who[:, None], picked]
    chances = task.ask(task.changed(who, to))
    fine = task.reaches(who, chances) & task.rules.together(task.mask, task.facts[who], to)
    good = np.flatnonzero(fine)
    if not every:
        works = np.zeros((*usable.shape[:2], len(sets) + 1), dtype=bool)  # the last one: a pair's own pairs
        works[owner, donor, set_] = fine[back]
        at = first[good]
        good = good[~works[owner[at][:, None], donor[at][:, None], pairs[set_[at]]].any(axis=1)]
    return Found.of(who[good], to[good], chances[good]), donor[first[good]]


@cache
def _sets_of(size: int, most: int) -> tuple[Codes, Codes]:
    """Every set of two and of three places, two with the last one twice; and the places of the pairs in each, or -1."""
    two = list(combinations(range(size), 2))
    three = list(combinations(range(size), 3)) if most > 2 else []
    pairs = [[-1] * 3 for _ in two] + [[two.index(pair) for pair in combinations(three_, 2)] for three_ in three]
    sets = [(*pair, pair[1]) for pair in two] + three
    return np.array(sets, dtype=np.intp).reshape(-1, 3), np.array(pairs, dtype=np.intp).reshape(-1, 3)


def _most_helpful(options: Options, case: Codes, option: Codes, usable: Bools) -> tuple[Codes, Bools]:
    """Of each donor's differences those that bring a case nearest to recourse by themselves, in their old order."""
    score = np.where(usable, options.score(case)[np.arange(len(case))[:, None, None], option], -1.0)
    best = np.sort(np.argsort(-score, axis=2, kind="stable")[:, :, :WIDTH], axis=2)
    return np.take_along_axis(option, best, axis=2), np.take_along_axis(usable, best, axis=2)
