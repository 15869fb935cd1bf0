"""The risk at every threshold: one sort and some cumulative sums.

The risk is a step function of the threshold that changes only where a run's signal is below all before it. Walking all
of these breakpoints, from "never stop early" upward, leaves nothing to select, so the guarantee needs no grid fixed in
advance and no monotone risk.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from edfa.certification.runs import Runs
from edfa.errors import DataError

__all__ = ["Curve", "Target", "Undefined", "trace"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Target = Literal["all", "early", "refused"]
Undefined = Literal["drop", "alpha", "zero", "one"]
EXACT = 2**52  # whole numbers below this are whole as floats too
HIT, ELIGIBLE, SPENT, TRIGGERED = range(4)  # what is known of a run that stops somewhere


@dataclass(frozen=True, eq=False)
class Curve:
    """What happens at each threshold of ``tau`` (-inf, then every breakpoint) to the people that count.

    ``hits`` of ``eligible`` are lost among those the target speaks of, both as sums of the people's means over their
    seeds; ``count`` is the former in units of 1/``unit`` where whole numbers can say it. ``start`` holds what is lost
    and eligible of each person at the first threshold; ``change[c]`` moves person ``who[c]`` at point ``at[c]``.
    """

    tau: Floats
    hits: Floats
    count: Ints | None
    unit: int
    eligible: Floats
    cost: Floats
    triggered: Floats
    binary: bool
    conditional: bool
    people: Ints
    start: Floats
    at: Ints
    who: Ints
    change: Floats

    @property
    def n(self) -> int:
        """People with a defined loss; never people times seeds."""
        return len(self.people)

    @property
    def risk(self) -> Floats:
        """The mean loss at each threshold, among those the target speaks of."""
        if self.conditional:
            return np.divide(self.hits, self.eligible, out=np.zeros(len(self.tau)), where=self.eligible > 0)
        return self.hits / self.n

    def index(self, tau: Any) -> Ints:
        """The point of the curve that holds at each of the thresholds ``tau``."""
        return np.asarray(np.searchsorted(self.tau, tau, side="right") - 1)

    def people_at(self, points: Ints) -> tuple[Floats, Floats]:
        """What is lost and what is eligible of each person at some rising points, one row a point."""
        rows = np.zeros((len(points), self.n, 2))
        rows[0] = self.start
        seen = self.at <= points[-1]
        np.add.at(rows, (np.searchsorted(points, self.at[seen]), self.who[seen]), self.change[seen])
        sums = np.clip(np.cumsum(rows, axis=0), 0.0, 1.0)
        return sums[..., HIT], sums[..., ELIGIBLE]


def trace(runs: Runs, target: Target = "all", undefined: Undefined = "drop") -> Curve | None:
    """The curve of ``runs``, or None where nobody has a legal step.

    Runs without a legal step are left out (``drop``), count in n but are not spoken of (``alpha``), or are 0 or 1.
    """
    legal = runs.fallback >= 0
    if not legal.any():
        return None
    # DEVIATION: Algorithm 2 hands n to the bound but averages the defined losses; n here is the number of those.
    kept = runs.distinct() & (legal | (undefined != "drop"))
    people, person = np.unique(runs.person[kept], return_inverse=True)
    seeds = np.bincount(person)
    who = np.full(len(kept), -1)
    who[kept] = person
    share = 1 / seeds

    run, row = runs.first_lows()
    run, row = run[kept[run]], row[kept[run]]
    rest = _unstopped(runs, target, undefined)
    stop = _stopped(runs, row, run, target)
    # Rising thresholds reach the last low of a run first; before it stands the end, before any other the low after it.
    last = np.append(run[1:] != run[:-1], True)
    change = stop - np.where(last[:, None], rest[run], np.roll(stop, -1, axis=0))
    rising = np.argsort(runs.signal[row], kind="stable")
    run, change = run[rising], change[rising]
    tau, ends = _steps(runs.signal[row][rising])

    first = rest[kept] * share[person, None]
    moved = change * share[who[run], None]
    sums = np.cumsum(np.concatenate([first.sum(axis=0)[None], moved]), axis=0)[ends]
    zero_one = not np.any(rest[kept, HIT] % 1) and not np.any(stop[:, HIT] % 1)
    unit = _unit(seeds) if zero_one else 0
    counts = np.append((rest[kept, HIT] * unit * share[person]).sum(), change[:, HIT] * unit * share[who[run]])
    conditional = bool(target != "all" or np.any(rest[kept, ELIGIBLE] == 0))
    return Curve(
        tau=tau,
        hits=sums[:, HIT],
        count=np.cumsum(np.rint(counts).astype(np.int64))[ends] if unit and not conditional else None,
        unit=unit or 1,
        eligible=sums[:, ELIGIBLE],
        cost=sums[:, SPENT] / len(people),
        triggered=sums[:, TRIGGERED] / len(people),
        binary=zero_one and bool(np.all(seeds == 1)),
        conditional=conditional,
        people=people,
        start=np.column_stack([np.bincount(person, first[:, c]) for c in (HIT, ELIGIBLE)]),
        at=np.searchsorted(ends, np.arange(1, len(run) + 1)),
        who=who[run],
        change=moved[:, [HIT, ELIGIBLE]],
    )


def _stopped(runs: Runs, row: Ints, run: Ints, target: Target) -> Floats:
    """The states of runs that the signal stops at ``row``; at the last step of all it is not early any more."""
    eligible: Any = np.ones(len(row))
    if target == "early":
        eligible = row < runs.end[run]
    elif target == "refused":
        eligible = _refused(runs)[row]
    return np.column_stack([eligible * runs.loss[row], eligible, runs.spent[row], np.ones(len(row))])


def _unstopped(runs: Runs, target: Target, undefined: Undefined) -> Floats:
    """The states of runs that go to their end: they pay for all of it and take the plan of their last legal step."""
    legal, eligible = runs.fallback >= 0, np.full(len(runs.start), target != "early")
    if target == "refused":
        eligible = _refused(runs)[runs.fallback]
    eligible = np.where(legal, eligible, undefined in ("zero", "one"))
    loss = np.where(legal, runs.loss[runs.fallback], undefined == "one")
    return np.column_stack([eligible * loss, eligible, runs.spent[runs.end], np.zeros(len(legal))])


def _refused(runs: Runs) -> Bools:
    if runs.refused is None:
        raise DataError("target='refused' needs the column 'refused' in the records")
    return runs.refused


def _steps(signal: Floats) -> tuple[Floats, Ints]:
    """The thresholds, -inf first, and how many of the sorted changes each of them has seen."""
    last = np.append(signal[1:] != signal[:-1], True) if len(signal) else np.zeros(0, dtype=bool)
    ends = np.flatnonzero(last)
    return np.append(-np.inf, signal[ends]), np.append(0, ends + 1)


def _unit(seeds: Ints) -> int:
    """The smallest number of parts a loss can be cut into so that every person's mean is whole; 0 where too large."""
    unit = int(np.lcm.reduce(np.unique(seeds).astype(object)))
    return unit if unit * len(seeds) < EXACT else 0
