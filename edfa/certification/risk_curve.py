"""The risk at every threshold: one sort and a cumulative sum.

The risk is a step function of the threshold that changes only where a run's signal is below all before it. Walking all
of these breakpoints, from "never stop early" upward, leaves nothing to select, so the guarantee needs no grid fixed in
advance and no monotone risk. Where a stop moves but its loss does not, nothing is there to test; only the cost changes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from edfa.certification.runs import Runs
from edfa.errors import DataError
from edfa.typing import BoolArray, Float64Array, Int64Array

__all__ = ["Curve", "Target", "Undefined", "trace"]

Target = Literal["all", "early", "refused"]
Undefined = Literal["drop", "alpha", "zero", "one"]
EXACT = 2**52  # whole numbers below this are whole as floats too


@dataclass(frozen=True, eq=False)
class Curve:
    """What happens to the people that count at each threshold ``tau``: -inf, every breakpoint of the risk, the largest.

    ``hits`` of ``eligible`` are lost among those the target speaks of, both as sums of the people's means over their
    seeds; ``count`` is the former in units of 1/``unit`` where whole numbers can say it. ``start`` holds what is lost
    and eligible of each person at the first threshold; ``change[c]`` moves person ``who[c]`` at point ``at[c]``.
    ``lows`` are all signals at which some run can stop, ``saves`` what its cost falls by, ``first`` whether it did
    not stop before, and ``weight`` its share of its person.
    """

    tau: Float64Array
    hits: Float64Array
    count: Int64Array | None
    unit: int
    eligible: Float64Array
    binary: bool
    conditional: bool
    people: Int64Array
    start: Float64Array
    at: Int64Array
    who: Int64Array
    change: Float64Array
    full_cost: float
    lows: Float64Array
    saves: Float64Array
    first: BoolArray
    weight: Any

    @property
    def n(self) -> int:
        """People with a defined loss; never people times seeds."""
        return len(self.people)

    @cached_property
    def risk(self) -> Float64Array:
        """The mean loss at each threshold, among those the target speaks of."""
        if self.conditional:
            return np.divide(self.hits, self.eligible, out=np.zeros(len(self.tau)), where=self.eligible > 0)
        return np.asarray(self.hits / self.n)

    def index(self, tau: Any) -> Int64Array:
        """The point of the curve that holds at each of the thresholds ``tau``."""
        return np.asarray(np.searchsorted(self.tau, tau, side="right") - 1)

    def triggered_and_cost(self, tau: Any) -> tuple[Float64Array, Float64Array]:
        """The share of runs that some rising thresholds stop, and the mean cost with them."""
        levels = np.atleast_1d(np.asarray(tau, dtype=np.float64))
        seen = np.searchsorted(levels, self.lows)
        parts = (self.first * self.weight, self.saves * self.weight)
        share, saved = (np.bincount(seen, part, len(levels) + 1).cumsum()[:-1] for part in parts)
        return share / self.n, self.full_cost - saved / self.n

    def cost(self, tau: Any) -> Float64Array:
        """The mean cost at some rising thresholds."""
        return self.triggered_and_cost(tau)[1]

    def last_low(self, below: float) -> float:
        """The largest signal below a threshold at which a run can stop, or -inf."""
        return float(np.max(self.lows, where=self.lows < below, initial=-np.inf))

    def next_low(self, above: float) -> float:
        """The smallest signal above a threshold at which a run can stop, or inf."""
        return float(np.min(self.lows, where=self.lows > above, initial=np.inf))

    def people_at(self, points: Int64Array) -> tuple[Float64Array, Float64Array]:
        """What is lost and what is eligible of each person at some rising points, one row a point."""
        rows = np.zeros((len(points), self.n, 2))
        rows[0] = self.start
        seen = self.at <= points[-1]
        np.add.at(rows, (np.searchsorted(points, self.at[seen]), self.who[seen]), self.change[seen])
        sums = np.clip(np.cumsum(rows, axis=0), 0.0, 1.0)
        return sums[..., 0], sums[..., 1]


def trace(runs: Runs, target: Target = "all", undefined: Undefined = "drop") -> Curve | None:
    """The curve of ``runs``, or None where nobody has a legal step.

    Runs without a legal step are left out (``drop``), count in n but are not spoken of (``alpha``), or are 0 or 1.
    """
    legal = runs.fallback >= 0
    if not legal.any():
        return None
    if np.isnan(runs.loss[runs.fallback[legal][0]]):
        raise DataError("these runs have no losses: they can be stopped, but a certificate needs to know how they end")
    # DEVIATION: Algorithm 2 hands n to the bound but averages the defined losses; n here is the number of those.
    kept = runs.distinct() & (legal | (undefined != "drop"))
    who_runs = runs.person[kept]  # sorted
    new = np.append(True, who_runs[1:] != who_runs[:-1])
    people, person = who_runs[new], np.cumsum(new) - 1
    seeds = np.bincount(person)
    who = np.full(len(kept), -1)
    who[kept] = person
    share = np.zeros(len(kept))
    share[kept] = 1 / seeds[person]

    run, row = runs.first_lows()
    if not kept.all():
        run, row = run[kept[run]], row[kept[run]]
    rest, stop = _unstopped(runs, target, undefined), _stopped(runs, row, run, target)
    # Rising thresholds reach the last low of a run first; before it stands the end, before any other the low after it.
    last = np.append(run[1:] != run[:-1], True)
    ends_at = run[last]
    hit, eligible, spent = (_changes(s, r[ends_at], last) for s, r in zip(stop, rest, strict=True))
    lows = runs.signal[row]

    moved = np.flatnonzero((hit != 0) | (eligible != 0) | (lows == lows.max(initial=-np.inf)))
    moved = moved[np.argsort(lows[moved])]
    tau, ends, at = _steps(lows[moved])
    change = np.column_stack([hit[moved], eligible[moved]]) * share[run[moved], None]
    start: Float64Array = np.column_stack([np.bincount(person, part[kept] * share[kept]) for part in rest[:2]])
    sums = np.cumsum(np.concatenate([start.sum(axis=0)[None], change]), axis=0)[ends]
    zero_one = _zero_one(rest[0][kept]) and _zero_one(stop[0])
    conditional = bool(target != "all" or np.any(rest[1][kept] == 0))
    unit = _unit(seeds) if zero_one and not conditional else 0
    losses = np.append(start[:, 0].sum(), change[:, 0])
    count = np.cumsum(np.rint(unit * losses).astype(np.int64))[ends] if unit else None
    return Curve(
        tau=tau,
        hits=sums[:, 0] if count is None else count / unit,
        count=count,
        unit=unit or 1,
        eligible=sums[:, 1],
        binary=zero_one and bool(np.all(seeds == 1)),
        conditional=conditional,
        people=people,
        start=start,
        at=at,
        who=who[run[moved]],
        change=change,
        full_cost=float(rest[2][kept] @ share[kept] / len(people)),
        lows=lows,
        saves=-spent,
        first=last,
        weight=share[run] if np.ptp(seeds) else np.float64(1 / seeds[0]),
    )


def _stopped(
    runs: Runs, row: Int64Array, run: Int64Array, target: Target
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Lost, spoken of, spent, for runs that the signal stops at ``row``; at the last step of all that is not early."""
    loss, spent = runs.loss[row], runs.spent[row]
    if target == "all":
        return loss, np.ones(len(row)), spent
    # DEVIATION: the paper promises something to "early-stopping users" and bounds the risk of all; this is its promise.
    eligible = row < runs.end[run] if target == "early" else _refused(runs)[row]
    return eligible * loss, eligible.astype(np.float64), spent


