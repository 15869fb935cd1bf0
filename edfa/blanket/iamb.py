"""IAMB: grow the blanket by the strongest association given what is in it, then shrink.

Tsamardinos, Aliferis, Statnikov (2003), Algorithms for large scale Markov blanket discovery.
"""

from edfa.blanket.independence import Tester


def iamb(tester: Tester, target: int, parity: bool) -> list[int]:
    """Find the blanket of a column, flat; ``split_units`` finds its units.

    Parameters
    ----------
    tester
        Answers the tests of independence.
    target
        The column whose blanket is searched.
    parity
        Whether to remove redundant members as the reference does.

    Returns
    -------
    list of int
        The members, in the order in which they were added.
    """
    # DEVIATION: the reference removes all redundant members at once, and so both of a redundant
    # pair. Here the weakest goes first and the others are asked again; ``parity=True`` does it the
    # reference's way.
    blanket = _grow(tester, target)
    if parity:
        return [
            v for v in blanket if not tester.independent(v, target, [w for w in blanket if w != v])
        ]
    return shrink(tester, target, blanket)


def _grow(tester: Tester, target: int) -> list[int]:
    """Add the column with the strongest dependence given those added before, as long as there is
    one.
    """
    blanket: list[int] = []
    candidates = [x for x in range(len(tester.names)) if x != target]
    while candidates:
        results = {x: tester.test(x, target, blanket) for x in candidates}
        candidates = [x for x in candidates if results[x].reliable]
        best = max(candidates, key=lambda x: (tester.strength(results[x]), -x), default=None)
        if best is None or not tester.strength(results[best]):
            break
        blanket.append(best)
        candidates.remove(best)
    return blanket


def shrink(tester: Tester, target: int, blanket: list[int]) -> list[int]:
    """Remove members that the others make independent of the target: the weakest first, testing
    again after each.

    ``blanket`` are columns; the result is a new list of those that stay, in the same order.
    """
    members = list(blanket)
    while True:
        others = {v: [w for w in members if w != v] for v in members}
        redundant = [v for v in members if tester.independent(v, target, others[v])]
        if not redundant:
            return members
        members.remove(max(redundant, key=lambda v: (tester.test(v, target, others[v]).p, v)))
