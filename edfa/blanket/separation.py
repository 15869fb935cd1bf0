"""What the four algorithms share: the blanket under construction, and the search for separating
sets.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from edfa.blanket.independence import Tester

__all__ = ["IndexedBlanket", "Progress", "find_separator", "rank_candidates", "subsets"]

Progress = Callable[[int, int], None]
"""Called with the number of steps done and the number of all steps."""


@dataclass
class IndexedBlanket:
    """A blanket under construction, as column indices in the order of discovery.

    ``pc``: parents and children; ``units``: the spouses of each of them; ``separating_sets``: for a
    column that is no parent or child, the conditions that made it independent of the target;
    ``unattached``: members with no child.
    """

    pc: list[int]
    units: dict[int, list[int]] = field(default_factory=dict)
    separating_sets: dict[int, tuple[int, ...]] = field(default_factory=dict)
    unattached: list[int] = field(default_factory=list)


def subsets(
    pool: Collection[int], low: int, high: int, containing: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Subsets of ``low`` to ``high`` members of a pool, by size, then in order of the columns.

    ``containing``: only subsets with this member.

    >>> list(subsets([3, 1, 2], 0, 1))
    [(), (1,), (2,), (3,)]
    >>> list(subsets([3, 1, 2], 0, 2, containing=2))
    [(2,), (1, 2), (2, 3)]
    """
    members = sorted(pool)
    for size in range(low, min(high, len(members)) + 1):
        for subset in combinations(members, size):
            if containing is None or containing in subset:
                yield subset


def find_separator(
    tester: Tester,
    x: int,
    target: int,
    candidates: Iterator[tuple[int, ...]],
    always: tuple[int, ...] = (),
) -> tuple[int, ...] | None:
    """The first of the candidate sets (with ``always`` added) that makes x independent of the
    target, sorted.

    None if no candidate does.
    """
    for candidate in candidates:
        conditions = (*candidate, *always)
        if tester.independent(x, target, conditions):
            return tuple(sorted(conditions))
    return None


def rank_candidates(tester: Tester, target: int, blanket: IndexedBlanket) -> list[int]:
    """Columns that depend on the target by themselves, strongest first.

    The other columns are recorded in ``blanket`` as separated by the empty set.
    """
    strengths = {}
    for x in range(len(tester.names)):
        if x == target:
            continue
        strengths[x] = tester.strength(tester.test(x, target))
        if not strengths[x]:
            blanket.separating_sets[x] = ()
    return sorted((x for x, s in strengths.items() if s), key=lambda x: (-strengths[x], x))
