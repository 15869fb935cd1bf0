"""BAMB: parents, children and spouses grow together, and each prunes the other.

Ling, Yu, Wang, Liu, Ding, Wu (2019), BAMB: A balanced Markov blanket discovery approach to feature
selection.
"""

from collections.abc import Callable, Iterator

from edfa.blanket.independence import Tester
from edfa.blanket.separation import (
    IndexedBlanket,
    Progress,
    find_separator,
    rank_candidates,
    subsets,
)

__all__ = ["bamb"]


def bamb(
    tester: Tester,
    target: int,
    max_condition: int = 3,
    parity: bool = False,
    progress: Progress | None = None,
) -> IndexedBlanket:
    """The blanket of a column in units. ``parity``: in the order and with the quirks of the
    authors' code.
    """
    # DEVIATION: no test conditions on its own argument, and a variable that enters PC leaves every
    # spouse set. The authors' code does neither, and reads only the first spouse set of several;
    # ``parity=True`` keeps its order and quirks (listed at ``_prune_pc`` and
    # ``_conditions_from_target``).
    blanket = IndexedBlanket([])
    order = rank_candidates(tester, target, blanket)
    for done, new in enumerate(order):
        if progress:
            progress(done + 1, len(order))
        separator = find_separator(tester, new, target, subsets(blanket.pc, 1, max_condition))
        if separator is not None:
            blanket.separating_sets[new] = separator
            continue
        blanket.pc.append(new)
        if not parity:
            _retest_older(tester, target, blanket, new, max_condition)
        blanket.units[new] = _find_spouses(tester, target, blanket, new, max_condition, parity)
        _prune_pc(tester, target, blanket, new, max_condition, parity)
        if parity and new in blanket.pc:
            _retest_older(tester, target, blanket, new, max_condition)
    if not parity:
        _finish(tester, target, blanket, max_condition)
        blanket.units = {
            c: [s for s in blanket.units[c] if s not in blanket.pc] for c in blanket.pc
        }
    return blanket


def _finish(tester: Tester, target: int, blanket: IndexedBlanket, max_condition: int) -> None:
    """Find all spouses and prune PC again now that every separating set is known, until PC stays as
    it is.
    """
    # DEVIATION: the loop above meets a child before the separating sets of weaker candidates are
    # known, and so loses spouses that depend on the target marginally.
    while True:
        blanket.units = {
            c: _find_spouses(tester, target, blanket, c, max_condition, parity=False)
            for c in blanket.pc
        }
        before = len(blanket.pc)
        _prune_pc(tester, target, blanket, None, max_condition, parity=False)
        if len(blanket.pc) == before:
            return


def _remove(blanket: IndexedBlanket, x: int) -> None:
    """Remove a column and its unit from PC."""
    blanket.pc.remove(x)
    blanket.units.pop(x, None)


def _retest_older(
    tester: Tester, target: int, blanket: IndexedBlanket, new: int, max_condition: int
) -> None:
    """Step 1b: test older members of PC, newest first, against sets that contain the new one."""
    for x in reversed(blanket.pc.copy()):
        if x != new and x in blanket.pc:
            others = [v for v in blanket.pc if v != x]
            candidates = subsets(others, 1, max_condition, containing=new)
            if (separator := find_separator(tester, x, target, candidates)) is not None:
                blanket.separating_sets[x] = separator
                _remove(blanket, x)


def _find_spouses(
    tester: Tester,
    target: int,
    blanket: IndexedBlanket,
    child: int,
    max_condition: int,
    parity: bool,
) -> list[int]:
    """Steps 1c to 2-3: columns that become dependent on the target once the child is added, and
    stay so.
    """
    strengths = {}
    for x in range(len(tester.names)):
        separator = blanket.separating_sets.get(x, () if parity else None)
        if (
            x == target
            or x in blanket.pc
            or separator is None
            or (child in separator and not parity)
        ):
            continue
        strengths[x] = tester.strength(tester.test(x, target, {*separator, child}))
    spouses = sorted((x for x, s in strengths.items() if s), key=lambda x: (-strengths[x], x))

    def separated_by_one_spouse(x: int, others: list[int], containing: int | None) -> bool:  # 2-1
        candidates = subsets(others, 1, 1, containing=containing)
        return find_separator(tester, x, target, candidates, (child,)) is not None

    def separated_from_child(x: int, others: list[int], containing: int | None) -> bool:  # 2-2
        pool = others if parity else [*others, target, *(v for v in blanket.pc if v != child)]
        return (
            find_separator(tester, x, child, subsets(pool, 0, max_condition, containing=containing))
            is not None
        )

    def separated_from_target(x: int, others: list[int], containing: int | None) -> bool:  # 2-3
        candidates = _conditions_from_target(
            blanket, child, others, containing, max_condition, parity
        )
        return find_separator(tester, x, target, candidates, (child,)) is not None

    for rejects in (separated_by_one_spouse, separated_from_child, separated_from_target):
        spouses = _filter(spouses, rejects)
    return spouses


def _filter(
    candidates: list[int], rejects: Callable[[int, list[int], int | None], bool]
) -> list[int]:
    """Accept candidates one by one; after each, test the older ones again with sets that contain
    the new one.

    ``rejects(x, others, containing)``: whether some set of the other accepted ones, with
    ``containing`` in it unless that is None, separates x.
    """
    accepted: list[int] = []
    for new in candidates:
        if rejects(new, accepted, None):
            continue
        for old in reversed(accepted.copy()):
            others = [v for v in (*accepted, new) if v != old]
            if rejects(old, others, new):
                accepted.remove(old)
        accepted.append(new)
    return accepted


def _conditions_from_target(
    blanket: IndexedBlanket,
    child: int,
    spouses: list[int],
    containing: int | None,
    max_condition: int,
    parity: bool,
) -> Iterator[tuple[int, ...]]:
    """Step 2-3: subsets of the other members of PC and the accepted spouses. Parity: with a member
    of PC in each.
    """
    others = [v for v in blanket.pc if v != child]
    for subset in subsets([*others, *spouses], 1, max_condition, containing=containing):
        if not parity or any(v in others for v in subset):
            yield subset


def _prune_pc(
    tester: Tester,
    target: int,
    blanket: IndexedBlanket,
    new: int | None,
    max_condition: int,
    parity: bool,
) -> None:
    """Step 3: remove members of PC that other members and their spouses make independent of the
    target.

    Only with sets that contain ``new``, unless that is None or the member itself. Parity: only the
    first element's spouses are read, the tested variable may be among them (which removes it), the
    pool still holds what was removed before, and no separating set is recorded.
    """
    pool = list(blanket.pc)
    for x in reversed(pool.copy()):
        others = [v for v in (pool if parity else blanket.pc) if v != x]
        for subset in subsets(others, 1, max_condition, containing=None if x == new else new):
            read = subset[:1] if parity else subset
            spouses = {s for z in read for s in blanket.units.get(z, [])} - (
                set() if parity else {x}
            )
            if spouses and tester.independent(x, target, {*subset, *spouses}):
                if not parity:
                    blanket.separating_sets[x] = tuple(sorted({*subset, *spouses}))
                _remove(blanket, x)
                break
        if new is not None and new not in blanket.pc and not parity:
            return
