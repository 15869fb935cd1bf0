"""Reliability of survival: of plans that were predicted to hold with some probability, how many
did?
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edfa.errors import DataError, SettingError
from edfa.plots.axis import DARK, GREY, INK, drawing, legend_above, share_interval, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.advice.promise import Rollout
    from edfa.typing import AnyArray, BoolArray, Float64Array

__all__ = [
    "Reliability",
    "ReliabilityBin",
    "bin_survival",
    "draw_reliability",
    "measure_reliability",
]

Which = Literal["every", "first"]
COUNTS = -0.07  # where the numbers of people stand, below the share 0


@dataclass(frozen=True)
class ReliabilityBin:
    """Plans whose predicted survival lies from ``start`` to ``end``.

    ``predicted`` is the mean of their survival, ``held`` the share that held, ``low`` and ``high``
    its interval at the level 0.95; ``plans`` and ``people`` are counts.
    """

    start: float
    end: float
    predicted: float
    held: float
    low: float
    high: float
    plans: int
    people: int


@dataclass(frozen=True)
class Reliability:
    """Bins that are not empty, in order; and the mean over all plans of the prediction and of what
    held.
    """

    bins: tuple[ReliabilityBin, ...]
    predicted: float
    held: float

    @property
    def plans(self) -> int:
        """The number of plans in all bins."""
        return sum(part.plans for part in self.bins)

    @property
    def error(self) -> float:
        """The mean distance between prediction and observation over bins, weighted by plans (0:
        perfect).
        """
        return sum(part.plans * abs(part.predicted - part.held) for part in self.bins) / self.plans


def measure_reliability(rollout: "Rollout", bins: int = 10, which: Which = "every") -> Reliability:
    """Compare the survival of people's first-ranked plans with whether they held, once the rest was
    known.

    Parameters
    ----------
    rollout
        People whom the advisor has not met, from ``edfa.advice.promise.roll_out(advisor.fitted,
        table.test.X)``. A plan held unless its person did it and is still refused by what the
        advisor's promise is held against.
    bins
        The number of equal intervals from 0 to 1.
    which
        ``"every"``: the plan of each step that has one; ``"first"``: of the first such step of each
        person alone.

    Raises
    ------
    DataError
        If the plans carry no survival, or there is none.
    """
    if which not in ("every", "first"):
        raise SettingError(f"which: 'every' or 'first', not {which!r}")
    plans, records = rollout.plans, rollout.records
    if plans.survival is None or records.loss is None:
        raise DataError(
            "these plans carry no survival; the searcher SurvivalSearch and add_survival "
            "estimate it"
        )
    rows = np.flatnonzero(plans.legal)
    person = records.code[rows]
    if which == "first":
        person, where = np.unique(
            person, return_index=True
        )  # rows of a person stand in the order of their steps
        rows = rows[where]
    return bin_survival(
        plans.survival[plans.first[rows]], np.asarray(records.loss)[rows] == 0, person, bins
    )


def bin_survival(
    predicted: "Float64Array", held: "BoolArray", person: "AnyArray", bins: int = 10
) -> Reliability:
    """Compare predicted survival (plans,) with what held (plans,) in equal intervals; ``person``
    (plans,) says whose.

    Several plans of one person stand and fall together, so that intervals count people and not
    plans.

    Examples
    --------
    >>> reliability = bin_survival(np.array([0.6, 0.8, 0.9]), np.array([False, True, True]),
    ...     np.array([0, 1, 2]), 2)
    >>> [(part.plans, round(part.held, 3)) for part in reliability.bins]
    [(3, 0.667)]
    """
    if bins < 1:
        raise SettingError(f"bins: a whole number of at least one, not {bins!r}")
    if not len(predicted):
        raise DataError("there is no plan whose survival could be compared")
    which = np.minimum((predicted * bins + 1e-9).astype(int), bins - 1)
    parts = []
    for i in np.unique(which).tolist():
        some = which == i
        share, people = float(held[some].mean()), len(np.unique(person[some]))
        low, high = share_interval(share, people)
        mean = float(predicted[some].mean())
        parts.append(
            ReliabilityBin(
                i / bins, (i + 1) / bins, mean, share, low, high, int(some.sum()), people
            )
        )
    return Reliability(tuple(parts), float(predicted.mean()), float(held.mean()))


def draw_reliability(reliability: Reliability, ax: "Axes | None" = None) -> "Axes":
    """Draw the share that held against predicted survival, with intervals and the number of people
    of each mark.
    """
    with drawing(ax, (4.2, 3.8)) as ax:
        parts = reliability.bins
        x, y = [part.predicted for part in parts], [part.held for part in parts]
        spans = [
            [max(0.0, p.held - p.low) for p in parts],
            [max(0.0, p.high - p.held) for p in parts],
        ]
        ax.plot([0, 1], [0, 1], color=INK, linestyle=":", linewidth=1, label="as predicted")
        ax.errorbar(
            x,
            y,
            yerr=spans,
            fmt="o",
            color=DARK,
            markersize=5,
            elinewidth=1,
            label="observed, with 95% interval",
        )
        small: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "color": GREY}
        for part in parts:
            ax.text(part.predicted, COUNTS, f"{part.people}", **small)
        ticks = np.linspace(0, 1, 6)
        ax.set(xlim=(-0.02, 1.03), ylim=(-0.12, 1.03), xticks=ticks)
        ax.set_yticks([COUNTS, *ticks], ["people", *(f"{tick:.1f}" for tick in ticks)])
        ax.set(xlabel="predicted survival of the plan", ylabel="share of plans that held")
        tidy(ax, "both")
        ax.yaxis.get_gridlines()[0].set_visible(False)
        legend_above(ax)
    return ax
