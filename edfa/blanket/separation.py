"""What the four algorithms share: the blanket under construction, and the search for separating
sets.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import combinations

from edfa.blanket.independence import Tester

Progress = Callable[[int, int], None]
"""Called with the number of steps done and the number of all steps."""


@dataclass
class IndexedBlanket:
    """A blanket under construction, as column indices in the order of discovery.

    Parameters
    ----------
    pc
        Parents and children.
    units
        The spouses of each of them.
    separating_sets
        For a column that is no parent or child, the conditions that made it independent of the
        target.
    unattached
        Members that stand behind no child.
    """

    pc: list[int]
    units: dict[int, list[int]] = field(default_factory=dict)
    separating_sets: dict[int, tuple[int, ...]] = field(default_factory=dict)
    unattached: list[int] = field(default_factory=list)

    def separate(
        self, tester: Tester, x: int, target: int, candidates: Iterator[tuple[int, ...]]
    ) -> bool:
        """Record the first candidate set that makes column x independent of the target.

        Parameters
        ----------
        tester
            Answers the tests of independence; an unreliable one separates nothing.
        x, target
            The two columns.
        candidates
            The sets to try, in this order, as ``subsets`` gives them.

        Returns
        -------
        bool
            Whether there was one.
        """
        for candidate in candidates:
            if tester.independent(x, target, candidate):
                self.separating_sets[x] = candidate
                return True
        return False


def subsets(
    pool: Collection[int], low: int, high: int, containing: int | None = None
) -> Iterator[tuple[int, ...]]:
    """Subsets of a pool, by size, then in order of the columns.

    Parameters
    ----------
    pool
        The columns to choose from.
    low, high
        The least and the largest number of members.
    containing
        Give only subsets with this member; None: all of them.

    Examples
    --------
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


def rank_candidates(tester: Tester, target: int, blanket: IndexedBlanket) -> list[int]:
    """Columns that depend on the target by themselves, strongest first; ties in column order.

    The other columns are recorded in ``blanket`` as separated by the empty set.
    """
    others = (x for x in range(len(tester.names)) if x != target)
    strengths = {x: tester.strength(tester.test(x, target)) for x in others}
    blanket.separating_sets |= {x: () for x, strength in strengths.items() if not strength}
    dependent = (x for x, strength in strengths.items() if strength)
    return sorted(dependent, key=lambda x: -strengths[x])
