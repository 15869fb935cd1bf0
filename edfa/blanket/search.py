"""What the four algorithms share: the result of a search, and the order in which subsets are tried."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from edfa.blanket.independence import Tester

__all__ = ["Found", "Progress", "ranked", "separator", "subsets"]

Progress = Callable[[int, int], None]


@dataclass
class Found:
    """A blanket while it is being found: indices of columns, in the order of discovery."""

    pc: list[int]
    units: dict[int, list[int]] = field(default_factory=dict)
    separating: dict[int, tuple[int, ...]] = field(default_factory=dict)
    unattached: list[int] = field(default_factory=list)


def subsets(pool: Collection[int], low: int, high: int, containing: int | None = None) -> Iterator[tuple[int, ...]]:
    """Subsets of a pool by size, then in order of the columns; only those with one member, if it is named.

    >>> list(subsets([3, 1, 2], 0, 1))
    [(), (1,), (2,), (3,)]
    >>> list(subsets([3, 1, 2], 0, 2, containing=2))
    [(2,), (1, 2), (2, 3)]
    """
    members = sorted(pool)
    for size in range(low, min(high, len(members)) + 1):
        for chosen in combinations(members, size):
            if containing is None or containing in chosen:
                yield chosen


def separator(
    tester: Tester, x: int, target: int, candidates: Iterator[tuple[int, ...]], always: tuple[int, ...] = ()
) -> tuple[int, ...] | None:
    """The first of the candidate sets (with ``always`` added) that makes x independent of the target."""
    for chosen in candidates:
        given = (*chosen, *always)
        if tester.independent(x, target, given):
            return tuple(sorted(given))
    return None


def ranked(tester: Tester, target: int, found: Found) -> list[int]:
    """Columns dependent on the target, strongest first; the others are recorded as separated by nothing."""
    strengths = {}
    for x in range(len(tester.names)):
        if x == target:
            continue
        strengths[x] = tester.strength(tester.test(x, target))
        if not strengths[x]:
            found.separating[x] = ()
    return sorted((x for x, s in strengths.items() if s), key=lambda x: (-strengths[x], x))
