"""Records laid out run by run, and where a rule stops each run."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from edfa.certification.records import Records
from edfa.typing import BoolArray, Float64Array, Int64Array

__all__ = ["Runs", "stopped"]


@dataclass(frozen=True, eq=False)
class Runs:
    """One run is one person under one seed; ``start`` is its first row among rows sorted by person, seed and step.

    The columns are the records' own, sorted; the signal of an illegal step is infinite, so that no rule stops there;
    losses that are not known yet are NaN.
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

    @classmethod
    def of(cls, records: Records) -> "Runs":
        """The runs of ``records``; people are numbered in order of appearance."""
        rows = records.order
        code, seed, refused = records.code[rows], records.seed[rows], records.refused
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
        )

    @cached_property
    def grid(self) -> Float64Array:
        """The signals, one row a run and one column a step; infinite where there is none."""
        steps = self.length.max()
        if np.all(self.length == steps):
            return self.signal.reshape(-1, steps)
        within = np.arange(steps) < self.length[:, None]
        grid = np.full(within.shape, np.inf)
        grid[within] = self.signal
        return grid

    @cached_property
    def end(self) -> Int64Array:
        """The last row of each run, K of the paper: everything the policy may acquire is known."""
        return self.start + self.length - 1

    @cached_property
    def fallback(self) -> Int64Array:
        """The row of the last legal step, or -1: where a run that never triggers takes its plan from."""
        rows = np.where(np.isfinite(self.signal), np.arange(len(self.signal)), -1)
        return np.maximum.reduceat(rows, self.start)

    def stops(self, tau: Any) -> tuple[Int64Array, BoolArray]:
        """The row at which each run stops (-1: it has no plan), and whether the signal triggered it."""
        column, triggered = stopped(self.grid, tau)
        return np.where(triggered, self.start + column, self.fallback), triggered

    def first_lows(self) -> tuple[Int64Array, Int64Array]:
        """Runs and rows whose signal is below all before it: the only rows at which any threshold stops a run."""
        low: BoolArray = np.empty(self.grid.shape, dtype=bool)
        low[:, 0] = self.grid[:, 0] < np.inf
        np.less(self.grid[:, 1:], np.minimum.accumulate(self.grid[:, :-1], axis=1), out=low[:, 1:])
        run, column = np.divmod(np.flatnonzero(low), self.grid.shape[-1])
        return run, self.start[run] + column

    def distinct(self) -> BoolArray:
        """The runs to keep: the first of each person where seeds changed nothing for anybody, else all of them."""
        new = np.append(True, self.person[1:] != self.person[:-1])
        lead = np.flatnonzero(new)[np.cumsum(new) - 1]
        return new if self._repeat(lead) else np.ones(len(new), dtype=bool)

    def _repeat(self, lead: Int64Array) -> bool:
        """Whether each run says the same as the run ``lead`` names for it."""
        begins = self.signal[self.start]
        if np.any(self.length != self.length[lead]) or np.any(begins != begins[lead]):
            return False  # seen at a glance, as a rule
        twin = np.arange(len(self.signal)) + np.repeat(self.start[lead] - self.start, self.length)
        if not np.array_equal(self.signal, self.signal[twin]):
            return False
        legal = np.isfinite(self.signal)
        same = np.array_equal(self.loss[legal], self.loss[twin][legal]) and np.array_equal(self.spent, self.spent[twin])
        return same and (self.refused is None or np.array_equal(self.refused, self.refused[twin]))


def stopped(grid: Float64Array, tau: Any) -> tuple[Int64Array, BoolArray]:
    """The first column whose signal is at most ``tau``, and whether there is one."""
    # DEVIATION: Algorithm 2 stops at "the first step with s <= tau"; a step without a plan has nothing to issue, so
    # its signal is infinite here and the first *legal* such step is meant, as the fallback to the last legal one is.
    low = (grid <= np.asarray(tau, dtype=np.float64)[..., None]) & (grid < np.inf)
    return low.argmax(axis=1), np.asarray(low.any(axis=1))
