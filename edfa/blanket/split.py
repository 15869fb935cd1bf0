"""A flat blanket in units: who is parent or child, and behind which child each spouse stands.

EAMB and IAMB return a flat set; this pass, and nothing in the authors' code, gives their units.
"""

from edfa.blanket.hiton import hiton_pc
from edfa.blanket.independence import Tester
from edfa.blanket.search import Found, Progress, separator, subsets

__all__ = ["split"]


def split(tester: Tester, target: int, blanket: list[int], k: int = 3, progress: Progress | None = None) -> Found:
    """Members that a subset of the others separates from the target are spouses; the rest are parents and children.

    A spouse stands behind the children that wake it up and that it is adjacent to; if it is adjacent to none, behind
    the one that wakes it up most.
    """
    found = Found([])
    for done, x in enumerate(blanket):
        if progress:
            progress(done + 1, len(blanket))
        sep = separator(tester, x, target, subsets([v for v in blanket if v != x], 0, k))
        if sep is None:
            found.pc.append(x)
        else:
            found.separating[x] = sep
    found.units = {c: [] for c in found.pc}
    for s in sorted(set(blanket) - set(found.pc)):
        apart = found.separating[s]
        strengths = {c: tester.strength(tester.test(s, target, (*apart, c))) for c in found.pc if c not in apart}
        woken = [c for c, strength in strengths.items() if strength]
        behind = [c for c in woken if s in hiton_pc(tester, c, k).pc]
        if not behind and woken:
            behind = [max(woken, key=lambda c: (strengths[c], -c))]
        for c in behind:
            found.units[c].append(s)
        if not behind:
            found.unattached.append(s)
    return found
