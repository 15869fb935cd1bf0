"""Drawings on a matplotlib axis that several parts of the library share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.typing import Float64Array


def draw_steps(
    ax: "Axes",
    spent: "Sequence[float] | Float64Array",
    probability: "Sequence[float] | Float64Array",
    names: Sequence[str],
    axis_labels: tuple[str, str],
) -> "Axes":
    """Draw one person's steps: a probability against the cost so far, each step with its name.

    Parameters
    ----------
    ax
        The axis to draw on; it is returned.
    spent, probability
        The cost so far and the probability after each step, (steps,).
    names
        What is written at each step, (steps,).
    axis_labels
        Those of the x and the y axis.
    """
    ax.step(spent, probability, "-o", where="post", color="black", mfc="white", lw=1.2, ms=4)
    for x, y, name in zip(spent, probability, names, strict=True):
        ax.annotate(name, (x, y), (2, 5), textcoords="offset points", rotation=30)
    ax.set(xlabel=axis_labels[0], ylabel=axis_labels[1], ylim=(0, 1.4), yticks=np.linspace(0, 1, 6))
    ax.margins(x=0.12)
    return ax
