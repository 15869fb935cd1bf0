"""BAMB: parents, children and spouses grow together, and each prunes the other.

Ling, Yu, Wang, Liu, Ding, Wu (2019), BAMB: A balanced Markov blanket discovery approach to feature
selection.
"""

from collections.abc import Callable
from dataclasses import dataclass

from edfa.blanket.independence import Tester
from edfa.blanket.separation import IndexedBlanket, Progress, rank_candidates, subsets


def bamb(
    tester: Tester, target: int, max_condition: int, parity: bool, progress: Progress | None
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
    parity
        Whether to keep the order and the quirks of the authors' code.
    progress
        Called with the number of candidates done and of all.

    Returns
    -------
    IndexedBlanket
        Parents and children in the order of discovery, each with its spouses.
    """
    # DEVIATION: no test conditions on its own argument, and a variable that enters PC leaves every
    # spouse set. The authors' code does neither, and reads only the first spouse set of several;
    # ``parity=True`` keeps its order and quirks (listed at ``prune_pc`` and ``find_spouses``).
    blanket = IndexedBlanket([])
    search = _Search(tester, target, max_condition, parity, blanket)
    order = rank_candidates(tester, target, blanket)
    for done, new in enumerate(order):
        if progress:
            progress(done + 1, len(order))
        if blanket.separate(tester, new, target, subsets(blanket.pc, 1, max_condition)):
            continue
        blanket.pc.append(new)
        if not parity:
            search.retest_older(new)
        blanket.units[new] = search.find_spouses(new)
        search.prune_pc(new)
        if parity and new in blanket.pc:
            search.retest_older(new)
    if not parity:
        search.finish()
    return blanket


@dataclass
class _Search:
    """The steps of BAMB for one target; ``blanket`` is what has been found so far."""

    tester: Tester
    target: int
    max_condition: int
    parity: bool
    blanket: IndexedBlanket

    def retest_older(self, new: int) -> None:
        """Step 1b: test older members of PC, newest first, against sets that contain the new
        one.
        """
        pc = self.blanket.pc
        for x in reversed(pc.copy()):
            if x != new:
                others = [v for v in pc if v != x]
                candidates = subsets(others, 1, self.max_condition, containing=new)
                if self.blanket.separate(self.tester, x, self.target, candidates):
                    self._remove(x)

    def find_spouses(self, child: int) -> list[int]:
        """Steps 1c to 2-3: columns that become dependent on the target once the child is added, and
        stay so, the strongest first.

        Parity: a column without a separating set is tried with an empty one, and in step 2-3 every
        set has a member of PC.
        """
        tester, target, k, parity = self.tester, self.target, self.max_condition, self.parity
        blanket, siblings = self.blanket, [v for v in self.blanket.pc if v != child]
        strengths = {}
        for x in range(len(tester.names)):
            separator = blanket.separating_sets.get(x, () if parity else None)
            if x == target or x in blanket.pc or separator is None:
                continue
            if parity or child not in separator:
                strengths[x] = tester.strength(tester.test(x, target, {*separator, child}))

        def separated_by_one_spouse(x: int, others: list[int], containing: int | None) -> bool:
            candidates = subsets(others, 1, 1, containing)  # 2-1
            return any(tester.independent(x, target, (*s, child)) for s in candidates)

        def separated_from_child(x: int, others: list[int], containing: int | None) -> bool:
            pool = others if parity else [*others, target, *siblings]  # 2-2
            candidates = subsets(pool, 0, k, containing)
            return any(tester.independent(x, child, s) for s in candidates)

        def separated_from_target(x: int, others: list[int], containing: int | None) -> bool:
            candidates = subsets([*siblings, *others], 1, k, containing)  # 2-3
            if parity:
                candidates = (s for s in candidates if not set(s).isdisjoint(siblings))
            return any(tester.independent(x, target, (*s, child)) for s in candidates)

        spouses = sorted((x for x, s in strengths.items() if s), key=lambda x: (-strengths[x], x))
        for rejects in (separated_by_one_spouse, separated_from_child, separated_from_target):
            spouses = _filter(spouses, rejects)
        return spouses

    def prune_pc(self, new: int | None) -> None:
        """Step 3: remove members of PC that other members and their spouses make independent of the
        target.

        Only with sets that contain ``new``, unless that is None or the member itself. Parity: only
        the first element's spouses are read, the tested variable may be among them (which removes
        it), the pool still holds what was removed before, and no separating set is recorded.
        """
        blanket, parity = self.blanket, self.parity
        pool = list(blanket.pc)
        for x in reversed(pool):
            others = [v for v in (pool if parity else blanket.pc) if v != x]
            for subset in subsets(others, 1, self.max_condition, None if x == new else new):
                read = subset[:1] if parity else subset
                spouses = {s for z in read for s in blanket.units.get(z, []) if parity or s != x}
                conditions = tuple(sorted({*subset, *spouses}))
                if spouses and self.tester.independent(x, self.target, conditions):
                    if not parity:
                        blanket.separating_sets[x] = conditions
                    self._remove(x)
                    break
            if new is not None and new not in blanket.pc and not parity:
                return

    def finish(self) -> None:
        """Find all spouses and prune PC again now that every separating set is known, until PC
        stays as it is.
        """
        # DEVIATION: the loop in ``bamb`` meets a child before the separating sets of weaker
        # candidates are known, and so loses spouses that depend on the target marginally.
        blanket, before = self.blanket, None
        while before != len(blanket.pc):
            before = len(blanket.pc)
            blanket.units = {child: self.find_spouses(child) for child in blanket.pc}
            self.prune_pc(None)
        for child, spouses in blanket.units.items():
            blanket.units[child] = [s for s in spouses if s not in blanket.pc]

    def _remove(self, x: int) -> None:
        """Remove a column and its unit from PC."""
        self.blanket.pc.remove(x)
        self.blanket.units.pop(x, None)


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
