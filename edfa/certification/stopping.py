"""The stop rule: act at the first step that has a plan and a signal of at most tau, else take the
last plan.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from edfa.certification.records import Records
from edfa.certification.validation import check_choice
from edfa.errors import DataError
from edfa.typing import AnyArray, BoolArray, Float64Array, Int64Array

__all__ = ["RULES", "Rule", "Runs", "Stops", "stop_at"]

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
