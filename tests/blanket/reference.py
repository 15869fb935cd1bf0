"""The four published Markov blanket algorithms as their authors run them, quirks included, slow and
literal.

Only for comparison with the library's ``parity=True``. A ``test(x, y, given)`` answers with a
Verdict; ``p`` counts the columns, the target among them; columns are numbers. Smaller numbers win
ties, and subsets come by size, then in lexicographic order of their sorted members.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, xlogy


class Verdict(NamedTuple):
    """What a test of independence says: three-valued, since an unreliable one says nothing."""

    p: float
    statistic: float
    reliable: bool


# --- the test
# ---------------------------------------------------------------------------------------------------------


def g2(codes, levels, x, y, given):
    """G2 with the degrees of freedom of what is present, reliable from five rows a cell."""
    # Open: a column that is also conditioned on counts twice among the cells, as the product over
    # X, T and S reads.
    columns = (*given, x, y)
    cells = math.prod(levels[c] for c in columns)
    if len(codes) / cells < 5:
        return Verdict(1.0, 0.0, False)
    cell = np.zeros(len(codes), dtype=int)
    for c in columns:
        cell = cell * levels[c] + codes[:, c]
    counts = np.bincount(cell, minlength=cells).reshape(-1, levels[x], levels[y]).astype(float)
    counts = counts[counts.any(axis=(1, 2))]  # strata that occur
    rows, columns, totals = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
    dof = int(
        ((np.count_nonzero(rows, axis=1) - 1) * (np.count_nonzero(columns, axis=1) - 1)).sum()
    )
    entropies = (
        xlogy(rows, rows).sum() + xlogy(columns, columns).sum() - xlogy(totals, totals).sum()
    )
    statistic = 2 * (xlogy(counts, counts).sum() - entropies)
    if dof == 0:
        return Verdict(1.0, 0.0, True)
    statistic = max(float(statistic), 0.0)
    return Verdict(float(chdtrc(dof, statistic)), statistic, True)


# --- how a verdict is read
# --------------------------------------------------------------------------------------------


def _independent(verdict, alpha):
    return verdict.reliable and verdict.p > alpha


def _dependent(verdict, alpha):
    return verdict.reliable and verdict.p <= alpha


def _assoc(verdict, alpha):
    return verdict.statistic if _dependent(verdict, alpha) else 0.0


def _set(*members):
    return tuple(sorted(set(members)))


def _subsets(pool, smallest, largest):
    for size in range(smallest, largest + 1):
        yield from itertools.combinations(_set(*pool), size)


def _separator(test, x, y, sets, alpha):
    """The first of the sets that makes x and y independent; unreliable tests separate nothing."""
    return next((z for z in sets if _independent(test(x, y, _set(*z)), alpha)), None)


def _screen(test, p, target, alpha):
    """Who depends on the target by itself, the strongest first; an unreliable test drops."""
    verdicts = {x: test(x, target, ()) for x in range(p) if x != target}
    return _strongest_first({x: v for x, v in verdicts.items() if _dependent(v, alpha)}, alpha)


def _strongest_first(verdicts, alpha):
    return sorted(verdicts, key=lambda x: (-_assoc(verdicts[x], alpha), x))


# --- IAMB
# -------------------------------------------------------------------------------------------------------------


def iamb(test, p, target, alpha):
    """Grow by the strongest, then remove every redundant member together."""
    blanket = []
    left = [x for x in range(p) if x != target]
    while left:
        verdicts = {x: test(x, target, _set(*blanket)) for x in left}
        left = [x for x in left if verdicts[x].reliable]  # an unreliable candidate is gone for good
        best = max(left, key=lambda x: _assoc(verdicts[x], alpha), default=None)
        if best is None or verdicts[best].p > alpha:
            break
        blanket.append(best)
        left.remove(best)
    return [
        v for v in blanket if not _independent(test(v, target, _set(*set(blanket) - {v})), alpha)
    ]


# --- HITON-MB
# ---------------------------------------------------------------------------------------------------------


def _hiton_pc(test, p, target, alpha, k):
    """Parents and children in order of entry, and a separating set for everybody else."""
    order = _screen(test, p, target, alpha)
    sep = {x: () for x in range(p) if x != target and x not in order}
    pc = []
    for y in order:
        pc.append(y)
        for x in reversed(tuple(pc)):
            # Open: whoever this pass has removed conditions no later test of the same pass.
            sets = (z for z in _subsets(set(pc) - {x}, 0, k) if x == y or y in z)
            separator = _separator(test, x, target, sets, alpha)
            if separator is not None:
                sep[x] = separator
                pc.remove(x)
                if x == y:
                    break
    return pc, sep


def hiton_mb(test, p, target, alpha, k):
    """PC in order of entry, and child -> spouses; no symmetry correction."""
    pc, sep = _hiton_pc(test, p, target, alpha, k)
    units = {c: [] for c in pc}
    for c in pc:
        theirs, _ = _hiton_pc(test, p, c, alpha, k)
        for s in _set(*set(theirs) - {*pc, target}):  # set helpers sort: by column, not by entry
            # An unreliable collider test admits, too.
            if c not in sep[s] and not _independent(test(s, target, _set(*sep[s], c)), alpha):
                units[c].append(s)
    return pc, units


# --- BAMB
# -------------------------------------------------------------------------------------------------------------


def bamb(test, p, target, alpha, k):
    """PC in order of entry, and child -> spouses, both grown together."""
    sep = {
        x: () for x in range(p) if x != target
    }  # Open: as long as nothing has separated x, its set is empty
    pc, spouses = [], {}
    for a in _screen(test, p, target, alpha):
        separator = _separator(test, a, target, _subsets(pc, 1, k), alpha)  # 1a
        if separator is not None:
            sep[a] = separator
            continue
        pc.append(a)
        candidates = _bamb_candidates(test, target, alpha, a, pc, sep)  # 1c
        spouses[a] = _bamb_prune(test, target, alpha, k, a, pc, candidates)  # 2
        _bamb_drop_by_units(test, target, alpha, k, a, pc, spouses)  # 3
        if a not in pc:
            continue
        for y in reversed([y for y in pc if y != a]):  # 1b, late
            separator = _separator(
                test, y, target, (z for z in _subsets(set(pc) - {y}, 1, k) if a in z), alpha
            )
            if separator is not None:
                sep[y] = separator
                pc.remove(y)
                del spouses[y]
    # Open: the last line of the algorithm holds here, too: a member of PC is listed as nobody's
    # spouse.
    return pc, {c: [s for s in spouses[c] if s not in pc] for c in pc}


def _bamb_candidates(test, target, alpha, a, pc, sep):
    """1c: who depends on the target once A is known; also where A is in the separating set
    already.
    """
    verdicts = {x: test(x, target, _set(*sep[x], a)) for x in sep if x not in pc}
    return _strongest_first({x: v for x, v in verdicts.items() if _dependent(v, alpha)}, alpha)


def _forward(candidates, separated):
    """Accept one after the other; each accepted one puts the older ones, newest first, to the test
    again.

    ``separated(e, accepted, new)`` says whether the accepted remove e, by sets containing ``new``
    where it is not None.
    """
    accepted = []
    for e in candidates:
        if separated(e, accepted, None):
            continue
        accepted.append(e)
        for old in reversed(
            accepted[:-1]
        ):  # Open: newest first and without those just removed, as in 1b
            if separated(old, [x for x in accepted if x != old], e):
                accepted.remove(old)
    return accepted


def _bamb_prune(test, target, alpha, k, a, pc, candidates):
    """2-1, 2-2 and 2-3: three forward passes, each over the survivors of the one before, in their
    order.
    """

    def by_one_spouse(e, accepted, new):
        sets = [(z, a) for z in accepted if new is None or z == new]
        return _separator(test, e, target, sets, alpha) is not None

    def from_the_child(e, accepted, new):
        sets = (z for z in _subsets(accepted, 0, k) if new is None or new in z)
        return _separator(test, e, a, sets, alpha) is not None

    def from_the_target(e, accepted, new):
        # Open: "sets that meet PC in one element only" are read with A counted in: they are skipped
        # where A is alone.
        pool = {*pc, *accepted} - {a}
        sets = (
            (*z, a) for z in _subsets(pool, 1, k) if (new is None or new in z) and set(z) & set(pc)
        )
        return _separator(test, e, target, sets, alpha) is not None

    for separated in (by_one_spouse, from_the_child, from_the_target):
        candidates = _forward(candidates, separated)
    return candidates


def _bamb_drop_by_units(test, target, alpha, k, a, pc, spouses):
    """3: drop from PC what other members and the spouses of the first of them explain, be it by
    itself.
    """
    pool = tuple(pc)  # stays as it is after a drop
    for y in reversed(
        pool
    ):  # Open: goes on after A is dropped; whether A was is asked after the loop, as indented
        for z in _subsets(set(pool) - {y}, 1, k):
            if y != a and a not in z:
                continue
            mates = spouses.get(
                z[0], []
            )  # only the first one's, and y may be among them; none once z[0] is dropped
            if mates and _independent(test(y, target, _set(*z, *mates)), alpha):
                pc.remove(y)  # Open: no separating set is kept
                del spouses[y]
                break


# --- EAMB
# -------------------------------------------------------------------------------------------------------------


def eamb(test, p, target, alpha, k_or):
    """ESMB, and a second opinion for the lowest column numbers (the ranking is lost) among those it
    lost.
    """
    blanket, marginal, removed = _esmb(test, p, target, alpha)
    lost = [
        x for x in range(p) if x not in {target, *blanket, *removed, *marginal}
    ]  # also who was never testable
    count = math.floor(k_or * len(lost) + 0.5)  # Open: halves round up, as in the authors' language
    return blanket + [x for x in lost[:count] if target in _esmb(test, p, x, alpha)[0]]


def _esmb(test, p, target, alpha):
    """The blanket, who was marginally independent, and who was removed when shrinking."""
    marginal, removed = set(), set()
    blanket = _esmb_grow(test, p, target, alpha, [], marginal)
    if blanket:
        blanket = _esmb_shrink(test, target, alpha, blanket, removed)
        blanket = _esmb_grow(test, p, target, alpha, blanket, marginal)
        blanket = _esmb_shrink(test, target, alpha, blanket, removed)
    return blanket, marginal, removed


def _esmb_grow(test, p, target, alpha, start, marginal):
    """Add the strongest and drop the independent and the unreliable, until nobody is left."""
    blanket = list(start)
    left = [x for x in range(p) if x != target and x not in blanket]
    while left:
        verdicts = {x: test(x, target, _set(*blanket)) for x in left}
        if not blanket:
            marginal.update(x for x in left if _independent(verdicts[x], alpha))
        left = [x for x in left if _dependent(verdicts[x], alpha)]
        if left:
            best = _strongest_first({x: verdicts[x] for x in left}, alpha)[0]
            blanket.append(best)
            left.remove(best)
    return blanket


def _esmb_shrink(test, target, alpha, blanket, removed):
    """Every member but the last, given all others of the full set. The set helper sorts what
    remains.

    So after a second growth that added nobody, the last one is the largest column number, not the
    last one added.
    """
    out = {
        v for v in blanket[:-1] if _independent(test(v, target, _set(*set(blanket) - {v})), alpha)
    }
    removed |= out
    return sorted(set(blanket) - out)
