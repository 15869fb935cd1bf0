"""BAMB: parents, children and spouses grow together, and each prunes the other.

Ling, Yu, Wang, Liu, Ding, Wu (2019), BAMB: A balanced Markov blanket discovery approach to feature selection.
"""

from collections.abc import Callable, Iterator

from edfa.blanket.independence import Tester
from edfa.blanket.search import Found, Progress, ranked, separator, subsets

__all__ = ["bamb"]


def bamb(tester: Tester, target: int, *, k: int = 3, parity: bool = False, progress: Progress | None = None) -> Found:
    """The blanket in units."""
    # DEVIATION: no test conditions on its own argument, and a variable that enters PC leaves every spouse set. The
    # authors' code does neither, and reads only the first spouse set of several; ``parity=True`` keeps its order
    # and quirks (listed at ``_prune`` and ``_against_target``).
    found = Found([])
    order = ranked(tester, target, found)
    for done, new in enumerate(order):
        if progress:
            progress(done + 1, len(order))
        sep = separator(tester, new, target, subsets(found.pc, 1, k))
        if sep is not None:
            found.separating[new] = sep
            continue
        found.pc.append(new)
        if not parity:
            _retest(tester, target, found, new, k)
        found.units[new] = _spouses(tester, target, found, new, k, parity)
        _prune(tester, target, found, new, k, parity)
        if parity and new in found.pc:
            _retest(tester, target, found, new, k)
    if not parity:
        _finish(tester, target, found, k)
        found.units = {c: [s for s in found.units[c] if s not in found.pc] for c in found.pc}
    return found


def _finish(tester: Tester, target: int, found: Found, k: int) -> None:
    """Ask once more with every separating set known: who stands behind whom, and who is in PC only by mistake."""
    # DEVIATION: the loop above meets a child before the separating sets of weaker candidates are known, and so
    # loses spouses that depend on the target marginally.
    while True:
        found.units = {c: _spouses(tester, target, found, c, k, parity=False) for c in found.pc}
        before = len(found.pc)
        _prune(tester, target, found, None, k, parity=False)
        if len(found.pc) == before:
            return


def _drop(found: Found, x: int) -> None:
    found.pc.remove(x)
    found.units.pop(x, None)


def _retest(tester: Tester, target: int, found: Found, new: int, k: int) -> None:
    """Step 1b: older members against sets with the new one, newest first."""
    for x in reversed(found.pc.copy()):
        if x != new and x in found.pc:
            others = [v for v in found.pc if v != x]
            if (sep := separator(tester, x, target, subsets(others, 1, k, containing=new))) is not None:
                found.separating[x] = sep
                _drop(found, x)


def _spouses(tester: Tester, target: int, found: Found, child: int, k: int, parity: bool) -> list[int]:
    """Steps 1c to 2-3: who becomes dependent on the target once the child is known, and stays so."""
    strengths = {}
    for x in range(len(tester.names)):
        apart = found.separating.get(x, () if parity else None)
        if x == target or x in found.pc or apart is None or (child in apart and not parity):
            continue
        strengths[x] = tester.strength(tester.test(x, target, {*apart, child}))
    accepted = sorted((x for x, s in strengths.items() if s), key=lambda x: (-strengths[x], x))

    def with_child(e: int, rest: list[int], must: int | None) -> bool:  # 2-1
        return separator(tester, e, target, subsets(rest, 1, 1, containing=must), (child,)) is not None

    def from_child(e: int, rest: list[int], must: int | None) -> bool:  # 2-2
        pool = rest if parity else [*rest, target, *(v for v in found.pc if v != child)]
        return separator(tester, e, child, subsets(pool, 0, k, containing=must)) is not None

    def with_others(e: int, rest: list[int], must: int | None) -> bool:  # 2-3
        tried = _against_target(found, child, rest, must, k, parity)
        return separator(tester, e, target, tried, (child,)) is not None

    for rejects in (with_child, from_child, with_others):
        accepted = _filter(accepted, rejects)
    return accepted


def _filter(candidates: list[int], rejects: Callable[[int, list[int], int | None], bool]) -> list[int]:
    """Accept candidates one by one; after each, ask the older ones again with sets that hold the new one."""
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


def _against_target(
    found: Found, child: int, accepted: list[int], must: int | None, k: int, parity: bool
) -> Iterator[tuple[int, ...]]:
    """Step 2-3: subsets of the other members of PC and the accepted spouses."""
    others = [v for v in found.pc if v != child]
    for chosen in subsets([*others, *accepted], 1, k, containing=must):
        if not parity or any(v in others for v in chosen):
            yield chosen


def _prune(tester: Tester, target: int, found: Found, new: int | None, k: int, parity: bool) -> None:
    """Step 3: members of PC that spouses of other members make independent of the target.

    Parity: only the first element's spouses are read, the tested variable may be among them (which drops it), the
    pool still holds what was dropped before, and no separating set is remembered.
    """
    pool = list(found.pc)
    for y in reversed(pool.copy()):
        others = [v for v in (pool if parity else found.pc) if v != y]
        for chosen in subsets(others, 1, k, containing=None if y == new else new):
            read = chosen[:1] if parity else chosen
            spouses = {s for z in read for s in found.units.get(z, [])} - (set() if parity else {y})
            if spouses and tester.independent(y, target, {*chosen, *spouses}):
                if not parity:
                    found.separating[y] = tuple(sorted({*chosen, *spouses}))
                _drop(found, y)
                break
        if new is not None and new not in found.pc and not parity:
            return
