"""Units of a flat blanket: which members are parents or children, and behind which child each
spouse stands.

EAMB and IAMB return a flat set; this pass, and nothing in the authors' code, gives their units.
"""

from edfa.blanket.hiton import hiton_pc
from edfa.blanket.independence import Tester
from edfa.blanket.separation import IndexedBlanket, Progress, subsets


def split_units(
    tester: Tester,
    target: int,
    members: list[int],
    max_condition: int,
    progress: Progress | None,
) -> IndexedBlanket:
    """Split a flat blanket into units.

    Members that a subset of the others separates from the target are spouses; the rest are parents
    and children. A spouse stands behind every child that it is adjacent to and that makes it
    dependent on the target; if it is adjacent to none of these, behind the one that makes it most
    dependent; if there is none, it is unattached.

    Parameters
    ----------
    tester
        Answers the tests of independence.
    target
        The column whose blanket it is.
    members
        The columns of the flat blanket.
    max_condition
        The size of the largest subset tried as a separating set.
    progress
        Called with the number of members done and of all.

    Returns
    -------
    IndexedBlanket
        The same members in units.
    """
    blanket = IndexedBlanket([])
    for done, x in enumerate(members):
        if progress:
            progress(done + 1, len(members))
        candidates = subsets([v for v in members if v != x], 0, max_condition)
        if not blanket.separate(tester, x, target, candidates):
            blanket.pc.append(x)
    blanket.units = {child: [] for child in blanket.pc}
    for spouse in sorted(set(members) - set(blanket.pc)):
        children = _children_of(tester, target, blanket, spouse, max_condition)
        for child in children:
            blanket.units[child].append(spouse)
        if not children:
            blanket.unattached.append(spouse)
    return blanket


def _children_of(
    tester: Tester, target: int, blanket: IndexedBlanket, spouse: int, max_condition: int
) -> list[int]:
    """The members of PC behind which a spouse stands."""
    separator = blanket.separating_sets[spouse]
    strengths = {
        child: tester.strength(tester.test(spouse, target, (*separator, child)))
        for child in blanket.pc
        if child not in separator
    }
    colliders = [child for child, strength in strengths.items() if strength]
    adjacent = [child for child in colliders if spouse in hiton_pc(tester, child, max_condition).pc]
    if colliders and not adjacent:
        return [max(colliders, key=lambda child: (strengths[child], -child))]
    return adjacent
