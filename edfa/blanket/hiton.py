"""HITON-MB: parents and children first, then, behind each child, the spouses that become dependent
given the child.

Aliferis, Tsamardinos, Statnikov (2003), HITON; Aliferis et al. (2010), Local causal and Markov
blanket induction.
"""

from typing import Literal

from edfa.blanket.independence import Tester
from edfa.blanket.separation import IndexedBlanket, Progress, rank_candidates, subsets

Symmetry = Literal["none", "and", "or"]


def hiton_pc(tester: Tester, target: int, max_condition: int) -> IndexedBlanket:
    """Parents and children: columns that no subset of the other accepted ones separates from the
    target.

    Parameters
    ----------
    tester
        Answers the tests of independence, and caches the result.
    target
        The column whose parents and children are searched.
    max_condition
        The size of the largest subset tried.

    Returns
    -------
    IndexedBlanket
        With ``pc`` and ``separating_sets`` alone; a copy, which may be changed.
    """

    def search() -> IndexedBlanket:
        blanket = IndexedBlanket([])
        for new in rank_candidates(tester, target, blanket):
            blanket.pc.append(new)
            for x in reversed(blanket.pc.copy()):
                others = [v for v in blanket.pc if v != x]
                # older members were tested before against all sets without the new one
                candidates = (
                    subsets(others, 0, max_condition)
                    if x == new
                    else subsets(others, 1, max_condition, containing=new)
                )
                if blanket.separate(tester, x, target, candidates):
                    blanket.pc.remove(x)
                    if x == new:
                        break
        return blanket

    found: IndexedBlanket = tester.memo.get(("hiton_pc", target, max_condition), search)
    return IndexedBlanket(list(found.pc), separating_sets=dict(found.separating_sets))


def hiton_mb(
    tester: Tester,
    target: int,
    max_condition: int,
    symmetry: Symmetry,
    parity: bool,
    progress: Progress | None,
) -> IndexedBlanket:
    """Find the blanket of a column in units.

    Parameters
    ----------
    tester
        Answers the tests of independence.
    target
        The column whose blanket is searched.
    max_condition
        The size of the largest subset tried as a separating set.
    symmetry
        ``"and"``: a child stays only if the target is among its own parents and children;
        ``"or"``: a column is a child if either of the two finds the other; ``"none"``: the target's
        own search decides.
    parity
        Whether to admit spouses as the authors' code does.
    progress
        Called with the number of children done and of all.

    Returns
    -------
    IndexedBlanket
        Parents and children in the order of discovery, each with its spouses in column order.
    """
    # DEVIATION: an unreliable collider test admits no spouse; the authors' code admits it
    # (``parity=True``).
    blanket = hiton_pc(tester, target, max_condition)
    pc_of = {child: hiton_pc(tester, child, max_condition) for child in blanket.pc}
    if symmetry == "and":
        blanket.pc = [child for child in blanket.pc if target in pc_of[child].pc]
        blanket.separating_sets |= {
            child: pc_of[child].separating_sets[target]
            for child in pc_of
            if child not in blanket.pc
        }
    elif symmetry == "or":
        for x in range(len(tester.names)):
            if x == target or x in pc_of:
                continue
            theirs = hiton_pc(tester, x, max_condition)
            if target in theirs.pc:
                blanket.pc.append(x)
                pc_of[x] = theirs
    for done, child in enumerate(blanket.pc):
        candidates = sorted({*pc_of[child].pc} - {target, *blanket.pc})
        blanket.units[child] = [
            s for s in candidates if _is_spouse(tester, s, child, target, blanket, parity)
        ]
        if progress:
            progress(done + 1, len(blanket.pc))
    return blanket


def _is_spouse(
    tester: Tester, x: int, child: int, target: int, blanket: IndexedBlanket, parity: bool
) -> bool:
    """Whether column x, separated from the target, becomes dependent on it once the child is
    added.
    """
    separator = blanket.separating_sets.get(x)
    if separator is None or child in separator:
        return False
    result = tester.test(x, target, (*separator, child))
    return tester.significant(result) if result.reliable else parity