def _unstopped(runs: Runs, target: Target, undefined: Undefined) -> tuple[Float64Array, Float64Array, Float64Array]:
    """The same for runs that go to their end: they pay for all of it and take the plan of their last legal step."""
    legal, eligible = runs.fallback >= 0, np.full(len(runs.start), target != "early")
    if target == "refused":
        eligible = _refused(runs)[runs.fallback]
    eligible = np.where(legal, eligible, undefined in ("zero", "one"))
    loss = np.where(legal, runs.loss[runs.fallback], undefined == "one")
    return np.where(eligible, loss, 0.0), eligible.astype(np.float64), runs.spent[runs.end]


def _refused(runs: Runs) -> BoolArray:
    if runs.refused is None:
        raise DataError("target='refused' needs the column 'refused' in the records")
    return runs.refused


def _changes(stopped: Float64Array, rest: Float64Array, last: BoolArray) -> Float64Array:
    before = np.empty_like(stopped)
    before[:-1] = stopped[1:]
    before[last] = rest
    return stopped - before


def _steps(lows: Float64Array) -> tuple[Float64Array, Int64Array, Int64Array]:
    """The thresholds, -inf first; how many of the sorted changes each has seen; the threshold of each change."""
    new = np.append(True, lows[1:] != lows[:-1]) if len(lows) else np.zeros(0, dtype=bool)
    begins = np.flatnonzero(new)
    return np.append(-np.inf, lows[begins]), np.append(begins, len(lows)), np.cumsum(new)


def _zero_one(values: Float64Array) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def _unit(seeds: Int64Array) -> int:
    """The smallest number of parts a loss can be cut into so that every person's mean is whole; 0 where too large."""
    unit = int(np.lcm.reduce(np.unique(seeds).astype(object)))
    return unit if unit * len(seeds) < EXACT else 0
