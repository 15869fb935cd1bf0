"""What all plots share: an axis to draw on, its look, words in a person's language, and intervals
of shares.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from edfa.data.schema import Feature
from edfa.extras import extra
from edfa.text import phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE = Path(__file__).with_name("edfa.mplstyle")
"""A file of matplotlib's settings."""
INK, GREY = "#333333", "#555555"  # of lines and words, and of words beside the point
DARK, LIGHT, PALE = (
    "#0072B2",
    "#9DC3DE",
    "#E8EEF3",
)  # one hue in three steps, which stay apart in grey
LEVEL = 0.95  # of intervals


@contextmanager
def drawing(ax: "Axes | None", size: tuple[float, float]) -> Iterator["Axes"]:
    """Draw inside ``with``: on ``ax``, or on the axis of a new figure of ``size`` inches if it is
    None.

    Matplotlib is imported here alone, and its settings are the same after it as before. Names from
    cards are shown as they are: a dollar sign begins no formula.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    with extra("plots", "a plot"):
        import matplotlib as mpl
        import matplotlib.pyplot as plt
    with mpl.rc_context(fname=STYLE):
        drawn = plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax
        yield drawn
        for part in (drawn, *drawn.child_axes):
            for axis in (part.xaxis, part.yaxis):
                for text in (axis.label, *axis.get_ticklabels()):
                    text.set_parse_math(False)


def tidy(ax: "Axes", grid: Literal["x", "y", "both"]) -> None:
    """Leave the lines at the left and the bottom, and a pale grid behind everything, whatever the
    axis had before.

    Parameters
    ----------
    ax
        The axis, which is changed in place.
    grid
        Which grid lines are drawn: ``"x"`` the vertical ones, ``"y"`` the horizontal ones, or
        ``"both"``.
    """
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(visible=False)
    ax.grid(visible=True, axis=grid, color="#E4E4E4", linewidth=0.5)


def legend_above(ax: "Axes") -> None:
    """Put the legend above the axis, in one line, where nothing is drawn."""
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=4,
        frameon=False,
        fontsize=7,
        borderaxespad=0.2,
    )


def label_of(feature: Feature, language: str) -> str:
    """The card's label of a feature, on one line and without quotation marks.

    Parameters
    ----------
    feature
        The feature of the card.
    language
        Of the label, such as ``"en"``.
    """
    return phrases.plain(feature.said(language).label)


def say(key: str, language: str, /, **values: object) -> str:
    """One entry of ``sentences/plots.<language>.toml`` with its placeholders filled.

    Parameters
    ----------
    key
        The entry, such as ``"plans.plan"``.
    language
        The language of the file.
    **values
        What stands for each placeholder of the entry.

    Examples
    --------
    >>> say("plans.plan", "de", number=2)
    'Plan 2'
    """
    return str(phrases.table(language, "plots")[key]).format(**values)


def share_interval(share: float, n: int) -> tuple[float, float]:
    """The interval of Clopper and Pearson for a share, at the level 0.95.

    Parameters
    ----------
    share
        The share that was observed, from 0 to 1.
    n
        The number of people it was observed on.

    Returns
    -------
    tuple
        The lower and the upper end, each from 0 to 1.

    Examples
    --------
    >>> low, high = share_interval(0.0, 10)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    from scipy.special import betaincinv

    count, tail = share * n, (1 - LEVEL) / 2
    low = 0.0 if count <= 0 else float(betaincinv(count, n - count + 1, tail))
    high = 1.0 if count >= n else float(betaincinv(count + 1, n - count, 1 - tail))
    return low, high
