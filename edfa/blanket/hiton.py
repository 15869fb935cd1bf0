"""HITON-MB: parents and children first, then, behind each child, the spouses that wake up with it.

Aliferis, Tsamardinos, Statnikov (2003), HITON; Aliferis et al. (2010), Local causal and Markov blanket induction.
"""

from typing import Literal

from edfa.blanket.independence import Tester
from edfa.blanket.search import Found, Progress, ranked, separator, subsets

__all__ = ["Symmetry", "hiton_mb", "hiton_pc"]

Symmetry = Literal["none", "and", "or"]


def hiton_pc(tester: Tester, target: int, k: int) -> Found:
    """Columns that no subset of the other accepted ones separates from the target."""
    key = ("hiton_pc", target, k)
    if key not in tester.memo:
        tester.memo[key] = _hiton_pc(tester, target, k)
    found: Found = tester.memo[key]
    return Found(list(found.pc), separating=dict(found.separating))


def _hiton_pc(tester: Tester, target: int, k: int) -> Found:
    found = Found([])
    for new in ranked(tester, target, found):
        found.pc.append(new)
        for x in reversed(found.pc.copy()):
            others = [v for v in found.pc if v != x]
            # older members have met all sets without the new one before
            tried = subsets(others, 0, k) if x == new else subsets(others, 1, k, containing=new)
            if (sep := separator(tester, x, target, tried)) is not None:
                found.separating[x] = sep
                found.pc.remove(x)
                if x == new:
                    break
    return found


def hiton_mb(
    tester: Tester,
    target: int,
    *,
    k: int = 3,
    symmetry: Symmetry = "none",
    parity: bool = False,
    progress: Progress | None = None,
) -> Found:
    """The blanket in units."""
    # DEVIATION: an unreliable collider test admits no spouse; the authors' code admits it (``parity=True``).
    found = hiton_pc(tester, target, k)
    seen = {c: hiton_pc(tester, c, k) for c in found.pc}
    near = {c: other.pc for c, other in seen.items()}
    if symmetry == "and":
        found.pc = [c for c in found.pc if target in near[c]]
        found.separating |= {c: seen[c].separating[target] for c in near if c not in found.pc}
    elif symmetry == "or":
        for c in range(len(tester.names)):
            if c != target and c not in near and target in (pc := hiton_pc(tester, c, k).pc):
                found.pc.append(c)
                near[c] = pc
    for done, child in enumerate(found.pc):
        found.units[child] = [
            s
            for s in sorted(near[child])
            if s != target and s not in found.pc and _is_spouse(tester, s, child, target, found, parity)
        ]
        if progress:
            progress(done + 1, len(found.pc))
    return found


def _is_spouse(tester: Tester, s: int, child: int, target: int, found: Found, parity: bool) -> bool:
    """Whether s, separated from the target, becomes dependent once the child is known too."""
    apart = found.separating.get(s)
    if apart is None or child in apart:
        return False
    result = tester.test(s, target, (*apart, child))
    return tester.significant(result) if result.reliable else parity
