"""Where a rule stops runs, for deployment."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from edfa.certification.records import Records
from edfa.certification.runs import Runs, stopped
from edfa.certification.settings import one_of
from edfa.errors import DataError
from edfa.typing import AnyArray, BoolArray, Float64Array, Int64Array

__all__ = ["RULES", "Rule", "Stops", "stop_at"]

Rule = Literal["safe", "first", "last"]
RULES: tuple[Rule, ...] = ("safe", "first", "last")


@dataclass(frozen=True, eq=False)
class Stops:
    """One row a run: the step whose plan is issued (-1: there is none), what was spent until then, and why.

    ``triggered`` runs stop because their signal is low enough; the others go to the end and take the last plan there
    was. ``sentence`` is the guarantee, and empty where there is none.
    """

    person: AnyArray
    seed: Int64Array
    step: Int64Array
    spent: Float64Array
    triggered: BoolArray
    sentence: str = ""

    def frame(self) -> pd.DataFrame:
        """As a table."""
        names = ("person", "seed", "step", "spent", "triggered")
        return pd.DataFrame({name: getattr(self, name) for name in names})

    def _repr_html_(self) -> str:
        return str(self.frame().to_html(index=False))


def stop_at(given: Any, tau: Any, rule: Rule, sentence: str) -> Stops:
    """Stop each run of records, or each row of signals (NaN: no plan at this step), at threshold ``tau``."""
    one_of("rule", rule, RULES)
    if rule != "safe":
        tau, sentence = {"first": np.inf, "last": -np.inf}[rule], ""
    if isinstance(given, Records):
        runs = Runs.of(given)
        row, triggered = runs.stops(tau)
        step = np.where(row >= 0, runs.step[row], -1)
        spent = runs.spent[np.where(triggered, row, runs.end)]
        return Stops(given.people[runs.person], runs.seed, step, spent, triggered, sentence)
    signals = np.atleast_2d(np.asarray(given, dtype=np.float64))
    if signals.ndim != 2 or not signals.size:
        raise DataError(f"signals have one row a run and one column a step, not the shape {signals.shape}")
    column, triggered = stopped(np.where(np.isnan(signals), np.inf, signals), tau)
    legal = np.isfinite(signals)
    last = np.where(legal.any(axis=1), signals.shape[1] - 1 - legal[:, ::-1].argmax(axis=1), -1)
    runs_, unknown = np.arange(len(signals)), np.full(len(signals), np.nan)
    return Stops(
        runs_, np.zeros(len(signals), np.int64), np.where(triggered, column, last), unknown, triggered, sentence
    )
