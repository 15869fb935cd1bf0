"""The risk of the stop rule at every threshold, and which thresholds keep it below alpha.

The risk is a step function of the threshold. It changes only at a signal below all earlier ones of
its run (a running minimum). ``trace`` works it out from one sort and a cumulative sum. Testing all
of these breakpoints, from "never stop early" upward, leaves nothing to select, so the guarantee
needs neither a grid fixed in advance nor a monotone risk. Where a stop moves and its loss stays the
same there is nothing to test; only the cost changes.

Thresholds are tested in a fixed sequence (``RiskTest``), from the strictest upward, until the first
that fails.

DEVIATION: equation (bound1) takes the largest threshold whose own bound passes, which certifies
falsely far more often than delta when the risk is not monotone. Algorithm 2's running maximum is
this sequence: each threshold is tested at the full level, and to certify a bad one the sequence
would have to pass the first bad one, which it does with probability delta.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from edfa.certification.bounds import (
    HALVINGS,
    Bound,
    cp_p_value,
    log_capital,
    lower_bound,
    p_value,
    smallest_ruled_out,
    upper_bound,
    wsr_p_value,
)
from edfa.certification.records import Runs
from edfa.errors import DataError
from edfa.typing import BoolArray, Float64Array, Int64Array

Target = Literal["all", "early", "act", "refused"]
TARGETS: tuple[Target, ...] = get_args(Target)
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
    trigger_signal, trigger_saving, trigger_share
        For every running minimum of every run, (triggers,): the signal; by how much a threshold
        that reaches it lowers the cost of the person; and the run's share of its person where it
        is the first that rising thresholds reach, else 0.
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
    trigger_share: Float64Array

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
        """The share of runs that each of some thresholds stops, and the mean cost per person.

        Parameters
        ----------
        tau
            Rising thresholds, (thresholds,), or one.

        Returns
        -------
        tuple of numpy.ndarray
            Shares and costs, each of shape (thresholds,).
        """
        levels = np.atleast_1d(np.asarray(tau, dtype=np.float64))
        reached_by = np.searchsorted(levels, self.trigger_signal)
        share, saved = (
            np.bincount(reached_by, part, len(levels) + 1).cumsum()[:-1]
            for part in (self.trigger_share, self.trigger_saving)
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
        """Loss and eligible share of each person at some points.

        Parameters
        ----------
        points
            Rising positions on the curve, (points,).

        Returns
        -------
        tuple of numpy.ndarray
            Two arrays of shape (points, n).
        """
        rows = np.zeros((len(points), self.n, 2))
        rows[0] = self.start
        seen = self.change_point <= points[-1]
        row = np.searchsorted(points, self.change_point[seen])
        np.add.at(rows, (row, self.change_person[seen]), self.change[seen])
        sums = np.clip(np.cumsum(rows, axis=0), 0.0, 1.0)
        return sums[..., 0], sums[..., 1]


def trace(runs: Runs, target: Target = "all") -> RiskCurve | None:
    """Compute the risk curve of ``runs``.

    Parameters
    ----------
    runs
        The runs, with known losses.
    target
        Whom the risk is about: "all" with a plan, those who stop "early", those whom the signal
        tells to "act", early or at their last step, or those "refused" where they stop.

    Returns
    -------
    RiskCurve or None
        None if no run has a legal step.

    Raises
    ------
    DataError
        If the losses are not known, or the target needs a column that is not there.

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> curve = trace(Runs.from_records(simulate_records(100)))
    >>> curve.n, bool(curve.risk[0] < curve.risk[-1])
    (100, True)
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
    people, person, seeds = np.unique(runs.person[used], return_inverse=True, return_counts=True)
    weight = 1 / seeds[person]
    every_run = np.arange(len(used))
    at_end = [
        part[used] for part in _outcomes(runs, every_run, runs.last_legal, target, stopped=False)
    ]
    run, row = runs.running_minima()
    if not used.all():
        run, row = run[used[run]], row[used[run]]
    at_stop = _outcomes(runs, run, row, target, stopped=True)
    run = (np.cumsum(used) - 1)[run]
    # As the threshold rises, a run's latest minimum triggers first and replaces the run's end; each
    # earlier minimum replaces the next-later one.
    latest = np.append(run[1:] != run[:-1], True)
    lost, eligible, spent = (
        _differences(stop, end[run[latest]], latest)
        for stop, end in zip(at_stop, at_end, strict=True)
    )
    signal = runs.signal[row]

    moved = np.flatnonzero((lost != 0) | (eligible != 0) | (signal == signal.max(initial=-np.inf)))
    moved = moved[np.argsort(signal[moved])]
    levels, begins, level = np.unique(signal[moved], return_index=True, return_inverse=True)
    n_changes = np.append(begins, len(moved))  # up to each point
    change = np.column_stack([lost[moved], eligible[moved]]) * weight[run[moved], None]
    start: Float64Array = np.column_stack(
        [np.bincount(person, part * weight) for part in at_end[:2]]
    )
    sums = np.cumsum(np.concatenate([start.sum(axis=0)[None], change]), axis=0)[n_changes]
    zero_one = bool(np.isin(np.append(at_end[0], at_stop[0]), (0, 1)).all())
    conditional = target != "all"
    # everybody's mean loss is a whole number of 1/unit; 0 where counts would not be exact
    unit = int(np.lcm.reduce(np.unique(seeds).astype(object)))
    if not zero_one or conditional or unit * len(seeds) >= EXACT:
        unit = 0
    losses = np.append(start[:, 0].sum(), change[:, 0])
    count = np.cumsum(np.rint(unit * losses).astype(np.int64))[n_changes] if unit else None
    return RiskCurve(
        tau=np.append(-np.inf, levels),
        lost=sums[:, 0] if count is None else count / unit,
        lost_count=count,
        unit=unit or 1,
        eligible=sums[:, 1],
        binary=zero_one and bool(np.all(seeds == 1)),
        conditional=conditional,
        people=people,
        start=start,
        change_point=level + 1,
        change_person=person[run[moved]],
        change=change,
        full_cost=float(at_end[2] @ weight / len(people)),
        trigger_signal=signal,
        trigger_saving=-spent * weight[run],
        trigger_share=latest * weight[run],
    )


