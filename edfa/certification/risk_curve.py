"""The stop rule, and its risk at every threshold, from one sort and a cumulative sum.

The rule: act at the first step that has a plan and a signal of at most tau, else take the last
plan. ``Runs`` are records sorted for it, ``stop_at`` applies it, ``trace`` works out its risk.

The risk is a step function of the threshold. It changes only at a signal below all earlier ones of
its run (a running minimum). Testing all of these breakpoints, from "never stop early" upward,
leaves nothing to select, so the guarantee needs neither a grid fixed in advance nor a monotone
risk. Where a stop moves and its loss stays the same there is nothing to test; only the cost
changes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from edfa.certification.bounds import check_choice
from edfa.certification.records import Records
from edfa.errors import DataError
from edfa.typing import AnyArray, BoolArray, Float64Array, Int64Array

__all__ = ["RULES", "TARGETS", "RiskCurve", "Rule", "Runs", "Stops", "Target", "stop_at", "trace"]

Rule = Literal["safe", "first", "last"]
RULES: tuple[Rule, ...] = ("safe", "first", "last")


@dataclass(frozen=True, eq=False)
class Runs:
    """Records sorted by person, seed and step, and where each run (one person under one seed) lies
    among the rows.

    ``person`` (index into the records' people), ``seed``, ``start`` (its first row) and ``length``
    (its number of rows) have the shape (runs,). The other columns have the shape (rows,):
    ``signal`` is infinite at an illegal step, so that no rule stops there; ``loss`` is NaN where it
    is not known yet.
    """

    person: Int64Array
    seed: Int64Array
    start: Int64Array
    length: Int64Array
    step: Int64Array
    signal: Float64Array
    loss: Float64Array
    spent: Float64Array
    refused: BoolArray | None
    wasted: BoolArray | None = None

    @classmethod
    def from_records(cls, records: Records) -> "Runs":
        """Sort ``records`` into runs."""
        rows = records.order
        code, seed, refused, wasted = (
            records.code[rows],
            records.seed[rows],
            records.refused,
            records.wasted,
        )
        first = np.concatenate([[True], (code[1:] != code[:-1]) | (seed[1:] != seed[:-1])])
        start = np.flatnonzero(first)
        return cls(
            person=code[start],
            seed=seed[start],
            start=start,
            length=np.diff(start, append=len(code)),
            step=records.step[rows],
            signal=np.where(records.legal, records.signal, np.inf)[rows],
            loss=np.full(len(code), np.nan) if records.loss is None else records.loss[rows],
            spent=records.spent[rows],
            refused=None if refused is None else refused[rows],
            wasted=None if wasted is None else wasted[rows],
        )

    @cached_property
    def signal_matrix(self) -> Float64Array:
        """The signals with shape (runs, steps of the longest run); infinite past the end of a
        shorter run.
        """
        steps = self.length.max()
        if np.all(self.length == steps):
            return self.signal.reshape(-1, steps)
        within = np.arange(steps) < self.length[:, None]
        matrix = np.full(within.shape, np.inf)
        matrix[within] = self.signal
        return matrix

    @cached_property
    def end(self) -> Int64Array:
        """The last row of each run, the paper's K: everything the policy may acquire is known.
        Shape (runs,).
        """
        return self.start + self.length - 1

    @cached_property
    def last_legal(self) -> Int64Array:
        """The row of the last legal step of each run, from which a run that never triggers takes
        its plan; -1: none.
        """
        rows = np.where(np.isfinite(self.signal), np.arange(len(self.signal)), -1)
        return np.maximum.reduceat(rows, self.start)

    def stops(self, tau: Any) -> tuple[Int64Array, BoolArray]:
        """The row at which each run stops (-1: it has no plan), and whether its signal triggered
        the stop.
        """
        column, triggered = _first_trigger(self.signal_matrix, tau)
        return np.where(triggered, self.start + column, self.last_legal), triggered

    def running_minima(self) -> tuple[Int64Array, Int64Array]:
        """Runs and rows of signals below all earlier ones of their run: the only rows where a
        threshold can stop it.
        """
        signals = self.signal_matrix
        lowest: BoolArray = np.empty(signals.shape, dtype=bool)
        lowest[:, 0] = signals[:, 0] < np.inf
        np.less(signals[:, 1:], np.minimum.accumulate(signals[:, :-1], axis=1), out=lowest[:, 1:])
        run, column = np.divmod(np.flatnonzero(lowest), signals.shape[-1])
        return run, self.start[run] + column

    def distinct(self) -> BoolArray:
        """Mask of the runs to use: one run per person if the seed makes no difference for anybody,
        else all runs.
        """
        new = np.append(True, self.person[1:] != self.person[:-1])
        if new.all():
            return new
        first_run = np.flatnonzero(new)[np.cumsum(new) - 1]
        return new if self._equal(first_run) else np.ones(len(new), dtype=bool)

    def _equal(self, other: Int64Array) -> bool:
        """Whether each run has the same steps as the run ``other`` (an index for each run)."""
        begins = self.signal[self.start]
        if np.any(self.length != self.length[other]) or np.any(begins != begins[other]):
            return False  # seen at a glance, as a rule
        twin = np.arange(len(self.signal)) + np.repeat(self.start[other] - self.start, self.length)
        if not np.array_equal(self.signal, self.signal[twin]):
            return False
        legal = np.isfinite(self.signal)
        same = np.array_equal(self.loss[legal], self.loss[twin][legal]) and np.array_equal(
            self.spent, self.spent[twin]
        )
        return same and (self.refused is None or np.array_equal(self.refused, self.refused[twin]))


@dataclass(frozen=True, eq=False)
class Stops:
    """Where a rule stops each run; columns of shape (runs,).

    ``step`` is the step whose plan is issued (-1: the run has none), ``spent`` the cost until the
    run stops (NaN if it is not known). Runs that are ``triggered`` stop because their signal is low
    enough; the others go to the end and take their last plan. ``sentence`` is the guarantee, and
    empty if there is none.
    """

    person: AnyArray
    seed: Int64Array
    step: Int64Array
    spent: Float64Array
    triggered: BoolArray
    sentence: str = ""

    def frame(self) -> pd.DataFrame:
        """The columns as a table, one row per run."""
        names = ("person", "seed", "step", "spent", "triggered")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False, max_rows=20))


def stop_at(runs: Any, tau: Any, rule: Rule, sentence: str) -> Stops:
    """Apply a stop rule.

    Parameters
    ----------
    runs
        Records; or signals of shape (runs, steps), NaN at a step without a plan.
    tau
        The threshold of the rule "safe".
    rule
        "safe" stops at the threshold, "first" at the first plan, "last" at the end.
    sentence
        The guarantee of the rule "safe"; the other rules have none.
    """
    check_choice("rule", rule, RULES)
    if rule != "safe":
        tau, sentence = {"first": np.inf, "last": -np.inf}[rule], ""
    if isinstance(runs, Records):
        sorted_runs = Runs.from_records(runs)
        row, triggered = sorted_runs.stops(tau)
        step = np.where(row >= 0, sorted_runs.step[row], -1)
        spent = sorted_runs.spent[np.where(triggered, row, sorted_runs.end)]
        return Stops(
            runs.people[sorted_runs.person], sorted_runs.seed, step, spent, triggered, sentence
        )
    signals = np.atleast_2d(np.asarray(runs, dtype=np.float64))
    if signals.ndim != 2 or not signals.size:
        raise DataError(
            f"signals have one row a run and one column a step, not the shape {signals.shape}"
        )
    column, triggered = _first_trigger(np.where(np.isnan(signals), np.inf, signals), tau)
    legal = np.isfinite(signals)
    last = np.where(legal.any(axis=1), signals.shape[1] - 1 - legal[:, ::-1].argmax(axis=1), -1)
    n = len(signals)
    step = np.where(triggered, column, last)
    return Stops(np.arange(n), np.zeros(n, np.int64), step, np.full(n, np.nan), triggered, sentence)


def _first_trigger(signals: Float64Array, tau: Any) -> tuple[Int64Array, BoolArray]:
    """The first column of each row whose signal is at most ``tau``, and whether there is one; both
    of shape (runs,).
    """
    # DEVIATION: Algorithm 2 stops at "the first step with s <= tau"; a step without a plan has
    # nothing to issue, so its signal is infinite here and the first *legal* such step is meant, as
    # the fallback to the last legal one is.
    low = (signals <= np.asarray(tau, dtype=np.float64)[..., None]) & (signals < np.inf)
    return low.argmax(axis=1), np.asarray(low.any(axis=1))


Target = Literal["all", "early", "act", "refused"]
TARGETS: tuple[Target, ...] = ("all", "early", "act", "refused")
EXACT = 2**52  # whole numbers below this are exact as floats too


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """The risk and the cost of the stop rule at every threshold, for the people with a defined
    loss.

    A person's loss is the mean over their seeds, and so is the share of their runs that the target
    is about.

    Parameters
    ----------
    tau
        The thresholds, (points,): -inf, every breakpoint of the risk, and the largest signal that
        can trigger.
    lost, eligible
        Sums over people of the losses, and of the shares that the target is about, at each point;
        (points,).
    lost_count, unit
        ``lost`` exactly, in units of 1/``unit``; None if whole numbers cannot say it.
    binary
        Whether every person has one run, with a loss of 0 or 1.
    conditional
        Whether the target is about some of the runs only.
    people
        The people with a defined loss, as positions among the records' people; (n,).
    start
        Loss and eligible share of each person at the first point; (n, 2).
    change, change_person, change_point
        How much loss and eligible share change, (changes, 2); whose (index into ``people``); and at
        which point.
    full_cost
        Mean cost per person without any early stop.
    trigger_signal, trigger_saving, trigger_first, trigger_weight
        For every running minimum of every run, (triggers,): the signal; by how much a threshold
        that reaches it lowers the cost of the run; whether it is the first that rising thresholds
        reach; the run's weight within its person.
    """

    tau: Float64Array
    lost: Float64Array
    lost_count: Int64Array | None
    unit: int
    eligible: Float64Array
    binary: bool
    conditional: bool
    people: Int64Array
    start: Float64Array
    change_point: Int64Array
    change_person: Int64Array
    change: Float64Array
    full_cost: float
    trigger_signal: Float64Array
    trigger_saving: Float64Array
    trigger_first: BoolArray
    trigger_weight: Any

    @property
    def n(self) -> int:
        """Number of people with a defined loss; never people times seeds."""
        return len(self.people)

    @cached_property
    def risk(self) -> Float64Array:
        """The mean loss at each point among those the target is about, (points,)."""
        if self.conditional:
            return np.divide(
                self.lost, self.eligible, out=np.zeros(len(self.tau)), where=self.eligible > 0
            )
        return np.asarray(self.lost / self.n)

    def index(self, tau: Any) -> Int64Array:
        """The point of the curve in force at each threshold ``tau``."""
        return np.asarray(np.searchsorted(self.tau, tau, side="right") - 1)

    def triggered_and_cost(self, tau: Any) -> tuple[Float64Array, Float64Array]:
        """The share of runs that each of some rising thresholds stops, and the mean cost per
        person.
        """
        levels = np.atleast_1d(np.asarray(tau, dtype=np.float64))
        reached_by = np.searchsorted(levels, self.trigger_signal)
        parts = (
            self.trigger_first * self.trigger_weight,
            self.trigger_saving * self.trigger_weight,
        )
        share, saved = (
            np.bincount(reached_by, part, len(levels) + 1).cumsum()[:-1] for part in parts
        )
        return share / self.n, self.full_cost - saved / self.n

    def cost(self, tau: Any) -> Float64Array:
        """The mean cost per person at some rising thresholds."""
        return self.triggered_and_cost(tau)[1]

    def trigger_below(self, tau: float) -> float:
        """The largest signal below ``tau`` at which a run can stop, or -inf."""
        return float(np.max(self.trigger_signal, where=self.trigger_signal < tau, initial=-np.inf))

    def trigger_above(self, tau: float) -> float:
        """The smallest signal above ``tau`` at which a run can stop, or inf."""
        return float(np.min(self.trigger_signal, where=self.trigger_signal > tau, initial=np.inf))

    def people_at(self, points: Int64Array) -> tuple[Float64Array, Float64Array]:
        """Loss and eligible share of each person at some rising points; two arrays of shape
        (len(points), n).
        """
        rows = np.zeros((len(points), self.n, 2))
        rows[0] = self.start
        seen = self.change_point <= points[-1]
        row = np.searchsorted(points, self.change_point[seen])
        np.add.at(rows, (row, self.change_person[seen]), self.change[seen])
        sums = np.clip(np.cumsum(rows, axis=0), 0.0, 1.0)
        return sums[..., 0], sums[..., 1]


def trace(runs: Runs, target: Target = "all") -> RiskCurve | None:
    """Compute the risk curve of ``runs``; None if no run has a legal step.

    Parameters
    ----------
    runs
        The runs, with known losses.
    target
        Whom the risk is about: "all" with a plan, those who stop "early", those whom the signal
        tells to "act", early or at their last step, or those "refused" where they stop.
    """
    legal = runs.last_legal >= 0
    if not legal.any():
        return None
    if np.isnan(runs.loss[runs.last_legal[legal][0]]):
        raise DataError(
            "these runs have no losses: they can be stopped, but a certificate needs to "
            "know how they end"
        )
    # DEVIATION: Algorithm 2 hands n to the bound but averages the defined losses; n here is the
    # number of those.
    used = runs.distinct() & legal
    run_person = runs.person[used]  # sorted
    new = np.append(True, run_person[1:] != run_person[:-1])
    people, person = run_person[new], np.cumsum(new) - 1
    seeds = np.bincount(person)
    person_of_run = np.full(len(used), -1)
    person_of_run[used] = person
    weight = np.zeros(len(used))
    weight[used] = 1 / seeds[person]

    run, row = runs.running_minima()
    if not used.all():
        run, row = run[used[run]], row[used[run]]
    at_end, at_stop = _at_end(runs, target), _at_stop(runs, row, run, target)
    # As the threshold rises, a run's latest minimum triggers first and replaces the run's end; each
    # earlier minimum replaces the next-later one.
    latest = np.append(run[1:] != run[:-1], True)
    ends = run[latest]
    lost, eligible, spent = (
        _differences(s, e[ends], latest) for s, e in zip(at_stop, at_end, strict=True)
    )
    signal = runs.signal[row]

    moved = np.flatnonzero((lost != 0) | (eligible != 0) | (signal == signal.max(initial=-np.inf)))
    moved = moved[np.argsort(signal[moved])]
    tau, n_changes, change_point = _breakpoints(signal[moved])
    change = np.column_stack([lost[moved], eligible[moved]]) * weight[run[moved], None]
    start: Float64Array = np.column_stack(
        [np.bincount(person, part[used] * weight[used]) for part in at_end[:2]]
    )
    sums = np.cumsum(np.concatenate([start.sum(axis=0)[None], change]), axis=0)[n_changes]
    zero_one = _is_zero_one(at_end[0][used]) and _is_zero_one(at_stop[0])
    conditional = target != "all"
    unit = _common_unit(seeds) if zero_one and not conditional else 0
    losses = np.append(start[:, 0].sum(), change[:, 0])
    count = np.cumsum(np.rint(unit * losses).astype(np.int64))[n_changes] if unit else None
    return RiskCurve(
        tau=tau,
        lost=sums[:, 0] if count is None else count / unit,
        lost_count=count,
        unit=unit or 1,
        eligible=sums[:, 1],
        binary=zero_one and bool(np.all(seeds == 1)),
        conditional=conditional,
        people=people,
        start=start,
        change_point=change_point,
        change_person=person_of_run[run[moved]],
        change=change,
        full_cost=float(at_end[2][used] @ weight[used] / len(people)),
        trigger_signal=signal,
        trigger_saving=-spent,
        trigger_first=latest,
        trigger_weight=weight[run] if np.ptp(seeds) else np.float64(1 / seeds[0]),
    )


def _at_stop(
    runs: Runs, row: Int64Array, run: Int64Array, target: Target
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Loss, eligibility (0 or 1) and cost of each ``run`` if its signal stops it at ``row``; all
    (triggers,).

    A stop at the last step of a run is not early.
    """
    loss, spent = runs.loss[row], runs.spent[row]
    if target in ("all", "act"):
        return loss, np.ones(len(row)), spent
    # DEVIATION: the paper promises something to "early-stopping users" and bounds the risk of all;
    # this is its promise.
    eligible = row < runs.end[run] if target == "early" else _refused(runs)[row]
    return eligible * loss, eligible.astype(np.float64), spent


def _at_end(runs: Runs, target: Target) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Loss, eligibility (0 or 1) and cost of every run if nothing stops it; all (runs,).

    Such a run pays for everything and takes the plan of its last legal step; nobody tells it to
    act. Runs without a legal step are not read.
    """
    eligible = np.full(len(runs.start), target not in ("early", "act"))
    if target == "refused":
        eligible = _refused(runs)[runs.last_legal]
    loss = np.where(eligible & (runs.last_legal >= 0), runs.loss[runs.last_legal], 0.0)
    return loss, eligible.astype(np.float64), runs.spent[runs.end]


def _refused(runs: Runs) -> BoolArray:
    if runs.refused is None:
        raise DataError("target='refused' needs the column 'refused' in the records")
    return runs.refused


def _differences(at_stop: Float64Array, at_end: Float64Array, latest: BoolArray) -> Float64Array:
    """How much a value changes when the threshold reaches each running minimum, (triggers,).

    ``latest`` marks the last minimum of each run, which replaces the run's end (``at_end``, one
    value per such run).
    """
    before = np.empty_like(at_stop)
    before[:-1] = at_stop[1:]
    before[latest] = at_end
    return at_stop - before


def _breakpoints(signals: Float64Array) -> tuple[Float64Array, Int64Array, Int64Array]:
    """From sorted signals: the thresholds (-inf first), the number of changes up to each, and each
    change's point.
    """
    new = np.append(True, signals[1:] != signals[:-1]) if len(signals) else np.zeros(0, dtype=bool)
    begins = np.flatnonzero(new)
    return np.append(-np.inf, signals[begins]), np.append(begins, len(signals)), np.cumsum(new)


def _is_zero_one(values: Float64Array) -> bool:
    return bool(np.all((values == 0) | (values == 1)))


def _common_unit(seeds: Int64Array) -> int:
    """The smallest u such that everybody's mean loss is a whole number of 1/u; 0 if counts would
    not be exact.
    """
    unit = int(np.lcm.reduce(np.unique(seeds).astype(object)))
    return unit if unit * len(seeds) < EXACT else 0
