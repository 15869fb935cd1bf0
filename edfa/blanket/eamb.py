"""EAMB: forward selection with early dropping, twice, then a second opinion on what may have been lost.

Guo, Yu, Cao, Li, Wang (2022), Error-aware Markov blanket learning for causal feature selection.
"""

import math
from dataclasses import dataclass, field

from edfa.blanket.iamb import shrink
from edfa.blanket.independence import Tester

__all__ = ["eamb"]


@dataclass
class _Selection:
    """ESMB's outcome: the blanket, and what is remembered of the variables left out."""

    blanket: list[int] = field(default_factory=list)
    last: dict[int, float] = field(default_factory=dict)
    never: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)


def eamb(tester: Tester, target: int, *, recover: float = 0.25, parity: bool = False) -> list[int]:
    """The blanket as a flat list; ``edfa.blanket.split`` finds its units."""
    # DEVIATION: the authors' ranking of lost variables is undone by a helper that sorts by column, their count may
    # round to none, and their shrinking skips the last member and never asks again. ``parity=True`` keeps all that.
    chosen = _esmb(tester, target, parity)
    seen = {target, *chosen.blanket, *chosen.never, *chosen.removed}
    lost = [x for x in range(len(tester.names)) if x not in seen]
    if not parity:
        lost.sort(key=lambda x: (chosen.last.get(x, 1.0), x))
    count = max(0 if parity else 1, math.floor(recover * len(lost) + 0.5))
    return chosen.blanket + [x for x in lost[:count] if target in _esmb(tester, x, parity).blanket]


def _esmb(tester: Tester, target: int, parity: bool) -> _Selection:
    key = ("esmb", target, parity)
    if key not in tester.memo:
        chosen = _Selection()
        for _ in range(2):
            size = len(chosen.blanket)
            _forward(tester, target, chosen)
            if len(chosen.blanket) == size:
                break
            _shrink(tester, target, chosen, parity)
        tester.memo[key] = chosen
    found: _Selection = tester.memo[key]
    return found


def _forward(tester: Tester, target: int, chosen: _Selection) -> None:
    candidates = [x for x in range(len(tester.names)) if x != target and x not in chosen.blanket]
    while candidates:
        results = {x: tester.test(x, target, chosen.blanket) for x in candidates}
        for x, result in results.items():
            if result.reliable:
                chosen.last[x] = result.p
                if not chosen.blanket and not tester.significant(result):
                    chosen.never.add(x)
        candidates = [x for x in candidates if tester.strength(results[x])]
        if candidates:
            best = max(candidates, key=lambda x: (tester.strength(results[x]), -x))
            chosen.blanket.append(best)
            candidates.remove(best)


def _shrink(tester: Tester, target: int, chosen: _Selection, parity: bool) -> None:
    before = chosen.blanket
    if parity:
        others = {v: [w for w in before if w != v] for v in before}
        kept = [v for v in before if v == before[-1] or not tester.independent(v, target, others[v])]
    else:
        kept = shrink(tester, target, before)
    chosen.removed |= set(before) - set(kept)
    chosen.blanket = kept
