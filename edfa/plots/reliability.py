"""Reliability of survival: of plans that were predicted to hold with some probability, how many
did?
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from edfa.errors import DataError, SettingError
from edfa.plots.axis import DARK, GREY, INK, drawing, legend_above, share_interval, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.advice.promise import Rollout
    from edfa.typing import AnyArray, BoolArray, Float64Array

COUNTS = -0.07  # where the numbers of people stand, below the share 0


def measure_reliability(rollout: "Rollout", bins: int = 10) -> pd.DataFrame:
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

    Returns
    -------
    pandas.DataFrame
        One row for each interval that has plans, see ``bin_survival``.

    Raises
    ------
    DataError
        If the plans carry no survival, or there is none.
    """
    plans, records = rollout.plans, rollout.records
    if plans.survival is None or records.loss is None:
        raise DataError(
            "these plans carry no survival; the searcher SurvivalSearch and add_survival "
            "estimate it"
        )
    rows = np.flatnonzero(plans.legal)
    held = np.asarray(records.loss)[rows] == 0
    return bin_survival(plans.survival[plans.first[rows]], held, records.code[rows], bins)


def bin_survival(
    predicted: "Float64Array", held: "BoolArray", person: "AnyArray", bins: int = 10
) -> pd.DataFrame:
    """Compare predicted survival (plans,) with what held (plans,) in equal intervals; ``person``
    (plans,) says whose.

    Columns are ``start`` and ``end`` of the interval, the mean ``predicted`` survival, the share
    that ``held`` with its interval at the level 0.95 from ``low`` to ``high``, and the numbers of
    ``plans`` and ``people``. Several plans of one person stand and fall together, so that intervals
    count people and not plans.

    Examples
    --------
    >>> bins = bin_survival(np.array([0.6, 0.8, 0.9]), np.array([False, True, True]),
    ...     np.array([0, 1, 2]), 2)
    >>> bins[["start", "plans", "held"]].round(3)
       start  plans   held
    0    0.5      3  0.667
    """
    if bins < 1:
        raise SettingError(f"bins: a whole number of at least one, not {bins!r}")
    if not len(predicted):
        raise DataError("there is no plan whose survival could be compared")
    which = np.minimum((predicted * bins + 1e-9).astype(int), bins - 1)
    plans = pd.DataFrame({"which": which, "survival": predicted, "held": held, "person": person})
    table = plans.groupby("which", as_index=False).agg(
        predicted=("survival", "mean"),
        held=("held", "mean"),
        plans=("held", "size"),
        people=("person", "nunique"),
    )
    table[["low", "high"]] = [
        share_interval(*shares) for shares in zip(table["held"], table["people"], strict=True)
    ]
    first = table.pop("which")
    return table.assign(start=first / bins, end=(first + 1) / bins)


def draw_reliability(bins: pd.DataFrame, ax: "Axes | None" = None) -> "Axes":
    """Draw the share that held against predicted survival, with intervals and the number of people
    of each mark.

    Parameters
    ----------
    bins
        The table that ``measure_reliability`` gives.
    ax
        Where to draw; None: on a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axis that was drawn on. Marks on the dotted line are plans whose predicted survival is
        the share that held.
    """
    with drawing(ax, (4.2, 3.8)) as ax:
        ax.plot([0, 1], [0, 1], color=INK, linestyle=":", linewidth=1, label="as predicted")
        spans = [bins["held"] - bins["low"], bins["high"] - bins["held"]]
        ax.errorbar(
            bins["predicted"],
            bins["held"],
            yerr=np.maximum(spans, 0.0),
            fmt="o",
            color=DARK,
            markersize=5,
            elinewidth=1,
            label="observed, with 95% interval",
        )
        small: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7, "color": GREY}
        for place, people in zip(bins["predicted"], bins["people"], strict=True):
            ax.text(place, COUNTS, f"{people}", **small)
        ticks = np.linspace(0, 1, 6)
        ax.set(xlim=(-0.02, 1.03), ylim=(-0.12, 1.03), xticks=ticks)
        ax.set_yticks([COUNTS, *ticks], ["people", *(f"{tick:.1f}" for tick in ticks)])
        ax.set(xlabel="predicted survival of the plan", ylabel="share of plans that held")
        tidy(ax, "both")
        ax.yaxis.get_gridlines()[0].set_visible(False)
        legend_above(ax)
    return ax