def _outcomes(
    runs: Runs, run: Int64Array, row: Int64Array, target: Target, *, stopped: bool
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Loss, eligibility (0 or 1) and cost of each of some runs; each of shape (len(run),).

    Parameters
    ----------
    runs
        All runs.
    run, row
        Which runs, and the row whose plan each of them takes (-1: none).
    target
        As in ``trace``. A stop at the last step of a run is not early.
    stopped
        Whether the signal stops the run at ``row``. Otherwise it goes to its end and pays for
        everything, and nobody tells the person to act.
    """
    if target == "refused":
        if runs.refused is None:
            raise DataError("target='refused' needs the column 'refused' in the records")
        eligible = runs.refused[row]
    elif target == "early":
        # DEVIATION: the paper promises something to "early-stopping users" and bounds the risk of
        # all; this is its promise.
        eligible = (row < runs.end[run]) & stopped
    else:
        eligible = np.full(len(row), stopped or target == "all")
    if runs.counts is not None and target != "all":
        eligible = eligible & runs.counts[row]
    loss = np.where(eligible & (row >= 0), runs.loss[row], 0.0)
    spent = runs.spent[row if stopped else runs.end[run]]
    return loss, eligible.astype(np.float64), spent


def _differences(at_stop: Float64Array, at_end: Float64Array, latest: BoolArray) -> Float64Array:
    """How much a value changes when the threshold reaches each running minimum, (triggers,).

    ``latest`` marks the last minimum of each run, which replaces the run's end (``at_end``, one
    value per such run).
    """
    before = np.empty_like(at_stop)
    before[:-1] = at_stop[1:]
    before[latest] = at_end
    return at_stop - before


BETS_AT_A_TIME = 2**17  # people times thresholds of one block
FIRST_PEOPLE = 64  # whom bets are made on to begin with


def leading(passed: BoolArray) -> Int64Array:
    """Number of tests passed before the first failure, along the last axis; (..., tests) to (...).

    >>> leading(np.array([[True, True, False, True], [False, True, True, True]]))
    array([2, 0])
    """
    return np.asarray(np.cumprod(passed, axis=-1, dtype=np.int64).sum(axis=-1))


@dataclass(frozen=True)
class RiskTest:
    """A test of "the risk is alpha or more" at points of a risk curve.

    Parameters
    ----------
    bound
        One of ``edfa.certification.bounds.BOUNDS``.
    alpha
        The risk that is tested.
    delta
        The level of the test.
    order
        The order in which people are bet on, as positions on the curve, (n,), fixed without
        looking at the losses; None: that of the curve. For the bound "wsr" alone.
    horizon
        The number of people that the bets plan for; None: those on the curve. For "wsr" alone.

    Examples
    --------
    >>> from edfa.certification.simulate import simulate_records
    >>> curve = trace(Runs.from_records(simulate_records(100)))
    >>> test = RiskTest("cp", alpha=0.2, delta=0.05)
    >>> test.count_passed(curve, np.arange(len(curve.tau))) > 0
    True
    """

    bound: Bound
    alpha: float
    delta: float
    order: Int64Array | None = None
    horizon: int | None = None

    def count_passed(self, curve: RiskCurve, points: Int64Array) -> int:
        """Number of the rising ``points`` that pass before the first failure."""
        if self.bound == "wsr":
            return _count_passed_by_betting(self, curve, points)
        return int(leading(self.p_values(curve, points) <= self.delta))

    def p_values(self, curve: RiskCurve, points: Int64Array) -> Float64Array:
        """The p-value of "the risk is alpha or more" at each of the rising ``points``."""
        if curve.lost_count is not None and self.bound != "wsr":
            lost, inverse = np.unique(
                curve.lost_count[points], return_inverse=True
            )  # far fewer than thresholds
            return p_value(self.bound, self.alpha, curve.n, losses=lost, m=curve.unit)[inverse]
        return self._p_value_function(curve, points)(np.full(len(points), self.alpha))

    def upper(self, curve: RiskCurve, points: Int64Array) -> Float64Array:
        """The upper bound of the risk at each of the rising ``points``.

        It is at most alpha exactly where the test passes. Where there is no closed form it is
        found by halving intervals, to about nine digits, on the side of alpha that the test
        says.
        """
        if self.bound != "wsr" and not curve.conditional:
            if curve.lost_count is None:
                return upper_bound(self.bound, self.delta, curve.n, risk=curve.risk[points])
            return upper_bound(
                self.bound, self.delta, curve.n, losses=curve.lost_count[points], m=curve.unit
            )
        p_values = self._p_value_function(curve, points)
        passed = p_values(np.full(len(points), self.alpha)) <= self.delta
        return smallest_ruled_out(
            lambda mu: p_values(mu) <= self.delta,
            np.where(passed, 0.0, self.alpha),
            np.where(passed, self.alpha, 1.0),
            HALVINGS // 2,
        )

    def surely_above(self, curve: RiskCurve, point: int) -> bool:
        """Whether a lower bound of the risk at ``point`` exceeds alpha, so that more people cannot
        help.

        The bound is exact for losses of 0 or 1, otherwise it is that of Hoeffding and Bentkus.
        """
        lost, eligible, people = curve.lost[point], curve.eligible[point], curve.n
        successes = people - lost - (people - eligible) * self.alpha
        if curve.binary and curve.conditional:
            people, successes = round(eligible), eligible - lost
        if not people:
            return False
        share = float(np.clip(successes / people, 0.0, 1.0))
        bound = "cp" if curve.binary else "hb"
        return bool(lower_bound(bound, self.delta, people, 1 - share) > self.alpha)

    def bet_order(self, curve: RiskCurve) -> Int64Array:
        """The positions of people on the curve, in the order in which they are bet on."""
        return np.arange(curve.n) if self.order is None else self.order

    def _p_value_function(
        self, curve: RiskCurve, points: Int64Array
    ) -> Callable[[Float64Array], Float64Array]:
        """Make a function that gives the p-values at ``points`` for a tested risk.

        People whom the target is not about count as a loss of ``mu``, which neither helps nor
        hurts.

        Parameters
        ----------
        curve
            The curve.
        points
            Rising positions on it, (points,).

        Returns
        -------
        callable
            From the tested risks ``mu``, (points,), to the p-values, (points,).
        """
        if self.bound == "wsr":
            lost, eligible = (part[:, self.bet_order(curve)] for part in curve.people_at(points))
            return lambda mu: np.asarray(
                wsr_p_value(lost + (1 - eligible) * mu[:, None], mu, self.delta, self.horizon)
            )
        lost, eligible = curve.lost[points], curve.eligible[points]
        if self.bound == "cp" and curve.conditional:
            lost, people = np.rint(lost), np.maximum(np.rint(eligible), 1)
            return lambda mu: np.where(eligible > 0, cp_p_value(n=people, mu=mu, losses=lost), 1.0)
        n = curve.n
        return lambda mu: p_value(
            self.bound, mu, n, risk=np.clip((lost + (n - eligible) * mu) / n, 0.0, 1.0)
        )


@dataclass(frozen=True, eq=False)
class FixedSequenceResult:
    """The outcome of testing ``thresholds`` in rising order on one or more risk curves.

    Parameters
    ----------
    curves
        The curves whose risk has to be at most alpha at a threshold that passes; the first is that
        of the people whom the promise is about.
    test
        The test that was used on each of them.
    thresholds, points
        What was tested, rising, and its points on the first curve; (thresholds,).
    passed
        How many passed on all curves before the first failure.
    grid_free
        Whether the thresholds were all there are, rather than a grid.
    ceiling
        The largest threshold that may be used.
    """

    curves: tuple[RiskCurve, ...]
    test: RiskTest
    thresholds: Float64Array
    points: Int64Array
    passed: int
    grid_free: bool
    ceiling: float | None = None

    @property
    def curve(self) -> RiskCurve:
        """The curve of the people whom the promise is about."""
        return self.curves[0]

    @property
    def complete(self) -> bool:
        """Whether every threshold passed."""
        return self.passed == len(self.thresholds)

    @property
    def point(self) -> int:
        """The point of the last threshold that passed; of the first one if none did."""
        return int(self.points[max(self.passed - 1, 0)])

    @property
    def tau_on_curve(self) -> float:
        """The largest signal at which the certified rule stops somebody; the first threshold if
        none passed.
        """
        if not self.passed:
            return float(self.thresholds[0])
        return self.interval[0]

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The thresholds [low, high) that stop the calibration runs where the last one that passed
        does.

        Where nothing but the ceiling ends them, it is the last of them. Only for a result of
        which some threshold passed.
        """
        curve = self.curve
        if not self.grid_free:
            tau = float(self.thresholds[self.passed - 1])
            return curve.trigger_below(np.nextafter(tau, np.inf)), curve.trigger_above(tau)
        high = np.inf if self.ceiling is None else self.ceiling
        beyond = float(np.nextafter(high, np.inf))
        if not self.complete:
            high = beyond = float(self.thresholds[self.passed])
        return max(curve.trigger_below(beyond), float(self.thresholds[0])), high

    @property
    def tau(self) -> float:
        """The threshold to use: half-way to the next signal, where rounding at deployment cannot
        reach it.
        """
        # DEVIATION: Algorithm 2 takes the grid point itself; bound="paper" does so too.
        if not self.grid_free:
            return float(self.thresholds[self.passed - 1])
        if self.complete and self.ceiling is not None:
            return self.ceiling
        return between(*self.interval)


