"""EAMB: forward selection with early dropping, twice, then a second test of variables that may have
been lost.

Guo, Yu, Cao, Li, Wang (2022), Error-aware Markov blanket learning for causal feature selection.
"""

import math
from dataclasses import dataclass, field

from edfa.blanket.iamb import shrink
from edfa.blanket.independence import Tester


@dataclass
class _Selection:
    """The outcome of ESMB, as columns.

    Parameters
    ----------
    blanket
        The members in the order of selection.
    last_p
        The p-value of each column's last reliable test.
    found_irrelevant
        Columns that were independent of the target by themselves, or selected and removed again.
    """

    blanket: list[int] = field(default_factory=list)
    last_p: dict[int, float] = field(default_factory=dict)
    found_irrelevant: set[int] = field(default_factory=set)


def eamb(tester: Tester, target: int, recover: float, parity: bool) -> list[int]:
    """Find the blanket of a column, flat; ``split_units`` finds its units.

    Parameters
    ----------
    tester
        Answers the tests of independence.
    target
        The column whose blanket is searched.
    recover
        The share of the lost columns, which were dropped although not marginally independent, that
        are tested again from their own side.
    parity
        Whether to reproduce the authors' code, quirks included.

    Returns
    -------
    list of int
        The members in the order of selection, then those that were recovered.
    """
    # DEVIATION: the authors' ranking of lost variables is undone by a helper that sorts by column,
    # their count may round to none, and their shrinking skips the last member and never asks again.
    # ``parity=True`` keeps all that.
    selection = _esmb(tester, target, parity)
    decided = {target, *selection.blanket, *selection.found_irrelevant}
    lost = [x for x in range(len(tester.names)) if x not in decided]
    if not parity:
        lost.sort(key=lambda x: (selection.last_p.get(x, 1.0), x))
    count = max(0 if parity else 1, math.floor(recover * len(lost) + 0.5))
    return selection.blanket + [
        x for x in lost[:count] if target in _esmb(tester, x, parity).blanket
    ]


def _esmb(tester: Tester, target: int, parity: bool) -> _Selection:
    """Select forward and shrink, twice; the result is cached in the tester."""

    def select() -> _Selection:
        selection = _Selection()
        for _ in range(2):
            size = len(selection.blanket)
            _select_forward(tester, target, selection)
            if len(selection.blanket) == size:
                break
            _shrink(tester, target, selection, parity)
        return selection

    selected: _Selection = tester.memo.get(("esmb", target, parity), select)
    return selected


def _select_forward(tester: Tester, target: int, selection: _Selection) -> None:
    """Add the strongest candidate and drop the independent ones, until no candidate is left."""
    candidates = [x for x in range(len(tester.names)) if x != target and x not in selection.blanket]
    while candidates:
        results = {x: tester.test(x, target, selection.blanket) for x in candidates}
        for x, result in results.items():
            if result.reliable:
                selection.last_p[x] = result.p
                if not selection.blanket and not tester.significant(result):
                    selection.found_irrelevant.add(x)
        strengths = {x: tester.strength(result) for x, result in results.items()}
        candidates = [x for x in candidates if strengths[x]]
        if candidates:
            best = max(candidates, key=lambda x: (strengths[x], -x))
            selection.blanket.append(best)
            candidates.remove(best)


def _shrink(tester: Tester, target: int, selection: _Selection, parity: bool) -> None:
    """Remove members that the others make independent of the target."""
    before = selection.blanket
    if parity:
        others = {v: [w for w in before if w != v] for v in before}
        after = [
            v for v in before if v == before[-1] or not tester.independent(v, target, others[v])
        ]
    else:
        after = shrink(tester, target, before)
    selection.found_irrelevant |= set(before) - set(after)
    selection.blanket = after
