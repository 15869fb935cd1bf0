"""Which combinations are certified, which lack people, and which are beyond help: the paper's figure on data limits."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from edfa.certification.bounds import cp_ucb, hb_ucb
from edfa.certification.sample_size import check_plan, floor, n_required, p_value
from edfa.errors import ColumnError, hint

__all__ = ["Zones", "zones"]


@dataclass(frozen=True, eq=False)
class Zones:
    """Where each combination stands, and the lines of the paper's figure on data limits."""

    table: pd.DataFrame
    alpha: float
    delta: float
    bound: str

    def frame(self) -> pd.DataFrame:
        """The given rows with zone, people needed (by formula, first, stable) and how many more that is."""
        return self.table

    def curve(self, points: int = 60) -> pd.DataFrame:
        """The people needed over the observed risk: exactly, and by the paper's formula."""
        risks = np.linspace(0, self.alpha * 0.95, points)
        needed = [n_required(self.alpha, float(r), self.delta, self.bound) for r in risks]
        columns = {"risk": risks, "closed_form": [n.closed_form for n in needed]}
        return pd.DataFrame(columns | {"first": [n.first for n in needed], "stable": [n.stable for n in needed]})

    @property
    def floor(self) -> int:
        """The dotted line of the figure: below it nothing can be certified."""
        return floor(self.alpha, self.delta, self.bound)

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False))


def zones(table: Any, alpha: float, delta: float = 0.05, bound: str = "hb") -> Zones:
    """The zone of each row of ``table``, from its columns ``n`` and ``risk`` (that of the strictest rule).

    DEVIATION: the paper calls a combination risk-limited as soon as the observed risk reaches alpha. Seven losses of
    thirty settle nothing at 0.2; here it takes a lower bound above alpha.

    Examples
    --------
    >>> found = zones({"n": [200, 30, 30, 300], "risk": [0.1, 0.1, 7 / 30, 0.3]}, alpha=0.2)
    >>> found.frame()["zone"].tolist(), found.frame()["n_more"].tolist()
    (['certified', 'data-limited', 'data-limited', 'risk-limited'], [0, 54, <NA>, <NA>])
    """
    check_plan(alpha, delta, bound)
    frame = pd.DataFrame(table).copy()
    for name in ("n", "risk"):
        if name not in frame.columns:
            raise ColumnError(f"zones need a column {name!r}{hint(name, frame.columns)}")
    people, risks = frame["n"].to_numpy(), frame["risk"].to_numpy(dtype=np.float64)
    passed = p_value(bound, alpha, people, risk=risks) <= delta
    upper = cp_ucb if bound == "cp" else hb_ucb
    hopeless = 1 - np.asarray(upper(1 - risks, people, delta)) > alpha
    needed = [n_required(alpha, float(r), delta, bound) for r in risks]
    frame["zone"] = np.select([passed, hopeless], ["certified", "risk-limited"], "data-limited")
    for name in ("closed_form", "first", "stable"):
        frame[name] = pd.array([getattr(n, name) for n in needed], dtype="Int64")
    frame["n_more"] = (frame["stable"] - people).clip(lower=0).mask(passed, 0)
    return Zones(frame, alpha, delta, bound)