def between(low: float, high: float) -> float:
    """A threshold half-way between two signals; an infinite one, the first, stands for itself.

    >>> between(0.25, 0.5), between(-np.inf, 0.5), between(0.25, np.inf)
    (0.375, -inf, inf)
    """
    if np.isinf(low) or np.isinf(high):
        return low if np.isinf(low) else high
    middle = low + (high - low) / 2
    return middle if middle < high else low


def _count_passed_by_betting(test: RiskTest, curve: RiskCurve, points: Int64Array) -> int:
    """``RiskTest.count_passed`` for betting: exact, but without betting on everybody at every
    threshold.

    Where the capital reaches 1/delta within the first people, thresholds that only change later
    people pass as well. So bets are made on a prefix of the people, which is doubled where it
    does not suffice.

    Parameters
    ----------
    test
        The test, with its order of people and its horizon.
    curve
        The risk curve.
    points
        Rising positions on the curve, (points,).

    Returns
    -------
    int
        The number of points that pass before the first failure.
    """
    order = test.bet_order(curve)
    rank = np.empty(curve.n, dtype=np.int64)
    rank[order] = np.arange(curve.n)
    slot = np.searchsorted(points, curve.change_point)  # the first point that sees each change
    slot = slot[slot < len(points)]
    fill = np.array([1.0, -test.alpha])  # who is not eligible counts as a loss of alpha
    losses = (curve.start @ fill + test.alpha)[order]
    change, changed_rank = curve.change @ fill, rank[curve.change_person]
    done = int(np.searchsorted(slot, 0, side="right"))
    np.add.at(losses, changed_rank[:done], change[:done])
    horizon, prefix = test.horizon or curve.n, min(FIRST_PEOPLE, curve.n)
    # The first row of every block is the threshold passed last, so that the first block tests the
    # first threshold.
    while True:
        # Enough changes that about BETS_AT_A_TIME / prefix of them fall within the prefix.
        size = max(BETS_AT_A_TIME // prefix, 8) * curve.n // prefix
        block = slot[done : done + size]
        end = int(np.searchsorted(slot, block[-1], side="right")) if len(block) else done
        near = np.flatnonzero(changed_rank[done:end] < prefix) + done
        slots, row = np.unique(slot[near], return_inverse=True)
        rows = np.zeros((len(slots) + 1, prefix))
        rows[0] = losses[:prefix]
        np.add.at(rows, (row + 1, changed_rank[near]), change[near])
        capital = log_capital(
            np.clip(np.cumsum(rows, axis=0), 0.0, 1.0), test.alpha, test.delta, horizon
        )
        passed = np.exp(-capital.max(axis=1)) <= test.delta
        if passed.all():
            np.add.at(losses, changed_rank[done:end], change[done:end])
            done = end
            if done == len(slot):
                return len(points)
        elif prefix < curve.n:
            prefix = min(2 * prefix, curve.n)
        else:
            return int(np.append(0, slots)[np.argmin(passed)])
