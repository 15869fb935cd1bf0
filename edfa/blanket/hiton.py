"""HITON-MB: parents and children first, then, behind each child, the spouses that become dependent
given the child.

Aliferis, Tsamardinos, Statnikov (2003), HITON; Aliferis et al. (2010), Local causal and Markov
blanket induction.
"""

from typing import Literal

from edfa.blanket.independence import Tester
from edfa.blanket.separation import (
    IndexedBlanket,
    Progress,
    find_separator,
    rank_candidates,
    subsets,
)

__all__ = ["Symmetry", "hiton_mb", "hiton_pc"]

Symmetry = Literal["none", "and", "or"]


def hiton_pc(tester: Tester, target: int, max_condition: int) -> IndexedBlanket:
    """Parents and children: columns that no subset of the other accepted ones separates from the
    target.

    ``max_condition``: size of the largest subset tried. Only ``pc`` and ``separating_sets`` are
    filled; the result is cached in the tester.
    """
    cached: IndexedBlanket = tester.memo.get(
        ("hiton_pc", target, max_condition), lambda: _hiton_pc(tester, target, max_condition)
    )
    return IndexedBlanket(list(cached.pc), separating_sets=dict(cached.separating_sets))


def _hiton_pc(tester: Tester, target: int, max_condition: int) -> IndexedBlanket:
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
            if (separator := find_separator(tester, x, target, candidates)) is not None:
                blanket.separating_sets[x] = separator
                blanket.pc.remove(x)
                if x == new:
                    break
    return blanket


def hiton_mb(
    tester: Tester,
    target: int,
    max_condition: int = 3,
    symmetry: Symmetry = "none",
    parity: bool = False,
    progress: Progress | None = None,
) -> IndexedBlanket:
    """The blanket of a column in units.

    ``symmetry``: a child stays only if the target is among its own parents and children ("and"), or
    whichever of the two finds the other ("or"). ``parity``: admit spouses as the authors' code
    does.
    """
    # DEVIATION: an unreliable collider test admits no spouse; the authors' code admits it
    # (``parity=True``).
    blanket = hiton_pc(tester, target, max_condition)
    pc_of = {child: hiton_pc(tester, child, max_condition) for child in blanket.pc}
    adjacent = {child: other.pc for child, other in pc_of.items()}
    if symmetry == "and":
        blanket.pc = [child for child in blanket.pc if target in adjacent[child]]
        removed = [child for child in adjacent if child not in blanket.pc]
        blanket.separating_sets |= {
            child: pc_of[child].separating_sets[target] for child in removed
        }
    elif symmetry == "or":
        for child in range(len(tester.names)):
            if (
                child != target
                and child not in adjacent
                and target in (pc := hiton_pc(tester, child, max_condition).pc)
            ):
                blanket.pc.append(child)
                adjacent[child] = pc
    for done, child in enumerate(blanket.pc):
        blanket.units[child] = [
            s
            for s in sorted(adjacent[child])
            if s != target
            and s not in blanket.pc
            and _is_spouse(tester, s, child, target, blanket, parity)
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
